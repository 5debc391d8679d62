# SPDX-License-Identifier: Apache-2.0
"""A run on a virtual board that a labgrid coordinator leases out: labgrid is real."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from hil.boards.rack import load_rack
from hil.virtual.virtual_rack import boards_up
from tests.boards.farm import LABGRID, Farm, farm_in
from tests.lab import Lab, of_type, run

pytestmark = pytest.mark.slow


MICROCOM = """\
#!{python}
import sys
import serial

address, speed = (sys.argv[sys.argv.index(option) + 1] for option in ("-t", "-s"))
port = serial.serial_for_url(f"rfc2217://{{address}}", baudrate=int(speed), timeout=20)
port.dtr = False  # the lines as esptool resets a chip
port.rts = True
port.rts = False
print(port.read_until(b"project=hil-firmware").decode(errors="replace"))
"""


def console(farm: Farm) -> str:
    """Return what a board says after a reset at labgrid's own console, whose terminal program is ours."""
    program = farm.folder / "bin" / "microcom"
    program.parent.mkdir()
    program.write_text(MICROCOM.format(python=sys.executable))
    program.chmod(0o755)
    environment = {**farm.env(), "PATH": f"{program.parent}:{farm.env()['PATH']}"}
    farm.client("-p", "b1", "acquire")
    said = run([str(LABGRID / "labgrid-client"), "-x", farm.address, "-p", "b1", "console"], env=environment)
    farm.client("-p", "b1", "release")
    return said.stdout


def test_a_run_measures_on_leased_boards(new_lab: Callable[..., Lab]) -> None:
    """`hil run` takes its boards from the coordinator, has them while it measures, and gives them back; its
    records bear the rack's name and the board's, wherever the board is. labgrid's own client has the board's
    console when the run is through."""
    lab = new_lab(1)
    with farm_in(lab.folder) as farm:
        up = lab.keep_up()
        try:
            up.await_line("The virtual rack is up")
            served = boards_up(load_rack(lab.rack), lab.out)
            farm.export(lab.rack, served)
            rack = farm.places_rack("match: {board: b1}")
            lab.rack.write_text(rack.read_text())
            lab.env["PATH"] = f"{LABGRID}:{lab.env['PATH']}"
            measuring = lab.start("--suite", "quick")
            measuring.await_line(r"Leased from .*: b1 ")
            assert ":hil." in farm.holder("b1")
            assert measuring.process.wait(timeout=400) == 0, measuring.said()
            farm.await_free("b1")
            assert "project=hil-firmware" in console(farm)
            records = of_type(lab.entries(), "record")
            assert records
            assert all("b1" in str(record) and "lab" in str(record) for record in records)
        finally:
            up.process.terminate()
            up.process.wait(timeout=60)
