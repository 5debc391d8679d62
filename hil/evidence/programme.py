# SPDX-License-Identifier: Apache-2.0
"""The programme: its steps in their order, what is expected of each, and what it closes on which rack.

The rows are those of the table in docs/explain/hardware.md, by the beginning of their first cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hil.boards.rack import Board, Rack

BOOTS = 20  # of each board, of a firmware that nobody changed
PLANTED_RATIO = 0.10
PLANTED_SUITE = "pr and publish and transport=tcp"
FAULT_SUITE = "nightly and publish and transport=tcp and qos=1"  # it measures long enough for a person's hand
NEXT_SUITE = PLANTED_SUITE


def always(_rack: Rack) -> bool:
    return True


def has_switch(rack: Rack) -> bool:
    """Whether a switch that needs nobody cuts a board's power."""
    return any(board.power.is_automatic for board in rack.boards)


def _has_native_usb(rack: Rack) -> bool:
    names = [board.serial for board in rack.boards if board.chip in ("esp32s3", "esp32c3")]
    return any("Espressif_USB_JTAG" in name or "ttyACM" in name for name in names)


def _has_radio(rack: Rack) -> bool:
    return any(board.network.is_wifi for board in rack.boards)


def _is_external(rack: Rack) -> bool:
    return rack.access_point.type == "external"


@dataclass(frozen=True)
class Row:
    """A row of the table, and whether a rack can close it at all."""

    name: str
    on: Callable[[Rack], bool] = always


@dataclass(frozen=True)
class Step:
    """One step. ``ask`` is what a person does to which boards of the rack, None where nobody is needed."""

    name: str
    title: str
    expected: str
    rows: tuple[Row, ...] = ()
    ask: Ask | None = None

    def closes(self, rack: Rack) -> tuple[str, ...]:
        """Return the rows that it closes on a rack where it comes out as expected: none of a virtual one."""
        return () if rack.is_virtual else tuple(row.name for row in self.rows if row.on(rack))


@dataclass(frozen=True)
class Ask:
    """What a person is asked: ``do`` it while the run measures, ``undo`` it afterwards.

    Where ``before`` it is done before the run begins. ``boards`` chooses those that are measured; a sentence
    says why there are none.
    """

    do: str
    undo: str
    boards: Callable[[Rack], tuple[Board, ...] | str]
    before: bool = False


def _first(rack: Rack) -> tuple[Board, ...] | str:
    return rack.boards[:1]


def _first_with_radio(rack: Rack) -> tuple[Board, ...] | str:
    return tuple(board for board in rack.boards if board.network.is_wifi)[:1] or "every board has a cable"


def _two_known(rack: Rack) -> tuple[Board, ...] | str:
    if rack.is_virtual:
        return "virtual boards have no cables that could be swapped"
    for board in rack.boards:
        same = [one for one in rack.boards if one.mac and one.chip == board.chip]
        if len(same) > 1:
            return tuple(same[:2])
    return "it takes two boards of one chip with their `mac` in the rack file"


_NOTICED = (
    "the rig's doing: exit 3, or brought back within the run; never the firmware's; the next run is untouched"
)
_STEPS = (
    Step("doctor", "this machine has what it needs", "exit 0"),
    Step(
        "check",
        "the rack is fit; its power switches really switch",
        "exit 0",
        (Row("power switching", has_switch),),
    ),
    Step("build", "the firmware, for each chip of the rack", "exit 0", (Row("chips' sources"),)),
    Step(
        "quick",
        "flashed, each case of the suite quick measured once",
        "every planned case measured, no fault, no limit broken",
        (
            Row("agent, console protocol"),
            Row("calls into FreeRTOS"),
            Row("Wi-Fi station bring-up", _has_radio),
            Row("reset lines", _has_native_usb),
            Row("`throughput`"),
            Row("`http_gateway`"),
            Row("`delivery`"),
            Row("`footprint`"),
            Row("`jitter`, `task_switch`"),
            Row("access point `external`", _is_external),
        ),
    ),
    Step(
        "unchanged",
        f"{BOOTS} boots of an unchanged firmware, judged as any pull request",
        f"at least {BOOTS} boots a board, nothing blocked, something decided",
        (
            Row("flashing, two images"),
            Row("a boot in 12 s"),
            Row("noise of boots and sessions"),
        ),
    ),
    Step(
        "planted",
        f"a planted slowdown of {PLANTED_RATIO:.0%} is found",
        "publish latency p50 regressed on each chip, exit 1",
    ),
    Step(
        "unplug",
        "the USB cable is pulled while a board measures",
        _NOTICED,
        ask=Ask("pull the USB cable of {boards}, and leave it out", "put the USB cable back", _first),
    ),
    Step(
        "reset",
        "the reset button is held while a board measures",
        _NOTICED,
        ask=Ask("hold the reset button of {boards} down until this run has ended", "let it go", _first),
    ),
    Step(
        "power",
        "the power is cut while a board measures",
        _NOTICED,
        ask=Ask("cut the power of {boards}, and leave it off", "switch it on again", _first),
    ),
    Step(
        "access-point",
        "the access point goes away while a board measures",
        "the rig's doing (exit 3), or messages that were lost or late, counted; never the firmware's; the "
        "next run is untouched",
        (Row("`startup`", _has_radio),),
        ask=Ask(
            "switch the access point off, for {boards} at least",
            "switch it on again, and wait until it is up",
            _first_with_radio,
        ),
    ),
    Step(
        "swap",
        "two boards' cables are swapped",
        "named before anything is flashed (exit 2 or 3); or, with ports named by serial number, nothing is "
        "mixed up and all is measured",
        ask=Ask("swap the USB cables of {boards}", "swap them back", _two_known, before=True),
    ),
)


def steps() -> Iterator[Step]:
    """Yield the programme."""
    yield from _STEPS
