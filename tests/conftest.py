"""What tests of the whole share: the firmware, built once, and small labs."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hil.build import build
from tests.lab import Lab, make_lab


@pytest.fixture(scope="session")
def virtual_firmware() -> Path:
    """The firmware for virtual boards, built where anything changed."""
    return build("virtual-esp32", say=lambda _sentence: None)


@pytest.fixture
def new_lab(virtual_firmware: Path) -> Iterator[Callable[[int], Lab]]:
    """Makes labs of some boards. Their folders have short names: Unix sockets allow 107 characters."""
    folders: list[Path] = []

    def make(boards: int) -> Lab:
        folders.append(Path(tempfile.mkdtemp(prefix="hil-lab-")))
        return make_lab(folders[-1], boards, firmware=virtual_firmware)

    yield make
    for folder in folders:
        shutil.rmtree(folder)
