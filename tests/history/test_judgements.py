# SPDX-License-Identifier: Apache-2.0
"""How unchanged firmware was judged: what of a run is a judgement, and that the history keeps it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.history.files import read_past
from hil.history.from_run import keep_run
from hil.history.judgements import GATE, unchanged_of, unchanged_runs
from hil.store import read_run
from tests.history.unchanged_runs import METRIC, compared, leave_run

NOISE = {"simulated": True, "profile": "typical", "seed": 7, "description": ""}


def test_a_run_leaves_its_blocking_comparisons(tmp_path: Path) -> None:
    """What decided or stayed undecided on boots is a judgement; advice, no baseline, no boot, and an exact
    figure are none."""
    size = compared(case_id="footprint/", metric="image_bytes", unit="bytes")
    items = [
        compared("regressed", smallest_effect=0.05),
        compared("improved"),
        compared(blocking=False),
        compared("no-baseline"),
        compared(candidate_boots=0),
        size,
    ]
    path = leave_run(tmp_path, items, noise=NOISE, legs=2)
    found = unchanged_of(read_run(path))
    assert found is not None
    assert (found.noise, found.gate) == ("typical", GATE)
    assert found.alpha == pytest.approx(0.005)
    told = [(item.target, item.metric, item.outcome, item.boots) for item in found.judgements]
    assert told == [("esp32", METRIC, "regressed", 16), ("esp32", METRIC, "improved", 16)]
    assert found.judgements[0].smallest_effect == 0.05


def test_the_history_keeps_them(tmp_path: Path) -> None:
    """Once, however often the run enters; a pull request's run, and one in which nothing was judged, have
    none."""
    run = read_run(leave_run(tmp_path, [compared(), compared("regressed")]))
    others = [
        leave_run(tmp_path, [compared("regressed")], unchanged=False, number=2),
        leave_run(tmp_path, [compared(candidate_boots=0)], number=3),
    ]
    for one in (run, run, *map(read_run, others)):
        keep_run(one, tmp_path / "history")
    past = read_past(tmp_path / "history")
    assert len(past.runs) == 3
    (kept,) = unchanged_runs(past.runs)
    assert (kept.run_id, kept.rack, kept.judged) == (run.run_id, "lab", unchanged_of(run))


def test_a_run_without_its_thresholds_is_refused(tmp_path: Path) -> None:
    """Whether a figure is exact its own thresholds tell; where they are lost, the sentence says so."""
    folder = leave_run(tmp_path, [compared()])
    (folder / "thresholds" / "publish.yaml").unlink()
    with pytest.raises(ConfigError, match=r"lacks publish\.yaml"):
        unchanged_of(read_run(folder))
