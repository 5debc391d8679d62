# SPDX-License-Identifier: Apache-2.0
"""Makes an outage when the board asks for one: takes the access point or the broker away for a while, or ends
the board's connection and drops what a new one begins with."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial

from hil.base.errors import ConfigError, FirmwareError, HilError, RigError
from hil.model import Series
from hil.network.broker import NotConnectedError
from hil.network.packet_filter import Dropped, PacketFilter
from hil.network.peers.companion import Companion, Observed, Place
from hil.wire import Note

ACCESS_POINT, BROKER = "access_point", "broker"
PACKETS: Mapping[str, Dropped] = {"syn": "syn", "connect": "connect", "connack": "connack"}  # by cause
END_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 3.0
SEEN_BACK_US = 30_000
OK, NOT_THE_OUTAGE = 0, 2


class Interruption(Companion):
    """Companion of the bench ``reconnect``; adds how long each outage was by this host's clock.

    One thread makes the outages, one after the other. It ends with the process: what is still away then is
    given back by whoever uses the rack next.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._cause = str(place.case.parameters["cause"])
        self._outage_s = float(str(place.case.parameters["outage_ms"])) / 1e3
        self._changed = threading.Condition()
        self._asked = 0  # cycles are asked for in order, each perhaps more than once
        self._lengths_us: list[int] = []
        self._error: HilError | None = None
        self._stopping = threading.Event()
        self._worker = threading.Thread(target=self._work, name="interruption", daemon=True)

    def start(self) -> Mapping[str, str | int]:
        """Return nothing to tell the board.

        Raises ConfigError: nothing here switches the access point, or could drop the board's packets.
        """
        if self._cause == ACCESS_POINT and self._place.air is None:
            raise ConfigError(
                f"{self._place.case.case_id} on board {self._place.board.id}: the rack cannot "
                "switch its access point.",
                next_step="leave the case out: --suite 'quick and not cause=access_point'.",
            )
        if self._cause in PACKETS and not self._place.access_point_interface:
            raise ConfigError(
                f"{self._place.case.case_id} on board {self._place.board.id}: the rack has no interface "
                "between access point and broker, so no packets can be dropped.",
                next_step="name it in the rack file (capture: access_point), or leave the case out: "
                f"--suite 'quick and not cause={self._cause}'.",
            )
        self._worker.start()
        return {}

    def note(self, note: Note) -> None:
        """Begin the outage that the board asks for, once, however often it is asked for.

        Raises FirmwareError: it does not say which.
        """
        if note.kind != "outage":
            return
        cycle = note.fields.get("cycle", "")
        if not cycle.isdecimal():
            raise FirmwareError(
                f"board {self._place.board.id} asked for an outage without a number: {dict(note.fields)}.",
                next_step="correct the outage request in the bench.",
            )
        with self._changed:
            self._asked = max(self._asked, int(cycle) + 1)
            self._changed.notify_all()

    def check(self) -> None:
        """Raise what kept an outage from being made, or undone."""
        if self._error:
            raise self._error

    def finish(self, series: Series) -> Observed:
        """Add ``outage_us``. A row whose gap is shorter than the outage was another one's: outcome 2.

        Raises RigError: the host made fewer outages than the board saw.
        """
        lengths_us = self._await_lengths(series.rows)
        rows = zip(series.columns["outcome"], series.columns["gap_us"], lengths_us, strict=True)
        slack_us = 1000 * int(str(self._place.case.parameters["interval_ms"])) + SEEN_BACK_US
        outcomes = tuple(
            NOT_THE_OUTAGE if outcome == OK and gap_us + slack_us < length_us else outcome
            for outcome, gap_us, length_us in rows
        )
        columns = {**series.columns, "outage_us": tuple(lengths_us), "outcome": outcomes}
        return Observed(replace(series, columns=columns), {"outages": len(lengths_us), "cause": self._cause})

    def stop(self) -> None:
        """End an outage that is going on; those that were asked for are not made. Never raises."""
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()
        if self._worker.is_alive():
            self._worker.join(STOP_TIMEOUT_S)

    def _await_lengths(self, rows: int) -> list[int]:
        """Return the outages' lengths; a board that gave up may have asked for fewer than it has rows."""
        with self._changed:
            self._changed.wait_for(lambda: self._error or len(self._lengths_us) >= rows, END_TIMEOUT_S)
            self.check()
            if len(self._lengths_us) < rows:
                raise RigError(
                    f"board {self._place.board.id} saw {rows} outages, this host made "
                    f"{len(self._lengths_us)}.",
                    next_step="look in the board's console log for what interrupted it.",
                )
            return self._lengths_us[:rows]

    def _work(self) -> None:
        while self._await_request():
            try:
                length_us = self._interrupt()
            except HilError as error:
                self._tell(error)
                return
            except Exception as error:  # whatever it is, the case must hear of it
                self._tell(RigError(f"taking the {self._cause.replace('_', ' ')} away: {error!r}."))
                return
            with self._changed:
                self._lengths_us.append(length_us)
                self._changed.notify_all()

    def _await_request(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._stopping.is_set() or self._asked > len(self._lengths_us))
        return not self._stopping.is_set()

    def _tell(self, error: HilError) -> None:
        with self._changed:
            self._error = error
            self._changed.notify_all()

    def _interrupt(self) -> int:
        """Take it away, wait, give it back; returns for how long nothing was there, in microseconds.

        A broker is there some ms before its log says so; SEEN_BACK_US bounds it.
        """
        with self._away():
            began_ns = time.monotonic_ns()
            self._stopping.wait(self._outage_s)
        return (time.monotonic_ns() - began_ns) // 1000

    @contextmanager
    def _away(self) -> Iterator[None]:
        """Make the outage; what began it is undone however it ends.

        A board may be without a connection just then: TCP sends a CONNECT again that the client gave up in an
        earlier outage, and the broker throws the client out for it. The board then makes a new connection, as
        after a cut.
        """
        place, air = self._place, self._place.air
        if self._cause in PACKETS:
            with self._filter().drop(PACKETS[self._cause]):
                with suppress(NotConnectedError):
                    place.broker.cut(place.board_address)  # so that the board has to make a new connection
                yield
            return
        if self._cause == BROKER:
            take_away, give_back = place.broker.interrupt, place.broker.resume
        else:
            assert air is not None  # start() saw to it
            take_away, give_back = partial(air.down, place.board.id), partial(air.up, place.board.id)
        take_away()
        try:
            yield
        finally:
            give_back()

    def _filter(self) -> PacketFilter:
        place = self._place
        port = asdict(place.broker.ports)[str(place.case.parameters["transport"])]
        log_path = place.folder / "packet-filter.log"
        return PacketFilter(
            place.spawner, place.access_point_interface, place.board_address, port, log_path=log_path
        )
