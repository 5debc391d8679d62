# SPDX-License-Identifier: Apache-2.0
"""What a leg leaves for the verdict: a folder of its name that holds its run, or ``skipped.json``.

A rack need not measure an image that is the merge base's, byte for byte.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError, ExitCode, RigError
from hil.boards.firmware.build_folder import target_of
from hil.boards.firmware.selection import SCHEMA as COMPARISON_SCHEMA
from hil.ci.plan import CiPlan, Leg
from hil.store import RunDirectory

SCHEMA = 1
SKIPPED = "skipped.json"
# verdicts that say something of the firmware, so that it matters which one was measured
ON_FIRMWARE = (ExitCode.PASS, ExitCode.FIRMWARE, ExitCode.INCONCLUSIVE)
_LEG_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class LegResult:
    """What became of a leg. ``boards`` are "v1 (virtual)"; ``reason`` is why it was skipped, else empty."""

    name: str
    exit_code: ExitCode
    outcome: str
    sentence: str
    reason: str = ""
    run_id: str = ""
    boards: tuple[str, ...] = ()
    not_run: tuple[str, ...] = ()
    summary: str = ""


def collect(out: Path, leg: str, to: Path) -> Path:
    """Copy the newest run below ``out`` to ``to/leg/<run id>``; return that folder.

    It takes the place of what was collected for this leg before, as a leg has one verdict.

    Raises:
        ConfigError: ``leg`` is no name of a leg.
        RigError: there is no run.
    """
    if not _LEG_NAME.fullmatch(leg):
        raise ConfigError(
            f"{leg!r} is no name of a leg.", next_step="name one of the plan's: virtual, rack-esp32, …"
        )
    try:
        run = RunDirectory.latest(out)
    except ConfigError as error:
        raise RigError(
            f"the leg {leg} left no run in {out}: {error.sentence}",
            next_step="what `hil run` said just before tells why.",
        ) from error
    shutil.rmtree(to / leg, ignore_errors=True)
    return Path(shutil.copytree(run.path, to / leg / run.run_id))


def write_skip(to: Path, leg: str, reason: str) -> Path:
    """Record why a leg measures nothing; return the file."""
    path = to / leg / SKIPPED
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {"schema": SCHEMA, "leg": leg, "reason": reason}
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def unchanged_image(plan: CiPlan, target: str) -> str:
    """Return why a rack is left out after the build: the one reason that a leg itself may record."""
    images = plan.images(target)
    are = (
        f"the {target} image is the one" if len(images) == 1 else f"the images {', '.join(images)} are those"
    )
    return (
        f"{are} of the merge base {plan.base[:12]}, byte for byte, "
        "and nothing that measures or judges it has changed"
    )


def read_leg(folder: Path, leg: Leg, plan: CiPlan) -> LegResult:
    """Read what ``leg`` left in ``folder``; whatever is wrong with it becomes a rig's failure.

    A run counts more than a reason to skip it: where a workflow is run again, artefacts of its earlier
    attempts are still there, and what was measured was measured.
    """
    try:
        runs = RunDirectory.list(folder)
        skip = (folder / SKIPPED).is_file()
        if skip and not runs:
            return _read_skip(folder / SKIPPED, leg, plan)
        if len(runs) != 1:
            return failed(leg.name, f"the leg {leg.name} left {len(runs)} runs instead of one.")
        result = _read_run(runs[0], leg, plan)
        stale = f" Its {SKIPPED} is of another attempt of this workflow run, and does not count."
        return dataclasses.replace(result, sentence=result.sentence + stale * skip)
    except (ConfigError, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        # a folder from another job is input: a surprise in it is no defect of ours, and never a pass
        said = error.sentence if isinstance(error, ConfigError) else repr(error)
        return failed(leg.name, f"what the leg {leg.name} left cannot be read: {said}")


def failed(name: str, sentence: str) -> LegResult:
    """Return a leg that has no verdict."""
    return LegResult(name, ExitCode.RIG, "no verdict", sentence)


def _read_skip(path: Path, leg: Leg, plan: CiPlan) -> LegResult:
    """Accept the reason that `hil ci narrow` records where the plan allows for it, and no other."""
    name = leg.name
    record = json.loads(path.read_text(encoding="utf-8"))
    reason = record["reason"]
    if record["schema"] != SCHEMA or record["leg"] != name or not isinstance(reason, str) or not reason:
        return failed(name, f"{SKIPPED} of the leg {name} gives no reason in format {SCHEMA}.")
    if not (leg.target and plan.may_leave_out_racks):
        return failed(name, f"the leg {name} was skipped ({reason}), which its plan does not allow.")
    if reason != unchanged_image(plan, leg.target):
        return failed(
            name, f"the leg {name} was skipped for a reason that `hil ci narrow` does not give: {reason}."
        )
    return skipped(name, reason)


def skipped(name: str, reason: str) -> LegResult:
    """Return a leg that was left out for a recorded reason."""
    return LegResult(name, ExitCode.PASS, "skipped", f"Not measured: {reason}.", reason=reason)


def _read_run(run: RunDirectory, leg: Leg, plan: CiPlan) -> LegResult:
    name, info = leg.name, run.read_info()
    if not info:
        return failed(name, f"the run {run.run_id} of the leg {name} ended before it wrote run.json.")
    measured = info["git"]["commit"]
    if measured != plan.head:
        return failed(
            name, f"the leg {name} measured the commit {measured[:12]}, the plan is for {plan.head[:12]}."
        )
    if not run.verdicts_path.is_file():
        return failed(name, f"the run {info['run_id']} of the leg {name} ended before it was judged.")
    verdict: dict[str, Any] = json.loads(run.verdicts_path.read_text(encoding="utf-8"))
    if verdict["run_id"] != info["run_id"]:
        return failed(name, f"the verdict of the leg {name} belongs to another run, {verdict['run_id']}.")
    code = ExitCode(verdict["exit_code"])
    other = _not_the_leg(info, leg, plan) if leg.target and code in ON_FIRMWARE else ""
    if other:
        return failed(name, f"the leg {name} was to measure {leg.target} at {plan.head[:12]}, but {other}.")
    return LegResult(
        name,
        code,
        str(verdict["outcome"]),
        str(verdict["sentence"]),
        run_id=str(info["run_id"]),
        boards=tuple(f"{board['id']} ({board['kind']})" for board in info["boards"]),
        not_run=tuple(
            f"{item['case_id']} on {item['board']}: {item['reason']}" for item in verdict["not_run"]
        ),
        summary=run.summary_path.read_text(encoding="utf-8") if run.summary_path.is_file() else "",
    )


def _not_the_leg(info: Mapping[str, Any], leg: Leg, plan: CiPlan) -> str:
    """Return on which other boards or firmware a rack's run was, "" where it was on the leg's."""
    boards = info["boards"]
    others = [f"{board['id']} ({board['target']})" for board in boards if board["target"] != leg.target]
    if others or not boards:
        return f"it ran on {', '.join(others) or 'no board'}"
    firmware = info.get("firmware", {}).items()
    images = [image for name, image in firmware if target_of(name) == leg.target]
    if not images:
        return _NO_BUNDLE
    return next((other for image in images if (other := _not_the_head(image, plan))), "")


_NO_BUNDLE = "its firmware is of no bundle, so nothing tells which commit it is"


def _not_the_head(firmware: Mapping[str, Any], plan: CiPlan) -> str:
    """Return of which other sources an image of a run is, "" where it is of the plan's head."""
    built = firmware.get("commit")
    if not built:
        return _NO_BUNDLE
    if built != plan.head:
        return f"its firmware is of the commit {built[:12]}"
    return "its firmware was built with changes that are in no commit" if firmware.get("dirty") else ""


IDENTICAL = "identical"


def narrow(plan: CiPlan, comparisons: Mapping[str, str], to: Path) -> tuple[str, ...]:
    """Return the targets that a rack still has to measure; record in ``to`` why the others need not.

    ``comparisons`` maps an image to what `hil firmware compare` said of head and merge base. A target is left
    out where all of its images are the same. All stay where nothing was compared, and where what measures or
    judges has changed.
    """
    if not plan.may_leave_out_racks:
        return plan.racks
    same = [
        target
        for target in plan.racks
        if all(comparisons.get(image) == IDENTICAL for image in plan.images(target))
    ]
    for target in same:
        write_skip(to, f"rack-{target}", unchanged_image(plan, target))
    return tuple(target for target in plan.racks if target not in same)


def read_comparisons(folder: Path) -> dict[str, str]:
    """Read the JSON files of `hil firmware compare --json` below ``folder``. Raises ConfigError."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*.json")):
        try:
            found.update(_read(path))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(
                f"{path} is not what `hil firmware compare --json` prints: {error!r}."
            ) from error
    return found


def _read(path: Path) -> dict[str, str]:
    stored = json.loads(path.read_text(encoding="utf-8"))
    if stored["schema"] != COMPARISON_SCHEMA:
        raise ValueError(f"schema {stored['schema']}")
    return {str(item["target"]): str(item["outcome"]) for item in stored["targets"]}
