# SPDX-License-Identifier: Apache-2.0
"""From records and thresholds to a verdict: pure, replayable."""

from hil.gate.judging import (
    judge,
)

__all__ = [
    "judge",
]
