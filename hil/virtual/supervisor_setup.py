"""How the supervisor sets itself up: priority, signals, and the descriptors it was sent."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
from typing import Any

from hil.virtual.supervisor_child import AIR_CONTROL_FD

PRIORITY = 61  # above the air (60), which is above every board


def line_arrives(fd: int, *, timeout_s: float) -> bool:
    """Say whether a line comes out of a pipe in time."""
    with selectors.DefaultSelector() as selector:
        selector.register(fd, selectors.EVENT_READ)
        return bool(selector.select(timeout_s)) and os.read(fd, 64).endswith(b"\n")


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
