# SPDX-License-Identifier: Apache-2.0
"""The variable HIL_RACKS_OFF: racks that are out of service, switched off without a commit.

``esp32: power is off; esp32s3`` are two racks, one with a reason.
"""

from __future__ import annotations

from hil.base.errors import ConfigError
from hil.base.yamlvalue import did_you_mean
from hil.boards.firmware.build import IMAGE_TARGETS

VARIABLE = "HIL_RACKS_OFF"


def racks_off(text: str) -> dict[str, str]:
    """Return why each chip's rack is off, as a sentence's part. Raises ConfigError, naming the variable."""
    entries = [entry.partition(":") for entry in text.split(";") if entry.strip()]
    reasons = {chip.strip(): reason.strip().rstrip(".") for chip, _, reason in entries}
    for chip in reasons:
        if chip not in IMAGE_TARGETS:
            raise ConfigError(
                f"the variable {VARIABLE}: there is no rack {chip[:80]!r}{did_you_mean(chip, IMAGE_TARGETS)}",
                next_step=f"write chips ({', '.join(IMAGE_TARGETS)}), each with a reason or none: "
                "esp32: no power; esp32s3.",
            )
    return {
        chip: f"the rack {chip} is switched off by {VARIABLE}{f': {reason}' if reason else ''}"
        for chip, reason in reasons.items()
    }
