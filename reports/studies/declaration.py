# SPDX-License-Identifier: Apache-2.0
"""What the file of a study says. hil.reports.studies.loader reads it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from hil.base.errors import ConfigError
from hil.base.yamlvalue import did_you_mean
from hil.model import Scalar

# standard-error is sqrt(S / (N (N - 1))), S the sum of squared differences from the mean
STATISTICS = ("mean", "standard-error", "min", "max")


# the columns by which a row may take samples, by bench
SAMPLE_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "http_gateway": ("phase", "read", "profile", "outcome", "reused", "resumed"),
}
BY_FACT = "by-fact"  # a claim's check that needs no measurement
NOT_MEASURABLE = "not-measurable"  # one that nothing of ours can decide
UNMEASURED = (BY_FACT, NOT_MEASURABLE)  # the remark has the reason
CLAIM_KINDS = ("claim", "recommendation")
# what a claim says of a figure: it rises or falls from each value to the next, by that much or more; all are
# equal, within that share; each is above or below that
RELATIONS = ("rises", "falls", "equal", "above", "below")
APPLICATION_KINDS = ("stream", "transfer", "messages")
DIRECTIONS = ("receive", "send")


@dataclass(frozen=True)
class Comparison:
    """Which records a row compares with: the bench, parameters of the case, values of columns.

    A parameter with several values takes records that have any of them; ``highest`` is a parameter of which
    only the records with the highest value are taken.
    """

    bench: str
    case: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict)
    samples: Mapping[str, int] = field(default_factory=dict)
    highest: str = ""


@dataclass(frozen=True)
class Row:
    """One published value, None where it is lost; ``of`` is what a count counts from.

    ``corrected`` is the value that should have been published, or ``formula`` how to get it; ``why`` tells
    the reason. ``defect`` is what is wrong with the value. ``ours`` is None where nothing of ours compares.
    ``both_ends`` says that it is not known whether the sender or the receiver was read. ``statistic`` is one
    of STATISTICS, "" where the table has one for all. ``n`` is how many samples the value stands for where
    rows differ in that, None where the table says it.
    """

    label: str
    published: float | None
    of: int | None
    defect: str
    corrected: float | None
    formula: str
    why: str
    ours: Comparison | None
    both_ends: bool = False
    statistic: str = ""
    n: int | None = None


@dataclass(frozen=True)
class Published:
    """One table of a study. ``lost`` says why its values are not there, "" where they are.

    ``sweep`` is the parameter that a lost table varied: the rows are then what was measured. ``n`` is how
    many runs (or requests) a value stands for.
    """

    id: str
    title: str
    unit: str
    n: int
    lost: str
    defects: tuple[str, ...]
    sweep: str
    ours: Comparison | None
    rows: tuple[Row, ...]

    @property
    def compared(self) -> tuple[Comparison, ...]:
        """What the table and its rows compare with."""
        return tuple(ours for ours in (self.ours, *(row.ours for row in self.rows)) if ours)


@dataclass(frozen=True)
class BackgroundRow:
    """A line of a table that is shown as it is; None where nothing was published."""

    label: str
    values: tuple[Scalar, ...]


@dataclass(frozen=True)
class Background:
    """A table of somebody else's, shown beside ours and judged by nobody."""

    id: str
    title: str
    unit: str
    source: str
    remark: str
    columns: tuple[str, ...]
    rows: tuple[BackgroundRow, ...]


@dataclass(frozen=True)
class Drawing:
    """A chart of figures of a table over its figure ``x``, named by ``unit``; ``lines`` are names by figure.

    There is a line for each value that the figure ``by`` has, "" for no such figure.
    """

    x: str
    unit: str
    lines: Mapping[str, str]
    title: str
    by: str


@dataclass(frozen=True)
class Layout:
    """How a table of ours is shown: the heads of its columns by the name of their figure, "name.format".

    ``measured`` says that figures of ours are in it.
    """

    title: str
    columns: Mapping[str, str]
    notes: tuple[str, ...]
    measured: bool = True
    picture: Drawing | None = None


@dataclass(frozen=True)
class Shown:
    """A section of the study's page: ``tables`` by their ids; ``virtual`` are remarks on a virtual rack.

    ``key`` is the heading, or "question 1"; ``claims`` are those whose verdicts answer the question.
    """

    key: str
    heading: str
    remarks: tuple[str, ...]
    virtual: tuple[str, ...]
    tables: tuple[str, ...]
    claims: tuple[Claim, ...]


@dataclass(frozen=True)
class ClaimTest:
    """Which figure decides a claim, of which records, and how it has to be.

    ``select`` are the records. ``each`` are the parameters by which they are grouped: the claim must hold of
    each group. ``over`` are the parameters that are compared within a group, at the values of ``at``, by
    their labels; of several values of a label the last that was measured counts. ``relation`` is one of
    RELATIONS; a figure, or a rise, has to lie between ``least`` and ``most``.
    ``ends`` says that the first and the last value that were measured count alone, ``chip`` that the figure
    is the chip's work, of which a virtual rack tells nothing.
    """

    statistic: str
    select: Comparison
    each: tuple[str, ...]
    over: tuple[str, ...]
    at: Mapping[str, tuple[Scalar, ...]]
    relation: str
    least: float
    most: float
    ends: bool = False
    chip: bool = False

    @property
    def fewest(self) -> int:
        """How many of the values have to be measured."""
        return {"rises": 2, "falls": 2, "equal": len(self.at)}.get(self.relation, 1)

    def holds(self, low: float, high: float) -> bool | None:
        """Return whether what lies within these bounds is as it has to be; None where it may be."""
        if (low > self.least or math.isinf(self.least)) and (high < self.most or math.isinf(self.most)):
            return True
        return False if high < self.least or low > self.most else None


@dataclass(frozen=True)
class Claim:
    """What a study says, and what decides it: ``test``, or the function of the study named by ``check``.

    ``remark`` is what is known of it besides our figures. A recommendation is a claim too: that what it
    recommends helps. ``where`` is file and line.
    """

    id: str
    says: str
    check: str
    remark: str
    kind: Literal["claim", "recommendation"] = "claim"
    test: ClaimTest | None = None
    where: str = ""


@dataclass(frozen=True)
class Application:
    """What a link may be used for: a stream of ``rate_kbps``, a transfer or messages of ``size_bytes``."""

    name: str
    kind: Literal["stream", "transfer", "messages"]
    direction: Literal["receive", "send"]
    rate_kbps: float
    size_bytes: int
    source: str


@dataclass(frozen=True)
class Study:
    """A published study. ``suites`` and ``boots`` are by size: quick and full."""

    id: str
    title: str
    authors: tuple[str, ...]
    year: int
    source: str
    questions: tuple[str, ...]
    setup: tuple[str, ...]
    excluded: tuple[str, ...]
    suites: Mapping[str, str]
    boots: Mapping[str, int]
    tables: tuple[Published, ...]
    background: tuple[Background, ...]
    claims: tuple[Claim, ...]
    applications: tuple[Application, ...]
    shown: Mapping[str, Layout] = field(default_factory=dict)
    sections: tuple[Shown, ...] = ()

    def claims_of(self, kind: str) -> tuple[Claim, ...]:
        """Return the claims of a kind, one of CLAIM_KINDS."""
        return tuple(claim for claim in self.claims if claim.kind == kind)

    def table(self, table_id: str) -> Published:
        """Return the table of this id. Raises ConfigError."""
        known = {table.id: table for table in self.tables}
        if table_id not in known:
            hint = did_you_mean(table_id, known)
            raise ConfigError(f"the study {self.id!r} has no table {table_id!r}{hint}")
        return known[table_id]
