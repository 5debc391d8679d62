# SPDX-License-Identifier: Apache-2.0
"""The mcrae bench as the host sees it: the real firmware on the host build, driven over its console."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from hil.base.errors import ConfigError
from hil.model import Scalar
from tests.firmware.kernel_rig import NOT_DONE, Board, measured

pytestmark = pytest.mark.slow

SCENARIOS = 6
MEMORY = 3


@pytest.mark.parametrize(
    "parameters", [{}, {"message_bytes": 1, "block_bytes": 16384}, {"message_bytes": 64, "block_bytes": 1}]
)
def test_a_round_is_each_scenario_once(board: Board, parameters: Mapping[str, Scalar]) -> None:
    """Rows come round by round, and each scenario is done and takes time, whatever the sizes are."""
    series = board.run("mcrae", count=20, warmup=3, **parameters)
    assert (series.rows, series.warmup_rows) == (23 * SCENARIOS, 3 * SCENARIOS)
    assert series.columns["scenario"] == tuple(range(SCENARIOS)) * 23
    assert NOT_DONE not in series.columns["outcome"]
    for scenario in set(range(SCENARIOS)) - {MEMORY}:  # a host's heap is quicker than its clock can tell
        assert all(row["corrected_ns"] > 0 for row in measured(series, {"scenario": scenario}))


@pytest.mark.parametrize("key", ["message_bytes", "block_bytes"])
def test_sizes_have_bounds(board: Board, key: str) -> None:
    """A message that no queue of ours holds, a block that no heap of a chip has, is refused."""
    with pytest.raises(ConfigError, match=f"bad-parameter key={key}"):
        board.run("mcrae", **{key: 16385})


def test_one_core_is_enough(one_core: Board) -> None:
    """All scenarios are of tasks on one core, so a chip with one core has them too."""
    series = one_core.run("mcrae", count=20)
    assert {row["scenario"] for row in measured(series)} == set(range(SCENARIOS))


def test_abort_ends_a_run_soon_and_nothing_is_left_behind(board: Board) -> None:
    """After a run cut short and ten whole ones as much memory is free as after the first."""
    board.check_that_nothing_is_left_behind("mcrae")
