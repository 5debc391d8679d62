# SPDX-License-Identifier: Apache-2.0
"""``make bench-queue``: how long a team's pushes wait for a verdict, by how a rack's boards are given out.

Everything is simulated. Cases take what they took in a recorded run, or with ``--runs`` in runs of one's own;
how many boots they take is what the gate decides on simulated ones. Exit 1 where the aim is missed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from hil.base.errors import ConfigError
from tools.bench.figure import SHORT_PASS, Figure, show, wide_console
from tools.bench.queue_simulation import AROUND, Lab, Policy, Simulation
from tools.bench.queue_team import BEGINS_H, DAY_S, HOURLY, WORKING_DAYS, Asked, Team, drafts
from tools.bench.queue_times import DRAWN, Given, keep, looks_of, measured, planned, recorded, works

DAYS, SEEDS = 10, 3
SHORT_DAYS, SHORT_SEEDS = 2, 2
AIM_MIN = 30.0
AIM_UNDECIDED = 0.2  # of unchanged pull requests, at most: what decides nothing is quickly done
AIM_LAB = Lab(racks=3, boards=2)  # the least of LABS that keeps both
KNOBS_LAB = Lab(racks=2, boards=2)
AT_MOST = 2
LABS = (Lab(1, 4), Lab(2, 2), Lab(4, 1), Lab(2, 4), Lab(3, 2), Lab(4, 2), Lab(3, 4))
SIZES = (20, 40, 60, 90, 120)

FIRST_COME = Policy("one runner, first come")
DROPPED = Policy("… superseded ones leave", drops=True)
SHORTEST = Policy("… shortest leg first", drops=True, shortest=True)
BEST = Policy("… a runner a board*", True, True, runners=0, boards_a_leg=AT_MOST)


@dataclass(frozen=True)
class Found:
    """What a lab did for a team by a policy: a value for each seed. Waits are in minutes."""

    median: list[float]
    p90: list[float]
    longest: list[float]
    boards: list[float]
    air: list[float]
    verdicts: list[float]
    superseded: list[float]

    @property
    def median_min(self) -> float:
        return statistics.fmean(self.median)


@dataclass(frozen=True)
class Bench:
    """One set of assumptions: the same pushes for each lab and policy."""

    given: Given
    days: int
    seeds: int
    seed: int

    def run(self, team: Team, lab: Lab, policy: Policy) -> Found:
        rows = [self._one(team, lab, policy, self.seed + number) for number in range(self.seeds)]
        return Found(*map(list, zip(*rows, strict=True)))

    def _one(self, team: Team, lab: Lab, policy: Policy, seed: int) -> tuple[float, ...]:
        asked = Asked(team, self.given, lab, policy, self.seed)
        pushes = asked.pushes(drafts(team, self.days, lab.chips, seed))
        outcome = Simulation(lab, policy, pushes, more=asked.more).run()
        waits = sorted(push.wait_s / 60 for push in pushes if push.is_wanted)
        span_s = self.days * DAY_S
        return (
            statistics.median(waits),
            waits[int(0.9 * (len(waits) - 1))],
            waits[-1],
            outcome.boards_s / (lab.all_boards * span_s),
            outcome.air_s / (lab.racks * span_s),
            len(waits) / self.days,
            (len(pushes) - len(waits)) / self.days,
        )

    def undecided(self, lab: Lab, policy: Policy) -> float:
        """Return the share of unchanged pull requests that a leg leaves undecided."""
        return works(self.given, policy.boards_of(lab), 2 + lab.chips, self.seed).undecided


COLUMNS = (
    "", "median", "(seeds)", "p90", "longest", "verdicts", "superseded", "boards", "air", "undecided",
)  # fmt: skip


def row(name: str, found: Found, undecided: float) -> tuple[str, ...]:
    mean = statistics.fmean
    return (
        name,
        f"{found.median_min:.0f}",
        f"{min(found.median):.0f}–{max(found.median):.0f}",
        f"{mean(found.p90):.0f}",
        f"{max(found.longest):.0f}",
        f"{mean(found.verdicts):.0f}",
        f"{mean(found.superseded):.0f}",
        f"{mean(found.boards):.0%}",
        f"{mean(found.air):.0%}",
        f"{undecided:.0%}",
    )


def assumptions(bench: Bench, team: Team, lab: Lab) -> list[str]:
    """Return what the figures rest on, a sentence each."""
    given = bench.given
    looks = "; ".join(
        f"{count}: {', '.join(f'{mine}+{base}' for mine, base in looks_of(given, count))}"
        for count in sorted({lab.boards_a_chip, BEST.boards_of(lab)}, reverse=True)
    )
    hours = f"{BEGINS_H} to {BEGINS_H + len(HOURLY)} h"
    return [
        f"{team.pull_requests:g} pull requests a working day (Poisson, {hours}, most round noon), "
        f"{team.pushes} pushes each; the pause between them is log-normal, of {team.pause_s / 60:.0f} min "
        f"of work in the median, sigma {team.pause_sigma:g}; {bench.days} days, {WORKING_DAYS} a week, "
        f"{bench.seeds} seeds",
        f"{team.narrowed:.0%} of them flash the same bytes and ask for no board (hil ci narrow), "
        f"{team.limits_only:.0%} change what measures alone and are booted once, the others are compared, "
        f"{team.slower:.0%} of these 10 % slower",
        f"a boot measures {given.measuring_s:.1f} s a board, {given.source}; all of it is on the rack's air, "
        "which one case has at a time; legs that measure at once share it evenly",
        f"looks that fit the budget (boots of head + base, by boards a leg): {looks}; how many are "
        f"taken is what hil.gate decides for {DRAWN} pull requests with typical simulated noise, alpha "
        f"shared by {2 + lab.chips} legs",
        f"flashing takes {given.flash_s:.0f} s an image, side by side on all boards",
        f"{team.asked_further:.0%} of undecided pull requests get the label hil:more, after "
        f"{team.asking_s / 60:.0f} min (median, log-normal); that leg has the same boards again",
        f"plan, build and narrow take {team.hosted_s / 60:g} min on GitHub's machines, a rack's job "
        f"{AROUND.setup_s / 60:g} min before it waits for boards and {AROUND.report_s / 60:g} min after it "
        f"had them, hil-verdict {AROUND.verdict_s / 60:g} min: all of it is in the wait",
        "a superseded push leaves when its job is set up and looks (hil ci wanted): what waits for boards "
        "or measures by then goes on; a case that has the rack alone keeps nobody from booting here",
    ]


def policies(bench: Bench, team: Team, lab: Lab) -> Figure:
    """Return what each policy does for a lab, and how much of a leg flashing is."""
    given = bench.given
    sticky = replace(BEST, name="… the base always there", spared_s=given.flash_s)
    rows = [
        row(policy.name, bench.run(team, lab, policy), bench.undecided(lab, policy))
        for policy in (FIRST_COME, DROPPED, SHORTEST, BEST, sticky)
    ]
    return Figure(
        f"From push to verdict on {said(lab)} (simulated)",
        COLUMNS,
        rows,
        "Minutes, of pushes that no newer one superseded before their verdict; verdicts and superseded ones "
        f"a day; shares of 24 h in which boards and air are in use. * {AT_MOST} boards a leg. The last row "
        "is what sticky firmware could save at most: a run writes both images each time.",
    )


def said(lab: Lab) -> str:
    return f"{lab.all_boards} boards, {lab.racks} rack{'s' * (lab.racks > 1)}"


def labs(bench: Bench, team: Team, chips: int) -> Figure:
    """Return what the best policy does for other labs."""
    rows = [
        row(said(lab), bench.run(team, lab, BEST), bench.undecided(lab, BEST)) for lab in with_chips(chips)
    ]
    return Figure("Other labs, by the last policy but one (simulated)", COLUMNS, rows)


def with_chips(chips: int) -> list[Lab]:
    return [replace(lab, chips=chips) for lab in LABS if lab.boards % chips == 0]


def knobs(bench: Bench, lab: Lab) -> Figure:
    """Return what one assumption at a time, changed, does to a lab of the default team."""
    team, given = Team(), bench.given
    shorter = replace(given, planned_s=0.7 * given.planned_s, measuring_s=0.7 * given.measuring_s)
    longer = planned()
    changed = (
        ("as assumed", team, given),
        ("nobody asks for more boots", replace(team, asked_further=0.0), given),
        ("40 % flash the same bytes", replace(team, narrowed=0.4), given),
        ("a suite that measures 30 % less", team, shorter),
        (f"cases as planned: {longer.planned_s:.1f} s", team, longer),
        ("builds take 3 min, not 8", replace(team, hosted_s=180.0), given),
        ("one push each", replace(team, pushes=1), given),
        ("pauses of 20 min, not 60", replace(team, pause_s=1200.0), given),
    )
    rows = []
    for name, other, times in changed:
        own = replace(bench, given=times)
        rows.append(row(name, own.run(other, lab, BEST), own.undecided(lab, BEST)))
    return Figure(f"What matters, on {said(lab)} (simulated)", COLUMNS, rows)


def teams(bench: Bench, team: Team, chips: int) -> Figure:
    """Return the median wait by size of team and lab."""
    rows = []
    for lab in with_chips(chips):
        found = [bench.run(replace(team, pull_requests=size), lab, BEST) for size in SIZES]
        rows.append((said(lab), *(f"{one.median_min:.0f}" for one in found)))
    columns = ("", *(f"{size} a day" for size in SIZES))
    return Figure("Median minutes by pull requests a day (simulated)", columns, rows)


def aim(bench: Bench, tell: Callable[[str], None]) -> bool:
    """Tell which labs give the default team what is aimed at; say whether AIM_LAB does."""
    medians = {lab: bench.run(Team(), lab, BEST).median_min for lab in LABS}
    undecided = {lab: bench.undecided(lab, BEST) for lab in LABS}
    for lab in LABS:
        if lab.all_boards == 4:
            tell(f"{said(lab)}: {medians[lab]:.0f} min, {undecided[lab]:.0%} undecided (simulated)")
    keep = [lab for lab in LABS if medians[lab] <= AIM_MIN and undecided[lab] <= AIM_UNDECIDED]
    fewest = said(min(keep, key=lambda lab: lab.all_boards)) if keep else f"none of {len(LABS)} labs"
    asked = f"a median of at most {AIM_MIN:.0f} min, at most {AIM_UNDECIDED:.0%} undecided"
    tell(f"{asked}: {fewest} (simulated)")
    kept = AIM_LAB in keep
    tell(f"aim: {asked}, on {said(AIM_LAB)}: {'met' if kept else 'missed'}")
    return kept


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    console = wide_console()
    if asked.short:
        console.print(SHORT_PASS)
    try:
        given = measured(asked.runs) if asked.runs else recorded()
        if asked.keep:
            keep(asked.runs, asked.keep)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    days, seeds = (SHORT_DAYS, SHORT_SEEDS) if asked.short else (DAYS, SEEDS)
    bench = Bench(given, days, seeds, asked.seed)
    team = replace(Team(), pull_requests=asked.pull_requests)
    lab = Lab(asked.racks, asked.boards, asked.chips)
    _print(console, bench, team, lab, short=asked.short)
    kept = aim(bench, lambda line: console.print(line, highlight=False))
    return 0 if kept or asked.short else 1


def _print(console: Console, bench: Bench, team: Team, lab: Lab, *, short: bool) -> None:
    console.print("Assumed (everything below is simulated):")
    for sentence in assumptions(bench, team, lab):
        console.print(f"- {sentence}", highlight=False)
    console.print()
    show(console, policies(bench, team, lab))
    show(console, labs(bench, team, lab.chips))
    if not short:
        show(console, teams(bench, team, lab.chips))
        show(console, knobs(bench, KNOBS_LAB))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.bench.queue", description=__doc__)
    parser.add_argument("--short", action="store_true", help=SHORT_PASS)
    parser.add_argument("--pull-requests", type=float, default=60.0, metavar="N", help="a working day (60)")
    parser.add_argument("--racks", type=int, default=1, metavar="N", help="of the first table (1)")
    parser.add_argument("--boards", type=int, default=4, metavar="N", help="a rack of the first table (4)")
    parser.add_argument(
        "--chips", type=int, default=1, metavar="N", help="a leg each, boards in equal parts (1)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of all random numbers (1)")
    parser.add_argument(
        "--runs", nargs="+", type=Path, default=[], metavar="RUN", help="take job times from recorded runs"
    )
    parser.add_argument("--keep", type=Path, metavar="FILE", help="with --runs: write what each case took")
    return parser


if __name__ == "__main__":
    sys.exit(main())
