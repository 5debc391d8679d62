# SPDX-License-Identifier: Apache-2.0
"""A board that runs a product, measured from outside: hil.run.interfaces.Device without an agent.

Which image runs is proven by the digest that esptool checked when it was flashed; and, where the product
prints ESP-IDF's line with the digest of its ELF file, by that line.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from hil.base.errors import ConfigError, HilError, RigError
from hil.base.given import SECRETS, Given, filled
from hil.boards.current_sampling import Sampling
from hil.boards.firmware.build_folder import app_image
from hil.boards.firmware.selection import description_of
from hil.boards.rack import Board
from hil.model import Case, Scalar, Series
from hil.network.peers.companion import Observed, Place
from hil.probe import measuring
from hil.probe.console import ProductConsole
from hil.probe.measuring import Columns
from hil.probe.peers import Asking, BrokerSession, Server
from hil.probe.probe_file import Arrivals, Between, BootRows, Download, Probe, ProbeRequest, Values

CLOCK = "host"
SETTLE_S = 0.3  # after a line was typed: a console that reads slowly must not lose the next one
BITS_A_CHARACTER = 10
_ELF = re.compile(r"ELF file SHA256:\s+([0-9a-f]{8,64})")

MakePlace = Callable[[Case], AbstractContextManager[Place]]


@dataclass
class ProductDevice:
    """hil.run.interfaces.Device over a product's console and the rack's broker.

    ``place`` makes where a case's programs work, ``check`` looks at the network; ``words`` are what the rack
    tells of itself. ``beside`` samples what the board draws. ``must_print``: nobody but its own command
    flashed it, so that it has to tell its image.
    """

    board: Board
    console: ProductConsole
    probes: Mapping[str, Probe]
    firmware_sha256: str
    build_dir: Path
    words: Mapping[str, str | int]
    place: MakePlace
    check: Callable[[], None]
    beside: Callable[[Case], AbstractContextManager[Sampling]]
    around: Callable[[], AbstractContextManager[None]] = nullcontext  # looks at the radio before and after
    must_print: bool = False

    def tell(self, given: Given) -> None:
        """Type what the product is given at its console. Raises as ProductConsole."""
        for secret in SECRETS:
            self.console.add_secret(str(self.words.get(secret, "")))
        for line in given.console:
            for _ in self.console.until(time.monotonic() + SETTLE_S):
                pass
            self.console.type(filled(line, self.words))

    def confirm(self) -> None:
        """Nothing can be asked; the network is looked at, and what the product printed of its image."""
        self.check()
        self._check_image()

    def _check_proven(self) -> None:
        if self._check_image() or not self.must_print:
            return
        described = description_of(self.build_dir)
        if described and not any(described.elf_sha256):
            raise ConfigError(
                f"board {self.board.id} was flashed by hil.toml's command, and its image has zeros "
                "as ELF hash, so the measured image is unproven.",
                log=self.console.log_path,
                next_step="make the image with esptool elf2image --elf-sha256-offset 0xb0, as idf.py does.",
            )
        raise ConfigError(
            f"board {self.board.id} was flashed by hil.toml's command, and its product printed no "
            "line 'ELF file SHA256', so the measured image is unproven.",
            log=self.console.log_path,
            next_step="make it print ESP-IDF's first lines (CONFIG_LOG_DEFAULT_LEVEL_INFO).",
        )

    def _check_image(self) -> bool:
        """Return whether the product told its image. Raises RigError where that is another one."""
        told = False
        described = description_of(self.build_dir)
        wanted = described.elf_sha256.hex() if described else ""
        for line in self.console.lines:
            found = _ELF.search(line.text)
            if found and wanted and not wanted.startswith(found[1]):
                raise RigError(
                    f"board {self.board.id} on {self.board.serial} reports the program {found[1]}, "
                    f"but the flashed image is {wanted[: len(found[1])]}.",
                    next_step="run again; if it happens again, the board's flash is defective.",
                )
            told = told or bool(found and wanted.strip("0"))
        return told

    def measure(self, case: Case, *, timeout_s: float) -> Observed:
        """Watch the product until the case has its rows. Raises HilError."""
        del timeout_s  # a probe's parameters say how long it watches
        probe = self.probes[case.bench]
        self.console.probe = probe
        try:
            with self.beside(case) as sampling:
                sampling.series = series = self._measured(probe, case)
        except HilError:
            self.check()
            raise
        self.check()
        self._check_proven()
        return Observed(series, self._facts(probe), current=sampling.facts)

    def _measured(self, probe: Probe, case: Case) -> Series:
        began = time.monotonic()
        if not self.console.is_ready:
            self.console.await_ready(probe)
        with self.around():
            if isinstance(probe.measures, Between):
                wanted = measuring.MeasuredCase.of(case.parameters)
                columns, counts = measuring.measure_between(self.console, probe.measures, wanted)
            else:
                columns, counts = self._columns(probe.measures, case), {}
        return self._series(probe, case, columns, counts, (began, time.monotonic()))

    def _columns(self, spec: Values | BootRows | Arrivals | ProbeRequest | Download, case: Case) -> Columns:
        wanted = measuring.MeasuredCase.of(case.parameters)
        match spec:
            case Values():
                return measuring.measure_values(self.console, spec, wanted)
            case BootRows():
                return measuring.measure_boot(self.console, spec, wanted)
            case Arrivals():
                spec = replace(spec, topic=filled(spec.topic, self.words))
                with self.place(case) as place, self._broker(place, spec.topic) as broker:
                    return measuring.measure_arrivals(self.console, broker, spec, wanted)
            case ProbeRequest():
                asking = self._asking(spec.topic, spec.payload, wanted.rows, wanted.interval_us)
                spec = replace(spec, reply_topic=filled(spec.reply_topic, self.words))
                with self.place(case) as place, self._broker(place, spec.reply_topic, asking) as broker:
                    return measuring.measure_requests(self.console, broker, spec, wanted)
            case Download():
                with self.place(case) as place:
                    return self._downloaded(place, spec, wanted)

    def _downloaded(self, place: Place, spec: Download, wanted: measuring.MeasuredCase) -> Columns:
        spec = replace(spec, topic=filled(spec.topic, self.words))
        file = app_image(self.build_dir) if spec.file == "firmware" else Path(spec.file)
        server = Server(place.spawner, place.host_address, file, place.folder)
        try:
            payload = spec.payload.replace("{url}", server.url)
            asking = self._asking(spec.topic, payload, 1, 0)
            with self._broker(place, spec.topic, asking) as broker:
                return measuring.measure_download(self.console, broker, server, spec, wanted)
        finally:
            server.stop()

    def _asking(self, topic: str, payload: str, count: int, interval_us: int) -> Asking:
        return Asking(filled(topic, self.words), filled(payload, self.words), count, interval_us)

    @contextmanager
    def _broker(self, place: Place, topic: str, asking: Asking | None = None) -> Iterator[BrokerSession]:
        broker = BrokerSession(place.spawner, place.broker, topic, place.folder, self.board.id, asking)
        try:
            yield broker
        finally:
            broker.stop()

    def _series(
        self,
        probe: Probe,
        case: Case,
        columns: Columns,
        counts: Mapping[str, int],
        stretch: tuple[float, float],
    ) -> Series:
        described = description_of(self.build_dir)
        return Series(
            case=case,
            columns=columns,
            warmup_rows=measuring.MeasuredCase.of(case.parameters).warmup,
            clock=CLOCK,
            firmware_sha256=self.firmware_sha256,
            ruler_hash=probe.digest,
            protocol_version=0,
            device={
                **self.console.counts.facts(),
                **counts,
                "lines_count": len(self.console.lines),
                **({"product_version": described.version} if described else {}),
            },
            measured_s=stretch[1] - stretch[0],
            stretches=(stretch,),
        )

    def _facts(self, probe: Probe) -> Mapping[str, Scalar]:
        """Return what the record says of the clock: a console's times are those of line ends."""
        of_console = isinstance(probe.measures, Between | Values | BootRows)
        line_us = round(80 * BITS_A_CHARACTER * 1e6 / self.board.baud) if of_console else 0
        return {
            "probe": probe.path.name,
            "seen_at": "console" if of_console else "broker",
            "clock": "host CLOCK_MONOTONIC",
            **({"line_of_80_takes_us": line_us} if of_console else {}),
        }
