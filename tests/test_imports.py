# SPDX-License-Identifier: Apache-2.0
"""Who may import whom, and the three files that share a stem."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# The floors of the house, the ground first. What stands on a floor imports that floor and those before it.
FLOORS = (
    "hil.model",
    "hil.base",
    "hil.samples",
    "hil.store",
    "hil.metrics",
    "hil.thresholds",
    "hil.gate",
    "hil.history",
    "hil.wire",
    "hil.session",
    "hil.trace",
    "hil.boards",
    "hil.virtual",
    "hil.network",
    "hil.probe",
    "hil.run",
    "hil.suite",
    "hil.ci",
    "hil.reports",
    "hil.fixtures",
    "hil.cli",
)
FLOOR_OF = {room: number for number, room in enumerate(FLOORS)}
DOORS = {"hil.__main__"}  # what starts the command
FOLDERS = ("hil", "fixtures", "reports")
ARCHITECTURE = ROOT / "docs" / "explain" / "architecture.md"


@functools.cache
def imports(path: Path) -> tuple[tuple[int, str], ...]:
    """Return line and module of every import in a file, those inside functions too."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return tuple(found)


def sources(folder: str) -> list[Path]:
    found = sorted((ROOT / folder).rglob("*.py"))
    assert found, f"{folder} holds no module"
    return [path for path in found if "hil/benches/" not in str(path)]


def room_of(path: Path) -> str:
    """Return a file's room: hil/run/boot_loop.py stands in hil.run, reports/finish.py in hil.reports."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:2]) if parts[0] == "hil" else f"hil.{parts[0]}"


def offences(folder: str, forbidden: set[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in sources(folder)
        for line, name in imports(path)
        if name.partition(".")[0] in forbidden
    ]


def test_each_floor_imports_what_is_below_it_only() -> None:
    """No room imports one above it: model, base, store, … reports, fixtures, cli. There is no exception."""
    wrong = []
    for path in (found for folder in FOLDERS for found in sources(folder)):
        room = room_of(path)
        if room in DOORS or room == "hil.__init__":
            continue
        for line, name in imports(path):
            other = ".".join(name.split(".")[:2])
            if other in FLOOR_OF and FLOOR_OF[other] > FLOOR_OF[room]:
                wrong.append(f"{path.relative_to(ROOT)}:{line} ({room}) imports {name}")
    assert not wrong


def test_every_module_stands_on_a_floor() -> None:
    """Nothing is on no floor, where it could import anything, and no floor is named that is gone."""
    found = {room_of(path) for folder in FOLDERS for path in sources(folder)}
    assert found - DOORS - {"hil.__init__"} == set(FLOORS)


def test_reports_and_fixtures_have_one_name() -> None:
    """They are hil.reports and hil.fixtures, here as in an installed package, or they would exist twice."""
    other = re.compile(r"^\s*(?:from|import) (?:fixtures|reports)\b", re.MULTILINE)
    paths = [path for folder in (*FOLDERS, "tests", "tools") for path in sources(folder)]
    assert not [str(path) for path in paths if other.search(path.read_text(encoding="utf-8"))]
    for name in ("fixtures", "reports"):
        assert (ROOT / "hil" / name).resolve() == ROOT / name


def test_the_page_of_the_architecture_names_these_floors() -> None:
    """docs/explain/architecture.md lists the same floors in the same order."""
    text = ARCHITECTURE.read_text(encoding="utf-8")
    assert tuple(re.findall(r"^\| `(hil\.\w+)` \|", text, re.MULTILINE)) == FLOORS


def test_the_picture_of_the_house_has_these_floors() -> None:
    """docs/img/house.svg, which the page shows, has the same floors, each above those that it imports."""
    assert "../img/house.svg" in ARCHITECTURE.read_text(encoding="utf-8")
    picture = (ROOT / "docs" / "img" / "house.svg").read_text(encoding="utf-8")
    heights = {room: int(y) for y, room in re.findall(r'class="room" x="\d+" y="(\d+)">([\w.]+)<', picture)}
    assert tuple(sorted(heights, key=lambda room: -heights[room])) == FLOORS


def test_only_fixtures_and_benches_know_pytest() -> None:
    """The library works without pytest and tests."""
    assert not offences("hil", {"pytest", "_pytest", "pytest_embedded", "tests", "tools"})
    assert not offences("reports", {"pytest", "_pytest", "pytest_embedded", "tests", "tools"})


def test_no_program_is_started_to_reach_what_can_be_imported() -> None:
    """The command reaches the reports by an import.

    hil.ci starts one: a process without a token and with a deadline makes a page of what a fork's code wrote.
    """
    found = [path for path in sources("hil") if re.search(r'"-m", "(hil\.)?reports', path.read_text("utf-8"))]
    assert [str(path.relative_to(ROOT)) for path in found] == ["hil/ci/comment_page.py"]


def test_pytest_embedded_is_known_in_one_place() -> None:
    """Only the package fixtures/board knows pytest-embedded, so another console needs one package."""
    found = offences("fixtures", {"pytest_embedded"})
    wrong = [word for word in found if not word.startswith("fixtures/board/")]
    assert not wrong


def test_fixtures_call_reports_in_one_place() -> None:
    """Only fixtures/reporting.py calls reports; what a run keeps of published studies is theirs to say."""
    calls = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in sources("fixtures")
        for line, name in imports(path)
        if name.startswith("hil.reports") and not name.startswith("hil.reports.studies.loader")
    ]
    assert calls
    assert not [word for word in calls if not word.startswith("fixtures/reporting.py:")]


def test_a_bench_is_three_files_of_one_stem() -> None:
    """benches/<stem>.c, test_<stem>.py and thresholds/<stem>.yaml exist together or not at all."""
    firmware = {path.stem for path in (ROOT / "firmware/components/benches").glob("*.c")}
    tests = {path.stem.removeprefix("test_") for path in (ROOT / "hil/benches").glob("test_*.py")}
    thresholds = {path.stem for path in (ROOT / "thresholds").glob("*.yaml")}
    assert firmware
    assert firmware == tests == thresholds


@pytest.mark.slow
def test_a_run_starts_without_what_only_its_end_needs() -> None:
    """Neither the reports nor scipy.stats, each half a second, are imported before the first board."""
    late = "('hil.reports.finish', 'scipy.stats', 'otava', 'perfetto')"
    code = f"""import importlib, sys, conftest
for plugin in conftest.pytest_plugins:
    importlib.import_module(plugin)
print(*(name for name in {late} if name in sys.modules))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert not done.stdout.split()


@pytest.mark.slow
def test_a_usage_error_waits_for_no_numbers() -> None:
    """`hil --help` and any command's wrong option import neither numpy nor scipy nor what makes reports."""
    heavy = "('numpy', 'scipy', 'pandas', 'matplotlib', 'allure_commons', 'otava', 'perfetto')"
    code = f"""import sys
from hil.cli.app import COMMANDS, run_command
statuses = [run_command(["--help"]), *(run_command([command, "--no-such"]) for command in COMMANDS)]
print("found:", *(name for name in {heavy} if name in sys.modules))
print("statuses:", statuses[0], *set(statuses[1:]))
from hil.base.numeric import np
np.pi
print("control:", *(name for name in {heavy} if name in sys.modules))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stderr.count("No such option") >= 20
    assert done.stdout.splitlines()[-3:] == ["found:", "statuses: 0 2", "control: numpy"]
