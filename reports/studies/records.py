# SPDX-License-Identifier: Apache-2.0
"""The records that a row compares with, and why there are none."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hil.model import Entry, Fault, NotRun, RunRecord, Scalar, bench_of, parameters_in
from hil.reports.studies.declaration import Comparison

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class BoardRun:
    """What a run left of one board: its records in the order of measuring, and what went wrong."""

    board: str
    target: str
    kind: str
    records: tuple[RunRecord, ...]
    troubles: tuple[Fault | NotRun, ...]

    def select(self, wanted: Comparison) -> tuple[RunRecord, ...]:
        """Return the records that have the bench and the parameters."""
        found = [record for record in self.of(wanted.bench) if _fits(record.parameters, wanted.case)]
        if wanted.highest and found:
            best = max(whole(record, wanted.highest) for record in found)
            found = [record for record in found if whole(record, wanted.highest) == best]
        return tuple(found)

    def of(self, bench: str) -> list[RunRecord]:
        """Return the records of a bench."""
        return [record for record in self.records if record.bench == bench]

    def why_missing(self, wanted: Comparison) -> str:
        """Return why nothing compares: the sentence of the fault or of what was not run, if there is one."""
        for trouble in self.troubles:
            bench, parameters = bench_of(trouble.case_id), parameters_in(trouble.case_id)
            if bench == wanted.bench and _fits(parameters, wanted.case):
                return trouble.sentence if isinstance(trouble, Fault) else trouble.reason
        board_wide = [trouble for trouble in self.troubles if not trouble.case_id]
        if board_wide and not self.of(wanted.bench):
            first = board_wide[0]
            return first.sentence if isinstance(first, Fault) else first.reason
        return "the run's suite has no such case"


def _fits(
    parameters: Mapping[str, Scalar] | Mapping[str, str], wanted: Mapping[str, tuple[Scalar, ...]]
) -> bool:
    return all(str(parameters.get(key)) in map(str, values) for key, values in wanted.items())


def boards_of_run(entries: Sequence[Entry]) -> list[BoardRun]:
    """Return the boards in the order of their first record; those that measured nothing are left out."""
    records = [entry for entry in entries if isinstance(entry, RunRecord) and entry.role == "candidate"]
    found = []
    for board in dict.fromkeys(record.board for record in records):
        own = sorted(
            (record for record in records if record.board == board),
            key=lambda record: (record.boot_index, record.started_utc),
        )
        troubles = tuple(
            entry for entry in entries if isinstance(entry, Fault | NotRun) and entry.board in ("", board)
        )
        found.append(BoardRun(board, own[0].target, own[0].kind, tuple(own), troubles))
    return found


def whole(record: RunRecord, parameter: str) -> int:
    """Return a parameter that is an integer; 0 where the record has none."""
    value = record.parameters.get(parameter, 0)
    return value if isinstance(value, int) else 0


def word(record: RunRecord, parameter: str) -> str:
    """Return a parameter as text; "" where the record has none."""
    return str(record.parameters.get(parameter, ""))


def fact(record: RunRecord, group: str, name: str) -> float | None:
    """Return a number of the record's environment; None where it was not recorded."""
    value = record.environment.get(group, {}).get(name)
    return None if value is None or isinstance(value, bool | str) else float(value)


def facts(records: Iterable[RunRecord], name: str, group: str = "peer") -> list[float]:
    """Return a fact of the records that have it."""
    return [value for record in records if (value := fact(record, group, name)) is not None]


def mean_fact(records: Iterable[RunRecord], name: str) -> float | None:
    """Return the mean of a fact of the peer over the records that have it; None where none has."""
    found = facts(records, name)
    return sum(found) / len(found) if found else None


def greatest(records: Iterable[RunRecord], name: str, group: str = "peer") -> float | None:
    """Return the largest value of a fact; None where no record has it."""
    return max(facts(records, name, group), default=None)


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return the items by a key, in the order in which the keys appear."""
    found: dict[K, list[T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def boots(records: Iterable[RunRecord]) -> int:
    """Return how many boots the records come from."""
    return len({record.boot_index for record in records})


def size_text(payload_bytes: int) -> str:
    """Return "10 KB" for 10000 and for 10240."""
    for unit, factors in (("MB", (1 << 20, 10**6)), ("KB", (1 << 10, 10**3))):
        for factor in factors:
            if payload_bytes and payload_bytes % factor == 0:
                return f"{payload_bytes // factor} {unit}"
    return f"{payload_bytes} B"


def rate_text(interval_us: int) -> str:
    """Return "10/s" for an interval of 100 ms."""
    return f"{round(1e6 / interval_us, 3):g}/s" if interval_us else "at once"


TRANSPORTS = {"tcp": "plain", "tls": "TLS", "mtls": "mutual TLS", "password": "password"}
MAPPINGS = {"none": "unpinned", "1": "sensor 0, MQTT 1", "0": "sensor 1, MQTT 0"}  # by the publisher's core


def say(parameter: str, value: Scalar) -> str:
    """Return the words for a parameter's value."""
    words: dict[str, Callable[[], str]] = {
        "qos": lambda: f"QoS {value}",
        "payload_bytes": lambda: size_text(int(str(value))),
        "interval_us": lambda: rate_text(int(str(value))),
        "transport": lambda: TRANSPORTS[str(value)],
        "publisher_core": lambda: MAPPINGS[str(value)],
    }
    return words[parameter]() if parameter in words else f"{parameter} {value}"
