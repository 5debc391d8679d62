# SPDX-License-Identifier: Apache-2.0
"""Captures, keys and payloads expire after the days that hil.toml says, and nothing else ever does."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import pytest

from hil.base.project import Keep
from hil.gate import judge
from hil.store import RunDirectory
from hil.store.retention import expire_as_kept, expire_captures
from hil.store.verdicts import read_verdict
from tests.make_records import publish_record, publish_thresholds, run_info

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


def test_a_link_is_not_followed(tmp_path: Path) -> None:
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
