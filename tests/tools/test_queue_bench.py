# SPDX-License-Identifier: Apache-2.0
"""The simulation of waiting pushes: against queueing theory, and that no push is lost or measured in vain."""

from __future__ import annotations

import itertools
import json
import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.run.plan.deadline import AROUND_CASE_S, expected_s, look_s
from hil.store import RunDirectory
from tests.make_records import RUN_ID, publish_record
from tools.bench import queue as command
from tools.bench.queue_simulation import Around, Kind, Lab, Leg, Policy, Push, Simulation
from tools.bench.queue_team import DAY_S, Team, drafts
from tools.bench.queue_times import (
    DRAWN,
    Work,
    cases_of_suite,
    keep,
    looks_of,
    measured,
    planned,
    recorded,
    works,
)

AT_ONCE = Around(0.0, 0.0, 0.0)
ONE_BY_ONE = Policy("first come")
SHORTEST = Policy("shortest", drops=True, shortest=True)
SIDE_BY_SIDE = Policy("side by side", drops=True, shortest=True, runners=0, boards_a_leg=1)


def push_at(
    arrives_s: float,
    work: Work,
    *,
    superseded_s: float = math.inf,
    expected_s: float = 0.0,
    kind: Kind = "compared",
) -> Push:
    push = Push(arrives_s, superseded_s)
    push.legs.append(Leg(push, 0, kind, work, expected_s, arrives_s))
    return push


def verdicts_of(pushes: Sequence[Push], lab: Lab, policy: Policy, around: Around = AT_ONCE) -> list[float]:
    Simulation(lab, policy, pushes, around=around).run()
    return [push.verdict_s for push in pushes]


def poisson(rate: float, count: int, work: Work, seed: int) -> list[Push]:
    chance, now_s, found = random.Random(seed), 0.0, []
    for _ in range(count):
        now_s += chance.expovariate(rate)
        found.append(push_at(now_s, work))
    return found


def test_one_runner_waits_as_an_m_d_1_queue() -> None:
    """Poisson arrivals at a server of a fixed time wait ρ S / 2 (1 − ρ) on average (Pollaczek-Khinchine)."""
    load, service_s = 0.7, 10.0
    pushes = poisson(load / service_s, 20_000, Work(4.0, 6.0, 6.0), seed=5)
    verdicts_of(pushes, Lab(1, 1), ONE_BY_ONE)
    queued = statistics.fmean(push.wait_s for push in pushes) - service_s
    assert queued == pytest.approx(load * service_s / (2 * (1 - load)), rel=0.05)


def test_a_shared_air_is_a_processor_sharing_queue() -> None:
    """Where boards abound and all work is on the air, a leg takes S / (1 − ρ) on average."""
    load, service_s = 0.5, 10.0
    pushes = poisson(load / service_s, 8_000, Work(0.0, service_s, service_s), seed=5)
    verdicts_of(pushes, Lab(1, 60), SIDE_BY_SIDE)
    assert statistics.fmean(push.wait_s for push in pushes) == pytest.approx(service_s / (1 - load), rel=0.05)


def test_legs_share_the_air_and_none_gets_more_than_it_can_use() -> None:
    """Two legs that want 0.25 and all of one air: the first keeps its pace, the second has three quarters."""
    slow, greedy = Work(0.0, 100.0, 25.0), Work(0.0, 90.0, 90.0)
    # 75 s of the second are done when the first is through, and its last 15 s have the air alone
    assert verdicts_of([push_at(0.0, slow), push_at(0.0, greedy)], Lab(1, 2), SIDE_BY_SIDE) == [100.0, 115.0]


def test_boards_of_two_racks_share_no_air() -> None:
    """Two racks of one board are as quick as two legs alone."""
    work = Work(5.0, 50.0, 50.0)
    assert verdicts_of([push_at(0.0, work) for _ in range(2)], Lab(2, 1), SIDE_BY_SIDE) == [55.0, 55.0]
    assert verdicts_of([push_at(0.0, work) for _ in range(2)], Lab(1, 2), SIDE_BY_SIDE) == [105.0, 105.0]


def test_what_a_job_does_beside_its_boards_overlaps_with_another_runner_only() -> None:
    """One runner sets up and reports between measurements; with one a board the next leg is ready."""
    around = Around(setup_s=10.0, report_s=20.0, verdict_s=1.0)
    work = Work(0.0, 100.0, 0.0)
    legs = [push_at(0.0, work) for _ in range(2)]
    assert verdicts_of(legs, Lab(1, 1), ONE_BY_ONE, around) == [131.0, 261.0]
    legs = [push_at(0.0, work) for _ in range(2)]
    assert verdicts_of(legs, Lab(1, 2), Policy("two runners", runners=0), around) == [131.0, 231.0]


def test_the_shortest_goes_first_and_none_starves() -> None:
    """Of those that wait the one that takes least is next, unless another has waited longer by as much."""
    first = push_at(0.0, Work(0.0, 100.0, 0.0))
    long, short = (push_at(1.0, Work(0.0, s, 0.0), expected_s=s) for s in (500.0, 10.0))
    verdicts_of([first, long, short], Lab(1, 1), SHORTEST)
    assert short.verdict_s < long.verdict_s
    first = push_at(0.0, Work(0.0, 1000.0, 0.0))
    long, late = push_at(1.0, Work(0.0, 500.0, 0.0), expected_s=500.0), push_at(600.0, Work(0.0, 10.0, 0.0))
    verdicts_of([first, long, late], Lab(1, 1), SHORTEST)
    assert long.verdict_s < late.verdict_s


def test_a_superseded_push_is_never_given_boards() -> None:
    """Its job looks when it is set up, and leaves; before it looks it costs a runner the set-up alone."""
    work = Work(0.0, 100.0, 0.0)
    around = Around(setup_s=10.0, report_s=0.0, verdict_s=0.0)
    for policy in (SHORTEST, SIDE_BY_SIDE):
        measures = push_at(0.0, work, superseded_s=50.0)
        gone = [push_at(1.0, work, superseded_s=at_s) for at_s in (0.5, 5.0, 115.0)]
        kept = push_at(2.0, work)
        verdicts_of([measures, *gone, kept], Lab(1, 1), policy, around)
        assert measures.verdict_s == 110.0
        assert not measures.is_wanted
        assert {one.legs[0].state for one in gone} == {"superseded"}
        assert not any(one.legs[0].boards for one in gone)
        # two set-ups of those that left, its own, its boards: who was superseded at 0.5 never came
        assert kept.verdict_s == 110.0 + 3 * 10.0 + 100.0


def test_who_has_looked_keeps_its_place() -> None:
    """A push that is superseded while its job waits for boards, or measures, is measured to its end."""
    work = Work(0.0, 100.0, 0.0)
    two_runners = replace(SIDE_BY_SIDE, runners=2)
    first, second = (push_at(0.0, work, superseded_s=50.0) for _ in range(2))
    verdicts_of([first, second], Lab(1, 1), two_runners)
    assert [first.verdict_s, second.verdict_s] == [100.0, 200.0]
    assert not first.is_wanted


def test_each_push_ends_in_one_way() -> None:
    """Verdict, superseded, measuring or waiting: at any moment they add up to all that there are."""
    team = replace(Team(), pull_requests=40.0)
    found = drafts(team, 3, 1, seed=1)
    for until_s in (DAY_S / 2, 0.6 * DAY_S, 2.5 * DAY_S, math.inf):
        pushes = [
            push_at(one.arrives_s, Work(40.0, 600.0, 500.0), superseded_s=one.superseded_s, kind=one.kind)
            for one in found
        ]
        outcome = Simulation(Lab(1, 4), SIDE_BY_SIDE, pushes).run(until_s)
        counts = [outcome.in_state(state) for state in ("done", "superseded", "measuring", "waiting")]
        assert sum(counts) == len(pushes)
        assert (counts[2:] == [0, 0]) == (until_s == math.inf)


def test_pushes_come_in_working_hours_and_with_the_seed() -> None:
    """None comes at night or at a weekend, a second push too; the mean is the team's; a seed is repeated."""
    team = replace(Team(), narrowed=0.0)
    found = drafts(team, 10, 1, seed=4)
    assert found == drafts(team, 10, 1, seed=4)
    assert found != drafts(team, 10, 1, seed=5)
    assert all(8 <= one.arrives_s % DAY_S / 3600 <= 19 and one.arrives_s // DAY_S % 7 < 5 for one in found)
    assert len(found) / 10 == pytest.approx(120, rel=0.15)
    assert sum(one.superseded_s < math.inf for one in found) == len(found) / 2


@pytest.mark.slow
def test_job_times_are_the_plans_and_the_gates() -> None:
    """A leg takes as long as the looks that the plan affords, never longer; fewer boards leave more looks."""
    given = planned()
    assert [len(looks_of(given, boards)) for boards in (1, 2, 4)] == [3, 3, 1]
    found = works(given, 2, 3, seed=1)
    looks = looks_of(given, 2)
    each_s = [given.measuring_s] * 2
    assert len(found.unchanged) == len(found.more) == DRAWN
    assert found.limits == Work(given.flash_s, look_s(1, each_s), 2 * given.measuring_s)
    assert min(one.alone_s for one in found.unchanged) >= look_s(sum(looks[0]), each_s)
    assert max(one.alone_s for one in found.unchanged) <= 15 * 60
    assert all(one.air_s <= one.alone_s for one in found.unchanged)
    open_ = [one.undecided for one in found.unchanged]
    assert [bool(one.alone_s) for one in found.more] == open_
    assert 0 < found.undecided < 0.5


def a_run(folder: Path, *, measured_s: float | None) -> Path:
    """Return a run of two boots on each of two boards, with two cases a boot."""
    run = RunDirectory.create(folder, RUN_ID)
    for board, boot, qos in itertools.product(("virtual-1", "virtual-2"), range(2), (0, 1)):
        record = publish_record(board=board, boot_index=boot, overrides={"qos": qos}, rows=5)
        run.append(replace(record, measured_s=measured_s))
    run.write_info({"run_id": RUN_ID})
    return run.path


def test_job_times_of_recorded_runs(tmp_path: Path) -> None:
    """A boot has the air for what its records measured and what is round each; looks stay the plan's."""
    given = measured([a_run(tmp_path, measured_s=3.5)])
    assert given.measuring_s == pytest.approx(2 * (3.5 + AROUND_CASE_S))
    assert given.planned_s == planned().planned_s
    assert "1 recorded run on virtual boards" in given.source


def test_what_is_kept_of_a_run_is_what_the_figures_rest_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kept file names every case of the suite; one that it does not know takes what the plan expects."""
    assert "as 7 of 7 cases" in recorded().source
    assert "virtual boards" in recorded().source
    kept = tmp_path / "kept.json"
    keep([a_run(tmp_path, measured_s=2.0)], kept)
    monkeypatch.setattr("tools.bench.queue_times.RECORDED", kept)
    (known,) = set(json.loads(kept.read_text())["cases"]) & {case.case_id for case in cases_of_suite()}
    assert known.startswith("publish/")
    found = recorded()
    assert "as 1 of 7 cases" in found.source
    assert "the others as planned" in found.source
    (case,) = (case for case in cases_of_suite() if case.case_id == known)
    assert found.measuring_s == pytest.approx(planned().planned_s - expected_s(case) + 2.0 + AROUND_CASE_S)


def test_a_run_that_does_not_say_what_it_took_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Older records do not say how long they were measured: exit 2, and the folder is in the sentence."""
    path = a_run(tmp_path, measured_s=None)
    with pytest.raises(ConfigError, match="does not say how long it measured"):
        measured([path])
    assert command.main(["--short", "--runs", str(path)]) == 2
    assert str(path) in capsys.readouterr().err


@pytest.mark.slow
def test_the_aim_can_be_missed() -> None:
    """Boots that measure four times as long keep no lab below the aim, and the command says so and fails."""
    lines: list[str] = []
    slow = replace(planned(), measuring_s=80.0)
    assert not command.aim(command.Bench(slow, 2, 1, 1), lines.append)
    assert lines[-1].endswith("missed")
    assert all("simulated" in line for line in lines[:-1])


@pytest.mark.slow
def test_each_figure_says_that_it_is_simulated(capsys: pytest.CaptureFixture[str]) -> None:
    """The short pass prints every policy and lab, and first what was assumed."""
    assert command.main(["--short"]) == 0
    said = capsys.readouterr().out
    titles = [line for line in said.splitlines() if line.startswith(("From push", "Other labs"))]
    assert len(titles) == 2
    assert all("(simulated)" in title for title in titles)
    assert "Assumed (everything below is simulated)" in said
    for policy in (command.FIRST_COME, command.DROPPED, command.SHORTEST, command.BEST):
        assert policy.name in said
