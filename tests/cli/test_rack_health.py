# SPDX-License-Identifier: Apache-2.0
"""`hil rack health`: state, failures by owner, time to recovery, and what to do."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from hil.boards.lease import lease_boards
from hil.boards.quarantine import put, read_quarantine, release
from hil.cli.app import run_command as hil
from hil.cli.rack import lines
from hil.history.health.summary import summarise
from hil.history.health.words import HEAD, advice, duration, percent
from hil.history.summary import Summary
from hil.model import Fault
from hil.store.run_info import utc_now
from tests.ci.test_ci_comment_hostile import Seen
from tests.history.health_runs import KEPT_OUT, at, run_at
from tests.lab import Lab, make_lab
from tests.reports.site_runs import store_run
from tools.comment_page import to_html


def runs() -> list[Summary]:
    """Return three runs of three boards: one kept out, one down, one that panicked once."""
    words = (("ok", "rig", "panic"), ("quarantine", "rig", "ok"), ("quarantine", "rig", "absent"))
    return [run_at(hour, *parts) for hour, parts in enumerate(words)]


def test_it_advises_whom_to_keep_out() -> None:
    """Three rig faults in a row earn the command; a board that is kept out already earns none."""
    (rack,) = summarise(runs(), now_utc=at(24))
    (told,) = advice(rack, Path("my rack.yaml"))
    assert re.search("hil board quarantine e2 .* --rack 'my rack.yaml'$", told)
    (rack,) = summarise(runs()[:2], now_utc=at(24))
    assert advice(rack, Path("rack.yaml")) == []


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (0.4, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (5400, "1.5 h"),
        (36_000, "10 h"),
        (190_000, "2.2 d"),
    ],
)
def test_a_duration_has_the_unit_that_suits_it(seconds: float | None, text: str) -> None:
    """Seconds below a minute, days from one on; nothing where nothing is known."""
    assert duration(seconds) == text


def test_a_small_share_is_not_zero() -> None:
    """What happened once in a thousand runs did happen."""
    shares = {None: "–", 0.0: "0 %", 0.001: "< 1 %", 0.125: "12 %", 1.0: "100 %"}
    assert [percent(ratio) for ratio in shares] == list(shares.values())


def lab_of_two(folder: Path) -> tuple[Lab, str, list[str]]:
    """Return a lab of b1 and b2, its rack's name, and the options that name it."""
    lab = make_lab(folder, 2)
    name = re.findall(r"^name: (.*)$", lab.rack.read_text(), re.MULTILINE)[0]
    return lab, name, ["--rack", str(lab.rack), "--out", str(lab.out)]


def failed_now(out: Path, rack: str, hour: str) -> Path:
    """Leave a run of today in which the rig failed on b1."""
    today = utc_now()[:10].replace("-", "")
    boards = [{"id": "b1", "kind": "virtual", "target": "virtual-esp32"}]
    fault = Fault("", "rig", 3, "board b1: not a byte came.", "b1")
    return store_run(out, f"{today}T0000{hour}Z-quick-0001", [fault], rack=rack, boards=boards)


def test_health_reads_runs_that_no_history_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`hil rack health`: a line a board, those without a run too; three faults in a row earn advice. A board
    that left the rack file is named with when it was last seen, and nothing fails or advises for it."""
    lab, name, where = lab_of_two(tmp_path)
    for hour in ("00", "01", "02"):
        failed_now(lab.out, name, hour)
    arguments = ["rack", "health", *where]
    assert hil(arguments) == 0
    said = capsys.readouterr().out
    assert re.search(rf"^rack {name} \(virtual\), .* 30 days: 3 runs", said, re.MULTILINE)
    assert re.search(r"^b1 .*✗ down since .* 3 +100 % ", said, re.MULTILINE)
    assert "fault: board b1: not a byte" in said
    assert re.search(r"^b2 .*– no run", said, re.MULTILINE)
    assert "failed runs: rig 100 %" in said
    assert "time to recovery: –, " in said
    assert re.search(r"^→ .*b1: .* 3 runs .*: hil board quarantine b1", said, re.MULTILINE)
    assert hil([*arguments, "--fail-on-down"]) == 3
    put(lab.out / "lock" / name, replace(KEPT_OUT, board="b1"))
    assert hil([*arguments, "--fail-on-down"]) == 0
    capsys.readouterr()
    assert hil([*arguments, "--json"]) == 0
    (one, two) = json.loads(capsys.readouterr().out)["boards"]
    assert (one["faults_in_a_row"], one["quarantine"]["who"], two["runs"]) == (3, "anna", 0)
    assert hil([*arguments, "--markdown"]) == 0
    assert "| `b1` | virtual |" in capsys.readouterr().out

    lab.rack.write_text(lab.rack.read_text().replace("b1", "b9"))
    assert hil([*arguments, "--fail-on-down"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"^b1 .* 2026-11-01 05:00 UTC by anna: its port", said, re.MULTILINE)
    assert re.search(r"^b9 .*– no run", said, re.MULTILINE)
    release(lab.out / "lock" / name, "b1")
    assert hil([*arguments, "--fail-on-down"]) == 0
    said = capsys.readouterr().out
    assert re.search(rf"^b1 is not in {lab.rack} any more; last seen 20\d\d-", said, re.MULTILINE)
    assert "hil board quarantine b1" not in said


def test_what_a_board_said_does_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A fault may quote a board: it moves no cursor, and is no link or image in a workflow's summary."""
    lab, name, where = lab_of_two(tmp_path)
    run = failed_now(lab.out, name, "00")
    journal = next(run.glob("*.jsonl"))
    said = r"\u001b[2J\u202e ![x](http://evil.example/x.png) <img src=x> | @you"
    journal.write_text(journal.read_text().replace("not a byte came", said))
    arguments = ["rack", "health", *where]
    assert hil([*arguments, "--fail-on-down"]) == 3
    shown = capsys.readouterr()
    assert "board b1: ![x](http://evil" in shown.out
    assert not re.search("[\x1b\u202e]", shown.out + shown.err)
    assert hil([*arguments, "--markdown"]) == 0
    seen = Seen(to_html(capsys.readouterr().out))
    assert not {"a", "img"} & set(seen.tags)
    assert seen.tags.count("td") == 2 * (len(HEAD) + 1)


@pytest.mark.parametrize("width", [None, 120, 60])
def test_a_board_stays_on_its_line(width: int | None) -> None:
    """On a narrow terminal the columns that tell least are left out, and named; state and times stay."""
    (rack,) = summarise(runs(), now_utc=at(24))
    head, *rest = list(lines(rack, Path("rack.yaml"), width))[1:]
    said = [line for line in rest if line.startswith("(")]
    gone = said[0].partition(":")[0].strip("(").split(", ") if said else []
    assert sorted([*gone, *re.split(" {2,}", head)]) == sorted(HEAD)
    assert not {"state", "runs", "failed", "last seen"} & set(gone)
    assert (width == 60) is bool(gone)


def test_a_run_under_way_is_not_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its boards are held: what it leaves so far is no run that was killed."""
    lab, name, where = lab_of_two(tmp_path)
    run = failed_now(lab.out, name, "00")
    arguments = ["rack", "health", *where, "--json"]
    with lease_boards(lab.out / "lock" / name, ["b1"], run_id=run.name):
        assert hil(arguments) == 0
    assert hil(arguments) == 0
    under_way, ended = capsys.readouterr().out.splitlines()
    assert [json.loads(said)["runs"] for said in (under_way, ended)] == [0, 1]


def test_a_board_goes_into_quarantine_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`hil board quarantine`, `release`: `hil rack status` says why; an unknown board is refused."""
    lab, _name, where = lab_of_two(tmp_path)
    assert hil(["board", "quarantine", "b1", "--why", " the port\nvanishes ", *where]) == 0
    (found,) = [one for path in (lab.out / "lock").iterdir() for one in read_quarantine(path).values()]
    assert (found.board, found.why) == ("b1", "the port vanishes")
    assert hil(["rack", "status", *where]) == 0
    assert re.search(r"by .*: the port vanishes", capsys.readouterr().out)
    assert hil(["board", "quarantine", "b1", "--why", " ", *where]) == 2
    assert hil(["board", "quarantine", "b9", "--why", "dark", *where]) == 2
    assert hil(["board", "release", "b9", *where]) == 2
    capsys.readouterr()
    assert hil(["board", "release", "b1", *where]) == 0
    assert hil(["board", "release", "b1", *where]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "b1: was in no quarantine"
