# SPDX-License-Identifier: Apache-2.0
"""The faults that a virtual board can be given while it runs. They are enumerable: FAULTS is the list."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from hil.base.errors import ConfigError
from hil.virtual.board.chip import DETECTIONS

PANIC_CAUSES = (
    "LoadProhibited",
    "StoreProhibited",
    "IllegalInstruction",
    "IntegerDivideByZero",
    "InstrFetchProhibited",
)
WATCHDOGS = ("task", "interrupt")
ABORTS = ("stack-overflow", "out-of-memory")  # what else calls it; True is the app itself
MENDERS = ("reset", "power")
UNPLUGGED = "for-good"  # of disconnect
LINE_MAX = 1000  # characters
CORRUPTIBLE = ("app", "bootloader", "partition-table", "otadata")


@dataclass(frozen=True)
class BoardFault:
    """One fault. A lasting one stays until it is cleared or used up; the others happen once, at once."""

    name: str
    summary: str
    value: str
    lasting: bool
    default: Any
    accepts: Callable[[Any], bool]


def _is_flag(value: Any) -> bool:
    return value is True


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_line(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LINE_MAX and not {"\r", "\n"} & set(value)


def _within(least: int, most: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _one_of(words: tuple[str, ...]) -> Callable[[Any], bool]:
    return lambda value: value in words


def _is_disconnect(value: Any) -> bool:
    return value in ("now", "boot", "always", UNPLUGGED) or _is_count(value)


_TABLE = (
    BoardFault("no_sync", "the loader does not answer", "true", True, True, _is_flag),
    BoardFault(
        "wrong_chip",
        "the loader answers as another chip",
        " | ".join(DETECTIONS),
        True,
        "esp32s2",
        _one_of(tuple(DETECTIONS)),
    ),
    BoardFault("other_mac", "the loader answers with another MAC address", "true", True, True, _is_flag),
    BoardFault("no_stub", "the flasher stub never says OHAI", "true", True, True, _is_flag),
    BoardFault("bad_md5", "one bit of each written block is wrong", "true", True, True, _is_flag),
    BoardFault("write_error", "flash takes no block: the loader refuses each", "true", True, True, _is_flag),
    BoardFault(
        "disconnect",
        "the connection drops: at once, when the app starts, before block N or any block is written, or at "
        "once and each one anew, as of a cable that was pulled",
        "now | boot | N | always | for-good",
        True,
        "now",
        _is_disconnect,
    ),
    BoardFault(
        "panic", "the app crashes", " | ".join(PANIC_CAUSES), False, PANIC_CAUSES[0], _one_of(PANIC_CAUSES)
    ),
    BoardFault(
        "abort",
        "the app calls abort(), or FreeRTOS or the heap does",
        "true | " + " | ".join(ABORTS),
        False,
        True,
        lambda value: value is True or value in ABORTS,
    ),
    BoardFault("watchdog", "a watchdog bites", " | ".join(WATCHDOGS), False, "task", _one_of(WATCHDOGS)),
    BoardFault("brownout", "the supply sags: now, and during the next N-1 boots", "N", True, 1, _is_count),
    BoardFault("garbage", "N bytes of noise, now and at each boot", "N", True, 200, _is_count),
    BoardFault("silent", "the app is frozen: it neither reads nor writes", "true", True, True, _is_flag),
    BoardFault(
        "hang",
        "nothing comes and nothing is taken until a reset, or only a cut of the supply, mends it",
        " | ".join(MENDERS),
        True,
        "power",
        _one_of(MENDERS),
    ),
    BoardFault("no_reset", "EN does nothing: its line is broken", "true", True, True, _is_flag),
    BoardFault("download", "IO0 is held low: each boot ends in the loader", "true", True, True, _is_flag),
    BoardFault("bit_flips", "one bit of N in a million bytes of the app is wrong", "N", True, 100, _is_count),
    BoardFault("torn_lines", "one of N lines of the app loses its second half", "N", True, 50, _is_count),
    BoardFault("say", "the app logs a line", "TEXT", False, "hello", _is_line),
    BoardFault("flood", "the app logs N bytes at once", "N", False, 10_000_000, _is_count),
    BoardFault(
        "crystal",
        "from its next boot on all its clocks go N ppm faster than the host's",
        "N (-100000 to 100000)",
        True,
        50_000,
        _within(-100_000, 100_000),
    ),
    BoardFault(
        "rssi",
        "from its next boot on it finds the access point at N dBm",
        "N (-127 to 0)",
        True,
        -90,
        _within(-127, 0),
    ),
    BoardFault(
        "channel",
        "from its next boot on it finds another access point, on channel N",
        "N (1 to 13)",
        True,
        11,
        _within(1, 13),
    ),
    BoardFault(
        "corrupt_image",
        "flash loses a bit; the next boot sees it",
        " | ".join(CORRUPTIBLE),
        False,
        "app",
        _one_of(CORRUPTIBLE),
    ),
)
FAULTS = {fault.name: fault for fault in _TABLE}


def check(name: str, value: Any = None) -> tuple[BoardFault, Any]:
    """Return the fault called ``name`` and its value, the default where none is given.

    Raises ConfigError listing the names, or the values that the fault takes.
    """
    fault = FAULTS.get(name)
    if fault is None:
        near = difflib.get_close_matches(str(name), FAULTS, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"Unknown fault {name!r}.{hint} Faults: {', '.join(FAULTS)}.")
    if value is None or (value is True and not _is_flag(fault.default)):
        value = fault.default
    if not fault.accepts(value):
        raise ConfigError(f"Fault {name!r} does not take the value {value!r}; it takes: {fault.value}.")
    return fault, value


@dataclass
class ActiveFaults:
    """The lasting faults that are on, each with its value."""

    values: dict[str, Any] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def get(self, name: str) -> Any:
        return self.values.get(name)

    def switch_on(self, name: str, value: Any) -> None:
        self.values[name] = value

    def switch_off(self, name: str) -> None:
        self.values.pop(name, None)

    def count_down(self, name: str) -> bool:
        """Use up one of a counted fault; return whether this was the last one."""
        count = self.values.get(name)
        if not _is_count(count):
            return False
        if count > 1:
            self.values[name] = count - 1
            return False
        del self.values[name]
        return True
