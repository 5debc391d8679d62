# SPDX-License-Identifier: Apache-2.0
"""Boards that drift or step along a run: named, and nothing else."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from hil.gate import judge
from hil.gate.compare.drift import Boots, find_drifts
from hil.model import Entry, Verdict
from hil.run.plan.looks import order
from tests.gate.compare_records import BOARDS, LOOKS, boot, comparison, thresholds

SIX = LOOKS[:3]
ROLES = tuple(itertools.chain.from_iterable(order(SIX, ("candidate", "base"))))
Shape = Callable[[int], float]


def journal(shape: Shape, board: str = BOARDS[0], deviation: float = 0.02, seed: int = 3) -> list[Entry]:
    """Return a run of six and six boots a board, of which one has ``shape`` along its boots."""
    random = np.random.RandomState(seed)
    entries: list[Entry] = [comparison(looks=SIX)]
    for name in BOARDS:
        for place, role in enumerate(ROLES):
            offset = random.normal(0.0, deviation) + (shape(place) if name == board else 0.0)
            entries.append(boot(name, role, place, offset=offset, seed=seed))
    return entries


def judged(entries: list[Entry]) -> Verdict:
    return judge(entries, {"publish": thresholds()})


def drifts(found: Verdict) -> dict[str, str]:
    return {effect.board: effect.drift for effect in found.compared[0].effects if effect.drift}


def test_a_board_that_drifts_is_named_and_decides_nothing() -> None:
    """3 % a boot: beside its effect and in a warning; the outcome is the same."""
    found, quiet = judged(journal(lambda place: 0.03 * place)), judged(journal(lambda _: 0.0))
    assert list(drifts(found)) == [BOARDS[0]]
    assert drifts(found)[BOARDS[0]].startswith("drifts: +")
    assert " % a boot over 12 boots (z " in drifts(found)[BOARDS[0]]
    (warning,) = [words for words in found.warnings if "drifts" in words]
    assert warning.startswith(f"board {BOARDS[0]} drifts: publish latency p50 on virtual-esp32 +")
    assert "balanced by the order" in warning
    assert (found.outcome, found.exit_code) == (quiet.outcome, quiet.exit_code) == ("pass", 0)
    assert found.compared[0].odd_boards == ()
    assert drifts(quiet) == {}
    assert not [words for words in quiet.warnings if "drifts" in words]


def test_a_board_that_steps_in_mid_run_is_named_with_the_boot() -> None:
    """+40 % from its fourth boot on is no drift, and is told by the boot."""
    found = judged(journal(lambda place: 0.34 * (place >= 3)))
    assert list(drifts(found)) == [BOARDS[0]]
    assert drifts(found)[BOARDS[0]].startswith("steps: +")
    assert " % from its boot 4 of 12 on (z " in drifts(found)[BOARDS[0]]


def test_a_board_that_becomes_faster_drifts_too() -> None:
    """What falls is named with its sign."""
    found = judged(journal(lambda place: -0.03 * place))
    assert drifts(found)[BOARDS[0]].startswith("drifts: −")


def test_what_is_not_a_drift() -> None:
    """One wild boot, a change between the roles, and less than the tolerance over the run name no board."""
    wild = judged(journal(lambda place: 0.5 * (place == 11)))
    changed = judged(journal(lambda place: 0.5 * (ROLES[place] == "candidate")))
    little = judged(journal(lambda place: 0.005 * place, deviation=0.001))
    assert [drifts(found) for found in (wild, changed, little)] == [{}, {}, {}]


def test_a_drift_does_not_hang_on_one_boot() -> None:
    """A small drift that is certain by its last boot alone is not told; one that is certain without it is."""
    place = np.arange(float(len(ROLES)))
    is_candidate = np.array([role == "candidate" for role in ROLES])
    noise = 0.1 * np.where(place % 2, -1.0, 1.0)

    def found(slope: float) -> list[str]:
        value = noise + slope * place + 1.0 * (place == place[-1])
        return list(find_drifts({"b": Boots(place, value, is_candidate)}, 0.01))

    assert (found(0.05), found(0.2)) == ([], ["b"])


def test_the_order_of_the_journal_does_not_matter() -> None:
    """Boots go by their place in the run, not by where they stand."""
    entries = journal(lambda place: 0.03 * place)
    assert judged(entries) == judged([entries[0], *reversed(entries[1:])])


def test_lost_boots_and_too_few_are_no_error() -> None:
    """A board with three boots says nothing of itself; one that never had a boot of a role neither."""
    entries = journal(lambda place: 0.03 * place)
    short = [one for one in entries if getattr(one, "board", "") != BOARDS[0] or one.boot_index < 3]  # type: ignore[union-attr]
    assert drifts(judged(short)) == {}
    place = np.arange(8.0)
    assert find_drifts({"b": Boots(place, place, place >= 0)}, 0.01) == {}
    assert find_drifts({}, 0.01) == {}


def test_boards_without_drift_are_seldom_named() -> None:
    """Of 400 runs of four boards with noise of two modes at most 3 % name one, at a level of 1 %."""
    random = np.random.RandomState(5)
    is_candidate = np.array([role == "candidate" for role in ROLES])
    place = np.arange(float(len(ROLES)))
    named = 0
    for _ in range(400):
        values = random.normal(size=(4, len(ROLES))) + 3.0 * (random.uniform(size=(4, len(ROLES))) < 0.3)
        boards = {str(n): Boots(place, row, is_candidate) for n, row in enumerate(values)}
        named += bool(find_drifts(boards, 0.01 / 4))
    assert named <= 12
    drifting = replace(boards["0"], value=boards["0"].value + 2.0 * place)
    assert list(find_drifts({**boards, "0": drifting}, 0.01 / 4)) == ["0"]


@pytest.mark.parametrize("candidates", [(0, 1, 2), (0,), (0, 1, 2, 3, 4)])
def test_roles_that_do_not_take_turns_are_no_error(candidates: tuple[int, ...]) -> None:
    """Where a step cannot be told from the role, or a role has one boot, no fit divides by nothing."""
    places = np.arange(6.0)
    roles = np.isin(places, candidates)
    boots = Boots(places, np.array([0.0, 0.01, 0.0, 0.3, 0.31, 0.3]), roles)
    with np.errstate(all="raise"):
        assert set(find_drifts({"b1": boots, "b2": boots}, 0.01)) <= {"b1", "b2"}
