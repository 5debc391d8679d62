# SPDX-License-Identifier: Apache-2.0
"""A rack: its description and whether it is fit."""

from hil.boards.rack.loader import Board, Rack, load_rack
from hil.boards.rack.power import Power

__all__ = ["Board", "Power", "Rack", "load_rack"]
