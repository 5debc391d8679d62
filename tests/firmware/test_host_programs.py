# SPDX-License-Identifier: Apache-2.0
"""Each program of firmware/host/test that needs no peer ends well: its own checks are the rules."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from hil.base.paths import PROJECT_ROOT
from tests.host_builds import PLAIN, build_programs, build_sanitized

pytestmark = pytest.mark.slow

SOURCES = PROJECT_ROOT / "firmware" / "host" / "test"
TIMEOUT_S = 120.0
DRIVEN = {  # by tests of their own, most of which tell the program what to do
    "test_esp_sntp",
    "test_rtos_ramp",
    "test_https_driver",
    "test_lwip_flow",
    "test_mqtt_driver",
    "test_netdb_driver",
    "test_tls_driver",
    *(path.stem for path in SOURCES.glob("test_wire*.c")),  # tests/session
}
PROGRAMS = sorted({path.stem for path in SOURCES.glob("test_*.c")} - DRIVEN)
IDF = [name for name in PROGRAMS if name.startswith(("test_freertos", "test_esp", "test_trace"))]
MARKS: Mapping[str, pytest.MarkDecorator] = {
    "test_rtos_partners": pytest.mark.needs_real_time,
}
WITHOUT_REALTIME = ("setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice")


def marked(names: list[str]) -> list[object]:
    return [pytest.param(name, marks=MARKS[name]) if name in MARKS else name for name in names]


@pytest.fixture(scope="session")
def plain() -> Path:
    return build_programs(PLAIN, *IDF) / "test"


@pytest.fixture(scope="session")
def sanitized() -> Path:
    return build_sanitized(*PROGRAMS) / "test"


def check(program: Path, *prefix: str) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("VBOARD_")}
    done = subprocess.run(
        [*prefix, program], capture_output=True, text=True, timeout=TIMEOUT_S, env=environment, check=False
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


@pytest.mark.parametrize("program", marked(PROGRAMS))
def test_program(sanitized: Path, program: str) -> None:
    """The program's rules hold; nothing reads or writes memory it should not, nor does anything undefined."""
    check(sanitized / program)


@pytest.mark.heavy
@pytest.mark.parametrize("program", marked(IDF))
def test_program_without_sanitizers(plain: Path, program: str) -> None:
    """The rules hold in the build of the virtual boards, with the scheduling this machine permits."""
    check(plain / program)


@pytest.mark.heavy
@pytest.mark.parametrize("program", marked(IDF))
def test_program_without_realtime(plain: Path, program: str) -> None:
    """The rules that do not need real-time priority hold for a caller who has none."""
    check(plain / program, *(WITHOUT_REALTIME if os.geteuid() == 0 else ()))
