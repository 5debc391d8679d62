# SPDX-License-Identifier: Apache-2.0
"""A restart that the ROM's line does not show, and what looks like a restart and is none."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
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
CAUSES = ("boot begins", "ready line", "time in its log")  # what is known of a restart by
READY_KEY = "ready: {pattern: 'main: ready', within_s: 1}\n"


def found(*lines: tuple[float, str]) -> list[tuple[float, str]]:
    """Return (ms, cause) of the restarts in lines of (ms, text), behind the first ready line."""
    boots, restarts, is_ready = RestartWatch(), [], False
    for at_ms, text in lines:
        line = ConsoleLine(round(at_ms * MS), text)
        why = boots.take(line)
        if not is_ready and READY.search(text):
            is_ready = True
            boots.ready(READY, line, round(lines[0][0] * MS))
        elif is_ready and why:
            restarts.append((at_ms, next(cause for cause in CAUSES if cause in why)))
    return restarts


def stamped(at_ms: float, boot_ms: float, count: int = 60, every_ms: float = 40) -> list[tuple[float, str]]:
    """Log a temperature, by a clock that began at ``boot_ms``."""
    times = [at_ms + every_ms * number for number in range(count)]
    return [(time, f"I ({time - boot_ms:.0f}) env: temp=21") for time in times]


PLAIN = [(0, "hello"), (300, "main: ready")]
FIRST_BOOT = [(0, ROM), *((20 + 40 * at, text) for at, text in enumerate(BOOT)), (320, "I (300) main: ready")]


@pytest.mark.parametrize(
    "noise", ["", "\x1b[0;32m", "\x00\xf8x\xff", "\x9e\x00\x1b[0;32m", "\xe0<~", "I (2990) env: te", "talk> "]
)
@pytest.mark.parametrize("first", range(len(BOOT)))
def test_field_a_boot_line_is_a_restart(first: int, noise: str) -> None:
    """From whichever line on a boot can be read: once, behind colours, what the ROM's baud rate left, or what
    the restart cut off."""
    again = [(5000 + 40 * at, noise + text) for at, text in enumerate(BOOT) if at >= first]
    lines = [*FIRST_BOOT, *stamped(400, 20), *again, (5300, "I (300) main: ready"), *stamped(5400, 5000)]
    assert found(*lines) == [(again[0][0], "boot begins")]


@pytest.mark.parametrize("time", ["", "(12:00:01.123) ", "(2025-11-28 12:00:01.123456) "])
def test_field_a_boot_line_has_any_time_or_none(time: str) -> None:
    """CONFIG_LOG_TIMESTAMP_SOURCE chooses."""
    again = f"I {time}boot: ESP-IDF v5.5.1 2nd stage bootloader"
    assert found(*PLAIN, (5000, again)) == [(5000, "boot begins")]


def test_field_the_ready_line_again_is_a_restart() -> None:
    """A bootloader and a start-up that print nothing leave the product's own lines."""
    assert found(*PLAIN, (500, "ask"), (900, "hello"), (1200, "main: ready")) == [(1200, "ready line")]
    logged = [(0, "I (10) main: scene"), (300, "I (200) main: ready"), (1500, "I (200) main: ready")]
    assert found(*logged) == [(1500, "ready line")]


def test_field_each_restart_is_one() -> None:
    """Boot lines and ready line behind the ROM's line belong to it, whoever counts that."""
    boot = [(at + 20, text) for at, text in FIRST_BOOT]
    assert found(*FIRST_BOOT, *((at + later, text) for later in (5000, 9000) for at, text in boot)) == []
    quiet = [(at + later, text) for later in (5000, 9000) for at, text in boot[1:]]
    assert [at for at, _ in found(*FIRST_BOOT, *quiet)] == [5040, 9040]


LIGHT_SLEEP = [
    line for wake in range(3) for line in stamped(12_800 + wake * 10_800, 10_020 + wake * 10_000, 20)
]


@pytest.mark.parametrize("down_ms", [150, 400, 3000])
def test_field_the_time_of_the_log_beginning_again_is_a_restart(down_ms: float) -> None:
    """Nothing of the boot is printed but the product's log, whose time is that since the boot."""
    booted = 2800 + down_ms - 120
    lines = [*PLAIN, *stamped(400, 0), *stamped(2800 + down_ms, booted, 9)]
    assert [cause for _, cause in found(*lines)] == ["time in its log"]
    asleep = [*FIRST_BOOT, *stamped(400, 20), *LIGHT_SLEEP]
    assert [at for at, _ in found(*asleep, *stamped(50_000, 49_900))] == [50_120]


@pytest.mark.parametrize(
    "lines",
    [
        # All of a boot's lines come once, in their order; a line that quotes one does not begin with it.
        [*FIRST_BOOT, *stamped(400, 20)],
        [*FIRST_BOOT, *stamped(400, 20, 9), (800, f"W (190) crashlog: the last boot: {BOOT[0]}")],
        # The log's time stands still in a light sleep, and goes on.
        [*FIRST_BOOT, *stamped(400, 20), *LIGHT_SLEEP],
        # Lines that waited in a buffer come at once, and the log goes on as before.
        [
            *(*FIRST_BOOT, *stamped(400, 20)),
            *((7800 + at / 10, f"I ({2780 + 40 * at}) env: temp=21") for at in range(125)),
            *stamped(7820, 20),
        ],
        # A ready line that comes at each connection: the time in it, or in other lines, went on.
        [PLAIN[0], *((at, f"I ({at - 20}) main: ready") for at in (300, 4000, 9000))],
        [PLAIN[0], *((at, f"[{(at - 20) / 1000:9.3f}] main: ready") for at in (300, 4000, 9000))],
        [*FIRST_BOOT[:-1], (320, "main: ready"), *stamped(400, 20, count=100), (4400, "main: ready")],
        # A ready line that came too soon once tells nothing any more, also where it comes after a while.
        [PLAIN[0], (1000, "main: ready"), (1100, "main: ready"), (9000, "main: ready")],
        [PLAIN[0], *((500 + 100 * number, "main: ready") for number in range(9))],
        # ESP_LOG's milliseconds have 32 bits.
        [
            *PLAIN,
            *(
                (at, re.sub(r"\((-?\d+)\)", lambda ms: f"({int(ms[1]) % 2**32})", text))
                for at, text in stamped(400, 2000, count=90)
            ),
        ],
        # Among lines whose time goes on: a log that was kept, in one go; once; a number that is no time; a
        # date set by SNTP, twice; two cores.
        *(
            sorted([*PLAIN, *stamped(400, 20), *odd, *stamped(2800, 20, count=80, every_ms=45)])
            for odd in (
                [(2801 + at, f"I ({at}) boot_log: kept from before") for at in range(5)],
                [(2810, "I (12) env: x")],
                [(2800 + 40 * at, f"I ({at}) main: ask seq={at}") for at in range(60)],
                [(2800 + 40 * at, f"I (12:00:0{at % 9}.123) env: temp") for at in range(60)],
                [(2800 + 40 * at, f"I ({1_700_000_000 + at}) env: temp") for at in range(60)],
                [(2800 + 40 * at, f"I ({2780 + 40 * at - 3 * (at % 2)}) env: temp") for at in range(60)],
            )
        ),
    ],
)
def test_field_what_can_be_otherwise_is_no_restart(lines: Sequence[tuple[float, str]]) -> None:
    """A first boot, sleep, a host that stood still, ready lines and times of other kinds."""
    assert found(*lines) == []


def test_field_a_prompt_that_comes_again_is_no_restart(tmp_path: Path) -> None:
    """A console prints it after each command; it is a line without an end."""
    probe = probe_of(tmp_path, "ready: {pattern: 'talk> ', within_s: 2}\n" + PAIR)
    console = console_of(["hello", b"talk> "], probe, ready=False)
    console.await_ready(probe)
    script: Any = console.console
    script._lines.extend([b"free\r\n", "free=12", b"talk> ", b"\r\n", "talk> "])
    assert [line.text for line in console.until(time.monotonic() + 0.5) if line.is_whole][-1] == "talk> "


def talk(numbers: range) -> list[str]:
    return [line for number in numbers for line in (f"ask seq={number}", f"answer seq={number}")]


def measured(product: ProductConsole, count: int) -> tuple[Sequence[int], Mapping[str, int]]:
    """Return the outcome of each pair, and what was counted."""
    assert product.probe
    assert isinstance(product.probe.measures, Between)
    columns, counts = measure_between(product, product.probe.measures, MeasuredCase(count, 0, 2.0, 500, 0))
    return columns["outcome"], counts


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
    with pytest.raises(FirmwareError, match=r"restarted .* no line of the ROM") as caught:
        measured(product, 20)
    assert "on_restart: count" in caught.value.next_step
    assert again[0][-40:] in str(caught.value) or again[1] in str(caught.value)


@pytest.mark.parametrize("rom", [[], [ROM]])
def test_field_a_counted_restart_is_counted_once(tmp_path: Path, rom: list[str]) -> None:
    """With the ROM's line and without; a question that it cut off takes no answer from behind it."""
    again = [*rom, *BOOT, "I (200) main: ready"]
    product = console(
        tmp_path, "on_restart: count\n" + PAIR, [*talk(range(5)), "ask seq=5", *again, *talk(range(5, 20))]
    )
    outcomes, counts = measured(product, 16)
    assert outcomes == (0, 0, 0, 0, 0, 1, *[0] * 10)
    assert (product.counts.restarts, counts["asked_again_count"]) == (1, 0)


@pytest.mark.parametrize("name", ["DEEPSLEEP_RESET", "DSLEEP", "SLEEP_WAKEUP"])
def test_field_deep_sleep_is_a_wake_up(tmp_path: Path, name: str) -> None:
    """It is told as what it is, as a reset is, with the way out; counted apart where the probe says so."""
    woken = [f"rst:0x5 ({name}),boot:0x13 (SPI_FAST_FLASH_BOOT)", *BOOT, "I (200) main: ready"]
    for lines, said in ((woken, "woke from deep sleep"), ([ROM], "was reset")):
        with pytest.raises(FirmwareError, match=said) as caught:
            list(console(tmp_path, PAIR, lines).until(1e18))
        assert "on_restart: count" in caught.value.next_step
    counting = console(tmp_path, "on_restart: count\n" + PAIR, [*woken, *woken])
    for _ in range(2 * len(woken)):
        assert counting.read(1e18)
    assert (counting.counts.wake_ups, counting.counts.restarts) == (2, 0)


def test_field_lines_behind_a_counted_trouble_are_measured(tmp_path: Path) -> None:
    """A watchdog's warning is read to its end, and what the product goes on with is not lost with it."""
    bark = "E (900) task_wdt: Task watchdog got triggered. The following tasks did not reset in time:"
    product = console(tmp_path, "on_restart: count\n" + PAIR, [*talk(range(3)), bark, *talk(range(3, 6))])
    assert measured(product, 6)[0] == (0,) * 6
    assert product.counts.facts()["watchdogs_count"] == 1
