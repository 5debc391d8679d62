# SPDX-License-Identifier: Apache-2.0
"""A rack that is switched off outside of the code: its legs are undecided, and block nothing."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hil.base.errors import ConfigError, ExitCode
from hil.base.untrusted import markdown
from hil.ci import summary
from hil.ci.conclusion import conclude
from hil.ci.event import CiEvent, read_event
from hil.ci.plan import CiPlan, plan_event, read_plan, write_plan
from hil.ci.racks import VARIABLE, racks_off
from hil.cli.app import app
from tests.ci.ci_rig import Repository, leave_run, page_of, targets_file

WHY = "the rack esp32 is switched off by HIL_RACKS_OFF: power is off until Monday"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """main with racks for two chips; the branch ``change`` off it has other firmware."""
    made = Repository(tmp_path / "repository")
    made.commit({**targets_file((), ["esp32", "esp32s3"]), "firmware/a.c": "1"})
    made.git("checkout", "--quiet", "-b", "change")
    made.commit({"firmware/a.c": "2"})
    return made


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", {}),
        ("esp32: power is off until Monday", {"esp32": WHY}),
        (" esp32 :power is off until Monday. ;", {"esp32": WHY}),
        ("esp32s3", {"esp32s3": "the rack esp32s3 is switched off by HIL_RACKS_OFF"}),
    ],
)
def test_the_variable_names_racks_and_reasons(text: str, told: dict[str, str]) -> None:
    """A chip each, with a reason or none; blanks, a full stop and a last semicolon are no matter."""
    assert racks_off(text) == told


@pytest.mark.parametrize(
    ("text", "wrong"),
    [("esp23: x", "'esp23'; did you mean 'esp32'?"), ("esp32, esp32s3", "unknown rack 'esp32, esp32s3'")],
)
def test_what_is_malformed_is_a_configuration_error(text: str, wrong: str) -> None:
    """It names the variable, the entry, and how to write it: no switch fails unseen."""
    with pytest.raises(ConfigError, match=VARIABLE) as caught:
        racks_off(text)
    assert wrong in caught.value.sentence
    assert "reason" in str(caught.value.next_step)


def hil_ci_plan(repository: Repository, off: str, monkeypatch: pytest.MonkeyPatch) -> Result:
    for name in [name for name in os.environ if name.startswith("GITHUB_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(repository.path)
    monkeypatch.setenv(VARIABLE, off)
    monkeypatch.setenv("HIL_CI", ".")
    return CliRunner().invoke(app, ["ci", "plan"], standalone_mode=False)


def plan_without(repository: Repository, off: str, monkeypatch: pytest.MonkeyPatch) -> CiPlan:
    assert hil_ci_plan(repository, off, monkeypatch).exception is None
    return read_plan(repository.path / "plan.json")


def test_no_job_waits_for_a_rack_that_is_off(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its leg is left out with the reason, the other rack measures, and alpha is shared by those that do."""
    before = plan_without(repository, "", monkeypatch)
    plan = plan_without(repository, "esp32: power is off until Monday", monkeypatch)
    assert (before.targets_of("rack"), plan.targets_of("rack")) == (("esp32", "esp32s3"), ("esp32s3",))
    assert (plan.leg("rack-esp32").skip, plan.leg("rack-esp32").undecided) == (WHY, True)
    assert plan.legs_of_alpha == before.legs_of_alpha - 1
    assert plan.leg("emulated-esp32c3") == before.leg("emulated-esp32c3")


def test_a_malformed_variable_plans_nothing(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job that plans fails, and says what is wrong."""
    done = hil_ci_plan(repository, "esp23", monkeypatch)
    assert isinstance(done.exception, ConfigError)
    assert not (repository.path / "plan.json").exists()


def test_at_night_all_legs_of_a_rack_are_off(repository: Repository) -> None:
    """The full matrix, the night beside the reference, and the head beside itself."""
    head = repository.git("rev-parse", "HEAD")
    plan = plan_event(repository.path, CiEvent("schedule", "nightly", head), off=racks_off("esp32"))
    off = {leg.name for leg in plan.legs if leg.undecided}
    assert off == {leg.name for leg in plan.legs if leg.target == "esp32"}
    assert off >= {"rack-esp32", "unchanged-esp32"}
    assert {leg["target"] for leg in plan.matrix_of("rack")} == {"esp32s3"}


def test_documentation_alone_is_skipped_as_ever(repository: Repository) -> None:
    """Nobody would have measured it: it stays a pass."""
    head = repository.commit({"firmware/a.c": "1", "docs/a.md": "2"})
    event = dataclasses.replace(read_event({}, repository.path), head=head)
    plan = plan_event(repository.path, event, off=racks_off("esp32; esp32s3"))
    assert not any(leg.undecided for leg in plan.legs)


def test_it_is_undecided_and_blocks_nothing(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither green nor red: the headline names the leg, the check is neutral, the required job passes.

    The other legs pass. The comment says so too, with the reason and without a green mark; the plan comes
    back as it was written, as other jobs read it.
    """
    plan = plan_without(repository, "esp32: power is off until Monday; esp32s3", monkeypatch)
    wanted = ("virtual", "rack-esp32")
    plan = dataclasses.replace(plan, legs=tuple(leg for leg in plan.legs if leg.name in wanted))
    write_plan(plan, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == plan
    leave_run(tmp_path / "legs" / "virtual", commit=plan.head)
    verdict = conclude(plan, tmp_path / "legs", {"virtual": "success", "rack": "skipped"})
    assert (verdict.headline, verdict.conclusion) == ("UNDECIDED: rack-esp32", "neutral")
    assert verdict.exit_code == ExitCode.PASS
    text = summary.render(plan, verdict, {})
    assert re.search(rf"\| rack-esp32 \| \? undecided \| – \| .*{WHY}", text)
    assert f"- rack-esp32: {WHY}" in text
    page = page_of(plan, verdict, tmp_path / "legs")
    assert page.startswith(f"### ? {markdown('UNDECIDED: rack-esp32')}\n")
    assert "off until Monday" in page
    assert "– skipped" not in page
