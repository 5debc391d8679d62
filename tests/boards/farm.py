# SPDX-License-Identifier: Apache-2.0
"""A farm on loopback: labgrid's own coordinator, exporters and client, and racks whose boards are there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hil.base.errors import HilError
from hil.boards.places.exporter import PORT_CLASS, exporter_config
from hil.boards.places.lease import lease_places
from hil.boards.places.settings import read_places
from hil.boards.rack import Board, load_rack
from tests.lab import ROOT, free_ports, run, wait_for

LABGRID = Path(sys.prefix) / "labgrid" / "bin"

NOTHING: Mapping[str, Board] = {}
RACK = """\
schema: 1
name: lab
host: {interface: hil0, address: 10.77.0.1}
access_point: {type: virtual, profile: lab, seed: 1}
"""


@dataclass
class Farm:
    """A coordinator and what was started at it; all of it ends with the farm."""

    folder: Path
    port: int
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)
    holders: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def start(self, name: str, *arguments: str, ready: str) -> subprocess.Popen[bytes]:
        """Start one of labgrid's programs; return when it says ``ready``."""
        said = self.folder / f"{name}-{len(self.started)}.txt"
        with said.open("wb") as output:
            process = subprocess.Popen(
                [LABGRID / name, *arguments], cwd=self.folder, stdout=output, stderr=subprocess.STDOUT
            )
        self.started.append(process)
        wait_for(
            lambda: ready in said.read_text(errors="replace"),
            lambda: f"{name} is not ready: {said.read_text()}",
        )
        return process

    def start_coordinator(self) -> subprocess.Popen[bytes]:
        return self.start("labgrid-coordinator", "-l", self.address, ready="listening on")

    def start_exporter(self, name: str, config: str) -> subprocess.Popen[bytes]:
        file = self.folder / f"{name}.yaml"
        file.write_text(config)
        options = ["-c", self.address, "-n", name, "--hostname", "127.0.0.1"]
        process = self.start("labgrid-exporter", *options, str(file), ready="Exporter ready")
        groups = re.findall(r"^(\w+):$", config, re.MULTILINE)
        wait_for(
            lambda: all(f"{name}/{group}/" in self.client("resources") for group in groups), lambda: name
        )
        return process

    def client(self, *arguments: str) -> str:
        done = run([str(LABGRID / "labgrid-client"), "-x", self.address, *arguments])
        assert done.returncode == 0, done.stdout
        return done.stdout

    def holder(self, place: str) -> str:
        """Return who has a place, as labgrid's own client says; "None" where it is free."""
        return re.search(r"acquired: (.*)", self.client("-p", place, "show")).group(1)  # type: ignore[union-attr]

    def await_free(self, *places: str) -> None:
        for place in places:
            wait_for(lambda place=place: self.holder(place) == "None", lambda place=place: self.holder(place))

    def boards_rack(self, boards: int, *, name: str = "boards", first: int = 1) -> Path:
        """Write a rack file of virtual boards that have ports; their ids count from ``first``."""
        text = f"{RACK}boards:\n"
        for number, port in enumerate(free_ports(boards), start=first):
            text += f"  - {{id: b{number}, kind: virtual, target: esp32, power: {{type: virtual}},\n"
            text += f"     serial: 'fastrfc2217://127.0.0.1:{port}', mac: '02:00:00:77:01:{number:02x}'}}\n"
        path = self.folder / f"{name}.yaml"
        path.write_text(text)
        return path

    def places_rack(self, places: str, name: str = "farm") -> Path:
        """Write a rack file whose boards are at the farm."""
        path = self.folder / f"{name}.yaml"
        path.write_text(f"{RACK}places: {{coordinator: '{self.address}', {places}}}\n")
        return path

    def export(self, rack: Path, served: Mapping[str, Board] = NOTHING) -> subprocess.Popen[bytes]:
        """Start a coordinator that has a rack's boards as places, and export them."""
        return self.export_all([rack], served)[0]

    def export_all(
        self, racks: Sequence[Path], served: Mapping[str, Board] = NOTHING
    ) -> list[subprocess.Popen[bytes]]:
        """Start a coordinator that has the boards of racks as places, and export each rack's by itself.

        A place has the tags board, target, rack and exporter.
        """
        self.place_all(racks)
        self.start_coordinator()
        return [
            self.start_exporter(f"exporter-{number}", exporter_config(load_rack(rack), served))
            for number, rack in enumerate(racks, start=1)
        ]

    def place_all(self, racks: Sequence[Path]) -> None:
        """Have the boards of racks as places of the coordinator that is started next."""
        places = {}
        for number, rack in enumerate(racks, start=1):
            for board in load_rack(rack).boards:
                port = {"exporter": "*", "group": board.id, "cls": "*", "name": None, "rename": None}
                tags = {"board": board.id, "target": board.target, "rack": "lab"}
                tags |= {"exporter": f"exporter-{number}"} if len(racks) > 1 else {}
                places[board.id] = {"matches": [{**port, "cls": PORT_CLASS}], "tags": tags}
        (self.folder / "places.yaml").write_text(json.dumps(places))  # as the coordinator would find it

    def hold(self, rack: Path, *, wait_s: float = 0.0) -> subprocess.Popen[str]:
        """Start a process that leases the rack's boards, says so or why not, and stays."""
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(rack), str(self.out), str(wait_s)],
            cwd=ROOT, env=self.env(), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.holders.append(holder)
        return holder

    def env(self) -> dict[str, str]:
        return {**os.environ, "PATH": f"{LABGRID}:{os.environ['PATH']}"}

    def refused(self, rack: Path) -> str:
        """Return why the rack's boards cannot be leased, by this process."""
        settings = read_places(rack)
        assert settings
        try:
            lease_places(rack, settings, self.out)
        except HilError as error:
            return f"refused {int(error.exit_code)} {error}"
        raise AssertionError("the boards were leased")


HOLD = """
import sys
from pathlib import Path
from hil.base.errors import HilError
from hil.boards.places.lease import lease_places
from hil.boards.places.settings import read_places
rack = Path(sys.argv[1])
try:
    path = lease_places(rack, read_places(rack), Path(sys.argv[2]), wait_s=float(sys.argv[3]))
except HilError as error:
    print("refused", int(error.exit_code), error, flush=True)
    sys.exit(0)
print("leased", path, flush=True)
sys.stdin.read()
"""


@contextmanager
def farm_in(folder: Path) -> Iterator[Farm]:
    farm = Farm(folder, free_ports(1)[0])
    try:
        yield farm
    finally:
        for process in [*farm.holders, *farm.started]:
            process.kill()
            with process:  # closes its pipes
                pass
