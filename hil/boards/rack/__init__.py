# SPDX-License-Identifier: Apache-2.0
"""A rack: its description and whether it is fit."""

from hil.boards.rack.loader import Board, Power, Rack, load_rack

__all__ = ["Board", "Power", "Rack", "load_rack"]
