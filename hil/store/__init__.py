"""What a run leaves on disk, and how it is read again."""

from hil.store.directory import RunDirectory, time_in
from hil.store.run_info import TRIGGERS

__all__ = ["TRIGGERS", "RunDirectory", "time_in"]
