# SPDX-License-Identifier: Apache-2.0
"""What a run's id tells."""

from __future__ import annotations

from hil.store import time_in


def test_a_run_id_starts_with_its_time() -> None:
    """Of two runs the later one is known by their names; a name without a time says so."""
    assert time_in("20261120T221257Z-quick-3fa9") == "2026-11-20T22:12:57Z"
    assert time_in("my-run") == ""
