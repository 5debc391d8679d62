# SPDX-License-Identifier: Apache-2.0
"""Noise from the history, kappa, and the order of boots."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from hil.gate.compare.calibration import DEFAULT_KAPPA, FEWEST_CALIBRATING, Series, kappa
from hil.gate.compare.looks import order, schedule
from hil.gate.compare.noise import noise_of
from hil.gate.compare.sequential import LOOKS
from tests.gate.gate_boots import UNEVEN_LOOKS, design


def series(
    seed: int, sessions: int = 40, boots: int = 6, boot: float = 0.05, session: float = 0.03
) -> Series:
    random = np.random.RandomState(seed)
    values = random.normal(size=(sessions, boots)) * boot + random.normal(size=(sessions, 1)) * session
    return np.repeat(np.arange(sessions), boots), 1.0 + values.ravel()


def test_the_history_gives_back_the_noise_it_was_made_with() -> None:
    """Boot and session variance are found, of the mean as many sessions and boots as the epoch has."""
    sessions, values = series(12, sessions=60)
    noise = noise_of(sessions, values, sessions >= 20)
    assert noise.boot_variance == pytest.approx(0.05**2, rel=0.2)
    assert noise.session_variance == pytest.approx(0.03**2, rel=0.6)
    assert noise.mean == pytest.approx(1.0, abs=0.02)
    assert (noise.sessions, noise.epoch_sessions, noise.epoch_boots) == (60, 40, 240)


def test_bad_boots_do_not_carry_the_variance_away_and_modes_do() -> None:
    """One wild boot in twenty is clipped; a third of them in a second mode is how the board is."""
    sessions, values = series(2)
    wild = values.copy()
    wild[::20] += 1.0
    assert noise_of(sessions, wild, sessions >= 0).boot_variance < 2.0 * 0.05**2
    modes = values.copy()
    modes[::3] += 1.0
    assert noise_of(sessions, modes, sessions >= 0).boot_variance > 0.1


def test_what_a_history_is_too_short_to_say() -> None:
    """Single boots say nothing of the variance, infinite ones nothing at all, and no history is no error."""
    sessions, values = series(3, boots=1)
    noise = noise_of(sessions, values, sessions >= 0)
    assert noise.sessions == 0
    assert np.isnan(noise.boot_variance)
    assert noise.mean == pytest.approx(1.0, abs=0.05)
    empty = noise_of(np.array([]), np.array([]), np.array([]))
    assert (empty.sessions, empty.epoch_sessions) == (0, 0)
    sessions, values = series(3)
    infinite = values.copy()
    infinite[:6] = np.inf
    assert noise_of(sessions, infinite, sessions >= 0).sessions == 39
    assert noise_of(sessions, values, sessions < 0).epoch_sessions == 0
    assert noise_of(*series(3, sessions=90), np.ones(540, dtype=bool)).sessions == 60


def test_kappa_is_small_for_boots_that_are_independent_and_repeatable() -> None:
    """Noise as the theory has it needs little widening, and the same history gives the same factor."""
    history = [series(seed) for seed in range(4, 8)]
    found = kappa(history, design())
    assert 1.0 <= found <= 1.3
    assert kappa(history, design()) == found


def test_kappa_grows_where_boots_differ_in_step_with_the_order() -> None:
    """Were every second boot of three slower, the base would be, always: boundaries have to be wider."""
    found = []
    for seed in range(4):
        sessions, values = series(seed)
        values[1::3] += 0.1
        found.append((sessions, values))
    assert kappa(found, design()) > 1.3


def test_kappa_of_a_history_that_is_not_used_is_one() -> None:
    """Four sessions, or single boots, or none, calibrate nothing: the gate does without them."""
    assert kappa([], design()) == 1.0
    assert kappa([series(10, sessions=4), series(11, boots=1)], design()) == 1.0


def test_kappa_of_few_sessions_is_not_their_luck() -> None:
    """Six sessions of wild boots have the factor of calm ones; twenty of the same kind are calibrated."""

    def wild(sessions: int) -> list[Series]:
        found = []
        for seed in range(4):
            of, values = series(seed, sessions=sessions, boots=3)
            values[1::3] += 0.1
            found.append((of, values))
        return found

    assert kappa(wild(6), design()) == kappa(wild(FEWEST_CALIBRATING - 1), design()) == DEFAULT_KAPPA
    assert kappa(wild(FEWEST_CALIBRATING), design()) > 1.3


def test_looks_are_cut_and_the_first_one_stays() -> None:
    """No look needs more boots than allowed, none comes after enough of them, and one there is always."""
    assert schedule(24) == LOOKS
    assert schedule(24, boards=2) == LOOKS
    assert schedule(24, boards=4)[-1] == (6, 6)
    assert schedule(100, boards=40) == LOOKS[:1]
    assert all(sum(look) <= 9 for look in schedule(9))
    assert schedule(1) == LOOKS[:1]


@pytest.mark.parametrize("looks", [UNEVEN_LOOKS, LOOKS])
@pytest.mark.parametrize("first", [True, False])
def test_a_linear_drift_leaves_the_comparison_alone(looks: tuple[tuple[int, int], ...], first: bool) -> None:
    """At each look the places of both roles have the same mean, or nearly where their numbers forbid it."""
    roles: tuple[str, ...] = ()
    for part, look in zip(order(looks, first), looks, strict=True):
        roles += part
        assert (roles.count("candidate"), roles.count("other")) == look
        places = [np.mean([at for at, own in enumerate(roles) if own == role]) for role in set(roles)]
        assert abs(places[0] - places[1]) < 0.2


def test_the_first_looks_are_known_orders() -> None:
    """CBBC or BCCB, as the seed says; CBC of an uneven look."""
    letters = {"candidate": "C", "other": "B"}
    first = {
        "".join(letters[role] for role in order(looks, bit)[0])
        for looks, bit in itertools.product((UNEVEN_LOOKS, LOOKS), (True, False))
    }
    assert first == {"CBC", "CBBC", "BCCB"}
