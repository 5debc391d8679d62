# SPDX-License-Identifier: Apache-2.0
"""A restart that the ROM's line does not show, and what looks like a restart and is none."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hil.base.errors import FirmwareError
from hil.probe.console import ConsoleLine, ProductConsole
from hil.probe.measuring import MeasuredCase, measure_between
from hil.probe.probe_file import Between, Pattern
from hil.probe.restarts import RestartWatch
from tests.probe.scripted import console_of, probe_of

MS = 1_000_000
READY = Pattern("main: ready", "it.probe.yaml:2", re.compile("main: ready"))
BOOT = (
    "I (24) boot: ESP-IDF v5.5.1 2nd stage bootloader",
    "I (163) cpu_start: Multicore app",
    "I (176) cpu_start: Pro cpu start user code",
    "I (177) app_init: Application information:",
    "I (210) main_task: Calling app_main()",
)
ROM = "rst:0xc (SW_CPU_RESET),boot:0x13 (SPI_FAST_FLASH_BOOT)"
PAIR = r"between: {from: 'ask seq=(?P<key>\d+)', to: 'answer seq=(?P<key>\d+)'}" + "\n"
READY_KEY = "ready: {pattern: 'main: ready', within_s: 1}\n"


def found(*lines: tuple[float, str]) -> list[tuple[float, str]]:
    """Return (ms, why) of the restarts in lines of (ms, text), behind the first ready line."""
    boots, restarts, is_ready = RestartWatch(), [], False
    for at_ms, text in lines:
        line = ConsoleLine(round(at_ms * MS), text)
        why = boots.take(line)
        if not is_ready and READY.search(text):
            is_ready = True
            boots.ready(READY, line, round(lines[0][0] * MS))
        elif is_ready and why:
            restarts.append((at_ms, why))
    return restarts


def stamped(at_ms: float, boot_ms: float, count: int = 60, every_ms: float = 40) -> list[tuple[float, str]]:
    """Log a temperature, by a clock that began at ``boot_ms``."""
    times = [at_ms + every_ms * number for number in range(count)]
    return [(time, f"I ({time - boot_ms:.0f}) env: temp=21") for time in times]


FIRST_BOOT = [(0, ROM), *((20 + 40 * at, text) for at, text in enumerate(BOOT)), (320, "I (300) main: ready")]


def test_field_a_first_boot_is_no_restart() -> None:
    """All of a boot's lines come once, in their order."""
    assert found(*FIRST_BOOT, *stamped(400, 20)) == []


@pytest.mark.parametrize(
    "noise", ["", "\x1b[0;32m", "\x00\xf8x\xff", "\x9e\x00\x1b[0;32m", "\xe0<~", "I (2990) env: te", "talk> "]
)
@pytest.mark.parametrize("first", range(len(BOOT)))
def test_field_a_boot_line_is_a_restart(first: int, noise: str) -> None:
    """From whichever line on a boot can be read: once, behind colours, what the ROM's baud rate left, or what
    the restart cut off."""
    again = [(5000 + 40 * at, noise + text) for at, text in enumerate(BOOT) if at >= first]
    lines = [*FIRST_BOOT, *stamped(400, 20), *again, (5300, "I (300) main: ready"), *stamped(5400, 5000)]
    assert found(*lines) == [(again[0][0], "a line that a boot begins with came again")]


@pytest.mark.parametrize("time", ["", "(12:00:01.123) ", "(2025-11-28 12:00:01.123456) "])
def test_field_a_boot_line_has_any_time_or_none(time: str) -> None:
    """CONFIG_LOG_TIMESTAMP_SOURCE chooses."""
    again = f"I {time}boot: ESP-IDF v5.5.1 2nd stage bootloader"
    assert found((0, "hello"), (300, "main: ready"), (5000, again)) == [
        (5000, "a line that a boot begins with came again")
    ]


def test_field_a_light_sleep_is_no_restart() -> None:
    """The log's time stands still in it, and goes on."""
    asleep = [
        line for wake in range(3) for line in stamped(12_800 + wake * 10_800, 10_020 + wake * 10_000, 20)
    ]
    assert found(*FIRST_BOOT, *stamped(400, 20), *asleep) == []
    restarted = stamped(50_000, 49_900)
    assert [at for at, _ in found(*FIRST_BOOT, *stamped(400, 20), *asleep, *restarted)] == [50_120]


def test_field_a_host_that_stood_still_is_no_restart() -> None:
    """Lines that waited in a buffer come at once, and the log goes on as before."""
    at_once = [(7800 + at / 10, f"I ({2780 + 40 * at}) env: temp=21") for at in range(125)]
    assert found(*FIRST_BOOT, *stamped(400, 20), *at_once, *stamped(7820, 20)) == []


def test_field_the_ready_line_again_is_a_restart() -> None:
    """A bootloader and a start-up that print nothing leave the product's own lines."""
    plain = [(0, "hello"), (300, "main: ready"), (500, "ask"), (900, "hello"), (1200, "main: ready")]
    assert found(*plain) == [(1200, "its ready line came again")]
    logged = [(0, "I (10) main: scene"), (300, "I (200) main: ready"), (1500, "I (200) main: ready")]
    assert found(*logged) == [(1500, "its ready line came again")]


def test_field_each_restart_is_one() -> None:
    """Boot lines and ready line behind the ROM's line belong to it, whoever counts that."""
    boot = [(at + 20, text) for at, text in FIRST_BOOT]
    lines = [
        *FIRST_BOOT,
        *((at + 5000, text) for at, text in boot),
        *((at + 9000, text) for at, text in boot),
    ]
    assert found(*lines) == []
    quiet = [
        *FIRST_BOOT,
        *((at + 5000, text) for at, text in boot[1:]),
        *((at + 9000, text) for at, text in boot[1:]),
    ]
    assert [at for at, _ in found(*quiet)] == [5040, 9040]


@pytest.mark.parametrize("template", ["I ({:.0f}) main: ready", "[{:9.3f}] main: ready"])
def test_field_a_ready_line_that_comes_at_each_connection_is_no_restart(template: str) -> None:
    """The time in it went on as the host's clock did: the product runs still."""
    factor = 1 if "I" in template else 1000
    lines = [(at, template.format((at - 20) / factor)) for at in (300, 4000, 9000)]
    assert found((0, "hello"), *lines) == []


def test_field_a_ready_line_without_a_time_is_no_restart_where_the_log_goes_on() -> None:
    """Other lines' times tell that the product runs still."""
    running = stamped(400, 20, count=100)
    assert found(*FIRST_BOOT[:-1], (320, "main: ready"), *running, (4400, "main: ready")) == []


def test_field_a_ready_line_that_came_too_soon_once_tells_nothing_any_more() -> None:
    """It is of another kind, so that it is no restart either where it comes after a while."""
    assert found((0, "hello"), (1000, "main: ready"), (1100, "main: ready"), (9000, "main: ready")) == []


def test_field_a_ready_pattern_that_matches_line_after_line_is_no_restart() -> None:
    """A line that comes sooner than any boot could be over is not of a boot."""
    assert found((0, "hello"), *((500 + 100 * number, "main: ready") for number in range(9))) == []


@pytest.mark.parametrize("down_ms", [150, 400, 3000])
def test_field_the_time_of_the_log_beginning_again_is_a_restart(down_ms: float) -> None:
    """Nothing of the boot is printed but the product's log, whose time is that since the boot."""
    booted = 2800 + down_ms - 120
    lines = [(0, "hello"), (300, "main: ready"), *stamped(400, 0), *stamped(2800 + down_ms, booted, 9)]
    assert [why for _, why in found(*lines)] == ["the time in its log began again"]


@pytest.mark.parametrize(
    "odd",
    [
        [
            (2801 + at, f"I ({at}) boot_log: kept from before") for at in range(5)
        ],  # a log that was kept, in one go
        [(2810, "I (12) env: x")],  # once
        [(2800 + 40 * at, f"I ({at}) main: ask seq={at}") for at in range(60)],  # a number that is no time
        [(2800 + 40 * at, f"I (12:00:0{at % 9}.123) env: temp") for at in range(60)],  # set by SNTP
        [(2800 + 40 * at, f"I ({1_700_000_000 + at}) env: temp") for at in range(60)],  # likewise
        [(2800 + 40 * at, f"I ({2780 + 40 * at - 3 * (at % 2)}) env: temp") for at in range(60)],  # two cores
    ],
)
def test_field_other_times_are_no_restart(odd: Sequence[tuple[float, str]]) -> None:
    """What can be otherwise is not taken for a restart."""
    running = stamped(2800, 20, count=80, every_ms=45)
    lines = sorted(
        [(0, "hello"), (300, "main: ready"), *stamped(400, 20), *odd, *running], key=lambda one: one[0]
    )
    assert found(*lines) == []


def test_field_a_log_time_that_wraps_is_no_restart() -> None:
    """ESP_LOG's milliseconds have 32 bits."""
    wrapping = [
        (at, re.sub(r"\((-?\d+)\)", lambda ms: f"({int(ms[1]) % 2**32})", text))
        for at, text in stamped(400, 2000, count=90)
    ]
    assert found((0, "hello"), (300, "main: ready"), *wrapping) == []


def test_field_a_prompt_that_comes_again_is_no_restart(tmp_path: Path) -> None:
    """A console prints it after each command; it is a line without an end."""
    probe = probe_of(tmp_path, "ready: {pattern: 'talk> ', within_s: 2}\n" + PAIR)
    console = console_of(["hello", b"talk> "], probe, ready=False)
    console.await_ready(probe)
    script: Any = console.console
    script._lines.extend([b"free\r\n", "free=12", b"talk> ", b"\r\n", "talk> "])
    assert [line.text for line in console.until(time.monotonic() + 0.5) if line.is_whole][-1] == "talk> "


def test_field_words_about_a_boot_are_no_restart() -> None:
    """A line that quotes a boot line does not begin with it."""
    quoted = f"W (190) crashlog: the last boot: {BOOT[0]}"
    assert found(*FIRST_BOOT, *stamped(400, 20, 9), (800, quoted)) == []


def talk(numbers: range) -> list[str]:
    return [line for number in numbers for line in (f"ask seq={number}", f"answer seq={number}")]


def console(tmp_path: Path, text: str, lines: list[str]) -> ProductConsole:
    probe = probe_of(tmp_path, READY_KEY + text)
    console = console_of(["I (10) main: scene", "I (200) main: ready", *lines], probe, ready=False)
    console.await_ready(probe)
    return console


@pytest.mark.parametrize(
    "again",
    [["I (10) main: scene", "I (200) main: ready"], ["\xe0\x00\xb4" * 60 + BOOT[0], "I (200) main: ready"]],
)
def test_field_a_case_with_a_restart_ends_with_its_fault(tmp_path: Path, again: list[str]) -> None:
    """All its pairs come; it says by what the restart is known, and by which key it would count."""
    product = console(tmp_path, PAIR, [*talk(range(5)), *again, *talk(range(20))])
    assert product.probe
    assert isinstance(product.probe.measures, Between)
    with pytest.raises(FirmwareError, match=r"restarted .* came again, and no line of the ROM") as caught:
        measure_between(product, product.probe.measures, MeasuredCase(20, 0, 2.0, 500, 0))
    assert "on_restart: count" in caught.value.next_step
    assert again[0][-40:] in str(caught.value) or again[1] in str(caught.value)


@pytest.mark.parametrize("rom", [[], [ROM]])
def test_field_a_counted_restart_is_counted_once(tmp_path: Path, rom: list[str]) -> None:
    """With the ROM's line and without; a question that it cut off takes no answer from behind it."""
    again = [*rom, *BOOT, "I (200) main: ready"]
    product = console(
        tmp_path, "on_restart: count\n" + PAIR, [*talk(range(5)), "ask seq=5", *again, *talk(range(5, 20))]
    )
    assert product.probe
    assert isinstance(product.probe.measures, Between)
    columns, counts = measure_between(product, product.probe.measures, MeasuredCase(16, 0, 2.0, 500, 0))
    assert columns["outcome"] == (0, 0, 0, 0, 0, 1, *[0] * 10)
    assert product.counts.restarts == 1
    assert counts["asked_again_count"] == 0


@pytest.mark.parametrize("name", ["DEEPSLEEP_RESET", "DSLEEP", "SLEEP_WAKEUP"])
def test_field_deep_sleep_is_a_wake_up(tmp_path: Path, name: str) -> None:
    """It is told as what it is, with the way out; counted apart from restarts where the probe says so."""
    woken = [f"rst:0x5 ({name}),boot:0x13 (SPI_FAST_FLASH_BOOT)", *BOOT, "I (200) main: ready"]
    product = console(tmp_path, PAIR, woken)
    with pytest.raises(FirmwareError, match="woke from deep sleep") as caught:
        list(product.until(1e18))
    assert "on_restart: count" in caught.value.next_step
    counting = console(tmp_path, "on_restart: count\n" + PAIR, [*woken, *woken])
    for _ in range(2 * len(woken)):
        assert counting.read(1e18)
    assert (counting.counts.wake_ups, counting.counts.restarts) == (2, 0)


def test_field_a_restart_on_purpose_has_a_way_out(tmp_path: Path) -> None:
    """The ROM's line names a cause, and the probe may count it."""
    with pytest.raises(FirmwareError, match="was reset") as caught:
        list(console(tmp_path, PAIR, [ROM]).until(1e18))
    assert "on_restart: count" in caught.value.next_step


def test_field_lines_behind_a_counted_trouble_are_measured(tmp_path: Path) -> None:
    """A watchdog's warning is read to its end, and what the product goes on with is not lost with it."""
    bark = "E (900) task_wdt: Task watchdog got triggered. The following tasks did not reset in time:"
    product = console(tmp_path, "on_restart: count\n" + PAIR, [*talk(range(3)), bark, *talk(range(3, 6))])
    assert product.probe
    assert isinstance(product.probe.measures, Between)
    columns, _ = measure_between(product, product.probe.measures, MeasuredCase(6, 0, 3.0, 500, 0))
    assert columns["outcome"] == (0,) * 6
    assert product.counts.facts()["watchdogs_count"] == 1
