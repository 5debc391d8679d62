# SPDX-License-Identifier: Apache-2.0
"""Faults of the rack's host: disk, memory, processors, clock, signals; and the surroundings of a run."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.lab import descendants
from tools.chaos import surroundings
from tools.chaos.air import signalled, stopped
from tools.chaos.fault import MOMENTS, Act, Fault, Moment, Owner
from tools.chaos.surroundings import run_by
from tools.chaos.trial import LOOK_S, Trial


def sent(*numbers: signal.Signals, apart_s: float = 0.05) -> Act:
    """Return what sends signals to the run, one after another."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        for number in numbers:
            with suppress(ProcessLookupError):
                os.kill(trial.run_pid, number)
            time.sleep(apart_s)
        yield

    return act


def _disk(options: str, *, full: bool = False) -> Act:
    """Return what gives the run a disk of its own for its results, mounted with these options."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        place = trial.lab_folder / "disk"
        place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "chaos", place], check=True)
        try:
            if full:
                fill(place)
            trial.more += ["--out", str(place)]
            yield
        finally:
            subprocess.run(["umount", "--lazy", place], check=True)
            place.rmdir()

    return act


def fill(place: Path) -> None:
    """Write until the disk is full."""
    with suppress(OSError), (place / "ballast").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


HOUR_S, YEAR_S = 3600, 31_557_600


def clock(before_s: int, then_s: int | None = None) -> Act:
    """Return what moves the clock of the run and all that it starts by these seconds, from the start;
    ``then_s`` is what it is stepped to while board b1 is measured. A rack that is kept up keeps its."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        setting, library = trial.lab_folder / "clock", trial.lab_folder / "clock.so"
        setting.write_bytes(struct.pack("=q", before_s))
        source = Path(__file__).with_name("clock.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"], check=True)
        trial.env |= {"LD_PRELOAD": str(library), "HIL_CLOCK": str(setting)}
        if then_s is not None:
            trial.once(MOMENTS["measuring"], lambda: _step(setting, then_s))
        yield

    return act


def _step(setting: Path, to_s: int) -> None:
    with setting.open("r+b") as file:  # who has it mapped sees it
        file.write(struct.pack("=q", to_s))


def later(act: Callable[[Trial], object]) -> Act:
    """Return what is done while board b1 is measured, to what the run began with."""

    @contextmanager
    def around(trial: Trial) -> Iterator[None]:
        act(trial)
        yield

    return around


@contextmanager
def _disk_fills(trial: Trial) -> Iterator[None]:
    """Give the run a disk of its own with the virtual air built on it, and fill it while b1 is measured."""
    place = trial.lab_folder / "disk"
    with _disk("size=12m")(trial):  # of which the flash of two boards takes 8
        trial.ground.copy_air(place)
        trial.once(MOMENTS["measuring"], lambda: fill(place))
        yield


@contextmanager
def _journal_read_only_for_a_moment(trial: Trial) -> Iterator[None]:
    """Have the run's journal take nothing from when b1 is measured until the board has failed for it."""
    journal = (trial.ground.lab.out / "latest").resolve() / "records.jsonl"
    subprocess.run(["mount", "--bind", "-o", "ro", journal, journal], check=True)
    trial.once(r"b1 \[[^]]*\] failed", lambda: subprocess.run(["umount", journal], check=True))
    yield


def _limited(trial: Trial, resource: str, value: int) -> None:
    """Lower a limit of the run that is under way."""
    argv = ["prlimit", "--pid", str(trial.run_pid), f"--{resource}={value}:{value}"]
    subprocess.run(argv, check=True)


def _no_more_memory(trial: Trial) -> None:
    pages = int(Path(f"/proc/{trial.run_pid}/statm").read_text().split()[0])
    _limited(trial, "as", pages * os.sysconf("SC_PAGE_SIZE") + 65_536)


def _no_more_descriptors(trial: Trial) -> None:
    _limited(trial, "nofile", len(list(Path(f"/proc/{trial.run_pid}/fd").iterdir())))


@contextmanager
def _run_folder_deleted(trial: Trial) -> Iterator[None]:
    trial.records.delete((trial.ground.lab.out / "latest").resolve())
    yield


@contextmanager
def _hogged(trial: Trial) -> Iterator[None]:
    """Keep each processor busy four times over until the run is over."""
    hogs = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(4 * (os.cpu_count() or 1))]
    yield
    for hog in hogs:
        hog.kill()
        hog.wait()


@contextmanager
def _outranked(trial: Trial) -> Iterator[None]:
    """Keep each processor busy for two seconds at the highest real-time priority."""
    argv = ["timeout", "--signal=KILL", "2", "chrt", "--fifo", "99", "sh", "-c", "while :; do :; done"]
    hogs = [subprocess.Popen(argv) for _ in range(os.cpu_count() or 1)]
    for hog in hogs:
        hog.wait()
    yield


@contextmanager
def _suspended(trial: Trial) -> Iterator[None]:
    """Stop the whole tree for half a minute, as a host that sleeps does."""
    tree = [*descendants(trial.ground.rack_pid), *descendants(trial.run_pid)]
    pids = [trial.run_pid, trial.ground.rack_pid, *(process.pid for process in tree)]
    for number, wait_s in ((signal.SIGSTOP, 30.0), (signal.SIGCONT, 0.0)):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        time.sleep(wait_s)
    yield


@contextmanager
def _another_run(trial: Trial) -> Iterator[None]:
    """Start a second run on the same boards, which the first one needs for two boots: it is refused, and the
    first goes on."""

    def start() -> None:
        done = trial.ground.lab.run("--suite", "quick")
        if done.returncode != 3 or "is held by" not in done.stdout:
            trial.found.append(f"the second run: exit {done.returncode}")

    trial.more += ["--boots", "2"]
    trial.once(MOMENTS["flashing"], start)
    yield


@contextmanager
def _killed(trial: Trial) -> Iterator[None]:
    os.kill(trial.run_pid, signal.SIGKILL)
    yield


@contextmanager
def _firmware_deleted(trial: Trial) -> Iterator[None]:
    """Take the image away between planning and flashing."""
    image = trial.ground.copy_firmware(trial)

    def delete() -> None:
        time.sleep(1.5)
        shutil.rmtree(image)

    trial.once("", delete)  # it has begun
    yield


# what every second kill meets, one after the other: parts that the run starts, by a word of their command
VICTIMS = ("hil.virtual.supervisor", "hil-air", "hil.virtual.board", "mosquitto", "broker_watch", "esptool")
PART_S = 3.0  # within which a part is killed that has come


def killed(number: int) -> Fault:
    """Return a kill at any time, of the run or of a part of it: one of a series."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        if number % 2:  # a run may have said all that it had to say
            _kill(trial, trial.run_pid, "the run", "nobody", "interrupted")
        else:
            part = VICTIMS[number // 2 % len(VICTIMS)]
            while not (pid := _alive(trial, part)):
                trial.start()
            _kill(trial, pid, part, "nobody", "rig", "undecided")
        yield

    return Fault("kill", str(number), act, "any", ("rig", "undecided", "interrupted", "nobody"))


def _alive(trial: Trial, part: str) -> int:
    """Return the process id of a part some time after it has come; 0 where it never came, or went by then."""
    waits_s = trial.chance.uniform(0.0, PART_S)
    while trial.running_still:
        found = [process.pid for process in descendants(trial.run_pid) if part in process.name]
        if found and waits_s <= 0:
            return trial.chance.choice(sorted(found))
        waits_s -= LOOK_S if found else 0.0
        time.sleep(LOOK_S)
    return 0


def _kill(trial: Trial, pid: int, name: str, *owners: Owner) -> None:
    trial.victim, trial.owners = name, owners
    trial.injected_s = time.monotonic()
    trial.waited_s = trial.injected_s - trial.began_s
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        trial.found.append(f"{name} had ended before it could be killed")


def _fault(
    name: str,
    act: Act,
    moment: Moment,
    *owners: Owner,
    says: str = "",
    own_rack: bool = False,
    alone: bool = False,
) -> Fault:
    return Fault("host", name, act, moment, owners, says=says, own_rack=own_rack, alone=alone)


_PASSED_OR_UNDECIDED: tuple[Owner, ...] = ("nobody", "undecided", "rig")
FAULTS: Sequence[Fault] = (
    *(
        _fault(f"{number.name} while {moment}", sent(number), moment, "interrupted")
        for number, moment in (
            (signal.SIGINT, "flashing"),
            (signal.SIGINT, "booting"),
            (signal.SIGINT, "measuring"),
            (signal.SIGTERM, "measuring"),
            (signal.SIGHUP, "measuring"),
            (signal.SIGHUP, "flashing"),
        )
    ),
    _fault("SIGINT twice", sent(signal.SIGINT, signal.SIGINT), "measuring", "interrupted"),
    _fault("SIGINT ten times", sent(*[signal.SIGINT] * 10), "measuring", "interrupted"),
    _fault("SIGINT while judging", sent(signal.SIGINT), "judging", "interrupted", "nobody"),
    _fault("run killed while flashing", _killed, "flashing", "interrupted"),
    _fault("run killed while booting", _killed, "booting", "interrupted"),
    _fault("run killed while measuring", _killed, "measuring", "interrupted"),
    _fault("run killed while judging", _killed, "judging", "interrupted"),
    _fault(
        "supervisor killed",
        signalled("hil.virtual.supervisor", signal.SIGKILL),
        "measuring",
        "rig",
        own_rack=True,
    ),
    _fault(
        "board's process killed",
        signalled("--id b1", signal.SIGKILL),
        "measuring",
        "rig",
        says="b1",
        own_rack=True,
    ),
    _fault(
        "supervisor frozen for 3 s",
        stopped("hil.virtual.supervisor", 3.0),
        "measuring",
        "nobody",
        "rig",
        "undecided",
    ),
    _fault(
        "board's process frozen for 3 s", stopped("--id b1", 3.0), "measuring", "nobody", "rig", "undecided"
    ),
    _fault("disk of 400 kB", _disk("size=400k"), "before", "rig", says="[Nn]o space|full"),
    _fault(
        "disk full before",
        _disk("size=400k", full=True),
        "before",
        "rig",
        "configuration",
        says="[Nn]o space|full|space",
    ),
    _fault("disk fills while measuring", _disk_fills, "before", "rig", says="[Nn]o space|full"),
    _fault(
        "journal read-only for a moment",
        _journal_read_only_for_a_moment,
        "measuring",
        "rig",
        says="[Rr]ead-only",
    ),
    _fault("memory runs out while measuring", later(_no_more_memory), "measuring", "rig", "nobody"),
    _fault("descriptors run out while measuring", later(_no_more_descriptors), "measuring", "rig", "nobody"),
    _fault("disk read-only", _disk("size=1m,ro"), "before", "rig", "configuration", says="[Rr]ead-only"),
    _fault("run's folder deleted", _run_folder_deleted, "measuring", "rig"),
    _fault(
        "image deleted before it is flashed", _firmware_deleted, "before", "configuration", "rig", "nobody"
    ),
    _fault(
        "64 descriptors",
        run_by("prlimit", "--nofile=64:64"),
        "before",
        "rig",
        says="nofile|descriptor|ulimit|open files",
    ),
    _fault("400 MB of memory", run_by("prlimit", f"--as={400 << 20}"), "before", "nobody", "rig"),
    _fault("120 MB of memory", run_by("prlimit", f"--as={120 << 20}"), "before", "rig"),
    _fault("files of 20 kB at most", run_by("prlimit", "--fsize=20000"), "before", "rig"),
    _fault("one second of processor time", run_by("prlimit", "--cpu=1"), "before", "rig", "interrupted"),
    _fault("clock an hour ahead", clock(HOUR_S), "before", "nobody"),
    _fault("clock 20 years ahead", clock(20 * YEAR_S), "before", "nobody"),
    _fault("clock 20 years behind", clock(-20 * YEAR_S), "before", "nobody"),
    *(
        Fault("host", f"clock stepped by {words}", clock(0, step_s), "before", ("nobody",), suite="pr")
        for words, step_s in (
            ("an hour", HOUR_S),
            ("an hour, back", -HOUR_S),
            ("20 years", 20 * YEAR_S),
            ("20 years, back", -20 * YEAR_S),
        )
    ),
    _fault("processors hogged", _hogged, "measuring", *_PASSED_OR_UNDECIDED, alone=True),
    _fault(
        "processors outranked for 2 s",
        _outranked,
        "measuring",
        "rig",
        "undecided",
        "nobody",
        alone=True,
    ),
    _fault("suspended for 30 s", _suspended, "measuring", "rig", "undecided"),
    Fault("host", "a second run", _another_run, "before", ("nobody", "undecided"), suite="pr"),
    *surroundings.FAULTS,
)
