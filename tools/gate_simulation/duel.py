# SPDX-License-Identifier: Apache-2.0
"""Our gate against a plain two-sample t-test with the same alpha and wall time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from tools.gate_simulation.draws import Draw
from tools.gate_simulation.ours import POLICY, Gate, our_gate
from tools.gate_simulation.results import Share, Verdicts
from tools.gate_simulation.suite import INDEX, METRICS, Effect
from tools.gate_simulation.walltime import boots_within


@dataclass(frozen=True)
class Duel:
    """Shares of changed pull requests caught, at alpha ``divided`` by the number of metrics, and ``whole``.

    Ours first, then the t-test's, which has ``boots`` of candidate and base on each board.
    """

    divided: tuple[Share, Share]
    whole: tuple[Share, Share]
    boots: tuple[int, int]


def duel(draws: Sequence[Draw], effect: Effect, gate: Gate = our_gate) -> Duel:
    """Let both judge the same pull requests; the t-test has as many boots as end in our average wall time."""
    divided, whole = (Verdicts.joined([play(draw, effect) for draw in draws]) for play in (gate, _whole))
    within = boots_within(float(divided.seconds.mean()), draws[0].environment)
    boots = (within - within // 2, within // 2)
    found = []
    for verdicts, alpha in ((divided, POLICY.alpha / len(METRICS)), (whole, POLICY.alpha)):
        theirs = np.concatenate([_rejects(draw, effect, boots, alpha) for draw in draws])
        found.append((Share.among(verdicts.caught(effect.metric)), Share.among(theirs)))
    return Duel(found[0], found[1], boots)


def _whole(draw: Draw, effect: Effect) -> Verdicts:
    return our_gate(draw, effect, share=1.0)


def _rejects(draw: Draw, effect: Effect, boots: tuple[int, int], alpha: float) -> np.ndarray:
    mine, base = (side[:, INDEX[effect.metric]].astype(float) for side in draw.run((boots,), effect))
    return p_values(mine, base) < alpha


def p_values(candidate: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the one-sided p of Student's t of (…, boards, boots) values, each board about its own means."""
    boards, mine, base = candidate.shape[-2], candidate.shape[-1], other.shape[-1]
    freedom = boards * (mine + base - 2)
    squares = sum((of.var(axis=-1) * of.shape[-1]).sum(axis=-1) for of in (candidate, other))
    error = np.sqrt(squares / freedom * (1 / mine + 1 / base) / boards)
    difference = (candidate.mean(axis=-1) - other.mean(axis=-1)).mean(axis=-1)
    return np.asarray(stats.t.sf(difference / error, freedom))
