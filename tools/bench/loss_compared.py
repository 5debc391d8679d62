# SPDX-License-Identifier: Apache-2.0
"""What the ledger says beside the truth, message by message, and what of it is not as it must be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hil.network.ledger.points import POINTS, Owner
from tools.bench.figure import Figure
from tools.bench.loss_scenarios import Scenario

MESSAGES_MIN = 10_000


@dataclass(frozen=True)
class Compared:
    """One scenario: what the ledger says beside the truth, message by message."""

    scenario: Scenario
    transport: str
    pairs: tuple[tuple[Owner, Owner], ...]  # (true, named)
    contradictions: tuple[str, ...]

    @property
    def lost(self) -> Counter[Owner]:
        return Counter(true for true, _ in self.pairs if true is not Owner.ARRIVED)

    @property
    def undetermined(self) -> int:
        return sum(named is Owner.UNDETERMINED for _, named in self.pairs)

    @property
    def wrong(self) -> Counter[tuple[Owner, Owner]]:
        """Count pairs that differ; of a loss the ledger may say that it does not know."""
        return Counter(
            (true, named)
            for true, named in self.pairs
            if named is not true and (named is not Owner.UNDETERMINED or true is Owner.ARRIVED)
        )

    @property
    def right(self) -> int:
        return sum(true is named is not Owner.ARRIVED for true, named in self.pairs)

    @property
    def counts(self) -> tuple[int, ...]:
        """Return sent, lost, right, undetermined, wrong, and the true losses at each point."""
        at_points = (self.lost[Owner(point)] for point in POINTS)
        return (
            len(self.pairs),
            self.lost.total(),
            self.right,
            self.undetermined,
            self.wrong.total(),
            *at_points,
        )

    def cells(self) -> tuple[str, ...]:
        return (self.scenario.name, self.transport, *map(str, self.counts))

    def missed(self) -> list[str]:
        """Return what is not as it must be."""
        where = f"{self.scenario.name}, {self.transport}"
        wrong = [
            f"{where}: {count} lost at {true.word}, named {named.word}"
            for (true, named), count in self.wrong.items()
        ]
        nothing = [] if self.lost else [f"{where}: nothing was lost"]
        return [*wrong, *nothing, *(f"{where}: {words}" for words in self.contradictions)]


def figure_of(compared: Sequence[Compared], *, whole: bool = True) -> Figure:
    """Return the table, and what is not as it must be.

    That enough was lost, and at each point, is asked where ``whole`` says that all scenarios are there.
    """
    missed = [words for one in compared for words in one.missed()]
    lost: Counter[Owner] = Counter()
    for one in compared:
        lost += one.lost
    nowhere = [f"no message was lost at {point.word}" for point in POINTS if not lost[Owner(point)]]
    sent = sum(len(one.pairs) for one in compared)
    few = [f"{sent} messages are fewer than {MESSAGES_MIN}"] if sent < MESSAGES_MIN else []
    missed += [*nowhere, *few] if whole else []
    sums = [sum(values) for values in zip(*(one.counts for one in compared), strict=True)]
    columns = ("", "", "sent", "lost", "right", "undet.", "WRONG", *(str(n) for n in range(1, 7)))
    rows = [*(one.cells() for one in compared), ("all", "", *map(str, sums))]
    points = ", ".join(f"{point:d} {point.word}" for point in POINTS)
    note = (
        f"Virtual; true losses at {points}. Truth: a capture on the board's own side of the air, what the "
        "subscriber says it threw away, what mosquitto says it dropped, what the board's client refused. "
        "Aim: no wrong owner."
    )
    return Figure(
        "Lost messages and the owners that the ledger names", columns, rows, note, missed, exact=True
    )
