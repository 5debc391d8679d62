# SPDX-License-Identifier: Apache-2.0
"""``places:`` in a rack file: which boards of a labgrid coordinator it has while a run leases them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hil.base.yamlfile import Node, load

_ADDRESS = re.compile(r"([^\s:/]+|\[[0-9a-fA-F:.]+\]):(\d{1,5})")


@dataclass(frozen=True)
class PlacesSettings:
    """``match`` holds tags and their values, ``count`` how many boards are wanted, 0 for all that match.

    ``where`` is file and line, for error sentences.
    """

    coordinator: str
    match: Mapping[str, str]
    count: int
    where: str


def read_places(path: Path) -> PlacesSettings | None:
    """Return what a rack file says of places; None where it lists its boards. Raises ConfigError."""
    return _places_in(load(path))


def _places_in(root: Node) -> PlacesSettings | None:
    node = root.section("places", default=None)
    if node is None:
        return None
    if "boards" in root:
        raise root.error(
            "boards",
            "a rack has either boards or places, not both.",
            next_step="delete one of the two.",
        )
    coordinator = node.text("coordinator")
    address = _ADDRESS.fullmatch(coordinator)
    if not address or not 1 <= int(address.group(2)) <= 65535:
        raise node.error("coordinator", f"coordinator {coordinator!r} is not HOST:PORT, as in lab:20408.")
    tags = node.section("match")
    match = {key: tags.text(key) for key in tags.keys}
    if not match:
        raise node.error("match", "match names no tag.", next_step="add one, as in {target: esp32s3}.")
    count = node.integer("count", default=0, minimum=0, maximum=1000)
    node.finish()
    return PlacesSettings(coordinator, match, count, node.where())


def rack_with_places(path: Path) -> Path:
    """Return the rack file that a file of leased boards was made from; the file itself if it is no such."""
    leased = load(path).section("leased", default=None)
    return Path(leased.text("from")) if leased else path


def is_unleased(root: Node) -> bool:
    """Whether a rack takes its boards from places, and has none by itself. Raises ConfigError."""
    return _places_in(root) is not None


def check_leased(root: Node) -> None:
    """Raise ConfigError where a rack's boards are somebody else's now: not leased yet, or no longer."""
    if "places" in root:
        raise root.error(
            "places",
            "the boards of this rack are at a labgrid coordinator and not leased yet.",
            next_step="lease them with hil run --rack and this file; it prints the file that lists them.",
        )
    leased = root.section("leased", default=None)
    if leased is None:
        return
    origin, keeper = leased.text("from"), leased.integer("keeper_pid", minimum=1)
    if _command_line(keeper) != leased.text("keeper"):
        raise root.error(
            "leased",
            "the lease of these boards has ended.",
            next_step=f"lease them again: hil run --rack {shlex.quote(origin)}",
        )


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").replace(b"\0", b" ").decode()
    except OSError:
        return ""
