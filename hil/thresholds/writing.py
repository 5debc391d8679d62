# SPDX-License-Identifier: Apache-2.0
"""A limit in the text of a thresholds file, written or changed; all else of the text stays, comments too."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from hil.base.errors import ConfigError
from hil.thresholds.loader import load
from hil.thresholds.rule_reader import LIMIT_KEY
from hil.thresholds.types import Thresholds


@dataclass(frozen=True)
class NewLimit:
    """``where`` holds conditions without a case; ``bound`` is key and number, as ``abs_max_ms: 25``."""

    where: Mapping[str, str]
    bound: str
    why: str
    since: Mapping[str, str]

    def parts(self) -> dict[str, str]:
        """Return what stands behind each key of the entry, but for the bound's."""
        return {"where": _flow(self.where), "why": self.why, "since": _flow(self.since)}

    def entry(self) -> str:
        parts = self.parts()
        return (
            f"  - where: {parts['where']}\n    {self.bound}\n"
            f"    why: {parts['why']}\n    since: {parts['since']}\n"
        )


def with_limit(text: str, new: NewLimit) -> str:
    """Return the text of a thresholds file with a limit: in place of one for the same, else as the last one.

    Raises ConfigError where the file has its limits in one line.
    """
    node = _value(YAML(typ="safe", pure=True).compose(text), "limits")
    lines = text.splitlines(keepends=True)
    if node is None:
        return f"{text.rstrip()}\n\nlimits:\n{new.entry()}"
    if isinstance(node, SequenceNode) and not node.value:
        lines[node.start_mark.line] = f"limits:\n{new.entry()}"
        return "".join(lines)
    if not isinstance(node, SequenceNode) or node.flow_style:
        raise ConfigError(
            f"line {node.start_mark.line + 1}: the limits are not a list with one entry per line.",
            next_step="write each limit on its own lines, as docs/reference/thresholds.md shows.",
        )
    same = [item for item in node.value if _where_of(item) == dict(new.where)]
    if same and (changed := _changed(text, same[0], new)):
        return changed
    first, last = (same or node.value)[0].start_mark.line, _last_line((same or node.value)[-1])
    kept = lines[:first] if same else lines[: last + 1]
    return "".join([*kept, new.entry(), *lines[last + 1 :]])


def check(text: str, bench: str) -> Thresholds:
    """Return the limits of a text, as a run would read them. Raises ConfigError."""
    with tempfile.TemporaryDirectory(prefix="hil-limit-") as folder:
        Path(folder, f"{bench}.yaml").write_text(text, encoding="utf-8")
        return load(bench, Path(folder))


def _changed(text: str, item: MappingNode, new: NewLimit) -> str:
    """Return the text with the values of an entry changed in place, "" where the entry lacks a key."""
    parts = new.parts()
    edits: list[tuple[Node, Node, str]] = []
    for key, value in item.value:
        if LIMIT_KEY.fullmatch(key.value):
            edits.append((key, value, new.bound))
        elif key.value in ("why", "since"):
            edits.append((value, value, parts[key.value]))
    if len(edits) != 3:
        return ""
    for begin, end, words in sorted(edits, key=lambda edit: -edit[0].start_mark.index):
        text = text[: begin.start_mark.index] + words + text[end.end_mark.index :]
    return text


def _value(node: Node, key: str) -> Node | None:
    return next((value for name, value in node.value if name.value == key), None)


def _where_of(item: Node) -> dict[str, str]:
    where = _value(item, "where")
    return {key.value: value.value for key, value in where.value} if where is not None else {}


def _last_line(node: Node) -> int:
    """Return the last line of an entry, without comments and blank lines that follow it."""
    if isinstance(node, ScalarNode) or getattr(node, "flow_style", False):
        return int(node.end_mark.line)
    nodes = [part for pair in node.value for part in pair] if isinstance(node, MappingNode) else node.value
    return max(map(_last_line, nodes))


def _flow(values: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{key}: {value}' for key, value in values.items())}}}"
