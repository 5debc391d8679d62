# SPDX-License-Identifier: Apache-2.0
"""Shares of failures and exact figures: what blocks, what passes, and how many boots that takes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import scipy.stats

from hil.gate.counts import Count, Tallies, dispersion_of, look_at_counts
from hil.gate.decision import Design
from hil.gate.exact import compare_exact, growth
from tests.gate.gate_boots import design

LOSS = design(tolerance=0.005, min_effect=0.001, blind_below=0.01)
Failures = list[list[float]]  # of boots, board by board


def state(candidate: Failures, other: Failures, trials: float = 200, loss: Design = LOSS) -> str:
    """Return what comes of boots of so many trials each, look by look."""
    for number, (mine, base) in enumerate(loss.looks, start=1):
        if len(candidate[0]) < mine or len(other[0]) < base:
            break
        tallies = [
            Tallies(
                [Count(hits, trials) for hits in one[:mine]], [Count(hits, trials) for hits in two[:base]]
            )
            for one, two in zip(candidate, other, strict=True)
        ]
        found = look_at_counts(tallies, loss, number).state
        if found != "undecided":
            return found
    return "undecided"


def drawn(
    seed: int, share: float, boots: int, trials: int, bursts: float = 0.0, comparisons: int = 400
) -> list[Failures]:
    """Draw failures of four boards; ``bursts`` is the correlation of the trials of one boot."""
    random = np.random.RandomState(seed)
    shape = (comparisons, 4, boots)
    shares = np.full(shape, share)
    if bursts:
        shares = random.beta(share * (1 / bursts - 1), (1 - share) * (1 / bursts - 1), size=shape)
    return random.binomial(trials, shares).astype(float).tolist()  # type: ignore[no-any-return]


def states(candidate: Sequence[Failures], other: Sequence[Failures], trials: int) -> list[str]:
    return [state(one, two, trials) for one, two in zip(candidate, other, strict=True)]


def none(boots: int, boards: int = 1) -> Failures:
    return [[0.0] * boots for _ in range(boards)]


def test_the_dispersion_of_boots_has_a_degree_of_freedom_less() -> None:
    """1 and 3 failures of 10 lie 1 beside the expected 2, of variance 1.6 each: chi-square 1.25 of one."""
    square, freedom = dispersion_of([Count(1, 10), Count(3, 10)])
    assert (square, freedom) == (pytest.approx(1.25), 1)


@pytest.mark.slow
@pytest.mark.parametrize(("trials", "bursts"), [(200, 0.0), (1000, 0.0), (1000, 0.002)])
def test_a_loss_rate_that_doubles_is_found_and_one_that_does_not_is_not(trials: int, bursts: float) -> None:
    """From 1 % to 2 % in four times 200 to 1000 messages a boot: nearly always; unchanged: alpha is kept."""
    before = drawn(1, 0.01, 8, trials, bursts)
    unchanged = states(drawn(2, 0.01, 16, trials, bursts), before, trials)
    assert unchanged.count("regressed") <= scipy.stats.binom.ppf(0.9999, 400, LOSS.alpha)
    doubled = states(drawn(3, 0.02, 16, trials, bursts), before, trials)
    assert doubled.count("regressed") > 0.9 * 400


def test_no_failure_at_all_passes_once_the_trials_are_enough() -> None:
    """Nothing lost of a few messages excludes nothing: 32 do not show that less than 0.5 % are lost."""
    assert state(none(16, boards=4), none(8, boards=4)) == "pass"
    assert state(none(16), none(8), trials=2) == "undecided"


def test_one_failure_or_one_burst_does_not_block() -> None:
    """A single message lost by the candidate, and none by the base, is no regression at any look. A hundred
    failures, all in one boot, are one event; the same spread over all boots are not."""
    for boots in (2, 16):
        candidate = none(boots, boards=4)
        candidate[0][1] = 1
        assert state(candidate, none(8, boards=4)) != "regressed"
    burst, spread = none(16, boards=2), [[100 / 32] * 16] * 2
    burst[0][3] = 100
    assert state(burst, none(8, boards=2)) != "regressed"
    assert state(spread, none(8, boards=2)) == "regressed"


def test_a_board_that_loses_everything_is_not_passed_over() -> None:
    """All messages of one board of four: the others do not pass for it."""
    candidate = none(16, boards=4)
    candidate[2] = [200.0] * 16
    assert state(candidate, none(8, boards=4)) == "undecided"


def test_fewer_failures_are_an_improvement() -> None:
    """From 5 % to none."""
    better = states(drawn(6, 0.0, 16, 1000, comparisons=50), drawn(7, 0.05, 8, 1000, comparisons=50), 1000)
    assert set(better) == {"improved"}


def test_boots_without_a_trial_say_nothing() -> None:
    """They do not count, and nothing at all is never a pass."""
    nothing, some = [Count(0.0, 0.0)] * 16, [Count(0.0, 200.0)] * 16
    assert look_at_counts([Tallies([*some[1:], *nothing[:1]], some)], LOSS, len(LOSS.looks)).state == "pass"
    assert look_at_counts([Tallies(nothing, some)], LOSS, len(LOSS.looks)).state == "undecided"
    assert look_at_counts([Tallies([], [])], LOSS, 1).state == "undecided"


@pytest.mark.parametrize(
    ("grown", "outcome"),
    [(0.0, "pass"), (16.0, "pass"), (17.0, "regressed"), (-1.0, "improved"), (np.inf, "undecided")],
)
def test_exact_figures(grown: float, outcome: str) -> None:
    """Growth beyond the tolerance regresses at once; one board that grows is enough."""
    usual = (4096.0, 4096.0)
    first = usual if grown > 0 else (4096.0 + grown,) * 2
    boards = [growth((first, usual)), growth(((4096.0 + grown,) * 2, usual))]
    assert compare_exact(boards, 16.0, 0.0) == outcome


def test_an_exact_figure_that_varies_is_a_range() -> None:
    """Apart by more than is tolerated at least: regressed; at most: a pass; between them nothing is known."""
    varies = growth(((4096.0, 4120.0), (4096.0, 4096.0)))
    assert (varies.least, varies.most) == (0.0, 24.0) if varies else False
    assert compare_exact([varies], 16.0, 0.0) == "undecided"
    assert compare_exact([varies], 24.0, 0.0) == "pass"
    assert compare_exact([varies, growth(((4200.0, 4201.0), (4096.0,)))], 24.0, 0.0) == "regressed"
    assert compare_exact([growth(((), (4096.0,)))], 16.0, 0.0) == "undecided"
