# SPDX-License-Identifier: Apache-2.0
"""What a chip tells of itself that no run may change: its flash chip, and a digest of each eFuse block.

It is read in the connection that is to write (``hil.boards.serial_url.esptool``), compared there with what
was kept, and kept by ``hil.boards.flash.known``. Digests, as an eFuse block may hold a key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

# Where a chip's eFuse blocks can be read: from its eFuse controller's base, and in words of 32 bits.
# Sources: the Technical Reference Manuals; ``espefuse``'s own tables say the same, which a test compares.
_ESP32 = ((0x00, 7), (0x38, 8), (0x58, 8), (0x78, 8))
_ESP32C2 = ((0x2C, 2), (0x34, 3), (0x40, 8), (0x60, 8))
_OTHERS = ((0x2C, 6), (0x44, 6), *((0x5C + 0x20 * key, 8) for key in range(9)))


def efuse_blocks(chip: str) -> tuple[tuple[int, int], ...]:
    """Return offset and number of words of each block, block 0 first."""
    return {"esp32": _ESP32, "esp32c2": _ESP32C2}.get(chip, _OTHERS)


@dataclass(frozen=True)
class ChipState:
    """``flash`` is maker, device and size as in "ef 4016, 4MB"; ``efuses`` the digest of each block.

    ``board`` and ``since`` say which board of the rack it was and when (UTC), for people; they are not
    compared.
    """

    mac: str
    flash: str
    efuses: tuple[str, ...]
    board: str = ""
    since: str = ""

    def changes_to(self, now: ChipState) -> str:
        """Return what is otherwise now, "" where nothing is."""
        changed = []
        if now.flash != self.flash:
            changed.append(f"its flash chip is {now.flash}, and was {self.flash}")
        blocks = [
            f"BLOCK{number}"
            for number, (old, new) in enumerate(zip(self.efuses, now.efuses, strict=False))
            if old != new
        ]
        if blocks:
            changed.append(f"its eFuses differ in {', '.join(blocks)}")
        return " and ".join(changed)

    def pack(self) -> str:
        return json.dumps(asdict(self))


def unpack(text: str | bytes) -> ChipState | None:
    """Read a state; None where there is none, or none that is right."""
    try:
        values = json.loads(text)
        return ChipState(
            **{name: str(values[name]) for name in ("mac", "flash", "board", "since")},
            efuses=tuple(str(digest) for digest in values["efuses"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


@dataclass(frozen=True)
class Expected:
    """What a board has to be for anything to be done with it: ``mac`` "" where the rack file names none.

    ``kept`` is the folder of the states that were kept, ``taken`` says which other board of the run
    answered with an address; both are looked at only where ``looks``.
    """

    mac: str = ""
    looks: bool = False
    kept: str = ""
    taken: Mapping[str, str] | None = None

    def pack(self) -> str:
        return json.dumps(asdict(self))


def file_name(mac: str) -> str:
    """Return the name of the file in which a chip's state is kept."""
    return f"{mac.lower().replace(':', '')}.chip"
