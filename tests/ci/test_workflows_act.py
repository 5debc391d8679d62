# SPDX-License-Identifier: Apache-2.0
"""pr.yml and what it calls, run by act, for each kind of pull request, and what hil-verdict makes of it.

rack.yml is run up to the board; the rest of it runs elsewhere. What act lacks (concurrency,
labels of runners, environments), by the commands against a server that behaves like GitHub's: test_racks.py.
Another repository: test_measure.py. Nights, and the order of jobs: test_workflows.py. Last, that what stands
in for GitHub's actions lays files out as the pinned versions do.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from hil.ci.comment import comment
from hil.ci.github import GitHub
from tests.ci.act import (
    DEADLINE_S,
    STAND_INS,
    Project,
    WorkflowRun,
    jobs_alone,
    link_installed,
    local_repositories,
    run_act,
)
from tests.ci.ci_rig import CALLER
from tests.ci.comment_rig import zipped
from tests.ci.elsewhere import LOCKS, commit_all
from tests.ci.github_server import HOME, RUN, TOKEN, State, serve
from tests.lab import ROOT
from tests.workflows.actions.layout import ActionError, deployed, download, upload

SITE_LOCK = "reports/site/package-lock.json"
LIMITS, RACK = "thresholds/publish.yaml", "hil/racks/virtual.yaml"
LEG, WORKFLOW = ".github/actions/leg/action.yml", ".github/workflows/measure.yml"
TARGETS = ".github/hil-targets.json"
PRODUCT = "firmware/host/idf/mqtt/messages.c"  # what is measured; the merge base has its own of it
PUBLISH = "    mqtt_lock(client);\n    int result = publish_locked(client, &message);\n"
MEASURE = '        run: exec tool/.ci/hil ci measure "$LEG"\n'
FORGE = """\
    - name: Forge the verdict
      shell: bash
      run: >-
        sed -i 's/"outcome": "regressed"/"outcome": "pass"/; s/"exit_code": 1/"exit_code": 0/'
        ci/legs/*/*/verdicts.json
"""
Edit = Callable[[str], str]


def replaced(old: str, new: str) -> Edit:
    """Return an edit of a file that must hold ``old``."""

    def edit(text: str) -> str:
        assert old in text, old
        return text.replace(old, new)

    return edit


def added(more: str) -> Edit:
    """Return an edit that adds to a file, or makes one."""
    return lambda text: text + more


def published(line: str) -> Edit:
    """Return an edit of the product: ``line`` is done before each message that is published."""
    return replaced(PUBLISH, f"    {line}\n{PUBLISH}")


SLOWER = published("vTaskDelay(pdMS_TO_TICKS(20));")
# where messages do not queue behind each other, each of 60 is a figure of its own
APART = {LIMITS: replaced("warmup: 5, interval_us: 5000", "warmup: 5, interval_us: 40000")}


@dataclass(frozen=True)
class Scenario:
    """A pull request: ``head`` is what it changes, ``base`` what its merge base has otherwise than main.

    ``exit_code`` and ``headline``, a pattern, are what `hil ci verdict` must come to; ``says`` are patterns
    for what it prints below. ``ran`` and ``not_ran`` are jobs by the names that people see.
    """

    head: Mapping[str, Edit]
    exit_code: int
    headline: str
    says: tuple[str, ...] = ()
    base: Mapping[str, Edit] = field(default_factory=dict)
    ran: tuple[str, ...] = ()
    not_ran: tuple[str, ...] = ()
    fork: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    payload: Mapping[str, object] = field(default_factory=dict)  # of the event, beside the pull request
    also: Callable[[Ended], None] | None = None


@dataclass(frozen=True)
class Ended:
    """A pull request's workflow run that has ended; ``base`` is its merge base."""

    project: Project
    head: str
    base: str
    run: WorkflowRun


def run_info(ended: Ended, leg: str) -> dict[str, Any]:
    (run,) = (ended.run.artefacts / f"leg-{leg}" / leg).iterdir()
    info: dict[str, Any] = json.loads((run / "run.json").read_text())
    return info


def both_legs_measured(ended: Ended) -> None:
    """Each measured the head, one beside the merge base, and left a report."""
    info = run_info(ended, "virtual")
    assert (info["trigger"], info["git"]["commit"], info["ci"]["head_sha"]) == ("pr", ended.head, ended.head)
    assert info["ci"]["base_sha"] == ended.base
    assert (ended.run.artefacts / "report-virtual" / "index.html").is_file()
    compared = run_info(ended, "compare")["compared"]
    commits = [image["commit"] for image in compared["firmware"].values()]
    assert (compared["role"], commits) == ("base", [ended.base])


def the_summary_names_the_limit(ended: Ended) -> None:
    """Metric, board and limit stand in the job's summary; what the comment is made of is kept."""
    summary = ended.run.log.rpartition("Summary - ")[2]
    assert "### ✗ REGRESSED" in summary
    assert re.search(r"\| publish latency p95 .*\| `b1` .*\| 25\sms \|", summary)
    kept = {path.name for path in (ended.run.artefacts / "verdict").rglob("*")}
    assert {"plan.json", "run.json", "verdicts.json", "records.jsonl"} <= kept


def the_comment_is_not_deceived(ended: Ended) -> None:
    """Code of the default branch judges the records again, and so does where hil-verdict is forged, too."""
    ended.project.git("checkout", "--quiet", "main")
    for word, check, why in (
        ("failure", "NO VERDICT: virtual, compare", "contradicts its records"),
        ("success", "No verdict could be read", "comes to exit code 3, but the job hil-verdict ended with"),
    ):
        state = State(ended.head, ended.base)
        state.files = ended.project.git("diff", "--name-only", ended.base, ended.head).split()
        listed = ended.project.git("ls-tree", "--name-only", ended.head, "thresholds/").split()
        for name in listed:
            text = ended.project.git("show", f"{ended.head}:{name}")
            state.limits[Path(name).name] = f"{text}\n".encode()
        state.add_run()
        state.set_jobs(word)
        state.add_artefact(zipped(ended.run.artefacts / "verdict"))
        state.add_pull()
        with serve(state) as api, chdir(ended.project.path):
            list(comment(GitHub(HOME, TOKEN, api), RUN))
        assert [one["output"]["title"] for one in state.checks] == [check]
        assert state.checks[0]["conclusion"] != "success"
        assert why in state.comments[7][0]["body"]


def planned_for_a_fork(ended: Ended) -> None:
    """The rack's job asks for the environment that waits for a reviewer by the event itself."""
    assert json.loads((ended.run.artefacts / "plan" / "plan.json").read_text())["fork"] is True


# A busy host may leave a figure of the virtual rack undecided, which fails nothing.
PASSED = "PASS: virtual, (?:.+, )?compare$|UNDECIDED: "
REMARK = {"tests/NOTE.md": added("A remark.\n")}  # no firmware, so that its images are as they were
SCENARIOS = {
    "re-targeted-documentation": Scenario(
        {"docs/explain/gate.md": added("Other words.\n")},
        0,
        "PASS: nothing had to be measured$",
        (r"only documentation changed \(docs/explain/gate.md\)",),
        base={PRODUCT: SLOWER},  # of which the former base knew nothing
        not_ran=("Virtual rack", "Build"),
        payload={"action": "edited", "changes": {"base": {"ref": {"from": "feature"}}}},
        also=lambda ended: planned_against(ended, ended.base),
    ),
    "passes": Scenario(
        {PRODUCT: published("if (len < -1) { return OUTBOX_FULL; }")},  # another image, no slower
        0,
        PASSED,
        (r"\| compare \| . (pass|undecided) \|",),
        ran=("Virtual rack virtual", "Virtual rack compare", "Build esp32c3", "hil-verdict"),
        also=both_legs_measured,
    ),
    "regressed": Scenario(
        {PRODUCT: SLOWER}, 1, "REGRESSED: virtual, compare$", base=APART, also=the_summary_names_the_limit
    ),
    "undecided": Scenario(
        REMARK,
        0,
        "UNDECIDED: virtual",
        (
            r"\| virtual \| \? undecided \|",
            "2 limits without a decision \\(more samples may decide them",
            "too few samples, 20 of at least 40",
        ),
        base={LIMITS: replaced("{count: 60,", "{count: 20,")},
    ),
    "base-does-not-build": Scenario(
        {PRODUCT: replaced("#error broken\n", "")},
        0,
        "LIMITS ONLY: THE BASE DOES NOT BUILD – compare|PASS, BUT WITHOUT A BASE: compare|UNDECIDED: ",
        (r"\| compare \| \? no-baseline \|",),
        base={PRODUCT: added("#error broken\n")},
    ),
    "loosened-limits": Scenario(
        {PRODUCT: SLOWER, LIMITS: lambda text: re.sub(r"(abs_max_ms: \d+)", r"\g<1>00", text)},
        1,
        "REGRESSED: virtual, compare$",
        (
            "By the definitions of the merge base: ",
            "## What this change loosens, for an owner to accept\n",
            r"publish_latency_p95_us, kind=virtual, air=lab: max 25000 → max 2\.5e\+06",
        ),
        base=APART,
    ),
    "forged-verdict": Scenario(
        {
            PRODUCT: SLOWER,
            LEG: replaced("    - name: Keep the run\n", f"{FORGE}    - name: Keep the run\n"),
            WORKFLOW: replaced(MEASURE, f"{MEASURE}        continue-on-error: true\n"),
        },
        3,
        "NO VERDICT: virtual, compare$",
        ("verdicts.json contradicts its records", r"pass \(exit 0\) → regressed \(exit 1\)"),
        base=APART,
        also=the_comment_is_not_deceived,
    ),
    "configuration-error": Scenario({RACK: added("colour: red\n")}, 2, "NOT MEASURED: CONFIGURATION – "),
    "chip-does-not-build": Scenario(
        {"firmware/costs.json": added("{")},  # which the stand-in for ESP-IDF reads
        2,
        r"NOT MEASURED: CONFIGURATION – instruction cost \(emulated\) esp32c3$",
        ("CONFIGURATION: the build failed: .*; the way out: read what stands before it in the log",),
        ran=("Virtual rack virtual",),
    ),
    "dead-rack": Scenario(
        {PRODUCT: added("/* a remark */\n")},  # a chip is planned for a change of firmware alone
        0,
        "UNDECIDED: .*rack-esp32",
        (r"\| rack-esp32 \| .* its power is off until Monday",),
        base={TARGETS: lambda _: '{"build": [], "racks": ["esp32"]}\n'},
        not_ran=("Rack",),
        variables={"HIL_RACKS_OFF": "esp32: its power is off until Monday"},
    ),
    "fork": Scenario(
        # it names a rack for itself, and the list of the merge base counts
        {TARGETS: lambda _: '{"build": [], "racks": ["esp32"]}\n', **REMARK},
        0,
        PASSED,
        ("no rack is registered for any target",),
        not_ran=("Rack",),
        fork=True,
        also=planned_for_a_fork,
    ),
}


def planned_against(ended: Ended, base: str) -> None:
    plan = json.loads((ended.run.artefacts / "plan" / "plan.json").read_text())
    assert plan["base"] == base


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("project"))


def edited(project: Project, name: str, edits: Mapping[str, Edit], base: str = "") -> str:
    """Commit edits of the files that a commit has on a branch of its own; return the commit."""
    project.git("checkout", "--quiet", "-B", name, base or project.base)
    texts = {path: project.path / path for path in edits}
    files = {path: edits[path](file.read_text() if file.exists() else "") for path, file in texts.items()}
    return project.branch(name, files, base)


@pytest.mark.slow
@pytest.mark.timeout(DEADLINE_S + 60)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.heavy] * (name != "re-targeted-documentation"))
        for name in SCENARIOS
    ],
)
def test_a_pull_request_ends_as_it_should(project: Project, name: str) -> None:
    """Exit code and first line of hil-verdict are those of the table, with its reasons below."""
    asked = SCENARIOS[name]
    base = edited(project, f"{name}-base", asked.base) if asked.base else project.base
    head = edited(project, name, asked.head, base)
    done = project.pull_request(
        head, base=base, fork=asked.fork, variables=asked.variables, payload=asked.payload
    )
    said = done.said_by("hil-verdict")
    if "nothing had to be measured" in asked.headline:  # the plan's job says it, and no other is needed
        said = f"# {done.said_by('Plan').partition('# ')[2]}"
    headline, _, below = said.partition("\n")
    assert re.match(f"# (?:{asked.headline})", headline), done.log
    assert done.exit_codes("hil-verdict") == ([asked.exit_code] if asked.exit_code else []), done.log
    assert bool(done.status) is bool(asked.exit_code), done.log
    assert [pattern for pattern in asked.says if not re.search(pattern, below)] == [], said
    assert [job for job in asked.ran if not done.ended_well(job)] == []
    assert [job for job in asked.not_ran if done.ran(job)] == []
    if asked.also:
        asked.also(Ended(project, head, base, done))


@pytest.mark.slow
@pytest.mark.timeout(DEADLINE_S + 60)
def test_what_a_change_costs_is_counted(project: Project) -> None:
    """Built, compared, fetched and counted beside the merge base: the job fails, and its leg has the figures.

    Stand-ins play ESP-IDF and QEMU; the container is not to be had here. The virtual rack stands aside.
    """
    alone = jobs_alone(project.git("show", f"{project.base}:{WORKFLOW}"), plan={}, build={})
    base = project.branch("counted-alone", {WORKFLOW: alone})
    head = project.branch("costlier", {"firmware/costs.json": '{"publish_qos0": 12790}\n'}, base)
    done = project.pull_request(head, base=base, fork=True)
    assert not done.ended_well("Build esp32c3")
    assert "+3.1 % (12,408 → 12,790 instructions) against the base" in " ".join(done.log.split()), done.log
    (run,) = (done.artefacts / "leg-build-esp32c3" / "emulated-esp32c3").iterdir()
    info, verdict = (json.loads((run / name).read_text()) for name in ("run.json", "verdicts.json"))
    assert info["trigger"] == "pr"
    assert {info["git"]["commit"], info["firmware"]["esp32c3"]["commit"]} == {head}
    compared = {item["metric"] for item in verdict["compared"] if item["outcome"] == "regressed"}
    assert (verdict["outcome"], compared) == ("regressed", {"cost_least_instructions"})
    assert not verdict["faults"]


def test_a_job_installs_nothing(tmp_path: Path) -> None:
    """What is installed here serves a job whose lock files are newer, too: it must not write into it."""
    checkout, workspace = tmp_path / "checkout", tmp_path / "workspace"
    for name in (".ci/bootstrap", SITE_LOCK, "requirements-release.lock", *LOCKS):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, checkout / name)
    with (checkout / "requirements.lock").open("a") as stream:
        stream.write("# newer\n")
    commit_all(checkout)
    workspace.mkdir()
    installed = link_installed(tmp_path / "installed", checkout)
    given = {"HIL_ACT_ORIGIN": f"file://{checkout}", "HIL_ACT_INSTALLED": str(installed)}
    given["HIL_ACT_STAND_INS"] = str(STAND_INS)
    (step,) = YAML(typ="safe").load(STAND_INS / "checkout" / "action.yml")["runs"]["steps"]
    said = ""
    for command in (step["run"], ".ci/bootstrap python", ".ci/bootstrap run"):
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, cwd=workspace, env={**os.environ, **given, "REF": "HEAD", "DEPTH": "1", "TO": "."},
            timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        said += done.stdout
    assert said == ""


class Rack:
    """A repository with a rack, and a pull request; of measure.yml the jobs `plan` and `rack` are left."""

    def __init__(self, folder: Path) -> None:
        self.project = Project(folder)
        measure = self.project.path / WORKFLOW
        rack = {"needs": ["plan"], "if": "needs.plan.outputs.racks != '[]'"}
        measure.write_text(jobs_alone(measure.read_text(), plan={}, rack=rack))
        (self.project.path / TARGETS).write_text('{"build": [], "racks": ["esp32"]}')
        self.base = self.project.commit("a rack")

    def pull_request(self, files: dict[str, str]) -> WorkflowRun:
        """Run it for a pull request that also changes ``files``."""
        head = self.project.branch("change", {"firmware/NOTE.md": "x\n", **files}, self.base)
        repository = {"full_name": "example/hil"}
        commits = {"head": head, "base": self.base}
        sides = {side: {"sha": commit, "repo": repository} for side, commit in commits.items()}
        run = self.project.folder / f"run-{head}"
        (run / "artefacts").mkdir(parents=True)
        (run / "event.json").write_text(json.dumps({"pull_request": {"number": 7, **sides}}))
        words = ["pull_request", "--job", "hil", "--workflows", CALLER]
        words += [*local_repositories(self.project.path), "--platform", "self-hosted=-self-hosted"]
        words += ["--env", f"HIL_ACT_INSTALLED={self.project.installed}"]
        return run_act(self.project.path, words, run)


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Rack:
    return Rack(tmp_path_factory.mktemp("rack"))


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.timeout(DEADLINE_S + 60)
def test_a_rack_that_is_asked_for_more_than_is_planned_refuses(rack: Rack) -> None:
    """A pull request's measure.yml asks for another suite than its plan: nothing of the head is run."""
    text = (rack.project.path / WORKFLOW).read_text()
    suite = "${{ matrix.suite }}"
    assert text.count(suite) == 1
    done = rack.pull_request({WORKFLOW: text.replace(suite, "nightly")})
    assert done.status == 1, done.log
    assert "on esp32, and not for 'nightly'" in done.log
    assert not (done.artefacts / "leg-rack-esp32").exists()


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def keep(folder: Path, name: str, paths: str, *written: str, attempt: str = "1") -> Path:
    """Write files into a workspace and upload ``paths`` of it; return where artefacts are."""
    for one in written:
        (folder / one).parent.mkdir(parents=True, exist_ok=True)
        (folder / one).write_text(attempt)
    (folder / "store").mkdir(exist_ok=True)
    upload(folder / "store", name, paths, workspace=folder, attempt=attempt)
    return folder / "store"


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        ("out/a", ["b/1", "2"]),
        ("out/a/2", ["2"]),
        ("out/a/2\nout/c", ["a/2", "c/3"]),  # below what they have in common
        ("out/a/2\nout/nothing", ["a/2"]),  # also where one is not there
        ("out/*/*", ["a/2", "a/b/1", "c/3"]),
    ],
)
def test_an_artefact_begins_where_its_paths_part(tmp_path: Path, paths: str, found: list[str]) -> None:
    """One folder's content, one file's name, what several share; nothing whose name begins with a dot."""
    store = keep(tmp_path, "x", paths, "out/a/b/1", "out/a/2", "out/c/3", "out/a/.hidden", "out/c/.git/4")
    assert files(store / "x") == sorted(found)


def test_a_single_artefact_is_unpacked_flat(tmp_path: Path) -> None:
    """By name, or as the only one that matches; several go into a folder each, unless they are merged."""
    store = keep(tmp_path, "leg-a", "a", "a/1")
    ways = ({"name": "leg-a"}, {"pattern": "leg-*"}, {"pattern": "leg-*", "merge": True})
    for number, asked in enumerate(ways):
        download(store, tmp_path / f"{number}", **asked)  # type: ignore[arg-type]
        assert files(tmp_path / f"{number}") == ["1"]
    keep(tmp_path, "leg-b", "b", "b/2")
    download(store, tmp_path / "each", pattern="leg-*")
    assert files(tmp_path / "each") == ["leg-a/1", "leg-b/2"]
    download(store, tmp_path / "merged", pattern="leg-*", merge=True)
    assert files(tmp_path / "merged") == ["1", "2"]
    download(store, tmp_path / "none", pattern="other-*")
    assert not (tmp_path / "none").exists()
    with pytest.raises(ActionError, match="other"):
        download(store, tmp_path / "none", name="other")


def test_a_job_that_is_run_again_leaves_a_second_artefact(tmp_path: Path) -> None:
    """The newest of a name is fetched, Pages refuses two, and one attempt has no name twice."""
    store = keep(tmp_path, "site", "a", "a/1")
    assert deployed(store, "site") == store / "site"
    with pytest.raises(ActionError, match="already exists"):
        keep(tmp_path, "site", "a", "a/1")
    keep(tmp_path, "site", "a", "a/1", attempt="2")
    download(store, tmp_path / "got", pattern="*")
    assert (tmp_path / "got" / "1").read_text() == "2"
    with pytest.raises(ActionError, match="Multiple artifacts"):
        deployed(store, "site")
