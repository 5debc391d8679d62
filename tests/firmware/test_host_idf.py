# SPDX-License-Identifier: Apache-2.0
"""What ESP-IDF's API on the host does with what its board says, and how its programs crash.

The rules that need nothing from a board: test_host_programs.py.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from hil.session.trouble import recognise
from tests.host_builds import PLAIN, build_programs

pytestmark = pytest.mark.slow

PROGRAMS = (
    "test_esp_crash",
    "test_esp_crystal",
    "test_esp_cycle_counter",
    "test_esp_lateness",
    "test_esp_sleep",
    "test_esp_strict",
    "test_esp_timer",
    "test_esp_uart",
    "test_esp_wifi",
    "test_freertos_delay",
)
RUN_TIMEOUT_S = 120.0
STOPPED_S = 1.7


@pytest.fixture(scope="session")
def programs() -> Path:
    return build_programs(PLAIN, *PROGRAMS) / "test"


def run(program: Path, *prefix: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a program as the board would, with these variables beside the caller's own."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("VBOARD_")}
    argv, env = [*prefix, str(program)], environment | variables
    return subprocess.run(argv, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, env=env, check=False)


def check(result: subprocess.CompletedProcess[str]) -> None:
    assert result.returncode == 0, (
        f"{result.args}: status {result.returncode}\n{result.stdout}{result.stderr}"
    )


def test_realtime_is_reported(programs: Path) -> None:
    """The name of the scheduling says what the program got, not what it asked for."""
    prefix = (
        ("setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice") if os.geteuid() == 0 else ()
    )
    result = run(programs / "test_esp_lateness", *prefix, LATENESS_SAMPLES="1")
    assert "scheduling: other\n" in result.stdout


ABORTED = r"\n\nabort\(\) was called"
CRASHES: Mapping[str, tuple[int, str]] = {
    "assert": (signal.SIGABRT, r"assert failed: app_main .*test_esp_crash\.c:\d+ \(start == 1\)" + ABORTED),
    "check": (signal.SIGABRT, r"CHECK failed: esp_err_t 0x107 \(ESP_ERR_TIMEOUT\)\nfile: .*\nfunc: app_main"),
    "load": (signal.SIGSEGV, r"Guru Meditation Error: Core  0 panic'ed \(LoadStoreError\)\. Exception was"),
    "stack": (signal.SIGSEGV, r"\*\*\*ERROR\*\*\* A stack overflow in task main has been detected\."),
    "interrupt": (signal.SIGABRT, r"assert failed: kernel_block .*blocking call in an interrupt"),
    "watchdog": (signal.SIGVTALRM, r"Task watchdog got triggered\..*\nE \(\d+\) task_wdt:  - main\n"),
}


@pytest.mark.parametrize("how", CRASHES)
def test_crash_is_reported_and_ends_by_signal(programs: Path, how: str) -> None:
    """A crash says on the console what ESP-IDF says, and the board sees the signal."""
    status, words = CRASHES[how]
    result = run(programs / "test_esp_crash", CRASH=how)
    assert result.returncode == -status
    assert re.search(words, result.stdout), result.stdout
    assert result.stdout.endswith("Rebooting...\n")


_WDT = (
    r"E \(\d+\) task_wdt: Task watchdog got triggered\..*\nE \(\d+\) task_wdt:  - IDLE0 \(CPU 0\)\n(.*\n)*"
    r"E \(\d+\) task_wdt: Aborting\.\n\nabort\(\) was called"
)
_INTERRUPT_WDT = r"panic'ed \(Interrupt wdt timeout on CPU0\)\. \n"
_LOCK = r"\(\) in an interrupt or a critical section .*its lock cannot be waited for\n\nabort\(\) was called"
# by VIOLATION: the signal it ends by, what it says in strict mode, what it says where it only warns
VIOLATIONS: Mapping[str, tuple[int, str, str]] = {
    "critical": (signal.SIGXCPU, _INTERRUPT_WDT, r"interrupts were masked for \d+ ms .* in main: "),
    "long_interrupt": (
        signal.SIGXCPU,
        _INTERRUPT_WDT,
        r"interrupts were masked for \d+ ms .* in interrupt: ",
    ),
    "idle": (signal.SIGVTALRM, _WDT, r"task main computed for 500 ms .* on core 0: "),
    "log": (signal.SIGABRT, r"vprintf" + _LOCK, r"vprintf\(\) in an interrupt .*: a chip aborts"),
    "print": (signal.SIGABRT, r"puts" + _LOCK, r"puts\(\) in an interrupt .*: a chip aborts"),
    "masked_print": (signal.SIGABRT, r"puts" + _LOCK, r"puts\(\) in .*task main\): a chip aborts"),
    "malloc": (signal.SIGABRT, r"the heap is used in an interrupt .*", r"the heap is used in an interrupt"),
    "float": (
        signal.SIGFPE,
        r"panic'ed \(Coprocessor exception\)\. Exception was unhandled\.\n",
        r"floating point in an interrupt at 0x[0-9a-f]+: ",
    ),
}


@pytest.mark.parametrize("how", VIOLATIONS)
def test_what_a_chip_does_not_let_pass_ends_the_program(programs: Path, how: str) -> None:
    """In strict mode it is a chip's panic or abort, and the signal tells the board which reset that is."""
    status, words, _ = VIOLATIONS[how]
    result = run(programs / "test_esp_strict", VIOLATION=how)
    assert re.search(words, result.stdout), result.stdout
    assert result.returncode == -status
    assert "survived" not in result.stdout


@pytest.mark.parametrize("how", VIOLATIONS)
def test_what_a_chip_does_not_let_pass_is_said_once_a_place(programs: Path, how: str) -> None:
    """Where it only warns the program goes on, after a line that nobody takes for a crash."""
    result = run(programs / "test_esp_strict", VIOLATION=how, VBOARD_STRICT="warn")
    check(result)
    assert "survived" in result.stdout
    said = re.findall(r"^W \(\d+\) vboard: (.*)$", result.stdout, re.MULTILINE)
    assert re.match(VIOLATIONS[how][2], said[0])
    assert len(said) == len(set(said)) <= 2  # malloc() and free()
    assert not [line for line in result.stdout.splitlines() if recognise(line)]


def test_memory_that_a_chip_has_not(programs: Path) -> None:
    """malloc() gives NULL without a word where a strict board asks for it; else memory, and a line with
    size, rest and task."""
    check(run(programs / "test_esp_strict", VBOARD_STRICT="fail"))
    strict = run(programs / "test_esp_strict", VIOLATION="heap", VBOARD_STRICT="fail").stdout
    assert strict.count("malloc: NULL\n") == 2
    assert "vboard" not in strict
    warned = run(programs / "test_esp_strict", VIOLATION="heap", VBOARD_STRICT="warn").stdout
    assert warned.count("malloc: memory\n") == 2
    assert len(re.findall(r"vboard: 409600 bytes .* \d+ free, .* main ", warned)) == 1


def test_a_core_that_idles_now_and_then_is_not_starved(programs: Path) -> None:
    """A task that waits now and then, however busy it is, lets the idle task run."""
    check(run(programs / "test_esp_strict", VIOLATION="busy"))


@pytest.mark.parametrize("how", ["critical", "idle"])
def test_a_host_that_is_away_is_not_the_firmwares_fault(programs: Path, how: str) -> None:
    """A program that is stopped for longer than its watchdogs wait is not barked at: its threads' CPU time
    stands still."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("VBOARD_")}
    process = subprocess.Popen(
        [programs / "test_esp_strict"],
        stdout=subprocess.PIPE,
        text=True,
        env=variables | {"VIOLATION": f"half_{how}"},
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line == "halfway\n":
            break
    process.send_signal(signal.SIGSTOP)
    time.sleep(STOPPED_S)  # longer than either watchdog's time
    process.send_signal(signal.SIGCONT)
    rest = process.communicate(timeout=RUN_TIMEOUT_S)[0]
    assert process.returncode == 0, rest
    assert "survived" in rest


def test_restart_ends_with_status_0_after_shutdown_handlers(programs: Path) -> None:
    """esp_restart() runs the handlers, loses no output and tells the board to boot again."""
    result = run(programs / "test_esp_crash", CRASH="restart", VBOARD_RESET_REASON="SW")
    assert result.returncode == 0
    assert result.stdout.endswith("reset reason 3\nshutting down\n")


BAD = (
    "VBOARD_MAC=24:0a:c4",
    "VBOARD_MAC=24:0a:c4:00:00:01:02",
    "VBOARD_RESET_REASON=LIGHTNING",
    "VBOARD_APP_OFFSET=ota_0",
    "VBOARD_BOOT_US=-5",
    "VBOARD_FLASH_FD=999",
    "VBOARD_CORE1_BEHIND_US=190 ms",
    "VBOARD_TIME_S=noon",
    "VBOARD_STRICT=yes",
    "VBOARD_CRYSTAL_PPM=100001",
    "VBOARD_CHANNEL=0",
    "VBOARD_RSSI_DBM=loud",
    "VBOARD_RSSI_DBM=1",
    "VBOARD_RSSI_DBM=-128",
)


def test_bad_variables_are_refused(programs: Path) -> None:
    """A variable the board got wrong ends the program with status 2 and is named, with its value."""
    for bad in BAD:
        name, _, value = bad.partition("=")
        result = run(programs / "test_esp_crash", **{name: value})
        assert (bad, result.returncode, f"{bad} is not " in result.stderr) == (bad, 2, True)


@pytest.mark.parametrize("behind_us", ["0", "4000000"])
def test_core_1s_cycle_counter_is_as_far_behind_as_the_board_says(programs: Path, behind_us: str) -> None:
    """The offset of the cores' cycle counters is the board's, also none at all."""
    variables = {"VBOARD_CORE1_BEHIND_US": behind_us, "EXPECTED_BEHIND_US": behind_us}
    check(run(programs / "test_esp_cycle_counter", **variables))


@pytest.mark.parametrize("ppm", ["-100000", "-100", "100000"])
@pytest.mark.parametrize("program", ["test_esp_crystal", "test_esp_timer", "test_freertos_delay"])
def test_clocks_go_as_the_board_says(programs: Path, program: str, ppm: str) -> None:
    """With a crystal that is off all clocks are, alike, and each keeps its own rules."""
    check(run(programs / program, VBOARD_CRYSTAL_PPM=ppm))


def test_the_radio_is_what_the_board_says(programs: Path) -> None:
    """A station finds the access point on the channel, and as loud, as the board's variables have it."""
    check(run(programs / "test_esp_wifi", VBOARD_RSSI_DBM="-91", VBOARD_CHANNEL="13"))


@pytest.mark.parametrize("date_s", ["0", "4102444800"])
def test_the_date_at_reset_is_what_the_board_says(programs: Path, date_s: str) -> None:
    """A chip begins in 1970; without a word it is the machine's date."""
    check(run(programs / "test_esp_sleep", VBOARD_TIME_S=date_s))


def uart_lines(output: str) -> Iterator[tuple[int, int]]:
    for line in output.splitlines():
        if "writer" in line:
            found = re.fullmatch(r"(?:I \(\d+\) uart: )?writer (\d) line (\d+) 0*(\d+) end", line)
            assert found, f"torn line: {line!r}"
            assert int(found[2]) == int(found[3])
            yield int(found[1]), int(found[2])


def test_lines_are_whole(programs: Path) -> None:
    """Lines of two tasks never mix, and each task's come in its order."""
    lines = list(uart_lines(run(programs / "test_esp_uart").stdout))
    for writer in (0, 1):
        assert [number for who, number in lines if who == writer] == list(range(300))
