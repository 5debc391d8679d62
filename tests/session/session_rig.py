# SPDX-License-Identifier: Apache-2.0
"""What the tests of a session share: a session over a fake agent's console, and a case to run."""

from __future__ import annotations

from hil.model import Case, Series
from hil.session import AgentSession
from tests.session.fake_agent import Columns, FakeAgent, FakeConsole, Noise

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
