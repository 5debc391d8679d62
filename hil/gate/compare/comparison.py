# SPDX-License-Identifier: Apache-2.0
"""One comparison, from its records to a finding: look by look, frozen at the first decision.

Each look sees what each board had then, and no more: so the boot loop, which asks after each look, and
whoever judges the whole journal later find the same, whatever was measured for other metrics afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from hil.gate.compare import of_counts as comparison_counts
from hil.gate.compare import of_values as comparison_values
from hil.gate.compare.boot_values import BoardBoots, gather, has_no_place, known
from hil.gate.compare.finding import Finding
from hil.gate.compare.scale import scale_of
from hil.gate.compare.units import Unit, as_of

NOTHING_MEASURED = "nothing was measured"
IDENTICAL = "both images are the same bytes"
_MOST_NAMED = 3
_WAY_OUT = "once this is on main, the next change has a base"


def compare(unit: Unit, alpha: float) -> Finding:
    """Return what a blocking comparison comes to; ``alpha`` is its own share.

    Raises ConfigError as units_of() and boot_value() do.
    """
    if unit.comparison.identical:
        return Finding(unit, "pass", final=True, reason=IDENTICAL)
    found = Finding(unit, "inconclusive", final=False, reason=NOTHING_MEASURED)
    looks = unit.comparison.looks
    for number, look in enumerate(looks, start=1):
        if not _is_reached(unit, number):
            break
        found = replace(_look_at(as_of(unit, look), alpha), look=number)
        if found.final:
            break
    if found.look == len(looks) and found.outcome == "inconclusive":
        candidate, other = looks[-1]
        ended = f"after all {len(looks)} looks ({candidate} + {other} boots a board)"
        return replace(found, final=True, reason=f"{found.reason}, {ended}")
    return found


def advise(unit: Unit) -> Finding:
    """Return what all boots say of a comparison that is advice; its outcome is decided among all advice."""
    if unit.comparison.identical:
        return Finding(unit, "pass", final=True, reason=IDENTICAL)
    return replace(_look_at(unit, None), final=True)


def _is_reached(unit: Unit, number: int) -> bool:
    """Say whether anything was measured for a look: a boot beyond those of the look before it."""
    before = unit.comparison.looks[number - 2] if number > 1 else (0, 0)
    return any(
        len(records) > boots
        for side, boots in zip((unit.candidate, unit.other), before, strict=True)
        for records in side.values()
    )


def _look_at(unit: Unit, alpha: float | None) -> Finding:
    """Judge what is there. Without ``alpha`` it is advice: numbers and a p value, no decision."""
    if not any(unit.candidate.values()):
        return Finding(unit, "inconclusive", final=False, reason=NOTHING_MEASURED)
    why = _why_no_baseline(unit)
    if why:
        return Finding(unit, "no-baseline", final=True, reason=why)
    boards = tuple(gather(unit))
    usable = [board for board in boards if board.counts]
    if not usable:
        lasting = all(board.lasting for board in boards)
        return Finding(unit, "inconclusive", final=lasting, reason=_why_none(boards), boards=boards)
    scale = scale_of(unit.metric)
    if unit.metric.scale == "count":
        return comparison_counts.compare_counts(unit, boards, alpha)
    if unit.metric.exact:
        return comparison_counts.compare_exact(unit, boards, alpha)
    if has_no_place(usable, scale):
        value = min(known(usable), key=lambda one: one.value).value
        reason = (
            f"a boot's {value:g} {unit.metric.unit.name} has no logarithm; "
            f"give the metric 'scale: identity' ({unit.metric.source})"
        )
        return Finding(unit, "inconclusive", final=True, reason=reason, boards=boards)
    values = comparison_values.compare_values(unit, boards, alpha)
    if not comparison_counts.is_of_timeouts(usable):
        return values
    return _with_timeouts(comparison_counts.compare_timeouts(unit, boards, alpha), values)


def _with_timeouts(failures: Finding, values: Finding) -> Finding:
    """Return the worse of what the failures say, and the values with timeouts as the slowest of them.

    So neither passes for the other: fewer failures excuse no slower messages, nor the other way round. Where
    most of the other's boots fell among timeouts, no value can be slower, and the failures alone decide.
    """
    if values.numbers is None or not math.isfinite(values.numbers.difference):
        return failures
    if failures.outcome == "regressed" or (
        failures.outcome == "inconclusive" and values.outcome != "regressed"
    ):
        return replace(failures, final=failures.final and (failures.outcome == "regressed" or values.final))
    final = values.final and (values.outcome == "regressed" or failures.final)
    return replace(values, final=final, note="; ".join(filter(None, (failures.note, values.note))))


def _why_no_baseline(unit: Unit) -> str:
    """Say why there is nothing to compare with, and which command makes it; "" where there is."""
    role = unit.comparison.role
    if not any(unit.other.values()):
        return f"for no boot of the {role} has it; {_WAY_OUT}"
    rulers = [
        {record.ruler_hash for records in side.values() for record in records}
        for side in (unit.candidate, unit.other)
    ]
    if rulers[0] != rulers[1]:
        return f"for the {role} has another ruler (sources of agent and bench); {_WAY_OUT}"
    return ""


def _why_none(boards: Sequence[BoardBoots]) -> str:
    """Say why no board counts, each reason once."""
    reasons: dict[str, list[str]] = {}
    for board in boards:
        reasons.setdefault(board.note, []).append(board.board)
    texts = [f"{reason} ({', '.join(names)})" for reason, names in reasons.items()]
    return "; ".join(texts[:_MOST_NAMED])
