# SPDX-License-Identifier: Apache-2.0
"""A board on USB is found by its place and serial number, in a tree as sysfs has it, with real terminals."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import serial
from esp_pylib import serial_ports
from esptool.targets import ESP32S3ROM
from ruamel.yaml import YAML
from serial.tools.list_ports_common import ListPortInfo

from hil.base.errors import ConfigError, NoAnswerError, RigError
from hil.boards import serial_url
from hil.boards.flash.identify import identify
from hil.boards.places.exporter import exporter_config
from hil.boards.rack import Board, Power, load_rack
from hil.boards.rack.check import check_rack
from hil.boards.serial_url import protocol_usb
from hil.boards.serial_url.protocol_watched import watched
from hil.boards.serial_url.usb import UsbPort, from_url, is_gone
from hil.boards.supply import await_port
from hil.ci.runner import udev_rules
from hil.fixtures.board.embedded import open_port
from tests.boards.usb_tree import UsbTree
from tests.lab import wait_for
from tests.virtual.virtual_board_rig import MAC, BoardProcess

BRIDGE, NATIVE = "10c4:ea60", "303a:1001"
serial_url.register()


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else the host does, a port that comes back is in time."""
    monkeypatch.setattr(protocol_usb, "BACK_DEADLINE_S", 300.0)


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[UsbTree]:
    tree = UsbTree(tmp_path / "usb")
    yield tree
    tree.close()


def test_a_port_is_found_by_place_or_serial_number(tree: UsbTree) -> None:
    """Whatever its number and driver; hubs, devices without a port and other interfaces are passed over."""
    tree.plug("1-1", "05e3:0610", ports={})
    tree.plug("1-1.2", BRIDGE, serial="0001", ports={0: "ttyUSB3"})
    tree.plug("1-1.4", NATIVE, serial="7C:DF:A1:00:00:01", ports={0: "ttyACM0"}, others=(1, 2))
    tree.plug("1-1.4.1", "0403:6010", ports={0: "ttyUSB0", 1: "ttyUSB1"})
    root = tree.root
    for wanted, name in (
        (UsbPort("1-1.2"), "ttyUSB3"),
        (UsbPort(serial="0001"), "ttyUSB3"),
        (UsbPort("1-1.4", "7C:DF:A1:00:00:01", 0), "ttyACM0"),
        (UsbPort("1-1.4.1", interface=1), "ttyUSB1"),
    ):
        here = replace(wanted, root=root)
        assert here.find().file == root / "dev" / name
        assert from_url(here.url) == here
    assert UsbPort("1-1.2", "a b&c", 2).url == "usb://1-1.2?serial=a%20b%26c&interface=2"
    assert from_url("usb://1-1.2?serial=a%20b%26c&interface=2") == UsbPort("1-1.2", "a b&c", 2)


@pytest.mark.parametrize(
    ("wanted", "error", "words"),
    [
        (UsbPort("1-1.3"), NoAnswerError, "at 1-1.3; with serial ports there is 1-1.2 (10"),
        (UsbPort(serial="0009"), NoAnswerError, "the serial number 0009; with serial port"),
        (UsbPort("1-1.2", "0009"), NoAnswerError, "is 1-1.2 (10c4:ea60, serial 0001, ttyUSB0); nothing has"),
        (UsbPort("1-1.2", "0002"), NoAnswerError, "ttyUSB0); the serial number 0002 is at 1-1.4 (10c4:ea60"),
        (UsbPort("1-1.9", "0002"), NoAnswerError, "is at 1-1.9; the serial number 0002 is at 1-1.4 (10c4"),
        (UsbPort(serial="0001"), ConfigError, "2 USB devices have the serial number 0001: 1-1.2 (10c4:"),
        (UsbPort("1-1.7"), NoAnswerError, "1-1.7 (303a:4001) has no serial port"),
        (UsbPort("1-1.6"), ConfigError, "interfaces 0 (ttyUSB5), 1 (ttyUSB6)"),
        (UsbPort("1-1.6", interface=3), NoAnswerError, "3, but at 0 (ttyUSB5), 1 (ttyUSB6)"),
    ],
)  # fmt: skip
def test_what_is_not_there_or_ambiguous_is_named_with_what_is_there(
    tree: UsbTree, wanted: UsbPort, error: type[Exception], words: str
) -> None:
    """Absence may pass and is the rig's; what means more than one is the rack file's."""
    tree.plug("1-1.2", BRIDGE, serial="0001", ports={0: "ttyUSB0"})
    tree.plug("1-1.3.1", BRIDGE, serial="0001", ports={0: "ttyUSB1"})
    tree.plug("1-1.4", BRIDGE, serial="0002", ports={0: "ttyUSB2"})
    tree.plug("1-1.6", "0403:6010", ports={0: "ttyUSB5", 1: "ttyUSB6"})
    tree.plug("1-1.7", "303a:4001", ports={}, others=(0,))
    with pytest.raises(error) as caught:
        replace(wanted, root=tree.root).find()
    assert words in str(caught.value)
    assert "Next: " in str(caught.value)


def test_a_renumbered_port_is_found_when_it_is_opened_again(tree: UsbTree) -> None:
    """esptool closes and opens the port that it has: it gets the board's, not the one of that name."""
    tree.plug("1-1.2", BRIDGE, serial="0001", ports={0: "ttyUSB0"})
    port: Any = serial.serial_for_url(UsbPort("1-1.2", root=tree.root).url, timeout=10)
    assert port.port == str(tree.root / "dev" / "ttyUSB0")  # by which esptool sees what it is
    port.close()
    tree.unplug("1-1.2")
    tree.plug("1-1.1", BRIDGE, serial="0002", ports={0: "ttyUSB0"})
    tree.plug("1-1.2", BRIDGE, serial="0001", ports={0: "ttyUSB1"})
    port.open()
    os.write(tree.ends["ttyUSB1"], b"mine")
    assert port.read(4) == b"mine"
    port.close()


def test_opening_waits_for_a_port_to_come_back(tree: UsbTree) -> None:
    """A chip that is the USB device vanishes at its reset; opening waits until it is enumerated again."""
    url = UsbPort(serial="S3", root=tree.root).url
    assert is_gone(url)
    opened = threading.Event()
    port: Any = serial.serial_for_url(url, do_not_open=True)

    def open_port() -> None:
        port.open()
        opened.set()

    opening = threading.Thread(target=open_port, daemon=True)
    opening.start()
    assert not opened.is_set()
    tree.plug("1-2", NATIVE, serial="S3", ports={0: "ttyACM1"})
    assert opened.wait(30)
    opening.join(30)
    assert not is_gone(url)
    port.close()


def test_a_port_that_stays_away_is_given_up_with_a_sentence(
    tree: UsbTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the deadline; what means two devices is said at once, whatever the deadline."""
    monkeypatch.setattr(protocol_usb, "BACK_DEADLINE_S", 0.2)
    with pytest.raises(serial.SerialException, match=r"usb://1-3\?root=.*: no USB device"):
        serial.serial_for_url(UsbPort("1-3", root=tree.root).url)
    monkeypatch.setattr(protocol_usb, "BACK_DEADLINE_S", 1e9)
    for place, name in (("1-1", "ttyUSB0"), ("1-2", "ttyUSB1")):
        tree.plug(place, BRIDGE, serial="0001", ports={0: name})
    with pytest.raises(serial.SerialException, match="2 USB devices have the serial number"):
        serial.serial_for_url(UsbPort(serial="0001", root=tree.root).url)


def test_a_console_goes_on_after_a_native_chip_was_enumerated_again(tree: UsbTree) -> None:
    """What it says under its new name arrives, and what is written reaches it; the port was never closed."""
    tree.plug("1-2", NATIVE, serial="S3", ports={0: "ttyACM0"})
    said: list[bytes] = []
    with watched(UsbPort("1-2", root=tree.root).url, []) as address:
        port: Any = serial.serial_for_url(address, timeout=0.05)
    port.listen(said.append)
    os.write(tree.ends["ttyACM0"], b"before")
    wait_for(lambda: b"".join(said) == b"before", lambda: f"this came: {said}")
    tree.unplug("1-2")
    tree.plug("1-2", NATIVE, serial="S3", ports={0: "ttyACM7"})
    wait_for(lambda: str(port.port).endswith("ttyACM7"), lambda: f"it stays {port.port}, {port.lost}")
    os.write(tree.ends["ttyACM7"], b" after")
    wait_for(lambda: b"".join(said) == b"before after", lambda: f"this came: {said}")
    assert (port.is_open, port.lost) == (True, None)
    port.write(b"hello")
    assert os.read(tree.ends["ttyACM7"], 5) == b"hello"
    port.close()


def test_a_converter_that_vanishes_is_lost_at_once(tree: UsbTree) -> None:
    """Its chip's reset does not take it away: somebody pulled it, and the console says so."""
    tree.plug("1-2", BRIDGE, serial="0001", ports={0: "ttyUSB0"})
    with watched(UsbPort("1-2", root=tree.root).url, []) as address:
        port: Any = serial.serial_for_url(address, timeout=0.05)
    port.listen(lambda _data: None)
    tree.unplug("1-2")
    wait_for(lambda: port.lost is not None, lambda: "the port did not notice")
    port.close()


@pytest.mark.parametrize(
    ("ids", "name", "reset"),
    [(BRIDGE, "ttyUSB0", "UnixTightReset"), (NATIVE, "ttyACM0", "USBJTAGSerialReset")],
)
def test_esptool_resets_by_the_interface_that_it_sees(
    tree: UsbTree, monkeypatch: pytest.MonkeyPatch, ids: str, name: str, reset: str
) -> None:
    """The port says its device file, by which esptool itself finds whether the chip has USB of its own."""
    tree.plug("1-2", ids, ports={0: name})
    port = serial.serial_for_url(UsbPort("1-2", root=tree.root).url)
    listed = ListPortInfo(str(port.port), skip_link_detection=True)
    listed.vid, listed.pid = (int(word, 16) for word in ids.split(":"))
    monkeypatch.setattr(serial_ports, "_comports", lambda *_arguments, **_options: [listed])
    sequence = ESP32S3ROM(port)._construct_reset_strategy_sequence("default-reset")
    assert type(sequence[0]).__name__ == reset
    port.close()


RACK = """\
schema: 1
name: desk
host: {interface: lo, address: 127.0.0.1}
access_point: {type: external, ssid: hil, psk_env: HIL_TEST_PSK}
boards:
  - id: a
    kind: physical
    target: esp32
    usb: {path: 1-1.2, serial: "0001"}
    power: {type: none}
  - id: b
    kind: physical
    target: esp32s3
    usb: {serial: "7C:DF:A1:00:00:01", interface: 0}
    power: {type: none}
"""


def loaded(folder: Path, text: str) -> Any:
    path = folder / "rack.yaml"
    path.write_text(text)
    return load_rack(path)


def test_udev_and_labgrid_find_the_same_port(tmp_path: Path) -> None:
    """A rack file names place, serial number or both, in place of a device file; the two find it by the words
    that udev has for them. Neither place nor number of this host is told to who leases it."""
    rack = loaded(tmp_path, RACK)
    assert from_url(rack.boards[0].serial) == UsbPort("1-1.2", serial="0001")
    assert from_url(rack.boards[1].serial) == UsbPort(serial="7C:DF:A1:00:00:01", interface=0)
    rules = "\n".join(udev_rules("desk", list(rack.boards)))
    assert 'SUBSYSTEM=="tty", KERNELS=="1-1.2", ATTRS{serial}=="0001", SYMLINK+="hil/a"' in rules
    number = 'ENV{ID_USB_INTERFACE_NUM}=="00"'
    assert f'SUBSYSTEM=="tty", ATTRS{{serial}}=="7C:DF:A1:00:00:01", {number}, SYMLINK+="hil/b"' in rules
    groups = YAML(typ="safe").load(exporter_config(rack, {}))
    assert groups["a"]["USBSerialPort"]["match"] == {"@sys_name": "1-1.2", "@serial": "0001"}
    by_number = {"@serial": "7C:DF:A1:00:00:01", "ID_USB_INTERFACE_NUM": "00"}
    assert groups["b"]["USBSerialPort"]["match"] == by_number
    assert not json.loads(groups["a"]["HilBoard"]["entry"]).keys() & {"usb", "power"}


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("usb: {path: 1-1.2,", "serial: /dev/ttyUSB0\n    usb: {path: 1-1.2,", 9, "exclude each other"),
        ('usb: {path: 1-1.2, serial: "0001"}', "usb: {interface: 0}", 9, "needs a path, a serial number, or"),
        ("1-1.2", "ttyUSB0", 9, "USB path 'ttyUSB0' is not bus-port.port"),
        ("interface: 0", "interfase: 0", 14, "interface"),
        ('{serial: "7C:DF:A1:00:00:01", interface: 0}', '{path: 1-1.2, serial: "0001"}', 14, "duplicate usb"),
        ('usb: {path: 1-1.2, serial: "0001"}', "baud: 115200", 6, "'serial'"),
    ],
)  # fmt: skip
def test_a_wrong_usb_key_is_told(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    """File, line, and what is right."""
    assert old in RACK
    with pytest.raises(ConfigError, match=rf"rack\.yaml:{line}: ") as caught:
        loaded(tmp_path, RACK.replace(old, new, 1))
    assert words in str(caught.value)


def test_a_check_names_a_board_that_is_not_on_the_bus(tmp_path: Path) -> None:
    """No waiting and no reset for it: what is missing, and what to do, is in its line."""
    rack = loaded(tmp_path, RACK.replace("1-1.2", "250-1.2"))
    (found,) = [one for one in check_rack(rack, tmp_path / "locks", served={}) if one.subject == "a"]
    assert not found.ok
    assert "no USB device is at 250-1.2" in found.sentence
    assert "mend 'usb'" in found.mend


class Bridge:
    """Carries bytes between a pseudo terminal and a virtual board that is held in its serial loader."""

    def __init__(self, process: BoardProcess, end: int) -> None:
        self._end = end
        self._board: Any = serial.serial_for_url(process.url(), baudrate=115200, timeout=0.02)
        self._board.dtr, self._board.rts = False, True
        self._board.dtr, self._board.rts = True, False
        process.wait_for(lambda state: state["mode"] == "download")
        self._over = threading.Event()
        self._threads = [threading.Thread(target=part) for part in (self._out, self._in)]
        for thread in self._threads:
            thread.start()

    def _out(self) -> None:
        while not self._over.is_set():
            if data := self._board.read(self._board.in_waiting or 1):
                os.write(self._end, data)

    def _in(self) -> None:
        os.set_blocking(self._end, False)
        while not self._over.wait(0.005):
            try:
                self._board.write(os.read(self._end, 4096))
            except OSError:  # nothing yet, or nobody has the port open
                continue

    def close(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(30)
        self._board.close()


@pytest.mark.slow
def test_esptool_finds_the_board_wherever_it_is_plugged_now(tree: UsbTree, tmp_path: Path) -> None:
    """The real esptool talks to a virtual board through the terminal that its serial number leads to."""
    url = UsbPort(serial="0001", root=tree.root).url
    board = Board("a", "physical", "esp32", url, Power("none"), where="rack.yaml:6")
    with BoardProcess(tmp_path / "b") as process:
        for place, name in (("1-1.2", "ttyUSB0"), ("1-4", "ttyUSB5")):
            tree.plug(place, BRIDGE, serial="0001", ports={0: name})
            await_port(board)
            assert board.stock_serial == str(tree.root / "dev" / name)
            bridge = Bridge(process, tree.ends[name])
            try:
                assert identify(board).mac == MAC
            finally:
                bridge.close()
            tree.unplug(place)
    for place, name in (("1-5", "ttyUSB0"), ("1-6", "ttyUSB1")):
        tree.plug(place, BRIDGE, serial="0001", ports={0: name})
    with pytest.raises(RigError) as caught:
        identify(board)
    for word in ("could not be opened", "2 USB devices have the serial number 0001: 1-5 (10c4:ea60, serial"):
        assert word in str(caught.value)


@pytest.mark.slow
def test_a_run_keeps_its_console_when_the_chip_is_enumerated_again(tree: UsbTree, tmp_path: Path) -> None:
    """pytest-embedded and esptool open it as any port; under the chip's new name it goes on, both ways."""
    tree.plug("1-2", NATIVE, serial="S3", ports={0: "ttyACM0"})
    url = UsbPort(serial="S3", root=tree.root).url
    board = Board("a", "physical", "esp32", url, Power("none"), where="rack.yaml:6")
    ports: list[Any] = []
    with BoardProcess(tmp_path / "b") as process:
        bridge = Bridge(process, tree.ends["ttyACM0"])
        try:
            console = open_port(board, ports)
        finally:
            bridge.close()
    try:
        tree.unplug("1-2")
        tree.plug("1-2", NATIVE, serial="S3", ports={0: "ttyACM3"})
        wait_for(lambda: str(ports[0].port).endswith("ttyACM3"), lambda: console.problem)
        os.write(tree.ends["ttyACM3"], b"READY")
        said: list[bytes] = []

        def has_said() -> bool:
            said.append(console.read(0.1))
            return b"READY" in b"".join(said)

        wait_for(has_said, lambda: f"this came: {said}, {console.problem}")
        console.write(b"hello")
        assert os.read(tree.ends["ttyACM3"], 5) == b"hello"
        assert console.problem == ""
    finally:
        console.close()
