# SPDX-License-Identifier: Apache-2.0
"""What tests of workflow steps share: verdicts that were judged again once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

from hil.gate import judge
from hil.model import Verdict


@pytest.fixture(scope="session", autouse=True)
def _judge_again_once() -> Iterator[None]:
    """Have each leg judged again once in a process: the gate is pure, and many tests read the same leg."""
    verdicts: dict[str, Verdict] = {}

    def judge_once(*given: object) -> Verdict:
        key = hashlib.sha256(repr(given).encode()).hexdigest()
        if key not in verdicts:
            verdicts[key] = judge(*given)  # type: ignore[arg-type]
        return verdicts[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hil.ci.again.judge", judge_once)
        yield
