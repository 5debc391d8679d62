"""After the build: a rack need not measure an image that is the merge base's, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from hil.base.errors import ConfigError
from hil.boards.firmware.selection import SCHEMA
from hil.ci.legs import unchanged_image, write_skip
from hil.ci.plan import CiPlan

IDENTICAL = "identical"


def narrow(plan: CiPlan, comparisons: Mapping[str, str], to: Path) -> tuple[str, ...]:
    """Return the targets that a rack still has to measure; record in ``to`` why the others need not.

    ``comparisons`` maps an image to what `hil firmware compare` said of head and merge base. A target is left
    out where all of its images are the same. All stay where nothing was compared, and where what measures or
    judges has changed.
    """
    if not plan.may_leave_out_racks:
        return plan.racks
    same = [
        target
        for target in plan.racks
        if all(comparisons.get(image) == IDENTICAL for image in plan.images(target))
    ]
    for target in same:
        write_skip(to, f"rack-{target}", unchanged_image(plan, target))
    return tuple(target for target in plan.racks if target not in same)


def read_comparisons(folder: Path) -> dict[str, str]:
    """Read the JSON files of `hil firmware compare --json` below ``folder``. Raises ConfigError."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*.json")):
        try:
            found.update(_read(path))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(
                f"{path} is not what `hil firmware compare --json` prints: {error!r}."
            ) from error
    return found


def _read(path: Path) -> dict[str, str]:
    stored = json.loads(path.read_text(encoding="utf-8"))
    if stored["schema"] != SCHEMA:
        raise ValueError(f"schema {stored['schema']}")
    return {str(item["target"]): str(item["outcome"]) for item in stored["targets"]}
