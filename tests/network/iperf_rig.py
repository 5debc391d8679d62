# SPDX-License-Identifier: Apache-2.0
"""The host's side of `throughput` against a real iperf that plays the board, in a virtual rack."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hil.model import Case, Series
from hil.network.peers.companion import Observed, Place
from hil.network.peers.iperf.companion import IperfCompanion
from hil.virtual.air.build import build_air
from hil.virtual.air.profile import load_profile
from hil.virtual.remote_process import RemoteProcess
from hil.virtual.virtual_rack import VirtualBoardSpec, VirtualRack
from hil.wire import Note
from tests.boards.rack_tools import AIR_DIR, wait_until
from tests.firmware.case_defaults import case_defaults
from tests.network.places import place_in

BOARD = "b1"
BOARD_PORT = 5901
DEFAULTS = case_defaults("throughput", duration_s=1, omit_s=0, timeout_ms=5000)


@dataclass
class IperfLab:
    """A rack whose board is empty: programs are started in its namespace."""

    rack: VirtualRack
    folder: Path
    cases: int = 0
    started: list[RemoteProcess] = field(default_factory=list)

    @property
    def board_address(self) -> str:
        return self.rack.board_address(BOARD)

    def place(self, *, keep_captures: bool = False, **parameters: int | str) -> Place:
        self.cases += 1
        case = Case("throughput", {**DEFAULTS, **parameters})
        folder = self.folder / "peer" / BOARD / f"{self.cases:02}-throughput"
        own = {"secrets_dir": self.folder, "keep_captures": keep_captures}
        return place_in(self.rack, case, folder, **own)

    def on_board(self, *argv: str, log: str = "board.txt") -> RemoteProcess:
        """Start a program as the board."""
        process = self.rack.spawn(argv, netns=BOARD, log_path=self.folder / f"{self.cases:02}-{log}")
        self.started.append(process)
        return process

    def board_client(self, port: int, *options: str) -> None:
        """Run iperf's client as the board, until its end."""
        argv = ["iperf", "-c", self.rack.host_address, "-p", str(port), "-e", "-f", "b", *options]
        assert self.on_board(*argv).wait(20) == 0

    def board_server(self, *options: str) -> RemoteProcess:
        """Start iperf's server as the board; it listens when this returns."""
        argv = ["iperf", "-s", "-p", str(BOARD_PORT), "-P", "1", "-e", "-f", "b", "-i", "0.1", *options]
        process = self.on_board(*argv)
        log = self.folder / f"{self.cases:02}-board.txt"
        wait_until(lambda: "Server listening" in log.read_text(), "the board's server listens")
        return process

    def board_said(self) -> str:
        return (self.folder / f"{self.cases:02}-board.txt").read_text()

    @contextlib.contextmanager
    def attended(self, place: Place) -> Iterator[tuple[IperfCompanion, Mapping[str, str | int]]]:
        """A companion at work, and what it tells the board."""
        companion = IperfCompanion(place)
        try:
            yield companion, companion.start()
        finally:
            companion.stop()

    def measure_client(self, place: Place, *options: str, device: dict[str, int] | None = None) -> Observed:
        """Measure a case with the board as the client, whose command line ends in ``options``."""
        with self.attended(place) as (companion, told):
            assert told["peer_host"] == self.rack.host_address
            self.board_client(int(told["peer_port"]), *options)
            return companion.finish(series_of(place.case, device))

    def measure_server(
        self, place: Place, *options: str, columns: dict[str, tuple[int, ...]] | None = None
    ) -> Observed:
        """Measure a case with the board as the server."""
        with self.attended(place) as (companion, told):
            assert told == {}
            server = self.board_server(*options)
            for _ in range(2):  # the board says so until somebody has come
                companion.note(ready(BOARD_PORT))
            server.wait(20)
            return companion.finish(series_of(place.case, None, columns))


def ready(port: int | str) -> Note:
    return Note(number=1, transfer=1, kind="ready", fields={"port": str(port)})


def series_of(
    case: Case, device: dict[str, int] | None = None, columns: dict[str, tuple[int, ...]] | None = None
) -> Series:
    """Return what the board's firmware would have sent."""
    return Series(
        case, columns or {"interval_us": (), "sent_bytes": ()}, 0, "esp_timer", "", "", 1, device or {}
    )


@contextlib.contextmanager
def iperf_lab(folder: Path, profile: str = "lab") -> Iterator[IperfLab]:
    """A rack with one empty board on the given air; stopped at the end."""
    rack = VirtualRack.start(
        name="iperf",
        state_dir=folder / "rack",
        boards=[VirtualBoardSpec(id=BOARD, mac="02:00:00:77:09:01", port=0)],
        profile=load_profile(profile),
        air_seed=1,
        board_command=None,
        air_binary=build_air(AIR_DIR),
    )
    try:
        yield IperfLab(rack, folder)
    finally:
        rack.stop()
