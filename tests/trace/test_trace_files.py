# SPDX-License-Identifier: Apache-2.0
"""A trace on disk, in the record, and in the reports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hil.base.errors import ConfigError, FirmwareError, RigError
from hil.boards.current_sampling import Meters
from hil.model import Case, RunRecord, Scalar, Series
from hil.reports.allure import complete_results
from hil.reports.summary import render_markdown
from hil.reports.trace_notes import trace_notes
from hil.run.agent_device import AgentDevice
from hil.run.companions import Companions
from hil.store import read_judged_run
from hil.trace.files import CASE, VOID, Origin, read_stored, store_trace
from tests.make_records import publish_record
from tests.reports.site_runs import store_run
from tests.run.test_fixtures_rig import BOARD, BUILT, Agent, Network
from tests.trace.trace_events import JITTER, inverted, on_a_host, series_of

FINDING = "priority inversion: jitter (20) waited 3.1 ms"
NAME = "20261121T101500Z-quick-0001"
ORIGIN = Origin("v2", "virtual", 0, 1, Case("jitter", {"trace": "outlier"}))


def case_series(device: Mapping[str, Scalar] | None = None, **columns: tuple[int, ...]) -> Series:
    facts = {"sched": "fifo", "trace_events_count": 21, "trace_frozen": 1, **(device or {})}
    return Series(ORIGIN.case, columns or {"woke_us": (1,)}, 0, "esp_timer", BUILT, "cd" * 32, 1, facts)


def sent() -> Series:
    return series_of(on_a_host(inverted()))


def test_events_and_perfetto_lie_with_the_run(tmp_path: Path) -> None:
    """Both files lie under board, boot and number; the group says what they are; they read back the same."""
    group = store_trace(tmp_path, ORIGIN, case_series(), sent())
    assert group["file"] == "trace/v2/0-01-jitter.json"
    assert (group["events_count"], group["frozen"], group["outlier_us"]) == (sent().rows, True, 3127)
    assert str(group["finding"]).startswith(FINDING)
    stored = read_stored(tmp_path / str(group["file"]))
    assert stored.finding.sentence == group["finding"]
    assert (stored.title, stored.case_id) == ("v2 (virtual)", "jitter/trace=outlier")
    assert (tmp_path / "trace/v2/0-01-jitter.pftrace").stat().st_size > 1000


@pytest.mark.parametrize(("sched", "exact"), [("freertos", True), ("simulator", True), ("other", False)])
def test_only_a_host_is_inferred(tmp_path: Path, sched: str, exact: bool) -> None:
    """FreeRTOS tells its switches, on a chip and in the simulator; Linux does not."""
    group = store_trace(tmp_path, ORIGIN, case_series({"sched": sched}), series_of(inverted()))
    assert read_stored(tmp_path / str(group["file"])).trace.exact is exact


@pytest.mark.parametrize(("outcome", "void"), [(VOID, True), (0, False)])
def test_a_void_sample_is_the_hosts(tmp_path: Path, outcome: int, void: bool) -> None:
    """Where the row that the outlier is of is void, the finding is how late the host was, read back too."""
    columns = {
        "planned_us": (0, 10_000),
        "woke_us": (12, 10_012),
        "acquired_us": (20, 13_139),
        "host_late_us": (3, 5200),
        "outcome": (0, outcome),
    }
    group = store_trace(tmp_path, ORIGIN, case_series(None, **columns), sent())
    assert ("5.2 ms" in str(group["finding"])) is void
    assert read_stored(tmp_path / str(group["file"])).finding.sentence == group["finding"]


def test_a_trace_that_makes_no_sense_is_said(tmp_path: Path) -> None:
    """What cannot be read stands in the group, and no file is left."""
    group = store_trace(tmp_path, ORIGIN, case_series(), series_of([(0, 0, 31, 1, 0)]))
    assert set(group) == {"error"}
    assert "event 31 at 0 us" in str(group["error"])
    assert not (tmp_path / "trace").exists()


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    """Reading what is no trace names the file."""
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"a\.json: "):
        read_stored(tmp_path / "a.json")


class Traced(Agent):
    """A board that has a trace to send, or fails to."""

    def __init__(self, events_count: int, fails: Exception | None = None) -> None:
        super().__init__(BUILT)
        self.events_count = events_count
        self.fails = fails
        self.asked: list[str] = []

    def abort(self) -> None:
        self.asked.append("abort")

    def run_case(self, case: Case, **_options: object) -> Series:
        self.asked.append(case.bench)
        if case == CASE and self.fails:
            raise self.fails
        return replace(sent() if case == CASE else case_series({"trace_events_count": self.events_count}))


def measured(agent: Traced) -> Any:
    around: Any = Network()
    board: Any = agent
    device = AgentDevice(
        BOARD, board, around, BUILT, Companions({}, around, Path("out")), "127.0.0.1", Meters(Path("out"))
    )
    return device.measure(ORIGIN.case, timeout_s=1)


def test_a_case_is_asked_for_its_trace() -> None:
    """Where the board kept events they are fetched on the same session, else nothing is asked."""
    agent = Traced(21)
    outcome = measured(agent)
    assert agent.asked == ["jitter", "trace"]
    assert outcome.trace.columns == sent().columns
    silent = Traced(0)
    assert measured(silent).trace is None
    assert silent.asked == ["jitter"]


@pytest.mark.parametrize("error", [FirmwareError("nothing was traced"), RigError("the board is silent")])
def test_a_trace_that_cannot_be_fetched_fails_no_case(error: Exception) -> None:
    """The samples stand; why the trace is missing is told, and the board is free for the next case."""
    agent = Traced(21, error)
    outcome = measured(agent)
    assert agent.asked == ["jitter", "trace", "abort"]
    assert outcome.series.case == ORIGIN.case
    assert outcome.trace is None
    assert str(error).rstrip(".") in outcome.trace_error


def traced(record: RunRecord, group: Mapping[str, Scalar]) -> RunRecord:
    return replace(record, environment={**record.environment, "trace": group})


def test_traces_that_tell_something_have_notes(tmp_path: Path) -> None:
    """Inversions come first, then what could not be had, which leads to no file; a trace with nothing to tell
    has none."""
    groups: dict[str, Mapping[str, Scalar]] = {
        "v1": {"error": "the board is silent"},
        "v2": {"file": "trace/v2/0-01-jitter.json", "outlier_us": 3127, "finding": FINDING},
        "v3": {"file": "trace/none.json", "outlier_us": None, "finding": "nothing"},
    }
    records = [traced(publish_record(board=board), group) for board, group in groups.items()]
    run = read_judged_run(store_run(tmp_path, NAME, records))
    found = trace_notes(run.records, run.verdict)
    assert [(note.board, note.picture) for note in found] == [("v2", "trace/v2/0-01-jitter.svg"), ("v1", "")]
    assert (found[0].finding, found[1].finding.split(": ")[-1]) == (FINDING, "the board is silent")
    listed = render_markdown(run.info, run.verdict, run.records).partition("## Scheduler traces\n\n")[2]
    assert ["(trace: " in line for line in listed.partition("\n\n")[0].splitlines()] == [True, False]


def test_a_file_outside_of_the_run_is_not_read(tmp_path: Path) -> None:
    """A record that names a file elsewhere attaches nothing."""
    (tmp_path / "out").mkdir()
    for suffix in (".json", ".svg", ".pftrace"):
        (tmp_path / "out" / f"secret{suffix}").write_text("{}")
    record = traced(publish_record(), {"file": "../secret.json", "outlier_us": JITTER, "finding": "x"})
    path = store_run(tmp_path / "out", NAME, [record])
    results = [json.loads(each.read_text()) for each in (path / "allure-results").glob("*-result.json")]
    assert not [one for item in results for one in item["attachments"] if "scheduler" in one["name"]]


def test_a_damaged_trace_costs_its_picture_alone(tmp_path: Path) -> None:
    """The results of the run are complete all the same, and say the finding."""
    group = {"file": "trace/a.json", "outlier_us": 5, "finding": "preempted: x"}
    path = store_run(tmp_path, NAME, [traced(publish_record(), group)])
    (path / "trace").mkdir()
    (path / "trace" / "a.json").write_text("{")
    assert complete_results(read_judged_run(path)) == 1
    (result,) = (path / "allure-results").glob("*-result.json")
    assert "preempted: x" in result.read_text()
    assert not (path / "trace" / "a.svg").exists()


def test_a_timeline_of_an_emulator_is_attached_or_said_to_be_missing(tmp_path: Path) -> None:
    """Beside the scheduler's own trace; the case's result says where the emulator left none."""
    here = tmp_path / "out" / "kept" / "trace" / "v1" / "0-01.timeline.json"
    here.parent.mkdir(parents=True)
    here.write_text("[]")
    names = {"v1": "trace/v1/0-01.timeline.json", "v2": "trace/v2/0-01.timeline.json"}
    records = [traced(replace(publish_record(), board=board), {"timeline": names[board]}) for board in names]
    path = store_run(tmp_path / "out", NAME, records)
    (tmp_path / "out" / "kept" / "trace").rename(path / "trace")
    complete_results(read_judged_run(path))
    attached = {
        one["name"]: (path / "allure-results" / one["source"]).read_text()
        for each in (path / "allure-results").glob("*-result.json")
        for one in json.loads(each.read_text())["attachments"]
        if "timeline" in one["name"]
    }
    name = "emulator's timeline for ui.perfetto.dev, boot 0, virtual"
    assert attached == {name: "[]", f"no {name}": f"The emulator left no {names['v2']}."}
