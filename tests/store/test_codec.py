# SPDX-License-Identifier: Apache-2.0
"""Dataclasses from JSON: what is taken, and how what is not is named."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
from msgspec import Meta

from hil.store.codec import build, decode


@dataclass(frozen=True)
class Part:
    name: str
    ratio: float | None = None


@dataclass(frozen=True)
class Whole:
    count: int
    sure: bool = True
    word: Literal["a", "b"] = "a"
    names: tuple[Annotated[str, Meta(min_length=1)], ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()
    parts: tuple[Part, ...] = ()
    one: Part | None = None
    facts: Mapping[str, Mapping[str, int | float | str | bool | None]] | None = None
    columns: Mapping[str, tuple[Annotated[int, Meta(le=9)], ...]] | None = None


def test_what_fits_becomes_the_dataclass() -> None:
    """Lists become tuples, objects become parts; what is left out has its default."""
    stored = {
        "count": 2,
        "names": ["x"],
        "pairs": [[1, 2]],
        "parts": [{"name": "p", "ratio": 2}],
        "one": None,
    }
    assert build(Whole, stored) == Whole(2, names=("x",), pairs=((1, 2),), parts=(Part("p", 2.0),))
    facts = {"device": {"a": 1, "b": 1.5, "c": True, "d": None, "e": "x"}}
    assert build(Whole, {"count": 2, "facts": facts}).facts == facts


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ([], "it is []; expected an object"),
        ({}, "count is missing"),
        ({"count": "1"}, "count is '1'; expected an integer"),
        ({"count": 1.0}, "count is 1.0; expected an integer"),
        ({"count": True}, "count is True; expected an integer"),
        ({"sure": 1}, "sure is 1; expected true or false"),
        ({"word": "c"}, "word is 'c'; expected one of a, b"),
        ({"names": "x"}, "names is 'x'; expected a list"),
        ({"names": [""]}, "names[0] is ''; expected text of length >= 1"),
        ({"pairs": [[1, 2], [1]]}, "pairs[1] is [1]; expected a list of length 2"),
        ({"pairs": [[1, "2"]]}, "pairs[0][1] is '2'; expected an integer"),
        ({"parts": [{"name": "p"}, {}]}, "parts[1].name is missing"),
        ({"parts": [{"name": "p", "ratio": "1"}]}, "parts[0].ratio is '1'; expected a number or null"),
        ({"parts": [{"name": "p", "colour": "red"}]}, "parts[0].colour is an unknown key"),
        ({"one": {"name": 1}}, "one.name is 1; expected text"),
        ({"colour": "red"}, "colour is an unknown key"),
        ({"facts": {"device": 1}}, "facts.device is 1; expected an object"),
        ({"facts": {"host": {"a": 1}, "device": {"a": 1, "b": [1]}}}, "facts.device.b is [1]; expected "),
        ({"columns": {"a_us": [1], "b_us": [1, 10]}}, "columns.b_us[1] is 10; expected an integer <= 9"),
    ],
)
def test_what_does_not_fit_is_named(stored: object, said: str) -> None:
    """Key, value and what was expected, at any depth; the key of an object too."""
    wrong = {"count": 1, **stored} if isinstance(stored, dict) and stored else stored
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        build(Whole, wrong)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("text", ["c' - at `$.names`", "` - at `$.nothing`"])
def test_a_value_or_key_that_looks_like_a_place_is_none(text: str) -> None:
    """What others wrote stands in the sentence, and leads no reader astray."""
    for wrong, said in (({"count": 1, "word": text}, "word is "), ({"count": 1, text: 1}, text)):
        with pytest.raises(ValueError, match=re.escape(said)):
            build(Whole, wrong)


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b'{"a": NaN}', b"1e999", b"[" * 100_000])
def test_what_is_no_json_is_refused(text: bytes) -> None:
    """Neither half a text nor a number that is none."""
    with pytest.raises(ValueError, match="not JSON: "):
        decode(text)
