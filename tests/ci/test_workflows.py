# SPDX-License-Identifier: Apache-2.0
"""The workflows: read by actionlint and zizmor; nights and the order of jobs, run by act on this machine.

Pull requests: test_workflows_act.py.
"""

from __future__ import annotations

import copy
import functools
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from hil.ci.github_run import ARTEFACT, JOB_NAMES, VERDICT_JOB
from hil.ci.github_run import CALLER as CALLED_BY
from hil.ci.plan import EMULATED_JOB, MINUTES
from hil.virtual.emulator.drivers import PINNED_FILE
from tests.ci.act import DEADLINE_S, Project
from tests.ci.ci_rig import CALLED, CALLER
from tests.ci.github_server import State, serve
from tests.lab import ROOT

pytestmark = pytest.mark.timeout(DEADLINE_S + 60)

BIN = ROOT / ".venv" / "bin"
MEASURE, NIGHTLY = ".github/workflows/measure.yml", ".github/workflows/nightly.yml"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@functools.cache
def load(path: Path) -> dict:  # type: ignore[type-arg]
    return YAML(typ="safe").load(path)


def rack_job() -> dict:  # type: ignore[type-arg]
    """Return the job that a pull request's rack does, in the workflow that measure.yml calls."""
    (job,) = load(ROOT / CALLED)["jobs"].values()
    return job


def steps() -> Iterator[tuple[str, dict]]:  # type: ignore[type-arg]
    """Yield every step of every workflow and composite action, with the words that find it."""
    for path in WORKFLOWS:
        for name, job in load(path)["jobs"].items():
            yield from ((f"{path.name} {name}: {step.get('name')}", step) for step in job.get("steps", ()))
    for path in sorted((ROOT / ".github" / "actions").glob("*/action.yml")):
        yield from ((f"{path.parent.name}: {step['name']}", step) for step in load(path)["runs"]["steps"])


def run_tool(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / name), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT,
        timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_actionlint_finds_nothing() -> None:
    """The workflows are well-formed, their expressions typed, their shell steps clean for shellcheck."""
    done = run_tool("actionlint", "-shellcheck", "shellcheck")
    assert done.returncode == 0, done.stdout


def test_actionlint_looks_at_shell_steps(tmp_path: Path) -> None:
    """Control: an unquoted variable in a step is found, so the silence above means something."""
    bad = tmp_path / "bad.yml"
    bad.write_text("on: push\njobs: {a: {runs-on: ubuntu-24.04, steps: [{run: 'rm $FILE'}]}}\n")
    done = run_tool("actionlint", "-shellcheck", "shellcheck", str(bad))
    assert done.returncode == 1
    assert "SC2086" in done.stdout


@pytest.mark.slow
def test_zizmor_finds_nothing_without_a_reason() -> None:
    """No security finding of the strictest persona but those that .github/zizmor.yml explains."""
    done = run_tool("zizmor", "--offline", "--persona=auditor", "--no-progress", ".")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("scanner", ["zizmor", "poutine"])
def test_each_ignored_finding_has_a_reason(scanner: str) -> None:
    """In zizmor.yml and poutine.yml a comment stands before each ignored file, and each disabled rule."""
    lines = (ROOT / ".github" / f"{scanner}.yml").read_text().splitlines()
    entries = [n for n, line in enumerate(lines) if re.match(r"\s+(- |disable:)", line)]
    assert entries
    for n in entries:
        start = n - 1
        while re.match(r"\s+- ", lines[start]):  # several files may share a reason
            start -= 1
        assert lines[start].strip().startswith("#"), f"{scanner}.yml:{n + 1} has no reason"


def test_permissions_are_granted_job_by_job() -> None:
    """Every workflow starts from none; only history, Pages, a comment, issues and a release are written."""
    writes = {}
    for path in WORKFLOWS:
        workflow = load(path)
        assert workflow["permissions"] == {}, path.name
        for name, job in workflow["jobs"].items():
            granted = {key for key, value in job["permissions"].items() if value == "write"}
            if granted:
                writes[f"{path.stem}/{name}"] = granted
    assert writes == {
        "comment/comment": {"checks", "pull-requests"},
        "nightly/history": {"contents"},
        "nightly/deploy": {"pages", "id-token"},
        "nightly/issues": {"issues"},
        "release/image": {"packages"},
        "release/attest": {"attestations", "id-token"},
        "release/publish": {"contents"},
    }


def test_what_may_write_runs_nothing_of_others() -> None:
    """A job that pushes a history installs no npm package, builds nothing, and does nothing else."""
    job = load(ROOT / ".github/workflows/nightly.yml")["jobs"]["history"]
    assert {"purpose": "plan"} in [step.get("with") for step in job["steps"]]
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands
    assert all(command.startswith(".venv/bin/hil history push ") for command in commands)


@pytest.mark.slow
def test_every_job_and_step_has_its_own_name() -> None:
    """A red cross names what failed; the required check has the name that is to be required."""
    for path in WORKFLOWS:
        for job in load(path)["jobs"].values():
            names = [step["name"] for step in job.get("steps", ())]  # a job that calls a workflow has none
            assert len(set(names)) == len(names), path.name
    workflows = [workflow for workflow in map(load, WORKFLOWS) if "workflow_call" not in workflow["on"]]
    jobs = [job for workflow in workflows for job in workflow["jobs"].values()]
    checks = [job["name"] for job in jobs]  # on main a commit has those of all workflows
    assert len(set(checks)) == len(checks), checks


def test_the_verdict_waits_for_every_other_job() -> None:
    """A job that is added without being waited for could fail unseen. A skipped job passes as a required
    check, so only a pass that the plan's job has said skips it. What `hil ci verdict` keeps is uploaded by
    the name that the comment asks for, also after a failure. GitHub lists jobs by the names that people see;
    each that the verdict needs has one in the table."""
    jobs = load(ROOT / MEASURE)["jobs"]
    assert set(jobs[VERDICT_JOB]["needs"]) == set(jobs) - {VERDICT_JOB}
    assert jobs[VERDICT_JOB]["if"] == "always() && needs.plan.outputs.nothing != 'true'"
    assert jobs["plan"]["outputs"]["nothing"] == "${{ steps.verdict.outputs.verdict == 'pass' }}"
    planned = "always() && steps.plan.outputs.nothing == 'true'"
    for job, condition in ((VERDICT_JOB, "always()"), ("plan", planned)):
        named = {step["name"]: step for step in jobs[job]["steps"]}
        keep = named["Keep the verdict"]
        assert (keep["if"], keep["with"]["name"]) == (condition, ARTEFACT)
        assert keep["with"]["path"] == "ci/verdict"
    shown = {facts["name"].partition(" ${{")[0]: job for job, facts in jobs.items() if job != VERDICT_JOB}
    assert dict(JOB_NAMES) == shown
    assert f"{load(ROOT / CALLER)['jobs']['hil']['name']} / " == CALLED_BY
    assert jobs[VERDICT_JOB]["name"] == VERDICT_JOB


def test_what_calls_the_pipeline_grants_what_it_asks_for() -> None:
    """A called job may have no more rights than the job that calls it; each only reads."""
    asked = {right for job in load(ROOT / MEASURE)["jobs"].values() for right in job["permissions"]}
    template = (ROOT / "hil/data/init/.github/workflows/hil.yml").read_text().replace("{branch}", "main")
    granted = [load(ROOT / CALLER)["jobs"]["hil"], load(ROOT / NIGHTLY)["jobs"]["hil"]]
    granted.append(YAML(typ="safe").load(re.sub(r"\{(workflow|project)\}", "x", template))["jobs"]["hil"])
    for job in granted:
        assert job["permissions"] == dict.fromkeys(asked, "read")
    assert all(not step.get("with", {}).get("persist-credentials") for _, step in steps())


def test_a_newer_push_cancels_the_older_ones_jobs() -> None:
    """Each job that takes long has a group of its pull request; a late plan cannot cancel newer jobs.

    A merge group has no number, so nothing cancels its jobs.
    """
    jobs = load(ROOT / MEASURE)["jobs"]
    own = ("plan", "virtual", "build", "emulator")
    groups = {f"measure-{name}-": jobs[name]["concurrency"] for name in own}
    groups["leg-${{ inputs.leg }}-"] = rack_job()["concurrency"]
    for begins, concurrency in groups.items():
        assert concurrency["group"].startswith(begins)
        ends = "-${{ github.workflow }}-${{ github.event.pull_request.number || github.run_id }}"
        assert concurrency["group"].endswith(ends)
        assert concurrency["cancel-in-progress"] is True


def test_what_is_emulated_needs_no_board_and_no_right() -> None:
    """On a hosted runner, so that a fork's pull request has it as any other.

    Instructions are counted in the container that builds. An emulator has none, and is kept by the digest
    that the project pins: another one is another key.
    """
    jobs = load(ROOT / MEASURE)["jobs"]
    for job in (jobs["build"], jobs["emulator"]):
        assert (job["runs-on"], job["permissions"]) == ("ubuntu-24.04", {"contents": "read"})
        assert "environment" not in job
    assert jobs["build"]["container"].startswith("espressif/idf:")
    named = {step["name"]: step for step in jobs["build"]["steps"]}
    assert "measure" in named["Count instructions and judge"]["run"]
    assert "container" not in jobs["emulator"]
    (cache,) = [one["with"] for one in jobs["emulator"]["steps"] if "actions/cache@" in one.get("uses", "")]
    assert f"hashFiles('project/**/hil/{PINNED_FILE}')" in cache["key"]
    assert cache["path"] == "~/.local/bin/esp-emu"


def test_each_attempt_deploys_its_own_report() -> None:
    """Artefacts of earlier attempts stay, and Pages refuses two of one name: their names differ."""
    jobs = load(ROOT / ".github/workflows/nightly.yml")["jobs"]
    uploads = [step["with"] for step in jobs["report"]["steps"] if "upload-pages" in step.get("uses", "")]
    assert [upload["name"] for upload in uploads] == ["github-pages-${{ github.run_attempt }}"]
    assert jobs["report"]["outputs"]["pages"] == uploads[0]["name"]
    (deploy,) = [step["with"] for step in jobs["deploy"]["steps"]]
    assert deploy == {"artifact_name": "${{ needs.report.outputs.pages }}"}
    assert jobs["deploy"]["concurrency"] == {"group": "pages", "cancel-in-progress": False}


def test_a_measurement_ends_before_its_job() -> None:
    """The plan gives both limits: 20 minutes are left to set up before, and to keep what was measured."""
    jobs = {**load(ROOT / MEASURE)["jobs"], "measure": rack_job()}
    assert {jobs[name]["timeout-minutes"] for name in ("virtual", "emulator")} == {"${{ matrix.minutes }}"}
    assert jobs["rack"]["with"]["minutes"] == "${{ matrix.minutes }}"
    assert jobs["measure"]["timeout-minutes"] == "${{ inputs.minutes }}"
    measures = [name for name, job in jobs.items() if "ci measure" in str(job.get("steps"))]
    assert measures == ["virtual", "build", "emulator", "measure"]
    for name in measures:
        (step,) = [one for one in jobs[name]["steps"] if "ci measure" in one.get("run", "")]
        assert step["run"].startswith("exec ")  # so that a cancelled job's signal reaches it
    assert MINUTES[EMULATED_JOB] + 75 <= jobs["build"]["timeout-minutes"]  # two commits are built before
    assert not [name for path in WORKFLOWS for name, step in steps() if "hil run" in step.get("run", "")]


def test_what_prints_figures_runs_whole_at_night() -> None:
    """Each bench target of the Makefile has a leg, but for one that takes hours; output is always kept."""
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^(bench[\w-]*|chaos|fuzz|sanitize|soak):", makefile, re.MULTILINE)
    job = load(ROOT / ".github/workflows/checks.yml")["jobs"]["figures"]
    assert sorted([*job["strategy"]["matrix"]["target"], "bench-gate-rack"]) == sorted(targets)
    assert job["strategy"]["fail-fast"] is False
    named = {step["name"]: step for step in job["steps"]}
    limit = re.search(r"timeout --signal=INT --kill-after=1m (\d+)m make", named["Measure and print"]["run"])
    assert limit
    assert int(limit[1]) + 15 <= job["timeout-minutes"]
    assert named["Keep what was printed"]["if"] == "always()"


def test_racks_neither_compile_nor_lose_their_place() -> None:
    """A rack job installs no compiler, gets no secret, and shares no `concurrency` with another leg.

    GitHub keeps one pending job of a group and cancels the others, so a shared group would lose measurements.
    """
    for path in WORKFLOWS:
        assert "secrets." not in path.read_text()
        for name, job in load(path)["jobs"].items():
            if "self-hosted" not in job.get("runs-on", ""):
                continue
            group = job.get("concurrency", {}).get("group", "${{ github.run_id }}")
            assert "github.run_id" in group, name
            assert "concurrency" not in load(path)
            assert path.name == "rack.yml"
            assert job["environment"]["name"], name
            assert job["environment"]["deployment"] is False, name  # else each push files one
            commands = [step.get("run", "") for step in job["steps"]]
            assert not any("hil build" in command for command in commands)
            prepared = [step.get("with", {}) for step in job["steps"]]
            assert any(one.get("purpose") == "report" for one in prepared)


def test_each_workflow_with_a_racks_job_is_one_that_a_group_admits() -> None:
    """No job for a rack's labels stands elsewhere, of which each pull request has its own."""
    with_jobs = {
        f".github/workflows/{path.name}"
        for path in WORKFLOWS
        if any("self-hosted" in job.get("runs-on", "") for job in load(path)["jobs"].values())
    }
    page = (ROOT / "docs" / "operate" / "repository.md").read_text(encoding="utf-8")
    admitted = re.findall(r"selected_workflows\[\]=OWNER/NAME/(\S+)@refs/heads/main'", page)
    assert with_jobs == set(admitted)
    assert CALLER not in with_jobs


def test_a_racks_environment_is_by_the_event() -> None:
    """Neither the plan nor an input chooses it, and its caller grants the rights that are asked for."""
    job, caller = rack_job(), load(ROOT / MEASURE)["jobs"]["rack"]
    name = job["environment"]["name"]
    assert "inputs." not in name
    assert "needs." not in name
    assert "github.event.pull_request.head.repo.full_name != github.repository" in name
    assert "github.event.pull_request.user.login == 'dependabot[bot]'" in name
    assert caller["permissions"] == job["permissions"]
    assert CALLED in caller["uses"]
    assert "secrets" not in caller
    assert set(caller["with"]) == set(load(ROOT / CALLED)["on"]["workflow_call"]["inputs"])


def test_what_gives_a_rack_up_is_in_the_group_of_its_job() -> None:
    """By that it cancels a job that waits. It has no right, and looks after what measures anyway."""
    jobs = load(ROOT / MEASURE)["jobs"]
    gives_up, patience = jobs["give-up"], jobs["patience"]
    group = rack_job()["concurrency"]["group"]
    assert gives_up["concurrency"]["group"] == group.replace("inputs.leg", "matrix.leg")
    assert jobs["rack"]["with"]["leg"] == "${{ matrix.leg }}"
    assert gives_up["concurrency"]["cancel-in-progress"] is True
    assert gives_up["permissions"] == {}
    assert patience["permissions"] == {"actions": "read", "contents": "read"}
    assert {"virtual", "build"} <= set(patience["needs"])
    (wait,) = [step for step in patience["steps"] if step.get("id") == "wait"]
    assert wait["continue-on-error"] is True  # without an answer racks are waited for


def test_each_step_is_a_command_of_this_checkout() -> None:
    """One line, so that a person can run it; expressions reach it through its environment only. Of another
    repository's workflow the pipeline takes no secret."""
    assert not [where for where, step in steps() if len(step.get("run", "").strip().splitlines()) > 1]
    assert not [where for where, step in steps() if "${{" in step.get("run", "")]
    assert "secrets" not in load(ROOT / MEASURE)["on"]["workflow_call"]


def test_no_event_gives_a_fork_our_token_or_skips_the_required_job() -> None:
    """pull_request_target runs nowhere; workflow_run only where nothing that a fork sent is run. A label
    starts nothing: its run would skip the required job for most, and GitHub counts that as passed."""
    event = load(ROOT / CALLER)["on"]["pull_request"]
    assert event["types"] == ["opened", "synchronize", "reopened", "edited"]
    for path in WORKFLOWS:
        events = set(load(path)["on"])
        assert "pull_request_target" not in events
        assert ("workflow_run" in events) == (path.name == "comment.yml"), path.name


def test_the_comment_runs_nothing_of_the_head() -> None:
    """Its checkout is the default branch's, its steps are known, and no artefact or cache is unpacked."""
    (job,) = load(ROOT / ".github/workflows/comment.yml")["jobs"].values()
    read = dict.fromkeys(("actions", "contents", "issues"), "read")
    assert job["permissions"] == {**read, "pull-requests": "write", "checks": "write"}
    assert job["if"] == "github.event.workflow_run.event == 'pull_request'"
    used = [step["uses"].partition("@")[0] for step in job["steps"] if "uses" in step]
    assert used == ["actions/checkout", "./.github/actions/setup"]
    (checkout,) = [step["with"] for step in job["steps"] if "checkout" in step.get("uses", "")]
    branches = {"fetch-depth": 0}  # the limits of the merge base are those of a branch of ours
    where = {"ref": "${{ github.event.repository.default_branch }}", "persist-credentials": False}
    assert checkout == {**where, **branches}
    (command,) = [step["run"] for step in job["steps"] if "run" in step]
    assert command == '.venv/bin/hil ci comment --run "$RUN_ID" --head "$HEAD_SHA"'
    assert "head_ref" not in (ROOT / ".github/workflows/comment.yml").read_text()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("project"))


@pytest.mark.slow
@pytest.mark.heavy
def test_the_steps_of_build_and_rack_by_hand(tmp_path: Path) -> None:
    """Built twice, compared, verified, measured from the bundle, collected: the commands of measure.yml.

    A container and a runner with boards are not to be had here; the virtual target stands in for a chip.
    """
    project = Project(tmp_path)
    project.branch("note", {"tests/NOTE.md": "A remark.\n"})
    project.install()
    project.shell(f".venv/bin/hil ci plan --base {project.base}", {})
    path = project.path / "out" / "ci" / "plan.json"
    plan = json.loads(path.read_text())
    rack = {"name": "rack-esp32", "job": "rack", "suite": "quick", "target": "virtual-esp32"}
    plan |= {"legs": [*plan["legs"], rack], "build": ["virtual-esp32"], "changes": ["harness"]}
    plan |= {"compare_ticks_hz": [1000]}
    path.write_text(json.dumps(plan))
    environment = {"HIL_RACK_FILE": "hil/racks/virtual.yaml", "HIL_UNDECIDED_STATUS": "0"}
    project.shell(".venv/bin/hil ci build virtual-esp32", environment)
    project.shell(".venv/bin/hil ci measure rack-esp32", environment)
    info = json.loads((project.path / "out/latest/run.json").read_text())
    assert "compared" not in info  # the same bytes, and other rules: limits judge it
    assert [board["target"] for board in info["boards"]] == ["virtual-esp32"]
    assert info["trigger"] == "local"
    project.shell(".venv/bin/hil ci collect rack-esp32", environment)
    assert (project.path / "out/ci/legs/rack-esp32" / info["run_id"] / "verdicts.json").is_file()


@pytest.mark.slow
@pytest.mark.heavy
def test_a_night_is_measured_reported_and_remembered(project: Project) -> None:
    """nightly.yml: the suite that was asked for, a line of history on the branch, the report on Pages.

    So are the boot values of the suite pr; without a reference they are raw, and the change points say so.
    """
    state = State("")
    with serve(state) as api:
        done = project.night("main", api)
    assert done.status == 0, done.log
    assert any(where.startswith("/repos/example/hil/issues?") for _, where in state.asked), state.asked
    assert state.issues == []  # one night has no event
    jobs = ("Virtual rack virtual-publish", "History and report", "Push the history", "Deploy the report")
    for job in (*jobs, "Build esp32c3", "Virtual rack night-virtual", "hil-verdict"):
        assert done.ended_well(job), job
    held = project.git("ls-tree", "-r", "--name-only", "hil-history").splitlines()
    lines = [project.git("show", f"hil-history:{name}") for name in held if name.endswith(".json")]
    (run,) = (done.artefacts / "leg-virtual-publish" / "virtual-publish").iterdir()
    assert len(lines) == 3  # and those of the suite pr and of the instruction cost
    assert sum('"cost_least_instructions"' in line for line in lines) == 1
    assert sum(run.name in line for line in lines) == 1
    assert json.loads((run / "run.json").read_text())["trigger"] == "nightly"
    assert (done.artefacts / "github-pages-1" / "index.html").is_file()
    (night,) = (done.artefacts / "leg-night-virtual" / "night-virtual").iterdir()
    assert '"boot_values"' in project.git("show", f"hil-history:lab/{night.name}.json")
    assert "raw values only" in done.log


JobRun = dict[str, bool]


def run_empty(project: Project, name: str, event: str, payload: dict, outputs: dict, fails: str) -> JobRun:  # type: ignore[type-arg]
    """Run a workflow whose jobs do nothing but say their outputs, and one fails; return which succeeded.

    What is left is the order of the jobs and their conditions, word for word, and the name of the verdict's.
    """
    workflow = copy.deepcopy(load(ROOT / ".github" / "workflows" / name))
    workflow.pop("defaults", None)  # their shell is a file of the checkout, which these jobs have not
    workflow.pop("env", None)
    workflow["on"] = event
    for job, facts in workflow["jobs"].items():
        for key in ("container", "environment", "concurrency", "strategy", "uses", "with", "timeout-minutes"):
            facts.pop(key, None)
        facts.pop("outputs", None)
        facts.update({"runs-on": "ubuntu-24.04", "steps": [{"run": f"exit {int(job == fails)}"}]})
        facts["name"] = facts["name"] if job == VERDICT_JOB else job
        if job in outputs:
            facts["outputs"] = outputs[job]
    last = VERDICT_JOB if VERDICT_JOB in workflow["jobs"] else "end"
    end = {"needs": list(workflow["jobs"]), "if": "always()", "runs-on": "ubuntu-24.04"}
    workflow["jobs"].setdefault(last, {**end, "steps": [{"run": "true"}]})
    folder = project.path / ".github" / "workflows"
    YAML().dump(workflow, folder / "empty.yml")
    done = project.act(event, "empty.yml", payload, verdict=last)
    (folder / "empty.yml").unlink()
    return {job: done.ended_well(job) for job in workflow["jobs"] if job != "end"}


PLAN = {
    "nothing": "false",
    "virtual": '[{"leg": "virtual"}]',
    "build": '["esp32", "esp32c3"]',
    "racks": '[{"leg": "rack-esp32"}]',
    "emulated": '["esp32c3"]',
    "emulators": '[{"leg": "esp-emu-esp32c6"}]',
}
PULL_REQUEST = {"pull_request": {"number": 7, "head": {"sha": "c0ffee"}}}


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.parametrize(("fails", "runs"), [("build", True), ("plan", False)])
def test_a_chip_that_does_not_build_keeps_no_other_rack_back(
    project: Project, fails: str, runs: bool
) -> None:
    """After a failed build racks and emulators run, and find a bundle or not; without a plan none runs."""
    ran = run_empty(project, "measure.yml", "pull_request", PULL_REQUEST, {"plan": PLAN}, fails)
    assert ran["hil-verdict"]
    assert ran["rack"] is ran["emulator"] is ran["patience"] is runs


@pytest.mark.slow
@pytest.mark.parametrize(("changed", "runs"), [("base", True), ("title", False)])
def test_another_base_is_measured_and_another_title_is_not(
    project: Project, changed: str, runs: bool
) -> None:
    """Then nothing of the called workflow is there, so the verdict of before stays the commit's."""
    payload = {**PULL_REQUEST, "action": "edited", "changes": {changed: {"from": "before"}}}
    assert run_empty(project, "pr.yml", "pull_request", payload, {}, "") == {"hil": runs}


@pytest.mark.slow
def test_where_nothing_is_measured_the_plan_says_the_verdict(project: Project) -> None:
    """Then no other job runs; where the plan fails, the verdict's does."""
    nothing = {**PLAN, "nothing": "true", "virtual": "[]", "build": "[]", "racks": "[]", "emulators": "[]"}
    ran = run_empty(project, "measure.yml", "pull_request", PULL_REQUEST, {"plan": nothing}, "")
    assert [job for job, well in ran.items() if well] == ["plan"]


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.parametrize("branch", ["main", "feature"])
def test_only_the_default_branch_writes_the_history(project: Project, branch: str) -> None:
    """A night by hand on another branch is reported, though it regressed, but not remembered or deployed."""
    if branch == "main":
        project.git("checkout", "--quiet", branch)
    else:
        project.branch(branch, {"tests/NOTE.md": "A remark.\n"})  # act takes the branch from the commit
    payload = {"repository": {"default_branch": "main"}}
    ran = run_empty(project, "nightly.yml", "workflow_dispatch", payload, {}, "hil")
    assert ran["report"]
    assert ran["history"] is ran["deploy"] is (branch == "main")


def test_go_tools_are_built_from_what_go_sum_pins() -> None:
    """The programs in .venv/bin are of the versions in go.mod, whatever else is installed here."""
    pinned = (ROOT / "tests/workflows/go.mod").read_text()
    for tool, module in (("act", "github.com/nektos/act"), ("actionlint", "github.com/rhysd/actionlint")):
        version = re.search(rf"{module} (v[\d.]+)", pinned)
        assert version
        built = subprocess.run(
            ["go", "version", "-m", str(BIN / tool)], capture_output=True, text=True, timeout=60, check=True,
            env={**os.environ, "PATH": f"{os.environ['PATH']}:{BIN}"},
        ).stdout  # fmt: skip
        assert f"{module}\t{version[1]}" in built
