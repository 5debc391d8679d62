# SPDX-License-Identifier: Apache-2.0
"""The commands that print figures, each in its short pass, as a person starts it.

What they time is not looked at: whether they still work is.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence

import pytest

from tests.lab import ROOT, own_environment
from tools.bench import __main__ as bench
from tools.bench.figure import SHORT_PASS
from tools.bench.gate_rack import STEPS as GATE_STEPS
from tools.bench.loss_ledger import SHORT as LOSSES
from tools.demo.plan import HAPPENINGS
from tools.gate_simulation.racks import RACKS
from tools.night_simulation import SCENARIOS as NIGHTS

pytestmark = pytest.mark.slow

TIMEOUT_S = 900.0  # for one that is stuck, on a busy machine

# module → how lines begin that it must print, each with a number further on
COMMANDS: dict[str, Sequence[str]] = {
    "tools.bench": [f"{name}: " for name in bench.FIGURES],
    "tools.gate_simulation": [f"{rack.name} " for rack in RACKS],
    "tools.night_simulation": [scenario.name for scenario in NIGHTS.values()],
    "tools.demo": [f"{name} named rightly" for name in HAPPENINGS],
    "tools.bench.loss_ledger": [scenario.name[:30] for scenario in LOSSES],
    "tools.bench.report": [
        "A year: ",
        "open the trend page",
        "build the report",
        "build the whole report",
        "A page of",
        "open the test report",
    ],
    "tools.bench.gate_rack": [step.words for step in GATE_STEPS],
    "tools.bench.rack": ["as it is", "timing benches", "a boot a case", "the last, by threads"],
    "tools.bench.lease_race": ["rounds: ", "leases: ", "kills: ", "double leases: ", "places stuck"],
}


def test_every_target_that_prints_figures_has_a_short_pass() -> None:
    """What the bench targets of the Makefile start is what is tried here, and nothing else."""
    recipes = re.findall(r"^bench[\w-]*:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    started = [module for recipe in recipes for module in re.findall(r"-m (tools[\w.]*)", recipe)]
    assert sorted(started) == sorted(COMMANDS)


@pytest.mark.heavy
@pytest.mark.parametrize("module", COMMANDS)
def test_a_short_pass_prints_every_row(module: str) -> None:
    """It ends with 0, says first that it is short, and leaves out no figure, row or kind of run."""
    done = subprocess.run(
        [sys.executable, "-m", module, "--short"],
        capture_output=True, text=True, cwd=ROOT, env=own_environment(), timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.stdout.startswith(SHORT_PASS)
    for row in COMMANDS[module]:
        assert re.search(rf"^ *{re.escape(row)}.*\d", done.stdout, re.M), (row, done.stdout)
