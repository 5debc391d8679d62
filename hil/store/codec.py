# SPDX-License-Identifier: Apache-2.0
"""Dataclasses and structs from JSON, strictly: a missing or unknown key, and a wrong value, are named.

msgspec converts. Where it refuses, the sentence tells by its path which key that is, what it holds, and what
was expected.
"""

from __future__ import annotations

import functools
import re
import types
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

import msgspec

from hil.base.errors import ConfigError
from hil.base.schema import check_schema, refuse_newer
from hil.model import SCHEMA_VERSION

_Item = TypeVar("_Item")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]|\[\.\.\.\]")  # a field, a place in a list, a key of an object
_MISSING = re.compile(r"Object missing required field `(\w+)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(\w+)`")
_WORD = re.compile(r"`([^`]*)`")
_NESTED = (dict, list)
_WORDS = {
    "str": "text",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}


def decode(content: bytes) -> Any:
    """Return the JSON value of a text; neither NaN nor infinity is one. Raises ValueError."""
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"not JSON: {str(error).removeprefix('JSON is ')}") from error


def parse(kind: type[_Item], path: Path, content: bytes, *, way_out: str) -> _Item:
    """Return what a file of ours holds. Raises ConfigError, which names ``path``, key and value."""
    try:
        stored = decode(content)
        if isinstance(stored, dict):
            refuse_newer(stored.get("schema"), SCHEMA_VERSION, str(path))
            check_schema(stored.pop("schema", None), SCHEMA_VERSION)
        return build(kind, stored)
    except ValueError as error:
        raise ConfigError(f"{path}: {error}.", next_step=way_out) from error


def build(kind: type[_Item], stored: object) -> _Item:
    """Return a dataclass or struct from its JSON object. Raises ValueError, which names the key."""
    try:
        found = msgspec.convert(stored, kind, strict=True)
    except msgspec.ValidationError as error:
        raise ValueError(_sentence(kind, stored, str(error))) from error
    for key in _unknown(stored, found):
        raise ValueError(f"{key} is an unknown key")
    return found


def _unknown(stored: object, found: Any, where: str = "") -> Iterator[str]:
    """Yield the keys at any depth that are stored and that no field was made of."""
    if isinstance(stored, dict):
        is_map, kind = isinstance(found, dict), cast(Hashable, type(found))
        names = found.keys() if is_map else _names(kind)
        if not stored.keys() <= names:
            yield from (f"{where}{key}" for key in stored if key not in names)
        for key, value in stored.items():
            if type(value) in _NESTED and key in names:  # few are, of the millions in a large verdict
                yield from _unknown(value, found[key] if is_map else getattr(found, key), f"{where}{key}.")
    elif isinstance(stored, list) and stored and isinstance(stored[0], dict):
        for number, value in enumerate(stored):
            yield from _unknown(value, found[number], f"{where.rstrip('.')}[{number}].")


def _sentence(kind: type, stored: Any, problem: str) -> str:
    """Return msgspec's ``problem`` with the key in full, and with what it holds."""
    said, _, path = problem.rpartition(" - at `$")  # before the last one it may be the value that says so
    said, path = (said, path) if said else (path, "")
    hint, value, where = _bare(kind), stored, ""
    for field, number in _STEP.findall(path):
        if field:
            hint, value, where = _bare(_hints(hint)[field]), value[field], f"{where}.{field}"
        elif number:
            inner = get_args(hint)
            hint = _bare(inner[0] if inner[-1] is Ellipsis else inner[int(number)])
            value, where = value[int(number)], f"{where}[{number}]"
        else:
            inner = get_args(hint)[1]
            key = next(key for key, one in value.items() if not _fits(inner, one))
            hint, value, where = _bare(inner), value[key], f"{where}.{key}"
    where = where.removeprefix(".")
    if missing := _MISSING.match(said):
        return f"{where}.{missing[1]} is missing".removeprefix(".")
    if unknown := _UNKNOWN.match(said):
        return f"{where}.{unknown[1]} is an unknown key".removeprefix(".")
    return f"{where or 'it'} is {value!r:.40}; expected {_expected(hint, said)}"


def _expected(hint: Any, said: str) -> str:
    if get_origin(hint) is Literal:
        return f"one of {', '.join(map(str, get_args(hint)))}"
    if said == "Number out of range":
        return "a number that a double can hold"
    wanted = said.removeprefix("Expected ").partition(", got ")[0]
    return _WORD.sub(lambda found: " or ".join(_WORDS.get(one, one) for one in found[1].split(" | ")), wanted)


def _fits(hint: Any, value: object) -> bool:
    try:
        msgspec.convert(value, hint, strict=True)
    except msgspec.ValidationError:
        return False
    return True


@functools.cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _bare(hint: Any) -> Any:
    """Return the type of which ``hint`` says more, or of a union the one that has parts."""
    if get_origin(hint) is Annotated:
        return _bare(get_args(hint)[0])
    if isinstance(hint, types.UnionType):
        return next((one for one in get_args(hint) if _names(one) or get_args(one)), hint)
    return hint


@functools.cache
def _names(kind: Any) -> frozenset[str]:
    """Return the names of the fields of a struct or dataclass, none of another type."""
    return frozenset(getattr(kind, "__dataclass_fields__", ()) or getattr(kind, "__struct_fields__", ()))
