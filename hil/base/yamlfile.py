# SPDX-License-Identifier: Apache-2.0
"""Strict YAML: every value knows its file and line, and every key that nobody asked for is an error.

    root = load("hil/racks/virtual.yaml")
    name = root.text("name")
    for board in root.sections("boards"):
        board_id = board.text("id")
        kind = board.choice("kind", ("physical", "virtual"))
        port = board.integer("port", default=0, minimum=0, maximum=65535)
        if port and kind != "virtual":
            raise board.error("port", "only a virtual board takes a port.", next_step="delete the line.")
    root.finish()  # rejects the keys that nobody asked for, in the sections taken above too

A key is required unless ``default`` is given. Every mistake raises ConfigError with file, line, the value
found and the way out. YAML 1.2: ``on``, ``off``, ``yes`` and ``no`` are text; merge keys are not supported.
"""

from __future__ import annotations

import datetime
import difflib
import functools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.nodes import Node as YamlNode

from hil.base import yamlnodes, yamlvalue
from hil.base.errors import ConfigError
from hil.base.reading import SETTINGS_MOST_BYTES, decode, read_at_most
from hil.base.schema import UPDATE, is_newer
from hil.base.yamlvalue import Value, did_you_mean
from hil.model import Scalar

T = TypeVar("T")
Default = TypeVar("Default")


class Required:
    """The type of REQUIRED, which stands for "no default: the key must be there"."""


REQUIRED: Final = Required()


class Node:
    """A mapping of the file. Ask it for its keys; then ``finish()`` rejects the ones nobody asked for."""

    def __init__(self, value: Value) -> None:
        self.label = value.label
        self.name = value.name
        self.line = value.line
        self._values: dict[str, Value] = {}
        self._lines: dict[str, int] = {}
        self._asked: list[str] = []
        self._sections: list[Node] = []
        for key, content in value.pairs():
            self._add(key, content)

    def _add(self, key: Value, content: Value) -> None:
        word = yamlvalue.as_text(key)
        if word in self._values:
            sentence = f"duplicate key {word!r} in {self.name}; it is on line {self._lines[word]} already."
            raise ConfigError(f"{key.where}: {sentence}", next_step="delete one of the two.")
        self._values[word] = Value(self.label, content.node, f"'{word}' in {self.name}", line=key.line)
        self._lines[word] = key.line

    def __contains__(self, key: str) -> bool:
        return key in self._values

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys present, in the file's order; looking does not count as asking."""
        return tuple(self._values)

    def is_section(self, key: str) -> bool:
        """Return whether ``key`` is there and holds a mapping; looking does not count as asking."""
        return key in self._values and isinstance(self._values[key].node, MappingNode)

    def where(self, key: str = "") -> str:
        """Return ``file:line`` of ``key``, or of the section itself."""
        return f"{self.label}:{self._lines.get(key, self.line)}"

    def error(self, key: str, sentence: str, *, next_step: str = "") -> ConfigError:
        """Return, for raising, a ConfigError that starts with ``file:line`` of ``key``."""
        return ConfigError(f"{self.where(key)}: {sentence}", next_step=next_step)

    def finish(self) -> None:
        """Reject keys that nobody asked for, here and in the sections taken. Raises ConfigError."""
        for key in self._values:
            if key not in self._asked:
                known = f"Known keys: {', '.join(self._asked) or 'none'}."
                hint = did_you_mean(key, self._asked)
                raise self.error(key, f"unknown key {key!r} in {self.name}{hint} {known}")
        for section in self._sections:
            section.finish()

    def require(self, keys: Mapping[str, Sequence[str]]) -> None:
        """Raise one ConfigError for all keys that are missing, where that is more than one.

        ``keys`` has the top's own keys under "", and those of a section, or of each item of a list, under the
        section's. Looking does not count as asking.
        """
        parts = [(self, keys[""])]
        parts += [(part, wanted) for key, wanted in keys.items() for part in self._parts(key)]
        found = [(part, [key for key in wanted if key not in part]) for part, wanted in parts]
        if sum(len(missing) for _, missing in found) > 1:
            told = [
                f"{part.where()}: {part.name} has no {', no '.join(map(repr, missing))}"
                for part, missing in found
                if missing
            ]
            raise ConfigError(f"{'; '.join(told)}.", next_step="add these keys; each is required.")

    def _parts(self, key: str) -> list[Node]:
        """Return the section of this name, or the items of the list; they are not taken."""
        value = self._values.get(key)
        if value is None:
            return []
        if not isinstance(value.node, SequenceNode):
            return [Node(Value(value.label, value.node, repr(key), line=value.line))]
        items = enumerate(value.items(), start=1)
        return [
            Node(Value(value.label, item.node, _own_name(item, _noun(key), number), line=item.line))
            for number, item in items
        ]

    def text(self, key: str, *, default: Default | Required = REQUIRED, empty: bool = False) -> str | Default:
        """Take a text that is not empty; ``empty`` allows ''."""
        return self._take(key, default, lambda value: yamlvalue.as_text(value, empty=empty))

    def integer(
        self,
        key: str,
        *,
        default: Default | Required = REQUIRED,
        minimum: int | None = None,
        maximum: int | None = None,
    ) -> int | Default:
        """Take an integer within ``minimum``..``maximum``, both included."""
        return self._take(key, default, lambda value: yamlvalue.as_integer(value, minimum, maximum))

    def schema(self, known: int) -> None:
        """Take the version of the file's format, ``schema``. Raises ConfigError where it is not ``known``."""
        found = self.integer("schema")
        if found != known:
            way_out = UPDATE if is_newer(found, known) else f"write schema: {known}"
            sentence = f"schema is {found}; this version reads schema {known}."
            raise self.error("schema", sentence, next_step=way_out)

    def number(
        self,
        key: str,
        *,
        default: Default | Required = REQUIRED,
        minimum: float | None = None,
        maximum: float | None = None,
    ) -> float | Default:
        """Take a finite number within ``minimum``..``maximum``, both included."""
        return self._take(key, default, lambda value: yamlvalue.as_number(value, minimum, maximum))

    def quantity(
        self,
        key: str,
        unit: str,
        *,
        default: Default | Required = REQUIRED,
        minimum: float | None = None,
        maximum: float | None = None,
    ) -> float | Default:
        """Take a number with its unit, as in ``3 ms`` or ``30 Mbit/s``; return it in ``unit``."""
        return self._take(key, default, lambda value: yamlvalue.as_quantity(value, unit, minimum, maximum))

    def boolean(self, key: str, *, default: Default | Required = REQUIRED) -> bool | Default:
        """Take ``true`` or ``false``."""
        return self._take(key, default, yamlvalue.as_boolean)

    def date(self, key: str, *, default: Default | Required = REQUIRED) -> datetime.date | Default:
        """Take a day, written ``2026-11-20``."""
        return self._take(key, default, yamlvalue.as_date)

    def choice(
        self, key: str, choices: Sequence[str], *, default: Default | Required = REQUIRED
    ) -> str | Default:
        """Take one of ``choices``."""
        return self._take(key, default, lambda value: yamlvalue.as_choice(value, choices))

    def choice_or_choices(self, key: str, choices: Sequence[str]) -> str | list[str]:
        """Take one of ``choices``, or a list of them."""
        return self._take(key, REQUIRED, lambda value: yamlvalue.as_choices(value, choices))

    def choices(
        self, key: str, choices: Sequence[str], *, default: Default | Required = REQUIRED
    ) -> list[str] | Default:
        """Take a list of ``choices``."""
        return self._take(
            key, default, lambda value: [yamlvalue.as_choice(v, choices) for v in value.items()]
        )

    def scalar(self, key: str, *, default: Default | Required = REQUIRED) -> Scalar | Default:
        """Take a single value of any type: text, integer, number, truth value or nothing."""
        return self._take(key, default, yamlvalue.as_scalar)

    def scalars(self, key: str, *, default: Default | Required = REQUIRED) -> list[Scalar] | Default:
        """Take a list of single values."""
        return self._take(key, default, lambda value: [yamlvalue.as_scalar(item) for item in value.items()])

    def scalar_or_scalars(
        self, key: str, *, default: Default | Required = REQUIRED
    ) -> list[Scalar] | Default:
        """Take a single value or a list of them; a single one comes as a list of one."""
        return self._take(key, default, yamlvalue.as_scalars)

    def all_scalars(self) -> dict[str, Scalar]:
        """Take every key that nobody asked for yet; each must hold a single value."""
        rest = [key for key in self._values if key not in self._asked]
        return {key: self.scalar(key) for key in rest}

    def texts(self, key: str, *, default: Default | Required = REQUIRED) -> list[str] | Default:
        """Take a list of texts."""
        return self._take(key, default, lambda value: [yamlvalue.as_text(item) for item in value.items()])

    def section(self, key: str, *, default: Default | Required = REQUIRED) -> Node | Default:
        """Take a nested mapping; error sentences call it by its key."""
        return self._take(key, default, lambda value: self._adopt(value, repr(key)))

    def sections(self, key: str, *, default: Default | Required = REQUIRED) -> list[Node] | Default:
        """Take a list of mappings; error sentences call one of ``boards`` "board 'its id or name'"."""
        return self._take(key, default, lambda value: self._adopt_list(value, _noun(key)))

    def named_sections(self, key: str) -> dict[str, Node]:
        """Take a mapping of any names to mappings, in the file's order."""
        return self._take(key, REQUIRED, lambda value: self._adopt_names(value, _noun(key)))

    def _take(self, key: str, default: Default | Required, read: Callable[[Value], T]) -> T | Default:
        if key not in self._asked:
            self._asked.append(key)
        if key in self._values:
            return read(self._values[key])
        if isinstance(default, Required):
            raise self._missing(key)
        return default

    def _missing(self, key: str) -> ConfigError:
        others = [present for present in self._values if present not in self._asked]
        near = difflib.get_close_matches(key, others, n=1)
        if near:
            sentence = f"unknown key {near[0]!r} in {self.name}; did you mean {key!r}, which is required?"
            return self.error(near[0], sentence)
        return self.error("", f"{self.name} has no {key!r}, which is required.", next_step=f"add '{key}: …'.")

    def _adopt(self, value: Value, name: str) -> Node:
        section = Node(Value(value.label, value.node, name, line=value.line))
        self._sections.append(section)
        return section

    def _adopt_list(self, value: Value, noun: str) -> list[Node]:
        numbered = enumerate(value.items(), start=1)
        return [self._adopt(item, _own_name(item, noun, number)) for number, item in numbered]

    def _adopt_names(self, value: Value, noun: str) -> dict[str, Node]:
        names = Node(value)
        return {name: self._adopt(part, f"{noun} {name!r}") for name, part in names._values.items()}


MOST_CHARACTERS = 500_000  # ruamel.yaml reads some 100,000 a second, and the largest of ours has 14,000


def load(path: str | os.PathLike[str], *, label: str = "") -> Node:
    """Read one YAML file whose top level is a mapping.

    ``label`` is how error sentences name the file; by default its path, relative to the working folder
    where it lies below it.

    Raises:
        ConfigError: missing, unreadable, too large, not UTF-8, empty, no mapping, bad syntax, a key twice.
    """
    file = Path(path)
    label = label or _relative(file)
    return loads(read_text(file, label=label), label=label)


def loads(text: str, *, label: str) -> Node:
    """Read YAML from ``text``; ``label`` names it in error sentences. Raises ConfigError as load() does."""
    if len(text) > MOST_CHARACTERS:
        raise ConfigError(
            f"{label}: {len(text):,} characters; a settings file may have {MOST_CHARACTERS:,}.",
            next_step="check that it is the right file, or split it.",
        )
    documents = _compose(text, label)
    if not documents:
        raise ConfigError(f"{label}:1: the file is empty.", next_step="fill it in, or delete it.")
    if len(documents) > 1:
        line = documents[1].start_mark.line + 1
        raise ConfigError(f"{label}:{line}: second YAML document.", next_step="keep one document per file.")
    return Node(Value(label, documents[0], "the file"))


def read_text(file: Path, *, label: str) -> str:
    """Return what a file holds; ``label`` names it in sentences. Raises ConfigError: no file, not UTF-8."""
    try:
        content = read_at_most(file, SETTINGS_MOST_BYTES)
    except FileNotFoundError as error:
        raise ConfigError(f"{label}: there is no such file.", next_step=_present(file.parent)) from error
    except OSError as error:
        raise ConfigError(f"{label}: cannot be read: {error.strerror}.") from error
    return decode(content, label=label)


def _present(folder: Path) -> str:
    names = ", ".join(sorted(entry.name for entry in folder.glob("*.yaml"))) or "no .yaml file"
    return f"check the path; {_relative(folder)} holds {names}."


def _relative(file: Path) -> str:
    absolute = Path.cwd() / file
    here = Path.cwd()
    return str(absolute.relative_to(here)) if absolute.is_relative_to(here) else str(file)


def _compose(text: str, label: str) -> tuple[YamlNode, ...]:
    try:
        return _documents(text)
    except MarkedYAMLError as error:
        raise _syntax_error(error, text, label) from error
    except YAMLError as error:
        raise _unreadable(error, text, label) from error
    except RecursionError as error:
        raise ConfigError(
            f"{label}: nested too deeply for a settings file.",
            next_step="check that it is the right file.",
        ) from error


# A run asks for its limits before it and, from its own copies, after it. What is composed is only read.
@functools.lru_cache(maxsize=64)
def _documents(text: str) -> tuple[YamlNode, ...]:
    return yamlnodes.compose(text)


_NO_TEXT = re.compile(r"[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # YAML 1.2


def _unreadable(error: YAMLError, text: str, label: str) -> ConfigError:
    found = _NO_TEXT.search(text)
    if found is None:
        return ConfigError(f"{label}: not YAML: {' '.join(str(error).split())}.")
    line = text.count("\n", 0, found.start()) + 1
    return ConfigError(
        f"{label}:{line}: character U+{ord(found[0]):04X} is not allowed in YAML.",
        next_step="rewrite the line; zeros are what a power cut leaves behind.",
    )


def _syntax_error(error: MarkedYAMLError, text: str, label: str) -> ConfigError:
    mark = error.problem_mark or error.context_mark
    number = mark.line if mark else 0
    lines = text.splitlines()
    line = lines[number] if number < len(lines) else ""
    indentation = line[: len(line) - len(line.lstrip())]
    what, next_step = f"not YAML ({error.problem or error.context})", "correct the syntax near this line."
    if "\t" in indentation:
        what, next_step = "a tab in the indentation", "indent with spaces."
    return ConfigError(f"{label}:{number + 1}: {what}: {line.strip()!r}.", next_step=next_step)


def _noun(plural: str) -> str:
    return plural.removesuffix("s")


def _own_name(item: Value, noun: str, number: int) -> str:
    """Name a list's item after its ``id`` or ``name``, else by its number."""
    for key, value in item.pairs():
        if key.node.value in ("id", "name") and isinstance(value.node, ScalarNode):
            return f"{noun} {value.node.value!r}"
    return f"{noun} {number}"
