# SPDX-License-Identifier: Apache-2.0
"""The branch hil-history: a file a run, from many racks at once, beside lines; no race loses any."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, RigError
from hil.cli.app import run_command
from hil.history import branch as history
from hil.history import load
from hil.history.branch import BRANCH, FETCHED
from hil.history.files import path_of, paths_in
from tests.ci.ci_rig import Repository
from tests.history.history_files import night, scaled
from tests.history.test_history_store import cut_off, store

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def origin(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "origin")
    made.commit({"README.md": "sources\n"})
    return made


def clone(origin: Repository, path: Path) -> Repository:
    made = Repository(path)
    made.git("remote", "add", "origin", f"file://{origin.path}")
    made.git("fetch", "--quiet", "--depth=1", "origin", "main")
    made.git("checkout", "--quiet", "--detach", "FETCH_HEAD")
    return made


@pytest.fixture
def work(origin: Repository, tmp_path: Path) -> Repository:
    return clone(origin, tmp_path / "work")


def push(repository: Repository, folder: Path) -> str:
    return history.push(repository.path, folder, "a night")


def fetch(repository: Repository, folder: Path) -> list[str]:
    return history.fetch(repository.path, folder)


def names(origin: Repository) -> list[str]:
    return origin.git("ls-tree", "-r", "--name-only", BRANCH).splitlines()


def name_of(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in paths_in(folder)]


@pytest.mark.slow
def test_a_night_comes_back(origin: Repository, work: Repository, tmp_path: Path) -> None:
    """No branch yet: nothing to fetch; the first push makes it, without the sources; byte for byte back, runs
    and lines. What is added is pushed, and once more nothing; the work tree stays."""
    here, there = store(tmp_path / "here", night(0), night(0, rack="attic")), tmp_path / "there"
    append(here, '{"run": "é"}')
    assert fetch(work, there) == []
    commit = push(work, here)
    assert origin.git("rev-parse", BRANCH) == commit
    files = sorted(["allure.jsonl", *name_of(here)])
    assert names(origin) == files
    assert origin.git("rev-list", "--count", BRANCH) == "1"
    assert fetch(work, there) == files
    assert [(there / name).read_bytes() for name in files] == [(here / name).read_bytes() for name in files]
    assert load(there).sessions == load(here).sessions
    assert push(work, there) == ""
    append(there, '{"run": 2}')
    assert push(work, there)
    assert push(work, there) == ""
    assert stored(origin) == ['{"run": "é"}', '{"run": 2}']
    assert work.git("status", "--porcelain") == ""
    assert {path.name for path in there.iterdir() if path.is_file()} == {FETCHED, "allure.jsonl"}


@pytest.mark.slow
def test_nothing_is_ever_deleted(origin: Repository, work: Repository, tmp_path: Path) -> None:
    """A rack pushes what it has: others' runs, and a note that somebody put there, stay on the branch."""
    first = store(tmp_path / "first", night(0))
    push(work, first)
    origin.git("checkout", "--quiet", BRANCH)
    origin.commit({"README.md": "what this is\n"})
    origin.git("checkout", "--quiet", "main")
    second = store(tmp_path / "second", night(1, rack="attic"))
    push(work, second)
    runs = sorted([*name_of(first), *name_of(second)])
    assert names(origin) == sorted(["README.md", *runs])
    assert fetch(work, second) == name_of(second) == runs
    assert not (second / "README.md").exists()


@pytest.mark.slow
def test_two_racks_push_at_once(origin: Repository, work: Repository, tmp_path: Path) -> None:
    """Four processes with two nights each, one branch that does not exist yet: all land, none is lost."""
    folders = []
    pushers = []
    code = (
        "import sys, pathlib; from hil.history import branch as history; "
        "history.push(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), 'night')"
    )
    for number in range(4):
        rack = f"rack-{number}"
        folders.append(store(tmp_path / rack, night(0, rack=rack), night(1, rack=rack)))
        repository = clone(origin, tmp_path / f"clone-{number}")
        argv: Sequence[str] = (sys.executable, "-c", code, str(repository.path), str(folders[-1]))
        pushers.append(subprocess.Popen(argv, cwd=ROOT, env=dict(os.environ), stderr=subprocess.PIPE))
    for process in pushers:
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said.decode()
    assert names(origin) == sorted(name for folder in folders for name in name_of(folder))
    assert origin.git("rev-list", "--count", BRANCH) == "4"
    assert len(fetch(work, tmp_path / "all")) == 8
    assert len(load(tmp_path / "all").sessions) == 8


@pytest.mark.slow
def test_many_lost_races_are_no_refusal(origin: Repository, work: Repository, tmp_path: Path) -> None:
    """Seven others are faster, one after another: each time their runs and lines are kept, and ours land."""
    others = clone(origin, tmp_path / "others")
    prepared = []
    theirs = tmp_path / "theirs"
    for number in range(7):
        append(store(theirs, night(number, rack="theirs")), str(number))
        push(others, theirs)
        prepared.append(origin.git("rev-parse", BRANCH))
    origin.git("update-ref", "-d", f"refs/heads/{BRANCH}")
    (tmp_path / "queue").write_text("".join(f"{commit}\n" for commit in prepared))
    hook = work.path / ".git" / "hooks" / "pre-push"
    hook.write_text(
        f"#!/bin/sh\nnext=$(head -n 1 {tmp_path}/queue)\nsed -i 1d {tmp_path}/queue\n"
        f'[ -z "$next" ] || git -C {origin.path} update-ref refs/heads/{BRANCH} $next\n'
    )
    hook.chmod(0o755)
    ours = store(tmp_path / "ours", night(0))
    append(ours, "ours")
    push(work, ours)
    assert (tmp_path / "queue").read_text() == ""
    assert names(origin) == sorted(["allure.jsonl", *name_of(ours), *name_of(theirs)])
    assert stored(origin) == [*"0123456", "ours"]


@pytest.mark.slow
def test_a_run_never_changes_on_the_branch(origin: Repository, work: Repository, tmp_path: Path) -> None:
    """Other content of a run that is there is refused by name; a fetch takes the branch's, and says so."""
    one = night(0)
    push(work, store(tmp_path / "here", one))
    tip = origin.git("rev-parse", BRANCH)
    other = store(tmp_path / "other", scaled(one, 2), night(1))
    mine = path_of(other, one)
    with pytest.raises(ConfigError, match=rf"{mine} differs from .*hil history fetch"):
        push(work, other)
    assert origin.git("rev-parse", BRANCH) == tip
    said: list[str] = []
    history.fetch(work.path, other, say=said.append)
    (told,) = said
    assert told.startswith(f"{mine} ")
    assert mine.read_bytes() == path_of(tmp_path / "here", one).read_bytes()
    push(work, other)
    assert len(names(origin)) == 2


@pytest.mark.slow
def test_what_is_damaged_is_not_pushed(origin: Repository, work: Repository, tmp_path: Path) -> None:
    """On an append-only branch it would stay for ever."""
    folder = store(tmp_path / "here", night(0), night(1))
    cut_off(path_of(folder, night(0)))
    with pytest.raises(ConfigError, match="not JSON"):
        push(work, folder)
    assert origin.git("branch", "--list", BRANCH) == ""


@pytest.mark.slow
def test_the_commands(
    origin: Repository,
    work: Repository,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`hil history fetch|push` say where the branch is now, that nothing is new, how many files came."""
    monkeypatch.chdir(work.path)
    folder = store(tmp_path / "here", *(night(n) for n in range(6)))
    options = ["--history", str(folder)]
    assert run_command(["history", "push", *options]) == 0
    assert f"hil-history: now at {origin.git('rev-parse', BRANCH)[:12]}" in capsys.readouterr().out
    assert run_command(["history", "push", *options]) == 0
    assert "hil-history: nothing new" in capsys.readouterr().out
    shutil.rmtree(folder)
    assert run_command(["history", "fetch", *options]) == 0
    assert f"hil-history: 6 files in {folder}" in capsys.readouterr().out
    assert len(paths_in(folder)) == 6


def append(folder: Path, line: str, name: str = "allure.jsonl") -> None:
    with (folder / name).open("a") as stream:
        stream.write(f"{line}\n")


def stored(origin: Repository, name: str = "allure.jsonl") -> list[str]:
    return origin.git("show", f"{BRANCH}:{name}").splitlines()


def test_a_shortened_file_is_kept_short(origin: Repository, work: Repository, tmp_path: Path) -> None:
    """A report may drop its oldest runs; without a race nothing brings them back."""
    folder = tmp_path / "history"
    history.fetch(work.path, folder)
    append(folder, "1\n2")
    history.push(work.path, folder, "two")
    (folder / "allure.jsonl").write_text("2\n3\n")
    history.push(work.path, folder, "short")
    assert stored(origin) == ["2", "3"]


def test_somebody_was_faster(origin: Repository, work: Repository, tmp_path: Path) -> None:
    """Two runs fetch the same history; the second to push keeps the first one's line and run and adds its
    own; lines and runs of a push travel together."""
    other = clone(origin, tmp_path / "other")
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for repository, folder in ((work, ours), (other, theirs)):
        history.fetch(repository.path, folder)
    append(theirs, "common")
    history.push(other.path, theirs, "common")
    history.fetch(work.path, ours)
    append(store(theirs, night(0, rack="attic")), "theirs")
    history.push(other.path, theirs, "theirs")
    append(store(ours, night(0)), "ours")
    history.push(work.path, ours, "ours")
    assert stored(origin) == ["common", "theirs", "ours"]
    assert origin.git("rev-list", "--count", BRANCH) == "3"
    assert fetch(work, ours) == names(origin) == ["allure.jsonl", *sorted({*name_of(theirs), *name_of(ours)})]


def test_a_report_has_one_line(origin: Repository, work: Repository, tmp_path: Path) -> None:
    """Lines of the machine itself stay where nights are fetched; of one that both know what comes counts."""
    own, night, again = ('{"runs":["own"]}', '{"runs":["night"],"url":"x"}', '{"runs":["night"]}')
    nights, mine = tmp_path / "nights", tmp_path / "mine"
    for folder, lines in ((nights, [night]), (mine, [own, night])):
        folder.mkdir()
        append(folder, "\n".join(lines))
    history.push(work.path, nights, "night")
    (nights / "allure.jsonl").write_text(f"{again}\n")
    (nights / FETCHED).unlink()  # as if somebody had pushed meanwhile
    history.push(work.path, nights, "judged again")
    assert stored(origin) == [again]
    for _ in range(2):
        history.fetch(work.path, mine)
        assert (mine / "allure.jsonl").read_text().splitlines() == [own, again]


def test_a_branch_that_refuses(origin: Repository, work: Repository, tmp_path: Path) -> None:
    """No right to push: the rig's fault, with git's words and what the job needs; after a few attempts."""
    hook = origin.path / ".git" / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho 'you may not' >&2\nexit 1\n")
    hook.chmod(0o755)
    folder = tmp_path / "history"
    history.fetch(work.path, folder)
    append(folder, "1")
    with pytest.raises(RigError, match=r"(?s)refused 5 times.*you may not.*contents: write"):
        history.push(work.path, folder, "one")


def test_a_wrong_folder_or_remote_is_refused(work: Repository, tmp_path: Path) -> None:
    """Nothing to push is a wrong folder; a remote that is not there no empty history: the trend would start
    anew."""
    with pytest.raises(ConfigError, match="no history to push"):
        history.push(work.path, tmp_path / "history", "none")
    with pytest.raises(ConfigError, match="ls-remote"):
        history.fetch(work.path, tmp_path / "history", remote=str(tmp_path / "nowhere"))
