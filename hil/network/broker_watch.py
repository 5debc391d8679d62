# SPDX-License-Identifier: Apache-2.0
"""Watches a run's broker from the rack's host: when did it give no answer, though nobody had taken it away?

    python -m hil.network.broker_watch ADDRESS PORT PID_FILE

Pings it and prints, in nanoseconds of the monotonic clock, "silent BEGAN - BUSY_NS LOAD_NS" where an answer
is missing for LATE_S, at each step until SILENT_S, and "silent BEGAN ENDED BUSY_NS LOAD_NS" when one comes.
BUSY_NS is the processor time that the broker used meanwhile. LOAD_NS is the time in which the broker was
ready to run, or in which this program was itself not let run. Where the broker ended the connection it prints
"lost WHEN". Where this program was not let run for PAUSED_S, the host stood still, and it prints "paused
BEGAN ENDED".

A broker that stands still makes every message late, and one that is started again throws all its clients
out, which no firmware can help. One that is busy all the time may be so by what the firmware sends: that
counts as the firmware's. One that waits for a processor for less than SILENT_S does not stand still: the
host's load keeps every program waiting for moments.
"""

from __future__ import annotations

import os
import re
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from hil.base.errors import ConfigError, FirmwareError, HilError, RigError
from hil.base.process import how_ended, innermost_pid, proc_stat
from hil.network import mqtt_packets as mqtt
from hil.network.broker_client import TAKE_OVER_KEEP_ALIVE_S
from hil.network.broker_config import BrokerPorts
from hil.network.process import Process, Spawner, end_process, watch_pauses

SILENT_S = 1.0  # spoils a case, however long that is
LATE_S = 0.1  # a broker that is let run answers within a millisecond
LATE_SHARE = 0.05  # of a case's time: so many of its messages may have been late
_INTERVAL_S = 0.1
_STEP_S = 0.02  # how often a broker that gives no answer is looked at
_STOP_S = 2.0
_NS = 1_000_000_000
_AFTER_ABSENCE_NS = _NS  # a broker that was started again is found a moment later
_MOST = 0.5  # of a silence: what explains that much of it explains it

_SAYS_NOTHING = "What was measured says nothing of the firmware."
_OPENED = re.compile(r"\d+: New connection from (\S+) on port (\d+)\.")
_CONNECTED = re.compile(r"(\d+): New client connected from (\S+) as (\S+) \((.*)\)\.")
_TAKE_OVER = f", k{TAKE_OVER_KEEP_ALIVE_S}"
BROKER_LOG = "mosquitto.log"

Absences = Sequence[tuple[int, int | None]]  # from when to when, ns of the monotonic clock; None: still


@dataclass(frozen=True)
class Silence:
    """From when to when the broker gave no answer, or the host stood still. As long as that lasts,
    ``ended_ns`` is None. ``busy_ns`` and ``load_ns`` are as the watching program told them last."""

    began_ns: int
    ended_ns: int | None
    busy_ns: int
    load_ns: int

    def lasted_ns(self, until_ns: int) -> int:
        return (self.ended_ns or until_ns) - self.began_ns

    def overlaps(self, began_ns: int, ended_ns: int) -> bool:
        return self.began_ns < ended_ns and (self.ended_ns is None or self.ended_ns > began_ns)


class Watched(NamedTuple):
    """What the watching program has said: silences of the broker, pauses of the host, and the moments (ns of
    the monotonic clock) at which the broker ended a connection."""

    silences: Sequence[Silence]
    pauses: Sequence[Silence]
    lost_ns: Sequence[int]


class BrokerWatch:
    """The watching program of a run. ``absences`` are the times in which the run took the broker away,
    ``password_port`` is the listener that wants a user name, ``boards`` are those at known addresses."""

    def __init__(
        self,
        process: Process,
        log_path: Path,
        absences: Callable[[], Absences],
        password_port: int,
        boards: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._process = process
        self._clients = _Clients(log_path.with_name(BROKER_LOG), password_port, boards)
        self._log_path = log_path
        self._absences = absences

    @classmethod
    def start(
        cls,
        spawner: Spawner,
        address: str,
        ports: BrokerPorts,
        folder: Path,
        absences: Callable[[], Absences],
        boards: Mapping[str, str] = MappingProxyType({}),
    ) -> BrokerWatch:
        """Watch the broker on ``address``, whose process id is in ``folder``. Raises RigError."""
        log_path = folder / "watch.log"
        argv = [sys.executable, "-m", "hil.network.broker_watch", address, str(ports.tcp)]
        process = spawner.spawn([*argv, str(pid_file(folder))], log_path=log_path)
        return cls(process, log_path, absences, ports.password, boards)

    @property
    def pid(self) -> int:
        """The watching program's."""
        return self._process.pid

    def check(self, began_ns: int) -> None:
        """Raise RigError if the host or the broker stood still, the broker ended its connections, or two
        hosts used one client id; ConfigError if those are boards of this rack; FirmwareError if a client gave
        the password listener no user name.

        Since ``began_ns``, of the monotonic clock. Where the watching program has ended, nobody knows.
        """
        if (code := self._process.returncode) is not None:
            raise RigError(
                f"The program that watches the MQTT broker {how_ended(code)}: a standstill of the "
                "broker would have gone unnoticed.",
                log=str(self._log_path),
                next_step="look for what ended it (the host's memory), then run again.",
            )
        now_ns = time.monotonic_ns()
        silences, pauses, lost_ns = read_watch(self._log_path)
        for pause in (one for one in pauses if one.overlaps(began_ns, now_ns)):
            raise RigError(
                f"The rack's host stood still for {pause.lasted_ns(now_ns) / _NS:.1f} s meanwhile: it let no "
                f"program run. {_SAYS_NOTHING}",
                log=str(self._log_path),
                next_step="look for what suspended it (sleep, a paused virtual machine), then run again.",
            )
        found = [one for one in silences if one.overlaps(began_ns, now_ns) and self._is_the_rigs(one, now_ns)]
        longest_s = max((one.lasted_ns(now_ns) for one in found), default=0) / _NS
        share = sum(one.lasted_ns(now_ns) for one in found) / (now_ns - began_ns)
        if longest_s >= SILENT_S or share >= LATE_SHARE:
            times = "" if len(found) == 1 else f"{len(found)} times, the longest "
            raise RigError(
                f"The MQTT broker gave no answer {times}for {longest_s:.1f} s meanwhile, and was not busy. "
                f"{_SAYS_NOTHING}",
                log=str(self._log_path),
                next_step="look for what kept it (the host's load, memory, disk; a debugger); run again.",
            )
        if any(began_ns <= one <= now_ns and not self._is_meant(one, one) for one in lost_ns):
            raise RigError(
                "The MQTT broker ended its connections meanwhile, without a request of this run. "
                f"{_SAYS_NOTHING}",
                log=str(self._log_path.with_name(BROKER_LOG)),
                next_step="look for what ended it or started it again, then run again.",
            )
        self._clients.check(time.time() - (now_ns - began_ns) / _NS)

    def _is_the_rigs(self, one: Silence, now_ns: int) -> bool:
        if self._is_meant(one.began_ns, one.ended_ns or now_ns):
            return False
        lasted_ns = one.lasted_ns(now_ns)
        explained_ns = max(one.busy_ns, one.load_ns if lasted_ns < SILENT_S * _NS else 0)
        return explained_ns < _MOST * lasted_ns

    def _is_meant(self, began_ns: int, ended_ns: int) -> bool:
        return any(
            began <= ended_ns and (over is None or over + _AFTER_ABSENCE_NS > began_ns)
            for began, over in self._absences()
        )

    def stop(self) -> None:
        end_process(self._process, _STOP_S)


class _Connected(NamedTuple):
    """A line of the broker's log: ``second`` is of the epoch, ``port`` of the listener."""

    second: int
    address: str
    client: str
    port: int
    has_name: bool


class _Clients:
    """Clients that connected, by the broker's log, without those by which the run cuts a connection."""

    def __init__(self, log_path: Path, password_port: int, boards: Mapping[str, str]) -> None:
        self._log_path, self._read_to, self._password_port = log_path, 0, password_port
        self._boards = boards
        self._ports: dict[str, int] = {}  # of connections that are not clients yet, by address:port
        self._connected: list[_Connected] = []
        self._reading = threading.Lock()

    def check(self, since_s: float) -> None:
        """Check who connected since a moment (epoch, seconds).

        Raises RigError or ConfigError: one client id came from two addresses. FirmwareError: a client gave
        the password listener no user name. mosquitto lets it in: ``allow_anonymous`` holds for all listeners,
        because with per_listener_settings mosquitto from 2.0.12 on queues nothing for a client that is away.
        """
        with self._reading:
            self._read()
            connected = [one for one in self._connected if one.second >= int(since_s)]
        addresses: dict[str, set[str]] = {}
        for one in connected:
            addresses.setdefault(one.client, set()).add(one.address)
            if one.port == self._password_port and not one.has_name:
                raise FirmwareError(
                    f"The MQTT client {one.client} ({one.address}) gave no user name to the broker's port "
                    f"{one.port}, which is for clients with user name and password.",
                    log=str(self._log_path),
                    next_step="have the firmware send mqtt_username and mqtt_password.",
                )
        for client, found in addresses.items():
            if len(found) > 1:
                raise self._shared(client, sorted(found))

    def _shared(self, client: str, addresses: Sequence[str]) -> HilError:
        """Return the error for a client id of several hosts: each throws out the other."""
        are_boards = all(address in self._boards for address in addresses)
        hosts = ", ".join(
            f"board {self._boards[address]} ({address})" if address in self._boards else address
            for address in addresses
        )
        kind, who, next_step = (
            (ConfigError, "Boards of this rack", "give each board a client id of its own, such as its MAC.")
            if are_boards
            else (RigError, "Two hosts", "end the client that is none of this rack's boards; a board needs a "
                  "client id of its own.")
        )  # fmt: skip
        return kind(
            f"{who} were the MQTT client {client} meanwhile: {hosts}. The broker throws out the one for the "
            f"other. {_SAYS_NOTHING}",
            log=str(self._log_path),
            next_step=next_step,
        )

    def _read(self) -> None:
        if not self._log_path.is_file():
            return
        with self._log_path.open("rb") as file:
            file.seek(self._read_to)
            new = file.read()
        whole = new[: new.rfind(b"\n") + 1]
        self._read_to += len(whole)
        for line in whole.decode(errors="replace").splitlines():
            if opened := _OPENED.fullmatch(line):
                self._ports[opened[1]] = int(opened[2])
            elif (connected := _CONNECTED.fullmatch(line)) and not connected[4].endswith(_TAKE_OVER):
                second, place, client, properties = connected.groups()
                address, port = place.rpartition(":")[0], self._ports.pop(place, 0)
                self._connected.append(_Connected(int(second), address, client, port, ", u'" in properties))


def pid_file(folder: Path) -> Path:
    """Return where the broker's process id is told to the watching program."""
    return folder / "broker.pid"


def tell_pid(folder: Path, pid: int) -> None:
    """Tell the watching program which process the broker is, by the id that it has beside that program.

    A virtual rack counts its processes for itself. Of a broker that has ended nothing is told. Raises OSError
    where the file cannot be written.
    """
    try:
        inside = innermost_pid(pid)
    except OSError:
        return
    pid_file(folder).write_text(f"{inside}\n", encoding="utf-8")


def read_watch(log_path: Path) -> Watched:
    """Return what the watching program has said so far. A line that is being written is left out."""
    if not log_path.is_file():
        return Watched([], [], [])
    found: dict[int, Silence] = {}
    pauses: list[Silence] = []
    lost_ns: list[int] = []
    for line in log_path.read_text(encoding="utf-8", errors="replace").splitlines():
        match line.split():
            case ["silent", began, ended, busy, load] if (began + busy + load).isdigit():
                ended_ns = int(ended) if ended.isdigit() else None
                found[int(began)] = Silence(int(began), ended_ns, int(busy), int(load))
            case ["lost", when] if when.isdigit():
                lost_ns.append(int(when))
            case ["paused", began, ended] if (began + ended).isdigit():
                pauses.append(Silence(int(began), int(ended), 0, 0))
    return Watched(list(found.values()), pauses, lost_ns)


class _Watching:
    """One connection after the other, and what is asked on it."""

    def __init__(self, address: str, port: int, pids: Path) -> None:
        self._address, self._port, self._pids = address, port, pids
        self._connection: socket.socket | None = None
        self._asked = False
        self._load_ns = 0

    def run(self) -> None:
        while True:
            began_ns, busy_ns = time.monotonic_ns(), self._busy_ns()
            self._load_ns, told_ns = 0, 0
            while not self._answers():
                lasted_ns = time.monotonic_ns() - began_ns
                if lasted_ns >= LATE_S * _NS and told_ns < SILENT_S * _NS:
                    self._tell_silence(began_ns, "-", busy_ns)
                    told_ns = lasted_ns
            if told_ns:
                self._tell_silence(began_ns, time.monotonic_ns(), busy_ns)
            time.sleep(_INTERVAL_S)

    def _tell_silence(self, began_ns: int, ended: object, busy_before_ns: int) -> None:
        busy_ns = max(self._busy_ns() - busy_before_ns, 0)
        line = f"silent {began_ns} {ended} {busy_ns} {self._load_ns}\n"
        print(line, end="", flush=True)  # one write: two threads print

    def _answers(self) -> bool:
        """Ask, or wait on for what was asked, for a step; where there is no answer, look for the load."""
        began_ns = time.monotonic_ns()
        step_s = _STEP_S if self._connection else _INTERVAL_S + _STEP_S
        try:
            if self._connection is None:
                self._connection = mqtt.connect(
                    self._address, self._port, f"hil-watch-{os.getpid()}", _INTERVAL_S
                )
                return True
            if not self._asked:  # once: what is answered late must not answer a later question
                self._connection.sendall(mqtt.PINGREQ_BYTES)
                self._asked = True
            if select.select([self._connection], [], [], _STEP_S)[0]:
                mqtt.read_packet(self._connection)
                self._asked = False
                return True
        except (OSError, EOFError):
            self._lose()
            time.sleep(_STEP_S)
        took_ns = time.monotonic_ns() - began_ns
        self._load_ns += took_ns if self._is_ready() else max(took_ns - round(2 * step_s * _NS), 0)
        return False

    def _lose(self) -> None:
        if self._connection:
            print(f"lost {time.monotonic_ns()}\n", end="", flush=True)
            self._connection.close()
        self._connection, self._asked = None, False

    def _busy_ns(self) -> int:
        """Return the processor time that the broker has used; 0 where that cannot be seen from here."""
        ticks = sum(map(int, self._broker_stat()[11:13]))
        return ticks * _NS // os.sysconf("SC_CLK_TCK")

    def _is_ready(self) -> bool:
        """Return whether the broker runs or waits for a processor now."""
        return self._broker_stat()[:1] == ["R"]

    def _broker_stat(self) -> list[str]:
        try:
            return proc_stat(int(self._pids.read_text()))
        except (OSError, ValueError):
            return []


def main(arguments: list[str]) -> int:
    address, port, pids = arguments
    watch_pauses(lambda began_ns, ended_ns: print(f"paused {began_ns} {ended_ns}\n", end="", flush=True))
    _Watching(address, int(port), Path(pids)).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
