# SPDX-License-Identifier: Apache-2.0
"""The simulated noise that a virtual rack's file asks for; hil.virtual.noise draws it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from hil.base.yamlfile import Node
from hil.base.yamlvalue import did_you_mean

OFFSET_MAX = 1.0  # exp(1) is 2.7 times the delay; beyond that it is another air, not noise


@dataclass(frozen=True)
class BoardDrift:
    """One board grows slower (or faster) within a run, on the log scale: by ``per_boot`` from boot to boot,
    and by ``step`` from the boot ``at_boot`` (counted from 0) on."""

    board: str
    per_boot: float = 0.0
    step: float = 0.0
    at_boot: int = 1

    def offset(self, boot_index: int) -> float:
        return self.per_boot * boot_index + (self.step if boot_index >= self.at_boot else 0.0)


@dataclass(frozen=True)
class Bistable:
    """A boot ends in a second mode with ``probability``; its delays are exp(``offset``) times as long.

    ``board`` is the one that has it, "" where all have.
    """

    probability: float
    offset: float
    board: str = ""


@dataclass(frozen=True)
class NoiseSettings:
    """A noise profile and its seed. ``session`` names the session whose draws are wanted, "" for
    the run's own; ``session_step`` (log scale) is added to every boot of the run, as a change of the access
    point would be."""

    profile: str
    seed: int = 1
    session: str = ""
    session_step: float = 0.0
    drift: BoardDrift | None = None
    bistable: Bistable | None = None


def read_noise(node: Node | None, boards: Collection[str]) -> NoiseSettings | None:
    """Read the section ``noise`` of a virtual access point; ``boards`` are the rack's. Raises ConfigError."""
    if node is None:
        return None
    return NoiseSettings(
        profile=node.text("profile"),
        seed=node.integer("seed", default=1, minimum=0),
        session=node.text("session", default=""),
        session_step=_offset(node, "session_step", default=0.0),
        drift=_drift(node.section("drift", default=None), boards),
        bistable=_bistable(node.section("bistable", default=None), boards),
    )


def _drift(node: Node | None, boards: Collection[str]) -> BoardDrift | None:
    if node is None:
        return None
    return BoardDrift(
        board=_board(node, node.text("board"), boards),
        per_boot=_offset(node, "per_boot", default=0.0),
        step=_offset(node, "step", default=0.0),
        at_boot=node.integer("at_boot", default=1, minimum=1),
    )


def _bistable(node: Node | None, boards: Collection[str]) -> Bistable | None:
    if node is None:
        return None
    name = node.text("board", default="")
    return Bistable(
        probability=node.quantity("probability", "ratio", minimum=0.0, maximum=1.0),
        offset=_offset(node, "offset"),
        board=_board(node, name, boards) if name else "",
    )


def _offset(node: Node, key: str, default: float | None = None) -> float:
    if default is None:
        return node.quantity(key, "ratio", minimum=-OFFSET_MAX, maximum=OFFSET_MAX)
    return node.quantity(key, "ratio", default=default, minimum=-OFFSET_MAX, maximum=OFFSET_MAX)


def _board(node: Node, name: str, boards: Collection[str]) -> str:
    if name not in boards:
        sentence = f"the rack has no board {name!r}{did_you_mean(name, boards)} Boards: {', '.join(boards)}."
        raise node.error("board", sentence, next_step="name one of them, or leave the section out.")
    return name
