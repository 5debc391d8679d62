# SPDX-License-Identifier: Apache-2.0
"""Runs that compare, for tests: a journal of boots of candidate and base, from a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hil.model import Comparison, Entry, RunRecord
from hil.thresholds.limits import CompareRule, Where
from hil.thresholds.types import Thresholds
from tests.make_records import RUN_ID, publish_record, publish_thresholds

CANDIDATE, BASE = "ca" * 32, "ba" * 32
BOARDS = ("virtual-1", "virtual-2", "virtual-3", "virtual-4")
METRIC = "publish_latency_p50_us"
FAILED = "publish_failed_ratio"
CASE_ID = publish_thresholds().case({}).case_id
ROWS = 60
Looks = tuple[tuple[int, int], ...]
LOOKS = ((2, 2), (4, 4), (6, 6), (9, 9), (12, 12))  # of no schedule of ours: a journal may hold any


def thresholds(
    metrics: Mapping[str, tuple[float, float]] | None = None, *, limits: bool = False, only: bool = True
) -> Thresholds:
    """Return publish's with a rule, (tolerance, min_effect), for each of ``metrics``, and these only."""
    wanted = {METRIC: (0.10, 0.03)} if metrics is None else dict(metrics)
    own = publish_thresholds()
    rules = tuple(
        CompareRule(
            Where({"metric": name}), tolerance, effect, "for the test", f"thresholds/publish.yaml:{n}"
        )
        for n, (name, (tolerance, effect)) in enumerate(wanted.items(), start=1)
    )
    kept = {name: each for name, each in own.metrics.items() if name in wanted or not only}
    return replace(
        own, metrics=kept, compare=rules, limits=own.limits if limits else (), advice=(), suppressions=()
    )


def comparison(**changes: object) -> Comparison:
    """Return the entry of a run on four boards with one case."""
    entry = Comparison(
        run_id=RUN_ID,
        rack="virtual",
        image="virtual-esp32",
        target="virtual-esp32",
        boards=BOARDS,
        role="base",
        candidate_sha256=CANDIDATE,
        other_sha256=BASE,
        looks=LOOKS,
        cases=(CASE_ID,),
    )
    return replace(entry, **changes)  # type: ignore[arg-type]


def boot(
    board: str,
    role: str,
    index: int,
    *,
    offset: float = 0.0,
    rows: int = ROWS,
    **more: Any,
) -> RunRecord:
    """Return a boot whose latencies are exp(``offset``) times 7 ms; ``more`` as of publish_record()."""
    latency_ms = 7.0 * math.exp(offset)
    record = publish_record(board=board, boot_index=index, latency_ms=latency_ms, rows=rows, **more)
    sha256 = CANDIDATE if role == "candidate" else BASE
    return replace(record, role=role, firmware_sha256=sha256)  # type: ignore[arg-type]


def order(looks: Sequence[tuple[int, int]]) -> list[tuple[int, list[str]]]:
    """Return the roles of the boots of each look, candidates round the other."""
    done, plan = (0, 0), []
    for look in looks:
        candidates, others = look[0] - done[0], look[1] - done[1]
        half = candidates // 2
        plan.append(
            (len(plan) + 1, ["candidate"] * (candidates - half) + ["base"] * others + ["candidate"] * half)
        )
        done = look
    return plan


def boots(
    looks: Sequence[tuple[int, int]] = LOOKS,
    *,
    effect: float = 0.0,
    effects: Mapping[str, float] | None = None,
    deviation: float = 0.02,
    session: float = 0.0,
    seed: int = 1,
    boards: Sequence[str] = BOARDS,
    rows: int = ROWS,
) -> list[list[RunRecord]]:
    """Return the records of each look; the candidate is exp(``effect``) times as slow."""
    chance = random.Random(seed)
    found: list[list[RunRecord]] = []
    positions = dict.fromkeys(boards, 0)
    for _, roles in order(looks):
        records = []
        for board in boards:
            for role in roles:
                change = (effects or {}).get(board, effect) if role == "candidate" else 0.0
                offset = change + session + chance.gauss(0, deviation)
                records.append(boot(board, role, positions[board], offset=offset, seed=seed, rows=rows))
                positions[board] += 1
        found.append(records)
    return found


def run(*args: object, entry: Comparison | None = None, **kwargs: object) -> list[Entry]:
    """Return the journal of a whole run; arguments as of boots()."""
    own = entry or comparison()
    kwargs.setdefault("looks", own.looks)
    return [own, *(record for look in boots(*args, **kwargs) for record in look)]  # type: ignore[arg-type]


def edited(entries: Sequence[Entry], change: Callable[[RunRecord], RunRecord]) -> list[Entry]:
    """Return the journal with each of its records changed."""
    return [change(entry) if isinstance(entry, RunRecord) else entry for entry in entries]


def without(entries: Sequence[Entry], is_lost: Callable[[RunRecord], bool]) -> list[Entry]:
    """Return the journal without the records that were lost."""
    return [entry for entry in entries if not (isinstance(entry, RunRecord) and is_lost(entry))]


def losing(entries: Sequence[Entry], failed: Callable[[RunRecord], int]) -> list[Entry]:
    """Return the journal with all boots alike, but for how many of their messages failed."""
    return edited(entries, lambda one: boot(one.board, one.role, one.boot_index, failed=failed(one)))


def figure(value: float | None) -> float:
    """Return a figure that must be there."""
    assert value is not None
    return value
