# SPDX-License-Identifier: Apache-2.0
"""Tests on several processes: a file's tests together, long files first, and what measures time by itself.

pytest-xdist hands out whole files (``--dist loadfile``), so that what a module sets up is set up once. A test
marked ``alone`` waits until no other test runs, and none begins before it has ended.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

# What takes longest begins first, or one process would end it while the others have nothing left to do.
LONG_FIRST = (
    "test_host_programs",
    "test_end_to_end_interrupted",
    "test_gate_end_to_end",
    "test_product_build",
    "test_run_emulated",
    "test_end_to_end",
    "test_package",
    "test_site_build",
    "test_site_browser",
    "test_mqtt_peers",
    "test_trend_browser",
    "test_places",
    "test_workflows_act",
)


def in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the items with the long files first and those of which a test runs alone last."""
    alone = {item.path for item in items if is_alone(item)}

    def rank(item: pytest.Item) -> int:
        if item.path in alone:
            return len(LONG_FIRST) + 1
        return LONG_FIRST.index(item.path.stem) if item.path.stem in LONG_FIRST else len(LONG_FIRST)

    return sorted(items, key=rank)


def is_alone(item: pytest.Item) -> bool:
    return item.get_closest_marker("alone") is not None


@contextmanager
def turn(folder: Path, *, alone: bool) -> Iterator[None]:
    """Hold a test's turn among the processes that test one checkout; ``folder`` holds the two locks.

    Whoever wants to be alone keeps the door shut while waiting for those inside, so that waiting has an end.
    The locks are POSIX's, a process's own: what a test forks and leaves behind would keep flock's for ever.
    """
    folder.mkdir(parents=True, exist_ok=True)
    door = os.open(folder / "door.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
    room = os.open(folder / "room.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.lockf(door, fcntl.LOCK_EX)
        fcntl.lockf(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.lockf(door, fcntl.LOCK_UN)
        yield
    finally:
        os.close(door)
        os.close(room)
