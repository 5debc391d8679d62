"""Bring a virtual rack's namespaces up from the outside, and take them down."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import RigError
from hil.base.finding import Finding
from hil.base.paths import PROJECT_ROOT
from hil.virtual import privileges, rack_plan, rack_state, unix_socket
from hil.virtual.rack_plan import BoardCommand
from hil.virtual.rack_state import RackPaths, VirtualBoardSpec

START_TIMEOUT_S = 30.0
BOARD_TIMEOUT_S = 20.0
PORT_TIMEOUT_S = 2.0


@dataclass
class Owner:
    """What keeps a started rack alive: its channel (closed: everything ends), lock and outermost process."""

    process: subprocess.Popen[bytes]
    channel: socket.socket
    lock_fd: int


def start(
    paths: RackPaths,
    name: str,
    boards: Sequence[VirtualBoardSpec],
    air: Path,
    seed: int,
    board_command: BoardCommand | None,
) -> tuple[Owner, list[VirtualBoardSpec]]:
    """Start the namespaces with everything in them. Raises RigError, ConfigError."""
    rack_plan.check_boards(boards)
    _check_machine(name)
    lock_fd = rack_state.take_lock(paths, name)
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, lock_fd)
        stale = rack_state.clean(paths)
        sockets = [stack.enter_context(_listen(board, wait=stale)) for board in boards]
        real = [
            dataclasses.replace(board, port=int(server.getsockname()[1]))
            for board, server in zip(boards, sockets, strict=True)
        ]
        plan = rack_plan.make_plan(paths, air, real, seed, board_command)
        owner = _launch(stack, paths, plan, sockets, lock_fd)
        rack_state.write_holder(paths, name, real)
    return owner, real


def release(paths: RackPaths, owner: Owner, timeout_s: float) -> None:
    """Cut the lifeline, wait for the namespaces to be gone, and tidy the folder."""
    owner.channel.close()
    try:
        owner.process.wait(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        owner.process.kill()  # --kill-child takes the supervisor along, and that everything else
        owner.process.wait()
    for path in (paths.holder, *paths.folder.glob("*.sock")):
        path.unlink(missing_ok=True)
    os.close(owner.lock_fd)


def await_socket(path: Path, check: Callable[[], None]) -> bool:
    """Wait until somebody listens at ``path``; ``check`` raises when that cannot come any more."""

    def listens() -> bool:
        check()
        try:
            unix_socket.connect(path, timeout_s=1.0, kind=socket.SOCK_STREAM).close()
        except OSError:
            return False
        return True

    return rack_state.retry_until(BOARD_TIMEOUT_S, listens)


def _check_machine(name: str) -> None:
    missing = [tool for tool in privileges.TOOLS if shutil.which(tool) is None]
    findings = [privileges.tun_device()] if not missing else privileges.check()
    for finding in findings:
        if finding.needed and not finding.ok:
            raise _refused(name, finding)


def _refused(name: str, finding: Finding) -> RigError:
    sentence = f"Starting the virtual rack {name!r}: {finding.subject}: {finding.sentence}."
    return RigError(sentence, next_step=f"{finding.mend} (or start it with sudo)")


def _listen(board: VirtualBoardSpec, *, wait: bool) -> socket.socket:
    """Open the board's RFC2217 port on this side: a free one of the kernel's choice, or the one that it asks
    for, which a killed run's board may hold for a moment more."""
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if board.port:  # else the kernel might choose one that another program has bound and does not serve yet
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

    def bind() -> bool:
        try:
            server.bind(("127.0.0.1", board.port))
            server.listen(4)
        except OSError:
            return False
        return True

    if not rack_state.retry_until(PORT_TIMEOUT_S if wait and board.port else 0.0, bind):
        server.close()
        raise _no_port(board)
    return server


def _no_port(board: VirtualBoardSpec) -> RigError:
    if board.port:
        return RigError(
            f"Opening port {board.port} of 127.0.0.1 for virtual board {board.id}: it is taken.",
            next_step=f"find who listens there: ss -ltnp sport = :{board.port}",
        )
    return RigError(
        f"Opening a port of 127.0.0.1 for virtual board {board.id}: none is free.",
        next_step="find who has them (ss -tanp), or have more: sysctl net.ipv4.ip_local_port_range.",
    )


def _launch(
    stack: contextlib.ExitStack,
    paths: RackPaths,
    plan: Mapping[str, Any],
    listeners: Sequence[socket.socket],
    lock_fd: int,
) -> Owner:
    """Start the supervisor and send it its plan with every descriptor.

    Only the channel is inherited: unshare stays in between, and what it inherited would stay open in it.
    """
    server = stack.enter_context(unix_socket.listen(paths.supervisor_socket))
    control = stack.enter_context(unix_socket.listen(paths.air_socket))
    channel, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with inner:
        owner = Owner(_unshare(paths, inner.fileno()), channel, os.dup(lock_fd))
    try:
        fds = [lock_fd, server.fileno(), control.fileno(), *(listener.fileno() for listener in listeners)]
        unix_socket.send_message(channel, plan, fds=fds)
        _await_report(paths, channel, owner.process)
    except BaseException:
        release(paths, owner, 0.5)
        raise
    return owner


def _unshare(paths: RackPaths, channel_fd: int) -> subprocess.Popen[bytes]:
    argv = [*privileges.unshare_command(), sys.executable, "-m", "hil.virtual.supervisor", str(channel_fd)]
    path = os.pathsep.join(filter(None, [str(PROJECT_ROOT), os.environ.get("PYTHONPATH", "")]))
    with paths.supervisor_log.open("ab") as log:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[channel_fd],
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C is for the caller, who then stops the rack in order
        )


def _await_report(paths: RackPaths, channel: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """Wait for the supervisor's word. Raises RigError with what failed and how to mend it."""
    channel.settimeout(START_TIMEOUT_S)
    try:
        facts, _ = unix_socket.receive_message(channel)
    except (EOFError, OSError):
        facts = {}
    channel.settimeout(None)
    if not facts.get("ready"):
        raise _not_started(paths, str(facts.get("error", "")) or _last_words(paths, process))


def _last_words(paths: RackPaths, process: subprocess.Popen[bytes]) -> str:
    said = paths.supervisor_log.read_text(errors="replace").split()
    if said:
        return " ".join(said[-40:])
    return f"no word from its supervisor (unshare's status: {process.poll()})"


def _not_started(paths: RackPaths, cause: str) -> RigError:
    failed = next((found for found in privileges.check() if found.needed and not found.ok), None)
    step = failed.mend if failed else "read the log; hil doctor says what is missing."
    log = str(paths.supervisor_log)
    return RigError(f"The virtual rack did not start: {cause}.", log=log, next_step=step)
