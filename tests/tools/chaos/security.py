# SPDX-License-Identifier: Apache-2.0
"""What must hold of any run: what listens, where secrets are, what an unprivileged user can do."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.lab import ROOT
from tests.tools.chaos.broker import customized
from tests.tools.chaos.fault import MOMENTS, Act, Fault, Owner
from tests.tools.chaos.ground import PASSWORD, SECRETS
from tests.tools.chaos.host import run_by
from tests.tools.chaos.trial import Trial


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
    secrets = [*SECRETS, *_hashes(trial)]
    found = []
    for process in trial.ground.processes():
        for name in ("cmdline", "environ"):
            try:
                data = Path(f"/proc/{process.pid}/{name}").read_bytes()
            except OSError:
                continue
            found += [f"secret in {name} of {process.name[:60]}" for secret in secrets if secret in data]
    return found


def _hashes(trial: Trial) -> list[bytes]:
    """Return what the broker checks passwords by."""
    found = trial.ground.lab.temporary.rglob("mosquitto-passwords-*")
    return [path.read_bytes().split(b"$")[-1].strip() for path in found]


@contextmanager
def _known_password(trial: Trial) -> Iterator[None]:
    """Let the run draw a password that is known here, for all that looks for secrets."""
    with customized(f"import secrets\nsecrets.token_urlsafe = lambda _=None: {PASSWORD!r}\n")(trial):
        yield


@contextmanager
def _seen_while_measuring(trial: Trial) -> Iterator[None]:
    """Look at what ps shows while board b1 is measured, of a run whose password is known."""
    with _known_password(trial):
        trial.once(MOMENTS["measuring"], lambda: trial.found.extend(_told_to_ps(trial)))
        yield


def _open_to_others(trial: Trial) -> list[str]:
    """Return files with secrets that another user could read."""
    found = []
    for folder in trial.ground.lab.temporary.glob("hil-secrets-*"):
        if folder.stat().st_mode & 0o077:
            found.append(f"{folder.name} is open to others")
    return found


def _cores(trial: Trial) -> list[Path]:
    """Return the core files in the lab, and where the run was started."""
    return [path for path in (*trial.lab_folder.rglob("core*"), *ROOT.glob("core*")) if _is_core(path)]


def _is_core(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def no_core(number: signal.Signals, word: str = "") -> Act:
    """Return what ends a part of the run, or the run itself, by a signal that leaves a core file, where the
    run may leave one: its memory holds keys."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        def end() -> None:
            os.kill(trial.ground.part(word).pid if word else trial.run_pid, number)

        with run_by("prlimit", "--core=unlimited:unlimited")(trial):
            trial.once(MOMENTS["measuring"], end)
            yield
        cores = _cores(trial)
        trial.found += [f"core file {path}" for path in cores]
        for path in cores:
            path.unlink()

    return act


_CRASHES: Sequence[tuple[str, signal.Signals, str, Owner]] = (
    ("the run", signal.SIGQUIT, "", "interrupted"),
    ("the broker", signal.SIGSEGV, "mosquitto", "rig"),
)
FAULTS: Sequence[Fault] = (
    Fault("security", "what listens", looked_at(_listens_elsewhere), "measuring", ("nobody",)),
    Fault("security", "what ps shows", _seen_while_measuring, "before", ("nobody",), suite="pr"),
    Fault("security", "who may read the keys", looked_at(_open_to_others), "measuring", ("nobody",)),
    *(
        Fault("security", f"core file of {whose}", no_core(number, word), "before", (owner,), suite="pr")
        for whose, number, word, owner in _CRASHES
    ),
)
