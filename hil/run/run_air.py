# SPDX-License-Identifier: Apache-2.0
"""The virtual air of one run: its profile, the noise that is drawn for each boot, and what it did."""

from __future__ import annotations

from collections.abc import Mapping

from hil.base.errors import RigError
from hil.boards.rack import Board
from hil.model import Scalar
from hil.virtual.air.profile import AirProfile
from hil.virtual.noise import Noise, scaled
from hil.virtual.virtual_rack import VirtualRack, profile_in_force

STILL_US = 1_000_000.0  # of lateness: no load of a host that still measures holds a frame up so long


class RunAir:
    """The links of ``rack`` under ``profile`` and, where there is any, ``noise``. Boards' threads use it.

    ``boots`` says how many boots of a board have been drawn before; none where it is left out.
    """

    def __init__(
        self,
        rack: VirtualRack,
        profile: AirProfile,
        noise: Noise | None,
        boots: Mapping[str, int] | None = None,
    ) -> None:
        self._rack = rack
        self._profile = profile
        self._noise = noise
        self._links: dict[str, AirProfile] = {}  # of boards that have booted under noise
        self._before: dict[str, int] = {}  # by board, the changes that others had made when its case began
        self._boots = {board: count - 1 for board, count in (boots or {}).items()}  # the last one's index

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
        links = self._links
        if profile_in_force(self._rack, self._profile, of=links):
            return
        self._rack.air.profile(self._profile)
        for board, profile in links.items():
            self._rack.air.profile(profile, board)
        self._rack.air.up("all")

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
        """Notice from now on who else changes the board's link."""
        self._before[board.id] = self._rack.air.foreign_changes(board.id)

    def was_changed(self, board: Board) -> bool:
        """Return whether the board's link is not as it is meant to be, or was not at a time of its case."""
        others = self._rack.air.foreign_changes(board.id)
        if others != self._before.get(board.id, others):
            return True
        return not profile_in_force(self._rack, self._links.get(board.id, self._profile), board=board.id)

    def check_lateness(self, board: Board) -> None:
        """Raise RigError where the air stood still since the board's last record: frames were that late."""
        found = [facts.get("lateness_max_us") for facts in self._links_of(board).values()]
        late_us = max((value for value in found if isinstance(value, float | int)), default=0)
        if late_us >= STILL_US:
            self._rack.air.reset_statistics(board.id)  # it spoilt this case, and none after it
            raise RigError(
                f"The virtual air of board {board.id} stood still: a frame came {late_us / 1e6:.1f} s after "
                "its time. What was measured says nothing of the firmware.",
                next_step="look for what kept hil-air from running (load, a debugger), then run again.",
            )

    def _links_of(self, board: Board) -> Mapping[str, Mapping[str, Scalar]]:
        try:
            return self._rack.air.statistics(board.id)[board.id]
        except KeyError as error:
            raise RigError(f"the virtual air knows no link of board {board.id}.") from error

    def profile_name(self, board: Board) -> str:
        """Return the profile's name, and whether somebody changed the link while its case was measured."""
        return f"{self._profile.name}, changed by hand" if self.was_changed(board) else self._profile.name

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
