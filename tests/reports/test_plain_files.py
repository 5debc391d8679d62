# SPDX-License-Identifier: Apache-2.0
"""A judged run as CSV, JUnit XML and OpenMetrics text: complete, safe, the same bytes each time."""

from __future__ import annotations

import csv
import shutil
import subprocess
from pathlib import Path
from typing import Any

import junitparser
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from hil.cli.app import run_command
from hil.model import Comparison, Fault, NotRun, RunRecord
from hil.reports.metrics import board_groups
from hil.reports.plain import FILES, write_plain
from hil.reports.plain.writing import cell, to_csv
from hil.reports.site.runs import RAW_FILES
from hil.store import RunDirectory, read_judged_run
from hil.store.verdicts import read_verdict
from tests.gate.compare_records import run as compared_run
from tests.gate.compare_records import thresholds
from tests.make_records import RUN_ID, publish_record
from tests.reports.allure_runs import COMMIT, case_id, eventful_entries, judged

NOISE = {"simulated": True, "profile": "typical", "seed": 7, "description": "profile typical (simulated)"}


def lines_of(run: Path, name: str) -> list[dict[str, str]]:
    with (run / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def suites_of(run: Path) -> dict[str, Any]:
    return {suite.name: suite for suite in junitparser.JUnitXml.fromfile(str(run / "junit.xml"))}


def results_of(run: Path) -> dict[tuple[str, str], tuple[str, str]]:
    """Return (kind of result, text) by (class name, name) of each test case; ("", "") where it passed."""
    found = {}
    for suite in suites_of(run).values():
        for case in suite:
            (result,) = case.result or [None]
            told = ("", "") if result is None else (type(result).__name__, result.text or "")
            found[case.classname, case.name] = told
    return found


@pytest.fixture(scope="module")
def eventful(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = judged(tmp_path_factory.mktemp("out"), eventful_entries())
    write_plain(read_judged_run(run))
    return run


def test_series_csv_holds_every_series_of_the_verdict(eventful: Path) -> None:
    """A line a series has its figures and its run, and what there is none of is empty."""
    verdict = read_verdict(eventful / "verdicts.json")
    lines = lines_of(eventful, "series.csv")
    assert len(lines) == len(verdict.series) > 0
    for line, item in zip(lines, verdict.series, strict=True):
        assert (line["run_id"], line["commit"], line["rack"]) == (eventful.name, COMMIT, "virtual")
        assert (line["board"], line["case_id"], line["metric"]) == (item.board, item.case_id, item.metric)
        assert (float(line["value"]) if line["value"] else None) == item.value
        assert (float(line["limit"]) if line["limit"] else None) == item.limit
        assert (line["outcome"], line["blocking"]) == (item.outcome, str(int(item.blocking)))
        assert int(line["samples"]) == item.samples
    assert {line["kind"] for line in lines} == {"virtual"}


def test_simulated_noise_stands_beside_every_figure(tmp_path: Path) -> None:
    """Where noise was simulated, each line and each suite says so."""
    run = judged(tmp_path, eventful_entries(), info={"noise": NOISE})
    write_plain(read_judged_run(run))
    assert {line["kind"] for line in lines_of(run, "series.csv")} == {"virtual, simulated noise"}
    assert all("(virtual, simulated noise)" in name for name in suites_of(run))


def test_comparisons_csv_holds_every_comparison(tmp_path: Path) -> None:
    """A line a comparison has change, interval and outcome as the verdict has them; one that blocks fails its
    case on each board that measured it."""
    run = judged(tmp_path, compared_run(effect=0.4), thresholds=thresholds())
    write_plain(read_judged_run(run))
    compared = read_verdict(run / "verdicts.json").compared
    lines = lines_of(run, "comparisons.csv")
    assert len(lines) == len(compared) > 0
    for line, item in zip(lines, compared, strict=True):
        assert (float(line["change"]) if line["change"] else None) == item.change
        assert (line["role"], line["outcome"]) == (item.role, item.outcome)
        assert line["boards"].split() == list(item.boards)
    blocked = [item for item in compared if item.outcome == "regressed"]
    assert blocked
    failed = {key[0] for key, (kind, _) in results_of(run).items() if kind == "Failure"}
    assert failed == {f"virtual.{board}.publish" for board in blocked[0].boards}


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_no_text_is_a_formula(begin: str) -> None:
    """Text that a spreadsheet would compute is quoted, and a negative number stays a number."""
    text = f'{begin}HYPERLINK("http://example.org";"a, b")'
    content = to_csv(["a", "b"], [[text, -61.5]]).decode()
    ((first, second),) = list(csv.reader(content.splitlines(keepends=True)[1:]))
    assert first == f"'{text}"
    assert second == "-61.5"


def test_cells_keep_what_they_hold() -> None:
    """None is empty, a bool 1 or 0, a whole number whole, a fraction ten digits."""
    assert [cell(one) for one in (None, True, False, 7, 0.1 + 0.2, 2e9, "é=1")] == [
        *("", "1", "0", "7", "0.3", "2000000000", "é=1")
    ]


def test_junit_says_what_became_of_each_case(eventful: Path) -> None:
    """A broken limit and a firmware fault fail, rig and configuration are errors, the rest is skipped. Totals
    are those of the cases, every suite names commit, rack, kind and run, and a case's time is its record's
    clock's, in seconds; what was not measured took none."""
    results = results_of(eventful)
    expected = {
        ("virtual.virtual-1.publish", "publish"): "",
        ("virtual.virtual-1.publish", "publish transport=tls"): "Failure",
        ("virtual.virtual-1.publish", "publish qos=2"): "Error",
        ("virtual.virtual-2.publish", "publish"): "Failure",
        ("virtual.virtual-2.publish", "publish qos=0"): "Skipped",
        ("virtual.virtual-3.publish", "publish"): "Error",
        ("virtual.virtual-5.publish", "publish"): "Skipped",
    }
    assert {key: results[key][0] for key in expected} == expected
    assert "71.4 ms" in results["virtual.virtual-1.publish", "publish transport=tls"][1]
    assert "LoadProhibited" in results["virtual.virtual-2.publish", "publish"][1]
    assert "too large for it" in results["virtual.virtual-5.publish", "publish"][1]
    times = {}
    for suite in suites_of(eventful).values():
        times |= {(case.classname, case.name): case.time for case in suite}
        kinds = [type(result).__name__ for case in suite for result in case.result]
        assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (
            len(list(suite)),
            *(kinds.count(name) for name in ("Failure", "Error", "Skipped")),
        )
        told = {one.name: one.value for one in suite.properties()}
        assert (told["commit"], told["rack"], told["kind"]) == (COMMIT, "virtual", "virtual")
        assert told["run_id"] == eventful.name
        assert "Virtual figures" in told["remark"]
    assert 2.0 < times["virtual.virtual-1.publish", "publish"] < 3.0  # 110 messages, 20 ms apart
    assert times["virtual.virtual-2.publish", "publish qos=0"] == 0


def test_what_cannot_stand_in_xml_is_replaced(tmp_path: Path) -> None:
    """Control characters of a console become U+FFFD, and every parser reads the file."""
    sentence = "panic \x1b[31m\x00 <&\"'> ]]> \ufffe é 😀"
    run = judged(
        tmp_path, [publish_record(), Fault(RUN_ID, "firmware", 1, sentence, "virtual-1", case_id(qos=0))]
    )
    write_plain(read_judged_run(run))
    kind, text = results_of(run)["virtual.virtual-1.publish", "publish qos=0"]
    assert kind == "Failure"
    assert "panic \ufffd[31m\ufffd <&\"'> ]]> \ufffd é 😀" in text
    if xmllint := shutil.which("xmllint"):
        subprocess.run([xmllint, "--noout", "--nonet", run / "junit.xml"], check=True)


def test_openmetrics_is_what_is_pushed(eventful: Path) -> None:
    """The same families, samples and labels as the Pushgateway gets, at the time of the run; Prometheus' own
    checker reads it and has nothing to say."""
    text = (eventful / "openmetrics.txt").read_text()
    assert text.endswith("# EOF\n")
    check = ["promtool", "check", "metrics"]
    done = subprocess.run(check, input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    verdict = read_verdict(eventful / "verdicts.json")
    pushed = {
        (
            sample.name,
            tuple(sorted({**sample.labels, "rack": "virtual", "board": group.board}.items())),
            sample.value,
        )
        for group in board_groups(RunDirectory.open(eventful).read_info(), verdict)
        for family in group.families.collect()
        for sample in family.samples
    }
    found, units = set(), {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        units[family.name] = family.unit
        for sample in family.samples:
            assert sample.timestamp is not None
            assert float(sample.timestamp) == 1795212770
            labels = {key: value for key, value in sample.labels.items() if key != "job"}
            found.add((sample.name, tuple(sorted(labels.items())), sample.value))
    assert found == pushed
    assert units["hil_publish_latency_seconds"] == "seconds"
    assert units["hil_publish_failed_ratio"] == "ratio"
    assert units["hil_board_cases"] == ""


def test_written_twice_they_are_the_same_bytes(tmp_path: Path) -> None:
    """Nothing in them depends on when they are made, or on what was there before."""
    run = judged(tmp_path, eventful_entries())
    write_plain(read_judged_run(run))
    first = {name: (run / name).read_bytes() for name in FILES}
    for name in FILES:
        (run / name).write_bytes(b"of an earlier version")
    write_plain(read_judged_run(run))
    assert {name: (run / name).read_bytes() for name in FILES} == first


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [Fault(RUN_ID, "rig", 3, "the broker did not start.")],
        [NotRun(RUN_ID, "virtual-1", "publish/x=1", "the run was interrupted")],
    ],
    ids=["nothing", "only a fault", "only what was not run"],
)
def test_a_run_without_figures_has_its_files_too(
    tmp_path: Path, entries: list[RunRecord | Fault | NotRun | Comparison]
) -> None:
    """Tables with a heading alone, metrics of idle boards, and test cases of what went wrong."""
    run = judged(tmp_path, entries)
    write_plain(read_judged_run(run))
    assert lines_of(run, "series.csv") == lines_of(run, "comparisons.csv") == []
    assert list(text_string_to_metric_families((run / "openmetrics.txt").read_text()))
    kinds = [kind for kind, _ in results_of(run).values() if kind]
    assert len(kinds) == len(entries)


def test_judging_again_writes_them_again(tmp_path: Path) -> None:
    """`hil gate RUN` writes the plain files with the summary; a report publishes them with each run."""
    run = judged(tmp_path, eventful_entries())
    run_command(["gate", str(run)])
    assert all((run / name).is_file() for name in FILES)
    assert set(FILES) <= set(RAW_FILES)
