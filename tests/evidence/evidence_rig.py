# SPDX-License-Identifier: Apache-2.0
"""Evidence for tests: runs as a rack leaves them, and the programme's state around them."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hil.boards.rack import Rack, load_rack
from hil.evidence.doing import begin, folder_of
from hil.evidence.judging import judged
from hil.evidence.report import EVIDENCE, Evidence, write_evidence
from hil.model import Entry, Fault, NotRun, RunRecord
from hil.store import RunDirectory, StoredRun, read_run
from tests.lab import ROOT
from tests.make_records import publish_record

PASSWORD = "a rack's own password"
MAC = "24:6f:28:ab:cd:ef"
SERIAL = "/dev/serial/by-id/usb-Silicon_Labs_CP2102_0001_SECRETSERIAL-if00-port0"
RACK = """\
schema: 1
name: desk
host: {{interface: eth0, address: 192.168.77.1}}
access_point: {{type: external, ssid: ourhome, psk_file: {psk}}}
boards:
  - {{id: d1, kind: physical, target: esp32, serial: {serial}, mac: '{mac}', power: {{type: none}}}}
  - {{id: d2, kind: physical, target: esp32, serial: /dev/ttyUSB9, mac: '24:6f:28:ab:cd:f0',
     power: {{type: none}}}}
"""


def physical_rack(folder: Path) -> Rack:
    """Return a rack of two boards, which nobody has."""
    (folder / "psk").write_text(f"{PASSWORD}\n")
    (folder / "rack.yaml").write_text(RACK.format(psk=folder / "psk", serial=SERIAL, mac=MAC))
    return load_rack(folder / "rack.yaml")


def record(board: str = "d1", boot: int = 0, **more: Any) -> RunRecord:
    """Return a record of a physical board, with ``more`` of its values replaced."""
    made = publish_record(board=board, boot_index=boot, seed=boot)
    return dataclasses.replace(made, **{"rack": "desk", "kind": "physical", "target": "esp32", **more})


def leave_run(runs: Path, name: str, entries: Sequence[Entry], **info: object) -> StoredRun:
    """Write a run with these entries, judged by the limits of the bench publish that it keeps."""
    run = RunDirectory.create(runs, name)
    for entry in entries:
        run.append(dataclasses.replace(entry, run_id=name))
    plan: dict[str, dict[str, int]] = {}
    for entry in entries:
        if isinstance(entry, RunRecord | NotRun):
            boots = plan.setdefault(entry.board, {})
            boots[entry.case_id] = max(boots.get(entry.case_id, 0), getattr(entry, "boot_index", 0) + 1)
    run.write_info({"schema": 1, "run_id": name, "started_utc": "2026-11-20T22:12:57Z", "plan": plan, **info})
    (run.path / "thresholds").mkdir()
    shutil.copy(ROOT / "thresholds" / "publish.yaml", run.path / "thresholds")
    run.write_verdict(judged(read_run(run.path)))
    return read_run(run.path)


def fault(owner: str, code: int, board: str = "d1") -> Fault:
    return Fault("r", owner, code, "its port vanished.", board=board)


def leave_evidence(rack: Rack, out: Path, step: str, runs: Sequence[str], *, result: str = "ok") -> Evidence:
    """Write the state of a programme of which one step is done, with these runs."""
    evidence = begin(rack, {"host": "here"})
    done = dataclasses.replace(evidence.step(step), result=result, got="as expected", runs=tuple(runs))
    evidence = evidence.replaced(done)
    folder_of(out, rack).mkdir(parents=True, exist_ok=True)
    write_evidence(folder_of(out, rack) / EVIDENCE, evidence)
    return evidence
