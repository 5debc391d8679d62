# SPDX-License-Identifier: Apache-2.0
"""What the scheduler of a board did round a late sample: events, who ran when, and why it was late.

``events`` reads what ``run trace`` sent, ``timeline`` reconstructs the tasks' states, ``inversion`` and
``finding`` say in a sentence why a task was late, ``perfetto`` writes it for ui.perfetto.dev, ``files`` keeps
it with the run.
"""

from hil.trace.events import Event, EventKind, Mark, SharedObject, Task, Trace
from hil.trace.files import StoredTrace, read_stored, store_trace
from hil.trace.finding import Finding, LockWait, explain, lock_waits
from hil.trace.reading import read_trace
from hil.trace.reconstruction import reconstruct
from hil.trace.timeline import Holding, Segment, State, Timeline

__all__ = [
    "Event",
    "EventKind",
    "Finding",
    "Holding",
    "LockWait",
    "Mark",
    "Segment",
    "SharedObject",
    "State",
    "StoredTrace",
    "Task",
    "Timeline",
    "Trace",
    "explain",
    "lock_waits",
    "read_stored",
    "read_trace",
    "reconstruct",
    "store_trace",
]
