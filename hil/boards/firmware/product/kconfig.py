# SPDX-License-Identifier: Apache-2.0
"""A project's options, as Espressif's esp-idf-kconfig reads them from Kconfig and sdkconfig.

ESP-IDF's own Kconfig files are those in IDF_PATH. Without it a table has ESP-IDF's options with the values of
the host: firmware/host/product/Kconfig, and an entry for each other option that the host has or a file sets.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import esp_kconfiglib.core
import esp_kconfiglib.deprecated
from esp_kconfiglib.core import BOOL, HEX, STRING, Kconfig, KconfigError

from hil.boards.firmware.failure import RefusedSourcesError

NAMED = 5  # of the options that a sentence lists
_SET = re.compile(r"^\s*(?:CONFIG_(\w+)=(.*?)|# CONFIG_(\w+) is not set)\s*$", re.MULTILINE)
_DEPRECATED = re.compile(r"^# Deprecated options.*?^# End of deprecated options", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"[A-Z][A-Z0-9_]+")
_MALFORMED = re.compile(r"(\S+?:\d+): ignoring malformed line (.*)")


@dataclass(frozen=True)
class Options:
    """``values`` of all options that have one, ``texts`` the names of strings.

    ``given`` are options that a file sets or the project's own Kconfig files define.
    """

    values: Mapping[str, str]
    texts: frozenset[str]
    given: frozenset[str]


@dataclass(frozen=True)
class Table:
    """What the host says of ESP-IDF's options: ``fixed`` by the chip, ``values``, and
    ``kconfig``, a file of its choices."""

    fixed: Mapping[str, str]
    values: Mapping[str, str]
    kconfig: Path


def idf_with_kconfig() -> Path | None:
    """Return the ESP-IDF in IDF_PATH where it has Kconfig files."""
    idf = Path(os.environ.get("IDF_PATH", ""))
    return idf if os.environ.get("IDF_PATH") and (idf / "Kconfig").is_file() else None


def read_options(
    folders: Sequence[Path],
    settings: Sequence[Path],
    table: Table,
    *,
    project: Path,
    chip: str,
    say: Callable[[str], object],
) -> Options:
    """Return the options of the components in ``folders``, with the values of ``settings`` one after another.

    Raises RefusedSourcesError for what esp-idf-kconfig cannot read; what it changes or ignores is said.
    """
    idf = idf_with_kconfig()
    notes = _Notes()
    try:
        with (
            tempfile.TemporaryDirectory() as work,
            _environment(_variables(Path(work), idf, project, chip)),
            _logged(notes),
        ):
            options = _Reader(Path(work), idf, folders, table, notes).read(settings, chip)
    except (KconfigError, OSError, RuntimeError) as error:
        sentence = f"the options of {project} cannot be read: {_one_line(str(error))}"
        raise RefusedSourcesError(sentence) from error
    if malformed := next(filter(None, map(_MALFORMED.search, notes)), None):
        raise RefusedSourcesError(
            f"{malformed[1]}: {malformed[2]} is no option.",
            next_step="write CONFIG_NAME=value, # CONFIG_NAME is not set, or a comment.",
        )
    of_idf = (
        f"{idf}{os.sep}components" if idf else os.devnull
    )  # what ESP-IDF's own files are told, is its matter
    for note in dict.fromkeys(note for note in notes if of_idf not in note):
        say(f"options: {note}")
    return options


class _Notes(list[str]):
    """Stands in for esp-idf-kconfig's logger: whatever the level, it is noted."""

    def __getattr__(self, level: str) -> Callable[..., None]:
        return lambda text, **_: self.append(_one_line(str(text).replace("\\[", "[")))


@contextlib.contextmanager
def _logged(notes: _Notes) -> Iterator[None]:
    modules = (esp_kconfiglib.core, esp_kconfiglib.deprecated)
    before = [module.log for module in modules]
    for module in modules:
        module.log = notes
    try:
        yield
    finally:
        for module, log in zip(modules, before, strict=True):
            module.log = log


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _variables(work: Path, idf: Path | None, project: Path, chip: str) -> dict[str, str]:
    return {
        "IDF_TARGET": chip,
        "IDF_PATH": str(idf or os.environ.get("IDF_PATH", "")),
        "PROJECT_DIR": str(project),
        "IDF_TOOLCHAIN": "gcc",
        "IDF_ENV_FPGA": "",
        "IDF_MINIMAL_BUILD": "n",
        "KCONFIG_PROMPTLESS_NO_WARN": "IDF_TARGET",
        "COMPONENT_KCONFIGS_SOURCE_FILE": str(work / "kconfigs.in"),
        "COMPONENT_KCONFIGS_PROJBUILD_SOURCE_FILE": str(work / "kconfigs_projbuild.in"),
    }


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class _Reader:
    """Reads a tree of Kconfig files in ``work``, whose root is ESP-IDF's or has the table."""

    def __init__(
        self, work: Path, idf: Path | None, folders: Sequence[Path], table: Table, notes: list[str]
    ) -> None:
        self._work, self._idf, self._folders, self._table, self.notes = work, idf, folders, table, notes
        self._components = sorted(path for path in idf.glob("components/*") if path.is_dir()) if idf else []

    def read(self, settings: Sequence[Path], chip: str) -> Options:
        own = self._names_of_project()
        given = {name: value for path in settings for name, value in assigned(path).items()}
        if self._idf:
            self._write_sources((*self._components, *self._folders))
            root = self._idf / "Kconfig"
            self.notes.append(f"ESP-IDF's of {self._idf}, and the project's")
        else:
            renames = " ".join(path.read_text(encoding="utf-8") for path in self._renames(chip))
            old = {name for name in given if re.search(rf"^CONFIG_{name}\s", renames, re.MULTILINE)}
            root = self._root_with_table(own | old, given)
        kconfig = Kconfig(str(root), parser_version=1, print_report=False)
        kconfig.load_rename_files([str(path) for path in self._renames(chip)])
        if self._idf:
            self._load(kconfig, self._written("host", self._table.values))
        for path in settings:
            self._load(kconfig, path)
        self._tell_unknown(kconfig)
        renamed = {kconfig.deprecated_options.get_new_option(name) or name for name in given}
        symbols = {symbol.name: symbol for symbol in kconfig.unique_defined_syms}
        return Options(
            {name: text for name, symbol in symbols.items() if (text := _value(symbol)) is not None},
            frozenset(name for name, symbol in symbols.items() if symbol.orig_type == STRING),
            frozenset((own | renamed) & symbols.keys()),
        )

    def _names_of_project(self) -> set[str]:
        self._write_sources(self._folders)
        root = self._work / "Kconfig"
        root.write_text(f'mainmenu "project"\n{self._sourced()}', encoding="utf-8")
        return {symbol.name for symbol in Kconfig(str(root), parser_version=1).unique_defined_syms}

    def _sourced(self) -> str:
        return "".join(f'source "{self._work / name}.in"\n' for name in ("kconfigs_projbuild", "kconfigs"))

    def _write_sources(self, folders: Sequence[Path]) -> None:
        for name, ending in (("kconfigs", "kconfig"), ("kconfigs_projbuild", "kconfig.projbuild")):
            files = [
                path for folder in folders for path in sorted(folder.iterdir())
                if path.name.lower() == ending and path.is_file()
            ]  # fmt: skip
            text = "".join(f'source "{path}"\n' for path in files)
            (self._work / f"{name}.in").write_text(text, encoding="utf-8")

    def _root_with_table(self, own: set[str], given: Mapping[str, str]) -> Path:
        asked = self._table.kconfig.read_text(encoding="utf-8")
        known = own | set(re.findall(r"^\s*config (\w+)", asked, re.MULTILINE))
        host = {**self._table.values, **self._table.fixed}
        lines = [
            _entry(name, value, settable=name not in self._table.fixed)
            for name, value in host.items()
            if name not in known
        ]
        alone = {name: value for name, value in given.items() if name not in known | host.keys()}
        lines += [_entry(name, value, settable=True) for name, value in alone.items()]
        if alone:
            self.notes.append(
                f"{_listed(alone)} of no Kconfig file here, without an ESP-IDF in IDF_PATH: taken as written"
            )
        root = self._work / "Kconfig"
        root.write_text(f'mainmenu "project"\n{asked}{"".join(lines)}{self._sourced()}', encoding="utf-8")
        return root

    def _renames(self, chip: str) -> Iterator[Path]:
        for folder in (*([self._idf] if self._idf else []), *self._components, *self._folders):
            for name in ("sdkconfig.rename", f"sdkconfig.rename.{chip}"):
                if (folder / name).is_file():
                    yield folder / name

    def _written(self, name: str, values: Mapping[str, str]) -> Path:
        path = self._work / name
        path.write_text("".join(f"CONFIG_{key}={value}\n" for key, value in values.items()), "utf-8")
        return path

    def _load(self, kconfig: Any, path: Path) -> None:
        """Load a file as kconfgen does: an empty value is n."""
        text = path.read_text(encoding="utf-8-sig")
        (self._work / path.name).write_text(re.sub(r"=[ \t\r]*$", "=n", text, flags=re.MULTILINE), "utf-8")
        kconfig.load_config(str(self._work / path.name), replace=False, print_report=False)
        missing = dict(kconfig.missing_syms).keys() & assigned(path).keys()
        if missing and path.parent != self._work:
            self.notes.append(f"{path} sets {_listed(sorted(missing))} that no Kconfig file has: not used")

    def _tell_unknown(self, kconfig: Any) -> None:
        """Say which options the project's conditions ask for and nobody defines: they are n."""
        named = {name for name, symbol in kconfig.syms.items() if not symbol.nodes and _NAME.fullmatch(name)}
        asked = " ".join(
            path.read_text(encoding="utf-8")
            for folder in self._folders
            for path in folder.glob("[Kk]config*")
        )
        unknown = sorted(name for name in named if re.search(rf"\b{name}\b", asked))
        if unknown:
            self.notes.append(f"conditions ask for {_listed(unknown)} of no Kconfig file here: n")


def _listed(names: Sequence[str] | Mapping[str, str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(list(names)[:NAMED]) + more


def assigned(path: Path) -> dict[str, str]:
    """Return what a file ``sdkconfig`` or ``sdkconfig.defaults`` sets, as written; n for what is not set."""
    text = _DEPRECATED.sub("", path.read_text(encoding="utf-8-sig"))
    return {found[1] or found[3]: found[2] or "n" for found in _SET.finditer(text)}


def _entry(name: str, value: str, *, settable: bool) -> str:
    prompt = f' "{name}"' if settable else ""
    return f"config {name}\n    {_kind(value)}{prompt}\n    default {value}\n"


def _kind(value: str) -> str:
    if value.startswith('"'):
        return "string"
    return "bool" if value in ("y", "n") else "hex" if value.startswith("0x") else "int"


def _value(symbol: Any) -> str | None:
    """Return an option's value as sdkconfig has it; None where it has none, y or n of a bool."""
    if symbol.orig_type == BOOL:
        return str(symbol.str_value)
    if not symbol.config_string:
        return None
    text = str(symbol.str_value)
    return f"0x{text}" if symbol.orig_type == HEX and text and not text.lower().startswith("0x") else text
