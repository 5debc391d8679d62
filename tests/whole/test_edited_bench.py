# SPDX-License-Identifier: Apache-2.0
"""A pull request that edits a bench and slows the product down: built, measured on virtual boards, caught."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hil.boards.firmware.bundle import read_digests
from tests.boards.revision_rig import build_there, commit_all, copy_checkout
from tests.gate.gate_lab import METRIC, GateLab, open_gate_lab, suites
from tests.lab import of_type

pytestmark = [pytest.mark.slow, pytest.mark.heavy]

TARGET = "virtual-esp32"
BENCH = "firmware/components/benches/publish.c"
PRODUCT = "firmware/host/idf/mqtt/messages.c"  # of a virtual board: what its firmware publishes by
CALL = "    message_t message = as_message(topic, data, len, qos, retain);\n    mqtt_lock(client);\n"
DELAY = "    vTaskDelay(pdMS_TO_TICKS(5));\n"


@pytest.fixture(scope="module")
def gate_lab() -> Iterator[GateLab]:
    folder = Path(tempfile.mkdtemp(prefix="hil-lab-"))
    yield open_gate_lab(folder, 2, suites((128,), 60, 20_000))
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The head, whose bench is edited and whose publishing is slower; its base with the head's benches."""
    folder = tmp_path_factory.mktemp("edited")
    checkout = copy_checkout(folder / "checkout")
    commit_all(checkout)
    with (checkout / BENCH).open("a") as bench:
        bench.write("\n// Another ruler: the hash is of this text.\n")
    source = (checkout / PRODUCT).read_text()
    assert source.count(CALL) == 1
    headers = '#include "freertos/FreeRTOS.h"\n#include "freertos/task.h"\n'
    (checkout / PRODUCT).write_text(headers + source.replace(CALL, DELAY + CALL))
    commit_all(checkout)
    head, base = folder / "head", folder / "base"
    for options in (["HEAD", "--bundle", str(head)], ["HEAD~1", "--ruler-of", "HEAD", "--bundle", str(base)]):
        done = build_there(checkout, "--at", *options)
        assert done.returncode == 0, done.stdout
    return head, base


def test_an_edited_bench_hides_no_slower_product(gate_lab: GateLab, bundles: tuple[Path, Path]) -> None:
    """Head and base are measured by one ruler, so the delay is found: exit 1; run.json names the mix."""
    head, base = bundles
    ruler = read_digests(base / TARGET).ruler
    assert ruler
    assert (ruler.commit, ruler.moved) == (read_digests(head / TARGET).commit, ("benches",))
    judged = gate_lab.compare(head, base)
    assert judged.exit_code == 1, judged.said
    (one,) = judged.blocking
    assert (one["outcome"], one["metric"]) == ("regressed", METRIC)
    records = of_type(gate_lab.lab.entries(), "record")
    assert {record["role"] for record in records} == {"candidate", "base"}
    assert len({record["ruler_hash"] for record in records}) == 1
    info = json.loads((judged.path / "run.json").read_text())
    compared = info["compared"]["firmware"][TARGET]
    assert compared["ruler"] == {"commit": ruler.commit, "dirty": False, "moved": ["benches"], "reason": ""}
    assert f"with benches of {ruler.commit[:12]}" in " ".join(judged.said.split())
