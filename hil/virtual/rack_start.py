# SPDX-License-Identifier: Apache-2.0
"""Bring a virtual rack's namespaces up from the outside, and take them down.

The supervisor in them is told what to start: the air and the boards, as command lines.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError, RigError
from hil.base.finding import Finding
from hil.base.paths import python_path
from hil.base.project import strict_here
from hil.virtual import privileges, rack_namespace, rack_state, unix_socket
from hil.virtual.rack_state import RackPaths, VirtualBoardSpec
from hil.virtual.supervisor_child import AIR_CONTROL_FD, FIRST_BOARD_FD

AIR_PRIORITY = 60
BOARD_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,29}")
RESERVED_IDS = ("rack", "all")


@dataclass(frozen=True)
class BoardLaunch:
    """What a virtual board's process is told."""

    spec: VirtualBoardSpec
    listen_fd: int
    control_path: Path
    flash_path: Path
    netns_path: Path
    log_path: Path


BoardCommand = Callable[[BoardLaunch], Sequence[str]]


def default_board_command(board: BoardLaunch) -> Sequence[str]:
    """The virtual board of hil.virtual.board, or the emulated one of hil.virtual.emulator."""
    module = "hil.virtual.emulator" if board.spec.kind == "emulated" else "hil.virtual.board"
    argv = [sys.executable, "-m", module, "--id", board.spec.id]
    argv += ["--listen-fd", str(board.listen_fd), "--control", str(board.control_path)]
    argv += ["--flash", str(board.flash_path), "--mac", board.spec.mac, "--chip", board.spec.chip]
    argv += ["--netns", str(board.netns_path)]
    if board.spec.kind == "emulated":
        argv += ["--emulator", board.spec.emulator, "--network", board.spec.network or "openeth"]
    if board.spec.ssid and not board.spec.is_bridged:
        argv += [f"--ap={board.spec.ssid}", f"--ap-password={board.spec.password}"]
    if strict_here() is not None and board.spec.kind == "virtual":
        argv += ["--strict", "fail" if strict_here() else "warn"]
    return [*argv, "--pace"] if board.spec.pace else argv


def check_boards(boards: Sequence[VirtualBoardSpec]) -> None:
    """Raise ConfigError for ids that are no file names, reserved, or given twice, and for no boards."""
    ids = [board.id for board in boards]
    for board_id in ids:
        if BOARD_ID.fullmatch(board_id) is None or board_id in RESERVED_IDS:
            raise ConfigError(f"{board_id!r} is not a board id: letters, digits, - and _; not rack or all.")
        if ids.count(board_id) > 1:
            raise ConfigError(f"the board id {board_id!r} appears twice.")
    if not ids:
        raise ConfigError("a virtual rack needs at least one board.")


def make_plan(
    paths: RackPaths,
    air: Path,
    boards: Sequence[VirtualBoardSpec],
    seed: int,
    board_command: BoardCommand | None,
) -> Mapping[str, Any]:
    """Return the plan that the supervisor executes, as a JSON object."""
    launches = [_board_launch(paths, index, board) for index, board in enumerate(boards)]
    return {
        "air": {"argv": _air_argv(air, boards, seed), "log": str(paths.air_log)},
        "boards": [_board_plan(board, board_command) for board in launches],
    }


def _board_plan(board: BoardLaunch, board_command: BoardCommand | None) -> dict[str, object]:
    return {
        "id": board.spec.id,
        "mac": board.spec.mac,
        "bridged": board.spec.is_bridged,
        "translated": board.spec.kind == "emulated" and not board.spec.is_bridged,
        "listen_fd": board.listen_fd,
        "argv": [str(word) for word in board_command(board)] if board_command else [],
        "log": str(board.log_path),
    }


def _board_launch(paths: RackPaths, index: int, board: VirtualBoardSpec) -> BoardLaunch:
    return BoardLaunch(
        spec=board,
        listen_fd=FIRST_BOARD_FD + index,
        control_path=paths.board_socket(board.id),
        flash_path=paths.board_flash(board.id),
        netns_path=rack_namespace.netns_path(board.id),
        log_path=paths.board_log(board.id),
    )


def _air_argv(air: Path, boards: Sequence[VirtualBoardSpec], seed: int) -> list[str]:
    argv = [
        str(air),
        "--seed",
        str(seed),
        "--priority",
        str(AIR_PRIORITY),
        "--control-fd",
        str(AIR_CONTROL_FD),
    ]
    for index, board in enumerate(boards):
        device, path = rack_namespace.access_point_device(index), rack_namespace.netns_path(board.id)
        argv += ["--link", f"{board.id},{device},{path},{rack_namespace.BOARD_DEVICE}"]
    return argv


START_TIMEOUT_S = 30.0
BOARD_TIMEOUT_S = 20.0
PORT_TIMEOUT_S = 2.0


@dataclass
class RackOwner:
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
) -> tuple[RackOwner, list[VirtualBoardSpec]]:
    """Start the namespaces with everything in them. Raises RigError, ConfigError."""
    check_boards(boards)
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
        plan = make_plan(paths, air, real, seed, board_command)
        owner = _launch(stack, paths, plan, sockets, lock_fd)
        rack_state.write_holder(paths, name, real)
    return owner, real


def release(paths: RackPaths, owner: RackOwner, timeout_s: float) -> None:
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
            f"Opening port {board.port} of 127.0.0.1 for virtual board {board.id}: it is in use.",
            next_step=f"find what listens there: ss -ltnp sport = :{board.port}",
        )
    return RigError(
        f"No free port of 127.0.0.1 for virtual board {board.id}.",
        next_step="find what uses them (ss -tanp), or allow more: sysctl net.ipv4.ip_local_port_range.",
    )


def _launch(
    stack: contextlib.ExitStack,
    paths: RackPaths,
    plan: Mapping[str, Any],
    listeners: Sequence[socket.socket],
    lock_fd: int,
) -> RackOwner:
    """Start the supervisor and send it its plan with every descriptor.

    Only the channel is inherited: unshare stays in between, and what it inherited would stay open in it.
    """
    server = stack.enter_context(unix_socket.listen(paths.supervisor_socket))
    control = stack.enter_context(unix_socket.listen(paths.air_socket))
    channel, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with inner:
        owner = RackOwner(_unshare(paths, inner.fileno()), channel, os.dup(lock_fd))
    try:
        fds = [lock_fd, server.fileno(), control.fileno(), *(listener.fileno() for listener in listeners)]
        with contextlib.suppress(BrokenPipeError):  # it has ended by now; its last words say why
            unix_socket.send_message(channel, plan, fds=fds)
        _await_report(paths, channel, owner.process)
    except BaseException:
        release(paths, owner, 0.5)
        raise
    return owner


def _unshare(paths: RackPaths, channel_fd: int) -> subprocess.Popen[bytes]:
    argv = [*privileges.unshare_command(), sys.executable, "-m", "hil.virtual.supervisor", str(channel_fd)]
    with paths.supervisor_log.open("wb") as log:  # of this rack alone: its last line says why it ended
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[channel_fd],
            env={**os.environ, "PYTHONPATH": python_path()},
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
