# SPDX-License-Identifier: Apache-2.0
"""A suite's thresholds: what its tests call, behind what hil/thresholds/<file>.yaml says.

The project's file has limits, comparisons and the like, and no ``metrics:``. Where it has a limit of a
metric, that limit holds and not the call's. What it says of metrics and tests that were not in this session
stays without an effect, and is named.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hil.base.errors import ConfigError
from hil.base.paths import is_of_suite
from hil.base.units import QuantityError, unit_of
from hil.base.yamlfile import Node, loads, read_text
from hil.suite.figures import SuiteMetric, by_bench, is_ragged, row_column
from hil.suite.naming import Naming
from hil.suite.records import TEST
from hil.thresholds.loader import CALLS, FOLDER, SCHEMA_VERSION, read

_RULES = ("limits", "compare", "advice", "suppressions")
_ABSENT = "(not in this session)"
_DAY = re.compile(r'"(\d{4}-\d\d-\d\d)"')  # YAML has days, JSON has not


@dataclass
class _Named:
    """What the project's file names: metrics with their direction, tests, and what has a limit or a rule."""

    metrics: dict[str, str] = field(default_factory=dict)
    tests: dict[str, str] = field(default_factory=dict)
    by: dict[str, set[str]] = field(default_factory=dict)
    where: dict[str, str] = field(default_factory=dict)


def limits_of(figures: Sequence[SuiteMetric], folder: Path) -> tuple[dict[str, str], list[str]]:
    """Return the thresholds files of a session by their names, and what in ``folder`` is without an effect.

    Raises ConfigError: a file of the folder is a bench's, or anything is wrong in it.
    """
    texts, notes = {}, []
    for bench, own in by_bench(figures).items():
        path = folder / f"{bench}.yaml"
        text, named = _own(path, bench)
        tests = {figure.test for figure in own}
        metrics = {figure.name for figure in own}
        for name, line in named.where.items():
            if name not in metrics | tests:
                notes.append(f"{line} is about {name}, which no test of this session measured.")
        texts[path.name] = text + _generated(own, named)
        read(texts[path.name], bench)  # before there is a run of it
    return texts, notes


def _own(path: Path, bench: str) -> tuple[str, _Named]:
    """Return the head of the thresholds, the project's file where it has one, and what that names."""
    if not path.is_file():
        return f"schema: {SCHEMA_VERSION}\nbench: {json.dumps(bench)}\n", _Named()
    label = f"{FOLDER}/{path.name}"
    text = read_text(path, label=label)
    if not is_of_suite(path):
        raise ConfigError(
            f"{label}: it is of a bench, and a test file of a suite has the same name.",
            next_step="rename the test file, or the bench.",
        )
    named = _Named()
    for section, rule in _rules(loads(text, label=label)):
        _note(section, rule, named)
    return text.rstrip("\n") + "\n", named


def _rules(node: Node) -> Iterator[tuple[str, Node]]:
    for section in _RULES:
        for rule in node.sections(section, default=[]):
            yield section, rule


def _note(section: str, rule: Node, named: _Named) -> None:
    where = rule.section("where")
    metric = where.text("metric", default="")
    if metric:
        is_min = any(key.startswith("abs_min_") for key in rule.keys)
        named.metrics.setdefault(metric, "higher" if is_min else "")
        named.by.setdefault(section, set()).add(metric)
        named.where.setdefault(metric, rule.where())
    case = where.section("case", default=None)
    if case is not None and (test := case.text(TEST, default="")):
        named.tests.setdefault(test, rule.where())
        named.where.setdefault(test, rule.where())


def _generated(figures: Sequence[SuiteMetric], named: _Named) -> str:
    tests = list(dict.fromkeys([*(figure.test for figure in figures), *named.tests, _ABSENT]))
    parameter = {"default": tests[0], "choices": tests, "named": True}
    metrics = _metrics(figures, named)
    calls = {
        "limits": [_limit(one) for one in _limited(figures) if one.name not in named.by.get("limits", ())],
        "compare": [
            {"where": {"metric": name}, "why": "the default: more than the policy tolerates blocks"}
            for name, metric in metrics.items()
            if metric.get("scale") == "log" and name not in named.by.get("compare", ())
        ],
    }
    parts: Mapping[str, object] = {
        "parameters": {TEST: parameter},
        "suites": {},
        "metrics": metrics,
        CALLS: {key: rules for key, rules in calls.items() if rules},
    }
    lines = ["# From here on: what the tests of the session called.", *_lines(parts)]
    return "\n".join(lines) + "\n"


def _lines(parts: Mapping[str, object]) -> Iterator[str]:
    """Yield YAML, an entry a line; JSON is YAML."""
    for key, value in parts.items():
        if not (isinstance(value, dict) and value):
            yield f"{key}: {json.dumps(value)}"
            continue
        yield f"{key}:"
        for name, content in value.items():
            rules = content if isinstance(content, list) else []
            items = [f"    - {_days(json.dumps(rule))}" for rule in rules]
            yield f"  {name}:" if items else f"  {name}: {json.dumps(content)}"
            yield from items


def _days(text: str) -> str:
    return _DAY.sub(r"\1", text)


def _metrics(figures: Sequence[SuiteMetric], named: _Named) -> dict[str, dict[str, object]]:
    ragged = is_ragged(figures)
    limited = {figure.name for figure in _limited(figures)} | named.by.get("limits", set())
    groups: dict[str, list[SuiteMetric]] = {}
    for figure in figures:
        groups.setdefault(figure.name, []).append(figure)
    found: dict[str, dict[str, object]] = {}
    for name, own in groups.items():
        first = own[0]
        is_positive = all(value > 0 for figure in own for value in figure.values)
        found[name] = {
            "of": first.naming.column,
            "statistic": "p50",
            "scale": "log" if is_positive else "identity",
            "direction": first.direction,
            "blocking": True if name in limited else "compared",
            "case": {TEST: list(dict.fromkeys(figure.test for figure in own))},
            **({"rows": {row_column(first): 1}} if ragged else {}),
        }
    for name, direction in named.metrics.items():
        found.setdefault(name, _absent(name, direction, named))
    return found


def _absent(name: str, direction: str, named: _Named) -> dict[str, object]:
    """Return a metric that no test of the session measured, so that what is said of it can be read."""
    try:
        naming = Naming(name, unit_of(name))
    except QuantityError as error:
        raise ConfigError(f"{named.where[name]}: {error}.") from error
    better = direction or ("higher" if naming.higher_is_better else "lower")
    return {
        "of": naming.column,
        "statistic": "p50",
        "direction": better,
        "blocking": True,
        "case": {TEST: _ABSENT},
    }


def _limited(figures: Sequence[SuiteMetric]) -> list[SuiteMetric]:
    """Return a figure of each metric and test whose call has a limit."""
    return list({(one.name, one.test): one for one in figures if one.limit is not None}.values())


def _limit(figure: SuiteMetric) -> dict[str, object]:
    bound = "max" if figure.direction == "lower" else "min"
    return {
        "where": {"metric": figure.name, "case": {TEST: figure.test}},
        f"abs_{bound}_{figure.naming.unit.name}": figure.limit,
        "each": True,
        "since": {"date": figure.at_utc.partition("T")[0]},
        "why": f"the call in {figure.node}",
    }
