# SPDX-License-Identifier: Apache-2.0
"""A board that panics, resets, falls silent, never stops talking or never starts: an error with its owner."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import pytest

from hil.base.errors import ConfigError, FirmwareError, HilError, RigError
from hil.session import AgentSession
from tests.session.fake_agent import FakeAgent, FakeConsole, no_choice
from tests.session.session_rig import CASE, run, session_with

PANIC = [
    "Guru Meditation Error: Core  0 panic'ed (LoadProhibited). Exception was unhandled.",
    "",
    "Core  0 register dump:",
    "PC      : 0x400d1234  PS      : 0x00060e30",
    "Backtrace: 0x400d1234:0x3ffb5e10 0x400d2345:0x3ffb5e30",
    "Rebooting...",
]
RISCV_PANIC = [
    "Guru Meditation Error: Core  0 panic'ed (Load access fault). Exception was unhandled.",
    "",
    "Core  0 register dump:",
    "MEPC    : 0x42007a5e  RA      : 0x42007a4c  SP      : 0x3fc96f60  GP      : 0x3fc8c000",
    "",
    "Stack memory:",
    *(f"{0x3FC96F60 + 32 * row:08x}:" + " 0x00000000" * 8 for row in range(32)),
    "",
    "ELF file SHA256: 0123456789",
    "",
    "Rebooting...",
]


@pytest.mark.parametrize(
    ("text", "error", "sentence"),
    [
        (PANIC, FirmwareError, r"panicked.*LoadProhibited.*Backtrace: 0x400d1234.*out/bench-1.log"),
        (["abort() was called at PC 0x400d1234 on core 0", "Rebooting..."], FirmwareError, "called abort"),
        (["assert failed: bench_run publish.c:42 (ring)"], FirmwareError, "assertion.*publish.c:42"),
        (["E (5) app: no", "Memory allocation failed"], FirmwareError, "ran out of heap"),
        (["***ERROR*** A stack overflow in task a has been detected."], FirmwareError, "overflowed a stack"),
        (["E (51) task_wdt: Task watchdog got triggered. The following"], FirmwareError, "task watchdog"),
        (["Brownout detector was triggered", "", "rst:0xf (BROWNOUT_RST)"], RigError, "browned out.*supply"),
        (["rst:0x1 (POWERON_RESET),boot:0x13"], RigError, "lost its power.*POWERON.*cable, hub.*DTR and RTS"),
        (["rst:0x15 (USB_UART_CHIP_RESET),boot:0x8"], RigError, "reset from outside"),
        (["rst:0xc (SW_CPU_RESET),boot:0x13"], FirmwareError, "was reset.*SW_CPU_RESET"),
        (["rst:0x8 (TG1WDT_SYS_RESET),boot:0x13"], FirmwareError, "was reset.*TG1WDT"),
        (["rst:0x10 (RTCWDT_RTC_RESET),boot:0x13"], FirmwareError, "was reset.*look for what reset"),
    ],
)
def test_trouble_on_the_board_is_quoted(text: list[str], error: type[HilError], sentence: str) -> None:
    """What the board says when it dies is the error, with its owner."""
    with pytest.raises(error, match=sentence):
        run(dying(text))


def test_noise_in_a_quoted_line_is_replaced() -> None:
    """A sentence is one line of text, whatever the wire did to the board's; colours are left out."""
    agent = FakeAgent(
        on_measured=lambda _: ["\x1b[0;31mGuru Meditation Error: Load\x85\x00\x0bProhibited\x9f\x1b[0m"]
    )
    with pytest.raises(FirmwareError) as caught:
        run(agent)
    assert "Load\ufffd\ufffd\ufffdProhibited\ufffd" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "way_out"),
    [
        (PANIC, "decode the backtrace with the ELF of this build (addr2line)"),
        (RISCV_PANIC, "decode MEPC and RA with the ELF of this build (riscv32-esp-elf-addr2line)"),
        (PANIC[:1], "decode the addresses in it"),
    ],
)
@pytest.mark.parametrize("booting", [True, False])
def test_the_way_out_of_a_panic_is_the_architectures(text: list[str], way_out: str, booting: bool) -> None:
    """A RISC-V chip prints no backtrace; what it prints is what there is to decode, at boot as in use."""
    session, _console = saying(text)
    panic = partial(session.wait_ready, timeout_s=8.0) if booting else partial(run, dying(text))
    with pytest.raises(FirmwareError) as caught:
        panic()
    assert way_out in str(caught.value)


def saying(text: list[str]) -> tuple[AgentSession, FakeConsole]:
    """Return a session with a board that says ``text`` and nothing more, and its console."""
    console = FakeConsole(FakeAgent())
    console.silent = True
    console.send(text)
    return AgentSession(console, "bench-1", clock=console.clock), console


def dying(text: list[str]) -> FakeAgent:
    """Return an agent that says ``text`` instead of the samples."""
    return FakeAgent(on_measured=lambda _: text)


def test_a_reboot_is_noticed_by_its_hello_or_its_line_numbers() -> None:
    """A second hello means that the samples are gone, even if nothing else was printed; numbers that start
    again do, even if the hello got lost."""
    with pytest.raises(FirmwareError, match=r"was reset \(reset reason SW\)"):
        run(FakeAgent(on_measured=FakeAgent.reset, restarts_silently=True))
    agent = FakeAgent(measuring_s=1.0, on_measured=lambda agent: agent.reset()[3:], restarts_silently=True)
    with pytest.raises(FirmwareError, match="was reset"):
        run(agent)


@pytest.mark.parametrize(
    ("reason", "error", "sentence"),
    [
        ("POWERON", RigError, "lost its power or was reset from outside.*cable, hub and supply"),
        ("EXT", RigError, "reset from outside.*DTR and RTS"),
        ("BROWNOUT", RigError, "browned out.*supply"),
        ("PANIC", FirmwareError, "was reset"),
        *((reason, RigError, "reset from outside") for reason in ("SDIO", "USB", "JTAG")),
        *((reason, RigError, "glitch") for reason in ("EFUSE", "PWR_GLITCH")),
        ("CPU_LOCKUP", FirmwareError, "was reset"),
        ("WDT", FirmwareError, "look for what reset the board"),
        ("TASK_WDT", FirmwareError, "was reset"),
    ],
)
def test_field_a_second_hello_tells_whose_reset_it_is(
    reason: str, error: type[HilError], sentence: str
) -> None:
    """Its reset reason decides: cable, supply and other programs are the rig's, the rest the firmware's."""

    def reset(agent: FakeAgent) -> list[str]:
        agent.edit_line = lambda line: line.replace("reset_reason=SW", f"reset_reason={reason}")
        return agent.reset()

    with pytest.raises(error, match=sentence) as caught:
        run(FakeAgent(on_measured=reset, restarts_silently=True))
    assert f"(reset reason {reason})" in str(caught.value)


@pytest.mark.parametrize(
    ("reason", "lines", "error", "sentence"),
    [
        ("PANIC", PANIC, FirmwareError, r"panicked as it booted, .*\(reset reason PANIC\): Guru"),
        ("TASK_WDT", [], FirmwareError, r"was reset as it booted, .*\(reset reason TASK_WDT\)"),
        ("CPU_LOCKUP", [], FirmwareError, r"was reset as it booted, .*\(reset reason CPU_LOCKUP\)"),
        ("BROWNOUT", [], RigError, r"browned out as it booted"),
    ],
)
def test_a_board_that_comes_up_at_its_second_try_has_not_come_up(
    reason: str, lines: list[str], error: type[HilError], sentence: str
) -> None:
    """Though it says hello then: who has reset it knows that the crash was of that boot."""
    agent = FakeAgent()
    agent.edit_line = lambda line: line.replace("reset_reason=SW", f"reset_reason={reason}")
    console = FakeConsole(agent)
    console.send(lines)
    session = AgentSession(console, "bench-1", clock=console.clock)
    session.wait_ready(timeout_s=8.0)
    with pytest.raises(error, match=sentence):
        session.check_how_it_booted()
    sound = AgentSession(FakeConsole(FakeAgent()), "bench-1", clock=console.clock)
    sound.wait_ready(timeout_s=8.0)
    sound.check_how_it_booted()


def test_the_first_cause_is_repeated_until_a_new_hello() -> None:
    """After a panic every call says so, and a new hello mends it."""
    agent = FakeAgent(on_measured=lambda _: PANIC)
    session, _, _ = session_with(agent)
    for call in (lambda: session.run_case(CASE, timeout_s=10.0), session.info):
        with pytest.raises(FirmwareError, match="LoadProhibited"):
            call()
    agent.reset()
    agent.on_measured = None
    session.wait_ready(timeout_s=10.0)
    assert session.run_case(CASE, timeout_s=10.0).rows == 700


def test_silence_is_the_rigs_fault_and_a_mute_agent_the_firmwares() -> None:
    """Not a byte: power, cable, port. Log text but no answer: the firmware."""
    session, console, _ = session_with(FakeAgent())
    console.silent = True
    with pytest.raises(RigError, match=r"'info' on board bench-1: not a byte came within 10.0 s.*power"):
        session.info()
    session, console, _ = session_with(FakeAgent())
    console.silent = True
    console.send(["I (99) app: still here"])
    with pytest.raises(
        FirmwareError, match=r"no answer within 10.0 s, although the board prints.*still here"
    ):
        session.info()


def test_lines_that_got_lost_are_the_rigs_fault() -> None:
    """A board that does not answer, and of which a line is missing, may have answered."""
    agent = FakeAgent()
    session, console, _ = session_with(agent)
    console.silent = True
    _lost, arrived = agent.line("R", "other ok"), agent.line("R", "other ok")
    console.send([arrived])
    with pytest.raises(RigError, match=r"no answer within 10.0 s; 0 lines arrived damaged and 1 not at all"):
        session.info()


def test_a_run_that_takes_too_long_is_an_error_that_says_so() -> None:
    """At the deadline the board is asked, and its answer is in the sentence."""
    agent = FakeAgent(measuring_s=100.0)
    with pytest.raises(
        FirmwareError, match=r"did not finish example/count=3,mode=fast within 10.0 s.*running"
    ):
        run(agent)


def test_the_bursts_of_a_run_share_its_timeout() -> None:
    """Each of two bursts takes 6 s: the second is not there when the run's 10 s are over."""
    with pytest.raises(FirmwareError, match=r"did not finish .* within 4\.0 s"):
        run(FakeAgent(bursts=no_choice(2), measuring_s=6.0))


def test_a_failed_bench_names_its_error() -> None:
    """A status is not an empty series. What comes of it is said before the case, whose name is long."""
    said = (
        r"^example on board bench-1 ended with ESP_ERR_NO_MEM instead of samples; the case is example/count=3"
    )
    with pytest.raises(FirmwareError, match=said):
        run(FakeAgent(status="ESP_ERR_NO_MEM"))


@pytest.mark.parametrize(
    ("owner", "error"),
    [
        (" owner=rig", RigError),
        (" owner=configuration", ConfigError),
        (" owner=firmware", FirmwareError),
        (" owner=neighbour", FirmwareError),
        ("", FirmwareError),
    ],
)
def test_a_failed_bench_says_whose_fault_it_is(owner: str, error: type[HilError]) -> None:
    """The end line's owner makes the error, its sentence is quoted; without an owner it is the firmware."""
    agent = FakeAgent(status="ESP_FAIL", failure=f"{owner} error=no%20air%2A")
    with pytest.raises(
        error, match=r"on board bench-1 .*ESP_FAIL instead of samples: no air\*; the case .* Log: out/b"
    ):
        run(agent)
    assert agent.acknowledged == [1]


class FloodingConsole(FakeConsole):
    """A board that prints a line at every read, and never stops; ``stop_at`` is when it is stopped."""

    flood: Callable[[], str] | None = None
    stop_at: float = math.inf

    def read(self, timeout_s: float) -> bytes:
        if self.now >= self.stop_at:
            raise KeyboardInterrupt
        if self.flood is None:
            return super().read(timeout_s)
        assert self.now < 1000.0, "the session listens for ever"
        self.now += 0.01
        return f"{self.flood()}\n".encode()


def flooded(agent: FakeAgent, flood: Callable[[], str]) -> tuple[AgentSession, FloodingConsole]:
    console = FloodingConsole(agent)
    session = AgentSession(console, "bench-1", clock=console.clock, log_path="out/bench-1.log")
    session.wait_ready(timeout_s=30.0)
    console.flood = flood
    console.silent = True  # its agent does not get round to answering
    return session, console


@pytest.mark.parametrize("kind", ["log", "marked"])
def test_a_firmware_that_never_stops_talking_is_an_error_at_the_deadline(kind: str) -> None:
    """Log lines or marked lines without end are no reason to wait for ever: it ends as in silence. A flood
    does not hide a request to stop, which is honoured at the next read."""
    agent = FakeAgent()
    line = (lambda: "W (9) app: again") if kind == "log" else (lambda: agent.line("R", "other ok"))
    session, console = flooded(agent, line)
    before = console.now
    with pytest.raises(FirmwareError, match=r"no answer within 10.0 s, although the board prints"):
        session.info()
    assert console.now - before < 11.0
    before = console.now
    with pytest.raises(FirmwareError, match=r"no hello came; its last lines"):
        session.wait_ready(timeout_s=20.0)
    assert console.now - before < 21.0
    console.stop_at = console.now + 2.0
    with pytest.raises(KeyboardInterrupt):
        session.info()
    assert console.now < console.stop_at + 0.1


@pytest.mark.parametrize(
    ("text", "error", "sentence"),
    [
        ([], RigError, "not a byte came"),
        (["waiting for download"], RigError, "download mode"),
        (["invalid header: 0xffffffff"] * 3, RigError, "no bootable image.*hil board flash"),
        (["\x80\xfe\x9f\x83" * 9], RigError, "unreadable.*baud"),
        (["Brownout detector was triggered", "rst:0xf (BROWNOUT_RST)"] * 5, RigError, "browned out"),
        (["rst:0x1 (POWERON_RESET),boot:0x13"] * 8, RigError, "lost its power.*while booting"),
        (["rst:0x1 (POWERON_RESET),boot:0x13", "I (30) app: hangs"], FirmwareError, "no hello came.*hangs"),
        (["rst:0x1 (POWERON_RESET),boot:0x3 (DOWNLOAD_BOOT(UART0))"], RigError, "download mode"),
        (["rst:0x1 (POWERON_RESET),boot:0x13", *PANIC], FirmwareError, "panicked while booting"),
        (PANIC * 5, FirmwareError, "panicked while booting.*LoadProhibited"),
        (
            [
                "ESP_ERROR_CHECK failed: esp_err_t 0x103 (ESP_ERR_INVALID_STATE) at 0x400d6e07",
                'file: "./main/store.c" line 88',
                "abort() was called at PC 0x400d6e0a on core 0",
                "Rebooting...",
            ],
            FirmwareError,
            "failed an ESP_ERROR_CHECK while booting: .*INVALID_STATE.*store.c. line 88",
        ),
        (["flash read err, 1000"], RigError, "cannot read its flash"),
        (
            [
                "E (321) spi_flash: Detected size(2048k) smaller than the size in the binary image",
                "assert failed: __esp_system_init_fn_init_flash startup_funcs.c:165 (flash_ret == ESP_OK)",
            ],
            ConfigError,
            "lacks memory that its build expects while booting: .*2048k",
        ),
        (["I (30) app: some other firmware"], FirmwareError, "no hello came.*some other firmware"),
    ],
)
def test_a_board_without_agent_is_explained(text: list[str], error: type[HilError], sentence: str) -> None:
    """Why no hello came is read off what the board printed."""
    session, console = saying(text)
    if not text:
        assert console.read(0.0) == b""
    with pytest.raises(error, match=sentence):
        session.wait_ready(timeout_s=8.0)


def test_a_board_in_download_mode_is_not_waited_for() -> None:
    """A ROM that waits for a download says nothing more: three seconds of that are enough."""
    session, console = saying(
        ["rst:0x1 (POWERON_RESET),boot:0x3 (DOWNLOAD_BOOT(UART0))", "waiting for download"]
    )
    before = console.clock()
    with pytest.raises(RigError, match="download mode"):
        session.wait_ready(timeout_s=60.0)
    assert console.clock() - before < 6.0  # of the fake's own clock


def test_an_unknown_protocol_version_is_named() -> None:
    """A board that speaks none of our versions is a mismatch of builds, and both sides are named."""
    console = FakeConsole(FakeAgent(proto=(3, 4)))
    with pytest.raises(ConfigError, match="speaks protocol 3 to 4, this host 1"):
        AgentSession(console, "bench-1", clock=console.clock).wait_ready(timeout_s=5.0)
