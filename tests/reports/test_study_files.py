# SPDX-License-Identifier: Apache-2.0
"""Files of published studies: what they hold, and that a mistake in one is found with its line."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.model import Scalar
from hil.network.peers.gateway.joining import COLUMNS
from hil.reports.studies.declaration import SAMPLE_COLUMNS, Comparison, Study
from hil.reports.studies.loader import load_study, study_files, study_of_suite
from hil.thresholds import Thresholds, load_all
from tests.make_records import THRESHOLDS_ROOT

SMALL = """\
schema: 1
study: small
title: A study
authors: [A. Author]
year: 2020
source: a report
questions: [How fast?]
setup: [a board]
suites: {quick: small-quick, full: small}
boots: {quick: 1, full: 3}
tables:
  - id: rates
    title: Rates
    unit: Mbit/s
    n: 3
    ours: {bench: throughput, case: {protocol: tcp}}
    rows:
      - {label: one, published: 1.5, ours: {case: {role: client}}}
claims:
  - {id: fast, says: It is fast., check: tx-exceeds-rx}
"""


@pytest.fixture(scope="module")
def benches() -> dict[str, Thresholds]:
    return load_all(THRESHOLDS_ROOT)


def read(folder: Path, text: str, benches: dict[str, Thresholds] | None = None) -> Study:
    (folder / "reference").mkdir()
    (folder / "reference" / "small.yaml").write_text(text)
    return load_study("small", folder / "reference", benches=benches)


def refused(folder: Path, text: str, benches: dict[str, Thresholds] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        read(folder, text, benches)
    return str(caught.value)


def test_a_row_adds_to_what_its_table_compares_with(tmp_path: Path) -> None:
    """Conditions of the table hold for each row; the row's own come besides."""
    row = read(tmp_path, SMALL).table("rates").rows[0]
    assert row.published == 1.5
    assert row.ours == Comparison("throughput", {"protocol": ("tcp",), "role": ("client",)})


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("title: A study", "titel: A study", ["small.yaml:3: unknown key 'titel'", "'title'"]),
        (
            "published: 1.5",
            "publshed: 1.5",
            ["small.yaml:18: ", "did you mean 'published', which is required"],
        ),
        ("label: one", "label: one, defct: x", ["small.yaml:18: unknown key 'defct'", "'defect'"]),
        ("unit: Mbit/s", "unit: Mbit", ["small.yaml:14: unknown unit 'Mbit'"]),
        ("n: 3\n", "n: 3\n    lost: burnt\n", ["small.yaml:16: a lost table has no rows"]),
        ("check: tx-exceeds-rx", "test: {of: rate}", ["small.yaml:20: ", "did you mean 'rates'"]),
        ("check: tx-exceeds-rx", "test: {of: rates, statistic: mean}", ["one of rises, falls, equal, above"]),
        (
            "check: tx-exceeds-rx",
            "test: {of: rates, statistic: mean, rises: 0, over: [role]}",
            ["small.yaml:20: ", "'over' goes with 'at'"],
        ),
        (
            "check: tx-exceeds-rx",
            "test: {of: rates, statistic: mean, below: 0, at_most: 1}",
            ["small.yaml:20: unknown key 'at_most'"],
        ),
        ("check: tx-exceeds-rx", "check: by-fact", ["small.yaml:20: ", "needs a 'remark'"]),
        ("role: client}", "role: client}, samples: {phase: 1}", ["small.yaml:18: ", "Known columns: none"]),
        ("study: small", "study: smaller", ["small.yaml:2: study 'smaller' must have the file's name"]),
        ("{quick: 1, full: 3}", "{quick: 0, full: 3}", ["small.yaml:10: ", "from 1 to 100"]),
        (
            "published: 1.5",
            "published: 1.5, corrected: {why: wrong}",
            ["small.yaml:18: 'corrected' has neither a 'value' nor a 'formula'"],
        ),
    ],
)
def test_a_mistake_names_file_line_and_the_nearest_key(
    tmp_path: Path, old: str, new: str, words: list[str]
) -> None:
    """Nothing that nobody asked for is read over."""
    assert old in SMALL
    said = refused(tmp_path, SMALL.replace(old, new))
    for word in words:
        assert word in said


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        (
            "role: client",
            "rolle: client",
            "small.yaml:18: the bench 'throughput' has no parameter 'rolle'; did",
        ),
        (
            "bench: throughput",
            "bench: troughput",
            "small.yaml:16: there is no bench 'troughput'; did you mean",
        ),
        (
            "full: esp32-tcpip}",
            "full: esp32-tcpi}",
            "small.yaml:9: no thresholds file has a suite 'esp32-tcpi'; did",
        ),
    ],
)
def test_what_compares_must_exist(
    tmp_path: Path, benches: dict[str, Thresholds], old: str, new: str, word: str
) -> None:
    """A parameter, bench or suite that there is not would select nothing and look like a gap of the run."""
    text = SMALL.replace("small-quick", "esp32-tcpip-quick").replace("full: small}", "full: esp32-tcpip}")
    assert old in text
    assert word in refused(tmp_path, text.replace(old, new), benches)


@pytest.mark.parametrize(
    ("study", "old", "new", "words"),
    [
        (
            "mqtt-http-rtt",
            "samples: {profile: 0}",
            "samples: {profil: 0}",
            "'profil'; did you mean 'profile",
        ),
        (
            "rtos-mqtt",
            "    remark: lwIP tells neither where a buffer lies nor how long a segment was queued\n",
            "",
            "a claim that nothing here can decide needs a 'remark' that says why",
        ),
        (
            "rtos-mqtt",
            "falls: 0.1\n    kind: recommendation\n",
            "falls: 0.1\n    kind: recomendation\n",
            "'recomendation'; did you mean 'recommendation'",
        ),
        (
            "rtos-mqtt",
            "claims: [use-nodelay]",
            "claims: [nodelay]",
            r"rtos-mqtt.yaml:\d+: there is no claim 'nodelay'; did you mean 'use-nodelay'",
        ),
    ],
)
def test_what_the_studys_code_needs_is_asked_for(
    tmp_path: Path, study: str, old: str, new: str, words: str
) -> None:
    """What the file lacks, or has too much, is a line to mend."""
    text = study_files()[study].read_text()
    assert text.count(old) == 1
    (tmp_path / f"{study}.yaml").write_text(text.replace(old, new))
    with pytest.raises(ConfigError, match=words):
        load_study(study, tmp_path)


def test_a_missing_table_is_named() -> None:
    """The study's code asks for a table by its id."""
    with pytest.raises(ConfigError, match="the study 'mqtt-http-rtt' has no table 'phase'; did you mean"):
        load_study("mqtt-http-rtt").table("phase")


def test_samples_are_told_apart_by_columns_that_there_are() -> None:
    """What a study may name is among the columns that the requester's side leaves."""
    assert set(SAMPLE_COLUMNS["http_gateway"]) <= set(COLUMNS)


def test_an_unknown_study_is_told_with_the_nearest_name() -> None:
    """The sentence lists what there is."""
    with pytest.raises(ConfigError, match=r"no study 'esp32-tcp'; did you mean 'esp32-tcpip'\? Studies: "):
        load_study("esp32-tcp")


@pytest.mark.parametrize(
    "name", ["esp32-tcpip", "freertos-multicore", "mqtt-http-rtt", "mqtt-qos", "rtos-mqtt"]
)
def test_the_studies_fit_the_benches(name: str, benches: dict[str, Thresholds]) -> None:
    """Each study's suites and parameters exist, and a suite leads back to its study."""
    assert name in study_files()
    study = load_study(name, benches=benches)
    assert {found and found.id for found in map(study_of_suite, study.suites.values())} == {name}
    assert study_of_suite("quick") is None


def test_every_published_row_has_a_case_in_each_suite(benches: dict[str, Thresholds]) -> None:
    """What is published is measured, in the quick suite too."""
    for name in study_files():
        study = load_study(name)
        for suite in study.suites.values():
            for table in study.tables:
                for row in table.rows:
                    assert row.ours is not None
                    cases = benches[row.ours.bench].suites[suite]
                    assert any(fits(case.parameters, row.ours) for case in cases), (
                        suite,
                        table.id,
                        row.label,
                    )


def fits(parameters: dict[str, Scalar], wanted: Comparison) -> bool:
    return all(str(parameters[key]) in map(str, values) for key, values in wanted.case.items())


def test_what_is_published_is_written_down_as_it_was() -> None:
    """The values of the reports of 2022 and 2025 and of the benchmark of 2026; lost tables hold none."""
    tcpip, rtt = load_study("esp32-tcpip"), load_study("mqtt-http-rtt")
    assert [row.published for row in tcpip.table("baseline").rows] == [1.07, 56.83, 49.64, 46.87]
    sent = [8.65, 18.58, 35.5, 29.05, 29.02, 24.79, 26.97]
    assert [row.published for row in tcpip.table("segment-send").rows] == sent
    lost = {table.id for table in tcpip.tables if table.lost}
    assert lost == {"window-receive", "window-send", "segment-receive"}
    assert not any(tcpip.table(name).rows for name in lost)
    assert [row.published for row in rtt.table("phases").rows] == [9.6, 9.8, 11.8, 10.4, 12.6, 9.8]
    assert [(row.published, row.of) for row in rtt.table("timeouts").rows] == [(0, 10)] * 3
    mqtt = load_study("rtos-mqtt")
    assert [row.published for row in mqtt.table("publish").rows] == [3.46, 17.96, 2.00, 3.44, 2.00, 1.84]
    assert [row.published for row in mqtt.table("publishes").rows] == [619, 622, 642, 642, 581, 580]
    assert [row.published for row in mqtt.table("security").rows] == [4.70, 1.63, 1.99, 2.00]
    succeeded = [(row.published, row.of) for row in mqtt.table("security-publishes").rows]
    assert succeeded == [(559, 600), (580, 580), (580, 580), (580, 580)]


def test_the_corrected_rates_follow_from_the_published_numbers() -> None:
    """Each number over the 300 s of its run, and none of them is one a second."""
    for row in load_study("rtos-mqtt").table("publishes").rows:
        assert row.published is not None
        assert row.formula == f"{row.published / 300:.2f} a second"
        assert row.published / 300 > 1.9


def test_the_corrected_headers_follow_from_their_formula() -> None:
    """5000 B in segments of 160 and 1360 B with 40 B each; the published formula gives what was published."""
    small, large = load_study("esp32-tcpip").table("overhead").rows
    for row, package in ((small, 200), (large, 1400)):
        assert row.published == math.ceil(5000 / package) * 40 - 40
        assert row.corrected == math.ceil(5000 / (package - 40)) * 40


def test_a_study_that_does_not_name_the_suite_is_not_parsed(tmp_path: Path) -> None:
    """A key is no name of a suite; where a value is, the file is parsed, and its mistake told."""
    (tmp_path / "odd.yaml").write_text("quick: [\n")
    assert study_of_suite("quick", tmp_path) is None
    (tmp_path / "odd.yaml").write_text("suites: {quick: odd-quick\n")
    assert study_of_suite("quick", tmp_path) is None
    with pytest.raises(ConfigError, match=r"odd\.yaml:"):
        study_of_suite("odd-quick", tmp_path)
