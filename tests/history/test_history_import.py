# SPDX-License-Identifier: Apache-2.0
"""`hil import --as`: a team's old figures as series of their own, visibly imported, judged by nobody."""

from __future__ import annotations

import csv
import datetime
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from hil.base.errors import ConfigError
from hil.cli.app import run_command
from hil.history import keep, load
from hil.history.files import paths_in
from hil.history.importing import COLUMNS, Imported, import_csv, series_name
from hil.history.nightly.nights import nights_of
from hil.history.nightly.survey import survey
from tests.history.history_files import night
from tests.lab import ROOT
from tests.reports.trend_rig import LATEST, METRIC, figure, line, trend

NOW = datetime.datetime(2026, 11, 24, 3, tzinfo=datetime.UTC)
AS = "e1/publish/qos=1/publish_latency_p95_ms"
SERIES = f"imported/{AS}"
SCHEMA = json.loads((ROOT / "docs" / "reference" / "schema" / "history.schema.json").read_text())
STEP = 30


def figures(count: int = 60, *, factor: float = 1.2, first: str = "2026-01-01") -> list[tuple[str, str, str]]:
    """
    A figure a day, by a seed; every third day another commit.

        14.4                    ........
        12.0      ..............
                  0             STEP   count
    """
    chance = np.random.RandomState(7)
    start = datetime.date.fromisoformat(first)
    return [
        (
            (start + datetime.timedelta(days=day)).isoformat(),
            f"{day // 3:07x}",
            f"{12 * (factor if day >= STEP else 1) * (1 + 0.01 * chance.standard_normal()):.4f}",
        )
        for day in range(count)
    ]


def table(
    folder: Path, *rows: tuple[str, ...], heading: tuple[str, ...] = COLUMNS, name: str = "old.csv"
) -> Path:
    path = folder / name
    text = io.StringIO()
    csv.writer(text).writerows([heading, *rows])
    path.write_text(text.getvalue(), encoding="utf-8", newline="")
    return path


def imported(path: Path, folder: Path, series: str = AS) -> Imported:
    return import_csv(path, series, folder / "h", now=NOW)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in paths_in(folder / "h")}


def test_each_figure_is_there_once(tmp_path: Path) -> None:
    """What went in comes out, in order of time; a file that grew adds what is new, the same one nothing."""
    rows = figures()
    assert imported(table(tmp_path, *rows[::-1]), tmp_path) == Imported(SERIES, 60, 0, 0)
    before = contents(tmp_path)
    grown = table(tmp_path, *figures(62), name="grown.csv")
    assert imported(grown, tmp_path) == Imported(SERIES, 2, 60, 0)
    after = contents(tmp_path)
    assert imported(grown, tmp_path) == Imported(SERIES, 0, 62, 0)
    assert contents(tmp_path) == after
    assert after.items() >= before.items()
    history = load(tmp_path / "h")
    (entry,) = history.entries.values()
    assert (entry.series_id, entry.role) == (SERIES, "candidate")
    assert [f"{value:.4f}" for value in entry.value] == [value for _, _, value in figures(62)]
    assert [session.commit for session in history.sessions] == [commit for _, commit, _ in figures(62)]
    for content in after.values():
        Draft202012Validator(SCHEMA).validate(json.loads(content))


def test_values_of_one_time_and_commit_are_boots(tmp_path: Path) -> None:
    """Several values of a time are one night's, equal ones too; how many lines repeat others is said."""
    rows = [("2026-01-01", "abcdef0", value) for value in ("3", "1", "2", "3.0")]
    path = table(tmp_path, *rows, ("2026-01-01", "abcdef1", "9"))
    assert imported(path, tmp_path) == Imported(SERIES, 5, 0, 1)
    history = load(tmp_path / "h")
    (entry,) = history.entries.values()
    boots = sorted(zip(entry.boot.tolist(), entry.value.tolist(), strict=True))
    assert boots == [(0, 1), (0, 9), (1, 2), (2, 3), (3, 3)]
    assert sorted(round(np.exp(one.level), 6) for one in nights_of(history, SERIES)) == [2.5, 9]


@pytest.mark.parametrize(
    ("written", "utc", "date"),
    [
        ("2026-01-05", "2026-01-05T12:00:00Z", "2026-01-05"),
        ("2026-01-05T03:11:00", "2026-01-05T03:11:00Z", "2026-01-04"),
        ("2026-01-05 03:11:00+05:00", "2026-01-04T22:11:00Z", "2026-01-04"),
        ("2026-01-05T23:11:00.25Z", "2026-01-05T23:11:00.250000Z", "2026-01-05"),
        ("20260301", "2026-03-01T12:00:00Z", "2026-03-01"),
        ("20260301T031100Z", "2026-03-01T03:11:00Z", "2026-02-28"),
        ("2026-03-01 00:30:00-0300", "2026-03-01T03:30:00Z", "2026-02-28"),
        ("2000-01-01", "2000-01-01T12:00:00Z", "2000-01-01"),
        ("2026-11-24", "2026-11-24T12:00:00Z", "2026-11-24"),
        *(
            (written, "2024-03-22T12:38:31Z", "2024-03-22")
            for written in ("1711111111", "1711111111.0", *(f"1711111111{'0' * n}" for n in (3, 6, 9)))
        ),
    ],
)
def test_times_are_utc_and_a_date_is_its_own_night(written: str, utc: str, date: str, tmp_path: Path) -> None:
    """As ISO 8601 has them, or since 1970 in a unit that the size tells; a time without a zone is UTC; a date
    alone counts to the night of that date."""
    imported(table(tmp_path, (written, "ABCDEF0", "1")), tmp_path)
    history = load(tmp_path / "h")
    assert (history.sessions[0].started_utc, history.sessions[0].commit) == (utc, "abcdef0")
    assert [str(one.date) for one in nights_of(history, SERIES)] == [date]


def test_what_a_spreadsheet_writes_is_read(tmp_path: Path) -> None:
    """A byte order mark, another order of columns, capitals, blanks, CRLF, empty lines, an unknown commit."""
    path = tmp_path / "x.csv"
    path.write_bytes(
        b'\xef\xbb\xbf"Value", Time ,COMMIT\r\n1e3, 2026-01-01 ,\r\n,,\r\n\r\n-4,2026-01-02,abcdef0\r\n'
    )
    assert imported(path, tmp_path).new == 2
    (entry,) = load(tmp_path / "h").entries.values()
    assert entry.value.tolist() == [1000, -4]


def test_steps_are_found_and_blame_nobody(tmp_path: Path) -> None:
    """A step in imported figures is a change point of unclear cause at its night, with its commits."""
    imported(table(tmp_path, *figures()), tmp_path)
    found = survey(load(tmp_path / "h"), {})
    (finding,) = found.findings
    assert (finding.kind, finding.point.cause) == ("imported", "unclear")
    assert finding.point.night == datetime.date(2026, 1, 1) + datetime.timedelta(days=STEP)
    assert finding.point.low < 0.2 < finding.point.high
    assert re.findall(r"\b0{5}\w+", finding.point.note) == ["0000009", "000000a"]
    assert not found.notes


def test_measured_figures_stay_what_they_were(tmp_path: Path) -> None:
    """Nights and change points of racks are the same with imported figures of the same name beside them."""
    for number in range(12):
        keep(tmp_path / "h", night(number, boards=("e1",), cases=1, boots=6))
    before = load(tmp_path / "h")
    imported(table(tmp_path, *figures()), tmp_path)
    after = load(tmp_path / "h")
    assert {session.rack for session in after.sessions} == {"bench-1", "imported"}
    for series_id, role in before.entries:
        old, new = before.series(series_id, role), after.series(series_id, role)
        assert old is not None
        assert new is not None
        assert new.value.tolist() == old.value.tolist()
        assert nights_of(after, series_id) == nights_of(before, series_id)
    assert survey(after, {}, racks=["bench-1"]) == survey(before, {}, racks=["bench-1"])
    assert load(tmp_path / "h", racks=["bench-1"]).entries.keys() == before.entries.keys()


def test_the_trend_shows_them_with_their_word(tmp_path: Path) -> None:
    """The report draws imported figures in charts of their own, with the change, whatever it reports."""
    imported(table(tmp_path, *figures(450, first="2024-06-01")), tmp_path)
    imported(table(tmp_path, *figures()), tmp_path, "e2/publish/publish_failed_ratio")
    reported = line(LATEST, {METRIC: figure(7000.0)}, trigger="pr")
    data = trend(reported, history=load(tmp_path / "h"), most=400)
    kinds = {one["id"]: one["kind"] for one in data["series"]}
    measured = next(name for name in kinds if name.startswith("lab/"))
    assert kinds == {
        measured: "physical",
        SERIES: "imported",
        "imported/e2/publish//publish_failed_ratio": "imported",
    }
    first = next(one for one in data["series"] if one["id"] == SERIES)
    assert len(first["points"]["value"]) == 400
    short = next(one for one in data["series"] if one["board"] == "e2")
    assert (len(short["points"]["value"]), short["now"]) == (60, None)
    (change,) = short["changes"]
    assert (change["position"], short["label"]) == (STEP, "defaults")
    assert "(imported)" in data["events"][change["event"]]["headline"]


HEADING = "time,commit,value"
WRONG_TIMES = {
    "before the year 2000": "1711-11-11 17111111 1970-01-01T00:00:00Z 1999-12-31 0001-01-01T00:00:00+05:00",
    "yet to come": "9999-12-31T23:59:59-05:00 2026-11-25",
    "neither s nor ms": "17111111110 20260301031100 946684799",
    "is not as 2026-11-24": "1.71111E+12 -1711111111 2026-03-01+02:00 2026-03-01-03:11 01/03/2026 46082",
}


@pytest.mark.parametrize(
    ("written", "word"),
    [
        *((written, word) for word, times in WRONG_TIMES.items() for written in times.split()),
        ("2026-03-01 03:11:00 CET", "is not as 2026-11-24"),
        ("", "is not as 2026-11-24"),
    ],
)
def test_a_time_that_cannot_be_meant_is_refused(written: str, word: str, tmp_path: Path) -> None:
    """File, line, what stands there and how it is written; nothing is imported."""
    with pytest.raises(ConfigError, match=re.escape(f"old.csv, line 3: time {written!r}")) as caught:
        imported(table(tmp_path, ("2026-01-01", "abcdef0", "1"), (written, "abcdef0", "1")), tmp_path)
    assert word in str(caught.value)
    assert not contents(tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("date,commit,value\n2026-01-01,abcdef0,1\n", r"line 1: .* 'date,commit,value'.*time,commit,value"),
        (
            "time;commit;value\n2026-01-01;abcdef0;1,5\n",
            "line 1: .*'time;commit;value'.*commas .* semicolons",
        ),
        ("time\tcommit\tvalue\n", "line 1: .*commas instead of tabs"),
        (f"sep=,\n{HEADING}\n2026-01-01,abcdef0,1\n", "line 1: .* 'sep=,'"),
        (f"{HEADING},note\n", "line 1: .* 'time,commit,value,note'"),
        (f"{HEADING},value\n2026-01-01,abcdef0,1,2\n", "line 1: .* 'time,commit,value,value'"),
        ("time,value,value\n", "line 1: .* 'time,value,value'"),
        ("", "line 1: .* ''"),
        (f"{HEADING}\n\n", "no values"),
        (f"{HEADING}\n31.12.2025,abcdef0,1\n", "line 2: time '31.12.2025'"),
        (f"{HEADING}\n2026-01-01;abcdef0;1\n", "line 2: 1 fields, not 3"),
        (f"{HEADING}\n2026-01-01,abcdef0,1,5\n", "line 2: 4 fields, not 3"),
        *(
            (f"{HEADING}\n2026-01-01,{it},1\n", f"line 2: commit '{it}' .* 7 to 40")
            for it in ("v1.2", "12345")
        ),
        *(
            (f'{HEADING}\n2026-01-01,abcdef0,"{value}"\n', f"line 2: value '{value}' is not a number")
            for value in ("1,5", "nan", "", "0x10", "1 000")
        ),
        (f"{HEADING}\n2026-01-01,abcdef0,12 ms\n", "line 2: value '12 ms'.*no unit"),
        (f'{HEADING}\n2026-01-01,abcdef0,1\n"2026-01-02,abcdef0,1\n', "line 3: .*quotation"),
        (f'{HEADING}\n2026-01-01,abcdef0,"1"2\n', "line 2: .*quotation"),
        pytest.param(f"{HEADING}\n2026-01-01,abcdef0,{'1' * 140_000}\n", "line 2: field larger", id="long"),
        pytest.param("PK\x03\x04\x00", "no text.*as CSV", id="a zip"),
    ],
)
def test_what_is_wrong_is_named_by_line(text: str, words: str, tmp_path: Path) -> None:
    """Other separators, doubled columns, empty cells, quotes that do not close: file, line, what stands there
    and the way out; nothing is guessed or written."""
    path = tmp_path / "old.csv"
    path.write_text(text)
    with pytest.raises(ConfigError, match=rf"(?s)old\.csv.*{words}"):
        imported(path, tmp_path)
    assert not contents(tmp_path)


def test_many_wrong_lines_are_listed_at_once(tmp_path: Path) -> None:
    """The first five are said, how many there are, and nothing of the good lines is written."""
    bad = [("2026-01-01", "abcdef0", f"{number} ms") for number in range(9)]
    with pytest.raises(ConfigError, match="9 of 69 lines are wrong, so nothing was imported") as caught:
        imported(table(tmp_path, *figures(), *bad), tmp_path)
    assert [f"line {number}: " in str(caught.value) for number in (62, 66, 67)] == [True, True, False]
    assert "and 4 more" in str(caught.value)
    assert not contents(tmp_path)


def test_another_value_at_a_known_time_is_refused(tmp_path: Path) -> None:
    """The history never changes: both values are said, with the file of one; the rest is not written."""
    imported(table(tmp_path, *figures(3)), tmp_path)
    before = contents(tmp_path)
    rows = [*figures(2), ("2026-01-03", "0000000", "13"), ("2026-01-04", "0000001", "12")]
    with pytest.raises(
        ConfigError, match=r"2026-01-03T12:00:00Z of commit 0000000 it says 13, but .*json 12\."
    ) as caught:
        imported(table(tmp_path, *rows), tmp_path)
    assert "Nothing was imported" in str(caught.value)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("publish_latency_p95_ms", "names no series"),
        ("lab/e1/publish/qos=1/publish_latency_p95_ms", "names no series"),
        ("e1/../qos=1/latency_ms", "names no series"),
        ("e1/publish/qos/latency_ms", "'qos' in .* are not parameters"),
        ("e1/publish/qos=1/latency", "'latency' does not end with a unit; known endings: _ns, _us"),
    ],
)
def test_a_series_without_a_sound_name_is_refused(text: str, words: str) -> None:
    """Board, bench, parameters and a metric that ends with its unit; the sentence shows one."""
    with pytest.raises(ConfigError, match=words):
        series_name(text)


def test_parameters_have_one_order() -> None:
    """The same parameters are the same series, as for what is measured."""
    assert series_name("e1/publish/qos=1,count=2/latency_us") == series_name(
        "e1/publish/count=2,qos=1/latency_us"
    )


def test_no_run_is_mixed_in(tmp_path: Path) -> None:
    """A file that puts what was measured among the imported, or the other way round, is refused."""
    imported(table(tmp_path, *figures(1)), tmp_path)
    (path,) = paths_in(tmp_path / "h")
    sound = path.read_text()
    for old, new in (
        ('"trigger":"imported"', '"trigger":"nightly"'),
        ('"kind":"imported"', '"kind":"physical"'),
    ):
        assert old in sound
        path.write_text(sound.replace(old, new))
        (said,) = load(tmp_path / "h").left_out
        assert "are not all 'imported'" in said


def test_the_command_says_what_came_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is new, what was there, what repeats; show and export have the word."""
    path = table(tmp_path, *figures(3), figures(1)[0])
    arguments = ["import", str(path), "--as", AS, "--history", str(tmp_path / "h")]
    assert run_command(arguments) == 0
    said = capsys.readouterr().out
    assert re.search(rf"^{SERIES}\n4 new .* 0 were.*\n1 line of {path} ", said)
    assert run_command(arguments) == 0
    assert re.search(r"^0 new .* 4 were ", capsys.readouterr().out, re.M)
    own = ["--history", str(tmp_path / "h")]
    assert run_command(["history", "show", "e1", *own]) == 0
    assert run_command(["history", "export", *own]) == 0
    out = capsys.readouterr().out
    assert "imported  candidate  3         4" in out
    assert "Z,imported,e1,imported,imported,publish,publish/qos=1,publish_latency_p95_ms,ms," in out
    assert run_command(["import", str(tmp_path / "gone.csv"), *arguments[2:]]) == 2
    assert "gone.csv: " in capsys.readouterr().err
