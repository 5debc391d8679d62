# SPDX-License-Identifier: Apache-2.0
"""Boards in quarantine: kept in a file, left out of plans, put there by hand or by the rack's own rule."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from hil.base.errors import ConfigError, RigError
from hil.boards import lease
from hil.boards.lease import kept_dir
from hil.boards.quarantine import QUARANTINE_FILE, Watch, folder_of, put, read_quarantine, reason, release
from hil.boards.rack import load_rack
from hil.gate import judge
from hil.model import Entry, NotRun, Quarantine
from hil.reports.boards import remarks
from hil.reports.summary import render_markdown
from hil.run.campaign import check_asked, check_present, read_campaign
from hil.run.comparing import Other
from hil.run.options import RunOptions
from hil.run.plan import Plan, make_plan
from hil.run.run_facts import run_info as facts_of
from tests.history.health_runs import KEPT_OUT, board_run, run_at, with_boards
from tests.lab import make_lab
from tests.make_records import RUN_ID, publish_record, publish_thresholds, run_info
from tests.reports.as_read import as_read
from tests.run.test_plan import BENCHES

RACK_FILE = Path(__file__).resolve().parents[2] / "hil" / "racks" / "virtual.yaml"
RACK = load_rack(RACK_FILE)
V1_OUT = replace(KEPT_OUT, board="v1")


def test_a_board_is_put_there_and_released(tmp_path: Path) -> None:
    """What was said stands in the file; another word replaces it; released, the board is in it no more."""
    assert read_quarantine(tmp_path) == {}
    put(tmp_path, KEPT_OUT)
    put(tmp_path, V1_OUT)
    put(tmp_path, replace(V1_OUT, why="dark"))
    assert read_quarantine(tmp_path) == {"e1": KEPT_OUT, "v1": replace(V1_OUT, why="dark")}
    assert release(tmp_path, "e1") == KEPT_OUT
    assert release(tmp_path, "e1") is None
    assert list(read_quarantine(tmp_path)) == ["v1"]


def test_the_list_of_a_physical_rack_outlives_a_reboot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is where no reboot empties it, for all users of the host; a virtual rack's is beside its locks.

    Where that folder can be neither made nor used, it is beside the locks, too.
    """
    locks = tmp_path / "run"
    physical = load_rack(RACK_FILE.with_name("lab-example.yaml"))
    assert (RACK.is_virtual, physical.is_virtual) == (True, False)
    monkeypatch.setattr(lease, "KEPT_DIR", tmp_path / "lib" / "hil")
    assert kept_dir(physical, locks) == locks
    (tmp_path / "lib").mkdir()
    folder = kept_dir(physical, locks)
    assert folder == tmp_path / "lib" / "hil" / physical.name
    put(folder, KEPT_OUT)
    assert [path.stat().st_mode & 0o7777 for path in (folder, folder.parent)] == [0o1777, 0o1777]
    assert kept_dir(physical, locks) == folder
    monkeypatch.setattr(os, "access", lambda *_words: False)  # of another user, who looks at the same list
    assert kept_dir(physical, locks) == folder
    assert kept_dir(RACK, locks) == locks


def test_writers_do_not_lose_each_others_boards(tmp_path: Path) -> None:
    """Many at once: all of their boards are in the file."""
    boards = [f"b{n}" for n in range(8)]
    threads = [threading.Thread(target=put, args=(tmp_path, replace(KEPT_OUT, board=b))) for b in boards]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(read_quarantine(tmp_path)) == boards


@pytest.mark.parametrize(
    "damage", ["", "[]", '{"schema":2}', '{"schema":1,"boards":{"v1":{}},"faulted":{}}', "[" * 9999]
)
def test_a_damaged_file_is_an_error_with_the_way_out(tmp_path: Path, damage: str) -> None:
    """Nothing is measured, or written over it, before a person has looked."""
    path = tmp_path / QUARANTINE_FILE
    path.write_text(damage)
    for attempt in (lambda: read_quarantine(tmp_path), lambda: put(tmp_path, KEPT_OUT)):
        with pytest.raises(ConfigError, match=rf"{path}: .*delete it: then no board"):
            attempt()
    assert path.read_text() == damage


def plan_without(*boards: str, board_ids: tuple[str, ...] = ()) -> Plan:
    reasons = {board: reason(replace(KEPT_OUT, board=board), RACK_FILE) for board in boards}
    return make_plan(RACK, BENCHES, selection="publish", board_ids=board_ids, quarantine=reasons)


def test_a_board_in_quarantine_measures_nothing_and_says_why() -> None:
    """It has no boot and needs no image; each case is left out with who, since when, why and the way out."""
    plan = plan_without("v3")
    out, free = plan.for_board("v3"), plan.for_board("v1")
    assert (out.boots, out.cases) == ((), ())
    assert [item.case for item in out.omitted] == list(free.cases)
    (why,) = {item.reason for item in out.omitted}
    for part in ("2026-11-01 05:00 UTC by anna", KEPT_OUT.why, "hil board release v3 --rack "):
        assert part in why
    assert [item.board.id for item in plan.present] == ["v1", "v2", "v4"]
    assert "virtual-esp32s3" not in map(str, plan.images)


def test_a_run_is_not_undecided_for_a_board_in_quarantine() -> None:
    """What nobody expected to be measured does not touch the verdict, and every report names the board."""
    case_id = publish_thresholds().case({}).case_id
    missing = NotRun(RUN_ID, "v3", case_id, reason(KEPT_OUT, RACK_FILE), "ruled-out")
    entries: list[Entry] = [publish_record(board="v1"), missing]
    verdict = judge(entries, {"publish": publish_thresholds()})
    assert verdict.exit_code == 0
    info = run_info(quarantined=[{**vars(KEPT_OUT), "board": "v3"}])
    (told,) = (line for line in remarks(info, verdict) if "v3" in line)
    assert told.endswith(f" 2026-11-01 05:00 UTC by anna: {KEPT_OUT.why}.")
    assert f"> {told}" in as_read(render_markdown(info, verdict, []))


def test_a_run_without_a_board_that_it_needs_is_refused() -> None:
    """Exit 3 with the command that releases it: where the board was asked for, or none is left, each with its
    reason. Other boards may be asked for, and one that is left is enough."""
    check_asked(RACK, ["v2"], {"v1": V1_OUT})
    with pytest.raises(RigError, match=r"board v1 of rack virtual is quarantined.*hil board release v1"):
        check_asked(RACK, ["v2", "v1"], {"v1": V1_OUT})
    names = ("v1", "v2", "v3", "v4")
    quarantined = {name: replace(KEPT_OUT, board=name) for name in names}
    check_present(RACK, plan_without(*names[1:]), quarantined)
    with pytest.raises(RigError, match=r"v1 is quarantined .*; v4 is quarantined .*hil board release v1"):
        check_present(RACK, plan_without(*names), quarantined)


def test_a_campaign_knows_who_is_left_out(tmp_path: Path) -> None:
    """Read from the rack's file; run.json names the board, and the run goes on with the others. To ask for a
    chip is not to ask for a certain board: those of it that are left measure."""
    lab = make_lab(tmp_path, 2)
    option = RunOptions(rack=lab.rack, out=lab.out, thresholds=RACK_FILE.parents[2] / "thresholds")
    out = Quarantine("b1", "2026-11-01T05:00:00Z", "anna", "dark")
    folder = folder_of(load_rack(option.rack), option.out)
    put(folder, out)
    of_chip = replace(option, target="virtual-esp32")
    campaign = read_campaign(option)
    for each in (campaign, read_campaign(of_chip)):
        assert [plan.board.id for plan in each.plan.present] == ["b2"]
    assert facts_of(campaign, "run", {}, Other({}), "").quarantined == (out,)
    with pytest.raises(ConfigError, match="'virtual-esp32' and has the label 'bench-3'; nearest: b1 has not"):
        read_campaign(replace(of_chip, labels=("bench-3",)))
    with pytest.raises(RigError, match="board b1 of rack"):
        read_campaign(replace(of_chip, boards=("b1",)))
    release(folder, "b1")
    assert facts_of(read_campaign(option), "run", {}, Other({}), "").quarantined == ()


def test_a_rack_may_keep_a_board_out_after_faults_in_a_row(tmp_path: Path) -> None:
    """The third faulted run in a row puts it there, once, by hil; a panic or a sound run begins anew. One run
    is enough where the rack keeps boards out by itself; other boards of the run stay in."""
    watch = Watch(tmp_path, 3, RACK_FILE)
    for hour, word in enumerate(["rig", "rig", "panic", "rig", "absent", "rig"]):
        assert watch.look(run_at(hour, word, "ok")) == []
    (told,) = watch.look(run_at(6, "rig", "ok"))
    found = read_quarantine(tmp_path)["e1"]
    for part in ("board e1 ", found.why, "hil board release e1 --rack "):
        assert part in told
    assert (found.who, " 3 runs in a row" in found.why) == ("hil", True)
    assert watch.look(run_at(6, "rig", "ok")) == []
    assert list(read_quarantine(tmp_path)) == ["e1"]
    watch = Watch(tmp_path / "lost", 3, Path("rack.yaml"))
    lost = msgspec.structs.replace(board_run("rig", "e1"), is_lost=True)
    others = (board_run("ok", "e2"), board_run("panic", "e3"))
    (sentence,) = watch.look(with_boards(run_at(0, "rig"), lost, *others))
    ((board, found),) = read_quarantine(tmp_path / "lost").items()
    assert (board, found.why in sentence, "did not answer" in sentence) == ("e1", True, True)


def test_a_run_that_is_looked_at_again_counts_once(tmp_path: Path) -> None:
    """The same run twice is one fault, and a release forgets all of them."""
    watch = Watch(tmp_path, 2, RACK_FILE)
    assert watch.look(run_at(0, "rig")) == watch.look(run_at(0, "rig")) == []
    assert watch.look(run_at(1, "rig"))
    release(tmp_path, "e1")
    assert json.loads((tmp_path / QUARANTINE_FILE).read_text())["faulted"] == {}
    assert watch.look(run_at(2, "rig")) == []


@pytest.mark.parametrize("value", ["0", "often"])
def test_the_rack_files_rule_is_a_number_from_one_on(tmp_path: Path, value: str) -> None:
    """Anything else is an error with file and line; without the key no board goes there by itself."""
    path = tmp_path / "rack.yaml"
    assert RACK.quarantine_after == 0
    path.write_text(f"{RACK_FILE.read_text()}\nquarantine_after: 3\n")
    assert load_rack(path).quarantine_after == 3
    path.write_text(f"{RACK_FILE.read_text()}\nquarantine_after: {value}\n")
    with pytest.raises(ConfigError, match=r"rack.yaml:\d+: .*quarantine_after"):
        load_rack(path)
