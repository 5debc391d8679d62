# SPDX-License-Identifier: Apache-2.0
"""From a verdict to Prometheus metrics: names, units, labels."""

from __future__ import annotations

import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest

from hil.base.units import UNITS
from hil.model import Fault, NotRun, SeriesVerdict, Verdict
from hil.reports.metrics import Families, board_groups, case_labels, in_base_unit, parse_name
from hil.thresholds import load_all
from tests.judging import judge
from tests.make_records import THRESHOLDS_ROOT, publish_record, publish_thresholds, quick_run, run_info

DOCS = Path(__file__).resolve().parents[2] / "docs" / "operate" / "metrics.md"
INFO: dict[str, Any] = {
    "run_id": "r",
    "lease_released_utc": "2026-11-20T22:14:27Z",
    "trigger": "nightly",
    "boards": [{"id": "virtual-1", "kind": "virtual", "target": "virtual-esp32"}],
    "git": {"commit": "0a9e", "dirty": True},
    "ci": {"pull_request": 17},
    "firmware": {"virtual-esp32": {"sha256": "ab" * 32, "idf_version": "v5.5.1"}},
    "profile": "lab",
    "versions": {"hil": "0.1.0"},
}
Sample = tuple[dict[str, str], float]


def judged(*entries: object) -> Verdict:
    return judge(entries, {"publish": publish_thresholds()})  # type: ignore[arg-type]


def samples(verdict: Verdict, **info: object) -> dict[str, list[Sample]]:
    """Return (labels, value) by metric of the first group."""
    found: dict[str, list[Sample]] = {}
    for family in board_groups(run_info(**{**INFO, **info}), verdict)[0].families.collect():
        found[family.name] = [(sample.labels, sample.value) for sample in family.samples]
    return found


@pytest.fixture(scope="module")
def quick() -> dict[str, list[Sample]]:
    return samples(judged(*quick_run(("virtual-1",))))


@pytest.mark.parametrize(
    ("metric", "unit", "value", "name", "labels", "pushed"),
    [
        ("publish_latency_p99_us", "us", 25000, "hil_publish_latency_seconds", {"stat": "p99"}, 0.025),
        ("publish_latency_tail5_ms", "ms", 3, "hil_publish_latency_seconds", {"stat": "tail5"}, 0.003),
        ("wake_late_p99_9_us", "us", 40, "hil_wake_late_seconds", {"stat": "p99.9"}, 0.00004),
        ("publish_failed_ratio", "ratio", 0.25, "hil_publish_failed_ratio", {}, 0.25),
        ("cpu_load_mean_percent", "percent", 12.5, "hil_cpu_load_ratio", {"stat": "mean"}, 0.125),
        ("throughput_p50_mbps", "mbps", 8, "hil_throughput_bytes_per_second", {"stat": "p50"}, 1e6),
        ("heap_free_kib", "kib", 2, "hil_heap_free_bytes", {}, 2048),
        ("retries_max_count", "count", 7, "hil_retries", {"stat": "max"}, 7),
        ("switch_p95_cycles", "cycles", 90, "hil_switch_cycles", {"stat": "p95"}, 90),
        ("rssi_mean_dbm", "dbm", -61.5, "hil_rssi_dbm", {"stat": "mean"}, -61.5),
        ("p99_us", "us", 5, "hil_p99_seconds", {}, 5e-6),
    ],
)
def test_names_and_values_are_in_base_units(
    metric: str, unit: str, value: float, name: str, labels: dict[str, str], pushed: float
) -> None:
    """Name and unit of a verdict's metric become Prometheus' name and unit; the statistic becomes a label."""
    parsed = parse_name(metric, unit)
    assert (parsed.value, parsed.statistic_label) == (name, labels)
    assert in_base_unit(value, unit) == pushed


def test_every_unit_has_a_base_unit() -> None:
    """A unit that a thresholds file may use can be pushed."""
    for unit in UNITS:
        assert in_base_unit(1, unit.name) > 0
        assert parse_name(f"x_{unit.name}", unit.name).value.startswith("hil_x")


@pytest.mark.slow
def test_the_metrics_of_each_bench_have_names_of_their_own() -> None:
    """No two metrics of a thresholds file come to one name: none would be left out."""
    series = some_series()
    for thresholds in load_all(THRESHOLDS_ROOT).values():
        families = Families({})
        for metric in thresholds.metrics.values():
            item = replace(series, metric=metric.name, unit=metric.unit.name)
            families.add_series(replace(item, value=1.0, limit=1.0))
        assert not families.clashes, thresholds.bench


def some_series() -> SeriesVerdict:
    return judged(publish_record()).series[0]


@pytest.mark.parametrize("metric", ["publish_latency_p50_ms", "publish_latency_limit_us", "board_up_count"])
def test_a_name_that_is_taken_is_left_out_and_named(metric: str) -> None:
    """Neither another metric nor hil's own facts are overwritten; the metric left out is known by name."""
    verdict = judged(publish_record())
    unit = metric.rpartition("_")[2]
    intruder = replace(some_series(), metric=metric, unit=unit, value=99.0)
    (group,) = board_groups(run_info(**INFO), replace(verdict, series=(*verdict.series, intruder)))
    assert group.families.clashes == {metric}
    text = generate_latest(group.families).decode()
    samples_only = [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    assert Counter(samples_only).most_common(1)[0][1] == 1


def test_a_changed_default_makes_another_series() -> None:
    """The same short label for another case has another hash."""
    item = some_series()
    other = replace(item, case_id=item.case_id.replace("count=100", "count=120"))
    assert case_labels(item)["case"] == case_labels(other)["case"] == "defaults"
    assert case_labels(item)["case_hash"] != case_labels(other)["case_hash"]


def test_only_the_info_metric_knows_the_run(quick: dict[str, list[Sample]]) -> None:
    """Run id, commit and firmware are labels of hil_run_info alone; kind and target stand on everything."""
    ((info, one),) = quick["hil_run_info"]
    assert one == 1
    assert info == {
        "kind": "virtual",
        "target": "virtual-esp32",
        "run_id": "20261120T221257Z-quick-3fa9",
        "suite": "quick",
        "commit": "0a9e",
        "dirty": "true",
        "pull_request": "17",
        "firmware": "abababababab",
        "idf": "v5.5.1",
        "profile": "lab",
        "hil": "0.1.0",
    }
    rest = [labels for name, found in quick.items() for labels, _ in found if name != "hil_run_info"]
    others = {name for labels in rest for name in labels}
    assert others == {
        *("kind", "target", "bench", "case", "case_hash", "stat"),
        *("metric", "blocking", "outcome", "state", "owner"),
    }
    assert all(labels.items() >= {"kind": "virtual", "target": "virtual-esp32"}.items() for labels in rest)


def test_facts_of_the_run(quick: dict[str, list[Sample]]) -> None:
    """Exit code, start and duration of the run, and how many samples each case has."""
    assert [value for _, value in quick["hil_run_exit_code"]] == [0]
    assert [value for _, value in quick["hil_run_timestamp_seconds"]] == [1795212777]
    assert [value for _, value in quick["hil_run_duration_seconds"]] == [90]
    counts = {labels["case"]: value for labels, value in quick["hil_case_samples"]}
    assert (counts["count=200"], counts["qos=2"]) == (200, 100)
    outcomes = Counter((labels["outcome"], labels["blocking"]) for labels, _ in quick["hil_series_outcome"])
    assert outcomes == {("pass", "true"): 19, ("pass", "false"): 2}


def test_a_run_of_a_variant_alone_tells_its_image() -> None:
    """Where a run has the default image that is the one; where it has another tick's alone, that is."""
    default, variant = {"sha256": "ab" * 32}, {"sha256": "cd" * 32}
    both = {"virtual-esp32+tick100": variant, "virtual-esp32": default}
    for firmware, shown in ((both, "ab" * 6), ({"virtual-esp32+tick100": variant}, "cd" * 6)):
        found = samples(judged(publish_record()), firmware=firmware)
        assert found["hil_run_info"][0][0]["firmware"] == shown


def test_a_run_that_was_killed_has_no_duration() -> None:
    """What run.json does not know is absent, not zero."""
    found = samples(judged(publish_record()), lease_released_utc="", ci={}, firmware={})
    assert "hil_run_duration_seconds" not in found
    assert not {"pull_request", "idf", "firmware"} & found["hil_run_info"][0][0].keys()


def test_a_board_without_samples_has_its_facts_and_no_figures() -> None:
    """A planned board that gave nothing is there: down, with its faults and its cases not run."""
    entries = [
        Fault("r", "rig", 3, "the port is gone", "virtual-1"),
        Fault("r", "rig", 3, "the broker ended"),
        Fault("r", "firmware", 1, "panic", "virtual-2"),
        NotRun("r", "virtual-1", "publish/x=1", "the port is gone"),
        NotRun("r", "virtual-1", "publish/x=2", "beyond its limits", "ruled-out"),
    ]
    found = samples(judged(*entries))
    assert found["hil_board_up"][0][1] == 0
    assert {labels["owner"]: value for labels, value in found["hil_board_faults"]} == {
        "configuration": 0,
        "firmware": 0,
        "rig": 2,
    }
    assert {labels["state"]: value for labels, value in found["hil_board_cases"]} == {
        "measured": 0,
        "not_run": 1,
        "ruled_out": 1,
    }
    assert all(name.startswith(("hil_board_", "hil_run_")) for name in found)


def test_a_board_that_nothing_is_expected_of_is_neither_up_nor_down() -> None:
    """Its limits or its chip rule out all that the suite has: no alert for that."""
    found = samples(judged(NotRun("r", "virtual-1", "publish/x=2", "beyond its limits", "ruled-out")))
    assert "hil_board_up" not in found


def test_a_series_without_a_value_keeps_its_outcome() -> None:
    """Too few samples: undecided is pushed, no figure is made up."""
    found = samples(judged(publish_record(rows=0)))
    assert "hil_publish_latency_seconds" not in found
    assert found["hil_board_up"][0][1] == 0
    blocking = [labels for labels, _ in found["hil_series_outcome"] if labels["blocking"] == "true"]
    assert {labels["outcome"] for labels in blocking} == {"undecided"}


def test_promtool_finds_nothing_to_object_to() -> None:
    """The exposition keeps Prometheus' naming conventions, as promtool knows them."""
    (group,) = board_groups(run_info(**INFO), judged(*quick_run(("virtual-1",))))
    done = subprocess.run(
        ["promtool", "check", "metrics"],
        input=generate_latest(group.families),
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


def test_the_documentation_lists_what_is_pushed(quick: dict[str, list[Sample]]) -> None:
    """Every metric of hil's own, and every label, stands in docs/operate/metrics.md."""
    text = DOCS.read_text()
    own = {name for name in quick if name.startswith(("hil_board_", "hil_run_", "hil_case_", "hil_series_"))}
    assert len(own) == 9
    labels = {label for found in quick.values() for entry, _ in found for label in entry}
    missing = [word for word in sorted(own | labels) if f"`{word}`" not in text]
    assert not missing
