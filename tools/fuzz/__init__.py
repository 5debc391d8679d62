# SPDX-License-Identifier: Apache-2.0
"""Coverage-guided fuzzing of every reader of what somebody else has written: `make fuzz SECONDS=n`.

What a reader may say to any bytes is its own error, with a sentence; a traceback, a hang, a broken rule or
memory without bound is a finding.
"""

from tools.fuzz import files, wires

TARGETS = (*wires.TARGETS, *files.TARGETS)
