# SPDX-License-Identifier: Apache-2.0
"""From a verdict and a rack's health to Prometheus metrics and the gateway: names, units, labels."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest

from hil.base.units import UNITS
from hil.history.health.types import BoardHealth, RackHealth
from hil.model import Fault, NotRun, Quarantine, SeriesVerdict, Verdict
from hil.reports.metrics import (
    Families,
    board_groups,
    case_labels,
    in_base_unit,
    kind_of,
    parse_name,
    rack_group,
)
from hil.reports.pushgateway import push_run
from hil.store import read_judged_run
from hil.thresholds import load_all
from tests.judging import judge
from tests.make_records import THRESHOLDS_ROOT, publish_record, publish_thresholds, quick_run, run_info
from tests.reports.metrics_rig import BOARDS, TIMEOUT_S, healthy, store, store_health
from tests.reports.prometheus_rig import Pushgateway, run_pushgateway

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
    """The exposition keeps Prometheus' naming conventions, as promtool knows them: a run's and a rack's."""
    for group in (*board_groups(run_info(**INFO), judged(*quick_run(("virtual-1",)))), rack_group(RACK)):
        check = ["promtool", "check", "metrics"]
        said = generate_latest(group.families)
        done = subprocess.run(check, input=said, capture_output=True, timeout=30, check=False)
        assert (done.returncode, done.stdout + done.stderr) == (0, b"")


def test_the_documentation_lists_what_is_pushed(quick: dict[str, list[Sample]]) -> None:
    """Every metric of hil's own, and every label, stands in docs/operate/metrics.md; of a rack's those alone
    that are pushed."""
    text = DOCS.read_text()
    own = {name for name in quick if name.startswith(("hil_board_", "hil_run_", "hil_case_", "hil_series_"))}
    assert len(own) == 9
    rows = [line for line in text.splitlines() if line.startswith("| `hil_rack_")]
    assert {name for row in rows for name in re.findall(r"`(hil_rack_\w+)`", row)} == set(rack_samples(RACK))
    labels = {label for found in quick.values() for entry, _ in found for label in entry}
    missing = [word for word in sorted(own | labels) if f"`{word}`" not in text]
    assert not missing


BOARD = BoardHealth(
    rack="lab",
    board="e1",
    kind="physical",
    target="esp32",
    runs=20,
    faulted_runs=3,
    failure_ratio=0.15,
    recoveries=2,
    mean_time_to_recovery_s=5400.0,
    faults_in_a_row=0,
    last_seen_utc="2026-11-20T22:12:57Z",
)
NEW = replace(
    BOARD,
    board="e2",
    runs=0,
    failure_ratio=None,
    mean_time_to_recovery_s=None,
    last_seen_utc="",
    quarantine=Quarantine("e2", "2026-11-20T22:12:57Z", "anna", "its port vanishes"),
)
RACK = RackHealth(
    rack="lab",
    days=30,
    runs=20,
    boards=(BOARD, NEW),
    infrastructure_faults={"rig": 4, "firmware": 1},
    failed_runs={"rig": 4, "firmware": 1},
    recoveries=2,
    mean_time_to_recovery_s=5400.0,
)


def rack_samples(health: RackHealth) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {}
    for family in rack_group(health).families.collect():
        found[family.name] = [(sample.labels, sample.value) for sample in family.samples]
    return found


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pushgateway]:
    with run_pushgateway(tmp_path_factory.mktemp("gateway")) as pushgateway:
        yield pushgateway


def test_figures_of_the_rack_and_its_boards() -> None:
    """Job and rack name the group, so that one push replaces it whole. Runs, faults by owner and ratios, each
    with the window and the kind; times in seconds, shares from 0 to 1. What is true now has no window; of no
    run there is no ratio, rather than a zero like praise."""
    group = rack_group(RACK)
    assert (group.job, group.key) == ("hil_rack", {"rack": "lab"})
    found = rack_samples(RACK)
    window = {"days": "30", "kind": "physical"}
    assert found["hil_rack_runs"] == [(window, 20)]
    faults = {labels["owner"]: value for labels, value in found["hil_rack_infrastructure_faults"]}
    assert faults == {"configuration": 0, "firmware": 1, "rig": 4}
    assert found["hil_rack_failed_ratio"] == [(window, 0.2)]
    assert found["hil_rack_recovery_seconds"] == [(window, 5400)]
    place = {"board": "e1", "kind": "physical", "target": "esp32"}
    window = {**place, "days": "30"}
    assert found["hil_rack_board_failed_ratio"] == [(window, 0.15)]
    assert found["hil_rack_board_recovery_seconds"] == [(window, 5400)]
    assert found["hil_rack_board_quarantined"] == [(place, 0), ({**place, "board": "e2"}, 1)]
    assert found["hil_rack_board_seen_timestamp_seconds"] == [(place, 1795212777)]


def test_every_virtual_figure_says_so() -> None:
    """The kind stands on each sample of a virtual rack; of several kinds it is the nearest to silicon."""
    virtual = replace(RACK, boards=tuple(replace(board, kind="virtual") for board in RACK.boards))
    labels = [entry for found in rack_samples(virtual).values() for entry, _ in found]
    assert Counter(entry["kind"] for entry in labels) == {"virtual": len(labels)}
    emulated = replace(BOARD, kind="emulated")
    assert kind_of(replace(RACK, boards=(emulated, BOARD))) == "physical"
    assert kind_of(replace(RACK, boards=(virtual.boards[0], emulated))) == "emulated"


def test_a_run_pushes_its_racks_health(tmp_path: Path, gateway: Pushgateway) -> None:
    """The group of the run's rack arrives beside those of its boards, and that of no other rack; of a rack
    without a history of health none does, and nobody is warned."""
    silent = store(tmp_path / "silent", healthy(), rack="silent")
    assert push_run(gateway.url, read_judged_run(silent), timeout_s=TIMEOUT_S) is None
    assert not gateway.samples(job="hil_rack", rack="silent")
    assert gateway.samples(job="hil_local", rack="silent")
    store_health(tmp_path, "lab", "elsewhere")
    run = store(tmp_path, healthy(), rack="lab")
    assert push_run(gateway.url, read_judged_run(run), timeout_s=TIMEOUT_S) is None
    held = gateway.samples(job="hil_rack", rack="lab")
    assert held["hil_rack_runs"] == [({**held["hil_rack_runs"][0][0], "days": "30", "kind": "virtual"}, 5)]
    assert {labels["board"]: value for labels, value in held["hil_rack_board_quarantined"]} == {
        BOARDS[0]: 0,
        BOARDS[1]: 1,
    }
    assert not gateway.samples(rack="elsewhere")
    assert gateway.samples(rack="lab", board=BOARDS[0])["hil_publish_latency_seconds"]


def test_a_damaged_run_of_the_history_is_left_out_alone(tmp_path: Path, gateway: Pushgateway) -> None:
    """The boards' figures arrive, and what the other runs say; the warning names the file."""
    path, *_ = store_health(tmp_path, "damaged")
    path.write_text("not json\n" + path.read_text())
    run = store(tmp_path, healthy(), rack="damaged")
    warning = push_run(gateway.url, read_judged_run(run), timeout_s=TIMEOUT_S)
    assert re.search(rf"{path}: .*not JSON", str(warning))
    assert gateway.samples(job="hil_rack", rack="damaged")["hil_rack_runs"][0][1] == 4
    assert gateway.samples(job="hil_local", rack="damaged")


def test_a_refused_group_of_the_rack_is_named(tmp_path: Path) -> None:
    """Where the boards' groups arrive and the rack's does not, the sentence says so."""
    store_health(tmp_path, "odd")
    run = store(tmp_path, healthy(), rack="odd")
    with run_pushgateway(tmp_path) as server:
        server.put("/metrics/job/other", "# TYPE hil_rack_runs counter\nhil_rack_runs 1\n")
        warning = push_run(server.url, read_judged_run(run), timeout_s=TIMEOUT_S)
        assert server.samples(job="hil_local", rack="odd")["hil_run_info"]
    assert re.match(rf"Metrics of rack odd .* {server.url}: ", str(warning))
