# SPDX-License-Identifier: Apache-2.0
"""``make bench``: measure the figures of rack and harness, and print each beside its aim.

All of them, or those that are named. One that breaks does not keep back the others. Exit 2 where one broke,
else 1 where an aim was missed; with ``--short`` only an exact aim counts, such as one of bytes.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from tools.bench.broker_faults import broker_faults
from tools.bench.figure import SHORT_PASS, Figure, fails, show, wide_console
from tools.bench.first_request import first_request
from tools.bench.flashing import flash_and_boot
from tools.bench.history_store import history_store
from tools.bench.latency import air_accuracy, awake_gain
from tools.bench.lease_share import lease_share
from tools.bench.periodic_jitter import periodic_jitter
from tools.bench.start_up import start_up
from tools.bench.throughput import air_rate, overhead, udp_loss
from tools.bench.window import window_accuracy
from tools.bench.workbench import Workbench, workbench

# on one board; flashing last: esptool takes the console
ON_BOARD: dict[str, Callable[..., Figure]] = {
    "air-accuracy": air_accuracy,
    "awake-gain": awake_gain,
    "window": window_accuracy,
    "rate": air_rate,
    "loss": udp_loss,
    "headers": overhead,
    "jitter": periodic_jitter,
    "first-request": first_request,
    "flashing": flash_and_boot,
}
# these start what they need
ALONE: dict[str, Callable[..., Figure]] = {
    "broker-faults": broker_faults,
    "start-up": start_up,
    "lease-share": lease_share,
    "history-store": history_store,
}
FIGURES = {**ON_BOARD, **ALONE}
EXIT_MISSED, EXIT_BROKEN = 1, 2


class SharedBench:
    """The workbench of all figures on a board: opened for the first of them, anew after one that broke."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._bench: Workbench | None = None

    def open(self) -> Workbench:
        if self._bench is None:
            self._bench = self._stack.enter_context(workbench())
        return self._bench

    def close(self) -> None:
        self._bench = None
        self._stack.close()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.figures if name not in FIGURES]:
        parser.error(f"no figure is named {', '.join(unknown)}. There are: {', '.join(FIGURES)}")
    if options.list:
        print("\n".join(f"{name:16}{_summary(measure)}" for name, measure in FIGURES.items()))
        return 0
    return run([name for name in FIGURES if name in (options.figures or FIGURES)], short=options.short)


def run(names: Sequence[str], *, short: bool) -> int:
    """Measure and print these figures; say at the end which broke, and return the exit status."""
    console = wide_console()
    if short:
        console.print(f"{SHORT_PASS}\n")
    shared = SharedBench()
    broken, missed = [], []
    try:
        for name in names:
            if name in ALONE:
                _give_back(shared)  # before the clock: the board's processor time is no later figure's
            began, used = time.monotonic(), _processor_s()
            figure = _measured(name, shared, short=short)
            if figure is None:
                broken.append(name)
            else:
                show(console, figure)
                missed += [name] if fails(figure, short=short) else []
            took, spent = time.monotonic() - began, _processor_s() - used
            console.print(f"{name}: {took:.1f} s, of the processors {spent:.1f} s\n", highlight=False)
    finally:
        _give_back(shared)
    for words, those in (("broken", broken), ("aims missed", missed)):
        if those:
            console.print(f"{words}: {', '.join(those)}", style="bold red", highlight=False)
    return EXIT_BROKEN if broken else EXIT_MISSED if missed else 0


def _measured(name: str, shared: SharedBench, *, short: bool) -> Figure | None:
    """Return a figure, None where it broke; then its traceback is printed, and the board is given up."""
    try:
        return ON_BOARD[name](shared.open(), short=short) if name in ON_BOARD else ALONE[name](short=short)
    except Exception:
        traceback.print_exc()
    _give_back(shared)
    return None


def _give_back(shared: SharedBench) -> None:
    """Close the board; where that fails it is said, and the figures go on."""
    try:
        shared.close()
    except Exception:
        traceback.print_exc()


def _processor_s() -> float:
    """Return the processor time of this process and of the programs it started that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _summary(measure: Callable[..., Figure]) -> str:
    return (measure.__doc__ or "").partition("\n")[0]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.bench", description=__doc__)
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help="only these; --list names them")
    parser.add_argument("--list", action="store_true", help="name the figures and end")
    parser.add_argument("--short", action="store_true", help="least effort: whether they work, not for docs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
