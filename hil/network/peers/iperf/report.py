# SPDX-License-Identifier: Apache-2.0
"""Reads what iperf 2.1 prints with ``-e -f b``: one line an interval, then the whole test.

Measured with 2.1.8: bytes are whole numbers, times are rounded to 0.1 ms. A line that looks like a data line
and cannot be read is an error, not a gap.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass

from hil.base.errors import RigError

_LINE = re.compile(r"\[ *\*?\d+\] +(\d+\.\d+)-(\d+\.\d+) sec +(.*)")
_BYTES = re.compile(r"(\d+)(?:\.0+)? Bytes +(\S+) bits/sec *(.*)")
_UDP = re.compile(r"(\d+\.\d+) ms +(-?\d+)/ *(\d+) ")
_RETRANSMITS = re.compile(r"\d+/\d+ +(\d+) +\S+/\d")
_OUT_OF_ORDER = re.compile(r"(\d+) datagrams received out-of-order")
_TROUBLE = re.compile(r"fail|refused|error|unreachable|not available|denied", re.IGNORECASE)
_BOUNDARY_S = 0.00015  # printed times are rounded to 0.1 ms


@dataclass(frozen=True)
class Span:
    """An interval, or the whole test. Counts are None where this side does not know them."""

    start_s: float
    end_s: float
    bytes: int
    expected_count: int | None = None
    lost_count: int | None = None
    jitter_us: int | None = None
    out_of_order_count: int = 0
    retransmits_count: int | None = None

    @property
    def lasting_s(self) -> float:
        return self.end_s - self.start_s


@dataclass(frozen=True)
class Report:
    """What one iperf said. ``peer_report`` is the receiver's answer at the end of a UDP test.

    ``intervals`` are the full ones; ``total`` is None where iperf did not get that far. ``trouble`` are its
    error words.
    """

    intervals: tuple[Span, ...]
    total: Span | None
    peer_report: Span | None
    trouble: tuple[str, ...]


def parse_report(text: str, interval_s: float) -> Report:
    """Read everything an iperf printed. Raises RigError quoting a line that cannot be read."""
    own: list[Span] = []
    theirs: list[Span] = []
    spans = own
    for line in text.splitlines():
        if "Server Report:" in line:
            spans = theirs
        match = _LINE.match(line)
        if match:
            _add(spans, line, float(match.group(1)), float(match.group(2)), match.group(3))
    intervals, total = _split(own, interval_s)
    return Report(
        intervals=intervals,
        total=total,
        peer_report=theirs[-1] if theirs else None,
        trouble=_trouble(text),
    )


def _add(spans: list[Span], line: str, start_s: float, end_s: float, rest: str) -> None:
    late = _OUT_OF_ORDER.match(rest)
    if late:  # belongs to the line before
        if spans:
            spans[-1] = _with_out_of_order(spans[-1], int(late.group(1)))
        return
    found = _BYTES.match(rest)
    if found is None:
        raise RigError(
            f"Reading iperf's output: {line.strip()!r} is not a line of iperf 2.1 with -e -f b.",
            next_step="hil doctor names the version that is needed.",
        )
    if "nan" in found.group(2):  # an answer that never came, printed all the same
        return
    udp, retransmits = _UDP.match(found.group(3)), _RETRANSMITS.match(found.group(3))
    spans.append(
        Span(
            start_s,
            end_s,
            int(found.group(1)),
            expected_count=int(udp.group(3)) if udp else None,
            lost_count=int(udp.group(2)) if udp else None,
            jitter_us=round(float(udp.group(1)) * 1000) if udp else None,
            retransmits_count=int(retransmits.group(1)) if retransmits else None,
        )
    )


def _with_out_of_order(span: Span, count: int) -> Span:
    return dataclasses.replace(span, out_of_order_count=count)


def _split(spans: Sequence[Span], interval_s: float) -> tuple[tuple[Span, ...], Span | None]:
    """Separate intervals from the whole test, which comes last and begins at 0 (or is the only line)."""
    if not spans:
        return (), None
    last = spans[-1]
    ended = last.start_s == 0 and (len(spans) > 1 or abs(last.lasting_s - interval_s) > _BOUNDARY_S)
    intervals = spans[:-1] if ended else spans
    full = tuple(one for one in intervals if abs(one.lasting_s - interval_s) <= _BOUNDARY_S)
    return full, last if ended else None


def _trouble(text: str) -> tuple[str, ...]:
    lines = (line.strip() for line in text.splitlines())
    return tuple(line for line in lines if _TROUBLE.search(line) and not line.startswith("[ ID]"))
