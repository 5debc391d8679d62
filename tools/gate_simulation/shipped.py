# SPDX-License-Identifier: Apache-2.0
"""What ships: suite pr, its rules and its looks on a rack, by the shipped thresholds and the planning code.

As in CI, each chip is a run of its own (a leg), and the legs share alpha.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hil.boards.rack import Rack, load_rack
from hil.ci import plan as ci
from hil.ci.event import CiEvent, Targets
from hil.metrics.metric import Metric
from hil.model import Case, Comparison, Looks, Role, Scalar
from hil.run.campaign import DEFAULT_BUDGET_MIN
from hil.run.plan import make_plan
from hil.run.plan.comparing import cases_of, compared, with_looks
from hil.run.plan.looks import draw, lying, order
from hil.thresholds import Thresholds, among_legs, load_project
from hil.thresholds.limits import Where
from tools.gate_simulation.boots import Turns

FOLDER = Path(__file__).parents[2] / "thresholds"
CHIPS = ("esp32", "esp32s3")
CANDIDATE, BASE = "ca" * 32, "ba" * 32
TELLING = "publish_latency_p50_us"  # the first case that is compared by it is the one that is changed

_RACK = """schema: 1
name: simulated
host: {interface: eth0, address: 192.168.77.1}
access_point: {type: external, ssid: lab, psk_env: HIL_WIFI_PSK}
boards:
"""
_BOARD = """  - id: b{0}
    kind: physical
    target: {1}
    serial: /dev/ttyUSB{0}
    mac: "24:0a:c4:00:00:0{0}"
    power: {{type: none}}
"""


@dataclass(frozen=True)
class Leg:
    """One run of a pull request: what it compares, by which thresholds.

    ``cases`` are those that a rule may block by, with their ``metrics``, by their ids.
    """

    comparison: Comparison
    thresholds: Mapping[str, Thresholds]
    cases: Mapping[str, Case]
    metrics: Mapping[str, tuple[Metric, ...]]

    @property
    def telling(self) -> str:
        """Return the id of the case that a simulated change is made to."""
        return next(case_id for case_id, own in self.metrics.items() if TELLING in [one.name for one in own])

    def of_run(self, run_id: str) -> Leg:
        """Return the leg of another pull request, which draws order and slots anew."""
        return replace(self, comparison=replace(self.comparison, run_id=run_id))

    def turns(self) -> Turns:
        """Return the role of each boot, and the slot that it runs from."""
        own, looks = self.comparison, self.comparison.looks
        drawn = [draw(own, board) for board in own.boards]
        candidate = np.array([_is_candidate(looks, one.candidate_first) for one in drawn])
        moved = [boot for look in lying(looks) for boot in look]
        slot = np.array([[one.slot] for one in drawn]) ^ moved
        return Turns(candidate, np.where(candidate, slot, 1 - slot))


def _is_candidate(looks: Looks, first: bool) -> list[bool]:
    roles: tuple[Role, Role] = ("candidate", "base") if first else ("base", "candidate")
    return [role == "candidate" for look in order(looks, roles) for role in look]


@functools.cache
def legs_of(boards: tuple[int, ...]) -> tuple[Leg, ...]:
    """Return the runs that judge a pull request on a rack with so many boards of each chip."""
    return tuple(_leg(chip, count, len(boards)) for chip, count in zip(CHIPS, boards, strict=False))


def _leg(chip: str, boards: int, chips: int) -> Leg:
    whole = load_project(FOLDER)
    thresholds = among_legs({bench: _may_block(own) for bench, own in whole.items()}, _legs(chips))
    plan = make_plan(_rack(chip, boards), thresholds, selection=ci.COMPARED_SUITE)
    (image,) = plan.images
    comparison = compared(
        plan, image, run_id="simulated", rack="simulated", role="base",
        candidate_sha256=CANDIDATE, other_sha256=BASE,
    )  # fmt: skip
    cases = cases_of(plan, image)
    comparison = with_looks(comparison, plan, cases, thresholds, 60.0 * DEFAULT_BUDGET_MIN)
    metrics = {case.case_id: thresholds[case.bench].metrics_of(case.parameters) for case in cases}
    blocking = {case.case_id: case for case in cases if metrics[case.case_id]}
    return Leg(comparison, thresholds, blocking, {case_id: metrics[case_id] for case_id in blocking})


def _may_block(own: Thresholds) -> Thresholds:
    """Leave out what no rule names: it is advice, has no share of alpha, and decides nothing."""
    kept = {}
    for name, metric in own.metrics.items():
        cases = [_case_of(rule.where) for rule in own.compare if rule.where.conditions.get("metric") == name]
        if cases:
            kept[name] = replace(metric, case={**metric.case, **cases[0]}) if len(cases) == 1 else metric
    return replace(own, metrics=kept)


def _case_of(where: Where) -> dict[str, tuple[Scalar, ...]]:
    """Return the parameters of the cases that a rule is for."""
    found = where.conditions.items()
    return {key.removeprefix("case."): (value,) for key, value in found if key.startswith("case.")}


def _legs(chips: int) -> int:
    """Return among how many runs CI shares alpha out."""
    event = CiEvent("pull_request", "pr", head="head", base_tip="main")
    targets = Targets(CHIPS[:chips], CHIPS[:chips])
    return ci.make_plan(event, "base", ["firmware/main/main.c"], targets).legs_of_alpha


def _rack(chip: str, boards: int) -> Rack:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rack.yaml"
        path.write_text(_RACK + "".join(_BOARD.format(one, chip) for one in range(1, boards + 1)))
        return load_rack(path)
