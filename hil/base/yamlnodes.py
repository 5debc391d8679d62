# SPDX-License-Identifier: Apache-2.0
"""Compose YAML 1.2 to ruamel.yaml's nodes: by libyaml where the text is plain, 9 times as fast.

ruamel.yaml reads everything else itself: anchors, tags, directives, and whatever is an error.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

import yaml  # type: ignore[import-untyped]
from ruamel.yaml import YAML
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.nodes import Node as YamlNode

# Where libyaml, which reads YAML 1.1, may differ: complex keys, line ends, several documents, blocks.
_NOT_PLAIN = re.compile(r"(?<!\w)\?|[\t\r\x85\u2028\u2029\ufeff]|[|>]#|^(?:---|\.\.\.|%)", re.MULTILINE)


class _NotPlainError(Exception):
    """The text has what the two libraries may read in different ways."""


def compose(text: str) -> tuple[YamlNode, ...]:
    """Return the documents of a text. Raises YAMLError or RecursionError, of ruamel.yaml."""
    if yaml.__with_libyaml__ and not _NOT_PLAIN.search(text):
        try:
            return tuple(_documents(yaml.parse(text, Loader=yaml.CLoader)))
        except (_NotPlainError, yaml.YAMLError):  # else it is nested too deeply for both
            pass
    return tuple(YAML(typ="safe", pure=True).compose_all(text))


def _documents(events: Iterator[Any]) -> Iterator[YamlNode]:
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            yield _node(next(events), events)


def _node(event: Any, events: Iterator[Any]) -> YamlNode:
    if isinstance(event, yaml.AliasEvent) or event.anchor or event.tag:
        raise _NotPlainError
    if isinstance(event, yaml.ScalarEvent):
        if not event.value and not event.style:  # nothing, whose place the two take for another
            raise _NotPlainError
        tag = _tag(event.value, event.implicit)
        return ScalarNode(tag, event.value, event.start_mark, event.end_mark, style=event.style)
    marks = (event.start_mark, None)
    if isinstance(event, yaml.SequenceStartEvent):
        return SequenceNode(_resolver().resolve(SequenceNode, None, True), list(_items(events)), *marks)
    items = _items(events)
    pairs = list(zip(items, items, strict=True))
    return MappingNode(_resolver().resolve(MappingNode, None, True), pairs, *marks)


def _items(events: Iterator[Any]) -> Iterator[YamlNode]:
    """Yield the nodes up to the end of the list or mapping that has begun."""
    for event in events:
        if isinstance(event, yaml.CollectionEndEvent):
            return
        yield _node(event, events)


@functools.cache
def _resolver() -> Any:
    return YAML(typ="safe", pure=True).resolver


@functools.lru_cache(maxsize=4096)
def _tag(value: str, implicit: tuple[bool, bool]) -> Any:
    """Return the tag that YAML 1.2 gives a plain scalar."""
    return _resolver().resolve(ScalarNode, value, implicit)
