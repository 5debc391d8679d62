# SPDX-License-Identifier: Apache-2.0
"""A job of a workflow, played without act: its own commands, on files as the pinned actions leave them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.lab import ROOT, own_environment
from tests.workflows.actions import layout


def steps_of(workflow: str, job: str, *, root: Path = ROOT) -> list[dict[str, Any]]:
    """Return the steps of a job as the workflow has them."""
    loaded = YAML(typ="safe").load(root / ".github" / "workflows" / workflow)
    steps: list[dict[str, Any]] = loaded["jobs"][job]["steps"]
    return steps


class Job:
    """A job's machine: a workspace, and the artefacts of its workflow run below ``folder``.

    ``values`` is what expressions come to, by their text; one that is not in it fails. ``origin`` is where
    commits come from.
    """

    def __init__(
        self,
        folder: Path,
        values: Mapping[str, str],
        *,
        artefacts: Path | None = None,
        origin: str = "",
        attempt: str = "1",
        hil: str = "",
    ) -> None:
        self.workspace, self.temp, self.hil = folder / "workspace", folder / "temp", hil
        self.artefacts = artefacts or folder / "artefacts"
        self.output = folder / "output"
        for path in (self.workspace, self.temp, self.artefacts):
            path.mkdir(parents=True, exist_ok=True)
        self.origin, self.attempt = origin, attempt
        self.values = {"runner.temp": str(self.temp), "github.run_attempt": attempt, **values}

    def play(self, steps: list[dict[str, Any]], *, shell: str = "bash -eo pipefail {0}") -> Iterator[str]:
        """Do the steps one after the other; yield what each that is a command says. Raises where one fails.

        What would be installed is the script ``hil``.
        """
        for step in steps:
            given = {key: self._filled(str(value)) for key, value in step.get("with", {}).items()}
            if "run" in step:
                yield self._run(step, shell)
            else:
                self._use(step["uses"].partition("@")[0], given)

    def _use(self, action: str, given: Mapping[str, str]) -> None:
        if action == "actions/checkout":
            to = self.workspace / given.get("path", ".")
            depth = given.get("fetch-depth", "1")
            layout.checkout(self.origin, given.get("ref", self.values.get("github.sha", "")), to, depth=depth)
        elif action == "actions/download-artifact":
            names = {key: given.get(key, "") for key in ("name", "pattern")}
            merge = given.get("merge-multiple") == "true"
            layout.download(self.artefacts, self.workspace / given["path"], merge=merge, **names)
        elif action == "actions/upload-artifact":
            missing = given.get("if-no-files-found", "warn")
            hidden = given.get("include-hidden-files") == "true"
            layout.upload(
                self.artefacts, given["name"], given["path"], workspace=self.workspace, missing=missing,
                hidden=hidden, attempt=self.attempt,
            )  # fmt: skip
        else:
            assert action in ("./.github/actions/setup", "./tool/.github/actions/setup"), action
            _write(self.workspace / ".venv" / "bin" / "hil", self.hil)

    def _run(self, step: Mapping[str, Any], shell: str) -> str:
        script = self.temp / "step.sh"
        script.write_text(step["run"])
        env = {name: self._filled(str(value)) for name, value in step.get("env", {}).items()}
        github = {"RUNNER_TEMP": str(self.temp), "GITHUB_OUTPUT": str(self.output)}
        github["GITHUB_STEP_SUMMARY"] = str(self.temp / "summary.md")
        github["GITHUB_WORKSPACE"] = str(self.workspace)
        done = subprocess.run(
            shell.format(script).split(), cwd=self.workspace, env={**own_environment(), **github, **env},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=120,
        )  # fmt: skip
        if done.returncode:
            raise StepError(step["name"], done.stdout)
        return done.stdout

    def _filled(self, text: str) -> str:
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: self.values[found[1]], text)


def _write(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script)
    path.chmod(0o755)


class StepError(Exception):
    """A step that failed: its name, and what it said."""
