# SPDX-License-Identifier: Apache-2.0
"""The history store: boot values of earlier runs, a file a run, append-only, read all at once.

``hil.history.from_run`` makes a run's file, ``export`` and ``merge`` are commands' own.
"""

from hil.history.loading import DEFAULT_HISTORY, load
from hil.history.saving import append, save

__all__ = ["DEFAULT_HISTORY", "append", "load", "save"]
