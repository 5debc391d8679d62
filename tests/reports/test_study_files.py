# SPDX-License-Identifier: Apache-2.0
"""Files of published studies: what they hold, and that a mistake in one is found with its line."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from hil.base.errors import ConfigError
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


CHECK = "check: tx-exceeds-rx"


@pytest.fixture(scope="module")
def benches() -> dict[str, Thresholds]:
    return load_all(THRESHOLDS_ROOT)


def read(folder: Path, text: str, benches: dict[str, Thresholds] | None = None) -> Study:
    (folder / "reference").mkdir()
    (folder / "reference" / "small.yaml").write_text(text)
    return load_study("small", folder / "reference", benches=benches)


def test_a_row_adds_to_what_its_table_compares_with(tmp_path: Path) -> None:
    """Conditions of the table hold for each row; the row's own come besides."""
    row = read(tmp_path, SMALL).table("rates").rows[0]
    assert row.published == 1.5
    assert row.ours == Comparison("throughput", {"protocol": ("tcp",), "role": ("client",)})


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("title: A study", "titel: A study", "3: .*'titel'.*'title'"),
        ("published: 1.5", "publshed: 1.5", "18: .*'published', which is required"),
        ("label: one", "label: one, defct: x", "18: .*'defct'.*'defect'"),
        ("unit: Mbit/s", "unit: Mbit", "14: unknown unit 'Mbit'"),
        ("n: 3\n", "n: 3\n    lost: burnt\n", "16: a lost table"),
        (CHECK, "test: {of: rate}", "20: .*'rates'"),
        (CHECK, "test: {of: rates, statistic: mean}", "20: .*rises, falls, equal, above"),
        (CHECK, "test: {of: rates, statistic: mean, rises: 0, over: [role]}", "20: .*'over'.*'at'"),
        (CHECK, "test: {of: rates, statistic: mean, below: 0, at_most: 1}", "20: .*'at_most'"),
        (CHECK, "check: by-fact", "20: .*'remark'"),
        ("role: client}", "role: client}, samples: {phase: 1}", "18: .*Known columns: none"),
        ("study: small", "study: smaller", "2: study 'smaller' "),
        ("{quick: 1, full: 3}", "{quick: 0, full: 3}", "10: .*from 1 to 100"),
        ("published: 1.5", "published: 1.5, corrected: {why: wrong}", "18: .*'value'.*'formula'"),
    ],
)
def test_a_mistake_names_file_line_and_the_nearest_key(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    """Nothing that nobody asked for is read over."""
    assert old in SMALL
    with pytest.raises(ConfigError, match=f"small.yaml:{words}"):
        read(tmp_path, SMALL.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("role: client", "rolle: client", "18: .*'throughput' has no parameter 'rolle'; did"),
        ("bench: throughput", "bench: troughput", "16: .*'troughput'; did you mean"),
        ("full: esp32-tcpip}", "full: esp32-tcpi}", "9: .*'esp32-tcpi'; did"),
    ],
)
def test_what_compares_must_exist(
    tmp_path: Path, benches: dict[str, Thresholds], old: str, new: str, words: str
) -> None:
    """A parameter, bench or suite that there is not would select nothing and look like a gap of the run."""
    text = SMALL.replace("small-quick", "esp32-tcpip-quick").replace("full: small}", "full: esp32-tcpip}")
    assert old in text
    with pytest.raises(ConfigError, match=f"small.yaml:{words}"):
        read(tmp_path, text.replace(old, new), benches)


@pytest.mark.parametrize(
    ("study", "old", "new", "words"),
    [
        ("mqtt-http-rtt", "samples: {profile: 0}", "samples: {profil: 0}", "'profil'; .*'profile"),
        ("rtos-mqtt", "    remark: lwIP tells neither", "    # ", "'remark'"),
        ("rtos-mqtt", "falls: 0.1\n    kind: recomm", "falls: 0.1\n    kind: recom", "'recommendation'"),
        ("rtos-mqtt", "claims: [use-nodelay]", "claims: [nodelay]", "'nodelay'; .*'use-nodelay'"),
    ],
)
def test_what_the_studys_code_needs_is_asked_for(
    tmp_path: Path, study: str, old: str, new: str, words: str
) -> None:
    """What the file lacks, or has too much, is a line to mend."""
    text = study_files()[study].read_text()
    assert text.count(old) == 1
    (tmp_path / f"{study}.yaml").write_text(text.replace(old, new))
    with pytest.raises(ConfigError, match=rf"{study}\.yaml:\d+: .*{words}"):
        load_study(study, tmp_path)


def test_samples_are_told_apart_by_columns_that_there_are() -> None:
    """What a study may name is among the columns that the requester's side leaves."""
    assert set(SAMPLE_COLUMNS["http_gateway"]) <= set(COLUMNS)


def test_an_unknown_study_or_table_is_named() -> None:
    """A study with the nearest name and what there is."""
    with pytest.raises(ConfigError, match="'mqtt-http-rtt' has no table 'phase'"):
        load_study("mqtt-http-rtt").table("phase")
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
                    wanted = {key: set(map(str, values)) for key, values in row.ours.case.items()}
                    assert any(
                        all(str(case.parameters[key]) in values for key, values in wanted.items())
                        for case in cases
                    ), (suite, table.id, row.label)


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


def test_what_is_corrected_follows_from_what_is_published() -> None:
    """5000 B in segments of 160 and 1360 B with 40 B each; the published formula gives what was published.
    Each number over the 300 s of its run, and none of them is one a second."""
    for row in load_study("rtos-mqtt").table("publishes").rows:
        assert row.published is not None
        assert row.formula == f"{row.published / 300:.2f} a second"
        assert row.published / 300 > 1.9
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
