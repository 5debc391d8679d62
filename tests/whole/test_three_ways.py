# SPDX-License-Identifier: Apache-2.0
"""The three ways to be measured, each from the wheel: planted regressions are found, harmless changes pass.

The first one, from outside, is step 6 of docs/start/adopt.md, which test_adopt.py follows; its harmless
change is here.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hil.boards.rack import load_rack
from tests.lab import ROOT, run
from tests.variants import TWENTY_PER_CENT_US, late_publish
from tests.whole import installed
from tests.whole.test_measure_a_product import GUIDE, block

pytestmark = [pytest.mark.slow, pytest.mark.heavy]

EXAMPLES = ROOT / "examples"
SLOWER = "CONFIG_NODE_SLOW_PUBLISH=20000\n"  # 20 ms of work before each publish, of some 8 ms in all
DEADLINE_S = 1200.0


@dataclass(frozen=True)
class Shop:
    """A folder of a short name with a project in it, and the user whose tool is the wheel's."""

    project: Path
    env: dict[str, str]

    def hil(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        return run(["hil", *words], self.project, env=self.env, timeout_s=DEADLINE_S)

    def does(self, *words: str | Path) -> str:
        done = self.hil(*words)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def add(self, path: str, text: str) -> None:
        with (self.project / path).open("a") as file:
            file.write(text)

    def build(self, name: str) -> Path:
        """Build the product as it lies there; return a copy of the build."""
        built = self.does("build", "-C", ".").splitlines()[-1]
        return Path(shutil.copytree(built, self.project.parent / name))

    def compared(self, metric: str, said: str) -> dict[str, Any]:
        """Return the comparison of a metric in the latest run, which ``said`` what it did."""
        path = self.project / "out" / "latest" / "verdicts.json"
        assert path.is_file(), said
        verdict = json.loads(path.read_text())
        (found,) = (one for one in verdict["compared"] if one["metric"] == metric)
        return dict(found)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of a short name: Unix sockets allow 107 characters."""
    made = Path(tempfile.mkdtemp(prefix="hil-3-"))
    yield made
    shutil.rmtree(made)


@pytest.fixture
def shop(folder: Path) -> Shop:
    home = folder / "home"
    home.mkdir()
    env = installed.users_environment(home, installed.environment() / "bin")
    shop = Shop(folder / "node", env)
    shutil.copytree(EXAMPLES / "sensor-node", shop.project)
    return shop


def test_from_outside_a_harmless_change_passes(shop: Shop) -> None:
    """Another version, measured from outside beside the commit before it, is not slower."""
    shop.does("init")
    shop.add("hil.toml", '\n[given]\nnvs = {"mqtt.uri" = "mqtt://{broker_host}:{broker_port}", ')
    shop.add("hil.toml", '"wifi.ssid" = "{ssid}", "wifi.password" = "{password}"}\n')
    for path in ("hil/benches/reading_ack.probe.yaml", "hil/benches/test_reading_ack.py"):
        (shop.project / path).write_text(block(path))
    (shop.project / "hil/thresholds/reading_ack.yaml").write_text(block("hil/thresholds/reading_ack.yaml"))
    assert "compare:" in GUIDE
    commit = "git init -q && git add -A && git commit -qm node"
    assert run(["sh", "-c", commit], shop.project, env=shop.env).returncode == 0
    lists = shop.project / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace('"1.0.0"', '"1.0.1"'))
    said = shop.does("compare", "HEAD", "--board", "v1", "--no-report")
    found = shop.compared("reading_ack_p50_us", said)
    assert (found["outcome"], found["candidate_boots"] > 0) == ("pass", True), said


def test_with_the_component(shop: Shop) -> None:
    """By a bench of the product's own, on the board's clock: 20 ms before each publish are found."""
    for part in ("components", "hil"):
        shutil.copytree(EXAMPLES / "sensor-node-component" / part, shop.project / part, dirs_exist_ok=True)
    patch = ["patch", "-sp1", "-i", EXAMPLES / "sensor-node-component" / "component.patch"]
    assert run(patch, shop.project).returncode == 0
    (data,) = installed.environment().glob("lib/python3.*/site-packages/hil/data")
    (shop.project.parent / "hil").symlink_to(data)  # where the patch looks for the component
    shop.does("init")
    network = load_rack(shop.project / "hil" / "rack.yaml").access_point
    shop.add("sdkconfig.defaults", f'CONFIG_NODE_WIFI_SSID="{network.ssid}"\n')
    shop.add("sdkconfig.defaults", f'CONFIG_NODE_WIFI_PASSWORD="{network.password}"\n')
    shop.add("sdkconfig.defaults", 'CONFIG_NODE_MQTT_URI="mqtt://10.77.0.1:1883"\n')
    base = shop.build("base")
    lists = shop.project / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace('"1.0.0"', '"1.0.1"'))
    harmless = shop.build("harmless")
    shop.add("sdkconfig.defaults", SLOWER)
    slower = shop.build("slower")
    words = ["run", "--suite", "pr and reading_published", "--board", "v1", "--no-report", "--base", base]
    done = shop.hil(*words, "--firmware", slower)
    found = shop.compared("reading_published_p50_us", done.stdout)
    assert (done.returncode, found["outcome"], found["change"] > 1) == (1, "regressed", True), done.stdout
    assert "REGRESSED" in done.stdout
    assert "Reading published p50" in done.stdout
    done = shop.hil(*words, "--firmware", harmless)
    found = shop.compared("reading_published_p50_us", done.stdout)
    assert (done.returncode, found["outcome"]) == (0, "pass"), done.stdout


def test_with_our_benches(shop: Shop) -> None:
    """On the team's rack, by what the wheel holds: its firmware a fifth late with each publish is found."""
    shop.does("init")
    base = Path(shop.does("build", "--target", "virtual-esp32").splitlines()[-1])
    suite = "pr and publish and transport=tcp"
    words = ["run", "--suite", suite, "--board", "v1", "--no-report", "--base", base]
    done = shop.hil(*words, "--firmware", late_publish(TWENTY_PER_CENT_US))
    verdict = json.loads((shop.project / "out" / "latest" / "verdicts.json").read_text())
    slower = {one["metric"] for one in verdict["compared"] if one["outcome"] == "regressed"}
    assert done.returncode == 1, done.stdout
    assert any(metric.startswith("publish_latency") for metric in slower), done.stdout
    done = shop.hil(*words[:-2], "--unchanged")
    verdict = json.loads((shop.project / "out" / "latest" / "verdicts.json").read_text())
    assert not [one for one in verdict["compared"] if one["outcome"] == "regressed"], done.stdout
    assert done.returncode == 0, done.stdout
