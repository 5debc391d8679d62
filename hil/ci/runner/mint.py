# SPDX-License-Identifier: Apache-2.0
"""Registrations of a rack's runner, made off the rack: the right to register never comes near a job.

A just-in-time registration is for one job: GitHub takes it back when the job is done.
"""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec import Struct

from hil.base.errors import RigError
from hil.ci.github import GitHub
from hil.ci.runner import HOME

SSH = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15")
TIMEOUT_S = 60.0
EVERY_S = 15.0
_INBOX = f"{HOME}/inbox/$i"  # a folder for each runner of the host
RETRY_S = 600  # a runner that failed gets no registration for so long: GitHub would list a dead one for each
# What runs on the rack, as the user that owns the inbox. Neither half can be read by a job.
_ASK = (
    f"test -d {_INBOX} || {{ echo no inbox; exit 0; }}; "
    f"if test -e {_INBOX}/registration; then echo Inbox=full; else echo Inbox=empty; fi; "
    'echo "Uptime=$(cut -d " " -f 1 /proc/uptime)"; '
    "systemctl show hil-runner@$i.service "
    "--property=ActiveState,Result,ExecMainStatus,InactiveEnterTimestampMonotonic"
)
_DELIVER = f"umask 077 && cat > {_INBOX}/new && mv {_INBOX}/new {_INBOX}/registration"
_MEND = "install the rack's side (hil runner files), and try by hand: ssh {to} ls " + f"{HOME}/inbox"


@dataclass(frozen=True)
class RackHost:
    """A runner of a rack's host, which is reached by ssh as ``to``, USER@HOST, with the command ``ssh``."""

    to: str
    ssh: Sequence[str] = SSH
    instance: int = 1

    def state(self) -> str:
        """Return ``wanted`` where it needs a registration, ``waiting`` where it has one, ``busy`` with a job.

        Raises RigError where it cannot be asked, and where its last runner failed a short time ago.
        """
        text = self._run(_ASK, "").strip()
        facts = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        try:
            return self._judge(facts)
        except (KeyError, ValueError):
            raise RigError(
                f"the rack's host {self.to} reports {text[:80]!r}.", next_step=_MEND.format(to=self.to)
            ) from None

    def _judge(self, facts: Mapping[str, str]) -> str:
        is_full = facts["Inbox"] == "full"
        since_s = float(facts["Uptime"]) - int(facts["InactiveEnterTimestampMonotonic"]) / 1e6
        if facts["ActiveState"] == "failed" and (is_full or since_s < RETRY_S):
            raise self._failed(facts["Result"], int(facts["ExecMainStatus"]))
        if is_full:
            return "waiting"
        return "wanted" if facts["ActiveState"] in ("inactive", "failed") else "busy"

    def _failed(self, result: str, status: int) -> RigError:
        unit = f"hil-runner@{self.instance}"
        how = f"{result}, status {status}" if status else f"{result}: it ended without a job"
        return RigError(
            f"runner {self.instance} of {self.to} failed ({how}); it gets no registration for "
            f"{RETRY_S // 60} minutes after that.",
            next_step=f"read why on that host: sudo journalctl -u {unit}; fix the cause, then: sudo "
            f"systemctl reset-failed {unit} && sudo systemctl restart {unit}.path.",
        )

    def deliver(self, registration: str) -> None:
        """Put a registration into the host's inbox, whole or not at all. Raises RigError."""
        self._run(_DELIVER, registration)

    def _run(self, script: str, text: str) -> str:
        argv = [*self.ssh, self.to, f"sh -c {shlex.quote(f'i={self.instance}; {script}')}"]
        try:
            done = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise self._unreachable(str(error)) from error
        if done.returncode != 0:
            words = (done.stderr.strip() or done.stdout.strip()).partition("\n")[0]
            raise self._unreachable(f"{words or 'nothing'} (status {done.returncode})")
        return done.stdout

    def _unreachable(self, why: str) -> RigError:
        sentence = f"the rack's host {self.to} cannot be reached by {self.ssh[0]}: {why}."
        return RigError(sentence, next_step=_MEND.format(to=self.to))


class _Registration(Struct, frozen=True):
    encoded_jit_config: str


def mint(github: GitHub, name: str, labels: Sequence[str], group_id: int) -> str:
    """Register a runner for one job; return the registration. Raises RigError."""
    asked = {"name": name, "runner_group_id": group_id, "labels": ["self-hosted", "hil", *labels]}
    body = {**asked, "work_folder": "_work"}
    return github.post("actions/runners/generate-jitconfig", body, _Registration).encoded_jit_config


def serve_once(github: GitHub, host: RackHost, labels: Sequence[str], group_id: int) -> str:
    """Give the host a registration where it wants one; return how it was. Raises RigError."""
    state = host.state()
    if state == "wanted":
        name = f"rack-{host.instance}-{time.time_ns() // 1_000_000}"
        host.deliver(mint(github, name, labels, group_id))
    return state


def ask_all(asks: Sequence[Callable[[], str]]) -> Iterator[str | RigError]:
    """Ask each runner, whatever became of the one before."""
    for ask in asks:
        try:
            yield ask()
        except RigError as error:
            yield error


def serve(asks: Sequence[Callable[[], str]], say: Callable[[str], None]) -> None:
    """Ask again and again, as long as the process lives; say what changes, errors too, which end nothing."""
    before = [""] * len(asks)
    while True:
        answers = [str(answer) for answer in ask_all(asks)]
        for answer, last in zip(answers, before, strict=True):
            if answer != last:
                say(answer)
        before = answers
        time.sleep(EVERY_S)
