# SPDX-License-Identifier: Apache-2.0
"""Whether a program was kept from running: stopped for real, or by the run itself."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest

from hil.base.errors import RigError
from hil.network.broker_watch import Absences
from hil.network.standstill import Standstill, is_kept
from tests.lab import wait_for


def stop_for(pid: int, seconds: float) -> None:
    os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(pid, signal.SIGCONT)
    wait_for(lambda: not is_kept(pid), lambda: "it does not go on")


@pytest.mark.slow
def test_a_program_that_is_stopped_is_named_unless_the_run_means_it() -> None:
    """For a second or more; a shorter stop, and a program that waits for something else, are none. A case
    that stalls its broker says from when to when; nothing is seen of a program that is none."""
    meant: list[tuple[int, int | None]] = []

    def spells() -> Absences:
        return meant

    with subprocess.Popen(["sleep", "60"]) as sleeper:
        unasked = Standstill("The host's iperf", lambda: sleeper.pid)
        stalled = Standstill("The broker", lambda: sleeper.pid, spells)
        stop_for(sleeper.pid, 0.3)
        unasked.check()
        meant.append((time.monotonic_ns(), None))
        stop_for(sleeper.pid, 1.3)
        meant[0] = (meant[0][0], time.monotonic_ns())
        with pytest.raises(RigError, match=r"iperf stood still for 1\.\d s"):
            unasked.check()
        stalled.check()
        for standstill in (unasked, stalled):
            standstill.end()
        sleeper.kill()
    assert not is_kept(None)
    assert not is_kept(0)
