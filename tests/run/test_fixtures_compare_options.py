# SPDX-License-Identifier: Apache-2.0
"""The options of a run that compares, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.run.campaign import Against, check_firmware, read_against
from hil.run.options import RunOptions


@pytest.mark.parametrize("minutes", [0.0, -1.0, math.nan, math.inf])
def test_a_budget_that_is_no_time_is_refused(minutes: float) -> None:
    """It is a number of minutes above 0; the way out names such a number."""
    with pytest.raises(ConfigError, match=rf"--budget {minutes:g}: .* above 0.*--budget 15"):
        read_against(RunOptions(base=Path("a"), budget=minutes))


def test_a_folder_without_firmware_is_refused(tmp_path: Path) -> None:
    """A wrong path is said with its option and the command that makes a bundle; a build is one."""
    for path, why in ((tmp_path / "none", "no such folder"), (tmp_path, "no bundle and no build is in it")):
        with pytest.raises(ConfigError, match=rf"--base {path}: {why}.*hil build") as caught:
            check_firmware(Against("base", path))
        assert caught.value.exit_code == 2
    (tmp_path / "flasher_args.json").touch()
    check_firmware(Against("base", tmp_path))


def test_what_is_compared() -> None:
    """Without options nothing is; a base and the firmware itself have a budget, a reference its boots."""
    assert read_against(RunOptions(boots=3)) is None
    base = read_against(RunOptions(base=Path("a")))
    assert base is not None
    assert (base.role, base.budget_s) == ("base", 900.0)
    itself = read_against(RunOptions(unchanged=True, budget=5.0))
    assert itself == Against("base", None, budget_s=300.0)
    assert itself.unchanged
    assert not base.unchanged
    check_firmware(itself)
    reference = read_against(RunOptions(reference=Path("a"), boots=4))
    assert reference is not None
    assert (reference.role, reference.boots) == ("reference", 4)
    assert math.isinf(reference.budget_s)
