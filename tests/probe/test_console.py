# SPDX-License-Identifier: Apache-2.0
"""A product's console: ready, in trouble, or silent; and whose fault it is that a pattern matches nothing.

A restart that the ROM's line does not show, and what looks like a restart and is none.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from hil.base.errors import ConfigError, FirmwareError, HilError, RigError
from hil.probe.console import PAUSE_S, ConsoleLine, ProductConsole, nearest
from hil.probe.measuring import MeasuredCase, measure_between
from hil.probe.probe_file import Between, BootRows, Pattern, Values
from hil.probe.restarts import RestartWatch
from tests.probe.scripted import Script, console_of, probe_of, skip_waiting

PANIC = (
    "Guru Meditation Error: Core  0 panic'ed (LoadProhibited). Exception was unhandled.",
    "Backtrace: 0x400d1234:0x3ffb0000",
    "Rebooting...",
)


@pytest.fixture(autouse=True)
def _skip_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    skip_waiting(monkeypatch)


def test_it_is_ready_by_its_line(tmp_path: Path) -> None:
    """What the chip prints of its reset before is no restart."""
    probe = probe_of(tmp_path, "boot: {to: 'a'}\n")
    console = console_of(["rst:0x1 (POWERON_RESET),boot:0x13", "I (300) main: hello", "net up"], ready=False)
    assert console.await_ready(probe).text == "net up"
    assert console.is_ready
    assert console.counts.restarts == 0


NO_NETWORK = "W (9) wifi: no network 'plant' in the air"
ASSERTED = "assert failed: __esp_system_init_fn_init_flash startup_funcs.c:165 (flash_ret == ESP_OK)"
NONE_LEFT = "E (312) boot: No bootable app partitions in the partition table"
HEADERS = ("rst:0x10 (RTCWDT_RTC_RESET),boot:0x13", *["invalid header: 0xffffffff"] * 3)


@pytest.mark.parametrize(
    ("lines", "error", "said"),
    [
        # Not a byte: cable, power, port; the firmware cannot be judged by it.
        ([], RigError, "board b1: .* within 1 s"),
        # Lines came: one is like the pattern, or none is.
        (["I (10) boot: hello", "got address: 10.77.0.12"], ConfigError, "2 lines .*got address: 10.77.0.12"),
        (["x1", "x2"], FirmwareError, "2 lines came"),
        # A virtual board's station says which network would not have it, until it was let in.
        ([NO_NETWORK, "x"], FirmwareError, "network 'plant', which the rack"),
        (["W (9) wifi: another password than that of network 'hil'"], FirmwareError, "another pass"),
        (
            [NO_NETWORK, "I (99) wifi: connected with hil, aid = 1"],
            FirmwareError,
            "(?s)^(?!.*which the rack).*2 lines",
        ),
        (PANIC, FirmwareError, "panicked before it was ready: Guru Meditation"),
        (
            ["rst:0xc (SW_CPU_RESET),boot:0x13", "E BOD: Brownout detector was triggered"],
            RigError,
            "browned out",
        ),
        (HEADERS, RigError, "no bootable image .*0xffffffff"),
        (HEADERS * 2, RigError, "no bootable image .* again and again"),
        (["flash read err, 1000", "ets_main.c 371 "], RigError, "cannot read its flash"),
        (
            ["E (321) spi_flash: Detected size(2048k) smaller than the size in the binary image", ASSERTED],
            ConfigError,
            "lacks memory .*2048k.*FLASHSIZE",
        ),
        (
            ["E cpu_start: Failed to init external RAM!", "abort() was called at PC 0x420044ab on core 0"],
            ConfigError,
            "lacks memory .*CONFIG_SPIRAM",
        ),
        (
            ["E (250) esp_image: Secure boot signature verification failed", NONE_LEFT],
            ConfigError,
            "refuses an image by its signature",
        ),
        (["rst:0x1 (POWERON),boot:0x8"] * 3, RigError, "lost its power"),
        (
            ["rst:0x1 (POWERON),boot:0x3 (DOWNLOAD_BOOT(UART0))", "waiting for download"],
            RigError,
            "download mode",
        ),
        (["rst:0x10 (RTCWDT_RTC_RST),boot:0x8"] * 6, FirmwareError, "was reset again and again.*RTCWDT"),
        (["rst:0x5 (DSLEEP),boot:0x8"] * 6, FirmwareError, "woke from deep sleep again .*on_restart: count"),
        (["rst:0xc (SW_CPU),boot:0x8", "x"], FirmwareError, "2 lines came"),
    ],
)
def test_field_trouble_before_the_ready_line_has_its_owner(
    tmp_path: Path, lines: list[str], error: type[HilError], said: str
) -> None:
    """A supply, a blank flash and a loop of resets are told, not the pattern that no line matched. Else
    silence is the rig's, a line that is nearly right the configuration's, and others are the firmware's."""
    probe = probe_of(tmp_path, "ready: {pattern: 'got adress: [0-9.]+', within_s: 1}\nboot: {to: 'a'}\n")
    with pytest.raises(error, match=said):
        console_of(lines, ready=False).await_ready(probe)


@pytest.mark.parametrize(
    ("lines", "error", "said"),
    [
        ([*PANIC, "later"], FirmwareError, "panicked while it was measured: Guru Meditation"),
        (["rst:0x17 (CHIP_USB_UART_RESET),boot:0x30f"], RigError, "reset from outside"),
        (["rst:0xf (BROWN_OUT_RST),boot:0xa"], RigError, "browned out"),
        # The error's name and place come before the abort() that ended it.
        (
            [
                "ESP_ERROR_CHECK failed: esp_err_t 0x1105 (ESP_ERR_NVS_NOT_ENOUGH_SPACE) at 0x400d6e07",
                *['file: "./main/store.c" line 88', "func: store_config", ""],
                *["abort() was called at PC 0x400d6e0a on core 0", "Rebooting..."],
            ],
            FirmwareError,
            r"ESP_ERROR_CHECK .*ESP_ERR_NVS_NOT_ENOUGH_SPACE.*store\.c. line 88.*store_config",
        ),
    ],
)
def test_field_trouble_of_a_measured_product_has_its_owner(
    tmp_path: Path, lines: list[str], error: type[HilError], said: str
) -> None:
    """A USB reset and a brownout are the rig's; a crash is quoted by its cause."""
    with pytest.raises(error, match=said):
        list(console_of(lines, probe_of(tmp_path, "boot: {to: 'a'}\n")).until(1e18))


def test_field_what_a_running_product_prints_is_no_trouble(tmp_path: Path) -> None:
    """A log line about an earlier crash, and words that only a ROM's mean an empty flash by."""
    probe = probe_of(tmp_path, "boot: {to: 'a'}\n")
    past = "W (190) crashlog: before this boot: abort() was called at PC 0x400d1234 on core 0 (2 days ago)"
    console = console_of([past, "invalid header: 0x12"], probe)
    deadline = time.monotonic() + 0.3
    assert [line.text for line in console.until(deadline)] == [past, "invalid header: 0x12"]


def test_field_a_prompt_is_the_ready_line(tmp_path: Path) -> None:
    """It has no line end; its time is that of its last byte, not of the pause by which it is known."""
    probe = probe_of(tmp_path, "ready: {pattern: 'talk> $', within_s: 5}\nboot: {to: 'talk> $'}\n")
    console = console_of(["Type 'help'", b"talk> "], ready=False)
    began_ns = time.monotonic_ns()
    line = console.await_ready(probe)
    assert line.text == "talk> "
    assert line.time_ns - began_ns < time.monotonic_ns() - began_ns - PAUSE_S * 0.9e9


def test_field_an_unfinished_line_is_quoted_and_logged(tmp_path: Path) -> None:
    """What came without an end is what the product said last."""
    probe = probe_of(tmp_path, "ready: {pattern: 'the door opens', within_s: 1}\nboot: {to: 'a'}\n")
    console = console_of([b"Connecting to the panel...."], ready=False)
    logged: list[str] = []
    console.log = logged.append
    console.__post_init__()
    with pytest.raises(FirmwareError, match=r"1 lines .*'Connecting to the panel\.\.\.\.'"):
        console.await_ready(probe)
    with pytest.raises(FirmwareError, match=r"0 lines .*'Connecting to the panel\.\.\.\.'"):
        raise console.never(probe.ready, "watched", [])
    assert logged == []
    console.close()
    assert logged == ["Connecting to the panel...."]


def test_field_a_line_is_matched_once_however_often_it_pauses(tmp_path: Path) -> None:
    """What a pattern found at a pause it does not find again; numbers wait for the line's end."""
    probe = probe_of(tmp_path, r"values: {line: 'free=(?P<free_bytes>\d+)'}" + "\n")
    assert isinstance(probe.measures, Values)
    prompt = Pattern("talk> ", "", re.compile("talk> "))
    done = Pattern("done", "", re.compile("done"))
    console = console_of([], probe, ready=False)
    console.console = Script([b"talk> free=12", b"34", b" done\r\n"], gap_s=PAUSE_S + 0.1)
    console.__post_init__()
    lines = list(console.until(time.monotonic() + 1.5))
    assert [line.text for line in lines] == ["talk> free=12", "talk> free=1234", "talk> free=1234 done"]
    assert [bool(line.search(prompt)) for line in lines] == [True, False, False]
    assert [bool(line.search(done)) for line in lines] == [False, False, True]
    found = [match["free_bytes"] for line in lines if (match := line.search(probe.measures.line))]
    assert found == ["1234"]
    assert console.lines == lines[-1:]


def test_restarts_are_counted_where_the_probe_says_so(tmp_path: Path) -> None:
    """A panic and the reset behind it are one of each; a power loss is the rig's all the same."""
    probe = probe_of(tmp_path, "on_restart: count\nboot: {to: 'a'}\n")
    lines = [*PANIC, "rst:0xc (SW_CPU_RESET),boot:0x13", "up again", "rst:0x1 (POWERON_RESET),boot:0x13"]
    console = console_of(lines, probe)
    with pytest.raises(RigError, match="lost its power"):
        list(console.until(1e18))
    facts = {"restarts_count": 1, "wake_ups_count": 0, "panics_count": 1, "watchdogs_count": 0}
    assert console.counts.facts() == facts


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
    assert isinstance(measures, BootRows)
    texts = ("[ 1] mem   free=1", "[ 2] pub   ack sequence=17", "")
    near, likeness = nearest(measures.end, [ConsoleLine(0, text) for text in texts])
    assert near == "[ 2] pub   ack sequence=17"
    assert likeness > 0.6


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
