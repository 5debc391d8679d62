# SPDX-License-Identifier: Apache-2.0
"""Read a plan that comes from elsewhere: check each value and each name before anyone acts on it."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from hil.base.errors import ConfigError
from hil.ci.plan import EMULATED_JOB, CiPlan, Leg, read_plan

LEG_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_MOST_LEGS = 40
_JOBS = ("virtual", "compare", "rack", EMULATED_JOB, "night", "night-rack")


def read_strictly(path: Path, head: str) -> CiPlan:
    """Return a plan for the commit ``head``; what it leaves out hil.ci.verified looks at.

    Raises:
        ConfigError: it is no plan, holds what no plan of ours does, or is for another commit.
    """
    try:
        plan = read_plan(path)
    except (AttributeError, RecursionError) as error:
        raise ConfigError(f"the plan is of another format: {error!r}.") from error
    wrong = _wrong_values(plan) or _wrong_names(plan)
    if wrong:
        raise ConfigError(f"the plan is none of ours: {wrong}.")
    if plan.head != head:
        raise ConfigError(f"the plan is for the commit {plan.head[:12]}, and the run for {head[:12]}.")
    return plan


def _wrong_values(plan: CiPlan) -> str:
    parts: tuple[CiPlan | Leg, ...] = (plan, *plan.legs)
    for part in parts:
        hints = get_type_hints(type(part))
        for item in dataclasses.fields(part):
            if not _fits(getattr(part, item.name), hints[item.name]):
                return f"{item.name} has a value that it cannot have"
    return ""


def _fits(value: object, hint: Any) -> bool:
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(_fits(one, get_args(hint)[0]) for one in value)
    if hint in (str, int, bool, Leg):
        return type(value) is hint
    return value is None or type(value) in get_args(hint)


def _wrong_names(plan: CiPlan) -> str:
    names = [leg.name for leg in plan.legs]
    if len(names) > _MOST_LEGS or len(set(names)) < len(names):
        return f"it has {len(names)} legs, or one twice"
    if not all(LEG_NAME.fullmatch(name) for name in names):
        return "a leg has a name that is none"
    if not all(leg.job in _JOBS for leg in plan.legs):
        return "a leg is of a job that is none of ours"
    if not _COMMIT.fullmatch(plan.head) or not (plan.base == "" or _COMMIT.fullmatch(plan.base)):
        return "head or base is no commit"
    return ""
