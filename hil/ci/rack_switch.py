# SPDX-License-Identifier: Apache-2.0
"""The variable HIL_RACKS_OFF: racks that nobody is to wait for, switched off outside of the code.

``esp32: power is off; esp32s3`` are two racks, one with a reason; ``all: the lab moves`` is each.
"""

from __future__ import annotations

from collections.abc import Mapping

from hil.base.errors import ConfigError
from hil.base.yamlvalue import did_you_mean
from hil.boards.firmware.build import IMAGE_TARGETS

VARIABLE = "HIL_RACKS_OFF"
ALL = "all"
_MOST_CHARACTERS = 200  # of a reason
_WAY_OUT = (
    f"write {ALL}, or chips ({', '.join(IMAGE_TARGETS)}), each with a reason or none: "
    "esp32: no power; esp32s3."
)


def racks_off(text: str) -> dict[str, str]:
    """Return why each chip's rack is off, as a sentence's part. Raises ConfigError, naming the variable."""
    given: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(";"))):
        chip, _, reason = (part.strip() for part in entry.partition(":"))
        _check(entry, chip, reason, given)
        given[chip] = reason
    chips = IMAGE_TARGETS if ALL in given else tuple(given)
    return {chip: _sentence(chip, given) for chip in chips}


def _check(entry: str, chip: str, reason: str, given: Mapping[str, str]) -> None:
    if chip != ALL and chip not in IMAGE_TARGETS:
        wrong = f"there is no rack {chip!r}{did_you_mean(chip, (ALL, *IMAGE_TARGETS))}"
    elif chip in given:
        wrong = f"{chip!r} is there twice."
    elif len(reason) > _MOST_CHARACTERS or not reason.isprintable():
        wrong = f"the reason for {chip!r} has more than {_MOST_CHARACTERS} characters, or a line end."
    else:
        return
    raise ConfigError(f"the variable {VARIABLE}: in {entry[:80]!r} {wrong}", next_step=_WAY_OUT)


def _sentence(chip: str, given: Mapping[str, str]) -> str:
    reason = (given.get(chip) or given.get(ALL, "")).rstrip(".")
    return f"the rack {chip} is switched off by {VARIABLE}{f': {reason}' if reason else ''}"
