# SPDX-License-Identifier: Apache-2.0
"""Drops chosen packets of one board between access point and broker, by nftables on the rack's host.

The rules stand in a table of the family netdev, at the interface itself: captures see what comes in before
the rules do, and what goes out after them. So the board's packets that are dropped are captured at the access
point and not behind it; those to the board are captured at the broker and not at the access point.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from hil.base.errors import HilError, RigError
from hil.base.process import how_ended
from hil.network.process import Spawner, run_to_end, system_program

Dropped = Literal["syn", "connect", "connack", "all"]

TIMEOUT_S = 10.0
PERMIT = "sudo setcap cap_net_admin=ep $(command -v nft || echo /usr/sbin/nft)"
COUNTER = "taken"
_TAKEN = re.compile(r"\bpackets (\d+) bytes \d+")
_TCP_WORDS = range(5, 16)  # a TCP header's length in words of 32 bits, its data offset


class PacketFilter:
    """Rules for the board at ``board_address`` and the broker's ``port``, on the bridge port ``interface``.

    syn: the board's SYN. connect, connack: the TCP segments that begin with that packet of MQTT 3.1.1 (plain
    TCP only). all: everything of the board (IPv4 and ARP), which still is captured at ``interface``.
    One filter a board at a time; rules that a killed run left for it are removed before new ones stand.
    """

    def __init__(
        self, spawner: Spawner, interface: str, board_address: str, port: int, *, log_path: Path
    ) -> None:
        self._spawner = spawner
        self._interface = interface
        self._address = board_address
        self._port = port
        self._log_path = log_path
        self._table = f"hil_{board_address.replace('.', '_')}"
        self._dropping = False
        self._dropped = 0

    @contextmanager
    def drop(self, what: Dropped) -> Iterator[None]:
        """Drop these packets meanwhile; every rule is gone afterwards.

        Raises RigError: nft is missing (how to install it), or not permitted, or its own words.
        """
        attempt = f"Dropping {what} packets of {self._address} on {self._interface}"
        rules = self._rules(what)
        self._require_interface(attempt)
        self._nft(rules, attempt)
        self._dropped = 0
        self._dropping = True
        try:
            yield
        except BaseException:
            with contextlib.suppress(HilError, OSError):  # the first cause is the one to tell
                self._end()
            raise
        self._end()

    def dropped_count(self) -> int:
        """Return how many packets the rules of the last drop() took, so far where it goes on."""
        if self._dropping:
            said = self._nft(
                f"list counter netdev {self._table} {COUNTER}", f"Counting packets in {self._table}"
            )
            counts = _TAKEN.search(said)
            if counts is None:
                raise RigError(
                    f"Counting packets in {self._table}: nft said {said!r}.", log=str(self._log_path)
                )
            self._dropped = int(counts.group(1))
        return self._dropped

    def _end(self) -> None:
        try:
            self.dropped_count()
        finally:
            self._dropping = False
            self._nft(f"delete table netdev {self._table}", f"Passing the packets of {self._address} again")

    def _rules(self, what: Dropped) -> str:
        """Return nft's commands, carried out all or none of them: a table of the board's own."""
        incoming = what != "connack"
        chain = f'type filter hook {"ingress" if incoming else "egress"} device "{self._interface}" '
        rules = [f"{match} counter name {COUNTER} drop" for match in self._matches(what)]
        return "\n".join(
            [
                f"add table netdev {self._table}",  # so that there is one to delete
                f"delete table netdev {self._table}",
                f"table netdev {self._table} {{",
                f"counter {COUNTER} {{ }}",
                "chain board {",
                f"{chain} priority 0; policy accept;",
                *rules,
                "}",
                "}",
            ]
        )

    def _matches(self, what: Dropped) -> list[str]:
        to_broker = f"ip saddr {self._address} tcp dport {self._port}"
        to_board = f"ip daddr {self._address} tcp sport {self._port}"
        if what == "all":
            return [f"ip saddr {self._address}", f"arp saddr ip {self._address}"]
        if what == "syn":
            return [f"{to_broker} tcp flags & (syn|ack) == syn"]
        if what == "connack":
            return [f"{to_board} tcp doff {words} @th,{words * 32},16 0x2002" for words in _TCP_WORDS]
        # 0x10, the remaining length in one byte or two, the protocol's name with its length
        return [
            f"{to_broker} tcp doff {words} @th,{words * 32},8 0x10 @th,{words * 32 + bits},48 0x00044d515454"
            for words in _TCP_WORDS
            for bits in (16, 24)
        ]

    def _require_interface(self, attempt: str) -> None:
        """Raise RigError where there is no such interface: newer kernels take rules for one to come."""
        argv = [system_program("ip", "iproute2", "Dropping packets"), "link", "show", "dev", self._interface]
        code, said = run_to_end(self._spawner, argv, TIMEOUT_S, log_path=self._log_path)
        if code != 0:
            raise RigError(
                f"{attempt}: {said.strip()}", log=str(self._log_path), next_step="list them: ip -br link."
            )

    def _nft(self, commands: str, attempt: str) -> str:
        """Let nft carry out commands, and return what it said. Raises RigError."""
        argv = [system_program("nft", "nftables", "Dropping packets"), commands]
        code, said = run_to_end(self._spawner, argv, TIMEOUT_S, log_path=self._log_path)
        if code == 0:
            return said
        words = said.strip().partition("\n")[0] or "nothing"
        raise RigError(
            f"{attempt}: nft {how_ended(code)}; it said: {words}.",
            log=str(self._log_path),
            next_step=PERMIT if "not permitted" in said else "see what nft says: nft list ruleset.",
        )
