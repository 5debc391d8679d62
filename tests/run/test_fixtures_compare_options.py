# SPDX-License-Identifier: Apache-2.0
"""The options of a run that compares, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hil.base.errors import ConfigError
from hil.run.campaign import Against, check_firmware, read_against


def options(**given: Any) -> SimpleNamespace:
    usual = {
        "base": None,
        "reference": None,
        "unchanged": False,
        "boots": None,
        "budget": None,
        "across_idf": False,
    }
    return SimpleNamespace(**{**usual, **given})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"base": Path("a"), "reference": Path("b")}, ["--base and --reference", "leave one of them out"]),
        ({"base": Path("a"), "unchanged": True}, ["--base and --unchanged", "leave one of them out"]),
        ({"unchanged": True, "boots": 3}, ["--boots 3 with --unchanged"]),
        ({"base": Path("a"), "boots": 3}, ["--boots 3 with --base", "--budget", "--reference"]),
        ({"budget": 5.0}, ["--budget 5", "add --base"]),
        ({"reference": Path("b"), "budget": 5.0}, ["--budget 5", "add --base"]),
        ({"base": Path("a"), "budget": 0.0}, ["--budget 0", "above 0"]),
        ({"base": Path("a"), "budget": math.nan}, ["--budget nan", "above 0"]),
    ],
)
def test_what_contradicts_itself_is_refused(given: dict[str, Any], words: list[str]) -> None:
    """A configuration error that names the options and the way out."""
    with pytest.raises(ConfigError) as caught:
        read_against(options(**given))
    for word in words:
        assert word in str(caught.value)


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
    assert read_against(options(boots=3)) is None
    base = read_against(options(base=Path("a")))
    assert base is not None
    assert (base.role, base.budget_s) == ("base", 900.0)
    itself = read_against(options(unchanged=True, budget=5.0))
    assert itself == Against("base", None, budget_s=300.0)
    assert itself.unchanged
    assert not base.unchanged
    check_firmware(itself)
    reference = read_against(options(reference=Path("a"), boots=4))
    assert reference is not None
    assert (reference.role, reference.boots) == ("reference", 4)
    assert math.isinf(reference.budget_s)
