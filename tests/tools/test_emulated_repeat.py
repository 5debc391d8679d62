# SPDX-License-Identifier: Apache-2.0
"""What twenty boots of one image say: which figures are equal in each, and which vary."""

from __future__ import annotations

import re
from pathlib import Path

from hil.base.paths import TOOL_THRESHOLDS
from hil.store import RunDirectory, read_measured
from hil.thresholds import project_files
from hil.thresholds.loader import FOLDER
from tests.make_records import publish_record, run_info
from tools.emulated_repeat import told


def test_a_figure_that_is_equal_in_each_boot_is_told_apart_from_one_that_varies(tmp_path: Path) -> None:
    """With least and most, and by how much of the most; what is in one boot alone says nothing."""
    run = RunDirectory.create(tmp_path, run_info())
    run.keep(project_files(TOOL_THRESHOLDS), FOLDER)
    for boot, latency_ms in enumerate((10, 20)):
        run.append(publish_record(boot_index=boot, latency_ms=latency_ms))
    lines = told(read_measured(run.path))
    (latency,) = [line for line in lines if " publish_latency_p50_us " in line]
    (failed,) = [line for line in lines if " publish_failed_ratio " in line]
    assert latency.startswith("varies")
    assert re.search(r" ms +2 boots, by \d+\.\d{3}%$", latency)
    assert failed.startswith("equal")
    assert lines.index(latency) < lines.index(failed)
    assert lines[-1].endswith(" vary.")
