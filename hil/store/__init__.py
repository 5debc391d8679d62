"""What a run leaves on disk, and how it is read again."""

from hil.store.directory import (
    RunDirectory,
)

__all__ = [
    "RunDirectory",
]
