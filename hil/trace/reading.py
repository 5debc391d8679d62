# SPDX-License-Identifier: Apache-2.0
"""Read a trace from the samples of ``run trace``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from hil.base.errors import FirmwareError
from hil.model import Scalar
from hil.trace.events import FIRST_MARK, OBJECT_KINDS, EventKind, Mark, SharedObject, Task, Trace, TraceEvent

COLUMNS = ("time_us", "core", "event", "task", "argument")
_WRAP = 2**32
_TASK = re.compile(r"(.*):(\d+):(\d+|-)")


def read_trace(columns: Mapping[str, Sequence[int]], device: Mapping[str, Scalar], *, exact: bool) -> Trace:
    """Return the trace that a board sent.

    ``device`` holds task_<n>=<name>:<priority>:<core or ->, object_<n>=<kind>.

    Raises:
        FirmwareError: a column is missing, an event is unknown, or a name cannot be read.
    """
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        raise _error(f"its columns are {', '.join(columns) or 'none'}; {', '.join(missing)} missing")
    times = _unwrapped(columns["time_us"])
    rows = zip(times, *(columns[name] for name in COLUMNS[1:]), strict=True)
    events = sorted((_event(*row) for row in rows), key=lambda event: event.time_us)
    tasks = {number: _task(number, text) for number, text in _named(device, "task_")}
    objects = {number: _object(number, text) for number, text in _named(device, "object_")}
    return Trace(tuple(events), tasks, objects, exact)


def _unwrapped(times_us: Sequence[int]) -> Iterable[int]:
    """Yield times that go on where the board's 32 bits begin anew, after 71 minutes."""
    last = now = times_us[0] if times_us else 0
    for time_us in times_us:
        step = (time_us - last) % _WRAP
        now += step if step < _WRAP // 2 else step - _WRAP
        last = time_us
        yield now


def _event(time_us: int, core: int, number: int, task: int, argument: int) -> TraceEvent:
    try:
        if number >= FIRST_MARK:
            return TraceEvent(time_us, core, EventKind.MARK, task, argument, Mark(number - FIRST_MARK))
        return TraceEvent(time_us, core, EventKind(number), task, argument)
    except ValueError as error:
        raise _error(f"event {number} at {time_us} us is unknown") from error


def _named(device: Mapping[str, Scalar], prefix: str) -> Iterable[tuple[int, str]]:
    for key, value in device.items():
        number = key.removeprefix(prefix)
        if key.startswith(prefix) and number.isdecimal():
            yield int(number), str(value)


def _task(number: int, text: str) -> Task:
    match = _TASK.fullmatch(text)
    if match is None:
        raise _error(f"task_{number}={text!r} is not <name>:<priority>:<core or ->")
    name, priority, core = match.groups()
    return Task(number, name or f"task {number}", int(priority), None if core == "-" else int(core))


def _object(number: int, text: str) -> SharedObject:
    if text not in OBJECT_KINDS:
        raise _error(f"object_{number}={text!r} is none of {', '.join(OBJECT_KINDS)}")
    return SharedObject(number, text)


def _error(what: str) -> FirmwareError:
    return FirmwareError(
        f"the board's trace cannot be read: {what}.",
        next_step="compare firmware/components/trace with docs/explain/tracing.md: event numbers must agree.",
    )
