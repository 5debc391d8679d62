# SPDX-License-Identifier: Apache-2.0
"""Old figures as spreadsheets, databases and scripts write them: taken as meant, or refused by line."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import numpy as np
import pytest

from hil.base.errors import ConfigError
from hil.history import load
from hil.history.files import paths_in
from hil.history.importing import import_csv
from hil.history.nightly.nights import nights_of

NOW = datetime.datetime(2026, 11, 24, 3, tzinfo=datetime.UTC)
AS = "e1/publish/qos=1/publish_latency_p95_ms"


def taken(folder: Path, content: str) -> list[str]:
    """Import a file; return the times that the history then holds."""
    (folder / "old.csv").write_bytes(content.encode())
    import_csv(folder / "old.csv", AS, folder / "h", now=NOW)
    return [session.started_utc for session in load(folder / "h").sessions]


def refused(folder: Path, content: str) -> str:
    with pytest.raises(ConfigError) as caught:
        taken(folder, content)
    assert not paths_in(folder / "h")
    return str(caught.value)


def test_equal_boots_count_as_many_as_they_are(tmp_path: Path) -> None:
    """12, 12, 12 and 20 at one time and commit are four boots of median 12. Once more changes nothing."""
    rows = "".join(f"2026-03-01,3f2a9d1,{value}\n" for value in (12, 12, 12, 20))
    for _ in range(2):
        taken(tmp_path, f"time,commit,value\n{rows}")
    history = load(tmp_path / "h")
    (entry,) = history.entries.values()
    assert sorted(entry.value.tolist()) == [12, 12, 12, 20]
    assert [round(np.exp(night.level), 6) for night in nights_of(history, f"imported/{AS}")] == [12]


@pytest.mark.parametrize(
    "written",
    ["1711111111", "1711111111.0", "1711111111000", "1711111111000000", "1711111111000000000"],
    ids=["s", "s with a fraction", "ms", "us", "ns"],
)
def test_a_time_since_1970_is_recognised_by_its_size(written: str, tmp_path: Path) -> None:
    """Seconds, milli-, micro- and nanoseconds are the same time: no two of them fit one number."""
    assert taken(tmp_path, f"time,commit,value\n{written},3f2a9d1,12.4\n") == ["2024-03-22T12:38:31Z"]


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("1711-11-11", "before the year 2000"),
        ("17111111", "before the year 2000"),
        ("1970-01-01T00:00:00Z", "before the year 2000"),
        ("1999-12-31", "before the year 2000"),
        ("0001-01-01T00:00:00+05:00", "before the year 2000"),
        ("9999-12-31T23:59:59-05:00", "yet to come"),
        ("2026-11-25", "yet to come"),
        ("17111111110", "neither s nor ms"),
        ("20260301031100", "neither s nor ms"),
        ("946684799", "neither s nor ms"),
        ("1.71111E+12", "is not as 2026-11-24"),
        ("-1711111111", "is not as 2026-11-24"),
        ("2026-03-01+02:00", "is not as 2026-11-24"),
        ("2026-03-01-03:11", "is not as 2026-11-24"),
        ("2026-03-01 03:11:00 CET", "is not as 2026-11-24"),
        ("01/03/2026", "is not as 2026-11-24"),
        ("46082", "is not as 2026-11-24"),
        ("", "is not as 2026-11-24"),
    ],
)
def test_a_time_that_cannot_be_meant_is_refused(written: str, words: str, tmp_path: Path) -> None:
    """File, line, what stands there and how it is written."""
    said = refused(tmp_path, f"time,commit,value\n2026-01-01,abcdef0,1\n{written},abcdef0,1\n")
    assert f"old.csv, line 3: time {written!r}" in said
    assert words in said


@pytest.mark.parametrize(
    ("written", "utc"),
    [
        ("20260301", "2026-03-01T12:00:00Z"),
        ("20260301T031100Z", "2026-03-01T03:11:00Z"),
        ("2026-03-01T03:11+02:00", "2026-03-01T01:11:00Z"),
        ("2026-03-01 00:30:00-0300", "2026-03-01T03:30:00Z"),
        ("2000-01-01", "2000-01-01T12:00:00Z"),
        ("2026-11-24", "2026-11-24T12:00:00Z"),
    ],
)
def test_a_time_with_a_zone_is_that_instant(written: str, utc: str, tmp_path: Path) -> None:
    """Offsets, the compact form and the bounds are read as ISO 8601 has them."""
    assert taken(tmp_path, f"\ufefftime,commit,value\r\n{written},abcdef0,1\r\n") == [utc]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("time;commit;value\n2026-01-01;abcdef0;1,5\n", "line 1: .*commas instead of semicolons"),
        ("time\tcommit\tvalue\n", "line 1: .*commas instead of tabs"),
        ("sep=,\ntime,commit,value\n2026-01-01,abcdef0,1\n", "line 1: the heading is 'sep=,'"),
        (
            "time,commit,value,value\n2026-01-01,abcdef0,1,2\n",
            "line 1: the heading is 'time,commit,value,value'",
        ),
        ("time,value,value\n", "line 1: the heading is 'time,value,value'"),
        ("time,commit,value\n2026-01-01;abcdef0;1\n", "line 2: 1 fields, not 3"),
        ("time,commit,value\n2026-01-01,abcdef0,1,5\n", "line 2: 4 fields, not 3"),
        ("time,commit,value\n2026-01-01,abcdef0,\n", "line 2: value '' is not a number"),
        ("time,commit,value\n2026-01-01,abcdef0,0x10\n", "line 2: value '0x10' is not a number"),
        ("time,commit,value\n2026-01-01,abcdef0,1 000\n", "line 2: value '1 000' is not a number"),
        ("time,commit,value\n2026-01-01,12345,1\n", "line 2: commit '12345' is not 7 to 40"),
        (
            'time,commit,value\n2026-01-01,abcdef0,1\n"2026-01-02,abcdef0,1\n',
            "line 3: .*close each quotation",
        ),
        ('time,commit,value\n2026-01-01,abcdef0,"1"2\n', "line 2: .*close each quotation mark"),
        (f"time,commit,value\n2026-01-01,abcdef0,{'1' * 140_000}\n", "line 2: field larger than"),
    ],
)
def test_a_file_that_is_not_meant_so_is_refused_by_line(content: str, words: str, tmp_path: Path) -> None:
    """Other separators, doubled columns, empty cells, quotes that do not close: nothing is guessed."""
    said = refused(tmp_path, content).replace("\n", " ")
    assert re.search(words, said), said
