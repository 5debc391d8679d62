# SPDX-License-Identifier: Apache-2.0
"""A suite measured in two shards on virtual boards, and merged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lab import make_lab, of_type

pytestmark = pytest.mark.slow

CASES = """\
suites:
  quick:
    - {count: 60, warmup: 5, interval_us: 10000, qos: [0, 1]}
"""


def test_two_shards_become_one_run(tmp_path: Path, virtual_firmware: Path) -> None:
    """Each measures the case that the other has not, on both boards; merged they are a whole, judged run."""
    lab = make_lab(tmp_path, 2, firmware=virtual_firmware, suites={"publish": CASES})
    measured: list[set[tuple[str, str]]] = []
    runs = []
    for shard in ("1/2", "2/2"):
        done = lab.run("--shard", shard)
        assert done.returncode == 0, done.stdout
        runs.append((lab.out / "latest").resolve())
        measured.append({(one["board"], one["case_id"]) for one in of_type(lab.entries(), "record")})
    assert [{board for board, _case in one} for one in measured] == [{"b1", "b2"}] * 2
    assert [len(one) for one in measured] == [2, 2]
    assert not measured[0] & measured[1]
    one, other = (json.loads((run / "run.json").read_text()) for run in runs)
    # whoever works on this checkout meanwhile has another commit
    (runs[1] / "run.json").write_text(json.dumps({**other, "git": one["git"]}))
    to = ("--out", str(lab.out), "--no-report")
    done = lab.hil("ci", "merge", *map(str, runs), *to, "--undecided-status", "0")
    assert done.returncode == 0, done.stdout
    whole = {(one["board"], one["case_id"]) for one in of_type(lab.entries(), "record")}
    assert whole == measured[0] | measured[1]
    latest = lab.out / "latest"
    assert latest.resolve() not in runs
    lab.good_outcome()
    assert (latest / "console" / "b1.log").read_text().count("--- shard ") == 2
    replayed = lab.hil("gate", str(latest))
    assert "the same verdict, byte for byte" in replayed.stdout
    missing = lab.hil("ci", "merge", str(runs[0]), *to)
    assert missing.returncode == 4, missing.stdout
    assert "2 planned cases not measured" in missing.stdout
    lab.await_nothing_left()
