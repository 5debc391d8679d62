# SPDX-License-Identifier: Apache-2.0
"""The agent as a component of a product: built with it, registered in it, measured beside it."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import hil
from hil.base.errors import ConfigError
from tests.firmware import kernel_rig
from tests.host_builds import build_product
from tests.lab import DEADLINE_S, ROOT, SUITES, Lab, make_lab, of_type, run
from tools import component_cost, component_names

COMPONENT = ROOT / "firmware" / "esp_hil"
PRODUCT = ROOT / "tests" / "firmware" / "products" / "pump"
BUILDS = ROOT / "out" / "firmware"
STATIC_RAM_MAX_BYTES = 16 * 1024


def copy_of_product(folder: Path) -> Path:
    """Copy the product, with the component where it is; its builds and runs stay out of the checkout."""
    copy = Path(shutil.copytree(PRODUCT, folder / "pump"))
    manifest = copy / "main" / "idf_component.yml"
    text = manifest.read_text().replace("../../../../../firmware/esp_hil", str(COMPONENT))
    assert str(COMPONENT) in text
    manifest.write_text(text)
    return copy


@contextmanager
def short_folder() -> Iterator[Path]:
    """A folder of a short name: Unix sockets allow 107 characters."""
    with tempfile.TemporaryDirectory(prefix="hil-pump-") as made:
        yield Path(made)


@pytest.fixture
def folder() -> Iterator[Path]:
    with short_folder() as made:
        yield made


@pytest.fixture(scope="module")
def built() -> Iterator[tuple[Path, Path, list[Path]]]:
    """The product, built once: its sources, the build's folder and the component's objects."""
    with short_folder() as folder:
        product = copy_of_product(folder)
        build = build_product(product, say=lambda _sentence: None, build_root=folder)
        trees = sorted(BUILDS.glob("product-*/product/esp_hil"), key=lambda path: path.stat().st_mtime)
        yield product, build, sorted(trees[-1].glob("**/*.o"))


def measure(lab: Lab, product: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Run `hil run` where a person would: in the product's folder, whose hil.toml makes it the project."""
    env = {**lab.env, "PYTHONPATH": str(ROOT)}
    return run(lab.command(*more), product, env=env, timeout_s=DEADLINE_S)


def ruler_hash(bench: Path) -> str:
    """The ruler hash of a bench in a product: of agent, load, mqtt_link and its file, by name."""
    components = ROOT / "firmware" / "components"
    files = {
        str(path.relative_to(components)): path
        for part in ("agent", "load", "mqtt_link")
        for path in (components / part).rglob("*.[ch]")
    }
    names = {**files, f"benches/{bench.name}": bench}
    digests = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in names.items()}
    lines = "".join(f"{digests[name]}  {name}\n" for name in sorted(digests))
    return hashlib.sha256(lines.encode()).hexdigest()


@pytest.mark.slow
def test_a_product_is_measured_with_its_own_bench_and_ours(
    folder: Path, built: tuple[Path, Path, list[Path]]
) -> None:
    """Its loop, station and log go on; both benches have records and a verdict; the ruler is of its file."""
    (folder / "lab").mkdir()
    product, build, _ = built
    lab = make_lab(folder / "lab", 1, firmware=build, suites={"publish": SUITES})
    shutil.copy(product / "hil" / "thresholds" / "pump_turn.yaml", lab.folder / "thresholds")
    done = measure(lab, product, "--suite", "quick")
    assert done.returncode == 0, done.stdout
    assert lab.good_outcome()
    records = {record["bench"]: record for record in of_type(lab.entries(), "record")}
    assert set(records) == {"publish", "pump_turn"}
    assert records["pump_turn"]["environment"]["device"]["log"] == "real"
    bench = product / "components" / "pump" / "pump_turn.c"
    assert records["pump_turn"]["ruler_hash"] == ruler_hash(bench)
    verdicts = json.loads((lab.out / "latest" / "verdicts.json").read_text())
    judged = json.dumps(verdicts)
    assert "pump_turn_p50_us" in judged
    assert "publish_latency_p95_us" in judged
    (console,) = (lab.out / "latest" / "console").glob("*.log")
    log = console.read_text()
    assert re.search(r"pump: turned \d+ times at 10\.77\.", log)  # by its own event loop and station
    assert "benches=delivery,echo,footprint,publish,reconnect,sections,startup,pump_turn" in log


@pytest.mark.slow
def test_the_component_is_small_and_takes_no_name(built: tuple[Path, Path, list[Path]]) -> None:
    """16 KiB of static RAM at most; every symbol that it defines begins with hil_ or esp_hil_."""
    _, _, objects = built
    assert 0 < component_cost.of_objects(objects).ram_bytes <= STATIC_RAM_MAX_BYTES
    said = subprocess.run(
        ["nm", "--defined-only", "--extern-only", "--format=just-symbols", *objects],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    symbols = {line for line in said.splitlines() if line and not line.endswith(":")}
    assert "hil_bench_samples_begin" in symbols
    assert {name for name in symbols if not name.startswith(("hil_", "esp_hil_"))} == set()


def test_the_names_are_those_of_the_sources() -> None:
    """names.h and trace_names.h have what the sources define, also those of chips alone."""
    for name, text in component_names.headers().items():
        assert (COMPONENT / name).read_text() == text


def test_the_component_has_the_tools_version() -> None:
    """What hello tells, what ESP-IDF's component manager reads and the tool's own are one."""
    agent = (ROOT / "firmware/components/agent/include/agent/agent.h").read_text()
    manifest = (COMPONENT / "idf_component.yml").read_text()
    assert f'#define AGENT_VERSION "{hil.__version__}"\n' in agent
    assert manifest.startswith(f'version: "{hil.__version__}"\n')


@pytest.mark.slow
@pytest.mark.heavy
def test_a_case_that_the_sample_buffer_cannot_hold_is_told(built: tuple[Path, Path, list[Path]]) -> None:
    """The product's own bench asks for more rows than fit: a sentence with the option."""
    _, build_dir, _ = built
    elf = build_dir / "pump.elf"
    elf.chmod(0o755)
    with kernel_rig.board(elf) as running:
        assert running.session.hello
        assert running.session.hello.agent == hil.__version__
        with pytest.raises(ConfigError, match=r"1105 rows .* 17680 bytes, .* 16384 \(CONFIG_HIL_ARENA_"):
            running.run("pump_turn", count=1100, warmup=5)
        assert set(running.run("pump_turn", count=1000, warmup=5).columns["outcome"]) == {0}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pump_turn", r"the bench pump_turn, and so does \S+/pump/\S+\.c"),
        ("publish", r"pump/second\.c registers the bench publish, which esp_hil has"),
    ],
)
def test_two_benches_of_one_name_are_refused(folder: Path, name: str, said: str) -> None:
    """Before anything is compiled, with both files, or what leaves hil's own out."""
    product = copy_of_product(folder)
    (product / "components" / "pump" / "second.c").write_text(
        f'#include "esp_hil.h"\nHIL_BENCH({name}, .run = NULL);\n'
    )
    with pytest.raises(ConfigError) as caught:
        build_product(product, say=lambda _sentence: None, build_root=folder)
    assert re.search(said, re.sub(r"\s+", " ", caught.value.sentence))
