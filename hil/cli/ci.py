# SPDX-License-Identifier: Apache-2.0
"""``hil ci``: the steps of measure.yml, as commands that a person can run too."""

from __future__ import annotations

import json
import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import click

from hil.base.errors import ConfigError, ExitCode
from hil.base.untrusted import markdown
from hil.ci.artefact import LEGS, PLAN
from hil.ci.collecting import collect
from hil.ci.event import read_event
from hil.ci.inputs import DEFAULTS, OWN, check_inputs, plan_asked
from hil.ci.measuring import HIL, BuildFailed, Workshop, environment_of, out_of, run_here
from hil.ci.plan import EMULATED_JOB, EMULATOR_JOB, RACK_JOBS, CiPlan, Leg, plan_event, read_plan, write_plan
from hil.ci.racks import VARIABLE, await_racks, racks_off
from hil.cli.ci_steps import jobs_of_this_run, say, summarise, write_outputs
from hil.cli.ci_verdict import comment_command, issues_command, verdict_command
from hil.cli.options import DEFAULT_OUT, F, ci_folder
from hil.store import ended
from hil.virtual.emulator.drivers import PINNED, PINNED_FILE, finding, install_counting, install_pinned


@click.group("ci")
def command() -> None:
    """Steps of the GitHub workflows; docs/operate/ci.md shows the whole.

    GitHub's variables (GITHUB_EVENT_NAME, GITHUB_EVENT_PATH, GITHUB_OUTPUT, GITHUB_STEP_SUMMARY, …) are
    used where they are set. Steps hand things on in out/ci, or in the folder HIL_CI.
    """


def _input_options(function: F) -> F:
    """Add an option for each input of measure.yml, which reaches it as HIL_INPUT_…."""
    for name, default in reversed(list(DEFAULTS.items())):
        variable = f"HIL_INPUT_{name.replace('-', '_').upper()}"
        shown = OWN if name == "mode" else default
        option = click.option(
            f"--{name}", default="", envvar=variable, metavar="TEXT", help=f"[default: {shown}]"
        )
        function = option(function)
    return function


@command.command("plan")
@_input_options
def make_plan(**given: str) -> None:
    """Decide what to build and to measure, and why some of it can be left out.

    Options are the inputs of measure.yml: docs/operate/another-repository.md. Outside of GitHub it plans what
    a pull request of HEAD would do, of this tool's own repository (--mode own) or of a project. HIL_RACKS_OFF
    names racks that measure nothing and are not waited for: CHIP: WHY; …
    """
    inputs = {key.replace("_", "-"): text for key, text in given.items()}
    without = racks_off(os.environ.get(VARIABLE, ""))
    if inputs["mode"] in ("", OWN):
        event = read_event(os.environ, Path.cwd(), base=inputs["base"])
        plan = plan_event(Path.cwd(), event, suite=inputs["suite"], off=without)
    else:
        plan = _asked(inputs, without)
    write_plan(plan, ci_folder() / PLAN)
    ended.clear(ci_folder())
    say("".join(f"{line}\n" for line in _plan_lines(plan)))
    write_outputs(plan.outputs())


def _asked(inputs: dict[str, str], off: dict[str, str]) -> CiPlan:
    """Return the plan of a project. Raises ConfigError, said in the job's summary too."""
    event = read_event(os.environ, Path.cwd())
    try:
        return plan_asked(check_inputs(inputs, Path.cwd(), event), event, off)
    except ConfigError as error:
        summarise(f"# NOT MEASURED: an input is not allowed\n\n{markdown(error)}\n", whole="the log")
        raise


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


@command.command("build")
@click.argument("chip")
def build_chip(chip: str) -> int:
    """Build what CHIP's legs need, in ESP-IDF's environment."""
    try:
        _workshop().build_chip(chip)
    except BuildFailed as failed:
        return failed.status
    return int(ExitCode.PASS)


@command.command("measure")
@click.argument("leg_name", metavar="LEG")
def measure_leg(leg_name: str) -> int:
    """Build what a leg of the plan needs, and measure it. Its status is that of `hil run` or `hil cost`."""
    shop = _workshop()
    leg = _leg(shop.plan, leg_name)
    try:
        words = shop.command(leg)
    except BuildFailed as failed:
        return failed.status
    if install := _install(leg, shop):
        status = run_here(("sh", "-c", install), shop.folder)
        if status:
            return status
    return _become(words, shop.plan, leg, shop.folder)


def _install(leg: Leg, shop: Workshop) -> str:
    """Return the command that installs the emulator of a leg, "" where it needs none or has it."""
    if leg.job == EMULATED_JOB and "IDF_PATH" in os.environ:  # its container has it: nothing is fetched
        return install_counting(leg.target)
    if leg.job == EMULATOR_JOB and not finding(PINNED, leg.target, needed=True).ok:
        return install_pinned(out_of(shop.folder).parent / "hil" / PINNED_FILE)
    return ""


def _workshop() -> Workshop:
    return Workshop(read_plan(ci_folder() / PLAN), Path.cwd(), (ci_folder() / "bundle").resolve())


def _leg(plan: CiPlan, name: str) -> Leg:
    """Return a leg that is to be measured. Raises ConfigError."""
    known = [leg.name for leg in plan.legs if not leg.skip]
    if name not in known:
        raise ConfigError(
            f"the plan measures no leg {name!r}.",
            next_step=f"name one of {', '.join(known) or 'another plan'}.",
        )
    return plan.leg(name)


def _become(words: list[str], plan: CiPlan, leg: Leg, folder: Path) -> NoReturn:
    """Have `hil` take this process's place, so that a cancelled job's signal reaches it."""
    limit = ["timeout", "--signal=TERM", "--kill-after=30s", f"{plan.minutes_of(leg)}m"]
    say(f"hil {shlex.join(words)}\n")
    sys.stdout.flush()
    os.chdir(folder)
    os.execvpe(limit[0], [*limit, *HIL, *words], {**environment_of(plan), **os.environ})  # noqa: S606


@command.command("collect")
@click.argument("leg")
def collect_leg(leg: str) -> None:
    """Put the newest run where LEG's artefact is made from, in place of an earlier one; show its summary.

    Where the last command ended before its run was judged, that is what the leg left: whose fault it is, and
    the way out. The output `report` is the folder of its report.
    """
    out = _out_of_plan()
    folder = collect(out, leg, ci_folder() / LEGS)
    click.echo(str(folder))
    write_outputs({"report": str(out.resolve() / "report")})
    said, path = ended.read(folder / ended.ENDED), folder / "summary.md"
    if said:
        say(f"{said.words}\n")
        summarise(
            f"# NOT MEASURED: {leg}\n\n{markdown(said.words, 2 * ended.MOST_CHARACTERS)}\n", whole="the log"
        )
    elif path.is_file():
        summarise(path.read_text(encoding="utf-8"), whole=f"summary.md of the artefact leg-{leg}")


def _out_of_plan() -> Path:
    with suppress(ConfigError):
        if folder := read_plan(ci_folder() / PLAN).folder:
            return out_of(Path.cwd() / folder)
    return DEFAULT_OUT


@command.command("await-racks")
def await_command() -> None:
    """Wait until racks have taken their jobs of this workflow run, for an hour at most.

    The output `unanswered` lists the legs whose racks have not. GITHUB_TOKEN may read actions.
    """
    plan = read_plan(ci_folder() / PLAN)
    late = await_racks(jobs_of_this_run)
    legs = [leg.name for leg in plan.legs if leg.job in RACK_JOBS and leg.target in late and not leg.skip]
    say("".join(f"{leg}: no rack took its job within an hour\n" for leg in legs) or "racks took their jobs\n")
    write_outputs({"unanswered": json.dumps(legs)})


command.add_command(verdict_command)
command.add_command(comment_command)
command.add_command(issues_command)
