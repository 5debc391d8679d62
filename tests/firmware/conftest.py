# SPDX-License-Identifier: Apache-2.0
"""Boards of the kernel's benches: the firmware with sanitizers, and for a chip of one core."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.firmware import kernel_rig
from tests.firmware.kernel_rig import Board


@pytest.fixture(scope="module")
def board() -> Iterator[Board]:
    with kernel_rig.board(kernel_rig.firmware()) as running:
        yield running


@pytest.fixture
def one_core() -> Iterator[Board]:
    with kernel_rig.board(kernel_rig.build_for_one_core()) as running:
        yield running
