# SPDX-License-Identifier: Apache-2.0
"""Compare how `hil build` reads ESP-IDF's examples with ESP-IDF's own tools, those in ``IDF_PATH``.

    python -m tools.examples_check.compare [PART_OF_A_PATH] [--sources-every N]

Options against kconfgen, partition tables against gen_esp32part.py; of each N-th example sources and include
folders against ESP-IDF's own configuration, with a compiler that does nothing (a minute each).
Exit codes: 1 something differs, 2 there is no ESP-IDF.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from hil.base.chips import CHIPS
from hil.base.errors import ConfigError
from hil.base.idf_project import is_idf_project, read_cmake
from hil.boards.firmware.partition_table import read_csv, to_binary
from hil.boards.firmware.product.kconfig import Kconfgen
from hil.boards.firmware.product.project import IdfProject, find_project

TIMEOUT_S = 300
LISTED = 3
NOT_COMPARED = "not compared"


def main() -> int:
    idf = Path(os.environ.get("IDF_PATH", "")).resolve()
    if not os.environ.get("IDF_PATH") or not (idf / "examples").is_dir():
        print("compare: IDF_PATH names no ESP-IDF with examples.", file=sys.stderr)
        return 2
    parser = argparse.ArgumentParser()
    parser.add_argument("part", nargs="?", default="")
    parser.add_argument("--sources-every", type=int, default=0)
    asked = parser.parse_args()
    part = asked.part
    projects = [path.parent for path in sorted(idf.glob("examples/**/CMakeLists.txt")) if part in str(path)]
    projects = [folder for folder in projects if is_idf_project(folder)]
    tables = [
        path
        for path in sorted(idf.glob("examples/**/*.csv"))
        if "partition" in path.name and part in str(path)
    ]
    tables += sorted((idf / "components" / "partition_table").glob("*.csv"))
    differing = _run("options", projects, lambda folder: compare_options(idf, folder), idf)
    differing += _run("tables", tables, lambda path: compare_tables(idf, path), idf)
    if asked.sources_every:
        some = projects[:: asked.sources_every]
        differing += _run("sources", some, lambda folder: compare_sources(idf, folder), idf)
    return 1 if differing else 0


def _run(what: str, paths: list[Path], compare: Callable[[Path], tuple[str, str]], idf: Path) -> int:
    counts: Counter[str] = Counter()
    for path in paths:
        verdict, why = compare(path)
        counts[verdict] += 1
        if verdict != "agrees":
            print(f"{what}: {path.relative_to(idf)}: {verdict}: {why.replace(f'{idf}/', '')}", flush=True)
    words = ", ".join(f"{counts[name]} {name}" for name in ("agrees", "differs", NOT_COMPARED))
    print(f"{what}: {words}", flush=True)
    return counts["differs"]


def compare_options(idf: Path, folder: Path) -> tuple[str, str]:
    """Return what kconfgen says of a project's options, beside what `hil build` reads."""
    try:
        chip, project = _for_a_chip(folder)
        with tempfile.TemporaryDirectory() as work:
            kconfgen = Kconfgen(Path(work), project, chip, {})
            kconfgen.host.write_text("", encoding="utf-8")  # ESP-IDF's and the project's alone
            files = project.settings(chip)
            list(kconfgen.read(files))
            ours = _lines(kconfgen.cmake)
            theirs = _lines(_kconfgen(idf, project, chip, files, Path(work)))
    except (ConfigError, subprocess.SubprocessError) as error:
        return NOT_COMPARED, " ".join(str(error).split())[:200]
    wrong = sorted(ours ^ theirs)
    return ("differs", "; ".join(wrong[:LISTED])) if wrong else ("agrees", "")


def _lines(cmake: Path) -> set[str]:
    return {line for line in cmake.read_text(encoding="utf-8").splitlines() if "CONFIGS_LIST" not in line}


def _for_a_chip(folder: Path) -> tuple[str, IdfProject]:
    """Return the project for the ESP32, else for the first chip that its components are for."""
    refused: ConfigError | None = None
    for chip in dict.fromkeys(("esp32", "esp32s3", "esp32c3", *CHIPS)):
        try:
            return chip, find_project(folder, chip=chip)
        except ConfigError as error:
            refused = refused or error
            if "is for" not in str(error):
                break
    raise refused or ConfigError(f"{folder} is for no chip.")


def _kconfgen(idf: Path, project: IdfProject, chip: str, files: list[Path], work: Path) -> Path:
    folders = [*sorted((idf / "components").iterdir()), *project.components]
    lists = {"COMPONENT_KCONFIGS": "kconfig", "COMPONENT_KCONFIGS_PROJBUILD": "kconfig.projbuild"}
    environment = {
        "IDF_TARGET": chip, "IDF_PATH": str(idf), "IDF_ENV_FPGA": "", "IDF_TOOLCHAIN": "gcc",
        "PROJECT_DIR": str(project.folder), "KCONFIG_REPORT_VERBOSITY": "quiet",
        "COMPONENT_SDKCONFIG_RENAMES": ";".join(map(str, _named(folders, "sdkconfig.rename", chip))),
        **{name: ";".join(map(str, _named(folders, ending))) for name, ending in lists.items()},
        **{f"{name}_SOURCE_FILE": str(work / f"{name}.in") for name in lists},
    }  # fmt: skip
    (work / "env").write_text(json.dumps(environment), encoding="utf-8")
    listed = ("--list-separator=semicolon", "--env-file", str(work / "env"))
    prepare = idf / "tools" / "kconfig_new" / "prepare_kconfig_files.py"
    defaults = [word for path in files if path.name != "sdkconfig" for word in ("--defaults", str(path))]
    generate = (
        "-m", "kconfgen", *listed, "--kconfig", str(idf / "Kconfig"), *defaults,
        "--env", "IDF_MINIMAL_BUILD=n", "--sdkconfig-rename", str(idf / "sdkconfig.rename"),
        "--config", str(project.folder / "sdkconfig"), "--output", "cmake", str(work / "theirs"),
    )  # fmt: skip
    for command in ((str(prepare), *listed), generate):
        done = subprocess.run(
            [sys.executable, *command], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        if done.returncode:
            raise ConfigError(f"{command[1]}: {done.stderr[-300:]}")
    return work / "theirs"


def _named(folders: list[Path], name: str, chip: str = "") -> Iterator[Path]:
    names = (name, f"{name}.{chip}") if chip else (name,)
    for folder in folders:
        if folder.is_dir():
            yield from (
                path for path in sorted(folder.iterdir()) if path.name.lower() in names and path.is_file()
            )


def compare_tables(idf: Path, path: Path) -> tuple[str, str]:
    """Return whether both make the same binary of a partition table, or both refuse it."""
    script = idf / "components" / "partition_table" / "gen_esp32part.py"
    with tempfile.TemporaryDirectory() as work:
        binary = Path(work, "table.bin")
        done = subprocess.run(
            [sys.executable, str(script), "--quiet", "--offset", "0xd000",
             "--primary-bootloader-offset", "0x1000", str(path), str(binary)],
            capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
        theirs = binary.read_bytes() if done.returncode == 0 else b""
    try:
        ours, said = to_binary(read_csv(path, table_offset=0xD000)), ""
    except ConfigError as error:
        ours, said = b"", str(error)
    if ours == theirs:
        return "agrees", ""
    their_word = re.sub(r"\s+", " ", done.stderr)[-160:] if not theirs else "takes it"
    return "differs", f"gen_esp32part: {their_word}; hil: {said or 'takes it'}"


def compare_sources(idf: Path, folder: Path) -> tuple[str, str]:
    """Return whether ESP-IDF compiles the sources, with the include folders, that `hil build` reads."""
    try:
        chip, project = _for_a_chip(folder)
        with tempfile.TemporaryDirectory() as work:
            theirs = _configured_by_idf(idf, project, chip, Path(work))
            options = Path(work, "config", "sdkconfig.cmake")
            ours = {
                component: _read_by_hil(project, component, chip, options) for component in project.components
            }
    except (ConfigError, subprocess.SubprocessError) as error:
        return NOT_COMPARED, " ".join(str(error).split())[:200]
    below = {path: what for path, what in theirs.items() if path in ours or path.is_relative_to(folder)}
    ours = {path: what for path, what in ours.items() if path in theirs}  # the component manager is off
    wrong = [
        f"{path}: {_named_paths(ours.get(path))} for {_named_paths(below.get(path))}"
        for path in sorted(ours.keys() | below.keys())
        if ours.get(path) != below.get(path)
    ]
    return ("differs", "; ".join(wrong[:LISTED])) if wrong else ("agrees", "")


Read = tuple[set[Path], set[Path]]  # sources and include folders


def _named_paths(read: Read | None) -> str:
    return " ".join(sorted(path.name for group in read or () for path in group)) or "nothing"


def _configured_by_idf(idf: Path, project: IdfProject, chip: str, work: Path) -> dict[Path, Read]:
    """Let ESP-IDF configure a project with a toolchain that does nothing; return what it builds."""
    tools = work / "tools"
    tools.mkdir()
    toolchain = (idf / "tools" / "cmake" / f"toolchain-{chip}.cmake").read_text(encoding="utf-8")
    for name in {*re.findall(r"(\w+(?:-\w+)*-elf-)", toolchain)}:
        for tool in ("gcc", "g++", "ar", "ranlib", "objcopy", "objdump", "size", "strip", "nm", "ld", "gdb"):
            (tools / f"{name}{tool}").symlink_to(Path(__file__).with_name("stand_in_compiler.sh"))
    forced = {f"CMAKE_{language}_COMPILER_{what}": value for language in ("C", "CXX")
              for what, value in (("FORCED", "1"), ("ID", "GNU"))}  # fmt: skip
    settings = {
        "IDF_TARGET": chip, "SDKCONFIG": work / "sdkconfig",
        "PYTHON": sys.executable, "PYTHON_DEPS_CHECKED": 1,
        "CMAKE_PROJECT_INCLUDE": Path(__file__).with_name("dump.cmake"), "ESP_PLATFORM": 1, **forced,
    }  # fmt: skip
    places = (tools, Path(sys.executable).parent, os.environ["PATH"])
    done = subprocess.run(
        ["cmake", "-S", str(project.folder), "-B", str(work), "-G", "Ninja",
         *(f"-D{name}={value}" for name, value in settings.items())],
        env={**os.environ, "PATH": os.pathsep.join(map(str, places)),
             "IDF_COMPONENT_MANAGER": "0", "IDF_SKIP_CHECK_SUBMODULES": "1",
             "IDF_PYTHON_CHECK_CONSTRAINTS": "no"},
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    dump = work / "dump.txt"
    if not dump.is_file():  # its sources need not be there: submodules may be missing
        found = re.search(r"CMake Error[^\n]*\n+(?:  [^\n]*\n)+", done.stderr)
        raise ConfigError(f"ESP-IDF does not configure it: {found[0] if found else done.stderr[-200:]}")
    read: dict[Path, Read] = {}
    for line in dump.read_text(encoding="utf-8").splitlines():
        folder, sources, include_dirs = line.split("|")
        read[Path(folder)] = (_paths(folder, sources, work), _paths(folder, include_dirs, work))
    return read


def _paths(folder: str, words: str, work: Path) -> set[Path]:
    paths = (Path(os.path.normpath(Path(folder, word))) for word in words.split(";") if word)
    return {path for path in paths if not path.is_relative_to(work)}


def _read_by_hil(project: IdfProject, component: Path, chip: str, options: Path) -> Read:
    """Return what a component's file registers with these options, as in ESP-IDF's last pass."""
    (found,) = read_cmake(project.folder, chip=chip, components=(component,), options=options).components
    sources, include_dirs = (";".join(found.says.get(key, ())) for key in ("sources", "include_dirs"))
    nowhere = Path("/nonexistent")
    return _paths(str(component), sources, nowhere), _paths(str(component), include_dirs, nowhere)


if __name__ == "__main__":
    sys.exit(main())
