# SPDX-License-Identifier: Apache-2.0
"""How `make idf-check` compares two APIs: what differs is found and named, what only looks so is not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tools.idf_check import api
from tools.idf_check.declarations import declared
from tools.idf_check.view import View

pytestmark = pytest.mark.slow

OURS = """\
#pragma once
#include <stdint.h>
#define LIMIT 5
#define NOTHING 0
#define MASK (1u << 3)
#define NAME "a b"
#define TWICE(x) ((x) + (x))
#define ALSO_TWICE TWICE
typedef enum { FIRST, SECOND } order_t;
typedef struct ours *handle_t;
typedef struct {
    int32_t id;
    struct {
        const char *host;
        uint16_t port;
    } address;
    unsigned ready : 1;
} config_t;
int start(handle_t handle, const config_t *config, void (*done)(int, void *));
void stop(handle_t handle);
"""


@pytest.fixture
def sides(tmp_path: Path) -> Mapping[str, View]:
    made = {}
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "api.h").write_text(OURS)
        made[name] = View(
            ("clang", "-w", "-ferror-limit=0", f"-I{tmp_path / name}"), tmp_path / f"{name}-work"
        )
    return made


def alter(tmp_path: Path, old: str, new: str) -> None:
    """Change the other side's header."""
    header = tmp_path / "theirs" / "api.h"
    text = header.read_text()
    assert old in text
    header.write_text(text.replace(old, new))


def compare(
    tmp_path: Path, sides: Mapping[str, View], deliberate: Mapping[str, str] | None = None
) -> api.Comparison:
    headers = api.headers_below([tmp_path / "ours"])
    return api.compare(sides["ours"], sides["theirs"], headers, deliberate)


def test_same_headers_do_not_differ(tmp_path: Path, sides: Mapping[str, View]) -> None:
    """Everything that a header declares is counted, and found the same."""
    result = compare(tmp_path, sides)
    assert result.differences == {}
    assert (result.headers, result.functions, result.types, result.constants) == (1, 3, 7, 7)


ALTERATIONS = (
    (
        ("int start(handle_t handle, const config_t", "int start(handle_t handle, config_t", "start"),
        ("void stop(handle_t handle);", "", "stop"),
        ("#define LIMIT 5", "", "LIMIT"),
        ("#define NOTHING 0", "#define NOTHING 1", "NOTHING"),
        ("FIRST, SECOND", "FIRST, BETWEEN, SECOND", "SECOND"),
        ('#define NAME "a b"', '#define NAME "a c"', "NAME"),
        ("int32_t id;", "int64_t id;", "config_t.id"),
        ("uint16_t port;", "uint32_t port;", "config_t.address.port"),
        ("unsigned ready : 1;", "", "config_t.ready"),
    ),
    (
        ("int start(", "long start(", "start"),
        ("#define LIMIT 5", "#define LIMIT 6", "LIMIT"),
        ("#define TWICE(x) ((x) + (x))", "#define TWICE(x, y) ((x) + (y))", "TWICE"),
        ("#define ALSO_TWICE TWICE", "#define ALSO_TWICE(x) TWICE(x, x)", "TWICE"),
    ),
    (("void (*done)(int,", "void (*done)(unsigned,", "start"),),
)


@pytest.mark.parametrize("alterations", ALTERATIONS)
def test_differences_are_found_and_named(
    tmp_path: Path, sides: Mapping[str, View], alterations: tuple[tuple[str, str, str], ...]
) -> None:
    """Return and parameter types, missing names, values, texts, macros' parameters, members at any depth."""
    for old, new, _name in alterations:
        alter(tmp_path, old, new)
    assert set(compare(tmp_path, sides).differences) == {name for _old, _new, name in alterations}


def test_what_a_caller_cannot_tell_apart_is_the_same(tmp_path: Path, sides: Mapping[str, View]) -> None:
    """Another tag behind a type, other spellings of a type and a value, and a macro for a function."""
    alter(tmp_path, "typedef struct ours *handle_t;", "typedef struct theirs *handle_t;")
    alter(tmp_path, "int32_t id;", "signed int id;")
    alter(tmp_path, "(1u << 3)", "0x8")
    alter(tmp_path, "void stop(handle_t handle);", "#define stop(handle) ((void)(handle))")
    assert compare(tmp_path, sides).differences == {}


def test_deliberate_differences_are_let_pass_while_they_are_some(
    tmp_path: Path, sides: Mapping[str, View]
) -> None:
    """A difference with a reason is counted, not reported; a reason without a difference is reported."""
    alter(tmp_path, "#define LIMIT 5", "#define LIMIT 6")
    result = compare(tmp_path, sides, {"LIMIT": "meant", "stop": "was meant once"})
    assert (result.deliberate, list(result.differences)) == (1, ["stop"])


def test_a_header_that_cannot_be_included_is_a_difference(tmp_path: Path, sides: Mapping[str, View]) -> None:
    """One that is missing on the other side is named, and hides no other."""
    (tmp_path / "ours" / "more.h").write_text("void more(void);\n")
    alter(tmp_path, "#define LIMIT 5", "#define LIMIT 6")
    assert set(compare(tmp_path, sides).differences) == {"more.h", "LIMIT"}


def test_only_the_header_itself_is_read(tmp_path: Path) -> None:
    """What a header gets from another header is not its own."""
    (tmp_path / "inner.h").write_text("#define INNER 1\nvoid inner(void);\n")
    outer = tmp_path / "outer.h"
    outer.write_text('#include "inner.h"\n#define OUTER 1\nvoid outer(void);\n')
    source = tmp_path / "source.c"
    source.write_text('#include "outer.h"\n')
    found = declared(("clang", "-w", f"-I{tmp_path}"), source, outer)
    assert (found.functions, list(found.macros)) == (["outer"], ["OUTER"])
