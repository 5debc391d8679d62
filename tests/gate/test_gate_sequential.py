# SPDX-License-Identifier: Apache-2.0
"""Decisions look by look: error rates, freezing, boards, the history's anchor, values that are none."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
import scipy.stats

from hil.gate.compare import sequential
from hil.gate.compare.sequential import (
    IMPROVED,
    INCONCLUSIVE,
    LOOKS,
    PASS,
    REGRESSED,
    UNDECIDED,
    Decisions,
    Noise,
    decide,
    trace,
)
from tests.gate.gate_boots import UNEVEN_LOOKS, Rig, design, no_noise, without_history

MANY = 2000
TYPICAL = Rig(1, MANY)
HISTORY = TYPICAL.history()


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


@pytest.mark.parametrize("creep", [-0.1, -0.05, 0.0, 0.05, 0.1])
def test_unchanged_firmware_is_not_blocked_wherever_main_has_gone(creep: float) -> None:
    """Candidate and base alike: alpha is kept and nearly all pass, whatever lies between base and epoch."""
    found = decide(*TYPICAL.run(creep=creep), HISTORY, design())
    assert at_most(found, 0.001)
    assert share(found, PASS) + share(found, IMPROVED) > 0.97


def test_regressions_are_found_with_a_history_and_without() -> None:
    """+10 % is found in 85 of 100 comparisons and more, +20 % in 99, by both schedules."""
    for slower, least in ((0.1, 0.85), (0.2, 0.99)):
        assert share(decide(*TYPICAL.run(slower=slower), HISTORY, design()), REGRESSED) > least
        bare = decide(*without_history(2, MANY, slower=slower), design(LOOKS))
        assert share(bare, REGRESSED) > least
        assert not bare.history_weight.any()


def test_unchanged_firmware_passes_without_a_history() -> None:
    """Student's t keeps alpha, and decides nothing before six boots of each role."""
    found = decide(*without_history(3, MANY), design(LOOKS))
    assert at_most(found, 0.001)
    assert share(found, PASS) > 0.97
    one_board = Rig(4, 50, boards=1)
    early = decide(*one_board.run(looks=LOOKS), no_noise(50, 1), design(LOOKS))
    assert (early.look >= 3).all()


@pytest.mark.parametrize("sessions", [30, 0])
def test_all_repeated_intervals_together_hold_the_truth(sessions: int) -> None:
    """With alpha of 2.5 %, 95 ± 1.5 % of comparisons hold the true change in their interval at every look."""
    looks = UNEVEN_LOOKS if sessions else LOOKS
    candidate, other = TYPICAL.run(slower=0.1, looks=looks)
    noise = HISTORY if sessions else no_noise(MANY, 4)
    seen = trace(candidate, other, noise, design(looks, alpha=0.025))
    held = (np.abs(seen.difference - np.log(1.1)) <= seen.boundary * seen.error).all(axis=1)
    assert held.mean() == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize("anchored", [True, False])
def test_a_decision_freezes_when_it_is_made(anchored: bool) -> None:
    """What comes after a decision, however odd, changes no byte of it; a replay with fewer boots agrees."""
    looks = UNEVEN_LOOKS if anchored else LOOKS
    rig = Rig(6, 300)
    noise = rig.history() if anchored else no_noise(300, 4)
    candidate, other = rig.run(slower=0.07, looks=looks)
    whole = decide(candidate, other, noise, design(looks))
    for of_candidate, of_other in looks[:-1]:
        number = looks.index((of_candidate, of_other)) + 1
        part = decide(candidate[:, :, :of_candidate], other[:, :, :of_other], noise, design(looks))
        decided = part.state != UNDECIDED
        assert np.array_equal(decided, whole.look <= number - (whole.state == INCONCLUSIVE))
        assert same(part, whole, decided)
        later = candidate.copy()
        later[:, :, of_candidate:] = 1e6
        assert same(decide(later, other, noise, design(looks)), whole, decided)


def test_the_last_look_without_a_decision_is_inconclusive() -> None:
    """Between min_effect and tolerance more boots were needed: all looks are used up, and it says so."""
    rig = Rig(7, 200, boards=1)
    found = decide(*rig.run(slower=0.06), rig.history(), design())
    assert (found.look[found.state == INCONCLUSIVE] == len(UNEVEN_LOOKS)).all()
    assert share(found, INCONCLUSIVE) > 0.2
    assert share(found, UNDECIDED) == 0.0


def test_a_comparison_does_not_hang_on_others_or_on_the_order_of_boards() -> None:
    """Alone, or with its boards permuted, a comparison is decided as among others."""
    rig = Rig(8, 20)
    noise = rig.history()
    candidate, other = rig.run(slower=0.05)
    whole = decide(candidate, other, noise, design())
    for row in range(5):
        rows = np.array([row])
        alone = decide(candidate[rows], other[rows], noise.of(rows), design())
        assert alone.state[0] == whole.state[row]
        assert alone.difference[0] == whole.difference[row]
    turned = [2, 0, 3, 1]
    permuted = decide(candidate[:, turned], other[:, turned], noise.each(lambda v: v[:, turned]), design())
    assert np.array_equal(permuted.state, whole.state)
    assert permuted.difference == pytest.approx(whole.difference)
    assert np.array_equal(permuted.odd, whole.odd[:, turned])


def test_boots_that_a_board_lost_are_missed_but_waited_for_no_more() -> None:
    """A look is reached by the boards that go on; a board with fewer boots counts with those it has."""
    rig = Rig(9, 300)
    noise = rig.history()
    candidate, other = rig.run(slower=0.1)
    candidate[:, 0, 3:] = np.nan
    other[:, 0, 1:] = np.nan
    found = decide(candidate, other, noise, design())
    assert share(found, REGRESSED) > 0.8
    assert not np.isnan(found.effects[:, 0]).any()
    nothing = np.full_like(candidate, np.nan)
    assert (decide(nothing, other, noise, design()).state == UNDECIDED).all()
    first = decide(candidate[:, :, :1], other[:, :, :1], noise, design())
    assert (first.state == UNDECIDED).all()
    assert (first.look == 0).all()


def test_a_board_that_contradicts_the_others_is_named_and_left_out() -> None:
    """One of four boards whose candidate is 40 % slower blocks nothing, alone; it is named."""
    rig = Rig(10, 1000)
    noise = rig.history()
    candidate, other = rig.run()
    candidate[:, 2] += 0.35
    found = decide(candidate, other, noise, design())
    assert (found.odd.mean(axis=0)[[0, 1, 3]] < 0.01).all()
    assert found.odd[:, 2].mean() > 0.95
    assert share(found, REGRESSED) < 0.01
    assert share(found, PASS) > 0.95


def test_a_board_apart_that_is_not_yet_odd_does_not_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where boots differ too much to name it, the others must show the more the further it lies apart."""
    rig = Rig(14, 2000)
    looks = LOOKS[:3]
    noise = rig.history()
    candidate, other = rig.run(looks=looks)
    candidate[:, 2] += 0.15
    found = decide(candidate, other, noise, design(looks))
    assert found.odd[:, 2].mean() < 0.9
    monkeypatch.setattr(sequential, "APART_ERRORS", -100.0)
    without = decide(candidate, other, noise, design(looks))
    assert share(found, REGRESSED) < 0.02
    assert share(found, REGRESSED) < 0.6 * share(without, REGRESSED)


def test_two_boards_that_contradict_each_other_decide_nothing() -> None:
    """Nobody knows which of the two is right: inconclusive, and both are named."""
    rig = Rig(11, 200, boards=2)
    noise = rig.history()
    candidate, other = rig.run()
    candidate[:, 0] += 0.5
    found = decide(candidate, other, noise, design())
    assert share(found, INCONCLUSIVE) > 0.95
    assert found.odd[found.state == INCONCLUSIVE].all()


def test_a_drift_that_is_balanced_costs_little() -> None:
    """A board that drifts by 1 % a boot, in the order of the looks, neither blocks nor hides anything."""
    rig = Rig(12, 1000)
    noise = rig.history()
    for slower, state in ((0.0, PASS), (0.1, REGRESSED)):
        candidate, other = rig.run(slower=slower)
        places = np.arange(24)
        others = places[places % 3 == 1]
        candidate[:, 0] += 0.01 * np.setdiff1d(places, others)
        other[:, 0] += 0.01 * others
        assert share(decide(candidate, other, noise, design()), state) > 0.85


def test_a_history_that_the_session_contradicts_has_no_weight() -> None:
    """Near the epoch the history anchors the base; far from it, it is contradicted on every board."""
    rig = Rig(13, 500)
    noise = rig.history()
    near = decide(*rig.run(), noise, design())
    assert near.history_weight.mean() > 0.3
    assert near.contradicted.mean() < 0.05
    far = decide(*rig.run(creep=0.5), noise, design())
    assert far.contradicted.all()
    assert not far.history_weight.any()
    no_epoch = replace(noise, mean=np.full((500, 4), np.nan), epoch_sessions=np.zeros((500, 4)))
    assert not decide(*rig.run(), no_epoch, design()).history_weight.any()


def test_better_firmware_improves() -> None:
    """A candidate that is 30 % faster passes, and is called better once that is sure."""
    rig = Rig(14, 300)
    found = decide(*rig.run(slower=-0.3), rig.history(), design())
    assert set(found.state.tolist()) <= {PASS, IMPROVED}
    assert share(found, IMPROVED) > 0.5


def test_a_change_below_min_effect_never_blocks() -> None:
    """However sure it is: a change of 2 % that everyone can see passes."""
    values = np.linspace(0.0, 1e-4, 12)[np.newaxis, np.newaxis] + np.zeros((1, 4, 1))
    found = decide(values + np.log(1.02), values, no_noise(1, 4), design(LOOKS))
    assert found.state[0] == PASS
    found = decide(values + np.log(1.05), values, no_noise(1, 4), design(LOOKS))
    assert found.state[0] == REGRESSED


@pytest.mark.parametrize("value", [0.0, -3.0, 7.5, 1e9])
def test_equal_values_pass_by_their_number(value: float) -> None:
    """Without any spread a comparison still divides by something: equal ones pass, different ones regress."""
    equal = np.full((1, 2, 12), value)
    assert decide(equal, equal, no_noise(1, 2), design(LOOKS)).state[0] == PASS
    assert decide(equal + 0.2, equal, no_noise(1, 2), design(LOOKS)).state[0] == REGRESSED
    too_few = decide(equal[:, :1, :2], equal[:, :1, :2], no_noise(1, 1), design(((2, 2),)))
    assert too_few.state[0] == INCONCLUSIVE


def _strange(random: np.random.RandomState, shape: tuple[int, int, int]) -> np.ndarray:
    values = random.choice([0.0, 0.01, -0.01, np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-308], size=shape)
    return np.asarray(np.where(random.random_sample(shape) < 0.4, random.normal(size=shape) * 0.05, values))


@pytest.mark.parametrize("anchored", [True, False])
def test_strange_values_give_a_verdict(anchored: bool) -> None:
    """NaN, infinities, zeros and huge values in any mixture: a state, never an exception."""
    looks = UNEVEN_LOOKS if anchored else LOOKS
    random = np.random.RandomState(15)
    noise = Rig(16, 500, boards=3).history() if anchored else no_noise(500, 3)
    candidate, other = (_strange(random, (500, 3, boots)) for boots in looks[-1])
    found = decide(candidate, other, noise, design(looks))
    assert set(found.state.tolist()) <= set(range(5))
    decided = np.isin(found.state, (PASS, REGRESSED, IMPROVED))
    assert np.isfinite(found.difference[decided]).all()
    strange_noise = Noise(*(_strange(random, (500, 3, 1))[:, :, 0] for _ in range(7)))
    decide(*Rig(17, 500, boards=3).run(looks=looks), strange_noise, design(looks))


@pytest.mark.parametrize("anchored", [True, False])
def test_timeouts_count_as_worse_than_everything_seen(anchored: bool) -> None:
    """A candidate that mostly times out regresses; one bad boot does not; if both time out, none passes."""
    looks = UNEVEN_LOOKS if anchored else LOOKS
    rig = Rig(18, 100)
    noise = rig.history() if anchored else no_noise(100, 4)
    candidate, other = rig.run(looks=looks)
    mostly = candidate.copy()
    mostly[:, :, ::2] = np.inf
    mostly[:, :, 1] = np.inf
    assert share(decide(mostly, other, noise, design(looks)), REGRESSED) > 0.95
    once = candidate.copy()
    once[:, 0, 1] = np.inf
    assert share(decide(once, other, noise, design(looks)), PASS) > 0.9
    never = np.full_like(other, np.inf)
    found = decide(np.full_like(candidate, np.inf), never, noise, design(looks))
    assert (found.state == INCONCLUSIVE).all()
    assert not np.isin(decide(candidate, never, noise, design(looks)).state, (PASS, REGRESSED)).any()


def test_the_smallest_effect_is_found_four_times_of_five() -> None:
    """What a comparison says it would have seen is found with about 80 % power."""
    rig = Rig(19, 1500, boards=2)
    noise = rig.history()
    wide = design(tolerance=-10.0)
    effect = float(np.median(decide(*rig.run(), noise, wide).smallest_effect))
    found = decide(*rig.run(slower=float(np.expm1(effect))), noise, wide)
    assert share(found, REGRESSED) == pytest.approx(0.8, abs=0.1)


def test_kappa_widens() -> None:
    """With kappa of 2 the interval is twice as wide, and what was just regressed is not any more."""
    rig = Rig(20, 200)
    noise = rig.history()
    candidate, other = rig.run()
    seen = trace(candidate, other, noise, design())
    wider = trace(candidate, other, noise, design(kappa=2.0))
    assert wider.boundary == pytest.approx(2.0 * seen.boundary)
