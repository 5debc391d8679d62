# SPDX-License-Identifier: Apache-2.0
"""What must hold of any run: what listens, where secrets are, what an unprivileged user can do."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.lab import ROOT
from tools.chaos.broker import customized
from tools.chaos.fault import MOMENTS, Act, Fault
from tools.chaos.ground import PASSWORD, SECRETS
from tools.chaos.trial import Trial


def looked_at(look: Callable[[Trial], list[str]]) -> Act:
    """Return what looks at a run while it measures; what it finds makes the row wrong."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        trial.found += look(trial)
        yield

    return act


def _listens_elsewhere(trial: Trial) -> list[str]:
    """Return sockets of this lab's processes that listen on this host beyond loopback."""
    listening = subprocess.run(["ss", "-Hltunp"], capture_output=True, text=True, check=True).stdout
    ours = {str(process.pid) for process in trial.ground.processes()}
    found = []
    for line in listening.splitlines():
        local = line.split()[4]
        pids = set(re.findall(r"pid=(\d+)", line))
        if pids & ours and not local.startswith(("127.", "[::1]")):
            found.append(f"listens at {local}")
    return found


def _told_to_ps(trial: Trial) -> list[str]:
    """Return command lines and environments, which others can read, that hold a secret of the run."""
    hashes = _hashes(trial)
    found = [] if any(map(_is_known, hashes)) else ["the run has not drawn the known password"]
    secrets = [*SECRETS, *(one.split(b"$")[-1] for one in hashes)]
    for process in trial.ground.processes():
        for name in ("cmdline", "environ"):
            try:
                data = Path(f"/proc/{process.pid}/{name}").read_bytes()
            except OSError:
                continue
            found += [f"secret in {name} of {process.name[:60]}" for secret in secrets if secret in data]
    return found


def _hashes(trial: Trial) -> list[bytes]:
    """Return what the broker checks passwords by: iterations, salt and hash."""
    found = trial.ground.lab.temporary.rglob("mosquitto-passwords-*")
    return [path.read_bytes().strip().split(b"$7$")[-1] for path in found]


def _is_known(hashed: bytes) -> bool:
    iterations, salt, digest = hashed.split(b"$")
    made = hashlib.pbkdf2_hmac("sha512", PASSWORD.encode(), base64.b64decode(salt), int(iterations), 64)
    return made == base64.b64decode(digest)


@contextmanager
def _seen_while_measuring(trial: Trial) -> Iterator[None]:
    """Look at what ps shows while board b1 is measured, of a run that is let draw a known password."""
    with customized(f"import secrets\nsecrets.token_urlsafe = lambda _=None: {PASSWORD!r}\n")(trial):
        trial.once(MOMENTS["measuring"], lambda: trial.found.extend(_told_to_ps(trial)))
        yield


def _open_to_others(trial: Trial) -> list[str]:
    """Return files with secrets that another user could read."""
    found = []
    for folder in trial.ground.lab.temporary.glob("hil-secrets-*"):
        if folder.stat().st_mode & 0o077:
            found.append(f"{folder.name} is open to others")
    return found


def _may_leave_cores(trial: Trial) -> list[str]:
    """Return the processes that may leave a core file: this campaign itself allows them."""
    found = []
    for process in trial.ground.processes():
        try:
            limits = Path(f"/proc/{process.pid}/limits").read_text()
        except OSError:
            continue
        if not re.search(r"^Max core file size +0 ", limits, re.MULTILINE):
            found.append(f"may leave a core file: {process.name[:60]}")
    return found


def _cores() -> set[Path]:
    """Return the core files where runs are started."""
    return {path for path in ROOT.glob("core*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"}


@contextmanager
def _quit(trial: Trial) -> Iterator[None]:
    """End the run by the signal of Ctrl-\\, which leaves a core file where one is allowed."""
    before = _cores()
    os.kill(trial.run_pid, signal.SIGQUIT)
    yield
    trial.found += [f"core file {path}" for path in _cores() - before]


FAULTS: Sequence[Fault] = (
    Fault("security", "what listens", looked_at(_listens_elsewhere), "measuring", ("nobody",)),
    Fault("security", "what ps shows", _seen_while_measuring, "before", ("nobody",), suite="pr"),
    Fault("security", "who may read the keys", looked_at(_open_to_others), "measuring", ("nobody",)),
    Fault("security", "who may leave a core file", looked_at(_may_leave_cores), "measuring", ("nobody",)),
    Fault("security", "core file of the run", _quit, "measuring", ("interrupted",)),
)
