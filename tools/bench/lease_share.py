# SPDX-License-Identifier: Apache-2.0
"""Which share of a lease is spent measuring, here and as modelled for a physical board."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from hil.base.errors import ExitCode
from hil.base.paths import PROJECT_ROOT
from hil.model import RunRecord
from hil.store import RunDirectory
from tools.bench.figure import Figure
from tools.bench.workbench import OUT, RACK_FILE

# The model of a physical board: what differs from a virtual one, in seconds.
PHYSICAL_IMAGE_BYTES = 1_100_000  # an ESP-IDF image with Wi-Fi, TLS and MQTT
PHYSICAL_COMPRESSION = 0.65
PHYSICAL_FLASH_BYTES_PER_S = 460_800 / 10
PHYSICAL_CONNECT_S = 4.0  # esptool: connect, stub, verify
PHYSICAL_BOOT_S = 1.5
PHYSICAL_WIFI_S = 4.0  # scan, association, DHCP
WHOLE = ("quick", ("v1", "v2", "v3", "v4"))
SHORT = ("quick and startup", ("v1",))  # a bench without planned and done
JUDGED = (ExitCode.PASS, ExitCode.FIRMWARE, ExitCode.UNDECIDED)  # the cases were measured


def lease_share(*, short: bool) -> Figure:
    """Run the quick suite and divide what its cases measured by the lease."""
    suite, boards = SHORT if short else WHOLE
    run = _run("--suite", suite, *(f"--board={board}" for board in boards))
    lease_s = _lease_s(run.path)
    records = [entry for entry in run.read().entries if isinstance(entry, RunRecord)]
    measured_s = measuring_s(records)
    extra_s = physical_extra_s()
    rows = [
        ("cases measured", str(len(records))),
        ("lease, acquired to released (s)", f"{lease_s:.1f}"),
        ("measuring, asked until the first sample is sent (s)", f"{measured_s:.1f}"),
        ("share on the virtual rack", f"{measured_s / lease_s:.0%}"),
        ("modelled: flashing, booting, Wi-Fi of a physical board add (s)", f"{extra_s:.1f}"),
        ("modelled share on physical boards", f"{measured_s / (lease_s + extra_s):.0%}"),
    ]
    note = "Boards take turns on the air, so what they measure adds up; they flash and boot side by side."
    return Figure(f"Share of a lease spent measuring ({suite}, {len(boards)} boards)", ("", ""), rows, note)


def measuring_s(records: Iterable[RunRecord]) -> float:
    """Return how long the cases measured, whatever their benches' columns are.

    Raises ValueError where a record does not say it, and where there is none.
    """
    spans = [(record.case_id, record.measured_s) for record in records]
    unknown = [case_id for case_id, span_s in spans if span_s is None]
    if unknown or not spans:
        raise ValueError(f"nobody kept how long these were measured: {', '.join(unknown) or 'no record'}")
    return sum(span_s for _, span_s in spans if span_s is not None)


def _run(*options: str) -> RunDirectory:
    """Measure on the virtual rack and return the run, whatever its verdict. Raises RuntimeError."""
    before = (OUT / "latest").resolve()
    argv = [sys.executable, "-m", "hil", "run", "--rack", str(RACK_FILE), "--out", str(OUT), "--no-report"]
    done = subprocess.run(
        [*argv, *options],
        check=False, cwd=PROJECT_ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    path = (OUT / "latest").resolve()
    if done.returncode not in JUDGED or path == before:
        raise RuntimeError(f"hil run ended with {done.returncode}: {done.stdout[-2000:]}")
    return RunDirectory.open(path)


def physical_extra_s() -> float:
    """Return what flashing, booting and joining Wi-Fi take on a physical board, in seconds (a model)."""
    flash_s = PHYSICAL_IMAGE_BYTES * PHYSICAL_COMPRESSION / PHYSICAL_FLASH_BYTES_PER_S
    return PHYSICAL_CONNECT_S + flash_s + PHYSICAL_BOOT_S + PHYSICAL_WIFI_S


def _lease_s(run: Path) -> float:
    facts = json.loads((run / "run.json").read_text())
    acquired, released = facts["lease_acquired_utc"], facts["lease_released_utc"]
    return (datetime.fromisoformat(released) - datetime.fromisoformat(acquired)).total_seconds()
