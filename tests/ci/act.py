# SPDX-License-Identifier: Apache-2.0
"""The workflows, run here by act: jobs as processes of this machine, actions replaced by local stand-ins."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML

from tests.ci.elsewhere import link_environment
from tests.ci.git_process import git
from tests.ci.github_server import TOKEN
from tests.lab import ROOT, SUITES, make_lab

ACT = ROOT / ".venv" / "bin" / "act"
STAND_INS = ROOT / "tests" / "workflows" / "actions"
ESP_IDF = ROOT / "tests" / "workflows" / "esp-idf"  # a stand-in, in the place of the container
DEADLINE_S = 1500.0  # of a host whose processors ten others want too; alone a minute or two are usual
LONG_PR = "{count: 4000, warmup: 0, interval_us: 20000"
SHORT_PR = "{count: 100, warmup: 0, interval_us: 5000"  # the suite pr, of which each boot is compared
SEALED = {"cost": "suites: {sealed: [{part: [publish_qos0, publish_qos1]}]}\n"}
SEALED["footprint"] = "suites: {sealed: [{}]}\n"
GENERATOR = "reports/site/node_modules"
_SPEAKS = re.compile(
    r"^          GITHUB_TOKEN: .*\n(?=          HIL_REPORT_URL: .*\n +run: .venv/bin/hil ci sync-issues )",
    re.MULTILINE,
)
_CONTAINER = re.compile(r"^    container: espressif/idf:.*\n", re.MULTILINE)
# GitHub's since March 2026, act has no such key
_DEPLOYMENT = re.compile(r"^      deployment: false.*\n|, deployment: false", re.MULTILINE)
_USES = re.compile(r"uses: (actions/[\w-]+)@([0-9a-f]{40})")


@dataclass(frozen=True)
class WorkflowRun:
    """How a run of a workflow ended: its log, and the folder with an artefact a sub-folder."""

    status: int
    log: str
    artefacts: Path

    def ended_well(self, job: str) -> bool:
        """Whether a job ran and succeeded; its ``name`` as the workflow gives it, act counts a matrix's."""
        return bool(re.search(rf"/{re.escape(job)}(-\d+)?\s*\] 🏁  Job succeeded", self.log))

    def ran(self, job: str) -> bool:
        return bool(re.search(rf"/{re.escape(job)}[^/\]]*\] ⭐", self.log))

    def exit_codes(self, job: str) -> list[int]:
        """Return those of the steps of a job that failed; that of a composite action's step twice."""
        return [int(code) for code in re.findall(rf"/{re.escape(job)}\s*\] exit status (\d+)", self.log)]

    def said_by(self, job: str) -> str:
        """Return what the steps of a job printed, without act's own words."""
        return "".join(re.findall(rf"^\[[^]]+/{re.escape(job)}\s*\]   \| (.*\n)", self.log, re.MULTILINE))


class Project:
    """A repository with this checkout's files, one virtual board, and short suites."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "repository"
        copy_checkout(self.path)
        self.installed = link_installed(folder / "installed", self.path)
        lab_folder = folder / "lab"
        lab_folder.mkdir()
        lab = make_lab(lab_folder, 1, suites={"publish": SUITES, **SEALED})
        shutil.copy(lab.rack, self.path / "hil" / "racks" / "virtual.yaml")
        for path in (lab_folder / "thresholds").glob("*.yaml"):
            text = path.read_text(encoding="utf-8").replace(LONG_PR, SHORT_PR)
            (self.path / "thresholds" / path.name).write_text(text, encoding="utf-8")
        without_containers(self.path)
        # what is built is built for the emulated chips
        (self.path / ".github" / "hil-targets.json").write_text('{"build": [], "racks": []}')
        for_act(self.path)
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("remote", "add", "origin", "https://github.com/example/hil.git")
        self.base = self.commit("base")

    def git(self, *arguments: str) -> str:
        return git(self.path, *arguments)

    def commit(self, message: str) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        return self.git("rev-parse", "HEAD")

    def branch(self, name: str, files: Mapping[str, str], base: str = "") -> str:
        """Commit ``files`` (path → content) on a new branch off ``base``, else main; return the commit."""
        self.git("checkout", "--quiet", "-B", name, base or self.base)
        for path, content in files.items():
            (self.path / path).write_text(content, encoding="utf-8")
        return self.commit(name)

    def pull_request(
        self,
        head: str,
        *,
        base: str = "",
        fork: bool = False,
        job: str = "hil",
        variables: Mapping[str, str] | None = None,
        payload: Mapping[str, object] | None = None,
    ) -> WorkflowRun:
        """Run pr.yml for a pull request of ``head``, up to ``job`` and what that needs.

        ``variables`` are the repository's, ``payload`` is what the event has beside the pull request.
        """
        repository = {"full_name": "example/hil"}
        event = {
            "pull_request": {
                "number": 7,
                "head": {"sha": head, "repo": {"full_name": "somebody/hil"} if fork else repository},
                "base": {"sha": base or self.base, "repo": repository},
            },
            **(payload or {}),
        }
        return self.act("pull_request", "pr.yml", event, verdict=job, variables=variables)

    def night(self, branch: str, api: str) -> WorkflowRun:
        """Run nightly.yml by hand on a branch, with a short suite; GitHub is at ``api`` to its job issues."""
        self.git("checkout", "--quiet", branch)
        workflow = self.path / ".github" / "workflows" / "nightly.yml"
        text = workflow.read_text(encoding="utf-8")
        assert len(_SPEAKS.findall(text)) == 1
        # act has its own address otherwise
        at_hand = f"          GITHUB_TOKEN: {TOKEN}\n          GITHUB_API_URL: {api}\n"
        workflow.write_text(_SPEAKS.sub(at_hand, text), encoding="utf-8")
        event = {"inputs": {"suite": "quick"}, "repository": {"default_branch": "main"}}
        return self.act("workflow_dispatch", "nightly.yml", event, verdict="")

    def install(self) -> None:
        """Put what this checkout has installed into the repository's own working tree, for steps by hand."""
        for installed in (GENERATOR, ".venv"):
            with (self.path / ".git" / "info" / "exclude").open("a") as stream:
                stream.write(f"/{installed}\n")
            (self.path / installed).symlink_to(ROOT / installed)

    def shell(self, command: str, environment: Mapping[str, str]) -> str:
        """Run a step's command as GitHub's bash would, in the working tree; return what it said."""
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, cwd=self.path, timeout=DEADLINE_S, check=False,
            env={**_environment(self.folder), **environment},
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        return done.stdout

    def act(
        self,
        event: str,
        workflow: str,
        payload: Mapping[str, object],
        *,
        verdict: str,
        variables: Mapping[str, str] | None = None,
    ) -> WorkflowRun:
        """Run a workflow up to the job ``verdict``, or all of it, with a made event."""
        run = Path(self.folder, f"run-{len(list(self.folder.glob('run-*')))}")
        (run / "artefacts").mkdir(parents=True)
        (run / "event.json").write_text(json.dumps(payload))
        argv = [
            event,
            "--workflows",
            f".github/workflows/{workflow}",
            *(("--job", verdict) if verdict else ()),
        ]
        argv += ["--env", f"HIL_ACT_INSTALLED={self.installed}", *local_repositories(self.path)]
        argv += [word for name, value in (variables or {}).items() for word in ("--var", f"{name}={value}")]
        return run_act(self.path, argv, run)


def run_act(repository: Path, words: Sequence[str], run: Path) -> WorkflowRun:
    """Run act in a repository; ``run`` holds event.json, and gets artefacts and whatever else is written."""
    argv = [str(ACT), *words, "--directory", str(repository), "--eventpath", str(run / "event.json")]
    argv += ["--platform", "ubuntu-24.04=-self-hosted", "--no-skip-checkout", "--no-cache-server"]
    argv += ["--concurrent-jobs", "1"]  # legs of one rack, whose ports are this machine's
    argv += ["--env", f"HIL_ACT_ORIGIN=file://{repository}", "--env", f"HIL_ACT_STAND_INS={STAND_INS}"]
    argv += ["--env", f"IDF_PATH={ESP_IDF}", "--env", f"IDF_TOOLS_PATH={run / 'espressif'}"]
    argv += ["--env", f"HIL_ACT_ARTIFACTS={run / 'artefacts'}"]
    done = subprocess.run(
        argv,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=_environment(run),
        timeout=DEADLINE_S,
        check=False,
    )
    return WorkflowRun(done.returncode, done.stdout, run / "artefacts")


def _environment(run: Path) -> dict[str, str]:
    """Return an environment in which nothing of this process's own run or of the user's settings shows."""
    foreign = ("ACT", "GITHUB_", "HIL_", "PYTEST_", "RUNNER_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return {
        **kept,
        "HOME": str(run),
        "XDG_CACHE_HOME": str(run / "cache"),
        "PYTHONPATH": ".",  # the checked-out sources, not those that the environment was installed for
        "DO_NOT_TRACK": "1",
    }


def without_containers(repository: Path) -> None:
    """Have what ESP-IDF's container does done by this machine."""
    workflow = repository / ".github" / "workflows" / "measure.yml"
    text, count = _CONTAINER.subn("", workflow.read_text(encoding="utf-8"))
    assert count == 1
    workflow.write_text(text, encoding="utf-8")


def jobs_alone(text: str, **changed: Mapping[str, object]) -> str:
    """Return a workflow of which only these jobs are left, with other keys where some are ``changed``."""
    yaml, stream = YAML(), io.StringIO()
    workflow = yaml.load(text)
    workflow["jobs"] = {name: workflow["jobs"][name] | keys for name, keys in changed.items()}
    yaml.dump(workflow, stream)
    return stream.getvalue()


def for_act(repository: Path) -> None:
    """Take out of the workflows what act does not know."""
    for path in (repository / ".github" / "workflows").glob("*.yml"):
        path.write_text(_DEPLOYMENT.sub("", path.read_text(encoding="utf-8")), encoding="utf-8")


def copy_checkout(to: Path) -> None:
    """Copy the files that git has of this checkout, as they are now."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=True,
        timeout=60,
    ).stdout
    for name in filter(None, listed.decode().split("\0")):
        source = ROOT / name
        if source.is_file() or source.is_symlink():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            (to / name).unlink(missing_ok=True)  # a link to a folder would be followed, and copied into it
            shutil.copy(source, to / name, follow_symlinks=False)


def link_installed(to: Path, checkout: Path) -> Path:
    """Make ``to`` the folder that the stand-in for the checkout takes what is installed from; return it.

    It is what this checkout has, however old: a job that installed anew would write into it.
    """
    (to / "reports" / "site").mkdir(parents=True)
    (to / GENERATOR).symlink_to(ROOT / GENERATOR)
    link_environment(to, checkout)
    return to


def local_repositories(repository: Path) -> list[str]:
    """Return the options that put a stand-in in the place of each pinned action; all must have one."""
    pinned = set()
    for path in (repository / ".github").rglob("*.yml"):
        if path.name == "release.yml":  # what it does is tested without act: nothing here could sign
            continue
        pinned.update(_USES.findall(path.read_text(encoding="utf-8")))
    found = []
    for action, commit in sorted(pinned):
        stand_in = STAND_INS / action.removeprefix("actions/")
        assert stand_in.is_dir(), f"{action} has no stand-in in {STAND_INS}"
        found += ["--local-repository", f"{action}@{commit}={stand_in}"]
    return found
