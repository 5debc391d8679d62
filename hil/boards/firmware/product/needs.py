# SPDX-License-Identifier: Apache-2.0
"""What a product needs and firmware/host has not, in the compiler's words: headers, and their use.

A build that lacks a header is repeated with a stand-in in its place: what the compiler then does not know
would have come from there. The stand-in declares it, so that the next build shows the members that are used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hil.base.errors import ConfigError

_NO_HEADER = r"([^:\n]+): No such file or directory"
_IN_SCOPE = r"'(\w+)' was not declared in this scope"
_UNKNOWN = (
    ("calls", r"implicit declaration of function '(\w+)'"),
    ("types", r"unknown type name '(\w+)'"),
    ("types", r"'(\w+)' (?:does not name a type|has not been declared)"),
    ("names", r"'(\w+)' undeclared"),
)
_NO_MEMBER = re.compile(
    r"error: '(?:const )?(?:struct )?(\w+)'(?: \{aka [^}]*\})? has no (?:non-static data )?"
    r"member named '(\w+)'"
)
_NO_FIELD = "error: field name not in record or union initializer"
_NOT_A_NUMBER = "makes integer from pointer without a cast"
_LINE = re.compile(r"^([^:\n]+):(\d+):(\d+): (error: .*)$", re.MULTILINE)
_NEAR = re.compile(r"note: \(near initialization for '[^']*?([\w]+)'\)")
_DECLARED = "host_stubs_all.h"
_OPTIONS_OFF = "exception handling disabled"  # what a handler would have declared is unknown, too
Place = tuple[Path, int]


@dataclass
class Needs:
    """Where a name is used first. ``calls`` are functions, ``types`` types, ``names`` the rest.

    ``members`` are of a type, or of a member, as "type.member"; ``pointers`` are members that hold no number.
    """

    headers: dict[str, Place] = field(default_factory=dict)
    calls: dict[str, Place] = field(default_factory=dict)
    types: dict[str, Place] = field(default_factory=dict)
    names: dict[str, Place] = field(default_factory=dict)
    members: dict[str, Place] = field(default_factory=dict)
    pointers: set[str] = field(default_factory=set)

    def of(self, owner: str) -> list[str]:
        """Return the members of a type, or of a member."""
        return [name.partition(".")[2] for name in self.members if name.partition(".")[0] == owner]

    def declared(self, fresh: Collection[str] = ()) -> str:
        """Return C that declares all of it; a ``fresh`` type is a structure, whatever it turns out to be."""
        lines = ["#include <stdint.h>"]
        for name in self.types:
            body = self._fields(name) or ("int hil_unknown;" if name in fresh else "")
            what = f"struct {{ {body} }} " if body else "void *"
            lines.append(f"typedef {what}{name}; /* or what it is */")
        if self.names:
            lines.append(f"enum {{ {', '.join(self.names)} }}; /* with their values, where they matter */")
        lines += ["#ifdef __cplusplus", 'extern "C" {', "#define ANY ...", "#else", "#define ANY", "#endif"]
        lines += [f"int {name}(ANY); /* any arguments */" for name in self.calls]
        lines += ["#undef ANY", "#ifdef __cplusplus", "}", "#endif"]
        return "\n".join(lines) + "\n"

    def _fields(self, owner: str) -> str:
        return " ".join(self._field(name) for name in self.of(owner))

    def _field(self, name: str) -> str:
        if inner := self._fields(name):
            return f"struct {{ {inner} }} {name};"
        return f"const void *{name};" if name in self.pointers else f"int {name};"

    def told(self, base: Path) -> list[str]:
        """Return lines for a reader, with places as seen from ``base``."""
        groups = (
            ("{}, included by {}", self.headers), ("call {}, at {}", self.calls),
            ("type {}, at {}", self.types), ("name {}, at {}", self.names),
            ("member {}, at {}", self.members),
        )  # fmt: skip
        return [
            line.format(name, f"{file.relative_to(base) if file.is_relative_to(base) else file}:{number}")
            for line, group in groups
            for name, (file, number) in group.items()
        ]


def build_or_need(build: Callable[[], None], log: Path, stand_ins: Path) -> Needs:
    """Call ``build``, which writes to ``log``; return what it lacks. Headers in ``stand_ins`` take part.

    Raises ConfigError, as ``build`` does, for any other error.
    """
    needs, seen = Needs(), set[str]()
    while True:
        try:
            build()
        except ConfigError:
            said = log.read_text(encoding="utf-8", errors="replace")
            if _stand_in(said, needs, stand_ins):
                continue
            if _OPTIONS_OFF not in said:
                _note_unknown(said, needs)
                _note_members(said, needs)
            if needs == Needs():
                raise
            if _declare(needs, stand_ins, seen):
                continue
        return needs


def _stand_in(said: str, needs: Needs, stand_ins: Path) -> bool:
    """Write a header in the place of each that is missing; return whether there is a new one."""
    new = {
        name: place for name, place in _found(said, _NO_HEADER)
        if name not in needs.headers and not name.startswith("/") and ".." not in Path(name).parts
    }  # fmt: skip
    for name in new:
        path = stand_ins / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#pragma once\n#include "{_DECLARED}"\n', encoding="utf-8")
    if new:
        (stand_ins / _DECLARED).touch()
    needs.headers |= new
    return bool(new)


def _declare(needs: Needs, stand_ins: Path, seen: set[str]) -> bool:
    """Declare what is known by now in the stand-ins; return whether there are any, and it is new there."""
    path = stand_ins / _DECLARED
    text = "#pragma once\n" + needs.declared(needs.types.keys() - seen)
    seen.update(needs.types)
    if not needs.headers or path.read_text(encoding="utf-8") == text:
        return False
    path.write_text(text, encoding="utf-8")
    return True


def _note_members(said: str, needs: Needs) -> None:
    """Note what members a structure lacks, what members those have, and which of them hold no number."""
    for at in _LINE.finditer(said):
        place = Path(at[1]).resolve(), int(at[2])
        if found := _NO_MEMBER.match(at[4]):
            needs.members.setdefault(f"{found[1]}.{found[2]}", place)
        elif at[4] == _NO_FIELD or _NOT_A_NUMBER in at[4]:
            _note_use(at, place, said[at.end() :].partition(": error: ")[0], needs)


def _note_use(at: re.Match[str], place: Place, after: str, needs: Needs) -> None:
    """Note a use of a member as a structure or as a pointer, by its source line and the compiler's notes."""
    line = place[0].read_text(encoding="utf-8", errors="replace").splitlines()[place[1] - 1]
    before, rest = line[: int(at[3]) - 1], line[int(at[3]) - 1 :]
    written = re.search(r"(?:\.|->)(\w+)\s*(?:=[\s{]*)?$", before)
    near = _NEAR.search(after)
    owner, inner = written[1] if written else near[1] if near else "", re.match(r"\.(\w+)", rest)
    if chained := re.match(r"\.(\w+)(?=(\.\w+))", rest):
        owner, inner = chained[1], re.match(r"\.(\w+)", chained[2])
    if not any(owner in needs.of(name) for name in needs.types):
        return
    if _NOT_A_NUMBER in at[4]:
        needs.pointers.add(owner)
    elif inner:
        needs.members.setdefault(f"{owner}.{inner[1]}", place)


def _note_unknown(said: str, needs: Needs) -> None:
    for group, words in _UNKNOWN:
        for name, place in _found(said, words):
            getattr(needs, group).setdefault(name, place)
    for name, place in _found(said, _IN_SCOPE):
        _group(needs, name, *place).setdefault(name, place)


def _found(said: str, words: str) -> Iterator[tuple[str, Place]]:
    for found in re.finditer(rf"^([^:\n]+):(\d+):\d+: (?:fatal )?error: {words}", said, re.MULTILINE):
        yield found[3], (Path(found[1]).resolve(), int(found[2]))


def _group(needs: Needs, name: str, file: Path, number: int) -> dict[str, Place]:
    """Return where a name belongs that C++ finds undeclared: its use says whether it is a call or a type."""
    line = file.read_text(encoding="utf-8", errors="replace").splitlines()[number - 1]
    if re.search(rf"\b{name}\s*\(", line):
        return needs.calls
    return needs.types if re.search(rf"\b{name}\b\s*[*&]?\s*\w+\s*[=;,{{)]", line) else needs.names
