# SPDX-License-Identifier: Apache-2.0
"""Programs of the host that need it alone: what they check is a matter of time."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

from tests.firmware.test_host_programs import WITHOUT_REALTIME, check
from tests.host_builds import PLAIN, build_programs, build_sanitized

pytestmark = [pytest.mark.slow, pytest.mark.alone]

PROGRAMS = [
    "test_esp_sntp",  # its board asks again after 200 ms
    pytest.param("test_rtos_ramp", marks=pytest.mark.needs_real_time),  # a task misses its deadline, or none
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_program_alone(program: str) -> None:
    """The program's rules hold; nothing reads or writes memory it should not, nor does anything undefined."""
    check(build_sanitized(program) / "test" / program)


@pytest.mark.heavy
@pytest.mark.parametrize(
    "prefix", [(), WITHOUT_REALTIME if os.geteuid() == 0 else ()], ids=["plain", "without real time"]
)
def test_sntp_without_sanitizers(prefix: Sequence[str]) -> None:
    """The rules hold in the build of the virtual boards, with real-time priority and without."""
    check(build_programs(PLAIN, "test_esp_sntp") / "test" / "test_esp_sntp", *prefix)
