# SPDX-License-Identifier: Apache-2.0
"""`hil history`: nightly figures on a branch of their own, that nobody's race can lose."""

from __future__ import annotations

from pathlib import Path

import pytest

from hil.base.errors import ConfigError, RigError
from hil.history import branch as history
from tests.ci.ci_rig import Repository


@pytest.fixture
def origin(tmp_path: Path) -> Repository:
    """What the clones push to; `main` is checked out there."""
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


def append(folder: Path, line: str, name: str = "allure.jsonl") -> None:
    with (folder / name).open("a") as stream:
        stream.write(f"{line}\n")


def stored(origin: Repository, name: str = "allure.jsonl") -> list[str]:
    return origin.git("show", f"{history.BRANCH}:{name}").splitlines()


def test_night_after_night(origin: Repository, work: Repository, tmp_path: Path) -> None:
    """The first push makes the branch, without the sources in it. What was there comes back, byte for byte; a
    line more is added, and once more nothing; the work tree stays."""
    first, second = tmp_path / "first", tmp_path / "second"
    assert history.fetch(work.path, first) == []
    append(first, '{"run": "é"}')
    commit = history.push(work.path, first, "first")
    assert origin.git("rev-parse", history.BRANCH) == commit
    assert origin.git("ls-tree", "--name-only", history.BRANCH) == "allure.jsonl"
    assert history.fetch(work.path, second) == ["allure.jsonl"]
    assert (second / "allure.jsonl").read_bytes() == (first / "allure.jsonl").read_bytes()
    append(second, '{"run": 2}')
    assert history.push(work.path, second, "second")
    assert history.push(work.path, second, "again") == ""
    assert stored(origin) == ['{"run": "é"}', '{"run": 2}']
    assert work.git("status", "--porcelain") == ""


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
    """Two runs fetch the same history; the second to push keeps the first one's line and adds its own."""
    other = clone(origin, tmp_path / "other")
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for repository, folder in ((work, ours), (other, theirs)):
        history.fetch(repository.path, folder)
    append(theirs, "common")
    history.push(other.path, theirs, "common")
    history.fetch(work.path, ours)
    append(theirs, "theirs")
    history.push(other.path, theirs, "theirs")
    append(ours, "ours")
    history.push(work.path, ours, "ours")
    assert stored(origin) == ["common", "theirs", "ours"]


def test_a_report_has_one_line(origin: Repository, work: Repository, tmp_path: Path) -> None:
    """Lines of the machine itself stay where nights are fetched; of one that both know what comes counts."""
    own, night, again = ('{"runs":["own"]}', '{"runs":["night"],"url":"x"}', '{"runs":["night"]}')
    nights, mine = tmp_path / "nights", tmp_path / "mine"
    for folder, lines in ((nights, [night]), (mine, [own, night])):
        folder.mkdir()
        append(folder, "\n".join(lines))
    history.push(work.path, nights, "night")
    (nights / "allure.jsonl").write_text(f"{again}\n")
    (nights / history.FETCHED).unlink()  # as if somebody had pushed meanwhile
    history.push(work.path, nights, "judged again")
    assert stored(origin) == [again]
    for _ in range(2):
        history.fetch(work.path, mine)
        assert (mine / "allure.jsonl").read_text().splitlines() == [own, again]


def test_a_push_that_loses_the_race_is_tried_again(
    origin: Repository, work: Repository, tmp_path: Path
) -> None:
    """The branch moves between fetch and push: git refuses, the lines are joined, the next attempt lands."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    history.fetch(work.path, ours)
    append(ours, "ours")
    other = clone(origin, tmp_path / "other")
    history.fetch(other.path, theirs)
    append(theirs, "theirs")
    history.push(other.path, theirs, "prepared")
    prepared = origin.git("rev-parse", history.BRANCH)
    origin.git("update-ref", "-d", f"refs/heads/{history.BRANCH}")
    # git runs this hook with the push under way, once
    hook = work.path / ".git" / "hooks" / "pre-push"
    hook.write_text(
        f"#!/bin/sh\nrm {hook}\ngit -C {origin.path} update-ref refs/heads/{history.BRANCH} {prepared}\n"
    )
    hook.chmod(0o755)
    history.push(work.path, ours, "ours")
    assert not hook.exists()
    assert stored(origin) == ["theirs", "ours"]


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
