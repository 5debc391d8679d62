# SPDX-License-Identifier: Apache-2.0
"""How well change points of nights are found, by simulation: ``python -m tools.night_simulation``.

Every night from the 20th on is judged as `hil changes` would; the first alarm counts. Exit 1 where an aim is
missed, with ``--short``, which simulates next to nothing, never. All figures are simulated.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hil.history.nightly.change_points import analyse
from hil.history.nightly.nights import nights_of
from tests.history.nights_rig import REFERENCE, SERIES, Effect, make_history, simulate
from tools.bench.figure import SHORT_PASS

NIGHTS, BEGINS, FIRST_JUDGED, BOOTS = 70, 40, 20, 6
FULL, SHORT = 300, 2  # series a row
FRESH_NIGHTS = 14  # older steps were told before


def step(size: float) -> Effect:
    """Return a change by ``size`` (0.1 is ten per cent) from night BEGINS on."""
    return lambda night: math.log1p(size) * (night >= BEGINS)


def renewed(overlap: int, size: float) -> Callable[[int], Mapping[str, float]]:
    """Return two references, the second slower by ``size``, in ``overlap`` nights beside each other."""

    def references(night: int) -> Mapping[str, float]:
        found = {REFERENCE: 0.0} if night < BEGINS + overlap else {}
        return {**found, "reference-2": math.log1p(size)} if night >= BEGINS else found

    return references


@dataclass(frozen=True)
class Scenario:
    """What happens on a rack; ``blamed`` is the cause to look for."""

    name: str
    firmware: float = 0.0
    environment: float = 0.0
    references: Callable[[int], Mapping[str, float]] = lambda _night: {REFERENCE: 0.0}


SCENARIOS = {
    "clean": Scenario("nothing changes"),
    "plus5": Scenario("firmware 5 % slower", firmware=0.05),
    "plus10": Scenario("firmware 10 % slower", firmware=0.10),
    "access-point": Scenario("another access point, all 15 % slower", environment=0.15),
    "renewed": Scenario("reference renewed, 8 % slower, 14 nights overlap", references=renewed(14, 0.08)),
    "renewed-short": Scenario("the same with 2 nights overlap", references=renewed(2, 0.08)),
}


@dataclass(frozen=True)
class Alarm:
    """When each cause was blamed first in one series; NIGHTS where it never was."""

    firmware: int
    environment: int


@dataclass(frozen=True)
class Result:
    """Shares of the series, and after how many nights of the change half of the alarms have come."""

    series: int
    firmware: float
    firmware_early: float
    environment: float
    delay: float

    @property
    def found(self) -> float:
        """How many of the series without an early alarm had one after the change."""
        return (self.firmware - self.firmware_early) / (1 - self.firmware_early)


def run(scenario: Scenario, series: int, seed: int) -> Result:
    """Simulate ``series`` series of nights."""
    alarms = [_first_alarm(scenario, np.random.default_rng([seed, n])) for n in range(series)]
    late = [alarm.firmware - BEGINS + 1 for alarm in alarms if BEGINS <= alarm.firmware < NIGHTS]
    return Result(
        series,
        firmware=statistics.fmean(alarm.firmware < NIGHTS for alarm in alarms),
        firmware_early=statistics.fmean(alarm.firmware < BEGINS for alarm in alarms),
        environment=statistics.fmean(BEGINS <= alarm.environment < NIGHTS for alarm in alarms),
        delay=statistics.median(late) if late else math.nan,
    )


def _first_alarm(scenario: Scenario, rng: np.random.Generator) -> Alarm:
    drawn = simulate(
        rng,
        nights=NIGHTS,
        boots=BOOTS,
        firmware=step(scenario.firmware),
        environment=step(scenario.environment),
        references=scenario.references,
    )
    nights = nights_of(make_history(drawn), SERIES)
    first = {"firmware": NIGHTS, "environment": NIGHTS}
    for count in range(FIRST_JUDGED, NIGHTS + 1):
        for point in analyse(SERIES, nights[:count]).points:
            if point.nights <= FRESH_NIGHTS and point.cause in first:
                first[point.cause] = min(first[point.cause], count - 1)
        if first["firmware"] < NIGHTS and not scenario.environment:
            break
    return Alarm(**first)


def missed(results: Mapping[str, Result]) -> list[str]:
    """Return the aims that were not reached, each a sentence."""
    aims = [
        ("clean", "false alarms on at most 2 % of clean series", lambda r: r.firmware <= 0.02),
        ("plus10", "+10 % found in at least 95 %", lambda r: r.found >= 0.95),
        ("plus10", "+10 % found within 4 nights (median)", lambda r: r.delay <= 4),
        ("access-point", "the access point blamed on the firmware in 2 % at most", lambda r: r.found <= 0.02),
        ("access-point", "… and on the environment in at least 90 %", lambda r: r.environment >= 0.90),
        ("renewed", "a renewal seen as a step in 2 % at most", lambda r: r.found <= 0.02),
    ]
    return [f"{sentence}: missed" for name, sentence, reached in aims if not reached(results[name])]


def table(results: Mapping[str, Result]) -> list[str]:
    lines = [
        f"simulated: typical noise, {NIGHTS} nights of {BOOTS} boots, change in night {BEGINS}, "
        f"{next(iter(results.values())).series} series a row",
        f"{'':52}{'firmware blamed':>18}{'nights to tell':>16}{'environment':>13}",
    ]
    for name, result in results.items():
        delay = "–" if math.isnan(result.delay) else f"{result.delay:g}"
        blamed = f"{result.firmware:.1%} ({result.firmware_early:.1%} early)"
        lines.append(f"{SCENARIOS[name].name:48}{blamed:>22}{delay:>16}{result.environment:>13.1%}")
    return lines


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, help=f"how many series a row ({FULL})")
    parser.add_argument("--short", action="store_true", help=f"{SHORT} a row: whether it works, not for docs")
    parser.add_argument("--seed", type=int, default=6)
    options = parser.parse_args(arguments)
    series = options.series or (SHORT if options.short else FULL)
    results = {name: run(scenario, series, options.seed) for name, scenario in SCENARIOS.items()}
    misses = missed(results)
    heading = [SHORT_PASS] if options.short else []
    print("\n".join([*heading, *table(results), *(misses or ["all aims reached"])]))
    return int(bool(misses) and not options.short)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
