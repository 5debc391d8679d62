# SPDX-License-Identifier: Apache-2.0
"""Shards merged: one run that is judged as if nobody had shared it out, or incomplete."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hil.base.errors import ConfigError, RigError
from hil.cli.app import run_command
from hil.gate import judge
from hil.model import Entry, Fault, NotRun, RunRecord, Verdict
from hil.run import merging
from hil.run.merging import merge_shards
from hil.store import RunDirectory, read_run
from hil.store.run_info import planned_boots
from hil.thresholds import own_limits
from tests.make_records import THRESHOLDS_ROOT, quick_run

BOARDS = ("virtual-1", "virtual-4")
CASES = 5
COMMIT = {"commit": "c0ffee", "dirty": False}


def records() -> list[RunRecord]:
    """Return a run of some cases in whole: one broke its limit on a board."""
    every = quick_run(BOARDS)
    cases = list(dict.fromkeys(one.case_id for one in every))[:CASES]
    found = [one for one in every if one.case_id in cases]
    slow = {name: tuple(9 * one for one in found[0].columns[name]) for name in ("sent_us", "done_us")}
    return [replace(found[0], columns={**found[0].columns, **slow}), *found[1:]]


def numbers(entries: Sequence[RunRecord], of: int) -> dict[str, int]:
    cases = dict.fromkeys(entry.case_id for entry in entries)
    return {case_id: n % of + 1 for n, case_id in enumerate(cases)}


def leave_shard(
    out: Path, entries: Sequence[Entry], cases: Mapping[str, int], number: int, of: int, **info: Any
) -> Path:
    """Write the run of a shard, as `hil run --shard` leaves it, of what is its share of ``entries``."""
    run_id = f"20261120T1{number}1257Z-quick-000{number}"
    run = RunDirectory.create(out, run_id)
    mine = [entry for entry in entries if cases.get(entry.case_id, number) == number]
    for entry in mine:
        run.append(replace(entry, run_id=run_id))
    measured = {(entry.board, entry.case_id) for entry in mine if isinstance(entry, RunRecord)}
    run.write_info(
        {
            "schema": 1,
            "run_id": run_id,
            "rack": "virtual",
            "suite": "quick",
            "started_utc": f"2026-11-20T1{number}:12:57Z",
            "trigger": "nightly",
            "legs": of,
            "host": f"runner-{number}",
            "git": COMMIT,
            "boards": [{"id": board, "kind": "virtual", "target": "virtual-esp32"} for board in BOARDS],
            "plan": {board: {case: 1 for own, case in sorted(measured) if own == board} for board in BOARDS},
            "firmware": {"virtual-esp32": {"sha256": f"{number}" * 64}},
            "shard": {"number": number, "of": of, "cases": dict.fromkeys(BOARDS, cases)},
            **info,
        }
    )
    run.keep([THRESHOLDS_ROOT / "publish.yaml"], "thresholds")
    return run.path


def leave_all(out: Path, of: int, left_out: Collection[int] = (), **info: Any) -> list[Path]:
    entries = records()
    cases = numbers(entries, of)
    wanted = [number for number in range(1, of + 1) if number not in left_out]
    return [leave_shard(out, entries, cases, number, of, **info) for number in wanted]


def judged(run: Path) -> Verdict:
    stored = read_run(run)
    return judge(stored.journal.entries, own_limits(stored), planned_boots(stored.info))


@pytest.mark.parametrize("of", [1, 2, 4])
def test_merged_shards_are_judged_as_the_whole_run_is(
    tmp_path: Path, of: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the same records under the same id, which intervals are drawn by, the verdict is the same to the
    byte: advice, alpha and all."""
    (whole,) = leave_all(tmp_path / "whole", 1)
    monkeypatch.setattr(merging, "new_run_id", lambda *_, **__: whole.name)
    merged = merge_shards(leave_all(tmp_path / "shards", of), tmp_path / "out")
    before, now = judged(whole), judged(merged.path)
    assert before.outcome == "regressed"
    assert len(before.series) > len(records())
    assert json.dumps(now.to_json(), sort_keys=True) == json.dumps(before.to_json(), sort_keys=True)


def test_a_shard_alone_judges_its_own_cases(tmp_path: Path) -> None:
    """What one shard found is none of the other's: each has the series of its share."""
    runs = leave_all(tmp_path, 2)
    found = [{item.case_id for item in judged(run).series} for run in runs]
    assert not found[0] & found[1]
    assert found[0] | found[1] == {entry.case_id for entry in records()}
    assert [judged(run).outcome for run in runs] == ["regressed", "pass"]


def test_a_merged_run_says_of_what_it_was_made(tmp_path: Path) -> None:
    """run.json has each shard's run and host, all cases in its plan, alpha of one run, the first's start."""
    runs = leave_all(tmp_path / "shards", 3)
    info = merge_shards(runs, tmp_path / "out").read_info()
    assert [(one["number"], one["of"], one["host"]) for one in info["shards"]] == [
        (number, 3, f"runner-{number}") for number in (1, 2, 3)
    ]
    assert [one["run_id"] for one in info["shards"]] == [run.name for run in runs]
    assert set(planned_boots(info)) == {(entry.board, entry.case_id) for entry in records()}
    assert info["started_utc"] == "2026-11-20T11:12:57Z"
    assert info["run_id"].startswith("20261120T111257Z-quick-")
    assert not {"shard", "legs"} & info.keys()
    alpha_of_two = merge_shards(leave_all(tmp_path / "more", 3, legs=6), tmp_path / "out")
    assert alpha_of_two.read_info()["legs"] == 2


def test_a_missing_shard_leaves_the_run_incomplete(tmp_path: Path) -> None:
    """Its cases are named, each with the shard that left nothing; what is measured is no pass."""
    runs = leave_all(tmp_path / "shards", 3, left_out=[2])
    merged = merge_shards(runs[::-1], tmp_path / "out")
    told = [entry for entry in merged.read().entries if isinstance(entry, NotRun)]
    missing = [case_id for case_id, number in numbers(records(), 3).items() if number == 2]
    assert [(one.board, one.case_id) for one in told] == [(b, case) for b in BOARDS for case in missing]
    assert {one.reason for one in told} == {"shard 2/3 left no run"}
    without_fault = leave_all(tmp_path / "others", 3, left_out=[1])
    verdict = judged(merge_shards(without_fault, tmp_path / "out").path)
    assert (verdict.outcome, verdict.exit_code) == ("incomplete", 4)


def test_what_a_shard_did_not_reach_is_missing(tmp_path: Path) -> None:
    """A shard that was killed leaves a case of its plan out: the run is incomplete, and says which."""
    entries = records()
    cases = numbers(entries, 2)
    runs = [leave_shard(tmp_path / "s", entries[1:], cases, number, 2) for number in (1, 2)]
    verdict = judged(merge_shards(runs, tmp_path / "out").path)
    assert (verdict.outcome, verdict.exit_code) == ("incomplete", 4)
    (missing,) = verdict.not_run
    assert (missing.board, missing.case_id) == (entries[0].board, entries[0].case_id)


def test_one_shard_twice_is_refused(tmp_path: Path) -> None:
    """Both runs are named, for whoever has to say which of them counts."""
    runs = [*leave_all(tmp_path / "a", 2), leave_all(tmp_path / "b", 2)[1]]
    with pytest.raises(ConfigError, match=r"b/.* and .*a/.* are both shard 2/2.*leave one of them out"):
        merge_shards(runs, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"git": {"commit": "ba5e", "dirty": False}}, "git"),
        ({"rack": "lab"}, "rack"),
        ({"suite": "pr"}, "suite"),
        ({"noise": {"profile": "typical"}}, "noise"),
        ({"shard": {"number": 2, "of": 2, "cases": {}}}, "shard.cases"),
        ({"shard": {"number": 2, "of": 3, "cases": {}}}, "shard.of"),
    ],
)
def test_shards_of_two_runs_are_refused(tmp_path: Path, other: Mapping[str, Any], what: str) -> None:
    """What differs is named: another commit, rack, suite or sharing out is another run."""
    first, _ = leave_all(tmp_path / "a", 2)
    _, second = leave_all(tmp_path / "b", 2, **other)
    with pytest.raises(ConfigError, match=rf"not shards of one run: their {what} differ"):
        merge_shards([first, second], tmp_path / "out")


def test_other_limits_are_another_run(tmp_path: Path) -> None:
    """One journal is judged by one set of limits."""
    first, second = leave_all(tmp_path / "a", 2)
    path = second / "thresholds" / "publish.yaml"
    path.write_text(path.read_text() + "# looser\n")
    with pytest.raises(ConfigError, match="their thresholds differ"):
        merge_shards([first, second], tmp_path / "out")


def test_firmware_of_uncommitted_sources_is_the_same_to_the_byte(tmp_path: Path) -> None:
    """A commit without changes names its sources; where there are changes the images must be the same."""
    merge_shards(leave_all(tmp_path / "a", 2), tmp_path / "out")
    with pytest.raises(ConfigError, match="their firmware differ"):
        merge_shards(leave_all(tmp_path / "b", 2, git={"commit": "c0ffee", "dirty": True}), tmp_path / "out")


def test_a_whole_run_is_no_shard(tmp_path: Path) -> None:
    """Nothing is merged by guessing; and of no run at all there is nothing to judge."""
    (run,) = leave_all(tmp_path / "a", 1)
    info = json.loads((run / "run.json").read_text())
    del info["shard"]
    (run / "run.json").write_text(json.dumps(info))
    with pytest.raises(ConfigError, match=r"not a shard.*hil run --shard"):
        merge_shards([run], tmp_path / "out")
    with pytest.raises(RigError, match="no shard left a run"):
        merge_shards([], tmp_path / "out")


def test_files_of_the_shards_stay_apart(tmp_path: Path) -> None:
    """A ledger, a trace and a crash of one name are found from their own records; consoles go on."""
    entries: list[Entry] = [*records()]
    named = {"peer": {"folder": "peer/virtual-1/01-publish"}, "trace": {"file": "trace/virtual-1/0-01.json"}}
    entries = [replace(one, environment={**one.environment, **named}) for one in records()]
    crash = Fault("r", "firmware", 1, "it panicked: console/virtual-1.panic-1.txt", board="virtual-1")
    cases = numbers(records(), 2)
    runs = [leave_shard(tmp_path / "s", [*entries, crash], cases, number, 2) for number in (1, 2)]
    files = ("peer/virtual-1/01-publish/ledger.csv", "trace/virtual-1/0-01.json", "allure-pytest/{}-a.json")
    for number, run in enumerate(runs, start=1):
        for name in (*files, "console/virtual-1.panic-1.txt", "console/virtual-1.log", "rack/tc.log"):
            path = run / name.format(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"of {number}\n")
        (run / "rack" / "link").symlink_to("/etc/passwd")
    merged = merge_shards(runs, tmp_path / "out")
    for entry in merged.read().entries:
        if isinstance(entry, RunRecord):
            number = cases[entry.case_id]
            ledger = merged.path / str(entry.environment["peer"]["folder"]) / "ledger.csv"
            trace = merged.path / str(entry.environment["trace"]["file"])
            assert (ledger.read_text(), trace.read_text()) == (f"of {number}\n",) * 2
    told = [entry.sentence for entry in merged.read().entries if isinstance(entry, Fault)]
    crashes = [merged.path / sentence.partition(": ")[2] for sentence in told]
    assert [path.read_text() for path in crashes] == ["of 1\n", "of 2\n"]
    assert merged.console_log("virtual-1").read_text() == "--- shard 1 ---\nof 1\n--- shard 2 ---\nof 2\n"
    assert {path.name for path in (merged.path / "allure-pytest").iterdir()} == {"1-a.json", "2-a.json"}
    assert not list(merged.path.rglob("link"))


def test_the_command_judges_what_it_merged(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """`hil ci merge` leaves a judged run with its summary as the newest of OUT; the exit code is its own."""
    leave_all(tmp_path / "shards" / "virtual", 2)
    out = tmp_path / "out"
    assert run_command(["ci", "merge", str(tmp_path / "shards"), "--out", str(out), "--no-report"]) == 1
    run = RunDirectory.latest(out)
    assert json.loads(run.verdicts_path.read_text())["outcome"] == "regressed"
    assert "REGRESSED" in run.summary_path.read_text()
    assert run.run_id in capfd.readouterr().out
    history = (out / "history" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["run_id"] for line in history] == [run.run_id]
    part = ["ci", "merge", str(tmp_path / "none"), "--out", str(out)]
    assert run_command(part) == 2
    assert "no such folder" in capfd.readouterr().err
