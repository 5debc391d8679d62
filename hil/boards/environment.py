# SPDX-License-Identifier: Apache-2.0
"""What a sample set was measured in, as far as the rig's host knows it."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path

import hil
from hil.base.project import strict_here
from hil.boards.rack import Rack
from hil.model import Scalar

_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


def host_environment() -> Mapping[str, Scalar]:
    """Return what can change between two cases: load and clock governor; and what it runs on."""
    load_1min, load_5min, _ = os.getloadavg()
    return {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu_count": os.cpu_count(),
        "load_1min": round(load_1min, 2),
        "load_5min": round(load_5min, 2),
        "governor": _read(_GOVERNOR) or "none",
    }


def rig_environment(rack: Rack) -> Mapping[str, Scalar]:
    """Return which rack and which harness measured; of a virtual one what hil.toml says of strict mode."""
    strict = strict_here() if rack.is_virtual else None
    return {
        "rack": rack.name,
        "rack_file": rack.path.name,
        "harness_version": hil.__version__,
        "python": platform.python_version(),
        **({} if strict is None else {"strict": "fail" if strict else "warn"}),
    }


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
