# SPDX-License-Identifier: Apache-2.0
"""Boards that fail beside others, and a rack that is kept up for several runs."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from typing import Any

import pytest

from hil.virtual.board.client import BoardControl
from tests.in_process import hil
from tests.lab import Lab, Running, descendants, of_type

pytestmark = pytest.mark.slow

NewLab = Callable[[int], Lab]


@pytest.mark.parametrize(
    ("fault", "value", "code", "words"),
    [
        pytest.param("brownout", 1, 3, ["browned out"], marks=pytest.mark.heavy),
        ("panic", "LoadProhibited", 1, ["Guru Meditation", "LoadProhibited"]),
    ],
)
def test_a_fault_of_a_board_has_its_owner(
    new_lab: NewLab, fault: str, value: object, code: int, words: list[str]
) -> None:
    """What happens to one board in the middle of a case ends that board only, with the owner's exit code."""
    lab = new_lab(2)
    running = lab.start("--suite", "pr or quick")
    try:
        line = running.await_line(r"b\d \[1/2\b[^]]*\] measuring: publish count=4000")
        board, other = (line[:2], "b1" if line[:2] == "b2" else "b2")
        state_dir = lab.out / "virtual" / "lab" / "b1"
        BoardControl(state_dir / f"{board}.sock").fault(fault, value)
        running.await_line(rf"{board} \[2/2\b[^]]*\] failed")
        running.await_line(rf"{other} \[1/2\b[^]]*\] measuring: publish count=4000")
        entries = lab.entries()
    finally:
        running.send(signal.SIGINT)
        running.wait()
        lab.await_nothing_left()
    (found,) = of_type(entries, "fault")
    assert (found["board"], found["exit_code"]) == (board, code)
    for word in words:
        assert word in found["sentence"]


def test_virtual_up_keeps_a_rack_that_two_runs_share(new_lab: NewLab) -> None:
    """`hil virtual up` says how to reach each board; two runs on other boards take turns, each in the air
    that it asked for, and both pass; Ctrl-C ends the rack, behind & too."""
    lab = new_lab(2)
    files = ("--rack", str(lab.rack), "--out", str(lab.out))
    # as a shell starts what stands before &
    argv = ["env", "--ignore-signal=INT", sys.executable, "-m", "hil", "virtual", "up", *files]
    up = Running(argv, lab.folder / "up.txt", lab.env)
    wanted = {"b1": "lab", "b2": "perfect"}
    runs = []
    try:
        up.await_line(r"miniterm .* rfc2217://127.0.0.1:\d+ 921600")
        assert hil("board", "power", "b1", "cycle", *files, env=lab.env).stdout == "b1: power cycle\n"
        for board, profile in wanted.items():
            rack = lab.folder / f"{profile}.yaml"
            rack.write_text(lab.rack.read_text().replace("profile: lab", f"profile: {profile}"))
            command = lab.command("--suite", "nightly", "--board", board, "--rack", str(rack))
            runs.append(Running(command, lab.folder / f"{board}.txt", lab.env))
        codes = [one.wait() for one in runs]
        assert codes == [0, 0], "\n".join(one.said() for one in runs)
        family = descendants(up.process.pid)
        up.send(signal.SIGINT)
        assert up.wait() == 130
        lab.await_nothing_left(*family)
    finally:
        for one in (*runs, up):
            one.close()
    folders = [path.parent for path in lab.out.glob("*/records.jsonl") if not path.parent.is_symlink()]
    journals = [(folder / "records.jsonl").read_text() for folder in folders]
    records = [json.loads(line) for journal in journals for line in journal.splitlines()]
    assert len(records) == 8
    for record in records:
        assert record["environment"]["access_point"]["profile"] == wanted[record["board"]]
        assert (fastest_us(record) < 4000) == (wanted[record["board"]] == "perfect")
    ports = {record["board"]: record["environment"]["broker"]["tcp_port"] for record in records}
    assert len(set(ports.values())) == 2
    assert not [folder for folder in folders if (folder / "rack").exists()]  # not the runs' own logs


def fastest_us(record: dict[str, Any]) -> int:
    columns: dict[str, list[int]] = record["columns"]
    return min(done - sent for done, sent in zip(columns["done_us"], columns["sent_us"], strict=True))
