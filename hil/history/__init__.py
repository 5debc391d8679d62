# SPDX-License-Identifier: Apache-2.0
"""The boot values in the history: a file a run, append-only, read all at once.

Beside them lie the reports' lines of each run (hil.reports.history, hil.boards.health).

``hil.history.from_run`` makes a run's file, ``export`` and ``merging`` are commands' own.
"""

from hil.history.loading import default_history, history_of, load
from hil.history.saving import append

__all__ = ["append", "default_history", "history_of", "load"]
