"""The figures that are printed for the docs: what they read, and how their command goes through them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.bench.lease_share import measuring_s
from tests.bench_record import bench_record
from tests.case_defaults import case_defaults
from tests.lab import ROOT

_SOURCES = sorted((ROOT / "firmware" / "components" / "benches").glob("*.c"))
_COLUMNS = re.compile(r"\bCOLUMNS\[\] = \{([^}]*)\}")


def columns_of_benches() -> dict[str, tuple[str, ...]]:
    """Return the columns that the firmware gives to each bench that has a thresholds file."""
    found = {source.stem: _COLUMNS.search(source.read_text()) for source in _SOURCES}
    benches = [path.stem for path in (ROOT / "thresholds").glob("*.yaml")]
    return {bench: tuple(re.findall(r'"(\w+)"', str(found[bench]))) for bench in sorted(benches)}


def test_how_long_a_record_took_is_no_matter_of_its_columns() -> None:
    """The seconds of all benches add up; there are benches without ``done_us``, so this means something."""
    columns = columns_of_benches()
    assert all(columns.values())
    assert [bench for bench, names in columns.items() if "done_us" not in names]
    records = [
        bench_record(bench, case_defaults(bench), dict.fromkeys(names, (1, 2)), {}, run_id="r")
        for bench, names in columns.items()
    ]
    assert measuring_s(replace(record, measured_s=1.5) for record in records) == 1.5 * len(columns)


def test_a_record_that_does_not_say_how_long_it_took_is_named() -> None:
    """A share of what nobody kept would be a wrong figure; one of no record at all too."""
    older = bench_record("memory", {}, {"raw_cycles": (1,)}, {}, run_id="r")
    with pytest.raises(ValueError, match="memory/"):
        measuring_s([older])
    with pytest.raises(ValueError, match="no record"):
        measuring_s([])
