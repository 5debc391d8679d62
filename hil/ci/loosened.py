# SPDX-License-Identifier: Apache-2.0
"""Definitions that a change loosens against its merge base, in one sentence each.

A definition that differs is counted as looser unless it is plainly stricter: which of two ways to compute a
metric blocks more, nobody can tell from the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Literal, TypeVar

from hil.metrics.metric import Metric
from hil.thresholds import Thresholds
from hil.thresholds.limits import CompareRule, Limit, Rule
from hil.thresholds.types import Policy

ByBench = Mapping[str, Thresholds]
R = TypeVar("R", bound=Rule)
# of a metric: where it is written, and what may block by it, which is told in words of its own
_NOT_THE_FIGURE = ("source", "blocking", "compared")


@dataclass(frozen=True)
class LimitChange:
    """A rule that is another one: ``text`` names it with old and new; an owner looks at what ``loosens``."""

    text: str
    loosens: bool


def changes_between(head: ByBench, base: ByBench) -> Iterator[LimitChange]:
    """Yield the differences between head and base: benches, cases, metrics, rules, policy."""
    for bench in sorted(base.keys() - head.keys()):
        yield _loosened(f"thresholds/{bench}.yaml: the bench {bench} is measured no more")
    for bench in sorted(head):
        if bench in base:
            yield from _changes_of(head[bench], base[bench])
        else:
            yield LimitChange(f"thresholds/{bench}.yaml: the bench {bench} is new", loosens=False)


def is_judged_alike(head: Thresholds, base: Thresholds) -> bool:
    """Return whether two files decide the same of the same records, wherever their rules stand."""
    return _rules(head) == _rules(base)


def _rules(one: Thresholds) -> object:
    return (
        {(str(rule.where), rule.bound, rule.value) for rule in one.limits},
        {(str(rule.where), rule.tolerance, rule.min_effect, rule.relative) for rule in one.compare},
        {str(rule.where) for rule in one.advice},
        {(str(rule.where), rule.expires) for rule in one.suppressions},
        {name: [getattr(metric, key.name) for key in fields(metric) if key.name != "source"]
         for name, metric in one.metrics.items()},
        one.policy,
    )  # fmt: skip


def _loosened(text: str) -> LimitChange:
    return LimitChange(text, loosens=True)


def _changes_of(head: Thresholds, base: Thresholds) -> Iterator[LimitChange]:
    for name, metric in base.metrics.items():
        yield from _metric_changed(name, metric, head.metrics.get(name))
    for name in head.metrics.keys() - base.metrics.keys():
        yield LimitChange(f"{head.metrics[name].source}: {name} is new", loosens=False)
    known = {*base.metrics, ""}
    yield from _limits_changed(head, base, known)
    yield from _comparisons_changed(head, base, known)
    yield from _exceptions_changed(head, base, known)
    yield from _policy_changed(head, base)
    if lost := [kind for kind in base.kinds if kind not in head.kinds]:
        yield _loosened(f"{head.source}: kinds: measured on {' and '.join(lost)} boards no more")
    yield from _cases_lost(head, base)


def _metric_changed(name: str, old: Metric, new: Metric | None) -> Iterator[LimitChange]:
    if new is None:
        yield _loosened(f"{old.source}: {name} is measured no more")
        return
    keys = [item.name for item in fields(Metric) if item.name not in _NOT_THE_FIGURE]
    if other := [key for key in keys if getattr(old, key) != getattr(new, key)]:
        yield _loosened(f"{new.source}: {name} is defined otherwise ({', '.join(other)})")
    if (old.blocking, old.compared) != (new.blocking, new.compared):
        less = new.blocking < old.blocking or new.compared < old.compared
        yield LimitChange(f"{new.source}: {name} blocks {'less' if less else 'more'} than before", less)


def _limits_changed(head: Thresholds, base: Thresholds, known: set[str]) -> Iterator[LimitChange]:
    for old in base.limits:
        if not old.is_none and not _same_place(old, head.limits):
            wider = _wider(old, head.limits)
            yield from [_bound_changed(old, new) for new in wider] or [
                _loosened(f"{old.source}: {old.where}: {_bound(old)} → no limit")
            ]
    for new in head.limits:
        if _metric(new) in known:
            same = _same_place(new, base.limits)
            olds = [same] if same else _wider(new, base.limits)
            yield from (_bound_changed(old, new) for old in olds if _bound(old) != _bound(new))


def _bound_changed(old: Limit, new: Limit) -> LimitChange:
    loosens = new.bound != old.bound or (new.value > old.value) == (new.bound == "max")
    where = max(old.where, new.where, key=lambda one: len(one.conditions))
    return LimitChange(f"{new.source}: {where}: {_bound(old)} → {_bound(new)}", loosens)


def _comparisons_changed(head: Thresholds, base: Thresholds, known: set[str]) -> Iterator[LimitChange]:
    for old in base.compare:
        if not (_same_place(old, head.compare) or _wider(old, head.compare)):
            yield _loosened(f"{old.source}: {old.where}: compared → not compared")
    for new in head.compare:
        if _metric(new) in known:
            same = _same_place(new, base.compare)
            for old in [same] if same else _wider(new, base.compare):
                yield from _tolerance_changed(old, new)
    for old in base.compare:
        for new in [] if _same_place(old, head.compare) else _wider(old, head.compare):
            yield from _tolerance_changed(old, new)


def _tolerance_changed(old: CompareRule, new: CompareRule) -> Iterator[LimitChange]:
    if (new.tolerance, new.min_effect, new.relative) == (old.tolerance, old.min_effect, old.relative):
        return
    more = new.tolerance > old.tolerance or new.min_effect > old.min_effect or new.relative != old.relative
    text = f"{new.source}: {new.where}: tolerance {old.tolerance:g} → {new.tolerance:g}"
    kind = "" if new.relative == old.relative else ", in another unit"
    yield LimitChange(f"{text}, least effect {old.min_effect:g} → {new.min_effect:g}{kind}", more)


def _exceptions_changed(head: Thresholds, base: Thresholds, known: set[str]) -> Iterator[LimitChange]:
    for new in head.advice:
        if _metric(new) in known and not _same_place(new, base.advice):
            yield _loosened(f"{new.source}: {new.where}: blocks → advice")
    for excuse in head.suppressions:
        old = _same_place(excuse, base.suppressions)
        if _metric(excuse) in known and (old is None or excuse.expires > old.expires):
            before = f"suppressed until {old.expires}" if old else "blocks"
            yield _loosened(f"{excuse.source}: {excuse.where}: {before} → suppressed until {excuse.expires}")


# of a policy: whether a larger value lets more pass
_LOOSER: Mapping[str, Literal["larger", "smaller"]] = {
    "alpha": "smaller", "min_samples": "larger", "max_void_ratio": "larger", "beta": "larger",
    "tolerance": "larger", "min_effect": "larger", "max_boots": "smaller", "blind_below": "larger",
}  # fmt: skip


def _policy_changed(head: Thresholds, base: Thresholds) -> Iterator[LimitChange]:
    for item in fields(Policy):
        old, new = getattr(base.policy, item.name), getattr(head.policy, item.name)
        if old != new:
            how = _LOOSER.get(item.name)
            loosens = new == "neutral" if how is None else (new > old) == (how == "larger")
            yield LimitChange(f"{head.source}: policy {item.name}: {old} → {new}", loosens)


def _cases_lost(head: Thresholds, base: Thresholds) -> Iterator[LimitChange]:
    for suite, cases in base.suites.items():
        now = {case.case_id for case in head.suites.get(suite, ())}
        if lost := [case for case in cases if case.case_id not in now]:
            more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
            yield _loosened(
                f"{head.source}: the suite {suite} loses {base.case_label(lost[0].parameters)}{more}"
            )


def _metric(rule: Rule) -> str:
    return str(rule.where.conditions.get("metric", ""))


def _same_place(rule: R, others: Iterable[R]) -> R | None:
    return next((one for one in others if one.where == rule.where), None)


def _wider(rule: R, others: Iterable[R]) -> list[R]:
    """Return the most specific of the rules that hold where ``rule`` does, and elsewhere too."""
    found = [one for one in others if rule.where.is_more_specific(one.where)]
    return [one for one in found if not any(two.where.is_more_specific(one.where) for two in found)][:1]


def _bound(limit: Limit) -> str:
    return "no limit" if limit.is_none else f"{limit.bound} {limit.value:g}"
