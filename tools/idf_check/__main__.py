# SPDX-License-Identifier: Apache-2.0
"""Check the firmware against the ESP-IDF of ``IDF_PATH``; exit 0 where all is well.

Exit codes: 1 something is wrong, 2 there is no ESP-IDF, 4 something could not be checked.
"""

from __future__ import annotations

import datetime
import os
import re
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from hil.base.errors import HilError
from hil.base.paths import PROJECT_ROOT
from hil.boards.firmware.build import build
from tools import conformance
from tools.check_report import Report
from tools.idf_check import api, chips, config, hooks, idf, on_linux, sides, trace_on_linux
from tools.idf_check.chips import CHIPS, Chip
from tools.idf_check.idf import Command, Idf
from tools.idf_check.process import run

OUT = PROJECT_ROOT / "out" / "idf-check"
PUBLISH_CASES = 9

# What the comparison has to find in a header of which this was changed, before its silence means anything.
ALTERED = "esp_timer.h"
ALTERATIONS = {
    "esp_timer_start_once": (
        r"esp_timer_start_once\(([^,]+), uint64_t",
        r"esp_timer_start_once(\1, uint32_t",
    ),
    "ESP_TIMER_TASK": (r"ESP_TIMER_TASK\b(,?)", r"ESP_TIMER_TASK = 7\1"),
    "esp_timer_no_such_call": (r"(esp_err_t esp_timer_stop\()", r"void esp_timer_no_such_call(void);\n\1"),
}


def main() -> int:
    try:
        found = idf.find()
        idf.require_tools()
    except HilError as error:
        print(f"idf-check: {error}", file=sys.stderr)
        return int(error.exit_code)
    report = Report({"$IDF_PATH": found.path})
    _head(report, found)
    _guarded(report, "linux target", lambda: _linux(report))
    commands: dict[str, list[Command]] = {}
    for chip in CHIPS:
        _guarded(report, chip.name, partial(_chip, report, chip, commands))
    _guarded(report, "host/idf", lambda: _api(report, found, commands.get(sides.CHIP, [])))
    code = report.exit_code()
    report.say({0: "All is well.", 4: "Not everything could be checked."}.get(code, "Something is wrong."))
    return int(code)


def _head(report: Report, found: Idf) -> None:
    now = datetime.datetime.now(datetime.UTC)
    report.say(f"idf-check, {now:%Y-%m-%d %H:%M} UTC, this project at {idf.project_version()}")
    if found.is_wanted:
        report.ok("ESP-IDF", str(found))
    else:
        report.fail("ESP-IDF", f"{found}; the firmware is for {idf.WANTED}")
    if foreign := idf.foreign_submodules(found.path):
        report.say(f"note         not git's checkout of the commit that ESP-IDF names: {', '.join(foreign)}")
    first = [run((name, "--version")).out.splitlines() for name in ("cc", "clang", "cmake", "mosquitto")]
    report.say("tools        " + "; ".join(lines[0] for lines in first if lines))


def _guarded(report: Report, part: str, check: Callable[[], None]) -> None:
    """Run a part; what stops it is a failure of this part, and the others go on."""
    try:
        check()
    except (HilError, OSError) as error:
        report.fail(part, str(error))


def _linux(report: Report) -> None:
    folder = build(on_linux.TARGET, say=lambda _sentence: None)
    report.ok("linux target", "hil build --target linux: hil-firmware.elf built by ESP-IDF's build system")
    events, missing = trace_on_linux.traced(folder)
    report.verdict(
        "trace on linux", f"{events} events of ESP-IDF's own kernel, fetched by `run trace`", missing
    )
    rules = conformance.run_rules(conformance.build_on_linux())
    broken = {rule.name: rule.says for rule in rules if rule.verdict == conformance.BROKEN}
    held = sum(rule.verdict == conformance.HOLDS for rule in rules)
    report.verdict("rules on linux", f"{held} rules of scheduling hold on ESP-IDF's own FreeRTOS", broken)
    if not shutil.which("mosquitto"):
        report.not_checked("publish on linux", "mosquitto is not installed")
        return
    cases, failed = on_linux.publish(folder, OUT / "publish")
    if cases != PUBLISH_CASES:
        failed["cases"] = f"{cases} ran, not {PUBLISH_CASES}"
    what = "tcp, tls and mtls by QoS 0, 1, 2, every message acknowledged (function, not timing)"
    report.verdict("publish on linux", f"{cases} runs under pytest-embedded's idf service: {what}", failed)


def _chip(report: Report, chip: Chip, configured: dict[str, list[Command]]) -> None:
    compiler = chips.choose(chip, OUT / "tools")
    if compiler is None:
        report.not_checked(chip.name, f"no compiler: apt-get install {chips.wanted_packages(chip)}")
        return
    folder = OUT / chip.name
    commands = configured[chip.name] = idf.configure(chip.name, folder, tools=compiler.tools)
    how = "compiled to objects" if compiler.makes_objects else "passed the syntax check"
    wrong = chips.refused_sources(commands, folder / "idf-check", objects=compiler.makes_objects)
    report.verdict(f"{chip.name} sources", f"{len(commands)} C files {how} by {compiler.name}", wrong)
    names = ", ".join(control.name for control in chips.CONTROLS if control.refused)
    report.verdict(
        f"{chip.name} controls", f"refused: {names}", chips.wrong_controls(commands, folder / "controls")
    )
    _hooks(report, chip, commands, objects=compiler.makes_objects)
    ours = config.host_options(chip.name)
    meant = api.read_deliberate().config
    different = config.differences(ours, config.options(folder / "config" / "sdkconfig.h"))
    left = {name: text for name, text in different.items() if name not in meant}
    stale = {name: "is no difference any more" for name in meant if name not in different}
    report.verdict(
        f"{chip.name} options", f"{len(ours)} CONFIG_ values, {len(meant)} meant to differ", left | stale
    )


def _hooks(report: Report, chip: Chip, commands: list[Command], *, objects: bool) -> None:
    folder = OUT / chip.name / "hooks"
    kernel = idf.own_commands(OUT / chip.name, Path(os.environ["IDF_PATH"]) / hooks.KERNEL)
    wrong = hooks.wrong_kernel(kernel, folder, objects=objects)
    names = ", ".join(hooks.SOURCES)
    report.verdict(
        f"{chip.name} hooks", f"{names} call the trace, and only with its header before them", wrong
    )
    if objects:
        trace = [command for command in commands if command.source.parent.name == hooks.COMPONENT]
        wrong = hooks.outside_ram(trace, folder)
        report.verdict(f"{chip.name} hooks' RAM", "what the scheduler calls lies in internal RAM", wrong)


def _api(report: Report, found: Idf, commands: list[Command]) -> None:
    if not commands or not sides.have_clang():
        why = "clang that knows riscv32 is not installed" if commands else f"{sides.CHIP} was not configured"
        report.not_checked("host/idf", why)
        return
    meant = api.read_deliberate()
    libc = sides.libc_flags(commands[0])
    theirs = sides.idf_view(OUT / "api-idf", libc, found, OUT / sides.CHIP, commands)
    ours = sides.host_view(OUT / "api-host", libc)
    headers = api.headers_below(sides.HOST_FOLDERS)
    result = api.compare(ours, theirs, headers, {**meant.headers, **meant.names})
    detail = (
        f"{result.headers} headers: {result.functions} functions and macros with parameters, "
        f"{result.types} types and members, {result.constants} constants; {result.deliberate} meant to differ"
    )
    report.verdict("host/idf", detail, result.differences)
    altered = sides.host_view(OUT / "api-altered", libc, (_altered(OUT / "api-altered"), *sides.HOST_FOLDERS))
    seen = api.compare(altered, theirs, {ALTERED: OUT / "api-altered" / "include" / ALTERED}).differences
    missed = {name: "was altered, and not found" for name in ALTERATIONS if name not in seen}
    report.verdict(
        "host/idf controls", "found: an altered parameter, an altered constant, an invented function", missed
    )
    wrong = api.compare_values(theirs, meant.constants)
    report.verdict("numbers", f"{len(meant.constants)} that the firmware writes out are ESP-IDF's", wrong)


def _altered(folder: Path) -> Path:
    """Write a copy of a header in which a type and a value are others and a function is invented."""
    text = next(path / ALTERED for path in sides.HOST_FOLDERS if (path / ALTERED).is_file()).read_text(
        "utf-8"
    )
    for pattern, replacement in ALTERATIONS.values():
        text = re.sub(pattern, replacement, text, count=1)
    (folder / "include").mkdir(parents=True, exist_ok=True)
    (folder / "include" / ALTERED).write_text(text, encoding="utf-8")
    return folder / "include"


if __name__ == "__main__":
    sys.exit(main())
