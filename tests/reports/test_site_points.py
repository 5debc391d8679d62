# SPDX-License-Identifier: Apache-2.0
"""Allure's history: which earlier reports a test is compared with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hil.base.errors import ConfigError
from hil.reports.site import points


def line(day: int, **changes: str) -> Mapping[str, Any]:
    return {
        "run_id": f"run-{day}",
        "started_utc": f"2026-11-{day}T10:15:00Z",
        "commit": "a" * 40,
        "trigger": "local",
        "rack": "virtual",
        "profile": "lab",
        **changes,
    }


def lent(tmp_path: Path, earlier: Mapping[str, Any], now: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what Allure is given of a report of ``earlier`` when ``now`` is reported."""
    history, copy = tmp_path / "allure.jsonl", tmp_path / "copy.jsonl"
    copy.write_text('{"uuid": "x", "testResults": {}}\n')
    points.take_back(history, copy, [earlier])
    points.lend(history, copy, [now])
    return [json.loads(text) for text in copy.read_text().splitlines()]


@pytest.mark.parametrize(
    ("changes", "count"),
    [({}, 1), ({"profile": "hotspot"}, 0), ({"rack": "lab", "profile": ""}, 1), ({"trigger": "nightly"}, 0)],
)
def test_a_test_is_not_compared_over_another_air(tmp_path: Path, changes: dict[str, str], count: int) -> None:
    """Its past holds reports of the same purpose, over the same air where the rack is the same."""
    assert len(lent(tmp_path, line(10), line(11, **changes))) == count


def test_a_point_from_before_profiles_were_kept_still_counts(tmp_path: Path) -> None:
    """An older history is not lost."""
    history, copy = tmp_path / "allure.jsonl", tmp_path / "copy.jsonl"
    old = {"runs": ["run-9"], "started_utc": "2026-11-09T10:15:00Z", "trigger": "local"}
    history.write_text(json.dumps(old) + "\n")
    points.lend(history, copy, [line(11)])
    assert [json.loads(text) for text in copy.read_text().splitlines()] == [old]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"[1]", "not a JSON object"),
        (b'{"runs":"x"}', "runs of the wrong type"),
        (b'{"runs":["x"],"started_utc":null,"trigger":"local"}', "started_utc of the wrong type"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_a_damaged_line_is_named_with_the_way_out(tmp_path: Path, raw: bytes, said: str) -> None:
    """The error names file, line, what is wrong, how the line starts, and how to take it out."""
    history = tmp_path / "allure.jsonl"
    history.write_bytes(b"{}\n" * 6 + raw)
    with pytest.raises(ConfigError, match=said) as caught:
        points.lend(history, tmp_path / "copy.jsonl", [line(11)])
    assert caught.value.sentence.startswith(f"{history}:7: ")
    assert f"sed -i 7d {history}" in str(caught.value)
    assert len(caught.value.sentence) < len(str(history)) + 400
