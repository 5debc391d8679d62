# SPDX-License-Identifier: Apache-2.0
"""The chips that firmware is built for, that a rack may hold and that a virtual board can be."""

from __future__ import annotations

from collections.abc import Mapping

CORES: Mapping[str, int] = {"esp32": 2, "esp32s3": 2, "esp32c3": 1}
CHIPS = tuple(CORES)
