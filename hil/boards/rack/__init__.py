"""A rack: its description and whether it is fit."""

from hil.boards.rack.description import Board, Power, Rack
from hil.boards.rack.loader import load_rack

__all__ = ["Board", "Power", "Rack", "load_rack"]
