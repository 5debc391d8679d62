# SPDX-License-Identifier: Apache-2.0
"""The demonstration: what is planted is found and named rightly, and nothing else is blamed."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hil.history import load
from hil.history.files import read_past
from hil.history.summary import to_bytes
from hil.metrics.boot_value import boot_value
from hil.model import Role
from hil.reports.history import lines_of
from tools.demo.__main__ import main
from tools.demo.figures import boot_values
from tools.demo.making import Demo, make
from tools.demo.nights import Night, boots_of, full_record, measured
from tools.demo.plan import DESK, FLAKY, LAB, RACKS, Plan
from tools.demo.samples import cases_of
from tools.demo.telling import compare, found, lines, planted

pytestmark = pytest.mark.slow


class Sound(Plan):
    """Nights without the regression."""

    def tail(self, _bench: str, _role: Role, _night: int) -> float:
        return 1.0


PLAN = Plan(nights=40, boots=2, seed=3)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return make(tmp_path_factory.mktemp("demo"), PLAN)


@pytest.fixture(scope="module")
def events(demo: Demo) -> Sequence[dict[str, Any]]:
    return [dict(event) for event in found(load(demo.history), demo.thresholds, PLAN.nights)]


def test_every_planted_change_is_named_and_nothing_else(events: Sequence[dict[str, Any]]) -> None:
    """Access point, regression, bad board, improvement and mended board have an event each.

    What was taken back has ended, on that night; what nobody took back goes on. Of all events two are the
    firmware's, at the commits at which it was changed. One of unclear cause is told, and fails nothing.
    """
    comparison = compare(planted(PLAN), events)
    assert comparison.holds, "\n".join(lines(comparison))
    assert len({event["headline"] for _planted, event in comparison.told if event}) == len(planted(PLAN)) == 5
    (ended,) = [event for event in events if event["state"] == "ended"]
    assert planted(PLAN)[2].is_told_by(ended)
    assert ended["ended"] == PLAN.date(PLAN.night_of("mended board")).isoformat()
    blamed = {event["bad"] for event in events if event["cause"] == "firmware"}
    assert blamed == {PLAN.commit(PLAN.night_of("regression")), PLAN.commit(PLAN.night_of("improvement"))}
    unclear = {**events[0], "cause": "unclear", "headline": "Unclear: something moved"}
    comparison = compare(planted(PLAN), [*events, unclear])
    assert comparison.holds
    assert "Unclear: something moved" in lines(comparison)[-1]


@pytest.mark.parametrize("lost", [0, 4])
def test_a_change_that_nobody_names_fails_the_demo(events: Sequence[dict[str, Any]], lost: int) -> None:
    """Without the event of a planted change it does not hold, and the line says NOT FOUND."""
    wanted = planted(PLAN)
    comparison = compare(wanted, [event for event in events if not wanted[lost].is_told_by(event)])
    assert not comparison.holds
    assert "NOT FOUND" in lines(comparison)[lost]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cause", "firmware"),
        ("boards", ["lab/e1"]),
        ("night", "2020-01-01"),
        ("change", 0.9),
        ("bad", "f" * 40),
    ],
)
def test_a_change_that_is_named_wrongly_fails_the_demo(
    events: Sequence[dict[str, Any]], key: str, value: object
) -> None:
    """Another cause, board, night, size or commit is a change not found and a false one named."""
    wanted = planted(PLAN)[0]
    altered = [{**event, key: value} if wanted.is_told_by(event) else event for event in events]
    comparison = compare(planted(PLAN), altered)
    assert comparison.told[0][1] is None
    assert [event for event in comparison.false if event[key] == value]


def test_every_figure_is_labelled_virtual_and_simulated(demo: Demo, events: Sequence[dict[str, Any]]) -> None:
    """Boards of every session, the runs, the outage and every event's sentence say so."""
    for session in load(demo.history).sessions:
        assert {session.kind_of(board) for board in session.boards} == {"virtual, simulated noise"}
    for run in demo.runs:
        assert json.loads((run / "run.json").read_text())["noise"]["simulated"] is True
        assert ',"virtual, simulated noise",' in (run / "series.csv").read_text()
    health = read_past(demo.history).runs
    said = [board.first_fault for run in health for board in run.health.boards if board.first_fault]
    assert said
    assert all("simulated" in sentence for sentence in said)
    assert all(
        "(virtual, simulated noise)" in event["sentence"]
        for event in events
        if event["cause"] in ("firmware", "board")
    )


def test_each_night_has_boot_values_figures_and_health(demo: Demo) -> None:
    """Boot values, figures and health know the same runs, the newest ones included."""
    runs = {Night(PLAN, rack, number).run_id for rack in RACKS for number in range(PLAN.nights)}
    lines_ = lines_of(read_past(demo.history).runs)
    assert {session.run_id for session in load(demo.history).sessions} == runs
    assert {line["run_id"] for line in lines_} == runs
    assert {run.run_id for run in read_past(demo.history).runs} == runs
    assert {path.name for path in demo.runs} <= runs
    assert demo.warnings == ()


def test_an_outage_is_in_health_and_leaves_no_figures(demo: Demo) -> None:
    """The flaky board is faulted in its nights, and neither history has a value of it then."""
    out = [n for n in range(PLAN.nights) if PLAN.is_out(LAB, FLAKY[1], n)]
    assert len(out) == 4  # three in a row, and one more
    health = {run.run_id: run for run in read_past(demo.history).runs}
    sessions = {session.run_id: session for session in load(demo.history).sessions}
    for number in out:
        run_id = Night(PLAN, LAB, number).run_id
        states = {board.board: board.state for board in health[run_id].health.boards}
        assert states[FLAKY[1]] == "faulted"
        assert list(states.values()).count("measured") == len(LAB.boards) - 1
        assert FLAKY[1] not in sessions[run_id].boards


def test_the_fast_way_to_a_boot_value_is_the_same(demo: Demo) -> None:
    """Boot values computed from arrays are, to ten digits, those that the history makes of a stored run."""
    newest = Night(PLAN, LAB, PLAN.nights - 1)
    measurements = list(measured(newest, cases_of(demo.thresholds)))
    stored = (demo.history / LAB.name / f"{newest.run_id}.json").read_bytes()
    fast = json.loads(to_bytes(boots_of(newest, measurements, demo.thresholds)))
    kept = json.loads(stored)
    assert fast["boot_values"].pop("values") == pytest.approx(kept["boot_values"].pop("values"), rel=1e-9)
    assert fast["boot_values"] == kept["boot_values"]


def test_every_statistic_is_the_products(demo: Demo) -> None:
    """Each metric of each case has the value that boot_value() computes of the same samples."""
    night = Night(PLAN, LAB, 0)
    seen = set()
    for one in measured(replace(night, plan=replace(PLAN, boots=1)), cases_of(demo.thresholds)):
        for metric in demo.thresholds[one.case.bench].metrics_of(one.case.parameters):
            values = boot_values(metric, one.columns, one.warmup)
            expected = boot_value(metric, full_record(night, one, 1))
            assert (values is None) == (expected is None or metric.statistic == "share")
            if values is not None and expected is not None:
                assert values[1] == pytest.approx(expected.value, rel=1e-9)
                seen.add(metric.statistic)
    assert seen >= {"p50", "p95", "p99", "p99.9", "tail5", "max", "ratio", "batch_mean"}


def test_a_regression_moves_the_tail_alone(demo: Demo) -> None:
    """The candidate's publishes of its first night have p50 as without it, and p95 and p99 12 % above."""
    case, night = cases_of(demo.thresholds)[0], PLAN.night_of("regression")
    plans = (PLAN, Sound(PLAN.nights, PLAN.seed, PLAN.boots))
    with_it, without = (next(measured(Night(plan, DESK, night), [case])) for plan in plans)
    rows: list[tuple[Role, str, float]] = [
        ("candidate", "publish_latency_p50_us", 1.0),
        ("candidate", "publish_latency_p95_us", 1.12),
        ("candidate", "publish_latency_p99_us", 1.12),
        ("reference", "publish_latency_p99_us", 1.0),
    ]
    for role, name, factor in rows:
        metric = demo.thresholds["publish"].metrics[name]
        after, before = (boot_values(metric, one.of(role), one.warmup) for one in (with_it, without))
        assert after is not None
        assert before is not None
        assert np.allclose(after / before, factor, rtol=1e-3), (role, name)


def test_the_same_seed_gives_the_same_night(demo: Demo) -> None:
    """A night is the same bytes each time, and another seed another night."""
    cases = cases_of(demo.thresholds)

    def bytes_of(plan: Plan) -> bytes:
        night = Night(plan, LAB, 3)
        return to_bytes(boots_of(night, list(measured(night, cases)), demo.thresholds))

    assert bytes_of(PLAN) == bytes_of(replace(PLAN))
    assert bytes_of(PLAN) != bytes_of(replace(PLAN, seed=4))


def test_too_few_nights_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Five changes need nights between them; the sentence says how many."""
    with pytest.raises(SystemExit):
        main(["--nights", "10", "--out", str(tmp_path / "demo")])
    assert "40 or more" in capsys.readouterr().err
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize(("seen", "code"), [(slice(None), 0), (slice(1, None), 1)])
def test_the_command_says_what_was_found_and_ends_accordingly(
    demo: Demo,
    events: Sequence[dict[str, Any]],
    seen: slice,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit 0 where all is named, 1 where an event is missing; the report's place stands at the end."""
    command = sys.modules["tools.demo.__main__"]
    monkeypatch.setattr(command, "make", lambda _out, _plan: demo)
    monkeypatch.setattr(command, "build_site", lambda out, *_, **__: out / "report" / "index.html")
    monkeypatch.setattr(command, "found", lambda *_arguments: events[seen])
    assert main(["--nights", "40", "--seed", "3"]) == code
    said = capsys.readouterr().out
    assert said.count("planted ") == len(planted(PLAN))
    assert ("NOT FOUND" in said) == bool(code)
    assert said.rstrip().endswith("report/index.html")
