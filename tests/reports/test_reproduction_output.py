# SPDX-License-Identifier: Apache-2.0
"""A reproduction as it is read: terminal, Markdown, JSON, page; no virtual figure without the word."""

from __future__ import annotations

import dataclasses
import html
import io
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import pytest
from playwright.sync_api import Browser
from rich.console import Console

from hil.base.errors import ConfigError
from hil.cli.app import run_command
from hil.fixtures.measure import keep_limits
from hil.model import RunRecord, Scalar
from hil.reports import rebuild
from hil.reports.finish import Reporting, ReportOptions, finish
from hil.reports.kinds import VIRTUAL_REMARK
from hil.reports.site.landing import render_landing
from hil.reports.site.runs import shown
from hil.reports.studies.build import FILES, files_of, page_of, reproduce, stored_studies
from hil.reports.studies.document import Document
from hil.reports.studies.loader import KEPT_FOLDER, PUBLISHED, load_study, study_files
from hil.reports.studies.text import WIDTH, print_documents
from hil.store import RunDirectory, read_judged_run, read_run
from hil.thresholds import load_all
from tests.judging import judge
from tests.lab import Lab, make_lab
from tests.make_records import THRESHOLDS_ROOT, change_info, leave_run
from tests.reports.browser import visit
from tests.reports.study_records import RUN_ID, throughput_record
from tests.reports.study_runs import STUDIES, rtt_records, tcpip_records

BOARDS = [{"id": "v1", "kind": "virtual", "target": "virtual-esp32"}]
VIRTUAL = re.compile("virtual", re.IGNORECASE)


def store(out: Path, study: str, records: Sequence[RunRecord]) -> RunDirectory:
    """Leave on disk what a run leaves before it is judged."""
    run_id, git = RUN_ID.replace("esp32-tcpip", study), {"commit": "a" * 40, "dirty": False}
    facts = {"suite": f"{study}-quick", "started_utc": "2026-11-21T10:15:00Z", "boards": BOARDS, "git": git}
    directory = leave_run(out, records, run_id=run_id, **facts)
    keep_limits(directory, THRESHOLDS_ROOT)
    return directory


def reported(directory: RunDirectory, *, site: bool = False) -> Reporting:
    """Write the reports of a judged run."""
    options = ReportOptions(directory.path.parent, site=site)
    return finish(read_judged_run(directory.path), options, say=lambda _sentence: None)


def store_judged(out: Path, records: Sequence[RunRecord]) -> RunDirectory:
    """Leave on disk a judged run of esp32-tcpip-quick."""
    directory = store(out, "esp32-tcpip", records)
    directory.write_verdict(judge(directory.read().entries, load_all(THRESHOLDS_ROOT)))
    return directory


def printed(documents: Sequence[Document]) -> str:
    text = io.StringIO()
    print_documents(documents, Console(file=text))
    return text.getvalue()


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("out")


@pytest.fixture(scope="module")
def finished(out: Path) -> tuple[RunDirectory, Reporting]:
    """A run of esp32-tcpip-quick with everything that follows a verdict, the report included."""
    directory = store_judged(out, tcpip_records())
    return directory, reported(directory, site=True)


UNITS = {"esp32-tcpip": "Mbit/s", "freertos-multicore": "µs", "mqtt-qos": "ms", "rtos-mqtt": "ms"}


@pytest.mark.parametrize("study", sorted(STUDIES))
def test_every_table_and_answer_of_a_virtual_board_says_so(tmp_path: Path, study: str) -> None:
    """In the terminal, the Markdown, the JSON and the page: titles, captions, answers, warnings. A chart has
    the unit once, in its caption. The terminal shows at most 100 columns, also where it is wider, or where
    the output is no terminal; figures stay whole. The JSON is strict, and holds every table: bounds that
    there are none of are null."""
    directory = store(tmp_path, study, STUDIES[study]())
    run, documents = directory.path, reproduce(read_run(directory.path), load_study(study))
    (document,) = documents
    assert VIRTUAL.search(document.headline)
    captions = [
        document.caption(table) for section in document.sections for table in section.tables if table.measured
    ]
    said = [
        document.said(one) for section in document.sections for one in (*section.answers, *section.warnings)
    ]
    assert captions
    for text in (*captions, *said):
        assert VIRTUAL.search(text), text
    markdown, data, page = ((run / name).read_text() for name in files_of(study))
    assert VIRTUAL.search(re.findall(r"<h1>(.*?)</h1>", page)[0])
    assert f"Board v1 (virtual, {document.target})" in markdown
    assert VIRTUAL_REMARK in html.unescape(page)
    shown = printed(documents)
    for caption in captions:
        assert f"**{caption}**" in markdown
        assert caption.replace("'", "&#x27;") in page
        assert caption.split(",")[0] in shown
    assert max(map(len, shown.splitlines())) <= WIDTH == 100
    wide = io.StringIO()
    print_documents(documents, Console(file=wide, force_terminal=True, width=160, color_system=None))
    assert max(map(len, wide.getvalue().splitlines())) <= WIDTH
    for figure in re.findall(r"\| (\d+\.\d\d \[\d+\.\d\d, \d+\.\d\d\])(?= \|)", markdown):
        assert figure in shown
    content = json.loads(data, parse_constant=lambda word: pytest.fail(word))
    (board,) = content["boards"]
    assert set(board["tables"]) == {table.id for part in document.sections for table in part.tables}
    assert board["kind"] == "virtual"
    assert [(found.study, found.kinds) for found in stored_studies(run)] == [(content["study"], ("virtual",))]
    drawn = re.findall(r"<figcaption>(.*?)</figcaption>", page)
    assert all(caption.count(UNITS[study]) == 1 for caption in drawn)
    assert bool(drawn) == (study in UNITS)


def test_a_physical_board_is_not_called_virtual(tmp_path: Path) -> None:
    """Its captions are bare."""
    record = throughput_record([20.0] * 20, kind="physical")
    directory = store(tmp_path, "esp32-tcpip", [record])
    shown = printed(reproduce(read_run(directory.path), load_study("esp32-tcpip")))
    assert "board v1 (physical)" in shown
    assert not VIRTUAL.search(shown)


@pytest.mark.slow
def test_a_run_of_a_studys_suite_ends_with_its_reproduction(
    out: Path, finished: tuple[RunDirectory, Reporting]
) -> None:
    """It is written before the report is built; the first page leads to it and says of which kind it is."""
    directory, done = finished
    assert not done.warnings
    assert [document.board for document in done.documents] == ["v1"]
    index = (out / "report" / "index.html").read_text()
    address = f"runs/{directory.run_id}/{page_of('esp32-tcpip')}"
    assert re.search(rf'<a href="{address}"><b>Study esp32-tcpip →</b>[^<]*\(virtual\)', index)
    assert (out / "report" / address).is_file()
    assert (out / "report" / "runs" / directory.run_id / files_of("esp32-tcpip")[1]).is_file()


def test_a_run_of_another_suite_has_none(tmp_path: Path) -> None:
    """No file, no link."""
    directory = store_judged(tmp_path, tcpip_records()[:1])
    change_info(directory, suite="quick")
    done = reported(directory)
    assert not done.documents
    assert not any((directory.path / name).exists() for name in FILES)
    assert "Study" not in render_landing([shown(read_judged_run(directory.path))], past=0, raw=())


def test_the_study_is_what_it_was_when_the_run_was_started(tmp_path: Path) -> None:
    """The run's own copy counts, not the project's file: --thresholds gave another, or it changed since."""
    directory = store_judged(tmp_path, tcpip_records()[:2])
    copy = directory.path / KEPT_FOLDER / "esp32-tcpip.yaml"
    text = copy.read_text()
    assert text.count("published: 49.64") == 1
    copy.write_text(text.replace("published: 49.64", "published: 41.25"))
    done = reported(directory)
    assert not done.warnings
    assert "41.25" in printed(done.documents)
    assert sorted(path.name for path in copy.parent.iterdir()) == [f"{name}.yaml" for name in study_files()]
    for other in (directory.path / KEPT_FOLDER).iterdir():
        other.unlink()
    assert not reported(directory).documents


@pytest.mark.slow
def test_the_page_in_a_browser(browser: Browser, out: Path, finished: tuple[RunDirectory, Reporting]) -> None:
    """From the first page by a click: tables, pictures, no complaint, nothing asked of another host."""
    with visit(browser, (out / "report" / "index.html").resolve().as_uri()) as seen:
        seen.page.get_by_text("Study esp32-tcpip").click()
        seen.show("Throughput with iperf's own settings, Mbit/s (virtual)")
        assert seen.page.locator("svg").count() >= 3
        assert seen.page.locator("svg circle").count() >= 8
        assert seen.width() <= 1280
        assert not seen.complaints
        assert not seen.foreign()
        seen.page.get_by_text("← Verdict").click()
        seen.show("Test report →")


# The command


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """A rack of two boards that is never started."""
    return make_lab(tmp_path, 2)


@pytest.mark.parametrize(
    ("more", "present", "boards"),
    [
        ([], ["--hil-suite=esp32-tcpip-quick", "--hil-boots=1"], ["--hil-board=b1"]),
        (["--board", "b2"], ["--hil-suite=esp32-tcpip-quick", "--hil-boots=1"], ["--hil-board=b2"]),
        (["--size", "full"], ["--hil-suite=esp32-tcpip", "--hil-boots=10"], []),
    ],
)
def test_it_goes_on_as_a_run_of_the_studys_suite(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, more: list[str], present: list[str], boards: list[str]
) -> None:
    """Captures are kept; quick takes the rack's first board once, full every board ten times."""
    executed: list[str] = []

    def stop(_path: str, argv: Sequence[str], _environment: object) -> NoReturn:
        executed.extend(argv)
        raise SystemExit(0)

    monkeypatch.setattr(os, "execve", stop)
    with pytest.raises(SystemExit):
        run_command(["reproduce", "esp32-tcpip", "--rack", str(lab.rack), *more])
    assert {*present, "--hil-keep-captures", f"--rack={lab.rack}"} <= set(executed)
    assert [word for word in executed if word.startswith("--hil-board")] == boards


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["esp32-tcip"], "'esp32-tcip'; did you mean 'esp32-tcpip'?"),
        (["esp32-tcpip", "--rack", "none.yaml"], "none.yaml: "),
        (["esp32-tcpip", "--run", "none", "--size", "quick"], "--size"),
        (
            ["esp32-tcpip", "--run=none", "--rack=r", "--board=b", "--firmware=f"],
            "--rack and --board and --firmware",
        ),
        (["esp32-tcpip", "--run", "none", "--out", "o"], "--out"),
        (["esp32-tcpi", "--run", "none"], "did you mean 'esp32-tcpip'?"),
    ],
)
def test_wrong_input_is_refused(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 2 and what would have been right, before anything is started."""
    for start in ("execv", "execve"):  # it would replace the tests
        monkeypatch.setattr(os, start, lambda *_arguments: pytest.fail("it was started"))
    assert run_command(["reproduce", *arguments]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.slow
def test_a_stored_run_is_shown_again(lab: Lab, finished: tuple[RunDirectory, Reporting]) -> None:
    """--run measures nothing; it prints the tables and where the files are."""
    run = finished[0].path
    done = lab.hil("reproduce", "esp32-tcpip", "--run", str(run), "--no-report")
    assert done.returncode == 0, done.stdout
    assert "board v1 (virtual)" in done.stdout
    assert str(run / page_of("esp32-tcpip")) in done.stdout


def test_a_stored_run_is_shown_beside_its_own_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless --thresholds names another folder; the project's where the run has no copy."""
    found: list[Path] = []
    monkeypatch.setattr(
        rebuild, "show_study", lambda _run, _study, reference, **_report: found.append(reference)
    )
    kept, bare = store(tmp_path / "out", "esp32-tcpip", []).path, tmp_path / "bare"
    for run, more, expected in (
        (kept, [], kept / KEPT_FOLDER),
        (kept, ["--thresholds", str(THRESHOLDS_ROOT)], PUBLISHED),
        (bare, [], PUBLISHED),
    ):
        assert run_command(["reproduce", "esp32-tcpip", "--run", str(run), *more]) == 0
        assert found.pop() == expected


def test_a_run_of_another_bench_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    """No case of it compares with the study; what another study left there stays. So is a folder that is no
    run, by its name."""
    (tmp_path / "none").mkdir()
    with pytest.raises(ConfigError, match=f"{tmp_path / 'none'}: not a run directory"):
        rebuild.show_study(tmp_path / "none", "esp32-tcpip", PUBLISHED, report=False)
    assert not list((tmp_path / "none").iterdir())
    directory = store(tmp_path, "esp32-tcpip", tcpip_records()[:1])
    reproduce(read_run(directory.path), load_study("esp32-tcpip"))
    before = {path: path.read_bytes() for path in directory.path.iterdir() if path.is_file()}
    with pytest.raises(ConfigError, match=r"measured throughput, but .* compares with http_gateway alone"):
        reproduce(read_run(directory.path), load_study("mqtt-http-rtt"))
    assert before == {path: path.read_bytes() for path in directory.path.iterdir() if path.is_file()}


def test_two_studies_of_one_run_stand_side_by_side(tmp_path: Path) -> None:
    """Each has files of its own and a way from the first page; that the suite is another's is said."""
    directory = store(tmp_path, "esp32-tcpip", [*tcpip_records()[:1], *rtt_records()[:1]])
    both = ["esp32-tcpip", "mqtt-http-rtt"]
    (own,), (other,) = (reproduce(read_run(directory.path), load_study(study)) for study in both)
    assert [found.study for found in stored_studies(directory.path)] == both
    assert all((directory.path / name).is_file() for study in both for name in files_of(study))
    assert not own.warnings
    words, suite, _ = other.warnings[0].split("'", 2)
    assert suite == "esp32-tcpip-quick"
    assert f"? {words}" in printed([other])
    markdown, _data, page = ((directory.path / name).read_text() for name in files_of("mqtt-http-rtt"))
    assert words in markdown
    assert words in page
    directory.write_verdict(judge(directory.read().entries, load_all(THRESHOLDS_ROOT)))
    landing = render_landing([shown(read_judged_run(directory.path))], past=0, raw=())
    assert all(f"Study {study} →" in landing for study in both)


def test_what_it_was_measured_on_is_said_everywhere(tmp_path: Path) -> None:
    """Board, chip, kind, firmware, and the air with what it counted: in each rendering."""
    (record,) = tcpip_records()[:1]
    counted = {
        f"{way}_delay_{name}_us": us
        for way in ("uplink", "downlink")
        for name, us in (("min", 2000), ("p50", 3000))
    }
    counted |= {f"{way}_read_frames": 1000 for way in ("uplink", "downlink")} | {"uplink_drop_loss": 5}
    point: dict[str, Mapping[str, Scalar]] = {
        "access_point": {"type": "virtual", "profile": "lab"},
        "air": counted,
    }
    record = dataclasses.replace(record, environment={**record.environment, **point})
    directory = store(tmp_path, "esp32-tcpip", [record])
    (own,) = reproduce(read_run(directory.path), load_study("esp32-tcpip"))
    parts = ("board v1, virtual-esp32, virtual", "ab" * 6, "profile lab", "2.00 ms", "3.00 ms", "0.500 %")
    assert re.search(".*".join(parts), own.measured_on)
    said = re.sub(r"\s+", " ", printed([own]))
    for text in (said, *((directory.path / name).read_text() for name in files_of("esp32-tcpip"))):
        assert own.measured_on in text


def test_a_stored_runs_study_is_read_as_strictly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --run too a bench's parameter must exist; exit 2 with the line, nothing written."""
    run = store(tmp_path, "mqtt-http-rtt", rtt_records()).path
    copy = run / KEPT_FOLDER / "mqtt-http-rtt.yaml"
    copy.write_text(copy.read_text().replace("{reconnect: both, http:", "{recconect: both, http:"))
    assert run_command(["reproduce", "mqtt-http-rtt", "--run", str(run)]) == 2
    assert re.search(rf"{copy.name}:\d+: .*'recconect'.*'reconnect'", capsys.readouterr().err)
    assert not any((run / name).exists() for name in FILES)
