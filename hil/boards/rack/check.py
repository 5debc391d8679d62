# SPDX-License-Identifier: Apache-2.0
"""Is a rack ready? Looks at ports, power switches, network and broker; flashes and measures nothing.

A physical board is reset, and asked who it is: what answers is compared with the rack file.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from hil.base.errors import HilError
from hil.base.finding import Finding
from hil.base.process import find_program
from hil.boards.current_sampling import check_meter
from hil.boards.flash.identify import check_identity, identify
from hil.boards.lease import lease_boards, read_holder
from hil.boards.rack.loader import Board, Rack

IP_TIMEOUT_S = 5.0


def check_rack(rack: Rack, lock_dir: Path, *, served: Mapping[str, int]) -> list[Finding]:
    """Look at everything that a run would need; return what was found, good and bad.

    ``served`` holds the TCP ports of the virtual and emulated boards that are up in this rack, by board.
    """
    findings = [_check_broker(), *_check_network(rack)]
    seen: dict[str, str] = {}
    for board in rack.boards:
        holder = read_holder(lock_dir, board.id)
        if holder:
            findings.append(Finding(board.id, ok=True, sentence=f"in use by {holder.describe()}"))
            continue
        if board.current:
            findings.append(check_meter(board))  # first, as it may be the board's supply
        port = check_port(board, served.get(board.id))
        findings.append(port if board.is_process or not port.ok else _check_board(board, lock_dir, seen))
        findings += _check_power(board)
    return findings


def _check_broker() -> Finding:
    path = find_program("mosquitto")
    if path:
        return Finding("broker", ok=True, sentence=f"{path} is there")
    return Finding("broker", ok=False, sentence="mosquitto is not installed.", mend=_INSTALL_BROKER)


_INSTALL_BROKER = "sudo apt install mosquitto; `hil doctor` lists all that this host lacks."


def _check_network(rack: Rack) -> Iterator[Finding]:
    if rack.is_virtual:
        yield Finding("network", ok=True, sentence="the virtual air is started by each run")
        return
    yield _check_interface(rack)
    if rack.capture.access_point:
        yield _check_capture(rack)


def _check_interface(rack: Rack) -> Finding:
    subject = f"interface {rack.host.interface}"
    if not _is_there(rack.host.interface):
        return _no_interface(subject, rack)
    there = _addresses_of(rack.host.interface)
    if rack.host.address not in there:
        return Finding(
            subject,
            ok=False,
            sentence=f"it has not {rack.host.address}, but {', '.join(there) or 'no IPv4 address'}.",
            mend=f"correct 'host' in {rack.path} (`ip -brief address` tells which interface has which "
            "address), or give the interface this one.",
        )
    if rack.host.address.startswith("127."):
        return Finding(
            subject,
            ok=False,
            sentence=f"{rack.host.address} is for this host alone: a board that connects to it finds itself.",
            mend=f"name the interface at the boards' network, and its address, under 'host' in {rack.path}.",
        )
    return Finding(subject, ok=True, sentence=f"has {rack.host.address}")


def _addresses_of(interface: str) -> list[str]:
    """Return the IPv4 addresses of an interface, none where nobody tells."""
    argv = ["ip", "-4", "-oneline", "address", "show", "dev", interface]
    try:
        said = subprocess.run(argv, capture_output=True, text=True, timeout=IP_TIMEOUT_S, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    return re.findall(r" inet ([0-9.]+)", said)


def _check_capture(rack: Rack) -> Finding:
    subject = f"capture at {rack.capture.access_point}"
    if not _is_there(rack.capture.access_point):
        return _no_interface(subject, rack)
    return Finding(subject, ok=True, sentence="the interface at the access point is there")


def _is_there(interface: str) -> bool:
    return Path("/sys/class/net", interface).exists()


def _no_interface(subject: str, rack: Rack) -> Finding:
    present = ", ".join(name for _, name in socket.if_nameindex())
    return Finding(
        subject,
        ok=False,
        sentence=f"there is none; present: {present}.",
        mend=f"write the right one in {rack.path}; `ip -brief address` tells which has which address.",
    )


_JOIN_DIALOUT = (
    "sudo usermod -aG dialout USER, then log in again; a runner's rules are written by hil runner files."
)
_FIND_PORT = (
    "plug the board in, by a cable that carries data; or correct 'serial': `ls -l /dev/serial/by-id "
    "/dev/serial/by-path` lists the ports that are there."
)


def check_port(board: Board, served_port: int | None = None) -> Finding:
    """Look whether a board's port is there and this user's to open; nothing is opened."""
    if board.is_process:
        return _check_virtual_port(board, served_port)
    if "://" in board.serial and not board.serial.startswith("usb://"):
        return Finding(board.id, ok=True, sentence=f"port {board.serial} is a remote one")
    try:
        path = Path(board.stock_serial)
    except HilError as error:
        return Finding(board.id, ok=False, sentence=error.sentence, mend=error.next_step)
    if not path.exists():
        sentence, mend = f"port {path} does not exist.", _FIND_PORT
    elif not path.is_char_device():
        sentence, mend = f"{path} is no serial port.", _FIND_PORT
    elif os.access(path, os.R_OK | os.W_OK):
        return Finding(board.id, ok=True, sentence=f"port {board.serial} is there")
    else:
        sentence, mend = f"this user may not read and write port {path}.", _JOIN_DIALOUT
    return Finding(board.id, ok=False, sentence=sentence, mend=mend)


def _check_board(board: Board, lock_dir: Path, seen: dict[str, str]) -> Finding:
    """Ask a board who it is, over whatever its port is; an unreachable host of one is found so, too.

    ``seen`` is which boards answered with which MAC address before.
    """
    try:
        with lease_boards(lock_dir, [board.id], run_id=f"rack-check-{os.getpid()}"):
            found = identify(board)
        check_identity(board, found)
    except HilError as error:
        return Finding(board.id, ok=False, sentence=error.sentence, mend=error.next_step)
    if other := seen.get(found.mac):
        return Finding(
            board.id,
            ok=False,
            sentence=f"port {board.serial} has {found.chip} {found.mac}, and so has board {other}.",
            mend="see where the ports of both lead to, and give each board its 'mac'.",
        )
    seen[found.mac] = board.id
    unnamed = "" if board.mac else f"; name it in the rack file: mac: {found.mac}"
    flash = found.flash or "unknown"
    return Finding(
        board.id,
        ok=True,
        sentence=f"port {board.serial} has {found.chip} {found.mac}, flash {flash}{unnamed}",
    )


def _check_virtual_port(board: Board, served_port: int | None) -> Finding:
    """A free port will serve the board; a taken one is fine where this rack is up and serves the board."""
    if served_port and board.tcp_port in (0, served_port):
        return Finding(board.id, ok=True, sentence=f"port {served_port} is served: the rack is up")
    if not board.tcp_port:
        return Finding(board.id, ok=True, sentence="gets a free port when the rack is started")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", board.tcp_port))
        except OSError as error:
            return Finding(
                board.id,
                ok=False,
                sentence=f"port {board.tcp_port} is taken by another program: {error.strerror}.",
                mend=f"see who has it: ss -ltnp 'sport = :{board.tcp_port}'",
            )
    return Finding(board.id, ok=True, sentence=f"port {board.tcp_port} is free for it")


def _check_power(board: Board) -> Iterator[Finding]:
    for power in filter(None, (board.power, board.hub_power)):
        if power.driver:
            yield from power.driver.check(board.id)
