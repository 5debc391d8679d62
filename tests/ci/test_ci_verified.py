# SPDX-License-Identifier: Apache-2.0
"""What a pull request's jobs say of it, held against GitHub's word by the command of comment.yml."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from hil.ci.acceptance import LABEL
from hil.ci.plan import INSTRUCTION_COST
from hil.ci.verified import MOST_FILES
from hil.cli.app import run_command
from tests.ci.ci_rig import BUNDLE, leave_run, limits_text
from tests.ci.comment_rig import kept, leave_all, own_repository, pull_request_state, zipped
from tests.ci.github_server import HOME, RUN, TOKEN, State, serve
from tests.gate import compare_records
from tests.make_records import change_info

Facts = dict[str, Any]
UNREAD = "No verdict could be read"


@pytest.fixture(scope="module")
def passed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run in which nothing changed."""
    return leave_all(tmp_path_factory.mktemp("same"))


class Run:
    """A run of pr.yml whose jobs are all green, and what it leaves; ``folder`` becomes its artefact."""

    def __init__(self, state: State, api: str, folder: Path) -> None:
        self.state, self.api, self.folder = state, api, folder

    def comment(self) -> tuple[str, str, str]:
        """Return conclusion and title of the check that is posted, and all that the comment says."""
        assert self.command() == 0
        (check,) = self.state.checks
        page = "\n".join(one["body"] for one in self.state.comments[7]).replace("\u200b", "")
        return check["conclusion"], check["output"]["title"], page + check["output"]["summary"]

    def command(self, **artefact: Any) -> int:
        """Run `hil ci comment` as the step does, on what the jobs left; return its status."""
        self.state.add_artefact(zipped(self.folder), **artefact)
        known = {"GITHUB_API_URL": self.api, "GITHUB_REPOSITORY": HOME, "GITHUB_TOKEN": TOKEN}
        with chdir(own_repository().path), pytest.MonkeyPatch.context() as patch:
            for name, value in known.items():
                patch.setenv(name, value)
            return run_command(["ci", "comment", "--run", str(RUN)])

    def plan(self, change: Callable[[Facts], None]) -> None:
        path = self.folder / "plan.json"
        plan = json.loads(path.read_text())
        change(plan)
        path.write_text(json.dumps(plan))


@pytest.fixture
def run(passed: Path, tmp_path: Path) -> Iterator[Run]:
    state = pull_request_state()
    state.set_jobs("success")
    with serve(state) as api:
        folder = tmp_path / "verdict"
        yield Run(state, api, _copied(kept(passed), folder))


def _copied(source: Path, to: Path) -> Path:
    for path in (one for one in source.rglob("*") if one.is_file()):
        target = to / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    return to


def measured(plan: Facts) -> None:
    """Plan the chip too, which a change of tests leaves out."""
    for leg in plan["legs"]:
        leg["skip"] = leg["skip"] * (leg["job"] != "emulated")


def only_documentation(plan: Facts) -> None:
    plan["changes"], plan["build"] = ["documentation"], []
    for leg in plan["legs"]:
        leg["skip"] = "only documentation changed (README.md)"


def another_base(plan: Facts) -> None:
    own = own_repository()
    plan["base"] = own.git("commit-tree", "-m", "older", own.git("rev-parse", "HEAD^{tree}"))


def without_base(plan: Facts) -> None:
    plan["base"] = ""
    plan["legs"][-1]["skip"] = "there is no merge base to compare with"


def without_emulated(plan: Facts) -> None:
    plan["legs"] = [leg for leg in plan["legs"] if leg["job"] != "emulated"]


def another_suite(plan: Facts) -> None:
    plan["legs"][0]["suite"] = "first"


def more_legs(plan: Facts) -> None:
    """Each takes a share of alpha."""
    leg = {"job": "rack", "suite": "pr", "target": "esp32"}
    plan["legs"] += [{**leg, "name": f"rack-{number}"} for number in range(30)]


def as_a_night(plan: Facts) -> None:
    plan["trigger"] = "nightly"
    plan["legs"] = plan["legs"][:1]


def nobody_waits(plan: Facts) -> None:
    for leg in plan["legs"]:
        leg |= {"skip": "measured as the head of pull request 1", "undecided": True}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (only_documentation, "leaves out virtual (only documentation"),
        (another_base, "but the merge base is"),
        (without_base, "with nothing, but the merge base is"),
        (without_emulated, "no leg emulated-esp32c3"),
        (another_suite, "no leg virtual of the job virtual and the suite 'quick'"),
        (more_legs, "a leg rack-0"),
        (as_a_night, "no leg"),
        (nobody_waits, "leaves out virtual (measured as the head"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_plan_that_says_otherwise_than_github_fails(
    run: Run, change: Callable[[Facts], None], words: str
) -> None:
    """Whichever of its words saves a measurement: beside a green job the check is red, and says which."""
    run.plan(change)
    conclusion, title, said = run.comment()
    assert (conclusion, title) == ("failure", UNREAD)
    assert words in said


@pytest.mark.parametrize("more", [1, -1], ids=["too-many", "few-enough"])
def test_documentation_alone_is_green(run: Run, more: int) -> None:
    """GitHub's list of files has nothing else: no job had to measure.

    GitHub lists 300 files of a comparison; what stands behind them nobody has seen.
    """
    run.state.files = [f"docs/{number}.md" for number in range(MOST_FILES + more)]
    run.plan(only_documentation)
    shutil.rmtree(run.folder / "legs")
    conclusion, title, said = run.comment()
    if more > 0:
        assert conclusion == "failure"
        assert "leaves out virtual" in said
    else:
        assert (conclusion, title.partition(":")[0]) == ("success", "PASS")


def test_the_same_bytes_of_edited_firmware_are_not_believed(run: Run, passed: Path, tmp_path: Path) -> None:
    """The artefact says that no firmware is edited and the image the same; GitHub lists an edited source."""
    run.state.files = ["firmware/main/app_main.c"]
    folder = _copied(passed, tmp_path / "run")
    leave_emulated(folder / "legs" / "emulated-esp32c3")
    run.folder = kept(folder)
    run.plan(measured)
    conclusion, title, said = run.comment()
    assert (conclusion, title) == ("neutral", "UNDECIDED: instruction cost (emulated) esp32c3")
    assert "built both" in said
    assert UNREAD not in said


def test_limits_of_the_artefact_are_the_heads(run: Run) -> None:
    """The job kept the merge base's limits in the place of the looser ones that the head brings."""
    looser = limits_text().replace("abs_max_ms: 25", "abs_max_ms: 5000")
    run.state.limits = {"publish.yaml": looser.encode()}
    run.state.files += ["thresholds/publish.yaml"]
    run.plan(measured)
    conclusion, title, said = run.comment()
    assert (conclusion, title) == ("failure", UNREAD)
    assert "thresholds/publish.yaml differs" in said


def test_what_is_loosened_waits_for_an_owner(passed: Path, tmp_path: Path) -> None:
    """The check is neutral and tells each rule; with an owner's label and reason it is green."""
    looser = limits_text().replace("abs_max_ms: 25", "abs_max_ms: 5000")
    folder = _copied(passed, tmp_path / "run")
    leave_emulated(folder / "legs" / "emulated-esp32c3")  # what measures has changed, so it was measured
    artefact = kept(folder)
    (artefact / "thresholds/publish.yaml").write_text(looser)
    state = pull_request_state()
    state.permissions["owner"] = "write"
    state.limits = {"publish.yaml": looser.encode()}
    state.files = ["thresholds/publish.yaml", "tests/a.py"]
    state.set_jobs("success")
    Run(state, "", artefact).plan(measured)
    legs = f"virtual, {INSTRUCTION_COST} esp32c3, compare"
    with serve(state) as api:
        conclusion, title, said = Run(state, api, artefact).comment()
        assert (conclusion, title) == ("neutral", f"PASS, BUT BY LOOSENED RULES: {legs}"), said
        assert "max 25000 → max 5e+06" in said
        state.checks.clear()
        state.set_label(LABEL, "owner", "2026-11-20T01:20:00Z")
        state.add_comment("hil:accept: a slower radio", "owner")
        conclusion, title, _ = Run(state, api, artefact).comment()
    assert conclusion == "success"
    assert title.startswith(f"PASS: {legs}; ")
    assert title.endswith(" by owner: a slower radio")


def leave_emulated(folder: Path) -> None:
    """Leave the leg of the emulated chip: its image is the merge base's, as no firmware is edited."""
    shutil.rmtree(folder, ignore_errors=True)
    chip = folder.name
    same = {"identical": True, "looks": (), "other_sha256": compare_records.CANDIDATE, "boards": ("e1",)}
    made = leave_run(folder, [compare_records.comparison(image="esp32c3", target=chip, **same)])
    firmware = {"esp32c3": {"sha256": "f" * 64, **BUNDLE}}
    boards = [{"id": "e1", "kind": "emulated", "target": chip}]
    change_info(made, boards=boards, firmware=firmware)


def test_two_pull_requests_of_one_head_need_one_base(run: Run) -> None:
    """Of two with one commit the author could choose whose base counts; the check stands for both."""
    run.state.add_pull(8)
    run.state.pulls[8]["base"] = {"sha": "e" * 40}
    assert run.command() != 0  # GitHub knows no such comparison
    assert run.state.checks == []


@pytest.mark.parametrize("left", ["expired", "no-plan", "no-job"])
def test_a_green_job_without_a_verdict_fails(run: Run, left: str) -> None:
    """The job passed and nothing shows why: that is red, whatever the reason."""
    if left == "no-plan":
        (run.folder / "plan.json").write_text("{}")
    if left == "no-job":
        run.state.set_jobs("")
    assert run.command(expired=left == "expired") == 0
    assert [(one["conclusion"], one["output"]["title"]) for one in run.state.checks] == [("failure", UNREAD)]
