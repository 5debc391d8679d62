# SPDX-License-Identifier: Apache-2.0
"""Histories of nights, made of levels: what the tests of change points and their simulation share."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from hil.metrics.sessions import BootSession, History, SeriesHistory, SessionBoard
from hil.model import Scalar

SERIES = "lab/b1/publish/qos=1/publish_latency_p50_us"
FIRST = datetime.datetime(2026, 1, 1, 1, 23, tzinfo=datetime.UTC)
REFERENCE = "reference-1"


@dataclass(frozen=True)
class NightOf:
    """One night: boot values of the candidate and of each reference image, and what they were measured in."""

    candidate: Sequence[float]
    references: Mapping[str, Sequence[float]] = field(default_factory=dict)
    commit: str = ""
    image: str = ""
    ruler: str = "ruler"
    conditions: Mapping[str, Scalar] = field(default_factory=dict)
    trigger: str = "nightly"
    dirty: bool = False


def commit_of(night: int) -> str:
    """Return the made-up commit that a night measures, 40 digits."""
    return f"{night:040x}"


def make_history(nights: Sequence[NightOf], series_id: str = SERIES) -> History:
    """Return a history in which each night is one session."""
    sessions: list[BootSession] = []
    rows: dict[str, list[Row]] = {"candidate": [], "reference": []}
    for n, night in enumerate(nights):
        commit = night.commit or commit_of(n)
        image = night.image or f"image-{commit}"
        firmware = {"candidate virtual-esp32": image}
        for reference in night.references:  # a run has one; of two, only the history in memory knows both
            firmware["reference virtual-esp32"] = reference
        started = (FIRST + datetime.timedelta(days=n)).isoformat(timespec="seconds")
        board = {"b1": SessionBoard("virtual-esp32", "virtual")}
        its = {"firmware": firmware, "conditions": night.conditions, "boards": board}
        sessions.append(BootSession(f"run-{n}", started, "lab", night.trigger, commit, night.dirty, **its))
        measured = [("candidate", night.candidate, image, night.ruler)]
        measured += [("reference", values, other, "ruler") for other, values in night.references.items()]
        for role, values, of, ruler in measured:
            rows[role] += [(n, boot, value, of, ruler) for boot, value in enumerate(values)]
    return History(
        tuple(sessions),
        {(series_id, role): series_of(series_id, role, its) for role, its in rows.items() if its},
    )


Row = tuple[int, int, float, str, str]  # session, boot, value, image, ruler


def series_of(series_id: str, role: str, rows: Sequence[Row]) -> SeriesHistory:
    session, boot, value, image, ruler = zip(*rows, strict=True)
    return SeriesHistory(
        series_id,
        role,
        session=np.array(session),
        boot=np.array(boot),
        value=np.array(value, dtype=float),
        samples=np.full(len(rows), 200),
        hits=np.zeros(len(rows), dtype=int),
        ruler=np.array(ruler, dtype=object),
        firmware=np.array(image, dtype=object),
    )


@dataclass(frozen=True)
class Air:
    """The typical noise of a rack: standard deviations of logarithms, and how often either is bad."""

    boot: float = 0.04
    session: float = 0.03
    sample: float = 0.0306  # of the median of 200 samples of one boot
    bad_boots: float = 0.05
    bad_boot_factor: float = 3.5
    bad_nights: float = 0.03
    bad_night: float = 0.15

    def offset(self, rng: np.random.Generator) -> float:
        """Draw what a night does to all that is measured in it."""
        return rng.normal(0, self.session) + self.bad_night * (rng.random() < self.bad_nights)

    def boots(self, rng: np.random.Generator, count: int) -> np.ndarray:
        deviation = np.where(rng.random(count) < self.bad_boots, self.bad_boot_factor * self.boot, self.boot)
        return np.asarray(rng.normal(0, 1, count) * deviation + rng.normal(0, self.sample, count))


Effect = Callable[[int], float]


def simulate(
    rng: np.random.Generator,
    *,
    nights: int = 70,
    boots: int = 6,
    firmware: Effect = lambda _n: 0.0,
    environment: Effect = lambda _n: 0.0,
    references: Callable[[int], Mapping[str, float]] = lambda _n: {REFERENCE: 0.0},
    air: Air | None = None,
) -> list[NightOf]:
    """Draw nights around 10,000 µs; effects and references' levels are logarithms, by a night's number."""
    air = air or Air()
    drawn = []
    for n in range(nights):
        common = np.log(10_000) + air.offset(rng) + environment(n)
        drawn.append(
            NightOf(
                np.exp(common + firmware(n) + air.boots(rng, boots)).tolist(),
                {
                    image: np.exp(common + level + air.boots(rng, boots)).tolist()
                    for image, level in references(n).items()
                },
            )
        )
    return drawn
