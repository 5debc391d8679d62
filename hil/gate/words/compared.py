# SPDX-License-Identifier: Apache-2.0
"""What the comparisons of a run come to: exit codes, the words of the run's sentence, warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hil.gate.words.comparisons import place, told
from hil.model import BaseCause, ComparedSeries, NoBase, Outcome

_MOST_NAMED = 3


@dataclass(frozen=True)
class Compared:
    """The comparisons of a run; ``boots`` were measured for them.

    ``identical`` names the images that are the same bytes on both sides, of ``images`` that were compared.
    ``not_compared`` says of further boards why they have nothing to be compared with, ``no_base`` of the
    whole run.
    """

    series: tuple[ComparedSeries, ...] = ()
    boots: int = 0
    identical: tuple[str, ...] = ()
    images: int = 0
    not_compared: Mapping[str, Sequence[str]] = field(default_factory=dict)
    no_base: NoBase | None = None

    @property
    def nothing_to_measure(self) -> bool:
        """Whether every image that was compared is the same bytes."""
        return bool(self.images) and len(self.identical) == self.images

    def blocking(self, outcome: Outcome | None = None) -> list[ComparedSeries]:
        return [item for item in self.series if item.blocking and outcome in (None, item.outcome)]


NONE_COMPARED = Compared()


def regressions(compared: Compared) -> str:
    """Return "publish latency p50 on virtual-esp32 grew by 12 %, and 2 more …"; else "".

    Of an exact figure "cost least of cost/part=queue on emulated-esp32c3 +2.1 % (1,200 → 1,225 …".
    """
    found = sorted(compared.blocking("regressed"), key=lambda item: (-evidence(item), item.series_id))
    if not found:
        return ""
    first = found[0]
    more = len(found) - 1
    others = f", and {more} more comparison{'s' if more > 1 else ''} regressed" if more else ""
    return f"{told(first)}{others}"


_LIMITS_ONLY: Mapping[BaseCause, str] = {
    "sources": "limits only, as the base does not build at its own commit",
    "identical": "limits only, as the firmware is the base's, byte for byte",
}


def quiet(compared: Compared) -> list[str]:
    """Return the words where nothing is blocked: what passed, and in how many boots."""
    blocking = compared.blocking()
    alone = _LIMITS_ONLY.get(compared.no_base.cause) if compared.no_base else None
    parts = [alone] if alone else []
    passed = [item for item in blocking if item.outcome in ("pass", "improved")]
    if passed:
        parts.append(_passed(compared, passed, len(blocking)))
    if compared.identical:
        images = ", ".join(compared.identical)
        parts.append(f"{images}: both images are the same bytes, so nothing can have changed")
    return parts


def advice(compared: Compared) -> list[str]:
    """Return the words where every comparison is advice: they stand behind what can fail a run."""
    advised = bool(compared.series) and not compared.blocking()
    return [f"{_count(len(compared.series))} of advice, none that can fail a run"] if advised else []


def missing_base(compared: Compared) -> NoBase | None:
    """Return why the base of a run is missing; one of the same bytes is none, and needs no comparison."""
    found = compared.no_base
    return found if found and found.cause != "identical" else None


def without_base(compared: Compared) -> list[str]:
    """Return the words for blocking comparisons that have nothing to be compared with."""
    found = compared.blocking("no-baseline")
    return [f"{_count(len(found))} without a base to compare with"] if found else []


def open_ones(compared: Compared) -> list[str]:
    """Return the words for blocking comparisons without a decision, where something worse is told first."""
    found = compared.blocking("undecided")
    return [*([f"{_count(len(found))} undecided"] if found else []), *without_base(compared)]


def warnings(compared: Compared) -> list[str]:
    """List what a reader should know although it does not change the exit code."""
    lacking = missing_base(compared)
    missing = [f"nothing was compared: {lacking.reason}."] if lacking else []
    found = [
        *missing,
        *(f"{', '.join(boards)}: no-baseline, {why}." for why, boards in compared.not_compared.items()),
        *_by_reason("no-baseline for", compared.blocking("no-baseline")),
        *_by_reason("no verdict for", compared.blocking("undecided")),
    ]
    return list(dict.fromkeys(found))


def _by_reason(words: str, items: Sequence[ComparedSeries]) -> list[str]:
    """List each reason once, however many metrics it holds for."""
    reasons: dict[str, list[str]] = {}
    for item in items:
        reasons.setdefault(item.reason, []).append(place(item))
    return [f"{words} {named(places)}: {reason}." for reason, places in reasons.items()]


def _passed(compared: Compared, passed: Sequence[ComparedSeries], of: int) -> str:
    roles = " and the ".join(sorted({item.role for item in passed}))
    what = f"{len(passed)} comparison{'' if len(passed) == 1 else 's'} with the {roles}"
    measured = f" in {compared.boots} boots" if any(item.candidate_boots for item in passed) else ""
    all_ = "all " if len(passed) == of > 1 else "the " if len(passed) == of else ""
    words = f"{all_}{what if len(passed) > 1 or of > 1 else what.removeprefix('1 ')} passed{measured}"
    better = [item for item in passed if item.outcome == "improved"]
    if not better:
        return words
    return f"{words}, {len(better)} of them improved ({named([place(item) for item in better])})"


def _count(number: int) -> str:
    return f"{number} comparison{'' if number == 1 else 's'}"


def named(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    shown = ", ".join(names[:_MOST_NAMED])
    return shown if len(names) <= _MOST_NAMED else f"{shown} and {len(names) - _MOST_NAMED} more"


def evidence(item: ComparedSeries) -> float:
    """Return how many times its boundary the z of a comparison is; negative for the better, 0 without one."""
    return (item.z or 0.0) / (item.boundary or 1.0)
