# SPDX-License-Identifier: Apache-2.0
"""`hil history`: runs into the history, and the history as tables, CSV and one folder of many racks."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hil.base.errors import ConfigError
from hil.cli.app import run_command
from hil.history import load
from hil.history.export import COLUMNS
from hil.history.from_run import add_run
from hil.metrics.boot_value import boot_value
from hil.metrics.conditions import CONDITIONS, conditions_of
from hil.model import Comparison, Role, RunRecord, Verdict
from hil.store import read_run
from tests import make_records
from tests.history.history_files import night
from tests.history.test_history_store import store
from tests.make_records import THRESHOLDS_ROOT, publish_record, publish_thresholds

ROOT = Path(__file__).resolve().parents[2]
RUN_ID = "20261121T010203Z-nightly-0001"
SHA: dict[Role, str] = {"candidate": "ab" * 32, "base": "cd" * 32, "reference": "ef" * 32}
ROLES: tuple[Role, ...] = ("candidate", "reference", "candidate", "base")


def boot(index: int, role: Role, board: str = "v1", **changes: Any) -> RunRecord:
    record = publish_record(board=board, boot_index=index, failed=index * 4, rows=60, seed=index)
    record = replace(record, run_id=RUN_ID, role=role, firmware_sha256=SHA[role], ruler_hash=f"of {role}")
    return replace(record, **changes)


def leave_run(out: Path, records: list[RunRecord], **info: Any) -> Path:
    """Leave the folder of a judged run; ``info`` changes run.json."""
    facts = {"run_id": RUN_ID, "suite": "nightly", "trigger": "nightly"}
    facts |= {"started_utc": "2026-11-21T01:02:03Z", "git": {"commit": "a" * 40, "dirty": False}}
    boards = tuple(sorted({record.board for record in records})) or ("v1",)
    of = (RUN_ID, "virtual", "virtual-esp32+tick100", "virtual-esp32", boards)
    comparison = Comparison(*of, "reference", SHA["candidate"], SHA["reference"], ((2, 1),))
    verdict = Verdict(RUN_ID, "pass", 0, "all passed", (), (), ())
    directory = make_records.leave_run(out, [comparison, *records], verdict, **{**facts, **info})
    directory.keep([THRESHOLDS_ROOT / "publish.yaml"], "thresholds")
    return directory.path


def four_boots() -> list[RunRecord]:
    return [boot(index, role, board) for board in ("v1", "v2") for index, role in enumerate(ROLES)]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return leave_run(tmp_path / "out", four_boots())


def test_a_run_becomes_its_boot_values(run: Path, tmp_path: Path) -> None:
    """Every metric of every record, candidate and reference, as boot_value() says; nothing of the base. The
    same run is the same bytes, whatever order its records came in, and is left as it is."""
    added = add_run(read_run(run), tmp_path / "h")
    assert added.path == tmp_path / "h" / "virtual" / f"{RUN_ID}.json"
    assert added.is_new
    history = load(tmp_path / "h")
    kept = [record for record in four_boots() if record.role != "base"]
    expected = [
        (f"virtual/{record.board}/{record.case_id}/{metric.name}", record, boot_value(metric, record))
        for record in kept
        for metric in publish_thresholds().metrics_of(record.parameters)
    ]
    assert added.values == len(expected) == sum(map(len, history.entries.values()))
    for name, record, value in expected:
        entry = history.series(name, record.role)
        assert entry is not None
        row = entry.boot.tolist().index(record.boot_index)
        assert value is not None
        assert entry.value[row] == pytest.approx(value.value, rel=1e-9)
        assert (entry.samples[row], entry.hits[row]) == (value.samples, value.hits)
        assert (entry.ruler[row], entry.firmware[row]) == (f"of {record.role}", SHA[record.role])
    (session,) = history.sessions
    assert (session.commit, session.dirty) == ("a" * 40, False)
    assert (session.trigger, session.suite) == ("nightly", "nightly")
    roles: tuple[Role, ...] = ("candidate", "reference")
    assert session.firmware == {f"{role} virtual-esp32+tick100": SHA[role] for role in roles}
    assert session.kind_of("v2") == "virtual"
    assert session.conditions["v1.air"] == "lab"
    assert not add_run(read_run(run), tmp_path / "h").is_new
    other = leave_run(tmp_path / "other", four_boots()[::-1])
    assert add_run(read_run(other), tmp_path / "h2").path.read_bytes() == added.path.read_bytes()


def test_conditions_are_what_values_hang_on() -> None:
    """Access point, air, broker, clock, noise; what changed says so; no address that can be looked up."""
    first = boot(0, "candidate")
    environment = {
        "access_point": {"type": "external", "ssid": "lab", "seed": 3},
        "device": {"bssid": "AA:BB:CC:DD:EE:FF", "channel": 6, "sched": "fifo", "uptime_us": 5},
        "broker": {"version": "2.0.11", "config_sha256": "12" * 32, "tcp_port": 1},
        "host": {"governor": "performance", "load_1min": 0.5},
        "noise": {"profile": "typical", "simulated": True, "boot_offset": 0.01},
    }
    moved = {**environment, "device": {**environment["device"], "channel": 11}}
    records = [replace(first, environment=environment), replace(first, boot_index=1, environment=moved)]
    found = conditions_of(records)
    assert found == {
        "access_point": "external",
        "broker": "2.0.11",
        "broker_config": "121212121212",
        "bssid": found["bssid"],
        "channel": "11 | 6",
        "clock": "esp_timer",
        "governor": "performance",
        "noise": "typical",
        "noise_simulated": True,
        "sched": "fifo",
        "ssid": "lab",
    }
    assert len(str(found["bssid"])) == 5
    elsewhere = {**environment, "device": {**environment["device"], "bssid": "AA:BB:CC:DD:EE:FE"}}
    assert conditions_of([replace(first, environment=elsewhere)])["bssid"] != found["bssid"]


COPY = "20261122T000000Z-copy-0001"
REFUSED: list[tuple[dict[str, Any], Callable[[Path], object] | None, str]] = [
    ({"trigger": "pr"}, None, "a pull request"),
    ({"git": {"commit": "a" * 40, "dirty": True}}, None, "not committed.*--force"),
    ({"git": {"commit": "", "dirty": False}}, None, "not committed.*--force"),
    ({"rack": "attic"}, None, r"belong to attic: .*its records to virtual: "),
    ({}, lambda run: (run / "verdicts.json").unlink(), "the run has no verdict.*hil gate"),
    ({}, lambda run: (run / "run.json").unlink(), r"run\.json is missing"),
    ({}, lambda run: shutil.rmtree(run / "thresholds"), r"no publish\.yaml"),
    ({}, lambda run: (run / "records.jsonl").write_text("7\n"), r"records\.jsonl:1: not an entry"),
    ({}, lambda run: run.rename(run.with_name(COPY)), f"virtual: {COPY}, its records to virtual: {RUN_ID}"),
]


@pytest.mark.parametrize(("info", "change", "sentence"), REFUSED, ids=range(len(REFUSED)))
def test_what_may_not_enter(
    tmp_path: Path, info: dict[str, Any], change: Callable[[Path], object] | None, sentence: str
) -> None:
    """Pull requests, unfinished and unfindable runs, damaged folders: the reason; nothing is written. A copy
    of a folder under another name would count twice: both names are said."""
    run = leave_run(tmp_path / "out", four_boots(), **info)
    moved = change(run) if change else None
    run = moved if isinstance(moved, Path) else run
    with pytest.raises(ConfigError, match=f"(?s){sentence}"):
        add_run(read_run(run), tmp_path / "h")
    assert not (tmp_path / "h").exists()


def test_what_no_board_can_have_measured(tmp_path: Path) -> None:
    """A boot that is there twice, an image with two rulers, nothing measured: refused by name."""
    twice = [*four_boots(), boot(0, "candidate")]
    rulers = [boot(0, "candidate"), boot(2, "candidate", ruler_hash="another")]
    for number, (records, sentence) in enumerate(
        [
            (twice, "candidate boot 0 of board v1 has publish/.* twice"),
            (rulers, "publish by two rulers"),
            ([boot(3, "base")], "no boot value"),
            ([], "no boot value"),
        ]
    ):
        run = leave_run(tmp_path / f"out{number}", records)
        with pytest.raises(ConfigError, match=sentence):
            add_run(read_run(run), tmp_path / "h")


def test_a_person_may_insist(tmp_path: Path) -> None:
    """--force lets sources in that were not committed, and the session says so; never a pull request."""
    dirty = leave_run(tmp_path / "a", four_boots(), git={"commit": "a" * 40, "dirty": True})
    assert run_command(["history", "add", str(dirty), "--history", str(tmp_path / "h")]) == 2
    assert run_command(["history", "add", "--force", str(dirty), "--history", str(tmp_path / "h")]) == 0
    assert load(tmp_path / "h").sessions[0].dirty
    asked = leave_run(tmp_path / "b", four_boots(), trigger="pr")
    assert run_command(["history", "add", "--force", str(asked), "--history", str(tmp_path / "h2")]) == 2


def test_the_commands(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """add, show, export, merge: what they print, and where."""
    history = ["--history", str(tmp_path / "h")]
    assert run_command(["history", "add", str(run), str(run), *history]) == 0
    assert "added" in (said := capsys.readouterr().out)
    assert "was there already" in said
    assert run_command(["history", "show", *history]) == 0
    said = capsys.readouterr().out
    assert RUN_ID in said
    assert "v1 (virtual), v2 (virtual)" in said
    assert "1 session of virtual" in said
    assert run_command(["history", "show", "v1", "latency_p50", *history]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].split() == ["kind", "role", "sessions", "boots", "median", "deviation", "last", "series"]
    assert [row.split()[:4] for row in rows[1:]] == [
        ["virtual", "candidate", "1", "2"],
        ["virtual", "reference", "1", "1"],
    ]
    assert " ms " in rows[1]


def test_csv_has_a_line_a_boot_value(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Name, unit, time, commit, firmware, role and kind stand in each line; a timeout says so."""
    history = ["--history", str(tmp_path / "h")]
    added = add_run(read_run(run), tmp_path / "h")
    capsys.readouterr()
    assert run_command(["history", "export", *history]) == 0
    lines = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(lines) == added.values
    assert tuple(lines[0]) == COLUMNS
    wanted = {"metric": "publish_latency_p95_us", "board": "v2", "boot": "2"}
    line = next(line for line in lines if wanted.items() <= line.items())
    of = f"virtual|v2|virtual-esp32|virtual|publish|{boot(2, 'candidate').case_id}|publish_latency_p95_us|us"
    measured = f"candidate||1|60|8|2|{RUN_ID}|nightly|{'a' * 40}|0|{SHA['candidate']}|of candidate|"
    assert "|".join(line.values()) == f"2026-11-21T01:02:03Z|{of}|{measured}"
    assert run_command(["history", "export", "v1", "p50", *history]) == 0
    some = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {line["board"] for line in some} == {"v1"}
    assert all(float(line["value"]) > 0 for line in some)


def test_simulated_figures_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Noise that a virtual rack simulates is named wherever its figures show."""
    noise = {"noise": {"profile": "typical", "simulated": True}}
    record = boot(0, "candidate")
    run = leave_run(tmp_path / "out", [replace(record, environment={**record.environment, **noise})])
    add_run(read_run(run), tmp_path / "h")
    for command in (["show"], ["show", "p50"], ["export", "p50"]):
        assert run_command(["history", *command, "--history", str(tmp_path / "h")]) == 0
        assert "virtual, simulated noise" in capsys.readouterr().out


def test_bad_input_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder that is no run, an empty history, a word that fits nothing."""
    folder = store(tmp_path / "h", night(0))
    history = ["--history", str(folder)]
    none = ["--history", str(tmp_path / "none")]
    for arguments, words in (
        (["add"], "hil history add out/latest"),
        (["add", str(folder), *history], "no records.jsonl"),
        (["show", *none], "holds no history"),
        (["export", *none], "holds no history"),
        (["show", "p49", *history], "'p49'"),
    ):
        assert run_command(["history", *arguments]) == 2, arguments
        assert words in capsys.readouterr().err


def test_a_torn_journal_is_told(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the last line held is lost; the rest is added, and that is said."""
    with (run / "records.jsonl").open("a") as stream:
        stream.write(json.dumps(boot(4, "candidate").to_json())[:90])
    assert run_command(["history", "add", str(run), "--history", str(tmp_path / "h")]) == 0
    assert re.search(rf"records\.jsonl:{len(four_boots()) + 2}: .*cut off", capsys.readouterr().out)


def test_the_documentation_names_every_column_and_condition() -> None:
    """docs/operate/history.md: what a line of CSV holds, what values hang on."""
    text = (ROOT / "docs" / "operate" / "history.md").read_text()
    for key in (*COLUMNS, *CONDITIONS):
        assert f"`{key}`" in text, key
