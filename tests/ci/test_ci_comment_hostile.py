# SPDX-License-Identifier: Apache-2.0
"""What a fork may put into its artefact: text that wants to be more, zips that grow, wrong values."""

from __future__ import annotations

import contextlib
import io
import json
import re
import stat
import tempfile
import unicodedata
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hil.base import untrusted
from hil.base.errors import ConfigError, ExitCode, RigError
from hil.base.untrusted import markdown
from hil.ci import artefact, comment_page, summary
from hil.ci.conclusion import CiVerdict, conclude
from hil.ci.legs import LegResult
from hil.ci.plan import read_plan_of
from hil.reports.comment import CHARACTERS, read_facts, render
from hil.reports.comment.facts import Facts, LegFacts
from tests.ci.ci_rig import HEAD, a_plan
from tests.ci.comment_rig import kept, leave_all, leave_virtual, pull_request_plan, zipped
from tests.reports.as_read import Seen
from tools.comment_page import to_html

TRICKS = (
    "@user", "#123", "GH-1", "`", "``", "|", "\\|", "\\", "[a](http://x.y)", "![i](http://x.y)",
    "www.x.com", "http://x.y", "a@b.com", "<b>", "</details>", "</td>", "<!--", "-->", "&lt;", "&#64;",
    "*", "**", "_", "__a__", "~~", "\n", "\r", "\x1b[31m", "\x1b]0;t\x07", "\u202e", "\u200b", ":+1:",
    "$x$", "deadbeef1234", "1. ", "- ", "# ", "> ", "---", "===", "[ ] ", "x" * 60, "<script>",
    "mailto:a@b.cc", "xmpp:a@b.cc", "\ud800", "ftp://x.y", "\t", "    ", "[^1]", "[x]: http://x.y",
    "::error::x", "##[error]x",
)  # fmt: skip
MANY = settings(max_examples=150)  # each trick a dozen times
hostile_text = st.lists(st.sampled_from(TRICKS) | st.text(max_size=8), max_size=12).map("".join)


# what GitHub would make of plain words after the Markdown is done, and never inside a code span
REFERENCES = re.compile(
    r"@[A-Za-z0-9]|#\d|\bGH-\d|(?<![0-9a-z])[0-9a-f]{7,40}(?![0-9a-z])|:[a-z0-9+_-]+:|www\.|https?://|\$[^$]+\$",
    re.IGNORECASE,
)
TABLE = ["table", "thead", "tr", "th", "tbody", "tr", "td"]
PLACES = {"line": ("{}\n", ["p"]), "item": ("- {}\n", ["ul", "li"])}
PLACES["cell"] = ("| h |\n| --- |\n| {} |\n", TABLE)


@pytest.mark.slow
@MANY
@given(text=hostile_text, place=st.sampled_from(sorted(PLACES)))
def test_words_stay_words(text: str, place: str) -> None:
    """Whatever a text holds, as Markdown it is no tag, link, mention or reference, and reads as it is; and
    all of it is inside one code span, where GitHub looks for nothing."""
    around, tags = PLACES[place]
    seen = Seen(to_html(around.format(untrusted.code(text))))
    assert seen.tags == [*tags, "code"]
    assert seen.text.endswith(untrusted.visible(text, untrusted.MOST_OF_A_VALUE).replace("|", "¦") or "–")
    shown = untrusted.visible(text)
    if not shown:
        return
    seen = Seen(to_html(around.format(untrusted.markdown(text))))
    assert seen.blocks == tags
    assert not REFERENCES.search("".join(seen.plain))
    assert (seen.text.removeprefix("h").lstrip() if place == "cell" else seen.text) == shown


@pytest.mark.slow
@MANY
@given(text=hostile_text)
def test_a_title_a_block_and_a_terminal_obey_nothing(text: str) -> None:
    """In a line of HTML, where Markdown is no markup, a text does nothing either, and reads as it is. A whole
    page of somebody else's is one block of code, whatever fences are in it. For a terminal no character that
    moves, colours or hides is left, on one line or on a page."""
    around = "<details><summary>{}</summary>\n\nbelow\n\n</details>\n"
    seen = Seen(to_html(around.format(untrusted.title(text))))
    assert seen.blocks == ["details", "summary", "p"]
    assert not REFERENCES.search("".join(seen.plain))
    assert seen.text.removesuffix("below").strip() == untrusted.visible(text)
    assert Seen(to_html(f"before\n\n{untrusted.fenced(text)}\n\nafter\n")).tags == ["p", "pre", "code", "p"]
    said = untrusted.terminal(text) + untrusted.terminal_page(text).replace("\n", "")
    assert not [one for one in said if unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


def test_plain_words_are_left_as_they_are() -> None:
    """What our own runs say needs nothing, so that a person reads the Markdown too."""
    said = "publish_latency_p95 on virtual (virtual) grew by 21.2 %, limit 25 ms; see docs/gate.md. 8 + 4"
    assert untrusted.markdown(said) == said
    assert untrusted.terminal("a\x1b[31mb\x1b[0m\u202ec") == "ab c"
    assert untrusted.visible("x" * 500, 100) == f"{'x' * 99}…"


def page_of(folder: Path, most: int = 60_000, **facts: Any) -> str:
    """Return the comment on what is in ``folder``, by the reports' own code."""
    plan, legs = pull_request_plan(), folder / "legs"
    source = comment_page.Source({})
    stored = comment_page.facts_of(plan, conclude(plan, legs, {}), legs, source)
    (folder / "facts.json").write_text(json.dumps({**stored, **facts}))
    return render(read_facts(folder / "facts.json"), most)


def change_verdict(run: Path, change: Any) -> None:
    stored = json.loads((run / "verdicts.json").read_text())
    change(stored)
    (run / "verdicts.json").write_text(json.dumps(stored))


BOMB = (
    "</details></table>\n\n# @everyone ![x](http://evil.example/x.png) <img src=x> "
    "[a](http://evil.example) `|`\x1b[2J"
)


def test_a_verdict_full_of_tricks(tmp_path: Path) -> None:
    """Every text of a verdict that wants to be markup: the page has our tags and links only."""
    leave_all(tmp_path, effect=0.18, latency_ms=60.0)
    harmless = Seen(to_html(page_of(tmp_path)))

    def poison(stored: dict[str, Any]) -> None:
        for item in (*stored["series"], *stored["compared"]):
            for key in ("case_id", "case_label", "metric", "target", "sentence", "reason"):
                item[key] = BOMB
            if "boards" in item:
                item["boards"] = [BOMB]
        fault = {"schema": 1, "run_id": "x", "owner": BOMB, "exit_code": 1, "sentence": BOMB, "board": BOMB}
        stored["faults"] = [{**fault, "case_id": ""}]
        stored["warnings"] = [BOMB]
        stored["sentence"] = BOMB

    for run in (tmp_path / "legs").glob("*/*/"):
        change_verdict(run, poison)
    page = page_of(tmp_path, findings=[BOMB], links={})
    seen = Seen(to_html(page))
    assert set(seen.tags) <= {*harmless.tags, "li", "ul"}
    assert "a" not in seen.tags
    assert seen.tags.count("details") == page.count("\n</details>")
    assert seen.tags.count("table") == harmless.tags.count("table")
    assert "\x1b" not in page


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda stored: stored.update(exit_code=0, outcome="pass"), "contradicts its own figures"),
        (lambda stored: stored["compared"][0].update(change="1"), ".change is '1'"),
        (lambda stored: stored["compared"][0].update(unit="parsec"), "the unit 'parsec'"),
        (lambda stored: stored["compared"][0].update(change=10**400), "a double can hold"),
        (lambda stored: stored.update(more=1), "more is an unknown key"),
    ],
)
def test_a_verdict_that_is_wrong_is_none(tmp_path: Path, change: Any, words: str) -> None:
    """A value of another type, an unknown key or a pass beside a regression: no verdict, with the reason."""
    leave_all(tmp_path, effect=0.18)
    (run,) = (tmp_path / "legs/compare").iterdir()
    change_verdict(run, change)
    page = page_of(tmp_path)
    assert page.startswith(("### ? No verdict", "### ? NO VERDICT: compare\n"))
    assert words in page


def test_a_long_page_is_cut_between_rows(tmp_path: Path) -> None:
    """The least important goes first, each table says how much is left out, and what is folded is closed."""
    leave_all(tmp_path, effect=0.18, latency_ms=60.0)
    (run,) = (tmp_path / "legs/compare").iterdir()
    change_verdict(run, lambda stored: stored.update(compared=stored["compared"] * 30))
    page = page_of(tmp_path, 20_000)
    assert 17_000 < len(page) <= 20_000
    assert "**Broken limits" in page
    assert re.search(r"… and \d{3,} more comparisons", page)  # within the tolerance
    assert page.count("<details>") == page.count("</details>")
    assert all(line.endswith("|") for line in page.splitlines() if line.startswith("|"))


def test_a_long_name_in_a_heading_is_cut(tmp_path: Path) -> None:
    """What stands above rows and titles is short, so that a page of any target keeps its length."""
    leave_all(tmp_path, effect=0.18, latency_ms=60.0)

    def poison(stored: dict[str, Any]) -> None:
        for item in (*stored["series"], *stored["compared"]):
            item["target"] = "*" * 5_000

    for run in (tmp_path / "legs").glob("*/*/"):
        change_verdict(run, poison)
    page = page_of(tmp_path, 20_000)
    assert len(page) <= 20_000
    assert page.count("<details>") == page.count("</details>")


def test_nothing_to_measure_is_one_line(tmp_path: Path) -> None:
    """Only documentation changed: the reason, no heading, no table that is open."""
    plan = a_plan(files=["README.md"], compare=True)
    facts = comment_page.facts_of(plan, conclude(plan, tmp_path, {}), tmp_path, comment_page.Source({}))
    (tmp_path / "facts.json").write_text(json.dumps(facts))
    page = render(read_facts(tmp_path / "facts.json"))
    assert page.startswith("– **Nothing")
    assert "(README.md). `c0ffee" in page.splitlines()[0]
    assert "###" not in page


def test_an_improvement_is_told(tmp_path: Path) -> None:
    """A pass whose own test leaves no change but one for the better is shown as such, with both values."""
    leave_all(tmp_path, effect=-0.2)
    page = page_of(tmp_path)
    assert page.startswith(f"### ✓ {markdown('PASS: virtual, compare')}\n")
    assert re.search(r"\*\*↑\u00a0better\*\* \| publish latency p50 \| 4 boards", page)


def test_three_changes_are_read_and_the_others_are_folded(tmp_path: Path) -> None:
    """Below the verdict stand three changes; target, and the words of a leg, stand once."""
    leave_all(tmp_path, effect=0.18, tls_effect=0.18)
    page = page_of(tmp_path)
    before, _, folded = page.partition("<details>")
    assert before.count("**✗\u00a0worse** |") == 3
    assert folded.count("**✗\u00a0worse** |") == 3
    assert "<summary>5 more worse</summary>" in folded
    assert page.count("**What changed") == 1
    assert "(virtual)" not in before
    sentence = next(line for line in page.splitlines() if "more comparisons regressed" in line)
    assert page.count(sentence) == 1


def test_what_was_not_run_is_grouped(tmp_path: Path) -> None:
    """Cases that share a reason are one line."""
    leave_all(tmp_path)
    leave_virtual(tmp_path / "legs", not_run=["no time", "no time"])
    page = page_of(tmp_path)
    assert page.startswith(f"### ? {markdown('INCOMPLETE: virtual')}\n")
    assert re.search("^- 2 cases .*`virtual-2`.*: no time$", page, re.MULTILINE)


def test_the_plain_summary_is_harmless_too() -> None:
    """Where the page cannot be written, GitHub gets the plain summary, whose texts are text there."""
    leg = LegResult("virtual", ExitCode.FIRMWARE, BOMB, BOMB, boards=(BOMB,), summary=f"```\n{BOMB}")
    verdict = CiVerdict(ExitCode.FIRMWARE, f"REGRESSED: {BOMB}", (leg,), (BOMB,))
    seen = Seen(to_html(summary.render(a_plan(), verdict, {}, safe=True)))
    assert not {"a", "img"} & set(seen.tags)
    assert seen.tags.count("table") == seen.tags.count("details") == 1


def zip_of(files: dict[str, bytes], *, mode: int = 0, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = method
            entry.external_attr = mode << 16
            archive.writestr(entry, data)
    return content.getvalue()


PLAN = {"plan.json": b"{}"}


ZIPS: dict[str, tuple[bytes, str]] = {
    "text": (b"no zip", "not a readable zip"),
    "cut-off": (zip_of(PLAN)[:-30], "not a readable zip"),
    "empty": (zip_of({}), "holds no plan.json"),
    "above": (zip_of({**PLAN, "../plan.json": b""}), "unexpected file"),
    "rooted": (zip_of({**PLAN, "/etc/passwd": b""}), "unexpected file"),
    "legs-above": (zip_of({**PLAN, "legs/a/../../b/run.json": b""}), "unexpected file"),
    "backslash": (zip_of({**PLAN, "legs/a\\b/c/run.json": b""}), "unexpected file"),
    "console": (zip_of({**PLAN, "legs/a/r/console.log": b""}), "unexpected file"),
    "link": (zip_of(PLAN, mode=stat.S_IFLNK | 0o777), "unexpected file"),
    "file-as-folder": (zip_of({**PLAN, "legs/a/ended.json/run.json": b""}), "unexpected file"),
    "lzma": (zip_of(PLAN, method=zipfile.ZIP_LZMA), "unexpected file"),
    "bzip2": (zip_of(PLAN, method=zipfile.ZIP_BZIP2), "unexpected file"),
    # Python 3.13 reads it
    "null": (zip_of(PLAN).replace(b"plan.json", b"\0lan.json"), "not a readable zip|unexpected file"),
    "many": (zip_of({**PLAN, **{f"legs/a{n}/ended.json": b"" for n in range(251)}}), "at most 250"),
    "large": (zip_of({"plan.json": b" " * 34_000_000}), "more than allowed"),
    "tight": (zip_of({"plan.json": b" " * 1_000_000}), "implausible compression"),
}


@pytest.mark.parametrize(("content", "words"), ZIPS.values(), ids=ZIPS)
def test_a_zip_that_wants_more(tmp_path: Path, content: bytes, words: str) -> None:
    """A path outside, a link, too many or too large files, a bomb: refused before anything is unpacked."""
    with pytest.raises(ConfigError, match=words):
        artefact.unpack(content, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@MANY
@given(
    method=st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]),
    changes=st.lists(st.tuples(st.integers(-250, 90), st.integers(0, 255)), min_size=1, max_size=6),
)
def test_a_damaged_zip_is_one_sentence(method: int, changes: list[tuple[int, int]]) -> None:
    """Whatever bytes of a zip are others, it is read or refused in a sentence: nothing else ends the job."""
    content = bytearray(zip_of({**PLAN, "legs/a/r/verdicts.json": bytes(range(256))}, method=method))
    for place, value in changes:
        content[place] = value
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(ConfigError):
        artefact.unpack(bytes(content), Path(folder))


def test_many_remarks_do_not_push_the_page_over_its_length() -> None:
    """Remarks stand beside figures and are not cut, so no more of them are shown than a page holds."""
    leg = LegFacts("virtual", ExitCode.PASS, "All passed.", "", (), is_open=False)
    legs = tuple(replace(leg, name=f"a{n}", remarks=("Ours.", f"{n} " + "@" * 400)) for n in range(40))
    page = render(Facts(ExitCode.PASS, "", HEAD, "", (), (), (), legs, {}, ""), 60_000)
    assert len(page) <= 60_000
    assert "<sub>Ours. 0 " in page
    assert "… and 33 more remarks.</sub>" in page  # of 41


def test_a_zip_that_lies_about_a_size(tmp_path: Path) -> None:
    """A file that goes on beyond the size that the zip gives is not read on."""
    content = bytearray(zip_of({"plan.json": b"x" * 500}, method=zipfile.ZIP_STORED))
    central = content.index(b"PK\x01\x02")
    content[central + 24 : central + 28] = (100).to_bytes(4, "little")
    with pytest.raises(ConfigError):
        artefact.unpack(bytes(content), tmp_path)


def test_what_is_kept_is_what_is_read(tmp_path: Path) -> None:
    """Plan, limits, and of a run what judges it; no console; it comes back as it was."""
    leave_all(tmp_path)
    (run,) = (tmp_path / "legs/virtual").iterdir()
    (run / "console").mkdir()
    (run / "console/b.log").write_text("secret")
    folder = kept(tmp_path)
    names = {path.name for path in folder.rglob("*") if path.is_file()}
    kept_of_a_run = {"run.json", "verdicts.json", "records.jsonl"}
    assert names == {"plan.json", "publish.yaml", *kept_of_a_run}
    artefact.unpack(zipped(folder), tmp_path / "back")
    plan = read_plan_of(tmp_path / "back/plan.json", HEAD)
    assert conclude(plan, tmp_path / "back/legs", {}).headline == "PASS: virtual, compare"


def test_what_does_not_fit_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leg too large for the artefact is left out with a sentence; the others are kept."""
    leave_all(tmp_path)
    (run,) = (tmp_path / "legs/compare").iterdir()
    monkeypatch.setattr(artefact, "MOST_FILE_BYTES", max(p.stat().st_size for p in run.glob("*.json*")) - 1)
    (said,) = artefact.keep(tmp_path / "plan.json", tmp_path / "legs", tmp_path / "kept")
    assert "legs/compare" in said
    assert (tmp_path / "kept/legs/virtual").is_dir()


@pytest.mark.parametrize(
    "change",
    [
        *('"ab"', "[[1, 2, 3]]", "[" * 100_000, "1" * 5000, "NaN", '{"schema": []}'),
        {"head": "d" * 40},
        {"base": "main"},
        {"fork": "yes"},
        {"pull_request": "7"},
        {"changes": [1]},
        {"legs": [{"name": "../..", "job": "virtual", "suite": "pr"}]},
        {"legs": [{"name": 1, "job": "virtual", "suite": "pr"}]},
        {"legs": [{"name": "a", "job": "evil", "suite": "pr"}]},
        {"legs": [{"name": f"a{n}", "job": "rack", "suite": "pr"} for n in range(41)]},
        {"legs": 3},
    ],
    ids=lambda change: str(change)[:30],
)
def test_a_plan_that_is_none_of_ours(tmp_path: Path, change: str | dict[str, object]) -> None:
    """JSON of another shape, too deep or with a number too long, another commit, a value of another type, a
    leg whose name is a path: no plan."""
    path = tmp_path / "plan.json"
    own = json.loads(json.dumps(a_plan(compare=True).to_json()))
    path.write_text(json.dumps(own))
    assert read_plan_of(path, HEAD).legs
    path.write_text(change if isinstance(change, str) else json.dumps({**own, **change}))
    with pytest.raises(ConfigError):
        read_plan_of(path, HEAD)


PRINT_PAGE = comment_page.print_page


@pytest.mark.slow
def test_the_page_is_written_without_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that reads what a fork wrote gets no variable of ours but where programs are."""
    monkeypatch.setenv("GITHUB_TOKEN", "ghs_secret")
    assert "ghs_secret" not in comment_page._environment().values()
    facts = comment_page.without_verdict(HEAD, BOMB, comment_page.Source({}))
    monkeypatch.setattr(comment_page, "print_page", PRINT_PAGE)
    page = comment_page.render(facts, "comment")
    assert page.startswith("### ? No verdict")
    assert set(Seen(to_html(page)).tags) == {"h3", "p", "code"}
    with pytest.raises(RigError, match="the page was not written"):
        comment_page.render({}, "comment")


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["comment", "summary"])
def test_the_process_writes_what_tests_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: comment_page.Layout
) -> None:
    """Control: the page that other tests get without a process is its page, cut as its layout is."""
    leave_all(tmp_path, effect=0.18)
    (run,) = (tmp_path / "legs/compare").iterdir()
    change_verdict(run, lambda stored: stored.update(compared=stored["compared"] * 30))
    plan, legs = pull_request_plan(), tmp_path / "legs"
    facts = comment_page.facts_of(plan, conclude(plan, legs, {}), legs, comment_page.Source({}))
    here = comment_page.render(facts, layout)
    assert (len(here) > CHARACTERS["comment"]) == (layout == "summary")
    monkeypatch.setattr(comment_page, "print_page", PRINT_PAGE)
    assert comment_page.render(facts, layout) == here


def test_what_is_exceeded_without_proof_is_named(tmp_path: Path) -> None:
    """An undecided run says which limit it may have broken, by how much, and that nothing is proven."""
    leave_all(tmp_path, latency_ms=22.0)
    page = page_of(tmp_path)
    assert page.startswith(f"### ? {markdown('UNDECIDED: virtual')}\n")
    before, _, _ = page.partition("<details>")
    assert "without proof" in before
    assert re.search(r"\| \? exceeded \|.* p95 \| `virtual-2` \|.* 25 ms \|", before.replace("\u00a0", " "))
    assert "broken" not in before
