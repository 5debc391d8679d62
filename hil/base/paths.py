# SPDX-License-Identifier: Apache-2.0
"""Where this project is."""

from __future__ import annotations

from pathlib import Path

PROJECT_ROOT = Path(__file__).resolve().parents[2]
