# SPDX-License-Identifier: Apache-2.0
"""ledger.csv and arrivals.csv of a case's folder.

A ledger for a person: from the facts of a record to a table, and to one sentence.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import ConfigError, RigError
from hil.base.reading import RUN_MOST_BYTES, read_at_most
from hil.model import Scalar
from hil.network.ledger.attribution import Ledger
from hil.network.ledger.evidence import Arrival, LossEvidence, Outcome, Tcp
from hil.network.ledger.points import OWNERS, POINTS, LossPoint, Owner
from hil.store.files import disk_error, replace_file

LEDGER_FILE = "ledger.csv"
ARRIVALS_FILE = "arrivals.csv"
ARRIVALS_COLUMNS = ("number", "time_us", "qos", "dup", "retain", "run")
TIMED = (LossPoint.ACCESS_POINT, LossPoint.BROKER_IN, LossPoint.BROKER_OUT, LossPoint.SUBSCRIBER)
LEDGER_COLUMNS = (
    *("number", "owner", "passed", "arrivals", "planned_us", "qos", "outcome", "connection", "tcp"),
    *(f"{point.word}_us" for point in TIMED),
)


def write_ledger(path: Path, ledger: Ledger, evidence: LossEvidence) -> None:
    """Write a line a message. Raises RigError: the disk does not take it."""
    handed = {one.number: one for one in evidence.handed}
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(LEDGER_COLUMNS)
    for line in ledger.lines:
        one = handed[line.number]
        words = (Outcome(one.outcome).name.lower(), one.connection, Tcp(one.tcp).name.lower())
        times = (line.times_us.get(point, "") for point in TIMED)
        passed = line.passed.word if line.passed else ""
        own = (line.number, line.owner.word, passed, line.arrivals, one.planned_us, one.qos)
        writer.writerow((*own, *words, *times))
    try:
        replace_file(path, file.getvalue().encode())
    except OSError as error:
        raise disk_error(f"could not write {path}", error, "the board's samples") from error


def read_arrivals(path: Path, *, run: int) -> list[Arrival]:
    """Read what the subscriber noted (ARRIVALS_COLUMNS) of the case with this nonce; what came of another,
    a retained or stale message, is none of it. A torn last line is left out.

    Raises RigError naming file and line.
    """
    try:
        lines = read_at_most(path, RUN_MOST_BYTES).decode(errors="replace").split("\n")[:-1]
    except OSError as error:
        raise RigError(
            f"The subscriber's notes {path} could not be read: {error.strerror}.",
            next_step="see the subscriber's log beside it; it writes the file before it subscribes.",
        ) from error
    numbered = list(enumerate(lines, start=1))
    if lines[:1] == [",".join(ARRIVALS_COLUMNS)]:
        del numbered[0]
    found = [_arrival(path, number, line) for number, line in numbered]
    return [arrival for nonce, arrival in found if nonce == run]


def _arrival(path: Path, line_number: int, line: str) -> tuple[int, Arrival]:
    """Return a line's nonce and arrival."""
    cells = line.split(",")
    if len(cells) != len(ARRIVALS_COLUMNS) or not all(cell.isdecimal() and cell.isascii() for cell in cells):
        raise RigError(
            f"{path}:{line_number}: {line!r:.60} is not an arrival; expected "
            f"{','.join(ARRIVALS_COLUMNS)}, whole numbers.",
            next_step="the file was changed or the disk is broken: run the case again.",
        )
    number, time_us, qos, dup, retain, run = map(int, cells)
    return run, Arrival(number, time_us, qos, bool(dup), bool(retain))


UNSEEN = "not watched"
HEADING = ("point", "passed", "lost here")
_LOSSES = tuple(owner for owner in OWNERS if owner)
_HOW = {
    Owner.DEVICE_CALL: "{} never accepted by the device's client",
    Owner.DEVICE_TCP: "{} never left the device's TCP",
    Owner.ACCESS_POINT: "{} lost in the air",
    Owner.BROKER_IN: "{} lost between access point and broker",
    Owner.BROKER_OUT: "{} came to the broker and never left it",
    Owner.SUBSCRIBER: "{} left the broker and were never noted by the subscriber",
    Owner.UNDETERMINED: "{} undetermined",
}


@dataclass(frozen=True)
class LedgerCounts:
    """The counts of one ledger: ``lost`` by owner, ``passed`` by point, None where nobody looked."""

    sent: int
    arrived: int
    lost: Mapping[Owner, int]
    passed: Mapping[LossPoint, int | None]
    duplicates: int
    out_of_order: int

    @property
    def lost_count(self) -> int:
        return sum(self.lost.values())


def counts_of(facts: Mapping[str, Scalar]) -> LedgerCounts | None:
    """Return the ledger among a record's facts of its peer, None where it has none.

    Raises ConfigError: a count is missing or none, or the sum over all owners is not what was sent.
    """
    if f"lost_{Owner.UNDETERMINED.word}_count" not in facts:
        return None
    counts = LedgerCounts(
        sent=_whole(facts, "sent_count"),
        arrived=_whole(facts, "arrived_count"),
        lost={owner: _whole(facts, f"lost_{owner.word}_count") for owner in _LOSSES},
        passed={point: _passed(facts, point) for point in POINTS},
        duplicates=_whole(facts, "duplicates_count"),
        out_of_order=_whole(facts, "out_of_order_count"),
    )
    told, lost = _whole(facts, "lost_count"), counts.lost_count
    if told != lost or counts.sent != counts.arrived + lost:
        raise ConfigError(
            f"the ledger's sums do not agree: {counts.sent} sent, {counts.arrived} arrived, {told} lost, and "
            f"{lost} over all owners.",
            next_step="the journal was changed after it was written; restore it, or measure again.",
        )
    return counts


def total_of(ledgers: Sequence[LedgerCounts]) -> LedgerCounts:
    """Return the counts of several ledgers as one; where one did not watch a point, none did."""
    passed: dict[LossPoint, int | None] = {}
    for point in POINTS:
        counts = [ledger.passed[point] for ledger in ledgers]
        known = [count for count in counts if count is not None]
        passed[point] = sum(known) if len(known) == len(counts) else None
    return LedgerCounts(
        sent=sum(ledger.sent for ledger in ledgers),
        arrived=sum(ledger.arrived for ledger in ledgers),
        lost={owner: sum(ledger.lost[owner] for ledger in ledgers) for owner in _LOSSES},
        passed=passed,
        duplicates=sum(ledger.duplicates for ledger in ledgers),
        out_of_order=sum(ledger.out_of_order for ledger in ledgers),
    )


def sentence_of(counts: LedgerCounts, *, boots: int = 1) -> str:
    """Return "412 of 2000 messages did not arrive: 400 never left the device's TCP, 12 undetermined"."""
    messages = f"{counts.sent} messages{f' of {boots} boots' if boots > 1 else ''}"
    if not counts.lost_count:
        return f"all {messages} arrived"
    parts = [_HOW[owner].format(count) for owner, count in counts.lost.items() if count]
    return f"{counts.lost_count} of {messages} did not arrive: {', '.join(parts)}"


def table_of(counts: LedgerCounts) -> list[tuple[str, str, str]]:
    """Return HEADING, a row a point (how many passed it, how many were lost there), undetermined, sum."""
    rows = [HEADING, ("sent", str(counts.sent), "")]
    for point in POINTS:
        passed = counts.passed[point]
        rows.append((point.word, UNSEEN if passed is None else str(passed), str(counts.lost[Owner(point)])))
    rows.append((Owner.UNDETERMINED.word, "", str(counts.lost[Owner.UNDETERMINED])))
    rows.append(("sum", f"{counts.arrived} arrived", f"{counts.lost_count} lost"))
    return rows


def lines_of(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the table as text: names to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows
    ]


def _passed(facts: Mapping[str, Scalar], point: LossPoint) -> int | None:
    if point is LossPoint.SUBSCRIBER:
        return _whole(facts, "arrived_count")
    key = f"seen_{point.word}_count"
    return None if key in facts and facts[key] is None else _whole(facts, key)


def _whole(facts: Mapping[str, Scalar], key: str) -> int:
    value = facts.get(key)
    if type(value) is not int or value < 0:
        raise ConfigError(
            f"the ledger's {key} is {value!r}; expected a whole number.",
            next_step="the journal was changed after it was written; restore it, or measure again.",
        )
    return value
