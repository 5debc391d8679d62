# SPDX-License-Identifier: Apache-2.0
"""A product's console: ready, in trouble, or silent; and whose fault it is that a pattern matches nothing."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, FirmwareError, HilError, RigError
from hil.probe.console import PAUSE_S, ConsoleLine, nearest
from hil.probe.probe_file import BootRows, Pattern, Values
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
    """A supply, a blank flash and a loop of resets are told, not the pattern that no line matched."""
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
