"""Whether a value that was read back from JSON is one that a field of ours can have."""

from __future__ import annotations

import functools
import math
import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args, get_origin

Check = Callable[[object], bool]


@functools.cache
def check_of(hint: Any) -> Check:
    """Return what says whether a value is of the type ``hint``; made once a type, asked for every figure.

    ``hint`` is a class, a union, Literal, tuple[item, ...] or Mapping[str, item]. A whole number fits float,
    True and False fit bool alone, and no number is infinite or NaN.
    """
    if isinstance(hint, types.UnionType):
        each = [check_of(one) for one in get_args(hint)]
        return lambda value: any(fits(value) for fits in each)
    if get_origin(hint) is Literal:
        words = get_args(hint)
        return lambda value: value in words
    if get_origin(hint) is tuple:
        item = check_of(get_args(hint)[0])
        return lambda value: isinstance(value, tuple) and all(map(item, value))
    if get_origin(hint) is Mapping:
        content = check_of(get_args(hint)[1])
        return lambda value: isinstance(value, dict) and all(map(content, value.values()))
    return _check_of_plain(hint)


def _check_of_plain(hint: type) -> Check:
    if hint is float:
        return lambda value: (
            isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        )
    if hint is bool:
        return lambda value: isinstance(value, bool)
    return lambda value: isinstance(value, hint) and not isinstance(value, bool)
