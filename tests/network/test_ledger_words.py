# SPDX-License-Identifier: Apache-2.0
"""`hil ledger`, and what reports say of a ledger: read from the facts of a run's records."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from hil.base.errors import ConfigError
from hil.cli.app import run_command
from hil.model import RunRecord, Scalar
from hil.network.ledger.attribution import attribute
from hil.network.ledger.evidence import Handed, LossEvidence, Sighting
from hil.network.ledger.files import counts_of, sentence_of, table_of, total_of
from hil.reports.allure.completion import complete_results
from hil.reports.ledger import loss_notes
from hil.reports.site.landing import render_landing
from hil.reports.site.runs import shown
from hil.reports.summary import render_markdown
from hil.reports.terminal import render_screen
from hil.store import read_judged_run
from hil.store.verdicts import read_verdict
from tests.make_records import publish_record
from tests.reports.allure_runs import attached, judged, results_of
from tests.reports.site_runs import store_run

FOLDER = "peer/virtual-1/01-publish"
RUN_ID = "20261121T101500Z-quick-0001"


def facts(*, sent: int = 2000, at_tcp: int = 400, unknown: int = 12) -> Mapping[str, Scalar]:
    """Return the facts of a ledger: ``at_tcp`` messages never transmitted, ``unknown`` without an owner."""
    handed = [
        Handed(n, n, 0, 1, 1 if n < at_tcp else 4 if n < at_tcp + unknown else 2, 0) for n in range(sent)
    ]
    seen = {n: n for n in range(at_tcp + unknown, sent)}
    evidence = LossEvidence(handed, Sighting(seen, complete=True), None, Sighting(seen, complete=True))
    arrivals = attribute(evidence).facts()
    lost_there = {"lost_subscriber_count": 0, "arrived_count": len(seen), "lost_count": at_tcp + unknown}
    return {**arrivals, **lost_there}


def record(*, folder: str = FOLDER, boot_index: int = 0, **changes: int) -> RunRecord:
    peer: dict[str, Scalar] = {"folder": folder, **facts(**changes)}
    return publish_record(boot_index=boot_index, environment={"peer": peer})


def run_of(out: Path, records: Sequence[RunRecord]) -> Path:
    """Write a judged run whose peer folders hold a ledger.csv each."""
    path = judged(out, records)
    for each in records:
        folder = path / str(each.environment.get("peer", {}).get("folder", "none"))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "ledger.csv").write_text(f"number,owner\n{each.boot_index},arrived\n")
    return path


def test_a_loss_is_told_in_one_sentence_and_a_table() -> None:
    """How many of how many, and each owner by name; nothing lost is said too. What was lost at the points and
    what arrived is what was sent; a point that nobody watched has no figure."""
    counts, whole = counts_of(facts()), counts_of(facts(at_tcp=0, unknown=0))
    assert counts
    assert whole
    said = sentence_of(counts)
    assert said.startswith("412 of 2000 ")
    assert re.findall(r"[:,] (\d+) (\w+)", said) == [("400", "never"), ("12", "undetermined")]
    assert sentence_of(whole).startswith("all 2000 ")
    assert counts_of({"sent_count": 3}) is None
    _heading, *points, undetermined, total = table_of(counts)
    passed = {"sent": "2000", "device_call": "2000", "device_tcp": "1588", "access_point": "1588"}
    passed |= {"broker_in": "not watched", "broker_out": "1588", "subscriber": "1588"}
    assert [(name, count) for name, count, _ in points] == list(passed.items())
    assert [lost for *_, lost in points] == ["", "0", "400", "0", "0", "0", "0"]
    assert (undetermined, total) == (("undetermined", "", "12"), ("sum", "1588 arrived", "412 lost"))


def test_ledgers_of_several_boots_add_up() -> None:
    """Counts are summed; a point has a count only where all watched it."""
    one, other = counts_of(facts()), counts_of({**facts(at_tcp=1, unknown=0), "seen_device_tcp_count": None})
    assert one
    assert other
    both = total_of([one, other])
    assert (both.sent, both.arrived, both.lost_count) == (4000, 3587, 413)
    assert [both.passed[point] for point in both.passed] == [4000, None, 3587, None, 3587, 3587]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"arrived_count": 1587}, "2000 sent, 1587 arrived, 412 lost, and 412 "),
        ({"lost_count": 411}, "411 lost, and 412 "),
        ({"lost_device_tcp_count": None}, "lost_device_tcp_count is None"),
        ({"sent_count": "many"}, "sent_count is 'many'"),
        ({"lost_broker_in_count": -1}, "lost_broker_in_count is -1"),
    ],
)
def test_sums_that_do_not_agree_are_never_printed(change: Mapping[str, Scalar], words: str) -> None:
    """A ledger that somebody changed is an error with its figures."""
    with pytest.raises(ConfigError, match=words):
        counts_of({**facts(), **change})


def hil(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = run_command(["ledger", *arguments])
    told = capsys.readouterr()
    return code, told.out + told.err


def test_hil_ledger_prints_every_ledger_and_says_where_the_files_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Board, kind, boot and case stand above each table, its file below; the sum over all at the end. As JSON
    the same counts for programs, each point and owner by its name."""
    other = replace(record(folder="peer/virtual-2/01-publish", at_tcp=0, unknown=0), board="virtual-2")
    path = run_of(tmp_path, [record(), other, publish_record(board="virtual-3")])
    code, told = hil(capsys, str(path))
    assert code == 0
    assert "virtual-1 (virtual), boot 0: publish/" in told
    assert "  device_tcp            1588        400\n" in told
    assert f"  each message: {path}/{FOLDER}/ledger.csv\n" in told
    assert "virtual-3" not in told
    last = told.splitlines()[-1]
    assert last.startswith("2 ledgers (virtual): 4000 sent, 412 lost")
    assert ": device_tcp 400, " in last
    found = json.loads(hil(capsys, str(path), "--json")[1])
    assert [(one["board"], one["kind"], one["sent"], one["arrived"]) for one in found] == [
        ("virtual-1", "virtual", 2000, 1588),
        ("virtual-2", "virtual", 2000, 2000),
    ]
    assert (found[0]["lost"]["device_tcp"], found[0]["passed"]["broker_in"]) == (400, None)
    assert found[0]["file"] == f"{path}/{FOLDER}/ledger.csv"
    (path / FOLDER / "ledger.csv").unlink()
    code, told = hil(capsys, str(path), "--board", "virtual-1", "--case", "qos=1")
    assert code == 0
    assert "each message: none" in told
    assert "virtual-2" not in told


def test_hil_ledger_says_why_it_has_nothing_to_show(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No ledger in the run, none that fits, no run, figures that contradict: exit 2 and a sentence."""
    path = run_of(tmp_path / "some", [record()])
    (path / "thresholds" / "publish.yaml").unlink()  # what is gone costs no more than the short name
    none = judged(tmp_path / "none", [publish_record()])
    wrong = record()
    peer = {**wrong.environment["peer"], "arrived_count": 7}
    bad = judged(tmp_path / "bad", [replace(wrong, environment={**wrong.environment, "peer": peer})])
    for arguments, words in (
        ((str(none),), "it measured publish"),
        ((str(path), "--board", "b9"), "--board b9. Ledgers:\n  virtual-1 publish/api=publish,"),
        ((str(path), "--case", "qos=7"), "--case qos=7"),
        ((str(tmp_path / "nothing"),), "not a run directory"),
        ((str(bad),), "virtual-1, boot 0: the ledger's sums"),
    ):
        code, told = hil(capsys, *arguments)
        assert code == 2
        assert words in told


def test_a_case_that_lost_messages_is_noted_and_no_other(tmp_path: Path) -> None:
    """Where it ran, whose the losses are, the file with each message, and whether the case plants them, for
    nobody is to look for the reason of those; none of a base, or where nothing was lost or no ledger kept."""
    own = record()
    cut = replace(own, parameters={**own.parameters, "fault": "cut"})
    real = replace(own, parameters={**own.parameters, "fault": "none"}, board="b2")
    others = [record(at_tcp=0, unknown=0), replace(own, role="base"), publish_record()]
    others = [replace(other, board=f"v{number}") for number, other in enumerate(others)]
    verdict = read_verdict(run_of(tmp_path, [own]) / "verdicts.json")
    notes = loss_notes([cut, real, *others], verdict)
    assert [(note.board, note.files, note.planted) for note in notes] == [
        ("virtual-1", f"{FOLDER}/ledger.csv", True),
        ("b2", f"{FOLDER}/ledger.csv", False),
    ]
    assert notes[0].text.startswith("virtual-1 (virtual) publish/")
    assert ": 412 of 2000 " in notes[0].text
    assert [note.text.endswith(" fault") for note in notes] == [True, False]


@pytest.mark.parametrize("fault", ["none", "cut"])
def test_pages_list_the_cases_that_lost_messages(tmp_path: Path, fault: str) -> None:
    """A line a case on screen, summary and first page, there with a link to its test; of losses that a case
    makes on purpose there is a count alone, so that no first run that passes begins with them."""
    own = record()
    stored = store_run(tmp_path, RUN_ID, [replace(own, parameters={**own.parameters, "fault": fault})])
    run, console = read_judged_run(stored), Console(width=300, record=True, file=io.StringIO())
    render_screen(run.info, run.verdict, run.records, run_path="out/RUN", console=console)
    (said,) = (line for line in console.export_text().splitlines() if "messages" in line)
    page = render_landing([shown(run)], past=1, raw=())
    headed = "## Lost messages" in render_markdown(run.info, run.verdict, run.records)
    if fault == "cut":
        assert "on purpose: 1 (hil ledger)" in said
        assert "on purpose: 1</summary>" in page
        assert (headed, "<h2>Lost messages</h2>" in page) == (False, False)
        return
    assert said.startswith("→ virtual-1 (virtual) publish/")
    assert ": 412 of 2000 " in said
    assert f"({FOLDER}/ledger.csv)" in said
    listed = page.partition("<h2>Lost messages</h2>")[2].partition("</ul>")[0]
    assert 'href="tests/index.html#' in listed
    assert ("412 of 2000" in listed, headed) == (True, True)


def test_an_allure_result_tells_the_ledger_and_has_its_files(tmp_path: Path) -> None:
    """One sentence over all boots in the description, a file a boot attached; no file outside the run."""
    outside = record(folder="../other", boot_index=2)
    boots = [record(), record(boot_index=1, folder="peer/virtual-1/02-publish"), outside]
    path = run_of(tmp_path, boots)
    complete_results(read_judged_run(path))
    result = next(iter(results_of(path).values()))
    assert "1236 of 6000 messages of 3 boots" in result["descriptionHtml"]
    assert ", 36 undetermined." in result["descriptionHtml"]
    ledgers = [item["name"] for item in result["attachments"] if "ledger" in item["name"]]
    assert ledgers == ["loss ledger, boot 0, virtual (CSV)", "loss ledger, boot 1, virtual (CSV)"]
    assert b"number,owner\n1,arrived\n" in attached(path, result, "csv")
