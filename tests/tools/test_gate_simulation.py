# SPDX-License-Identifier: Apache-2.0
"""The simulation of the gate: its model, the rules it compares, and that its aims can be missed."""

from __future__ import annotations

import io
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from hil.gate.compare.sequential import PASS, REGRESSED
from tests.tools.gate_simulation import __main__ as command
from tests.tools.gate_simulation import aims, competitors, samples, table
from tests.tools.gate_simulation.competitors import RULES, Rule
from tests.tools.gate_simulation.draws import Draw, Environment, interleaved
from tests.tools.gate_simulation.equal import equal_thresholds, threshold_at
from tests.tools.gate_simulation.evidence import Evidence, Nights
from tests.tools.gate_simulation.model import PUBLISHED_MS, QUANTILES, TYPICAL, draw_samples
from tests.tools.gate_simulation.ours import looks_of, our_gate
from tests.tools.gate_simulation.results import Verdicts
from tests.tools.gate_simulation.simulate import Found, Settings, simulate_all
from tests.tools.gate_simulation.situations import PLANS, Plan
from tests.tools.gate_simulation.suite import (
    INDEX,
    LOSS,
    MEDIAN_10,
    MEDIAN_20,
    METRICS,
    SPIKES,
    TAIL,
    UNCHANGED,
    Effect,
)
from tests.tools.gate_simulation.walltime import look_s, spend

TINY = Settings(pull_requests=12, pool_boots=300)
TYPICAL_PLAN = PLANS[0]


def drawn(environment: Environment | None = None, count: int = 40, seed: int = 3) -> Draw:
    return Draw(environment or Environment("typical"), count, (seed, 1), 500)


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
    values = drawn(environment, 60).history_values()[:, INDEX["stream/throughput"]]
    own = 0.10 / np.sqrt(10)
    assert values.std(axis=-1, ddof=1).mean() == pytest.approx(np.hypot(0.04, own), rel=0.1)
    of_means = values.mean(axis=-1).std(axis=-1, ddof=1).mean()
    assert of_means == pytest.approx(np.sqrt(0.03**2 + (0.04**2 + own**2) / 6), rel=0.1)


def test_a_seed_draws_the_same_pull_requests() -> None:
    """What is simulated depends on the seed alone."""
    first, again, other = (drawn(seed=seed).run(4, 4, MEDIAN_10) for seed in (3, 3, 4))
    assert all(np.array_equal(one, two) for one, two in zip(first, again, strict=True))
    assert not np.array_equal(first[0], other[0])


@pytest.mark.parametrize("effect", [MEDIAN_10, TAIL, SPIKES, LOSS], ids=lambda effect: effect.name)
def test_an_effect_changes_the_candidate_alone(effect: Effect) -> None:
    """An effect makes the metric that should tell worse, leaves other cases and the base as they were."""
    usual, changed = (drawn().run(6, 6, one) for one in (UNCHANGED, effect))
    index = INDEX[effect.metric]
    assert changed[0][:, index].mean() > usual[0][:, index].mean() + 0.05
    case = METRICS[index].case
    others = [number for number, metric in enumerate(METRICS) if metric.case != case]
    assert np.array_equal(changed[0][:, others], usual[0][:, others])
    assert np.array_equal(changed[1], usual[1])


def test_boots_are_interleaved() -> None:
    """A drift along the run cancels: two to one as CBC, one to one as CBBC."""
    assert [list(places) for places in interleaved(4, 2)] == [[0, 2, 3, 5], [1, 4]]
    assert [list(places) for places in interleaved(4, 4)] == [[0, 3, 4, 7], [1, 2, 5, 6]]
    candidate, other = drawn(Environment("drift", drift=0.5), 4).run(4, 4, UNCHANGED)
    steady = drawn(Environment("drift"), 4).run(4, 4, UNCHANGED)
    moved = [(now - then)[:, 0, 0].mean() for now, then in zip((candidate, other), steady, strict=True)]
    assert moved[0] == pytest.approx(moved[1], rel=1e-4)


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
    draw = drawn(count=10)
    evidence = Evidence(draw, Nights.of(draw.history_values()), MEDIAN_20, 8)
    for name in ("pooled MWU", "pooled t", "Welch boots"):
        rule = rule_named(name)
        score = rule.score(evidence, [INDEX["publish/median"], INDEX["request/median"]])
        assert (score[:, 0] > rule.threshold).all()
        assert np.median(score[:, 1]) < rule.threshold


def test_the_time_of_a_look_is_that_of_the_air_or_of_the_board() -> None:
    """Four boards wait for the air, one board never does; nothing is measured where no case is open."""
    assert look_s(3, 2, 4) == 12 + 4 * 3 * 20
    assert look_s(3, 2, 1) == 3 * (12 + 20)
    assert look_s(3, 0, 4) == 0


def test_a_look_beyond_the_budget_is_not_begun() -> None:
    """Looks are taken while some metric is open and there is time; the first one always."""
    looks = ((2, 2), (4, 4), (6, 6))
    last = np.array([[0] * 10, [2] * 10, [0] * 9 + [1]])
    taken, boots, seconds = spend(last, looks, 4, budget_s=700.0)
    assert list(taken) == [1, 2, 2]
    assert list(boots) == [4, 8, 8]
    assert list(seconds) == [332.0, 664.0, 332.0 + 12 + 4 * 4 * 10]
    assert list(spend(last, looks, 4, budget_s=1.0)[0]) == [1, 1, 1]


def test_looks_are_cut_to_what_the_budget_pays() -> None:
    """Four boards that share the air get fewer looks than one; the last may need early decisions."""
    assert looks_of(4)[-1] == (6, 6)
    assert looks_of(1)[-1] == (12, 12)


def test_an_equal_rate_is_never_exceeded() -> None:
    """At most one per cent of the scores lie beyond the threshold, ties or not."""
    assert (np.arange(1000.0) > threshold_at(np.arange(1000.0))).sum() == 10
    assert not (np.ones(50) > threshold_at(np.ones(50))).any()


def always(state: int) -> object:
    """Return a gate that always says the same at its first look."""

    def gate(draw: Draw, effect: Effect) -> Verdicts:
        shape = (draw.count, len(METRICS))
        zeros = np.zeros(draw.count)
        return Verdicts(
            np.full(shape, state), np.zeros(shape, int), zeros + 4, zeros + 332, zeros.astype(bool), zeros
        )

    return gate


def simulated(gate: object, plans: tuple[Plan, ...] = (TYPICAL_PLAN,), settings: Settings = TINY) -> Found:
    return simulate_all(plans, settings, gate, lambda _: None)  # type: ignore[arg-type]


def missed(found: Found, plans: tuple[Plan, ...] = (TYPICAL_PLAN,)) -> str:
    judged = aims.aims_of(found.situations, (), {}, plans, None)
    return "; ".join(aim.text for aim in judged if not aim.kept)


def test_a_gate_that_always_passes_misses_the_aims_of_power() -> None:
    """Power is what such a gate lacks, and nothing else."""
    said = missed(simulated(always(PASS), settings=replace(TINY, rules=())))
    assert "+10 % of a median caught" in said
    assert "+20 % of a median caught" in said
    assert "unchanged" not in said


def test_a_gate_that_always_blocks_misses_the_aims_of_false_blocks() -> None:
    """Every unchanged pull request blocked is seen in every row that has them."""
    plans = (TYPICAL_PLAN, next(plan for plan in PLANS if "+10" in plan.name))
    said = missed(simulated(always(REGRESSED), plans, replace(TINY, rules=())), plans)
    assert said.count("at most 1 % of unchanged pull requests blocked") == 2
    assert "caught" not in said


def test_a_rule_that_is_better_than_ours_is_named() -> None:
    """Against a gate that catches nothing, a rule that catches +20 % and blocks nothing wins."""
    plans = (replace(TYPICAL_PLAN, effects=(UNCHANGED, MEDIAN_20)),)
    rules = (replace(rule_named("Welch boots"), threshold=4.0),)
    found = simulated(always(PASS), plans, replace(TINY, pull_requests=60, rules=rules))
    judged = aims.aims_of(found.situations, rules, {}, plans, None)
    named = next(aim for aim in judged if aim.text.startswith("no rule better"))
    assert not named.kept
    assert "Welch boots (own threshold)" in named.said


def test_processes_find_what_one_finds() -> None:
    """How many processes share the plans changes nothing."""
    plans = (replace(TYPICAL_PLAN, effects=(UNCHANGED, MEDIAN_20)), Plan(Environment("one", boards=1)))
    settings = replace(TINY, rules=(rule_named("ratio 200 %"), rule_named("Welch boots")))
    alone, shared = (simulated(our_gate, plans, replace(settings, processes=many)) for many in (1, 2))
    assert list(alone.situations) == list(shared.situations)
    for key, situation in alone.situations.items():
        assert np.array_equal(situation.ours.state, shared.situations[key].ours.state)
        for name, scores in situation.scores.items():
            assert np.array_equal(scores, shared.situations[key].scores[name])


def test_the_tables_say_that_they_are_simulated() -> None:
    """A run with the product's gate and every rule gives three tables, each saying so, without a hole."""
    plans = (replace(TYPICAL_PLAN, effects=(UNCHANGED, MEDIAN_20)),)
    found = simulated(our_gate, plans)
    equal = equal_thresholds(plans, found.situations, RULES)
    console = Console(width=command.WIDTH, record=True, file=io.StringIO())
    tables = [
        table.false_blocks(plans, found.situations, RULES, equal),
        table.power(plans, found.situations, RULES, equal),
        table.costs(found.situations),
    ]
    table.show(console, tables)
    text = console.export_text()
    assert text.count("(simulated)") == 3
    assert all(rule.name in text for rule in RULES)
    assert "nan" not in text
    assert found.situations["typical", MEDIAN_20.name].our_share().value > 0.5
    assert found.coverage is not None


def test_a_row_that_does_not_exist_is_said() -> None:
    """A name that no rack begins with is answered by the names there are."""
    with pytest.raises(SystemExit, match="main crept by"):
        command.main(["--row", "nonsense"])
