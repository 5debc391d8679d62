# SPDX-License-Identifier: Apache-2.0
"""Check a chip's own image on emulated boards; exit 0 where all is well.

Exit codes: 1 something is wrong, 2 there is no emulator or no ESP-IDF, 4 something could not be checked.
"""

from __future__ import annotations

import datetime
import platform
import subprocess
import sys
from collections.abc import Callable
from functools import partial

from hil.base.errors import ExitCode, HilError
from hil.base.paths import PROJECT_ROOT
from tools.check_report import Report
from tools.emulated_check import inputs, panic, steps
from tools.emulated_check.bench import Bench
from tools.emulated_check.inputs import Inputs
from tools.emulated_check.steps import FAULTS, Seen
from tools.idf_check import idf

OUT = PROJECT_ROOT / "out" / "emulated-check"


def main() -> int:
    try:
        found = inputs.find()
    except HilError as error:
        print(f"emulated-check: {error}", file=sys.stderr)
        return int(ExitCode.CONFIG)
    report = Report(found.places)
    _head(report, found)
    check(report, Bench(OUT, found))
    code = report.exit_code()
    report.say({0: "All is well.", 4: "Not everything could be checked."}.get(code, "Something is wrong."))
    return int(code)


def check(report: Report, bench: Bench) -> None:
    """Do all steps; what stops one is a failure of it, and the others go on."""
    _step(report, "two boards", partial(steps.measure_quick, bench))
    for fault in FAULTS:
        _step(report, f"fault {fault.name}", partial(steps.inject, bench, fault))
    _step(report, "fault panic", partial(panic.provoke, bench))
    if bench.inputs.counts:
        _step(report, "sealed runs", partial(steps.seal, bench))
    else:
        report.not_checked("sealed runs", f"{inputs.NAME} counts no instructions")
    _step(report, "comparison", partial(steps.compare_with_itself, bench))
    if bench.inputs.base:
        _step(report, "comparison", partial(steps.compare, bench))
    else:
        report.not_checked("comparison", "of two images: BASE=DIR names none")
    _step(report, "kill -9", partial(steps.kill, bench))


def _head(report: Report, found: Inputs) -> None:
    now = datetime.datetime.now(datetime.UTC)
    report.say(f"emulated-check, {now:%Y-%m-%d %H:%M} UTC, this project at {idf.project_version()}")
    words = inputs.emulator_words(found.emulator)
    report.ok("emulator", f"{words}, machine {inputs.CHIP}, on {platform.machine()}")
    if found.counts and inputs.ESPRESSIF_S_QEMU not in words:
        report.say("note         this QEMU is none of Espressif's releases")
    build = found.firmware.build_dir
    compiler = inputs.compiler_of(build) or "a compiler that nothing names"
    report.ok("image", f"ESP-IDF {inputs.idf_of(build)}, {compiler}, SHA-256 {found.firmware.sha256}")
    if inputs.ESPRESSIF_S_COMPILER not in compiler:
        report.say("note         this compiler is not Espressif's: sizes and instructions are not theirs")


def _step(report: Report, part: str, step: Callable[[], Seen]) -> None:
    try:
        detail, wrong = step()
    except (HilError, OSError, subprocess.TimeoutExpired) as error:
        report.fail(part, str(error))
    else:
        report.verdict(part, detail, wrong)


if __name__ == "__main__":
    sys.exit(main())
