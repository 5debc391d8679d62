"""Boards and their rack: rack file, lease, firmware, flash, power, serial line, health."""
