# SPDX-License-Identifier: Apache-2.0
"""Thresholds files: everything wrong in them is found while reading, with file and line."""

from __future__ import annotations

import datetime
import itertools
import re
from collections import Counter
from pathlib import Path

import pytest

from hil import thresholds
from hil.base.errors import ConfigError
from hil.metrics.metric import Metric
from hil.model import KINDS, Scalar
from hil.run.plan.selection import select_cases
from hil.thresholds.limits import aging, most_specific, series_facts
from hil.thresholds.types import Thresholds
from tests.make_records import THRESHOLDS_ROOT

TODAY = datetime.date(2026, 11, 20)

EXAMPLE = """\
schema: 1
bench: echo
parameters:
  transport: {default: tcp, choices: [tcp, tls]}
  core: {default: none, choices: [none, 0, 1]}
  count: {default: 100, min: 1, max: 1000}
  timeout_ms: {default: 5000, min: 1, max: 60000}
outcome: {column: outcome, ok: 0, timeout: timeout_ms}
suites:
  quick:
    - {transport: tcp}
    - {transport: tls, core: [0, 1]}
metrics:
  latency_p95_us: {of: done_us - planned_us, statistic: p95, direction: lower, blocking: true}
  failed_ratio: {of: outcome, statistic: ratio, direction: lower, blocking: true}
limits:
  - where: {metric: latency_p95_us, kind: virtual}
    abs_max_ms: 25
    why: a round trip
    since: {date: 2026-11-20, commit: abc, board: virtual-1, n: 200}
  - where: {metric: latency_p95_us, kind: virtual, case: {transport: tls}}
    abs_max_ms: 30
    why: TLS
    since: {date: 2026-11-20}
    expires: 2026-12-24
suppressions:
  - where: {metric: latency_p95_us, board: virtual-3}
    reason: its link is bad
    issue: "#12"
    expires: 2026-11-30
"""


def load(tmp_path: Path, text: str = EXAMPLE, today: datetime.date = TODAY) -> Thresholds:
    (tmp_path / "thresholds").mkdir(exist_ok=True)
    (tmp_path / "thresholds" / "echo.yaml").write_text(text)
    return thresholds.load("echo", tmp_path / "thresholds", today=today)


def facts(transport: str = "tcp", kind: str = "virtual", board: str = "virtual-1") -> dict[str, Scalar]:
    return series_facts(
        "latency_p95_us",
        {"transport": transport},
        kind=kind,
        rack="virtual",
        target="virtual-esp32",
        board=board,
        air="lab",
    )


def test_a_time_says_by_which_clock_it_was_taken(tmp_path: Path) -> None:
    """One clock, or the two whose differences are subtracted; a metric may leave it open."""
    one = load(tmp_path, EXAMPLE.replace("statistic: p95,", "statistic: p95, clock: gptimer,"))
    two = load(tmp_path, EXAMPLE.replace("statistic: p95,", "statistic: p95, clock: [esp_timer, host],"))
    found = [each.metrics["latency_p95_us"].clock for each in (one, two, load(tmp_path))]
    assert found == ["gptimer", "esp_timer and host", ""]


def test_every_time_of_the_shipped_files_has_a_clock() -> None:
    """Nobody should have to guess what took a figure."""
    metrics = [
        metric for bench in thresholds.load_all(THRESHOLDS_ROOT).values() for metric in bench.metrics.values()
    ]
    times = [metric for metric in metrics if metric.unit.dimension == "time"]
    assert len(times) > 20
    assert [metric.source for metric in times if not metric.clocks] == []


def test_void_rows_have_an_outcome_of_their_own(tmp_path: Path) -> None:
    """Which outcome is void, and how many of them a metric bears, is in the file; 20 % where it is silent."""
    text = EXAMPLE.replace(
        "timeout: timeout_ms}", "timeout: timeout_ms, void: 2}\npolicy: {max_void_ratio: 0.5}"
    )
    read = load(tmp_path, text)
    outcome = read.metrics["latency_p95_us"].outcome
    assert (outcome.void if outcome else None) == 2
    assert (read.policy.max_void_ratio, load(tmp_path).policy.max_void_ratio) == (0.5, 0.2)


def test_a_bench_whose_rows_cannot_time_out_names_no_timeout(tmp_path: Path) -> None:
    """A time then says what becomes of rows that are not ok; a share of them needs nothing."""
    text = EXAMPLE.replace(", timeout: timeout_ms}", "}")
    left_out = text.replace("statistic: p95,", "statistic: p95, not_ok: left-out,")
    assert {
        metric.outcome.timeout_parameter
        for metric in load(tmp_path, left_out).metrics.values()
        if metric.outcome
    } == {""}
    with pytest.raises(ConfigError, match=r"echo\.yaml:14: 'latency_p95_us' counts rows .*left-out"):
        load(tmp_path, text)


def test_suites_are_cases_with_defaults_filled_in(tmp_path: Path) -> None:
    """A list stands for each of its values, choices are text, and the label names what is not default."""
    read = load(tmp_path)
    cases = read.cases("quick")
    assert [read.case_label(case.parameters) for case in cases] == [
        "defaults",
        "transport=tls,core=0",
        "transport=tls,core=1",
    ]
    assert cases[0].case_id == "echo/core=none,count=100,timeout_ms=5000,transport=tcp"


def test_what_says_what_is_measured_names_each_case(tmp_path: Path) -> None:
    """A parameter that is ``named`` stands in the label of the case where it is the default, too."""
    read = load(tmp_path, EXAMPLE.replace("choices: [tcp, tls]}", "choices: [tcp, tls], named: true}"))
    labels = [read.case_label(case.parameters) for case in read.cases("quick")]
    assert labels == ["transport=tcp", "transport=tls,core=0", "transport=tls,core=1"]


def test_an_unknown_suite_is_named_with_those_there_are(tmp_path: Path) -> None:
    """The nearest name is offered."""
    with pytest.raises(ConfigError, match=r"no suite 'quik'; did you mean 'quick'\? It has: quick"):
        load(tmp_path).cases("quik")


def test_a_case_is_checked_against_the_domains(tmp_path: Path) -> None:
    """Cases given by a person are checked as those of the file."""
    read = load(tmp_path)
    assert read.case({"transport": "tls"}).parameters["count"] == 100
    with pytest.raises(ConfigError, match="no parameter 'transprt'; did you mean 'transport'"):
        read.case({"transprt": "tls"})
    with pytest.raises(ConfigError, match="'count' of bench 'echo' is 0; expected an integer from 1 to 1000"):
        read.case({"count": 0})


def test_the_most_specific_limit_wins(tmp_path: Path) -> None:
    """TLS has its own limit; the unit of the key becomes the metric's; other kinds have none. A suppression
    is its board's alone."""
    read = load(tmp_path)
    found = [most_specific(read.limits, facts(transport=name)) for name in ("tcp", "tls")]
    assert [(one.value, one.source) for one in found if one] == [
        (25_000, "thresholds/echo.yaml:17"),
        (30_000, "thresholds/echo.yaml:21"),
    ]
    assert most_specific(read.limits, facts(kind="physical")) is None
    muted = [most_specific(read.suppressions, facts(board=board)) for board in ("virtual-3", "virtual-1")]
    assert [one is not None for one in muted] == [True, False]


@pytest.mark.parametrize(
    ("direction", "limit"),
    [("lower", "abs_max_ratio: 1"), ("lower", "abs_max_percent: 100"), ("higher", "abs_min_ratio: 0")],
)
def test_a_limit_that_cannot_be_broken_is_refused(tmp_path: Path, direction: str, limit: str) -> None:
    """It would be kept whatever is measured."""
    text = EXAMPLE.replace(
        "latency_p95_us, kind: virtual}\n    abs_max_ms: 25", f"failed_ratio}}\n    {limit}"
    )
    text = text.replace("statistic: ratio, direction: lower", f"statistic: ratio, direction: {direction}")
    key = limit.partition(":")[0]
    said = rf"echo\.yaml:18: '{limit}' judges nothing.*or '{key}: none' where there is no limit"
    with pytest.raises(ConfigError, match=said):
        load(tmp_path, text)


def test_what_may_be_negative_may_have_a_limit_of_zero(tmp_path: Path) -> None:
    """Only what lies round zero goes below it, and breaks a lower limit there."""
    text = EXAMPLE.replace("p95, direction: lower", "p95, direction: higher, scale: identity")
    text = text.replace("abs_max_ms", "abs_min_ms").replace("abs_min_ms: 25", "abs_min_ms: 0")
    assert load(tmp_path, text).limits[0].value == 0
    with pytest.raises(ConfigError, match="judges nothing"):
        load(tmp_path, text.replace(", scale: identity", ""))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("bench: echo", "bench: ecco", ":2: bench 'ecco'|'echo'"),
        ("schema: 1", "schema: 2", ":1: schema is 2|schema 1"),
        ("default: tcp", "default: udp", ":4: parameter 'transport' is 'udp'"),
        ("default: 100,", "default: 5000,", ":6: parameter 'count'|5000|1 to 1000"),
        ("timeout: timeout_ms", "timeout: timout_ms", ":8: unknown parameter 'timout_ms'|'timeout_ms'"),
        ("- {transport: tcp}", "- {transprt: tcp}", ":11: unknown parameter 'transprt'|'transport'"),
        ("- {transport: tcp}", "- {transport: udp}", ":11: parameter 'transport' is 'udp'"),
        ("- {transport: tcp}", "- {count: true}", ":11: parameter 'count'|True|integer"),
        ("core: [0, 1]", "core: [0, 0]", ":12: suite 'quick' holds a case twice"),
        ("latency_p95_us: {of", "latency_p95: {of", ":14: 'latency_p95'|unit"),
        ("latency_p95_us: {of", "latency_p95_bytes: {of", ":14: metric 'latency_p95_bytes' cannot be"),
        ("statistic: p95", "statistic: p95, clock: esptimer", ":14: unknown clock 'esptimer'; did you"),
        ("statistic: ratio", "statistic: ratio, clock: host", ":15: only a time has a clock"),
        ("ok: 0,", "ok: 0, void: 0,", ":8: a row whose outcome is 0"),
        ("statistic: p95", "statistic: p96", ":14: 'statistic'|'latency_p95_us'|'p96'"),
        ("of: outcome", "of: done_us", ":15: the statistic 'ratio'"),
        ("blocking: true}", "bloking: true}", ":14: unknown key 'bloking'|'blocking'"),
        ("abs_max_ms: 25", "abs_max_bytes: 25", ":18: 'abs_max_bytes' does not"),
        ("abs_max_ms: 25", "abs_max_bytes: none", ":18: 'abs_max_bytes' does not"),
        ("abs_max_ms: 25", "abs_max_ms: nothing", ":18: 'abs_max_ms'|'nothing'"),
        ("abs_max_ms: 25", "abs_max_ms: 25\n    each: true", ":19: 'latency_p95_us' is a p95"),
        ("abs_max_ms: 25", "abs_min_ms: 25", ":18: 'abs_min_ms' does not"),
        ("    abs_max_ms: 25\n", "", ":17: a limit has one value"),
        ("    why: a round trip\n", "", ":17: limit 1 has no 'why'"),
        ("metric: latency_p95_us, kind: virtual}", "kind: virtual}", ":17: 'where' names no metric"),
        ("kind: virtual, case", "kind: virtul, case", ":21: 'kind'|'virtul'; did"),
        ("case: {transport: tls}", "case: {transport: udp}", ":21: parameter 'transport' is 'udp'"),
        ("suppressions:", "supressions:", ":26: unknown key 'supressions'|'suppressions'"),
        ("kind: virtual}", "board: virtual-1}", ":17|thresholds/echo.yaml:21|both match"),
        ("statistic: p95", "ok: 3, statistic: p95", ":14: |only a ratio"),
    ],
)
def test_a_mistake_names_its_line(tmp_path: Path, old: str, new: str, expected: str) -> None:
    """Each mistake is a ConfigError that starts with file and line, of two limits of which neither is more
    specific with both: a board's and a transport's collide on TLS there, before anything is measured."""
    assert EXAMPLE.count(old) >= 1
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, EXAMPLE.replace(old, new, 1))
    for part in f"thresholds/echo.yaml{expected}".split("|"):
        assert part in str(caught.value)


def test_a_limit_outlives_its_day_and_a_suppression_does_not(tmp_path: Path) -> None:
    """Age alone ends no limit, and so no run; what was suppressed blocks again from the day after on."""
    last = load(tmp_path, today=datetime.date(2026, 11, 30))
    assert len(last.suppressions) == 1
    after = load(tmp_path, today=datetime.date(2027, 11, 30))
    assert (after.limits, after.suppressions) == (last.limits, ())


@pytest.mark.parametrize(
    ("today", "words"),
    [
        ("2026-10-24", ""),
        ("2026-10-25", " 2026-12-24 (in 60 days)"),
        ("2026-12-26", "echo.yaml:21 was set until 2026-12-24 (2 days ago)"),
    ],
)
def test_a_limit_is_to_be_looked_at_again(tmp_path: Path, today: str, words: str) -> None:
    """Sixty days before its day on, and after it, the run says which one and since when."""
    said = aging(load(tmp_path).limits, datetime.date.fromisoformat(today))
    assert (words in said) if words else said == ""


def test_limits_are_not_all_to_be_looked_at_on_one_day() -> None:
    """Each file of this checkout has a day of its own, sixteen days at least from the next one's."""
    files = thresholds.load_all(THRESHOLDS_ROOT).values()
    days = sorted({limit.expires for own in files for limit in own.limits if limit.expires})
    assert min(late - early for early, late in itertools.pairwise(days)) >= datetime.timedelta(14)
    assert all(len({limit.expires for limit in own.limits if not limit.is_none}) <= 1 for own in files)


def test_a_file_outside_the_project_is_named_by_its_path(tmp_path: Path) -> None:
    """Two folders of one name cannot be told apart by their last part."""
    (tmp_path / "echo.yaml").write_text(EXAMPLE.replace("schema: 1", "schema: 9"))
    with pytest.raises(ConfigError, match=f"^{re.escape(str(tmp_path))}/echo.yaml:1"):
        thresholds.load("echo", tmp_path, today=TODAY)


def test_a_third_limit_with_both_conditions_resolves_the_collision(tmp_path: Path) -> None:
    """What the error sentence advises works."""
    text = EXAMPLE.replace("kind: virtual}", "board: virtual-1}", 1).replace(
        "suppressions:",
        "  - where: {metric: latency_p95_us, kind: virtual, board: virtual-1, case: {transport: tls}}\n"
        "    abs_max_ms: 40\n    why: both\n    since: {date: 2026-11-20}\nsuppressions:",
    )
    limit = most_specific(load(tmp_path, text).limits, facts(transport="tls"))
    assert (limit.value if limit else None) == 40_000


def test_the_files_of_this_checkout_are_correct() -> None:
    """Every thresholds file reads, has the suites quick and nightly, and a limit for each blocking series."""
    for stem, read in thresholds.load_all(THRESHOLDS_ROOT).items():
        assert set(read.suites) >= {"quick", "nightly"}, stem
        for suite in read.suites.values():
            for case in suite:
                for metric in read.metrics_of(case.parameters):
                    where = series_facts(
                        metric.name,
                        case.parameters,
                        kind="virtual" if "virtual" in read.kinds else read.kinds[0],
                        rack="virtual",
                        target="virtual-esp32",
                        board="virtual-1",
                        air="lab",
                    )
                    assert not metric.blocking or most_specific(read.limits, where), (
                        case.case_id,
                        metric.name,
                    )


def words_of(bench: str, metric: Metric) -> str:
    """Return a metric's definition as a line of tests/thresholds/metrics.txt."""
    of = " ".join(f"{'+' if term.sign > 0 else '-'}{term.column}" for term in metric.terms)
    may_block = "blocking" if metric.blocking else "compared" if metric.compared else "shown"
    words = [bench, metric.name, metric.unit.name, metric.statistic, of, metric.scale, metric.direction]
    facts: dict[str, object] = {"per": metric.per, "weight": metric.weight}
    facts["clock"] = metric.clock.replace(" ", "-")
    facts |= {f"case.{key}": "|".join(map(str, values)) for key, values in metric.case.items()}
    facts |= {f"rows.{key}": value for key, value in metric.rows.items()}
    if rule := metric.outcome:
        facts["outcome"] = f"{rule.column}:{rule.ok}:{rule.timeout_parameter}:{rule.void}"
    own = [f"{key}={value}" for key, value in facts.items() if value != ""]
    return " ".join([*words, may_block, metric.not_ok, *own])


def test_a_metric_keeps_its_name_and_meaning() -> None:
    """History is kept under a metric's name, so what has one is not renamed or redefined unnoticed."""
    lines = (Path(__file__).parent / "metrics.txt").read_text().splitlines()
    read = thresholds.load_all(THRESHOLDS_ROOT).items()
    assert set(lines) <= {words_of(stem, metric) for stem, bench in read for metric in bench.metrics.values()}


def test_a_metric_may_be_for_several_values_of_a_parameter(tmp_path: Path) -> None:
    """``case`` holds a value or a list of them; a value that the parameter has not is refused."""
    text = EXAMPLE.replace("statistic: p95,", "statistic: p95, case: {core: [none, 1]},")
    metric = load(tmp_path, text).metrics["latency_p95_us"]
    assert [metric.applies_to({"core": core}) for core in ("none", "0", "1")] == [True, False, True]
    with pytest.raises(ConfigError, match="parameter 'core' is 2"):
        load(tmp_path, text.replace("[none, 1]", "[none, 2]"))


def test_a_list_of_statistics_is_a_metric_each(tmp_path: Path) -> None:
    """Each has its statistic in its name; ``blocking`` names those that may block, else all are alike."""
    listed = "latency_us: {of: done_us - planned_us, statistic: [p50, p95, p99.9], clock: gptimer, "
    single = "latency_p95_us: {of: done_us - planned_us, statistic: p95, "
    text = EXAMPLE.replace(single, listed)
    metrics = load(
        tmp_path, text.replace("blocking: true", "blocking: {p50: compared, p95: true}", 1)
    ).metrics
    assert [
        (name, each.statistic, each.blocking, each.compared, each.clock)
        for name, each in metrics.items()
        if name.startswith("latency")
    ] == [
        ("latency_p50_us", "p50", False, True, "gptimer"),
        ("latency_p95_us", "p95", True, True, "gptimer"),
        ("latency_p99_9_us", "p99.9", False, False, "gptimer"),
    ]
    assert all(metric.blocking for metric in load(tmp_path, text).metrics.values())


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("[p50, p95]", "[p50, p59]", "item 2 of 'statistic' in metric 'latency_us' is the text 'p59'; did"),
        ("[p50, p95]", "[p95, p95]", "a list of statistics names each statistic once"),
        ("[p50, p95]", "[]", "a list of statistics names each statistic once"),
        ("[p50, p95]", "[p95, ratio]", "a ratio must be the only statistic of its metric"),
        ("blocking: {p95: true}", "blocking: {p59: true}", "key 'p59' in 'blocking'; did you mean 'p"),
        ("blocking: {p95: true}", "blocking: {p95: ture}", "'p95' is 'ture'; .*; did you mean 'true'"),
        ("latency_us:", "latency:", "'latency' does not end with a unit"),
        (
            "  failed_ratio:",
            "  latency_p50_us: {of: a_us, statistic: p50, direction: lower, blocking: true}\n  failed_ratio:",
            r"metric 'latency_p50_us' exists already \(thresholds/echo.yaml:14\)",
        ),
    ],
)
def test_a_mistake_in_a_list_of_statistics_names_its_line(
    tmp_path: Path, old: str, new: str, expected: str
) -> None:
    """What cannot be a metric each is found while reading, as in an entry with one statistic."""
    text = EXAMPLE.replace("latency_p95_us: {", "latency_us: {").replace(
        "statistic: p95, direction: lower, blocking: true",
        "statistic: [p50, p95], direction: lower, blocking: {p95: true}",
    )
    assert text.count(old) == 1
    line = r"echo\.yaml:(14|15): .*"
    with pytest.raises(ConfigError, match=line + expected):
        load(tmp_path, text.replace(old, new))


def test_the_first_suite_shows_latency_throughput_jitter_and_a_loss() -> None:
    """What `make hil` measures is one or two cases of each; a message is lost on purpose."""
    cases = select_cases(thresholds.load_all(THRESHOLDS_ROOT), "first")
    counts = Counter(case.bench for case in cases)
    assert set(counts) == {"publish", "throughput", "jitter", "delivery"}
    assert max(counts.values()) <= 2
    assert [case.parameters["fault"] for case in cases if case.bench == "delivery"] == ["cut"]


def test_the_limits_of_this_checkout_say_where_they_come_from() -> None:
    """A measured limit names boards (a kind is none) and samples, any other n of 0; each has its last day."""
    for stem, read in thresholds.load_all(THRESHOLDS_ROOT).items():
        for limit in read.limits:
            if limit.since is None:
                assert limit.is_none, (stem, limit.source)
                continue
            assert limit.since.board not in KINDS, (stem, limit.source)
            assert bool(limit.since.board) == bool(limit.since.n), (stem, limit.source)
            assert limit.expires is not None, (stem, limit.source)
            assert limit.expires > limit.since.date, (stem, limit.source)


def test_a_ratio_may_be_of_a_column_of_its_own(tmp_path: Path) -> None:
    """With ``ok`` a ratio is the share of rows whose column holds another value."""
    own = EXAMPLE.replace("of: outcome, statistic: ratio", "of: owner, ok: 3, statistic: ratio")
    (rule,) = {
        (metric.outcome.column, metric.outcome.ok)
        for metric in load(tmp_path, own).metrics.values()
        if metric.statistic == "ratio" and metric.outcome
    }
    assert rule == ("owner", 3)


SHARE = (
    "  lost_ratio: {of: lost_count, per: sent_count, statistic: share, direction: lower, blocking: true}\n"
)


@pytest.mark.parametrize(
    ("key", "default", "text", "value", "wrong"),
    [
        ("alone", False, "true", True, "quiet"),
        ("kinds", KINDS, "[physical]", ("physical",), "[phisical]"),
        ("peer", "", "iperf", "iperf", "iperff"),
    ],
)
def test_a_file_says_what_its_bench_takes(
    tmp_path: Path, key: str, default: object, text: str, value: object, wrong: str
) -> None:
    """The rack alone, kinds of boards, a peer. Without the key the rack goes on with the rest, all kinds can,
    and none is needed; a word that is none is an error, with the nearest."""

    def with_key(text: str) -> Thresholds:
        return load(tmp_path, EXAMPLE.replace("bench: echo\n", f"bench: echo\n{key}: {text}\n"))

    assert (getattr(load(tmp_path), key), getattr(with_key(text), key)) == (default, value)
    with pytest.raises(ConfigError, match=rf"echo\.yaml:3: .*{wrong.strip('[]')}.*{text.strip('[]')}"):
        with_key(wrong)


def test_a_metric_may_be_for_some_cases_only(tmp_path: Path) -> None:
    """The cases that its parameters match have it, others do not; a wrong value is found on reading."""
    text = EXAMPLE.replace("statistic: ratio,", "statistic: ratio, case: {transport: tls},")
    read = load(tmp_path, text)
    names = {
        transport: [metric.name for metric in read.metrics_of({"transport": transport})]
        for transport in ("tcp", "tls")
    }
    assert names == {"tcp": ["latency_p95_us"], "tls": ["latency_p95_us", "failed_ratio"]}
    with pytest.raises(ConfigError, match=r"echo\.yaml:15: .*Choices: tcp, tls"):
        load(tmp_path, text.replace("case: {transport: tls},", "case: {transport: mtls},", 1))


def test_a_figure_of_the_board_is_exact(tmp_path: Path) -> None:
    """It has one value per boot, so no quantile of a boot's rows; the line is named where it is not exact."""
    heap = "  heap_min_bytes: {of: device.heap_min_bytes, statistic: min, direction: higher, blocking: false"
    text = EXAMPLE.replace("metrics:\n", f"metrics:\n{heap}, scale: exact}}\n")
    assert load(tmp_path, text).metrics["heap_min_bytes"].terms[0].is_of_device
    with pytest.raises(ConfigError, match=r"echo\.yaml:14: .*one value per boot.*add 'scale: exact'"):
        load(tmp_path, EXAMPLE.replace("metrics:\n", f"metrics:\n{heap}}}\n"))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (", per: sent_count", "", "statistic share, per: <column>"),
        ("statistic: share", "statistic: mean", "cannot be computed|only a share is of a column"),
        ("per: sent_count", "per: sent_us", "count.*time|time.*count"),
        ("of: lost_count", "of: lost_count - late_count", "one column by one column"),
        ("lost_ratio", "lost_count", "ratio.*count|count.*ratio"),
        ("statistic: share", "statistic: share, scale: exact", "not averaged: statistic min or max"),
    ],
)
def test_a_share_is_of_one_column_per_another(tmp_path: Path, old: str, new: str, expected: str) -> None:
    """What is no share of two columns of one unit names the line."""
    text = EXAMPLE.replace("metrics:\n", f"metrics:\n{SHARE}")
    assert load(tmp_path, text).metrics["lost_ratio"].per == "sent_count"
    with pytest.raises(ConfigError, match=rf"echo\.yaml:14: .*({expected})"):
        load(tmp_path, EXAMPLE.replace("metrics:\n", f"metrics:\n{SHARE.replace(old, new)}"))


def test_a_projects_file_stands_in_place_of_the_tools(tmp_path: Path) -> None:
    """Of a folder with two files, one bench is new and one has other limits; all others are the tool's."""
    (tmp_path / "own.yaml").write_text(EXAMPLE.replace("bench: echo", "bench: own"))
    (tmp_path / "echo.yaml").write_text(EXAMPLE)
    read = thresholds.load_project(tmp_path, today=TODAY)
    tools = thresholds.load_all(THRESHOLDS_ROOT, today=TODAY)
    assert read.keys() == {*tools, "own"}
    assert read["echo"] == thresholds.load("echo", tmp_path, today=TODAY) != tools["echo"]
    assert all(read[bench] == tools[bench] for bench in tools if bench != "echo")
    assert {path.name for path in thresholds.project_files(tmp_path / "none")} == {
        f"{bench}.yaml" for bench in tools
    }
