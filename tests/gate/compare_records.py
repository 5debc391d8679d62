# SPDX-License-Identifier: Apache-2.0
"""Runs that compare, for tests: a journal of boots of candidate and base, and a history, from a seed."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hil.gate.compare.past import Past
from hil.metrics.sessions import History, SeriesHistory, Session, SessionBoard
from hil.model import Comparison, Entry, RunRecord, Scalar, format_series_id
from hil.thresholds.baselines import Baselines, Epoch
from hil.thresholds.limits import CompareRule, Where
from hil.thresholds.types import Thresholds
from tests.gate.gate_boots import UNEVEN_LOOKS
from tests.make_records import RUN_ID, publish_record, publish_thresholds

CANDIDATE, BASE = "ca" * 32, "ba" * 32
RULER = "cd" * 32
BOARDS = ("virtual-1", "virtual-2", "virtual-3", "virtual-4")
METRIC = "publish_latency_p50_us"
FAILED = "publish_failed_ratio"
CASE_ID = publish_thresholds().case({}).case_id
ROWS = 60


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
        looks=UNEVEN_LOOKS,
        cases=(CASE_ID,),
    )
    return replace(entry, **changes)  # type: ignore[arg-type]


def boot(
    board: str,
    role: str,
    index: int,
    *,
    offset: float = 0.0,
    failed: int = 0,
    rows: int = ROWS,
    seed: int = 1,
    overrides: Mapping[str, Scalar] | None = None,
    environment: Mapping[str, Mapping[str, Scalar]] | None = None,
) -> RunRecord:
    """Return a boot whose latencies are exp(``offset``) times 7 ms."""
    record = publish_record(
        board=board,
        boot_index=index,
        latency_ms=7.0 * math.exp(offset),
        failed=failed,
        rows=rows,
        seed=seed,
        overrides=overrides,
        environment=environment,
    )
    return replace(
        record,
        role=role,  # type: ignore[arg-type]
        firmware_sha256=CANDIDATE if role == "candidate" else BASE,
    )


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
    looks: Sequence[tuple[int, int]] = UNEVEN_LOOKS,
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


def past(
    sessions: int = 12,
    *,
    boots_each: int = 4,
    deviation: float = 0.02,
    session_deviation: float = 0.01,
    accepted: bool = True,
    conditions: Mapping[str, Scalar] | None = None,
    metric: str = METRIC,
    level_us: float = 7000.0,
    ruler: str = RULER,
    kappa: float = 1.0,
    hits: int = 0,
) -> Past:
    """Return a history of the case on the four boards, and an epoch of all its sessions."""
    chance = random.Random(99)
    known = tuple(
        Session(
            run_id=f"202611{day:02}T010000Z-nightly-{day:04x}",
            started_utc=f"2026-11-{day:02}T01:00:00Z",
            rack="virtual",
            trigger="nightly",
            commit="ab" * 20,
            dirty=False,
            digest="d1" * 32,
            firmware={"candidate virtual-esp32": BASE},
            conditions=dict(conditions or {}),
            boards={board: SessionBoard("virtual-esp32", "virtual") for board in BOARDS},
        )
        for day in range(1, sessions + 1)
    )
    entries = {}
    for board in BOARDS:
        series_id = format_series_id("virtual", board, CASE_ID, metric)
        levels = [chance.gauss(0, session_deviation) for _ in known]
        index = np.repeat(np.arange(sessions), boots_each)
        values = [level_us * math.exp(levels[n] + chance.gauss(0, deviation)) for n in index]
        count = len(values)
        entries[series_id, "candidate"] = SeriesHistory(
            series_id=series_id,
            role="candidate",
            session=index,
            boot=np.tile(np.arange(boots_each), sessions),
            value=np.array(values),
            samples=np.full(count, ROWS),
            hits=np.full(count, hits),
            ruler=np.array([ruler] * count),
            firmware=np.array([BASE] * count),
        )
    epoch = Epoch(
        rack="virtual",
        accepted=datetime.date(2026, 11, 19),
        by="R. Tester",
        reason="for the test",
        commit="ab" * 20,
        sessions={one.run_id: one.digest for one in known},
        kappa={metric: kappa},
        source="thresholds/baselines/virtual.yaml:3",
    )
    return Past(History(known, entries), Baselines({"virtual": (epoch,)} if accepted else {}))
