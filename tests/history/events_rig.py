# SPDX-License-Identifier: Apache-2.0
"""Histories of racks with planted happenings: what the tests of events share. All figures are simulated."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hil.metrics.sessions import BootSession, History, SeriesHistory, SessionBoard
from hil.model import Scalar, format_series_id
from tests.history.nights_rig import FIRST, REFERENCE, Air, Row, series_of

PUBLISH = ("publish/qos=0", "publish/qos=1")
METRICS = ("publish_latency_p50_us", "publish_latency_p95_us", "publish_latency_p99_us")

Effect = Callable[[int, str, str], float]
Conditions = Callable[[int], Mapping[str, Scalar]]


def commit_of(night: int, product: str = "") -> str:
    """Return the made-up commit that a night measures, 40 digits that look like one."""
    return hashlib.sha1(f"{product}{night}".encode(), usedforsecurity=False).hexdigest()


def nothing(_night: int, _board: str, _metric: str) -> float:
    """Return no effect: a logarithm of 0."""
    return 0.0


@dataclass(frozen=True)
class Rack:
    """A rack and what happens to it: logarithms by night, board and metric. ``firmware`` moves the candidate
    only, ``environment`` the reference too. ``present`` says in which nights a board is there.
    """

    name: str = "lab"
    boards: Sequence[str] = ("e1", "e2", "e3", "e4")
    firmware: Effect = nothing
    environment: Effect = nothing
    conditions: Conditions = lambda _night: {}
    present: Callable[[int, str], bool] = lambda _night, _board: True
    kind: str = "physical"
    product: str = ""
    references: Callable[[int], bool] = lambda _night: True


def planted(
    *racks: Rack,
    nights: int = 60,
    boots: int = 6,
    seed: int = 1,
    cases: Sequence[str] = PUBLISH,
    metrics: Sequence[str] = METRICS,
    air: Air | None = None,
) -> History:
    """Draw the nights of racks: each night has a level that all boards of its rack share."""
    rng, air = np.random.default_rng(seed), air or Air(bad_nights=0.0, bad_boots=0.0)
    sessions = sorted(
        ((night, rack) for night in range(nights) for rack in racks), key=lambda pair: (pair[0], pair[1].name)
    )
    entries: dict[tuple[str, str], SeriesHistory] = {}
    for rack in racks:
        index = np.array([n for n, (_night, its) in enumerate(sessions) if its is rack])
        offsets = np.array([air.offset(rng) for _ in range(nights)])
        for board in rack.boards:
            for case_id in cases:
                for metric in metrics:
                    draw = _Draw(rack, board, metric, boots, rng, air, offsets, index)
                    series_id = format_series_id(rack.name, board, case_id, metric, rack.product)
                    for role in ("candidate", "reference"):
                        if rows := draw.rows(role):
                            entries[series_id, role] = series_of(series_id, role, rows)
    return History(tuple(_session(night, rack) for night, rack in sessions), dict(sorted(entries.items())))


def _session(night: int, rack: Rack) -> BootSession:
    own = {f"{board}.{key}": fact for board in rack.boards for key, fact in rack.conditions(night).items()}
    commit = commit_of(night, rack.product)
    return BootSession(
        f"run-{rack.name}-{rack.product and f'{rack.product}-'}{night:03}",
        (FIRST + datetime.timedelta(days=night)).isoformat(timespec="seconds"),
        rack.name,
        "nightly",
        commit,
        False,
        firmware={"candidate esp32": f"image-{commit}", "reference esp32": REFERENCE},
        conditions=own,
        suite="pr",
        boards={
            board: SessionBoard("esp32", rack.kind)  # type: ignore[arg-type]
            for board in rack.boards
            if rack.present(night, board)
        },
        product=rack.product,
    )


@dataclass(frozen=True)
class _Draw:
    rack: Rack
    board: str
    metric: str
    boots: int
    rng: np.random.Generator
    air: Air
    offsets: np.ndarray
    index: np.ndarray

    def rows(self, role: str) -> list[Row]:
        here = [n for n in range(len(self.offsets)) if self._measured(n, role)]
        noise = self.air.boots(self.rng, len(here) * self.boots)
        found: list[Row] = []
        for n in here:
            level = np.log(10_000) + self.offsets[n] + self._level(n, role)
            image = f"image-{commit_of(n, self.rack.product)}" if role == "candidate" else REFERENCE
            for boot in range(self.boots):
                found.append((self.index[n], boot, np.exp(level + noise[len(found)]), image, "ruler"))
        return found

    def _measured(self, night: int, role: str) -> bool:
        return self.rack.present(night, self.board) and (role == "candidate" or self.rack.references(night))

    def _level(self, night: int, role: str) -> float:
        told = self.rack.environment(night, self.board, self.metric)
        return told + (self.rack.firmware(night, self.board, self.metric) if role == "candidate" else 0.0)
