# SPDX-License-Identifier: Apache-2.0
"""How much wider the boundaries have to be on a rack than theory says: its history, judged against itself.

Boots of the history are put together as if they were candidate and other of one firmware: blocks of whole
sessions, so that what hangs together in a session stays together, around the level of one of the sessions,
so that the anchor is as wrong as it is. The largest z over all looks, in units of its boundary, exceeds 1 as
often as the boundaries promise, or the boundaries are widened by the factor kappa until it does.

That asks for a tail of the history's own sessions: of a few of them it says next to nothing, and an upper
bound of it is so large that a comparison with such an epoch sees less than one without. So series shorter
than FEWEST_CALIBRATING sessions have DEFAULT_KAPPA, a little more than what longer histories of noise as the
theory has it come to (docs/explain/gate-simulation.md says what it does to histories of 5 and 10 sessions).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hil.gate.compare.design import Design, Noise
from hil.gate.compare.looking import FEWEST_SESSIONS
from hil.gate.compare.noise import noise_of, noise_of_series
from hil.gate.compare.sequential import trace

FEWEST_CALIBRATING = 20  # sessions of a series; with fewer the factor says more of luck than of the rack
DEFAULT_KAPPA = 1.1
TAIL = 0.05  # the history cannot tell of the alpha of a decision, but of a boundary that is crossed so often
_DRAWN_HISTORIES = 100
_COMPARISONS = 200  # a drawn history
_SURE_ERRORS = 1.645  # above the mean: kappa is large enough in 95 % of drawn histories
_HIGHEST = 3.0
_SEED = 911

Series = tuple[np.ndarray, np.ndarray]


def kappa(series: Sequence[Series], design: Design) -> float:
    """Return the factor, from 1 to 3, in steps of 0.01, for metrics that are alike.

    ``series`` are (session, value) of each board's boots in order of time, on the metric's scale; they
    are judged together, all boards and cases of a metric. Only those with FEWEST_CALIBRATING sessions of two
    boots or more count; where none does, it is DEFAULT_KAPPA, and 1 where none has the FEWEST_SESSIONS that
    the gate uses a history from.
    Histories are drawn, session by session with replacement, from the real one: the factor suffices for 95 %
    of them. The same input gives the same factor.
    """
    prepared = [(sessions, noise) for sessions, noise in map(_prepared, series) if noise is not None]
    if not prepared:
        return 1.0
    usable = [(sessions, noise) for sessions, noise in prepared if len(sessions) >= FEWEST_CALIBRATING]
    if not usable:
        return DEFAULT_KAPPA
    # RandomState's streams are frozen for good: see hil.metrics.stats
    random = np.random.RandomState(_SEED)
    of = replace(design, alpha=TAIL, kappa=1.0)
    parts = [_excesses(sessions, noise, of, random, len(usable)) for sessions, noise in usable]
    found = _upper_bound(np.concatenate(parts, axis=1))
    return min(max(1.0, math.ceil(round(found * 100.0, 6)) / 100.0), _HIGHEST)


def _upper_bound(worst: np.ndarray) -> float:
    """Return the upper bound of the factor, from (drawn histories, comparisons).

    What drawn histories differ by because only so many comparisons were drawn from each is told from the two
    halves of those, and left out: it says nothing of the rack.
    """
    half = worst.shape[1] // 2
    share = 1.0 - 2.0 * TAIL
    factors = np.quantile(worst, share, axis=1)
    halves = np.quantile(worst[:, :half], share, axis=1) - np.quantile(worst[:, half:], share, axis=1)
    by_chance = float(np.mean(halves**2)) / 4.0
    of_sessions = max(float(np.var(factors)) - by_chance, 0.0)
    return float(np.mean(factors)) + _SURE_ERRORS * math.sqrt(of_sessions)


def _prepared(series: Series) -> tuple[list[np.ndarray], Noise | None]:
    """Return the boots of each session that has two, and the noise; None where there are too few."""
    sessions, values = np.asarray(series[0]), np.asarray(series[1], dtype=float)
    kept = np.isfinite(values)
    sessions, values = sessions[kept], values[kept]
    groups = [values[sessions == session] for session in dict.fromkeys(sessions.tolist())]
    groups = [group for group in groups if len(group) >= 2]
    if len(groups) < FEWEST_SESSIONS:
        return groups, None
    labels = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    noise = noise_of(labels, np.concatenate(groups), np.ones(len(labels), dtype=bool))
    return groups, noise_of_series([[noise]])


def _excesses(
    groups: list[np.ndarray], noise: Noise, design: Design, random: np.random.RandomState, among: int
) -> np.ndarray:
    """Return the largest |z| over boundary of each comparison, (drawn histories, comparisons)."""
    each = max(20, math.ceil(_COMPARISONS / among))
    of_candidate, of_other = design.looks[-1]
    boots = of_candidate + of_other
    levels = np.array([group.mean() for group in groups])
    blocks = [(group - group.mean()) * math.sqrt(len(group) / (len(group) - 1.0)) for group in groups]
    values = np.empty((_DRAWN_HISTORIES, each, boots))
    for history in values:
        drawn = random.randint(0, len(groups), size=len(groups))
        for run in history:
            run[:] = levels[drawn[random.randint(0, len(drawn))]] + _blocks(blocks, drawn, boots, random)
    runs = values.reshape(-1, 1, boots)
    place = np.arange(boots) % 3 == 1  # candidate, base, candidate
    order = np.concatenate([np.flatnonzero(place)[:of_other], np.flatnonzero(~place)])
    order = np.concatenate([order, np.setdiff1d(np.arange(boots), order)])
    other, candidate = runs[:, :, order[:of_other]], runs[:, :, order[of_other:boots]]
    many = noise.each(lambda value: np.repeat(value, len(runs), axis=0))
    seen = trace(candidate, other, many, design)
    ratio = np.abs(seen.difference) / (seen.boundary * seen.error)
    return np.asarray(np.nanmax(ratio, axis=1).reshape(_DRAWN_HISTORIES, each))


def _blocks(
    blocks: list[np.ndarray], drawn: np.ndarray, boots: int, random: np.random.RandomState
) -> np.ndarray:
    """Return residuals of whole sessions, one after another, cut to ``boots``."""
    found: list[np.ndarray] = []
    count = 0
    while count < boots:
        block = blocks[drawn[random.randint(0, len(drawn))]]
        found.append(block)
        count += len(block)
    return np.concatenate(found)[:boots]
