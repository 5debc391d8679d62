# SPDX-License-Identifier: Apache-2.0
"""``hil ci``: the steps of the GitHub workflows, as commands that a person can run too."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import click

from hil.base.errors import ConfigError, ExitCode, HilError, RigError
from hil.base.untrusted import markdown, terminal
from hil.ci import artefact, comment_page, conclusion, rack_switch, summary
from hil.ci import history as history_branch
from hil.ci.acceptance import find_acceptance
from hil.ci.attempts import describe_attempts
from hil.ci.collecting import collect
from hil.ci.comment import comment
from hil.ci.conclusion import CiVerdict, conclude, without_verdict
from hil.ci.event import read_event
from hil.ci.git_token import with_token
from hil.ci.github_run import attempts_by_run
from hil.ci.history import BRANCH
from hil.ci.inputs import DEFAULTS, check_inputs, outputs_of, plan_asked
from hil.ci.legs import compared_targets, narrow, read_comparisons
from hil.ci.limits import TOOL, Counting, limits_that_count, project_at
from hil.ci.night import add_runs
from hil.ci.plan import EMULATED_JOB, CiPlan, plan_event, read_plan, write_plan
from hil.cli.ci_nights import speak_command
from hil.cli.ci_queue import as_queued, queue_option
from hil.cli.ci_racks import await_command, excuses_now
from hil.cli.ci_steps import (
    github_of_job,
    legs_option,
    on_github,
    plan_option,
    say,
    summarise,
    write_outputs,
)
from hil.cli.options import F, history_option, out_option
from hil.store import ended


@click.command("comment")
@click.option(
    "--run", "run_id", type=click.IntRange(min=1), help="Number of a run of pr.yml, in its address."
)
@click.option(
    "--repository",
    default="",
    envvar="GITHUB_REPOSITORY",
    show_envvar=True,
    metavar="OWNER/NAME",
    help="The repository at GitHub.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Instead of a run: plan.json and legs/ of this machine, such as out/ci. Needs --dry-run.",
)
@click.option("--head", default="", metavar="SHA", help="The commit that the run must be of.")
@click.option("--dry-run", is_flag=True, help="Print the Markdown; write nothing anywhere.")
def comment_command(
    run_id: int | None, repository: str, folder: Path | None, head: str, *, dry_run: bool
) -> None:
    """Say under a pull request what changed, by how much, and what was not run.

    The comment is written once and brought up to date; an older run never replaces a newer one. GITHUB_TOKEN
    gives access, GITHUB_API_URL another server than api.github.com. docs/operate/ci-comment.md says what is
    trusted.
    """
    if (run_id is None) == (folder is None):
        raise ConfigError(
            "give either --run or --folder.", next_step="hil ci comment --folder out/ci --dry-run"
        )
    if folder is not None:
        if not dry_run:
            raise ConfigError("what is on this machine is not written to GitHub.", next_step="add --dry-run.")
        click.echo(_page_of_folder(folder), nl=False)
        return
    assert run_id is not None
    token = os.environ.get("GITHUB_TOKEN", "")
    if not token and not dry_run:
        raise ConfigError(
            "GITHUB_TOKEN is not set, so nothing can be written.", next_step="set it, or --dry-run."
        )
    github = github_of_job(token, repository)
    for line in comment(github, run_id, head=head, dry_run=dry_run):
        click.echo(line if dry_run and "\n" in line else terminal(line), nl=not line.endswith("\n"))


def _page_of_folder(folder: Path) -> str:
    plan, legs = read_plan(folder / artefact.PLAN), folder / artefact.LEGS
    verdict = conclude(plan, legs, {}, Counting())
    source = comment_page.source_of(os.environ, plan, Path.cwd())
    return comment_page.render(comment_page.facts_of(plan, verdict, legs, source), "comment")


FOLDER = click.Path(path_type=Path, file_okay=False)
MOST_NAMES = 5

remote_option = click.option("--remote", default="origin", show_default=True, help="Of this repository.")


@click.group("history")
def history_command() -> None:
    """The branch hil-history: boot values, a file a run, and the lines that reports need of nights."""


@history_command.command("fetch")
@history_option
@remote_option
@click.option("--only", default="", metavar="FILE", help="This file alone, such as judgements.jsonl.")
def fetch_history(history_folder: Path, remote: str, only: str) -> None:
    """Bring the branch's runs and lines into the folder, which need not exist yet; what is there stays."""
    os.environ.update(with_token(os.environ))
    names = history_branch.fetch(Path.cwd(), history_folder, remote=remote, only=only)
    which = ", ".join(names) if len(names) <= MOST_NAMES else f"{len(names)} files"
    nothing = f"it has no {only} yet" if only else "it does not exist yet"
    click.echo(f"{BRANCH}: {f'{which} in {history_folder}' if names else nothing}")


@history_command.command("push")
@history_option
@remote_option
@click.option("--message", default="Append a run", show_default=True)
def push_history(history_folder: Path, remote: str, message: str) -> None:
    """Commit the folder's files to the branch, beside what others have pushed meanwhile."""
    os.environ.update(with_token(os.environ))
    commit = history_branch.push(Path.cwd(), history_folder, message, remote=remote)
    click.echo(f"{BRANCH}: {f'now at {commit[:12]}' if commit else 'nothing new'}")


# jobs of which legs are left out where an image is the merge base's; outputs: what to measure, and compare
NARROWED = (("rack", "racks", "compared"), (EMULATED_JOB, "emulated", "emulated-compared"))


@click.group("ci")
def command() -> None:
    """Steps of the GitHub workflows; docs/operate/ci.md shows the whole.

    GitHub's variables (GITHUB_EVENT_NAME, GITHUB_EVENT_PATH, GITHUB_OUTPUT, GITHUB_STEP_SUMMARY, …) are
    used where they are set.
    """


@command.command("plan")
@click.option("--suite", default="", envvar="HIL_SUITE", show_envvar=True, help="Instead of each leg's own.")
@click.option("--base", default="", metavar="REV", help="Compare with it.  [default: the event's, or main]")
@click.option(
    "--racks-off",
    default="",
    envvar=rack_switch.VARIABLE,
    show_envvar=True,
    metavar="CHIP: WHY; …",
    help="Racks that measure nothing and are not waited for.",
)
@queue_option
@plan_option
def make_plan(suite: str, base: str, racks_off: str, queue_minutes: str, plan_path: Path) -> None:
    """Decide what to build and to measure, and why some of it can be left out.

    Outside of GitHub it plans what a pull request of HEAD would do.
    """
    event = read_event(os.environ, Path.cwd(), base=base)
    plan = plan_event(Path.cwd(), event, suite=suite, off=rack_switch.racks_off(racks_off))
    plan = as_queued(plan, event, queue_minutes)
    _keep(plan, plan_path)
    write_outputs(plan.outputs())


def _keep(plan: CiPlan, path: Path) -> None:
    write_plan(plan, path)
    ended.clear(path.parent)
    say("".join(f"{line}\n" for line in _plan_lines(plan)))


def _input_options(function: F) -> F:
    """Add an option for each input of measure.yml, which reaches it as HIL_INPUT_…."""
    for name, default in reversed(list(DEFAULTS.items())):
        variable = f"HIL_INPUT_{name.replace('-', '_').upper()}"
        option = click.option(
            f"--{name}", default=default, show_default=True, envvar=variable, metavar="TEXT"
        )
        function = option(function)
    return function


@command.command("inputs")
@_input_options
@plan_option
def check_and_plan(plan_path: Path, **given: str) -> None:
    """Check the inputs of measure.yml in a project's checkout, and plan what they ask for.

    Each input that is wrong is named, with its value and what is allowed: docs/operate/another-repository.md.
    """
    event = read_event(os.environ, Path.cwd())
    try:
        asked = check_inputs({key.replace("_", "-"): text for key, text in given.items()}, Path.cwd(), event)
    except ConfigError as error:
        summarise(f"# NOT MEASURED: an input is not allowed\n\n{markdown(error)}\n", whole="the log")
        raise
    plan = plan_asked(asked, event)
    _keep(plan, plan_path)
    outputs = outputs_of(asked, plan)
    write_outputs({key: one if isinstance(one, str) else json.dumps(one) for key, one in outputs.items()})


@command.command("narrow")
@plan_option
@click.option(
    "--comparisons", type=FOLDER, required=True, help="Folder of what `hil firmware compare --json` printed."
)
@legs_option
def narrow_plan(plan_path: Path, comparisons: Path, legs_path: Path) -> None:
    """After the build: leave out racks and emulated chips whose image is that of the merge base."""
    plan, found = read_plan(plan_path), read_comparisons(comparisons)
    outputs: dict[str, str] = {}
    for job, name, compared_name in NARROWED:
        kept, compared = narrow(plan, found, legs_path, job), compared_targets(plan, found, job)
        outputs |= {name: json.dumps(kept), compared_name: json.dumps(compared)}
        for leg in plan.legs:
            if leg.job == job and not leg.skip:
                click.echo(f"{leg.name}: {_narrowed(leg.target in kept, leg.target in compared)}")
    write_outputs(outputs)


def _narrowed(is_measured: bool, is_compared: bool) -> str:
    if not is_measured:
        return "skip, the image is the same"
    return "measure" if is_compared else "measure against the limits alone, the image is the same"


@command.command("collect")
@click.argument("leg")
@out_option
@legs_option
def collect_leg(leg: str, out: Path, legs_path: Path) -> None:
    """Put the newest run where LEG's artefact is made from, in place of an earlier one; show its summary.

    Where the last command ended before its run was judged, that is what the leg left: whose fault it is, and
    the way out.
    """
    folder = collect(out, leg, legs_path, os.environ)
    click.echo(str(folder))
    said, path = ended.read(folder / ended.ENDED), folder / "summary.md"
    if said:
        say(f"{said.words}\n")
        summarise(
            f"# NOT MEASURED: {leg}\n\n{markdown(said.words, 2 * ended.MOST_CHARACTERS)}\n", whole="the log"
        )
    elif path.is_file():
        summarise(path.read_text(encoding="utf-8"), whole=f"summary.md of the artefact leg-{leg}")


@command.command("verdict")
@plan_option
@legs_option
@click.option(
    "--jobs",
    default="",
    envvar="HIL_JOBS",
    show_envvar=True,
    metavar="JSON",
    help="GitHub's `needs` context: how the jobs before have ended. There it must be given.",
)
@click.option("--keep", type=FOLDER, metavar="DIR", help="Copy there what `hil ci comment` is made of.")
@click.option(
    "--thresholds",
    type=FOLDER,
    help="The limits that count, beside those of the merge base: a path from the top of the checkout, of a "
    "project …/hil/thresholds. [default: those that each run keeps]",
)
def judge_legs(
    plan_path: Path, legs_path: Path, jobs: str, keep: Path | None, thresholds: Path | None
) -> int:
    """Say one verdict on all legs; its exit code is the worst of theirs.

    Each leg is judged again from its records, by the definitions of head and of merge base. A leg
    without a verdict and without a recorded reason to skip it fails, and so does one whose verdict says
    otherwise than its records, or that measured less than the plan asks for. Where GitHub says that a rack
    took no job within an hour, its leg is undecided.
    """
    job_results = _job_results(jobs)
    try:
        plan = read_plan(plan_path)
    except ConfigError as error:
        return _without_plan(plan_path, error)
    if keep:
        left_out = artefact.keep(plan_path, legs_path, keep, thresholds)
        say("".join(f"warning: {line}\n" for line in left_out))
    _check_jobs(plan, job_results)
    counting, wrong = _counting(thresholds, plan)
    verdict = conclude(plan, legs_path, job_results, counting)
    if left := without_verdict(verdict):
        verdict = conclude(plan, legs_path, job_results, counting, excuses_now(plan, left))
    if wrong:
        verdict = conclusion.without_limits(verdict, wrong)
    if verdict.acceptable:
        verdict = _accepted(plan, verdict)
    verdict = replace(verdict, attempts=_attempts(plan))
    if keep and verdict.acceptance:
        text = json.dumps(asdict(verdict.acceptance), indent=2, ensure_ascii=False)
        (keep / artefact.ACCEPTED).write_text(f"{text}\n", encoding="utf-8")
    say(summary.render(plan, verdict, os.environ))
    if os.environ.get("GITHUB_STEP_SUMMARY"):
        summarise(_page(plan, verdict, legs_path), whole="the artefacts leg-…")
    return int(verdict.exit_code)


def _without_plan(path: Path, error: ConfigError) -> int:
    """Say that there is no plan, and why where the command that makes it left that; return the exit code."""
    code, heading, said = ExitCode.RIG, "NO VERDICT: there is no plan", str(error)
    with suppress(ConfigError):  # what is there is no word of ours
        if early := ended.read(path.parent / ended.ENDED):
            code, said = ExitCode(early.exit_code), early.words
            heading = f"{_NO_PLAN.get(early.owner, 'NO VERDICT:')} there is no plan"
    summarise(f"# {heading}\n\n{markdown(said, 2 * ended.MOST_CHARACTERS)}\n", whole="the log")
    say(f"# {heading}\n\n{said}\n")
    return int(code)


_NO_PLAN = {"configuration": "NOT MEASURED: CONFIGURATION –", "rig": "NO VERDICT: THE RIG FAILED –"}


def _counting(thresholds: Path | None, plan: CiPlan) -> tuple[Counting, ConfigError | None]:
    """Return the limits that count, where none are named those that each run keeps; and what is wrong."""
    try:
        if thresholds is None:
            return Counting(), None
        place = project_at(thresholds) if thresholds.parent.name == "hil" else TOOL
        return limits_that_count(thresholds, Path.cwd(), plan.base, place), None
    except ConfigError as error:
        return Counting(), error


def _accepted(plan: CiPlan, verdict: CiVerdict) -> CiVerdict:
    """Ask GitHub whether an owner takes what regressed on purpose; without an answer nobody does."""
    token, run_id = os.environ.get("GITHUB_TOKEN", ""), os.environ.get("GITHUB_RUN_ID", "")
    if not (token and run_id.isdigit() and plan.pull_request):
        return verdict
    try:
        found = find_acceptance(github_of_job(token), plan.pull_request, int(run_id), plan.head)
    except HilError as error:
        say(f"warning: nobody knows whether the regression is accepted: {error}\n")
        return verdict
    return conclusion.accept(verdict, found) if found else verdict


def _attempts(plan: CiPlan) -> str:
    """Return a sentence on earlier attempts; "" for the first attempt, and where GitHub does not say."""
    token, run_id = os.environ.get("GITHUB_TOKEN", ""), os.environ.get("GITHUB_RUN_ID", "")
    attempt = os.environ.get("GITHUB_RUN_ATTEMPT", "")
    if not (token and run_id.isdigit() and attempt.isdigit() and plan.pull_request):
        return ""
    try:
        github = github_of_job(token)
        counts = attempts_by_run(github, plan.head)
        return describe_attempts(github, plan.head, counts, int(run_id), int(attempt))
    except HilError as error:
        say(f"warning: earlier attempts on this commit are unknown: {error}\n")
        return ""


def _page(plan: CiPlan, verdict: CiVerdict, legs_path: Path) -> str:
    """Return what the comment shows, at greater length; the plain summary where that cannot be written."""
    source = comment_page.source_of(os.environ, plan, Path.cwd())
    try:
        return comment_page.render(comment_page.facts_of(plan, verdict, legs_path, source), "summary")
    except (RigError, OSError) as error:
        say(f"warning: the job summary is a plain one: {error}\n")
        return summary.render(plan, verdict, os.environ, safe=True)


command.add_command(comment_command)
command.add_command(history_command)
command.add_command(await_command)
command.add_command(speak_command)


@command.command("nights")
@legs_option
@history_option
def add_nights(legs_path: Path, history_folder: Path) -> None:
    """Append to the history what the legs night-… measured; name those that left nothing to append."""
    say("".join(f"{line}\n" for line in add_runs(legs_path, history_folder)))


def _plan_lines(plan: CiPlan) -> list[str]:
    versus = f" against {plan.base[:12]}" if plan.base else ""
    changes = f" ({', '.join(plan.changes)} changed)" if plan.changes else ""
    whose = ", from a fork" if plan.fork else ""
    lines = [f"{plan.event}{whose}: {plan.head[:12]}{versus}{changes}"]
    images = [image for target in plan.build for image in plan.images(target)]
    lines.append(f"build: {', '.join(images) or 'nothing'}")
    lines += [
        f"{leg.name}: {f'skip, {leg.skip}' if leg.skip else f'measure suite {leg.suite}'}"
        for leg in plan.legs
    ]
    return lines


def _check_jobs(plan: CiPlan, job_results: Mapping[str, str]) -> None:
    """On GitHub a verdict must know how each leg's job ended. Raises ConfigError."""
    unknown = sorted({leg.job for leg in plan.legs} - set(job_results))
    if on_github() and unknown:
        raise ConfigError(
            f"HIL_JOBS says nothing of how {', '.join(unknown)} ended, so there is no verdict.",
            next_step="in the workflow, list every job in `needs` and set HIL_JOBS: ${{ toJSON(needs) }}.",
        )


def _job_results(text: str) -> dict[str, str]:
    if not text:
        return {}
    try:
        jobs = json.loads(text)
        return {job: str(facts["result"]) for job, facts in jobs.items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(f"--jobs is not GitHub's needs context: {error!r}.") from error
