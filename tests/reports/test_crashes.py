# SPDX-License-Identifier: Apache-2.0
"""A decoded backtrace is where a person looks: in summary.md and on the page of the case that crashed."""

from __future__ import annotations

import html
from pathlib import Path

from hil.model import Fault
from hil.reports.allure import complete_results
from hil.reports.crashes import crashes_in
from hil.reports.finish import write_summary
from hil.store import read_judged_run
from tests.make_records import RUN_ID, publish_record
from tests.reports.allure_runs import attached, case_id, judged, results_of

FRAMES = "#0  0x42007438 in read_<b>sensor at /p/main.c:7\n#1  0x42007466 in take_reading at /p/main.c:14\n"
CRASH = "#0  0x42007440 in read_<b>sensor at /p/main.c:7\n#1  0x42007466 in take_reading at /p/main.c:14\n"


def test_the_summary_and_the_page_of_the_case_show_each_backtrace(tmp_path: Path) -> None:
    """Two boards: one panicked, the same way twice, and left a core dump. The summary has each once, with the
    file that has the rest of it: addresses aside, the second panic is the first. The page has it as text,
    whatever is in it; all files are attached, the memory is not, nor is it another board's."""
    entries = [
        publish_record(board="v1"),
        Fault(RUN_ID, "firmware", 1, "Board v2 panicked.", "v2", case_id()),
    ]
    run = judged(tmp_path, entries)
    console = run / "console"
    console.mkdir()
    (console / "v1.log").write_text("1.0 ready\n")
    (console / "v2.panic-1.txt").write_text(f"{FRAMES}\nGuru Meditation Error\n```\n")
    (console / "v2.panic-2.txt").write_text(f"{CRASH}\nGuru Meditation Error\n")
    (console / "v2.panic-10.txt").write_text("Guru Meditation Error\nMEPC    : 0x42007438\n")
    (console / "v2.coredump-1.txt").write_text(f"{FRAMES.replace('take', 'ask')}\nTHREADS INFO\n")
    (console / "v2.coredump-1.bin").write_bytes(b"memory")
    names = [crash.name for crash in crashes_in(run)]
    assert names == ["panic 1", "core dump 1", "panic 2", "panic 10"]
    write_summary(read_judged_run(run))
    text = (run / "summary.md").read_text()
    shown = text.partition("## Where it crashed")[2].partition("## Not run")[0]
    assert f"`console/v2.panic-1.txt`\n\n```text\n{FRAMES}```" in shown
    assert "`console/v2.coredump-1.txt`" in shown
    assert "panic-2" not in shown
    assert text.index("## Faults") < text.index("## Where it crashed")

    complete_results(read_judged_run(run))
    results = results_of(run)
    (crashed,) = (result for (board, _), result in results.items() if board.startswith("v2"))
    (calm,) = (result for (board, _), result in results.items() if board.startswith("v1"))
    assert f"<pre>{html.escape(FRAMES)[:50]}" in crashed["descriptionHtml"]
    assert crashed["descriptionHtml"].count("<pre>") == 2
    assert len([data for data in attached(run, crashed, "txt") if b"Meditation" in data]) == 3
    assert b"memory" not in b"".join(path.read_bytes() for path in (run / "allure-results").iterdir())
    assert "<pre>" not in calm["descriptionHtml"]
    assert not any(b"in take_reading" in data for data in attached(run, calm, "txt"))
