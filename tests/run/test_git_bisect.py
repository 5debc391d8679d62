# SPDX-License-Identifier: Apache-2.0
"""Follow docs/operate/bisect.md word by word in a real git history; only `hil` is a stand-in."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from hil.base.errors import ExitCode
from hil.base.git import bisect_command
from tests.ci.ci_rig import Repository
from tests.lab import ROOT

CASE = "publish/qos=1,transport=tcp"
# builds each commit whose file says no "broken"; measures by the status that the file holds
HIL = """\
#!/bin/sh
set -eu
echo "$*" >> "$(dirname "$0")/calls"
if [ "$1" = build ]; then
  commit=$(git rev-parse "$5") && status=$(git show "$commit:firmware/status")
  [ "$status" != broken ] && mkdir -p "$9" && echo "$status" > "$9/status"
else
  [ "$6" = --suite ] && [ "$7" = 'publish/qos=1,transport=tcp' ] && [ "$8" = --base ] && [ -d "$9" ]
  shift 10
  exit "$(cat "$1/status")"
fi
"""


def blocks() -> list[str]:
    """Return the code blocks of the page: the script, and the commands."""
    page = (ROOT / "docs" / "operate" / "bisect.md").read_text(encoding="utf-8")
    return re.findall(r"^```sh\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)


class Checkout(Repository):
    """A history whose commits each hold the exit status that measuring them has."""

    def __init__(self, path: Path, statuses: Sequence[object]) -> None:
        super().__init__(path / "checkout")
        self.commits = [
            self.commit({"firmware/status": f"{status}\n", "n": f"{n}"}) for n, status in enumerate(statuses)
        ]
        script, self.commands = blocks()
        (self.path / "bisect.sh").write_text(script, encoding="utf-8")
        self.tools = path / "bin"
        self.tools.mkdir()
        (self.tools / "hil").write_text(HIL, encoding="utf-8")
        (self.tools / "hil").chmod(0o755)

    def follow(self, lines: str) -> subprocess.CompletedProcess[str]:
        """Run lines of the page, its capitals replaced."""
        names = {"GOOD": self.commits[0], "BAD": self.commits[-1], "CASE": CASE}
        text = re.sub(r"\b(GOOD|BAD|CASE)\b", lambda found: names[found[0]], lines)
        env = {**os.environ, "PATH": f"{self.tools}:{os.environ['PATH']}"}
        return subprocess.run(
            ["sh", "-c", text], cwd=self.path, env=env, capture_output=True, text=True, check=False
        )

    def bisect(self) -> subprocess.CompletedProcess[str]:
        """Build the good end, then bisect: the page's commands but for the check and the reset."""
        build, _check, bisect, _reset = self.commands.splitlines()
        assert self.follow(build).returncode == 0
        return self.follow(bisect)


@pytest.mark.slow
def test_the_first_bad_commit_is_found(tmp_path: Path) -> None:
    """All commands of the page in order: the bad end shows the step, git names the commit, the tree stays."""
    checkout = Checkout(tmp_path, [0, 0, 0, 0, 1, 1, 1])
    before = checkout.git("status", "--porcelain", "--branch")
    done = checkout.follow(checkout.commands)
    assert done.returncode == 0, done.stderr
    assert "1" in done.stdout.splitlines()
    assert f"{checkout.commits[4]} is the first bad" in done.stdout
    (checkout.path / "out").rename(tmp_path / "out")
    assert checkout.git("status", "--porcelain", "--branch") == before


@pytest.mark.slow
@pytest.mark.parametrize("skipped", [ExitCode.RIG, ExitCode.UNDECIDED, "broken"])
def test_a_commit_that_was_not_decided_is_skipped(tmp_path: Path, skipped: ExitCode | str) -> None:
    """A rig that failed, no decision, a build that fails: git tries another commit and finds the bad one."""
    status = skipped if isinstance(skipped, str) else int(skipped)
    checkout = Checkout(tmp_path, [0, 0, 0, status, 1, 1, 1])
    done = checkout.bisect()
    assert "skip" in checkout.git("bisect", "log")
    assert {checkout.commits[3], checkout.commits[4]} <= set(done.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize("status", [ExitCode.CONFIG, ExitCode.INTERRUPTED, ExitCode.TERMINATED])
def test_a_mistake_ends_the_bisection(tmp_path: Path, status: ExitCode) -> None:
    """A wrong option or an interruption is no answer: git stops with an error, and has marked nothing."""
    checkout = Checkout(tmp_path, [0, 0, 0, int(status), 1, 1, 1])
    done = checkout.bisect()
    assert done.returncode != 0
    assert "first bad commit" not in done.stdout
    assert "exit code 255" in done.stdout + done.stderr
    assert "skip" not in checkout.git("bisect", "log")


def test_reports_print_the_command_of_the_page() -> None:
    """What *Next* and the events print is the page's line with the commits and the case filled in."""
    good, bad = "a" * 40, "b" * 40
    line = blocks()[1].splitlines()[2].replace("GOOD", good[:12]).replace("BAD", bad[:12])
    assert bisect_command(good, bad, CASE) == line.replace("'CASE'", CASE)
