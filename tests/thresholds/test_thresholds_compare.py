# SPDX-License-Identifier: Apache-2.0
"""The rules of ``compare:`` and the policy of comparisons: every mistake names its line and the way out."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from hil import thresholds
from hil.base.errors import ConfigError
from hil.gate.pairs import may_block
from hil.model import Comparison, Scalar
from hil.run.plan.selection import select_cases
from hil.thresholds.limits import most_specific, series_facts
from hil.thresholds.types import Policy, Thresholds
from tests.make_records import THRESHOLDS_ROOT

TODAY = datetime.date(2026, 11, 20)

EXAMPLE = """\
schema: 1
bench: echo
parameters:
  transport: {default: tcp, choices: [tcp, tls]}
  timeout_ms: {default: 5000, min: 1, max: 60000}
outcome: {column: outcome, ok: 0, timeout: timeout_ms}
suites:
  quick: [{transport: [tcp, tls]}]
metrics:
  latency_p50_us: {of: done_us - planned_us, statistic: p50, direction: lower, blocking: compared}
  latency_p95_us: {of: done_us - planned_us, statistic: p95, direction: lower, blocking: true}
  latency_p99_us: {of: done_us - planned_us, statistic: p99, direction: lower, blocking: false}
  latency_max_us: {of: done_us - planned_us, statistic: max, direction: lower, blocking: compared}
  offset_p50_us: {of: skew_us, statistic: p50, direction: lower, blocking: compared, scale: identity}
  failed_ratio: {of: outcome, statistic: ratio, scale: count, direction: lower, blocking: true}
  lost_ratio: {of: lost_count, per: sent_count, statistic: share, direction: lower, blocking: true}
  image_bytes: {of: image_bytes, statistic: max, scale: exact, direction: lower, blocking: true}
policy:
  tolerance: 0.08
  min_effect: 0.02
compare:
  - where: {metric: latency_p50_us}
    why: the usual time
  - where: {metric: latency_p50_us, case: {transport: tls}}
    tolerance_percent: 15
    min_effect_ratio: 0.05
    why: TLS varies more
  - where: {metric: offset_p50_us, kind: virtual}
    tolerance_ms: 0.2
    min_effect_us: 50
    why: a clock's
  - where: {metric: failed_ratio}
    tolerance_percent: 2
    min_effect_ratio: 0.005
    why: losses
  - where: {metric: image_bytes}
    tolerance_kib: 4
    why: a page
"""


def load(tmp_path: Path, text: str = EXAMPLE) -> Thresholds:
    (tmp_path / "thresholds").mkdir(exist_ok=True)
    (tmp_path / "thresholds" / "echo.yaml").write_text(text)
    return thresholds.load("echo", tmp_path / "thresholds", today=TODAY)


def facts(metric: str, transport: str = "tcp", kind: str = "virtual") -> dict[str, Scalar]:
    return series_facts(
        metric, {"transport": transport}, kind=kind, rack="virtual", target="virtual-esp32", board="v1"
    )


@pytest.mark.parametrize(
    ("metric", "transport", "expected"),
    [
        ("latency_p50_us", "tcp", (0.08, 0.02)),  # the policy's
        ("latency_p50_us", "tls", (0.15, 0.05)),  # the more specific rule's
        ("offset_p50_us", "tcp", (200.0, 50.0)),  # in the metric's unit
        ("failed_ratio", "tcp", (0.02, 0.005)),
        ("image_bytes", "tcp", (4096.0, 4096.0)),  # of an exact figure what is tolerated is small
    ],
)
def test_a_rule_says_what_is_tolerated_on_the_metrics_scale(
    tmp_path: Path, metric: str, transport: str, expected: tuple[float, float]
) -> None:
    """Relative on the scale log, else converted to the metric's unit. Neither another metric nor another kind
    has the rule."""
    rules = load(tmp_path).compare
    rule = most_specific(rules, facts(metric, transport))
    assert most_specific(rules, facts("latency_p95_us")) is None
    assert most_specific(rules, facts("offset_p50_us", kind="physical")) is None
    assert rule is not None
    assert (rule.tolerance, rule.min_effect) == pytest.approx(expected)
    assert rule.source.startswith("thresholds/echo.yaml:")


def test_an_exact_figure_may_tolerate_a_share(tmp_path: Path) -> None:
    """Its key says which: a share of the base's figure, or the metric's own unit."""
    text = EXAMPLE.replace("    tolerance_kib: 4\n", "    tolerance_percent: 2\n    min_effect_permille: 5\n")
    share = most_specific(load(tmp_path, text).compare, facts("image_bytes"))
    own = most_specific(load(tmp_path).compare, facts("image_bytes"))
    assert share is not None
    assert own is not None
    assert (share.tolerance, share.min_effect, share.relative) == (0.02, 0.005, True)
    assert (own.tolerance, own.relative) == (4096, False)
    mixed = EXAMPLE.replace("    tolerance_kib: 4\n", "    tolerance_percent: 2\n    min_effect_bytes: 5\n")
    with pytest.raises(ConfigError, match=r"min_effect_bytes.*does not fit"):
        load(tmp_path, mixed)


def test_a_metric_may_block_by_comparison_alone(tmp_path: Path) -> None:
    """``compared`` leaves limits as they are: nothing blocks that is not compared."""
    metrics = load(tmp_path).metrics
    found = {name: (metrics[name].blocking, metrics[name].compared) for name in list(metrics)[:3]}
    assert found == {
        "latency_p50_us": (False, True),
        "latency_p95_us": (True, True),
        "latency_p99_us": (False, False),
    }


def test_the_policy_has_defaults_for_comparisons(tmp_path: Path) -> None:
    """A file that says nothing has those of the type; a small tolerance takes the smallest effect with it."""
    text = EXAMPLE.replace("policy:\n  tolerance: 0.08\n  min_effect: 0.02\n", "")
    assert load(tmp_path, text).policy == Policy()
    small = load(tmp_path, EXAMPLE.replace("  tolerance: 0.08\n  min_effect: 0.02\n", "  tolerance: 0.01\n"))
    assert (small.policy.tolerance, small.policy.min_effect) == (0.01, 0.01)
    text = EXAMPLE.replace("  min_effect: 0.02\n", "  beta: 0.1\n  max_boots: 12\n  blind_below: 3\n")
    policy = load(tmp_path, text).policy
    assert (policy.beta, policy.max_boots, policy.blind_below) == (0.1, 12, 3)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("blocking: compared}", "blocking: compred}", ":10: 'blocking' is 'compred'; expected true"),
        ("tolerance: 0.08", "tolerance: 8", ":19: 'tolerance' in 'policy'|'8'"),
        ("tolerance: 0.08", "tolerence: 0.08", ":19: unknown key 'tolerence'|'tolerance'"),
        ("min_effect: 0.02", "min_effect: 0.2", ":20: min_effect (0.2) is larger|(0.08)"),
        ("min_effect: 0.02", "beta: 0", ":20: 'beta' in 'policy'|'0'"),
        ("min_effect: 0.02", "max_boots: 3", ":20: 'max_boots' in 'policy'|'3'"),
        ("min_effect: 0.02", "blind_below: 99", ":20: 'blind_below' in 'policy'|'99'"),
        ("compare:", "compar:", ":21: unknown key 'compar'|'compare'"),
        ("{metric: latency_p50_us}", "{kind: virtual}", ":22: 'where' names no metric"),
        ("{metric: latency_p50_us}", "{metric: latency_p5_us}", ":22: 'metric' in 'where'|'latency_p5_us'"),
        ("{metric: latency_p50_us}", "{metric: latency_p99_us}", ":22: 'latency_p99_us' never blocks (thres"),
        ("{metric: latency_p50_us}", "{metric: latency_max_us}", ":22: 'latency_max_us' is a maximum"),
        ("{metric: latency_p50_us}", "{metric: lost_ratio}", ":22: 'lost_ratio' is a share"),
        ("p50, direction: lower, blocking: compared}", "p50, scale: count, direction: lower, blocking: true}",
         ":22: 'latency_p50_us' is no share"),
        ("    why: the usual time\n", "", ":22: compare 1 has no 'why'"),
        ("why: the usual time", "wy: the usual time", ":23: unknown key 'wy'|'why'"),
        ("tolerance_percent: 15", "tolerence_ratio: 0.1", ":25: unknown key 'tolerence_ratio'"),
        ("tolerance_percent: 15", "tolerance_us: 15", ":25: 'tolerance_us' does not fit"),
        ("tolerance_percent: 15", "tolerance_percent: 95", ":25: 'tolerance_percent' comes to 0.95; a relat"),
        ("tolerance_percent: 15", "tolerance_ratio: 0.04", ":26: min_effect (0.05) is larger"),
        ("tolerance_percent: 15", "min_effect_percent: 1", ":26: min_effect is set twice"),
        ("tolerance_ms: 0.2", "tolerance_ratio: 0.2", ":29: 'tolerance_ratio' does not fit"),
        ("tolerance_ms: 0.2", "tolerance_ms: -1", ":29: 'tolerance_ms' in compare 3|'-1'"),
        ("    tolerance_ms: 0.2\n", "", ":28: the policy's tolerance is relative"),
        ("    min_effect_us: 50\n", "", ":28: the policy's min_effect"),
        ("    tolerance_kib: 4\n", "", ":36: the policy's tolerance is relative"),
        ("tolerance_kib: 4", "tolerance_ms: 4", ":37: 'tolerance_ms' does not fit"),
        ("{metric: latency_p50_us}", "{metric: latency_p50_us, board: v1}", ":22|echo.yaml:24|both match"),
    ],
)  # fmt: skip
def test_a_mistake_names_its_line(tmp_path: Path, old: str, new: str, expected: str) -> None:
    """Each mistake is a ConfigError that starts with file and line."""
    assert old in EXAMPLE
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, EXAMPLE.replace(old, new, 1))
    for part in f"thresholds/echo.yaml{expected}".split("|"):
        assert part in str(caught.value)


def test_this_checkouts_pull_request_suite_blocks_by_ten_comparisons_at_most() -> None:
    """alpha is shared among them, so that the family of a pull request stays below one per cent."""
    benches = thresholds.load_all(THRESHOLDS_ROOT)
    for target in ("virtual-esp32", "esp32"):
        comparison = Comparison("r", "rack", target, target, ("b",), "base", "a", "b", ((2, 2),))
        pairs = [
            (case.case_id, metric.name)
            for case in select_cases(benches, "pr")
            for metric in benches[case.bench].metrics_of(case.parameters)
            if may_block(comparison, case, metric, benches[case.bench])
        ]
        assert 5 <= len(pairs) <= 10, pairs


def test_each_rule_of_this_checkout_is_for_a_case_that_pull_requests_compare() -> None:
    """On boards or sealed. A rule for a case that is not measured compares nothing, and nobody would see."""
    for stem, read in thresholds.load_all(THRESHOLDS_ROOT).items():
        for rule in read.compare:
            cases = (*read.suites.get("pr", ()), *read.suites.get("sealed", ()))
            found = [
                case
                for case in cases
                if not rule.where.contradicts(
                    {f"case.{key}": value for key, value in case.parameters.items()}
                )
            ]
            assert found, (stem, rule.source)


def test_a_bench_without_cases_for_pull_requests_is_left_out_of_them() -> None:
    """The suite's word selects from the benches that have one."""
    benches = thresholds.load_all(THRESHOLDS_ROOT)
    selected, more = (
        {case.bench for case in select_cases(benches, words)}
        for words in ("pr", "pr or (quick and hartstone)")
    )
    assert {"publish", "throughput", "footprint"} <= selected
    assert more - selected == {"hartstone"}
