# SPDX-License-Identifier: Apache-2.0
"""Change the air of one board's link as a case asks, and put the run's back afterwards."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping
from contextlib import suppress

from hil.base.errors import ConfigError, HilError
from hil.network.peers.companion import LinkAir, Place
from hil.network.peers.mqtt.settings import RACK_AIR, AirChange
from hil.virtual.air.control import Number
from hil.virtual.air.profile import AirProfile, Gap, Impairment, load_profile

BURST_FRAMES = 5  # that a burst of losses is long on average
PPM = 1_000_000
_LINK_KEYS = frozenset(item.name for item in dataclasses.fields(Impairment))
_GAP_KEYS = frozenset(item.name for item in dataclasses.fields(Gap))
_GAP_PREFIX = "gap_"


class BoardAir:
    """The link of one board. Its random streams go on: which frames are lost is the run's seed's to say."""

    def __init__(self, place: Place, change: AirChange) -> None:
        self._air = place.air
        self._board = place.board.id
        self._case_id = place.case.case_id
        self._change = change
        self._lock = threading.Lock()
        self._before: Mapping[str, Mapping[str, Number]] = {}
        self.impaired = "none beyond the rack's own air"

    def start(self) -> None:
        """Change the link as the case asks. Raises ConfigError as check() does."""
        if not self._change.changes:
            return
        air = self._need_air()
        profile = None if self._change.profile == RACK_AIR else load_profile(self._change.profile)
        with self._lock:
            self._before = air.show(self._board)[self._board]
            if profile:
                air.profile(profile, self._board)
            for direction, changes in changes_of(self._change).items():
                air.set(self._board, direction, **changes)
        self.impaired = description_of(self._change, profile, air.where)

    def down(self) -> None:
        """Drop every frame of the board. Raises ConfigError as check() does."""
        self._need_air().down(self._board)

    def up(self) -> None:
        """Undo ``down``."""
        if self._air:
            self._air.up(self._board)

    def check(self, fault: str) -> None:
        """Raise ConfigError where the case, or its fault, needs an air that is not the rack's."""
        if fault == "blackout" or self._change.changes:
            self._need_air()

    def put_back(self) -> None:
        """Give the link back as it was found; a second call does nothing. Never raises."""
        with self._lock:
            before, self._before = self._before, {}
            if self._air is None or not before:
                return
            for direction, facts in before.items():
                with suppress(HilError):
                    link = {key: value for key, value in facts.items() if key in _LINK_KEYS}
                    self._air.set(self._board, direction, **link)
            facts = next(iter(before.values()))
            gap = {key.removeprefix(_GAP_PREFIX): value for key, value in facts.items()}
            with suppress(HilError):
                self._air.gap(
                    self._board,
                    **{key: value for key, value in gap.items() if key in _GAP_KEYS},
                )

    def _need_air(self) -> LinkAir:
        if self._air is None:
            raise ConfigError(
                f"{self._case_id} on board {self._board}: the access point is real, so the rack "
                "cannot change its air.",
                next_step="measure the case on a virtual rack, or leave it out: --suite with air=rack, "
                "fault!=blackout, and for echo delay_us=-1 and no rates or losses.",
            )
        return self._air


def changes_of(change: AirChange) -> Mapping[str, Mapping[str, Number]]:
    """Return what each direction's parameters become; a direction that nothing is asked of has none."""
    common: dict[str, Number] = (
        {} if change.delay_us is None else {"delay_us": change.delay_us, "jitter_us": 0}
    )
    found = {}
    for direction, rate_kbit, loss_ppm in (
        ("uplink", change.rate_up_kbit, change.loss_up_ppm),
        ("downlink", change.rate_down_kbit, change.loss_down_ppm),
    ):
        changes = dict(common)
        if rate_kbit is not None:
            changes["rate_kbit"] = rate_kbit
        if loss_ppm is not None:
            changes |= bursts_of(loss_ppm) if change.bursts else {"loss_ppm": loss_ppm, "burst_start_ppm": 0}
        if changes:
            found[direction] = changes
    return found


def bursts_of(loss_ppm: int) -> dict[str, Number]:
    """Return Gilbert-Elliott's parameters for this mean loss in bursts of BURST_FRAMES frames on average.

    In the bad state everything is lost, in the good one nothing, so the mean is start / (start + end). More
    than 5 of 6 frames take longer bursts.
    """
    if loss_ppm >= PPM:
        return {"loss_ppm": PPM, "burst_start_ppm": 0}
    end_ppm = PPM // BURST_FRAMES
    start_ppm = round(end_ppm * loss_ppm / (PPM - loss_ppm))
    if start_ppm > PPM:
        start_ppm, end_ppm = PPM, max(1, round(PPM * (PPM - loss_ppm) / loss_ppm))
    return {
        "loss_ppm": 0,
        "burst_start_ppm": max(1, start_ppm),
        "burst_end_ppm": end_ppm,
        "burst_loss_ppm": PPM,
        "burst_good_loss_ppm": 0,
    }


def description_of(change: AirChange, profile: AirProfile | None, where: str) -> str:
    """Describe which hops are impaired, by what and where."""
    found = [f"both directions as the air {profile.name}"] if profile else []
    pattern = f"loss in bursts of {BURST_FRAMES} frames on average" if change.bursts else "independent loss"
    if change.delay_us is not None:
        found.append(f"both directions {change.delay_us / 1000:g} ms delay without jitter")
    for direction, rate_kbit, loss_ppm in (
        ("uplink", change.rate_up_kbit, change.loss_up_ppm),
        ("downlink", change.rate_down_kbit, change.loss_down_ppm),
    ):
        words = [] if rate_kbit is None else [f"{rate_kbit} kbit/s"]
        words += [] if loss_ppm is None else [f"{loss_ppm / 10_000:g} % {pattern}"]
        if words:
            found.append(f"{direction} {' and '.join(words)}")
    return ", ".join([*found, where])
