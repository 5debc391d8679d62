# SPDX-License-Identifier: Apache-2.0
"""The guide on measuring a product from outside, followed word by word on the sensor node."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from hil.store import RunDirectory
from hil.thresholds import load
from tests.host_builds import quick_compiler
from tests.lab import ROOT, own_environment, run
from tests.make_records import run_info

pytestmark = pytest.mark.slow

GUIDE = (ROOT / "docs" / "start" / "measure-a-product.md").read_text(encoding="utf-8")
RECORD_SCHEMA = ROOT / "docs" / "reference" / "schema" / "record.schema.json"
HIL = Path(sys.executable).parent / "hil"
LAB_DEADLINE_S = 300.0

# more probes of the same node: what comes to the broker, and what it answers there
ARRIVALS = "arrivals: {topic: 'sensors/{mac}/reading', sequence: seq}\n"
REQUEST = """\
request:
  topic: sensors/{mac}/cmd
  payload: '{"id":{n},"op":"ping"}'
  reply_topic: sensors/{mac}/reply
  key: id
"""
UPDATE = """\
on_restart: count
download: {topic: 'sensors/{mac}/cmd', payload: '{"id":1,"op":"ota","url":"{url}"}'}
"""
COUNTED = "count: {default: 40, min: 1, max: 500}"
LASTS = "duration_s: {default: 30, min: 1, max: 60}, timeout_ms: {default: 1000, min: 1, max: 60000}"


def block(path: str) -> str:
    """Return the file that the guide prints under its name."""
    (found,) = re.findall(rf"`{re.escape(path)}`.*?\n\n```\w+\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    return str(found)


def hil(project: Path, *words: str, status: int = 0) -> str:
    """Run the command in the project; it has to end with ``status``."""
    env = {**own_environment(), "CMAKE_C_COMPILER_LAUNCHER": str(quick_compiler(project.parent))}
    done = run([HIL, *words], project, env=env, timeout_s=LAB_DEADLINE_S)
    assert done.returncode == status, done.stdout
    return done.stdout


def add_probe(
    project: Path, stem: str, probe: str, parameters: str, metrics: str, limits: str = "[]"
) -> None:
    """Write a probe with its test and its thresholds, of the suite `more`."""
    own = project / "hil"
    ready = "schema: 1\nready: {pattern: 'mqtt +up', within_s: 60}\n"
    (own / "benches" / f"{stem}.probe.yaml").write_text(ready + probe)
    test = f"def test_{stem}(measure):\n    assert all(samples.rows() for samples in measure())\n"
    (own / "benches" / f"test_{stem}.py").write_text(test)
    (own / "thresholds" / f"{stem}.yaml").write_text(
        f"schema: 1\nbench: {stem}\nparameters: {{{parameters}}}\n"
        f"outcome: {{column: outcome, ok: 0, timeout: timeout_ms}}\n"
        f"suites: {{more: [{{}}]}}\nmetrics:\n  {metrics}\n"
        f"policy: {{alpha: 0.01, min_samples: 1}}\nlimits: {limits}\n"
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The node as the guide leaves it, with the probe of the boot time that hil init wrote."""
    folder = tmp_path_factory.mktemp("products") / "node"
    shutil.copytree(ROOT / "examples" / "sensor-node", folder)
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    hil(folder, "init")
    with (folder / "hil.toml").open("a") as file:
        file.write("\n" + re.findall(r"^```toml\n(\[given\].*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)[0])
    for path in ("hil/benches/reading_ack.probe.yaml", "hil/benches/test_reading_ack.py"):
        (folder / path).write_text(block(path))
    (folder / "hil/thresholds/reading_ack.yaml").write_text(block("hil/thresholds/reading_ack.yaml"))
    return folder


def records(project: Path) -> Mapping[str, Any]:
    lines = (project / "out" / "latest" / "records.jsonl").read_text().splitlines()
    return {entry["bench"]: entry for entry in map(json.loads, lines) if entry["type"] == "record"}


def test_the_guide_measures_the_node(project: Path) -> None:
    """Not a line of the product is changed: it is built, told where the broker is, watched and judged.

    The captures of an old run expire as hil.toml says, and the run says so.
    """
    with (project / "hil.toml").open("a") as file:
        file.write("\n[keep]\ncaptures_days = 14\n")
    old = RunDirectory.create(project / "out", run_info(run_id="20200101T000000Z-quick-0000"))
    capture = old.path / "capture" / "air.pcapng"
    capture.parent.mkdir()
    capture.touch()
    said = hil(project, "run", "--suite", "product", "--board", "v1", "--no-report")
    assert "All 3 limits kept" in said
    assert re.search(r"Removed .* 14 days: 1\b", said)
    assert not capture.exists()
    record = records(project)["reading_ack"]
    assert (record["clock"], record["product"]) == ("host", "sensor-node")
    assert len(record["columns"]["done_us"]) == 105
    assert record["environment"]["peer"]["seen_at"] == "console"
    assert record["environment"]["device"]["panics_count"] == 0
    Draft202012Validator(json.loads(RECORD_SCHEMA.read_text())).validate(record)


def test_the_guides_cases_fit_a_product_that_publishes_once_a_second(project: Path) -> None:
    """A slow product is not at fault: each case lasts long enough for its rows at one a second."""
    found = load("reading_ack", project / "hil" / "thresholds")
    cases = [case.parameters for suite in found.suites.values() for case in suite]
    assert cases
    for case in cases:
        wanted = {**{name: value.default for name, value in found.parameters.items()}, **case}
        assert int(wanted["count"]) + int(wanted["warmup"]) + 30 < int(wanted["duration_s"])


@pytest.mark.heavy
def test_broker_requests_and_update(project: Path) -> None:
    """Arrivals, requests and a download are rows; after its update the node runs on, and restarts count."""
    interval = "arrived_us - previous_us, statistic: [p50], clock: host, direction: lower, blocking: true"
    add_probe(project, "arrive", ARRIVALS, f"{COUNTED}, {LASTS}", f"interval_us: {{of: {interval}}}")
    asked = (
        "interval_us: {default: 50000, min: 1, max: 1000000}, timeout_ms: {default: 2000, min: 1, max: 9000}"
    )
    answer = "done_us - sent_us, statistic: [p50], clock: host, direction: lower, blocking: true"
    add_probe(project, "ask", REQUEST, f"{COUNTED}, {asked}", f"answer_us: {{of: {answer}}}")
    waits = "timeout_ms: {default: 120000, min: 1, max: 600000}"
    fetch = "done_us - asked_us, statistic: [p50], clock: host, direction: lower, blocking: true"
    add_probe(project, "update", UPDATE, waits, f"fetch_us: {{of: {fetch}}}")
    hil(project, "run", "--suite", "more", "--board", "v1", "--no-report")
    found = records(project)
    assert found["arrive"]["columns"]["outcome"] == [0] * 40
    first = found["arrive"]["columns"]["sequence"][0]
    assert found["arrive"]["columns"]["sequence"] == list(range(first, first + 40))
    assert found["ask"]["columns"]["outcome"] == [0] * 40
    (size,) = found["update"]["columns"]["size_bytes"]
    image = project / "out" / "firmware" / "sensor_node-virtual-esp32" / "sensor_node.bin"
    assert size == image.stat().st_size


@pytest.mark.heavy
def test_planted_faults_are_found(project: Path) -> None:
    """Readings that are left out break their limit; a reading that is slow to go out is a slower figure."""
    limit = (
        "\n  - {where: {metric: missing_ratio}, abs_max_percent: 1, why: test,"
        " since: {date: 2026-11-24}, expires: 2027-11-24}"
    )
    missing = "missing_ratio: {of: outcome, statistic: ratio, scale: count, direction: lower, blocking: true}"
    add_probe(project, "missed", ARRIVALS, f"{COUNTED}, {LASTS}", missing, limit)
    defaults = project / "sdkconfig.defaults"
    before = defaults.read_text()
    try:
        defaults.write_text(before + "CONFIG_NODE_DROP_EVERY=4\n")
        said = hil(project, "run", "--suite", "missed", "--board", "v1", "--no-report", status=1)
        assert re.search(r"missing .* limit ≤ 1 %", said), said
        assert records(project)["missed"]["columns"]["outcome"].count(1) >= 9
    finally:
        defaults.write_text(before)


@pytest.mark.heavy
def test_a_wrong_password_keeps_the_product_out(project: Path) -> None:
    """The rack's access point refuses it as a real one does, and hil says which network it asked for."""
    add_probe(
        project,
        "boot",
        "boot: {to: 'mqtt +up'}\n",
        "timeout_ms: {default: 9000, min: 1, max: 60000}",
        "boot_us: {of: done_us - began_us, statistic: [p50], clock: host, direction: lower, blocking: true}",
    )
    probe = project / "hil/benches/boot.probe.yaml"
    probe.write_text(probe.read_text().replace("within_s: 60", "within_s: 5"))
    config = project / "hil.toml"
    before = config.read_text()
    try:
        config.write_text(before.replace('"{password}"', '"guessed wrong"'))
        said = " ".join(
            hil(project, "run", "--suite", "boot", "--board", "v1", "--no-report", status=1).split()
        )
    finally:
        config.write_text(before)
    assert "'hil' with another password" in said
    log = (project / "out" / "latest" / "console" / "v1.log").read_text(errors="replace")
    assert "lost reason=15" in log  # WIFI_REASON_4WAY_HANDSHAKE_TIMEOUT


@pytest.mark.heavy
def test_what_does_not_fit_is_told(project: Path) -> None:
    """On a topic to which nobody publishes nothing comes: the sentence has what the broker saw instead."""
    short = LASTS.replace("default: 30", "default: 3")
    lost = "lost_ratio: {of: outcome, statistic: ratio, scale: count, direction: lower, blocking: true}"
    add_probe(project, "nowhere", ARRIVALS.replace("reading'", "raeding'"), f"{COUNTED}, {short}", lost)
    said = " ".join(
        hil(project, "run", "--suite", "nowhere", "--board", "v1", "--no-report", status=1).split()
    )
    assert "on sensors/020000770001/raeding" in said
    assert "to 'sensors/020000770001/reading'" in said
