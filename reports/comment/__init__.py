# SPDX-License-Identifier: Apache-2.0
"""A workflow run's verdict as Markdown that GitHub shows: under a pull request, and under the run itself.

What it says comes from where a fork's code ran, so each word of it passes through hil.base.untrusted.
"""

from hil.reports.comment.facts import read_facts
from hil.reports.comment.page import CHARACTERS, render

__all__ = ["CHARACTERS", "read_facts", "render"]
