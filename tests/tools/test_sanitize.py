# SPDX-License-Identifier: Apache-2.0
"""Builds with sanitizers: what they find in any log is found and told once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tools import sanitize
from tools.sanitize import Result, findings

LOG = b"""I (12) boot: ok
==71==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000011 at pc 0x55
    #0 0x55 in app_main app_main.c:31
I (13) app: on
/src/run.c:12:9: runtime error: signed integer overflow
==71==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000099 at pc 0x77
WARNING: ThreadSanitizer: data race (pid=71)
"""


def test_each_kind_of_finding_is_told_with_what_stands_below_it() -> None:
    """Three sanitizers' words are known, and the same finding at another address is the same kind."""
    found: dict[str, str] = {}
    for kind, words in findings(LOG):
        found.setdefault(kind, words)
    assert [kind.split(":")[0] for kind in found] == ["ERROR", "/src/run.c", "WARNING"]
    assert "app_main.c:31" in next(iter(found.values()))
    assert not dict(findings(b"I (1) app: no error here\n"))


@pytest.mark.parametrize(
    ("cases", "missing", "found", "status"),
    [
        (3, [], {}, 0),
        (0, [], {}, 1),
        (3, ["not measured: echo on b1: the run ended before it"], {}, 1),
        (3, [], {"ERROR": "log:\nERROR"}, 1),
    ],
)
def test_only_a_measured_build_without_a_finding_is_clean(
    cases: int,
    missing: Sequence[str],
    found: Mapping[str, str],
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What measured nothing, or not all of it, is not clean; what is missing, and a finding, is printed."""
    monkeypatch.setattr(sanitize, "measure", lambda name, _suite: Result(name, cases, 9, missing, found))
    assert sanitize.main([]) == status
    said = capsys.readouterr().out
    assert said.count("✗" if status else "✓") == len(sanitize.BUILDS)
    assert all(words in said for words in (*found.values(), *missing))


@pytest.mark.heavy
def test_what_a_pull_request_measures_is_clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Firmware and air of both builds are measured, and nothing is found."""
    monkeypatch.setattr(sanitize, "OUT", tmp_path)
    results = [sanitize.measure(name, "pr") for name in sanitize.BUILDS]
    assert all(result.is_clean for result in results), [result.found for result in results]
