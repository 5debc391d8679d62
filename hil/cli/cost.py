# SPDX-License-Identifier: Apache-2.0
"""``hil cost``: what a chip's image costs the processor, in instructions; sealed runs of an emulated chip."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from hil.base.errors import ConfigError
from hil.base.paths import PROJECT_ROOT
from hil.boards.firmware.build import build_all
from hil.boards.firmware.build_folder import Image
from hil.boards.firmware.failure import read_failure
from hil.boards.firmware.selection import Firmware, find_firmware, same_flash
from hil.cli.conclusion import show
from hil.cli.options import run_options
from hil.gate.stored import judge_stored
from hil.model import Case, NoBase, Role, Verdict
from hil.reports.names import case_name, short_metric
from hil.run.campaign import Against
from hil.run.comparing import ruler_alone
from hil.run.options import RunOptions
from hil.run.plan.selection import select_cases
from hil.run.run_facts import images_info
from hil.run.sealed import BOOTS, RACK, SealedPlan, comparison_of, measure_sealed
from hil.store import RunDirectory, RunInfo, ended, read_measured
from hil.store.run_info import (
    ComparedInfo,
    RunBoard,
    Trigger,
    describe_run,
    new_run_id,
)
from hil.thresholds import Thresholds, load_project, project_files
from hil.thresholds.loader import FOLDER
from hil.virtual.emulator.drivers import COUNTING, find_counting

SUITE = "sealed"
UNIT = "instructions"
(CHIP,) = COUNTING  # the one whose instructions an emulator counts


@click.command("cost", short_help="Count instructions exactly on an emulated chip, without a board.")
@run_options("cost")
def command(**given: Any) -> int:
    """Count the instructions of a chip's image in an emulator, without noise.

    Each case boots alone from a fresh flash, without external input, and is measured twice: boots that differ
    by a byte are no measurement. The figures are instructions, and say nothing of time, caches, flash or
    radio. Needs an emulator that counts, which ESP-IDF installs (docs/operate/emulated-boards.md); no rack,
    no root.
    """
    options = RunOptions(**given)
    options.check()
    ended.begin(options.out, "hil cost")
    emulator = find_counting(CHIP)
    limits = load_project(options.thresholds)
    cases = _cases(limits, options.suite)
    images, not_compared = _images(Image(CHIP), options.firmware, options.base)
    no_base = read_failure(options.no_base_because) if options.no_base_because else None
    run_id, cores = new_run_id("cost"), os.cpu_count() or 1
    plan = SealedPlan(run_id, emulator, images, cases, options.out / run_id / "sealed", cores, not_compared)
    directory = RunDirectory.create(options.out, _info(plan, options.suite, options.trigger))
    directory.keep(project_files(options.thresholds), FOLDER)
    if no_base:
        directory.append(NoBase(directory.run_id, *no_base))
    _measure(plan, directory, limits)
    return _conclude(directory, limits, options)


def _cases(limits: dict[str, Thresholds], suite: str) -> tuple[Case, ...]:
    cases = tuple(case for case in select_cases(limits, suite) if "emulated" in limits[case.bench].kinds)
    if not cases:
        raise ConfigError(
            f"--suite {suite!r}: none of its cases is for emulated boards.",
            next_step=f"leave it out, which measures {SUITE}.",
        )
    return cases


def _images(image: Image, firmware: Path | None, base: Path | None) -> tuple[dict[Role, Firmware], str]:
    """Return the builds by role, and why one of them is not compared with, "" where all are.

    Raises ConfigError as find_firmware() does, RigError without ESP-IDF.
    """
    place = build_all([image], say=click.echo)[image] if firmware is None else firmware
    candidate = find_firmware(place, image)
    if base is None:
        return {"candidate": candidate}, ""
    other = find_firmware(base, image)
    same = same_flash(candidate.build_dir, other.build_dir)
    if same and (why := ruler_alone(Against("base", base), candidate, other)):
        return {"candidate": candidate}, why
    return {"candidate": candidate, "base": other}, ""


def _info(plan: SealedPlan, suite: str, trigger: Trigger) -> RunInfo:
    images = {role: images_info({Image(plan.chip): found}) for role, found in plan.images.items()}
    measured = {} if plan.identical else {case.case_id: BOOTS for case in plan.cases}
    return describe_run(
        repository=PROJECT_ROOT,
        run_id=plan.run_id,
        rack=RACK,
        suite=suite,
        trigger=trigger,
        boards=(RunBoard(id=plan.chip, target=plan.target, kind="emulated"),),
        plan={plan.chip: measured},
        firmware=images["candidate"],
        compared=ComparedInfo(role="base", firmware=images["base"]) if "base" in images else None,
    )


def _measure(plan: SealedPlan, directory: RunDirectory, limits: Mapping[str, Thresholds]) -> None:
    comparison = comparison_of(plan)
    if comparison is not None:
        directory.append(comparison)
    if plan.identical:
        return
    total, done = len(plan.cases) * len(plan.images), 0

    def say(case: Case, role: Role) -> None:
        nonlocal done
        done += 1
        label = limits[case.bench].case_label(case.parameters)
        click.echo(f"{plan.chip} [{done}/{total}] {role}: {case.bench} {label}")

    measure_sealed(plan, directory.append, say)


def _conclude(directory: RunDirectory, limits: Mapping[str, Thresholds], options: RunOptions) -> int:
    """Judge, report and show the run; return its exit status."""
    from hil.reports.finish import ReportOptions, finish

    stored = read_measured(directory.path)
    run = judge_stored(stored, limits)
    for line in [] if run.verdict.compared else _parts(run.verdict):
        click.echo(line)
    done = finish(run, ReportOptions(options.out, site=not options.no_report), say=click.echo)
    return show(run, done.noted(), undecided=options.undecided_status)


def _parts(verdict: Verdict) -> list[str]:
    """Return a line for each case: the least and the most of its repetitions, in instructions."""
    found = [item for item in verdict.series if item.unit == UNIT and item.value is not None]
    named: dict[str, dict[str, str]] = {}
    for item in found:
        named.setdefault(case_name(item), {})[short_metric(item).rpartition("_")[2]] = f"{item.value:,.0f}"
    if not named:
        return []
    columns = list(dict.fromkeys(name for values in named.values() for name in values))
    rows = [("instructions (emulated)", *columns)]
    rows += [(case, *(values.get(name, "–") for name in columns)) for case, values in named.items()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
