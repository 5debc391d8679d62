# SPDX-License-Identifier: Apache-2.0
"""The host's SNTP client, apart from the other programs: its board asks again after 200 ms."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.firmware.test_host_programs import WITHOUT_REALTIME, check
from tests.host_builds import PLAIN, build_programs, build_sanitized

pytestmark = [pytest.mark.slow, pytest.mark.alone]

PROGRAM = "test_esp_sntp"
BUILD_PLAIN = partial(build_programs, PLAIN)


@pytest.mark.parametrize(
    ("build", "prefix"),
    [
        (build_sanitized, ()),
        pytest.param(BUILD_PLAIN, (), marks=pytest.mark.heavy),
        pytest.param(BUILD_PLAIN, WITHOUT_REALTIME if os.geteuid() == 0 else (), marks=pytest.mark.heavy),
    ],
    ids=["sanitized", "plain", "without real time"],
)
def test_sntp(build: Callable[[str], Path], prefix: Sequence[str]) -> None:
    """The program's rules hold, with sanitizers, without, and without real-time priority."""
    check(build(PROGRAM) / "test" / PROGRAM, *prefix)
