# SPDX-License-Identifier: Apache-2.0
"""A rack with real air, broker and captures, on which a process in the board's network plays the board."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hil.model import Case, Scalar, Series
from hil.network.certificates import Certificates, make_certificates
from hil.network.peers.companion import Companion, Observed, Place
from hil.network.peers.mqtt.delivery import DeliveryCompanion
from hil.network.peers.mqtt.echoing import EchoCompanion
from hil.network.process import Process
from hil.virtual.virtual_rack import VirtualRack
from tests.boards.rack_tools import running_rack
from tests.firmware.case_defaults import case_defaults
from tests.lab import wait_for
from tests.network.mqtt_board import Orders
from tests.network.places import place_in

DEADLINE_S = 30.0
COMPANIONS = {"delivery": DeliveryCompanion, "echo": EchoCompanion}


@dataclass
class PeersLab:
    """Makes cases on one rack, one after the other."""

    rack: VirtualRack
    folder: Path
    certificates: Certificates
    cases: int = 0

    def place(self, bench: str, **changes: Scalar) -> Place:
        self.cases += 1
        folder = self.folder / "run" / "peer" / "b1" / f"{self.cases:02}-{bench}"
        folder.mkdir(parents=True)
        case = Case(bench, case_defaults(bench, **changes))
        own = {"certificates": self.certificates, "secrets_dir": self.folder / "secrets"}
        return place_in(self.rack, case, folder, **own)

    @contextmanager
    def attended(self, place: Place) -> Iterator[tuple[Companion, Orders]]:
        """A companion at work, and what the board is told."""
        companion = COMPANIONS[place.case.bench](place)
        try:
            yield companion, self.orders(place, companion.start())
        finally:
            companion.stop()

    def orders(self, place: Place, told: Mapping[str, str | int]) -> Orders:
        parameters = place.case.parameters
        transport = str(parameters["transport"])
        return Orders(
            bench=place.case.bench,
            address=str(told["broker_host"]),
            port=int(told[f"broker_{transport}_port"]),
            out=str(place.folder / "board.json"),
            ca_file=str(self.certificates.ca_file) if transport == "tls" else "",
            count=int(parameters["count"] or 0),
            interval_us=int(parameters["interval_us"] or 0),
            qos=int(parameters["qos"] or 0),
            payload_bytes=int(parameters["payload_bytes"] or 0),
            retain=bool(parameters.get("retain")),
            clean_session=bool(parameters["clean_session"]),
        )

    def start_board(self, orders: Orders) -> Process:
        log = Path(orders.out).with_name("board.log")
        return self.rack.spawn(orders.words(), netns="b1", log_path=log)

    def measure(
        self, bench: str, *, keep_captures: bool = False, **changes: Scalar
    ) -> tuple[Observed, Place]:
        """One case from start to finish."""
        place = dataclasses.replace(self.place(bench, **changes), keep_captures=keep_captures)
        return self.measure_in(place), place

    def measure_in(self, place: Place) -> Observed:
        with self.attended(place) as (companion, orders):
            board = self.start_board(orders)
            await_end(board, companion, Path(orders.out).with_name("board.log"))
            return companion.finish(series_of(place, orders))


def await_end(board: Process, companion: Companion, log: Path) -> None:
    def ended() -> bool:
        companion.check()
        return board.returncode is not None

    wait_for(ended, lambda: "the board does not end", DEADLINE_S)
    assert board.returncode == 0, log.read_text()


def series_of(place: Place, orders: Orders) -> Series:
    columns = {name: tuple(column) for name, column in json.loads(Path(orders.out).read_text()).items()}
    Path(orders.out).unlink()
    Path(orders.out).with_name("board.log").unlink()
    return Series(place.case, columns, 0, "esp_timer", "f", "r", 1, {"message_run": orders.run})


@contextmanager
def peers_lab(folder: Path) -> Iterator[PeersLab]:
    (folder / "secrets").mkdir()
    with running_rack(folder / "rack") as rack:
        certificates = make_certificates(folder / "certificates", rack.host_address)
        yield PeersLab(rack, folder, certificates)
