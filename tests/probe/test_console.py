# SPDX-License-Identifier: Apache-2.0
"""A product's console: ready, in trouble, or silent; and whose fault it is that a pattern matches nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from hil.base.errors import ConfigError, FirmwareError, RigError
from hil.probe.console import Line, nearest
from hil.probe.probe_file import Boot
from tests.probe.scripted import console_of, probe_of

PANIC = (
    "Guru Meditation Error: Core  0 panic'ed (LoadProhibited). Exception was unhandled.",
    "Backtrace: 0x400d1234:0x3ffb0000",
    "Rebooting...",
)


def test_it_is_ready_by_its_line(tmp_path: Path) -> None:
    """What the chip prints of its reset before is no restart."""
    probe = probe_of(tmp_path, "boot: {to: 'a'}\n")
    console = console_of(["rst:0x1 (POWERON_RESET),boot:0x13", "I (300) main: hello", "net up"], ready=False)
    assert console.await_ready(probe).text == "net up"
    assert console.is_ready
    assert console.counts.restarts == 0


def test_a_board_that_says_nothing_is_the_rigs(tmp_path: Path) -> None:
    """Not a byte: cable, power, port; the firmware cannot be judged by it."""
    probe = probe_of(tmp_path, "boot: {to: 'a'}\n")
    with pytest.raises(RigError, match="board b1: being ready within 1 s: not a line came"):
        console_of([], ready=False).await_ready(probe)


def test_a_pattern_that_is_nearly_right_is_the_configurations(tmp_path: Path) -> None:
    """The sentence has how many lines came, and the nearest."""
    probe = probe_of(tmp_path, "ready: {pattern: 'got adress: [0-9.]+', within_s: 1}\nboot: {to: 'a'}\n")
    lines = ["I (10) boot: hello", "I (420) wifi: got address: 10.77.0.12"]
    with pytest.raises(ConfigError, match=r"2 lines came and none matched .*the nearest is .*got address"):
        console_of(lines, ready=False).await_ready(probe)


def test_a_product_that_does_not_come_so_far_is_at_fault(tmp_path: Path) -> None:
    """Lines came, and none is like the one that is waited for."""
    probe = probe_of(tmp_path, "ready: {pattern: 'got address: [0-9.]+', within_s: 1}\nboot: {to: 'a'}\n")
    with pytest.raises(FirmwareError, match=r"2 lines came and none matched"):
        console_of(["x1", "x2"], ready=False).await_ready(probe)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("W (9) wifi: no network 'plant' in the air", "a Wi-Fi network 'plant', which the rack has not"),
        (
            "W (9) wifi: another password than that of network 'hil'",
            "the rack's Wi-Fi network 'hil' with another password",
        ),
    ],
)
def test_a_network_that_would_not_have_it_is_named(tmp_path: Path, line: str, said: str) -> None:
    """A virtual board's station says which it asked for; once it was let in, nothing is said of before."""
    probe = probe_of(tmp_path, "ready: {pattern: 'got address: [0-9.]+', within_s: 1}\nboot: {to: 'a'}\n")
    with pytest.raises(FirmwareError, match=f"It asked for {said}"):
        console_of(["x1", line, "x2"], ready=False).await_ready(probe)
    console = console_of([line, "I (99) wifi: connected with hil, aid = 1"], ready=False)
    with pytest.raises(FirmwareError) as caught:
        console.await_ready(probe)
    assert "asked for" not in str(caught.value)


def test_a_panic_is_the_firmwares(tmp_path: Path) -> None:
    """Before it is ready and after, with its telling lines."""
    probe = probe_of(tmp_path, "boot: {to: 'a'}\n")
    with pytest.raises(FirmwareError, match="panicked before it was ready: Guru Meditation"):
        console_of(PANIC, ready=False).await_ready(probe)
    console = console_of([*PANIC, "later"], probe)
    with pytest.raises(FirmwareError, match="panicked while it was measured: Guru Meditation"):
        list(console.until(1e18))


def test_restarts_are_counted_where_the_probe_says_so(tmp_path: Path) -> None:
    """A panic and the reset behind it are one of each; a power loss is the rig's all the same."""
    probe = probe_of(tmp_path, "on_restart: count\nboot: {to: 'a'}\n")
    lines = [*PANIC, "rst:0xc (SW_CPU_RESET),boot:0x13", "up again", "rst:0x1 (POWERON_RESET),boot:0x13"]
    console = console_of(lines, probe)
    with pytest.raises(RigError, match="lost its power"):
        list(console.until(1e18))
    assert console.counts.facts() == {"restarts_count": 1, "panics_count": 1, "watchdogs_count": 0}


def test_what_is_typed_keeps_its_secret() -> None:
    """A password goes to the board and not into the log."""
    logged: list[str] = []
    console = console_of([], ready=False)
    console.log = logged.append
    console.__post_init__()
    console.add_secret("correct horse")
    console.type("set wifi lab correct horse")
    assert console.console.typed == b"set wifi lab correct horse\r\n"  # type: ignore[attr-defined]
    assert logged == ["> set wifi lab ***"]


def test_the_nearest_line_is_by_the_patterns_own_text(tmp_path: Path) -> None:
    """Groups, classes and repetitions are no text."""
    measures = probe_of(tmp_path, r"boot: {to: 'pub +ack seq=(?P<key>\d+)'}" + "\n").measures
    assert isinstance(measures, Boot)
    lines = [Line(0, "[ 1] mem   free=1"), Line(0, "[ 2] pub   ack sequence=17"), Line(0, "")]
    near, likeness = nearest(measures.end, lines)
    assert near == "[ 2] pub   ack sequence=17"
    assert likeness > 0.6
