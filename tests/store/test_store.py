# SPDX-License-Identifier: Apache-2.0
"""The store: an entry that was appended is on disk, whatever happens next; raw files alone expire."""

from __future__ import annotations

import datetime
import json
import multiprocessing
import os
import re
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec.structs import replace as replace_info

from hil.base.errors import ConfigError, RigError
from hil.base.git import git, try_git
from hil.base.project import Keep
from hil.gate import judge
from hil.model import Entry, Fault, NotRun
from hil.store import RunDirectory, RunInfo, time_in
from hil.store.retention import expire_as_kept, expire_captures
from hil.store.run_info import CiRun, Sources, ci_facts, describe_run, git_state, new_run_id
from hil.store.verdicts import read_verdict
from tests.make_records import RUN_ID, publish_record, publish_thresholds, quick_run, run_info

ENTRIES: tuple[Entry, ...] = (
    replace(publish_record(rows=3), environment={"device": {"sched": "fifo", "rssi_dbm": None}}),
    Fault(RUN_ID, "rig", 3, "could not open the port: µ.", "virtual-1", "publish/x"),
    NotRun(RUN_ID, "virtual-2", "publish/x", "left out"),
)


def written(tmp_path: Path, entries: tuple[Entry, ...] = ENTRIES) -> RunDirectory:
    run = RunDirectory.create(tmp_path / "out", run_info())
    for entry in entries:
        run.append(entry)
    return run


def test_entries_come_back_as_they_were(tmp_path: Path) -> None:
    """Records, faults and left-out cases survive the disk unchanged, in their order."""
    journal = written(tmp_path).read()
    assert journal.entries == ENTRIES
    assert journal.torn == ""
    assert journal.records == ENTRIES[:1]


def test_a_journal_cut_off_at_any_byte_of_its_last_line_is_read(tmp_path: Path) -> None:
    """All entries before the torn one come back, and the loss is reported with file and line."""
    run = written(tmp_path)
    content = run.journal_path.read_bytes()
    start = content.rfind(b"\n", 0, -1) + 1
    for size in range(start, len(content)):
        run.journal_path.write_bytes(content[:size])
        journal = run.read()
        assert journal.entries == ENTRIES[:2]
        assert (f"{run.journal_path}:3: " in journal.torn) == (size > start)


def test_appending_after_a_torn_line_starts_a_new_one(tmp_path: Path) -> None:
    """What a killed writer left is cut off first, so that it does not spoil the next entry."""
    run = written(tmp_path)
    run.journal_path.write_bytes(run.journal_path.read_bytes()[:-5])
    run.append(ENTRIES[1])
    assert run.read().entries == (*ENTRIES[:2], ENTRIES[1])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{", "not JSON: "),
        ("", "not JSON: "),
        ("\xff", "not JSON: "),
        ("[]", "not an entry: it is not a JSON object"),
        ('{"type": "recod", "schema": 1}', "its type is 'recod'; expected record, fault, not-run"),
        ('{"type": "not-run", "schema": 2}', "its schema is 2, this program reads 1"),
        ('{"type": "not-run", "schema": 1, "run_id": "x"}', "board, case_id, reason, cause are missing"),
        (json.dumps({**ENTRIES[2].to_json(), "expected": 1}), "expected is 1; expected true or false"),
    ],
)
def test_any_other_bad_line_names_file_and_line(tmp_path: Path, line: str, expected: str) -> None:
    """A damaged line in the middle is never skipped."""
    run = written(tmp_path)
    lines = run.journal_path.read_bytes().split(b"\n")
    lines[1] = line.encode("latin-1")
    run.journal_path.write_bytes(b"\n".join(lines))
    with pytest.raises(ConfigError) as caught:
        run.read()
    assert str(caught.value).startswith(f"{run.journal_path}:2: not ")
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"kind": "real"}, "kind is 'real'; expected one of physical, emulated, virtual"),
        ({"boot_index": "0"}, "boot_index is '0'; expected an integer"),
        ({"board": None}, "board is None; expected text"),
        ({"extra": 1}, "extra is an unknown key"),
        ({"columns": {"a_us": [1], "b_us": [1, 2]}}, "its columns have different lengths"),
        ({"columns": {"a_us": [1.5]}}, "columns.a_us[0] is 1.5; expected an integer"),
        ({"warmup_rows": 14}, "it has 14 warm-up rows of 13"),
        ({"parameters": {"qos": 1}}, "but its parameters say 'publish/qos=1'"),
        ({"environment": {"device": 1}}, "environment.device is 1; expected an object"),
    ],
)
def test_a_record_with_a_wrong_value_is_refused(
    tmp_path: Path, change: dict[str, object], expected: str
) -> None:
    """Every field of a record is checked on reading."""
    run = written(tmp_path)
    value = {**ENTRIES[0].to_json(), **change}
    run.journal_path.write_text(json.dumps(value) + "\n")
    with pytest.raises(ConfigError) as caught:
        run.read()
    assert expected in str(caught.value)


def test_many_threads_append_whole_lines(tmp_path: Path) -> None:
    """Eight board threads at once: every entry arrives, none mixed with another."""
    run = RunDirectory.create(tmp_path, run_info())

    def write(board: int) -> None:
        for boot in range(10):
            run.append(publish_record(board=f"virtual-{board}", boot_index=boot, rows=50))

    threads = [threading.Thread(target=write, args=(board,)) for board in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = {(record.board, record.boot_index) for record in run.read().records}
    assert len(found) == 80


WRITER = """
import sys
from pathlib import Path
from hil.model import NotRun
from hil.store import RunDirectory
run = RunDirectory.open(Path(sys.argv[1]))
number = 0
while True:
    run.append(NotRun(run.run_id, "virtual-1", f"case-{number}", "x" * 20000))
    number += 1
    print(number, flush=True)
"""


def test_a_killed_writer_loses_nothing_it_had_finished(tmp_path: Path) -> None:
    """kill -9 in the middle of writing leaves a readable journal with every acknowledged entry."""
    run = RunDirectory.create(tmp_path, run_info())
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(run.path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    ) as writer:
        assert writer.stdout is not None
        for _ in range(20):
            acknowledged = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        acknowledged = max([acknowledged, *(int(line) for line in writer.stdout if line.endswith(b"\n"))])
    entries = run.read().entries
    assert len(entries) >= acknowledged >= 20
    assert [entry.case_id for entry in entries] == [f"case-{n}" for n in range(len(entries))]


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Make the kernel refuse files beyond ``size`` bytes, as a full disk refuses them."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_disk_that_fills_up_keeps_every_entry_before(tmp_path: Path) -> None:
    """The half-written line is taken back; the RigError says what is safe and what to do. A fault, which is
    why the run has no verdict, is written once there is room: lost, the run would be one that merely ended
    early."""
    run = written(tmp_path)
    size = run.journal_path.stat().st_size
    with largest_file(size + 100), pytest.raises(RigError) as caught:
        run.append(ENTRIES[0])
    assert "the 3 entries" in str(caught.value)
    assert "free some space" in caught.value.next_step
    assert run.journal_path.stat().st_size == size
    run.append(ENTRIES[2])
    fault = Fault(RUN_ID, "rig", 3, "could not write to the console log", "virtual-1")
    with largest_file(run.journal_path.stat().st_size):
        for write in (lambda: run.append(fault), run.settle):
            with pytest.raises(RigError, match="could not write an entry"):
                write()
    run.settle()
    run.settle()
    assert run.read().entries == (*ENTRIES, ENTRIES[2], fault)


def test_a_full_device_is_told_by_its_first_error(tmp_path: Path) -> None:
    """/dev/full takes no byte, and lets nothing be cut off either: what it said of the writing is told."""
    run = RunDirectory.create(tmp_path, run_info())
    run.journal_path.unlink()
    run.journal_path.symlink_to("/dev/full")
    with pytest.raises(RigError, match=r"No space left on device.*free some space"):
        run.append(ENTRIES[2])


def test_a_verdict_on_a_full_disk_leaves_the_old_one(tmp_path: Path) -> None:
    """Files are replaced whole: the previous verdicts.json stays until the new one is on disk."""
    run = written(tmp_path)
    thresholds = {"publish": publish_thresholds()}
    run.write_verdict(judge([publish_record()], thresholds))
    before = run.verdicts_path.read_bytes()
    with largest_file(100), pytest.raises(RigError, match="could not write"):
        run.write_verdict(judge(quick_run(("virtual-1",)), thresholds))
    assert run.verdicts_path.read_bytes() == before
    assert not [path for path in run.path.iterdir() if path.name.startswith(".")]


def test_latest_points_at_the_newest_run_at_every_moment(tmp_path: Path) -> None:
    """While runs are made one after the other, ``latest`` never fails to name one."""
    RunDirectory.create(tmp_path, run_info(run_id="run-0"))
    stop = multiprocessing.Event()
    misses: list[str] = []

    def look() -> None:
        while not stop.is_set():
            if not (tmp_path / "latest" / "records.jsonl").exists():
                misses.append("latest named no run")

    reader = threading.Thread(target=look)
    reader.start()
    for number in range(1, 60):
        RunDirectory.create(tmp_path, run_info(run_id=f"run-{number:02}"))
    stop.set()
    reader.join()
    assert not misses
    assert RunDirectory.latest(tmp_path).run_id == "run-59"
    assert (tmp_path / "latest").readlink() == Path("run-59")
    assert len(RunDirectory.list(tmp_path)) == 60


def test_a_run_of_the_same_name_is_refused(tmp_path: Path) -> None:
    """Nothing is ever overwritten. A mistyped run is answered with the last ones; a file in the place of a
    folder for results is the rig's error."""
    RunDirectory.create(tmp_path, run_info())
    with pytest.raises(ConfigError, match="exists already"):
        RunDirectory.create(tmp_path, run_info())
    with pytest.raises(ConfigError, match=f"not a run directory.*holds {RUN_ID}"):
        RunDirectory.open(tmp_path / "other")
    (tmp_path / "out").write_text("")
    with pytest.raises(RigError, match="could not create the run directory"):
        RunDirectory.create(tmp_path / "out" / "deeper", run_info())


def described(repository: Path, run_id: str) -> RunInfo:
    known = {"suite": "quick", "trigger": "pr", "boards": (), "plan": {}, "firmware": {}}
    return describe_run(repository=repository, run_id=run_id, rack="virtual", **known)


def test_a_run_that_is_being_made_is_none_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before its run.json is on disk, a run has left a folder that nobody takes for a run."""
    monkeypatch.setattr("hil.store.directory.replace_file", _killed)
    with pytest.raises(KeyboardInterrupt):
        RunDirectory.create(tmp_path, run_info())
    assert (tmp_path / RUN_ID).is_dir()
    assert RunDirectory.list(tmp_path) == []


def _killed(_path: Path, _content: bytes) -> None:
    raise KeyboardInterrupt


def test_run_info_says_who_ran_what_with_which_versions(tmp_path: Path) -> None:
    """run.json comes back; outside a repository the commit is empty, not an error."""
    info = described(tmp_path, new_run_id("quick and qos=1"))
    run = RunDirectory.create(tmp_path, info)
    assert run.read_info() == info
    run.end(replace_info(info, lease_released_utc="2026-11-20T22:23:07Z"))
    assert run.read_info().lease_released_utc == "2026-11-20T22:23:07Z"
    assert (info.git.commit, info.git.dirty) == ("", False)
    assert info.versions["esptool"]
    assert run.run_id.split("-", 1)[1].startswith("quick-and-qos-1-")


def test_a_machine_whose_git_does_not_work_has_runs_without_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No git, and one that cannot be started, cost the commit and not the run; a build does say so. Of one
    that does not end the caller's deadline holds, and is in the sentence."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_state(tmp_path) == Sources("", dirty=False)
    with pytest.raises(ConfigError, match="git is not installed"):
        git(tmp_path, "status")
    (tmp_path / "git").write_text("no program")
    (tmp_path / "git").chmod(0o755)
    assert git_state(tmp_path) == Sources("", dirty=False)
    with pytest.raises(ConfigError, match="git cannot be started: Exec format error"):
        git(tmp_path, "status")
    (tmp_path / "git").write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    with pytest.raises(ConfigError, match=r"`git status` in .* did not end within 0\.05 s"):
        try_git(tmp_path, "status", deadline_s=0.05)


def test_a_run_on_github_says_where_it_is_to_be_found() -> None:
    """The workflow run's address, the pull request's number, and its own head, not the merge commit."""
    environment = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_SERVER_URL": "https://github.example",
        "GITHUB_REPOSITORY": "acme/firmware",
        "GITHUB_RUN_ID": "17",
        "GITHUB_REF": "refs/pull/42/merge",
        "GITHUB_SHA": "merge",
        "HIL_HEAD_SHA": "head",
    }
    url = "https://github.example/acme/firmware/actions/runs/17"
    assert ci_facts(environment) == CiRun(url=url, pull_request=42, head_sha="head")
    nightly = {**environment, "GITHUB_REF": "refs/heads/main", "HIL_HEAD_SHA": ""}
    assert ci_facts(nightly) == CiRun(url=url, head_sha="merge")
    assert ci_facts({}) == CiRun()


def test_a_run_id_starts_with_its_time() -> None:
    """Of two runs the later one is known by their names; a name without a time says so."""
    assert time_in("20261120T221257Z-quick-3fa9") == "2026-11-20T22:12:57Z"
    assert time_in("my-run") == ""


NOW = datetime.datetime(2026, 12, 4, 22, 12, 58, tzinfo=datetime.UTC)
# 14 days and a second ago, and less a second
OLD, YOUNG = "20261120T221257Z-quick-3fa9", "20261120T221259Z-quick-3fa9"
RAW = (
    "capture/air.pcapng",
    "capture/deep/anything.txt",
    "peer/v1/01-delivery/broker.pcapng",
    "peer/v1/01-delivery/v1.keys",
    "peer/v1/01-delivery/subscriber.jsonl",
    "peer/v1/01-delivery/mosquitto.log",
    "broker/mosquitto.log",
    "console/v1.coredump-1.bin",
)
KEPT = (
    "peer/v1/01-delivery/ledger.csv",
    "peer/v1/02-throughput/capture.txt",
    "peer/v1/02-throughput/iperf.txt",
    "broker/mosquitto.conf",
    "console/v1.log",
    "console/v1.coredump-1.txt",
    "rack/v1.log",
    "trace/v1/0-01-jitter.json",
    "summary.md",
)


def leave(out: Path, run_id: str) -> RunDirectory:
    """Leave a judged run that has each kind of file."""
    directory = RunDirectory.create(out, run_info(run_id=run_id))
    directory.append(publish_record(rows=30))
    directory.write_verdict(judge(directory.read().entries, {"publish": publish_thresholds()}))
    for name in (*RAW, *KEPT):
        path = directory.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    return directory


def content(out: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}


def test_what_is_raw_expires_and_all_else_stays(tmp_path: Path) -> None:
    """Of a run older than the days, to the second; what is left of it is judged as before."""
    old = leave(tmp_path, OLD)
    leave(tmp_path, YOUNG)
    leave(tmp_path, "by-hand")  # nobody knows when it began
    before = content(tmp_path)
    expired = expire_captures(tmp_path, 14, now=NOW)
    assert set(expired) == {old.path / name for name in RAW}
    assert content(tmp_path) == {path: data for path, data in before.items() if path not in expired}
    assert expire_captures(tmp_path, 14, now=NOW) == []
    assert judge(old.read().entries, {"publish": publish_thresholds()}) == read_verdict(old.verdicts_path)


def test_no_link_is_followed_to_what_expires(tmp_path: Path) -> None:
    """Neither a linked file nor a linked folder of elsewhere is removed."""
    run = leave(tmp_path / "out", OLD)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.pcapng").write_bytes(b"mine")
    (run.path / "peer" / "v1" / "linked").symlink_to(elsewhere)
    (run.path / "capture" / "one.pcapng").symlink_to(elsewhere / "mine.pcapng")
    expire_captures(tmp_path / "out", 14, now=NOW)
    assert (elsewhere / "mine.pcapng").read_bytes() == b"mine"


def test_nothing_expires_unless_hil_toml_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without captures_days nothing is removed and nothing said; with it how many files went is said."""
    leave(tmp_path, "20200101T000000Z-quick-0000")
    before, said = content(tmp_path), list[str]()
    expire_as_kept(tmp_path, said.append)
    assert (content(tmp_path), said) == (before, [])
    monkeypatch.setattr("hil.store.retention.keep_here", lambda: Keep(captures_days=14))
    expire_as_kept(tmp_path, said.append)
    assert [re.findall(r"\d+", sentence) for sentence in said] == [["14", str(len(RAW))]]
    assert len(content(tmp_path)) == len(before) - len(RAW)
