"""A rack: its description and whether it is fit."""

from hil.rack.description import Board, Power, Rack
from hil.rack.loader import load_rack

__all__ = ["Board", "Power", "Rack", "load_rack"]
