"""Read ``thresholds/<stem>.yaml``, the one place for a bench's cases, metrics and limits.

Its keys are explained in docs/gate.md. Everything is checked while reading, so that a mistake shows before
anything is measured, and every sentence names file and line.
"""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, cast

from hil.model import KINDS, Case, Scalar
from hil.thresholds.limits import PLACE_KEYS, Advice, Limit, Since, Suppression, Where, check_ambiguities
from hil.thresholds.metric import Metric
from hil.thresholds.metric_reader import read_metric, read_outcome
from hil.thresholds.types import PEERS, Parameter, Policy, Thresholds
from hil.units import QuantityError, convert, find_unit
from hil.yamlfile import Node
from hil.yamlfile import load as load_yaml
from hil.yamlvalue import did_you_mean

SCHEMA_VERSION = 1
FOLDER = "thresholds"
LIMIT_KEY = re.compile(r"abs_(max|min)_(\w+)")

__all__ = ["Parameter", "Policy", "Thresholds", "load", "load_all"]


def load(stem: str, root: Path, *, today: datetime.date | None = None) -> Thresholds:
    """Read ``root/<stem>.yaml``; ``root`` is the ``thresholds`` folder.

    Sentences name the file ``thresholds/<stem>.yaml``, in a folder of another name by its path as given.

    Raises:
        ConfigError: anything wrong in it, expired limits and suppressions (as of ``today``) included.
    """
    path = root / f"{stem}.yaml"
    # the project's file, and the copy in a run's folder, have one name: a replay gives the same bytes
    label = f"{root.name}/{path.name}" if root.name == FOLDER else str(path)
    node = load_yaml(path, label=label)
    return _Reader(node, today or datetime.datetime.now(tz=datetime.UTC).date()).read(stem)


def load_all(root: Path, *, today: datetime.date | None = None) -> dict[str, Thresholds]:
    """Read every thresholds file of the folder, by bench. Raises ConfigError as load() does."""
    return {path.stem: load(path.stem, root, today=today) for path in sorted(root.glob("*.yaml"))}


class _Reader:
    """Reads one file from top to bottom; later parts are checked against the earlier ones."""

    def __init__(self, node: Node, today: datetime.date) -> None:
        self.node = node
        self.today = today
        self.parameters: dict[str, Parameter] = {}
        self.metrics: dict[str, Metric] = {}

    def read(self, stem: str) -> Thresholds:
        node = self.node
        node.integer("schema", minimum=SCHEMA_VERSION, maximum=SCHEMA_VERSION)
        bench = node.text("bench")
        if bench != stem:
            raise node.error("bench", f"bench {bench!r} must have the file's name, {stem!r}.")
        peer = node.choice("peer", PEERS, default=None) or ""
        alone = node.boolean("alone", default=False)
        parts = node.named_sections("parameters")
        self.parameters = {name: _read_parameter(name, part) for name, part in parts.items()}
        outcome = read_outcome(node.section("outcome", default=None), self.parameters)
        metrics = node.named_sections("metrics")
        self.metrics = {
            name: read_metric(name, part, outcome, self._read_case(part)) for name, part in metrics.items()
        }
        suites = self._read_suites(node.section("suites"), bench)
        limits = tuple(self._read_limit(part) for part in node.sections("limits", default=[]))
        advice = tuple(self._read_advice(part) for part in node.sections("advice", default=[]))
        muted = tuple(self._read_suppression(part) for part in node.sections("suppressions", default=[]))
        thresholds = Thresholds(
            bench,
            self.parameters,
            suites,
            self.metrics,
            _read_policy(node.section("policy", default=None)),
            limits,
            advice,
            muted,
            node.label,
            peer,
            alone,
        )
        node.finish()
        _check_rules(thresholds)
        return thresholds

    def _read_suites(self, node: Node, bench: str) -> dict[str, tuple[Case, ...]]:
        return {suite: self._read_suite(node, suite, bench) for suite in node.keys}

    def _read_suite(self, node: Node, suite: str, bench: str) -> tuple[Case, ...]:
        seen: dict[str, str] = {}
        cases = []
        for entry in node.sections(suite):
            for case in self._expand(entry, bench):
                if case.case_id in seen:
                    sentence = f"suite {suite!r} holds a case twice; it is the same as {seen[case.case_id]}."
                    raise entry.error("", sentence, next_step=f"delete one. The case: {case.case_id}.")
                seen[case.case_id] = entry.where()
                cases.append(case)
        return tuple(cases)

    def _expand(self, entry: Node, bench: str) -> list[Case]:
        """Return the cases of one entry: the product of the keys that hold lists."""
        for key in entry.keys:
            self._require_parameter(entry, key)
        options = []
        for name, parameter in self.parameters.items():
            values = entry.scalar_or_scalars(name, default=[parameter.default])
            options.append([_check_value(entry, name, parameter, value) for value in values])
        names = list(self.parameters)
        return [Case(bench, dict(zip(names, row, strict=True))) for row in itertools.product(*options)]

    def _require_parameter(self, node: Node, name: str) -> Parameter:
        if name not in self.parameters:
            hint = did_you_mean(name, self.parameters)
            listed = ", ".join(self.parameters)
            raise node.error(name, f"unknown parameter {name!r}{hint} Parameters: {listed}.")
        return self.parameters[name]

    def _read_where(self, node: Node, *, metric_required: bool) -> Where:
        conditions: dict[str, Scalar] = {}
        metric = node.choice("metric", tuple(self.metrics), default=None)
        if metric is None and metric_required:
            raise node.error("", "'where' names no metric.", next_step="add 'metric: …'.")
        if metric is not None:
            conditions["metric"] = metric
        for key in PLACE_KEYS:
            place = node.choice(key, KINDS, default=None) if key == "kind" else node.text(key, default=None)
            if place is not None:
                conditions[key] = place
        conditions.update({f"case.{key}": value for key, value in self._read_case(node).items()})
        return Where(conditions)

    def _read_case(self, node: Node) -> dict[str, Scalar]:
        """Read the key ``case``: parameters and the values that are meant; {} where it is missing."""
        case = node.section("case", default=None)
        if case is None:
            return {}
        return {
            key: _check_value(case, key, self._require_parameter(case, key), value)
            for key, value in case.all_scalars().items()
        }

    def _read_limit(self, node: Node) -> Limit:
        where = self._read_where(node.section("where"), metric_required=True)
        metric = self.metrics[str(where.conditions["metric"])]
        bound, value = _read_bound(node, metric)
        since = _read_since(node.section("since"))
        expires = node.date("expires", default=None)
        self._reject_expired(node, "limit", expires)
        return Limit(where, bound, value, node.text("why"), since, expires, node.where())

    def _read_advice(self, node: Node) -> Advice:
        where = self._read_where(node.section("where"), metric_required=False)
        return Advice(where, node.text("why"), node.where())

    def _read_suppression(self, node: Node) -> Suppression:
        where = self._read_where(node.section("where"), metric_required=False)
        reason, issue, expires = node.text("reason"), node.text("issue"), node.date("expires")
        self._reject_expired(node, "suppression", expires)
        return Suppression(where, reason, issue, expires, node.where())

    def _reject_expired(self, node: Node, what: str, expires: datetime.date | None) -> None:
        if expires is not None and expires < self.today:
            sentence = f"this {what} expired on {expires}; today is {self.today}."
            raise node.error(
                "expires", sentence, next_step="look at it again: delete it or give it a new day."
            )


def _read_parameter(name: str, node: Node) -> Parameter:
    if "choices" in node:
        choices = tuple(str(choice) for choice in node.scalars("choices"))
        parameter = Parameter(name, str(node.scalar("default")), choices=choices)
    else:
        low, high = node.integer("min"), node.integer("max")
        parameter = Parameter(name, node.integer("default"), minimum=low, maximum=high)
    _check_value(node, "default", parameter, parameter.default)
    return parameter


def _check_value(node: Node, key: str, parameter: Parameter, value: Scalar) -> Scalar:
    try:
        return parameter.check(value)
    except ValueError as error:
        raise node.error(key, f"parameter {parameter.name!r} {error}") from None


def _read_policy(node: Node | None) -> Policy:
    if node is None:
        return Policy()
    return Policy(
        alpha=node.number("alpha", default=0.01, minimum=1e-6, maximum=0.5),
        min_samples=node.integer("min_samples", default=50, minimum=1),
        max_void_ratio=node.number("max_void_ratio", default=0.2, minimum=0.0, maximum=1.0),
        on_inconclusive=cast(
            Literal["warn", "fail"], node.choice("on_inconclusive", ("warn", "fail"), default="warn")
        ),
    )


def _read_bound(node: Node, metric: Metric) -> tuple[Literal["max", "min"], float]:
    keys = [key for key in node.keys if LIMIT_KEY.fullmatch(key)]
    bound: Literal["max", "min"] = "max" if metric.direction == "lower" else "min"
    wanted = f"abs_{bound}_{metric.unit.name}"
    if len(keys) != 1:
        found = f"it has {' and '.join(keys)}" if keys else "it has none"
        raise node.error("", f"a limit has one value, as in '{wanted}: …'; {found}.")
    match = LIMIT_KEY.fullmatch(keys[0])
    assert match is not None
    if match[1] != bound:
        sentence = f"{keys[0]!r} does not fit {metric.name!r}, where {metric.direction} is better."
        raise node.error(keys[0], sentence, next_step=f"write '{wanted}'.")
    try:
        return bound, convert(node.number(keys[0]), find_unit(match[2]), metric.unit)
    except QuantityError as error:
        sentence = f"{keys[0]!r} does not fit {metric.name!r}: {error}."
        raise node.error(keys[0], sentence, next_step=f"write '{wanted}'.") from None


def _read_since(node: Node) -> Since:
    return Since(
        date=node.date("date"),
        commit=node.text("commit", default=""),
        board=node.text("board", default=""),
        n=node.integer("n", default=0, minimum=0),
    )


def _check_rules(thresholds: Thresholds) -> None:
    """Look for limits, advice and suppressions that collide on some case of a suite."""
    cases = {case.case_id: case for suite in thresholds.suites.values() for case in suite}
    for case in cases.values():
        parameters = {f"case.{key}": value for key, value in case.parameters.items()}
        for metric in thresholds.metrics_of(case.parameters):
            facts: Mapping[str, Scalar] = {"metric": metric.name, **parameters}
            check_ambiguities(thresholds.limits, facts)
            check_ambiguities(thresholds.advice, facts)
            check_ambiguities(thresholds.suppressions, facts)
