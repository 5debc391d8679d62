"""Leases: one run at a time owns a board, one case at a time the air, and some cases the whole rack.

A lease is a ``flock`` on ``<lock folder>/<rack>/<board>.lock``; the kernel drops it with its process, so a
killed run never blocks the next. The file's text says who holds it, for people and for error sentences.
"""

from hil.boards.lease.boards import lease_boards
from hil.boards.lease.lock_file import (
    KEPT_DIR,
    PHYSICAL_LOCK_DIR,
    UNKNOWN_HOLDER,
    Holder,
    clear_stale,
    kept_dir,
    lock_dir,
    read_holder,
)
from hil.boards.lease.turns import lease_air, lease_rack

__all__ = [
    "KEPT_DIR",
    "PHYSICAL_LOCK_DIR",
    "UNKNOWN_HOLDER",
    "Holder",
    "clear_stale",
    "kept_dir",
    "lease_air",
    "lease_boards",
    "lease_rack",
    "lock_dir",
    "read_holder",
]
