"""ledger.csv and arrivals.csv of a case's folder."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from hil.base.errors import RigError
from hil.network.ledger.attribution import Ledger
from hil.network.ledger.evidence import Arrival, Evidence, Outcome, Tcp
from hil.network.ledger.points import Point
from hil.store.files import disk_error, replace_file

LEDGER_FILE = "ledger.csv"
ARRIVALS_FILE = "arrivals.csv"
ARRIVALS_COLUMNS = ("number", "time_us", "qos", "dup", "retain", "run")
TIMED = (Point.ACCESS_POINT, Point.BROKER_IN, Point.BROKER_OUT, Point.SUBSCRIBER)
LEDGER_COLUMNS = (
    *("number", "owner", "passed", "arrivals", "planned_us", "qos", "outcome", "connection", "tcp"),
    *(f"{point.word}_us" for point in TIMED),
)


def write_ledger(path: Path, ledger: Ledger, evidence: Evidence) -> None:
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
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
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
            f"{path}:{line_number}: {line!r:.60} is no arrival; expected {','.join(ARRIVALS_COLUMNS)}, "
            "whole numbers.",
            next_step="the file was changed or the disk is broken: run the case again.",
        )
    number, time_us, qos, dup, retain, run = map(int, cells)
    return run, Arrival(number, time_us, qos, bool(dup), bool(retain))
