# SPDX-License-Identifier: Apache-2.0
"""The test on values: one effect of the candidate, fitted to the boots of all boards by least squares.

A boot is one observation. Each board has a level of its own and a line over the order of its boots; where
both images ran from both OTA slots, a difference of the slots too. What is left of the boots is the noise,
and a board on which the candidate does otherwise than on the others adds to it, but not to the error of what
a board says by itself. The statistic is Student's.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hil.base.numeric import np
from hil.gate.decision import Design, Effect, Evidence, Seen, decide

_FEWEST_OF_LINE = 6  # boots of a board: fewer have a level only
_BOTH_WAYS = 4  # combinations of role and slot
_FAR = 1.0  # spreads of what was seen: so far beyond it lies what was not
_LEAST = 1e-13  # of a value: no variance is smaller than its square, so that equal values divide by something
_LEAST_TURN = 1e-6  # of a board's candidate boots, without what its level, line and slot explain of them


class FittedBoot(NamedTuple):
    """One boot of a board, ``place`` in its order; ``value`` is infinite where it fell among timeouts.

    ``slot`` is where its image lay, "" where nobody knows.
    """

    place: int
    is_candidate: bool
    value: float
    slot: str = ""


def look_at(boards: Sequence[Sequence[FittedBoot]], design: Design, number: int) -> Seen:
    """Return what the boots up to look ``number`` (from 1) say, and what that decides."""
    return decide(evidence_of(boards, design), design, number)


def evidence_of(boards: Sequence[Sequence[FittedBoot]], design: Design) -> Evidence:
    """Fit the effect that the candidate has on all boards."""
    parts = [_part(_bounded(board, design.tolerance)) for board in boards]
    known = [part for part in parts if part is not None]
    freedom = sum(part.freedom for part in known) - 1
    if freedom < 1:
        return Evidence(effects=(Effect(),) * len(boards))
    turns = math.fsum(part.turns for part in known)
    difference = math.fsum(part.product for part in known) / turns
    left = math.fsum(part.left + part.turns * (part.own - difference) ** 2 for part in known)
    least = (_LEAST * min(max(part.largest for part in known), 1e150)) ** 2
    variance = max(left / freedom, design.variance_floor + least)
    error = math.sqrt(variance / turns)
    z = difference / error
    own = max(
        math.fsum(part.left for part in known) / max(freedom + 1 - len(known), 1),
        least,
        design.variance_floor,
    )
    return Evidence(
        difference=difference,
        error=error,
        worse=z,
        better=-z,
        within=(design.tolerance - difference) / error,
        freedom=float(freedom),
        boots=(sum(part.boots[0] for part in known), sum(part.boots[1] for part in known)),
        effects=tuple(
            Effect() if part is None else Effect(part.own, math.sqrt(own / part.turns)) for part in parts
        ),
        boot_deviation=math.sqrt(variance),
    )


class _Part(NamedTuple):
    """A board's share of the sums: its values and its candidate's turns, less what is the board's own.

    ``own`` is the effect on this board alone, ``left`` the squares that it leaves.
    """

    product: float
    turns: float
    left: float
    freedom: int
    boots: tuple[int, int]
    largest: float

    @property
    def own(self) -> float:
        return self.product / self.turns


def _part(boots: Sequence[FittedBoot]) -> _Part | None:
    """Return a board's share; None where its boots do not tell the roles from the rest."""
    candidates = sum(boot.is_candidate for boot in boots)
    if not 0 < candidates < len(boots):
        return None
    basis = _own_basis(tuple([(boot.place, boot.is_candidate, boot.slot) for boot in boots]))
    both = np.array([[boot.is_candidate, boot.value] for boot in boots], dtype=float)
    scale = max(1.0, float(np.abs(both[:, 1]).max()))
    both[:, 1] /= scale
    turn, value = (both - basis @ (basis.T @ both)).T
    turns = float(turn @ turn)
    if turns < _LEAST_TURN:
        return None
    product = float(turn @ value)
    left = max(float(value @ value) - product * product / turns, 0.0)
    return _Part(
        product * scale,
        turns,
        left * scale * scale,
        len(boots) - basis.shape[1],
        (candidates, len(boots) - candidates),
        scale,
    )


@functools.lru_cache(maxsize=256)
def _own_basis(boots: tuple[tuple[int, bool, str], ...]) -> np.ndarray:
    """Return an orthonormal basis of what is the board's own: (boots, level, line, slot), the last two where
    they can be told.

    It hangs on nothing but the place, role and slot of each boot, which all metrics of a board share.
    """
    columns = [np.ones(len(boots))]
    if len(boots) >= _FEWEST_OF_LINE:
        place = np.array([place for place, _, _ in boots], dtype=float)
        columns.append((place - place.mean()) / max(float(np.ptp(place)), 1.0))
    slots = {slot for _, _, slot in boots if slot}
    if len({(role, slot) for _, role, slot in boots if slot}) == _BOTH_WAYS:
        columns.append(np.array([slot == min(slots) for _, _, slot in boots], dtype=float))
    return np.linalg.qr(np.stack(columns, axis=1))[0]


def _bounded(board: Sequence[FittedBoot], tolerance: float) -> list[FittedBoot]:
    """Put finite values, beyond all that the board has shown, in the place of infinite ones (timeouts).

    A board says nothing where most boots of the other role are infinite: nothing can be compared with what
    was never seen.
    """
    there = [boot for boot in board if not math.isnan(boot.value)]
    seen = [boot.value for boot in there if math.isfinite(boot.value)]
    others = [boot.value for boot in there if not boot.is_candidate]
    if not seen or 2 * sum(map(math.isinf, others)) > len(others):
        return []
    reach = max(_FAR * (max(seen) - min(seen)), 2.0 * abs(tolerance))
    place = {math.inf: max(seen) + reach, -math.inf: min(seen) - reach}
    return [boot if math.isfinite(boot.value) else boot._replace(value=place[boot.value]) for boot in there]


def finite(values: Iterable[float]) -> list[float]:
    return [value for value in values if math.isfinite(value)]
