# SPDX-License-Identifier: Apache-2.0
"""Stack use on the host beside that of a chip's program, from two stored runs of the same cases.

A record says how much of each task's stack was never used, and the stacks are as large on both: what is less
free on the host is what its 64-bit frames and glibc take more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hil.base.errors import ConfigError
from hil.model import RunRecord
from hil.store.judged import StoredRun

_KEY = re.compile(r"(host_)?stack_free_min_(\w+)_bytes")
_Place = tuple[str, str, str]  # bench, parameters, task


@dataclass(frozen=True)
class StackRow:
    """A task: in how many cases both runs have it, and the least that was free of its stack there, bytes."""

    task: str
    cases: int
    host_free_bytes: int
    chip_free_bytes: int


def compare_stacks(host: StoredRun, chip: StoredRun) -> Sequence[StackRow]:
    """Return a row for each task that both runs have in the same case, by name.

    Raises ConfigError where a run is not of its kind, or no case is in both.
    """
    on_host, on_chip = _least_free(host.records, host=True), _least_free(chip.records, host=False)
    for run, found, what in ((host, on_host, "the host"), (chip, on_chip, "a chip's program")):
        if not found:
            raise ConfigError(
                f"{run.path} has no stack of a task on {what}.",
                next_step="name a run of a virtual rack first, then one of emulated or physical boards.",
            )
    both = on_host.keys() & on_chip.keys()
    if not both:
        raise ConfigError(
            f"{host.path} and {chip.path} have no case in common.",
            next_step="run the same suite on both racks: hil run --suite SUITE --rack RACK.",
        )
    tasks = sorted({task for _, _, task in both})
    return [_row(task, [place for place in both if place[2] == task], on_host, on_chip) for task in tasks]


def _row(
    task: str, places: Sequence[_Place], host: Mapping[_Place, int], chip: Mapping[_Place, int]
) -> StackRow:
    return StackRow(
        task, len(places), min(host[place] for place in places), min(chip[place] for place in places)
    )


def _least_free(records: Sequence[RunRecord], *, host: bool) -> Mapping[_Place, int]:
    least: dict[_Place, int] = {}
    for record in records:
        case = json.dumps(dict(record.parameters), sort_keys=True)
        for task, free_bytes in _stacks(record, host=host):
            place = (record.bench, case, task)
            least[place] = min(free_bytes, least.get(place, free_bytes))
    return least


def _stacks(record: RunRecord, *, host: bool) -> Iterator[tuple[str, int]]:
    for key, value in record.environment.get("device", {}).items():
        found = _KEY.fullmatch(key)
        if found and bool(found[1]) is host:
            yield found[2], int(str(value))


def stack_lines(rows: Sequence[StackRow]) -> Iterator[str]:
    """Return the lines of a table."""
    width = max(len(row.task) for row in rows)
    yield f"{'task':<{width}}  cases  free, host  free, chip  host uses more"
    for row in rows:
        more = row.chip_free_bytes - row.host_free_bytes
        at_least = ">= " if row.host_free_bytes == 0 else ""
        yield (
            f"{row.task:<{width}}  {row.cases:>5}  {row.host_free_bytes:>10}  {row.chip_free_bytes:>10}  "
            f"{at_least + str(more):>14}"
        )
