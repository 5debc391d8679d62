# SPDX-License-Identifier: Apache-2.0
"""How long a command takes to start, beside the interpreter alone: its help, and a run's first board."""

from __future__ import annotations

import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from hil.base.errors import ExitCode
from hil.base.paths import PROJECT_ROOT
from tools.bench.figure import Figure
from tools.bench.workbench import RACK_FILE

HIL = Path(sys.executable).with_name("hil")
NOTHING = (sys.executable, "-c", "pass")
HELP_AIM, BOARD_AIM = 10.0, 200.0  # times what the interpreter alone takes
HELP_PAIRS, RUN_PAIRS = 20, 5
SHORT_PAIRS = 2
FIRST_BOARD = re.compile(r"\S+ \[0/\d+\b[^]]*\] ")  # "v1 [0/40, 3 min left] flashing"
TIMEOUT_S = 60.0

COLUMNS = ("", "times", "s, median", "min", "max", "ratio, median", "min", "max", "aim")

Pair = tuple[float, float]  # seconds of the interpreter alone, and of the command


def start_up(*, short: bool) -> Figure:
    """Time `hil --help`, and `hil run` until a board is first named, in turns with `python -c pass`."""
    helped = _pairs(_help_s, SHORT_PAIRS if short else HELP_PAIRS)
    with tempfile.TemporaryDirectory(prefix="hil-start-") as name:
        out = Path(name)
        _first_board_s(out)  # builds what is not built
        begun = _pairs(lambda: _first_board_s(out), SHORT_PAIRS if short else RUN_PAIRS)
    commands = (("hil --help", helped, HELP_AIM), ("hil run, to its first board", begun, BOARD_AIM))
    alone = [nothing_s for nothing_s, _ in (*helped, *begun)]
    rows: list[tuple[str, ...]] = [("python -c pass", str(len(alone)), *_span(alone, 3), "", "", "", "")]
    rows += [_row(*command) for command in commands]
    missed = [
        f"{name}: {ratio:.1f} times the interpreter alone, aim {aim:g}"
        for name, pairs, aim in commands
        if (ratio := statistics.median(_ratios(pairs))) > aim
    ]
    note = (
        "In turns with the interpreter alone, to which the ratios are, pair by pair. Virtual rack of four "
        "boards, firmware and air built before; the first board is named when it is about to be flashed."
    )
    return Figure("Start-up times", COLUMNS, rows, note, missed)


def _row(name: str, pairs: Sequence[Pair], aim: float) -> tuple[str, ...]:
    seconds = [took_s for _, took_s in pairs]
    return name, str(len(pairs)), *_span(seconds, 2), *_span(_ratios(pairs), 1), f"≤ {aim:g}"


def _ratios(pairs: Sequence[Pair]) -> list[float]:
    return [took_s / nothing_s for nothing_s, took_s in pairs]


def _span(values: Sequence[float], digits: int) -> tuple[str, str, str]:
    middle, low, high = (f"{pick(values):.{digits}f}" for pick in (statistics.median, min, max))
    return middle, low, high


def _pairs(action_s: Callable[[], float], count: int) -> list[Pair]:
    return [(_ended_s(NOTHING), action_s()) for _ in range(count)]


def _help_s() -> float:
    return _ended_s((str(HIL), "--help"))


def _ended_s(argv: Sequence[str]) -> float:
    began = time.perf_counter()
    subprocess.run(argv, check=True, cwd=PROJECT_ROOT, timeout=TIMEOUT_S, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def _first_board_s(out: Path) -> float:
    """Start a run, return when it names a board, interrupt it. Raises RuntimeError where it names none."""
    options = ("--rack", str(RACK_FILE), "--suite", "quick", "--out", str(out), "--no-report")
    began = time.perf_counter()
    with subprocess.Popen(
        (str(HIL), "run", *options),
        cwd=PROJECT_ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as run:  # fmt: skip
        assert run.stdout is not None
        said = []
        for line in run.stdout:
            said.append(line)
            if FIRST_BOARD.match(line):
                took_s = time.perf_counter() - began
                run.send_signal(signal.SIGINT)
                run.communicate(timeout=TIMEOUT_S)
                break
    if run.returncode != ExitCode.INTERRUPTED:
        raise RuntimeError(f"hil run ended with {run.returncode}: {''.join(said)[-2000:]}")
    return took_s
