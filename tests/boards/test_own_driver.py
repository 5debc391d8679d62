# SPDX-License-Identifier: Apache-2.0
"""A lab's own driver stands beside its rack file: the page's works; a wrong one is told by file and line."""

from __future__ import annotations

import os
import pty
import re
import threading
import tty
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, RigError
from hil.boards import current, power
from hil.boards.current_sampling import check_meter
from hil.boards.drivers import types_of
from hil.boards.power import PowerDriver
from hil.boards.rack import Board, load_rack
from hil.boards.supply import switch_power
from tests.boards.switch_rig import no_virtual_board
from tests.boards.test_power_switches import rack_with

PAGE = Path(__file__).resolve().parents[2] / "docs/operate/own-driver.md"


@dataclass
class RelayCard:
    """A card of eight relays on a pseudo terminal; ``stuck`` relays do not move."""

    device: str
    stuck: bool = False
    states: dict[int, bool] = field(default_factory=lambda: dict.fromkeys(range(1, 9), True))

    def answer(self, command: bytes) -> bytes:
        if command == b"\xff":
            words = (f"CH{number}: {'ON' if on else 'OFF'}\r\n" for number, on in self.states.items())
            return "".join(words).encode()
        start, channel, on, total = command
        assert (start, total) == (0xA0, 0xA0 + channel + on)
        if not self.stuck:
            self.states[channel] = bool(on)
        return b""


@pytest.fixture
def card() -> Iterator[RelayCard]:
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    card = RelayCard(os.ttyname(theirs))

    def serve() -> None:
        while (first := os.read(ours, 1)) != b"\n":
            rest = b"" if first == b"\xff" else os.read(ours, 1) + os.read(ours, 1) + os.read(ours, 1)
            os.write(ours, card.answer(first + rest))

    thread = threading.Thread(target=serve)
    thread.start()
    yield card
    os.write(theirs, b"\n")
    thread.join()
    os.close(ours)
    os.close(theirs)


def fenced(language: str) -> str:
    """Return a block of the page's section."""
    section = PAGE.read_text(encoding="utf-8")
    (block,) = re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)
    return str(block)


def with_driver(folder: Path, text: str, section: str = "{type: relay}", *, name: str = "relay") -> Path:
    (folder / "drivers").mkdir()
    (folder / "drivers" / f"power_{name}.py").write_text(text)
    return rack_with(folder, section)


@pytest.fixture
def board(tmp_path: Path, card: RelayCard) -> Board:
    """Return a board of a rack file that has the page's lines, at the card."""
    section = fenced("yaml").partition("power: ")[2].replace("/dev/ttyUSB7", card.device)
    return load_rack(with_driver(tmp_path, fenced("python"), section)).board("a")


def test_the_pages_driver_switches_its_relay_alone(board: Board, card: RelayCard) -> None:
    """A driver is one file of 30 lines at most beside the rack file, with the keys that are common to all.
    Its state is asked for after each switch, as of our own; what it lets through is the rig's, by line."""
    assert len(fenced("python").splitlines()) <= 30
    assert board.power.off_time_s == 3.0
    assert board.power.is_automatic
    switch_power(board, "off", virtual=no_virtual_board)
    assert [number for number, on in card.states.items() if not on] == [2]
    switch_power(board, "on", virtual=no_virtual_board)
    assert all(card.states.values())
    card.stuck = True
    with pytest.raises(RigError, match=r"board a by .* failed: .* still on"):
        switch_power(board, "off", virtual=no_virtual_board)
    object.__setattr__(board.power.driver, "card", "/dev/no-card")
    with pytest.raises(RigError, match=r"power_relay\.py:\d+: SerialException: .*/dev/no-card"):
        switch_power(board, "off", virtual=no_virtual_board)


HEAD = "from hil.boards.power import PowerDriver\n"
READ = "    def read(cls, node):\n"
WHOLE = f"{HEAD}class Relay(PowerDriver):\n    switch = is_on = None\n    @classmethod\n{READ}"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("def (:\n", 1, "SyntaxError"),
        ("import os\nimport no_such_library\n", 2, "No module named 'no_such_library'"),
        (HEAD, 1, "0 classes of PowerDriver"),
        (f"{HEAD}class A(PowerDriver): ...\nclass B(PowerDriver): ...\n", 1, "2 classes of"),
        (f"{HEAD}\nclass R(PowerDriver):\n    @classmethod\n{READ}        ...\n", 3, "lacks is_on, switch"),
        (f"{WHOLE}        return node.txt('card')\n", 6, "AttributeError: .*'txt'"),
    ],
)
def test_a_driver_that_is_wrong_is_told_by_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    """It is the configuration's fault, with the page that shows a driver."""
    with pytest.raises(ConfigError, match=rf"drivers/power_relay\.py:{line}: .*{words}") as caught:
        load_rack(with_driver(tmp_path, text))
    assert PAGE.name in caught.value.next_step


def test_a_drivers_keys_are_as_strict_as_ours(tmp_path: Path) -> None:
    """A key that it does not take is told with the line of the rack file."""
    with pytest.raises(ConfigError, match=r"rack\.yaml:11: unknown key 'chanel'"):
        load_rack(with_driver(tmp_path, f"{WHOLE}        return cls()\n", "{type: relay, chanel: 2}"))


@pytest.mark.parametrize("name", ["manual", "tasmota"])
def test_a_driver_of_our_name_is_refused(tmp_path: Path, name: str) -> None:
    """Otherwise nobody would see which of the two switches."""
    with pytest.raises(ConfigError, match=rf"power_{name}\.py:1: the type '{name}' is built into hil"):
        load_rack(with_driver(tmp_path, fenced("python"), name=name))


def test_a_mistyped_type_names_the_labs_too(tmp_path: Path) -> None:
    """Known are our files and those of the folder, whoever added them."""
    with pytest.raises(ConfigError, match=r"rack\.yaml:11: .*rellay.*relay"):
        load_rack(with_driver(tmp_path, fenced("python"), "{type: rellay}"))


METER = """
import numpy as np
from hil.boards.current import MeterDriver
from hil.boards.current_track import Spans, no_spans

class Shunt(MeterDriver):
    def __init__(self, channel):
        self.channel = channel

    @classmethod
    def read(cls, node):
        return cls(node.integer("channel"))

    def __str__(self):
        return f"shunt {self.channel}"

    def open(self):
        return Open() if self.channel else {}["no channel"]

class Open:
    resolution_ua, origin_s = 1.0, 0.0

    def begin(self): ...
    def read(self):
        return no_spans()
    def end(self):
        ua, none = np.array([5000.0]), np.zeros(1)
        return Spans(none, none + 1, ua, ua, none + 3300, none.astype(int), none)
    def close(self): ...
"""


def test_a_labs_meter_measures_as_ours_does(tmp_path: Path) -> None:
    """`current` finds its driver as `power` does; what it lets through is the rig's, with its line."""
    (tmp_path / "drivers").mkdir()
    (tmp_path / "drivers" / "current_shunt.py").write_text(METER)
    found = [
        check_meter(load_rack(rack_with(tmp_path, f"{{type: none}}\n    current: {section}")).board("a"))
        for section in ("{type: shunt, channel: 1}", "{type: shunt, channel: 0}")
    ]
    assert (found[0].ok, found[0].sentence) == (True, "shunt 1 measures 5.000 mA")
    assert not found[1].ok
    assert "current_shunt.py:18: KeyError" in found[1].sentence


def test_each_file_of_ours_is_a_type() -> None:
    """The list of types is the folder's, which holds nothing else; a power driver has five methods."""
    assert set(types_of(power)) == {"command", "shelly", "tasmota", "uhubctl"}
    assert set(types_of(current)) == {"ppk2"}
    assert len([name for name in vars(PowerDriver) if not name.startswith("_")]) == 5
