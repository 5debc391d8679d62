# SPDX-License-Identifier: Apache-2.0
"""What outlives a run's folder: one file a run, with its figures, its boot values and how the rack fared.

``hil.history.from_run`` makes a run's file; nights, a rack's worth and its health are read from there.
"""

from hil.history.files import default_history, history_of, keep
from hil.history.loading import load

__all__ = ["default_history", "history_of", "keep", "load"]
