"""Which files of a run a drill-down leads to: what the site publishes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hil.model import RunRecord
from hil.reports.traces.files import PUBLISHED, events_file
from hil.reports.trend.runs import Reported

_FILES = {
    "records.jsonl": "all samples of the run (records.jsonl)",
    "series.csv": "all figures of the run (series.csv)",
    "comparisons.csv": "all comparisons of the run (comparisons.csv)",
}
_IN_TEST = "samples (CSV), charts and console of this case, in the test report"


def files_of(run: Reported, test: str, records: Sequence[RunRecord]) -> list[dict[str, str]]:
    """Return text and address (from the trend page) of each; ``test`` is the id of the case's Allure result,
    ``records`` are the case's."""
    found = [{"text": _IN_TEST, "href": f"../tests/index.html#{test}"}] if test else []
    there = {name: text for name, text in _FILES.items() if (run.path / name).is_file()}
    there |= dict(_traces(run, records))
    return found + [{"text": text, "href": f"../runs/{run.run_id}/{name}"} for name, text in there.items()]


def _traces(run: Reported, records: Sequence[RunRecord]) -> Iterator[tuple[str, str]]:
    for record in records:
        path = events_file(run.path, record)
        for suffix in PUBLISHED:
            if path and (file := path.with_suffix(suffix)).is_file():
                name = file.relative_to(run.path).as_posix()
                yield name, f"scheduler trace, boot {record.boot_index} ({suffix.removeprefix('.')})"
