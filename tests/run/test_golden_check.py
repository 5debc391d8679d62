# SPDX-License-Identifier: Apache-2.0
"""The golden check on virtual boards: all of its figures, a board that fails, and the same one mended."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hil.base.errors import ConfigError
from hil.boards.health.quarantine import folder_of, put
from hil.boards.health.types import Quarantine
from hil.boards.lease import lease_boards, lock_dir
from hil.boards.rack import load_rack
from hil.boards.rack.golden import FIGURES
from hil.cli.golden import free_boards, golden_findings
from hil.run.golden import figures_of, flash_size_mib
from hil.virtual.board.client import BoardControl
from tests.lab import ROOT, Lab, Running
from tests.make_records import publish_record


def test_medians_count_what_timed_out() -> None:
    """A message that was never acknowledged is as slow as the timeout, and counts among the failed."""
    record = publish_record(board="v1")
    rows = len(record.columns["done_us"])
    outcome = (0,) * (rows // 4) + (1,) * (rows - rows // 4)
    columns = {**record.columns, "outcome": outcome}
    found = figures_of([replace(record, columns=columns)])
    assert found["publish_p50_ms"] == record.parameters["timeout_ms"]
    kept = outcome[record.warmup_rows :]
    assert found["failed_ratio"] == sum(kept) / len(kept)
    device = {**record.environment.get("device", {}), "rssi_dbm": -61}
    heard = figures_of([replace(record, environment={"device": device})])
    assert (heard["rssi_dbm"], heard["failed_ratio"]) == (-61.0, 0.0)


@pytest.mark.parametrize(
    ("flash", "mib"),
    [
        ("ef 4016", 4.0),
        ("20 4018", 16.0),
        ("c8 6017", 8.0),
        ("c2 2039", 32.0),
        ("ef 4020", 64.0),
        ("", None),
        ("ff ffff", None),
    ],
)
def test_a_flash_chip_tells_its_size(flash: str, mib: float | None) -> None:
    """By the last byte of its id, as esptool's table has it; no chip, and no id that is known, tells none."""
    assert flash_size_mib(flash) == mib


def test_a_lab_without_golden_firmware_is_told_how_to_name_some(tmp_path: Path) -> None:
    """The configuration is at fault, before a board is touched."""
    rack = load_rack(ROOT / "hil" / "racks" / "lab-example.yaml")
    with pytest.raises(ConfigError, match=r"lab-example.yaml names no golden firmware.*golden: DIR"):
        golden_findings(rack, (), ROOT / "thresholds", tmp_path, captures=True, pushgateway="")


def test_boards_in_use_and_those_that_others_keep_out_are_left_alone(tmp_path: Path) -> None:
    """A person's board is not flashed, nor is one that a run holds; where none is left nothing is started."""
    rack = load_rack(ROOT / "hil" / "racks" / "virtual.yaml")
    put(
        folder_of(rack, tmp_path), Quarantine("v1", "2026-11-01T05:00:00Z", "anna", "its cable is being made")
    )
    with lease_boards(lock_dir(rack, tmp_path), ["v2"], run_id="r1"):
        said = golden_findings(
            rack, ("v1", "v2"), ROOT / "thresholds", tmp_path, captures=True, pushgateway=""
        )
    assert [finding.ok for finding in said] == [True, True]
    assert re.fullmatch(r"left alone, for it is quarantined since .* by anna: .*", said[0].sentence)
    assert re.fullmatch(r"left alone, for it is in use by .*, run r1, since .*", said[1].sentence)
    assert not (tmp_path / "golden").exists()


@pytest.mark.parametrize("who", ["check", "hil"])
def test_boards_that_nobody_but_hil_keeps_out_are_checked(tmp_path: Path, who: str) -> None:
    """By the check, for it may release them; by the rack's rule, for its keeper may want to."""
    rack = load_rack(ROOT / "hil" / "racks" / "virtual.yaml")
    put(tmp_path, Quarantine("v1", "2026-11-01T05:00:00Z", who, "its port vanishes"))
    assert free_boards(rack, ("v1",), tmp_path, tmp_path) == (["v1"], [])


@pytest.mark.slow
@pytest.mark.heavy
def test_a_board_that_fails_is_kept_out_and_released_when_it_is_mended(new_lab: Callable[..., Lab]) -> None:
    """On a rack that is up: the board whose loader does not answer is named, quarantined and down; the other
    one has every figure that a virtual board can have. Mended, it is released, and recovered."""
    lab = new_lab(2)
    lab.rack.write_text(f"golden: {lab.firmware}\n{lab.rack.read_text()}")
    files = ("--rack", str(lab.rack), "--out", str(lab.out))
    check = ("rack", "check", "--golden", *files)
    up = Running([*lab.command()[:3], "virtual", "up", *files], lab.folder / "up.txt", lab.env)
    try:
        up.await_line("The virtual rack is up")
        board = BoardControl(lab.out / "virtual" / "lab" / "up" / "b2.sock")
        board.fault("no_sync", True)
        failed = lab.hil(*check)
        assert failed.returncode == 3, failed.stdout
        assert "FAIL golden b2: " in failed.stdout
        assert "board b2 is in quarantine from now on, until it passes" in " ".join(failed.stdout.split())
        assert "quarantined by check, since" in lab.hil("rack", "status", *files).stdout
        assert lab.hil(*check, "--board", "b1").returncode == 0
        board.clear()
        mended = lab.hil(*check)
        assert mended.returncode == 0, mended.stdout
        assert "board b2 passes again, and is released" in mended.stdout
    finally:
        up.close()
    first, _second, last = lines_of(lab)
    assert [part["state"] for part in first["boards"]] == ["measured", "faulted"]
    figures = {*FIGURES} - {"rssi_dbm"}  # a virtual air has no radio
    for golden in (first["boards"][0]["golden"], *(part["golden"] for part in last["boards"])):
        assert set(golden["figures"]) == figures
        assert golden["power_cuts"] is True
        assert "beyond" not in golden
        drift, about = (golden[kind]["clock_drift_ppm"] for kind in ("figures", "uncertainty"))
        assert abs(drift) <= about, "a virtual board's timer is the host's"
    assert json.loads(lab.hil("rack", "health", "--json", *files).stdout)["recoveries"] == 1


def lines_of(lab: Lab) -> list[dict[str, Any]]:
    text = (lab.out / "history" / "health.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]
