# SPDX-License-Identifier: Apache-2.0
"""The paths of a sample and of a pull request, as docs/explain/architecture.md gives them, walked."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hil.base.errors import ExitCode
from hil.boards.firmware.build_folder import Image
from hil.boards.rack import load_rack
from hil.ci.again import JudgedAgain, judge_again
from hil.ci.artefact import keep
from hil.ci.collecting import collect
from hil.ci.comment import comment
from hil.ci.conclusion import conclude_by
from hil.ci.github import GitHub
from hil.ci.limits import Counting
from hil.ci.measuring import Workshop
from hil.ci.plan import make_plan, write_plan
from hil.ci.verified import hold_against
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
from tests.ci import comment_rig, github_server
from tests.ci.ci_rig import write_limits
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
STEPS_OF_A_PULL_REQUEST: Mapping[str, Callable[..., object]] = {
    "planned": make_plan,
    "measured": Workshop.command,
    "collected": collect,
    "judged again": judge_again,
    "concluded": conclude_by,
    "kept": keep,
    "verified": hold_against,
    "commented": comment,
}


@pytest.mark.parametrize(
    ("heading", "steps", "elsewhere"),
    [
        ("one sample", STEPS, "firmware/"),
        ("one pull request", STEPS_OF_A_PULL_REQUEST, ".github/workflows/"),
    ],
)
def test_the_steps_lie_where_the_page_says(
    heading: str, steps: Mapping[str, Callable[..., object]], elsewhere: str
) -> None:
    """Each step's file is there, and what does it on the host stands in that file."""
    table = PAGE.read_text(encoding="utf-8").partition(f"## The path of {heading}")[2].partition("## ")[0]
    path = dict(re.findall(r"^\| ([\w ]+) \| `([^`]+)` \|", table, re.MULTILINE))
    assert len(path) > len(steps)
    assert [name for name in path.values() if not (ROOT / name).is_file()] == []
    for step, function in steps.items():
        source = inspect.getsourcefile(function)
        assert source
        assert Path(source).resolve() == ROOT / path[step], step
    assert all(path[step].startswith(elsewhere) for step in path if step not in steps)


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


@pytest.mark.slow
def test_a_slower_head_is_the_same_at_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A head that is slower by a fifth fails the required check, and the comment has the gate's interval."""
    monkeypatch.chdir(comment_rig.own_repository().path)
    plan = comment_rig.pull_request_plan()
    write_plan(plan, tmp_path / "plan.json")
    (leg,) = (leg for leg in plan.legs if leg.job == "compare")
    words = Workshop(plan, ROOT, tmp_path / "bundle", run=builds_into(tmp_path / "bundle")).command(leg)
    assert words[words.index("--base") + 1] == str(tmp_path / "bundle" / "base")
    comment_rig.leave_virtual(tmp_path / "legs")
    measured_at = comment_rig.leave_comparison(tmp_path / "out", effect=math.log(1.2))
    (measured_at.parent / "latest").symlink_to(measured_at.name)
    run = read_judged_run(collect(measured_at.parent, leg.name, tmp_path / "legs"))
    assert judge_again(run, leg, plan, Counting()) == JudgedAgain()
    assert (run.verdict.outcome, run.verdict.exit_code) == ("regressed", ExitCode.FIRMWARE)
    limits = write_limits(tmp_path)
    jobs = {"plan": "success", "virtual": "failure"}
    verdict = conclude_by(limits, plan, tmp_path / "legs", jobs, lambda _lost: {})
    assert (verdict.exit_code, verdict.headline) == (ExitCode.FIRMWARE, "REGRESSED: compare")
    assert keep(tmp_path / "plan.json", tmp_path / "legs", tmp_path / "verdict", limits) == ()
    body = commented(comment_rig.zipped(tmp_path / "verdict"))
    low, high = re.findall(r"\+\d+\.\d+", run.verdict.sentence)
    assert float(low) < 20 < float(high)
    assert low in body
    assert high in body


def builds_into(bundle: Path) -> Callable[[Sequence[str], Path], int]:
    """Return what runs a build in the place of ESP-IDF."""

    def run(words: Sequence[str], _folder: Path) -> int:
        (bundle / "base").mkdir(parents=True)
        return 0

    return run


def commented(artefact: bytes) -> str:
    """Return what is written below the pull request whose run of pr.yml left an artefact."""
    state = comment_rig.pull_request_state()
    state.add_run()
    state.set_jobs("failure", **{"hil / Virtual rack compare": "failure"})
    state.add_artefact(artefact)
    state.add_pull()
    with github_server.serve(state) as api:
        comment(GitHub(github_server.HOME, github_server.TOKEN, api), github_server.RUN)
    (body,) = (one["body"] for one in state.comments[7])
    return str(body)
