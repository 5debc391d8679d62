# SPDX-License-Identifier: Apache-2.0
"""From the series' verdicts and the faults to the verdict on the run: outcome, exit code, one sentence."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence

from hil.base.errors import ExitCode, combine_exit_codes
from hil.base.units import find_unit, format_value
from hil.gate.words import compared as comparison_conclusion
from hil.gate.words import limits as sentences
from hil.gate.words.compared import NONE_COMPARED, Compared, named
from hil.gate.words.undecided import UndecidedLimits, undecided_of
from hil.model import Fault, NotRun, Outcome, RunOutcome, SeriesVerdict, Verdict, bench_of


def conclude(
    run_id: str,
    series: tuple[SeriesVerdict, ...],
    faults: tuple[Fault, ...],
    not_run: tuple[NotRun, ...],
    compared: Compared = NONE_COMPARED,
    *,
    strict: Collection[str] = (),
) -> Verdict:
    """Combine everything; ``strict`` are the benches whose policy says that CI fails what is undecided.

    Precedence is that of the exit codes: a broken limit or a regression decides whatever else passed.
    """
    undecided = undecided_of(series, compared)
    missing = [item for item in not_run if item.expected]
    partly = bool(missing) or _nothing_measured(series, compared) or undecided.unmeasured
    codes = [ExitCode(fault.exit_code) for fault in faults]
    if any(_blocks(item, "regressed") for item in series) or compared.blocking("regressed"):
        codes.append(ExitCode.FIRMWARE)
    if undecided or partly:
        codes.append(ExitCode.UNDECIDED)
    exit_code = combine_exit_codes(codes)
    return Verdict(
        run_id=run_id,
        outcome=_outcome(exit_code, series, compared, is_complete=not (faults or partly)),
        exit_code=int(exit_code),
        sentence=_sentence(exit_code, series, faults, missing, compared),
        series=series,
        faults=faults,
        not_run=not_run,
        warnings=(
            *_handed_over(not_run),
            *_warnings(series, compared),
            *comparison_conclusion.warnings(compared),
        ),
        compared=compared.series,
        on_undecided="fail" if _benches(undecided, series) & set(strict) else "neutral",
        no_base=compared.no_base.cause if compared.no_base else "",
    )


def _benches(undecided: UndecidedLimits, series: Sequence[SeriesVerdict]) -> set[str]:
    """Return the benches of which something is undecided: all, where their base is missing."""
    known = {item.case_id for item in series} if undecided.no_base else undecided.case_ids
    return set(map(bench_of, known))


def _nothing_measured(series: Sequence[SeriesVerdict], compared: Compared) -> bool:
    """Return whether there is no sample, though there was something to measure: images that differ."""
    return not any(item.samples for item in series) and not compared.nothing_to_measure


def _blocks(item: SeriesVerdict, outcome: Outcome) -> bool:
    return item.blocking and item.outcome == outcome


def _outcome(
    exit_code: ExitCode, series: Sequence[SeriesVerdict], compared: Compared, *, is_complete: bool
) -> RunOutcome:
    if exit_code == ExitCode.FIRMWARE:
        return "regressed"
    if exit_code != ExitCode.PASS:
        return "undecided" if exit_code == ExitCode.UNDECIDED and is_complete else "incomplete"
    lacking = comparison_conclusion.missing_base(compared)
    without_base = compared.blocking("no-baseline") or compared.not_compared or lacking
    if _unlimited(series, compared) or without_base:
        return "no-baseline"
    judged = _counted_limits(series) or compared.blocking() or compared.nothing_to_measure
    return "pass" if judged else "no-baseline"


def _unlimited(series: Sequence[SeriesVerdict], compared: Compared) -> list[SeriesVerdict]:
    """Return the blocking series that nothing says anything of: neither a limit nor a comparison."""
    known = {
        (board, item.case_id, item.metric)
        for item in compared.blocking()
        if item.outcome != "no-baseline"
        for board in item.boards
    }
    return [
        item
        for item in series
        if _blocks(item, "no-baseline") and (item.board, item.case_id, item.metric) not in known
    ]


def _sentence(
    exit_code: ExitCode,
    series: Sequence[SeriesVerdict],
    faults: Sequence[Fault],
    missing: Sequence[NotRun],
    compared: Compared,
) -> str:
    """Describe first what decided the exit code, then what else went wrong."""
    broken = sum(_blocks(item, "regressed") for item in series)
    decisive = [fault for fault in faults if fault.exit_code == exit_code]
    parts = ["nothing was measured"] if _nothing_measured(series, compared) else []
    if worse := comparison_conclusion.regressions(compared):
        parts.append(worse)
    if broken:
        unsure = f", {_marginal(series)} more exceeded but not provably" if _marginal(series) else ""
        parts.append(f"{broken} of {_counted_limits(series)} limits broken{unsure}: {_worst_broken(series)}")
    if decisive:
        more = f" (and {len(decisive) - 1} more)" if len(decisive) > 1 else ""
        parts.append(f"{_FAULT_WORDS.get(exit_code, 'fault')}: {decisive[0].sentence.rstrip('.')}{more}")
    if missing and exit_code == ExitCode.UNDECIDED:
        parts.append(_missing_sentence(series, missing))
    if parts and not broken and _marginal(series):
        parts.append(f"{_marginal(series)} of {_counted_limits(series)} limits exceeded but not provably")
    others = sorted({fault.owner for fault in faults if fault not in decisive})
    if others:
        count = len(faults) - len(decisive)
        parts.append(f"also {count} fault{'' if count == 1 else 's'} of the {' and the '.join(others)}")
    parts += comparison_conclusion.open_ones(compared) if parts else []
    sentence = "; ".join(parts or _quiet_parts(series, compared))
    return f"{sentence[0].upper()}{sentence[1:]}."


def _worst_broken(series: Sequence[SeriesVerdict]) -> str:
    """Return "publish latency p95 on v1 31.2 ms, limit 25 ms": what is the most times its limit."""
    found = [item for item in series if _blocks(item, "regressed")]
    return f"{'worst ' if len(found) > 1 else ''}{sentences.beside_limit(max(found, key=_times_limit))}"


def _times_limit(item: SeriesVerdict) -> float:
    """Return how many times its limit a value is; of one that is too small, how many times smaller."""
    value, limit = abs(item.value or 0.0), abs(item.limit or 0.0)
    over, under = (limit, value) if item.direction == "higher" else (value, limit)
    return over / under if under else math.inf


def _missing_sentence(series: Sequence[SeriesVerdict], missing: Sequence[NotRun]) -> str:
    """Separate cases without any boot from cases that lack some of their boots."""
    measured = {(item.board, item.case_id) for item in series if item.samples}
    partly = sum((item.board, item.case_id) in measured for item in missing)
    counts = ((len(missing) - partly, "not measured"), (partly, "not measured in every boot"))
    return ", ".join(f"{n} planned case{'' if n == 1 else 's'} {words}" for n, words in counts if n)


_FAULT_WORDS = {
    ExitCode.CONFIG: "configuration",
    ExitCode.FIRMWARE: "the firmware is at fault",
    ExitCode.RIG: "the rig failed",
    ExitCode.UNDECIDED: "too little to decide",
    ExitCode.INTERRUPTED: "interrupted",
    ExitCode.TERMINATED: "terminated",
}


def _quiet_parts(series: Sequence[SeriesVerdict], compared: Compared) -> list[str]:
    """Return what there is to say where nothing failed: what is undecided, the comparisons, the limits."""
    undecided = undecided_of(series, compared)
    parts = [undecided.words] if undecided else []
    parts += [*comparison_conclusion.quiet(compared), *comparison_conclusion.without_base(compared)]
    kept = _counted_limits(series) - len(undecided.limited) - len(undecided.exceeded)
    is_compared = compared.images or compared.not_compared
    advice = comparison_conclusion.advice(compared)
    if kept or not (parts or advice) or (_unlimited(series, compared) and not is_compared):
        parts.append(_quiet_sentence(series, compared, kept, all_=not undecided))
    return [*parts, *advice]


def _quiet_sentence(series: Sequence[SeriesVerdict], compared: Compared, kept: int, *, all_: bool) -> str:
    unlimited = len(_unlimited(series, compared))
    noun = "limit" if kept == 1 else "limits"
    every = f"all {kept} limits kept" if kept > 1 else "the only limit kept"
    parts = [every if all_ else f"{kept} {noun} kept"] if kept else []
    if not kept and all_:
        advice = sum(not item.blocking for item in series)
        only = f" ({advice} figure{'' if advice == 1 else 's'} of advice)" if advice else ""
        parts = [f"measured, but no limit was judged that can fail a run{only}"]
    if unlimited:
        parts.append(f"{unlimited} without a limit")
    return ", ".join(parts)


def _marginal(series: Sequence[SeriesVerdict]) -> int:
    """Count the values that lie beyond a limit which they cannot be shown to break."""
    return sum(item.blocking and item.note == "marginal" for item in series)


def _counted_limits(series: Sequence[SeriesVerdict]) -> int:
    return sum(item.blocking and item.outcome != "no-baseline" for item in series)


def _warnings(series: Sequence[SeriesVerdict], compared: Compared) -> list[str]:
    """List what a reader should know although it changes neither the exit code nor a metric."""
    warnings = [*_void_warning(series), *_real_time_warning(series)]
    if unlimited := _unlimited(series, compared):
        names = named(_worst_of(unlimited))
        warnings.append(f"no limit for {names}; hil limit METRIC --max VALUE, or --min, sets it.")
    return warnings


def _worst_of(series: Sequence[SeriesVerdict]) -> list[str]:
    """Return each metric with the worst that was measured of it, and the kind of the boards."""
    found: dict[tuple[str, str], SeriesVerdict] = {}
    for item in sorted(series, key=lambda item: item.value or 0.0, reverse=True):
        if item.direction == "higher":
            found[item.metric, item.kind] = item
        else:
            found.setdefault((item.metric, item.kind), item)
    return [f"{metric}{_valued(item)} ({kind})" for (metric, kind), item in sorted(found.items())]


def _valued(item: SeriesVerdict) -> str:
    return "" if item.value is None else f" {format_value(item.value, find_unit(item.unit))}"


def _handed_over(not_run: Sequence[NotRun]) -> list[str]:
    """Name the boards that measured what another board could not."""
    takers: dict[str, Counter[str]] = {}
    for item in not_run:
        if item.cause == "handed-over":
            takers.setdefault(item.board, Counter())[item.to] += 1
    found = []
    for board, counts in sorted(takers.items()):
        total = counts.total()
        shares = ", ".join(f"{count} by {to}" for to, count in sorted(counts.items()))
        was = "1 case was" if total == 1 else f"{total} cases were"
        found.append(f"board {board} failed; {was} taken over: {shares}.")
    return found


def _void_warning(series: Sequence[SeriesVerdict]) -> list[str]:
    """Report how many rows were void; the metrics of a case share its rows."""
    cases: dict[tuple[str, str], SeriesVerdict] = {}
    for item in series:
        key = (item.board, item.case_id)
        cases[key] = max(item, cases.get(key, item), key=lambda one: one.void)
    void = sum(item.void for item in cases.values())
    if not void:
        return []
    late_us = max(item.host_late_us for item in series)
    boards = ", ".join(sorted({item.board for item in series if item.void}))
    noun = "sample was" if void == 1 else "samples were"
    return [f"{void:,} {noun} void: {sentences.host_was_late(late_us)} ({boards})."]


def _real_time_warning(series: Sequence[SeriesVerdict]) -> list[str]:
    """Report how many limits decide nothing because the host permits no priority: a pass proves less."""
    why = f"advice: {sentences.NO_REAL_TIME}"
    advice = [item for item in series if item.limit is not None and item.reason.startswith(why)]
    if not advice:
        return []
    limits = "1 limit is" if len(advice) == 1 else f"{len(advice)} limits are"
    boards = ", ".join(sorted({item.board for item in advice}))
    way_out = "run it with sudo, or see `hil doctor`."
    return [f"{limits} only advice, as {sentences.NO_REAL_TIME} ({boards}): {way_out}"]
