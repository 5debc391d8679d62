# SPDX-License-Identifier: Apache-2.0
"""Virtual boards and builds that tests share: a board starts once, and each test gets it back as new."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.virtual.virtual_board_rig import BoardProcess, flash_files, make_build


@pytest.fixture(scope="session")
def build_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Build the small application for a chip, with a tag that it says; each once."""
    folder = tmp_path_factory.mktemp("apps")

    @functools.cache
    def build(chip: str, tag: str = "one") -> Path:
        return make_build(folder, chip=chip, tag=tag, padding_bytes=100_000)

    return build


@pytest.fixture(scope="session")
def board_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], BoardProcess]]:
    """Start the board of a chip when a test first asks for it; all end with the session."""
    folder = tmp_path_factory.mktemp("boards")
    with ExitStack() as stack:

        @functools.cache
        def board(chip: str) -> BoardProcess:
            return stack.enter_context(BoardProcess(folder / chip, "--chip", chip))

        yield board


@pytest.fixture
def chip() -> str:
    """The chip of a test's board; tests name theirs as a parameter."""
    return "esp32"


@pytest.fixture
def build(chip: str, build_of: Callable[..., Path]) -> Path:
    return build_of(chip)


@pytest.fixture
def board(chip: str, build: Path, board_of: Callable[[str], BoardProcess]) -> BoardProcess:
    """The chip's shared board without a fault, flashed with the build for it, which runs."""
    board = board_of(chip).renew(flash_files(build))
    board.wait_for(lambda state: state["app_pid"])
    return board
