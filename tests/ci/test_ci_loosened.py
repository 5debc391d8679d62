# SPDX-License-Identifier: Apache-2.0
"""Each way in which a head can soften its own judgement, by `hil ci verdict` on files as jobs leave them."""

from __future__ import annotations

import copy
import dataclasses
import functools
import io
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, cast

import pytest
from ruamel.yaml import YAML

from hil.ci.event import VIRTUAL_RACK
from hil.ci.plan import Leg, write_plan
from tests.ci.ci_rig import Repository, a_plan, leave_run, limits_text, rejudge, write_limits
from tests.in_process import hil
from tests.lab import ROOT, own_environment
from tests.make_records import change_info, publish_record

Content = dict[str, Any]
Edit = Callable[[Content], None]
SLOW_MS = 60.0  # the limits of the merge base are 25 and 40 ms
P95, TAIL = "publish_latency_p95_us", "publish_latency_tail5_us"
OTHER = limits_text().replace("bench: publish\n", "bench: other\n")


@functools.cache
def edited(edit: Edit | None) -> str:
    """Return the limits of these runs with an edit of what their file holds."""
    if edit is None:
        return limits_text()
    content = copy.deepcopy(_content())
    edit(content)
    text = io.StringIO()
    YAML(typ="safe").dump(content, text)
    return text.getvalue()


@functools.cache
def _content() -> Content:
    return cast(Content, YAML(typ="safe").load(limits_text()))


class Change:
    """A repository with a merge base, a head that brings other limits, and a leg judged by these."""

    def __init__(self, folder: Path, head: Edit | None, latency_ms: float, base: Edit | None = None) -> None:
        self.folder = folder
        self.repository = Repository(folder / "repository")
        rack = {VIRTUAL_RACK: _rack("v1")}
        self.base = self.repository.commit({"thresholds/publish.yaml": edited(base), **rack})
        self.repository.commit({"thresholds/publish.yaml": edited(head)})
        run = leave_run(folder / "legs" / "virtual", [publish_record(board="v1", latency_ms=latency_ms)])
        change_info(run, boards=[{"id": "v1", "kind": "virtual", "target": "virtual-esp32"}])
        write_limits(run.path, edited(head))
        rejudge(run)

    def verdict(self) -> tuple[int, str]:
        """Return exit code and words of `hil ci verdict`, called in the head's checkout as pr.yml does."""
        write_plan(dataclasses.replace(a_plan(), base=self.base), self.folder / "plan.json")
        env = {**own_environment(), "HIL_CI": str(self.folder)}
        done = hil("ci", "verdict", "--thresholds", "thresholds", env=env, cwd=self.repository.path)
        return done.returncode, done.stdout

    def loosened(self) -> str:
        """Return the section on loosened rules; all else of the verdict has to pass."""
        code, text = self.verdict()
        assert (code, text.partition("\n")[0]) == (0, "# PASS, BUT BY LOOSENED RULES: virtual"), text
        return text.partition("## What this change loosens")[2]


def _rack(*boards: str) -> str:
    lines = (ROOT / VIRTUAL_RACK).read_text().partition("boards:")[0]
    entry = "  - {{id: {0}, kind: virtual, target: esp32, power: {{type: virtual}}, mac: {1}}}\n"
    text = "".join(entry.format(name, f"02:00:00:77:00:{n:02}") for n, name in enumerate(boards, 1))
    return f"{lines}boards:\n{text}"


def redefined(content: Content) -> None:
    """A metric that looks like a new one, with limits two hundred times as large."""
    latency = content["metrics"]["publish_latency_us"]
    del latency["clock"]
    latency["not_ok"] = "left-out"
    for limit in content["limits"]:
        if "abs_max_ms" in limit:
            limit["abs_max_ms"] *= 200


def without_metric(content: Content) -> None:
    del content["metrics"]["publish_latency_us"]
    for rules in ("limits", "compare", "advice"):
        content[rules] = [one for one in content[rules] if "latency" not in one["where"]["metric"]]


def narrowed(content: Content) -> None:
    for limit in content["limits"]:
        limit["where"].setdefault("case", {})["hold_us"] = 7


def as_advice(content: Content) -> None:
    content["advice"] += [{"where": {"metric": name}, "why": "a test"} for name in (P95, TAIL)]


def suppressed(content: Content) -> None:
    content["suppressions"] = [
        {"where": {"metric": name}, "reason": "x", "issue": "y", "expires": date(2031, 1, 1)}
        for name in (P95, TAIL)
    ]


def blocks_less(content: Content) -> None:
    content["metrics"]["publish_latency_us"]["blocking"] = dict.fromkeys(("p50", "p99", "p95"), "compared")


def more_samples(content: Content) -> None:
    content["policy"]["min_samples"] = 5000


BY_LIMITS: dict[str, tuple[Edit, str]] = {
    "definition": (redefined, "publish_latency_p95_us is defined otherwise (not_ok, clocks)"),
    "metric-out": (without_metric, "publish_latency_p95_us is measured no more"),
    "where-narrowed": (narrowed, "max 25000 → no limit"),
    "advice": (as_advice, "metric=publish_latency_p95_us: blocks → advice"),
    "suppressed": (suppressed, "blocks → suppressed until 2031-01-01"),
    "blocking": (blocks_less, "publish_latency_tail5_us blocks less than before"),
    "min-samples": (more_samples, "policy min_samples: 40 → 5000"),
}


@pytest.mark.parametrize("name", BY_LIMITS)
def test_a_head_is_judged_by_what_its_merge_base_defines(tmp_path: Path, name: str) -> None:
    """Figures beyond the base's limits regress, whatever the head makes of metric, limit or policy."""
    attack, said = BY_LIMITS[name]
    code, text = Change(tmp_path, attack, SLOW_MS).verdict()
    assert (code, text.partition("\n")[0]) == (1, "# REGRESSED: virtual"), text
    assert said in text
    assert "the merge base" in text


def policy(key: str, value: float) -> Edit:
    return lambda content: content["policy"].update({key: value})


def compared(key: str, value: float) -> Edit:
    return lambda content: content["compare"][0].update({key: value})


def two_cases(content: Content) -> None:
    content["suites"]["pr"] = [{}, {"qos": 2}]


def known_issue(year: int) -> Edit:
    until = date(year, 1, 1)
    rule = {"where": {"metric": "publish_latency_p50_us"}, "reason": "x", "issue": "y", "expires": until}
    return lambda content: content.update(suppressions=[rule])


def renamed_parameter(content: Content) -> None:
    content["parameters"]["held_us"] = content["parameters"].pop("hold_us")


def virtual_only(content: Content) -> None:
    content["kinds"] = ["virtual"]


SOFTER: dict[str, tuple[Edit | None, Edit, str]] = {
    "tolerance": (None, compared("tolerance_ratio", 0.9), "tolerance 0.1 → 0.9"),
    "min-effect": (None, compared("min_effect_ratio", 0.1), "least effect 0.03 → 0.1"),
    "alpha": (None, policy("alpha", 0.0001), "policy alpha: 0.01 → 0.0001"),
    "case-out": (two_cases, lambda _: None, "the suite pr loses qos=2"),
    "kinds": (None, virtual_only, "on physical and emulated boards no more"),
    "expiry": (known_issue(2030), known_issue(2031), "suppressed until 2030-01-01 → suppressed until 2031"),
    "definition": (None, redefined, "publish_latency_p50_us is defined otherwise (not_ok, clocks)"),
}  # fmt: skip


@pytest.mark.parametrize("name", SOFTER)
def test_what_a_head_loosens_is_no_green(tmp_path: Path, name: str) -> None:
    """Figures within all limits: nothing fails, and it is no pass until an owner accepts what is told."""
    before, attack, said = SOFTER[name]
    assert said in Change(tmp_path, attack, 7.0, before).loosened()


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    """The base has a bench of which the head has no file; a renamed parameter's cases are others; the base's
    rack file has a board that the run has not, whether its own file or the run left it out."""
    change = Change(tmp_path, None, 7.0)
    assert change.verdict()[1].startswith("# PASS: virtual\n")
    before, limits = change.base, change.repository.path / "thresholds/publish.yaml"
    change.base = change.repository.commit({"thresholds/other.yaml": OTHER})
    (change.repository.path / "thresholds/other.yaml").unlink()
    assert "thresholds/other.yaml: " in change.loosened()
    change.base = before
    limits.write_text(edited(renamed_parameter))
    assert "suite quick loses defaults" in change.verdict()[1]
    limits.write_text(limits_text())
    change.base = change.repository.commit({VIRTUAL_RACK: _rack("v1", "v2")})
    assert "no board v2 (virtual-esp32)" in change.loosened()


@pytest.mark.slow
@pytest.mark.parametrize("of_its_own", [True, False], ids=["own-limits", "the-tools"])
def test_a_teams_repository_is_judged_by_its_merge_base_too(tmp_path: Path, of_its_own: bool) -> None:
    """By measure.yml's own step, in a checkout as it has it: limits two hundred times as large are no pass.

    Where the base has no file of its own for the bench, the tool's counts.
    """
    project = Repository(tmp_path / "project")
    before = {"app/hil/thresholds/publish.yaml": limits_text()} if of_its_own else {}
    base = project.commit({"app/hil.toml": "", **before})
    project.commit({"app/hil/thresholds/publish.yaml": edited(redefined)})
    suite = "quick and publish"
    plan = dataclasses.replace(a_plan(), base=base, legs=(Leg("virtual", "virtual", suite),))
    write_plan(plan, tmp_path / "ci" / "plan.json")
    run = leave_run(tmp_path / "ci" / "legs" / "virtual", [publish_record(latency_ms=SLOW_MS)])
    change_info(run, suite=suite)
    write_limits(run.path, edited(redefined))
    rejudge(run)
    said = say_the_verdict(tmp_path)
    assert said.returncode == 1, said.stdout
    assert "# REGRESSED: virtual" in said.stdout
    assert "publish_latency_p95_us " in said.stdout


def say_the_verdict(workspace: Path) -> subprocess.CompletedProcess[str]:
    """Run the step of measure.yml that judges in a workspace, with the tool that is installed here."""
    workflow = YAML(typ="safe").load(ROOT / ".github" / "workflows" / "measure.yml")
    (step,) = [one for one in workflow["jobs"]["hil-verdict"]["steps"] if one["name"] == "Say the verdict"]
    (workspace / "tool").symlink_to(ROOT)
    assert step["env"]["LIMITS"] == "${{ needs.plan.outputs.limits }}"
    jobs = json.dumps({job: {"result": "success"} for job in ("plan", "virtual", "rack")})
    more = {"HIL_VENV": sys.prefix, "HIL_JOBS": jobs, "LIMITS": "app/hil/thresholds", "PROJECT": "project"}
    more |= {"GITHUB_WORKSPACE": str(workspace)}
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step["run"]], cwd=workspace, env={**own_environment(), **more},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=120,
    )  # fmt: skip


def test_limits_that_get_stricter_need_nobody(tmp_path: Path) -> None:
    """A tighter limit, and the end of an exception, leave a pass a pass."""

    def stricter(content: Content) -> None:
        content["limits"][0]["abs_max_ms"] = 20
        content["advice"] = []

    assert Change(tmp_path, stricter, 7.0).verdict()[1].startswith("# PASS: virtual\n")
