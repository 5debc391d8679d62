# SPDX-License-Identifier: Apache-2.0
"""One value of a YAML file: where it stands, what it is, and its conversions with their error sentences.

Used by hil.base.yamlfile, which is what readers of a file use.
"""

from __future__ import annotations

import datetime
import difflib
import math
import threading
from collections.abc import Iterable, Sequence
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.nodes import Node as YamlNode

from hil.base.errors import ConfigError
from hil.base.units import QuantityError, parse_quantity
from hil.model import Scalar

SECTION = "a section of 'key: value' lines"
_READERS = threading.local()
LOOKS_OTHERWISE = "put it in quotes if it looks like a number or a date"


class Value:
    """One YAML value: ``label`` names the file, ``name`` is what error sentences call the value.

    ``line`` is that of the value's key where it has one, because an empty value has no place of its own.
    """

    def __init__(self, label: str, node: YamlNode, name: str, *, line: int = 0) -> None:
        self.label = label
        self.node = node
        self.name = name
        self.line: int = line or int(node.start_mark.line) + 1

    @property
    def where(self) -> str:
        return f"{self.label}:{self.line}"

    def wrong(self, expected: str) -> ConfigError:
        """Return, for raising, the error "name is 'what was found'; expected …"."""
        return ConfigError(f"{self.where}: {self.name} is {self.describe()}; expected {expected}.")

    def describe(self) -> str:
        if isinstance(self.node, MappingNode):
            return SECTION
        if isinstance(self.node, SequenceNode):
            return "a list"
        content = self.content()
        return "nothing" if content is None else f"{_kind_of(content)} {self.node.value!r}"

    def pairs(self) -> list[tuple[Value, Value]]:
        """Return keys and values of a mapping."""
        if not isinstance(self.node, MappingNode):
            raise self.wrong(SECTION)
        key_name = f"a key in {self.name}"
        return [
            (Value(self.label, key, key_name), Value(self.label, value, self.name))
            for key, value in self.node.value
        ]

    def items(self) -> list[Value]:
        """Return the items of a list."""
        if not isinstance(self.node, SequenceNode):
            raise self.wrong("a list")
        return [
            Value(self.label, item, f"item {n} of {self.name}")
            for n, item in enumerate(self.node.value, start=1)
        ]

    def content(self) -> Any:
        """Return a single value as YAML 1.2 reads it."""
        if not isinstance(self.node, ScalarNode):
            raise self.wrong("a single value")
        try:
            return _constructed(self.node)
        except (YAMLError, ValueError) as error:
            tag = str(self.node.tag).removeprefix("tag:yaml.org,2002:")
            sentence = f"{self.where}: {self.name} is {self.node.value!r}, which does not read as {tag!r}."
            raise ConfigError(sentence, next_step="correct it, or put it in quotes.") from error


def _constructed(node: ScalarNode) -> Any:
    """Return the content of a node. A YAML() takes as long to make as ten lines to read: a thread has one."""
    if not hasattr(_READERS, "constructor"):
        _READERS.constructor = YAML(typ="safe", pure=True).constructor
    constructor = _READERS.constructor
    try:
        return constructor.construct_object(node)
    finally:  # it remembers every node, and those that it failed on
        constructor.constructed_objects.clear()
        constructor.recursive_objects.clear()


def _kind_of(content: object) -> str:
    if isinstance(content, datetime.date):
        return "the date"
    names = {bool: "the truth value", int: "the integer", float: "the number", str: "the text"}
    return names.get(type(content), "the value")


def as_text(value: Value, *, empty: bool = False) -> str:
    content = value.content()
    if not isinstance(content, str):
        raise value.wrong(f"text ({LOOKS_OTHERWISE})")
    if not content.strip() and not empty:
        raise value.wrong("text that is not empty")
    return content


def as_integer(value: Value, minimum: int | None, maximum: int | None) -> int:
    content = value.content()
    if isinstance(content, bool) or not isinstance(content, int):
        raise value.wrong(f"an integer{_range_text(minimum, maximum)}")
    _check_range(value, content, minimum, maximum)
    return content


def as_number(value: Value, minimum: float | None, maximum: float | None) -> float:
    content = value.content()
    if isinstance(content, bool) or not isinstance(content, int | float) or not math.isfinite(content):
        raise value.wrong(f"a number{_range_text(minimum, maximum)}")
    _check_range(value, content, minimum, maximum)
    return float(content)


def as_quantity(value: Value, unit: str, minimum: float | None, maximum: float | None) -> float:
    try:
        amount = parse_quantity(str(value.content()), unit)
    except QuantityError as error:
        raise value.wrong(f"a number and a unit, as in '3 {unit}' ({error})") from error
    _check_range(value, amount, minimum, maximum, unit=unit)
    return amount


def as_boolean(value: Value) -> bool:
    content = value.content()
    if not isinstance(content, bool):
        raise value.wrong("true or false")
    return content


def as_date(value: Value) -> datetime.date:
    content = value.content()
    if isinstance(content, datetime.datetime) or not isinstance(content, datetime.date):
        raise value.wrong("a day such as 2026-11-20")
    return content


def as_choice(value: Value, choices: Sequence[str]) -> str:
    content = value.content()
    if not isinstance(content, str) or content not in choices:
        hint = did_you_mean(str(content), choices)
        listed = ", ".join(choices)
        raise ConfigError(f"{value.where}: {value.name} is {value.describe()}{hint} Choices: {listed}.")
    return content


def as_choices(value: Value, choices: Sequence[str]) -> str | list[str]:
    if isinstance(value.node, SequenceNode):
        return [as_choice(item, choices) for item in value.items()]
    return as_choice(value, choices)


def as_scalar(value: Value) -> Scalar:
    content = value.content()
    if content is not None and not isinstance(content, bool | int | float | str):
        raise value.wrong("text, a number, true or false (put a date in quotes)")
    return content


def as_scalars(value: Value) -> list[Scalar]:
    if isinstance(value.node, SequenceNode):
        return [as_scalar(item) for item in value.items()]
    return [as_scalar(value)]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the nearest known word, or "." where none is near."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.55)
    return f"; did you mean {near[0]!r}?" if near else "."


def _range_text(minimum: float | None, maximum: float | None, unit: str = "") -> str:
    suffix = f" {unit}" if unit else ""
    if minimum is not None and maximum is not None:
        return f" from {minimum} to {maximum}{suffix}"
    if minimum is not None:
        return f" of at least {minimum}{suffix}"
    return f" of at most {maximum}{suffix}" if maximum is not None else ""


def _check_range(
    value: Value, amount: float, minimum: float | None, maximum: float | None, unit: str = ""
) -> None:
    if (minimum is not None and amount < minimum) or (maximum is not None and amount > maximum):
        raise value.wrong(f"a value{_range_text(minimum, maximum, unit)}")
