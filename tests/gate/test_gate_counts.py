# SPDX-License-Identifier: Apache-2.0
"""Shares of failures and exact figures: what blocks, what passes, and how many boots that takes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
import scipy.stats

from hil.gate.counts import Count, Tallies, dispersion_of, look_at_counts
from hil.gate.decision import Design
from hil.gate.exact import compare_exact, growth
from hil.gate.fit import FittedBoot, look_at
from tests.gate.gate_boots import design
from tests.lab import ROOT

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


ALPHA, BOOTS = 0.005, 8


class ByHand(NamedTuple):
    """The fit of a level and a line a board, and of one effect: by the normal equations of all boots."""

    slopes: Sequence[float]
    effect: float
    squares: float
    freedom: int
    deviation: float
    error: float

    @classmethod
    def of(cls, boards: Sequence[Sequence[tuple[bool, float]]]) -> ByHand:
        rows, values = [], []
        for number, board in enumerate(boards):
            for place, (is_candidate, value) in enumerate(board):
                own = [0.0] * 2 * len(boards)
                own[2 * number : 2 * number + 2] = [1.0, place - (BOOTS - 1) / 2]
                rows.append([*own, float(is_candidate)])
                values.append(value)
        design, y = np.array(rows), np.array(values)
        inverse = np.linalg.inv(design.T @ design)
        fitted = inverse @ design.T @ y
        squares = float(((y - design @ fitted) ** 2).sum())
        freedom = len(y) - design.shape[1]
        variance = squares / freedom
        return cls(
            [float(fitted[2 * n + 1]) for n in range(len(boards))], float(fitted[-1]), squares, freedom,
            math.sqrt(variance), math.sqrt(variance * float(inverse[-1, -1])),
        )  # fmt: skip


def section() -> str:
    return (ROOT / "docs" / "explain" / "verdict-by-hand.md").read_text(encoding="utf-8")


def boards() -> list[list[tuple[bool, float]]]:
    """Return (is the candidate's, logarithm) of the boots that the page lists, in their order."""
    rows = re.findall(r"^\| b\d \| (.+) \|$", section(), flags=re.MULTILINE)
    cells = [[cell.split() for cell in row.split(" | ")] for row in rows]
    return [[(role == "C", math.log(float(value))) for role, value in row] for row in cells]


def test_the_verdict_by_hand_is_right() -> None:
    """Slopes, squares, error, z, boundary and interval of the page follow from its boots. The gate's
    difference, error and deviation are those by hand, to the last digits, and so is the decision."""
    found = ByHand.of(boards())
    boundary = float(scipy.stats.t.isf(ALPHA, found.freedom))
    reach = boundary * found.error
    low, change, high = (
        math.expm1(at) * 100 for at in (found.effect - reach, found.effect, found.effect + reach)
    )
    for said in (
        *(f"{math.expm1(slope) * 100:+.2f} %" for slope in found.slopes),
        f"the change is {found.effect:.4f}",
        f"add up to {found.squares:.6f}, over 16 boots less {16 - found.freedom}",
        f"boots differ by {found.deviation * 100:.2f} %",
        f"= {found.error:.5f}. That is z = {found.effect / found.error:.1f}",
        f"exceeds {boundary:.2f} as rarely",
        f"**regressed**, by {change:.1f} % [{low:+.1f}, {high:+.1f}]",
    ):
        assert said in " ".join(section().split()), said
    own = [[FittedBoot(place, *boot) for place, boot in enumerate(board)] for board in boards()]
    seen = look_at(own, Design(((4, 4),), ALPHA, 0.05, math.log(1.10), math.log(1.03)), 1)
    assert seen.state == "regressed"
    by_hand = [found.effect, found.error, found.deviation]
    np.testing.assert_allclose([seen.difference, seen.error, seen.boot_deviation], by_hand, rtol=1e-10)
