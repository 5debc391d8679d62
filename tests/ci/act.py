# SPDX-License-Identifier: Apache-2.0
"""The workflows, run here by act: jobs as processes of this machine, actions replaced by local stand-ins."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.ci.git_process import git
from tests.lab import ROOT, make_lab

ACT = ROOT / ".venv" / "bin" / "act"
STAND_INS = ROOT / "tests" / "workflows" / "actions"
DEADLINE_S = 240.0
SHORT_PR = "{count: 100, warmup: 0, interval_us: 5000"  # the suite pr, of which each boot is compared
NIGHT_BOARDS = "--board v1 --board v4"
_USES = re.compile(r"uses: (actions/[\w-]+)@([0-9a-f]{40})")


@dataclass(frozen=True)
class WorkflowRun:
    """How a run of a workflow ended: its log, and the folder with an artefact a sub-folder."""

    status: int
    log: str
    artefacts: Path

    def ended_well(self, job: str) -> bool:
        """Whether a job ran and succeeded; its ``name`` as the workflow gives it."""
        return bool(re.search(rf"/{re.escape(job)}\s*\] 🏁  Job succeeded", self.log))

    def ran(self, job: str) -> bool:
        return f"/{job}" in self.log


class Project:
    """A repository with this checkout's files, one virtual board, and short suites."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "repository"
        _copy_checkout(self.path)
        lab_folder = folder / "lab"
        lab_folder.mkdir()
        lab = make_lab(lab_folder, 1)
        shutil.copy(lab.rack, self.path / "hil" / "racks" / "virtual.yaml")
        for path in (lab_folder / "thresholds").glob("*.yaml"):
            text = path.read_text(encoding="utf-8").replace(
                "{count: 4000, warmup: 0, interval_us: 20000", SHORT_PR
            )
            (self.path / "thresholds" / path.name).write_text(text, encoding="utf-8")
        nightly = self.path / ".github" / "workflows" / "nightly.yml"
        text = nightly.read_text(encoding="utf-8")
        assert text.count(NIGHT_BOARDS) == 1
        nightly.write_text(text.replace(NIGHT_BOARDS, "--board b1"), encoding="utf-8")
        # the container with ESP-IDF is not to be had here
        (self.path / ".github" / "hil-targets.json").write_text('{"build": [], "racks": []}')
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("remote", "add", "origin", "https://github.com/example/hil.git")
        self.base = self.commit("base")

    def git(self, *arguments: str) -> str:
        return git(self.path, *arguments)

    def commit(self, message: str) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        return self.git("rev-parse", "HEAD")

    def branch(self, name: str, files: Mapping[str, str]) -> str:
        """Commit ``files`` (path → content) on a new branch off the base; return the commit."""
        self.git("checkout", "--quiet", "-b", name, self.base)
        for path, content in files.items():
            (self.path / path).write_text(content, encoding="utf-8")
        return self.commit(name)

    def pull_request(self, head: str, *, fork: bool = False) -> WorkflowRun:
        """Run pr.yml for a pull request of ``head``."""
        repository = {"full_name": "example/hil"}
        event = {
            "pull_request": {
                "number": 7,
                "head": {"sha": head, "repo": {"full_name": "somebody/hil"} if fork else repository},
                "base": {"sha": self.base, "repo": repository},
            }
        }
        return self.act("pull_request", "pr.yml", event, verdict="hil-verdict")

    def night(self, branch: str) -> WorkflowRun:
        """Run nightly.yml by hand on a branch, with a short suite."""
        self.git("checkout", "--quiet", branch)
        event = {"inputs": {"suite": "quick"}, "repository": {"default_branch": "main"}}
        return self.act("workflow_dispatch", "nightly.yml", event, verdict="nightly-verdict")

    def install(self) -> None:
        """Put what this checkout has installed into the repository's own working tree, for steps by hand."""
        for installed in ("reports/site/node_modules", ".venv"):
            with (self.path / ".git" / "info" / "exclude").open("a") as stream:
                stream.write(f"/{installed}\n")
            (self.path / installed).symlink_to(ROOT / installed)

    def shell(self, command: str, environment: Mapping[str, str]) -> str:
        """Run a step's command as GitHub's bash would, in the working tree; return what it said."""
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.path,
            env={**_environment(self.folder), **environment},
            timeout=DEADLINE_S,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        return done.stdout

    def act(self, event: str, workflow: str, payload: Mapping[str, object], *, verdict: str) -> WorkflowRun:
        """Run a workflow up to the job ``verdict`` with a made event."""
        run = Path(self.folder, f"run-{len(list(self.folder.glob('run-*')))}")
        (run / "artefacts").mkdir(parents=True)
        (run / "event.json").write_text(json.dumps(payload))
        argv = [str(ACT), event, "--directory", str(self.path), "--job", verdict]
        argv += ["--workflows", f".github/workflows/{workflow}", "--eventpath", str(run / "event.json")]
        argv += ["--platform", "ubuntu-24.04=-self-hosted", "--no-skip-checkout", "--no-cache-server"]
        argv += ["--concurrent-jobs", "1"]  # legs of one rack, whose ports are this machine's
        argv += ["--env", f"HIL_ACT_ORIGIN=file://{self.path}", "--env", f"HIL_ACT_INSTALLED={ROOT}"]
        argv += ["--env", f"HIL_ACT_ARTIFACTS={run / 'artefacts'}", *_local_repositories(self.path)]
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


def _copy_checkout(to: Path) -> None:
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=True,
        timeout=60,
    ).stdout
    for name in filter(None, listed.decode().split("\0")):
        source = ROOT / name
        if source.is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, to / name)


def _local_repositories(repository: Path) -> list[str]:
    """Return the options that put a stand-in in the place of each pinned action; all must have one."""
    pinned = set()
    for path in (repository / ".github").rglob("*.yml"):
        pinned.update(_USES.findall(path.read_text(encoding="utf-8")))
    found = []
    for action, commit in sorted(pinned):
        stand_in = STAND_INS / action.removeprefix("actions/")
        assert stand_in.is_dir(), f"{action} has no stand-in in {STAND_INS}"
        found += ["--local-repository", f"{action}@{commit}={stand_in}"]
    return found
