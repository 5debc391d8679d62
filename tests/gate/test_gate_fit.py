# SPDX-License-Identifier: Apache-2.0
"""The test on values, look by look: error rates, boards, drift, strange values, boundaries, one by hand."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pytest
import scipy.stats

from hil.gate.boundaries import boundaries, go_on, information, of_looks, spent
from hil.gate.decision import ENOUGH_TO_PASS, Design
from hil.gate.fit import FittedBoot, look_at
from tests.gate.gate_boots import LOOKS, UNEVEN_LOOKS, Decision, Rig, decide, design, in_turns, until
from tests.lab import ROOT

MANY = 1000


@functools.cache
def unchanged(looks: tuple[tuple[int, int], ...]) -> list[Decision]:
    """Return the decisions on many comparisons of two builds that do not differ."""
    return decide(*Rig(1, MANY).run(looks=looks), design(looks))


def share(found: Sequence[Decision], *states: str) -> float:
    return sum(one.state in states for one in found) / len(found)


def passes(found: Sequence[Decision]) -> float:
    return share(found, "pass", "improved")


def at_most(found: Sequence[Decision], alpha: float) -> bool:
    """Return whether no more is regressed than chance allows at this alpha."""
    worse = sum(one.state == "regressed" for one in found)
    return bool(worse <= scipy.stats.binom.ppf(0.9999, len(found), alpha))


@pytest.mark.slow
@pytest.mark.parametrize("looks", [UNEVEN_LOOKS, LOOKS])
def test_unchanged_firmware_is_not_blocked(looks: tuple[tuple[int, int], ...]) -> None:
    """Candidate and base alike: alpha is kept and nearly all pass, whatever the session's level."""
    found = unchanged(looks)
    assert at_most(found, 0.001)
    assert passes(found) > 0.97


@pytest.mark.slow
def test_changes_are_found() -> None:
    """+10 % is found in 85 of 100 comparisons and more, +20 % in 99; -30 % in 95, and all of them pass."""
    for slower, state, least in (
        (0.1, "regressed", 0.85),
        (0.2, "regressed", 0.99),
        (-0.3, "improved", 0.95),
    ):
        found = decide(*Rig(2, MANY).run(slower=slower, looks=LOOKS), design(LOOKS))
        assert share(found, state) > least
        assert slower > 0 or passes(found) == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("share_slow", [0.2, 0.35, 0.5])
def test_modes_do_not_block_unchanged_firmware(share_slow: float) -> None:
    """Boots that are tight but for a second mode, which a robust deviation takes for a change."""
    random = np.random.RandomState(31)
    sides = [
        random.normal(size=(MANY, 4, 20)) * 0.005
        + np.log1p(0.2) * (random.random_sample((MANY, 4, 20)) < share_slow)
        for _ in range(2)
    ]
    assert at_most(decide(sides[0], sides[1], design(LOOKS)), 0.001)


@pytest.mark.slow
def test_today_s_noise_counts() -> None:
    """Noise three times as large as usual widens the error; no more unchanged firmware is blocked for it."""
    candidate, other = Rig(32, MANY).run(looks=LOOKS)
    assert at_most(decide(3.0 * candidate, 3.0 * other, design(LOOKS)), 0.001)


@pytest.mark.slow
@pytest.mark.parametrize(("slow", "times", "most"), [(0.25, 2.0, 0.01), (0.1, 10.0, 0.05)])
def test_a_firmware_that_is_sometimes_slow_does_not_pass(slow: float, times: float, most: float) -> None:
    """A quarter of the boots twice as slow, or a tenth of them ten times: a median of boots hid it."""
    candidate, other = Rig(33, MANY).run(looks=LOOKS)
    hit = np.random.RandomState(34).random_sample(candidate.shape) < slow
    found = decide(candidate + np.log(times) * hit, other, design(LOOKS))
    assert passes(found) < most


@pytest.mark.slow
def test_a_pass_before_the_last_look_takes_29_boots() -> None:
    """So many without a slow one exclude a tenth of slow boots with 95 %; at the last look fewer do."""
    early = {one.look for one in unchanged(LOOKS) if one.state == "pass"}
    assert min(early) == min(number for number, look in enumerate(LOOKS, 1) if 4 * look[0] >= ENOUGH_TO_PASS)
    assert ENOUGH_TO_PASS == 29
    assert share(unchanged(LOOKS[:1]), "pass") > 0.5


@pytest.mark.slow
def test_all_repeated_intervals_together_hold_the_truth() -> None:
    """With alpha of 2.5 %, 95 ± 1.5 % of comparisons hold the true change in their interval at every look."""
    candidate, other = Rig(1, MANY).run(slower=0.1, looks=LOOKS)
    wide, held = design(LOOKS, alpha=0.025), []
    for one, two in zip(candidate.tolist(), other.tolist(), strict=True):
        at = [
            look_at([until(in_turns(a, b), mine, base) for a, b in zip(one, two, strict=True)], wide, number)
            for number, (mine, base) in enumerate(LOOKS, start=1)
        ]
        held.append(all(seen.low <= math.log(1.1) <= seen.high for seen in at))
    assert np.mean(held) == pytest.approx(0.95, abs=0.015)


@pytest.mark.slow
def test_a_decision_freezes_when_it_is_made() -> None:
    """What comes after a decision, however odd, changes nothing of it."""
    candidate, other = Rig(6, 60).run(slower=0.07, looks=LOOKS)
    whole = decide(candidate, other, design(LOOKS))
    for number, (boots, _) in enumerate(LOOKS[:-1], start=1):
        later = candidate.copy()
        later[:, :, boots:] = 1e6
        for changed, one in zip(decide(later, other, design(LOOKS)), whole, strict=True):
            if one.state != "undecided" and one.look <= number:
                assert changed == one


@pytest.mark.slow
def test_between_smallest_effect_and_tolerance_more_boots_are_needed() -> None:
    """At the last look some are undecided, after all looks."""
    found = decide(*Rig(7, 200, boards=1).run(slower=0.06), design())
    assert share(found, "undecided") > 0.2
    assert {one.look for one in found if one.state == "undecided"} == {len(UNEVEN_LOOKS)}


@pytest.mark.slow
def test_a_comparison_does_not_hang_on_the_order_of_boards() -> None:
    """With its boards permuted a comparison is decided as before, by the same effects."""
    candidate, other = Rig(8, 50).run(slower=0.05)
    candidate[::5, 2] += 0.4
    turned = [2, 0, 3, 1]
    for one, two in zip(
        decide(candidate, other, design()),
        decide(candidate[:, turned], other[:, turned], design()),
        strict=True,
    ):
        assert one.state == two.state
        assert one.seen.difference == pytest.approx(two.seen.difference, abs=1e-15)
        assert two.seen.effects[1].difference == pytest.approx(one.seen.effects[0].difference, abs=1e-15)


@pytest.mark.parametrize("role", [0, 1])
def test_many_boots_of_one_role_do_not_stand_in_for_the_other(role: int) -> None:
    """Of five boots beside twenty nothing is decided, however far apart they lie; of six it is."""

    def state(fewer: int) -> str:
        sides = [[0.5, 0.501] * 10, [0.0, 0.001] * 10]
        sides[role] = sides[role][:fewer]
        return look_at([in_turns(*sides)], design(((20, 20),)), 1).state

    assert (state(5), state(6)) == ("undecided", "regressed")


@pytest.mark.slow
def test_boots_that_a_board_lost_are_missed() -> None:
    """A board with fewer boots counts with those it has; without any it says nothing."""
    candidate, other = Rig(9, 300).run(slower=0.1)
    candidate[:, 0, 3:] = np.nan
    other[:, 0, 1:] = np.nan
    found = decide(candidate, other, design())
    assert share(found, "regressed") > 0.8
    assert all(math.isfinite(one.seen.effects[0].difference) for one in found)
    nothing = np.full_like(candidate, np.nan)
    assert share(decide(nothing, other, design()), "undecided") == 1.0


@pytest.mark.slow
def test_a_single_board_that_is_worse_keeps_the_others_from_passing() -> None:
    """+11 % on one board of four is less than the smallest effect of all: nothing passes for it."""
    candidate, other = Rig(37, 200).run(looks=LOOKS)
    candidate, other = candidate / 10, other / 10
    candidate[:, 1] += np.log(1.11)
    found = decide(candidate, other, design(LOOKS))
    assert passes(found) < 0.05
    open_ = [one.seen for one in found if one.state == "undecided"]
    assert np.mean([seen.apart == 1 for seen in open_]) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("drifting", [slice(1), slice(4)], ids=["one board", "all boards"])
def test_a_drift_neither_blocks_nor_hides_anything(drifting: slice) -> None:
    """Boards that drift by 3 % a boot: an unchanged firmware passes, +10 % is found."""
    for slower, state in ((0.0, "pass"), (0.1, "regressed")):
        candidate, other = Rig(12, 300).run(slower=slower, looks=LOOKS)
        boots = in_turns(range(20), range(20))
        places = [[boot.place for boot in boots if boot.is_candidate is role] for role in (True, False)]
        candidate[:, drifting] += 0.03 * np.array(places[0])
        other[:, drifting] += 0.03 * np.array(places[1])
        assert share(decide(candidate, other, design(LOOKS)), state) > 0.95


@pytest.mark.parametrize("boards", [1, 4])
def test_a_slow_slot_neither_blocks_nor_hides_anything(boards: int) -> None:
    """A board whose images are 30 % slower in one slot, where both ran from both slots."""
    looks = ((20, 20),) if boards == 1 else ((10, 10),)
    for slower, state in ((0.0, "pass"), (0.1, "regressed")):
        candidate, other = Rig(13, 200, boards=boards).run(slower=slower, looks=looks)
        found = []
        for one, two in zip(candidate.tolist(), other.tolist(), strict=True):
            boots = [in_turns(a, b, slots=True) for a, b in zip(one, two, strict=True)]
            boots[0] = [boot._replace(value=boot.value + 0.26 * (boot.slot == "ota_1")) for boot in boots[0]]
            found.append(Decision(look_at(boots, design(looks), 1), 1))
        assert share(found, state) > 0.9


def test_a_board_of_few_boots_has_a_level_and_no_line() -> None:
    """Four boots that rise: with a line they would be all explained; without one they differ."""
    rising = [FittedBoot(place, place in (0, 3), 0.1 * place) for place in range(4)]
    even = [FittedBoot(place, place in (0, 3), 0.0) for place in range(4)]
    seen = look_at([rising, even], design(((2, 2),)), 1)
    assert seen.boot_deviation == pytest.approx(math.sqrt(0.05 / 5))


def test_a_change_below_min_effect_never_blocks() -> None:
    """However sure it is: a change of 2 % that everyone can see passes."""
    sides = np.linspace(0.0, 1e-4, 20)[np.newaxis, np.newaxis] + np.zeros((1, 4, 1))
    assert decide(sides + np.log(1.02), sides, design(LOOKS))[0].state == "pass"
    assert decide(sides + np.log(1.05), sides, design(LOOKS))[0].state == "regressed"


@pytest.mark.parametrize("value", [0.0, -3.0, 7.5, 1e9])
def test_equal_values_pass_by_their_number(value: float) -> None:
    """Without any spread a comparison still divides by something: equal ones pass, different ones regress."""
    equal = np.full((1, 4, 12), value)
    assert decide(equal, equal, design(LOOKS))[0].state == "pass"
    assert decide(equal + 0.2, equal, design(LOOKS))[0].state == "regressed"
    assert decide(equal[:, :1, :2], equal[:, :1, :2], design(((2, 2),)))[0].state == "undecided"


def _strange(random: np.random.RandomState, shape: tuple[int, int, int]) -> np.ndarray:
    far = [0.0, 0.01, -0.01, np.nan, np.inf, -np.inf, 2.0**53, -(2.0**53), 1e-308]
    strange = random.choice(far, size=shape)
    return np.asarray(np.where(random.random_sample(shape) < 0.4, random.normal(size=shape) * 0.05, strange))


@pytest.mark.parametrize("looks", [UNEVEN_LOOKS, LOOKS])
def test_strange_values_give_a_verdict(looks: tuple[tuple[int, int], ...]) -> None:
    """NaN, infinities, zeros and the largest values in any mixture: a state, never an exception."""
    random = np.random.RandomState(15)
    candidate, other = (_strange(random, (500, 3, boots)) for boots in looks[-1])
    for one in decide(candidate, other, design(looks)):
        assert one.state == "undecided" or math.isfinite(one.seen.difference)


@pytest.mark.slow
@pytest.mark.parametrize("looks", [UNEVEN_LOOKS, LOOKS])
def test_timeouts_count_as_worse_than_everything_seen(looks: tuple[tuple[int, int], ...]) -> None:
    """A candidate that mostly times out regresses; one bad boot does not; if both time out, none passes."""
    candidate, other = Rig(18, 100).run(looks=looks)
    mostly = candidate.copy()
    mostly[:, :, ::2] = np.inf
    mostly[:, :, 1] = np.inf
    assert share(decide(mostly, other, design(looks)), "regressed") > 0.95
    once = candidate.copy()
    once[:, 0, 1] = np.inf
    assert passes(decide(once, other, design(looks))) > 0.9
    never = np.full_like(other, np.inf)
    assert share(decide(np.full_like(candidate, np.inf), never, design(looks)), "undecided") == 1.0
    assert share(decide(candidate, never, design(looks)), "pass", "regressed") == 0.0


@pytest.mark.slow
def test_the_smallest_effect_is_found_four_times_of_five() -> None:
    """What a comparison says it would have seen is found with about 80 % power."""
    rig, one_look = Rig(19, 1500), design(((16, 16),), tolerance=-10.0, blind_below=0.0)
    effects = [one.seen.smallest_effect for one in decide(*rig.run(looks=((16, 16),)), one_look)]
    slower = float(np.expm1(np.median(effects)))
    found = decide(*rig.run(slower=slower, looks=((16, 16),)), one_look)
    assert share(found, "regressed") == pytest.approx(0.8, abs=0.1)


FIFTHS = (0.2, 0.4, 0.6, 0.8, 1.0)
PLANNED = (0.12, 0.26, 0.38, 0.52, 0.76, 1.0)
PLAN = ((3, 3), (6, 6), (10, 10), (16, 16))


def by(fractions: tuple[float, ...], alpha: float) -> tuple[float, ...]:
    return boundaries(fractions, tuple(spent(alpha, one) for one in fractions))


def crossing_probability(
    fractions: Sequence[float], bounds: Sequence[float], drift: Callable[[float], float] = lambda _: 0.0
) -> float:
    """Return how likely z crosses any of ``bounds``, its mean at fraction t being ``drift(t)``."""
    points, masses, before, crossed, mean = np.zeros(1), np.ones(1), 0.0, 0.0, 0.0
    for fraction, bound in zip(fractions, bounds, strict=True):
        root, step = math.sqrt(fraction), math.sqrt(fraction - before)
        shift = drift(fraction) * root
        points = points + (shift - mean)
        crossed += float(masses @ scipy.stats.norm.cdf((points - bound * root) / step))
        points, masses = go_on(points, masses, root, step, bound)
        before, mean = fraction, shift
    return crossed


@pytest.mark.parametrize(
    ("fractions", "published"),
    [(FIFTHS, (4.877, 3.357, 2.680, 2.290, 2.031)), ((1 / 3, 2 / 3, 1.0), (3.7103, 2.5114, 1.9930))],
)
def test_published_boundaries(fractions: tuple[float, ...], published: tuple[float, ...]) -> None:
    """Equal looks at a one-sided 2.5 %: values from the literature."""
    assert by(fractions, 0.025) == pytest.approx(published, abs=0.0006)


@pytest.mark.parametrize("alpha", [0.0005, 0.025])
def test_boundaries_spend_alpha(alpha: float) -> None:
    """Without a drift any boundary is crossed with probability alpha, at uneven looks too."""
    assert crossing_probability(PLANNED, by(PLANNED, alpha)) == pytest.approx(alpha, rel=0.01)


def test_boundaries_agree_with_simulation() -> None:
    """Brownian motion crosses as often as the recursion says, with and without a drift."""
    random = np.random.RandomState(5)
    fractions = np.array(PLANNED)
    steps = np.diff(fractions, prepend=0.0)
    sums = np.cumsum(random.normal(size=(100_000, 6)) * np.sqrt(steps), axis=1)
    found = by(PLANNED, 0.025)
    for drift in (0.0, 2.5):
        crossed = ((sums + drift * fractions) / np.sqrt(fractions) > np.array(found)).any(axis=1).sum()
        expected = crossing_probability(PLANNED, found, lambda t, drift=drift: drift * math.sqrt(t))
        low, high = scipy.stats.binom.interval(0.9999, len(sums), expected)
        assert low <= crossed <= high


def test_a_boundary_hangs_on_the_looks_before_it_only() -> None:
    """What comes later, planned or not, changes no boundary that a decision was made by."""
    assert by(PLANNED, 0.001)[:3] == by((*PLANNED[:3], 0.6, 0.9, 1.0), 0.001)[:3]


def test_the_looks_of_a_plan_spend_alpha_together() -> None:
    """However many there are; one look is a plain test. Looks that may err in every second case, the largest
    share that a policy may name, have boundaries too."""
    assert of_looks(((4, 4),), 0.05) == pytest.approx((1.6449,), abs=1e-4)
    fractions = tuple(information(look) / information(PLAN[-1]) for look in PLAN)
    assert crossing_probability(fractions, of_looks(PLAN, 0.01)) == pytest.approx(0.01, rel=0.01)
    for alpha in (0.34, 0.5):
        found = of_looks(PLAN, alpha)
        assert len(found) == len(PLAN)
        assert all(math.isfinite(bound) for bound in found)


def test_no_boundary_from_nonsense() -> None:
    """Fractions that do not grow are refused, and so is an alpha of 0."""
    with pytest.raises(ValueError, match="must grow"):
        boundaries((0.5, 0.5, 1.0), (0.001, 0.002, 0.003))
    with pytest.raises(ValueError, match=r"between 0 and 0\.5"):
        boundaries((1.0,), (0.0,))


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
