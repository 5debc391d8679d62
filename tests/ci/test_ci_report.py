# SPDX-License-Identifier: Apache-2.0
"""`hil report build --legs`: one night's report of all legs that were judged, whatever the others left."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from hil.cli.app import run_command
from hil.history.files import read_past
from tests.reports.site_runs import healthy, store_run

pytestmark = pytest.mark.slow

Report = Callable[..., tuple[int, str]]
NAMES = ("20261120T010000Z-nightly-0001", "20261120T020000Z-nightly-0002")


@pytest.fixture
def report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Report:
    """`hil report build`: its status, and what it says on stderr."""

    def build(*arguments: str) -> tuple[int, str]:
        status = run_command(["report", "build", "--out", str(tmp_path / "out"), *arguments])
        return status, capsys.readouterr().err

    return build


def kill_leg(legs: Path, leg: str) -> Path:
    """Leave what a leg leaves that was killed before it was judged; return its run."""
    run = store_run(legs / leg, NAMES[1], healthy())
    (run / "verdicts.json").unlink()
    return run


def test_a_killed_leg_does_not_lose_the_night(tmp_path: Path, report: Report) -> None:
    """The judged run is reported and remembered; each other is named on stderr, and left out."""
    legs = tmp_path / "legs"
    store_run(legs / "virtual", NAMES[0], healthy())
    kill_leg(legs, "rack-esp32")
    (kill_leg(legs, "rack-esp32c3") / "run.json").write_text("{")
    (legs / "rack-esp32s3").mkdir()
    status, said = report("--legs", str(legs))
    assert status == 0, said
    warnings = [line for line in said.splitlines() if line.startswith("warning: ")]
    assert [line.partition("the leg ")[2].split()[0] for line in warnings] == ["rack-esp32", "rack-esp32c3"]
    assert "verdicts.json" in warnings[0]
    assert [run.run_id for run in read_past(tmp_path / "out" / "history").runs] == [NAMES[0]]
    assert (tmp_path / "out" / "report" / "index.html").is_file()


def test_a_night_without_a_judged_run(tmp_path: Path, report: Report) -> None:
    """Nothing at all, or nothing that was judged: exit 2 and a sentence, and no empty report."""
    legs = tmp_path / "legs"
    legs.mkdir()
    status, said = report("--legs", str(legs))
    assert status == 2
    assert said.startswith(f"hil: {legs} ")
    kill_leg(legs, "virtual")
    status, said = report("--legs", str(legs))
    assert status == 2
    assert "the leg virtual" in said
    assert not (tmp_path / "out" / "report").exists()


def test_several_racks_and_benches_are_one_report(tmp_path: Path, report: Report) -> None:
    """Each run is remembered; on the first page runs that pass on one rack share a verdict and a table."""
    legs = tmp_path / "legs"
    for number, suite in enumerate(("publish", "echo", "jitter"), start=1):
        run_id = f"20261120T0{number}0000Z-nightly-000{number}"
        store_run(legs / f"virtual-{suite}", run_id, healthy(), suite=f"nightly and {suite}")
    store_run(legs / "rack-esp32", "20261120T040000Z-nightly-0004", healthy(), rack="lab")
    status, said = report("--legs", str(legs), "--files")
    assert status == 0, said
    assert {(run.rack, run.suite) for run in read_past(tmp_path / "out" / "history").runs} == {
        ("virtual", "nightly and publish"),
        ("virtual", "nightly and echo"),
        ("virtual", "nightly and jitter"),
        ("lab", "quick"),
    }
    page = (tmp_path / "out" / "report" / "index.html").read_text()
    assert page.count('<section class="verdict') == 2
    assert "2 more runs on rack virtual" in page
    assert sorted(re.findall(r"<h2>Nearest .*rack (\w+)</h2>", page)) == ["lab", "virtual"]
    assert "4 suites" in page
    assert len(list((tmp_path / "out" / "report" / "runs").iterdir())) == 4
