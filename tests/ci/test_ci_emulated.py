# SPDX-License-Identifier: Apache-2.0
"""The leg *instruction cost (emulated)*: planned, judged, told in words that promise no time."""

from __future__ import annotations

import functools
import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from hil.base.errors import ExitCode
from hil.boards.firmware.build_folder import Image
from hil.boards.firmware.bundle import write_bundle
from hil.boards.firmware.revision import SourceState
from hil.ci import comment_page, publish, summary
from hil.ci.collecting import collect
from hil.ci.conclusion import CiVerdict, conclude
from hil.ci.event import read_event
from hil.ci.limits import Counting
from hil.ci.plan import EMULATED_JOB, INSTRUCTION_COST, plan_event, read_plan_of, write_plan
from hil.cli.app import run_command
from hil.store import RunDirectory
from hil.virtual.emulator.drivers import COUNTING
from tests.ci.ci_rig import HEAD, Repository, a_plan, leave_run, page_of, targets_file
from tests.make_records import change_info
from tests.reports.as_read import as_read
from tests.run import sealed_chip

LEG = "emulated-esp32c3"
SHOWN = f"{INSTRUCTION_COST} esp32c3"
COSTS = {"publish_qos0": 12_408, "publish_qos1": 30_000}
WELL = dict.fromkeys(("plan", "virtual", "build", "rack"), "success")
OF_TIME = re.compile(r"faster|slower|performance|latency|throughput", re.IGNORECASE)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """main, which lists no chip at all; the branch ``change`` off it."""
    made = Repository(tmp_path / "repository")
    made.commit({**targets_file(), "firmware/a.c": "1", "docs/a.md": "1"})
    made.git("checkout", "--quiet", "-b", "change")
    return made


def test_each_chip_that_counts_has_a_leg(repository: Repository, tmp_path: Path) -> None:
    """Built although no file lists it and no rack has it; a fork's pull request and a night have it as well.
    Its job is one of ours to whoever reads an artefact as a stranger's.

    It is exact, so the legs with false alarms share alpha without it. Documentation alone:
    test_ci_plan.py."""
    night = {"GITHUB_EVENT_NAME": "schedule", "GITHUB_SHA": repository.git("rev-parse", "HEAD")}
    at_night = plan_event(repository.path, read_event(night, repository.path))
    assert at_night.targets_of(EMULATED_JOB) == COUNTING
    repository.commit({"firmware/a.c": "2"})
    plan = plan_event(repository.path, read_event({}, repository.path))
    assert plan.targets_of(EMULATED_JOB) == plan.build == COUNTING == ("esp32c3",)
    assert json.loads(plan.outputs()["emulated"]) == ["esp32c3"]
    assert 1000 in plan.ticks_hz
    assert a_plan(fork=True, emulated=True).targets_of(EMULATED_JOB) == COUNTING
    assert [leg.name for leg in plan.legs if not leg.skip] == ["virtual", LEG, "compare"]
    assert plan.legs_of_alpha == 2
    write_plan(a_plan(emulated=True, compare=True), tmp_path / "plan.json")
    assert read_plan_of(tmp_path / "plan.json", HEAD).targets_of(EMULATED_JOB) == COUNTING


@pytest.fixture
def legs(tmp_path: Path) -> Path:
    """Folder for legs, with that of the virtual rack."""
    leave_run(tmp_path / "legs" / "virtual")
    return tmp_path / "legs"


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Counts, once for each cost of publish_qos0; gives the folder of the legs, which nobody changes.

    `hil cost` finds a stand-in for QEMU, and measures two of its parts.
    """

    @functools.cache
    def count(cost: int) -> Path:
        folder = tmp_path_factory.mktemp("counted")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HIL_QEMU_RISCV32", str(sealed_chip.install(folder / "bin")))
            leave_run(folder / "legs" / "virtual")
            leave_cost(folder / "legs", {**COSTS, "publish_qos0": cost})
        return folder / "legs"

    return count


def leave_cost(legs: Path, costs: Mapping[str, int]) -> None:
    """Count base and head by `hil cost`, as the job does, and collect the leg."""
    folder = legs.parent
    for name, own in (("head", costs), ("base", COSTS)):
        build_dir = sealed_chip.build(folder / f"{name}-build", {"costs": own})
        write_bundle(build_dir, Image("esp32c3"), folder / name, SourceState(HEAD, dirty=False))
    words = ["cost", "--firmware", str(folder / "head"), "--base", str(folder / "base"), "--no-report"]
    parts = "sealed and (part=publish_qos0 or part=publish_qos1)"
    run_command([*words, "--suite", parts, "--out", str(folder / "out")])
    (run,) = RunDirectory.list(collect(folder / "out", LEG, legs).parent)
    change_info(run, git={"commit": HEAD, "dirty": False})  # this checkout's is another


def say(legs: Path) -> CiVerdict:
    return conclude(a_plan(emulated=True), legs, WELL)


def told(verdict: CiVerdict, legs: Path) -> list[str]:
    """Return all that a person reads: comment, summary, plain summary, check."""
    plan = a_plan(emulated=True)
    facts = comment_page.facts_of(plan, verdict, legs, comment_page.Source({}))
    pages = [page_of(plan, verdict, legs), page_of(plan, verdict, legs, "summary")]
    return [*pages, summary.render(plan, verdict, {}), publish._summary(facts)]


@pytest.mark.slow
def test_more_than_the_tolerance_blocks(counted: Callable[[int], Path], tmp_path: Path) -> None:
    """With the part and its figures in headline, summary and check; an owner may accept it.

    In comment, summary, plain summary and check it is never told as time.
    """
    legs = counted(12_790)
    verdict = say(legs)
    assert (verdict.exit_code, verdict.headline) == (ExitCode.FIRMWARE, f"REGRESSED: {SHOWN}")
    assert verdict.acceptable
    exactly = "+3.1 % (12,408 → 12,790 instructions)"
    comment, *others = told(verdict, legs)
    assert f"part=publish_qos0 on {LEG} {exactly}" in as_read(comment.splitlines()[2])
    assert f"`{SHOWN}` ✗ regressed" in comment
    assert all(exactly in page.replace("&#43;", "+") for page in others[1:])
    shutil.copytree(legs / LEG, tmp_path / LEG)  # without the rack, whose figures are latencies
    for page in told(say(tmp_path), tmp_path):
        assert not OF_TIME.search(page), page


@pytest.mark.slow
def test_a_pass_says_its_name_and_no_word_of_time(counted: Callable[[int], Path]) -> None:
    """One instruction more is within the tolerance; nowhere is it called faster, slower or performance."""
    legs = counted(12_409)
    verdict = say(legs)
    assert (verdict.exit_code, verdict.headline) == (ExitCode.PASS, f"PASS: virtual, {SHOWN}")
    run = RunDirectory.list(legs / LEG)[0]
    for page in (run.summary_path.read_text(), verdict.legs[-1].sentence):
        assert not OF_TIME.search(page)
    assert "+0.0081 %" in as_read(run.summary_path.read_text())


@pytest.mark.slow
def test_a_share_of_alpha_is_not_what_was_planned(counted: Callable[[int], Path], legs: Path) -> None:
    """The legs that time share alpha; this one has all of it, or it would block less."""
    shutil.copytree(counted(12_409) / LEG, legs / LEG)
    (run,) = RunDirectory.list(legs / LEG)
    change_info(run, suite="sealed", legs=2)
    plan = a_plan(["esp32"], emulated=True)
    assert plan.legs_of_alpha == 2
    leg = next(leg for leg in conclude(plan, legs, WELL, Counting()).legs if leg.name == LEG)
    assert "2 legs" in leg.sentence


@pytest.mark.slow
def test_firmware_of_another_commit_is_no_verdict(counted: Callable[[int], Path], legs: Path) -> None:
    """The bundle says which commit was built, and it has to be the plan's head.

    A run of the virtual rack under the leg's name is none of an emulated chip either.
    """
    shutil.copytree(counted(12_409) / LEG, legs / LEG)
    (run,) = RunDirectory.list(legs / LEG)
    image = run.read_info().firmware["esp32c3"]
    assert image.commit == HEAD
    change_info(run, firmware={"esp32c3": {"sha256": image.sha256, "commit": "e" * 40}})
    assert "of the commit eeeeeeeeeeee" in no_verdict(legs)
    shutil.rmtree(legs / LEG)
    leave_run(legs / LEG)
    assert "virtual-1 (virtual-esp32)" in no_verdict(legs)


def no_verdict(legs: Path) -> str:
    """Return why the leg has no verdict."""
    (leg,) = [leg for leg in say(legs).legs if leg.name == LEG]
    assert (leg.exit_code, leg.outcome) == (ExitCode.RIG, "no verdict")
    return leg.sentence
