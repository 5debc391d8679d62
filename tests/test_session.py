"""A session gets exact data out of a bad console, or a clear error; never a shorter series."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hil.errors import ConfigError, FirmwareError, HilError, RigError
from hil.model import Case, Series
from hil.session import AgentSession
from tests.fake_agent import FIRMWARE_SHA256, RULER_HASH, Columns, FakeAgent, FakeConsole, Noise

CASE = Case(bench="example", parameters={"count": 3, "mode": "fast"})
LONG: Columns = {
    "planned_us": [20_000 * row for row in range(1500)],
    "done_us": [20_000 * row + row * row % 9000 for row in range(1500)],
}


def session_with(
    agent: FakeAgent, *, up: Noise | None = None, down: Noise | None = None
) -> tuple[AgentSession, FakeConsole, list[str]]:
    """Return a session that has said hello, its console, and the log."""
    console = FakeConsole(agent, up=up, down=down)
    log: list[str] = []
    session = AgentSession(console, "bench-1", log.append, clock=console.clock, log_path="out/bench-1.log")
    session.wait_ready(timeout_s=30.0)
    return session, console, log


def run(agent: FakeAgent, *, up: Noise | None = None, down: Noise | None = None) -> Series:
    return session_with(agent, up=up, down=down)[0].run_case(CASE, timeout_s=10.0)


def exactly(columns: Columns) -> dict[str, tuple[int, ...]]:
    return {name: tuple(values) for name, values in columns.items()}


def test_a_case_comes_back_whole() -> None:
    """All that the board said of a case is in the series."""
    agent = FakeAgent(bursts=[LONG], warmup_rows=7)
    series = run(agent)
    assert series.columns == exactly(LONG)
    assert (series.case, series.warmup_rows, series.clock) == (CASE, 7, "esp_timer")
    assert (series.firmware_sha256, series.ruler_hash) == (FIRMWARE_SHA256, RULER_HASH)
    assert (series.protocol_version, series.device["sched"]) == (1, "freertos")
    assert agent.acknowledged == [1]


def test_bursts_are_one_series() -> None:
    """A run in bursts is merged in order, each burst acknowledged before the next begins."""
    bursts = [{"x_us": list(range(base, base + 40))} for base in (0, 1000, 2000)]
    agent = FakeAgent(bursts=bursts, warmup_rows=4)
    series = run(agent)
    assert series.columns == {"x_us": (*range(40), *range(1000, 1040), *range(2000, 2040))}
    assert (series.warmup_rows, agent.acknowledged) == (4, [1, 2, 3])
    assert series.device["heap_free_bytes"] == 997  # the last burst's


def test_nothing_is_sent_while_the_board_measures() -> None:
    """Between the reply to `run` and the acknowledgement the host is silent."""
    agent = FakeAgent(measuring_s=9.0)
    session, console, _ = session_with(agent)
    session.run_case(CASE, timeout_s=10.0)
    after_run = console.written.split(b" run ")[1]
    assert after_run.count(b"\n") == 2  # the end of `run`, and `ack`


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 10_000),
    drop=st.floats(0, 0.3),
    repeat=st.floats(0, 0.5),
    corrupt=st.floats(0, 0.3),
    truncate=st.floats(0, 0.2),
    lose_newline=st.floats(0, 0.2),
)
def test_a_bad_console_yields_exact_data_or_an_error(
    seed: int, drop: float, repeat: float, corrupt: float, truncate: float, lose_newline: float
) -> None:
    """Whatever is lost, repeated, changed or cut, both ways: exact data, or an error of the rig."""
    noise = Noise(seed, drop, repeat, corrupt, truncate, lose_newline)
    agent = FakeAgent(bursts=[LONG, {name: values[:90] for name, values in LONG.items()}])
    try:
        series = run(agent, up=noise, down=replace(noise, seed=seed + 1))
    except RigError:
        return
    assert series.columns == {name: (*values, *values[:90]) for name, values in exactly(LONG).items()}
    assert agent.executed.count("run") == 1


def test_a_moderately_bad_console_costs_time_only() -> None:
    """One line in ten damaged and one in ten lost is not an error."""
    for seed in range(20):
        noise = Noise(seed, drop=0.1, corrupt=0.1, repeat=0.1)
        assert run(FakeAgent(bursts=[LONG]), up=noise).columns == exactly(LONG)


@pytest.mark.parametrize("kind", ["B", "D", "E", "BDE", "R"])
def test_lines_lost_at_first_are_asked_for_again(kind: str) -> None:
    """Begin, data, end, all of them, or the reply to `run`: each can get lost."""
    agent = FakeAgent(bursts=[LONG])
    session, console, _ = session_with(agent)
    forwarded = console.send
    lost: set[str] = set()

    def lossy(lines: list[str]) -> None:
        kinds = {line: line.split(" ")[3] for line in lines if line.startswith("@hil")}
        kept = [line for line in lines if kinds.get(line, "-") not in kind or kinds[line] in lost]
        lost.update(kinds[line] for line in lines if line not in kept)
        forwarded(kept)

    console.send = lossy  # type: ignore[method-assign]
    assert session.run_case(CASE, timeout_s=10.0).columns == exactly(LONG)
    assert lost == set(kind)
    assert agent.executed.count("run") == 1


def test_a_cable_that_never_carries_a_block_is_the_rigs_fault() -> None:
    """Damage that asking again does not mend ends, and names cable and count."""
    session, console, _ = session_with(FakeAgent(bursts=[LONG]))
    carry = console.up.carry
    console.up.carry = lambda line: b"" if b" D 1 2 " in line else carry(line)  # type: ignore[method-assign]
    with pytest.raises(RigError, match=r"did not arrive whole.*1 blocks are missing.*serial cable"):
        session.run_case(CASE, timeout_s=10.0)


def test_a_command_that_always_arrives_damaged_is_the_rigs_fault() -> None:
    """The board says that it cannot read us; we do not go on for ever."""
    session, console, _ = session_with(FakeAgent())
    console.down = Noise(corrupt=1.0)
    with pytest.raises(RigError, match=r"arrived damaged|no answer|not a byte"):
        session.info()


PANIC = [
    "Guru Meditation Error: Core  0 panic'ed (LoadProhibited). Exception was unhandled.",
    "",
    "Core  0 register dump:",
    "PC      : 0x400d1234  PS      : 0x00060e30",
    "Backtrace: 0x400d1234:0x3ffb5e10 0x400d2345:0x3ffb5e30",
    "Rebooting...",
]


@pytest.mark.parametrize(
    ("text", "error", "sentence"),
    [
        (PANIC, FirmwareError, r"panicked.*LoadProhibited.*Backtrace: 0x400d1234.*out/bench-1.log"),
        (
            ["abort() was called at PC 0x400d1234 on core 0", "Rebooting..."],
            FirmwareError,
            r"called abort\(\)",
        ),
        (
            ["assert failed: bench_run publish.c:42 (ring != NULL)", "", "Rebooting..."],
            FirmwareError,
            r"failed an assertion.*publish.c:42 \(ring != NULL\)",
        ),
        (
            ["E (5123) task_wdt: Task watchdog got triggered. The following tasks did not reset"],
            FirmwareError,
            "task watchdog",
        ),
        (["Brownout detector was triggered", "", "rst:0xf (BROWNOUT_RST)"], RigError, "browned out.*supply"),
        (["rst:0xf (RTCWDT_BROWN_OUT_RESET),boot:0x13"], RigError, "browned out.*supply"),
        (["rst:0x1 (POWERON_RESET),boot:0x13"], RigError, "lost its power.*POWERON.*cable, hub.*DTR and RTS"),
        (["rst:0x1 (POWERON),boot:0x8 (SPI_FAST_FLASH_BOOT)"], RigError, "lost its power"),
        (["rst:0x15 (USB_UART_CHIP_RESET),boot:0x8"], RigError, "reset from outside"),
        (["rst:0xc (SW_CPU_RESET),boot:0x13"], FirmwareError, "was reset.*SW_CPU_RESET"),
        (["rst:0x8 (TG1WDT_SYS_RESET),boot:0x13"], FirmwareError, "was reset.*TG1WDT"),
        (["rst:0xe (EXT_CPU_RESET),boot:0x13"], FirmwareError, "was reset.*EXT_CPU_RESET"),
    ],
)
def test_trouble_on_the_board_is_quoted(text: list[str], error: type[HilError], sentence: str) -> None:
    """What the board says when it dies is the error, with its owner."""
    agent = FakeAgent(on_measured=lambda _: text)
    with pytest.raises(error, match=sentence):
        run(agent)


def test_a_reboot_is_noticed_by_its_hello() -> None:
    """A second hello means that the samples are gone, even if nothing else was printed."""
    agent = FakeAgent(on_measured=FakeAgent.reset, restarts_silently=True)
    with pytest.raises(FirmwareError, match=r"was reset \(reset reason SW\)"):
        run(agent)


@pytest.mark.parametrize(
    ("reason", "error", "sentence"),
    [
        ("POWERON", RigError, "lost its power or was reset from outside.*cable, hub and supply"),
        ("EXT", RigError, "reset from outside.*DTR and RTS"),
        ("BROWNOUT", RigError, "browned out.*supply"),
        ("PANIC", FirmwareError, "was reset"),
        ("TASK_WDT", FirmwareError, "was reset"),
    ],
)
def test_a_second_hello_tells_whose_reset_it_was(reason: str, error: type[HilError], sentence: str) -> None:
    """Its reset reason decides: cable, supply and other programs are the rig's, the rest the firmware's."""

    def reset(agent: FakeAgent) -> list[str]:
        agent.edit_line = lambda line: line.replace("reset_reason=SW", f"reset_reason={reason}")
        return agent.reset()

    with pytest.raises(error, match=sentence) as caught:
        run(FakeAgent(on_measured=reset, restarts_silently=True))
    assert f"(reset reason {reason})" in str(caught.value)


def test_a_reboot_is_noticed_by_its_line_numbers() -> None:
    """Numbers that start again mean a reboot even if its hello got lost."""
    agent = FakeAgent(measuring_s=1.0, on_measured=lambda agent: agent.reset()[3:], restarts_silently=True)
    session, _, _ = session_with(agent)
    with pytest.raises(FirmwareError, match="was reset"):
        session.run_case(CASE, timeout_s=5.0)


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
    with pytest.raises(FirmwareError, match=r"no answer within 10.0 s, though the board talks.*still here"):
        session.info()


def test_a_run_that_takes_too_long_is_an_error_that_says_so() -> None:
    """At the deadline the board is asked, and its answer is in the sentence."""
    agent = FakeAgent(measuring_s=100.0)
    with pytest.raises(
        FirmwareError, match=r"had not finished example/count=3,mode=fast after 10.0 s.*running"
    ):
        run(agent)


def test_a_failed_bench_names_its_error() -> None:
    """A status is not an empty series."""
    with pytest.raises(FirmwareError, match=r"ended with ESP_ERR_NO_MEM instead of samples\. Log"):
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
    with pytest.raises(error, match=r"on board bench-1 .*ESP_FAIL instead of samples: no air\*\. Log: out/b"):
        run(agent)
    assert agent.acknowledged == [1]


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (lambda line: line.replace("mode=fast", "mode=slow"), "other parameters.*mode=fast.*mode=slow"),
        (lambda line: line.replace("count=3,", ""), "other parameters"),
        (lambda line: line.replace(" rows=700 w", " rows=699 w"), "contradicts itself: rows and blocks"),
        (lambda line: line.replace(" crc32=", " crc32=f"), "contradicts itself: CRC-32|content is wrong"),
        (lambda line: line.replace(f"={FIRMWARE_SHA256} r", f"={'00' * 32} r"), "measured as 0000"),
        (lambda line: line.replace("burst=1", "burst=2"), "Burst 2 of example is not the 1"),
    ],
)
def test_lines_that_contradict_each_other_are_an_error(edit: Callable[[str], str], sentence: str) -> None:
    """A wrong case echo, length, checksum, image or order is the firmware's fault, not a series."""
    agent = FakeAgent()
    session, _, _ = session_with(agent)
    agent.edit_line = edit
    with pytest.raises(FirmwareError, match=sentence):
        session.run_case(CASE, timeout_s=10.0)


def test_a_wrong_parameter_is_the_callers_fault() -> None:
    """The agent's list of what is allowed is in the sentence."""
    session, _, _ = session_with(FakeAgent())
    with pytest.raises(ConfigError, match=r"refused 'run': bad-parameter.*allowed=count,mode"):
        session.run_case(Case(bench="example", parameters={"cuont": 3}), timeout_s=1.0)


def test_credentials_arrive_and_are_never_seen() -> None:
    """Long fields arrive in pieces; the log shows neither value nor base64, not even if the board does."""
    agent = FakeAgent()
    session, console, log = session_with(agent, down=Noise(seed=5, drop=0.2), up=Noise(seed=6, drop=0.2))
    key = "-----BEGIN EC PRIVATE KEY-----\n" + "c2VjcmV0" * 100 + "\n-----END EC PRIVATE KEY-----\n"
    session.provision({"client_key_pem": key, "psk": "correct horse", "utc_us": 1_700_000_000_000_000})
    console.send(["W (1) app: psk is correct horse", key.splitlines()[1]])
    session.info()
    assert agent.provisioned["client_key_pem"] == key.encode()
    assert agent.provisioned["psk"] == b"correct horse"
    assert agent.provisioned["utc_us"] == b"1700000000000000"
    shown = "\n".join(log)
    assert "correct horse" not in shown
    assert "c2VjcmV0" not in shown
    assert "YzJWamNtVj" not in shown
    assert "provision psk 0 ***" in shown


def test_a_line_that_makes_no_sense_is_quoted_without_secrets() -> None:
    """A marked line whose checksum is right and whose content is not may still hold what was provisioned."""
    agent = FakeAgent()
    session, console, _ = session_with(agent)
    psk = "it's \\correct horse"
    session.provision({"psk": psk})
    console.send([agent.line("Z", f"psk is {psk}")])
    with pytest.raises(FirmwareError, match=r"kind Z.*psk is \*\*\*.*Log: out/bench-1.log") as caught:
        session.info()
    assert "correct horse" not in "".join(traceback.format_exception(caught.value))


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
    """Log lines or marked lines without end are no reason to wait for ever: it ends as in silence."""
    agent = FakeAgent()
    line = (lambda: "W (9) app: again") if kind == "log" else (lambda: agent.line("R", "other ok"))
    session, console = flooded(agent, line)
    before = console.now
    with pytest.raises(FirmwareError, match=r"no answer within 10.0 s, though the board talks"):
        session.info()
    assert console.now - before < 11.0
    before = console.now
    with pytest.raises(FirmwareError, match=r"no hello came; its last lines"):
        session.wait_ready(timeout_s=20.0)
    assert console.now - before < 21.0


def test_a_flood_does_not_hide_a_request_to_stop() -> None:
    """While the board floods the console, a stop is honoured at the next read."""
    session, console = flooded(FakeAgent(), lambda: "W (9) app: again")
    console.stop_at = console.now + 2.0
    with pytest.raises(KeyboardInterrupt):
        session.info()
    assert console.now < console.stop_at + 0.1


def test_a_refused_field_is_the_callers_fault() -> None:
    """A misspelt field is named, its value is not."""
    session, _, _ = session_with(FakeAgent())
    with pytest.raises(ConfigError, match="unknown-field") as caught:
        session.provision({"pks": "correct horse"})
    assert "correct horse" not in str(caught.value)


def test_the_link_tells_what_it_is_like_or_why_not() -> None:
    """`net up` returns the link's environment; a refusal by the access point is the rig's."""
    session, _, _ = session_with(FakeAgent())
    assert session.network_up(timeout_s=5.0) == {"rssi_dbm": -52}
    session, _, _ = session_with(FakeAgent(link_error="ESP_ERR_WIFI_SSID"))
    with pytest.raises(RigError, match="ESP_ERR_WIFI_SSID"):
        session.network_up(timeout_s=5.0)


def test_info_gives_numbers_as_numbers() -> None:
    """The environment is typed."""
    session, _, _ = session_with(FakeAgent())
    assert session.info()["heap_free_bytes"] == 1000


def test_restart_waits_for_the_next_boot() -> None:
    """After a restart the session talks to the new boot, although the old one still answered."""
    for seed in range(10):
        agent = FakeAgent()
        session, _, _ = session_with(agent, up=Noise(seed, drop=0.2), down=Noise(seed + 50, drop=0.2))
        before = session.hello
        assert before is not None
        hello = session.restart(timeout_s=60.0)
        assert hello.boot != before.boot
        assert agent.boot == 2
        assert session.run_case(CASE, timeout_s=10.0).rows == 700


def test_an_old_hello_in_the_pipe_does_not_count() -> None:
    """Only a hello that our own command brought is of the boot that runs now."""
    agent = FakeAgent()
    console = FakeConsole(agent)
    console.send([agent.hello()])
    console.send(agent.reset())
    session = AgentSession(console, "bench-1", clock=console.clock)
    assert session.wait_ready(timeout_s=5.0).boot == "00000002"
    assert session.run_case(CASE, timeout_s=10.0).rows == 700


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
        (["I (30) app: some other firmware"], FirmwareError, "no hello came.*some other firmware"),
    ],
)
def test_a_board_without_agent_is_explained(text: list[str], error: type[HilError], sentence: str) -> None:
    """Why no hello came is read off what the board printed."""
    console = FakeConsole(FakeAgent())
    console.silent = True
    console.send(text)
    session = AgentSession(console, "bench-1", clock=console.clock)
    if not text:
        assert console.read(0.0) == b""
    with pytest.raises(error, match=sentence):
        session.wait_ready(timeout_s=8.0)


def test_an_unknown_protocol_version_is_named() -> None:
    """A board that speaks none of our versions is a mismatch of builds, and both sides are named."""
    console = FakeConsole(FakeAgent(proto=(3, 4)))
    with pytest.raises(ConfigError, match="speaks protocol 3 to 4, this host 1"):
        AgentSession(console, "bench-1", clock=console.clock).wait_ready(timeout_s=5.0)
