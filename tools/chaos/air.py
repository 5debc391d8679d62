# SPDX-License-Identifier: Apache-2.0
"""Faults of the air and of the access point, made at hil-air or in the rack's network."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from hil.base.errors import HilError
from hil.virtual.air.control import AirControl
from hil.virtual.rack_namespace import HOST_ADDRESS, board_address
from tools.chaos.board import given
from tools.chaos.fault import Act, Fault, Moment, Owner
from tools.chaos.ground import BOARDS
from tools.chaos.programs import BLAST, CAPTIVE
from tools.chaos.trial import Trial

BOARD = "b1"
PORT = "air0"  # the bridge's port towards it
HOST, ADDRESS = HOST_ADDRESS, board_address(BOARDS.index(BOARD))


def changed(change: Callable[[AirControl], object], back_after_s: float | None = None) -> Act:
    """Return what changes the link of b1: until the run is over, or for a while."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        air = trial.ground.air
        change(air)
        if back_after_s is not None:
            time.sleep(back_after_s)
            air.up(BOARD)
        yield
        with suppress(HilError):
            air.up(BOARD)

    return act


def stopped(word: str, for_s: float | None) -> Act:
    """Return what stops a process of the rack for a while, or until the run is over (None)."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        process = trial.ground.part(word)
        os.kill(process.pid, signal.SIGSTOP)
        if for_s is not None:
            time.sleep(for_s)
            with suppress(ProcessLookupError):  # the run has given it up
                os.kill(process.pid, signal.SIGCONT)
        yield
        if process.alive():
            os.kill(process.pid, signal.SIGCONT)

    return act


def signalled(word: str, number: signal.Signals) -> Act:
    """Return what sends a signal to a process of the rack."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        os.kill(trial.ground.part(word).pid, number)
        yield

    return act


def inside(trial: Trial, *argv: str) -> list[str]:
    """Return a command as it runs in the rack's network, on its host's side; "ip -n b1" is a board's."""
    return ["nsenter", "--net", "--mount", "--target", str(trial.ground.part("hil-air").pid), *argv]


def commanded(do: Sequence[str], undo: Sequence[str], for_s: float | None = None) -> Act:
    """Return what runs a command in the rack's network, and another one when the run is over, or before."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        subprocess.run(inside(trial, *do), check=True, capture_output=True)
        if for_s is not None:
            time.sleep(for_s)
            subprocess.run(inside(trial, *undo), check=True, capture_output=True)
        yield
        if for_s is None:
            subprocess.run(inside(trial, *undo), check=False, capture_output=True)

    return act


def beside(program: str, *arguments: str) -> Act:
    """Return what runs a Python program in the rack's network until the run is over."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        argv = inside(trial, sys.executable, "-c", program, *arguments)
        process = subprocess.Popen(argv, stdout=subprocess.PIPE)
        try:
            assert process.stdout is not None
            process.stdout.readline()  # it says when it has begun
            yield
        finally:
            process.kill()
            process.wait()

    return act


def answered(ports: str, program: str, hooks: Sequence[str] = ("prerouting",)) -> Act:
    """Return what lets another program, on port 8099, answer boards that connect to the host's ``ports``, and
    where ``hooks`` says so the host itself."""
    rule = f"priority -100; tcp dport {ports} dnat to {HOST}:8099;"
    chains = [f"chain {hook} {{ type nat hook {hook} {rule} }};" for hook in hooks]
    table = f"table ip chaos {{ {' '.join(chains)} }}"

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        with beside(program, HOST)(trial), commanded(("nft", table), ("nft", "delete table ip chaos"))(trial):
            yield

    return act


def _dropped(what: str, for_s: float | None) -> Act:
    table = f"table ip chaos {{ chain in {{ type filter hook input priority 0; {what} drop; }}; }}"
    return commanded(("nft", table), ("nft", "delete table ip chaos"), for_s)


def shell(command: str) -> tuple[str, str, str]:
    return ("sh", "-c", command)


def radio(name: str, usual: int, later: int, words: str) -> Act:
    """Return what changes how b1 finds its access point, from its third boot on, while it is compared with
    another image; the verdict has to have ``words`` for it. Only of a host that does nothing else: a load
    that differs between the two leaves a board out before."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        trial.more += ["--base", str(trial.ground.slower_firmware)]
        board = trial.ground.board()
        board.fault(name, usual)
        trial.once(rf"{BOARD} \[2/", lambda: board.fault(name, later))
        yield
        verdict = trial.ground.lab.out / "latest" / "verdicts.json"
        said = verdict.read_text() if verdict.exists() else ""
        trial.found += [] if words in said else [f"no comparison says {words!r}"]

    return act


@contextmanager
def _weak_and_slow(trial: Trial) -> Iterator[None]:
    """Let the boards hardly hear their access point, and be slow for it, as boards are: the virtual air
    makes none slow that is far away."""
    trial.more += ["--firmware", str(trial.ground.slower_firmware)]
    for board in BOARDS:  # the trial clears them
        trial.ground.board(board).fault("rssi", -90)
    yield


def _fault(
    name: str,
    act: Act,
    *owners: Owner,
    says: str = "",
    moment: Moment = "measuring",
    suite: str = "quick",
    own_rack: bool = False,
    alone: bool = False,
) -> Fault:
    says = says or (_NAMES_IT if owners == _SEEN else "")
    return Fault("air", name, act, moment, owners, says=says, suite=suite, own_rack=own_rack, alone=alone)


def _set(**parameters: int) -> Act:
    return changed(lambda air: air.set(BOARD, **parameters))


_NO_ADDRESS = (
    shell("ip -n b1 addr flush dev wlan0"),
    shell(f"ip -n b1 addr add {ADDRESS}/24 dev wlan0 && ip -n b1 route add default via {HOST}"),
)
_SEEN: tuple[Owner, ...] = ("undecided", "rig")  # the rack saw that its air was not as it is meant to be
_NAMES_IT = "UNDECIDED|virtual air|access point|MQTT broker"
FAULTS: Sequence[Fault] = (
    _fault("loss of 30 %", _set(loss_ppm=300_000), *_SEEN),
    _fault("loss of 3 %", _set(loss_ppm=30_000), *_SEEN),
    _fault("bursts of loss", _set(burst_start_ppm=20_000, burst_end_ppm=200_000), *_SEEN),
    _fault("blackout of 1 s", changed(lambda air: air.down(BOARD), 1.0), *_SEEN),
    _fault("blackout of 10 s", changed(lambda air: air.down(BOARD), 10.0), *_SEEN),
    _fault("blackout of 60 s", changed(lambda air: air.down(BOARD), 60.0), *_SEEN),
    _fault("blackout for good", changed(lambda air: air.down(BOARD)), *_SEEN),
    _fault("link down before", changed(lambda air: air.down(BOARD)), "nobody", moment="before"),
    _fault("link down while booting", changed(lambda air: air.down(BOARD)), "nobody", moment="booting"),
    _fault("rate falls to 64 kbit/s", _set(rate_kbit=64), *_SEEN),
    _fault("delay of 2 s", _set(delay_us=2_000_000), *_SEEN),
    _fault("jitter of 200 ms", _set(jitter_us=200_000, delay_us=200_000), *_SEEN),
    _fault("half of the frames twice", _set(duplicate_ppm=500_000), *_SEEN),
    _fault("half of the frames out of order", _set(reorder_ppm=500_000, keep_order=0), *_SEEN),
    _fault("buffer of two frames", _set(limit_bytes=3000), *_SEEN),
    _fault(
        "gaps that hold",
        changed(lambda air: air.gap(BOARD, interval_us=300_000, min_us=50_000, max_us=200_000)),
        *_SEEN,
    ),
    _fault(
        "gaps that drop",
        changed(lambda air: air.gap(BOARD, interval_us=300_000, min_us=50_000, max_us=200_000, mode="drop")),
        *_SEEN,
    ),
    _fault(
        "access point gone",
        commanded(("ip", "link", "set", PORT, "down"), ("ip", "link", "set", PORT, "up")),
        *_SEEN,
    ),
    _fault(
        "access point restarts, 2 s",
        commanded(("ip", "link", "set", PORT, "down"), ("ip", "link", "set", PORT, "up"), 2.0),
        *_SEEN,
    ),
    _fault(
        "packets of 300 bytes at most",
        _dropped("ip protocol tcp ip length > 300", None),
        "rig",
        says="host threw away",
        suite="large",
    ),
    _fault("firewall drops the broker's port", _dropped("tcp dport 1883-1884", None), *_SEEN),
    _fault("firewall drops it for 2 s", _dropped("tcp dport 1883-1884", 2.0), *_SEEN),
    _fault(
        "one packet of five is dropped on the host",
        _dropped("tcp dport 1883 numgen random mod 5 0", None),
        *_SEEN,
    ),
    _fault("portal answers for the broker", answered("1883", CAPTIVE), *_SEEN, moment="booting"),
    _fault("a neighbour sends 50 Mbit/s", beside(BLAST, ADDRESS), "rig", says="do not belong to this run"),
    _fault("RSSI of −90 dBm", given("rssi", -90), "nobody", "undecided", moment="before"),
    _fault("RSSI of −90 dBm, and slow for it", _weak_and_slow, "undecided", moment="before", suite="pr"),
    _fault(
        "RSSI falls to −90 dBm",
        radio("rssi", -50, -90, "RSSI was out of its band"),
        "nobody",
        "undecided",
        moment="before",
        alone=True,
    ),
    _fault(
        "another access point from the third boot on",
        radio("channel", 6, 11, "differ in the BSSID"),
        "nobody",
        "undecided",
        moment="before",
        alone=True,
    ),
    _fault("no address: DHCP gives none", commanded(*_NO_ADDRESS), "rig", says="address", moment="before"),
    _fault("no address: its lease ends", commanded(*_NO_ADDRESS), "rig", says="address"),
    _fault("hil-air killed", signalled("hil-air", signal.SIGKILL), "rig", says="air", own_rack=True),
    _fault("hil-air stands still, 0.3 s", stopped("hil-air", 0.3), "nobody", "undecided", "rig"),
    _fault("hil-air stands still, 3 s", stopped("hil-air", 3.0), "rig", says="stood still"),
    _fault("hil-air stands still, 10 s", stopped("hil-air", 10.0), "rig", says="air"),
)
