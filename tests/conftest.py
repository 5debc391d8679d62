# SPDX-License-Identifier: Apache-2.0
"""What tests of the whole share: the firmware, built once, and small labs."""

from __future__ import annotations

import functools
import gc
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from hil.base.git import git
from hil.boards.firmware.build import build
from hil.virtual.privileges import can_take_fifo
from tests import costs
from tests.lab import ROOT, Lab, make_lab
from tests.turns import in_order, is_alone, turn

TEST_RUN = ROOT / "out" / "tests" / "last-run.json"  # tools/size.py reads it
STARTS_OR_BUILDS = {"virtual_firmware", "board_of"}  # fixtures: a build, if nothing has built it yet; a board
MANY = 100  # tests, from which on it is told what they cost
_BEGUN = time.monotonic()
_USED_S = pytest.StashKey[float]()

# a busy machine is slow to make examples too, which says nothing of what is tested
settings.register_profile("shared machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared machine")

# what this process writes need not survive a power cut: a third of the time of tests of stored runs
os.fsync = lambda _file: None


_real_time = functools.cache(can_take_fifo)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = in_order(items)
    for item in items:
        if STARTS_OR_BUILDS.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("needs_root"):
            item.add_marker(pytest.mark.skipif(os.geteuid() != 0, reason="only root can do it on a host"))
        if item.get_closest_marker("needs_real_time"):
            item.add_marker(pytest.mark.skipif(not _real_time(), reason="no real-time priority is permitted"))


def pytest_collection_finish() -> None:
    """Keep the tests themselves out of each later collection of garbage: they are there until the end."""
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what was tested and what it cost, for whoever keeps the output."""
    reports = [one for each in terminalreporter.stats.values() for one in each]
    ended = [one for one in reports if getattr(one, "when", "") == "teardown"]
    if len(ended) >= MANY:
        terminalreporter.section("processor time")
        terminalreporter.write_line("\n".join(costs.table(ended)))
    selected = config.option.markexpr or "all"
    commit = git(ROOT, "describe", "--always", "--dirty", "--abbrev=12")
    terminalreporter.write_line(f"tests: {selected}; commit: {commit}")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Keep what the whole of `make test` took, for `make size`: the workers have ended by now."""
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and config.option.markexpr == "not heavy"
    if whole and not hasattr(config, "workerinput"):
        run = {
            "commit": git(ROOT, "describe", "--always", "--dirty", "--abbrev=12"),
            "processor_s": costs.used_s(),
            "wall_s": time.monotonic() - _BEGUN,
        }
        TEST_RUN.parent.mkdir(parents=True, exist_ok=True)
        TEST_RUN.write_text(json.dumps(run) + "\n", encoding="utf-8")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    with turn(ROOT / "out" / "test-turns", alone=is_alone(item)):
        item.stash[_USED_S] = costs.used_s()
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "teardown":
        report.user_properties.append((costs.PROPERTY, costs.used_s() - item.stash[_USED_S]))
    return report


@pytest.fixture(scope="session")
def virtual_firmware() -> Path:
    """The firmware for virtual boards, built where anything changed."""
    return build("virtual-esp32", say=lambda _sentence: None)


@pytest.fixture
def new_lab(virtual_firmware: Path) -> Iterator[Callable[..., Lab]]:
    """Makes labs of some boards. Their folders have short names: Unix sockets allow 107 characters."""
    folders: list[Path] = []

    def make(boards: int, *, ports: Sequence[int] = ()) -> Lab:
        folders.append(Path(tempfile.mkdtemp(prefix="hil-lab-")))
        return make_lab(folders[-1], boards, firmware=virtual_firmware, ports=ports)

    yield make
    for folder in folders:
        shutil.rmtree(folder)
