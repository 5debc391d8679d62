# SPDX-License-Identifier: Apache-2.0
"""The trend's data: what runs, figures and boot values come to when they are joined."""

from __future__ import annotations

import dataclasses
import itertools
import math
from pathlib import Path

import pytest
from msgspec.structs import replace as replace_info

from hil.base.git import git
from hil.history.nightly.events import events_of
from hil.history.nightly.survey import survey
from hil.metrics import stats
from hil.metrics.sessions import History
from hil.reports.trend import build as numbers
from hil.reports.trend import choosing
from hil.reports.trend.commits import commit_json, commits_of
from hil.reports.trend.happenings import changes_beside
from hil.reports.trend.points import ranks
from hil.reports.trend.runs import runs_of
from tests.make_records import run_info
from tests.reports.trend_rig import CASE, LATEST, METRIC, Boots, figure, history_of, line, nights, only, trend

FIRST, SECOND = "20260227T010000Z-nightly-0001", "20260228T010000Z-nightly-0001"
WHO = ("-c", "user.name=A. Author", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
BOOTS = (7010.0, 6990.0, 7000.0, 7020.0, 6980.0, 7030.0)


def test_a_run_that_only_lines_know_has_the_gates_figure() -> None:
    """Without boot values the figure is the gate's, with its outcome and limit, and without an interval."""
    series = only(trend(line(LATEST, {METRIC: figure(7123.456, outcome="regressed")})))
    assert series["points"] == {"run": [0], "value": [7123.5], "outcome": "r", "limit": [[0, 25000]]}
    assert (series["now"], series["blocking"], series["label"]) == (0, True, "defaults")
    assert (series["quantity"], series["stat"], series["unit"]) == ("publish latency", "p95", "us")


def test_a_run_that_only_the_history_knows_has_median_and_interval() -> None:
    """Of boot values the figure is their median, its interval is that of order statistics, and the outcome
    is unknown. Five boots give no bound at 95 %, so the columns are not there at all."""
    past = history_of(Boots(FIRST, BOOTS, reference=(6900.0, 6910.0, 6920.0)))
    series = only(trend(line(LATEST), history=past))
    points = series["points"]
    assert (points["value"], points["low"], points["high"]) == ([7005], [6980], [7030])
    assert (points["reference"], points["boots"], points["outcome"]) == ([6910], [6], "-")
    assert series["now"] is None
    points = only(trend(line(LATEST), history=history_of(Boots(FIRST, BOOTS[:5]))))["points"]
    assert not {"low", "high"} & set(points)
    assert points["boots"] == [5]


def test_a_run_that_both_know_has_the_median_and_the_gates_outcome() -> None:
    """Where both tell of a run it is one point: the median over boots, under the gate's outcome and limit."""
    own = line(LATEST, {METRIC: figure(9999.0)})
    series = only(trend(own, lines=[own], history=history_of(Boots(LATEST, BOOTS))))
    assert series["points"]["value"] == [7005]
    assert series["points"]["outcome"] == "p"
    assert series["points"]["limit"] == [[0, 25000]]


@pytest.mark.parametrize("boots", range(1, 40))
def test_the_interval_is_that_of_the_statistics_module(boots: int) -> None:
    """The bounds are those of hil.metrics.stats.quantile_interval() for independent boots; none below six."""
    values = [float(value) for value in range(1, boots + 1)]
    low, high = ranks(boots)
    bounds = stats.quantile_interval(values, 0.5, 0.025)
    assert bounds.low == (low if low else -math.inf)
    assert bounds.high == (high if high <= boots else math.inf)
    assert (low >= 1) == (boots >= 6)


def test_beyond_the_timeout_is_no_number() -> None:
    """A median among timeouts is null and named in at_least; an infinite bound is none."""
    past = history_of(Boots(FIRST, [math.inf] * 4 + [7000.0] * 2), Boots(SECOND, [7000.0] * 5 + [math.inf]))
    points = only(trend(line(LATEST), history=past))["points"]
    assert (points["value"], points["at_least"]) == ([None, 7000], [0])
    assert points["low"] == [7000, 7000]
    assert "high" not in points


def test_the_gate_tells_how_long_the_timeout_was() -> None:
    """Where boots fell among timeouts the gate's bound is shown, and still named in at_least."""
    own = line(LATEST, {METRIC: figure(5e6, outcome="regressed", at_least=True)})
    points = only(trend(own, history=history_of(Boots(LATEST, [math.inf] * 6))))["points"]
    assert (points["value"], points["at_least"]) == ([5000000], [0])


def test_a_limit_that_changed_is_a_step() -> None:
    """Limits are steps by position; a run of which only boots are known does not end one."""
    lines = [
        line(FIRST, {METRIC: figure(7000.0)}),
        line("20260228T020000Z-nightly-0002", {METRIC: figure(7000.0, limit=20000)}),
        line("20260228T030000Z-nightly-0003", {METRIC: {"value": 7000.0, "outcome": "no-baseline"}}),
    ]
    past = history_of(Boots(SECOND, BOOTS))
    points = only(trend(line(LATEST, {METRIC: figure(7000.0)}), lines=lines, history=past))["points"]
    assert points["limit"] == [[0, 25000], [2, 20000], [3, None], [4, 25000]]
    assert points["outcome"] == "p-pbp"


def test_a_metric_that_vanished_ends() -> None:
    """A series has no point in a run that measured its case without it, and is not measured now."""
    other = "publish_failed_ratio"
    before = line(FIRST, {METRIC: figure(7000.0), other: figure(0.0)})
    gone, kept = sorted(
        trend(line(LATEST, {METRIC: figure(7000.0)}), lines=[before])["series"],
        key=lambda series: series["now"] is not None,
    )
    assert (gone["metric"], gone["points"]["run"], gone["now"]) == (other, [0], None)
    assert (kept["points"]["run"], kept["now"]) == ([0, 1], 1)


def test_a_retired_board_stays_without_a_now() -> None:
    """A board that the reported run did not measure keeps its points, and has nothing that is called now."""
    before = line(FIRST, {METRIC: figure(7000.0)}, board="e9")
    data = trend(line(LATEST, {METRIC: figure(7000.0)}), lines=[before])
    assert [(one["board"], one["now"]) for one in data["series"]] == [("e1", 0), ("e9", None)]


def test_a_killed_run_without_cases_is_there_and_draws_nothing() -> None:
    """A reported run that measured nothing is among the runs; another one that did not is left out."""
    data = trend(line(LATEST), lines=[line(FIRST), line(SECOND, {METRIC: figure(7000.0)})])
    assert data["runs"]["id"] == [SECOND, LATEST]
    assert data["runs"]["reported"] == [0, 1]
    assert only(data)["now"] is None


def test_a_pull_request_is_shown_against_nights() -> None:
    """Of a pull request the nights up to it are shown; neither local runs nor what came later."""
    lines = [
        line(FIRST, {METRIC: figure(7000.0)}),
        line(SECOND, {METRIC: figure(1.0)}, trigger="local"),
        line("20260401T010000Z-nightly-0009", {METRIC: figure(2.0)}),
    ]
    past = history_of(
        Boots(SECOND, BOOTS, trigger="local"),
        Boots("20260228T040000Z-nightly-0004", BOOTS),
        Boots("20260402T010000Z-nightly-0009", BOOTS),
    )
    own = line("20260301T120000Z-pr-0001", {METRIC: figure(7100.0)}, trigger="pr")
    data = trend(own, lines=lines, history=past)
    assert data["runs"]["id"] == [FIRST, "20260228T040000Z-nightly-0004", own["run_id"]]
    assert only(data)["points"]["value"] == [7000, 7005, 7100]


def test_kinds_racks_and_profiles_never_share_a_series() -> None:
    """The same board, case and metric of another kind, rack or air profile is another series."""
    lines = [
        line("20260226T010000Z-nightly-0001", {METRIC: figure(1.0)}),
        line("20260226T020000Z-nightly-0002", {METRIC: figure(2.0)}, kind="virtual", profile="lab"),
        line("20260226T030000Z-nightly-0003", {METRIC: figure(3.0)}, kind="virtual", profile="congested"),
        line("20260226T040000Z-nightly-0004", {METRIC: figure(4.0)}, rack="north"),
    ]
    past = history_of(Boots(FIRST, [5.0] * 6, kind="virtual", conditions={"air": "lab"}))
    data = trend(line(LATEST), lines=lines, history=past)
    found = {(one["rack"], one["kind"], one["profile"]): one["points"]["value"] for one in data["series"]}
    assert found == {
        ("lab", "physical", ""): [1],
        ("lab", "virtual", "lab"): [2, 5],
        ("lab", "virtual", "congested"): [3],
        ("north", "physical", ""): [4],
    }
    assert data["remark"] == "virtual figures"


def test_simulated_noise_is_labelled() -> None:
    """A series of which some figures were measured under simulated noise says so; others do not."""
    noisy = Boots(FIRST, BOOTS, kind="virtual", conditions={"noise_simulated": True})
    data = trend(line(LATEST), history=history_of(noisy, Boots(SECOND, BOOTS, board="e2")))
    assert [(one["board"], one["simulated"]) for one in data["series"]] == [("e1", "noise"), ("e2", "")]


def test_several_reported_runs_of_one_night_are_one_trend() -> None:
    """Racks of one night: each series has the newest reported run that measured it for its now."""
    earlier, later = "20260301T010000Z-nightly-000a", "20260301T020000Z-nightly-000b"
    data = trend(
        line(earlier, {METRIC: figure(1.0)}),
        line(later, {METRIC: figure(2.0)}),
        line("20260301T030000Z-nightly-000c", {METRIC: figure(3.0)}, rack="north"),
    )
    assert data["runs"]["reported"] == [1, 1, 1]
    assert [(one["rack"], one["now"], one["points"]["value"]) for one in data["series"]] == [
        ("lab", 1, [1, 2]),
        ("north", 0, [3]),
    ]


def test_two_histories_in_one_are_in_order_of_time() -> None:
    """Runs of two racks are merged by when they started."""
    past = history_of(
        Boots("20260228T010000Z-nightly-0001", BOOTS, rack="south"),
        Boots("20260227T010000Z-nightly-0002", BOOTS, rack="north"),
    )
    data = trend(
        line(LATEST), lines=[line("20260227T120000Z-nightly-0003", {METRIC: figure(1.0)})], history=past
    )
    assert data["runs"]["rack"] == ["north", "lab", "south", "lab"]


def test_the_newest_runs_of_each_suite_on_a_rack_are_drawn() -> None:
    """What is measured often pushes no other rack and no other suite out; what is left out is counted."""
    often = [line(f"202602{day:02}T010000Z-nightly-0001", {METRIC: figure(1.0)}) for day in range(1, 21)]
    seldom = [line("20260101T010000Z-nightly-0001", {METRIC: figure(1.0)}, rack="north")]
    beside = [line("20260101T010000Z-nightly-0002", {METRIC: figure(1.0)}, suite="nightly and echo")]
    data = trend(line(LATEST, {METRIC: figure(1.0)}), lines=[*seldom, *beside, *often], most=5)
    assert data["runs"]["rack"].count("lab") == 5 + 1
    assert data["runs"]["rack"].count("north") == 1
    assert data["dropped_runs"] == 16


def test_the_same_input_gives_the_same_data() -> None:
    """The order of lines, and of what a history holds, does not matter."""
    sessions = [Boots(f"2026022{n}T010000Z-nightly-0001", BOOTS, board=f"e{n}") for n in range(1, 5)]
    lines = [line(one.run_id, {METRIC: figure(1.0)}, board=one.board) for one in sessions]
    found = [
        trend(line(LATEST), lines=own, history=history_of(*order))
        for own, order in ((lines, sessions), (lines[::-1], sessions[::-1]))
    ]
    assert found[0] == found[1]


def test_a_step_of_the_firmware_is_an_event_on_its_series() -> None:
    """The event names its run and series, the change its place between two levels, and the levels differ by
    as much as was planted. Title and author of its commit are those that a run of the commit noted; the diff
    is on the server that it ran on. A banner has the changes of its own rack: what is open on another one, or
    in the nights beside a pull request, is not that run's to say."""
    past = nights(40, 25, 1.2)
    url = "https://git.example:8443/team/node/actions/runs/77"
    bad = line(past[25].run_id, commit=past[25].commit, url=url, title="Send at once", author="A. Author")
    data = trend(line(LATEST), lines=[bad], history=history_of(*past))
    series = only(data)
    (event,) = data["events"]
    (change,) = series["changes"]
    assert (event["cause"], event["series"], change["event"]) == ("firmware", [0], 0)
    assert event["run"] == change["position"] == 25
    assert "series_ids" not in event
    before, after = series["levels"]
    assert (before["from"], before["to"], after["from"], after["to"]) == (0, 24, 25, 39)
    assert (change["before"], change["after"]) == (before["value"], after["value"])
    assert after["value"] / before["value"] == pytest.approx(1.2, rel=0.02)
    assert before["low"] < before["value"] < before["high"] < after["low"]
    assert change["low"] < change["change"] < change["high"]
    assert change["change"] == pytest.approx(0.2, abs=0.02)
    diff = f"https://git.example:8443/team/node/compare/{past[24].commit}...{past[25].commit}"
    assert event["commit"] == {"title": "Send at once", "author": "A. Author", "count": 0, "diff": diff}
    assert (event["state"], event["open_nights"], event["picture"]) == ("open", 15, {"series": 0})
    night = run_info(trigger="nightly", rack="lab")
    (words,) = changes_beside(data["events"], night)
    assert words.startswith("firmware: publish latency p95 2")
    assert words.endswith(", open 15 nights")
    others: list[dict[str, str]] = [{"rack": "north"}, {"trigger": "pr"}, {"product": "node"}]
    assert [changes_beside(data["events"], replace_info(night, **other)) for other in others] == [[], [], []]


def test_an_event_is_shown_by_what_a_person_can_read() -> None:
    """Of the series that moved, a blocking p95 stands for the event, though a tail's mean moved as surely."""
    tail = [dataclasses.replace(one, metric="publish_latency_tail5_us") for one in nights(40, 25, 1.2)]
    first, second = history_of(*tail), history_of(*nights(40, 25, 1.2))
    data = trend(line(LATEST), history=History(first.sessions, {**first.entries, **second.entries}))
    (event,) = data["events"]
    assert {data["series"][place]["stat"] for place in event["series"]} == {"tail5", "p95"}
    assert data["series"][event["picture"]["series"]]["stat"] == "p95"


def test_a_commit_that_no_run_noted_is_asked_of_the_repository(tmp_path: Path) -> None:
    """Git knows title, author and number; of a stranger's address no link is made."""
    shas = []
    git(tmp_path, "init", "-q")
    for title in ("First", "Second", "Wait\tbefore \x1b[31msending"):
        git(tmp_path, *WHO, "commit", "-q", "--allow-empty", "-m", title)
        shas.append(git(tmp_path, "rev-parse", "HEAD"))
    stranger = line(LATEST, commit=shas[2], url="javascript:1/actions/runs/2")
    (run,), _ = runs_of([stranger], History(), [LATEST], most=9)
    found = commit_json(shas[0], shas[2], [run], tmp_path)
    assert found == {"title": "Wait before sending", "author": "A. Author", "count": 2, "diff": ""}
    nothing = {"title": "", "author": "", "count": 0, "diff": ""}
    assert commit_json("f" * 40, "e" * 40, [], tmp_path) == nothing
    assert commit_json("", "", [], None) == nothing


def test_hostile_titles_stay_in_one_short_line() -> None:
    """A line of a fetched history is foreign: its title can neither colour, break nor flood a page."""
    title = "Send \x1b[31mat\x1b[0m once\n\n# PASS" + "\u202e" + "x" * 5000
    (found,), _ = runs_of([line(LATEST, title=title, author={"no": "text"})], History(), [LATEST], most=9)
    assert found.title.startswith("Send at once # PASS x")
    assert len(found.title) == 200
    assert "\n" not in found.title + found.author
    assert len(found.author) <= 80


def test_the_commits_of_events_are_those_that_runs_noted() -> None:
    """`hil changes` names them by the history's runs; where none noted a title, what git knows is all."""
    found = survey(history_of(*nights(40, 25, 1.2)), {})
    events = events_of(found, thresholds={})
    (event,) = events
    figures = {METRIC: figure(8400)}
    noted = line(LATEST, figures, commit=event.bad, title="Send at once", author="A. Author")
    assert commits_of(events, [noted])[event.good, event.bad]["title"] == "Send at once"
    assert commits_of(events, [])[event.good, event.bad]["title"] == ""


def test_nights_without_a_step_have_one_level() -> None:
    """Nothing happened: one level over all nights, no change, no event. Of runs of another purpose there is
    no level: change points come from nights alone."""
    data = trend(line(LATEST), history=history_of(*nights(30, 30, 1.0)))
    series = only(data)
    assert (data["events"], series["changes"], len(series["levels"])) == ([], [], 1)
    local = [Boots(one.run_id, one.candidate, trigger="local") for one in nights(30, 15, 1.3)]
    series = only(trend(line(LATEST, trigger="local"), history=history_of(*local)))
    assert (series["levels"], series["changes"], len(series["points"]["run"])) == ([], [], 30)


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.0, "0"), (123456.0, "123460"), (0.000123456, "0.00012346"), (-2.5, "-2.5"), (7000.04, "7000")],
)
def test_numbers_have_five_digits(value: float, written: str) -> None:
    """Five significant digits, whole numbers without a point; NaN and what is infinite are none."""
    assert repr(numbers.tidy(value)) == written
    assert numbers.tidy_all([math.nan, math.inf, -math.inf, None]) == [None] * 4


def test_a_series_is_named_as_everywhere() -> None:
    """The id is that of hil.model, whichever kind and profile the series is of."""
    names = [
        one["id"]
        for one in trend(
            line(LATEST, {METRIC: figure(1.0)}), lines=[line(FIRST, {METRIC: figure(1.0)}, kind="virtual")]
        )["series"]
    ]
    assert names == list(itertools.repeat(f"lab/e1/{CASE}/{METRIC}", 2))


def test_of_very_many_series_what_broke_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that could not open helps nobody: beyond a number of series what broke stays, and a note counts
    the others."""
    monkeypatch.setattr(choosing, "MOST_SERIES", 1)
    metrics = {"publish_latency_p50_us": figure(3000), METRIC: figure(31_000, outcome="regressed")}
    data = trend(line(LATEST, metrics))
    assert [series["metric"] for series in data["series"]] == [METRIC]
    assert any(note.startswith("1 of 2 series") for note in data["notes"])
