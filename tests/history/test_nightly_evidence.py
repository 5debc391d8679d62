# SPDX-License-Identifier: Apache-2.0
"""What earns its place as an event: not what chance explains, and noise does not make two of one."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from hil.base.paths import PROJECT_ROOT
from hil.cli.app import run_command
from hil.history.nightly.change_points import Cause, ChangePoint, analyse
from hil.history.nightly.divisive import find_steps
from hil.history.nightly.event_conditions import FindingGroup, Straying
from hil.history.nightly.events import by_chance, events_of, is_certain, new_steps
from hil.history.nightly.nights import nights_of
from hil.history.nightly.survey import NightFinding, Survey, survey
from hil.model import SeriesId
from hil.thresholds import load_all
from tests.history.events_rig import Rack, commit_of, planted
from tests.history.nights_rig import SERIES, Air, make_history, simulate
from tests.history.saved import save
from tools.demo.accuracy import Accuracy, Score, judge, table
from tools.demo.plan import HAPPENINGS, LAB, Plan

BENCHES = load_all(PROJECT_ROOT / "thresholds")
NIGHT = datetime.date(2026, 1, 21)


def finding(board: str, p_value: float, cause: Cause = "firmware") -> NightFinding:
    name = SeriesId("lab", board, "publish/qos=1", "publish_latency_p50_us")
    point = ChangePoint(
        "/".join(name),
        NIGHT,
        20,
        cause,
        cause == "firmware",
        *(0.1, 0.05, 0.15),
        good=f"{19:040x}",  # as the rig of these nights has them
        bad=f"{20:040x}",
        p_value=p_value,
    )
    return NightFinding(point, name, "physical", "worse")


def looked(series: int, *findings: NightFinding) -> Survey:
    """Return a survey of so many series of a hundred nights."""
    history = make_history(simulate(np.random.default_rng(1), nights=100))
    nights = tuple(nights_of(history, SERIES))
    return Survey(findings, series, 100, {}, {f"lab/x{n}/publish/qos=1/x_us": nights for n in range(series)})


@pytest.mark.parametrize(
    ("series", "p_value", "certain"), [(1, 1e-4, True), (500, 1e-5, False), (500, 1e-8, True)]
)
def test_a_single_step_must_survive_the_number_of_series(series: int, p_value: float, certain: bool) -> None:
    """One of a single series needs no more than its own test; one of five hundred needs far more."""
    one = finding("e1", p_value)
    assert is_certain(FindingGroup("firmware", (one,)), looked(series, one)) is certain


@pytest.mark.parametrize(
    ("cause", "boards", "certain"),
    [
        ("firmware", ("e1", "e2"), True),
        ("firmware", ("e1", "e1"), False),
        ("environment", ("e1", "e2"), False),
    ],
)
def test_boards_that_agree_make_a_firmware_step_certain(
    cause: Cause, boards: tuple[str, str], certain: bool
) -> None:
    """Two boards of which neither is certain are so together; neither two series of one board are, nor
    two boards that moved with the air that they share."""
    pair = tuple(finding(board, 1e-5, cause) for board in boards)
    assert is_certain(FindingGroup(cause, pair), looked(500, *pair)) is certain


def test_what_chance_explains_is_no_event_and_is_not_lost() -> None:
    """It is in by_chance(), neither new nor in an event, and all findings are in one of the two."""
    sure, unsure = finding("e1", 1e-12), finding("e9", 1e-5)
    unsure = dataclasses.replace(
        unsure, point=dataclasses.replace(unsure.point, night=NIGHT + datetime.timedelta(days=30))
    )
    found = looked(500, sure, unsure)
    events = events_of(found, thresholds=BENCHES)
    assert [event.findings for event in events] == [(sure,)]
    assert by_chance(found, events) == (unsure,)
    assert new_steps(events, 20) == events
    assert new_steps(events, 19) == ()


def beside(night: int, boards: Sequence[str]) -> Rack:
    """Return a rack in which the step of some boards is ``night``, of the others 30."""

    def effect(n: int, board: str, _metric: str) -> float:
        return math.log1p(0.12) if n >= (night if board in boards else 30) else 0.0

    return Rack(firmware=effect)


@pytest.mark.slow
def test_noise_that_puts_one_board_beside_the_others_makes_no_second_event() -> None:
    """Typical noise over many seeds: the firmware's step is one event, with its commit, nearly always."""
    alone = 0
    for seed in range(10):
        history = planted(beside(30, ()), seed=seed, air=Air())
        events = events_of(survey(history, BENCHES), thresholds=BENCHES)
        blamed = [event for event in events if event.cause == "firmware"]
        alone += [event.bad for event in blamed] == [commit_of(30)] and len(blamed[0].boards) == 4
    assert alone >= 9


def test_a_board_whose_figures_say_another_night_is_not_forced() -> None:
    """In little noise seven nights are no chance: two events, each with its own commit."""
    history = planted(beside(37, ("e4",)), air=Air(session=0.008, boot=0.02, bad_nights=0.0, bad_boots=0.0))
    events = events_of(survey(history, BENCHES), thresholds=BENCHES)
    assert {event.bad for event in events} == {commit_of(30), commit_of(37)}


def test_what_another_night_costs_is_a_likelihood() -> None:
    """Nothing at the night itself, more the farther away, and no night beyond the reach is allowed."""
    found = survey(planted(beside(30, ())), BENCHES)
    straying, one = Straying(found), found.findings[0]
    losses = [
        straying.board_losses([one], one.point.night + datetime.timedelta(days=days))[0]
        for days in (0, 3, 8, 11)
    ]
    assert losses[0] == 0
    assert losses == sorted(losses)
    assert losses[-1] == math.inf
    assert straying.allows([one], one.point.night)
    assert not straying.allows_together([one], one.point.night + datetime.timedelta(days=8))


@pytest.mark.parametrize("seed", range(5))
def test_a_level_that_comes_and_goes_does_not_hide_itself(seed: int) -> None:
    """`───┌─┐───` Eight nights of 15 % among 120: both ends are found, though what follows is as before."""
    n = np.arange(120)
    values = np.random.default_rng(seed).normal(0, 0.03, 120) + 0.14 * ((n >= 60) & (n < 68))
    found = find_steps(values.tolist())
    assert len(found) == 2
    assert np.abs(np.subtract(found, (60, 68))).max() <= 1


def test_a_firmware_step_near_by_is_not_counted_as_the_environments() -> None:
    """15 % of an access point, and 20 % of a commit a week later: the environment's size is 15 %."""
    nights = simulate(
        np.random.default_rng(2),
        nights=40,
        environment=lambda night: math.log1p(0.15) * (night >= 14),
        firmware=lambda night: math.log1p(0.20) * (night >= 21),
    )
    points = analyse(SERIES, nights_of(make_history(nights), SERIES)).points
    (moved,) = [point for point in points if point.cause == "environment"]
    assert moved.low < 0.15 < moved.high
    assert moved.change < 0.19


def test_the_command_counts_what_chance_explains(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line says how many; --series lists them and says so; JSON has them beside the events."""
    save(planted(Rack(firmware=lambda n, *_: 0.2 * (n >= 20)), nights=30), tmp_path)
    monkeypatch.setattr("hil.history.nightly.events.is_certain", lambda _group, _survey: False)

    def said(*options: str) -> str:
        assert run_command(["changes", "--history", str(tmp_path), "--fail-on-new", "30", *options]) == 0
        return capsys.readouterr().out

    assert "24 more steps " in said()
    assert said("--series").count("of no event: ") == 24
    told = json.loads(said("--json"))
    assert (told["events"], told["by_chance"]) == ([], told["changes"])


ALL_NAMED = (True,) * len(HAPPENINGS)


def score(
    seed: int, named: Sequence[bool] = ALL_NAMED, false_firmware: int = 0, *, planted: bool = True
) -> Score:
    return Score(seed, planted, tuple(named) if planted else (), false_firmware, 0, ())


def test_the_measurement_says_which_aim_is_missed() -> None:
    """95 % named, 5 % blamed falsely: at the bound it holds, beyond it the sentence names what is missing."""
    good = [score(seed) for seed in range(20)] + [score(seed, planted=False) for seed in range(20)]
    assert Accuracy(120, tuple(good)).missed == []
    without = [happening != "regression" for happening in HAPPENINGS]
    poor = [*good, score(20, without), score(21, without)]
    (missed,) = Accuracy(120, tuple(poor)).missed
    assert re.match(r"regression: .* 95%", missed)
    false = [*good, *(score(n, false_firmware=1, planted=False) for n in range(2))]
    assert "in which nothing happens" in Accuracy(120, tuple(false)).missed[0]
    rows = [" ".join(line.split()) for line in table(Accuracy(120, tuple(poor)))]
    assert "regression named rightly 91%" in rows


def test_a_history_without_what_was_planted_names_nothing() -> None:
    """Control: the measurement does not count what is not there."""
    empty = make_history(simulate(np.random.default_rng(1), nights=40))
    assert judge(Plan(40, 1), empty).named == (False,) * len(HAPPENINGS)


def test_nothing_happens_in_a_plan_without_changes() -> None:
    """No effect, no condition and no board differs from the first night to the last."""
    plan = Plan(40, 1, planted=False)
    assert not any(plan.has(happening, 39) for happening in HAPPENINGS)
    assert plan.path(LAB, "publish", "candidate", 39) == 0.0
    assert plan.facts(LAB, 0) == plan.facts(LAB, 39)
