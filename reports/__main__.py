"""``python -m reports RUN``: write a run's summary.md again, from its records and its verdict on disk."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from hil.errors import HilError
from hil.model import Fault, NotRun, SeriesVerdict, Verdict
from hil.store import RunDirectory
from reports.summary import render_markdown


def main(run: Path) -> int:
    """Write ``run``/summary.md; return the exit code, after saying what went wrong on stderr."""
    try:
        directory = RunDirectory.open(run)
        verdict = read_verdict(directory.verdicts_path)
        path = directory.path
        shown = os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)
        records = directory.read().records
        directory.write_summary(render_markdown(directory.read_info(), verdict, records, run_path=shown))
    except HilError as error:
        print(error, file=sys.stderr)
        return int(error.exit_code)
    return 0


def read_verdict(path: Path) -> Verdict:
    """Return what Verdict.to_json() wrote."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    parts = {
        "series": tuple(SeriesVerdict(**item) for item in stored["series"]),
        "faults": tuple(Fault(**item) for item in stored["faults"]),
        "not_run": tuple(NotRun(**item) for item in stored["not_run"]),
        "warnings": tuple(stored["warnings"]),
    }
    return Verdict(**{**stored, **parts})


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
