# SPDX-License-Identifier: Apache-2.0
"""`run trace` over the console: the real firmware, its session and the reader of traces."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hil.base.errors import ConfigError
from hil.model import Case
from hil.session import AgentSession
from hil.trace.events import EventKind, Mark, Trace, TraceEvent
from hil.trace.reading import COLUMNS, read_trace
from tests.firmware import kernel_rig
from tests.host_builds import build_sanitized

pytestmark = pytest.mark.slow

PROGRAM = "traced_footprint"
TRACE = Case(bench="trace", parameters={})
FOOTPRINT = Case(bench="footprint", parameters={})
TIMEOUT_S = 20.0


@pytest.fixture
def session() -> Iterator[AgentSession]:
    """Return a session with the firmware of which `footprint` traces two tasks that meet at a mutex."""
    with kernel_rig.board(build_sanitized(PROGRAM) / "test" / PROGRAM) as running:
        yield running.session


def run_trace(session: AgentSession) -> Trace:
    series = session.run_case(TRACE, timeout_s=TIMEOUT_S)
    assert tuple(series.columns) == COLUMNS
    times = series.columns["time_us"]
    assert list(times) == sorted(times)
    return read_trace(series.columns, series.device, exact=False)


def test_trace_is_no_bench_and_has_nothing_before_one_traced(session: AgentSession) -> None:
    """Before a bench has traced there is nothing to send, and it is the configuration that asks for it. No
    list of benches names it, and it takes no parameters."""
    with pytest.raises(ConfigError, match="nothing was traced"):
        session.run_case(TRACE, timeout_s=TIMEOUT_S)
    hello = session.hello
    assert hello is not None
    assert "trace" not in hello.benches
    assert "trace" not in session.command("list").fields["benches"].split(",")
    with pytest.raises(ConfigError, match="unknown-key"):
        session.run_case(Case(bench="trace", parameters={"count": 1}), timeout_s=TIMEOUT_S)


def test_a_mutex_is_traced_from_hook_to_reader(session: AgentSession) -> None:
    """Who held it, who waited, who inherited and when: with names, from the kernel's hooks to the host."""
    session.run_case(FOOTPRINT, timeout_s=TIMEOUT_S)
    trace = run_trace(session)
    assert run_trace(session) == trace, "sending a trace must not change it"
    tasks = {task.name: task for task in trace.tasks.values()}
    assert (tasks["low"].priority, tasks["low"].core) == (6, 0)
    assert (tasks["high"].priority, tasks["high"].core) == (20, 0)
    assert (tasks["agent_run"].priority, tasks["agent_run"].core) == (5, None)
    low, high = tasks["low"].number, tasks["high"].number

    def first(kind: EventKind, task: int) -> TraceEvent:
        return next(event for event in trace.events if (event.kind, event.task) == (kind, task))

    waits = first(EventKind.WAITS, high)
    assert trace.object(waits.argument).kind == "mutex"
    inherits = first(EventKind.INHERITS, low)
    assert inherits.argument == 20
    order = [
        first(EventKind.TAKEN, low),
        waits,
        first(EventKind.GIVEN, low),
        first(EventKind.TAKEN, high),
        first(EventKind.GIVEN, high),
    ]
    assert [event.time_us for event in order] == sorted(event.time_us for event in order)
    assert {event.argument for event in order} == {waits.argument}
    assert order[1].time_us <= inherits.time_us <= order[2].time_us
    marks = [(event.task, event.argument) for event in trace.events if event.mark is Mark.ACQUIRED]
    assert marks == [(low, 0), (high, 5)]
