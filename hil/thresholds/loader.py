# SPDX-License-Identifier: Apache-2.0
"""Read ``thresholds/<stem>.yaml``, the one place for a bench's cases, metrics and limits.

docs/reference/thresholds.md explains its keys. Everything is checked while reading, so that a mistake shows
before anything is measured, and every sentence names file and line.
"""

from __future__ import annotations

import datetime
import functools
import itertools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from hil.base.paths import TOOL_THRESHOLDS, is_of_suite
from hil.base.reading import decode
from hil.base.yamlfile import Node, loads, read_text
from hil.model import KINDS, Case, Scalar
from hil.store import StoredRun
from hil.thresholds.limits import check_ambiguities
from hil.thresholds.metric_reader import read_metrics, read_outcome
from hil.thresholds.rule_reader import RuleReader, check_value, read_policy, require_parameter
from hil.thresholds.types import PEERS, Parameter, Thresholds

SCHEMA_VERSION = 1
FOLDER = "thresholds"
CALLS = "calls"  # what a pytest suite's own calls say: hil.suite.limits writes it behind the file's rules


def load(stem: str, root: Path, *, today: datetime.date | None = None) -> Thresholds:
    """Read ``root/<stem>.yaml``; ``root`` is the ``thresholds`` folder, or a run's copy of it.

    Sentences name the file ``thresholds/<stem>.yaml``, in a folder of another name by its path as given.

    Raises:
        ConfigError: anything wrong in it.

    A suppression whose day is over (as of ``today``) is none any more; a limit never ends by its age.
    """
    path = root / f"{stem}.yaml"
    # the project's file, and the copy in a run's folder, have one name: a replay gives the same bytes
    label = f"{root.name}/{path.name}" if root.name == FOLDER else str(path)
    day = today or datetime.datetime.now(tz=datetime.UTC).date()
    return _parse(read_text(path, label=label), stem, label, day)


def read(text: str, stem: str, *, today: datetime.date | None = None) -> Thresholds:
    """Read the content of a file ``thresholds/<stem>.yaml``. Raises ConfigError as load() does."""
    return _parse(text, stem, f"{FOLDER}/{stem}.yaml", today or datetime.datetime.now(tz=datetime.UTC).date())


# A run's limits are asked for before it and, from the copies that it keeps, by each of its reports: equal
# texts are parsed once, which takes half a second. The size is that of a report of a dozen runs of as many
# days. What it returns is frozen.
@functools.lru_cache(maxsize=256)
def _parse(text: str, stem: str, label: str, today: datetime.date) -> Thresholds:
    return _Reader(loads(text, label=label), today).read(stem)


def load_all(root: Path, *, today: datetime.date | None = None) -> dict[str, Thresholds]:
    """Read every thresholds file of the folder, by bench. Raises ConfigError as load() does."""
    files = sorted(root.glob("*.yaml"))
    return {path.stem: load(path.stem, root, today=today) for path in files}


def project_files(folder: Path) -> list[Path]:
    """Return the thresholds files of a project: those of ``folder``, and the tool's of all other benches.

    So a team writes files for its own benches, and for those whose limits it wants others of.
    """
    own = {path.name: path for path in folder.glob("*.yaml") if not is_of_suite(path)}
    return [
        path for _, path in sorted({**{p.name: p for p in TOOL_THRESHOLDS.glob("*.yaml")}, **own}.items())
    ]


def load_project(folder: Path, *, today: datetime.date | None = None) -> dict[str, Thresholds]:
    """Read project_files(), by bench. Raises ConfigError as load() does."""
    return {path.stem: load(path.stem, path.parent, today=today) for path in project_files(folder)}


def among_legs(thresholds: Mapping[str, Thresholds], legs: int) -> dict[str, Thresholds]:
    """Return the thresholds of one of so many runs that judge one pull request: they share alpha."""
    return {
        bench: replace(own, policy=replace(own.policy, alpha=own.policy.alpha / legs))
        for bench, own in thresholds.items()
    }


def own_limits(run: StoredRun) -> dict[str, Thresholds]:
    """Return the thresholds that a run keeps, by bench, as of its day; {} where it keeps none.

    Raises ConfigError as load() does.
    """
    return {bench: own_limits_of(run, bench) for bench in run.limits}


def own_limits_of(run: StoredRun, bench: str) -> Thresholds:
    """Return the thresholds of one of the benches in ``run.limits``. Raises ConfigError as load() does."""
    text = decode(run.limits[bench], label=f"{FOLDER}/{bench}.yaml")
    return read(text, bench, today=run.info.day)


class _Reader:
    """Reads one file from top to bottom; later parts are checked against the earlier ones."""

    def __init__(self, node: Node, today: datetime.date) -> None:
        self.node = node
        self.today = today
        self.parameters: dict[str, Parameter] = {}

    def read(self, stem: str) -> Thresholds:
        node = self.node
        node.schema(SCHEMA_VERSION)
        bench = node.text("bench")
        if bench != stem:
            raise node.error("bench", f"bench {bench!r} must be named as the file, {stem!r}.")
        parts = node.named_sections("parameters")
        self.parameters = {name: _read_parameter(name, part) for name, part in parts.items()}
        outcome = read_outcome(node.section("outcome", default=None), self.parameters)
        metrics = read_metrics(node.named_sections("metrics"), outcome, self.parameters)
        policy, suites = read_policy(node.section("policy", default=None)), node.section("suites")
        rules, calls = RuleReader(self.parameters, metrics), node.section(CALLS, default=None)
        own = (node, calls) if calls else (node,)
        thresholds = Thresholds(
            bench=bench,
            parameters=self.parameters,
            suites={suite: self._read_suite(suites, suite, bench) for suite in suites.keys},
            metrics=metrics,
            policy=policy,
            limits=tuple(
                rules.read_limit(part) for one in own for part in one.sections("limits", default=[])
            ),
            advice=tuple(map(rules.read_advice, node.sections("advice", default=[]))),
            suppressions=tuple(
                suppression
                for part in node.sections("suppressions", default=[])
                if (suppression := rules.read_suppression(part)).expires >= self.today
            ),
            source=node.label,
            peer=node.choice("peer", PEERS, default=""),
            alone=node.boolean("alone", default=False),
            kinds=tuple(node.choices("kinds", KINDS, default=KINDS)),
            compare=tuple(
                rules.read_compare_rule(part, policy)
                for one in own
                for part in one.sections("compare", default=[])
            ),
            owner=node.text("owner", default=""),
        )
        node.finish()
        _check_rules(thresholds)
        return thresholds

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
            require_parameter(entry, key, self.parameters)
        options = []
        for name, parameter in self.parameters.items():
            values = entry.scalar_or_scalars(name, default=[parameter.default])
            options.append([check_value(entry, name, parameter, value) for value in values])
        names = list(self.parameters)
        return [Case(bench, dict(zip(names, row, strict=True))) for row in itertools.product(*options)]


def _read_parameter(name: str, node: Node) -> Parameter:
    named = node.boolean("named", default=False)
    if "choices" in node:
        choices = tuple(str(choice) for choice in node.scalars("choices"))
        parameter = Parameter(name, str(node.scalar("default")), choices=choices, named=named)
    else:
        low, high = node.integer("min"), node.integer("max")
        parameter = Parameter(name, node.integer("default"), minimum=low, maximum=high, named=named)
    check_value(node, "default", parameter, parameter.default)
    return parameter


def _check_rules(thresholds: Thresholds) -> None:
    """Look for limits, comparisons, advice and suppressions that collide on some case of a suite."""
    cases = {case.case_id: case for suite in thresholds.suites.values() for case in suite}
    for case in cases.values():
        parameters = {f"case.{key}": value for key, value in case.parameters.items()}
        for metric in thresholds.metrics_of(case.parameters):
            facts: Mapping[str, Scalar] = {"metric": metric.name, **parameters}
            check_ambiguities(thresholds.limits, facts)
            check_ambiguities(thresholds.compare, facts)
            check_ambiguities(thresholds.advice, facts)
            check_ambiguities(thresholds.suppressions, facts)
