# SPDX-License-Identifier: Apache-2.0
"""A rack's own group: from its health to Prometheus metrics, and to the gateway at a run's end."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from hil.history.health.types import BoardHealth, RackHealth
from hil.model import Quarantine
from hil.reports.metrics import kind_of, rack_group
from hil.reports.pushgateway import push_run
from hil.store import read_judged_run
from tests.reports.metrics_rig import BOARDS, TIMEOUT_S, healthy, store, store_health
from tests.reports.prometheus_rig import Pushgateway, run_pushgateway

DOCS = Path(__file__).resolve().parents[2] / "docs" / "operate" / "metrics.md"
Sample = tuple[dict[str, str], float]

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


def samples(health: RackHealth) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {}
    for family in rack_group(health).families.collect():
        found[family.name] = [(sample.labels, sample.value) for sample in family.samples]
    return found


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pushgateway]:
    with run_pushgateway(tmp_path_factory.mktemp("gateway")) as pushgateway:
        yield pushgateway


def test_the_group_is_the_racks_alone() -> None:
    """Job and rack name the group; boards are labels in it, so that one push replaces it whole."""
    group = rack_group(RACK)
    assert (group.job, group.key) == ("hil_rack", {"rack": "lab"})


def test_figures_of_the_rack_and_its_boards() -> None:
    """Runs, faults by owner and ratios, each with the window and the kind; times in seconds, shares from 0
    to 1. What is true now has no window; of no run there is no ratio, rather than a zero like praise.
    """
    found = samples(RACK)
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
    labels = [entry for found in samples(virtual).values() for entry, _ in found]
    assert Counter(entry["kind"] for entry in labels) == {"virtual": len(labels)}
    emulated = replace(BOARD, kind="emulated")
    assert kind_of(replace(RACK, boards=(emulated, BOARD))) == "physical"
    assert kind_of(replace(RACK, boards=(virtual.boards[0], emulated))) == "emulated"


def test_promtool_finds_nothing_to_object_to() -> None:
    """Names, units and help texts keep Prometheus' conventions."""
    done = subprocess.run(
        ["promtool", "check", "metrics"],
        input=generate_latest(rack_group(RACK).families),
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


def test_the_documentation_lists_every_metric_of_a_rack() -> None:
    """Each name stands in a table of docs/operate/metrics.md, and no name there that is not pushed."""
    pushed = set(samples(RACK))
    rows = [line for line in DOCS.read_text().splitlines() if line.startswith("| `hil_rack_")]
    assert {name for row in rows for name in re.findall(r"`(hil_rack_\w+)`", row)} == pushed


def test_a_run_pushes_its_racks_health(tmp_path: Path, gateway: Pushgateway) -> None:
    """The group of the run's rack arrives beside those of its boards, and that of no other rack."""
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


def test_without_a_history_of_health_there_is_no_group(tmp_path: Path, gateway: Pushgateway) -> None:
    """A rack that keeps none pushes its boards, and nobody is warned."""
    run = store(tmp_path, healthy(), rack="silent")
    assert push_run(gateway.url, read_judged_run(run), timeout_s=TIMEOUT_S) is None
    assert not gateway.samples(job="hil_rack", rack="silent")
    assert gateway.samples(job="hil_local", rack="silent")


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
