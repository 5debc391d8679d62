# SPDX-License-Identifier: Apache-2.0
"""`hil history prune`: captures, keys and payloads end after some days, and nothing else ever does."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.cli.app import run_command
from hil.gate import judge
from hil.store import RunDirectory
from hil.store.retention import NOTE, prune, total_bytes
from tests.make_records import publish_record, publish_thresholds

NOW = datetime.datetime(2026, 12, 4, 22, 12, 58, tzinfo=datetime.UTC)
OLD, YOUNG = (
    "20261120T221257Z-quick-3fa9",
    "20261120T221259Z-quick-3fa9",
)  # 14 days and a second, less a second
RAW = {
    "capture/air.pcapng": 100,
    "capture/deep/anything.txt": 7,
    "peer/v1/01-delivery/broker.pcapng": 50,
    "peer/v1/01-delivery/v1.keys": 3,
    "peer/v1/01-delivery/subscriber.jsonl": 20,
    "peer/v1/01-delivery/mosquitto.log": 11,
    "broker/mosquitto.log": 9,
    "console/v1.coredump-1.bin": 8,
}
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


def leave(out: Path, run_id: str, *, judged: bool = True) -> RunDirectory:
    directory = RunDirectory.create(out, run_id)
    directory.append(publish_record(rows=30))
    directory.write_info({"run_id": run_id})
    if judged:
        directory.write_verdict(judge(directory.read().entries, {"publish": publish_thresholds()}))
    for name, size in {**RAW, **dict.fromkeys(KEPT, 5)}.items():
        path = directory.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
    return directory


def names(run: RunDirectory) -> set[str]:
    return {path.relative_to(run.path).as_posix() for path in run.path.rglob("*") if path.is_file()}


def test_what_is_raw_ends_and_all_else_stays(tmp_path: Path) -> None:
    """Of a run older than the days, to the second; records, verdict, tables and consoles keep their bytes."""
    old, young = leave(tmp_path, OLD), leave(tmp_path, YOUNG)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    (found,) = prune(tmp_path, 14, now=NOW)
    assert (found.run, dict(found.files)) == (old.path, RAW)
    assert total_bytes([found]) == sum(RAW.values())
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    note = after.pop(old.path / NOTE).decode().splitlines()
    assert after == {
        path: content for path, content in before.items() if path not in {old.path / n for n in RAW}
    }
    assert names(young) >= set(RAW)
    assert note[0] == "2026-12-04T22:12:58Z removed capture/air.pcapng (100 bytes)"
    assert len(note) == len(RAW)
    assert prune(tmp_path, 14, now=NOW) == []
    assert judge(old.read().entries, {"publish": publish_thresholds()}).to_json() == _stored(old)


def _stored(run: RunDirectory) -> object:
    from hil.store.verdicts import read_verdict

    return read_verdict(run.verdicts_path).to_json()


def test_a_run_that_may_still_measure_is_left_alone(tmp_path: Path) -> None:
    """Without a verdict it has a day; one of which nothing says when it began is never touched."""
    leave(tmp_path, OLD, judged=False)
    leave(tmp_path, "by-hand")
    began = datetime.datetime(2026, 11, 20, 22, 12, 57, tzinfo=datetime.UTC)
    assert prune(tmp_path, 0, now=began + datetime.timedelta(hours=23), dry_run=True) == []
    (found,) = prune(tmp_path, 0, now=began + datetime.timedelta(hours=25), dry_run=True)
    assert found.run.name == OLD


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """Neither a linked file nor a linked folder of elsewhere is removed."""
    run = leave(tmp_path / "out", OLD)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.pcapng").write_bytes(b"mine")
    (run.path / "peer" / "v1" / "linked").symlink_to(elsewhere)
    (run.path / "capture" / "one.pcapng").symlink_to(elsewhere / "mine.pcapng")
    prune(tmp_path / "out", 14, now=NOW)
    assert (elsewhere / "mine.pcapng").read_bytes() == b"mine"


def test_the_command_says_how_much(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By run and in all, in bytes; --dry-run removes nothing; without --days it is 14."""
    run = leave(tmp_path, "20200101T000000Z-quick-0000")
    assert run_command(["history", "prune", "--out", str(tmp_path), "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert (
        f"{run.path}: 8 files, 208 bytes\nwould remove 8 files of 1 run older than 14 days, 208 bytes\n"
        == said
    )
    assert names(run) >= set(RAW)
    assert run_command(["history", "prune", "--out", str(tmp_path), "--days", "3"]) == 0
    assert capsys.readouterr().out.endswith("removed 8 files of 1 run older than 3 days, 208 bytes\n")
    assert not names(run) & set(RAW)
    assert run_command(["history", "prune", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "removed 0 files of 0 runs older than 14 days, 0 bytes\n"


def test_a_damaged_run_is_named(tmp_path: Path) -> None:
    """Where only run.json tells when it began, and it cannot be read."""
    run = leave(tmp_path, "by-hand")
    (run.path / "run.json").write_text("{")
    with pytest.raises(ConfigError, match="by-hand"):
        prune(tmp_path, 14, now=NOW)
