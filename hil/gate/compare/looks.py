# SPDX-License-Identifier: Apache-2.0
"""When a comparison is looked at, and in which order its boots run."""

from __future__ import annotations

import itertools
from typing import Literal

Side = Literal["candidate", "other"]
Plan = tuple[tuple[int, int], ...]

# Boots a board, (candidate, other), after which it is judged. Ten of each are what four boards have time for
# in 15 minutes, with two groups of cases at 100 samples a boot, and twenty what one has
# (docs/explain/gate-simulation.md).
LOOKS: Plan = ((3, 3), (6, 6), (10, 10), (20, 20))


def schedule(max_boots: int) -> Plan:
    """Return the looks of which none needs more than ``max_boots`` of a board.

    The first is always there: without it nothing is compared.
    """
    return LOOKS[:1] + tuple(look for look in LOOKS[1:] if sum(look) <= max_boots)


def order(looks: Plan, first: bool) -> tuple[tuple[Side, ...], ...]:
    """Return the roles of the boots of each look, in their order.

    Of all orders of a look's boots that is taken after which, over all boots so far, a drift along the run
    comes out of the comparison best: a linear one first, then a quadratic one; then that with the fewest
    changes of role. ``first`` (drawn by the caller) chooses between orders that are equally good, such as
    CBBC and BCCB. A single look of (1, 1) cannot be balanced.
    """
    done: tuple[Side, ...] = ()
    found = []
    before = (0, 0)
    for look in looks:
        of_candidate, of_other = (now - then for now, then in zip(look, before, strict=True))
        added = _best(done, of_candidate, of_other, first)
        found.append(added)
        done += added
        before = look
    return tuple(found)


def _best(done: tuple[Side, ...], of_candidate: int, of_other: int, first: bool) -> tuple[Side, ...]:
    boots = of_candidate + of_other
    orders = [
        tuple[Side, ...]("other" if place in places else "candidate" for place in range(boots))
        for places in itertools.combinations(range(boots), of_other)
    ]
    ranked = {added: _badness(done + added) for added in orders}
    least = min(ranked.values())
    equal = sorted(added for added, badness in ranked.items() if badness == least)
    return equal[-1 if first else 0]


def _badness(roles: tuple[Side, ...]) -> tuple[float, float, int]:
    """Return what a linear and a quadratic drift would add to the difference, and the changes of role."""
    middle = (len(roles) - 1) / 2
    places: dict[str, list[float]] = {"candidate": [], "other": []}
    for place, role in enumerate(roles):
        places[role].append(place - middle)
    if not all(places.values()):
        return (0.0, 0.0, 0)
    drifts = []
    for power in (1, 2):
        means = [sum(place**power for place in own) / len(own) for own in places.values()]
        drifts.append(round(abs(means[0] - means[1]), 9))
    changes = sum(one != two for one, two in itertools.pairwise(roles))
    return (drifts[0], drifts[1], changes)
