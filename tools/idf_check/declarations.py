# SPDX-License-Identifier: Apache-2.0
"""What a header declares, read by clang: functions, types, members, enumeration constants, macros."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.idf_check.process import run

_DEFINE = re.compile(r"#define (\w+)(?:\(([^)]*)\))?\s*(.*)")
_LINE_MARKER = re.compile(r'# \d+ "([^"]+)"')

Node = Mapping[str, Any]


@dataclass
class Declarations:
    """Names by kind. A member is ``type.member``, at any depth; a macro has its parameters, or None."""

    functions: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    members: list[str] = field(default_factory=list)
    bit_fields: list[str] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)
    macros: dict[str, int | None] = field(default_factory=dict)


def declared(clang: Sequence[str], source: Path, header: Path) -> Declarations:
    """Return what ``header`` itself declares where ``source`` includes it. Raises ConfigError."""
    tree = json.loads(run([*clang, "-fsyntax-only", "-Xclang", "-ast-dump=json", str(source)]).checked())
    found = Declarations(macros=macros_in(clang, source, header))
    nodes = [node for node, file in _located(tree["inner"]) if file and Path(file) == header]
    typedefs = {_record_id(node): node["name"] for node in nodes if node["kind"] == "TypedefDecl"}
    for node in nodes:
        _COLLECT.get(node["kind"], _ignore)(found, node, typedefs)
    return found


def macros_in(clang: Sequence[str], source: Path, header: Path) -> dict[str, int | None]:
    """Return the macros that ``header`` itself defines."""
    found: dict[str, int | None] = {}
    file = Path()
    for line in run([*clang, "-E", "-dD", str(source)]).checked().splitlines():
        if marker := _LINE_MARKER.match(line):
            file = Path(marker[1])
        elif file == header and (define := _DEFINE.match(line)):
            found[define[1]] = _parameters(define[2])
    return found


def all_macros(clang: Sequence[str], source: Path) -> dict[str, int | None]:
    """Return every macro that is defined behind ``source``, by its number of parameters; -1 is any number.

    A macro that stands for another has that one's parameters.
    """
    text = run([*clang, "-E", "-dM", str(source)]).checked()
    defines = {define[1]: define for line in text.splitlines() if (define := _DEFINE.match(line))}
    return {name: _followed(name, defines) for name in defines}


def _followed(name: str, defines: Mapping[str, re.Match[str]]) -> int | None:
    seen: set[str] = set()
    while defines[name][2] is None and defines[name][3] in defines and name not in seen:
        seen.add(name)
        name = defines[name][3]
    return _parameters(defines[name][2])


def _parameters(text: str | None) -> int | None:
    if text is None:
        return None
    if "..." in text:
        return -1
    return len([word for word in text.split(",") if word.strip()])


def _located(nodes: Sequence[Node]) -> Iterator[tuple[Node, str]]:
    """Yield top-level nodes and their files: clang names a file only where it differs from the one before."""
    file = ""
    for node in nodes:
        where = node.get("loc", {})
        place = where.get("expansionLoc", where)
        files = list(_files(node))
        own = [*_files(where.get("spellingLoc", {})), *_files(place)]
        yield node, own[-1] if own else file
        file = files[-1] if files else file


def _files(part: object) -> Iterator[str]:
    """Yield the files that are named in document order."""
    if isinstance(part, Mapping):
        for key, value in part.items():
            if key == "file" and "offset" in part:
                yield value
            elif key != "includedFrom":
                yield from _files(value)
    elif isinstance(part, list):
        for value in part:
            yield from _files(value)


def _record_id(typedef: Node) -> str:
    """Return the id of the record that a typedef names directly, or an empty string."""
    for inner in typedef.get("inner", []):
        if inner["kind"] == "RecordType":
            return str(inner["decl"]["id"])
        if inner["kind"] in {"ElaboratedType", "TypedefType"} and "decl" not in inner:
            return _record_id(inner)
    return ""


def _ignore(found: Declarations, node: Node, typedefs: Mapping[str, str]) -> None:
    """Leave out what is no declaration of an API."""


def _function(found: Declarations, node: Node, typedefs: Mapping[str, str]) -> None:
    found.functions.append(node["name"])


def _typedef(found: Declarations, node: Node, typedefs: Mapping[str, str]) -> None:
    found.types.append(node["name"])


def _enumeration(found: Declarations, node: Node, typedefs: Mapping[str, str]) -> None:
    found.constants += [
        inner["name"] for inner in node.get("inner", []) if inner["kind"] == "EnumConstantDecl"
    ]


def _record(found: Declarations, node: Node, typedefs: Mapping[str, str]) -> None:
    name = typedefs.get(node["id"]) or (f"{node['tagUsed']} {node['name']}" if "name" in node else "")
    if name:
        _members(found, node, name)


def _members(found: Declarations, record: Node, path: str) -> None:
    nested: dict[str, Node] = {}
    latest: Node = {}
    for inner in record.get("inner", []):
        if inner["kind"] == "RecordDecl":
            latest = inner
            nested[inner.get("name", "")] = inner
        elif inner["kind"] == "FieldDecl":
            _member(found, inner, path, nested, latest)


def _member(found: Declarations, member: Node, path: str, nested: Mapping[str, Node], latest: Node) -> None:
    spelled = member["type"]["qualType"]
    below = f"{path}.{member['name']}" if "name" in member else path
    tag = spelled.rpartition(" ")[2]
    if "unnamed" in spelled or "anonymous" in spelled:
        _members(found, latest, below)
    elif spelled.startswith(("struct ", "union ")) and tag in nested:
        _members(found, nested[tag], below)
    elif member.get("isBitfield"):
        found.bit_fields.append(below)
    else:
        found.members.append(below)


_COLLECT = {
    "FunctionDecl": _function,
    "TypedefDecl": _typedef,
    "EnumDecl": _enumeration,
    "RecordDecl": _record,
}
