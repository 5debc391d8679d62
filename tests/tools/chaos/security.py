# SPDX-License-Identifier: Apache-2.0
"""What must hold of any run: what listens, where secrets are, what an unprivileged user can do."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.tools.chaos.board import given
from tests.tools.chaos.fault import Act, Fault
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
    secrets = _secrets(trial)
    found = []
    for process in trial.ground.processes():
        for name in ("cmdline", "environ"):
            try:
                data = Path(f"/proc/{process.pid}/{name}").read_bytes()
            except OSError:
                continue
            found += [f"secret in {name} of {process.name[:60]}" for secret in secrets if secret in data]
    return found


def _secrets(trial: Trial) -> list[bytes]:
    words = [b"PRIVATE KEY"]
    for path in trial.ground.lab.temporary.rglob("mosquitto-passwords-*"):
        words += [path.read_bytes().split(b"$")[-1].strip()]
    return words


def _open_to_others(trial: Trial) -> list[str]:
    """Return files with secrets that another user could read."""
    found = []
    for folder in trial.ground.lab.temporary.glob("hil-secrets-*"):
        if folder.stat().st_mode & 0o077:
            found.append(f"{folder.name} is open to others")
    return found


def _cores(trial: Trial) -> list[str]:
    return [
        f"core file {path.name}"
        for path in trial.lab_folder.rglob("core*")
        if path.is_file() and path.stat().st_size > 1_000_000
    ]


@contextmanager
def _no_core(trial: Trial) -> Iterator[None]:
    """Let the app panic where core files are allowed, and look for one: its memory holds the keys."""
    with run_by("prlimit", "--core=unlimited:unlimited")(trial), given("panic")(trial):
        yield
    trial.found += _cores(trial)


FAULTS: Sequence[Fault] = (
    Fault("security", "what listens", looked_at(_listens_elsewhere), "measuring", ("nobody",)),
    Fault("security", "what ps shows", looked_at(_told_to_ps), "measuring", ("nobody",)),
    Fault("security", "who may read the keys", looked_at(_open_to_others), "measuring", ("nobody",)),
    Fault("security", "core files", _no_core, "measuring", ("firmware",)),
)
