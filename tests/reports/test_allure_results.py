# SPDX-License-Identifier: Apache-2.0
"""Allure results: the verdict's words, the record's times, files that a second completion leaves alone."""

from __future__ import annotations

import csv
import html
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from hil.model import NotRun
from hil.reports.allure import CATEGORIES, complete_results, completion
from hil.reports.kinds import VIRTUAL_REMARK
from hil.reports.rows import LEGEND
from hil.store import RunDirectory, read_judged_run
from hil.thresholds.types import Parameter
from tests.judging import judge
from tests.make_records import RUN_ID, publish_record, publish_thresholds
from tests.reports.allure_runs import (
    COMMIT,
    INFO,
    attached,
    case_id,
    completed,
    eventful_entries,
    judged,
    metrics_of,
    results_of,
)


@pytest.fixture(scope="module")
def eventful(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A completed run in which everything happens. Tests do not change it."""
    run = judged(tmp_path_factory.mktemp("out"), eventful_entries())
    (run / "console").mkdir()
    (run / "console" / "virtual-2.log").write_text("1795267175.754 Guru Meditation Error\n")
    own = run / "thresholds" / "publish.yaml"
    own.write_text(f"{own.read_text()}\nowner: '@org/mqtt-team'\n")
    complete_results(read_judged_run(run))
    return run


@pytest.mark.parametrize(
    ("place", "status", "message"),
    [
        (("virtual-1", "defaults"), "passed", ""),
        (
            ("virtual-1", "transport=tls"),
            "failed",
            "regression: publish_latency_p95_us of publish/transport=",
        ),
        (
            ("virtual-1", "qos=0"),
            "unknown",
            "undecided: publish_latency_p95_us of publish/qos=0 on virtual-1",
        ),
        (("virtual-1", "qos=2"), "broken", "rig: the broker went away"),
        (("virtual-2", "defaults"), "failed", "firmware: panic: LoadProhibited"),
        (("virtual-2", "qos=0"), "skipped", "not run: board virtual-2 failed before: panic"),
        (("virtual-3", "defaults"), "broken", "configuration: no such interface"),
        (("virtual-4", "defaults"), "broken", "rig: board virtual-4 could not be flashed."),
        (("virtual-4", "qos=0"), "skipped", "not run: board virtual-4 failed before: "),
        (("virtual-5", "defaults"), "skipped", "not run: too large for it"),
    ],
)
def test_status_and_message_say_whose_it_is(
    eventful: Path, place: tuple[str, str], status: str, message: str
) -> None:
    """Each outcome of the verdict has its status; the first word of the message is its category's."""
    result = results_of(eventful)[place]
    said = result.get("statusDetails", {}).get("message", "")
    assert (result["status"], said[: len(message)]) == (status, message)
    matching = [
        category["name"]
        for category in CATEGORIES
        if status in category["matchedStatuses"] and re.fullmatch(category["messageRegex"], said, re.DOTALL)
    ]
    assert len(matching) == (status != "passed")


def test_every_case_of_the_journal_has_a_result(eventful: Path) -> None:
    """pytest left none here, as if it had been killed; the report is whole all the same. run.json holds the
    command line, and in it a password: no file of the results has it."""
    for path in (eventful / "allure-results").iterdir():
        assert b"hunter2" not in path.read_bytes(), path.name
    results = results_of(eventful)
    assert len(results) == 10
    assert len({result["historyId"] for result in results.values()}) == 10
    assert len({result["testCaseId"] for result in results.values()}) == 1


def test_a_regression_outranks_the_rig(tmp_path: Path) -> None:
    """What the firmware did is not hidden by a fault of the rig after it; the description has both."""
    entries = eventful_entries()
    slow = publish_record(board="virtual-1", overrides={"qos": 2}, latency_ms=90)
    run = completed(tmp_path, [slow if entry == entries[3] else entry for entry in entries])
    result = results_of(run)["virtual-1", "qos=2"]
    assert result["statusDetails"]["message"].startswith("regression: publish_latency_p95_us")
    assert result["statusDetails"]["message"].endswith("publish_latency_tail5.")
    assert "the broker went away" in result["descriptionHtml"]


def test_a_second_completion_gives_the_same_bytes(eventful: Path, tmp_path: Path) -> None:
    """Done again, and done on a copy elsewhere without what was completed before: not a byte differs."""
    first = {path.name: path.read_bytes() for path in (eventful / "allure-results").iterdir()}
    complete_results(read_judged_run(eventful))
    elsewhere = shutil.copytree(eventful, tmp_path / eventful.name)
    shutil.rmtree(elsewhere / "allure-results")
    complete_results(read_judged_run(elsewhere))
    for run in (eventful, elsewhere):
        assert {path.name: path.read_bytes() for path in (run / "allure-results").iterdir()} == first


def test_another_verdict_replaces_the_results(tmp_path: Path) -> None:
    """Judged again by other limits, a case has its new status and nothing of the old one is left."""
    run = completed(tmp_path, [publish_record(latency_ms=60)])
    names = {path.name for path in (run / "allure-results").iterdir()}
    assert [result["status"] for result in results_of(run).values()] == ["failed"]
    directory = RunDirectory.open(run)
    without_limits = replace(publish_thresholds(), limits=())
    directory.write_verdict(judge(directory.read().entries, {"publish": without_limits}))
    complete_results(read_judged_run(run))
    assert [result["status"] for result in results_of(run).values()] == ["passed"]
    assert {path.name for path in (run / "allure-results").iterdir()} == names


@pytest.mark.slow
def test_the_history_goes_on_over_runs(tmp_path: Path) -> None:
    """Three runs at three commits: the same id for a case on a board, another for each other of either."""
    seen: list[dict[tuple[str, str], str]] = []
    for number in range(3):
        entries = [
            publish_record(board=board, overrides=case, latency_ms=7 + number)
            for board in ("virtual-1", "virtual-2")
            for case in ({}, {"qos": 2})
        ]
        info = {"git": {"commit": f"{number}" * 40, "dirty": False}, "firmware": {}, "ci": {}}
        results = results_of(
            completed(tmp_path, entries, run_id=f"2026112{number}T000000Z-quick-0000", info=info)
        )
        shown = [{item["name"] for item in result["parameters"]} for result in results.values()]
        assert shown == [{"rack", "board", "case", "commit", "firmware", "run"}] * 4
        seen.append({place: result["historyId"] for place, result in results.items()})
    assert seen[0] == seen[1] == seen[2]
    assert len(set(seen[0].values())) == 4


def test_only_rack_board_and_case_tell_results_apart(eventful: Path) -> None:
    """What changes with each run is shown, but marked as no part of the identity, as Allure 3 reckons it."""
    told: dict[bool, dict[str, str]] = {False: {}, True: {}}
    for item in results_of(eventful)["virtual-1", "defaults"]["parameters"]:
        told[item.get("excluded", False)][item["name"]] = item["value"]
    assert told[False] == {"rack": "virtual", "board": "virtual-1", "case": "defaults"}
    assert told[True] == {"commit": COMMIT[:12], "firmware": "ab" * 6, "run": RUN_ID}


def test_a_new_parameter_with_a_default_does_not_split_the_history(tmp_path: Path) -> None:
    """A bench that learns to do more keeps the history of what it did before."""
    old = judged(tmp_path / "old", [publish_record(overrides={"qos": 2})])
    more = {**publish_thresholds().parameters, "window": Parameter("window", 4, minimum=1, maximum=9)}
    newer = replace(publish_thresholds(), parameters=more)
    record = publish_record(overrides={"qos": 2})
    record = replace(record, parameters={**record.parameters, "window": 4})
    new = judged(tmp_path / "new", [record], thresholds=newer)
    text = (new / "thresholds" / "publish.yaml").read_text()
    extended = text.replace("parameters:\n", "parameters:\n  window: {default: 4, min: 1, max: 9}\n", 1)
    (new / "thresholds" / "publish.yaml").write_text(extended)
    ids = []
    for run in (old, new):
        complete_results(read_judged_run(run))
        ids += [result["historyId"] for result in results_of(run).values()]
    assert len(ids) == 2
    assert len(set(ids)) == 1


def test_times_are_the_records(eventful: Path) -> None:
    """A result starts when its case did and lasts as long as its samples did, however long pytest waited; a
    step a boot says what it measured and when.
    """
    result = results_of(eventful)["virtual-1", "defaults"]
    record = publish_record(board="virtual-1")
    assert result["start"] == 1795212777000
    assert result["stop"] - result["start"] == round(max(record.columns["done_us"]) / 1000)
    skipped = results_of(eventful)["virtual-2", "qos=0"]
    assert skipped["start"] == skipped["stop"] == 1795212770000
    assert result["steps"][0]["name"] == "candidate, boot 1: 100 samples"
    assert all(step["stop"] >= step["start"] > 0 for step in result["steps"])


def test_labels_place_the_result_and_say_what_it_weighs(eventful: Path) -> None:
    """Rack, board with its kind, and bench make the tree; host and thread are rack and board. Whom to ask is
    the owner that the thresholds file names."""
    of_each = {
        place: [(item["name"], item["value"]) for item in result["labels"]]
        for place, result in results_of(eventful).items()
    }
    assert all(("owner", "@org/mqtt-team") in labels for labels in of_each.values())
    labels = of_each["virtual-1", "defaults"]
    assert {
        ("parentSuite", "virtual"),
        ("suite", "virtual-1 (virtual)"),
        ("subSuite", "publish"),
        ("tag", "virtual"),
        ("tag", "virtual-esp32"),
        ("severity", "critical"),
    } <= set(labels)
    assert {("epic", "Performance"), ("feature", "publish"), ("story", "defaults")} <= set(labels)
    assert [pair for pair in labels if pair[0] in ("host", "thread")] == [
        ("host", "virtual"),
        ("thread", "virtual-1"),
    ]


def test_the_description_starts_with_the_worst_and_shows_every_metric(eventful: Path) -> None:
    """Sentence first, then each metric that was measured, with interval and limit; a virtual figure says so.

    What a meter would say is not there on a board that has none. Allure's cells do not break, and what is
    wider than its page is gone: counts and long clocks break."""
    text = results_of(eventful)["virtual-1", "transport=tls"]["descriptionHtml"]
    assert text.startswith("<p><strong>regression: ")
    for metric in publish_thresholds().metrics.values():
        words = metric.name.removesuffix(f"_{metric.unit.name}").replace("_", " ")
        shown = re.search(rf">(publish )?{words}<", text) is not None
        assert shown != metric.is_metered, metric.name
    assert re.search(r">[\d.]+ ms \[[\d.]+, [\d.–]+\]<", text)
    assert ">value [interval], virtual<" in text
    _head, row, *_others = re.findall(r"<tr>(.*?)</tr>", text)
    styles = re.findall(r'<td style="([^"]*)"', row)
    assert [n for n, style in enumerate(styles) if "white-space:normal" in style] == [4, 6]
    assert "overflow-wrap:anywhere" in styles[6]
    assert VIRTUAL_REMARK in html.unescape(text)
    passed = results_of(eventful)["virtual-1", "defaults"]["descriptionHtml"]
    assert re.match(r"<p><strong>On virtual-1 \(virtual\): .* 3 ", passed)


def test_the_samples_come_back_from_the_csv(tmp_path: Path) -> None:
    """Every row of every boot is there, the warm-up marked, each column under its name with its unit."""
    records = [publish_record(boot_index=boot, failed=boot) for boot in range(3)]
    run = completed(tmp_path, records)
    (result,) = results_of(run).values()
    (content,) = attached(run, result, "csv")
    rows = list(csv.DictReader(content.decode().splitlines()))
    for record in records:
        own = [row for row in rows if int(row["boot_index"]) == record.boot_index]
        found = {name: tuple(int(row[name]) for row in own) for name in record.columns}
        assert found == record.columns
        assert sum(int(row["warmup"]) for row in own) == record.warmup_rows


def test_the_console_is_cut_to_the_case(eventful: Path, tmp_path: Path) -> None:
    """Of a log of three cases and two boots a result has its own lines, and no other's; of a board that
    panicked before its case began everything it said."""
    (text,) = attached(eventful, results_of(eventful)["virtual-2", "defaults"], "txt")
    assert text == b"1795267175.754 Guru Meditation Error\n"
    run = judged(tmp_path, [publish_record(), publish_record(overrides={"qos": 2})])
    command = "publish " + " ".join(case_id().partition("/")[2].split(","))
    other = command.replace("qos=1", "qos=2")
    lines = [
        "1.000 booting",
        "1.100 > #a-1 provision client_key_pem 0 ***",
        "1.200 > #a-2 hello *00000000",
        f"1.300 > #a-3 run {command} *00000000",
        "1.400 first boot's samples",
        "1.500 > #a-4 ack 1 *00000000",
        "1.600 > #a-5 hello *00000000",
        f"1.700 > #a-6 run {other} *00000000",
        "1.800 the other case's samples",
        "2.000 > #b-1 hello *00000000",
        f"2.100 > #b-2 run {command} *00000000",
        "2.200 second boot's samples",
    ]
    (run / "console").mkdir()
    (run / "console" / "virtual-1.log").write_text("\n".join(lines) + "\n")
    complete_results(read_judged_run(run))
    (text,) = attached(run, results_of(run)["virtual-1", "defaults"], "txt")
    assert text.decode().splitlines() == [*lines[3:6], "…", *lines[10:]]
    (text,) = attached(run, results_of(run)["virtual-1", "qos=2"], "txt")
    assert text.decode().splitlines() == lines[7:9]


def test_attachments_stand_in_the_order_in_which_one_looks(eventful: Path) -> None:
    """Distribution, course, samples, environment; virtual figures are called so; each file is there."""
    result = results_of(eventful)["virtual-1", "defaults"]
    *figures, last = (item["name"] for item in result["attachments"])
    assert last == "environment"
    assert all("virtual" in name for name in figures)
    shown = [re.findall("distribution|over time|raw", name) for name in figures]
    assert shown == [["distribution"], ["over time"], ["raw"]]
    (environment,) = attached(eventful, result, "json")
    assert json.loads(environment)["boots"][0]["device"]["heap_free_bytes"] == 180000
    assert json.loads(environment)["parameters"]["payload_bytes"] == 128


def test_of_very_many_cases_those_that_did_not_pass_are_illustrated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every case keeps its result and table of figures; charts go to what broke, and the others say where
    theirs are."""
    monkeypatch.setattr(completion, "MOST_WHOLE", 2)
    monkeypatch.setattr(completion, "ILLUSTRATED_OF_MORE", 1)
    cases = ({}, {"transport": "tls"}, {"qos": 0})
    entries = [publish_record(overrides=case, latency_ms=60 if "qos" in case else 7) for case in cases]
    results = {label: item for (_, label), item in results_of(completed(tmp_path, entries)).items()}
    assert len(results) == len(cases)
    drawn = {label: bool(item.get("attachments")) for label, item in results.items()}
    assert [label for label in drawn if drawn[label]] == ["qos=0"]
    bare = next(item["descriptionHtml"] for label, item in results.items() if not drawn[label])
    assert "<table" in bare
    assert "records.jsonl" in bare


def test_metrics_are_the_verdicts_and_no_key_comes_twice(eventful: Path) -> None:
    """Allure averages what has the same key. The unit does not follow the value, or a history would jump."""
    metrics = metrics_of(eventful)
    assert len({item["key"] for item in metrics}) == len({item["id"] for item in metrics}) == len(metrics)
    wanted = {"id", "key", "value", "start", "stop", "title", "unit", "group", "groupTitle", "better"}
    assert all(set(item) == wanted for item in metrics)
    verdict = json.loads((eventful / "verdicts.json").read_text())
    series = {item["series_id"]: item for item in verdict["series"] if item["value"] is not None}
    assert {item["key"] for item in metrics} == set(series)
    factors = {("us", "ms"): 1000, ("us", "µs"): 1, ("ratio", "%"): 0.01}
    for item in metrics:
        stored = series[item["key"]]
        factor = factors[stored["unit"], item["unit"]]
        assert item["value"] * factor == pytest.approx(stored["value"], rel=1e-8)
        assert item["better"] == stored["direction"]
        assert "(virtual)" in item["groupTitle"]
    units = {(item["title"], item["unit"]) for item in metrics}
    assert {("publish_latency_p50", "ms"), ("mutex_wait_p95", "µs"), ("publish_failed", "%")} <= units


def test_a_bound_is_no_figure_of_the_metrics(tmp_path: Path) -> None:
    """What is only known to be at least so much is left out, for the format has no "≥"; the rest stays."""
    run = completed(tmp_path, [publish_record(failed=90)])
    titles = {item["title"] for item in metrics_of(run)}
    assert not [title for title in titles if title.startswith("publish_latency")]
    assert {"publish_failed", "serialise_p95"} <= titles
    (result,) = results_of(run).values()
    assert "≥ 5.00 s [5.00, –]" in result["descriptionHtml"]


def test_what_is_beyond_a_limit_has_no_tick(tmp_path: Path) -> None:
    """A value whose interval proves nothing is undecided: the sign "?", first, and the signs explained."""
    (result,) = results_of(completed(tmp_path, [publish_record(latency_ms=21.5)])).values()
    rows = re.findall(r"<tr>(.*?)</tr>", result["descriptionHtml"])
    cells = re.findall(r"<td[^>]*>(.*?)</td>", rows[1])
    assert (cells[0], cells[1], cells[3]) == ("?", "publish latency p95", "25 ms")
    assert result["status"] == "unknown"
    assert result["statusDetails"]["message"].startswith("undecided: publish_latency_p95_us")
    assert LEGEND in result["descriptionHtml"]


@pytest.mark.parametrize("latency_ms", [0.4, 70])
def test_a_metrics_unit_does_not_depend_on_its_value(tmp_path: Path, latency_ms: float) -> None:
    """Latency is in ms on a good day and on a bad one; a quantity without a limit of a ms or more in µs."""
    run = completed(tmp_path, [publish_record(latency_ms=latency_ms)])
    units = {item["title"]: item["unit"] for item in metrics_of(run)}
    assert {unit for title, unit in units.items() if title.startswith("publish_latency")} == {"ms"}
    assert units["send_lateness_p95"] == units["serialise_p95"] == "µs"


def test_files_round_the_results(eventful: Path) -> None:
    """Categories, environment, workflow run, and the fault of no single case as an error of the whole."""
    folder = eventful / "allure-results"
    assert json.loads((folder / "categories.json").read_text()) == CATEGORIES
    environment = dict(
        line.split("=", 1) for line in (folder / "environment.properties").read_text().splitlines()
    )
    assert environment["commit"] == COMMIT[:12]
    assert environment["kinds"] == "virtual"
    assert environment["firmware.virtual-esp32"] == "ab" * 6
    executor = json.loads((folder / "executor.json").read_text())
    assert (executor["buildUrl"], executor["buildOrder"]) == (INFO["ci"]["url"], 4711)
    (path,) = folder.glob("*-globals.json")
    (error,) = json.loads(path.read_text())["errors"]
    assert error["message"].startswith("rig: board virtual-4 ")
    assert not list(folder.glob("*-container.json"))


def test_a_failure_of_the_harness_is_the_rigs(tmp_path: Path) -> None:
    """An item that failed although its case was measured is no pass; what the bench attached is kept."""
    run = judged(tmp_path, [publish_record(), publish_record(overrides={"qos": 2})])
    raw = run / "allure-pytest"
    raw.mkdir()
    item = {
        "fullName": "hil.benches.test_publish#test_publish",
        "parameters": [{"name": name, "value": f"'{value}'"} for name, value in (
            ("rack", "virtual"), ("board", "virtual-1"), ("case", "defaults"))],
        "status": "broken",
        "statusDetails": {"message": "ZeroDivisionError: oops", "trace": "test_publish.py:8"},
        "labels": [{"name": "thread", "value": "1-Main"}, {"name": "tag", "value": "publish"}],
        "attachments": [{"name": "note", "source": "x-attachment.txt", "type": "text/plain"}],
    }  # fmt: skip
    (raw / "1-result.json").write_text(json.dumps(item))
    (raw / "2-result.json").write_text('{"fullName": "hil.ben')
    (raw / "x-attachment.txt").write_text("a note")
    complete_results(read_judged_run(run))
    result = results_of(run)["virtual-1", "defaults"]
    assert (result["status"], result["statusDetails"]["trace"]) == ("broken", "test_publish.py:8")
    assert re.match("rig: .*: ZeroDivisionError", result["statusDetails"]["message"])
    assert {"name": "tag", "value": "publish"} in result["labels"]
    assert attached(run, result, "txt") == [b"a note"]
    assert results_of(run)["virtual-1", "qos=2"]["status"] == "passed"


def test_a_case_that_was_not_measured_names_the_image_it_needs(tmp_path: Path) -> None:
    """A case of another tick needs another image than its target's default one, and names its digest."""
    cases = [f"jitter/tick_hz={tick_hz}" for tick_hz in (1000, 100)]
    firmware = {"virtual-esp32": {"sha256": "ab" * 32}, "virtual-esp32+tick100": {"sha256": "cd" * 32}}
    entries = [NotRun(RUN_ID, "virtual-1", case, "stopped") for case in cases]
    results = results_of(completed(tmp_path, entries, info={"firmware": firmware})).values()
    shown = {
        item["value"] for result in results for item in result["parameters"] if item["name"] == "firmware"
    }
    assert shown == {"ab" * 6, "cd" * 6}
    assert len(results) == len(cases)
