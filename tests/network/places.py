# SPDX-License-Identifier: Apache-2.0
"""Where companions work in tests: on the loopback interface, or at the first board of a virtual rack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hil.boards.rack import Board
from hil.boards.rack.power import Power
from hil.model import Case
from hil.network.name_server import PEER_NAME
from hil.network.peers.companion import Place
from hil.network.process import LocalSpawner
from hil.virtual.virtual_rack import VirtualRack

LOOPBACK = "127.0.0.1"
BOARD = Board(
    "b1", "virtual", "esp32", "loop://", Power("none"), mac="02:00:00:00:00:01", where="rack.yaml:7"
)


def place_of(case: Case, folder: Path, **facts: Any) -> Place:
    """Return a place on the loopback without broker and certificates; ``facts`` are fields that differ."""
    usual = {
        "board": BOARD,
        "board_address": LOOPBACK,
        "host_address": LOOPBACK,
        "interface": "lo",
        "access_point_interface": "",
        "spawner": LocalSpawner(),
        "broker": None,
        "certificates": None,
        "secrets_dir": folder,
        "peer_name": PEER_NAME,
        "air": None,
        "keep_captures": False,
    }
    return Place(case=case, folder=folder, **{**usual, **facts})


def place_in(rack: VirtualRack, case: Case, folder: Path, **facts: Any) -> Place:
    """Return the place of the rack's board b1."""
    own = {"board_address": rack.board_address(BOARD.id), "host_address": rack.host_address}
    own |= {"interface": rack.host_interface, "access_point_interface": rack.access_point_interface(BOARD.id)}
    return place_of(case, folder, spawner=rack, air=rack.air, **own, **facts)
