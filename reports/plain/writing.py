"""Writes the plain files into the folder of a judged run; done twice, they are the same bytes."""

from __future__ import annotations

from pathlib import Path

from hil.reports.allure.story import read_run
from hil.reports.plain import comparisons, junit, openmetrics, series
from hil.reports.plain.facts import facts_of
from hil.store.files import disk_error, replace_file

FILES = (series.NAME, comparisons.NAME, junit.NAME, openmetrics.NAME)


def write_plain(run_path: Path) -> tuple[Path, ...]:
    """Write series.csv, comparisons.csv, junit.xml and openmetrics.txt from what is on disk.

    Raises:
        ConfigError: ``run_path`` is no judged run, or its journal or thresholds cannot be read.
        RigError: the disk does not take them.
    """
    run = read_run(run_path)
    facts = facts_of(run.run_id, run.info, run.verdict)
    contents = {
        series.NAME: series.series_csv(facts, run.verdict),
        comparisons.NAME: comparisons.comparisons_csv(facts, run.verdict),
        junit.NAME: junit.junit_xml(facts, run),
        openmetrics.NAME: openmetrics.openmetrics_text(facts, run.info, run.verdict),
    }
    paths = tuple(run.path / name for name in FILES)
    try:
        for path in paths:
            if not path.is_file() or path.read_bytes() != contents[path.name]:
                replace_file(path, contents[path.name])
    except OSError as error:
        raise disk_error(
            f"could not write {paths[0].parent}", error, "records and verdict of the run"
        ) from error
    return paths
