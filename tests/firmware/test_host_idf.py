# SPDX-License-Identifier: Apache-2.0
"""ESP-IDF's API on the host keeps ESP-IDF's rules, and so does the trace in its kernel.

Runs firmware/host/test/test_freertos_*, test_esp_* and test_trace_*.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.host_builds import PLAIN, build_programs, build_sanitized

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
HOST = ROOT / "firmware" / "host"
PROGRAMS = sorted(
    path.stem
    for pattern in ("test_freertos*.c", "test_esp*.c", "test_trace*.c")
    for path in (HOST / "test").glob(pattern)
)
RUN_TIMEOUT_S = 30.0


@pytest.fixture(scope="session")
def programs() -> Path:
    return build_programs(PLAIN, *PROGRAMS) / "test"


@pytest.fixture(scope="session")
def sanitized_programs() -> Path:
    return build_sanitized(*PROGRAMS) / "test"


def run(program: Path, *prefix: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a program as the board would, with these variables beside the caller's own."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("VBOARD_")}
    return subprocess.run(
        [*prefix, str(program)],
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        env=environment | variables,
    )


def check(result: subprocess.CompletedProcess[str]) -> None:
    assert result.returncode == 0, (
        f"{result.args}: status {result.returncode}\n{result.stdout}{result.stderr}"
    )


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(programs: Path, program: str) -> None:
    """Each program's rules hold with the scheduling this machine permits."""
    check(run(programs / program))


@pytest.mark.parametrize("program", PROGRAMS)
def test_program_sanitized(sanitized_programs: Path, program: str) -> None:
    """No program reads or writes memory it should not, nor does anything undefined."""
    check(run(sanitized_programs / program))


@pytest.mark.parametrize("program", PROGRAMS)
def test_program_without_realtime(programs: Path, program: str) -> None:
    """The rules that do not need real-time priority hold for a caller who has none."""
    prefix = (
        ("setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice") if os.geteuid() == 0 else ()
    )
    check(run(programs / program, *prefix))


def test_realtime_is_reported(programs: Path) -> None:
    """The name of the scheduling says what the program got, not what it asked for."""
    prefix = (
        ("setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice") if os.geteuid() == 0 else ()
    )
    result = run(programs / "test_esp_lateness", *prefix, LATENESS_SAMPLES="1")
    assert "scheduling: other\n" in result.stdout


CRASHES: Mapping[str, tuple[int, str]] = {
    "assert": (
        signal.SIGABRT,
        r"assert failed: app_main .*test_esp_crash\.c:\d+ \(start == 1\)\n\nabort\(\) was called",
    ),
    "check": (
        signal.SIGABRT,
        r"ESP_ERROR_CHECK failed: esp_err_t 0x107 \(ESP_ERR_TIMEOUT\)\nfile: .*\nfunc: app_main\n",
    ),
    "load": (
        signal.SIGSEGV,
        r"Guru Meditation Error: Core  0 panic'ed \(LoadStoreError\)\. Exception was unhandled\.",
    ),
    "stack": (signal.SIGSEGV, r"\*\*\*ERROR\*\*\* A stack overflow in task main has been detected\."),
    "interrupt": (signal.SIGABRT, r"assert failed: kernel_block .*blocking call in an interrupt"),
    "watchdog": (
        signal.SIGABRT,
        r"E \(\d+\) task_wdt: Task watchdog got triggered\..*\nE \(\d+\) task_wdt:  - main\n",
    ),
}


@pytest.mark.parametrize("how", CRASHES)
def test_crash_is_reported_and_ends_by_signal(programs: Path, how: str) -> None:
    """A crash says on the console what ESP-IDF says, and the board sees the signal."""
    status, words = CRASHES[how]
    result = run(programs / "test_esp_crash", CRASH=how)
    assert result.returncode == -status
    assert re.search(words, result.stdout), result.stdout
    assert result.stdout.endswith("Rebooting...\n")


def test_restart_ends_with_status_0_after_shutdown_handlers(programs: Path) -> None:
    """esp_restart() runs the handlers, loses no output and tells the board to boot again."""
    result = run(programs / "test_esp_crash", CRASH="restart", VBOARD_RESET_REASON="SW")
    assert result.returncode == 0
    assert result.stdout.endswith("reset reason 3\nshutting down\n")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("VBOARD_MAC", "24:0a:c4"),
        ("VBOARD_MAC", "24:0a:c4:00:00:01:02"),
        ("VBOARD_RESET_REASON", "LIGHTNING"),
        ("VBOARD_APP_OFFSET", "ota_0"),
        ("VBOARD_BOOT_US", "-5"),
        ("VBOARD_FLASH_FD", "999"),
        ("VBOARD_CORE1_BEHIND_US", "190 ms"),
    ],
)
def test_bad_variable_is_refused(programs: Path, variable: str, value: str) -> None:
    """A variable the board got wrong ends the program with a sentence, not with a default."""
    result = run(programs / "test_esp_crash", **{variable: value})
    assert result.returncode == 2
    assert f"{variable}={value} is not " in result.stderr


@pytest.mark.parametrize("behind_us", ["0", "4000000"])
def test_core_1s_cycle_counter_is_as_far_behind_as_the_board_says(programs: Path, behind_us: str) -> None:
    """The offset of the cores' cycle counters is the board's, also none at all."""
    check(
        run(
            programs / "test_esp_cycle_counter",
            VBOARD_CORE1_BEHIND_US=behind_us,
            EXPECTED_BEHIND_US=behind_us,
        )
    )


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
