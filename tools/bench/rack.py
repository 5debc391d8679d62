# SPDX-License-Identifier: Apache-2.0
"""``make bench-rack``: a night's plan on 32 boards of two racks, beside first come, first served.

Simulated durations: an item takes what a run's plan estimates, and what nobody knew before (drawn, 20 %
either way); a flash takes FLASH_S. The last row's clock runs faster, by real threads. Real are labgrid's
coordinator and two exporters, the lease of 32 virtual boards, which are not booted, and the dispatcher.
Exit 1 where the makespan is more than AIM times the lower bound.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ruamel.yaml import YAML

from hil.base.paths import PROJECT_THRESHOLDS
from hil.boards.places.lease import lease_places
from hil.boards.places.settings import read_places
from hil.run.plan.deadline import BOOT_S, FLASH_S, expected_s
from hil.run.plan.planning import tick_hz_of
from hil.run.plan.schedule import Dispatcher, Item, Seat, lower_bound_s, simulate
from hil.run.plan.selection import select_cases
from hil.thresholds import load_project
from tests.boards.farm import LABGRID, farm_in
from tools.bench.figure import SHORT_PASS

AIM = 1.15
BOARDS, RACKS = 32, 2
CHIPS = ("esp32", "esp32s3", "esp32c3", "esp32c6")
UNKNOWN = 0.2  # how far an item is from its estimate, either way
SHORT_EVERY = 8
REAL_S, SHORT_S = 40.0, 6.0  # what the real pass is to take
NETWORK = ("publish", "delivery", "echo", "throughput", "http_gateway", "startup", "reconnect")


@dataclass(frozen=True)
class Workload:
    """Items, as estimated and as they turn out."""

    name: str
    items: Sequence[Item]
    took_s: Mapping[str, float]

    @property
    def turned_out(self) -> list[Item]:
        return [replace(item, seconds=self.took_s[item.id]) for item in self.items]


def workloads(seats: Sequence[Seat], every: int) -> list[Workload]:
    """Return the suite nightly on four chips in three ways: how much of it takes turns differs.

    ``every`` thins it out: each so many-th case is left.
    """
    thresholds = load_project(PROJECT_THRESHOLDS)
    cases = select_cases(thresholds, "nightly")[::every]
    boards = {chip: frozenset(s.board for s in seats[n :: len(CHIPS)]) for n, chip in enumerate(CHIPS)}
    chance = random.Random(32)
    found = []
    for name, air, alone, each_s in (
        ("as it is: network takes turns, timing alone", True, True, 0.0),
        ("timing benches side by side", True, False, 0.0),
        ("a boot a case, nothing takes turns", False, False, BOOT_S),
    ):
        items = [
            Item(
                f"{chip}/{case.case_id}",
                f"{chip}-{tick_hz_of(case)}",
                expected_s(case) + each_s,
                boards[chip],
                air=air and case.bench in NETWORK,
                alone=alone and thresholds[case.bench].alone,
            )
            for case in cases
            for chip in CHIPS
        ]
        took = {item.id: item.seconds * chance.uniform(1 - UNKNOWN, 1 + UNKNOWN) for item in items}
        found.append(Workload(name, items, took))
    return found


class FirstCome(Dispatcher):
    """Whoever is free takes the first item in the order of the files that may begin, whatever it costs."""

    def _choose(self, board: str, *, may_flash: bool) -> Item | None:  # noqa: ARG002 - it knows no firmware
        rack = self._racks[self._seats[board].rack]
        if rack.alone:
            return None
        for item in self._pending.values():
            waits = (item.is_serial and rack.serial) or (item.alone and rack.running)
            if board in item.boards and not waits:
                return item
        return None


@contextmanager
def leased_seats(folder: Path) -> Iterator[list[Seat]]:
    """Lease all boards of two exporters from a coordinator, which runs meanwhile."""
    with farm_in(folder) as farm:
        each = BOARDS // RACKS
        racks = [farm.boards_rack(each, name=f"lab{n}", first=n * each + 1) for n in range(RACKS)]
        farm.export_all(racks)
        rack = farm.places_rack("match: {rack: lab}")
        settings = read_places(rack)
        assert settings
        leased = YAML(typ="safe").load(lease_places(rack, settings, farm.out, wait_s=60.0))
        owners = {farm.holder(leased["boards"][n]["id"]) for n in (0, -1)}
        assert len(owners) == 1
        assert ":hil." in owners.pop()
        yield [Seat(one["id"], f"rack{(int(one['id'][1:]) - 1) // each + 1}") for one in leased["boards"]]


def play(dispatcher: Dispatcher, seats: Sequence[Seat], took_s: Mapping[str, float], scale: float) -> float:
    """Return the makespan, in the seconds that are simulated, with a thread a board and a faster clock."""
    clock = threading.Event()  # never set: what waits for it sleeps
    began = time.monotonic()

    def work(seat: Seat) -> None:
        firmware = seat.firmware
        while (item := dispatcher.wait(seat.board, lambda: None)) is not None:
            clock.wait((took_s[item.id] + FLASH_S * (item.firmware != firmware)) / scale)
            firmware = item.firmware
            dispatcher.done(seat.board)

    threads = [threading.Thread(target=work, args=(seat,)) for seat in seats]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not dispatcher.left
    return (time.monotonic() - began) * scale


def row(
    name: str, bound_s: float, of_rule: Callable[[type[Dispatcher]], tuple[float, int]]
) -> tuple[str, float]:
    """Return a line of the table, and the ratio of the planner's makespan to the bound."""
    (ours_s, ours), (theirs_s, theirs) = of_rule(Dispatcher), of_rule(FirstCome)
    cells = [f"{ours_s:.0f}", f"{bound_s:.0f}", f"{ours_s / bound_s:.3f}", f"{ours}"]
    cells += [f"{theirs_s:.0f}", f"{theirs_s / bound_s:.3f}", f"{theirs}"]
    return f"{name:46}{''.join(map('{:>9}'.format, cells))}", ours_s / bound_s


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help=SHORT_PASS)
    short = parser.parse_args(arguments).short
    os.environ["PATH"] = f"{LABGRID}:{os.environ['PATH']}"
    if short:
        print(SHORT_PASS, flush=True)
    with tempfile.TemporaryDirectory() as folder, leased_seats(Path(folder)) as seats:
        return compare(seats, short=short)


def compare(seats: Sequence[Seat], *, short: bool) -> int:
    """Print the table; return the exit status. A short pass misses no aim."""
    loads = workloads(seats, SHORT_EVERY if short else 1)
    print(f"{len(loads[0].items)} items, {len(seats)} boards leased from two exporters; simulated durations")
    head = ("plan s", "bound s", "ratio", "flashes", "FCFS s", "ratio", "flashes")
    print(f"{'':46}{''.join(map('{:>9}'.format, head))}")
    ratios = []
    for load in loads:
        bound_s = lower_bound_s(load.turned_out, seats)

        def simulated(rule: type[Dispatcher], load: Workload = load) -> tuple[float, int]:
            found = simulate(load.items, seats, flash_s=FLASH_S, took_s=load.took_s, rule=rule)
            return found.makespan_s, found.flashes

        line, ratio = row(load.name, bound_s, simulated)
        print(line, flush=True)
        ratios.append(ratio)
    load = loads[2]
    bound_s = lower_bound_s(load.turned_out, seats)
    scale = bound_s / (SHORT_S if short else REAL_S)

    def played(rule: type[Dispatcher]) -> tuple[float, int]:
        dispatcher = rule(load.items, seats, flash_s=FLASH_S)
        return play(dispatcher, seats, load.took_s, scale), dispatcher.flashes

    line, ratio = row(f"the last, by threads, clock × {scale:.0f}", bound_s, played)
    print(line)
    missed = [one for one in (*ratios, ratio) if one > AIM and not short]
    print(f"aim: a ratio of at most {AIM:g}: {'missed' if missed else 'met'}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
