# SPDX-License-Identifier: Apache-2.0
"""A project's options, as Espressif's kconfgen makes them of Kconfig, sdkconfig.defaults and sdkconfig.

ESP-IDF's own Kconfig files are those in IDF_PATH; without it firmware/host/product/Kconfig takes their place.
Options of firmware/host have its values first. Where no Kconfig file has an option, it gets an entry.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import RefusedSourcesError
from hil.base.paths import TOOL_FIRMWARE
from hil.boards.firmware.build import Say
from hil.boards.firmware.product.project import IdfProject

HOST = TOOL_FIRMWARE / "host"
# of the image, and of CMake (HIL_TICK_HZ)
APART = ("PARTITION_TABLE_", "ESPTOOLPY_", "ESP_CONSOLE_UART_BAUDRATE", "FREERTOS_HZ")
TIMEOUT_S = 120
_OF_CHIP = ("IDF_", "SOC_")  # no file sets them
_NAMED = 5  # of the options that a sentence lists
_SET = re.compile(r"^\s*(?:CONFIG_(\w+)=(.*?)|# CONFIG_(\w+) is not set)\s*$", re.MULTILINE)
_DEFINED = re.compile(r"^(?:#define CONFIG_(\w+) ?(.*)|/\* CONFIG_(\w+) is not set \*/)$", re.MULTILINE)
_SAID = re.compile(r"^(?:Loading defaults file (.*)\.\.\.|(?:NOTE|WARNING): (.*))$", re.MULTILINE)
_OF_NO_USE = re.compile(
    r"Kconfig (parser version|defaults policy):|Status:|.* line was updated to |.* has no value"
)
_COPY = re.compile(r" from .*?kconfgen_tmp\w+")  # of a file of options: kconfgen's own
_UNKNOWN = re.compile(r"unknown kconfig symbol '(\w+)' assigned to '(.*)' in ")
_MALFORMED = re.compile(r".*:(\d+): ignoring malformed line '(?!\ufeff#)(.*)'")
_TWICE = re.compile(r"(.*):\d+: (\w+) has multiple definitions ")
_CONFIG = re.compile(r"^\s*(?:menu)?config (\w+)", re.MULTILINE)
_UNDEFINED = re.compile(r"^undefined symbol ([A-Z]\w+):$")


@dataclass(frozen=True)
class Options:
    """``values`` are as C has them, without those that are n; ``cmake`` is a file that sets CONFIG_….

    ``of_host`` are options of firmware/host with another value than there, ``of_project`` those that the host
    does not have; None is n.
    """

    values: Mapping[str, str]
    cmake: str
    of_host: Mapping[str, str | None]
    of_project: Mapping[str, str | None]


def read_options(project: IdfProject, *, chip: str, say: Say, sdkconfig: Path | None = None) -> Options:
    """Return a project's options for ``chip``; those of ``sdkconfig`` come last.

    Raises RefusedSourcesError for what kconfgen cannot read; what it changes or ignores is said.
    """
    settings = [*project.settings(chip), *([sdkconfig] if sdkconfig else [])]
    headers = (HOST / "idf/include/sdkconfig.h", HOST / f"idf/target/{chip}/sdkconfig_target.h")
    host = {name: value for path in headers for name, value in _defined(path).items()}
    with tempfile.TemporaryDirectory() as work:
        kconfgen = Kconfgen(Path(work), project, chip, host)
        for note in dict.fromkeys(kconfgen.read(settings)):
            say(f"options: {note}")
        values = {name: value for name, value in _defined(kconfgen.header).items() if value is not None}
        cmake = kconfgen.cmake.read_text(encoding="utf-8")
    own = {name for name in values.keys() | host.keys() if name not in host or name.startswith(APART)}
    of_host = {name: values.get(name) for name in host.keys() - own if values.get(name) != host[name]}
    return Options(values, cmake, of_host, {name: values.get(name) for name in own})


def assigned(path: Path) -> dict[str, str]:
    """Return the options of a file ``sdkconfig`` or ``sdkconfig.defaults`` as written; n for "is not set"."""
    text = path.read_text(encoding="utf-8")
    return {found[1] or found[3]: found[2] or "n" for found in _SET.finditer(text)}


def options_header(values: Mapping[str, str | None]) -> str:
    """Return a header, to be included before all else, that sets options on top of the host's sdkconfig.h."""
    lines = ["#pragma once", '#include "sdkconfig.h"']
    for name, value in sorted(values.items()):
        lines += [f"#undef CONFIG_{name}", *([f"#define CONFIG_{name} {value}"] if value is not None else [])]
    return "\n".join(lines) + "\n"


def _defined(header: Path) -> dict[str, str | None]:
    """Return a header's options; None is not set."""
    return {found[1] or found[3]: found[2] for found in _DEFINED.finditer(header.read_text(encoding="utf-8"))}


class Kconfgen:
    """Runs kconfgen in ``work`` for a project and a chip, with the host's values first."""

    def __init__(self, work: Path, project: IdfProject, chip: str, host: Mapping[str, str | None]) -> None:
        idf = Path(os.environ.get("IDF_PATH", ""))
        self._idf = idf if os.environ.get("IDF_PATH") and (idf / "Kconfig").is_file() else None
        of_idf = [path for path in sorted(idf.glob("components/*")) if self._idf and path.is_dir()]
        self._folders = (*of_idf, *project.components)
        self._work, self._project, self._chip = work, project, chip
        self.host, self.header, self.cmake = work / "host", work / "sdkconfig.h", work / "sdkconfig.cmake"
        self._entries = work / "entries"
        values = {
            name: "n" if value is None else "y" if value == "1" else value
            for name, value in host.items() if not name.startswith(APART)
        }  # fmt: skip
        values |= assigned(HOST / "product" / "sdkconfig.defaults")
        self.host.write_text("".join(f"CONFIG_{name}={value}\n" for name, value in values.items()), "utf-8")
        has_entry = _CONFIG.findall((HOST / "product" / "Kconfig").read_text(encoding="utf-8"))
        self._without_idf = {name: value for name, value in values.items() if name not in has_entry}

    def read(self, settings: Sequence[Path]) -> Iterator[str]:
        """Write header and cmake; yield what there is to say. What no Kconfig file has gets an entry.

        Which these are is known before where there is no ESP-IDF and the project has no options of its name.
        """
        root = self._write_root()
        entries = {} if self._idf else self._without_idf
        said = self._run(root, settings, entries)
        twice = [found for _, note in said if (found := _TWICE.match(note))]
        there = {found[2] for found in twice if found[1] == str(self._entries)}
        unknown = [(path, found) for path, note in said if (found := _UNKNOWN.match(note))]
        of_host = {found[1]: found[2] for path, found in unknown if path == self.host}
        alone = {found[1]: found[2] for _, found in unknown if not self._idf and found[1] not in of_host}
        if there or of_host or alone:
            kept = {name: value for name, value in entries.items() if name not in there}
            said = self._run(root, settings, {**kept, **of_host, **alone})
        if self._idf:
            yield f"ESP-IDF's of {self._idf}, and the project's"
        if alone:
            more = f" and {len(alone) - _NAMED} more" if len(alone) > _NAMED else ""
            names = ", ".join(list(alone)[:_NAMED]) + more
            yield f"{names} of no Kconfig file here, without an ESP-IDF in IDF_PATH: taken as written"
        yield from self._notes(said)

    def _notes(self, said: Sequence[tuple[Path, str]]) -> Iterator[str]:
        """Yield what concerns the project; kconfgen repeats an unknown option with each file."""
        unknown: set[str] = set()
        for path, note in said:
            found = _UNKNOWN.match(note)
            if path == self.host or _OF_NO_USE.match(note) or (found and found[1] in unknown):
                continue
            if not self._idf or f"{self._idf}/components" not in note:  # what ESP-IDF's own files are told
                yield note
            unknown |= {found[1]} if found else set()

    def _run(
        self, root: Path, settings: Sequence[Path], entries: Mapping[str, str]
    ) -> list[tuple[Path, str]]:
        """Return each note of kconfgen with the file of options that it reads then."""
        self._entries.write_text("".join(_entry(*each) for each in entries.items()), encoding="utf-8")
        defaults = [word for path in (self.host, *settings) for word in ("--defaults", str(path))]
        command = [
            sys.executable, "-m", "kconfgen", "--list-separator", "semicolon", "--kconfig", str(root),
            *defaults, "--output", "header", str(self.header), "--output", "cmake", str(self.cmake),
        ]  # fmt: skip
        done = subprocess.run(
            command, env={**os.environ, **self._environment()}, cwd=self._work,
            capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
        if done.returncode:
            why = " ".join(done.stderr.rpartition("ERROR: ")[2].split())
            raise RefusedSourcesError(f"the options of {self._project.folder} cannot be read: {why}")
        return list(_with_file(done.stderr))

    def _write_root(self) -> Path:
        """Write the lists of Kconfig files that the root names; return the root."""
        for name, ending in (("kconfigs", "kconfig"), ("kconfigs_projbuild", "kconfig.projbuild")):
            files = [
                path for folder in self._folders for path in sorted(folder.iterdir())
                if path.name.lower() == ending
            ]  # fmt: skip
            files += [self._entries] if name == "kconfigs" else []
            (self._work / name).write_text("".join(f'source "{path}"\n' for path in files), encoding="utf-8")
        if self._idf:
            return self._idf / "Kconfig"
        root = self._work / "Kconfig"
        of_table = [HOST / "product" / "Kconfig", self._work / "kconfigs_projbuild", self._work / "kconfigs"]
        sources = "".join(f'source "{path}"\n' for path in of_table)
        root.write_text(f'mainmenu "project"\n{sources}', encoding="utf-8")
        return root

    def _environment(self) -> dict[str, str]:
        names = ("sdkconfig.rename", f"sdkconfig.rename.{self._chip}")
        folders = (*([self._idf] if self._idf else []), *self._folders)
        renames = [folder / name for folder in folders for name in names if (folder / name).is_file()]
        return {
            "IDF_TARGET": self._chip,
            "IDF_TOOLCHAIN": "gcc",
            "IDF_ENV_FPGA": "",
            "IDF_MINIMAL_BUILD": "n",
            "PROJECT_DIR": str(self._project.folder),
            "COMPONENT_KCONFIGS_SOURCE_FILE": str(self._work / "kconfigs"),
            "COMPONENT_KCONFIGS_PROJBUILD_SOURCE_FILE": str(self._work / "kconfigs_projbuild"),
            "COMPONENT_SDKCONFIG_RENAMES": ";".join(map(str, renames)),
            "KCONFIG_REPORT_VERBOSITY": "default",
            "KCONFIG_WARN_UNDEF": "n" if self._idf else "y",
            "COLUMNS": "10000",  # a note is one line
        }


def _with_file(said: str) -> Iterator[tuple[Path, str]]:
    """Yield kconfgen's notes, each with the file of options it is of. Raises RefusedSourcesError."""
    path = Path()
    for loaded, noted in _SAID.findall(said):
        path = Path(loaded) if loaded else path
        if malformed := _MALFORMED.match(noted):
            raise RefusedSourcesError(
                f"{path}:{malformed[1]}: {malformed[2]!a} is no option.",
                next_step="write CONFIG_NAME=value, # CONFIG_NAME is not set, or a comment.",
            )
        if noted:
            note = _COPY.sub("", noted)
            yield path, _UNDEFINED.sub(r"conditions ask for \1 of no Kconfig file here: n", note)


def _entry(name: str, value: str) -> str:
    """Return an option as Kconfig has it; one of the chip has no prompt, so that no file sets it."""
    kind = "string" if value.startswith('"') else "hex" if value.startswith("0x") else "int"
    kind = "bool" if value in ("y", "n") else kind
    prompt = "" if name.startswith(_OF_CHIP) else f' "{name}"'
    return f"config {name}\n    {kind}{prompt}\n    default {value}\n"
