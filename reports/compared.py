# SPDX-License-Identifier: Apache-2.0
"""Comparisons with the base, or with the reference, as a person reads them: lines and cells of tables."""

from __future__ import annotations

from collections.abc import Iterable

from hil.base.units import find_unit, format_value, format_values
from hil.gate.words.comparisons import NO_BOUNDARY, exactly, is_exact, share
from hil.model import BoardEffect, ComparedSeries, Verdict
from hil.reports.names import case_name, human_metric

HEAD = (
    "",
    "metric",
    "case",
    "target",
    "change",
    "interval",
    "tolerance",
    "z / boundary",
    "boots",
    "would see",
)
LEGEND = (
    "✓ within the tolerance · ✗ grew worse, provably, by more than its rule calls small · ↑ improved · "
    "? undecided · – nothing to compare with · "
    "change of the candidate against the other, with its repeated confidence interval; of a pass with the "
    "largest change for the worse that its test leaves · "
    "boots: the candidate's + the other's, all boards · "
    "would see: the smallest change that so many boots show four times in five · advice never fails a run"
)
EXACT_LEGEND = (
    "✓ within the tolerance · ✗ more than its tolerance · ↑ improved · ? undecided · – nothing to compare "
    "with · exact: counted, the same in each boot of an image, so no change is chance and any is seen · "
    "boots: the candidate's + the other's · advice never fails a run"
)
EARLY_MARK = " (early)"
EARLY = "decided early: what looks extreme is decided sooner, so the change is biased away from zero"

TOO_WIDE = "too wide"
_WIDEST = 2.0  # of a relative interval: 200 %
_SIGNS = {"regressed": "✗", "improved": "↑", "pass": "✓", "undecided": "?", "no-baseline": "–"}
_ORDER = ("regressed", "undecided", "no-baseline", "improved", "pass")
_ROLES = {"base": "the base", "reference": "the reference", "candidate": "the candidate"}


def ranked(verdict: Verdict) -> list[ComparedSeries]:
    """Return the comparisons: those that block first, and of them the worst."""
    return sorted(
        verdict.compared, key=lambda item: (not item.blocking, _ORDER.index(item.outcome), item.series_id)
    )


def is_blocked(item: ComparedSeries) -> bool:
    return item.blocking and item.outcome == "regressed"


def sign(item: ComparedSeries) -> str:
    return _SIGNS[item.outcome]


def legend(items: Iterable[ComparedSeries]) -> str:
    """Return what signs and columns mean: without the words of statistics where all that blocks is exact."""
    judged = [item for item in items if item.blocking and item.change is not None]
    return EXACT_LEGEND if judged and all(map(is_exact, judged)) else LEGEND


def heading(items: Iterable[ComparedSeries]) -> str:
    """Return "Compared with the base"."""
    roles = dict.fromkeys(_ROLES[item.role] for item in items)
    return f"Compared with {' and '.join(roles)}"


def change(item: ComparedSeries | BoardEffect, unit: str, *, relative: bool) -> str:
    """Return "+12.3 %", or "+0.4 ms" where the scale is not relative; "–" where there is none."""
    return "–" if item.change is None else _signed(item.change, unit, relative=relative)


def interval(item: ComparedSeries | BoardEffect, unit: str, *, relative: bool, whole: bool = False) -> str:
    """Return "+8.1 … +16.7 %", unless ``whole`` "too wide" where it says nothing; "–" where there is none."""
    if item.low is None or item.high is None:
        return "–"
    if item.low == item.high:
        return "exact"
    if relative:
        wide = not whole and item.high - item.low > _WIDEST  # what so few boots leave is no figure to read
        return TOO_WIDE if wide else f"{item.low * 100:+.1f} … {item.high * 100:+.1f} %"
    low, high = format_values([item.low, item.high], find_unit(unit))
    number, _, symbol = low.partition(" ")
    return f"{_plus(item.low)}{number} … {_plus(item.high)}{high} {symbol}".strip()


def _plus(value: float) -> str:
    return "+" if value > 0 else ""


def bound(item: ComparedSeries) -> str:
    """Return "≤ +8.2 %" of a pass ("≥ −8.2 %" where more is better), else the interval; "exact (+2.1 %)"."""
    if item.pass_bound is None:
        of_base = share(item)
        return interval(item, item.unit, relative=item.relative) + (f" ({of_base})" if of_base else "")
    side = "≤" if item.direction == "lower" else "≥"
    return f"{side} {_signed(item.pass_bound, item.unit, relative=item.relative)}"


def size(item: ComparedSeries, value: float | None) -> str:
    """Return a tolerance or an effect without a sign: "10 %", "64 B"; "–" where there is none."""
    if value is None:
        return "–"
    return f"{value * 100:.3g} %" if item.relative else format_value(value, find_unit(item.unit))


def boots(item: ComparedSeries) -> str:
    """Return "8 + 4"; "identical" where both are the same bytes."""
    if not item.candidate_boots and not item.other_boots:
        return "identical" if item.outcome == "pass" else "–"
    return f"{item.candidate_boots} + {item.other_boots}"


def cells(item: ComparedSeries) -> list[str]:
    """Return one cell for each word of HEAD."""
    return [
        sign(item) + ("" if item.blocking else " advice"),
        human_metric(item),
        case_name(item),
        item.target,
        change(item, item.unit, relative=item.relative)
        + (EARLY_MARK if item.early and is_blocked(item) else ""),
        bound(item),
        size(item, item.tolerance),
        _evidence(item),
        boots(item),
        "any" if is_exact(item) else size(item, item.smallest_effect),
    ]


def _evidence(item: ComparedSeries) -> str:
    """Return "6.10 / 3.90"; "6.10 / –" where no z would decide so early."""
    if item.z is None or item.boundary is None:
        return "–"
    return f"{item.z:.2f} / {'–' if item.boundary > NO_BOUNDARY else f'{item.boundary:.2f}'}"


def line(item: ComparedSeries) -> str:
    """Return one line: "publish qos=2 on esp32: publish latency p50 +12.3 % [+8.1 … +16.7 %] against …".

    Of an exact figure "cost/part=queue on esp32c3: cost least +2.1 % (1,200 → 1,225 instructions) against …"
    """
    shown = change(item, item.unit, relative=item.relative)
    bounds = bound(item)
    place = f"{case_name(item)} on {item.target}"
    if shown == "–":
        return f"{place}: {human_metric(item)}: {item.reason or item.outcome}"
    why = f"; {item.reason}" if item.reason else ""
    bounds = f"(interval {bounds})" if bounds == TOO_WIDE else f"[{bounds}]"
    if exact := exactly(item):
        return f"{place}: {human_metric(item)} {exact} against {_ROLES[item.role]}{why}"
    return f"{place}: {human_metric(item)} {shown} {bounds} against {_ROLES[item.role]}{why}"


def details(item: ComparedSeries) -> list[str]:
    """Return what stands behind a comparison, a line each: noise, environment, boards."""
    noise = f"boots differ by {size(item, item.boot_deviation)}" if item.boot_deviation is not None else ""
    bounds = interval(item, item.unit, relative=item.relative, whole=True)
    return [
        *([f"passed with {bound(item)}; interval {bounds}"] if item.pass_bound is not None else []),
        *([f"{noise} (standard deviation)"] if noise else []),
        *([f"same in all boots: {', '.join(item.checks)}"] if item.checks else []),
        *effects(item),
        *([EARLY] if item.early and item.change is not None else []),
    ]


def is_notable(item: ComparedSeries) -> bool:
    """Whether a comparison did not simply pass."""
    return item.outcome != "pass" or _lost_boots(item)


def effects(item: ComparedSeries) -> tuple[str, ...]:
    """Return what each board shows, a line each."""
    return tuple(_effect(item, effect) for effect in item.effects)


def _lost_boots(item: ComparedSeries) -> bool:
    return any(effect.left_out for effect in item.effects)


def _effect(item: ComparedSeries, effect: BoardEffect) -> str:
    shown = change(effect, item.unit, relative=item.relative)
    bounds = interval(effect, item.unit, relative=item.relative)
    counted = f"{effect.candidate_boots} + {effect.other_boots} boots"
    left_out = f"left out: {effect.left_out}" if effect.left_out else ""
    said = filter(None, (counted, effect.note, left_out))
    return f"{effect.board}: {shown} [{bounds}], {', '.join(said)}"


def _signed(value: float, unit: str, *, relative: bool) -> str:
    if relative:
        return f"{value * 100:+.1f} %"
    text = format_value(value, find_unit(unit))
    return text if value < 0 else f"+{text}"
