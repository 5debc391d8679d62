# SPDX-License-Identifier: Apache-2.0
"""A segment: what the history keeps of one run. One canonical JSON file, ``<rack>/<run-id>.json``.

docs/operate/history.md says what each key holds. Values are columns: a row of ``series`` is a metric of a
case on a set of boots, and its values follow one another in ``values``. The same run gives the same bytes,
in whatever order its records came.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hil.base.numeric import np
from hil.model import PastKind, Scalar

SCHEMA_VERSION = 1
ROLES = ("candidate", "reference")
SIGNIFICANT_DIGITS = 10


@dataclass(frozen=True)
class SegmentBoard:
    """``conditions`` are what its values hang on; what changed during the run holds all of it: "6 | 11"."""

    id: str
    target: str
    kind: PastKind
    conditions: Mapping[str, Scalar]


@dataclass(frozen=True)
class Image:
    """What booted in a role. ``rulers`` maps a bench to the hash of the sources that measure."""

    role: str
    name: str
    sha256: str
    rulers: Mapping[str, str]


@dataclass(frozen=True)
class Boot:
    """``board`` and ``image`` index the segment's; ``index`` is its position in the run on its board."""

    board: int
    index: int
    image: int


@dataclass(frozen=True)
class Segment:
    """A run. ``series`` are rows of (case, metric, boot set), as indices; arrays have an element a value."""

    run_id: str
    started_utc: str
    rack: str
    suite: str
    trigger: str
    commit: str
    dirty: bool
    boards: tuple[SegmentBoard, ...]
    images: tuple[Image, ...]
    boots: tuple[Boot, ...]
    cases: tuple[str, ...]
    metrics: tuple[str, ...]
    boot_sets: tuple[tuple[int, ...], ...]
    series: np.ndarray
    values: np.ndarray
    samples: np.ndarray
    hits: np.ndarray
    product: str = ""

    def __len__(self) -> int:
        return len(self.values)


HEAD: Mapping[str, type] = {
    "run_id": str,
    "started_utc": str,
    "rack": str,
    "suite": str,
    "trigger": str,
    "commit": str,
    "dirty": bool,
}
BOOT_KEYS = ("board", "index", "image")
SERIES_KEYS = ("case", "metric", "boots")
PRODUCT = "product"
KEYS = ("schema", *HEAD, "boards", "images", "boots", "cases", "metrics", "boot_sets", "series")
VALUE_KEYS = ("values", "samples", "hits")


def to_bytes(segment: Segment) -> bytes:
    """Return the file's content: a key a line, in a fixed order."""
    lines = (f"{_dump(key)}: {_dump(value)}" for key, value in to_json(segment).items())
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def to_json(segment: Segment) -> dict[str, Any]:
    """Return the JSON object of a segment. Raises ValueError where a value is NaN or minus infinity."""
    return {
        "schema": SCHEMA_VERSION,
        **{key: getattr(segment, key) for key in HEAD},
        **({PRODUCT: segment.product} if segment.product else {}),
        "boards": [
            {"id": one.id, "target": one.target, "kind": one.kind, "conditions": dict(one.conditions)}
            for one in segment.boards
        ],
        "images": [
            {"role": one.role, "name": one.name, "sha256": one.sha256, "rulers": dict(one.rulers)}
            for one in segment.images
        ],
        "boots": {key: [getattr(boot, key) for boot in segment.boots] for key in BOOT_KEYS},
        "cases": list(segment.cases),
        "metrics": list(segment.metrics),
        "boot_sets": [list(boots) for boots in segment.boot_sets],
        "series": dict(zip(SERIES_KEYS, segment.series.T.tolist(), strict=True)),
        "values": [_written(value) for value in segment.values.tolist()],
        "samples": _run_lengths(segment.samples),
        "hits": _run_lengths(segment.hits),
    }


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def _written(value: float) -> int | float | None:
    """Return a value as JSON holds it: ten digits, whole numbers as such, None for plus infinity."""
    if value == math.inf:
        return None
    if not math.isfinite(value):
        raise ValueError(f"a boot value is {value}")
    if value == int(value) and abs(value) < 2**53:
        return int(value)
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}")


def _run_lengths(column: np.ndarray) -> list[int]:
    """Return value, times, value, times, …"""
    starts = np.flatnonzero(np.diff(column, prepend=column[:1] - 1))
    times = np.diff(np.append(starts, len(column)))
    return [int(number) for pair in zip(column[starts], times, strict=True) for number in pair]
