# SPDX-License-Identifier: Apache-2.0
"""The simulation of the gate: its noise, what the gate gets of it, the plain rules; aims can be missed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from hil.gate.judging import judge
from hil.metrics.boot_value import boot_value
from hil.model import RunRecord, bench_of
from hil.thresholds import Thresholds, load_project
from hil.thresholds.types import Policy
from tools.gate_simulation import __main__ as command
from tools.gate_simulation import rivals
from tools.gate_simulation.aims import AIMS, Share, kept, kept_by_attacks
from tools.gate_simulation.attacks import ATTACKS, answered_rightly, attacked, edited
from tools.gate_simulation.boots import BAD_BOOTS, BAD_FACTOR, CENTRE, Boots, Statistics, pool, statistics_of
from tools.gate_simulation.judged import Tally, judged, measure, run_of, tally
from tools.gate_simulation.racks import (
    ALONE,
    CHIPS,
    EFFECTS,
    PAIR,
    RACKS,
    SLOWER,
    TYPICAL,
    UNCHANGED,
    Effect,
    Rack,
    effects_of,
)
from tools.gate_simulation.shipped import FOLDER, Leg, legs_of

PUBLISHED_MS = (13.3, 23.6, 30.6, 47.0)  # p50, p90, p95, p99 of an ESP32's ping
SEED = (3, 1)


def leg_of(rack: Rack = PAIR) -> Leg:
    return legs_of(rack.boards)[0]


def publish(rack: Rack, effect: Effect = UNCHANGED) -> tuple[Boots, Statistics]:
    """Return the boots of a run, and what they say of the publish latency."""
    leg = leg_of(rack).of_run("a run")
    boots = Boots.drawn(rack, leg.turns(), SEED)
    case = leg.cases[leg.telling]
    return boots, boots.measured(case, leg.metrics[leg.telling], effect)["done_us"]


def test_samples_have_the_published_quantiles() -> None:
    """The distribution of samples fits each published quantile within nine per cent."""
    found = np.quantile(CENTRE / 1e3 * np.exp(pool(100)), (0.5, 0.9, 0.95, 0.99))
    assert found == pytest.approx(PUBLISHED_MS, rel=0.09)


def test_boots_scatter_as_on_the_boards_that_the_model_is_of() -> None:
    """With 4 % between boots p50 of boots differs by 7 %, p95 by 14 % and tail5 by 26 %."""
    rng = np.random.default_rng(1)
    logs = {name: np.log(values) for name, values in statistics_of(np.exp(pool(100))).items()}
    bad = np.where(rng.random(len(pool(100))) < BAD_BOOTS, BAD_FACTOR, 1.0)
    offset = 0.04 * rng.standard_normal(len(bad)) * bad
    found = {name: float(np.std(values + offset)) for name, values in logs.items()}
    assert found == pytest.approx({"p50": 0.07, "p95": 0.14, "tail5": 0.26}, abs=0.01)


@pytest.mark.parametrize("effect", EFFECTS[1:], ids=lambda effect: effect.name)
def test_an_effect_changes_the_candidate_alone_and_draws_nothing_anew(effect: Effect) -> None:
    """The base's boots are the same numbers; of the candidate's, as many are slower as the effect says."""
    boots, usual = publish(TYPICAL)
    _, changed = publish(TYPICAL, effect)
    statistic = effect.tells[0]
    slower = np.log(changed[statistic] / usual[statistic])
    assert not slower[~boots.turns.candidate].any()
    mine = slower[boots.turns.candidate]
    if effect.tail[0]:
        assert mine.min() > 0.1
    else:
        hit = mine > 0.01
        assert mine[hit] == pytest.approx(np.log1p(effect.slower))
        assert hit.mean() == pytest.approx(effect.boots, abs=0.25)


def test_a_drift_and_a_slot_fall_on_the_boards_that_they_name() -> None:
    """Each boot is 3 % slower than the one before, and ota_1 is 10 % slower: of one board, or of all."""
    boots, usual = publish(TYPICAL)
    drifted = np.log(publish(replace(TYPICAL, drift=0.03))[1]["p50"] / usual["p50"])
    assert drifted[0] == pytest.approx(np.log(1.03) * np.arange(drifted.shape[1]))
    assert not drifted[1:].any()
    slotted = np.log(publish(replace(TYPICAL, slot=0.10, everywhere=True))[1]["p50"] / usual["p50"])
    assert slotted == pytest.approx(np.log(1.10) * boots.turns.slot)


def test_few_rows_have_the_statistics_of_many() -> None:
    """The gate computes from a record's rows what was drawn of a hundred samples, of a long tail too."""
    stretched = replace(SLOWER, slower=0.0, tail=(0.02, 20.0))
    leg = leg_of()
    found = measure(leg, PAIR, stretched, SEED, [leg.telling])
    first = next(one for one in found.entries if isinstance(one, RunRecord))
    noisy = [metric for metric in leg.metrics[leg.telling] if metric.scale == "log"]
    for metric in noisy:
        value = boot_value(metric, first)
        assert value is not None
        drawn = found.measured[leg.telling]["done_us"][metric.statistic][0, 0]
        assert value.value == pytest.approx(drawn, abs=1.0)


def test_what_no_rule_names_is_left_out_and_decides_nothing() -> None:
    """By the whole of the shipped thresholds, limits too, the gate says the same of all that may block."""
    leg = leg_of()
    found = measure(leg, PAIR, UNCHANGED, SEED, list(leg.cases))
    shipped = load_project(FOLDER).items()
    whole = {bench: replace(own, policy=leg.thresholds[bench].policy) for bench, own in shipped}
    entries = [complete(one, whole) if isinstance(one, RunRecord) else one for one in found.entries]
    by_whole = [item for item in judge(entries, whole).compared if item.blocking]
    assert by_whole == judged(found).compared


def complete(record: RunRecord, thresholds: Mapping[str, Thresholds]) -> RunRecord:
    """Return a record with the columns of all metrics of its case."""
    metrics = thresholds[record.bench].metrics_of(record.parameters)
    names = [name for one in metrics for name in (*(term.column for term in one.terms), *one.rows)]
    return replace(record, columns={**dict.fromkeys(names, (1,) * record.rows), **record.columns})


def test_a_leg_is_what_hil_run_would_measure() -> None:
    """Four boards, of suite pr the cases that a rule names; alpha is shared among the runs of CI."""
    (four,), chips = legs_of((4,)), legs_of(CHIPS.boards)
    assert len(four.comparison.boards) == 4
    assert {bench_of(one) for one in four.cases} >= {"publish", "throughput"}
    assert set(four.cases) <= set(four.comparison.cases)
    assert [leg.comparison.target for leg in chips] == ["esp32", "esp32s3"]
    alphas = [leg.thresholds["publish"].policy.alpha for leg in (four, chips[0])]
    assert alphas == pytest.approx([Policy().alpha / 3, Policy().alpha / 4])  # and virtual, compare


def test_boots_take_turns_as_the_rack_lets_them() -> None:
    """Every boot of all looks is there, as many of the candidate's as of the base's, in both slots."""
    leg = leg_of(TYPICAL)
    turns = leg.turns()
    assert turns.candidate.shape == (4, sum(leg.comparison.looks[-1]))
    assert (turns.candidate.sum(axis=1) == leg.comparison.looks[-1][0]).all()
    assert set(turns.slot.ravel().tolist()) == {0, 1}


def test_the_t_test_is_students() -> None:
    """Of one board its p is SciPy's, and boots that do not differ at all prove nothing."""
    rng = np.random.default_rng(5)
    one, two = rng.normal(0.3, 1.0, (1, 1, 6)), rng.normal(0.0, 1.0, (1, 1, 8))
    theirs = stats.ttest_ind(one[0, 0], two[0, 0], alternative="greater").pvalue
    assert rivals.p_values(one, two)[0] == pytest.approx(theirs)
    assert rivals.p_values(np.ones((1, 2, 3)), np.ones((1, 2, 3)))[0] == 0.5


def test_the_simple_rule_spends_its_alpha_over_all_looks() -> None:
    """Of unchanged pull requests it blocks alpha, at whatever look, and the t-test as many at the last."""
    rng = np.random.default_rng(6)
    one, two = rng.normal(size=(2, 20_000, 2, 10))
    looks = ((3, 3), (6, 6), (10, 10))
    for rule in (rivals.simple, rivals.plain):
        assert rule(one, two, looks, 0.05).mean() == pytest.approx(0.05, abs=0.006)


def test_twice_as_slow_is_caught_by_all_rules() -> None:
    """What nobody can miss is counted as caught, and as a pull request that is blocked.

    A pull request's number seeds it: two halves are the whole, and another seed is another one.
    """
    effect = replace(SLOWER, slower=1.0)
    slower = tally(ALONE, effect, range(4), 1)
    assert (slower.of, slower.caught, slower.blocked, slower.simple, slower.plain) == (4,) * 5
    assert slower.passed == slower.undecided == 0
    assert tally(ALONE, effect, range(2), 1) + tally(ALONE, effect, range(2, 4), 1) == slower
    first, other = (run_of(leg_of(ALONE), ALONE, effect, (seed, 0)).compared for seed in (1, 2))
    assert first != other


def test_an_aim_is_missed_where_chance_cannot_be_it() -> None:
    """3 of 100 blocked are within the error of 1 %, 8 are not; what is caught too seldom is missed, too.
    Every aim is of a row that is simulated, or it would never be missed; a share has its binomial error."""
    usual, caught = Tally(of=100, blocked=3, simple=1), Tally(of=100, caught=99, simple=99)
    found = {(TYPICAL, UNCHANGED): usual, (TYPICAL, SLOWER): caught}
    assert not [aim for aim in kept(found) if aim.missed]
    assert len([aim for aim in kept(found) if aim.beyond > 0]) == 1
    found[TYPICAL, UNCHANGED] = replace(usual, blocked=8)
    found[TYPICAL, SLOWER] = replace(caught, caught=80, passed=20, lost=19)
    assert len([aim for aim in kept(found) if aim.missed]) == 4
    tried = {(rack, effect) for rack in RACKS for effect in effects_of(rack)}
    assert {(rack, aim.effect) for aim in AIMS for rack in aim.racks} <= tried
    assert all(aim.counted in Tally.__dataclass_fields__ for aim in AIMS)
    assert [str(Share(0, 400)), str(Share(50, 100))] == ["0.0 ±0.2", "50.0 ±5.0"]


def test_each_attack_changes_the_boots_that_it_names() -> None:
    """An attack that changes nothing would be answered for the noise alone."""
    for attack in ATTACKS:
        (leg,) = legs_of(attack.rack.boards)
        usual = measure(leg, attack.rack, UNCHANGED, SEED, [attacked(attack, leg)]).entries
        assert attack.effect != UNCHANGED or edited(usual, attack.edit) != list(usual), attack.name


def test_an_attack_that_is_not_blocked_once_is_a_missed_aim() -> None:
    """Those that may be left undecided are none: AIMS say how many of them may pass."""
    tries = [20] * len(ATTACKS)
    assert not any(aim.missed for aim in kept_by_attacks(tries, 20))
    assert any(aim.missed for aim in kept_by_attacks([19, *tries[1:]], 20))
    assert not any(aim.missed for aim in kept_by_attacks([*tries[:-1], 19], 20))


def test_total_failure_is_answered_rightly() -> None:
    """Where no message of the candidate gets through, the gate blocks, and the table says so."""
    attack = next(one for one in ATTACKS if one.name == "no message gets through")
    assert answered_rightly(attack, range(2), 1) == 2
    assert answered_rightly(replace(attack, right=("pass",)), range(2), 1) == 0


def test_a_row_that_nobody_knows_is_refused() -> None:
    """The sentence names those that there are."""
    with pytest.raises(SystemExit, match=r"names no simulated rack\. There are: typical"):
        command.main(["--row", "moon"])
