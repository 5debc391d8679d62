# SPDX-License-Identifier: Apache-2.0
"""The virtual air of one run: its profile, the noise that is drawn for each boot, and what it did."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from hil.base.errors import RigError
from hil.boards.rack import Board
from hil.model import Scalar
from hil.virtual.air.profile import AirProfile
from hil.virtual.noise import Noise, scaled
from hil.virtual.virtual_rack import VirtualRack, Way, profile_in_force

STILL_US = 1_000_000.0  # no load of a host that still measures keeps the air from running so long
OTHERS_SHARE, OTHERS_BYTES = 0.1, 10_000  # of what a board gets: so much from others is no more than noise


@dataclass(frozen=True)
class _Before:
    """A link when a case began: changes by others, frames that the access point's port had not taken, what
    was counted of the board's way, and whether it was as it is meant to be."""

    others: int
    refused: int
    way: Way
    in_force: bool


class RunAir:
    """The links of ``rack`` under ``profile`` and, where there is any, ``noise``. Boards' threads use it.

    ``boards`` are the run's own: others' links are left alone.
    """

    def __init__(
        self,
        rack: VirtualRack,
        boards: Collection[str],
        profile: AirProfile,
        noise: Noise | None,
    ) -> None:
        self._rack = rack
        self._boards = boards
        self._profile = profile
        self._noise = noise
        self._links: dict[str, AirProfile] = {}  # of boards that have booted under noise
        self._before: dict[str, _Before] = {}  # by board
        self._own_ports: dict[str, set[int]] = {}  # of a board, that the run itself sends to
        self._boots: dict[str, int] = {}  # the last one's index, by board

    def begin_boot(self, board: Board) -> None:
        """Draw the offsets of the board's next boot; they are in force from when the air is next applied."""
        if self._noise is None:
            return
        boot_index = self._boots.get(board.id, -1) + 1
        self._boots[board.id] = boot_index
        draw = self._noise.draw(board.id, boot_index)
        self._links = {**self._links, board.id: scaled(self._profile, draw.offset)}

    def apply(self) -> None:
        """Set every link to what it is meant to be, and up. Only for whoever holds the air."""
        for board in self._boards:
            if not self._is_in_force(board):
                self._rack.air.profile(self._wanted(board), board)
                self._rack.air.up(board)

    def _wanted(self, board: str) -> AirProfile:
        return self._links.get(board, self._profile)

    def _is_in_force(self, board: str) -> bool:
        return profile_in_force(self._rack, self._wanted(board), board=board)

    def environment(self, board: Board) -> Mapping[str, Mapping[str, Scalar]]:
        """Return the groups air, under noise noise, and of an emulated board emulation."""
        groups: dict[str, Mapping[str, Scalar]] = {
            "air": {**self._rack.environment(), **self._counters(board)}
        }
        if self._noise and board.id in self._boots:
            groups["noise"] = self._noise.environment(board.id, self._boots[board.id])
        if emulation := self._rack.emulation(board.id):
            groups["emulation"] = emulation
        return groups

    def begin_case(self, board: Board) -> None:
        """Notice from now on who else changes the board's link, and what becomes of it."""
        self._own_ports[board.id] = set()
        links = self._links_of(board)
        if self._still_us(links) >= STILL_US:
            self._rack.air.reset_statistics(board.id)  # of before, and be it another run
            links = self._links_of(board)
        refused = int(str(links["uplink"]["write_errors"]))
        others = self._rack.air.foreign_changes(board.id)
        way = self._rack.way_of(board.id, board.network.host)
        self._before[board.id] = _Before(others, refused, way, self._is_in_force(board.id))

    def sends_to(self, board: Board, port: int) -> None:
        """Know that in the case that has begun the run itself sends to a port of the board."""
        self._own_ports[board.id].add(port)

    def check_case(self, board: Board) -> None:
        """Raise RigError where the air of the board's case was not what it is meant to be.

        It stood still; the access point's port was down; the board's address is gone; the host threw packets
        away, or sent the board what nobody of the run sends; or somebody else changed the link, and be it
        back.
        """
        before, links = self._before[board.id], self._links_of(board)
        still_us = self._still_us(links)
        refused = int(str(links["uplink"]["write_errors"])) - before.refused
        if still_us >= STILL_US or refused > 0:
            self._rack.air.reset_statistics(board.id)  # it spoilt this case, and none after it
        if still_us >= STILL_US:
            raise RigError(
                f"The virtual air of board {board.id} stood still for {still_us / 1e6:.1f} s "
                "meanwhile. The samples say nothing about the firmware.",
                next_step="look for what kept hil-air from running (load, a debugger), then run again.",
            )
        if refused > 0:
            raise RigError(
                f"The access point's port of board {board.id} was down: {refused} frames from the "
                "air were lost. The samples say nothing about the firmware.",
                next_step="look for what switched it off (ip link), then run again.",
            )
        self._check_way(board, before.way)
        if self._was_changed(board):
            raise RigError(
                f"The virtual air of board {board.id} was changed meanwhile by another program. "
                "The samples say nothing about the firmware.",
                next_step="do not change the air during a run (set another profile in a rack file), then "
                "run again.",
            )

    def _check_way(self, board: Board, before: Way) -> None:
        way = self._rack.way_of(board.id, board.network.host)
        if _grown(before.dropped_count, way.dropped_count) > 0:  # one may have been on its way
            way = self._rack.way_of(board.id, board.network.host)
        if not way.has_its_address:
            raise RigError(
                f"Board {board.id} no longer has the address that the virtual rack gave it. The "
                "samples say nothing about the firmware.",
                next_step="look for what removed it (ip address), then run again with another rack.",
            )
        dropped = _grown(before.dropped_count, way.dropped_count)
        if dropped > 0:
            raise RigError(
                f"The rack's host dropped {dropped} packets from its boards meanwhile. The samples "
                "say nothing about the firmware.",
                next_step="look for the rule that drops them (nft list ruleset), then run again.",
            )
        others = self._begun_by_others(board.id, before, way)
        if others > max(OTHERS_BYTES, OTHERS_SHARE * _grown(before.sent_bytes, way.sent_bytes)):
            raise RigError(
                f"The rack's host sent board {board.id} {others / 1e6:.2f} MB meanwhile that do "
                "not belong to this run. The samples say nothing about the firmware.",
                next_step="look for the sender (tcpdump), then run again.",
            )

    def _begun_by_others(self, board_id: str, before: Way, way: Way) -> int:
        """Return how many bytes the host sent in connections that it began, and not by this run."""
        own = sum(
            _grown(before.begun_bytes_by_port.get(port, 0), way.begun_bytes_by_port.get(port, 0))
            for port in self._own_ports[board_id]
        )
        return _grown(before.begun_bytes, way.begun_bytes) - own

    @staticmethod
    def _still_us(links: Mapping[str, Mapping[str, Scalar]]) -> float:
        """Return how long the air stood still, at most; frames that were in it meanwhile are late."""
        names = ("still_max_us", "lateness_max_us")
        return max(float(str(facts[name])) for facts in links.values() for name in names)

    def _was_changed(self, board: Board) -> bool:
        before = self._before[board.id]
        if self._rack.air.foreign_changes(board.id) != before.others:
            return True
        return before.in_force and not self._is_in_force(board.id)  # it need not be yet

    def _links_of(self, board: Board) -> Mapping[str, Mapping[str, Scalar]]:
        try:
            return self._rack.air.statistics(board.id)[board.id]
        except KeyError as error:
            raise RigError(f"the virtual air has no link of board {board.id}.") from error

    def _counters(self, board: Board) -> Mapping[str, Scalar]:
        """Return the air's counters of one board's link, since the last look, and start them anew."""
        links = self._links_of(board)
        self._rack.air.reset_statistics(board.id)
        return {
            f"{direction}_{name}": value
            for direction, facts in links.items()
            for name, value in facts.items()
            if name != "changes"  # of the link's whole life
        }


def _grown(before: int | None, now: int | None) -> int:
    """Return how much a count has grown; 0 where it is not known."""
    return 0 if before is None or now is None else now - before
