# SPDX-License-Identifier: Apache-2.0
"""The rows: simulated racks, and the changes that a pull request makes there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rack:
    """A rack with so many ``boards`` of each chip, and what scatters their boots.

    ``boot`` is the standard deviation of boots. ``modes`` are a share of boots and how much slower they are,
    ``stalls`` a share of boots that take 1.2 to 3 times as long. Boards grow slower by ``drift`` a boot, and
    their slot ota_1 is slower by ``slot``: the first board alone unless ``everywhere``. All but the shares
    and ``samples`` a boot (None: as the case says) are relative; ``quantum`` is a step of the clock as a part
    of the median. ``light`` samples have no heavy tail.
    """

    name: str
    boards: tuple[int, ...] = (4,)
    boot: float = 0.04
    light: bool = False
    modes: tuple[float, float] = (0.0, 0.0)
    stalls: float = 0.0
    drift: float = 0.0
    slot: float = 0.0
    everywhere: bool = False
    samples: int | None = None
    quantum: float = 0.0


@dataclass(frozen=True)
class Effect:
    """What the candidate does to the publish latency over TCP.

    A share ``boots`` of its boots is slower by ``slower``; the slowest ``tail`` of the messages (share,
    factor) take longer. ``tells`` are the statistics that should show it.
    """

    name: str
    slower: float = 0.0
    boots: float = 1.0
    tail: tuple[float, float] = (0.0, 1.0)
    tells: tuple[str, ...] = ("p50",)

    @property
    def is_none(self) -> bool:
        return not self.slower and not self.tail[0]


ANY = ("p50", "p95", "tail5")
UNCHANGED = Effect("unchanged")
SLOWER = Effect("+10 % of a median", 0.10)
QUARTER = Effect("a quarter of boots twice as slow", 1.0, boots=0.25, tells=ANY)
TENTH = Effect("10 % of boots ten times slower", 9.0, boots=0.10, tells=ANY)
EFFECTS = (
    UNCHANGED,
    SLOWER,
    Effect("+5 % of a median", 0.05),
    Effect("+20 % of a median", 0.20),
    QUARTER,
    TENTH,
    Effect("slowest 10 % take 1.5 times as long", tail=(0.10, 1.5), tells=("p95", "tail5")),
)

TYPICAL = Rack("typical")
NOISY = Rack("noise 8 %", boot=0.08)
ALONE = Rack("one board", boards=(1,))
PAIR = Rack("two boards", boards=(2,))
CHIPS = Rack("two chips x 2 boards", boards=(2, 2))
RACKS = (
    TYPICAL,
    NOISY,
    ALONE,
    PAIR,
    CHIPS,
    Rack("light tails", light=True),
    Rack("modes: 35 % of boots +20 %", boot=0.005, modes=(0.35, 0.20)),
    Rack("quantised: 5 ms of 20 ms", quantum=0.25),
    Rack("stalls in 15 % of boots", stalls=0.15),
    Rack("drift 3 % a boot, one board", drift=0.03),
    Rack("drift 3 % a boot, all boards", drift=0.03, everywhere=True),
    Rack("slot +10 % on one board", slot=0.10),
    Rack("slot +30 % on one board", slot=0.30),
    Rack("slot +8 % on all boards", slot=0.08, everywhere=True),
    Rack("20 samples a boot", samples=20),
)


def effects_of(rack: Rack) -> tuple[Effect, ...]:
    """Return what is tried on a rack: everything on the typical one."""
    return EFFECTS if rack == TYPICAL else (UNCHANGED, SLOWER)
