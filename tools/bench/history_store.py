# SPDX-License-Identifier: Apache-2.0
"""How long the history takes at a million boot values: read whole, one series of it, one run more."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from hil.base.paths import PROJECT_ROOT
from hil.history import keep, load
from hil.history.summary import Summary
from tests.history.history_files import night, values_in
from tools.bench.figure import Figure

NIGHTS, BOARDS, CASES, METRICS, BOOTS = 250, ("e1", "e2", "e3", "e4"), 10, 10, 10
READ_AIM = 7.0  # times what json.loads takes for the same files, in a process of its own
SHORT_NIGHTS = 5
_REPEATS = 3
_READ = "import pathlib, sys, hil.history; hil.history.load(pathlib.Path(sys.argv[1]))"
_PARSE = (
    "import json, pathlib, sys; [json.loads(f.read_bytes()) for f in pathlib.Path(sys.argv[1]).glob('*/*')]"
)
_NAMES = (*(f"metric{number}_p50_us" for number in range(8)), "lost_ratio", "failed_ratio")
SERIES = "bench-1/e3/publish/count=200,turn=7/metric3_p50_us"


def history_store(*, short: bool) -> Figure:
    """Write nights of four boards, ten cases, ten metrics and ten boots; read them."""
    nights = SHORT_NIGHTS if short else NIGHTS
    with tempfile.TemporaryDirectory(prefix="hil-history-") as name:
        folder = Path(name)
        write_s = _seconds(lambda: _write(folder, nights))
        size = sum(path.stat().st_size for path in folder.glob("*/*.json"))
        values = sum(map(len, load(folder).entries.values()))
        pairs = [(_cold_s(_READ, folder), _cold_s(_PARSE, folder)) for _ in range(_REPEATS)]
        warm_s = min(_seconds(lambda: load(folder)) for _ in range(_REPEATS))
        history = load(folder)
        series_s = _seconds(lambda: history.series(SERIES))
        found = history.series(SERIES)
        last = _night(nights)
        enter_s = _seconds(lambda: keep(folder, last))
    cold_s, parsed_s = (min(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(read_s / parse_s for read_s, parse_s in pairs)
    rows = [
        ("read all, a process of its own (s)", f"{cold_s:.2f}", ""),
        ("json.loads of the same files, a process of its own (s)", f"{parsed_s:.2f}", ""),
        ("ratio, pair by pair: median", f"{ratio:.2f}", f"≤ {READ_AIM:g}"),
        ("read all, in a process that runs (s)", f"{warm_s:.2f}", ""),
        (f"then one series of all, {len(found or ())} values (ms)", f"{series_s * 1e3:.3f}", ""),
        (f"enter one run, {len(values_in(last))} values (ms)", f"{enter_s * 1e3:.0f}", ""),
        (f"make and write all {nights} runs (s)", f"{write_s:.1f}", ""),
        ("on disk (MB)", f"{size / 1e6:.1f}", ""),
        ("a boot value (bytes)", f"{size / values:.1f}", ""),
    ]
    missed = [] if ratio <= READ_AIM else [f"reading takes {ratio:.2f} times json.loads, aim {READ_AIM:g}"]
    note = f"{nights} files in the page cache; the best of {_REPEATS}."
    return Figure(f"History: {values:,} boot values", ("", "measured", "aim"), rows, note, missed)


def _write(folder: Path, nights: int) -> None:
    for number in range(nights):
        keep(folder, _night(number))


def _night(number: int) -> Summary:
    return night(number, boards=BOARDS, cases=CASES, metrics=_NAMES, boots=BOOTS)


def _cold_s(program: str, folder: Path) -> float:
    argv = [sys.executable, "-c", program, str(folder)]
    return _seconds(lambda: subprocess.run(argv, check=True, cwd=PROJECT_ROOT, timeout=60))


def _seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began
