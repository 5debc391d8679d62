# SPDX-License-Identifier: Apache-2.0
"""Run a rack for hours, and see whether anything grows: `make soak`, or `make soak-rack RACK=FILE` on boards.

    python -m tools.soak [--minutes N] [--rack FILE] [--suite EXPR]

Without ``--rack`` four virtual boards are kept up, and run after run is made on them. After each run what the
rack holds is read: memory, descriptors, threads, and what lies outside of the folders of runs.
Of EVERY runs one is killed while it writes an image, one measures both slots of each board in turn, and two
find boards as an update over the air leaves them that was broken off, or rolled back. A
quantity grows where its median of the last quarter is beyond that of the second one by more than GROWTH; the
first quarter is for warming up. Exit 1 where one does, or where a run or an update failed: what such a run
said is kept in out/soak. Every ten minutes a line says how far it is. The boards of a rack file may be
others' too: runs and updates wait for them.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import HilError, code_of_interruption, terminate
from hil.base.paths import PROJECT_ROOT
from hil.boards.firmware import otadata
from hil.boards.firmware.build import build
from hil.boards.firmware.build_folder import app_image
from hil.boards.firmware.partition_table import DATA_OTA, find_data
from hil.boards.flash.tool import table_of, write
from hil.boards.flash.words import Write
from hil.boards.lease import lease_boards, lock_dir
from hil.boards.rack import Board, Rack, load_rack
from tests.lab import Running, descendants, free_ports, make_lab
from tools.bench.figure import Figure, show, wide_console

BOARDS = 4
MINUTES = 120.0
SUITES = {"publish": "suites:\n  quick:\n    - {count: 60, warmup: 5, interval_us: 5000}\n\n"}
GROWTH = 0.05  # of a median; and at least one descriptor or thread, a page's worth of kB
LEAST = 64
QUARTER = 4
EVERY = 10
BROKEN_OFF, ROLLED_BACK = 2, 7  # of EVERY, and what is before the run
TOLD_EVERY_S = 600.0
WAIT_S = 4 * 3600.0  # for a board that somebody else's run holds, whatever suite it measures
KEPT = PROJECT_ROOT / "out" / "soak"
FLASHING = re.compile(r"\] flashing|^Flashing", re.MULTILINE)


@dataclass(frozen=True)
class Held:
    """What is held at one moment. Memory is each part's own (PSS, where shared pages count once)."""

    memory_kb: Mapping[str, int]
    descriptors: int
    threads: int
    processes: int
    files: int
    disk_kb: int

    @property
    def quantities(self) -> dict[str, int]:
        """Everything that may grow, by its name; the memory of each part, and of all."""
        counted = {name: value for name, value in vars(self).items() if name != "memory_kb"}
        own = {f"memory_kb of {part}": kb for part, kb in self.memory_kb.items()}
        return {**own, "memory_kb": sum(self.memory_kb.values()), **counted}


def held(parts: Mapping[str, int], folder: Path) -> Held:
    """Read what processes hold, and what lies in ``folder`` besides runs and history, which are to grow.

    ``parts`` are process ids by name.
    """
    kept = [path for path in folder.rglob("*") if path.is_file() and not _is_of_a_run(path, folder)]
    return Held(
        {name: _memory_kb(pid) for name, pid in parts.items()},
        sum(_entries(pid, "fd") for pid in parts.values()),
        sum(_entries(pid, "task") for pid in parts.values()),
        len(parts),
        len(kept),
        sum(path.stat().st_blocks for path in kept if path.exists()) // 2,
    )


def _is_of_a_run(path: Path, folder: Path) -> bool:
    first = path.relative_to(folder).parts[0]
    return first[0].isdigit() or first in ("latest", "history")


def _memory_kb(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def _entries(pid: int, name: str) -> int:
    try:
        return sum(1 for _ in Path(f"/proc/{pid}/{name}").iterdir())
    except OSError:
        return 0


def growth(samples: Sequence[Held]) -> dict[str, tuple[float, float]]:
    """Return the medians of the second and the last quarter of each quantity that grew."""
    if len(samples) < QUARTER:
        return {}
    size = len(samples) // QUARTER
    quantities = [one.quantities for one in samples]
    second, last = quantities[size : 2 * size], quantities[-size:]
    found = {}
    for name in quantities[0]:
        before, after = (statistics.median(one.get(name, 0) for one in some) for some in (second, last))
        least = LEAST if "_kb" in name else 0
        if after > before * (1 + GROWTH) and after - before > least:
            found[name] = (before, after)
    return found


def figure(samples: Sequence[Held], outcomes: Counter[str], minutes: float) -> Figure:
    """Return what was held at the begin, in the middle and at the end; what grew or failed is missed."""
    shown = [samples[at].quantities for at in (0, len(samples) // 2, -1)]
    rows = [[name, *(f"{one.get(name, 0):,}" for one in shown)] for name in shown[0]]
    grew = [f"{name} grew from {a:,.0f} to {b:,.0f}" for name, (a, b) in growth(samples).items()]
    failed = [f"{count} runs ended with {status}" for status, count in outcomes.items() if status != "0"]
    return Figure(
        title=f"A rack for {minutes:.0f} minutes: {sum(outcomes.values())} runs",
        columns=["held after a run", "the first", "in the middle", "the last"],
        rows=rows,
        note="Of the rack's processes; files and disk besides those of runs and of the history. Aim: nothing "
        f"grows by more than {GROWTH:.0%} from the second quarter to the last.",
        missed=[*grew, *failed],
        exact=True,
    )


def soak(
    run: Callable[[int], int], look: Callable[[], Held], minutes: float
) -> tuple[list[Held], Counter[str]]:
    """Make run after run for so long, and look after each; the last one is not broken off."""
    samples: list[Held] = []
    begun = told = time.monotonic()
    outcomes, until = Counter[str](), begun + 60 * minutes
    while time.monotonic() < until or not samples:
        outcomes[str(run(len(samples)))] += 1
        samples.append(look())
        if time.monotonic() - told > TOLD_EVERY_S:
            told = time.monotonic()
            now = {name: value for name, value in samples[-1].quantities.items() if " of " not in name}
            _tell(f"{(told - begun) / 60:.0f} minutes: runs by exit status {dict(outcomes)}, {now}")
    return samples, outcomes


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def made(
    start: Callable[..., Running], number: int, update: Callable[[bool], None], kept: Path = KEPT
) -> int:
    """Make the run of this number and return its status, 0 for one that was killed on purpose.

    ``start`` takes further options of `hil run`, ``update`` whether the image is whole; where that fails
    there is no run, and its status is the error's. What a run said that failed is in the folder ``kept``.
    """
    if number % EVERY in (BROKEN_OFF, ROLLED_BACK):
        try:
            update(number % EVERY == ROLLED_BACK)
        except HilError as error:  # a board that does not answer is no reason to end after days
            _tell(f"the update before run {number} failed: {error}")
            return int(error.exit_code)
    if number % EVERY == EVERY - 1:
        return _broken_off(start())
    running = start(*["--unchanged"] if number % EVERY == EVERY // 2 else [])
    try:
        status = running.process.wait()
    except KeyboardInterrupt:
        running.process.terminate()
        running.process.wait()
        raise
    if status:
        kept.mkdir(parents=True, exist_ok=True)
        said = shutil.copy(running.output, kept / f"run-{number}-exit-{status}.txt")
        _tell(f"run {number} ended with {status}: {said}")
    return status


def _broken_off(running: Running) -> int:
    """Kill a run as it writes an image, which leaves half of one; its status where it ended before."""
    while not FLASHING.search(running.said()):
        if running.process.poll() is not None:
            return running.process.returncode
        time.sleep(0.05)
    time.sleep(1.0)  # esptool has connected by then, and writes
    running.send(signal.SIGKILL)
    running.process.wait()
    return 0


def leave_update(board: Board, build_dir: Path, folder: Path, *, whole: bool) -> None:
    """Leave a board as an update of its own into slot 1 does: broken off within the image, or, where it is
    ``whole``, tried by the boot loader and confirmed by nobody, so that this gives it up and boots slot 0.

    ``folder`` takes what is written, and esptool's log. Raises HilError as write() does.
    """
    table = table_of(build_dir)
    slot = next(one for one in table if one.is_ota_slot and one.name == "ota_1")
    chooses = find_data(table, DATA_OTA)
    assert chooses
    image = app_image(build_dir).read_bytes()
    entries = [otadata.sector(1)]
    if whole:
        entries.append(otadata.pack(2, otadata.STATE_PENDING_VERIFY))
    contents = {
        slot.offset: image if whole else image[: len(image) // 2],
        chooses.offset: b"".join(entries).ljust(2 * otadata.SECTOR_BYTES, b"\xff"),
    }
    for offset, content in contents.items():
        (folder / f"{offset:#x}.bin").write_bytes(content)
    what = Write(folder, [(offset, f"{offset:#x}.bin") for offset in contents], doing="updating")
    write(board, what, log=folder / "update.log")


def on_virtual_rack(minutes: float, suite: str) -> Figure:
    """Keep a virtual rack up and soak it."""
    folder = Path(tempfile.mkdtemp(prefix="hil-soak-"))
    firmware = build("virtual-esp32", say=lambda _: None)
    lab = make_lab(folder, BOARDS, firmware=firmware, suites=SUITES, ports=free_ports(BOARDS))
    boards = load_rack(lab.rack).boards

    def update(whole: bool) -> None:
        for board in boards:
            leave_update(board, firmware, lab.temporary, whole=whole)

    up = lab.keep_up()
    try:
        up.await_line("The virtual rack is up")
        samples, outcomes = soak(
            lambda number: made(lambda *more: lab.start("--suite", suite, *more), number, update),
            lambda: held(_rack_parts(up), lab.out),
            minutes,
        )
    finally:
        up.process.terminate()
        up.process.wait(timeout=30)
        shutil.rmtree(folder)
    return figure(samples, outcomes, minutes)


_PARTS = re.compile(r"hil\.virtual\.supervisor|hil-air|unshare|hil\.virtual\.board --id (?P<board>\w+)")


def _rack_parts(up: Running) -> dict[str, int]:
    """Return the rack's own processes; those of a run have ended by now, or are ending."""
    parts = {"hil virtual up": up.process.pid}
    for process in descendants(up.process.pid):
        if match := _PARTS.search(process.name):
            parts.setdefault(match["board"] or match[0], process.pid)
    return parts


def update_leased(
    rack: Rack, out: Path, build_of: Callable[[str], Path], *, whole: bool, wait_s: float = WAIT_S
) -> None:
    """Leave an update on each board of a rack, as leave_update() does, while nobody else measures it.

    ``build_of`` returns a target's folder. Raises HilError as that does, and RigError where somebody holds a
    board for longer than ``wait_s`` seconds.
    """
    locks, run_id = lock_dir(rack, out), f"soak-{os.getpid()}"
    for board in rack.boards:
        with (
            tempfile.TemporaryDirectory() as folder,
            lease_boards(locks, [board.id], run_id=run_id, disturbs=True, wait_s=wait_s, on_wait=_tell),
        ):
            leave_update(board, build_of(board.firmware_target), Path(folder), whole=whole)


def on_boards(rack: Path, minutes: float, suite: str) -> Figure:
    """Soak the boards of a rack file: no process of ours outlives a run, so that what may grow is what runs
    leave on the disk."""
    out = KEPT / "rack"
    build_of = functools.cache(functools.partial(build, say=_tell))
    for board in load_rack(rack).boards:
        build_of(board.firmware_target)
    argv = [sys.executable, "-m", "hil", "run", "--rack", str(rack), "--suite", suite, "--out", str(out)]
    argv += ["--no-report", f"--wait={WAIT_S:.0f}"]
    out.mkdir(parents=True, exist_ok=True)
    said, env = out / ".run.txt", dict(os.environ)

    def update(whole: bool) -> None:
        update_leased(load_rack(rack), out, build_of, whole=whole)  # as its keeper has edited it meanwhile

    def run(number: int) -> int:
        return made(lambda *more: Running([*argv, *more], said, env), number, update)

    samples, outcomes = soak(run, lambda: held({}, out), minutes)
    return figure(samples, outcomes, minutes)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--rack", type=Path, help="a rack of boards; by default four virtual ones")
    parser.add_argument("--suite", default="quick")
    options = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, terminate)
    try:
        if options.rack:
            found = on_boards(options.rack, options.minutes, options.suite)
        else:
            found = on_virtual_rack(options.minutes, options.suite)
    except KeyboardInterrupt as error:  # the rack has ended by now
        return int(code_of_interruption(error))
    except HilError as error:
        print(f"soak: {error}", file=sys.stderr)
        return int(error.exit_code)
    show(wide_console(), found)
    return int(bool(found.missed))


if __name__ == "__main__":
    sys.exit(main())
