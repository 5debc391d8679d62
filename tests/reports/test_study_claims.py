# SPDX-License-Identifier: Apache-2.0
"""Every claim of the five studies: its verdict on a small run, with the figures that decide it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.reports.studies.build import documents_of
from hil.reports.studies.loader import load_study, study_files
from tests.reports.study_delivery import delivery_record
from tests.reports.study_runs import STUDIES

FIGURE = re.compile(r"-?\d[\d,]*\.?\d*")
BY_FACT = "known without measuring"
# study → a line a claim: its id, the verdict, the figures of its reason in their order
TABLE = {
    "esp32-tcpip": """
tx-exceeds-rx: undecided; 0 5 0
receive-large-segments: undecided; 20.28 160 20.28 1360
send-small-segments: undecided; 20.28 160 20.28 1360
receive-large-windows: undecided
send-small-windows: undecided; 20.28 2920 20.28 5760
wireless-g: known without measuring
""",
    "freertos-multicore": """
switch-190-ms: contradicted; 50 12.00 12.00 12.00
cross-core-costs-more: undecided; 50 12.30 12.20 12.40 12.30 12.20 12.40
period-seconds: contradicted; 50 9.00 6.00 12.00
load-explains: contradicted; 100 97.9 100 140
minimum-variance: undecided; 0.5 50 100 97.9 100 140
variance: known without measuring
granularity: known without measuring
""",
    "mqtt-http-rtt": """
first-request-slowest: supported; 4 4 7 100 47.3 100 14.3
pause-adds-nothing: supported; 1 1.00 10.75 1 1.00 10.75
cold-path: undecided; 1 2 1 2
profiles-differ: undecided
""",
    "mqtt-qos": """
rises-with-qos: undecided; 50 10 4.30 4.20 4.40 0 4.30 4.20 4.40 1 4.30 4.20 4.40 2 1 4.30 4.20 4.40 0 \
4.30 4.20 4.40 1 4.30 4.20 4.40 2 10 4.30 4.20 4.40 0 4.30 4.20 4.40 1 4.30 4.20 4.40 2
faster-from-1-kb: undecided; 50 1 4.30 4.20 4.40 100 4.30 4.20 4.40 1 2 4.30 4.20 4.40 100 4.30 4.20 4.40 1
qos-0-constant: undecided
equal-from-1-mb: undecided
limit-raises: undecided
milliseconds-from-1-mb: undecided
shark-fin: contradicted; 1 0 222
qos-2-fastest: undecided; 50 10 1025 800.0 1250 0 1025 800.0 1250 2
loss-raises: undecided; 50 0 4.30 4.20 4.40 1 4.30 4.20 4.40 30 1 4.30 4.20 4.40 1 4.30 4.20 4.40 30 2 \
4.30 4.20 4.40 1 4.30 4.20 4.40 30
breaks-off: contradicted; 0 100 97.1 100 138 1 100 97.1 100 138 2 100 97.1 100 138
overhead: supported; 0
qos-0-bundles: supported; 2
qos-2-no-bundling: contradicted; 2
first-segments: supported; 70.1
broker-dies: undecided
connect-freezes: contradicted; 0 2
order: contradicted; 0 0 0 1318 1 0 0 1318 2 0 0 1318
anonymous: known without measuring
""",
    "rtos-mqtt": """
pinning-hurts: contradicted; 0 1 50 0.00 0.00 0.00 50 0.00 0.00 0.00 32
core-0-helps: contradicted; 0 1 1 0 50 0.00 0.00 0.00 50 0.00 0.00 0.00 32
mutex: contradicted; 19.4 19.4 19.4 560 32
cache: undecided; 32
interrupts: undecided
socket-buffers: undecided
tls-1-ms: contradicted; 50 1 0 0.00 0.00 0.00 50 0 1 0.00 0.00 0.00 50 0.00 0.00 0.00 32
tls-steadier: undecided; 50 0.00 0.00 0.00
network-loses: undecided; 2 100 22.4 100 0 0 77.6
local-timing: supported; 10 100 99.8 100 1820 32
use-core-0: contradicted; 1 0 50 0.00 0.00 0.00 50 0.00 0.00 0.00 32
use-access-point: undecided; 1 0.00 0.00 3.25 0 0.00 0.00 16.04 0
use-esp-timer: supported; 50 0.053 0.053 0.053 32
use-nodelay: contradicted; 0.00 0.00 0.00
log-results: undecided; 0 0 52.7 4
""",
}


def shown(study_id: str) -> list[str]:
    """Return the lines of a study, as the table has them."""
    study, entries = load_study(study_id), STUDIES[study_id]()
    (document,) = documents_of(study, entries, entries[0].run_id)
    tables = [table for section in document.sections for table in section.tables]
    rows = [row for table in tables if table.id in ("claims", "recommendations") for row in table.data]
    assert [row["claim"] for row in rows] == [claim.id for claim in study.claims]
    lines = []
    for row in rows:
        figures = FIGURE.findall(str(row["reason"])) if row["verdict"] != BY_FACT else []
        lines.append(f"{row['claim']}: {row['verdict']}; {' '.join(figures)}".replace(",", "").rstrip("; "))
    return lines


@pytest.mark.parametrize("study_id", sorted(STUDIES))
def test_each_claim_has_its_verdict_and_figures(study_id: str) -> None:
    """Whatever words say them: a claim's verdict, and each figure of its reason, of every study."""
    assert shown(study_id) == TABLE[study_id].split("\n")[1:-1]


NEW = """
  - id: mutual-tls
    says: Mutual TLS makes a publish call slower than TLS does.
    test: {of: publish, statistic: call, over: [transport], at: {TLS: tls, mutual TLS: mtls}, rises: 0}
"""


@pytest.mark.parametrize(
    ("mutual_us", "verdict"), [(900, "supported"), (50, "contradicted"), (100, "undecided")]
)
def test_a_new_claim_is_one_entry_of_the_file(tmp_path: Path, mutual_us: int, verdict: str) -> None:
    """No code comes with it: the entry names records, figure, what is compared and how it has to be."""
    (tmp_path / "rtos-mqtt.yaml").write_text(study_files()["rtos-mqtt"].read_text() + NEW)
    records = [
        delivery_record([us + boot] * 20, boot_index=boot, transport=how)
        for how, us in (("tls", 100), ("mtls", mutual_us))
        for boot in range(3)
    ]
    (document,) = documents_of(load_study("rtos-mqtt", tmp_path), records, records[0].run_id)
    tables = {table.id: table for section in document.sections for table in section.tables}
    new = tables["claims"].data[-1]
    assert (new["claim"], new["verdict"]) == ("mutual-tls", verdict)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("statistic: spread", "statistic: spred", "no statistic 'spred'; did you mean 'spread'"),
        ("check: losses-are-the-networks", "check: losses", "no check 'losses'"),
    ],
)
def test_what_the_study_does_not_know_is_named_with_the_line(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    """A statistic or a check that no code computes would decide nothing."""
    text = study_files()["rtos-mqtt"].read_text()
    (tmp_path / "rtos-mqtt.yaml").write_text(text.replace(old, new))
    study, records = load_study("rtos-mqtt", tmp_path), STUDIES["rtos-mqtt"]()
    with pytest.raises(ConfigError, match=rf"rtos-mqtt.yaml:\d+: .*{words}"):
        documents_of(study, records, records[0].run_id)
