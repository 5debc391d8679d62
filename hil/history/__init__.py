"""The history store: boot values of earlier runs, a file a run, append-only, read all at once.

``hil.history.from_run`` makes a run's file, ``export`` and ``merge`` are commands' own.
"""

from hil.history.loading import DEFAULT_HISTORY, load
from hil.history.saving import append, save
from hil.history.types import NO_HISTORY, History, SeriesHistory, Session, SessionBoard

__all__ = [
    "DEFAULT_HISTORY",
    "NO_HISTORY",
    "History",
    "SeriesHistory",
    "Session",
    "SessionBoard",
    "append",
    "load",
    "save",
]
