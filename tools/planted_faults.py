# SPDX-License-Identifier: Apache-2.0
"""Plant faults in the product, each alone, and see whether a test fails: `make faults-check`.

    python -m tools.planted_faults map [--processes N]
    python -m tools.planted_faults try [ID...] [--out FILE]

``map`` runs the tests once with a recorder at the place of each fault, and keeps which test files get there.
``try`` runs those files, the quickest first, until a test fails twice, and passes without the fault. Both
change files of this checkout while they run, so they refuse one that git does not call clean, and restore
each file.

Exit 1 where a fault of tools/planted_faults.yaml survived.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from hil.base.errors import ConfigError, exit_status, terminate
from hil.base.git import git
from hil.base.paths import PROJECT_ROOT

FAULTS = PROJECT_ROOT / "tools" / "planted_faults.yaml"
MAP = PROJECT_ROOT / "out" / "planted-faults" / "map.json"
RESULTS = MAP.with_name("results.jsonl")
_TEST = "PLANTED_FAULTS_TEST"  # the test file that runs, for its programs, too; hil warns of an unknown HIL_…
_LIMIT_S = 300.0  # a fault
_TEST_LIMIT_S = 100
_TOGETHER = 8  # test files by one pytest, which takes seconds to begin
_FAILED = (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)  # the second: a file is not imported
_PYTEST = (sys.executable, "-m", "pytest", "-p", "no:pytest_embedded", "-m", "not heavy")
# once a process and test file; a test's own environment may lack the variable, its folder the right to write
_RECORDER = """\
import os as _os
_key = {id!r} + "\\t" + _os.environ.get({variable!r}, "")
if _key not in _os.__dict__.setdefault("_planted", set()):
    _os._planted.add(_key)
    try:
        with open({path!r}, "a") as _file:
            _file.write(_key + "\\n")
    except OSError:
        pass
"""


@dataclass(frozen=True)
class Fault:
    """``old`` occurs once in ``file``, within a function; ``new`` in its place is the fault."""

    id: str
    file: str
    old: str
    new: str

    @property
    def path(self) -> Path:
        return PROJECT_ROOT / self.file

    def planted(self, text: str) -> str:
        """Return the file's text with the fault. Raises ConfigError where its place is not there."""
        if text.count(self.old) != 1:
            raise ConfigError(
                f"{self.file} holds {self.old!r} {text.count(self.old)} times, not once ({self.id}).",
                next_step=f"correct `old` of this fault in {FAULTS.name}.",
            )
        return text.replace(self.old, self.new)

    def recorded(self, text: str, record: Path) -> str:
        """Return the file's text with a recorder before the statement that the fault is in."""
        line = text.count("\n", 0, text.index(self.old)) + 1
        lines = text.splitlines(keepends=True)
        starts = [one for one in _statements(text, line) if not lines[one - 1].lstrip().startswith("elif ")]
        if not starts:
            raise ConfigError(f"{self.file}:{line}: the fault {self.id} is in no function.")
        at = max(starts) - 1
        indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        code = _RECORDER.format(id=self.id, variable=_TEST, path=str(record))
        lines[at:at] = [indent + each for each in code.splitlines(keepends=True)]
        return "".join(lines)


def _statements(text: str, line: int) -> Iterator[int]:
    """Yield the first lines of the statements in functions that ``line`` is part of."""
    functions = (one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.FunctionDef))
    for function in functions:
        for node in (part for statement in function.body for part in ast.walk(statement)):
            if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0):
                yield node.lineno


def load_faults(ids: Sequence[str] = ()) -> list[Fault]:
    """Return the faults, all or those named. Raises ConfigError where one is not there."""
    found = [Fault(**one) for one in YAML(typ="safe").load(FAULTS)["faults"]]
    if unknown := set(ids) - {one.id for one in found}:
        raise ConfigError(f"{FAULTS.name} has no fault {', '.join(sorted(unknown))}.")
    return [one for one in found if not ids or one.id in ids]


@contextmanager
def _changed(path: Path, text: str) -> Iterator[None]:
    """Have a file hold ``text`` meanwhile; its old time comes back with it, which bytecode goes by."""
    before, times = path.read_bytes(), path.stat()
    try:
        path.write_text(text, encoding="utf-8")
        yield
    finally:
        path.write_bytes(before)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Record which test file runs: ``map`` has pytest load this module."""
    os.environ[_TEST] = item.nodeid.partition("::")[0]


def make_map(processes: int) -> None:
    """Run the tests with recorders, whatever fails, and write MAP."""
    faults = load_faults()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        record, junit = Path(folder) / "record.tsv", Path(folder) / "junit.xml"
        record.touch()
        texts = {one.path: one.path.read_text(encoding="utf-8") for one in faults}
        for one in sorted(faults, key=lambda one: -texts[one.path].index(one.old)):  # from the end on
            texts[one.path] = one.recorded(texts[one.path], record)
        for path, text in texts.items():
            stack.enter_context(_changed(path, text))
        side_by_side = ("--numprocesses", str(processes), "--dist", "loadfile", "--no-loadscope-reorder")
        told = (f"--junitxml={junit}", "-o", "junit_family=xunit1", "--timeout", "600")
        _run([*_PYTEST, "-p", __spec__.name, "-q", *side_by_side, *told], timeout_s=None, shown=True)
        seconds: dict[str, float] = defaultdict(float)
        for case in ET.parse(junit).iter("testcase"):  # noqa: S314 - pytest's own file
            seconds[case.get("file", "")] += float(case.get("time", 0))
        reached = {tuple(line.split("\t")) for line in record.read_text().splitlines()}
    files = {one.id: sorted({file for id_, file in reached if id_ == one.id and file}) for one in faults}
    MAP.parent.mkdir(parents=True, exist_ok=True)
    MAP.write_text(json.dumps({"files": files, "seconds": seconds}, indent=1) + "\n", encoding="utf-8")


def _run(argv: Sequence[str], *, timeout_s: float | None, shown: bool = False) -> tuple[int | None, str]:
    """Return a program's status, None where it took too long and was killed, and what it said."""
    out = None if shown else subprocess.PIPE
    process = subprocess.Popen(
        argv, cwd=PROJECT_ROOT, stdout=out, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    with process:
        try:
            said = process.communicate(timeout=timeout_s)[0] or ""
        except BaseException as error:
            os.killpg(process.pid, signal.SIGTERM if shown else signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                return None, ""
            raise
    return process.returncode, said


def _tests_of(fault: Fault, known: Mapping[str, Mapping[str, object]]) -> list[str]:
    """Return the test files that reach a fault, then those that name its module; the quickest first.

    What is computed once and kept is recorded for the first test that needs it alone.
    """
    seconds: Mapping[str, float] = known["seconds"]  # type: ignore[assignment]
    reached: Sequence[str] = known["files"].get(fault.id, [])  # type: ignore[assignment]
    name = fault.file.removesuffix(".py").replace("/", ".")
    module = re.compile(rf"\b{re.escape(name if name.startswith('hil.') else f'hil.{name}')}\b")
    naming = [file for file in seconds if module.search(_text(PROJECT_ROOT / file))]
    more = [file for file in naming if file not in reached]
    there = [sorted(each, key=lambda file: seconds.get(file, 0.0)) for each in (reached, more)]
    return [file for file in (*there[0], *there[1]) if (PROJECT_ROOT / file).is_file()]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def attempt(fault: Fault, files: Sequence[str]) -> dict[str, str]:
    """Plant a fault and return what became of it: the test that caught it, or how it survived."""
    text = fault.planted(fault.path.read_text(encoding="utf-8"))
    ends, left = time.monotonic() + _LIMIT_S, list(files)
    until_one_fails = (*_PYTEST, "-p", "no:xdist", "-q", "-x", "--timeout", str(_TEST_LIMIT_S))
    while batch := left[:_TOGETHER]:
        with _changed(fault.path, text):
            status, said = _run([*until_one_fails, *batch], timeout_s=max(1.0, ends - time.monotonic()))
        if status is None:
            return _result(fault, "survived", f"{len(left)} of {len(files)} files left after {_LIMIT_S:g} s")
        summary = said.rpartition("short test summary info")[2]
        failed = re.search(r"^(?:FAILED|ERROR) ((.+?)(?:::.+?)?)(?: - .*)?$", summary, re.MULTILINE)
        if status in _FAILED and failed:
            again = [*until_one_fails, "--last-failed", "--last-failed-no-failures", "none", *batch]
            with _changed(fault.path, text):
                is_sure = _run(again, timeout_s=_LIMIT_S)[0] in _FAILED  # no test that fails now and then
            if is_sure and _run(again, timeout_s=_LIMIT_S)[0] == pytest.ExitCode.OK:
                return _result(fault, "caught", failed[1])
        left = [file for file in left if file != failed[2]] if failed else left[_TOGETHER:]
    return _result(fault, "survived" if files else "nothing maps", f"{len(files)} files")


def _result(fault: Fault, result: str, by: str) -> dict[str, str]:
    return {"id": fault.id, "result": result, "by": by}


def try_all(ids: Sequence[str], out: Path) -> int:
    """Try faults one after the other and write a JSON line each; return how many were not caught."""
    if not MAP.is_file():
        raise ConfigError(f"{MAP} is missing.", next_step="python -m tools.planted_faults map (20 minutes).")
    known = json.loads(MAP.read_text(encoding="utf-8"))
    faults, caught = load_faults(ids), 0
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w", encoding="utf-8") as lines:
        for fault in faults:
            found = attempt(fault, _tests_of(fault, known))
            caught += found["result"] == "caught"
            print(f"{fault.id}: {found['result']} ({found['by']})", flush=True)
            lines.write(json.dumps(found) + "\n")
            lines.flush()
    print(f"{caught} of {len(faults)} caught")
    return len(faults) - caught


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.planted_faults", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("map").add_argument("--processes", type=int, default=4)
    trying = commands.add_parser("try")
    trying.add_argument("ids", metavar="ID", nargs="*")
    trying.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, terminate)
    missed = 0

    def body() -> None:
        nonlocal missed
        if changes := git(PROJECT_ROOT, "status", "--porcelain"):
            raise ConfigError(
                f"this checkout has changes: {changes.splitlines()[0]}.", next_step="commit them."
            )
        if options.command == "map":
            make_map(options.processes)
        else:
            missed = try_all(options.ids, options.out)

    return exit_status(body) or int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
