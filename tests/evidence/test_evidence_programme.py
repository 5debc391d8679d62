# SPDX-License-Identifier: Apache-2.0
"""The programme's state: each result on disk at once, nothing done twice, nothing green unmeasured."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from hil.cli.app import run_command
from hil.evidence import doing
from hil.evidence.doing import Asked, Programme, begin, folder_of
from hil.evidence.programme import Step, steps
from hil.evidence.report import EVIDENCE, parse_evidence, write_evidence
from tests.evidence.evidence_rig import physical_rack

pytestmark = pytest.mark.slow


@pytest.fixture
def programme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Programme]:
    """The steps that need no board (doctor, check, build) and those of a person, on a rack of no boards."""

    def some() -> Iterator[Step]:
        return (step for step in steps() if step.name in ("doctor", "check", "build", "unplug", "swap"))

    monkeypatch.setattr(doing, "steps", some)
    rack = physical_rack(tmp_path)
    said: list[str] = []
    asked = Asked(rack, tmp_path / "out", firmware=tmp_path, nobody="nobody is asked", say=said.append)
    made = Programme(asked, begin(rack, {}))
    with made.alone():
        yield made


def test_a_failed_step_ends_nothing(programme: Programme) -> None:
    """A rack whose boards are not there: its check differs, with the exit status; what cannot be done says
    why it is skipped; what each command said is kept, and all is on disk."""
    evidence = programme.go_on()
    came = {step.name: step for step in evidence.steps}
    assert (came["check"].result, came["check"].got) == ("differs", "exit 3")
    assert came["build"].why.startswith("--firmware ")
    assert (came["unplug"].result, came["unplug"].why) == ("skipped", "nobody is asked")
    assert came["check"].commands[0].argv[:3] == ("hil", "rack", "check")
    said = (programme.folder / "steps" / "check.txt").read_text()
    assert "FAIL" in said
    assert said.endswith("exit 3\n")
    state = programme.folder / EVIDENCE
    assert parse_evidence("state", state.read_bytes()) == evidence


def test_it_goes_on_where_it_was(programme: Programme) -> None:
    """What was measured is not measured again unless it is asked for; what was skipped is tried again."""
    first = programme.go_on()
    second = Programme(programme.asked, first).go_on()
    for name in ("doctor", "check"):
        assert second.step(name) == first.step(name)
    log = (programme.folder / "steps" / "build.txt").exists()
    assert not log
    third = Programme(programme.asked, second).go_on(again=("check",))
    assert third.step("doctor") == first.step("doctor")
    assert len(third.step("check").commands) == 1
    assert (programme.folder / "steps" / "check.txt").read_text().count("$ hil rack check") == 2


def test_a_person_skips_with_a_word(programme: Programme) -> None:
    """Each fault is one prompt, which a word skips; what no person can do here is skipped with the reason."""
    prompts: list[str] = []
    words = itertools.cycle(["skip"])

    def person(prompt: str) -> str:
        prompts.append(prompt)
        return next(words)

    asked = dataclasses.replace(programme.asked, person=person)
    came = {step.name: step for step in Programme(asked, programme.evidence).go_on().steps}
    assert {came[name].why for name in ("unplug", "swap")} == {"a person skipped it"}
    assert "pull the USB cable of d1, and leave it out. Enter to go on, or skip" in prompts[0]
    assert "swap the USB cables of d1 and d2" in prompts[1]


def test_another_rack_is_another_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2 where the boards are others than those that it was begun with, and where another is at work;
    a step that there is not is named with those there are."""
    rack = physical_rack(tmp_path)
    asked = Asked(rack, tmp_path / "out")
    programme = Programme(asked, begin(rack, {}))
    words = ["evidence", "--rack", str(rack.path), "--out", str(tmp_path / "out"), "--no-person"]
    with programme.alone():
        assert run_command(words) == 2
        assert "another hil evidence is at work" in capsys.readouterr().err
    others = dataclasses.replace(programme.evidence, boards=programme.evidence.boards[:1])
    write_evidence(folder_of(tmp_path / "out", rack) / EVIDENCE, others)
    assert run_command(words) == 2
    assert "with other boards" in capsys.readouterr().err
    assert run_command([*words, "--again", "chekc"]) == 2
    assert "doctor, check, build" in capsys.readouterr().err
