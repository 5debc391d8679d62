# SPDX-License-Identifier: Apache-2.0
"""Files of one JSON object a line, and whether a value read back is of its field's type."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hil.base.errors import ConfigError
from hil.store import time_in
from hil.store.jsonl import parse_line


def number_in(value: Mapping[str, Any]) -> int:
    if not isinstance(value.get("n"), int):
        raise ValueError("n is no number")  # noqa: TRY004 - as readers do
    return int(value["n"])


def parse(path: Path, number: int, raw: bytes) -> int:
    return parse_line(path, number, raw, read=number_in, loss="nothing is lost")


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"[1]", "not a JSON object"),
        (b'{"n":"x"}', "n is no number"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_a_damaged_line_is_named_with_the_way_out(tmp_path: Path, raw: bytes, said: str) -> None:
    """The error names file, line, what is wrong, how the line starts, and how to take it out."""
    path = tmp_path / "a.jsonl"
    with pytest.raises(ConfigError, match=said) as caught:
        parse(path, 7, raw)
    assert caught.value.sentence.startswith(f"{path}:7: ")
    assert f"sed -i 7d {path}" in str(caught.value)
    assert len(caught.value.sentence) < len(str(path)) + 400


def test_a_run_id_starts_with_its_time() -> None:
    """Of two runs the later one is known by their names; a name without a time says so."""
    assert time_in("20261120T221257Z-quick-3fa9") == "2026-11-20T22:12:57Z"
    assert time_in("my-run") == ""
