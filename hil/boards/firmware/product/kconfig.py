# SPDX-License-Identifier: Apache-2.0
"""A project's configuration: the options of its Kconfig files, with their defaults and its ``sdkconfig``.

As much of Kconfig as projects use: ``config``, ``choice``, ``menu``, ``if``, ``depends on``, ``default``,
``select`` and ``rsource``. Source: ESP-IDF Programming Guide, "Project Configuration"; esp-idf-kconfig,
"Kconfig language".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hil.base.errors import ConfigError

PASSES_MAX = 8  # an option may depend on one that comes later

_TOKEN = re.compile(r'\s*(&&|\|\||!=|<=|>=|[!=()<>]|"[^"]*"|[\w.$-]+)')
_SETTING = re.compile(r"CONFIG_(\w+)=(.*)")
_UNSET = re.compile(r"# CONFIG_(\w+) is not set")


@dataclass
class Option:
    name: str
    kind: str = "bool"
    conditions: list[str] = field(default_factory=list)
    defaults: list[tuple[str, str]] = field(default_factory=list)  # value, condition
    selects: list[tuple[str, str]] = field(default_factory=list)  # name, condition
    choice: Option | None = None  # of which it is a member
    members: list[Option] = field(default_factory=list)


def read_settings(text: str) -> dict[str, str]:
    """Return the values of a file ``sdkconfig`` or ``sdkconfig.defaults``; ``n`` for one that is not set."""
    values = {}
    for line in text.splitlines():
        if found := _SETTING.match(line.strip()):
            values[found[1]] = found[2].strip().strip('"')
        elif found := _UNSET.match(line.strip()):
            values[found[1]] = "n"
    return values


def read_options(paths: list[Path]) -> list[Option]:
    """Return the options of Kconfig files, in order."""
    options: list[Option] = []
    for path in paths:
        _Reader(options).read(path)
    return options


def evaluate(options: list[Option], base: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return each option's value, on top of ``base``: what is ``given``, where it can be, else its default.

    Raises:
        ConfigError: the conditions go round in a circle.
    """
    values = {**base, **given}
    for option in options:
        values.setdefault(option.name, "n")
    before: dict[str, str] = {}
    for _ in range(PASSES_MAX):
        selected = _selected(options, values)
        for option in options:
            _settle(option, values, {**given, **selected})
        values.update(selected)
        if values == before:
            return values
        before = dict(values)
    raise ConfigError(
        "the options of the project's Kconfig files depend on each other in a circle.",
        next_step="write their values to sdkconfig.defaults.",
    )


def _selected(options: list[Option], values: Mapping[str, str]) -> dict[str, str]:
    chosen = [option for option in options if values.get(option.name) == "y"]
    pairs = [pair for option in chosen for pair in option.selects]
    return {name: "y" for name, condition in pairs if _true(condition, values)}


def _settle(option: Option, values: dict[str, str], given: Mapping[str, str]) -> None:
    holds = all(_true(condition, values) for condition in option.conditions)
    if option.members:
        _choose(option, values, given, visible=holds)
    elif option.choice is None:
        values[option.name] = given.get(option.name, _default(option, values)) if holds else "n"


def _choose(choice: Option, values: dict[str, str], given: Mapping[str, str], *, visible: bool) -> None:
    can_be = [
        member
        for member in choice.members
        if visible and all(_true(condition, values) for condition in member.conditions)
    ]
    wanted = [member.name for member in can_be if given.get(member.name) == "y"]
    wanted += [value for value, condition in choice.defaults if _true(condition, values)]
    names = [member.name for member in can_be]
    chosen = next((name for name in wanted if name in names), names[0] if names else None)
    for member in choice.members:
        values[member.name] = "y" if member.name == chosen else "n"


def _default(option: Option, values: Mapping[str, str]) -> str:
    for value, condition in option.defaults:
        if _true(condition, values):
            if value.startswith('"'):
                return value.strip('"')
            if option.kind == "bool" and value not in ("y", "n"):
                return "y" if _true(value, values) else "n"
            return values.get(value, value)
    return {"bool": "n", "string": ""}.get(option.kind, "0")


def _true(expression: str, values: Mapping[str, str]) -> bool:
    tokens = _TOKEN.findall(expression)
    return _either(tokens, values) if tokens else True


def _either(tokens: list[str], values: Mapping[str, str]) -> bool:
    result = _both(tokens, values)
    while tokens and tokens[0] == "||":
        tokens.pop(0)
        result = _both(tokens, values) or result
    return result


def _both(tokens: list[str], values: Mapping[str, str]) -> bool:
    result = _single(tokens, values)
    while tokens and tokens[0] == "&&":
        tokens.pop(0)
        result = _single(tokens, values) and result
    return result


def _single(tokens: list[str], values: Mapping[str, str]) -> bool:
    word = tokens.pop(0) if tokens else "n"
    if word == "!":
        return not _single(tokens, values)
    if word == "(":
        result = _either(tokens, values)
        if tokens:
            tokens.pop(0)
        return result
    left = _value(word, values)
    if tokens and tokens[0] in ("=", "!=", "<", ">", "<=", ">="):
        return _compare(left, tokens.pop(0), _value(tokens.pop(0), values))
    return left == "y"


def _value(word: str, values: Mapping[str, str]) -> str:
    if word.startswith('"'):
        return word.strip('"')
    number = re.fullmatch(r"-?(0x)?[0-9a-fA-F]+", word) and word not in values
    return word if number or word in ("y", "n") else values.get(word, "n")


def _compare(left: str, operator: str, right: str) -> bool:
    if operator in ("=", "!="):
        return (left == right) == (operator == "=")
    try:
        low, high = int(left, 0), int(right, 0)
    except ValueError:
        return False
    return {"<": low < high, ">": low > high, "<=": low <= high, ">=": low >= high}[operator]


class _Reader:
    """Reads Kconfig files into ``options``; the blocks around a line are a stack of conditions."""

    def __init__(self, options: list[Option]) -> None:
        self.options = options
        self.blocks: list[list[str]] = []
        self.choice: Option | None = None
        self.option: Option | None = None

    def read(self, path: Path) -> None:
        for line in _lines(path.read_text(encoding="utf-8")):
            word, _, rest = line.partition(" ")
            self._line(path, word, rest.strip())

    def _line(self, path: Path, word: str, rest: str) -> None:
        if word in ("config", "menuconfig", "choice"):
            self._begin(word, rest)
        elif word in ("menu", "if"):
            self.option = None
            self.blocks.append([rest] if word == "if" else [])
        elif word in ("endmenu", "endif") and self.blocks:
            self.option = None
            self.blocks.pop()
        elif word == "endchoice":
            self.choice = self.option = None
        elif word in ("rsource", "orsource") and "$" not in rest:
            for found in sorted(path.parent.glob(rest.strip('"'))):
                self.read(found)
        else:
            self._attribute(word, rest)

    def _begin(self, word: str, name: str) -> None:
        around = [condition for block in self.blocks for condition in block]
        self.option = Option(name or f"choice{len(self.options)}", conditions=around)
        if word == "choice":
            self.choice = self.option
        elif self.choice is not None:
            self.option.choice = self.choice
            self.choice.members.append(self.option)
        self.options.append(self.option)

    def _attribute(self, word: str, rest: str) -> None:
        value, _, condition = rest.partition(" if ")
        if word == "depends":
            needed = rest.removeprefix("on").strip()
            conditions = self.option.conditions if self.option else self.blocks[-1] if self.blocks else []
            conditions.append(needed)
        elif self.option is None:
            return
        elif word in ("bool", "int", "hex", "string", "float"):
            self.option.kind = word
        elif word == "default":
            self.option.defaults.append((value.strip(), condition.strip()))
        elif word in ("select", "imply"):
            self.option.selects.append((value.strip(), condition.strip()))


def _lines(text: str) -> Iterator[str]:
    """Yield the lines that say something: without comments and the texts under ``help``."""
    help_indent = None
    for line in re.sub(r"\\\n", " ", text).expandtabs().splitlines():
        stripped = line.strip()
        indent = len(line) - len(line.lstrip())
        if help_indent is not None and (not stripped or indent > help_indent):
            continue
        help_indent = indent if stripped in ("help", "---help---") else None
        if stripped and not stripped.startswith(("#", "comment ")) and help_indent is None:
            yield re.sub(r"\s+#.*$", "", stripped)
