# SPDX-License-Identifier: Apache-2.0
"""The summaries: verdict first, one screen, and every virtual figure says that it is virtual."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from hil.gate.words.banner import banner_of
from hil.model import Entry, Fault, NotRun, RunRecord, Verdict
from hil.reports.kinds import VIRTUAL_REMARK
from hil.reports.rebuild import write_run
from hil.reports.rows import LEGEND
from hil.reports.summary import render_markdown
from hil.store import Reported, RunDirectory, read_judged_run
from hil.thresholds import Thresholds
from tests.judging import judge
from tests.make_records import (
    RUN_ID,
    publish_record,
    publish_thresholds,
    quick_run,
    run_info,
    void_record,
    void_thresholds,
)
from tests.reports import test_reports_compared as compared
from tests.reports.as_read import Seen, as_read
from tools.comment_page import to_html

RUN_PATH = f"out/{RUN_ID}"
INFO = run_info(user="ada", host="bench", git={"commit": "0123456789abcdef", "dirty": True})


def screen(
    verdict: Verdict, entries: Sequence[Entry] = (), *, run_path: str = RUN_PATH, verbose: bool = False
) -> str:
    records = [entry for entry in entries if isinstance(entry, RunRecord)]
    return compared.terminal(verdict, INFO, records, run_path=run_path, verbose=verbose)


def terminal(
    entries: Sequence[Entry], thresholds: Thresholds | None = None, *, verbose: bool = False
) -> list[str]:
    verdict = judge(entries, {"publish": thresholds or publish_thresholds()})
    return screen(verdict, entries, verbose=verbose).splitlines()


def markdown(entries: Sequence[Entry], thresholds: Thresholds | None = None) -> str:
    verdict = judge(entries, {"publish": thresholds or publish_thresholds()})
    records = [entry for entry in entries if isinstance(entry, RunRecord)]
    return as_read(render_markdown(INFO, verdict, records, run_path=RUN_PATH))


def everything_wrong() -> list[Entry]:
    """Return a run with breaches on every board, faults, left-out cases and late enqueue cases."""
    slow = [
        publish_record(board=r.board, overrides=r.parameters, latency_ms=90, failed=9) for r in quick_run()
    ]
    faults = [
        Fault(RUN_ID, "rig", 3, f"board virtual-{n} vanished, " + "word " * 40, f"virtual-{n}")
        for n in (1, 2)
    ]
    left_out = [
        NotRun(RUN_ID, f"virtual-{n}", f"publish/n={n}", f"reason {n} " + "word " * 20) for n in (1, 2, 3)
    ]
    return [*slow, *faults, *left_out]


@pytest.mark.parametrize(
    ("entries", "sign"),
    [
        (quick_run(), "✓"),
        ([publish_record(latency_ms=31)], "✗"),
        ([Fault(RUN_ID, "rig", 3, "gone")], "?"),
        ([publish_record(), Fault(RUN_ID, "firmware", 1, "panic")], "✗"),
        ([], "?"),
        ([publish_record(rows=20)], "?"),
        (everything_wrong(), "✗"),
        (everything_wrong()[-5:], "?"),
    ],
)
def test_the_terminal_summary_fits_80_by_24_and_ends_with_the_verdict(
    entries: list[Entry], sign: str
) -> None:
    """Four boards, whatever happened: one screen, where to read on, and at its end, where a person looks
    when a command has ended, the banner's one line.
    """
    lines = terminal(entries)
    assert len(lines) < 24
    assert max(len(line) for line in lines) <= 80
    assert f"Figures  hil gate {RUN_PATH} --verbose" in lines
    said = banner_of(judge(entries, {"publish": publish_thresholds()})).text
    assert " ".join(" ".join(lines).split()).endswith(f"─ {sign} {' '.join(said.split())}")


def test_the_figures_that_matter_are_few() -> None:
    """What broke its limit; where nothing did, what uses most of it, each metric once, at most five."""
    slow = terminal([publish_record(), publish_record(board="virtual-2", latency_ms=31)])
    figures = [line for line in slow if line.startswith("✗ publish")]
    assert len(figures) == 1
    assert re.search(r" p95 +virtual-2 +36\.\d ms limit ≤ 25 ms, 14\d % ", figures[0])
    kept = [line for line in terminal(quick_run()) if line.startswith("✓ publish")]
    assert 1 <= len(kept) <= 5
    assert len({line[2:25] for line in kept}) == len(kept)


def test_a_run_without_a_base_is_not_said_to_have_no_limits() -> None:
    """An image that has nothing to be compared with, such as a changed bench's, has kept its limits."""
    record = publish_record()
    left_out = NotRun(RUN_ID, record.board, record.case_id, "not compared: another table", "not-compared")
    lines = terminal([record, left_out])
    assert any(line.startswith("? PASS, BUT WITHOUT A BASE: All ") for line in lines)


def test_a_breach_names_board_case_metric_and_by_how_much() -> None:
    """A row a figure, and the sentence of the verdict."""
    record = publish_record(board="virtual-2", overrides={"transport": "tls"}, latency_ms=60)
    text = " ".join(" ".join(terminal([publish_record(), record], verbose=True)).split())
    figure = "publish latency p95 publish/transport=tls virtual-2"
    assert re.search(rf"✗ broken {figure} .*[\d.]+ ms; .* 25 ms; .* [\d.]+ ms", text)
    assert re.search(r"_p95_us \S+ \S+tls on virtual-2 \(.*25 ", text)


def test_void_samples_and_clocks_are_shown() -> None:
    """The terminal counts what the host spoilt, the markdown does so for each series, with its clock."""
    run, own = [void_record(100, 12)], void_thresholds()
    assert re.search("12 samples were void: .* 5.3 ms", " ".join(terminal(run, own)))
    rows = [line for line in markdown(run, own).splitlines() if "| publish_latency_p95_us |" in line]
    assert rows[-1].endswith("| 88 (12 void) | 1 | esp_timer |")


def test_a_metric_that_does_not_name_its_bench_is_shown_with_it() -> None:
    """A reader of the tables knows which bench a score is of, and two benches with one name keep two rows."""
    verdict = judge([publish_record()], {"publish": publish_thresholds()})
    limited = next(item for item in verdict.series if item.metric == "publish_latency_p95_us")
    other = replace(limited, metric="score_p95_us")
    two = [replace(other, case_id=f"{bench}/n=1", case_label="n=1") for bench in ("memory", "hartstone")]
    verdict = replace(verdict, series=[limited, *two])
    text = as_read(render_markdown(INFO, verdict, [], run_path=RUN_PATH))
    shown = screen(verdict, verbose=True)
    for name in ("publish latency p95", "memory score p95", "hartstone score p95"):
        assert f"| ✓ | {name} | virtual-1 (virtual) | ≤ 25 ms |" in text
        assert re.search(rf"^✓ {name} ", shown, re.MULTILINE)
    assert "| hartstone/n=1 | score_p95_us |" in text


def test_a_limit_shows_the_worst_of_its_boards() -> None:
    """A large rack still fits the width, and each board of a long name keeps all letters: it is folded."""
    slow = publish_record(board="board-5", latency_ms=60)
    entries = [*(publish_record(board=f"board-{n}") for n in range(1, 5)), slow]
    lines = terminal(entries, verbose=True)
    assert any(re.match(r"✗ .* p95 +board-5 \(virtual\) +≤ 25 ms ", line) for line in lines)
    names = [f"bench-esp32s3-in-the-cellar-of-house-{n}" for n in range(1, 5)]
    folded = terminal([publish_record(board=name) for name in names], verbose=True)
    assert max(len(line) for line in (*lines, *folded)) <= 80
    assert "…" not in "".join(folded)
    assert all(name in "".join(folded) for name in names)


def test_every_virtual_figure_is_labelled() -> None:
    """The word stands above or in each row, in each sentence, and once in a sentence of its own."""
    slow = [publish_record(board=f"virtual-{n}", latency_ms=60) for n in (1, 2)]
    assert VIRTUAL_REMARK in " ".join(" ".join(terminal(slow, verbose=True)).split())
    heading = ""
    for line in markdown(slow).splitlines():
        heading = line if line.startswith(("#", "<details>")) else heading
        if " ms" in line:
            assert "virtual" in f"{heading}{line}", line


def test_the_markdown_holds_sentences_and_every_series() -> None:
    """summary.md can be read without the rest: verdict, sentences, environment, all series."""
    text = markdown([publish_record(latency_ms=60), NotRun(RUN_ID, "virtual-2", "publish/x", "left out")])
    assert text.startswith(f"# REGRESSED: {RUN_ID}\n")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert [heading.split()[0] for heading in headings] == ["Broken", "Not", "Boards", "Run"]
    assert "its limit of 25 ms" in text
    assert "- commit: 0123456789ab, with changes" in text
    assert f"hil gate {RUN_PATH}" in text
    assert "All 9 series" in text


def test_a_figure_among_timeouts_reads_at_least() -> None:
    """Both summaries say "≥"."""
    entries = [publish_record(failed=90)]
    assert "≥ 5 s limit ≤ 25 ms" in " ".join(terminal(entries))
    assert any(re.match(r"✗ broken .* ≥ 5 s ", line) for line in terminal(entries, verbose=True))
    assert "≥ 5.00 s [5.00, –]" in markdown(entries)


def test_what_is_beyond_a_limit_has_its_own_sign() -> None:
    """Neither the table of limits nor that of all series calls it kept, and the sign is explained."""
    text = markdown([publish_record(latency_ms=21.5)])
    row = r"\| \*\*\?\*\* \| publish latency p95 \| virtual-1 \(virtual\) \| ≤ 25 ms \| 10\d % \| 1 \| "
    assert re.search(rf"{row}\*\*25\.\d ms\*\* \|", text)
    assert re.search(r"^\| \? \| virtual-1 \(virtual\) \| \S+ \| \w+_p95_us ", text, re.MULTILINE)
    assert LEGEND in text


def test_what_is_ruled_out_is_not_missing() -> None:
    """A case that a board's own limits rule out stands under a heading of its own. Cases left out for the
    same reason are one line."""
    same = [NotRun(RUN_ID, f"virtual-{n}", "publish/x", "too large") for n in (3, 4)]
    said = " ".join(terminal([publish_record(), *same]))
    assert re.search(r"not run: 2 .*-3, \S+-4: too large", said)
    left_out = [
        NotRun(RUN_ID, "virtual-2", "publish/x", "lost"),
        NotRun(RUN_ID, "virtual-2", "publish/y", "too large", "ruled-out"),
    ]
    text = markdown([publish_record(), *left_out])
    assert re.search(r"## Not run\n\n- 1 .* virtual-2: lost\n\n", text)
    assert re.search(r"Ruled out: 1<.*\n\n- 1 .*: too large\n\n", text)


def test_of_many_boards_a_broken_one_is_shown_before_a_merely_worse_one() -> None:
    """A board whose limit is broken stands in the table, even if a figure that breaks nothing is larger."""
    entries = [publish_record(board=f"board-{n}", latency_ms=60 if n == 5 else 7) for n in range(1, 6)]
    verdict = judge(entries, {"publish": publish_thresholds()})
    series = tuple(
        replace(item, value=900_000.0, note="marginal") if item.board == "board-2" else item
        for item in verdict.series
    )
    assert re.search(
        r"\n✗ publish latency p95 +board-5 ", screen(replace(verdict, series=series), entries, verbose=True)
    )


def test_the_summary_can_be_written_again_from_disk(tmp_path: Path) -> None:
    """write_run() gives the bytes that the run gave, from its records and verdict alone. The command that
    judges again can be pasted, on the screen and in the summary: a folder with a blank is quoted."""
    directory = RunDirectory.create(tmp_path, INFO)
    entries = everything_wrong()
    for entry in entries:
        directory.append(entry)
    directory.write_verdict(judge(entries, {"publish": publish_thresholds()}))
    run = read_judged_run(directory.path)
    expected = render_markdown(INFO, run.verdict, run.records, run_path=str(directory.path))
    write_run(run)
    assert directory.summary_path.read_text() == expected
    assert "hil gate 'my out/r 1'" in screen(run.verdict, run_path="my out/r 1")
    assert "`hil gate 'my out/r 1'`" in render_markdown(INFO, run.verdict, [], run_path="my out/r 1")


HOSTILE = "\x1b[2J<img src=x> @everyone [here](https://evil.example) #1\n::add-mask::v1\n# PASS"


def hostile_run() -> list[Entry]:
    """Return a run whose fault, missing case and board were named by somebody who means ill."""
    return [
        publish_record(board=f"v1{HOSTILE}"),
        Fault(RUN_ID, "firmware", 1, HOSTILE, f"v2{HOSTILE}"),
        NotRun(RUN_ID, "v3", "publish/qos=0", HOSTILE),
    ]


def test_foreign_words_are_only_words_in_the_summary() -> None:
    """No control, tag, link, mention, reference or heading in a board's name or a fault's sentence works."""
    info = msgspec.structs.replace(INFO, user=HOSTILE, rack=HOSTILE)
    entries = hostile_run()
    verdict = judge(entries, {"publish": publish_thresholds()})
    records = [entry for entry in entries if isinstance(entry, RunRecord)]
    reported = Reported(warnings=(HOSTILE,))
    page = render_markdown(info, verdict, records, run_path=RUN_PATH, reported=reported)
    assert page.count("everyone") >= 5  # it is all there to read
    seen = Seen(to_html(page))
    assert not {"img", "a"} & set(seen.tags)
    for forbidden in ("@everyone", "https://", " #1"):
        assert forbidden not in "".join(seen.plain), forbidden
    for forbidden in ("\x1b", "\n::", "\n# PASS"):
        assert forbidden not in page, forbidden
