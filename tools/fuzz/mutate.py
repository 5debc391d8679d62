# SPDX-License-Identifier: Apache-2.0
"""Changes to an input that keep its form, so that a reader gets past its first line.

A change of bytes leaves JSON and YAML broken nearly always; these change one value, key or line of them.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import atheris

Mutator = Callable[[bytes, int, int], bytes]  # the input, how long the new one may be, the seed
_PLAIN_SHARE = 0.3  # changes of bytes, all the same
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 0.5, 1e308, "", "0", "x" * 300, "\x1b[2J", "\u202e",
    "../../x", "::error::x", "nan", [], {}, [[]], [None], {"": ""}, "2026-02-30", "b1", "pass", "publish",
)  # fmt: skip


def of_json(data: bytes, most: int, seed: int) -> bytes:
    """Change, take away or double one value of a JSON text, or of one line of JSON lines."""
    chance = random.Random(seed)
    lines = data.split(b"\n")
    at = chance.randrange(len(lines))
    try:
        value = json.loads(lines[at])
    except (ValueError, RecursionError):
        return bytes(atheris.Mutate(data, most))
    if chance.random() < _PLAIN_SHARE:
        return bytes(atheris.Mutate(data, most))
    value = copy.deepcopy(value)
    places = list(_places(value))
    if not places:
        value = chance.choice(ODD)
    else:
        _change(chance, *chance.choice(places))
    lines[at] = json.dumps(value, ensure_ascii=chance.random() < 0.5).encode(errors="replace")
    return b"\n".join(lines)[:most]


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container in a value with each of its keys or indices."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, content in inner:
        yield value, key
        yield from _places(content)


def _change(chance: random.Random, holder: Any, key: Any) -> None:
    what = chance.randrange(4)
    if what == 0:
        del holder[key]
    elif what == 1 and isinstance(holder, dict):
        holder[f"{key}{chance.choice(('x', '_us', '2'))}"] = holder[key]
    elif what == 2 and isinstance(holder[key], (int, float)) and not isinstance(holder[key], bool):
        holder[key] = holder[key] * chance.choice((-1, 2, 1000)) + chance.choice((-1, 0, 1))
    elif what == 3 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    else:
        holder[key] = chance.choice(ODD)


def of_lines(data: bytes, most: int, seed: int) -> bytes:
    """Change one line of a text such as YAML: its value, its indentation, its place; or take it away."""
    chance = random.Random(seed)
    lines = data.split(b"\n")
    if chance.random() < _PLAIN_SHARE or len(lines) < 2:
        return bytes(atheris.Mutate(data, most))
    at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    what = chance.randrange(6)
    if what == 0:
        del lines[at]
    elif what == 1:
        lines.insert(at, lines[other])
    elif what == 2:
        lines[at] = b"  " + lines[at]
    elif what == 3:
        lines[at] = lines[at].removeprefix(b"  ")
    elif what == 4:
        lines[at], lines[other] = lines[other], lines[at]
    else:
        key, colon, _value = lines[at].partition(b":")
        odd = json.dumps(chance.choice(ODD), ensure_ascii=False).encode(errors="replace")
        lines[at] = key + (colon or b":") + b" " + odd
    return b"\n".join(lines)[:most]
