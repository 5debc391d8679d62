# SPDX-License-Identifier: Apache-2.0
"""What a user wrote and hil does not read: variables of the environment, and files of a project.

Each is one line on stderr, before a command begins. An unknown key inside a file that is read is an error of
its reader.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from hil.base.paths import (
    CHECKOUT,
    PROJECT_ROOT,
    PROJECT_THRESHOLDS,
    TOOL_THRESHOLDS,
    is_of_suite,
    own_benches,
)
from hil.base.yamlvalue import did_you_mean

# what hil, its workflows and its actions read
VARIABLES = (
    "HIL_BASE_SHA", "HIL_BENCHES", "HIL_CI", "HIL_FIRMWARE_VERSION", "HIL_HEAD_SHA", "HIL_HELPER",
    "HIL_IMAGE", "HIL_INPUT_BASE", "HIL_INPUT_FIRMWARE_PATH", "HIL_INPUT_IDF_VERSION", "HIL_INPUT_MODE",
    "HIL_INPUT_RACK_LABEL", "HIL_INPUT_SUITE", "HIL_INPUT_TARGETS", "HIL_JOBS", "HIL_LEGS", "HIL_PUSHGATEWAY",
    "HIL_PUSHGATEWAY_PASSWORD", "HIL_PUSHGATEWAY_USER", "HIL_QEMU_RISCV32", "HIL_QEMU_XTENSA",
    "HIL_RACKS_OFF", "HIL_RACK_FILE", "HIL_REPORT_URL", "HIL_RUNNER_TOKEN", "HIL_SECRETS", "HIL_TRIGGER",
    "HIL_UNDECIDED_STATUS", "HIL_VENV", "HIL_WIFI_PSK", "HIL_WIFI_SSID",
)  # fmt: skip
# the workflows' own tests, and what a program of ours is given by hil alone
_INTERNAL = ("HIL_ACT_", "HIL_SLOW_DISK_", "HIL_KEY_LOG")
_SECRET = re.compile(r"_(PSK|PASS(WORD)?|TOKEN|SECRET|KEY)$")  # a rack file names such a variable as it likes
_MEASURED = (".c", ".probe.yaml")
_OF_BENCHES = (*_MEASURED, ".h", ".py", ".ini")
_SUFFIX = ".yaml"
_REFERENCE = Path("nightly", "reference.yaml")  # in the folder of thresholds: hil.history.nightly.reference


def unread(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each variable and for each file of the project that is not read."""
    yield from _variables(environment)
    if PROJECT_ROOT != CHECKOUT:
        benches = own_benches()
        yield from _files(PROJECT_ROOT / "hil", benches, PROJECT_THRESHOLDS)


def _variables(environment: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(environment):
        known = name in VARIABLES or name.startswith(_INTERNAL) or _SECRET.search(name)
        if name.startswith("HIL_") and not known:
            yield f"the variable {name}{did_you_mean(name, VARIABLES)}"


def _files(own: Path, benches: Path | None, thresholds: Path) -> Iterator[str]:
    yield from (f"{_name(path)}; call it {path.stem}{_SUFFIX}." for path in sorted(own.glob("*.yml")))
    of_tool = {path.stem for path in TOOL_THRESHOLDS.glob(f"*{_SUFFIX}")}
    limited = of_tool | {path.stem for path in _in(thresholds) if path.suffix == _SUFFIX}
    yield from _benches(_in(benches), limited)
    yield from _thresholds(thresholds, of_tool | {_stem(path) for path in _in(benches)})


def _benches(files: Iterable[Path], limited: set[str]) -> Iterator[str]:
    for path in files:
        if not path.name.endswith(_OF_BENCHES):
            yield f"{_name(path)}: of benches {', '.join(_OF_BENCHES)} are read."
        elif path.name.endswith(_MEASURED) and _stem(path) not in limited:
            hint = did_you_mean(_stem(path), limited)
            yield f"{_name(path)}, as there is no thresholds/{_stem(path)}{_SUFFIX}{hint}"


def _thresholds(folder: Path, benches: set[str]) -> Iterator[str]:
    for path in _in(folder):
        if path.suffix != _SUFFIX:
            yield f"{_name(path)}; call it {path.stem}{_SUFFIX}."
        elif path.stem not in benches and not (is_of_suite(path) and _has_test(path.stem)):
            yield f"{_name(path)}, as no bench is called {path.stem!r}{did_you_mean(path.stem, benches)}"
    for path in _in(folder / _REFERENCE.parent):
        if path.name != _REFERENCE.name:
            yield f"{_name(path)}; call it {_REFERENCE.name}."


_NO_TESTS = re.compile(r"\.|out$|build|managed_components$|node_modules$")  # folders of thousands of files


def _has_test(stem: str) -> bool:
    """Return whether a suite has the test file of a name, wherever that is in the project."""
    names = {f"test_{stem}.py", f"pytest_{stem}.py", f"{stem}_test.py"}
    for _, folders, files in os.walk(PROJECT_ROOT):
        if names & set(files):
            return True
        folders[:] = [name for name in folders if not _NO_TESTS.match(name)]
    return False


def _stem(path: Path) -> str:
    """Return the name of the bench that a file is of."""
    return path.name.partition(".")[0].removeprefix("test_")


def _in(folder: Path | None) -> Iterable[Path]:
    """Return the files of a folder that are meant to be read: no hidden ones, no notes, no backups."""
    if folder is None or not folder.is_dir():
        return []
    skipped = (".md", ".txt", "~", ".orig", ".bak", ".pyc")
    return [
        path
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.name.startswith(".") and not path.name.endswith(skipped)
    ]


def _name(path: Path) -> str:
    return path.relative_to(PROJECT_ROOT).as_posix()
