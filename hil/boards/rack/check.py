# SPDX-License-Identifier: Apache-2.0
"""Is a rack ready? Looks at ports, power switches, network and broker; flashes and measures nothing."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

from hil.base.finding import Finding
from hil.boards.lease import read_holder
from hil.boards.rack.loader import Board, Rack


def check_rack(rack: Rack, lock_dir: Path, *, served: Mapping[str, int]) -> list[Finding]:
    """Look at everything that a run would need; return what was found, good and bad.

    ``served`` holds the TCP ports of the virtual boards that are up in this rack, by board.
    """
    findings = [_check_broker(), *_check_network(rack)]
    for board in rack.boards:
        holder = read_holder(lock_dir, board.id)
        if holder:
            findings.append(Finding(board.id, ok=True, sentence=f"in use by {holder.describe()}"))
            continue
        findings.append(_check_port(board, served.get(board.id)))
        findings += _check_power(board)
    return findings


def _check_broker() -> Finding:
    path = _find_program("mosquitto")
    if path:
        return Finding("broker", ok=True, sentence=f"{path} is there")
    return Finding("broker", ok=False, sentence="mosquitto is not installed.", mend="hil doctor.")


def _find_program(name: str) -> str | None:
    return shutil.which(
        name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    )


def _check_network(rack: Rack) -> Iterator[Finding]:
    if rack.is_virtual:
        yield Finding("network", ok=True, sentence="the virtual air is started by each run")
        return
    yield _check_interface(rack)
    if rack.capture.access_point:
        yield _check_capture(rack)
    yield _check_password(rack)


def _check_interface(rack: Rack) -> Finding:
    subject = f"interface {rack.host.interface}"
    if not _is_there(rack.host.interface):
        return _no_interface(subject, rack)
    with socket.socket() as probe:
        try:
            probe.bind((rack.host.address, 0))
        except OSError as error:
            return Finding(
                subject,
                ok=False,
                sentence=f"{rack.host.address} is no address of this host: {error.strerror}.",
                mend=f"mend 'host' in {rack.path}.",
            )
    return Finding(subject, ok=True, sentence=f"has {rack.host.address}")


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
        subject, ok=False, sentence=f"there is none; present: {present}.", mend=f"mend {rack.path}."
    )


def _check_password(rack: Rack) -> Finding:
    point = rack.access_point
    subject = f"access point {point.ssid}"
    if point.psk_env:
        ok = bool(os.environ.get(point.psk_env))
        return Finding(
            subject,
            ok=ok,
            sentence=f"its password is {'' if ok else 'not '}in the environment variable {point.psk_env}.",
            mend="" if ok else f"export {point.psk_env}=…",
        )
    ok = os.access(point.psk_file, os.R_OK)
    sentence = f"its password file {point.psk_file} is {'' if ok else 'not '}readable."
    return Finding(subject, ok=ok, sentence=sentence, mend="" if ok else "create it, or give read access.")


def _check_port(board: Board, served_port: int | None) -> Finding:
    if board.kind == "virtual":
        return _check_virtual_port(board, served_port)
    path = Path(board.serial)
    if "://" in board.serial or os.access(path, os.R_OK | os.W_OK):
        return Finding(board.id, ok=True, sentence=f"port {board.serial} is there")
    if path.exists():
        sentence, mend = (
            f"port {path} is not readable and writable.",
            "add this user to the group dialout.",
        )
    else:
        sentence, mend = f"port {path} does not exist.", "plug the board in, or mend 'serial'."
    return Finding(board.id, ok=False, sentence=sentence, mend=mend)


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
    if board.power.type != "command":
        return
    program = shlex.split(board.power.command)[0]
    if _find_program(program):
        yield Finding(board.id, ok=True, sentence=f"power switch {program} is there")
        return
    yield Finding(
        board.id,
        ok=False,
        sentence=f"its power command {program!r} is not installed.",
        mend="install it.",
    )
