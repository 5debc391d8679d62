# SPDX-License-Identifier: Apache-2.0
"""rack-health.yml: what racks leave in the morning reaches the branch, for one rack as for several."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.ci.elsewhere import commit_all
from tests.ci.git_process import git
from tests.ci.job import Job, steps_of
from tests.lab import ROOT

pytestmark = pytest.mark.slow

# a rack's own tool: its golden check adds a line, of a run that has the rack's name
ON_A_RACK = """\
#!/bin/sh
case "$*" in *--golden*) ;; *) exit ;; esac
mkdir -p out/history out/golden
echo log >out/golden/log
echo '{"run_id": "$RACK"}' >>out/history/health.jsonl
"""
# this checkout's, which would keep a history in its own out/
HERE = f'#!/bin/sh\nexec {ROOT}/.venv/bin/hil "$@" --history out/history\n'


class Morning:
    """A run of the workflow: its artefacts, and the repository whose branch hil-history is pushed to."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.origin = folder, folder / "origin"
        self.origin.mkdir()
        (self.origin / ".gitignore").write_text("out/\n.venv/\n")
        self.commit = commit_all(self.origin)
        (folder / "artefacts").mkdir()

    def play(self, job: str, script: str, *, rack: str = "", attempt: str = "1") -> None:
        values = {
            "github.sha": self.commit,
            "matrix.target": rack,
            "vars.HIL_PUSHGATEWAY": "",
            "github.token": "t",
        }
        folder = self.folder / f"{job}{rack}{attempt}"
        machine = Job(
            folder, values, artefacts=self.folder / "artefacts", origin=f"file://{self.origin}",
            attempt=attempt, hil=script.replace("$RACK", f"{rack}-{attempt}"),
        )  # fmt: skip
        list(machine.play(steps_of("rack-health.yml", job)))

    def push(self, attempt: str = "1") -> list[str]:
        """Play the last job; return the runs whose lines the branch has."""
        self.play("history", HERE, attempt=attempt)
        lines = git(self.origin, "show", "hil-history:health.jsonl").splitlines()
        return [json.loads(line)["run_id"] for line in lines]


@pytest.mark.parametrize("racks", [["esp32"], ["esp32", "esp32c3"]], ids=["one", "two"])
def test_the_lines_of_each_rack_are_pushed(tmp_path: Path, racks: Sequence[str]) -> None:
    """A single artefact is unpacked flat, several into a folder each."""
    morning = Morning(tmp_path)
    for rack in racks:
        morning.play("rack", ON_A_RACK, rack=rack)
    assert morning.push() == [f"{rack}-1" for rack in racks]


def test_what_is_run_again_is_pushed_with_what_was_there(tmp_path: Path) -> None:
    """The push alone, of an earlier attempt's lines; then a rack anew, whose first lines stay."""
    morning = Morning(tmp_path)
    morning.play("rack", ON_A_RACK, rack="esp32")
    assert morning.push("2") == ["esp32-1"]
    morning.play("rack", ON_A_RACK, rack="esp32", attempt="3")
    assert sorted(morning.push("3")) == ["esp32-1", "esp32-3"]
