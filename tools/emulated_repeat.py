# SPDX-License-Identifier: Apache-2.0
"""Boot one image twenty times in an emulator, and say which figures are equal, which vary and by how much.

    python -m tools.emulated_repeat --emulator esp-emu --firmware build/ [options of hil run]

The gate may take a figure as exact only where it is equal in each boot. Exits as `hil run` does.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence

from hil.base.paths import PROJECT_ROOT
from hil.base.units import Unit, format_value
from hil.cli.options import aligned
from hil.metrics.boot_value import boot_value
from hil.model import RunRecord
from hil.store import StoredRun, read_measured
from hil.thresholds.loader import own_limits

BOOTS = 20
OUT = PROJECT_ROOT / "out" / "emulated-repeat"


def main(argv: Sequence[str]) -> int:
    latest = OUT / "latest"
    latest.unlink(missing_ok=True)
    words = ("run", "--boots", str(BOOTS), "--out", str(OUT), "--no-report", *argv)
    status = subprocess.run([sys.executable, "-m", "hil", *words], check=False).returncode
    if latest.exists():
        print("\n".join(told(read_measured(latest.resolve()))))
    return status


def told(run: StoredRun) -> list[str]:
    """Return a line for each figure of a run: what it was in its boots; those that vary first."""
    found = values_of(run)
    rows = [_row(case, name, *found[case, name]) for case, name in found]
    varying = [row for row in rows if row[0] == "varies"]
    equal = [row for row in rows if row[0] == "equal"]
    return [
        *aligned([*varying, *equal]),
        f"{len(equal)} figures are equal in each boot, {len(varying)} vary.",
    ]


def values_of(run: StoredRun) -> Mapping[tuple[str, str], tuple[Unit, list[float]]]:
    """Return unit and boot values of each case's metrics, of figures that there are in two boots at least."""
    limits = own_limits(run)
    found: dict[tuple[str, str], tuple[Unit, list[float]]] = {}
    for record in _records(run):
        for metric in limits[record.bench].metrics_of(record.parameters, [record]):
            value = boot_value(metric, record)
            case = f"{record.bench} {limits[record.bench].case_label(record.parameters)}"
            if value is not None:
                found.setdefault((case, metric.name), (metric.unit, []))[1].append(value.value)
    return {key: (unit, values) for key, (unit, values) in found.items() if len(values) > 1}


def _records(run: StoredRun) -> Iterable[RunRecord]:
    return (one for one in run.journal.entries if isinstance(one, RunRecord) and one.role == "candidate")


def _row(case: str, name: str, unit: Unit, values: Sequence[float]) -> tuple[str, ...]:
    least, most = min(values), max(values)
    low, high = format_value(least, unit), format_value(most, unit)
    if least == most:
        return ("equal", case, name, low, f"{len(values)} boots")
    by = f"{(most - least) / abs(most):.3%}" if most else "from below 0"
    return ("varies", case, name, f"{low} to {high}", f"{len(values)} boots, by {by}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
