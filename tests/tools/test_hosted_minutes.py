# SPDX-License-Identifier: Apache-2.0
"""The sum of what a pull request costs: of the jobs that there are, and each billed as GitHub does."""

from __future__ import annotations

import pytest
from ruamel.yaml import YAML

from tests.lab import ROOT
from tools.bench import hosted_minutes
from tools.bench.hosted_minutes import AIMS, Job, Kind, Step, Timed, jobs_of, kinds_figure, minutes

COMMANDS = ("plan", "narrow", "verdict", "docs", "build")
TIMED = Timed(
    dict.fromkeys(hosted_minutes.PURPOSES, 10.0),
    dict.fromkeys(hosted_minutes.PURPOSES, 5.0),
    dict.fromkeys(COMMANDS, 2.0),
)
KINDS: tuple[Kind, ...] = ("documentation only", "harness only", "firmware")


def hosted_jobs() -> set[str]:
    """Return the jobs that a pull request starts on GitHub's machines."""
    found = set()
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        workflow = YAML(typ="safe").load(path)
        if "pull_request" in workflow["on"] or path.name == "comment.yml":
            for name, job in workflow["jobs"].items():
                hosted = "self-hosted" not in job.get("runs-on", "self-hosted")
                if hosted and "== 'schedule'" not in job.get("if", ""):
                    found.add(f"{path.stem}/{name}")
    return found


def test_every_hosted_job_is_in_the_sum() -> None:
    """A job that a workflow gets without being reckoned here would cost unseen."""
    assert {job.name for job in jobs_of("firmware", TIMED, warm=True)} == hosted_jobs()


def test_documentation_measures_nothing() -> None:
    """Plan, verdict, the pages' tests and the check: no rack, no chip, nothing of `run`."""
    jobs = jobs_of("documentation only", TIMED, warm=True)
    assert [job.name for job in jobs] == ["pr/plan", "pr/hil-verdict", "checks/test", "comment/comment"]
    assert not [step for job in jobs for step in job.steps if step.source == "planned"]


def test_a_job_is_billed_by_the_minute() -> None:
    """61 seconds are two minutes; what a second job has left over does not fill the first."""
    job = Job("a", [Step("b", 60.0, "measured"), Step("c", 1.0, "assumed")])
    assert (job.seconds, job.billed_minutes) == (61.0, 2)
    assert Job("a", [Step("b", 60.0, "measured")]).billed_minutes == 1


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_kept_saves_what_it_is_quicker_by(kind: Kind) -> None:
    """Each job that keeps is that much shorter, and the comment's, which keeps nothing, is not."""
    warm, cold = (jobs_of(kind, TIMED, warm=state) for state in (True, False))
    assert minutes(warm) < minutes(cold)
    assert {job.name: job.seconds for job in warm}["comment/comment"] == cold[-1].seconds


def test_an_aim_that_is_missed_is_named() -> None:
    """By the sum of steps with warm caches; that of a change of pages is met where its steps are short."""
    figure = kinds_figure(TIMED)
    assert [row[0] for row in figure.rows] == list(KINDS)
    takes = {kind: float(row[2]) for kind, row in zip(KINDS, figure.rows, strict=True)}
    missed = {kind for kind, aim in AIMS.items() if takes[kind] > aim}
    assert {words.partition(":")[0] for words in figure.missed} == missed
    assert "documentation only" not in missed
    slow = Timed(dict.fromkeys(hosted_minutes.PURPOSES, 300.0), TIMED.taking, TIMED.commands)
    assert "documentation only" in kinds_figure(slow).missed[0]
