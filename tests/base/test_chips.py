# SPDX-License-Identifier: Apache-2.0
"""The one list of chips, and what has to agree with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hil.base.chips import CHIPS, MODELLED
from hil.boards.firmware.image import layout_of
from hil.virtual.board import chips

TARGETS = Path(__file__).resolve().parents[2] / "firmware" / "host" / "idf" / "target"


def test_every_part_knows_the_same_chips() -> None:
    """The host build, the emulation and its images have each chip that is modelled and no other."""
    assert {path.name for path in TARGETS.iterdir()} == set(MODELLED)
    assert set(chips.CHIPS) == set(MODELLED)
    assert [layout_of(chip).chip for chip in MODELLED] == list(MODELLED)


@pytest.mark.parametrize("chip", MODELLED)
def test_cores_are_those_of_the_firmware(chip: str) -> None:
    """The plan, the emulation and the firmware's configuration have the same number of cores."""
    config = (TARGETS / chip / "sdkconfig_target.h").read_text("utf-8")
    found = re.search(r"^#define CONFIG_FREERTOS_NUMBER_OF_CORES (\d+)$", config, re.MULTILINE)
    assert found is not None
    assert int(found[1]) == CHIPS[chip].cores == chips.CHIPS[chip].cores
