# SPDX-License-Identifier: Apache-2.0
"""python -m hil.reports.comment FACTS: print the page of a workflow run (hil ci comment, hil ci verdict)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hil.base.errors import exit_status
from hil.reports.comment import CHARACTERS, read_facts, render


def main() -> None:
    """Print it. Raises ConfigError where FACTS is not what `hil ci` writes."""
    parser = argparse.ArgumentParser(prog="python -m hil.reports.comment")
    parser.add_argument("facts", type=Path)
    parser.add_argument("--layout", choices=tuple(CHARACTERS), default="comment")
    wanted = parser.parse_args()
    print(render(read_facts(wanted.facts), CHARACTERS[wanted.layout]), end="")


if __name__ == "__main__":
    sys.exit(exit_status(main))
