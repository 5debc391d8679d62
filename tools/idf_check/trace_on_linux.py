# SPDX-License-Identifier: Apache-2.0
"""The scheduler's trace on ESP-IDF's linux target: ESP-IDF's own kernel tells it, over the console."""

from __future__ import annotations

from pathlib import Path

from hil.model import Case, Scalar
from hil.session import AgentSession
from hil.trace.events import EventKind, Trace
from hil.trace.reading import read_trace
from tests.session.agent_process import AgentProcess

PROGRAM = "hil-firmware.elf"
TIMEOUT_S = 30.0
TRACED: dict[str, Scalar] = {"count": 20, "warmup": 0, "task_core": 0, "resource": "mutex", "trace": "end"}
KINDS = (
    EventKind.SWITCHED_IN,
    EventKind.SWITCHED_OUT,
    EventKind.READY,
    EventKind.TAKEN,
    EventKind.GIVEN,
    EventKind.DELAYS,
)
TASKS = {"jitter": 20, "middle": 10, "low": 6}  # name → priority


def traced(build_folder: Path) -> tuple[int, dict[str, str]]:
    """Run `jitter` with a mutex and a trace, then `trace`; return how many events came, and what did not."""
    process = AgentProcess(build_folder / PROGRAM)
    try:
        session = AgentSession(process, "linux", lambda _line: None)
        session.wait_ready(timeout_s=TIMEOUT_S)
        listed = session.command("list", "jitter").fields["parameters"].split(",")
        defaults: dict[str, Scalar] = {key: value for key, value, _ in (entry.split(":") for entry in listed)}
        session.run_case(Case(bench="jitter", parameters={**defaults, **TRACED}), timeout_s=TIMEOUT_S)
        series = session.run_case(Case(bench="trace", parameters={}), timeout_s=TIMEOUT_S)
    finally:
        process.stop()
    trace = read_trace(series.columns, series.device, exact=True)
    return len(trace.events), missing(trace)


def missing(trace: Trace) -> dict[str, str]:
    """Return the events, tasks and objects that such a trace has to have and has not."""
    kinds = {event.kind for event in trace.events}
    priorities = {task.name: task.priority for task in trace.tasks.values()}
    wrong = {kind.name: "does not occur" for kind in KINDS if kind not in kinds}
    for name, priority in TASKS.items():
        if priorities.get(name) != priority:
            wrong[name] = f"has priority {priorities.get(name)}, not {priority}"
    if "mutex" not in {shared.kind for shared in trace.objects.values()}:
        wrong["mutex"] = "is not among the objects"
    return wrong
