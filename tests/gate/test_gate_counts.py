# SPDX-License-Identifier: Apache-2.0
"""Shares of failures and exact figures: what blocks, what passes, and how many boots that takes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from hil.gate.compare.counts import Counts, decide_counts
from hil.gate.compare.exact import decide_exact
from hil.gate.compare.looks import LOOKS
from hil.gate.compare.sequential import IMPROVED, INCONCLUSIVE, PASS, REGRESSED, UNDECIDED
from tests.gate.gate_boots import design

LOSS = design(tolerance=0.005, min_effect=0.001)


def counts(seed: int, comparisons: int, share: float, boots: int, trials: int, bursts: float = 0.0) -> Counts:
    """Draw failures of four boards; ``bursts`` is the correlation of the trials of one boot."""
    random = np.random.RandomState(seed)
    shape = (comparisons, 4, boots)
    shares = np.full(shape, share)
    if bursts:
        shares = random.beta(share * (1 / bursts - 1), (1 - share) * (1 / bursts - 1), size=shape)
    return Counts(random.binomial(trials, shares).astype(float), np.full(shape, float(trials)))


def none(boots: int, trials: int = 200, boards: int = 1) -> Counts:
    return Counts(np.zeros((1, boards, boots)), np.full((1, boards, boots), float(trials)))


@pytest.mark.parametrize(("trials", "bursts"), [(200, 0.0), (1000, 0.0), (1000, 0.002)])
def test_a_loss_rate_that_doubles_is_found_and_one_that_does_not_is_not(trials: int, bursts: float) -> None:
    """From 1 % to 2 % in four times 200 to 1000 messages a boot: nearly always; unchanged: alpha is kept."""
    before = counts(1, 2000, 0.01, 8, trials, bursts)
    unchanged = decide_counts(counts(2, 2000, 0.01, 16, trials, bursts), before, LOSS)
    blocked = int((unchanged.state == REGRESSED).sum())
    assert blocked <= scipy.stats.binom.ppf(0.9999, 2000, LOSS.alpha)
    doubled = decide_counts(counts(3, 2000, 0.02, 16, trials, bursts), before, LOSS)
    assert (doubled.state == REGRESSED).mean() > 0.95


def test_no_failure_at_all_passes_once_the_trials_are_enough() -> None:
    """Nothing lost of a few messages excludes nothing: 32 do not show that less than 0.5 % are lost."""
    assert decide_counts(none(16, boards=4), none(8, boards=4), LOSS).state[0] == PASS
    assert decide_counts(none(16, trials=2), none(8, trials=2), LOSS).state[0] == INCONCLUSIVE
    assert decide_counts(none(4, trials=2), none(2, trials=2), LOSS).state[0] == UNDECIDED


def test_one_failure_does_not_block() -> None:
    """A single message lost by the candidate, and none by the base, is no regression at any look."""
    for boots in (2, 16):
        candidate = none(boots, boards=4)
        candidate.hits[0, 0, 1] = 1
        assert decide_counts(candidate, none(8, boards=4), LOSS).state[0] != REGRESSED


def test_a_burst_in_one_boot_does_not_block() -> None:
    """Fifty failures, all in one boot, are one event; the same fifty spread over all boots are not."""
    burst, spread = none(16, boards=2), none(16, boards=2)
    burst.hits[0, 0, 3] = 100
    spread.hits[:] = 100 / 32
    assert decide_counts(burst, none(8, boards=2), LOSS).state[0] != REGRESSED
    assert decide_counts(spread, none(8, boards=2), LOSS).state[0] == REGRESSED


def test_counts_freeze_and_replay() -> None:
    """A decision does not change by later boots, and fewer loss than before is an improvement."""
    candidate, other = counts(4, 200, 0.02, 16, 200), counts(5, 200, 0.01, 8, 200)
    whole = decide_counts(candidate, other, LOSS)
    part = decide_counts(Counts(candidate.hits[:, :, :9], candidate.trials[:, :, :9]), other, LOSS)
    decided = part.state != UNDECIDED
    assert decided.any()
    assert np.array_equal(part.state[decided], whole.state[decided])
    assert np.array_equal(part.z[decided], whole.z[decided])
    better = decide_counts(counts(6, 50, 0.0, 16, 1000), counts(7, 50, 0.05, 8, 1000), LOSS)
    assert set(better.state.tolist()) <= {PASS, IMPROVED}


@pytest.mark.parametrize("strange", [np.nan, np.inf, 0.0])
def test_boots_without_a_trial_say_nothing(strange: float) -> None:
    """NaN, infinite and no trials: the boot does not count, and nothing at all is never a pass."""
    candidate, other = none(16), none(8)
    candidate.trials[0, 0, 3] = strange
    assert decide_counts(candidate, other, LOSS).state[0] == PASS
    candidate.trials[:] = strange
    assert decide_counts(candidate, other, LOSS).state[0] in (UNDECIDED, INCONCLUSIVE)


EXACT = replace(design(LOOKS), tolerance=16.0, min_effect=0.0)


@pytest.mark.parametrize(
    ("grown", "state"),
    [(0.0, PASS), (16.0, PASS), (17.0, REGRESSED), (-1.0, IMPROVED), (np.inf, INCONCLUSIVE)],
)
def test_exact_figures_are_decided_at_the_first_look(grown: float, state: int) -> None:
    """Growth beyond the tolerance regresses at once; one board that grows is enough."""
    other = np.full((1, 2, 2), 4096.0)
    candidate = other + grown
    if grown > 0:
        candidate[:, 1] = 4096.0
    found = decide_exact(candidate, other, EXACT)
    assert found.state[0] == state
    assert found.look[0] == 1


def test_an_exact_figure_that_varies_is_none() -> None:
    """It must not change between boots: inconclusive; no boots: undecided; later ones: ignored."""
    other = np.full((1, 2, 4), 4096.0)
    candidate = other.copy()
    candidate[0, 0, 1] += 4
    assert decide_exact(candidate, other, EXACT).state[0] == INCONCLUSIVE
    assert decide_exact(np.full_like(other, np.nan), other, EXACT).state[0] == UNDECIDED
    later = np.repeat(other[:, :, :1], 4, axis=2)
    later[:, :, LOOKS[0][0] :] = 9999.0
    assert decide_exact(later, other, EXACT).state[0] == PASS
