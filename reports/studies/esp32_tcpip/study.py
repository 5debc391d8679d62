# SPDX-License-Identifier: Apache-2.0
"""The study esp32-tcpip beside our run of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hil.model import RunRecord
from hil.reports.studies.claims import CONTRADICTED, SUPPORTED, UNDECIDED, Finding, claim_table, from_test
from hil.reports.studies.comparison import plain_table
from hil.reports.studies.declaration import Study
from hil.reports.studies.document import Section, Table
from hil.reports.studies.esp32_tcpip import link
from hil.reports.studies.esp32_tcpip.published import rate_table
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
    cpu_table,
    segment_table,
    segments,
    tcp_baseline,
    window_table,
    windows,
)
from hil.reports.studies.estimate import ALPHA, above
from hil.reports.studies.records import BoardRun, whole, word

OUR_WAY = (
    "their way: the mean of up to three runs (how many in brackets) of the average over the whole test, as "
    "iperf prints it. mean, p50, p95, p99: of the rates of the full intervals after the start, at the "
    "receiver. The mean has an interval whose ends are each wrong with 5 % at most, over boots; of one boot "
    "over its tests, or over batches of one test's intervals, and then it holds for this boot. The "
    "percentiles are those of the intervals that were measured; what others would have is not bounded. 95 % "
    "reach: the rate that 95 % of them have at least. n: intervals; 'n < 299': too few for the percentile."
)


def sections_of(study: Study, run: BoardRun) -> list[Section]:
    """Return the sections; a case that is missing leaves its row and says why."""
    drifts = link.drifts_of(run)
    tables = {table.id: table for table in study.tables}
    rates = {key: rate_table(study, table, run) for key, table in tables.items() if table.unit == "mbps"}
    return [
        Section(
            "Baseline",
            (OUR_WAY,),
            (rates["baseline"], *_present(link.drift_table(study, drifts))),
            warnings=link.drift_warnings(drifts),
        ),
        Section(
            "Package sizes",
            tables=(rates["segment-receive"], rates["segment-send"], *_present(segment_table(study, run))),
            answers=tuple(segments(run, way).sentence() for way in ("RX", "TX")),
        ),
        Section(
            "Windows",
            tables=(rates["window-receive"], rates["window-send"], *_present(window_table(study, run))),
            answers=tuple(windows(run, way).sentence() for way in ("RX", "TX")),
        ),
        *_section("UDP, offered and achieved", ramp_table(study, run)),
        Section("Headers", tables=(link.overhead_table(study, run),)),
        *_section("CPU", cpu_table(study, run)),
        *_questions(study, run),
        Section("Claims", tables=(claim_table(study.claims, run, _CHECKS),)),
        _background(study, run),
    ]


def _present(table: Table | None) -> tuple[Table, ...]:
    return (table,) if table else ()


def _section(heading: str, table: Table | None) -> list[Section]:
    return [Section(heading, tables=(table,))] if table else []


def _questions(study: Study, run: BoardRun) -> list[Section]:
    """Return each of the study's questions with its answer: performance, package size, rate, applications."""
    sizes = tuple(segments(run, way).sentence() for way in ("RX", "TX"))
    answers: tuple[tuple[str, ...], ...] = (_performance(run), sizes, _maximum(run), ())
    tables: tuple[tuple[Table, ...], ...] = ((), (), (), (application_table(study, run),))
    return [
        Section(f"Question: {question}", tables=own, answers=said)
        for question, own, said in zip(study.questions, tables, answers, strict=True)
    ]


def _performance(run: BoardRun) -> tuple[str, ...]:
    found = []
    for way, verb in (("TX", "sent"), ("RX", "received")):
        ours = tcp_baseline(run, way)
        if not ours.mean.is_bounded:
            found.append(f"The rate over TCP, {verb} by the board, was not measured.")
            continue
        floor = f"; 95 % of them had {ours.floor.short} or more" if ours.floor.value is not None else ""
        found.append(
            f"Over TCP with iperf's own settings the board {verb} {ours.mean.text} Mbit/s in the mean of the "
            f"intervals{floor} (n = {ours.n}, boots = {ours.boots})."
        )
    return tuple(found)


def _maximum(run: BoardRun) -> tuple[str, ...]:
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


def _background(study: Study, run: BoardRun) -> Section:
    """Return the tables of others, shown and not judged."""
    remarks = [
        "Shown for orientation: other radios, access points and settings. Nothing is judged against them."
    ]
    if run.kind != "physical":
        remarks.append(
            f"A {run.kind} board has no radio, so no verdict against these tables is possible: its figures "
            "are those of a link emulator."
        )
    return Section("Espressif's figures", tuple(remarks), tuple(map(plain_table, study.background)))


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
