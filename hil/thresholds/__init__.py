# SPDX-License-Identifier: Apache-2.0
"""Limits, metrics and suites as thresholds/*.yaml say them."""

from hil.thresholds.loader import (
    among_legs,
    load,
    load_all,
    load_project,
    own_limits,
    own_limits_of,
    project_files,
)
from hil.thresholds.types import Thresholds

__all__ = [
    "Thresholds",
    "among_legs",
    "load",
    "load_all",
    "load_project",
    "own_limits",
    "own_limits_of",
    "project_files",
]
