# SPDX-License-Identifier: Apache-2.0
"""`hil baseline accept` and `show`: an epoch is made of sound sessions, for a reason, and never by itself."""

from __future__ import annotations

import datetime
import shutil
import subprocess
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, ExitCode
from hil.cli.app import run_command
from hil.history import load
from hil.history.baseline.acceptance import Proposal, Request, accept_epoch, append_epoch, propose
from hil.history.baseline.changes import rows, unnamed
from hil.history.baseline.collect import Choice
from hil.thresholds.baselines import Epoch, load_baselines
from tests.history.baseline_history import COMMIT, P50, RACK, add_sessions, echo_thresholds, history_of
from tests.lab import write_suites

EPOCH_DAY = datetime.date(2026, 11, 6)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one commit on main, and one on a branch."""
    folder = tmp_path_factory.mktemp("repository")
    for command in (
        ["init", "-q", "-b", "main"],
        ["config", "user.name", "R. Tester"],
        ["config", "user.email", "r@example.invalid"],
        ["commit", "-q", "--allow-empty", "-m", "one"],
        ["branch", "other"],
        ["checkout", "-q", "other"],
        ["commit", "-q", "--allow-empty", "-m", "two"],
    ):
        subprocess.run(["git", "-C", str(folder), *command], check=True, timeout=20)
    return folder


def commit_of(repository: Path, name: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(repository), "rev-parse", name], check=True, capture_output=True, timeout=20
    )
    return done.stdout.decode().strip()


class Lab:
    """A folder with history, thresholds and baselines."""

    def __init__(self, folder: Path, repository: Path) -> None:
        self.folder, self.repository = folder, repository
        self.thresholds = echo_thresholds(folder)
        self.path = folder / "thresholds" / "baselines" / f"{RACK}.yaml"

    def add(self, count: int, **what: object) -> list[str]:
        main = commit_of(self.repository, "main")
        return add_sessions(self.folder / "history", count, **{"commit": main, **what})

    def propose(
        self, reason: str = "first baseline", choice: Choice | None = None, allowed: tuple[str, ...] = ()
    ) -> tuple[Request, Proposal]:
        request = Request(RACK, reason, choice or Choice(), "", frozenset(allowed), self.repository)
        history = history_of(self.folder / "history")
        proposal = propose(request, history, self.thresholds, load_baselines(self.path.parent))
        self.table = rows(proposal.changes)
        return request, proposal

    def chosen(self, *arguments: object, **options: object) -> list[str]:
        """Return which sessions would be accepted."""
        _, proposal = self.propose(*arguments, **options)
        return [session.run_id for session in proposal.sessions]

    def accept(self, reason: str) -> Epoch:
        return accept_epoch(*self.propose(reason), self.path)

    def put_in_force(self) -> None:
        """Accept all that the history holds."""
        sessions = history_of(self.folder / "history").sessions
        digests = {session.run_id: session.digest for session in sessions}
        append_epoch(self.path, Epoch(RACK, EPOCH_DAY, "R. Tester", "first", COMMIT, digests, ""))

    def refused(self, *arguments: object, **options: object) -> str:
        """Return why accept() refuses; nothing was written then."""
        before = self.path.read_bytes() if self.path.exists() else None
        with pytest.raises(ConfigError) as caught:
            accept_epoch(*self.propose(*arguments, **options), self.path)
        assert (self.path.read_bytes() if self.path.exists() else None) == before
        return str(caught.value)


@pytest.fixture
def lab(tmp_path: Path, repository: Path) -> Lab:
    return Lab(tmp_path, repository)


def test_what_is_accepted_is_what_the_gate_reads(lab: Lab) -> None:
    """Run ids, digests, commit, who and why."""
    runs = lab.add(6)
    epoch = lab.accept("first baseline")
    read = load_baselines(lab.path.parent).epoch(RACK)
    assert read is not None
    assert list(read.sessions) == runs
    assert read.sessions == {one.run_id: one.digest for one in history_of(lab.folder / "history").sessions}
    assert (read.by, read.reason) == ("R. Tester", "first baseline")
    assert read.commit == epoch.commit == commit_of(lab.repository, "main")


def test_the_next_epoch_is_of_what_came_after(lab: Lab) -> None:
    """Sessions of the epoch in force are not accepted again, and pull requests' and local runs never."""
    lab.add(5)
    lab.put_in_force()
    assert "0 sessions of baseline collections and nights beyond those of the epoch" in lab.refused("again")
    later = lab.add(5, first=10)
    lab.add(1, first=20, trigger="local")
    assert lab.chosen("a new access point") == later


def test_fewer_than_five_sessions_are_refused(lab: Lab) -> None:
    """Four do not tell how much sessions differ; the sentence says how to get more."""
    lab.add(4)
    assert "4 sessions" in (said := lab.refused())
    assert "hil baseline collect --sessions 10" in said


def test_a_baseline_needs_a_reason(lab: Lab) -> None:
    """Reviewers read it."""
    lab.add(5)
    assert "accepted for a reason" in lab.refused("  ")


def test_a_rack_without_history_names_those_with_one(lab: Lab) -> None:
    """The nearest name is offered."""
    add_sessions(lab.folder / "history", 5, rack="bench-10")
    request = Request(RACK, "why", Choice(), "", frozenset(), lab.repository)
    with pytest.raises(ConfigError, match="no session of rack 'bench-1'; did you mean 'bench-10'"):
        propose(request, load(lab.folder / "history"), lab.thresholds, load_baselines(lab.path.parent))


@pytest.mark.parametrize(
    ("name", "odd", "expected"),
    [
        ("dirty", {"dirty": True}, "measured sources that were not committed: nobody can find the sources"),
        ("firmware", {"image": "b" * 64}, "measured different firmware, esp32: a change between two builds"),
        ("branch", {"commit": COMMIT}, "does not know the commit cccccccccccc"),
        ("conditions", {"channel": 11}, "e1.channel was 6 in session 20261101T010000Z-pr-0000 and 11 in"),
    ],
)
def test_a_poor_session_is_refused_unless_somebody_allows_it(
    lab: Lab, name: str, odd: dict[str, object], expected: str
) -> None:
    """The reason and both ways out are said; --allow takes one obstacle, not another."""
    lab.add(5)
    lab.add(1, first=5, **odd)
    said = lab.refused()
    assert expected in said
    assert f"--allow {name}" in said
    assert expected in lab.refused(allowed=tuple({"dirty", "firmware", "branch", "conditions"} - {name}))
    assert len(lab.chosen(allowed=(name,))) == 6


def test_a_commit_of_a_branch_is_no_baseline(lab: Lab) -> None:
    """What the default branch does not hold may never get there."""
    other = commit_of(lab.repository, "other")
    lab.add(5, commit=other)
    assert f"the commit {other[:12]} is not in main" in lab.refused()


def test_sessions_and_days_can_be_named(lab: Lab) -> None:
    """An unknown run gets the nearest one; a day is that of the start."""
    runs = lab.add(8)
    assert f"did you mean '{runs[0]}'" in lab.refused(choice=Choice((*runs[1:6], runs[0][:-1] + "f")))
    assert lab.chosen(choice=Choice(tuple(runs[2:7]))) == runs[2:7]
    assert lab.chosen(choice=Choice(since=datetime.date(2026, 11, 3))) == runs[2:]


@pytest.mark.parametrize(("factor", "word"), [(0.8, "better"), (1.2, "worse")])
def test_a_mean_that_moved_has_to_be_named_in_the_reason(lab: Lab, factor: float, word: str) -> None:
    """A false improvement cannot slip in, nor a regression: the table shows it, the reason names it."""
    lab.add(5)
    lab.put_in_force()
    lab.add(5, first=10, level_us=7000.0 * factor)
    said = lab.refused("after the update")
    assert said.startswith(f"{P50} moved by more than is tolerated")
    assert [row[-1].endswith(f"%, {word} by more than tolerated") for row in lab.table[1:3]] == [True, True]
    _, proposal = lab.propose()
    assert unnamed(proposal.changes, f"{P50}: the new compiler") == []


def test_what_moves_within_the_tolerance_needs_no_word(lab: Lab) -> None:
    """Four per cent of ten are nobody's finding."""
    lab.add(5)
    lab.put_in_force()
    lab.add(5, first=10, level_us=7000.0 * 1.04)
    _, proposal = lab.propose("a quarter later")
    assert unnamed(proposal.changes, "a quarter later") == []
    assert all("tolerated" not in row[-1] for row in lab.table[1:])


def test_another_ruler_is_no_change(lab: Lab) -> None:
    """What was measured by other benchmark sources is not set against the old mean."""
    lab.add(5)
    lab.put_in_force()
    lab.add(5, first=10, level_us=14000.0, ruler="s" * 64)
    lab.propose("the benchmark was rewritten")
    assert lab.table[1][-1] == "measured by another ruler"


def test_a_changed_history_is_not_accepted_upon(lab: Lab) -> None:
    """Where the epoch in force is not what the history holds, that comes first."""
    runs = lab.add(5)
    lab.put_in_force()
    text = lab.path.read_text()
    digest = load_baselines(lab.path.parent).epochs[RACK][0].sessions[runs[0]]
    lab.path.write_text(text.replace(digest, "0" * 64))
    lab.add(5, first=10)
    assert f"session {runs[0]} of rack bench-1 was accepted with the digest 000000000000" in lab.refused()


def run_hil(lab: Lab, *words: str) -> int:
    paths = ["--history", str(lab.folder / "history"), "--thresholds", str(lab.folder / "thresholds")]
    return run_command(["baseline", *words, "--rack", RACK, *paths])


def test_the_commands_show_accept_and_say_what_to_commit(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is missing is said before and not after; nothing is committed."""
    write_suites(lab.folder / "thresholds", {})  # of the tool's benches nothing is asked
    echo_thresholds(lab.folder)
    lab.add(6)
    assert run_hil(lab, "show") == 0
    before = capsys.readouterr().out
    assert "Rack bench-1: no epoch was accepted." in before
    assert "Missing: an accepted epoch" in before
    assert run_hil(lab, "accept", "--reason", "first", "--by", "R. Tester", "--allow", "branch") == 0
    said = capsys.readouterr().out
    assert f"git add {lab.path}" in said
    assert "echo_latency_p50_us of echo defaults  e1" in said
    assert run_hil(lab, "show") == 0
    shown = capsys.readouterr().out
    assert "6 sessions of" in shown
    assert "Nothing is missing." in shown
    assert "Noise: " in shown
    row = next(line for line in shown.splitlines() if line.startswith(f"{P50} of echo defaults on esp32"))
    assert "e1, e2" in row
    assert "10.0%" in row
    assert "depends on how many fail" in shown


def test_show_says_what_is_missing(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """No session; too few; sessions of an epoch that the history lacks."""
    assert run_hil(lab, "show") == 0
    assert "Missing: sessions. Measure some: hil baseline collect" in capsys.readouterr().out
    lab.add(2)
    assert run_hil(lab, "show") == 0
    assert (
        "Missing: sessions of two boots or more. 2 comparisons have fewer than 5" in capsys.readouterr().out
    )
    lab.add(4, first=2)
    lab.put_in_force()
    shutil.rmtree(lab.folder / "history")
    lab.add(1)
    assert run_hil(lab, "show") == 0
    assert "5 of the epoch's 6 sessions" in capsys.readouterr().out


def test_an_option_that_is_wrong_is_said(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """A day is a day, and --allow knows its words."""
    lab.add(5)
    assert run_hil(lab, "accept", "--reason", "x", "--since", "monday") == ExitCode.CONFIG
    assert run_hil(lab, "accept", "--reason", "x", "--allow", "anything") == ExitCode.CONFIG
    assert run_hil(lab, "accept") == ExitCode.CONFIG
    assert "accepted for a reason" in capsys.readouterr().err
