# SPDX-License-Identifier: Apache-2.0
"""A board whose clock falls behind the host's: said of what the rig is at fault for, and of nothing else."""

from __future__ import annotations

import pytest

from hil.base.errors import FirmwareError, HilError, RigError
from hil.session.pace import ClockPace
from tests.session.fake_agent import FakeAgent
from tests.session.session_rig import CASE, session_with

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
