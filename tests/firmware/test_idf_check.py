# SPDX-License-Identifier: Apache-2.0
"""What `make idf-check` stands on, without an ESP-IDF: a lax compiler is found out, nothing passes unseen.

Of two APIs what differs is found and named, what only looks so is not.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.base.git import git
from hil.base.paths import PROJECT_ROOT
from hil.boards.firmware.build import FIRMWARE_DIR
from tools.check_report import Report
from tools.idf_check import api, chips, config, hooks, idf, on_linux, stand_in
from tools.idf_check.declarations import declared
from tools.idf_check.idf import Command
from tools.idf_check.view import View

HOST = FIRMWARE_DIR / "host" / "idf"


def host_command(tmp_path: Path, *flags: str) -> Command:
    """Compile as the chips' check does, with the host's compiler and host/idf's headers."""
    source = tmp_path / "connect.c"
    source.write_text("int right(void);\nint right(void) { return 0; }\n")
    folders = [HOST / "include", HOST / "mqtt" / "include", HOST / "transport" / "include"]
    includes = [f"-I{path}" for path in [*folders, HOST / "target" / "esp32"]]
    return Command(source, tmp_path, ("gcc", *flags, *includes, "-o", "connect.o", "-c", str(source)))


def test_controls_are_refused(tmp_path: Path) -> None:
    """A compiler that looks refuses each wrong call for its reason and takes the right one."""
    assert chips.wrong_controls([host_command(tmp_path, "-Wall", "-Werror")], tmp_path) == {}


LAX = ("-w", "-std=gnu99", "-Wno-implicit-function-declaration")  # an error in gcc 14 unless told


def test_a_compiler_that_does_not_look_is_found_out(tmp_path: Path) -> None:
    """Where an undeclared function passes, or controls are refused for another reason, the check says so."""
    wrong = chips.wrong_controls([host_command(tmp_path, *LAX)], tmp_path)
    assert wrong == {"an undeclared function": "was not refused"}
    wrong = chips.wrong_controls([host_command(tmp_path, "-include", "no_such_header.h")], tmp_path)
    assert set(wrong) == {control.name for control in chips.CONTROLS}
    assert all("no_such_header.h" in sentence for sentence in wrong.values())


@pytest.mark.parametrize("objects", [True, False])
def test_a_wrong_source_is_named(tmp_path: Path, objects: bool) -> None:
    """A source that does not compile is reported with its first error, a right one is not."""
    right = host_command(tmp_path)
    bad = tmp_path / "bad.c"
    bad.write_text("int f(void) { return missing; }\n")
    wrong = Command(bad, tmp_path, tuple(str(bad) if w == str(right.source) else w for w in right.argv))
    found = chips.refused_sources([right, wrong], tmp_path / "objects", objects=objects)
    assert list(found) == [f"{tmp_path.name}/bad.c"]
    assert "missing" in next(iter(found.values()))
    assert (tmp_path / "objects" / "0.o").is_file() == objects


def test_a_source_that_warns_is_named(tmp_path: Path) -> None:
    """A macro that is defined anew compiles, and does something else than it says."""
    command = host_command(tmp_path)
    command.source.write_text("#define HOOK 1\n#define HOOK 2\n")
    found = chips.refused_sources([command], tmp_path / "objects", objects=True)
    assert '"HOOK" redefined' in found[f"{tmp_path.name}/{command.source.name}"]


def test_the_stand_in_drops_what_only_espressif_has(tmp_path: Path) -> None:
    """Response files are opened, foreign flags dropped, 32 bits chosen, newlib's headers added last."""
    (tmp_path / "cflags").write_text("-mlongcalls\n-march=rv32imc_zicsr_zifencei\n-Wall\n")
    words = stand_in.translate("riscv64-unknown-elf", tmp_path, [f'@"{tmp_path}/cflags"', "-c", "a.c"])
    newlib = ["-idirafter", str(tmp_path), "-idirafter", str(stand_in.NEWLIB), stand_in.FD_SET_MEMBER]
    assert words == ["-mabi=ilp32", "-march=rv32imc_zicsr_zifencei", "-Wall", "-c", "a.c", *newlib]


def test_a_kernel_that_does_not_call_the_trace_is_named(tmp_path: Path) -> None:
    """The header has to come before each source, and its macros be expanded there; a missing one is told."""
    header = FIRMWARE_DIR / "components" / "trace" / "include" / "trace" / hooks.HEADER
    calls = "int f(void *x) {" + " traceQUEUE_CREATE(x);" * 6 + " return 0; }\n"

    def kernel_source(name: str, text: str, *flags: str) -> Command:
        source = tmp_path / name
        source.write_text(text)
        base = host_command(tmp_path, *flags)
        return Command(source, tmp_path, (*base.argv[:-1], str(source)))

    include = ("-include", str(header))
    commands = [
        kernel_source("tasks.c", "int f(void *x) { return x != 0; }\n", *include),
        kernel_source("event_groups.c", calls, *include),
    ]
    wrong = hooks.wrong_kernel(commands, tmp_path / "objects", objects=True)
    assert set(wrong) == {"tasks.c", "queue.c"}
    assert "0 times, not 20" in wrong["tasks.c"]
    assert "not compile" in wrong["queue.c"]
    bare = [kernel_source("event_groups.c", calls, *LAX)]
    assert "hooks.h" in hooks.wrong_kernel(bare, tmp_path / "o", objects=True)["event_groups.c"]


def test_without_idf_path_the_way_out_is_told() -> None:
    """Exit 2, and a sentence that names the variable and the script to source."""
    environment = {key: value for key, value in os.environ.items() if key != "IDF_PATH"}
    argv = (sys.executable, "-m", "tools.idf_check")
    done = subprocess.run(
        argv, env=environment, cwd=PROJECT_ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "IDF_PATH is not set" in done.stderr
    assert ". $IDF_PATH/export.sh" in done.stderr


def test_espressif_s_compiler_comes_first_and_none_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a compiler there is none to report as ok; Espressif's own makes objects, for Xtensa too."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [chips.choose(chip, tmp_path / "tools") for chip in chips.CHIPS] == [None, None, None]
    for chip in chips.CHIPS:
        gcc = tmp_path / f"{chip.prefix}-gcc"
        gcc.write_text("#!/bin/sh\necho 14.2.0\n")
        gcc.chmod(0o755)
    found = [chips.choose(chip, tmp_path / "tools") for chip in chips.CHIPS]
    assert [(c.name, c.tools, c.makes_objects) for c in found if c] == [
        (f"{chip.prefix}-gcc 14.2.0", None, True) for chip in chips.CHIPS
    ]


@pytest.mark.parametrize(
    ("version", "wanted"),
    [("v5.5", True), ("v5.5.4", True), ("v5.5.4-dirty", True), ("v6.0.2", False), ("v5.50", False)],
)
def test_version_is_read_and_judged(tmp_path: Path, version: str, wanted: bool) -> None:
    """A folder that is no ESP-IDF is refused. A release without git names itself in version.txt; the firmware
    is for v5.5 and no other."""
    with pytest.raises(ConfigError, match=r"no ESP-IDF.*export\.sh"):
        idf.find({"IDF_PATH": str(tmp_path)})
    (tmp_path / "tools" / "cmake").mkdir(parents=True)
    (tmp_path / "tools" / "cmake" / "project.cmake").touch()
    (tmp_path / "version.txt").write_text(f"{version}\n")
    found = idf.find({"IDF_PATH": str(tmp_path)})
    assert (found.version, found.commit, found.is_wanted) == (version, "", wanted)


def test_a_submodule_laid_by_hand_is_named(tmp_path: Path) -> None:
    """Sources that git did not check out may be any; an empty folder is none."""
    (tmp_path / "by-hand").mkdir()
    (tmp_path / "by-hand" / "a.c").touch()
    (tmp_path / "empty").mkdir()
    modules = "".join(f'[submodule "{n}"]\n\tpath = {n}\n\turl = x\n' for n in ("by-hand", "empty"))
    (tmp_path / ".gitmodules").write_text(modules)
    git(tmp_path, "init", "--quiet")
    for name in ("by-hand", "empty"):
        git(tmp_path, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},{name}")
    assert idf.foreign_submodules(tmp_path) == ["by-hand"]


def test_options_are_compared_by_value() -> None:
    """0x0 is 0; another value and a missing option are differences, more options of ESP-IDF are none."""
    ours = {"CONFIG_A": "0", "CONFIG_B": "1", "CONFIG_C": '"x"', "CONFIG_D": "1"}
    theirs = {"CONFIG_A": "0x0", "CONFIG_B": "2", "CONFIG_C": '"x"', "CONFIG_E": "1"}
    assert set(config.differences(ours, theirs)) == {"CONFIG_B", "CONFIG_D"}


def test_numbers_of_the_firmware_are_those_that_are_compared() -> None:
    """The Mbed TLS numbers that tls_fault.c writes out are those in the list that idf-check compares."""
    text = (FIRMWARE_DIR / "components" / "mqtt_link" / "tls_fault.c").read_text("utf-8")
    codes = re.search(r"codes\[\] = \{([^}]*)\}", text)
    others = re.findall(r" (?:CERT_VERIFY_FAILED|FATAL_ALERT) = (0x\w+)", text)
    assert codes
    assert len(others) == 2
    written = {-int(code, 0) for code in [*codes[1].split(","), *others]}
    written |= {int(flag, 0) for flag in re.findall(r"BADCERT_\w+ = (0x\w+)", text)}
    constants = api.read_deliberate().constants
    assert written == {int(c["value"], 0) for c in constants if c["name"].startswith("MBEDTLS_")}


def test_each_deliberate_difference_has_a_reason() -> None:
    """A name without a reason would be a way around the check."""
    meant = api.read_deliberate()
    reasons = [*meant.headers.values(), *meant.names.values(), *meant.config.values()]
    assert all(len(reason.split()) >= 2 for reason in reasons)


def test_what_did_not_pass_is_a_failure(tmp_path: Path) -> None:
    """A case that failed, was skipped or could not be set up did not pass."""
    kinds = ("failure", "error", "skipped")
    cases = "".join(f'<testcase name="{kind}"><{kind} message="no"/></testcase>' for kind in kinds)
    suite = f'<testsuites><testsuite><testcase name="a"/>{cases}</testsuite></testsuites>'
    (tmp_path / "junit.xml").write_text(suite)
    assert on_linux.read_junit(tmp_path / "junit.xml") == (4, dict.fromkeys(kinds, "no"))


def test_exit_code_and_paths_of_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """0 is well, 4 not checked, 1 wrong; the machine's paths are not told."""
    report = Report({"$IDF_PATH": tmp_path})
    report.verdict("a", f"{PROJECT_ROOT}/x and {tmp_path}/y", {})
    codes = [report.exit_code()]
    report.not_checked("b", "no compiler")
    codes.append(report.exit_code())
    report.verdict("c", "1 file", {"x.c": "is wrong"})
    codes.append(report.exit_code())
    assert codes == [0, 4, 1]
    said = capsys.readouterr().out
    assert said.startswith("ok           a: ./x and $IDF_PATH/y\n")
    assert "- x.c: is wrong" in said


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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("alterations", ALTERATIONS)
def test_differences_are_found_and_named(
    tmp_path: Path, sides: Mapping[str, View], alterations: tuple[tuple[str, str, str], ...]
) -> None:
    """Return and parameter types, missing names, values, texts, macros' parameters, members at any depth."""
    for old, new, _name in alterations:
        alter(tmp_path, old, new)
    assert set(compare(tmp_path, sides).differences) == {name for _old, _new, name in alterations}


@pytest.mark.slow
def test_what_a_caller_cannot_tell_apart_is_the_same(tmp_path: Path, sides: Mapping[str, View]) -> None:
    """Another tag behind a type, other spellings of a type and a value, and a macro for a function."""
    alter(tmp_path, "typedef struct ours *handle_t;", "typedef struct theirs *handle_t;")
    alter(tmp_path, "int32_t id;", "signed int id;")
    alter(tmp_path, "(1u << 3)", "0x8")
    alter(tmp_path, "void stop(handle_t handle);", "#define stop(handle) ((void)(handle))")
    assert compare(tmp_path, sides).differences == {}


@pytest.mark.slow
def test_deliberate_differences_are_let_pass_while_they_are_some(
    tmp_path: Path, sides: Mapping[str, View]
) -> None:
    """A difference with a reason is counted, not reported; a reason without a difference is reported."""
    alter(tmp_path, "#define LIMIT 5", "#define LIMIT 6")
    result = compare(tmp_path, sides, {"LIMIT": "meant", "stop": "was meant once"})
    assert (result.deliberate, list(result.differences)) == (1, ["stop"])


@pytest.mark.slow
def test_a_header_that_cannot_be_included_is_a_difference(tmp_path: Path, sides: Mapping[str, View]) -> None:
    """One that is missing on the other side is named, and hides no other."""
    (tmp_path / "ours" / "more.h").write_text("void more(void);\n")
    alter(tmp_path, "#define LIMIT 5", "#define LIMIT 6")
    assert set(compare(tmp_path, sides).differences) == {"more.h", "LIMIT"}


@pytest.mark.slow
def test_only_the_header_itself_is_read(tmp_path: Path) -> None:
    """What a header gets from another header is not its own."""
    (tmp_path / "inner.h").write_text("#define INNER 1\nvoid inner(void);\n")
    outer = tmp_path / "outer.h"
    outer.write_text('#include "inner.h"\n#define OUTER 1\nvoid outer(void);\n')
    source = tmp_path / "source.c"
    source.write_text('#include "outer.h"\n')
    found = declared(("clang", "-w", f"-I{tmp_path}"), source, outer)
    assert (found.functions, list(found.macros)) == (["outer"], ["OUTER"])
