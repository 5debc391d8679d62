# SPDX-License-Identifier: Apache-2.0
"""What a suite's file becomes: records, limits, a verdict; and every way in which it is none."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hil.base.errors import ConfigError
from hil.gate import judge
from hil.model import ComparedSeries, Comparison, Entry, Fault, NotRun, Role, RunRecord, Verdict
from hil.store import read_measured
from hil.store.run_info import planned_boots
from hil.suite.compared import ROLES, Turn, comparisons_of, not_compared
from hil.suite.facts import Fact, read_sessions
from hil.suite.figures import figures_of
from hil.suite.limits import limits_of
from hil.suite.naming import bench_of_test, label_of_test, named
from hil.suite.records import entries_of
from hil.suite.taking import Taken, take
from hil.thresholds import load, load_project, own_limits, project_files
from tests.lab import ROOT

NODE = "tests/test_wifi.py::test_connect"
OTHER_TEST = "tests/test_wifi.py::test_join"
BEGAN = "2026-11-29T10:00:00Z"
SESSION = {"fact": "session", "schema": 1, "session": "20261129T100000Z-0a1b", "started_utc": BEGAN}
BOARD = {"fact": "board", "board": "esp32-123456", "kind": "physical", "target": "esp32"}
END = {"fact": "end", "exit_status": 0}


def value(name: str, number: float, node: str = NODE, **more: object) -> dict[str, object]:
    return {
        "fact": "metric", "test": node, "board": "esp32-123456", "name": name, "value": number,
        "at_utc": "2026-11-29T10:00:01Z", "source": "metric", **more,
    }  # fmt: skip


def passed(node: str = NODE, **more: object) -> dict[str, object]:
    return {"fact": "test", "test": node, "outcome": "passed", "boards": ["esp32-123456"], **more}


def write(folder: Path, *facts: Mapping[str, object], end: bool = True) -> Path:
    lines = [SESSION, BOARD, *facts, *([END] if end else [])]
    path = folder / "s1.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def taken(folder: Path, *facts: Mapping[str, object], end: bool = True) -> Taken:
    """Take a session of one board; the project's thresholds are in ``folder``."""
    (session,) = read_sessions([write(folder, *facts, end=end)])
    found = take(session, folder / "out", folder / "thresholds", "local")
    assert found
    return found


def verdict_of(found: Taken) -> Verdict:
    run = read_measured(found.directory.path)
    return judge(run.journal.entries, own_limits(run), planned_boots(run.info))


def outcomes(found: Taken) -> dict[str, str]:
    return {item.metric: item.outcome for item in verdict_of(found).series}


@pytest.mark.parametrize(
    ("name", "unit", "called", "column"),
    [
        ("connect_ms", "", "connect_ms", "connect_ns"),
        ("connect", "ms", "connect_ms", "connect_ns"),
        ("connect_ms", "ms", "connect_ms", "connect_ns"),
        ("boot_time_seconds", "", "boot_time_s", "boot_time_ns"),
        ("boot_time", "seconds", "boot_time_s", "boot_time_ns"),
        ("messages_per_s", "", "messages_ops", "messages_microops"),
        ("link_mbit_per_s", "", "link_mbps", "link_bps"),
        ("heap_bytes", "", "heap_bytes", "heap_microbytes"),
        ("loss_percent", "", "loss_percent", "loss_micropercent"),
        ("score", "", "score_value", "score_microvalue"),
    ],
)
def test_a_name_has_one_unit(name: str, unit: str, called: str, column: str) -> None:
    """The unit ends the name, is said, or is none; samples are kept in whole numbers of a smaller unit."""
    found = named(name, unit, NODE)
    assert (found.name, found.column) == (called, column)


@pytest.mark.parametrize(
    ("node", "bench", "label"),
    [
        ("tests/test_wifi.py::test_connect", "wifi", "test_connect"),
        ("a/pytest_hello.py::TestBoot::test_it[esp32-a=1,b/c]", "hello", "TestBoot.test_it[esp32-a-1-b-c]"),
    ],
)
def test_a_test_is_a_case(node: str, bench: str, label: str) -> None:
    """The file is the bench, the test its case; no sign of a case's id is in a label."""
    assert (bench_of_test(node), label_of_test(node)) == (bench, label)


def test_values_become_a_record_and_a_verdict(tmp_path: Path) -> None:
    """A record a board and test, in whole numbers; a limit of the call is of each value, and a fact."""
    found = taken(
        tmp_path,
        value("connect_ms", 412, limit=800),
        value("connect_ms", 801.5, limit=800),
        value("free_bytes", 1234, limit=1000, direction="higher"),
        value("retries_count", 0),
        passed(),
    )
    (record,) = found.directory.read().records
    assert record.columns["connect_ns"] == (412_000_000, 801_500_000)
    assert record.columns["connect_ms_row_count"] == (1, 1)
    assert record.columns["free_bytes_row_count"] == (1, 0), "of two rows it has one"
    assert record.case_id == "wifi/test=test_connect"
    judged = {"connect_ms": "regressed", "free_bytes": "pass", "retries_count": "undecided"}
    assert outcomes(found) == judged
    verdict = verdict_of(found)
    assert verdict.exit_code == 1
    (broken,) = [item for item in verdict.series if item.outcome == "regressed"]
    assert (broken.value, broken.limit, broken.samples) == (801.5, 800.0, 2)
    assert "tests/test_wifi.py::test_connect" in broken.limit_why


OWN = """\
schema: 1
bench: wifi
limits:
  - where: {metric: connect_ms}
    abs_max_ms: 400
    each: true
    why: the product promises it
    since: {date: 2026-11-20}
  - where: {metric: join_ms, case: {test: test_join}}
    abs_max_ms: 400
    why: of a test that did not run
    since: {date: 2026-11-20}
"""


def test_the_projects_limit_wins(tmp_path: Path) -> None:
    """hil/thresholds/<file>.yaml holds against the call, by file and line; what it lacks is the call's.

    What it says of tests that did not run breaks no part of a suite, and is named.
    """
    (tmp_path / "thresholds").mkdir()
    (tmp_path / "thresholds" / "wifi.yaml").write_text(OWN, encoding="utf-8")
    found = taken(tmp_path, value("connect_ms", 412, limit=800), value("up_ms", 5, limit=8), passed())
    assert outcomes(found) == {"connect_ms": "regressed", "up_ms": "pass"}
    (broken,) = [item for item in verdict_of(found).series if item.metric == "connect_ms"]
    assert broken.limit_source == "thresholds/wifi.yaml:4"
    named = [re.match(r"thresholds/wifi\.yaml:9 .*?\b(\w*join\w*)", note) for note in found.notes]
    assert [one and one[1] for one in named] == ["join_ms", "test_join"]
    assert "wifi.yaml" not in [path.name for path in project_files(tmp_path / "thresholds")], "no bench"


def test_sessions_in_turns_find_what_grew(tmp_path: Path) -> None:
    """The sessions of two firmwares, as boots of one run: 30 % more is a regression, a repetition is none."""

    def compared(factor: float) -> ComparedSeries:
        figures, sessions = [], []
        for boot in range(12):
            number = 100.0 * (1 + boot % 5 / 200) * (factor if boot % 2 else 1.0)
            image = ("a" if boot % 2 else "b") * 64
            path = write(tmp_path, {**BOARD, "image_sha256": image}, value("connect_ms", number), passed())
            (session,) = read_sessions([path])
            sessions.append(session)
            figures.append(figures_of(session))
        every = [figure for own in figures for figure in own]
        of = ("r", "pytest", "esp32", "esp32", ("esp32-123456",))
        entries: list[Entry] = [Comparison(*of, "base", "a" * 64, "b" * 64, ((6, 6),))]
        for boot, (session, own) in enumerate(zip(sessions, figures, strict=True)):
            role: Role = "candidate" if boot % 2 else "base"
            entries += entries_of(session, own, "r", role=role, boot_index=boot, every=every)
        texts, _ = limits_of(every, tmp_path)
        (tmp_path / "wifi.yaml").write_text(texts["wifi.yaml"], encoding="utf-8")
        (found,) = judge(entries, {"wifi": load("wifi", tmp_path)}).compared
        (tmp_path / "wifi.yaml").unlink()
        return found

    worse = compared(1.3)
    assert (worse.outcome, worse.blocking) == ("regressed", True)
    assert worse.change == pytest.approx(0.3, abs=0.02)
    assert compared(1.0).outcome != "regressed"


def test_a_limit_without_each_needs_its_samples(tmp_path: Path) -> None:
    """A limit on the metric is judged by its interval, as ever: one value leaves it undecided."""
    (tmp_path / "thresholds").mkdir()
    text = OWN.replace("    each: true\n", "")
    (tmp_path / "thresholds" / "wifi.yaml").write_text(text, encoding="utf-8")
    assert outcomes(taken(tmp_path, value("connect_ms", 412), passed())) == {"connect_ms": "undecided"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("publish", OWN.replace("wifi", "publish")),
        ("wifi", "colour: red\n"),
        ("wifi", f"{OWN}suites: {{}}\n"),
    ],
    ids=["a bench of the tool's", "no thresholds", "a bench without its metrics"],
)
def test_a_file_that_may_be_a_benchs_is_read(name: str, text: str, tmp_path: Path) -> None:
    """Limits of a bench never go unread because something is missing in their file: it is an error."""
    (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=f"{name}.yaml"):
        load_project(tmp_path)


def test_a_file_of_a_bench_is_none_of_a_suite(tmp_path: Path) -> None:
    """A test file that is called as a bench: its thresholds would be mixed."""
    (tmp_path / "thresholds").mkdir()
    (tmp_path / "thresholds" / "wifi.yaml").write_text("schema: 1\nbench: wifi\nmetrics: {}\n")
    with pytest.raises(ConfigError, match=r"it is of a bench.*rename"):
        taken(tmp_path, value("connect_ms", 412), passed())


def test_each_image_of_a_session_is_named_once(tmp_path: Path) -> None:
    """By target and file; two of one name, as of an app that was built again meanwhile, by their digests."""
    first, second = (
        {**BOARD, "image": "build/app.bin", "image_sha256": digit * 64, "idf_version": "v5.5"}
        for digit in "ab"
    )
    found = taken(
        tmp_path, first, value("a_ms", 1), second, value("b_ms", 1, OTHER_TEST), passed(), passed(OTHER_TEST)
    )
    images = {name: info.sha256[0] for name, info in found.directory.read_info().firmware.items()}
    assert images == {"esp32-app": "a", "esp32-app-bbbbbbbb": "b"}
    assert [record.firmware_sha256[0] for record in found.directory.read().records] == ["a", "b"]


def test_a_session_is_taken_once(tmp_path: Path) -> None:
    """Its run has the session's time and name, whenever it is taken; a second time it is refused."""
    found = taken(tmp_path, value("connect_ms", 412), passed())
    assert found.directory.run_id == "20261129T100000Z-pytest-0a1b"
    assert found.directory.read_info().started_utc == BEGAN
    with pytest.raises(ConfigError, match="exists already"):
        taken(tmp_path, value("connect_ms", 412), passed())


def test_what_failed_does_not_count(tmp_path: Path) -> None:
    """Values of a failed test are no measurement, and the run is incomplete; so it is where it was killed."""
    failed = {**passed(), "outcome": "failed", "said": "assert 1 == 2"}
    found = taken(tmp_path, value("connect_ms", 412, limit=800), failed)
    (entry,) = found.directory.read().entries
    assert isinstance(entry, NotRun)
    assert "assert 1 == 2" in entry.reason
    assert verdict_of(found).exit_code == 4
    (tmp_path / "killed").mkdir()
    killed = taken(tmp_path / "killed", value("connect_ms", 412, limit=800), passed(), end=False)
    assert [type(one) for one in killed.directory.read().entries] == [RunRecord, Fault]
    assert verdict_of(killed).exit_code == 3


OTHER = "other/test_wifi.py::test_connect"


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ([value("a_ms", 1, unit="s"), passed()], "unit is said to be s"),
        ([value("a", 1, unit="parsec"), passed()], "unknown unit 'parsec'"),
        ([value("a_s", 1e-12), passed()], "too small"),
        ([value("a_s", 1e12), passed()], "too large"),
        ([value("a_ms", 1, limit=1), value("a_ms", 1, limit=2), passed()], "different limits"),
        ([value("a_ms", 1), value("a_ms", 1, OTHER), passed(), passed(OTHER)], "have one name"),
    ],
)
def test_what_contradicts_itself_is_named(facts: list[dict[str, object]], said: str, tmp_path: Path) -> None:
    """The error names the test and the metric; nothing is judged."""
    (session,) = read_sessions([write(tmp_path, *facts)])
    with pytest.raises(ConfigError, match=said) as caught:
        figures_of(session)
    assert "test_wifi.py::test_connect" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({**SESSION, "schema": 2}, "update hil"),
        ({**SESSION, "more": 1}, "unknown field `more`"),
        (END, "does not begin with a session"),
        ({"fact": "else"}, "s1.jsonl:1"),
        ([1], "s1.jsonl:1"),
    ],
)
def test_a_file_of_another_kind_is_refused(line: Any, said: str, tmp_path: Path) -> None:
    """A newer format, an unknown key or fact, another file: named with file and line."""
    path = tmp_path / "s1.jsonl"
    path.write_text(f"{json.dumps(line)}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=said):
        read_sessions([path])


def test_the_schema_of_the_docs_is_that_of_the_types() -> None:
    """docs/reference/schema/suite-facts.schema.json takes the very lines that are read."""
    path = ROOT / "docs" / "reference" / "schema" / "suite-facts.schema.json"
    written = json.loads(path.read_text(encoding="utf-8"))
    added = {"$schema", "title", "description"}
    typed = json.loads(json.dumps(msgspec.json.schema(Fact)))
    assert {key: part for key, part in written.items() if key not in added} == typed


def test_a_torn_line_costs_its_fact_alone(tmp_path: Path) -> None:
    """A power cut while a line was written: the facts before it are there, and the end is missed."""
    path = write(tmp_path, value("a_ms", 1), passed(), end=False)
    path.write_text(path.read_text(encoding="utf-8") + '{"fact": "me', encoding="utf-8")
    (session,) = read_sessions([path])
    assert (len(session.values), session.cut_off) == (1, (path,))


def test_a_board_without_the_base_is_named(tmp_path: Path) -> None:
    """Of two boards the base ran on one: the other's case is not compared, and the reason is given."""
    second = {"board": "esp32-aaaaaa"}
    images = [{**BOARD, "image_sha256": digest * 64} for digest in "12"]
    new = [images[0], value("connect_ms", 412), {**images[0], **second}, value("connect_ms", 413, **second)]
    sessions = []
    for name, facts in (("new", new), ("old", [images[1], value("connect_ms", 400)])):
        (tmp_path / name).mkdir()
        sessions += read_sessions([write(tmp_path / name, *facts, passed())])
    turns = [Turn(role, session, 1.0) for role, session in zip(ROLES, sessions, strict=True)]
    compared = comparisons_of("r", turns, ((3, 3),))
    assert [one.boards for one in compared] == [("esp32-123456",)]
    (left_out,) = not_compared("r", turns, compared)
    assert (left_out.board, left_out.cause) == ("esp32-aaaaaa", "not-compared")
