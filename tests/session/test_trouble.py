# SPDX-License-Identifier: Apache-2.0
"""What a chip in trouble prints is known by the texts of ESP-IDF and of its ROM, and has an owner."""

from __future__ import annotations

import pytest

from hil.base.chips import CHIPS
from hil.base.errors import ConfigError, FirmwareError, HilError, RigError
from hil.session import trouble
from hil.session.console import plain, text_of
from hil.session.pace import ClockPace
from hil.session.trouble import Trouble, excerpt, recognise, worst
from hil.virtual.board import chips as virtual
from hil.virtual.board.panic import brownout
from hil.virtual.board.reset import Cause
from tests.session import chip_resets
from tests.session.fake_agent import FakeAgent
from tests.session.session_rig import CASE, session_with

KINDS = {
    "firmware": (trouble.RESET,),
    "rig": (trouble.POWER_LOSS, trouble.GLITCH),
    "brownout": (trouble.BROWNOUT,),
    "wake-up": (trouble.WOKE,),
}


def test_field_every_reset_cause_of_every_chip_has_its_owner() -> None:
    """Numbers decide, as names differ from chip to chip; supply, host and debugger are the rig's."""
    assert set(chip_resets.CHIPS) == set(CHIPS)
    for number, owner, name in chip_resets.CAUSES:
        kind = recognise(f"rst:{number} ({name}),boot:0x8 (SPI_FAST_FLASH_BOOT)")
        assert kind in KINDS[owner], (number, name)


def test_field_usb_of_an_esp32p4_has_the_number_of_another_chips_supply() -> None:
    """0x17 is the one number that does not mean the same everywhere: whoever plugs USB is not the supply."""
    assert recognise("rst:0x17 (CHIP_USB_UART_RESET),boot:0x30f") is trouble.POWER_LOSS
    assert recognise("rst:0x17 (POWER_GLITCH_RESET),boot:0x8") is trouble.GLITCH


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("Guru Meditation Error: Core  1 panic'ed (Interrupt wdt timeout on CPU1). ", trouble.PANIC),
        ("Guru Meditation Error: Core  0 panic'ed (Stack protection fault). ", trouble.PANIC),
        ("Core  0 register dump:", trouble.PANIC),
        ("abort() was called at PC 0x400d1234 on core 0", trouble.ABORT),
        ("terminate called after throwing an instance of 'std::bad_alloc'", trouble.ABORT),
        ("Undefined behavior of type out_of_bounds", trouble.ABORT),
        ("ESP_ERROR_CHECK failed: esp_err_t 0x103 (ESP_ERR_INVALID_STATE) at 0x400d6e07", trouble.CHECK),
        ("assert failed: tcp_output /IDF/tcp_out.c:1235 (don't call it for listen-pcbs)", trouble.ASSERT),
        ("Assert failed in bootloader_mmap, bootloader_flash.c:131 (mapped)", trouble.ASSERT),
        ("***ERROR*** A stack overflow in task Tmr Svc has been detected.", trouble.STACK),
        ("***ERROR*** A stack overflow in task my_task has been detected.", trouble.STACK),
        ("***ERROR*** A stack overflow in task  has been detected.", trouble.STACK),
        ("Stack smashing protect failure!", trouble.STACK),
        ("CORRUPT HEAP: Bad head at 0x3ffb1234. Expected 0xabba1234 got 0x00000000", trouble.HEAP),
        ("CORRUPT HEAP: multi_heap.c:432 detected at 0x3ffb1234", trouble.HEAP),
        ("Mem alloc fail. size 0x00001000 caps 0x00000804", trouble.EXHAUSTED),
        ("E (5123) task_wdt: Task watchdog got triggered. The following tasks/users did", trouble.WATCHDOG),
        ("\x1b[0;31mE (5123) task_wdt: Task watchdog got triggered. The following\x1b[0m", trouble.WATCHDOG),
        ("Brownout detector was triggered", trouble.BROWNOUT),  # to v5.1
        ("I BOD: Brownout detector was triggered", trouble.BROWNOUT),  # v5.2
        ("E BOD: Brownout detector was triggered", trouble.BROWNOUT),  # since v5.4
        ("invalid header: 0xffffffff", trouble.NO_PROGRAM),
        ("csum err:0x9a!=0x2b", trouble.NO_PROGRAM),
        ("E (87) boot: No bootable app partitions in the partition table", trouble.NO_PROGRAM),
        ("E (58) boot: load partition table error!", trouble.NO_PROGRAM),
        ("E (410) esp_image: Image hash failed - image is corrupt", trouble.NO_PROGRAM),
        ("Invalid image block, can't boot.", trouble.NO_PROGRAM),
        ("E (58) flash_parts: partition 6 invalid - offset 0x310000 size 0x100000", trouble.NO_PROGRAM),
        ("E (88) boot_comm: Image requires chip rev >= v3.0, but chip is v1.0", trouble.OTHER_CHIP),
        ("E (74) boot_comm: Image requires chip rev <= v0.99, but chip is v1.0", trouble.OTHER_CHIP),
        ("E (88) boot_comm: mismatch chip ID, expected 0, found 9", trouble.OTHER_CHIP),
        ("E (247) secure_boot_v2: Secure Boot V2 verification failed.", trouble.UNSIGNED),
        ("E (250) esp_image: Secure boot signature verification failed", trouble.UNSIGNED),
        ("Signature Check Failed", trouble.UNSIGNED),
        ("No signature block magic byte found at signature sector (found 0x0 not 0xe7).", trouble.UNSIGNED),
        ("E (321) spi_flash: Detected size(2048k) smaller than the size in the binary", trouble.LESS_MEMORY),
        ("E cpu_start: Failed to init external RAM!", trouble.LESS_MEMORY),
        ("E (87) esp_image: image at 0x110000 has invalid magic byte (nothing flashed", trouble.NO_PROGRAM),
        ("E (87) esp_image: Checksum failed. Calculated 0x4f read 0x0", trouble.NO_PROGRAM),
        ("waiting for download", trouble.DOWNLOAD),
        ("flash read err, 1000", trouble.UNREADABLE),
    ],
)
def test_field_texts_of_esp_idf_and_the_rom_are_known(line: str, kind: Trouble) -> None:
    """Each is what ESP-IDF's format strings make, blanks in a task's name included."""
    assert recognise(plain(line)) is kind


@pytest.mark.parametrize(
    "before", ["talk> ", "root# ", "Connecting....", "Connecting... ", "I (5123) wifi: conn", "90%"]
)
def test_field_a_text_may_follow_what_had_no_line_end(before: str) -> None:
    """A prompt, dots, half a log line of the other core: the panic handler begins no new line."""
    assert recognise(f"{before}Guru Meditation Error: Core  0 panic'ed") is trouble.PANIC
    assert recognise(f"{before}ESP_ERROR_CHECK failed: esp_err_t 0x103 at 0x400d6e07") is trouble.CHECK
    assert recognise(f"{before}E BOD: Brownout detector was triggered") is trouble.BROWNOUT


@pytest.mark.parametrize("before", ["", "\x00\xff", "\xe0<~", "I (5123) main: ask s", "talk> "])
def test_field_the_line_of_the_rom_may_follow_what_a_reset_cut_off(before: str) -> None:
    """Noise of a supply that comes back, half a line, a prompt: the cause is the ROM's all the same."""
    line = f"{before}rst:0x1 (POWERON_RESET),boot:0x13 (SPI_FAST_FLASH_BOOT)"
    assert trouble.is_of_rom(line)
    assert recognise(line) is trouble.POWER_LOSS


@pytest.mark.parametrize(
    "line",
    [
        "I (5) dma: burst:0x4 (words)",
        "I (5) app: last rst:0x1 (POWERON),boot:0x13 (SPI_FAST_FLASH_BOOT)",
        "I (5) app: (rst:0x1 (POWERON),boot:0x13 (SPI_FAST_FLASH_BOOT))",
        "ESP_ERROR_CHECK_WITHOUT_ABORT failed: esp_err_t 0x103 at 0x400d6e07",
    ],
)
def test_field_words_like_those_of_a_reset_are_none(line: str) -> None:
    """A log line quotes the ROM's, or ends a word with its letters; a check that does not abort goes on."""
    assert recognise(line) is None


@pytest.mark.parametrize(
    "text",
    [
        "abort() was called at PC 0x400d1234 on core 0 (2 days ago)",
        "Guru Meditation Error: Core  0 panic'ed (LoadProhibited). ",
        "assert failed: store store.c:88 (ring)",
        "***ERROR*** A stack overflow in task main has been detected.",
        "E BOD: Brownout detector was triggered",
        "rst:0xf (RTCWDT_BROWN_OUT_RESET)",
        "ESP_ERROR_CHECK failed: esp_err_t 0x103",
        "invalid header: 0xffffffff",
        "Rebooting...",
    ],
)
@pytest.mark.parametrize(
    "before",
    ["W (190) crashlog: it was: ", "last crash: ", "W (190) crashlog: [", 'I (5) log: "', "> I said "],
)
def test_field_a_log_line_about_a_crash_is_no_crash(before: str, text: str) -> None:
    """A product that tells of an earlier crash runs."""
    assert recognise(before + text) is None


def test_field_a_long_line_is_searched_at_its_end_alone() -> None:
    """What a chip prints is short; it may follow a line of any length that had no end."""
    text = "Guru Meditation Error: Core  0 panic'ed (LoadProhibited). "
    assert recognise("x" * 65_000 + text) is trouble.PANIC
    assert recognise("x" * 65_000 + text + "y" * trouble.CHARACTERS_MAX) is None


def test_field_what_a_virtual_board_prints_is_known() -> None:
    """Its faults have the owners that a chip's have."""
    known = {kind for line in brownout().text.splitlines() if (kind := recognise(line))}
    assert known == {trouble.BROWNOUT}
    for chip in virtual.CHIPS.values():
        for cause, text in chip.rom.resets.items():
            wanted = trouble.POWER_LOSS if cause is Cause.POWER_ON else trouble.RESET
            assert recognise(f"rst:{text},boot:{chip.rom.flash_boot}") is wanted


def test_field_an_incident_is_named_by_its_cause() -> None:
    """The check that failed goes before the abort() that it called, with the error's name and place."""
    lines = [
        "ESP_ERROR_CHECK failed: esp_err_t 0x1105 (ESP_ERR_NVS_NOT_ENOUGH_SPACE) at 0x400d6e07",
        'file: "./main/store.c" line 88',
        "I (5200) wifi: a line of the other core",
        "func: store_config",
        'expression: nvs_set_blob(h, "cfg", p, n)',
        "",
        "abort() was called at PC 0x400d6e0a on core 0",
        "Backtrace: 0x40081a2e:0x3ffb5c10",
        "Rebooting...",
    ]
    assert worst(lines) is trouble.CHECK
    for text in ("ESP_ERR_NVS_NOT_ENOUGH_SPACE", "store.c", "store_config", "nvs_set_blob", "Backtrace"):
        assert text in excerpt(lines)
    assert "wifi" not in excerpt(lines)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("E (250) esp_image: Secure boot signature verification failed", trouble.UNSIGNED),
        ("E (88) boot_comm: Image requires chip rev >= v3.0, but chip is v1.0", trouble.OTHER_CHIP),
    ],
)
def test_field_an_image_that_a_boot_loader_refuses_is_named_by_the_refusal(line: str, kind: Trouble) -> None:
    """That no image is left to boot follows from it; to flash the same again is no way out."""
    assert worst([line, "E (312) boot: No bootable app partitions in it"]) is kind
    assert kind.error is ConfigError
    assert "hil board flash" not in kind.next_step


def test_the_tasks_that_a_watchdog_waited_for_are_quoted() -> None:
    """Who did not reset the watchdog, and who ran instead."""
    lines = [
        "E (5123) task_wdt: Task watchdog got triggered. The following tasks/users did not reset it in time:",
        "E (5123) task_wdt:  - IDLE0 (CPU 0)",
        "E (5123) task_wdt: Tasks currently running:",
        "E (5123) task_wdt: CPU 0: greedy",
        "E (5123) task_wdt: Print CPU 0 (current core) backtrace",
    ]
    assert worst(lines) is trouble.WATCHDOG
    assert "IDLE0" in excerpt(lines)
    assert "greedy" in excerpt(lines)


def test_bytes_that_are_no_utf8_keep_their_value() -> None:
    """None is lost, and those around them are read as the text they are."""
    assert text_of("grüß °C 准备".encode() + b"\xb0C\xff") == "grüß °C 准备°Cÿ"


BEHIND = r"The board's clock went 2\.0 s while the host's went [45]\.\d s\. .*leave the case out"
UNSAID = r"instead of samples: ended early; the case is \S+\. Log"


def second_run(agent: FakeAgent, *, uptimes_s: tuple[int, int], owner: str, boots: bool = False) -> HilError:
    """Return how a case fails that takes 4 s of the host's clock, after one that does not fail."""
    session, _, _ = session_with(agent)
    agent.environment = {"uptime_us": uptimes_s[0] * 1_000_000}
    session.run_case(CASE, timeout_s=10.0)
    agent.environment = {"uptime_us": uptimes_s[1] * 1_000_000}
    agent.measuring_s, agent.status, agent.failure = 4.0, "ESP_FAIL", f" owner={owner} error=ended%20early"
    if boots:
        agent.reset()
        session.wait_ready(timeout_s=30.0)
    with pytest.raises(HilError) as caught:
        session.run_case(CASE, timeout_s=10.0)
    return caught.value


def test_a_clock_that_falls_behind_is_in_the_sentence() -> None:
    """An emulated chip on a busy host lags behind its peers: the sentence has both clocks, and a way out."""
    error = second_run(FakeAgent(), uptimes_s=(10, 12), owner="rig")
    assert isinstance(error, RigError)
    with pytest.raises(RigError, match=BEHIND):
        raise error


@pytest.mark.parametrize(
    ("uptimes_s", "owner", "boots", "kind"),
    [
        ((10, 14), "rig", False, RigError),  # beside the host's
        ((10, 12), "firmware", False, FirmwareError),  # a slow clock is no excuse
        ((1, 2), "rig", True, RigError),  # of two boots: they have no time in common
    ],
)
def test_a_clock_is_not_blamed_for_what_it_has_not_done(
    uptimes_s: tuple[int, int], owner: str, boots: bool, kind: type[HilError]
) -> None:
    """Where the clocks agree, the firmware is at fault, or the board booted, the sentence is as ever."""
    error = second_run(FakeAgent(), uptimes_s=uptimes_s, owner=owner, boots=boots)
    with pytest.raises(kind, match=UNSAID):
        raise error


def test_an_end_without_an_uptime_says_nothing_of_clocks() -> None:
    """A firmware that does not tell its uptime is measured all the same."""
    pace = ClockPace()
    assert pace.elapsed("a", {}, 1.0) is None
    assert pace.elapsed("a", {"uptime_us": 5_000_000}, 2.0) is None
    elapsed = pace.elapsed("a", {"uptime_us": 6_000_000}, 3.0)
    assert elapsed is not None
    assert (elapsed.board_s, elapsed.host_s, elapsed.fell_behind) == (1.0, 1.0, False)
