"""The claims of the study esp32-tcpip against our records: supported, contradicted, undecided."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hil.model import RunRecord
from hil.reference import Claim
from reports.reproduction.claims import CONTRADICTED, SUPPORTED, UNDECIDED, Finding, from_test
from reports.reproduction.estimate import ALPHA, above
from reports.reproduction.ramp import best_of
from reports.reproduction.records import BoardRun, whole, word
from reports.reproduction.sizes import Sweep, segments, windows
from reports.reproduction.throughput import (
    BENCH,
    Throughput,
    asked_mss,
    asked_window,
    board_sends,
    throughput_of,
)


def check(claim: Claim, run: BoardRun) -> Finding:
    """Return what our records say of a claim. Raises KeyError where it is none of this study's."""
    return _CHECKS[claim.check](run)


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
