# SPDX-License-Identifier: Apache-2.0
"""The first process of a rack's namespaces: starts the air and the boards, spawns on request, reaps.

``python -m hil.virtual.supervisor CHANNEL_FD``, started by hil.virtual.rack_start as process 1 of its
own PID namespace: when it ends, for whatever reason, the kernel kills everything else in there. The channel
brings the plan and the descriptors, takes the report, and is the lifeline: it ends with the starter.

Requests, one JSON message on a SOCK_SEQPACKET connection:

    {"op": "spawn", "argv", "netns", "env", "cwd"} + log fd   → {"pid"}, later {"exit": code}
    {"op": "signal", "signal"}  on a spawn's connection; closing it kills the process
    {"op": "state"}             → {"dead": [sentence…], "parts": {name: pid}, "priority", …}
    {"op": "address", "netns"}  → {"address"} of a board now, "" for none; what was counted of its way
    {"op": "stop"}              → {"stopping": true}; ends everything in order

A request that is none is answered with {"error": sentence}; the connection and the rack go on.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hil.virtual import rack_namespace, unix_socket
from hil.virtual.supervisor_child import AIR_CONTROL_FD, Child, StartError, launch, send_pid

PRIORITY = 61  # above the air (60), which is above every board


def line_arrives(fd: int, *, timeout_s: float) -> bool:
    """Return whether a line comes out of a pipe in time."""
    with selectors.DefaultSelector() as selector:
        selector.register(fd, selectors.EVENT_READ)
        return bool(selector.select(timeout_s)) and os.read(fd, 64).endswith(b"\n")


def last_line(log: str) -> str:
    """Return the last line of a log, "" where there is none."""
    with contextlib.suppress(OSError):
        return "".join(Path(log).read_text(errors="replace").strip().splitlines()[-1:])
    return ""


def take_priority() -> None:
    """Become SCHED_FIFO where that is permitted."""
    with contextlib.suppress(PermissionError):
        policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK  # what is started here is not real-time by itself
        os.sched_setscheduler(0, policy, os.sched_param(PRIORITY))


def held_priority() -> int:
    """Return the real-time priority held, 0 = none."""
    return os.sched_getparam(0).sched_priority


def signal_wakeup() -> socket.socket:
    """Return a socket that becomes readable when a child ends; SIGALRM ends this process."""
    read_end, write_end = socket.socketpair()
    read_end.setblocking(False)
    write_end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.set_wakeup_fd(write_end.detach(), warn_on_full_buffer=False)
    return read_end


def place_descriptors(plan: dict[str, Any], fds: list[int]) -> socket.socket:
    """Give the received descriptors the numbers that the command lines state; return the request socket.

    The first is the rack's lock: it stays open, so that the lock lasts as long as this process.
    """
    _lock_fd, server_fd, *rest = fds
    numbers = [AIR_CONTROL_FD, *(board["listen_fd"] for board in plan["boards"])]
    for received, number in zip(rest, numbers, strict=True):
        os.dup2(received, number, inheritable=False)
        os.close(received)
    return socket.socket(fileno=server_fd)


def hand_over(plan: dict[str, Any]) -> None:
    """Close what the parts now hold: a dead board's port must refuse."""
    for number in [AIR_CONTROL_FD, *(board["listen_fd"] for board in plan["boards"])]:
        os.close(number)


AIR_READY_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 2.0
SEND_TIMEOUT_S = 1.0  # a client that does not read its replies is let go of: everyone else waits meanwhile
MALFORMED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)


@dataclass
class Supervisor:
    """The event loop's state: everything it started, and what of it died unasked."""

    plan: dict[str, Any]
    selector: selectors.DefaultSelector = field(default_factory=selectors.DefaultSelector)
    children: dict[int, Child] = field(default_factory=dict)
    dead: list[str] = field(default_factory=list)
    stopping: bool = False
    congestion_control: str = ""

    def start_parts(self) -> None:
        boards = self.plan["boards"]
        rack_namespace.mount_private_run()
        self.congestion_control = rack_namespace.create_bridge()
        for board in boards:
            rack_namespace.create_board_namespace(board["id"])
        self._start_air()
        for index, board in enumerate(boards):
            rack_namespace.connect_board(board["id"], index, board["mac"], bridged=board["bridged"])
            if board["translated"]:
                rack_namespace.translate(board["id"])
        for board in boards:
            self._start_board(board)

    def _start_board(self, board: dict[str, Any]) -> None:
        if board["argv"]:
            self._add(launch(f"board {board['id']}", board["argv"], board["log"], fds=[board["listen_fd"]]))

    def _start_air(self) -> None:
        ready_read, ready_write = os.pipe()
        air = self.plan["air"]
        child = launch("air", air["argv"], air["log"], fds=[AIR_CONTROL_FD], stdout=ready_write)
        os.close(ready_write)
        self._add(child)
        if not line_arrives(ready_read, timeout_s=AIR_READY_TIMEOUT_S):
            raise StartError(f"the virtual air did not start: {last_line(air['log']) or 'it said nothing'}")
        os.close(ready_read)

    def _add(self, child: Child) -> None:
        self.children[child.pid] = child

    def watch(self, source: Any, handler: Callable[[Any], None]) -> None:
        self.selector.register(source, selectors.EVENT_READ, handler)

    def run(self) -> None:
        """Serve until a stop request has ended every child, or the lifeline breaks."""
        while not (self.stopping and not self.children):
            for key, _ in self.selector.select():
                key.data(key.fileobj)

    def on_lifeline(self, channel: socket.socket) -> None:
        if self.stopping:  # in order: boards are still saving what their chips would keep
            self.selector.unregister(channel)
            return
        os._exit(0)  # the starter is gone; the kernel takes the rest of this namespace with us

    def on_child_signal(self, wakeup: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            wakeup.recv(4096)
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                self._reaped(pid, os.waitstatus_to_exitcode(status))

    def _reaped(self, pid: int, code: int) -> None:
        child = self.children.pop(pid, None)
        if child is None:
            return  # an orphan that this namespace's first process inherited
        child.process.returncode = code
        if child.connection is not None:
            self._finish(child, code)
        elif not self.stopping:
            how = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
            said = f": {last}" if (last := last_line(child.log)) else ""
            self.dead.append(f"{child.name} {how}{said} (log: {child.log})")
            print(self.dead[-1], file=sys.stderr, flush=True)  # whoever comes when all is gone reads it there

    def _finish(self, child: Child, code: int) -> None:
        connection = child.connection
        if connection is None:
            return
        with contextlib.suppress(OSError):
            unix_socket.send_message(connection, {"exit": code})
        self._forget(connection)

    def _forget(self, connection: socket.socket) -> None:
        self.selector.unregister(connection)
        connection.close()

    def on_client(self, server: socket.socket) -> None:
        with contextlib.suppress(OSError):  # the client is gone already
            connection, _ = server.accept()
            connection.settimeout(SEND_TIMEOUT_S)
            self.watch(connection, self.on_message)

    def on_message(self, connection: socket.socket) -> None:
        """Answer one request; whatever a client sends, this process must not end by it."""
        try:
            try:
                message, fds = unix_socket.receive_message(connection)
                self._answer(connection, message, fds)
            except MALFORMED as error:
                why = f"malformed request: {type(error).__name__}: {error}"
                unix_socket.send_message(connection, {"error": why})
        except (EOFError, OSError):
            self._abandon(connection)

    def _abandon(self, connection: socket.socket) -> None:
        """Let go of a client, and kill what it has spawned."""
        owned = self._owned_by(connection)
        if owned is not None:
            owned.connection = None
            owned.name = f"abandoned {owned.name}"
            with contextlib.suppress(OSError):
                owned.signal(signal.SIGKILL)
            self.children.pop(owned.pid)
        self._forget(connection)

    def _owned_by(self, connection: socket.socket) -> Child | None:
        return next((child for child in self.children.values() if child.connection is connection), None)

    def _answer(self, connection: socket.socket, message: dict[str, Any], fds: list[int]) -> None:
        try:
            self._carry_out(connection, message, fds)
        finally:
            unix_socket.close_all(fds)

    def _carry_out(self, connection: socket.socket, message: dict[str, Any], fds: list[int]) -> None:
        operation = message.get("op")
        owned = self._owned_by(connection)
        if operation == "signal" and owned is not None:
            owned.signal(int(message["signal"]))
        elif operation == "spawn" and owned is None:
            self._spawn(connection, message, fds)
        elif operation == "state":
            unix_socket.send_message(connection, self._state())
        elif operation == "address":
            unix_socket.send_message(connection, _way_of(str(message["netns"])))
        elif operation == "stop":
            unix_socket.send_message(connection, {"stopping": True})
            self._stop()
        else:
            unix_socket.send_message(connection, {"error": f"unknown request {operation!r}"})

    def _state(self) -> dict[str, Any]:
        parts = {child.name: child.pid for child in self.children.values() if child.connection is None}
        return {
            "dead": self.dead,
            "parts": parts,
            "priority": held_priority(),
            "congestion_control": self.congestion_control,
        }

    def _spawn(self, connection: socket.socket, message: dict[str, Any], fds: list[int]) -> None:
        argv, netns = list(message["argv"]), str(message["netns"])
        env, cwd = message["env"], message["cwd"]
        try:
            self._require_whole()
            child = launch(Path(argv[0]).name, argv, "", stdout=fds[0], netns=netns, env=env, cwd=cwd)
        except StartError as error:
            unix_socket.send_message(connection, {"error": str(error)})
            return
        child.connection = connection
        self._add(child)
        send_pid(connection, child.pid)

    def _require_whole(self) -> None:
        if self.dead:
            raise StartError("; ".join(self.dead))

    def _stop(self) -> None:
        """Ask everyone to end; whoever has not within STOP_TIMEOUT_S dies with this process."""
        self.stopping = True
        for child in self.children.values():
            child.signal(signal.SIGTERM)
        signal.setitimer(signal.ITIMER_REAL, STOP_TIMEOUT_S)


def _way_of(board_id: str) -> dict[str, Any]:
    """Raises ValueError: no such board."""
    try:
        address = rack_namespace.address_now(board_id)
    except (OSError, rack_namespace.NetworkSetupError) as error:
        raise ValueError(f"no board {board_id!r}") from error
    return {"address": address, **rack_namespace.counted()}


def main(channel_fd: int) -> int:
    channel = socket.socket(fileno=channel_fd)
    channel.set_inheritable(False)
    plan, fds = unix_socket.receive_message(channel)
    server = place_descriptors(plan, fds)
    take_priority()
    supervisor = Supervisor(plan)
    supervisor.watch(signal_wakeup(), supervisor.on_child_signal)
    try:
        supervisor.start_parts()
    except (rack_namespace.NetworkSetupError, StartError) as error:
        unix_socket.send_message(channel, {"error": str(error)})
        return 1
    hand_over(plan)
    supervisor.watch(channel, supervisor.on_lifeline)
    supervisor.watch(server, supervisor.on_client)
    unix_socket.send_message(channel, {"ready": True})
    supervisor.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
