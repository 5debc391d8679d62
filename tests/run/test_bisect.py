# SPDX-License-Identifier: Apache-2.0
"""`hil bisect`: which commits are measured, what is kept, and what is named in the end."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, RigError
from hil.cli.bisect import conclusion, plan_lines
from hil.model import Case
from hil.run.bisect.bisect_run import (
    CannotBuildError,
    Outcome,
    ProcessRunner,
    Search,
    read_outcome,
    write_thresholds,
)
from hil.run.bisect.task import (
    Progress,
    Task,
    Trial,
    check_metric,
    commits_between,
    progress,
    read_trials,
    runs_at_most,
)
from hil.run.plan.selection import case_of
from hil.thresholds import Thresholds, load, load_all
from tests.ci.ci_rig import Repository
from tests.lab import ROOT

COMMITS = tuple(f"{n:02d}" * 20 for n in range(1, 12))
GOOD = "00" * 20
METRIC = "publish_latency_p50_us"


def a_task(commits: tuple[str, ...] = COMMITS, *, better: bool = False) -> Task:
    return Task(GOOD, commits[-1], "publish/qos=1", METRIC, ("b1",), 0.1, better, commits)


@dataclass
class FakeRig:
    """A rig that behaves: commits from ``first_new`` on have another level; some build or measure badly."""

    task: Task
    first_new: str
    unbuildable: frozenset[str] = frozenset()
    undecided: frozenset[str] = frozenset()
    breaks_at: str = ""
    measured: list[str] = field(default_factory=list)

    def build(self, commit: str) -> Path:
        if commit in self.unbuildable:
            raise CannotBuildError("no rule to make target")
        return Path(commit)

    def compare(self, base: Path, candidate: Path) -> Outcome:
        assert base.name == self.task.base
        if candidate.name == self.breaks_at:
            raise RigError("the board b1 is gone.")
        self.measured.append(candidate.name)
        if candidate.name in self.undecided:
            return Outcome("undecided", "the access point changed.", "run")
        slower = self._slow(candidate.name) and not self._slow(base.name)
        return Outcome("regressed" if slower else "pass", f"z of {candidate.name[:2]}", "run")

    def _slow(self, commit: str) -> bool:
        order = [GOOD, *self.task.commits]
        return (order.index(commit) >= order.index(self.first_new)) != self.task.better


def search(rig: FakeRig, folder: Path) -> tuple[Progress, dict[str, Trial]]:
    return Search(rig.task, folder, rig, lambda _line: None).run()


@pytest.mark.parametrize("better", [False, True])
@pytest.mark.parametrize("first_new", COMMITS)
def test_the_first_bad_commit_is_found(tmp_path: Path, first_new: str, better: bool) -> None:
    """Whichever it is, for the worse or the better, in as many runs as the plan says at most."""
    rig = FakeRig(a_task(better=better), first_new)
    state, trials = search(rig, tmp_path)
    assert state.suspects == (first_new,)
    assert len(rig.measured) == len(trials) <= runs_at_most(len(COMMITS)) == 5


def test_commits_that_do_not_build_are_left_out(tmp_path: Path) -> None:
    """The nearest to the middle that builds is measured instead; the culprit is found all the same."""
    rig = FakeRig(a_task(), COMMITS[8], unbuildable=frozenset(COMMITS[4:7]))
    state, trials = search(rig, tmp_path)
    assert state.suspects == (COMMITS[8],)
    assert trials[COMMITS[4]].answer == "unknown"
    assert "does not build: no rule" in trials[COMMITS[4]].sentence


def test_a_culprit_among_those_left_out(tmp_path: Path) -> None:
    """Where the commits around it say nothing, it is one of several, and all of them are named."""
    rig = FakeRig(a_task(), COMMITS[5], unbuildable=frozenset(COMMITS[4:7]))
    state, trials = search(rig, tmp_path)
    assert state.suspects == COMMITS[4:8]
    assert "is one of 4" in conclusion(rig.task, state, trials, tmp_path)[0]


def test_an_undecided_run_is_repeated_once(tmp_path: Path) -> None:
    """Then the commit is left out, as if it did not build."""
    rig = FakeRig(a_task(), COMMITS[8], undecided=frozenset({COMMITS[4]}))
    state, _trials = search(rig, tmp_path)
    assert state.suspects == (COMMITS[8],)
    assert rig.measured.count(COMMITS[4]) <= 2


def test_a_bad_end_without_the_step_ends_it(tmp_path: Path) -> None:
    """The bad end is measured first; where it is as fast as the good one there is nothing to find."""

    class Calm(FakeRig):
        def _slow(self, _commit: str) -> bool:
            return False

    rig = Calm(a_task(), COMMITS[0])
    state, trials = search(rig, tmp_path)
    assert (len(rig.measured), state.contradiction) == (1, "z of 11")
    assert "does not show the step" in conclusion(rig.task, state, trials, tmp_path)[0]


def test_it_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """What was measured before the rig failed is not measured again, and the same commit is found."""
    whole = FakeRig(a_task(), COMMITS[7])
    search(whole, tmp_path / "whole")
    broken = FakeRig(a_task(), COMMITS[7], breaks_at=whole.measured[2])
    with pytest.raises(RigError, match="b1 is gone"):
        search(broken, tmp_path / "broken")
    assert set(read_trials(tmp_path / "broken", broken.task)) == set(whole.measured[:2])
    mended = FakeRig(a_task(), COMMITS[7])
    state, _trials = search(mended, tmp_path / "broken")
    assert state.suspects == (COMMITS[7],)
    assert mended.measured == whole.measured[2:]


def test_a_damaged_state_is_refused(tmp_path: Path) -> None:
    """Exit 2 and how to begin again, for half a file and for another task's."""
    search(FakeRig(a_task(), COMMITS[0]), tmp_path)
    text = (tmp_path / "state.json").read_text()
    for wrong in (text[:40], text.replace('"b1"', '"b2"'), text.replace('"schema": 1', '"schema": 9')):
        (tmp_path / "state.json").write_text(wrong)
        with pytest.raises(ConfigError, match="begin again: rm -r"):
            read_trials(tmp_path, a_task())


def test_one_commit_needs_one_run() -> None:
    """The bad end alone tells; of none there is nothing to run."""
    assert (runs_at_most(0), runs_at_most(1), runs_at_most(2), runs_at_most(100)) == (0, 1, 2, 8)
    told = {COMMITS[0]: Trial(COMMITS[0], "new", "")}
    assert progress(COMMITS[:1], told) == Progress(COMMITS[:1], "")


def test_the_plan_says_what_it_takes() -> None:
    """Commits, runs, boots and minutes, at most."""
    lines = plan_lines(a_task(), 10)
    assert "worse by 10.0%" in lines[0]
    assert lines[1].startswith("11 commits in between touch the firmware: 010101010101, ")
    assert lines[2].startswith("5 runs: the bad end first, then 4 to halve them")
    assert "in all at most 50 min and 200 boots a board" in lines[3]


def test_commits_come_from_git(tmp_path: Path) -> None:
    """Only those that touch the firmware, oldest first; of a merge, the merge."""
    repository = Repository(tmp_path)
    good = repository.commit({"firmware/a.c": "1"})
    first = repository.commit({"firmware/a.c": "2"})
    repository.commit({"docs/a.md": "words"})
    repository.git("checkout", "--quiet", "-b", "side")
    inner = repository.commit({"firmware/b.c": "1"})
    repository.git("checkout", "--quiet", "main")
    repository.commit({"docs/b.md": "words"})
    repository.git("merge", "--quiet", "--no-ff", "-m", "merge", "side")
    merge = repository.git("rev-parse", "HEAD")
    assert commits_between(repository.path, good[:10], "main") == (good, (first, merge))
    assert inner not in commits_between(repository.path, good, "main")[1]
    with pytest.raises(ConfigError, match="is no ancestor"):
        commits_between(repository.path, "main", good)
    with pytest.raises(ConfigError, match="touches firmware/"):
        commits_between(repository.path, first, f"{inner}~1")
    with pytest.raises(ConfigError, match="is no commit"):
        commits_between(repository.path, "nowhere", "main")


@pytest.fixture(scope="module")
def benches() -> dict[str, Thresholds]:
    return load_all(ROOT / "thresholds")


@pytest.fixture(scope="module")
def case(benches: dict[str, Thresholds]) -> Case:
    return case_of(benches, "publish/qos=1,payload_bytes=128")


def test_a_case_need_not_be_in_a_suite(benches: dict[str, Thresholds], case: Case) -> None:
    """It is read from its id; what is wrong in it is refused with the nearest name."""
    assert (case.parameters["qos"], case.parameters["transport"]) == (1, "tcp")
    assert case_of(benches, case.case_id) == case
    assert case_of(benches, "publish/defaults") == case_of(benches, "publish")
    with pytest.raises(ConfigError, match="did you mean 'publish'"):
        case_of(benches, "publsh/qos=1")
    with pytest.raises(ConfigError, match="no parameter 'qoss'"):
        case_of(benches, "publish/qoss=1")
    with pytest.raises(ConfigError, match="no metric 'publish_latency_p51_us'; did you mean"):
        check_metric(benches["publish"], "publish_latency_p51_us", case)


def test_the_thresholds_of_a_bisection(tmp_path: Path, case: Case) -> None:
    """One suite with one case and one rule, which tells the whole step from none; they can be read."""
    folder = write_thresholds(ROOT / "thresholds", tmp_path / "thresholds", a_task(), case)
    publish = load("publish", folder)
    assert publish.suites == {"bisect": (case,)}
    (rule,) = publish.compare
    assert (rule.tolerance, rule.min_effect, publish.limits) == (0.1, 0.05, ())
    assert [(one.name, one.statistic) for one in publish.metrics_of(case.parameters)] == [(METRIC, "p50")]
    assert publish.compare_rule({"metric": METRIC, **{f"case.{k}": v for k, v in case.parameters.items()}})


HIL = '''\
"""Stands in for hil: builds what is not in `broken`, measures by the number in the bundle's name."""
import json, pathlib, sys
folder = pathlib.Path(__file__).parent
given = dict(zip(sys.argv, sys.argv[1:]))
with (folder / "calls").open("a") as stream:
    print(json.dumps(sys.argv[1:]), file=stream)
if sys.argv[1] == "build":
    if given["--at"] in (folder / "broken").read_text():
        print("hil: the firmware cannot be built here: ninja: error")
        sys.exit(2)
    pathlib.Path(given["--bundle"]).mkdir(parents=True, exist_ok=True)
    sys.exit(0)
if (folder / "gone").exists():
    print("hil: the board b1 does not answer.")
    sys.exit(3)
number = len((folder / "calls").read_text().splitlines())
run = pathlib.Path(given["--out"]) / f"run-{number:03d}"
run.mkdir(parents=True)
new = int(pathlib.Path(given["--firmware"]).name[:2]) >= 7
compared = {"case_id": "publish/qos=1,tick_hz=100", "metric": "publish_latency_p50_us",
            "outcome": "regressed" if new else "pass", "sentence": "said"}
(run / "verdicts.json").write_text(json.dumps({"compared": [compared]}))
sys.exit(int(new))
'''


@pytest.fixture
def process_runner(tmp_path: Path) -> ProcessRunner:
    (tmp_path / "hil.py").write_text(HIL)
    (tmp_path / "broken").write_text(COMMITS[7])
    return ProcessRunner(
        a_task(),
        Case("publish", {"qos": "1", "tick_hz": "100"}),
        "virtual-esp32",
        rack=tmp_path / "rack.yaml",
        thresholds=tmp_path / "thresholds",
        folder=tmp_path / "bisect",
        budget_min=1,
        wait_s=0,
        hil=(sys.executable, str(tmp_path / "hil.py")),
    )


def test_commits_are_built_and_measured_by_processes(process_runner: ProcessRunner, tmp_path: Path) -> None:
    """`hil build --at` and `hil run --base` of each; one that does not build is passed over."""
    lines: list[str] = []
    state, trials = Search(process_runner.task, process_runner.folder, process_runner, lines.append).run()
    assert state.suspects == (COMMITS[6],)
    assert "ninja: error" in trials[COMMITS[7]].sentence
    calls = [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]
    build, run = calls[0], calls[2]
    assert build[:5] == ["build", "--target", "virtual-esp32", "--at", GOOD]
    assert build[5:7] == ["--ruler-of", process_runner.task.bad]  # all of them by one ruler
    assert build[-2:] == ["--tick-hz", "100"]
    assert run[run.index("--base") + 1] == str(tmp_path / "bisect/firmware" / GOOD[:12])
    assert run[3:5] == ["--suite", "bisect"]
    assert run[-1] == "--board=b1"
    evidence = conclusion(process_runner.task, state, trials, tmp_path)
    assert evidence[0] == f"The first bad commit is {COMMITS[6]}; git show {COMMITS[6][:12]}"
    assert any(f"{COMMITS[6][:12]} new     said ({tmp_path}" in line for line in evidence)


def test_a_rig_that_fails_is_told(process_runner: ProcessRunner, tmp_path: Path) -> None:
    """What the run said last, its log, and that nothing is lost."""
    (tmp_path / "gone").touch()
    with pytest.raises(RigError, match="b1 does not answer") as caught:
        Search(process_runner.task, process_runner.folder, process_runner, lambda _line: None).run()
    assert "what was measured is kept" in str(caught.value)


def test_a_base_that_does_not_build_is_refused(process_runner: ProcessRunner, tmp_path: Path) -> None:
    """Without the good end there is nothing to compare with: exit 2."""
    (tmp_path / "broken").write_text(GOOD)
    with pytest.raises(ConfigError, match="does not build"):
        Search(process_runner.task, process_runner.folder, process_runner, lambda _line: None).run()


@pytest.mark.parametrize(
    "verdicts", ["", "{", "{}", '{"compared": []}', '{"compared": [1]}', '{"compared": {"a": 1}}']
)
def test_a_run_that_says_nothing_is_no_answer(tmp_path: Path, verdicts: str) -> None:
    """A missing or strange verdict is the rig's fault, never an answer."""
    (tmp_path / "verdicts.json").write_text(verdicts)
    with pytest.raises(RigError, match=r"verdicts\.json"):
        read_outcome(tmp_path, "publish/qos=1", METRIC)
