# SPDX-License-Identifier: Apache-2.0
"""The nights before the stored run: boot values, lines of figures and of health, written as by nights.

Four things happen in them: the access point moves to another channel, a commit slows the slowest publishes, a
commit makes throughput better, and a rig fails on a board; the nights before and between them are quiet.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from hil.gate import judge
from hil.history.files import read_summary, write
from hil.history.from_run import add_run
from hil.history.summary import to_bytes
from hil.model import Case, Comparison, Entry, Fault, NotRun, Role, RunRecord
from hil.store import RunDirectory, RunInfo, read_run
from hil.store.codec import build
from hil.thresholds import Thresholds
from tests.golden.rig import (
    BOARDS,
    DAY,
    NOISE_INFO,
    QUARANTINE,
    RACK,
    TOOL,
    Boot,
    Level,
    boards_info,
    digest,
    image,
    later,
)

NIGHTS = 22
MOVED, SLOWER, FASTER = 6, 11, 15  # the first night of each change
OUT = (8, 9)  # nights in which the rig fails on a board
LOST, AGAIN = 18, 19  # a message is lost in one night, and not in the next, with the same firmware
QUARANTINED = 20
FIGURES_SINCE = 17  # the nights before it are there by their boot values, as imported ones are
NIGHT_BOARDS = ("e1", "e2", "e4")
_ROLES: Sequence[Role] = ("candidate", "reference", "reference", "candidate", "candidate", "reference")


def commit_of(night: int) -> str:
    """Return the made-up commit of a night; every third night measures the one before again."""
    return digest("commit", night if night % 3 != AGAIN % 3 else night - 1)[:40]


def write_past(out: Path, work: Path, thresholds: dict[str, Thresholds], limits: Path) -> None:
    """Write OUT/history; the nights' own folders are in ``work``."""
    for night in range(NIGHTS):
        run = _store(work, night, thresholds, limits)
        path = add_run(read_run(run), out / "history").path
        if night < FIGURES_SINCE:
            write(path, to_bytes(msgspec.structs.replace(read_summary(path), outcome="", cases=())))


def started(night: int) -> str:
    moment = datetime.datetime.combine(DAY, datetime.time(1, 23)) - datetime.timedelta(
        days=NIGHTS - 1 - night
    )
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _store(work: Path, night: int, thresholds: dict[str, Thresholds], limits: Path) -> Path:
    begun = started(night)
    run_id = f"{begun.replace('-', '').replace(':', '')}-nightly-{digest('night', night)[:4]}"
    directory = RunDirectory.create(work, build(RunInfo, _info(night, run_id, begun)))
    suites = (thresholds["publish"].suites["pr"][0], *thresholds["throughput"].suites["pr"])
    for entry in _entries(night, run_id, begun, suites):
        directory.append(entry)
    directory.keep(sorted(limits.glob("*.yaml")), "thresholds")
    directory.write_verdict(judge(directory.read().entries, thresholds))
    return directory.path


def _entries(night: int, run_id: str, begun: str, cases: Sequence[Case]) -> list[Entry]:
    present = [board for board in NIGHT_BOARDS if not (board == "e2" and night in OUT)]
    entries: list[Entry] = [
        Comparison(
            run_id=run_id,
            rack=RACK,
            image=target,
            target=target,
            boards=tuple(board for board in present if BOARDS[board] == target),
            role="reference",
            candidate_sha256=image("candidate", commit_of(night), target),
            other_sha256=image("reference", "", target),
            looks=((3, 3),),
            cases=tuple(sorted(case.case_id for case in cases)),
        )
        for target in dict.fromkeys(BOARDS[board] for board in present)
    ]
    for index, role in enumerate(_ROLES):
        for board in present:
            firmware = image(role, commit_of(night), BOARDS[board])
            boot = Boot(run_id, begun, board, role, index, firmware, channel=int(night >= MOVED))
            for turn, case in enumerate(cases):
                record = boot.record(case, _level(night, role, case), seconds=120 * index + 4 * turn + 2)
                lost = (night, board, index, case.bench) == (LOST, "e1", 0, "publish")
                entries.append(_with_a_loss(record) if lost else record)
    if night in OUT:
        sentence = "board e2 could not be flashed: no answer from its loader. Next: look at its cable."
        entries.append(Fault(run_id, "rig", 3, sentence, "e2"))
        entries += [
            NotRun(run_id, "e2", case.case_id, "board e2 failed before: it could not be flashed.")
            for case in cases
        ]
    return entries


def _level(night: int, role: Role, case: Case) -> Level:
    path = 0.14 if night >= MOVED else 0.0
    tail = 1.0
    if role == "candidate":
        path -= 0.18 if case.bench == "throughput" and night >= FASTER else 0.0
        tail = 1.35 if case.bench == "publish" and night >= SLOWER else 1.0
    return Level(path=path + 0.01 * ((7 * night) % 5 - 2) / 2, tail=tail)


def _with_a_loss(record: RunRecord) -> RunRecord:
    row = record.warmup_rows + 3
    columns = {name: list(column) for name, column in record.columns.items()}
    columns["done_us"][row], columns["outcome"][row] = 0, 1
    return replace(record, columns={name: tuple(column) for name, column in columns.items()})


def _info(night: int, run_id: str, begun: str) -> dict[str, Any]:
    quarantined = [QUARANTINE] if night >= QUARANTINED else []
    boards = (*NIGHT_BOARDS, "e7") if quarantined else NIGHT_BOARDS
    targets = dict.fromkeys(BOARDS[board] for board in NIGHT_BOARDS)
    return {
        "run_id": run_id,
        "started_utc": begun,
        "lease_acquired_utc": later(begun, 2 + night % 4),
        "lease_released_utc": later(begun, 840),
        "rack": RACK,
        "suite": "pr",
        "trigger": "nightly",
        "profile": "lab",
        "git": {"commit": commit_of(night), "dirty": False},
        "argv": [],
        "user": "runner",
        "host": "rack-1",
        "ci": {},
        "plan": {},
        "tool": TOOL,
        "versions": {"hil": "0.1.0"},
        "noise": NOISE_INFO,
        "boards": boards_info(boards),
        "firmware": {target: {"sha256": image("candidate", commit_of(night), target)} for target in targets},
        **({"quarantined": quarantined} if quarantined else {}),
    }
