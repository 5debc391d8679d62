# SPDX-License-Identifier: Apache-2.0
"""The words of an event: its headline, its sentence, its note; how changes are called: "slower", "12 %"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from hil.base.units import unit_of
from hil.history.nightly.change_points import RATIO_UNSURE
from hil.history.nightly.event_conditions import FindingGroup, short, told_by
from hil.history.nightly.survey import NightFinding
from hil.metrics.metric import Metric
from hil.metrics.words import STATISTICS, metric_words
from hil.model import DEFAULTS, IMPORTED, UNREAL, format_place, parameters_in, short_case
from hil.thresholds import Thresholds

_KNOWN = {  # of more, and of less
    ("time", "lower"): ("slower", "faster"),
    ("rate", "higher"): ("higher", "lower"),
    ("frequency", "higher"): ("higher", "lower"),
    ("size", "lower"): ("more", "less"),
    ("size", "higher"): ("more", "less"),
    ("count", "lower"): ("more", "less"),
    ("count", "higher"): ("more", "less"),
    ("cycles", "lower"): ("more", "less"),
    ("instructions", "lower"): ("more", "less"),
}


def change_word(metric: str, direction: Literal["lower", "higher", ""], change: float) -> str:
    """Return "slower", "lower", "more", "worse" …; ``direction`` is which way is better, "" if unknown."""
    dimension = unit_of(metric).dimension if metric_words(metric).unit else ""
    more, less = _KNOWN.get((dimension, direction), ("", ""))
    if more:
        return more if change > 0 else less
    if not direction or dimension in ("rate", "frequency"):
        return "higher" if change > 0 else "lower"
    if dimension == "time":
        return "longer" if change > 0 else "shorter"
    return "worse" if (change > 0) == (direction == "lower") else "better"


def percent(change: float) -> str:
    """Return the size of a change without its sign: "12 %", "4.2 %", "1,150 %"."""
    size = abs(change) * 100
    return f"{size:,.{1 if size < 9.95 else 0}f} %".replace(".0 %", " %")


HEADLINE_MAX = 110
DOMINATES = 0.8  # the share of an event's series by which a metric, a quantity or a bench names it
_NAME_MAX = 24
_SUBJECT_MAX = 32

Benches = Mapping[str, Thresholds]
Effect = Literal["worse", "better", "mixed", ""]


def metric_of(finding: NightFinding, benches: Benches) -> Metric | None:
    """Return what the thresholds say of a finding's metric, None where they do not know it."""
    bench = benches.get(finding.name.bench)
    return bench.metrics.get(finding.name.metric) if bench else None


def headline(
    group: FindingGroup,
    telling: NightFinding,
    effect: Effect,
    benches: Benches,
    *,
    product: bool = False,
    kinds: bool = True,
) -> str:
    """Summarise what happened in at most HEADLINE_MAX characters; ``telling`` is the series to quote.

    ``product`` asks for whose firmware it is. What happens to a rack happens to all products on it. ``kinds``
    asks for the word virtual: where every board is of one kind, the page and the event's sentence say it.
    """
    many = _count(group.findings)
    of = f" of {short(telling.name.product, _NAME_MAX)}" if product and telling.name.product else ""
    subjects = [*_subjects(group.findings), many]
    size = _size(group, telling, effect, benches)
    crowd = _crowd(group.findings, kinds=kinds)
    where, bad = _where(group.findings, crowd, kinds=kinds), f" since {group.bad[:7]}" if group.bad else ""
    own = of if group.cause in ("firmware", "unclear") else ""
    least = f"{group.cause.capitalize()}{own}: {many} {size} on {crowd}"
    if group.cause == "firmware":
        shapes = [f"Firmware{own}: {named} {size} on {where}" for named in subjects]
        return _fitting([*(f"{shape}{bad}" for shape in shapes), *shapes, least])
    if group.cause == "board":
        shapes = [f"Board {_board(telling, kinds=kinds)}: {named} {size}" for named in subjects]
        tail = ", its neighbours are as before"
        return _fitting([*(f"{shape}{tail}" for shape in shapes), *shapes, least])
    if group.cause == "unclear":
        return _fitting([*(f"Unclear{own}: {named} {size} on {where}" for named in subjects), least])
    told = told_by(group.findings)
    heads = [f"Environment of {short(telling.name.rack, _NAME_MAX)}: "]
    if told is not None:
        heads = [f"{told.what}: {told.text}, ", f"{told.what}: {told.key} changed, "]
    return _fitting([f"{head}{named} on {where} {size}" for head in heads for named in subjects] + [least])


def sentence(group: FindingGroup, telling: NightFinding, benches: Benches, *, product: bool = False) -> str:
    """Describe the change's size, metric, boards, onset and cause; ``product`` as in headline()."""
    point, name = telling.point, telling.name
    beside = " beside the reference" if point.of_ratio else ""
    nights = min(finding.point.nights for finding in group.findings)
    size = f"{point.change:+.1%} [{point.low:+.1%}, {point.high:+.1%}]"
    kind = f" ({telling.kind})" if telling.kind not in ("", "physical") else ""
    place = format_place(name.product, name.rack) if product else name.rack
    return (
        f"{metric_words(name.metric)} of {_case(telling, benches)} on {place}/{name.board}{kind}: "
        f"{size}{beside}"
        f"{_others(group.findings)}, since the night of {group.night}, seen in {nights} "
        f"{'night' if nights == 1 else 'nights'}. {_why(group)}"
    )


def note(group: FindingGroup, effect: Effect) -> str:
    """Return what restricts an event: why nobody is blamed, what moved the other way, what is not certain."""
    own = [finding.point.note for finding in group.findings if finding.point.note]
    unsure = sum(found == RATIO_UNSURE for found in own)
    notes = [] if group.cause == "firmware" else list(dict.fromkeys(own))
    if group.cause == "firmware" and unsure:
        notes.append(f"of {unsure} of {_count(group.findings)}, {RATIO_UNSURE}")
    contrary = sum(finding.effect not in (effect, "") for finding in group.findings)
    if effect in ("worse", "better") and contrary:
        notes.append(f"{contrary} of {_count(group.findings)} moved the other way")
    return "; ".join(notes)


def _case(finding: NightFinding, benches: Benches) -> str:
    """Return "publish/transport=tls": the parameters that differ from their defaults, where known."""
    name = finding.name
    known = benches.get(name.bench)
    if known is None:
        return name.case_id
    label = known.case_label(parameters_in(name.case_id))
    return name.bench if label == DEFAULTS else short_case(name.bench, label)


def _why(group: FindingGroup) -> str:
    told = told_by(group.findings)
    changed = f" Changed in these nights: {told.what}, {told.text}." if told else ""
    if group.cause == "firmware":
        return f"The first commit that shows it lies in {group.good[:12]}..{group.bad[:12]}."
    if group.cause == "board":
        return (
            "The reference moved alike, and the other boards that measured the same did not: look at this "
            f"board, its supply, cable and place.{changed}"
        )
    if group.cause == "environment":
        nothing = " Nothing that the runs record changed in these nights."
        return f"The reference moved alike, so it is not the firmware.{changed or nothing}"
    return f"Nobody is blamed.{changed}"


def _others(findings: Sequence[NightFinding]) -> str:
    if len(findings) == 1:
        return ""
    sizes = [finding.point.change for finding in findings]
    return f" ({_count(findings)}, from {min(sizes):+.1%} to {max(sizes):+.1%})"


def _size(group: FindingGroup, telling: NightFinding, effect: Effect, benches: Benches) -> str:
    """Return "12 % slower": the word of all series where they share one, else that of the effect."""
    if effect == "mixed":
        largest = max(abs(finding.point.change) for finding in group.findings)
        return f"moved both ways, by up to {percent(largest)}"
    agreed = [finding for finding in group.findings if finding.effect == effect]
    words = Counter(_word(finding, benches) for finding in agreed)
    word = next(iter(words)) if len(words) == 1 else effect or "moved"
    amount = percent(telling.point.change)
    return f"moved by {amount}" if word == "moved" else f"{amount} {word}"


def _word(finding: NightFinding, benches: Benches) -> str:
    metric = metric_of(finding, benches)
    return change_word(finding.name.metric, metric.direction if metric else "", finding.point.change)


def _subjects(findings: Sequence[NightFinding]) -> list[str]:
    """Return what dominates, the most telling first: a metric, or a quantity with the statistics that
    moved and without them; else "N series of BENCH" or "N series".
    """
    words = [metric_words(finding.name.metric) for finding in findings]
    name, count = Counter(map(str, words)).most_common(1)[0]
    if count >= DOMINATES * len(findings):
        return [short(name, _SUBJECT_MAX)]
    name, count = Counter(word.quantity for word in words).most_common(1)[0]
    if count >= DOMINATES * len(findings):
        moved = {word.stat for word in words if word.quantity == name}
        stats = ", ".join(stat for stat in STATISTICS if stat in moved)
        return [*([f"{name} {stats}"] if stats and "" not in moved else []), short(name, _SUBJECT_MAX)]
    bench, count = Counter(finding.name.bench for finding in findings).most_common(1)[0]
    named = f" of {short(bench, _NAME_MAX)}" if count >= DOMINATES * len(findings) else ""
    return [f"{_count(findings)}{named}"]


def _count(findings: Sequence[NightFinding]) -> str:
    return "1 series" if len(findings) == 1 else f"{len(findings)} series"


def _where(findings: Sequence[NightFinding], crowd: str, *, kinds: bool) -> str:
    """Return "8 boards" or the one board's name."""
    boards = {(finding.name.rack, finding.name.board) for finding in findings}
    return _board(findings[0], kinds=kinds) if len(boards) == 1 else crowd


def _crowd(findings: Sequence[NightFinding], *, kinds: bool) -> str:
    """Return "8 boards", with ``kinds`` "8 virtual boards (simulated noise)", "8 boards (3 virtual)"."""
    own = {(finding.name.rack, finding.name.board): finding.kind for finding in findings}
    boards = "1 board" if len(own) == 1 else f"{len(own)} boards"
    if not kinds:
        return boards
    unreal = {kind: sum(one.startswith(kind) for one in own.values()) for kind in (*UNREAL, IMPORTED)}
    noise = any("simulated noise" in kind for kind in own.values())
    for kind, count in unreal.items():
        if count == len(own):
            return f"{boards.replace(' ', f' {kind} ')}{' (simulated noise)' if noise else ''}"
    words = [f"{count} {kind}" for kind, count in unreal.items() if count] + ["simulated noise"] * noise
    return f"{boards} ({', '.join(words)})" if words else boards


def _board(finding: NightFinding, *, kinds: bool) -> str:
    kind = f" ({finding.kind})" if kinds and finding.kind not in ("", "physical") else ""
    return f"{short(finding.name.rack, _NAME_MAX)}/{short(finding.name.board, _NAME_MAX)}{kind}"


def _fitting(shapes: Sequence[str]) -> str:
    return next((shape for shape in shapes if len(shape) <= HEADLINE_MAX), short(shapes[-1], HEADLINE_MAX))
