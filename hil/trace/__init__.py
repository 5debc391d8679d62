# SPDX-License-Identifier: Apache-2.0
"""What the scheduler of a board did round a late sample: events, who ran when, and why it was late.

``events`` reads what ``run trace`` sent, ``timeline`` reconstructs the tasks' states, ``inversion`` and
``finding`` say in a sentence why a task was late, ``perfetto`` writes it for ui.perfetto.dev, ``files`` keeps
it with the run.
"""
