# SPDX-License-Identifier: Apache-2.0
"""`hil migrate`: what older versions wrote becomes what today's writes, and back, byte for byte."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.cli.app import run_command
from hil.history import append, load
from hil.history.loading import left_behind
from hil.history.migrating import NOTE, migrate, read_note, take_back
from hil.history.migration import find_steps
from hil.reports.history import read_history
from hil.store import RunDirectory
from hil.store.verdicts import read_verdict
from hil.thresholds import load as load_limits
from hil.thresholds.baselines import load_epochs
from tests.golden.comparing import STORED
from tests.history.history_files import night
from tests.make_records import THRESHOLDS_ROOT, publish_record

WHEN = "2026-12-01T00:00:00Z"
LINE = {
    "schema": 1, "run_id": "r", "started_utc": WHEN, "trigger": "nightly", "rack": "lab",
    "outcome": "inconclusive", "exit_code": 0,
    "cases": [{"metrics": {"x_us": {"value": 1, "outcome": "inconclusive"}}}],
}  # fmt: skip
EPOCHS = """\
# reviewed by all of us
schema: 1
rack: lab
epochs:
  - accepted: 2026-11-06
    by: R. Tester
    reason: first
    commit: "cccccccc"
    kappa:          # of before
      publish_latency_p50_us: 1.2
      echo_latency_p50_us: 2
    sessions:
      20261101T010000Z-pr-0000: "aaaaaaaa"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project as an older version left it: limits, epochs, lines, boot values, a judged run."""
    limits = tmp_path / "thresholds"
    (limits / "baselines").mkdir(parents=True)
    text = (THRESHOLDS_ROOT / "publish.yaml").read_text()
    assert text.count("on_undecided: neutral") == 1
    (limits / "publish.yaml").write_text(text.replace("on_undecided: neutral", "on_inconclusive: warn"))
    (limits / "baselines" / "lab.yaml").write_text(EPOCHS)
    for number in (0, 1):
        append(tmp_path / "out" / "hil-data", night(number))
    run = RunDirectory.create(tmp_path / "out", "20261121T141500Z-pr-60fd")
    run.append(publish_record(rows=1))
    stored = gzip.decompress((STORED / "verdicts.json.gz").read_bytes())
    assert b'"inconclusive"' in stored
    run.verdicts_path.write_bytes(stored)
    (run.path / "thresholds").mkdir()
    shutil.copy(limits / "publish.yaml", run.path / "thresholds")
    history = tmp_path / "out" / "history"
    history.mkdir()
    today = json.dumps({**LINE, "outcome": "pass", "cases": [], "run_id": "s"}, indent=None)
    (history / "metrics.jsonl").write_text(f"{json.dumps(LINE)}\n{today}\nnot json\n{{cut off")
    return tmp_path


def content(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def test_older_files_become_todays(project: Path) -> None:
    """Each can be read as today's; comments, journals, what is of today or damaged keep their bytes."""
    before, verdict = content(project), read_verdict(next(project.glob("out/*/verdicts.json")))
    with pytest.raises(ConfigError, match="is called 'on_undecided' now"):
        load_limits("publish", project / "thresholds")
    migrate(project, find_steps(project), when_utc=WHEN)
    after = content(project)
    assert load_limits("publish", project / "thresholds").policy.on_undecided == "neutral"
    assert after["thresholds/publish.yaml"] == (THRESHOLDS_ROOT / "publish.yaml").read_bytes()
    assert len(load_epochs(project / "thresholds" / "baselines" / "lab.yaml")) == 1
    epochs = after["thresholds/baselines/lab.yaml"].decode()
    assert epochs == EPOCHS.replace(EPOCHS[EPOCHS.index("    kappa") : EPOCHS.index("    sessions")], "")
    lines = after["out/history/metrics.jsonl"].splitlines(keepends=True)
    assert json.loads(lines[0])["exit_code"] == 4
    assert b"inconclusive" not in lines[0]
    assert lines[1:] == before["out/history/metrics.jsonl"].splitlines(keepends=True)[1:]
    assert len(load(project / "out" / "history").sessions) == 2
    assert left_behind(project / "out" / "history") == ""
    stored = after["out/20261121T141500Z-pr-60fd/verdicts.json"]
    assert b'"inconclusive"' not in stored
    assert read_verdict(project / "out" / "20261121T141500Z-pr-60fd" / "verdicts.json") == verdict
    changed = {name for name in before if after[name] != before[name]}
    assert changed == {
        "thresholds/publish.yaml", "thresholds/baselines/lab.yaml", "out/history/metrics.jsonl",
        "out/20261121T141500Z-pr-60fd/verdicts.json",
    }  # fmt: skip
    assert all(after[f"{name}.old"] == before[name] for name in changed)
    assert find_steps(project) == []


def test_back_is_as_before_byte_for_byte(project: Path) -> None:
    """No file more and none less; a second time there is nothing to take back."""
    before = content(project)
    migrate(project, find_steps(project), when_utc=WHEN)
    assert len(take_back(project)) == 6
    assert content(project) == before
    with pytest.raises(ConfigError, match="nothing to take back"):
        take_back(project)


def test_what_changed_since_is_not_lost_by_going_back(project: Path) -> None:
    """A history grows: the sentence names the file, and where the old one is; nothing is undone."""
    migrate(project, find_steps(project), when_utc=WHEN)
    path = project / "out" / "history" / "metrics.jsonl"
    path.write_bytes(path.read_bytes() + b"{}\n")
    grown = content(project)
    with pytest.raises(ConfigError, match=r"metrics\.jsonl was changed since .*metrics\.jsonl\.old"):
        take_back(project)
    assert content(project) == grown


def test_what_was_cut_off_goes_on(project: Path) -> None:
    """Killed after some files: the same call does the rest, and going back undoes all."""
    before = content(project)
    steps = find_steps(project)
    migrate(project, steps[:2], when_utc=WHEN)
    note = (project / NOTE).read_bytes()
    migrate(project, find_steps(project), when_utc=WHEN)
    assert len(read_note(project)) == 6
    take_back(project)
    assert content(project) == before
    (project / NOTE).write_bytes(note)  # noted, and killed before anything was changed
    assert take_back(project) == []
    assert content(project) == before


def test_a_newer_file_is_not_touched(project: Path) -> None:
    """The sentence names the file, both versions and the way out; nothing is changed."""
    path = project / "thresholds" / "publish.yaml"
    path.write_text(path.read_text().replace("schema: 1", "schema: 2", 1))
    before = content(project)
    with pytest.raises(
        ConfigError, match=r"publish\.yaml: its schema is 2, this program reads 1.*update hil"
    ):
        find_steps(project)
    assert content(project) == before
    with pytest.raises(ConfigError, match=r"publish\.yaml:\d+: schema is 2; .* update hil"):
        load_limits("publish", project / "thresholds")


def test_readers_send_nobody_to_delete_what_is_newer(tmp_path: Path) -> None:
    """A line, a verdict, a run, a journal of a newer hil: update it, instead of taking the line out."""
    lines = tmp_path / "metrics.jsonl"
    lines.write_text(json.dumps({**LINE, "schema": 2}) + "\n")
    with pytest.raises(ConfigError, match=r"metrics\.jsonl:1: its schema is 2, .*update hil") as caught:
        read_history(lines)
    assert "sed" not in str(caught.value)
    run = RunDirectory.create(tmp_path / "out", "r")
    run.journal_path.write_text(json.dumps({**publish_record(rows=1).to_json(), "schema": 2}) + "\n")
    run.verdicts_path.write_text('{"schema": 2}')
    run.write_info({"schema": 2})
    for read in (run.read, run.read_info, lambda: read_verdict(run.verdicts_path)):
        with pytest.raises(ConfigError, match=r"its schema is 2.*update hil"):
            read()


def test_one_run_with_two_contents_is_refused(project: Path) -> None:
    """Which of them is right nobody can tell: both are named, and nothing is changed."""
    append(project / "out" / "history", night(0, channel=11))
    with pytest.raises(ConfigError, match=r"hil-data/.* and .*history/.* are one run with two contents"):
        find_steps(project)


def test_a_layout_of_its_own_is_changed_by_hand(tmp_path: Path) -> None:
    """Where the text cannot be changed without changing what it says, nothing is."""
    path = tmp_path / "thresholds" / "x.yaml"
    path.parent.mkdir()
    path.write_text('schema: 1\nbench: x\npolicy: {"on_inconclusive": warn}\n')
    with pytest.raises(ConfigError, match=r"x\.yaml: it is laid out so that it cannot be changed by itself"):
        find_steps(tmp_path)


def test_the_command_says_what_it_does(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--dry-run changes nothing; each file is named with why; --back; what is of today says so."""
    before = content(project)
    assert run_command(["migrate", "--dry-run", str(project)]) == 0
    said = capsys.readouterr().out
    assert said.endswith("6 files would be changed\n")
    assert f"{project}/thresholds/publish.yaml: the policy by its name of today\n" in said
    assert content(project) == before
    assert run_command(["migrate", str(project)]) == 0
    assert f"Undo: hil migrate --back {project}\n" in capsys.readouterr().out
    assert run_command(["migrate", str(project)]) == 0
    assert capsys.readouterr().out == f"{project}: everything is of today\n"
    assert run_command(["migrate", "--back", str(project)]) == 0
    assert content(project) == before
    assert run_command(["migrate", "--back", str(project)]) == 2
    assert run_command(["migrate", str(project / "nothing")]) == 2
