# SPDX-License-Identifier: Apache-2.0
"""Read a segment from JSON: check every key, type and index, so that no damaged file is half read."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from hil.base.numeric import np
from hil.history.segment import (
    BOOT_KEYS,
    HEAD,
    KEYS,
    PRODUCT,
    ROLES,
    SCHEMA_VERSION,
    SERIES_KEYS,
    VALUE_KEYS,
    Boot,
    Image,
    Segment,
    SegmentBoard,
)
from hil.model import IMPORTED, KINDS, LONGEST_PRODUCT, PRODUCT_PATTERN


class SegmentError(ValueError):
    """JSON that is no segment; the message says what is wrong with it."""


def from_json(value: object) -> Segment:
    """Build the segment that to_json() wrote. Raises SegmentError."""
    fields = _object(value, "it")
    if fields.get("schema") != SCHEMA_VERSION:
        raise SegmentError(f"its schema is {fields.get('schema')!r}; this program reads {SCHEMA_VERSION}")
    product = _product(fields)
    _check_keys(fields, (*KEYS, *([PRODUCT] if product else []), *VALUE_KEYS), "it")
    for key, kind in HEAD.items():
        if type(fields[key]) is not kind:
            raise SegmentError(f"{key!r} is {fields[key]!r:.40}; expected {kind.__name__}")
    boots, series = _columns(fields, "boots", BOOT_KEYS), _columns(fields, "series", SERIES_KEYS)
    count = len(_list(fields, "values"))
    segment = Segment(
        **{key: fields[key] for key in HEAD},
        boards=tuple(_board(one) for one in _list(fields, "boards")),
        images=tuple(_image(one) for one in _list(fields, "images")),
        boots=tuple(Boot(*row) for row in zip(*boots, strict=True)),
        cases=_texts(fields, "cases"),
        metrics=_texts(fields, "metrics"),
        boot_sets=tuple(tuple(_integers(boots, "boot_sets")) for boots in _list(fields, "boot_sets")),
        series=np.array(series, dtype=np.intp).T,
        values=_values(fields["values"]),
        samples=_repeated(fields, "samples", count),
        hits=_repeated(fields, "hits", count),
        product=product,
    )
    _check_segment(segment)
    _check_imported(segment)
    return segment


def _product(fields: Mapping[str, Any]) -> str:
    """Return whose figures these are; "" of a file without the key. Raises SegmentError."""
    name = fields.get(PRODUCT, "")
    is_name = isinstance(name, str) and len(name) <= LONGEST_PRODUCT and re.fullmatch(PRODUCT_PATTERN, name)
    if not is_name or (not name and PRODUCT in fields):
        raise SegmentError(f"{PRODUCT!r} is {name!r:.40}, no name of a product")
    return str(name)


def _check_segment(segment: Segment) -> None:
    """Check that every index points at something and that all values have a series. Raises SegmentError."""
    boards, images, boots = len(segment.boards), len(segment.images), len(segment.boots)
    _check_indices("boots.board", [boot.board for boot in segment.boots], boards)
    _check_indices("boots.image", [boot.image for boot in segment.boots], images)
    for one in segment.boot_sets:
        _check_indices("boot_sets", one, boots)
    bounds = (len(segment.cases), len(segment.metrics), len(segment.boot_sets))
    for key, column, bound in zip(SERIES_KEYS, segment.series.T.tolist(), bounds, strict=True):
        _check_indices(f"series.{key}", column, bound)
    sizes = [len(boots) for boots in segment.boot_sets]
    wanted = sum(sizes[boots] for boots in segment.series[:, 2].tolist())
    if wanted != len(segment.values):
        raise SegmentError(f"its series have {wanted} boots, but 'values' holds {len(segment.values)}")


def _check_imported(segment: Segment) -> None:
    """Check that imported figures are in a rack of their own, with nothing measured. Raises SegmentError."""
    said = {segment.rack == IMPORTED, segment.trigger == IMPORTED}
    said |= {board.kind == IMPORTED for board in segment.boards}
    if len(said) > 1:
        raise SegmentError(f"rack, trigger and kinds of its boards are not all {IMPORTED!r}, or none of them")


def _values(content: Sequence[object]) -> np.ndarray:
    if not set(map(type, content)) <= {int, float, type(None)}:
        raise SegmentError("'values' is no list of numbers (null: beyond the timeout)")
    values = np.array(content, dtype=np.float64)
    values[np.isnan(values)] = math.inf
    return values


def _repeated(fields: Mapping[str, Any], key: str, count: int) -> np.ndarray:
    numbers = _integers(fields[key], key)
    values, times = numbers[::2], numbers[1::2]
    if len(values) != len(times) or min(times, default=1) < 1 or sum(times) != count:
        raise SegmentError(
            f"{key!r} is not one number for each of the {count} values, as runs (value, times)"
        )
    if max(map(abs, values), default=0) >= 1 << 63:
        raise SegmentError(f"{key!r} holds a number of more than 64 bits")
    return np.repeat(np.array(values, dtype=np.int64), times)


def _board(value: object) -> SegmentBoard:
    fields = _object(value, "a board")
    _check_keys(fields, ("id", "target", "kind", "conditions"), "a board")
    conditions = _object(fields["conditions"], "'conditions'")
    if any(not isinstance(each, bool | int | float | str | None) for each in conditions.values()):
        raise SegmentError(f"'conditions' of board {fields['id']!r} holds more than single values")
    if fields["kind"] not in (kinds := (*KINDS, IMPORTED)):
        raise SegmentError(f"the kind of board {fields['id']!r} is {fields['kind']!r}, none of {kinds}")
    return SegmentBoard(_text(fields, "id"), _text(fields, "target"), fields["kind"], conditions)


def _image(value: object) -> Image:
    fields = _object(value, "an image")
    _check_keys(fields, ("role", "name", "sha256", "rulers"), "an image")
    rulers = _object(fields["rulers"], "'rulers'")
    if not all(isinstance(ruler, str) for ruler in rulers.values()):
        raise SegmentError(f"'rulers' of image {fields['name']!r} are not all texts")
    role = _text(fields, "role")
    if role not in ROLES:
        raise SegmentError(f"the role of image {fields['name']!r} is {role!r}; expected {' or '.join(ROLES)}")
    return Image(role, _text(fields, "name"), _text(fields, "sha256"), rulers)


def _object(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SegmentError(f"{what} is {value!r:.40}, no JSON object")
    return value


def _check_keys(fields: Mapping[str, Any], wanted: Sequence[str], what: str) -> None:
    if fields.keys() != set(wanted):
        missing = [key for key in wanted if key not in fields]
        unknown = [key for key in fields if key not in wanted]
        problems = [f"lacks {key!r}" for key in missing] + [
            f"has {key!r}, which is unknown" for key in unknown
        ]
        raise SegmentError(f"{what} {', '.join(problems)}")


def _list(fields: Mapping[str, Any], key: str) -> list[Any]:
    if not isinstance(fields[key], list):
        raise SegmentError(f"{key!r} is {fields[key]!r:.40}, no list")
    return list(fields[key])


def _text(fields: Mapping[str, Any], key: str) -> str:
    value = fields[key]
    if not isinstance(value, str):
        raise SegmentError(f"{key!r} is {value!r:.40}, no text")
    return value


def _texts(fields: Mapping[str, Any], key: str) -> tuple[str, ...]:
    texts = _list(fields, key)
    if not all(isinstance(text, str) for text in texts) or len(set(texts)) != len(texts):
        raise SegmentError(f"{key!r} is no list of texts that differ")
    return tuple(texts)


def _columns(fields: Mapping[str, Any], key: str, names: Sequence[str]) -> list[list[Any]]:
    columns = _object(fields[key], repr(key))
    _check_keys(columns, names, repr(key))
    found = [_list(columns, name) for name in names]
    if len({len(column) for column in found}) > 1:
        raise SegmentError(f"the columns of {key!r} differ in length")
    for name, column in zip(names, found, strict=True):
        _integers(column, f"{key}.{name}")
    return found


def _integers(value: object, key: str) -> list[int]:
    if not isinstance(value, list) or not set(map(type, value)) <= {int}:
        raise SegmentError(f"{key!r} is no list of integers")
    return value


def _check_indices(key: str, column: Sequence[int], bound: int) -> None:
    if column and not (min(column) >= 0 and max(column) < bound):
        raise SegmentError(f"{key!r} points at {min(column)} to {max(column)}, of {bound}")
