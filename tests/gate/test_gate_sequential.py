# SPDX-License-Identifier: Apache-2.0
"""Decisions look by look: error rates, freezing, boards, modes, values that are none."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
import scipy.stats

from hil.gate.compare import sequential
from hil.gate.compare.looks import LOOKS
from hil.gate.compare.sequential import (
    IMPROVED,
    INCONCLUSIVE,
    PASS,
    REGRESSED,
    UNDECIDED,
    Decisions,
    decide,
    trace,
)
from tests.gate.gate_boots import UNEVEN_LOOKS, Rig, design

MANY = 2000
TYPICAL = Rig(1, MANY)


def share(found: Decisions, state: int) -> float:
    return float((found.state == state).mean())


def at_most(found: Decisions, alpha: float) -> bool:
    """Say whether no more is regressed than chance allows at this alpha."""
    return int((found.state == REGRESSED).sum()) <= scipy.stats.binom.ppf(0.9999, len(found.state), alpha)


def same(one: Decisions, two: Decisions, rows: np.ndarray) -> bool:
    return all(
        np.array_equal(getattr(one, field.name)[rows], getattr(two, field.name)[rows], equal_nan=True)
        for field in fields(Decisions)
    )


@pytest.mark.parametrize("looks", [UNEVEN_LOOKS, LOOKS])
def test_unchanged_firmware_is_not_blocked(looks: tuple[tuple[int, int], ...]) -> None:
    """Candidate and base alike: alpha is kept and nearly all pass, whatever the session's level."""
    found = decide(*TYPICAL.run(looks=looks), design(looks))
    assert at_most(found, 0.001)
    assert share(found, PASS) + share(found, IMPROVED) > 0.97


def test_regressions_are_found() -> None:
    """+10 % is found in 85 of 100 comparisons and more, +20 % in 99."""
    for slower, least in ((0.1, 0.85), (0.2, 0.99)):
        found = decide(*Rig(2, MANY).run(slower=slower, looks=LOOKS), design(LOOKS))
        assert share(found, REGRESSED) > least


def test_nothing_is_decided_before_six_boots_of_each() -> None:
    """Student's t of fewer boots would hang on luck."""
    one_board = Rig(4, 50, boards=1)
    early = decide(*one_board.run(looks=LOOKS), design(LOOKS))
    assert (early.look >= 3).all()


@pytest.mark.parametrize(("share_slow", "slow"), [(0.2, 0.2), (0.35, 0.2), (0.5, 0.2)])
def test_modes_do_not_block_unchanged_firmware(share_slow: float, slow: float) -> None:
    """Boots that are tight but for a second mode, which a robust deviation takes for a change."""
    random = np.random.RandomState(31)
    sides = [
        random.normal(size=(MANY, 4, 12)) * 0.005
        + np.log1p(slow) * (random.random_sample((MANY, 4, 12)) < share_slow)
        for _ in range(2)
    ]
    assert at_most(decide(*sides, design(LOOKS)), 0.001)


def test_today_s_noise_counts() -> None:
    """Noise three times as large as usual widens the error; no more unchanged firmware is blocked for it."""
    candidate, other = Rig(32, MANY).run(looks=LOOKS)
    assert at_most(decide(3.0 * candidate, 3.0 * other, design(LOOKS)), 0.001)


def test_a_firmware_that_is_sometimes_slow_does_not_pass() -> None:
    """A quarter of the boots twice as slow: a median of boots hid it in half of the runs."""
    candidate, other = Rig(33, MANY).run(looks=LOOKS)
    candidate += np.log(2.0) * (np.random.RandomState(34).random_sample(candidate.shape) < 0.25)
    found = decide(candidate, other, design(LOOKS))
    boots = np.array([4 * LOOKS[look - 1][0] for look in found.look])
    passed = np.isin(found.state, (PASS, IMPROVED))
    assert passed[boots >= 14].mean() < 0.02


@pytest.mark.parametrize("looks", [UNEVEN_LOOKS, LOOKS])
def test_all_repeated_intervals_together_hold_the_truth(looks: tuple[tuple[int, int], ...]) -> None:
    """With alpha of 2.5 %, 95 ± 1.5 % of comparisons hold the true change in their interval at every look."""
    candidate, other = TYPICAL.run(slower=0.1, looks=looks)
    seen = trace(candidate, other, design(looks, alpha=0.025))
    held = (np.abs(seen.difference - np.log(1.1)) <= seen.boundary * seen.error).all(axis=1)
    assert held.mean() == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize("looks", [UNEVEN_LOOKS, LOOKS])
def test_a_decision_freezes_when_it_is_made(looks: tuple[tuple[int, int], ...]) -> None:
    """What comes after a decision, however odd, changes no byte of it; a replay with fewer boots agrees."""
    rig = Rig(6, 300)
    candidate, other = rig.run(slower=0.07, looks=looks)
    whole = decide(candidate, other, design(looks))
    for of_candidate, of_other in looks[:-1]:
        number = looks.index((of_candidate, of_other)) + 1
        part = decide(candidate[:, :, :of_candidate], other[:, :, :of_other], design(looks))
        decided = part.state != UNDECIDED
        assert np.array_equal(decided, whole.look <= number - (whole.state == INCONCLUSIVE))
        assert same(part, whole, decided)
        later = candidate.copy()
        later[:, :, of_candidate:] = 1e6
        assert same(decide(later, other, design(looks)), whole, decided)


def test_the_last_look_without_a_decision_is_inconclusive() -> None:
    """Between min_effect and tolerance more boots were needed: all looks are used up, and it says so."""
    rig = Rig(7, 200, boards=1)
    found = decide(*rig.run(slower=0.06), design())
    assert (found.look[found.state == INCONCLUSIVE] == len(UNEVEN_LOOKS)).all()
    assert share(found, INCONCLUSIVE) > 0.2
    assert share(found, UNDECIDED) == 0.0


def test_a_comparison_does_not_hang_on_others_or_on_the_order_of_boards() -> None:
    """Alone, or with its boards permuted, a comparison is decided as among others."""
    rig = Rig(8, 20)
    candidate, other = rig.run(slower=0.05)
    whole = decide(candidate, other, design())
    for row in range(5):
        rows = np.array([row])
        alone = decide(candidate[rows], other[rows], design())
        assert alone.state[0] == whole.state[row]
        assert alone.difference[0] == whole.difference[row]
    turned = [2, 0, 3, 1]
    permuted = decide(candidate[:, turned], other[:, turned], design())
    assert np.array_equal(permuted.state, whole.state)
    assert permuted.difference == pytest.approx(whole.difference)
    assert np.array_equal(permuted.odd, whole.odd[:, turned])


def test_boots_that_a_board_lost_are_missed_but_waited_for_no_more() -> None:
    """A look is reached by the boards that go on; a board with fewer boots counts with those it has."""
    rig = Rig(9, 300)
    candidate, other = rig.run(slower=0.1)
    candidate[:, 0, 3:] = np.nan
    other[:, 0, 1:] = np.nan
    found = decide(candidate, other, design())
    assert share(found, REGRESSED) > 0.8
    assert not np.isnan(found.effects[:, 0]).any()
    nothing = np.full_like(candidate, np.nan)
    assert (decide(nothing, other, design()).state == UNDECIDED).all()
    first = decide(candidate[:, :, :1], other[:, :, :1], design())
    assert (first.state == UNDECIDED).all()
    assert (first.look == 0).all()


def test_a_board_that_contradicts_the_others_is_named_and_decides_nothing() -> None:
    """One of four boards whose candidate is 40 % slower blocks nothing alone, and is not passed over."""
    rig = Rig(10, 1000)
    candidate, other = rig.run()
    candidate[:, 2] += 0.35
    found = decide(candidate, other, design())
    assert (found.odd.mean(axis=0)[[0, 1, 3]] < 0.01).all()
    assert found.odd[:, 2].mean() > 0.95
    assert share(found, REGRESSED) < 0.01
    assert share(found, PASS) + share(found, IMPROVED) < 0.02
    candidate[:, 2] -= 0.7
    faster = decide(candidate, other, design())
    assert share(faster, PASS) + share(faster, IMPROVED) > 0.9


def test_a_board_apart_that_is_not_yet_odd_does_not_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where boots differ too much to name it, the others must show the more the further it lies apart."""
    rig = Rig(14, 2000)
    looks = LOOKS[:3]
    candidate, other = rig.run(looks=looks)
    candidate[:, 2] += 0.15
    found = decide(candidate, other, design(looks))
    assert found.odd[:, 2].mean() < 0.9
    monkeypatch.setattr(sequential, "APART_ERRORS", -100.0)
    without = decide(candidate, other, design(looks))
    assert share(found, REGRESSED) < 0.02
    assert share(found, REGRESSED) < 0.6 * share(without, REGRESSED)


def test_two_boards_that_contradict_each_other_decide_nothing() -> None:
    """Nobody knows which of the two is right: inconclusive, and both are named."""
    rig = Rig(11, 200, boards=2)
    candidate, other = rig.run()
    candidate[:, 0] += 0.5
    found = decide(candidate, other, design())
    assert share(found, INCONCLUSIVE) > 0.95
    assert found.odd[found.state == INCONCLUSIVE].all()


def test_a_drift_that_is_balanced_costs_little() -> None:
    """A board that drifts by 1 % a boot, in the order of the looks, neither blocks nor hides anything."""
    rig = Rig(12, 1000)
    for slower, state in ((0.0, PASS), (0.1, REGRESSED)):
        candidate, other = rig.run(slower=slower)
        places = np.arange(24)
        others = places[places % 3 == 1]
        candidate[:, 0] += 0.01 * np.setdiff1d(places, others)
        other[:, 0] += 0.01 * others
        assert share(decide(candidate, other, design()), state) > 0.85


def test_better_firmware_improves() -> None:
    """A candidate that is 30 % faster passes, and is called better where that is sure by then."""
    rig, last = Rig(14, 300), LOOKS[-1:]
    found = decide(*rig.run(slower=-0.3, looks=LOOKS), design(LOOKS))
    assert set(found.state.tolist()) <= {PASS, IMPROVED}
    assert share(decide(*rig.run(slower=-0.3, looks=last), design(last)), IMPROVED) > 0.95


def test_a_change_below_min_effect_never_blocks() -> None:
    """However sure it is: a change of 2 % that everyone can see passes."""
    values = np.linspace(0.0, 1e-4, 12)[np.newaxis, np.newaxis] + np.zeros((1, 4, 1))
    found = decide(values + np.log(1.02), values, design(LOOKS))
    assert found.state[0] == PASS
    found = decide(values + np.log(1.05), values, design(LOOKS))
    assert found.state[0] == REGRESSED


@pytest.mark.parametrize("value", [0.0, -3.0, 7.5, 1e9])
def test_equal_values_pass_by_their_number(value: float) -> None:
    """Without any spread a comparison still divides by something: equal ones pass, different ones regress."""
    equal = np.full((1, 2, 12), value)
    assert decide(equal, equal, design(LOOKS)).state[0] == PASS
    assert decide(equal + 0.2, equal, design(LOOKS)).state[0] == REGRESSED
    too_few = decide(equal[:, :1, :2], equal[:, :1, :2], design(((2, 2),)))
    assert too_few.state[0] == INCONCLUSIVE


def _strange(random: np.random.RandomState, shape: tuple[int, int, int]) -> np.ndarray:
    values = random.choice([0.0, 0.01, -0.01, np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-308], size=shape)
    return np.asarray(np.where(random.random_sample(shape) < 0.4, random.normal(size=shape) * 0.05, values))


@pytest.mark.parametrize("looks", [UNEVEN_LOOKS, LOOKS])
def test_strange_values_give_a_verdict(looks: tuple[tuple[int, int], ...]) -> None:
    """NaN, infinities, zeros and huge values in any mixture: a state, never an exception."""
    random = np.random.RandomState(15)
    candidate, other = (_strange(random, (500, 3, boots)) for boots in looks[-1])
    found = decide(candidate, other, design(looks))
    assert set(found.state.tolist()) <= set(range(5))
    decided = np.isin(found.state, (PASS, REGRESSED, IMPROVED))
    assert np.isfinite(found.difference[decided]).all()


@pytest.mark.parametrize("looks", [UNEVEN_LOOKS, LOOKS])
def test_timeouts_count_as_worse_than_everything_seen(looks: tuple[tuple[int, int], ...]) -> None:
    """A candidate that mostly times out regresses; one bad boot does not; if both time out, none passes."""
    rig = Rig(18, 100)
    candidate, other = rig.run(looks=looks)
    mostly = candidate.copy()
    mostly[:, :, ::2] = np.inf
    mostly[:, :, 1] = np.inf
    assert share(decide(mostly, other, design(looks)), REGRESSED) > 0.95
    once = candidate.copy()
    once[:, 0, 1] = np.inf
    assert share(decide(once, other, design(looks)), PASS) > 0.9
    never = np.full_like(other, np.inf)
    found = decide(np.full_like(candidate, np.inf), never, design(looks))
    assert (found.state == INCONCLUSIVE).all()
    assert not np.isin(decide(candidate, never, design(looks)).state, (PASS, REGRESSED)).any()


def test_the_smallest_effect_is_found_four_times_of_five() -> None:
    """What a comparison says it would have seen is found with about 80 % power."""
    rig = Rig(19, 1500, boards=2)
    wide = design(tolerance=-10.0)
    effect = float(np.median(decide(*rig.run(), wide).smallest_effect))
    found = decide(*rig.run(slower=float(np.expm1(effect))), wide)
    assert share(found, REGRESSED) == pytest.approx(0.8, abs=0.1)
