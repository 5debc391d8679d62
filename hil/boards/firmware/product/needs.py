# SPDX-License-Identifier: Apache-2.0
"""What a product needs and firmware/host has not, in the compiler's words: headers, and their use.

A build that lacks a header is repeated with an empty one in its place: what the compiler then does not know
would have come from there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
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
_OPTIONS_OFF = "exception handling disabled"  # what a handler would have declared is unknown, too
Place = tuple[Path, int]


@dataclass
class Needs:
    """Where a name is used first. ``calls`` are functions, ``types`` types, ``names`` the rest."""

    headers: dict[str, Place] = field(default_factory=dict)
    calls: dict[str, Place] = field(default_factory=dict)
    types: dict[str, Place] = field(default_factory=dict)
    names: dict[str, Place] = field(default_factory=dict)

    def told(self, base: Path) -> list[str]:
        """Return lines for a reader, with places as seen from ``base``."""
        groups = (
            ("{}, included by {}", self.headers), ("call {}, at {}", self.calls),
            ("type {}, at {}", self.types), ("name {}, at {}", self.names),
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
    needs = Needs()
    while True:
        try:
            build()
        except ConfigError:
            said = log.read_text(encoding="utf-8", errors="replace")
            if _stand_in(said, needs, stand_ins):
                continue
            if _OPTIONS_OFF not in said:
                _note_unknown(said, needs)
            if needs == Needs():
                raise
        return needs


def _stand_in(said: str, needs: Needs, stand_ins: Path) -> bool:
    """Write an empty header in the place of each that is missing; return whether there is a new one."""
    new = {
        name: place for name, place in _found(said, _NO_HEADER)
        if name not in needs.headers and not name.startswith("/") and ".." not in Path(name).parts
    }  # fmt: skip
    for name in new:
        path = stand_ins / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#pragma once\n", encoding="utf-8")
    needs.headers |= new
    return bool(new)


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
