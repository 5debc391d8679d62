# SPDX-License-Identifier: Apache-2.0
"""The path of one sample, as docs/explain/architecture.md gives it, walked."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hil.boards.firmware.build_folder import Image
from hil.boards.rack import load_rack
from hil.gate.judging import judge
from hil.metrics.evaluation import estimate
from hil.metrics.values import row_values
from hil.model import Case, RunRecord, Series
from hil.network.peers.companion import Observed
from hil.reports import rows
from hil.run.interfaces import Boot
from hil.run.lab_rig import LabRig
from hil.session import AgentSession
from hil.session.board_link import BoardLink
from hil.session.transfer import merge, parameter_text
from hil.store import RunDirectory, read_judged_run
from hil.store.journal import parse_journal
from hil.wire.lines import parse_line
from hil.wire.packing import unpack_columns
from tests.make_records import publish_thresholds, run_info
from tests.session.fake_agent import FakeAgent, FakeConsole

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "explain" / "architecture.md"
LATENCY_US = 7654
STEPS: Mapping[str, Callable[..., object]] = {
    "read": BoardLink.receive,
    "parsed": parse_line,
    "unpacked": unpack_columns,
    "collected": merge,
    "recorded": LabRig.record,
    "stored": RunDirectory.append,
    "read back": parse_journal,
    "valued": row_values,
    "estimated": estimate,
    "judged": judge,
    "read once": read_judged_run,
    "shown": rows.quantity,
}


@pytest.fixture(scope="module")
def path() -> dict[str, str]:
    """Return step → file, as the page has them."""
    table = PAGE.read_text(encoding="utf-8").partition("## The path of one sample")[2].partition("## ")[0]
    found = dict(re.findall(r"^\| ([\w ]+) \| `([^`]+)` \|", table, re.MULTILINE))
    assert len(found) > len(STEPS)
    return found


def test_the_steps_lie_where_the_page_says(path: Mapping[str, str]) -> None:
    """Each step's file is there, and what does it on the host stands in that file."""
    assert [name for name in path.values() if not (ROOT / name).is_file()] == []
    for step, function in STEPS.items():
        source = inspect.getsourcefile(function)
        assert source
        assert Path(source).resolve() == ROOT / path[step], step
    on_the_board = [step for step in path if step not in STEPS]
    assert all(path[step].startswith("firmware/") for step in on_the_board)


def measured(case: Case) -> Series:
    """Return what a board sends, line by line, of a case whose messages all take LATENCY_US."""
    count = int(str(case.parameters["count"]))
    planned = [10_000 * row for row in range(count)]
    columns = {
        "planned_us": planned,
        "sent_us": planned,
        "done_us": [time + LATENCY_US for time in planned],
        **{name: [0] * count for name in ("outcome", "mutex_wait_us", "serialise_us", "publish_call_us")},
    }
    defaults = {name: parameter_text(value) for name, value in case.parameters.items()}
    agent = FakeAgent(bench="publish", bursts=[columns], parameters=defaults)
    console = FakeConsole(agent)
    session = AgentSession(console, "virtual-1", lambda _line: None, clock=console.clock)
    session.wait_ready(timeout_s=30.0)
    return session.run_case(case, timeout_s=10.0)


def recorded(run: RunDirectory, case: Case, series: Series) -> RunRecord:
    """Return the record that the rig makes of a series; network and flash are played."""
    rack = load_rack(ROOT / "hil" / "racks" / "virtual.yaml")
    nothing = cast("Any", SimpleNamespace(environment=lambda _board: {}, check=lambda _board: None))
    rig = LabRig(rack, run, "r", {}, nothing, nothing, nothing, run.path)
    boot = Boot(Image("virtual-esp32"), "candidate", 0)
    return rig.record(rack.boards[0], boot, case, Observed(series, {}), "2026-01-01T00:00:00Z")


def test_a_sample_is_the_same_at_every_step(tmp_path: Path) -> None:
    """A latency leaves the board as an integer and is read off the report as the same one."""
    limits = publish_thresholds()
    case = limits.case({})
    series = measured(case)
    assert series.columns["done_us"][-1] - series.columns["sent_us"][-1] == LATENCY_US
    run = RunDirectory.create(tmp_path, run_info(run_id="r"))
    record = recorded(run, case, series)
    run.append(record)
    (read,) = run.read().entries
    assert read == record
    (metric,) = (one for name, one in limits.metrics.items() if name == "publish_latency_p50_us")
    assert set(row_values(metric, record)) == {LATENCY_US}
    assert estimate(metric, [record], alpha=0.05, seed_text="r").value == LATENCY_US
    verdict = judge([read], {"publish": limits})
    (item,) = (one for one in verdict.series if one.metric == metric.name)
    assert item.value == LATENCY_US
    assert rows.quantity(item, item.value) == "7.65 ms"
