# SPDX-License-Identifier: Apache-2.0
"""What makes rows of a product's console lines and messages.

Each measure is one class with ``run()``, which returns the columns of one case. Times are microseconds of the
host's CLOCK_MONOTONIC since the case began. A row that came to no end has the outcome 1, and its end is its
time-out; a row is never left out.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

from hil.base.errors import ConfigError, FirmwareError
from hil.model import Scalar
from hil.probe.console import ConsoleLine, ProductConsole
from hil.probe.matching import LineEvent, MatchedRow, Matching
from hil.probe.peers import BrokerSession, PeerMessage, Server
from hil.probe.probe_file import (
    KEY,
    Arrivals,
    Between,
    BootRows,
    Download,
    Field,
    Pattern,
    ProbeRequest,
    Values,
)
from hil.probe.sequences import SequenceNumbers
from hil.session.console import printable

OK, TIMED_OUT = 0, 1
POLL_S = 0.02  # so often messages are looked for beside the console
QUOTE_CHARACTERS = 160
KEYS_QUOTED = 3
COPIES_BACK = 100  # so many short messages fit into lwIP's send buffer of 5760 bytes
_INTEGER = re.compile(r"-?[0-9]{1,20}")

Columns = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class MeasuredCase:
    """The parameters that measures share; what a case has not is 0."""

    count: int
    warmup: int
    duration_s: float
    timeout_ms: int
    interval_us: int

    @property
    def rows(self) -> int:
        return self.count + self.warmup

    @classmethod
    def of(cls, parameters: Mapping[str, Scalar]) -> MeasuredCase:
        def number(name: str) -> int:
            value = parameters.get(name, 0)
            return value if isinstance(value, int) else 0

        return cls(
            max(1, number("count")),
            number("warmup"),
            float(number("duration_s")),
            number("timeout_ms"),
            number("interval_us"),
        )


@dataclass
class Clock:
    """Turns the host's times into microseconds since the case began."""

    start_ns: int = field(default_factory=time.monotonic_ns)

    def us(self, time_ns: int) -> int:
        return (time_ns - self.start_ns) // 1000


def measure_between(
    console: ProductConsole, spec: Between, case: MeasuredCase
) -> tuple[Columns, Mapping[str, int]]:
    """Return rows from a line to its answer, and counts of the lines that rows do not show.

    Raises FirmwareError where fewer lines begin a row than the case wants; ConfigError where a pattern is
    nearly what the product prints, or where nothing tells which line answers which; and as
    ProductConsole.read().
    """
    clock, first = Clock(), len(console.lines)
    matching = Matching(case.rows, case.timeout_ms * 1_000_000, KEY in spec.start.compiled.groupindex)
    keys = {"ask": set[str](), "answer": set[str]()}
    for line in _until_over(console, matching, time.monotonic() + case.duration_s):
        for event in _events(spec, line):
            matching.take(event)
            if event.key is not None:
                keys[event.kind].add(event.key)
    rows, seen = matching.rows, console.lines[first:]
    _check_some(console, spec.start, len(rows), case, seen)
    if not any(row.done_ns for row in rows):
        _check_answers(console, spec, keys["ask"], keys["answer"], seen)
    matched = matching.finish()
    if matched is None:
        raise ConfigError(
            f"{spec.end.where}: one answer too many came while questions were still open. Several "
            "questions were open at once, or an answer was lost and another one came twice; "
            "without a key, answers cannot be matched to questions.",
            log=console.log_path,
            next_step=f"write (?P<{KEY}>…) into both patterns, or give the case a timeout_ms that is over "
            "before the next question.",
        )
    rows, tally = matched
    return _pairs_columns(clock, rows, matching.timeout_ns), tally.facts()


def _until_over(console: ProductConsole, matching: Matching, deadline: float) -> Iterator[ConsoleLine]:
    """Yield lines until the rows are over; where those lack, until ``deadline``."""
    while True:
        ends_ns = matching.ends_ns
        until = deadline if ends_ns is None else ends_ns / 1e9
        if until == 0 or (line := console.read(until)) is None:
            return
        if ends_ns is not None and line.time_ns > ends_ns:
            return
        yield line


def _events(spec: Between, line: ConsoleLine) -> Iterator[LineEvent]:
    """Yield what a line is: one that matches both patterns answers before it asks."""
    if line.restarted:
        yield LineEvent("restart", line.time_ns)
    answers, asks = line.search(spec.end), line.search(spec.start)
    key = asks.groupdict().get(KEY) if asks else None
    if answers and (key is None or answers[KEY] != key):  # no question answers itself
        yield LineEvent("answer", line.time_ns, answers.groupdict().get(KEY))
    if asks:
        yield LineEvent("ask", line.time_ns, key)


def _check_answers(
    console: ProductConsole, spec: Between, asked: set[str], answered: set[str], seen: list[ConsoleLine]
) -> None:
    """Raise ConfigError where no question had its answer because of what the patterns are.

    A product that goes on and never answers has rows that are time-outs.
    """
    if not any(spec.end.search(line.text) for line in seen):
        error = console.never(spec.end, "the end of what began", seen)
        if isinstance(error, ConfigError):
            raise error
    elif answered and not asked & answered:
        raise ConfigError(
            f"{spec.end.where}: answers came with the keys {_some(answered)}, but questions with "
            f"the keys {_some(asked)}: none match.",
            log=console.log_path,
            next_step=f"make (?P<{KEY}>…) match the same text in both patterns.",
        )


def _some(keys: set[str]) -> str:
    quoted = ", ".join(repr(printable(key))[:QUOTE_CHARACTERS] for key in sorted(keys)[:KEYS_QUOTED])
    return quoted + (", …" if len(keys) > KEYS_QUOTED else "")


def _check_some(
    console: ProductConsole, pattern: Pattern, found: int, case: MeasuredCase, seen: list[ConsoleLine]
) -> None:
    if found == 0:
        raise console.never(pattern, f"watched for {case.duration_s:g} s", seen)
    if found < case.rows:
        raise console.too_few(pattern, found, case.rows, case.duration_s)


def _pairs_columns(clock: Clock, rows: Sequence[MatchedRow], timeout_ns: int) -> Columns:
    return {
        "began_us": tuple(clock.us(row.began_ns) for row in rows),
        "done_us": tuple(clock.us(row.done_ns or row.began_ns + timeout_ns) for row in rows),
        "outcome": tuple(OK if row.done_ns else TIMED_OUT for row in rows),
    }


def measure_values(console: ProductConsole, spec: Values, case: MeasuredCase) -> Columns:
    """Return the numbers of lines that match. Raises as measure_between(), and where one is no number."""
    clock, first = Clock(), len(console.lines)
    rows: list[tuple[int, list[int]]] = []
    for line in console.until(time.monotonic() + case.duration_s):
        if found := line.search(spec.line):
            rows.append((line.time_ns, [_number(spec, name, found[name]) for name in spec.names]))
        if len(rows) == case.rows:
            break
    _check_some(console, spec.line, len(rows), case, console.lines[first:])
    return {
        "seen_us": tuple(clock.us(time_ns) for time_ns, _ in rows),
        **{name: tuple(values[index] for _, values in rows) for index, name in enumerate(spec.names)},
        "outcome": (OK,) * len(rows),
    }


def _number(spec: Values, name: str, text: str | None) -> int:
    factor = spec.factors.get(name, 1)
    try:
        value = Decimal(text or "") * factor
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or value != int(value):
        raise ConfigError(
            f"{spec.line.where}: the group {name!r} matched "
            f"{text!r}{f' times {factor}' if factor > 1 else ''}, which is not a whole number.",
            next_step=f"match digits only, or write times: {{{name}: 1000}} and the smaller unit in its "
            "name.",
        )
    return int(value)


def measure_boot(console: ProductConsole, spec: BootRows, case: MeasuredCase) -> Columns:
    """Return one row: from the first line of this boot to the line that is waited for."""
    clock = Clock(console.first_ns)
    timeout_s = case.timeout_ms / 1e3
    come = (state for line in console.lines for state in line.states())
    done = next((line for line in come if line.search(spec.end)), None)
    deadline = time.monotonic() + timeout_s - (time.monotonic_ns() - console.first_ns) / 1e9
    if done is None:
        done = next((line for line in console.until(deadline) if line.search(spec.end)), None)
    if done is None:
        error = console.never(spec.end, f"booting within {timeout_s:g} s", console.lines)
        if isinstance(error, ConfigError):
            raise error
    done_us = clock.us(done.time_ns) if done else case.timeout_ms * 1000
    late = done is None or done_us > case.timeout_ms * 1000
    return {"began_us": (0,), "done_us": (done_us,), "outcome": (TIMED_OUT if late else OK,)}


def measure_arrivals(
    console: ProductConsole, broker: BrokerSession, spec: Arrivals, case: MeasuredCase
) -> Columns:
    """Return a row for each sequence number behind the first that came, in their order; lost ones too.

    The first one is where intervals and times begin. Numbers go on where the product's counter wraps.

    Raises:
        ConfigError: a message without its number; a clock of the product that is not set.
        FirmwareError: nothing came, or not as much as the case wants; numbers that begin again.
    """
    deadline = time.monotonic() + case.duration_s
    arrived: dict[int, list[PeerMessage]] = {}
    first, complete_by = None, 0.0
    counting = SequenceNumbers(spec.modulus)
    while time.monotonic() < deadline:
        _drain(console, min(deadline, time.monotonic() + POLL_S))
        broker.check()
        for message in broker.new_messages():
            number = _placed(counting, spec, message)
            first = number if first is None else first
            _check_forward(number, first, arrived, message, console)
            arrived.setdefault(number, []).append(message)
        if first is not None and not complete_by and max(arrived) >= first + case.rows:
            complete_by = time.monotonic() + case.timeout_ms / 1e3  # for those that are late
        if complete_by and time.monotonic() >= complete_by:
            break
    if first is None:
        raise broker.nothing_came(spec.topic, case.duration_s, console.refused())
    if max(arrived) - first < case.rows:
        raise FirmwareError(
            f"Board {console.board}: on {spec.topic} the numbers {first} to {max(arrived)} came "
            f"within {case.duration_s:g} s; the case needs {case.rows}.",
            log=console.log_path,
            next_step="give the case a longer duration_s or a smaller count, or find out why it "
            "publishes less.",
        )
    return _arrivals_columns(spec, range(first, first + case.rows + 1), arrived)


def _placed(counting: SequenceNumbers, spec: Arrivals, message: PeerMessage) -> int:
    number = _integer(spec.sequence, "sequence", message)
    if counting.is_beyond(number):
        whose = "that the probe gives" if spec.modulus else "at which it seemed to wrap"
        raise ConfigError(
            f"{spec.sequence.where}: sequence is {number} in a message on {message.topic}, beyond the "
            f"modulus {counting.modulus} {whose}.",
            next_step="write modulus: beside it, the count at which the product wraps (256, 65536).",
        )
    return counting.place(number)


def _check_forward(
    number: int,
    first: int,
    arrived: Mapping[int, list[PeerMessage]],
    message: PeerMessage,
    console: ProductConsole,
) -> None:
    """Raise FirmwareError where a number went farther back than a late message or a copy does.

    A copy has the payload of what it copies, and was sent again because it was not acknowledged.
    """
    is_copy = number in arrived
    if is_copy and message.payload != arrived[number][0].payload:
        what = f"the number {number} came again with another payload"
    elif is_copy and max(arrived) - number > COPIES_BACK:
        what = f"after {max(arrived)} the number {number} came again"
    elif not is_copy and first - number > len(arrived) + 1:
        what = f"after {max(arrived)} the sequence went back to {number}"
    else:
        return
    raise FirmwareError(
        f"Board {console.board}: {what} on {message.topic}: the product restarted, its counter "
        "wraps, or another client publishes there too.",
        log=console.log_path,
        next_step="read the console log; give the probe a topic that only one board publishes to; where "
        "the counter wraps, write modulus: 256 (or what it is) beside sequence.",
    )


def _arrivals_columns(spec: Arrivals, numbers: range, arrived: Mapping[int, list[PeerMessage]]) -> Columns:
    rows: dict[str, list[int]] = {name: [] for name in spec.columns}
    previous_ns = arrived[numbers[0]][0].time_ns
    clock = Clock(previous_ns)
    for number in numbers[1:]:
        messages = arrived.get(number, [])
        time_ns = messages[0].time_ns if messages else previous_ns
        rows["sequence"].append(number)
        rows["previous_us"].append(clock.us(previous_ns))
        rows["arrived_us"].append(clock.us(time_ns))
        rows["copies_count"].append(len(messages))
        rows["outcome"].append(OK if messages else TIMED_OUT)
        if spec.sent_at:
            sent = _sent_us(clock, spec.sent_at, messages[0]) if messages else clock.us(time_ns)
            rows["sent_us"].append(sent)
        previous_ns = time_ns
    return {name: tuple(values) for name, values in rows.items()}


def _sent_us(clock: Clock, sent_at: Field, message: PeerMessage) -> int:
    """Return when a message was sent by the product's wall clock, on the host's clock of the case.

    A clock that is hours off was never set, and no delay can be told by it.
    """
    sent_wall_us = _integer(sent_at, "sent_at_us", message)
    apart_us = message.wall_ns // 1000 - sent_wall_us
    if abs(apart_us) > 3_600_000_000:
        raise ConfigError(
            f"{sent_at.where}: sent_at_us of a message on {message.topic} is {sent_wall_us}, which is "
            f"{apart_us / 3.6e9:+.0f} h from the host's clock: the product's clock is not set.",
            next_step="leave sent_at_us out, or have the product set its clock (SNTP) before it publishes.",
        )
    return clock.us(message.time_ns) - apart_us


def _integer(value: Field, name: str, message: PeerMessage) -> int:
    found = read_field(value, message.payload)
    if isinstance(found, str) and _INTEGER.fullmatch(found):
        found = int(found)
    if type(found) is not int:
        raise unreadable(value, name, message)
    return found


def unreadable(value: Field, name: str, message: PeerMessage) -> ConfigError:
    """Return the error for a message whose field is not what it has to be, with the payload as it came."""
    payload, found = message.payload, read_field(value, message.payload)
    where = f"{value.where}: {name} ({value.text})"
    if not value.pattern and not _is_json(payload):
        what = "is not found: the payload is no JSON"
        hint = " It holds a NUL: was the text's end sent, too?" if b"\0" in payload else ""
        step = "have the product publish JSON, or find the field by {pattern: '…(…)'}."
    else:
        what = "is missing" if found is None else f"is {found!r}, no whole number"
        hint, step = "", "name the field that holds it, or the topic of messages that have it."
    text = payload[:QUOTE_CHARACTERS].decode(errors="replace")
    return ConfigError(f"{where} {what} in a message on {message.topic}: {text!r}.{hint}", next_step=step)


def _is_json(payload: bytes) -> bool:
    try:
        _loads(payload)
    except (ValueError, RecursionError):
        return False
    return True


def _loads(payload: bytes) -> object:
    """Read JSON in its encoding, with or without a byte order mark. 12.0 and 1e3 are whole numbers."""
    return json.loads(payload.decode(json.detect_encoding(payload), "replace"), parse_float=_whole)


def _whole(text: str) -> int | float:
    number = float(text)
    return int(number) if number.is_integer() else number


def read_field(value: Field, payload: bytes) -> object:
    """Return a field of a payload: None where it has none."""
    if value.pattern:
        match = value.pattern.search(payload.decode(errors="replace"))
        return match[1] if match else None
    try:
        found = _loads(payload)
    except (ValueError, RecursionError):
        return None
    for word in value.path:
        found = found.get(word) if isinstance(found, dict) else None
    return found


def _drain(console: ProductConsole, deadline: float) -> None:
    """Read the console meanwhile, so that a panic is known at once."""
    for _line in console.until(deadline):
        pass


def measure_requests(
    console: ProductConsole, broker: BrokerSession, spec: ProbeRequest, case: MeasuredCase
) -> Columns:
    """Return a row for each request that the host published at its time, answered or not.

    The broker's client paces them by the host's clock, and waits for no answer before the next one.
    """
    clock = Clock()
    lasts_s = (case.rows * case.interval_us) / 1e6 + case.timeout_ms / 1e3
    deadline = time.monotonic() + lasts_s + 5.0
    answers: dict[str, int] = {}
    strange: list[PeerMessage] = []
    while time.monotonic() < deadline:
        _drain(console, min(deadline, time.monotonic() + POLL_S))
        broker.check()
        for message in broker.new_messages():
            key = read_field(spec.key, message.payload)
            if key is None:
                strange.append(message)
            else:
                answers.setdefault(str(key), message.time_ns)
        if len(answers) >= case.rows:
            break
        if broker.all_sent and time.monotonic() > broker.last_sent + case.timeout_ms / 1e3:
            break
    requests = broker.requests()
    if not answers and strange:
        raise unreadable(spec.key, "key", strange[0])
    if not answers:
        raise broker.nothing_came(spec.reply_topic, lasts_s, console.refused())
    timeout_ns = case.timeout_ms * 1_000_000
    done = [answers.get(str(number), 0) for number in range(1, case.rows + 1)]
    in_time = [end and end - sent.sent_ns <= timeout_ns for sent, end in zip(requests, done, strict=True)]
    return {
        "planned_us": tuple(clock.us(one.planned_ns) for one in requests),
        "sent_us": tuple(clock.us(one.sent_ns) for one in requests),
        "done_us": tuple(
            clock.us(end if good else one.sent_ns + timeout_ns)
            for one, end, good in zip(requests, done, in_time, strict=True)
        ),
        "outcome": tuple(OK if good else TIMED_OUT for good in in_time),
    }


def measure_download(
    console: ProductConsole, broker: BrokerSession, server: Server, spec: Download, case: MeasuredCase
) -> Columns:
    """Return one row: from the request to fetch to the last byte that the rack's server handed over.

    Raises FirmwareError where nothing was fetched at all; a fetch that broke off is a row with outcome 1.
    """
    clock = Clock()
    deadline = time.monotonic() + case.timeout_ms / 1e3
    while time.monotonic() < deadline and not server.fetched():
        _drain(console, min(deadline, time.monotonic() + POLL_S))
        broker.check()
        server.check()
    found = server.fetched()
    if found is None:
        raise FirmwareError(
            f"Board {console.board}: {server.url} was not fetched completely within "
            f"{case.timeout_ms} ms of {spec.payload!r} on {spec.topic}.",
            log=console.log_path,
            next_step="read the console log: what does the product print about the request?",
        )
    (asked,) = broker.requests()
    return {
        "asked_us": (clock.us(asked.sent_ns),),
        "began_us": (clock.us(found.began_ns),),
        "done_us": (clock.us(found.done_ns),),
        "size_bytes": (found.size_bytes,),
        "outcome": (OK if found.size_bytes == server.size_bytes else TIMED_OUT,),
    }
