# SPDX-License-Identifier: Apache-2.0
"""With a few runs only, the last one is set beside those before it, and what differs plainly is said."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.reports.trend_rig import METRIC, Boots, figure, history_of, line, trend

BOARDS = ("e1", "e2", "e3", "e4")
P50, RATE = "publish_latency_p50_us", "throughput_mbps"


def run(number: int, figures: Mapping[str, Mapping[str, float | None]], **facts: Any) -> dict[str, Any]:
    """Return the line of a local run on a day: what each metric came to on each board."""
    kind = facts.pop("kind", "physical")
    made = line(f"202603{number:02}T120000Z-first-0001", trigger="local", suite="first", **facts)
    for board in BOARDS:
        metrics = {name: figure(values[board]) for name, values in figures.items() if board in values}
        more = {"direction": "higher"}
        for name in metrics:
            metrics[name] |= more if name == RATE else {}
        made["cases"] += line(made["run_id"], metrics, board=board, kind=kind)["cases"]
    return made


def alike(value: float | None, boards: Sequence[str] = BOARDS) -> dict[str, float | None]:
    return dict.fromkeys(boards, value)


def told(*runs: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    """Return what is said of the last of some runs."""
    found: list[dict[str, Any]] = trend(runs[-1], lines=runs[:-1], **more).get("since_last", [])
    return found


def words(*runs: dict[str, Any]) -> list[str]:
    return [one["words"] for one in told(*runs)]


def test_a_fourfold_slowdown_in_the_third_local_run_is_said() -> None:
    """No nights are needed, and the boards on which it is are counted, not listed."""
    figures = (1, 7000), (2, 7200), (3, 28400)
    (third,) = told(*(run(n, {METRIC: alike(value)}) for n, value in figures))
    assert third["words"] == "publish latency p95 4.0 times the runs before, on 4 boards"
    assert (third["series"], third["change"]) == (0, pytest.approx(4.0, rel=0.01))


def test_the_second_run_is_set_beside_the_first() -> None:
    """One run before is enough for what is half as much again; below it, nothing is known of the spread."""
    first = run(1, {METRIC: alike(7000), P50: alike(5000)})
    second = run(2, {METRIC: alike(28000), P50: alike(9000)})
    assert words(first, second) == ["publish latency p95 4.0 times the run before (p50 too), on 4 boards"]
    assert words(first, run(2, {METRIC: alike(10_000), P50: alike(7000)})) == []
    assert words(first) == []


def test_what_is_within_the_spread_of_the_runs_before_is_not_said() -> None:
    """A rack whose runs differ by a fifth says nothing of a third more; a quiet one does, from 10 % on."""
    loud = [run(1, {METRIC: alike(7000)}), run(2, {METRIC: alike(8500)})]
    quiet = [run(1, {METRIC: alike(7000)}), run(2, {METRIC: alike(7050)})]
    assert words(*loud, run(3, {METRIC: alike(10_300)})) == []
    assert words(*quiet, run(3, {METRIC: alike(7600)})) == []
    assert words(*quiet, run(3, {METRIC: alike(8500)})) == [
        "publish latency p95 21 % slower than the runs before, on 4 boards"
    ]


def test_two_runs_that_agree_by_luck_make_no_board_certain() -> None:
    """How far apart runs are is asked of every board that measured the same."""
    runs = [
        run(1, {METRIC: {"e1": 7000, "e2": 6000}}),
        run(2, {METRIC: {"e1": 7000, "e2": 7500}}),
        run(3, {METRIC: {"e1": 8500, "e2": 7000}}),
    ]
    assert words(*runs) == []


def test_what_most_boards_do_not_show_is_the_boards_own() -> None:
    """Half of the boards that measured the same are chance or a board's doing; more than half are said."""
    first = run(1, {METRIC: alike(7000)})
    assert words(first, run(2, {METRIC: alike(7000) | alike(28_000, BOARDS[:2])})) == []
    assert words(first, run(2, {METRIC: alike(7000) | alike(28_000, BOARDS[:3])})) == [
        "publish latency p95 4.0 times the run before, on 3 boards"
    ]


def test_what_hangs_on_one_sample_is_not_asked() -> None:
    """The largest of some hundred samples is another one in each run."""
    name = "publish_latency_max_us"
    assert words(run(1, {name: alike(7000)}), run(2, {name: alike(28_000)})) == []


def test_what_became_better_is_said_after_what_became_worse() -> None:
    """Words and order know which way is better; one board is named."""
    before = [run(n, {METRIC: alike(7000), RATE: alike(8.2, ["e2"])}) for n in (1, 2)]
    worse = run(3, {METRIC: alike(3000), RATE: alike(5.1, ["e2"])})
    assert words(*before, worse) == [
        "throughput 38 % lower than the runs before, on e2",
        "publish latency p95 57 % faster than the runs before, on 4 boards",
    ]


def test_virtual_figures_are_called_so() -> None:
    """No simulated figure without the word."""
    runs = [run(n, {METRIC: alike(value)}, kind="virtual") for n, value in ((1, 7000), (2, 28_000))]
    assert words(*runs) == ["publish latency p95 4.0 times the run before, on 4 virtual boards"]
    runs = [run(n, {METRIC: {"e3": value}}, kind="virtual") for n, value in ((1, 7000), (2, 28_000))]
    assert words(*runs) == ["publish latency p95 4.0 times the run before, on e3 (virtual)"]


def test_what_no_ratio_can_tell_is_left_out() -> None:
    """Nothing is a multiple of zero, and of 2 µs after 1 µs the rounding is half; a timeout is a bound."""
    assert words(run(1, {METRIC: alike(0)}), run(2, {METRIC: alike(9000)})) == []
    assert words(run(1, {METRIC: alike(1)}), run(2, {METRIC: alike(3)})) == []
    assert words(run(1, {METRIC: alike(None)}), run(2, {METRIC: alike(7000)})) == []
    late = run(2, {METRIC: alike(70_000)})
    for case in late["cases"]:
        case["metrics"][METRIC]["at_least"] = True
    assert words(run(1, {METRIC: alike(7000)}), late) == [
        "publish latency p95 at least 10.0 times the run before, on 4 boards"
    ]


def test_runs_of_another_purpose_rack_or_air_are_not_compared() -> None:
    """Only what is one line of the trend is compared, and of it what was measured for the same purpose."""
    other: list[dict[str, Any]] = [{"trigger": "nightly"}, {"rack": "south"}, {"profile": "far"}]
    last = run(2, {METRIC: alike(28_000)})
    for facts in other:
        first = {**run(1, {METRIC: alike(7000)}), **facts}
        assert words(first, last) == []
    assert words(run(1, {METRIC: alike(7000)}), {**last, "trigger": "pr"}) == []


def test_uncommitted_sources_are_compared_and_named() -> None:
    """Whoever works on a change wants to see it; a note says what the runs were of."""
    runs = [run(n, {METRIC: alike(value)}, dirty=True) for n, value in ((1, 7000), (2, 28_000))]
    data = trend(runs[1], lines=runs[:1])
    assert len(data["since_last"]) == 1
    assert [note for note in data["notes"] if "uncommitted changes" in note]


@pytest.mark.parametrize(("nights", "said"), [(3, True), (11, False)])
def test_few_nights_are_compared_and_many_are_judged(nights: int, said: bool) -> None:
    """Where change points can tell, nobody guesses; until then the ratio to the reference is what counts."""
    ids = [f"202602{day:02}T010000Z-nightly-0001" for day in range(1, nights + 1)]
    drift = itertools.cycle((1.0, 1.3))
    sessions = [
        Boots(one, [7000 * air * (4 if one == ids[-1] else 1)] * 6, reference=[6000 * air] * 6)
        for one, air in zip(ids, drift, strict=False)
    ]
    lines = [line(one, {METRIC: figure(7000)}) for one in ids]
    found = told(*lines, history=history_of(*sessions))
    expected = ["publish latency p95 4.0 times the runs before beside the reference, on e1"]
    assert [one["words"] for one in found] == (expected if said else [])


def test_the_most_telling_ten_are_said() -> None:
    """What can fail a run comes first, the larger before the smaller."""
    names = [f"part{n}_latency_p95_us" for n in range(14)]
    first = run(1, dict.fromkeys(names, alike(7000)))
    last = run(2, {name: alike(7000 * (2 + n)) for n, name in enumerate(names)})
    for case in (*first["cases"], *last["cases"]):
        case["metrics"][names[-1]]["blocking"] = False
    found = words(first, last)
    assert len(found) == 10
    assert found[0].startswith("part12 latency p95 14.0 times")
