# SPDX-License-Identifier: Apache-2.0
"""dnsmasq: a name server that knows one name, for boards that are told to resolve their peer's name; and, for
a network that the run makes, the addresses of its boards with their names.
"""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from hil.base.errors import RigError
from hil.base.finding import Finding
from hil.base.process import how_ended
from hil.boards.rack import Board
from hil.boards.rack.access_point import Dhcp
from hil.network.helper import helper_for
from hil.network.process import Process, Spawner, end_process, system_program

PEER_NAME = "peer.hil.test"  # of the rack's host; nothing below .test is ever registered (RFC 6761)
DOMAIN = "hil.test"
DHCP_PORT = 67
PORT = 53  # a board's resolver asks nowhere else (lwIP's dns_setserver() takes an address only)
START_TIMEOUT_S = 5.0
STOP_TIMEOUT_S = 3.0
POLL_S = 0.01


@dataclass(frozen=True)
class Leases:
    """The addresses that are given out. ``fixed``: a board's name, MAC and address."""

    dhcp: Dhcp
    fixed: Sequence[tuple[str, str, str]]


def leases_of(dhcp: Dhcp, boards: Sequence[Board]) -> Leases:
    """Give each board whose MAC address on the network is known the next address, in the rack file's order.

    On a cable a chip has another MAC than the rack file's ``mac``, unless it is told one.
    """
    known = {board.id: board.mac if board.network.is_wifi else board.network.mac for board in boards}
    first = IPv4Address(dhcp.first)
    named = [board for board in boards if known[board.id] and not board.network.address]
    fixed = [(_host_name(board.id), known[board.id], str(first + index)) for index, board in enumerate(named)]
    return Leases(dhcp, fixed)


def _host_name(board_id: str) -> str:
    """Return a board's name: no underscore, and nothing that dnsmasq reads as a time or a word of its own."""
    name = board_id.replace("_", "-").strip("-")
    return f"board-{name}" if name.rstrip("hdmw").isdigit() or name in ("ignore", "infinite") else name


class NameServer:
    """A running dnsmasq. ``address`` is where it answers."""

    def __init__(self, process: Process, address: str, name: str, log_path: Path) -> None:
        self.address = address
        self.name = name
        self.log_path = log_path
        self._process = process

    @classmethod
    def start(
        cls,
        spawner: Spawner,
        interface: str,
        address: str,
        name: str,
        log_path: Path,
        leases: Leases | None = None,
    ) -> NameServer:
        """Answer ``name`` with ``address``, at ``interface``, whose address it is; returns when it listens.

        With ``leases`` it gives out addresses, too, and answers a board's id below ``hil.test`` with its own.

        Every other name is refused, so nothing is asked outside. Each question and answer is logged.
        Raises RigError: dnsmasq missing (how to install it), port 53 taken, or its last words.
        """
        log_bytes = log_path.stat().st_size if log_path.exists() else 0
        program = system_program("dnsmasq", "dnsmasq-base", "Starting the name server")
        serving = _serving(leases) if leases else []
        process = spawner.spawn([program, *_options(interface, address, name), *serving], log_path=log_path)
        try:
            _await_listening(process, address, log_path, log_bytes, spawner)
        except BaseException:
            process.kill()
            raise
        return cls(process, address, name, log_path)

    @property
    def pid(self) -> int:
        return self._process.pid

    def check(self) -> None:
        """Raise RigError when it is no longer there."""
        code = self._process.returncode
        if code is not None:
            raise RigError(
                f"The name server (dnsmasq, pid {self._process.pid}, {self.address}) {how_ended(code)}.",
                log=str(self.log_path),
                next_step="start the run again.",
            )

    def stop(self) -> None:
        """End it; does nothing when it has ended. Never raises."""
        end_process(self._process, STOP_TIMEOUT_S)


def _options(interface: str, address: str, name: str) -> list[str]:
    return [
        "--keep-in-foreground",
        "--no-daemon",  # so that it changes to no other user: a user namespace holds none, and no groups
        "--conf-file=/dev/null",
        "--no-resolv",
        "--no-hosts",
        "--no-poll",
        "--bind-interfaces",
        f"--interface={interface}",
        "--except-interface=lo",
        f"--listen-address={address}",  # it fails where the interface has another one
        f"--port={PORT}",
        "--pid-file=",
        "--log-facility=-",  # stderr
        "--log-queries",
        f"--host-record={name},{address}",
        f"--local=/{name}/",  # so that its IPv6 address is "none" instead of a refusal
        "--local-ttl=0",  # each lookup is a lookup
        "--leasefile-ro",
    ]


def _serving(leases: Leases) -> list[str]:
    """Return the options that give out addresses. They are kept in memory: each run has its own, the same."""
    return [
        f"--dhcp-range={dhcp_range(leases.dhcp)}",
        *(f"--dhcp-host={mac},{address},{board}" for board, mac, address in leases.fixed),
        f"--domain={DOMAIN}",
        f"--local=/{DOMAIN}/",
        "--dhcp-authoritative",  # a board that asks for what another network gave it is told at once
        "--no-ping",
        "--log-dhcp",
    ]


def dhcp_range(dhcp: Dhcp) -> str:
    """Return the addresses, their netmask and how long they are given, as dnsmasq takes them."""
    return f"{dhcp.first},{dhcp.last},{dhcp.netmask},{round(dhcp.lease_s)}"


_PORT_MENDS = {
    errno.EADDRINUSE: "see who has it: ss -lnup sport = :{port}",
    errno.EACCES: "run as root, or by the rack's root helper.",
    errno.EADDRNOTAVAIL: "give the interface that address, or mend host.address.",
}


def check_leases(address: str) -> Finding:
    """Look whether dnsmasq is there, and the two ports that it takes are free."""
    subject = "DHCP and names"
    try:
        program = system_program("dnsmasq", "dnsmasq-base", "Starting the name server")
    except RigError as error:
        return Finding(subject, ok=False, sentence=error.sentence, mend=error.next_step)
    by_helper = helper_for(program) is not None
    for host, port in ((address, PORT), ("", DHCP_PORT)):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind((host, port))
            except OSError as error:
                if error.errno == errno.EACCES and by_helper:
                    continue
                mend = _PORT_MENDS.get(error.errno or 0, "see which it is: ip -br address.").format(port=port)
                sentence = f"port {port} of {host or 'all addresses'} cannot be had: {error.strerror}."
                return Finding(subject, ok=False, sentence=sentence, mend=mend)
    return Finding(subject, ok=True, sentence=f"{program} is there, ports {PORT} and {DHCP_PORT} are free")


def _await_listening(
    process: Process, address: str, log_path: Path, from_byte: int, spawner: Spawner
) -> None:
    """Wait for dnsmasq's own word, in the log from a byte on, that it runs. Raises RigError."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        ended = process.returncode is not None
        log = log_path.read_bytes()[from_byte:].decode(errors="replace")
        if ended:
            raise _start_error(log, address, log_path, spawner)
        if "started, version" in log:
            return
        time.sleep(POLL_S)
    raise RigError(f"The name server was not up within {START_TIMEOUT_S:.0f} s.", log=str(log_path))


def _start_error(log: str, address: str, log_path: Path, spawner: Spawner) -> RigError:
    words = " | ".join([line.strip() for line in log.splitlines() if line.strip()][-2:])
    sentence = f"Starting the name server on {address}, port {PORT}: {words or 'it said nothing'}."
    next_step = "read its log."
    if "Address already in use" in log:
        next_step = f"find who listens there, and end it: {spawner.enter_command}ss -lnup sport = :{PORT}"
    elif "ermission denied" in log:
        next_step = f"let programs listen there: sudo sysctl net.ipv4.ip_unprivileged_port_start={PORT}"
    elif "Cannot assign requested address" in log:
        next_step = "check host.address in the rack file: ip -br address."
    return RigError(sentence, log=str(log_path), next_step=next_step)
