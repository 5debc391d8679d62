# SPDX-License-Identifier: Apache-2.0
"""The study esp32-tcpip beside our run of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from hil.model import RunRecord
from hil.reports.studies.claims import (
    CONTRADICTED,
    SUPPORTED,
    UNDECIDED,
    Finding,
    from_test,
)
from hil.reports.studies.declaration import Study
from hil.reports.studies.esp32_tcpip import link
from hil.reports.studies.esp32_tcpip.published import RATES, rate_table
from hil.reports.studies.esp32_tcpip.rates import (
    BENCH,
    Throughput,
    asked_mss,
    asked_window,
    best_of,
    board_sends,
    ramp_table,
    throughput_of,
)
from hil.reports.studies.esp32_tcpip.sizes import (
    WORDS,
    Sweep,
    application_table,
    segment_table,
    segments,
    tcp_baseline,
    window_table,
    windows,
)
from hil.reports.studies.estimate import ALPHA, above
from hil.reports.studies.records import BoardRun, whole, word
from hil.reports.studies.sections import Parts


def _ways(sweep_of: Callable[[BoardRun, str], Sweep]) -> Callable[[Study, BoardRun], tuple[str, ...]]:
    return lambda _study, run: tuple(sweep_of(run, way).sentence() for way in ("RX", "TX"))


def _maximum(_study: Study, run: BoardRun) -> tuple[str, ...]:
    found = [sentence for way in ("TX", "RX") for sentence in _most_of(run, way)]
    for way, where in (("TX", "from"), ("RX", "at")):
        if best := best_of(run, way):
            found.append(f"Over UDP the most that arrived {where} the board is {best.text} Mbit/s.")
    return tuple(found) or ("The maximum rate was not measured.",)


def _most_of(run: BoardRun, way: str) -> list[str]:
    """Return a sentence on the most that was seen; a size is named if provably above the baseline."""
    baseline = tcp_baseline(run, way).mean
    sweeps = [sweep for sweep in (segments(run, way), windows(run, way)) if sweep.best is not None]
    found = [(sweep.means[sweep.best], sweep) for sweep in sweeps if sweep.best is not None]
    better = [pair for pair in found if above(pair[0], baseline)]
    if not better and baseline.value is None:
        return []
    if not better:
        return [f"The most over TCP, {WORDS[way]}, is {baseline.text} Mbit/s; no size was provably better."]
    rate, sweep = max(better, key=lambda pair: pair[0].value or 0.0)
    size = f"a {sweep.noun} of {sweep.best:,} B"
    return [f"The most over TCP, {WORDS[way]}, is {rate.text} Mbit/s with {size}."]


def _tx_exceeds_rx(run: BoardRun) -> Finding:
    """Compare each pair of TCP cases that differ in the direction alone, and the best that UDP carried.

    The pairs share ALPHA, so that one of many does not contradict the claim by chance (Bonferroni).
    """
    pairs = _tcp_pairs(run)
    udp = all(best_of(run, way) for way in ("TX", "RX"))
    if not pairs and not udp:
        return Finding(UNDECIDED, "no case was measured in both directions")
    each = ALPHA / (len(pairs) + udp)
    compared = [(name, above(sent.mean_at(each), received.mean_at(each))) for name, sent, received in pairs]
    best = {way: best_of(run, way, each) for way in ("TX", "RX")}
    if best["TX"] and best["RX"]:
        compared.append(("UDP at its best", above(best["TX"], best["RX"])))
    against = [name for name, found in compared if found is False]
    faster = sum(found is True for _, found in compared)
    counted = f"TX is provably faster in {faster} of {len(compared)} pairs, provably slower in {len(against)}"
    if against:
        return Finding(
            CONTRADICTED, f"{counted} ({'; '.join(against[:3])}{'; …' if len(against) > 3 else ''})"
        )
    return Finding(SUPPORTED if faster == len(compared) else UNDECIDED, counted)


def _tcp_pairs(run: BoardRun) -> list[tuple[str, Throughput, Throughput]]:
    """Return each pair's name with what was sent and what was received."""
    pairs: dict[tuple[int, ...], dict[bool, list[RunRecord]]] = {}
    for record in run.of(BENCH):
        if word(record, "protocol") == "tcp" and not whole(record, "amount_bytes"):
            sides = pairs.setdefault(_but_direction(record), {})
            sides.setdefault(board_sends(record), []).append(record)
    return [
        (_name(key), throughput_of(sides[True]), throughput_of(sides[False]))
        for key, sides in pairs.items()
        if len(sides) == 2
    ]


def _but_direction(record: RunRecord) -> tuple[int, ...]:
    windows_at = (asked_window(record), asked_window(record, "sender"))
    others = (whole(record, name) for name in ("rate_kbps", "length_bytes", "nodelay"))
    return (asked_mss(record), *windows_at, *others)


def _name(key: tuple[int, ...]) -> str:
    mss, receiver, sender, *_ = key
    parts = [f"packages of {mss:,} B"] if mss else []
    parts += [f"a receive window of {receiver:,} B"] if receiver else []
    parts += [f"a send window of {sender:,} B"] if sender else []
    return f"TCP with {' and '.join(parts)}" if parts else "TCP"


def _large(
    sweep_of: Callable[[BoardRun, str], Sweep], way: str, wanted: bool
) -> Callable[[BoardRun], Finding]:
    """Return the check that the largest size of a sweep is faster than the smallest, or slower.

    The ends alone do not support it: a size between that contradicts is named, and leaves it undecided.
    """

    def check_it(run: BoardRun) -> Finding:
        sweep = sweep_of(run, way)
        found = sweep.large_wins()
        finding = from_test(found if found is None else found == wanted, sweep.ends())
        outliers = sweep.outliers()
        if not outliers:
            return finding
        if finding.verdict == SUPPORTED:
            return Finding(UNDECIDED, f"the ends support it, {sweep.ends()}; but {'; '.join(outliers)}")
        return Finding(finding.verdict, f"{finding.reason}; and {'; '.join(outliers)}")

    return check_it


_CHECKS: Mapping[str, Callable[[BoardRun], Finding]] = {
    "tx-exceeds-rx": _tx_exceeds_rx,
    "receive-wants-large-segments": _large(segments, "RX", wanted=True),
    "send-wants-small-segments": _large(segments, "TX", wanted=False),
    "receive-wants-large-windows": _large(windows, "RX", wanted=True),
    "send-wants-small-windows": _large(windows, "TX", wanted=False),
}
PARTS = Parts(
    tables={
        **{name: functools.partial(rate_table, name) for name in RATES},
        "drift": link.drift_table,
        "segments": segment_table,
        "windows": window_table,
        "ramp": ramp_table,
        "overhead": link.overhead_table,
        "applications": application_table,
    },
    checks=_CHECKS,
    answers={"question 2": _ways(segments), "Windows": _ways(windows), "question 3": _maximum},
    warnings={"question 1": link.drift_warnings},
)
