"""Which share of a lease is spent measuring, here and as modelled for a physical board."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime
from pathlib import Path

from hil.build import PROJECT_ROOT
from hil.model import RunRecord
from hil.store import RunDirectory
from tests.bench.figure import Figure
from tests.bench.workbench import OUT, RACK_FILE

# The model of a physical board: what differs from a virtual one, in seconds.
PHYSICAL_IMAGE_BYTES = 1_100_000  # an ESP-IDF image with Wi-Fi, TLS and MQTT
PHYSICAL_COMPRESSION = 0.65
PHYSICAL_FLASH_BYTES_PER_S = 460_800 / 10
PHYSICAL_CONNECT_S = 4.0  # esptool: connect, stub, verify
PHYSICAL_BOOT_S = 1.5
PHYSICAL_WIFI_S = 4.0  # scan, association, DHCP


def lease_share() -> Figure:
    """Run the quick suite and divide: first planned send to last outcome of each case, over the lease."""
    options = ["--rack", str(RACK_FILE), "--suite", "quick", "--out", str(OUT)]
    subprocess.run(
        [sys.executable, "-m", "hil", "run", *options],
        check=False,
        cwd=PROJECT_ROOT,
        stdout=subprocess.DEVNULL,
    )
    run = RunDirectory.open(OUT / "latest")
    lease_s = _lease_s(run.path)
    records = [entry for entry in run.read().entries if isinstance(entry, RunRecord)]
    measuring_s = sum(map(_span_s, records))
    extra_s = physical_extra_s()
    physical_s = lease_s + extra_s
    rows = [
        ("cases measured", str(len(records))),
        ("lease, acquired to released (s)", f"{lease_s:.1f}"),
        ("measuring, first planned send to last outcome (s)", f"{measuring_s:.1f}"),
        ("share on the virtual rack", f"{measuring_s / lease_s:.0%}"),
        ("modelled: flashing, booting, Wi-Fi of a physical board add (s)", f"{extra_s:.1f}"),
        ("modelled share on physical boards", f"{measuring_s / physical_s:.0%}"),
    ]
    note = "Boards take turns on the air, so their spans add up; they flash and boot side by side."
    return Figure("Share of a lease spent measuring (quick suite, four boards)", ("", ""), rows, note)


def physical_extra_s() -> float:
    """Return what flashing, booting and joining Wi-Fi take on a physical board, in seconds (a model)."""
    flash_s = PHYSICAL_IMAGE_BYTES * PHYSICAL_COMPRESSION / PHYSICAL_FLASH_BYTES_PER_S
    return PHYSICAL_CONNECT_S + flash_s + PHYSICAL_BOOT_S + PHYSICAL_WIFI_S


def _lease_s(run: Path) -> float:
    facts = json.loads((run / "run.json").read_text())
    acquired, released = facts["lease_acquired_utc"], facts["lease_released_utc"]
    return (datetime.fromisoformat(released) - datetime.fromisoformat(acquired)).total_seconds()


def _span_s(record: RunRecord) -> float:
    done = max(record.columns["done_us"], default=0)
    return max(0, done - min(record.columns["planned_us"], default=0)) / 1e6
