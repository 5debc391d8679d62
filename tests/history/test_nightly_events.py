# SPDX-License-Identifier: Apache-2.0
"""Events: which change points belong together, whose they are, and how they are told."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from otava.change_point_divisive.base import CandidateChangePoint
from otava.change_point_divisive.detector import ChangePointDetector

from hil.base.paths import PROJECT_ROOT
from hil.cli.app import run_command
from hil.history.nightly.change_points import Changed
from hil.history.nightly.divisive import FIRST_PASS
from hil.history.nightly.event_conditions import short, told_by
from hil.history.nightly.event_words import HEADLINE_MAX, change_word, percent
from hil.history.nightly.events import NightEvent, events_of
from hil.history.nightly.nights import NightReader, nights_of
from hil.history.nightly.splitting import Distances, StudentsTest, _end
from hil.history.nightly.survey import NightFinding, Survey, survey
from hil.metrics.sessions import History
from hil.model import Scalar
from hil.thresholds import load_all
from tests.history.events_rig import METRICS, PUBLISH, Effect, Rack, commit_of, planted
from tests.history.nights_rig import REFERENCE, SERIES, Air, NightOf, make_history, simulate
from tests.history.saved import save
from tests.reports.plain_nights import plain_nights

CALM = Air(session=0.008, boot=0.02, sample=0.015, bad_nights=0.0, bad_boots=0.0)
BENCHES = load_all(PROJECT_ROOT / "thresholds")


def since(night: int, size: float, *boards: str, metric: str = "") -> Effect:
    """Return a step by ``size`` (0.1 is ten per cent) on some boards or all, of metrics that begin so."""

    def effect(n: int, board: str, name: str) -> float:
        here = n >= night and (not boards or board in boards) and name.startswith(metric)
        return math.log1p(size) if here else 0.0

    return effect


def both(*effects: Effect) -> Effect:
    return lambda n, board, name: sum(effect(n, board, name) for effect in effects)


def judged(*racks: Rack, nights: int = 40, metrics: Sequence[str] = METRICS) -> Survey:
    return survey(planted(*racks, nights=nights, metrics=metrics, air=CALM), BENCHES)


def told(*racks: Rack, nights: int = 40, metrics: Sequence[str] = METRICS) -> list[NightEvent]:
    return list(events_of(judged(*racks, nights=nights, metrics=metrics), thresholds=BENCHES))


def test_one_commit_is_one_event() -> None:
    """A step of the firmware over cases, statistics and boards is told once, with its commits. Its JSON has
    its keys in order: readers of trend.json and of `hil changes --json` rely on them."""
    (event,) = told(Rack(firmware=since(20, 0.12)))
    assert (event.cause, event.effect, event.blocking) == ("firmware", "worse", True)
    assert (event.good, event.bad) == (commit_of(19), commit_of(20))
    assert event.boards == ("lab/e1", "lab/e2", "lab/e3", "lab/e4")
    assert len(event.series_ids) == 4 * len(PUBLISH) * len(METRICS)
    assert event.night.isoformat() == "2026-01-20"
    assert event.low < 0.12 < event.high
    size = percent(event.change)
    assert re.match(r"publish latency p\d\d .* lab/e\d: ", event.sentence)
    for word in ("p50, p95, p99", f" {size} slower", "4 boards", commit_of(20)[:7]):
        assert word in event.headline
    assert event.bisect.split()[5:7] == [commit_of(20)[:12], commit_of(19)[:12]]
    keys = "cause effect racks boards night nights state ended open_nights change low high of_ratio good bad"
    keys += " conditions headline sentence bisect note series_ids"
    assert list(event.to_json()) == keys.split()
    assert json.loads(json.dumps(event.to_json())) == event.to_json()


def test_a_headline_names_what_moved_or_counts_it() -> None:
    """Where p99 alone moved, it says p99; where no quantity dominates, it counts series of the bench."""
    (event,) = told(Rack(firmware=since(20, 0.15, metric="publish_latency_p99")))
    assert event.headline.startswith("Firmware: publish latency p99 1")
    metrics = ("publish_latency_p50_us", "publish_call_p95_us", "serialise_p95_us")
    (event,) = told(Rack(firmware=since(20, 0.12)), metrics=metrics)
    assert "24 series of publish" in event.headline


def test_a_metric_that_the_thresholds_do_not_know_goes_with_the_rest() -> None:
    """What got slower by the same commit is one event, also where nobody said that less is better."""
    (event,) = told(Rack(firmware=since(20, 0.12)), metrics=(*METRICS, "forgotten_p50_us"))
    assert event.effect == "worse"
    assert event.telling.effect == "worse"
    assert any("forgotten" in series_id for series_id in event.series_ids)


def test_racks_that_show_one_commit_are_one_event() -> None:
    """The same step on two racks is told once, with both; virtual boards are called so."""
    step = since(20, 0.12)
    (event,) = told(Rack(firmware=step), Rack("attic", ("v1", "v2"), firmware=step, kind="virtual"))
    assert event.racks == ("attic", "lab")
    assert "on 6 boards (2 virtual)" in event.headline
    assert event.telling.kind == "physical"  # no virtual figure is quoted where there is a real one


def test_steps_of_different_commits_are_different_events() -> None:
    """Two commits in neighbouring nights, each of which slows something down, are two events."""
    step = both(since(20, 0.15, metric="publish_latency"), since(21, 0.15, metric="publish_call"))
    metrics = (*METRICS, "publish_call_p95_us")
    events = told(Rack(firmware=step), metrics=metrics)
    assert sorted((event.good, event.bad) for event in events) == sorted(
        [(commit_of(19), commit_of(20)), (commit_of(20), commit_of(21))]
    )
    assert {event.headline.split(" 1")[0] for event in events} == {
        "Firmware: publish latency p50, p95, p99",
        "Firmware: publish call p95",
    }


def test_two_steps_of_one_series_are_two_events() -> None:
    """Worse twice, some nights apart: each is told, whatever their ranges."""
    events = told(Rack(firmware=both(since(14, 0.2), since(28, 0.2))))
    assert [event.bad for event in events] == [commit_of(28), commit_of(14)]


def test_an_access_point_is_named() -> None:
    """A step that the reference shows too is the environment's; what changed is said in words."""
    rack = Rack(
        environment=since(20, 0.15), conditions=lambda n: {"channel": 6 if n < 20 else 11, "kernel": "6.1"}
    )
    (event,) = told(rack)
    assert (event.cause, event.effect, event.bisect, event.bad) == ("environment", "worse", "", "")
    assert re.match("Access point: channel 6 → 11, .* p50, p95, p99 on 4 ", event.headline)
    assert event.conditions[0].endswith("channel: 6 → 11 on 2026-01-20")


def test_an_environment_that_nothing_explains_is_told_by_its_rack() -> None:
    """Without a recorded change the rack is named, and it is said that nothing was recorded."""
    (event,) = told(Rack(environment=since(20, 0.15)))
    assert event.headline.startswith("Environment of lab: ")
    assert (event.conditions, "Nothing that" in event.sentence) == ((), True)


def test_a_board_that_moves_alone_is_to_blame() -> None:
    """Its neighbours measured the same in these nights and did not move."""
    (event,) = told(Rack(environment=since(20, 0.12, "e3")))
    assert (event.cause, event.boards) == ("board", ("lab/e3",))
    assert event.headline.startswith("Board lab/e3: publish latency p50, p95, p99 1")
    assert "slower, its neighbours" in event.headline


@pytest.mark.parametrize(
    "rack",
    [
        Rack(boards=("e3",), environment=since(20, 0.12)),
        Rack(environment=since(20, 0.12, "e3", "e4")),
        Rack(environment=since(20, 0.12, "e3"), present=lambda n, board: board == "e3" or n < 18),
        Rack(environment=since(20, 0.12, "e3"), present=lambda n, board: board == "e3" or n > 20),
    ],
    ids=["no neighbour", "a neighbour moved too", "the neighbours left", "the neighbours came later"],
)
def test_no_board_is_blamed_without_a_neighbour_that_stayed(rack: Rack) -> None:
    """Where nobody can say that the others stayed, it is the rack's environment."""
    events = told(rack)
    assert events
    assert {event.cause for event in events} == {"environment"}


def test_a_board_that_left_is_no_witness_but_the_others_are() -> None:
    """One neighbour went away; the two that stayed are enough."""
    (event,) = told(Rack(environment=since(20, 0.12, "e3"), present=lambda n, board: board != "e4" or n < 15))
    assert event.cause == "board"


@pytest.mark.parametrize("cause", ["firmware", "environment"])
def test_both_signs_of_one_quantity_are_one_event(cause: str) -> None:
    """What makes p50 faster and p99 slower, be it a commit or the rack, is one thing for better and worse."""
    step = both(since(20, -0.15, metric="publish_latency_p50"), since(20, 0.2, metric="publish_latency_p99"))
    (event,) = told(dataclasses.replace(Rack(), **{cause: step}))  # type: ignore[arg-type]
    assert (event.cause, event.effect, event.telling.effect) == (cause, "mixed", "worse")
    assert " up to 2" in event.headline


def test_what_matters_most_comes_first() -> None:
    """Firmware for the worse, board, environment, and in the end what became better; four causes at once."""
    rack = Rack(
        firmware=both(since(50, 0.12, metric="publish_latency"), since(25, -0.2, metric="serialise")),
        environment=both(since(15, 0.15, metric="publish_latency"), since(33, 0.1, "e3")),
        conditions=lambda n: {"channel": 6 if n < 15 else 11},
    )
    events = told(rack, nights=64, metrics=(*METRICS, "serialise_p95_us"))
    assert [(event.cause, event.effect) for event in events] == [
        ("firmware", "worse"),
        ("board", "worse"),
        ("environment", "worse"),
        ("firmware", "better"),
    ]
    assert "serialise p95" in events[-1].headline
    assert "faster" in events[-1].headline
    assert [bool(event.bisect) for event in events] == [True, False, False, False]  # the gate fails no gain


def test_blocking_metrics_come_before_advice() -> None:
    """A larger step of a metric that only advises stands behind a smaller one that can fail a run."""
    step = both(since(15, 0.1, metric="publish_latency"), since(28, 0.4, metric="serialise"))
    first, second = told(Rack(firmware=step), metrics=(*METRICS, "serialise_p95_us"))
    assert (first.blocking, second.blocking) == (True, False)
    assert second.change > first.change


@pytest.mark.slow
def test_every_finding_is_in_one_event() -> None:
    """Nothing is lost and nothing is told twice, in noise and with all that happens at once."""
    firmware = both(since(20, 0.1), since(23, -0.05, "e2"), since(40, 0.3, metric="publish_latency_p9"))
    rack = Rack(firmware=firmware, environment=both(since(22, 0.2), since(41, 0.1, "e1")))
    for seed in range(4):
        found = survey(planted(rack, nights=56, seed=seed), BENCHES)
        events = events_of(found, thresholds=BENCHES)
        inside = [finding for event in events for finding in event.findings]
        assert len(inside) == len(found.findings) > 0
        assert {id(finding) for finding in inside} == {id(finding) for finding in found.findings}
        assert all(len(set(event.series_ids)) == len(event.series_ids) for event in events)
        assert all(len(event.headline) <= HEADLINE_MAX for event in events)


@pytest.mark.slow
def test_a_regression_in_noise_is_one_event_in_most_seeds() -> None:
    """Typical noise moves the night of some series; the event and its commit stay one."""
    alone = 0
    for seed in range(8):
        history = planted(Rack(firmware=since(40, 0.15)), seed=seed, air=Air())
        events = events_of(survey(history, BENCHES), thresholds=BENCHES)
        bad = [event.bad for event in events if (event.cause, event.effect) == ("firmware", "worse")]
        alone += bad == [commit_of(40)]
    assert alone >= 6


def test_noise_alone_is_no_event_in_most_seeds() -> None:
    """Typical noise over 40 nights of eight series: most racks have nothing to tell."""
    quiet = 0
    for seed in range(12):
        history = planted(Rack(boards=("e1", "e2")), nights=40, seed=seed, metrics=METRICS[:2], air=Air())
        quiet += not events_of(survey(history, BENCHES), thresholds=BENCHES)
    assert quiet >= 9


def test_nights_without_a_reference_blame_nobody() -> None:
    """The event is unclear, and its note says why."""
    (event,) = told(Rack(environment=since(20, 0.2), references=lambda _n: False))
    assert event.cause == "unclear"
    assert event.headline.startswith("Unclear: publish latency ")
    assert "without a reference" in event.note


def test_an_event_of_simulated_noise_says_so() -> None:
    """No simulated figure without the word: in the sentence, and where kinds mix in the headline too."""
    rack = Rack(
        boards=("v1", "v2"),
        kind="virtual",
        firmware=since(20, 0.2),
        conditions=lambda _n: {"noise_simulated": True},
    )
    (event,) = told(rack)
    assert "on 2 boards since" in event.headline  # the page says once that all of them are virtual
    assert "(virtual, simulated noise)" in event.sentence
    (event,) = told(rack, Rack(name="real", boards=("e1",)))
    assert "2 virtual boards (simulated noise)" in event.headline
    (event,) = told(dataclasses.replace(rack, boards=("v1",)), Rack(name="real", boards=("e1",)))
    assert "lab/v1 (virtual, simulated noise)" in event.headline


def finding_with(*conditions: tuple[str, Scalar, Scalar]) -> NightFinding:
    """Return a step beside which conditions changed: key, old and new value."""
    (found, *_) = judged(Rack(boards=("e1",), environment=since(20, 0.3))).findings
    changed = tuple(Changed(*one, datetime.date(2026, 1, 20)) for one in conditions)
    return dataclasses.replace(found, point=dataclasses.replace(found.point, conditions=changed))


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ((("e1.channel", 6, 11), ("e1.kernel", "6.1", "6.8")), "Access point: channel 6 → 11"),
        ((("e1.kernel", "6.1", "6.8"),), "Host: kernel 6.1 → 6.8"),
        ((("e1.broker", "2.0.18", "2.0.20"),), "Broker: version 2.0.18 → 2.0.20"),
        ((("rack.a.e1.ssid", "a", "b → c"),), "Access point: SSID a → b → c"),
    ],
)
def test_conditions_are_told_in_words(conditions: tuple[tuple[str, Scalar, Scalar], ...], words: str) -> None:
    """The first of those that explain most is told."""
    told_one = told_by([finding_with(*conditions)])
    assert told_one is not None
    assert f"{told_one.what}: {told_one.text}" == words


def test_conditions_that_tell_nothing_are_passed_over() -> None:
    """Unknown keys, odd texts, and what only few of the series saw change name no cause."""
    assert told_by([finding_with(("e1.mood", "good", "bad"), ("", None, None))]) is None
    few = [finding_with(("e1.channel", 6, 11)), *[finding_with()] * 3]
    assert told_by(few) is None
    differ = [finding_with((f"e{n}.bssid", f"#{n}", f"#{n + 1}")) for n in range(2)]
    found = told_by(differ)
    assert found is not None
    assert found.text == "BSSID changed"


def test_what_others_wrote_is_one_short_line() -> None:
    """Line ends, control characters and long texts do not get into a headline."""
    assert short("a\n\x1b[31mb\t c") == "a [31mb c"
    assert short("x" * 50) == "x" * 19 + "…"
    bad = finding_with(("e1.ssid", f"{'<b>' * 40}\n", "x" * 200))
    (event,) = events_of(Survey((bad,), 1, 40, {}), thresholds=BENCHES)
    assert len(event.headline) <= HEADLINE_MAX
    assert "\n" not in event.headline


def test_long_names_fit_into_a_headline() -> None:
    """Racks and boards of any length: never more than the limit, and the word virtual stays where it must."""
    rack = Rack("r" * 60, ("b" * 60,), kind="virtual", firmware=since(20, 0.2))
    (event,) = told(rack, Rack(name="real", boards=("e1",)))
    assert len(event.headline) <= HEADLINE_MAX
    assert "virtual" in event.headline


@pytest.mark.parametrize(
    ("metric", "direction", "change", "word"),
    [
        ("publish_latency_p99_us", "lower", 0.1, "slower"),
        ("publish_latency_p99_us", "lower", -0.1, "faster"),
        ("throughput_p50_mbps", "higher", 0.1, "higher"),
        ("throughput_p50_mbps", "higher", -0.1, "lower"),
        ("image_bytes", "lower", 0.1, "more"),
        ("messages_lost_ratio", "lower", 0.1, "worse"),
        ("sustained_min_percent", "higher", 0.1, "better"),
        ("publish_latency_p99_us", "", 0.1, "higher"),
        ("strange", "", -0.1, "lower"),
    ],
)
def test_words_fit_unit_and_direction(metric: str, direction: str, change: float, word: str) -> None:
    """Times are slower, rates lower, sizes more, the rest is worse or better."""
    assert change_word(metric, direction, change) == word  # type: ignore[arg-type]


def test_sizes_of_changes_have_two_digits() -> None:
    """Below ten percent one digit behind the point, above it none."""
    assert [percent(change) for change in (0.042, -0.1, 0.0996, 11.5)] == ["4.2 %", "10 %", "10 %", "1,150 %"]


Command = Callable[..., str]


@pytest.fixture
def hil_changes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """The command on a history; returns what it printed."""

    def start(history: History, *options: str) -> str:
        save(history, tmp_path)
        assert run_command(["changes", "--history", str(tmp_path), *options]) == 0
        return capsys.readouterr().out

    return start


@pytest.mark.slow
def test_the_command_tells_events_first(hil_changes: Command) -> None:
    """A line an event, beneath it the sentence and the command that narrows it down, then the series."""
    history = planted(Rack(firmware=since(20, 0.12)), nights=40, air=CALM)
    lines = hil_changes(history).splitlines()
    assert re.findall(r"\d+", lines[0]) == ["24", "40", "24", "1"]  # series, nights, change points, events
    assert lines[2].startswith("✗ Firmware: publish latency p50, p95, p99 1")
    assert lines[3].startswith("    publish latency p")
    assert lines[5].startswith("    git bisect start ")
    assert lines[7] == "Series"
    assert re.search(r" 4 older .* --series$", lines[-1])
    every = hil_changes(history, "--series")
    assert every.count("firmware, worse") == 24
    assert "older change points" not in every


def test_json_and_markdown_tell_events_too(hil_changes: Command) -> None:
    """The same headline; what a rack recorded does not become HTML."""
    rack = Rack(environment=since(20, 0.3), conditions=lambda n: {"ssid": "a" if n < 20 else "<img src=x>"})
    history = planted(rack, nights=40, air=CALM)
    (event,) = json.loads(hil_changes(history, "--json"))["events"]
    assert event["headline"].startswith("Access point: SSID a → <img src=x>")
    markdown = hil_changes(history, "--markdown")
    assert "- ✗ **Access point: SSID a → &#60;img src=x&#62;" in markdown
    assert "<img" not in markdown


def nights_with_everything(seed: int) -> list[NightOf]:
    """Return nights with two references, other rulers, other triggers, timeouts, and two runs a night."""
    rng = np.random.default_rng(seed)
    nights = simulate(rng, nights=24, boots=int(rng.integers(1, 8)), references=_two_references)
    for n in rng.choice(24, 8, replace=False):
        odd = {
            0: {"candidate": [math.inf, *nights[n].candidate]},
            1: {"trigger": "local"},
            2: {"dirty": True},
            3: {"ruler": "other"},
            4: {"candidate": [0.0] * 3},
            5: {"references": {}},
            6: {"conditions": {"b1.channel": n, "b2.channel": 3, "air": "x"}},
            7: {"references": {REFERENCE: [math.inf] * 3}},
        }[int(rng.integers(8))]
        nights[n] = dataclasses.replace(nights[n], **odd)  # type: ignore[arg-type]
    return nights


def _two_references(night: int) -> dict[str, float]:
    return {REFERENCE: 0.0, **({"reference-2": 0.1} if night % 3 else {})}


def twice_a_night(history: History) -> History:
    """Return a history in which every other session is a second run of the night before, of its commit."""
    sessions = list(history.sessions)
    for n in range(1, len(sessions), 2):
        before = sessions[n - 1]
        sessions[n] = dataclasses.replace(sessions[n], started_utc=before.started_utc, commit=before.commit)
    return dataclasses.replace(history, sessions=tuple(sessions))


@pytest.mark.parametrize("seed", range(12))
def test_nights_are_read_bit_for_bit_as_boot_by_boot(seed: int) -> None:
    """Slices and sorted lists give exactly the nights that masks over all boots give."""
    history = make_history(nights_with_everything(seed))
    for each in (history, twice_a_night(history)):
        expected = plain_nights(each, SERIES)
        assert nights_of(each, SERIES) == expected
        assert NightReader(each).nights(SERIES, 5) == expected[-5:]


class _Forgetful(Distances):
    """Works every part out anew, each time it is asked."""

    def get_candidate_change_point(self, interval: slice) -> CandidateChangePoint:
        return self._candidate(interval.start or 0, _end(interval.stop, len(self.series)))


@pytest.mark.parametrize("seed", range(6))
def test_what_is_known_of_a_part_is_what_it_would_be_anew(seed: int) -> None:
    """Steps, and the distances that led to them, are bit for bit those without the memory of parts."""
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 0.02, 90) + 0.2 * (np.arange(90) >= 30) - 0.1 * (np.arange(90) >= 60)
    test = StudentsTest(FIRST_PASS)
    detectors = [
        ChangePointDetector(significance_tester=test, calculator=of) for of in (Distances, _Forgetful)
    ]
    found = [detector.get_change_points(values) for detector in detectors]
    assert len(found[0]) >= 2
    assert [(one.index, one.qhat) for one in found[0]] == [(one.index, one.qhat) for one in found[1]]


@pytest.mark.parametrize(
    ("firmware", "environment", "ended", "open_nights", "nights"),
    [
        ((0.12, 0.0), 0.0, "", 40, 40),
        ((0.12, -0.10), 0.0, "2026-02-09", 20, 20),  # the first night without half of the step
        ((0.2, -0.06), 0.0, "", 40, 19),  # more than half of it is left
        ((0.12, 0.0), -0.2, "", 40, 40),  # beside the reference it is as slow as before
    ],
)
def test_an_event_is_open_until_it_is_taken_back(
    firmware: tuple[float, float], environment: float, ended: str, open_nights: int, nights: int
) -> None:
    """A step that later commits undo has ended; a rack that becomes faster takes no commit's step back."""
    step, back = firmware
    rack = Rack(firmware=both(since(20, step), since(40, back)), environment=since(40, environment))
    found = [one for one in told(rack, nights=60) if (one.cause, one.effect) == ("firmware", "worse")]
    (said,) = [event.to_json() for event in found]
    assert (said["state"], said["ended"]) == ("ended" if ended else "open", ended)
    assert (said["open_nights"], said["nights"]) == (open_nights, nights)
