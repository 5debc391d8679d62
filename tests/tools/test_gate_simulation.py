# SPDX-License-Identifier: Apache-2.0
"""The simulation of the gate: its model, the rules it compares, and that its aims can be missed."""

from __future__ import annotations

import io
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from hil.run.plan.looks import Pace, order
from tools.gate_simulation import __main__ as command
from tools.gate_simulation import aims, competitors, samples, table
from tools.gate_simulation.competitors import RULES, Rule
from tools.gate_simulation.coverage import Coverage, held_by
from tools.gate_simulation.draws import CANDIDATE_BOOTS, NIGHTS, OTHER_BOOTS, Draw
from tools.gate_simulation.duel import Duel, duel, p_values
from tools.gate_simulation.environment import BURST, Environment
from tools.gate_simulation.equal import equal_thresholds, threshold_at
from tools.gate_simulation.evidence import Evidence, Nights
from tools.gate_simulation.model import PUBLISHED_MS, QUANTILES, TIGHT, TYPICAL, draw_samples
from tools.gate_simulation.ours import looks_of, our_gate
from tools.gate_simulation.places import places
from tools.gate_simulation.results import (
    PASS,
    REGRESSED,
    UNDECIDED,
    Share,
    Verdicts,
)
from tools.gate_simulation.simulate import Found, Settings, simulate_all
from tools.gate_simulation.situations import ALONE, CHIPS, CREEPS, LOUD, ODD, PLANS, Plan
from tools.gate_simulation.suite import (
    ALL_FAIL,
    DATAGRAMS,
    FAILURES,
    FASTER,
    INDEX,
    LOSS,
    MEDIAN_10,
    MEDIAN_20,
    METRICS,
    ONE_BOARD,
    ONE_BOARD_FAILS,
    ONE_CHIP,
    QUARTER,
    SPIKES,
    TAIL,
    UNCHANGED,
    Effect,
)
from tools.gate_simulation.walltime import boots_within, look_s, measuring_s, spend

TINY = Settings(pull_requests=12, pool_boots=300)
TYPICAL_PLAN = PLANS[0]
FOUR = ((4, 4),)
FOUR_BOARDS = Environment("four", samples=200)
MEDIAN = INDEX["publish/median"]
TELLING = [MEDIAN_10, TAIL, SPIKES, LOSS, ONE_BOARD, QUARTER, FAILURES[1]]


def drawn(environment: Environment | None = None, count: int = 40, seed: int = 3, nights: int = 0) -> Draw:
    return Draw(environment or Environment("typical"), count, (seed, 1), 500, nights)


@dataclass
class GivenEvidence:
    """Evidence of which a test says the values: of nights, and of the pull request."""

    nights_values: list[float]
    candidate: float
    metrics: list[int] = field(default_factory=lambda: [0])

    def value(self, metrics: list[int]) -> np.ndarray:
        return np.full((1, len(metrics)), self.candidate)

    def history(self, metrics: list[int]) -> np.ndarray:
        return np.broadcast_to(np.array(self.nights_values), (1, len(metrics), len(self.nights_values)))


def rule_named(name: str) -> Rule:
    return next(rule for rule in RULES if rule.name == name)


def blocks(name: str, nights: list[float], candidate: float) -> bool:
    rule = rule_named(name)
    return bool(rule.score(GivenEvidence(nights, candidate), [0])[0, 0] > rule.threshold)  # type: ignore[arg-type]


def test_samples_have_the_published_quantiles() -> None:
    """The distribution of samples fits each published quantile within two per cent."""
    found = np.quantile(draw_samples(np.random.default_rng(5), 2000), QUANTILES)
    assert found == pytest.approx(PUBLISHED_MS, rel=0.02)


def test_boots_and_sessions_scatter_as_the_noise_class_says() -> None:
    """Throughput, which has hardly any noise of its own, shows the boots' and the sessions' deviations."""
    environment = Environment("plain", replace(TYPICAL, bad_share=0.0))
    values = drawn(environment, 60, nights=NIGHTS).history_values()[:, INDEX["stream/throughput"]]
    own = 0.10 / np.sqrt(10)
    assert values.std(axis=-1, ddof=1).mean() == pytest.approx(np.hypot(0.04, own), rel=0.1)
    of_means = values.mean(axis=-1).std(axis=-1, ddof=1).mean()
    assert of_means == pytest.approx(np.sqrt(0.03**2 + (0.04**2 + own**2) / 6), rel=0.1)


def test_a_seed_draws_the_same_pull_requests() -> None:
    """What is simulated depends on the seed alone."""
    first, again, other = (drawn(seed=seed).run(FOUR, MEDIAN_10) for seed in (3, 3, 4))
    assert all(np.array_equal(one, two) for one, two in zip(first, again, strict=True))
    assert not np.array_equal(first[0], other[0])


@pytest.mark.parametrize("effect", TELLING, ids=lambda effect: effect.name)
def test_an_effect_changes_the_candidate_alone(effect: Effect) -> None:
    """An effect makes the metric that should tell worse, leaves other cases and the base as they were."""
    usual, changed = (drawn().run(((6, 6),), one) for one in (UNCHANGED, effect))
    index = INDEX[effect.metric]
    assert changed[0][:, index].mean() > usual[0][:, index].mean() + 0.03
    case = METRICS[index].case
    others = [number for number, metric in enumerate(METRICS) if metric.case != case]
    assert np.array_equal(changed[0][:, others], usual[0][:, others])
    assert np.array_equal(changed[1], usual[1])


def test_an_effect_falls_on_the_boards_and_boots_that_it_names() -> None:
    """+15 % on one board moves no other; a quarter of the boots is one of four, twice as slow."""
    usual = drawn().run(FOUR, UNCHANGED)[0][:, MEDIAN]
    one_board = drawn().run(FOUR, ONE_BOARD)[0][:, MEDIAN] - usual
    assert one_board[:, 0] == pytest.approx(np.log(1.15), rel=1e-3)
    assert not one_board[:, 1:].any()
    some_boots = drawn().run(FOUR, QUARTER)[0][:, MEDIAN] - usual
    slow = some_boots > 0
    assert slow.mean() == pytest.approx(0.25, abs=0.06)
    assert some_boots[slow] == pytest.approx(np.log(2.0), rel=1e-3)


def test_total_failure_is_total() -> None:
    """0 % of the base and all of the candidate's datagrams are lost, whatever the boots' luck."""
    candidate, other = drawn(Environment("none", loss_share=0.0)).run(FOUR, ALL_FAIL)
    assert (candidate[:, INDEX["stream/loss"]] == DATAGRAMS).all()
    assert not other[:, INDEX["stream/loss"]].any()
    candidate, _ = drawn(Environment("none", loss_share=0.0)).run(FOUR, ONE_BOARD_FAILS)
    assert (candidate[:, INDEX["stream/loss"], 0] == DATAGRAMS).all()
    assert not candidate[:, INDEX["stream/loss"], 1:].any()


LOOKS = ((3, 3), (6, 6), (10, 10), (20, 20))


@pytest.mark.parametrize("first", [True, False])
def test_boots_run_in_the_products_order(first: bool) -> None:
    """The places of the roles are those of hil.run.plan.looks, look by look; either role may begin."""
    mine, base = places(LOOKS, first)
    roles = [
        role
        for look in order(LOOKS, ("candidate", "base") if first else ("base", "candidate"))
        for role in look
    ]
    assert [roles[place] for place in mine] == ["candidate"] * len(mine)
    assert sorted([*mine, *base]) == list(range(40))
    assert roles[0] == ("base" if 0 in base else "candidate")


def test_a_drift_comes_out_of_each_look() -> None:
    """What a linear drift adds to the candidate's mean it adds to the base's, at every look.

    Of an odd number of boots of each, which nothing can balance, all but a third of what it adds to a boot.
    """
    looks, drift = ((3, 3), (5, 5), (8, 8)), 0.5
    for all_drift, boards in ((False, 1), (True, 4)):
        drifting = drawn(Environment("drift", drift=drift, all_drift=all_drift), 4).run(looks, UNCHANGED)
        steady = drawn(Environment("drift"), 4).run(looks, UNCHANGED)
        moved = [(now - then)[:, MEDIAN] for now, then in zip(drifting, steady, strict=True)]
        assert (moved[0] != 0).any(axis=(0, 2)).sum() == boards
        for candidate, other in looks:
            means = moved[0][..., :candidate].mean(axis=-1), moved[1][..., :other].mean(axis=-1)
            left = drift / 3 if candidate % 2 else 0.0
            assert means[0] == pytest.approx(means[1], rel=1e-4, abs=left + 1e-6)


def test_a_burst_slows_every_board_of_a_moment_in_either_role() -> None:
    """Where all moments burst, all boots are slower alike; where some do, those of the same places are."""
    usual, slow = (
        drawn(Environment("bursts", bursts=share), 10).run(FOUR, UNCHANGED) for share in (0.0, 1.0)
    )
    for now, then in zip(slow, usual, strict=True):
        assert (now - then)[:, MEDIAN] == pytest.approx(np.log(BURST), abs=1e-5)
    some = drawn(Environment("bursts", bursts=0.3), 10)
    moved = [b - a for a, b in zip(usual, some.run(FOUR, UNCHANGED), strict=True)]
    for number in range(10):
        for board in range(4):
            mine, base = places(FOUR, bool(some.first_role[number, board]))
            assert np.array_equal(moved[0][number, MEDIAN, board] > 0.1, some.moments[number, mine])
            assert np.array_equal(moved[1][number, MEDIAN, board] > 0.1, some.moments[number, base])


def test_a_candidate_that_is_odd_on_one_board_is_so_in_every_metric() -> None:
    """The candidate's slot of the first board is slower; the base and the other boards are not."""
    usual, odd = (drawn(Environment("odd", odd=size)).run(FOUR, UNCHANGED) for size in (0.0, 0.3))
    assert (odd[0] - usual[0])[:, MEDIAN, 0] == pytest.approx(0.3, abs=1e-5)
    assert np.array_equal(odd[0][:, :, 1:], usual[0][:, :, 1:])
    assert np.array_equal(odd[1], usual[1])


def test_tight_modes_are_two_values() -> None:
    """Boots of tight modes lie within 2 % of one of two levels 20 % apart, the share as said in the upper."""
    environment = Environment("modes", TIGHT, scatter=0.05, modes=(0.35, float(np.log(1.2))))
    values = np.concatenate(drawn(environment, 60).run(FOUR, UNCHANGED), axis=-1)[:, MEDIAN, 0]
    values = values - values.min(axis=-1, keepdims=True)
    assert ((values < 0.04) | (np.abs(values - np.log(1.2)) < 0.04)).all()
    levels = drawn(environment, 60).run(((12, 12),), UNCHANGED)[0][:, MEDIAN, 0]
    assert (levels > levels.min(axis=-1, keepdims=True) + 0.1).mean() == pytest.approx(0.35, abs=0.07)


def test_a_clock_of_steps_reads_multiples_of_them() -> None:
    """Medians of 20 ms are read as 15, 20 or 25 ms, and a step of the clock is in the variance."""
    values = np.exp(drawn(Environment("steps", quantum_ms=5.0)).run(FOUR, UNCHANGED)[0][:, MEDIAN])
    assert values / 5.0 == pytest.approx(np.rint(values / 5.0), abs=1e-4)
    assert np.median(values) == pytest.approx(20.0)


@pytest.mark.parametrize("tails", ["t", "lognormal"])
def test_heavy_tails_are_on_top_of_the_same_body(tails: Any) -> None:
    """Half of the boots differ about as much as normal ones, the farthest much more."""
    one = INDEX["stream/throughput"]
    normal, heavy = (
        drawn(Environment("tails", replace(TYPICAL, bad_share=0.0), tails=law), 200).run(FOUR, UNCHANGED)[0][
            :, one
        ]
        for law in ("normal", tails)
    )
    spread = [
        np.quantile(of - of.mean(axis=-1, keepdims=True), (0.25, 0.75, 0.999)) for of in (normal, heavy)
    ]
    assert spread[1][1] - spread[1][0] < 1.5 * (spread[0][1] - spread[0][0])
    assert spread[1][2] > 1.5 * spread[0][2]


def test_metrics_as_one_share_all_their_noise() -> None:
    """Medians of all cases are the same but for what a session adds, which candidate and base share."""
    values = drawn(Environment("one", common=1.0)).run(FOUR, UNCHANGED)[0]
    publish, request = (values[:, INDEX[f"{case}/median"]] for case in ("publish", "request"))
    off = publish - request
    assert off == pytest.approx(np.broadcast_to(off[..., :1], off.shape), abs=1e-5)


def test_creep_moves_the_nights_and_the_pull_request() -> None:
    """The last night and both roles of the pull request have crept by all of it, the first night hardly."""
    crept, usual = (drawn(Environment("creep", creep=size), nights=NIGHTS) for size in (0.1, 0.0))
    nights = (crept.history_values() - usual.history_values())[:, MEDIAN].mean(axis=(0, 1, 3))
    assert nights == pytest.approx(0.1 * np.arange(1, NIGHTS + 1) / NIGHTS, abs=1e-5)
    sides = zip(crept.run(FOUR, UNCHANGED), usual.run(FOUR, UNCHANGED), strict=True)
    assert all((now - then)[:, MEDIAN].mean() == pytest.approx(0.1, abs=1e-5) for now, then in sides)


def test_rules_of_history_on_values_that_were_worked_out_by_hand() -> None:
    """Ratio, prediction interval, z and quartiles block beyond their boundary and not below it."""
    nights = [98.0, 102.0] * 15
    assert not blocks("ratio 200 %", nights, 203.9)
    assert blocks("ratio 200 %", nights, 204.1)
    spread = float(np.std(nights, ddof=1))
    bound = 100.0 + float(stats.t.ppf(0.99, 29)) * spread * np.sqrt(1 + 1 / 30)
    assert not blocks("Bencher t", nights, bound - 0.01)
    assert blocks("Bencher t", nights, bound + 0.01)
    assert not blocks("conbench z", nights, 100.0 + 4.99 * spread)
    assert blocks("conbench z", nights, 100.0 + 5.01 * spread)
    steps = [100.0, 101.0, 103.0, 102.0, 100.0, 101.0, 103.0, 102.0]
    first, third = np.quantile(np.abs(np.diff(steps) / np.array(steps[:-1])), (0.25, 0.75))
    bound = 102.0 * (1 + third + 3 * (third - first))
    assert not blocks("rustc-perf IQR", steps, bound - 0.01)
    assert blocks("rustc-perf IQR", steps, bound + 0.01)


def test_otava_is_asked_for_changes_for_the_worse_in_the_pull_request() -> None:
    """A rise in the last points is found, a fall is not, and one point is none where two are asked for."""
    nights = np.exp(np.random.default_rng(1).normal(0, 0.01, 30))
    assert competitors.change_score(nights, np.array([1.3]), 0.0, 1) > rule_named("Otava").threshold
    assert competitors.change_score(nights, np.array([0.7]), 0.0, 1) == 0
    assert competitors.change_score(nights, np.array([1.0]), 0.0, 1) == 0
    assert (
        competitors.change_score(nights, np.array([1.3, 1.3]), 0.03, 2) > rule_named("Otava tuned").threshold
    )
    assert competitors.change_score(nights, np.array([1.0, 1.3]), 0.03, 2) == 0


def test_tests_of_samples_are_those_of_scipy() -> None:
    """Mann-Whitney's z on counts a bin, Welch's t and the stratified one agree with scipy's."""
    rng = np.random.default_rng(2)
    mine, base = rng.integers(0, 40, 300), rng.integers(0, 37, 250)
    counts = [np.bincount(values, minlength=40)[np.newaxis] for values in (mine, base)]
    expected = stats.mannwhitneyu(
        mine, base, alternative="greater", method="asymptotic", use_continuity=False
    )
    assert stats.norm.sf(samples.rank_z(*counts)[0]) == pytest.approx(expected.pvalue, rel=1e-6)
    one, two = rng.normal(1.0, 1.0, 8), rng.normal(0.0, 2.0, 8)
    welch = stats.ttest_ind(one, two, equal_var=False)
    parts = [np.array([number]) for values in (one, two) for number in (values.mean(), values.var(ddof=1))]
    assert samples.two_sample_t(parts[0], parts[1], 8, parts[2], parts[3], 8)[0] == pytest.approx(
        welch.statistic
    )
    deviate = samples.stratified_welch(one[np.newaxis], two[np.newaxis])
    assert 2 * stats.norm.sf(float(deviate)) == pytest.approx(welch.pvalue, rel=1e-3)


def test_pooled_rules_see_what_is_there() -> None:
    """Samples that are slower by a fifth are far beyond the bound of both pooled rules, in one case only."""
    draw = drawn(count=10, nights=NIGHTS)
    evidence = Evidence(draw, Nights.of(draw.history_values()), MEDIAN_20, 8)
    for name in ("pooled MWU", "pooled t", "Welch boots"):
        rule = rule_named(name)
        score = rule.score(evidence, [MEDIAN, INDEX["request/median"]])
        assert (score[:, 0] > rule.threshold).all()
        assert np.median(score[:, 1]) < rule.threshold


@pytest.mark.parametrize(("boots", "seconds"), [(2, (20.0, 20.0)), (4, (10.0, 20.0)), (3, (20.0,))])
def test_the_time_of_a_look_is_the_products(boots: int, seconds: tuple[float, ...]) -> None:
    """The formula for many pull requests gives what hil.run.plan.looks gives for one."""
    expected = Pace(seconds).look_s(boots)
    assert look_s(boots, np.array([seconds])) == pytest.approx(expected)
    assert look_s(boots, np.zeros((1, len(seconds)))) == 0.0


def test_a_chip_that_is_decided_measures_no_more() -> None:
    """Boards measure the groups of their own chip that are open: both, one, or none."""
    still = np.ones((1, 20), dtype=bool)
    still[0, 10:] = False
    two_chips = Environment("chips", chips=2, samples=200)
    assert list(measuring_s(still, two_chips)[0]) == [20.0, 20.0, 0.0, 0.0]
    still[0, 10 + INDEX["stream/loss"]] = True
    assert list(measuring_s(still, two_chips)[0]) == [20.0, 20.0, 10.0, 10.0]


def test_a_look_beyond_the_budget_is_not_begun() -> None:
    """Looks are taken while some metric is open and there is time; the first one always."""
    looks = ((2, 2), (4, 4), (6, 6))
    last = np.array([[0] * 10, [2] * 10, [0] * 9 + [1]])
    taken, boots, seconds = spend(last, looks, FOUR_BOARDS, budget_s=700.0)
    assert list(taken) == [1, 2, 2]
    assert list(boots) == [4, 8, 8]
    assert list(seconds) == [332.0, 664.0, 332.0 + 12 + 4 * 4 * 10]
    assert list(spend(last, looks, FOUR_BOARDS, budget_s=1.0)[0]) == [1, 1, 1]


def test_looks_are_cut_to_what_the_budget_pays() -> None:
    """Four boards that share the air get fewer looks than one, of one chip or of two."""
    assert looks_of(Environment("four"))[-1] == (9, 9)
    assert looks_of(Environment("chips", chips=2))[-1] == (9, 9)
    assert looks_of(Environment("one", boards=1))[-1] == (17, 17)
    most = max(max(looks_of(plan.environment)[-1]) for plan in PLANS)
    assert most <= min(CANDIDATE_BOOTS, OTHER_BOOTS)


def test_the_t_test_is_students_with_boards_as_strata() -> None:
    """Of one board its p is scipy's; a level of a board's own changes nothing; its time is not exceeded."""
    rng = np.random.default_rng(4)
    mine, base = rng.normal(0.5, 1.0, (2, 7)), rng.normal(0.0, 1.0, (2, 6))
    expected = stats.ttest_ind(mine[0], base[0], alternative="greater").pvalue
    assert p_values(mine[:1], base[:1]) == pytest.approx(expected)
    levels = np.array([[0.0], [5.0]])
    assert p_values(mine + levels, base + levels) == pytest.approx(p_values(mine, base))
    assert boots_within(12 + 4 * 9 * 20, FOUR_BOARDS) == 9
    assert boots_within(12 + 4 * 9 * 20 - 1, FOUR_BOARDS) == 8


def test_chips_share_alpha_and_are_judged_apart() -> None:
    """+15 % on a chip is caught by its own ten decisions; the other chip's ten see nothing."""
    draw = drawn(CHIPS.environment, 60)
    verdicts = our_gate(draw, replace(ONE_CHIP, slower=0.5))
    assert verdicts.state.shape == (60, 20)
    assert verdicts.caught(ONE_CHIP.metric).mean() > 0.9
    assert not (verdicts.state[:, 10:] == REGRESSED).any()
    little = replace(ONE_CHIP, slower=0.08)
    whole = our_gate(draw, little, share=1.0)
    assert whole.caught(little.metric).sum() > our_gate(draw, little).caught(little.metric).sum()


@pytest.mark.slow
def test_intervals_are_held_against_what_is_true_of_the_boards_that_count() -> None:
    """A board that is left out as odd leaves 0 as the truth: intervals hold as often as elsewhere."""
    for environment in (Environment("typical"), ODD[1].environment):
        held = held_by(drawn(environment, 200))
        assert 0.90 < held.mean() < 0.99
    found = Coverage.of(np.array([1.0, 0.5, 1.0, 0.5]))
    assert (found.value, found.error) == pytest.approx((0.75, np.sqrt(1 / 12) / 2))


def test_an_equal_rate_is_never_exceeded() -> None:
    """At most one per cent of the scores lie beyond the threshold, ties or not."""
    assert (np.arange(1000.0) > threshold_at(np.arange(1000.0))).sum() == 10
    assert not (np.ones(50) > threshold_at(np.ones(50))).any()


def always(state: int, seconds: float = 332.0) -> object:
    """Return a gate that always says the same of every metric at 16 candidate boots."""

    def gate(draw: Draw, effect: Effect) -> Verdicts:
        shape = (draw.count, len(METRICS) * draw.environment.chips)
        zeros = np.zeros(draw.count)
        return Verdicts(
            np.full(shape, state), np.full(shape, 16), zeros + 4, zeros + seconds, zeros.astype(bool), zeros
        )

    return gate


def simulated(gate: object, plans: tuple[Plan, ...] = (TYPICAL_PLAN,), settings: Settings = TINY) -> Found:
    return simulate_all(plans, settings, gate, lambda _: None)  # type: ignore[arg-type]


def missed(gate: object, *plans: Plan) -> str:
    found = simulated(gate, plans, replace(TINY, rules=()))
    return "; ".join(
        aim.text for aim in aims.aims_of(replace(found, coverage={}), (), {}, plans) if not aim.kept
    )


def test_a_gate_that_always_passes_misses_the_aims_of_power() -> None:
    """Medians, tails, a chip, total failure, one board, a quarter of boots: it lacks power for each."""
    failing = next(plan for plan in PLANS if ONE_BOARD_FAILS in plan.effects)
    said = missed(always(PASS), TYPICAL_PLAN, CHIPS, failing)
    for text in ("+10 % of a median caught", "+20 % of a median caught", f"{TAIL.name}: at least 80 %"):
        assert text in said
    for effect in (ONE_CHIP, ONE_BOARD, QUARTER, ONE_BOARD_FAILS):
        assert effect.name in said
    assert "total failure" in said
    assert "unchanged" not in said


def test_a_gate_that_always_blocks_misses_the_aims_of_false_blocks() -> None:
    """Every unchanged pull request blocked is seen in every row, and a board that is odd has its own aim."""
    said = missed(always(REGRESSED), TYPICAL_PLAN, CREEPS[0], ODD[0])
    assert said.count("at most 1 % of unchanged pull requests blocked") == 2
    assert said.count("at most 2 % of unchanged pull requests blocked") == 1
    assert "caught" not in said


def test_a_gate_that_never_decides_or_takes_too_long_misses_those_aims() -> None:
    """Undecided and wall time have their aims, in the rows that are named for them."""
    said = missed(always(UNDECIDED, 1000.0), TYPICAL_PLAN, ALONE)
    assert said.count("unchanged pull requests undecided") == 2
    assert "15 minutes at most" in said
    assert "10 minutes on average" in said


def test_intervals_that_hold_too_often_miss_their_aim_too() -> None:
    """95 ± 1.5 % is kept at either end and missed beyond both."""
    for value, kept in ((0.93, False), (0.936, True), (0.964, True), (0.97, False)):
        found = Found({}, {"row": Coverage(value, 0.001)})
        assert [aim.kept for aim in aims.aims_of(found, (), {}, ())] == [kept]


def test_a_t_test_that_catches_more_is_a_missed_aim() -> None:
    """Ours has to catch as many as the t-test at either alpha, and 70 % at all of it."""
    few, many = Share(60, 100), Share(80, 100)
    behind = aims.aims_of(Found({}, {}, {"row": Duel((few, many), (few, many), (5, 4))}), (), {}, ())
    assert [aim.kept for aim in behind] == [False, False, False]
    ahead = aims.aims_of(Found({}, {}, {"row": Duel((many, few), (many, few), (5, 4))}), (), {}, ())
    assert [aim.kept for aim in ahead] == [True, True, True]
    assert "5 + 4 boots a board 60.0" in ahead[0].said


def test_both_of_a_duel_find_what_is_plain() -> None:
    """+20 % in quiet boots is caught by both, at either alpha, with boots of the same time."""
    draws = [drawn(PLANS[1].environment, 40)]
    found = duel(draws, MEDIAN_20)
    assert all(share.value > 0.9 for share in (*found.divided, *found.whole))
    assert 4 <= sum(found.boots) <= 20


def test_a_rule_that_is_better_than_ours_is_named() -> None:
    """Against a gate that catches nothing, a rule that catches +20 % and blocks nothing wins."""
    plans = (replace(TYPICAL_PLAN, changes=(MEDIAN_20,)),)
    rules = (replace(rule_named("Welch boots"), threshold=3.7),)
    found = simulated(always(PASS), plans, replace(TINY, pull_requests=60, rules=rules))
    judged = aims.aims_of(found, rules, {}, plans)
    named = next(aim for aim in judged if aim.text.startswith("no rule better"))
    assert not named.kept
    assert "Welch boots (own threshold)" in named.said


@pytest.mark.slow
def test_processes_find_what_one_finds() -> None:
    """How many processes share the plans changes nothing."""
    plans = (replace(TYPICAL_PLAN, changes=(MEDIAN_20,)), Plan(Environment("one", boards=1)))
    settings = replace(TINY, rules=(rule_named("ratio 200 %"), rule_named("Welch boots")))
    alone, shared = (simulated(our_gate, plans, replace(settings, processes=many)) for many in (1, 2))
    assert list(alone.situations) == list(shared.situations)
    assert alone.coverage == shared.coverage
    for key, situation in alone.situations.items():
        assert np.array_equal(situation.ours.state, shared.situations[key].ours.state)
        for name, scores in situation.scores.items():
            assert np.array_equal(scores, shared.situations[key].scores[name])


def test_nights_change_nothing_in_our_verdicts() -> None:
    """Rules that need a history get 30 nights; ours judges by the run's own boots, whatever main has done."""
    draw = drawn(CREEPS[-1].environment, nights=NIGHTS)
    before = our_gate(draw, MEDIAN_10)
    draw.forget_history()
    assert np.array_equal(our_gate(draw, MEDIAN_10).state, before.state)


def test_the_tables_say_that_they_are_simulated() -> None:
    """A run with the product's gate and every rule gives three tables, each saying so, without a hole."""
    plans = (replace(TYPICAL_PLAN, changes=(MEDIAN_20, FASTER)), replace(LOUD, changes=(), rivals=False))
    found = simulated(our_gate, plans)
    equal = equal_thresholds(plans, found.situations, RULES)
    console = Console(width=command.WIDTH, record=True, file=io.StringIO())
    tables = [
        table.false_blocks(plans, found.situations, RULES, equal),
        table.power(plans, found.situations, RULES, equal),
        table.ours(found.situations, found.coverage),
    ]
    table.show(console, tables)
    text = console.export_text()
    assert text.count("(simulated)") == 3
    assert all(rule.name in text for rule in RULES)
    assert "nan" not in text
    assert text.count(LOUD.name) == 1  # in the table of ours alone
    assert found.situations["typical", MEDIAN_20.name].our_share().value > 0.5


def test_a_row_that_does_not_exist_is_said() -> None:
    """A name that no rack begins with is answered by the names there are."""
    with pytest.raises(SystemExit, match="main crept by"):
        command.main(["--row", "nonsense"])
