# SPDX-License-Identifier: Apache-2.0
"""Processes that the supervisor starts inside the rack's namespaces."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import struct
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.virtual import rack_namespace

RACK = "rack"
AIR_CONTROL_FD = 90  # what the air and the boards inherit has fixed numbers, known to their command lines
FIRST_BOARD_FD = 100


class StartError(Exception):
    """A process could not be started; the text says why."""


@dataclass
class Child:
    """A started process; ``connection`` is its client's, None for a part of the rack."""

    name: str
    process: subprocess.Popen[bytes]
    log: str
    connection: socket.socket | None = None

    @property
    def pid(self) -> int:
        return self.process.pid

    def signal(self, number: int) -> None:
        """Signal the whole process group. The child is not reaped elsewhere, so its pid is still its own."""
        if self.process.returncode is None:
            os.killpg(self.pid, signal.Signals(number))


def launch(
    name: str,
    argv: Sequence[str],
    log: str,
    *,
    fds: Sequence[int] = (),
    stdout: int | None = None,
    netns: str = RACK,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
) -> Child:
    """Start ``argv`` in its own process group; output goes to ``log``, or to ``stdout`` where given.

    Raises StartError.
    """
    environment = dict(os.environ if env is None else env)
    _require_program(argv[0], environment, cwd)
    command = [*_enter(netns), *argv]
    log_fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) if log else None
    output = stdout if stdout is not None else log_fd
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=log_fd if log_fd is not None else output,
            env=environment,
            cwd=cwd,
            pass_fds=fds,
            start_new_session=True,
        )
    except OSError as error:
        raise StartError(f"starting {name}: {argv[0]}: {error.strerror}") from error
    finally:
        if log_fd is not None:
            os.close(log_fd)
    return Child(name, process, log)


def _enter(netns: str) -> list[str]:
    if netns == RACK:
        return []
    path = rack_namespace.netns_path(netns)
    if not path.exists():
        known = ", ".join([RACK, *sorted(entry.name for entry in rack_namespace.NETNS_DIR.iterdir())])
        raise StartError(f"there is no network namespace {netns!r}; namespaces: {known}")
    return ["nsenter", f"--net={path}", "--"]


def _require_program(program: str, env: Mapping[str, str], cwd: str | None) -> None:
    place = str(Path(cwd or ".") / program) if "/" in program else program
    if shutil.which(place, path=env.get("PATH")) is None:
        raise StartError(f"the program {program} is not on PATH or not executable")


def send_pid(connection: socket.socket, pid: int) -> None:
    """Send the client the pid as credentials, which the kernel translates into the client's namespace."""
    credentials = struct.pack("iII", pid, os.getuid(), os.getgid())
    ancillary = [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, credentials)]
    connection.sendmsg([b'{"started": true}'], ancillary)
