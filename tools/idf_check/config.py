# SPDX-License-Identifier: Apache-2.0
"""The configuration: what ESP-IDF makes of sdkconfig.defaults, against the host build's sdkconfig.h."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from hil.boards.firmware.build import FIRMWARE_DIR

HOST = FIRMWARE_DIR / "host" / "idf"
_DEFINE = re.compile(r"^#define (CONFIG_\w+) (.+)$", re.MULTILINE)


def options(path: Path) -> dict[str, str]:
    """Return the options that a sdkconfig.h defines."""
    return dict(_DEFINE.findall(path.read_text(encoding="utf-8")))


def host_options(chip: str) -> dict[str, str]:
    """Return the host build's options for ``chip``."""
    return options(HOST / "include" / "sdkconfig.h") | options(HOST / "target" / chip / "sdkconfig_target.h")


def differences(ours: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, str]:
    """Return the host's options that ESP-IDF does not have, or has with another value."""
    return {
        name: f"is {theirs.get(name, 'not set')} in ESP-IDF, {value} in host/idf"
        for name, value in ours.items()
        if _value(theirs.get(name)) != _value(value)
    }


def two_cores(text: str) -> str:
    """Return a single-core sdkconfig.h for two cores, for which ESP-IDF declares more."""
    text = re.sub(r"(#define CONFIG_FREERTOS_NUMBER_OF_CORES) 1", r"\1 2", text)
    single = r"#define CONFIG_FREERTOS_(UNICORE|OPTIMIZED_SCHEDULER) .*\n"
    return re.sub(single, "", text)


def _value(text: str | None) -> int | str | None:
    try:
        return None if text is None else int(text, 0)
    except ValueError:
        return text
