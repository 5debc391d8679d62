# SPDX-License-Identifier: Apache-2.0
"""What a product needs and firmware/host has not, told before anything is built: headers, and their use.

Each source is preprocessed and checked by the compiler, with empty headers in the place of those that are
missing: what it then knows nothing of is what would have come from there.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hil.base.errors import ConfigError

SOURCE_TIMEOUT_S = 120
ROUNDS_MAX = 20  # a stand-in may let the next missing header be seen

_NO_HEADER = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d+):\d+: fatal error: (?P<name>[^:\n]+): No such file", re.M
)
_OPTIONS_OFF = "exception handling disabled"
_UNKNOWN = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d+):\d+: (?:error|warning): (?:"
    r"implicit declaration of function '(?P<call>\w+)'"
    r"|unknown type name '(?P<type>\w+)'"
    r"|'(?P<name>\w+)' undeclared"
    r"|'(?P<other>\w+)' undeclared here"
    r"|'(?P<cxx_type>\w+)' (?:does not name a type|has not been declared)"
    r"|'(?P<cxx>\w+)' was not declared in this scope)",
    re.M,
)


@dataclass(frozen=True)
class Place:
    file: Path
    line: int

    def told(self, base: Path) -> str:
        path = self.file.relative_to(base) if self.file.is_relative_to(base) else self.file
        return f"{path}:{self.line}"


@dataclass
class Needs:
    """Places by name. ``calls`` are functions, ``types`` types, ``names`` constants and variables."""

    headers: dict[str, list[Place]] = field(default_factory=dict)
    calls: dict[str, list[Place]] = field(default_factory=dict)
    types: dict[str, list[Place]] = field(default_factory=dict)
    names: dict[str, list[Place]] = field(default_factory=dict)
    sources: int = 0

    @property
    def any(self) -> bool:
        return bool(self.headers or self.calls or self.types or self.names)


def find_needs(compile_commands: Path, folders: Iterable[Path], work: Path) -> Needs:
    """Return what the sources below ``folders`` need; stand-ins for headers are made in ``work``."""
    needs = Needs()
    stand_ins = work / "stand-ins"
    below = tuple(folder.resolve() for folder in folders)
    for entry in json.loads(compile_commands.read_text(encoding="utf-8")):
        source = Path(entry["file"]).resolve()
        if any(source.is_relative_to(folder) for folder in below):
            needs.sources += 1
            _look_at(source, _command(entry, stand_ins), Path(entry["directory"]), stand_ins, needs)
    return needs


def _command(entry: Mapping[str, str], stand_ins: Path) -> list[str]:
    words = shlex.split(entry["command"])
    words = words[: words.index("-o")] + words[words.index("-o") + 2 :]
    words = [word for word in words if not word.startswith("-Werror=")]
    return [
        *words,
        "-fsyntax-only",
        "-fmax-errors=0",
        "-Wimplicit-function-declaration",
        "-idirafter",
        str(stand_ins),
    ]


def _look_at(source: Path, command: list[str], directory: Path, stand_ins: Path, needs: Needs) -> None:
    said = ""
    for _ in range(ROUNDS_MAX):
        said = _compile(command, directory)
        missing = list(_NO_HEADER.finditer(said))
        for found in missing:
            _note(needs.headers, found["name"], found)
            stand_in = stand_ins / found["name"]
            stand_in.parent.mkdir(parents=True, exist_ok=True)
            stand_in.write_text("#pragma once\n", encoding="utf-8")
        if not missing:
            break
    else:
        raise ConfigError(f"{source} includes more than {ROUNDS_MAX} headers that the host has not.")
    if _OPTIONS_OFF in said:  # what a handler would have declared: the compiler says it when it is built
        said = ""
    for found in _UNKNOWN.finditer(said):
        _note(_group(needs, found), next(filter(None, found.groups()[2:])), found)
    _note_includers(source, needs)


def _group(needs: Needs, found: re.Match[str]) -> dict[str, list[Place]]:
    """Return where a name belongs. Of what C++ finds undeclared, its use says whether it is a call."""
    if found["cxx"]:
        lines = Path(found["file"]).read_text(encoding="utf-8", errors="replace").splitlines()
        line = lines[int(found["line"]) - 1]
        if re.search(rf"\b{found['cxx']}\s*\(", line):
            return needs.calls
        declares = re.search(rf"\b{found['cxx']}\b\s*[*&]?\s*\w+\s*[=;,{{)]", line)
        return needs.types if declares else needs.names
    return (
        needs.calls if found["call"] else needs.types if found["type"] or found["cxx_type"] else needs.names
    )


def _note_includers(source: Path, needs: Needs) -> None:
    """A header that another source has found missing has a stand-in now; who includes it is in its text."""
    for number, line in enumerate(source.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        found = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        if found and found[1] in needs.headers and Place(source, number) not in needs.headers[found[1]]:
            needs.headers[found[1]].append(Place(source, number))


def _compile(command: list[str], directory: Path) -> str:
    done = subprocess.run(
        command,
        cwd=directory,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=SOURCE_TIMEOUT_S,
        env={**os.environ, "LC_ALL": "C"},
        check=False,
    )
    return done.stderr


def _place(found: re.Match[str]) -> Place:
    return Place(Path(found["file"]).resolve(), int(found["line"]))


def _note(group: dict[str, list[Place]], name: str, found: re.Match[str]) -> None:
    places = group.setdefault(name, [])
    if _place(found) not in places:
        places.append(_place(found))


def told(needs: Needs, base: Path) -> list[str]:
    """Return lines for a reader: each header with who includes it, each name with where it is used first."""
    lines = []
    for name, places in needs.headers.items():
        lines.append(f"{name}, included by {_places(places, base)}")
    for what, group in (("call", needs.calls), ("type", needs.types), ("name", needs.names)):
        lines += [f"{what} {name}, at {_places(places, base)}" for name, places in group.items()]
    return lines


def _places(places: list[Place], base: Path) -> str:
    more = f" and {len(places) - 1} more" if len(places) > 1 else ""
    return places[0].told(base) + more
