# SPDX-License-Identifier: Apache-2.0
"""The guide on writing a benchmark: its three files, as it prints them, build, plan and measure."""

from __future__ import annotations

import datetime
import importlib.util
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hil import thresholds
from hil.base.errors import ConfigError
from hil.boards.firmware.build import HostTree
from hil.boards.rack import load_rack
from hil.metrics.boot_value import boot_value
from hil.model import Case, RunRecord, Series
from hil.run.plan import make_plan
from hil.samples import Measure, Samples
from tests.firmware.kernel_rig import board
from tests.host_builds import quick_compiler
from tests.lab import ROOT
from tests.make_records import publish_record

GUIDE = ROOT / "docs" / "start" / "write-a-benchmark.md"
STEM = "adc_jitter"
PATHS = (f"firmware/components/benches/{STEM}.c", f"hil/benches/test_{STEM}.py", f"thresholds/{STEM}.yaml")
PROGRAM = "hil-firmware.elf"
TODAY = datetime.date(2026, 11, 23)

# A driver that answers at once, for a host that has one.
ADC_DRIVER = """\
#pragma once
#include "esp_err.h"
typedef int *adc_oneshot_unit_handle_t;
typedef enum { ADC_UNIT_1 } adc_unit_t;
typedef enum { ADC_CHANNEL_0 } adc_channel_t;
typedef enum { ADC_ATTEN_DB_12 = 3 } adc_atten_t;
typedef enum { ADC_BITWIDTH_DEFAULT } adc_bitwidth_t;
typedef struct { adc_unit_t unit_id; } adc_oneshot_unit_init_cfg_t;
typedef struct { adc_atten_t atten; adc_bitwidth_t bitwidth; } adc_oneshot_chan_cfg_t;
static inline esp_err_t adc_oneshot_new_unit(const adc_oneshot_unit_init_cfg_t *config,
                                             adc_oneshot_unit_handle_t *unit) {
    static int level = 7;
    (void)config;
    *unit = &level;
    return ESP_OK;
}
static inline esp_err_t adc_oneshot_config_channel(adc_oneshot_unit_handle_t unit, adc_channel_t channel,
                                                   const adc_oneshot_chan_cfg_t *config) {
    (void)unit, (void)channel, (void)config;
    return ESP_OK;
}
static inline esp_err_t adc_oneshot_read(adc_oneshot_unit_handle_t unit, adc_channel_t channel, int *level) {
    (void)channel;
    *level = *unit;
    return ESP_OK;
}
static inline esp_err_t adc_oneshot_del_unit(adc_oneshot_unit_handle_t unit) {
    (void)unit;
    return ESP_OK;
}
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a benchmark is added to, with the guide's three files and nothing else changed."""
    folder = tmp_path_factory.mktemp("checkout")
    for part in ("firmware", "hil/benches", "thresholds"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    text = GUIDE.read_text(encoding="utf-8")
    for path in PATHS:
        (block,) = re.findall(rf"^`{re.escape(path)}`\n\n```\w+\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        assert not (folder / path).exists()
        (folder / path).write_text(block, encoding="utf-8")
    return folder


def build(checkout: Path) -> HostTree:
    quick = quick_compiler(checkout, unless=f"/{STEM}.c")  # the guide's own file is as others build it
    options = ("-DIDF_TARGET=esp32", f"-DCMAKE_C_COMPILER_LAUNCHER={quick}")
    tree = HostTree(checkout / "firmware", checkout / "build", options)
    tree.build(PROGRAM)
    return tree


def run_assertions(checkout: Path, record: RunRecord) -> None:
    spec = importlib.util.spec_from_file_location(f"test_{STEM}", checkout / PATHS[1])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    measure: Measure = lambda: [Samples(record)]  # noqa: E731
    getattr(module, f"test_{STEM}")(measure)


def record_of(series: Series) -> RunRecord:
    numbers = {key: int(str(value)) for key, value in series.case.parameters.items()}
    record = replace(publish_record(), bench=STEM, parameters=numbers, warmup_rows=series.warmup_rows)
    return replace(record, columns=series.columns, environment={"device": series.device})


def test_the_guides_thresholds_are_correct(checkout: Path) -> None:
    """They read, have the suites that each bench has, and limit what blocks."""
    read = thresholds.load(STEM, checkout / "thresholds", today=TODAY)
    assert {"quick", "nightly"} <= set(read.suites)
    assert [metric.name for metric in read.metrics_of({}) if metric.blocking] == ["adc_failed_ratio"]
    assert {limit.where.conditions["metric"] for limit in read.limits} == {"adc_failed_ratio"}
    assert "adc_lateness_p99_us" in read.metrics


def test_the_guides_bench_is_left_out_by_name_on_virtual_boards(checkout: Path) -> None:
    """The sentence is the one that the guide quotes; a chip measures all of its cases."""
    benches = {STEM: thresholds.load(STEM, checkout / "thresholds", today=TODAY)}
    racks = ROOT / "hil" / "racks"
    virtual = make_plan(load_rack(racks / "virtual.yaml"), benches, selection="nightly").boards[0]
    reasons = {omitted.reason for omitted in virtual.omitted}
    assert not virtual.cases
    assert len(reasons) == 1
    assert f"\n{reasons.pop()}\n" in GUIDE.read_text(encoding="utf-8")
    lab = load_rack(racks / "lab-example.yaml")
    (chip,) = make_plan(lab, benches, selection="nightly", board_ids=[lab.boards[0].id]).boards
    assert len(chip.cases) == 2


def test_the_guides_files_pass_the_projects_linters(checkout: Path) -> None:
    """Who takes them over has nothing to put right first."""
    tools = Path(sys.executable).parent
    style = f"--style=file:{ROOT / 'firmware' / '.clang-format'}"
    config = ROOT / "pyproject.toml"
    for command in (
        [tools / "clang-format", style, "--dry-run", "--Werror", PATHS[0]],
        [tools / "ruff", "check", "--quiet", "--no-cache", "--config", config, PATHS[1]],
        [tools / "ruff", "format", "--check", "--quiet", "--no-cache", "--config", config, PATHS[1]],
    ):
        done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_guides_bench_builds_and_measures(checkout: Path) -> None:
    """The host's program is built without it, by name; with a driver it measures, and every part fits."""
    tree = build(checkout)
    said = "adc_jitter is left out: this target has no driver esp_adc/adc_oneshot.h, so it is for chips alone"
    assert said in tree.log.read_text()
    with board(tree.folder / PROGRAM) as host:
        assert host.session.hello is not None
        assert STEM not in host.session.hello.benches
        with pytest.raises(ConfigError, match=r"unknown-bench.*kinds: \[physical\]"):
            host.session.run_case(Case(STEM, {}), timeout_s=1)
    header = checkout / "firmware" / "host" / "idf" / "include" / "esp_adc" / "adc_oneshot.h"
    header.parent.mkdir()
    header.write_text(ADC_DRIVER)
    build(checkout)
    read = thresholds.load(STEM, checkout / "thresholds", today=TODAY)
    with board(tree.folder / PROGRAM) as chip:
        listed = chip.parameters(STEM)
        assert listed == {name: str(parameter.default) for name, parameter in read.parameters.items()}
        record = record_of(chip.run(STEM, count=30))
    run_assertions(checkout, record)
    assert set(record.columns["level"]) == {7}
    values = {metric.name: boot_value(metric, record) for metric in read.metrics_of({})}
    assert all(value is not None and value.samples == 30 for value in values.values())
    backwards = tuple(began - 1 for began in record.columns["began_us"])
    with pytest.raises(AssertionError):
        run_assertions(checkout, replace(record, columns={**record.columns, "done_us": backwards}))
