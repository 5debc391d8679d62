# SPDX-License-Identifier: Apache-2.0
"""The limits that count for a pull request: its own, and those of its merge base where these are stricter.

A change may bring limits along, and would otherwise set those that it is judged by. So what both know is
judged by both, and each rule that got looser is named with its old and its new value.
"""

from __future__ import annotations

import io
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Literal, TypeVar

from hil.base.errors import ConfigError
from hil.base.git import try_git
from hil.metrics.metric import Metric
from hil.model import Case
from hil.thresholds import Thresholds, load_all
from hil.thresholds.limits import Limit, Rule
from hil.thresholds.loader import FOLDER
from hil.thresholds.types import Policy

ByBench = Mapping[str, Thresholds]
R = TypeVar("R", bound=Rule)
_MOST_FILES, _MOST_FILE_BYTES = 200, 1024 * 1024


@dataclass(frozen=True)
class Counting:
    """``head`` are the limits by bench, None for those that each run keeps; ``base`` the merge base's.

    ``unread`` is why those of a merge base do not count, "" where they do or there is none.
    """

    head: ByBench | None = None
    base: ByBench = field(default_factory=dict)
    unread: str = ""

    @property
    def changes(self) -> tuple[LimitChange, ...]:
        """What the head has otherwise than the base; nothing where there is no base."""
        if self.unread:
            return (LimitChange(f"the head's limits alone count: {self.unread}", loosens=True),)
        if not self.head or not self.base:
            return ()
        return tuple(_changes(self.head, self.base))


@dataclass(frozen=True)
class LimitChange:
    """A rule that is another one: ``text`` names it with old and new; an owner looks at what ``loosens``."""

    text: str
    loosens: bool


def limits_that_count(thresholds: Path, repository: Path, base: str) -> Counting:
    """Return the limits of a folder, beside those that the repository had at ``base``, a commit or "".

    Raises ConfigError where the folder's cannot be read; the base's may be of another version.
    """
    head = load_all(thresholds)
    if not base:
        return Counting(head)
    try:
        return Counting(head, limits_at(repository, base))
    except ConfigError as error:
        return Counting(head, unread=error.sentence)


def limits_at(repository: Path, commit: str) -> ByBench:
    """Return the limits that the folder ``thresholds`` held at a commit.

    Raises:
        ConfigError: git does not have the commit or its folder, or this version cannot read what is in it.
    """
    done = try_git(repository, "archive", "--format=tar", commit, "--", FOLDER)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise ConfigError(f"the limits of {commit[:12]} cannot be had: {said}")
    with tempfile.TemporaryDirectory(prefix="hil-limits-") as root:
        folder = Path(root) / FOLDER
        folder.mkdir()
        try:
            _unpack(done.stdout, folder)
            return load_all(folder, stored=True)
        except ConfigError as error:
            raise ConfigError(
                f"the limits of {commit[:12]} cannot be read by this version: {error.sentence}"
            ) from error


def _unpack(content: bytes, folder: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        wanted = [
            entry
            for entry in archive
            if entry.isfile() and Path(entry.name).parent == Path(FOLDER) and entry.name.endswith(".yaml")
        ]
        if len(wanted) > _MOST_FILES or any(entry.size > _MOST_FILE_BYTES for entry in wanted):
            raise ConfigError(f"more than {_MOST_FILES} files, or one beyond {_MOST_FILE_BYTES:,} B.")
        for entry in wanted:
            if stream := archive.extractfile(entry):
                (folder / Path(entry.name).name).write_bytes(stream.read())


def by_rules_of(head: ByBench, base: ByBench) -> dict[str, Thresholds] | None:
    """Return the head's limits with the base's rules for what both define alike; None where none differs.

    What the head measures otherwise (a metric that is new, or defined anew with its bench) keeps its own.
    """
    mixed = {bench: _mixed(own, base[bench]) if bench in base else own for bench, own in head.items()}
    return mixed if any(_rules(mixed[bench]) != _rules(own) for bench, own in head.items()) else None


def _mixed(head: Thresholds, base: Thresholds) -> Thresholds:
    alike = {name for name, metric in head.metrics.items() if _is_alike(metric, base.metrics.get(name))}
    known = {f"case.{name}" for name in head.parameters}

    def rules(own: Iterable[R], of_base: Iterable[R]) -> tuple[R, ...]:
        kept = [rule for rule in of_base if _metric(rule) in alike and _cases(rule) <= known]
        return (*kept, *(rule for rule in own if _metric(rule) not in alike))

    return replace(
        head,
        metrics={
            name: base.metrics[name] if name in alike else metric for name, metric in head.metrics.items()
        },
        policy=base.policy,
        limits=rules(head.limits, base.limits),
        compare=rules(head.compare, base.compare),
        advice=rules(head.advice, base.advice),
        suppressions=rules(head.suppressions, base.suppressions),
    )


def _is_alike(metric: Metric, other: Metric | None) -> bool:
    """Say whether two metrics are the same figure, whatever may block by it and where it is written."""
    if other is None:
        return False
    return replace(metric, blocking=other.blocking, compared=other.compared, source=other.source) == other


def _rules(one: Thresholds) -> object:
    """Return what decides, whatever its place in the file and the words beside it."""
    return (
        {(str(rule.where), rule.bound, rule.value) for rule in one.limits},
        {(str(rule.where), rule.tolerance, rule.min_effect, rule.relative) for rule in one.compare},
        {str(rule.where) for rule in one.advice},
        {(str(rule.where), rule.expires) for rule in one.suppressions},
        {name: (metric.blocking, metric.compared) for name, metric in one.metrics.items()},
        one.policy,
    )


def _metric(rule: Rule) -> str:
    return str(rule.where.conditions.get("metric", ""))


def _cases(rule: Rule) -> set[str]:
    return {key for key in rule.where.conditions if key.startswith("case.")}


def _changes(head: ByBench, base: ByBench) -> Iterator[LimitChange]:
    for bench in sorted(base.keys() - head.keys()):
        yield LimitChange(f"thresholds/{bench}.yaml: the bench {bench} is measured no more", loosens=True)
    for bench in sorted(head):
        if bench in base:
            yield from _changes_of(head[bench], base[bench])
        else:
            yield LimitChange(f"thresholds/{bench}.yaml: the bench {bench} is new", loosens=False)


def _changes_of(head: Thresholds, base: Thresholds) -> Iterator[LimitChange]:
    moved = set()
    for name, metric in base.metrics.items():
        now = head.metrics.get(name)
        if now is None:
            yield LimitChange(f"{metric.source}: {name} is measured no more", loosens=True)
        elif not _is_alike(now, metric):
            moved.add(name)
            yield LimitChange(
                f"{now.source}: {name} is another figure now; its limits are new", loosens=False
            )
        elif (metric.blocking, metric.compared) != (now.blocking, now.compared):
            less = now.blocking < metric.blocking or now.compared < metric.compared
            yield LimitChange(f"{now.source}: {name} blocks {'less' if less else 'more'} than before", less)
    for name in head.metrics.keys() - base.metrics.keys():
        yield LimitChange(f"{head.metrics[name].source}: {name} is new", loosens=False)
    known = {name for name in head.metrics if name in base.metrics and name not in moved}
    yield from _limits_changed(head, base, known)
    yield from _comparisons_changed(head, base, known)
    yield from _exceptions_added(head, base, known)
    yield from _policy_changed(head, base)
    yield from _cases_lost(head, base)


def _limits_changed(head: Thresholds, base: Thresholds, known: set[str]) -> Iterator[LimitChange]:
    for old in base.limits:
        if not old.is_none and _metric(old) in known and not _same_place(old, head.limits):
            yield LimitChange(f"{old.source}: {old.where}: {_bound(old)} → no limit", loosens=True)
    for new in head.limits:
        if _metric(new) not in known:
            continue
        same = _same_place(new, base.limits)
        for old in [same] if same else _wider(new, base.limits):
            if (new.bound, new.value) != (old.bound, old.value):
                loosens = new.bound != old.bound or (new.value > old.value) == (new.bound == "max")
                yield LimitChange(f"{new.source}: {new.where}: {_bound(old)} → {_bound(new)}", loosens)


def _comparisons_changed(head: Thresholds, base: Thresholds, known: set[str]) -> Iterator[LimitChange]:
    for old in base.compare:
        if _metric(old) in known and not _same_place(old, head.compare):
            yield LimitChange(f"{old.source}: {old.where}: compared → not compared", loosens=True)
    for new in head.compare:
        if _metric(new) not in known:
            continue
        same = _same_place(new, base.compare)
        for old in [same] if same else _wider(new, base.compare):
            if (new.tolerance, new.min_effect) != (old.tolerance, old.min_effect):
                loosens = new.tolerance > old.tolerance or new.min_effect > old.min_effect
                text = f"{new.source}: {new.where}: tolerance {old.tolerance:g} → {new.tolerance:g}"
                yield LimitChange(f"{text}, least effect {old.min_effect:g} → {new.min_effect:g}", loosens)


def _exceptions_added(head: Thresholds, base: Thresholds, known: set[str]) -> Iterator[LimitChange]:
    for new in head.advice:
        if _metric(new) in {*known, ""} and not _same_place(new, base.advice):
            yield LimitChange(f"{new.source}: {new.where}: blocks → advice", loosens=True)
    for excuse in head.suppressions:
        if _metric(excuse) in {*known, ""} and not _same_place(excuse, base.suppressions):
            text = f"{excuse.source}: {excuse.where}: blocks → suppressed until {excuse.expires}"
            yield LimitChange(text, loosens=True)


# of a policy: whether a larger value lets more pass
_LOOSER: Mapping[str, Literal["larger", "smaller"]] = {
    "alpha": "smaller", "min_samples": "larger", "max_void_ratio": "larger", "beta": "larger",
    "tolerance": "larger", "min_effect": "larger", "max_boots": "smaller", "samples_per_boot": "larger",
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
        lost = [case for case in cases if case.case_id not in now and _is_possible(head, case)]
        if lost:
            more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
            label = base.case_label(lost[0].parameters)
            yield LimitChange(f"{head.source}: the suite {suite} loses {label}{more}", loosens=True)


def _is_possible(head: Thresholds, case: Case) -> bool:
    """Say whether the bench has the same parameters still; one that has others is another bench."""
    return case.parameters.keys() == head.parameters.keys()


def _same_place(rule: R, others: Iterable[R]) -> R | None:
    return next((one for one in others if one.where == rule.where), None)


def _wider(rule: R, others: Iterable[R]) -> list[R]:
    """Return the most specific of the rules that hold where ``rule`` does, and elsewhere too."""
    found = [one for one in others if rule.where.is_more_specific(one.where)]
    return [one for one in found if not any(two.where.is_more_specific(one.where) for two in found)][:1]


def _bound(limit: Limit) -> str:
    return "no limit" if limit.is_none else f"{limit.bound} {limit.value:g}"
