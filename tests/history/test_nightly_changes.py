# SPDX-License-Identifier: Apache-2.0
"""Change points of nights: whose they are, which commits are named, and what stands in the way."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from hil.cli.app import run_command
from hil.history.nightly.change_points import SeriesChanges, analyse
from hil.history.nightly.nights import nights_of
from hil.history.nightly.survey import survey
from hil.metrics.sessions import NO_HISTORY
from tests.history.nights_rig import FIRST, REFERENCE, SERIES, NightOf, commit_of, make_history, simulate
from tests.history.saved import save
from tools.night_simulation import SCENARIOS, missed
from tools.night_simulation import run as simulate_scenario

STEP, NIGHTS = 20, 34


def since(night: int, size: float) -> float:
    return math.log1p(size) * (night >= STEP)


def draw(**effects: object) -> list[NightOf]:
    return simulate(np.random.default_rng(11), nights=NIGHTS, **effects)  # type: ignore[arg-type]


def changes(nights: Sequence[NightOf]) -> SeriesChanges:
    return analyse(SERIES, nights_of(make_history(nights), SERIES))


def test_a_step_in_the_ratio_is_the_firmwares() -> None:
    """Size with interval, the night, and the commits of the last good and the first bad night."""
    (point,) = changes(draw(firmware=lambda n: since(n, 0.2))).points
    assert (point.cause, point.of_ratio, point.nights) == ("firmware", True, NIGHTS - STEP)
    assert point.night.isoformat() == "2026-01-20"  # the evening before the 21st
    assert (point.good, point.bad) == (commit_of(STEP - 1), commit_of(STEP))
    assert 0.1 < point.low < 0.2 < point.high


def test_a_step_in_raw_values_alone_is_the_environments() -> None:
    """Candidate and reference moved together: another access point is named, no commit is."""
    nights = draw(environment=lambda n: since(n, 0.25))
    nights = [
        dataclasses.replace(night, conditions={"b1.ap": "new" if n >= STEP else "old", "b2.ap": n})
        for n, night in enumerate(nights)
    ]
    result = changes(nights)
    (point,) = result.points
    assert (point.cause, point.of_ratio, point.good, point.bad) == ("environment", False, "", "")
    assert str(point.conditions[0]).startswith("b1.ap: old → new on 2026-01-20")
    assert result.notes == ()


def test_nights_on_another_emulated_network_are_another_history() -> None:
    """The last night's network counts; nights whose records said nothing of it had OpenETH."""
    before = [dataclasses.replace(night, conditions={}) for night in draw()[:3]]
    cable, air = (
        [dataclasses.replace(night, conditions={"b1.network": name}) for night in draw()[:2]]
        for name in ("openeth", "wifi")
    )
    of = [
        len(nights_of(make_history(nights), SERIES))
        for nights in ([*before, *cable], [*before, *cable, *air])
    ]
    assert of == [5, 2]


def test_a_ratio_that_moved_the_other_way_does_not_follow() -> None:
    """Beside a reference that rose more, and varies: a rise of the raw values is the environment's."""

    def night(n: int) -> NightOf:
        rise, noise = 0.2 * (n >= STEP), 0.005 * (-1) ** n
        reference = 2 * rise + 0.6 * (-1) ** n
        return NightOf([100 * math.exp(rise + noise)] * 3, {REFERENCE: [100 * math.exp(reference)] * 3})

    (point,) = changes([night(n) for n in range(NIGHTS)]).points
    assert (point.cause, point.of_ratio, point.change > 0) == ("environment", False, True)


def test_a_change_is_confirmed_by_two_nights() -> None:
    """After one night at another level nothing is said, whatever its size."""
    nights = draw(firmware=lambda n: since(n, 0.5))
    assert changes(nights[: STEP + 1]).points == ()
    (point,) = changes(nights[: STEP + 2]).points
    assert (point.cause, point.nights) == ("firmware", 2)


def test_the_same_image_is_not_to_blame() -> None:
    """A step of the ratio while the candidate stayed what it was, byte for byte, blames no commit."""
    nights = draw(firmware=lambda n: since(n, 0.2))
    (point,) = changes([dataclasses.replace(night, image="same") for night in nights]).points
    assert (point.cause, point.bad) == ("unclear", "")
    assert "the same before" in point.note


def test_a_range_that_is_not_sure_is_wider() -> None:
    """Where noise leaves open which night was the first bad one, the range holds the commit all the same."""
    for seed in range(8):
        nights = simulate(np.random.default_rng(seed), nights=NIGHTS, firmware=lambda n: since(n, 0.1))
        for point in changes(nights).points:
            if point.cause == "firmware" and abs((point.night - FIRST.date()).days - STEP) < 4:
                good, bad = (int(commit, 16) for commit in (point.good, point.bad))
                assert good < STEP <= bad <= good + 7


def test_nights_without_a_reference_are_raw_only() -> None:
    """A step is seen, nobody is blamed, and it is said why."""
    result = changes(draw(firmware=lambda n: since(n, 0.3), references=lambda _n: {}))
    (point,) = result.points
    assert (point.cause, point.of_ratio) == ("unclear", False)
    assert "without a reference" in point.note
    assert result.notes[0].startswith(f"{NIGHTS} of {NIGHTS} nights")


def test_another_ruler_gives_no_ratio() -> None:
    """A reference whose benchmarks have other sources gives no ratio; renewing it is advised."""
    result = changes([dataclasses.replace(night, ruler="new") for night in draw()])
    assert "renew the reference" in result.notes[0]


def both(first_until: int, second_since: int, slower: float) -> Mapping[str, object]:
    def references(night: int) -> Mapping[str, float]:
        first = {REFERENCE: 0.0} if night < first_until else {}
        return {**first, "reference-2": math.log1p(slower)} if night >= second_since else first

    return {"references": references}


@pytest.mark.parametrize(
    ("effects", "note"),
    [
        (both(24, 10, 0.3), ""),
        (both(23, 20, 0.3), "renewed after 3 nights"),
        (both(20, 20, 0.5), "never measured beside"),
    ],
)
def test_a_renewed_reference_makes_no_step(effects: Mapping[str, object], note: str) -> None:
    """Two references in 14 nights, the second 30 % slower: one series of ratios, without a step or a word.
    Three nights beside each other may leave a step, so there is a note; those that never met are not chained.
    """
    result = changes(draw(**effects))
    assert [point for point in result.points if point.cause == "firmware"] == []
    if note:
        assert note in result.notes[0]
    else:
        assert (result.points, result.notes) == ((), ())


def test_a_firmware_step_is_seen_across_a_renewal() -> None:
    """The step lies within the overlap, and is the candidate's alone."""
    (point,) = changes(draw(firmware=lambda n: since(n, 0.2), **both(27, 13, 0.3))).points  # type: ignore[arg-type]
    assert (point.cause, point.bad) == ("firmware", commit_of(STEP))


def test_which_sessions_are_nights() -> None:
    """Other triggers, uncommitted changes, and medians without a logarithm do not count."""
    kept = NightOf([10.0, 12.0, 11.0])
    others = [
        dataclasses.replace(kept, trigger="local"),
        dataclasses.replace(kept, dirty=True),
        dataclasses.replace(kept, candidate=[0.0, 0.0, 5.0]),
        dataclasses.replace(kept, candidate=[math.inf, math.inf, 5.0]),
    ]
    (night,) = nights_of(make_history([*others, kept]), SERIES)
    assert math.exp(night.level) == pytest.approx(11.0)
    assert nights_of(NO_HISTORY, SERIES) == []


def test_the_median_of_boots_counts() -> None:
    """One bad boot of a night does not move it."""
    calm, bad = NightOf([10.0] * 5), NightOf([10.0] * 4 + [90.0])
    first, second = nights_of(make_history([calm, bad]), SERIES)
    assert first.level == second.level


def test_simulated_noise_is_said() -> None:
    """A board that drew noise in some night is never shown without the word."""
    nights = draw(firmware=lambda n: since(n, 0.3))
    nights[3] = dataclasses.replace(nights[3], conditions={"b1.noise_simulated": True})
    (finding,) = survey(make_history(nights), {}).findings
    assert finding.kind == "virtual, simulated noise"


def test_the_command_lists_what_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Night, cause, size and commits, the word virtual, and the command that narrows it down; JSON and
    Markdown hold the same. Exit 1 only with --fail-on-new, and only while the step is that new. No night is
    said."""

    def told(status: int, *options: str, history: Path = tmp_path / "h") -> str:
        assert run_command(["changes", "--history", str(history), *options]) == status
        return capsys.readouterr().out

    nights = draw(firmware=lambda n: math.log1p(0.3) * (n >= NIGHTS - 5))
    save(make_history(nights, SERIES.replace("_p50_", "_p95_")), tmp_path / "h")
    text = told(0)
    good, bad = commit_of(NIGHTS - 6)[:12], commit_of(NIGHTS - 5)[:12]
    for word in ("firmware, worse", "lab/b1 (virtual): publish_latency_p95_us", f"{bad} {good} && "):
        assert word in text
    assert "bisect.sh publish/qos=1" in text
    told(1, "--fail-on-new", "5")
    told(0, "--fail-on-new", "4")
    (change,) = json.loads(told(0, "--json"))["changes"]
    assert (change["cause"], change["kind"], change["nights"]) == ("firmware", "virtual", 5)
    assert "| firmware, worse |" in told(0, "--markdown", "--rack", "lab")
    assert "No night" in told(0, history=tmp_path / "none")


@pytest.mark.slow
def test_the_simulation_reaches_its_aims() -> None:
    """A few series of it: no false alarm, found within four nights, the access point never the firmware's."""
    wanted = ("clean", "plus10", "access-point", "renewed")
    results = {name: simulate_scenario(SCENARIOS[name], 6, seed=4) for name in wanted}
    assert missed(results) == []


def test_the_simulation_can_miss() -> None:
    """Control: a change that is not there is not found, and the aim says so."""
    results = {name: simulate_scenario(SCENARIOS["clean"], 2, seed=1) for name in ("clean", "plus10")}
    wanting = {**results, "access-point": results["clean"], "renewed": results["clean"]}
    assert any("+10 % found" in sentence for sentence in missed(wanting))
