# SPDX-License-Identifier: Apache-2.0
"""A virtual board for tests that flash, ask and switch boards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.virtual.virtual_board_rig import BoardProcess


@pytest.fixture(scope="session")
def board_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoardProcess]:
    with BoardProcess(tmp_path_factory.mktemp("b")) as running:
        yield running


@pytest.fixture(scope="module")
def process(board_process: BoardProcess) -> BoardProcess:
    """A running virtual board whose flash is empty when a module begins."""
    return board_process.renew({})
