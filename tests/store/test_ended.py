# SPDX-License-Identifier: Apache-2.0
"""ended.json: what a command that ended early leaves, and what is believed of it."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from hil.base.errors import ConfigError, ExitCode, FirmwareError, HilError, RigError, Undecided
from hil.cli.app import run_command
from hil.store import RunDirectory, ended
from tests.lab import ROOT, Lab, make_lab
from tests.make_records import run_info

SCHEMA = ROOT / "docs" / "reference" / "schema" / "ended.schema.json"


def left(out: Path) -> dict[str, Any]:
    """Return the file of a folder, which is as its schema says."""
    stored: dict[str, Any] = json.loads((out / "ended.json").read_text(encoding="utf-8"))
    Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8"))).validate(stored)
    return stored


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for results, outside of any CI."""
    for name in ("GITHUB_ACTIONS", "CI"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("error", "owner", "code", "words"),
    [
        (ConfigError("a.yaml:3: no key 'x'.", next_step="remove it."), "configuration", 2,
         "CONFIGURATION: a.yaml:3: no key 'x'; the way out: remove it."),
        (RigError("the port is taken."), "rig", 3, "RIG: the port is taken."),
        (FirmwareError("it panicked", log="a.log"), "firmware", 1, "FIRMWARE: it panicked. Log: a.log."),
        (Undecided("nothing was measured."), "unknown", 3, "nothing was measured."),
        (ValueError("odd"), "unknown", 3, "internal error, ValueError: odd."),
    ],
)  # fmt: skip
def test_an_error_is_left_with_its_owner(
    out: Path, error: Exception, owner: str, code: int, words: str
) -> None:
    """Sentence, way out, exit code and owner are data, and read again as they were; no other code is."""
    ended.leave(out, ended.ended_by(error))
    assert (left(out)["owner"], left(out)["exit_code"]) == (owner, code)
    found = ended.read(out / "ended.json")
    assert found
    assert found.words == words


@pytest.mark.parametrize(
    ("error", "lacks", "way_out"),
    [
        (MemoryError(), "memory", "ulimit -v"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "memory", "ulimit -v"),
        (ImportError("libx.so: failed to map segment from it"), "memory", "ulimit -v"),
        (OSError(errno.EMFILE, "Too many open files"), "open files", "ulimit -n"),
        (OSError(errno.ENOSPC, "No space left on device"), "no space", "free some"),
        (OSError(errno.EDQUOT, "Quota exceeded"), "no space", "free some"),
    ],
)
def test_what_the_host_lacks_is_no_defect(error: Exception, lacks: str, way_out: str) -> None:
    """It is the rig's, with the way out, wherever in our code it shows."""
    found = ended.ended_by(error)
    assert (found.owner, found.exit_code) == ("rig", 3)
    assert lacks in found.sentence
    assert way_out in found.next_step


def test_what_is_left_is_bounded_and_harmless(out: Path) -> None:
    """A sentence that quotes a stranger's file has no line end, no escape and no more than its length."""
    ended.leave(out, ended.ended_by(ConfigError(f"a\x1b[31m\n::add-mask::{'b' * 5000}")))
    sentence = left(out)["sentence"]
    assert len(sentence) == ended.MOST_CHARACTERS
    assert sentence.startswith("a ::add-mask::bbb")


def test_a_run_that_begins_takes_it_away(out: Path) -> None:
    """It stands for what is newer than the newest run; a run's folder is newer. From a command's begin on the
    folder says that it ended without a word, so no older run stands for one that is killed."""
    ended.leave(out, ended.ended_by(ConfigError("no.")))
    RunDirectory.create(out, run_info())
    assert ended.read(out / "ended.json") is None
    ended.begin(out / "new", "hil run")
    assert left(out / "new")["owner"] == "unknown"
    assert "`hil run` ended" in left(out / "new")["sentence"]


def test_by_hand_no_folder_is_made_for_it(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong path leaves no folder behind; a job of GitHub or GitLab makes it."""
    ended.leave(out / "none", ended.ended_by(ConfigError("no.")))
    assert not (out / "none").exists()
    monkeypatch.setenv("CI", "true")
    ended.leave(out / "some", ended.ended_by(ConfigError("no.")))
    assert left(out / "some")["owner"] == "configuration"


WELL = {
    "schema": 1, "owner": "rig", "exit_code": 3, "sentence": "no.", "next_step": "", "commit": "",
}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 2},
        {"owner": "pass", "exit_code": 0},
        {"exit_code": 0},
        {"exit_code": 2},
        {"exit_code": 3.0},
        {"exit_code": True, "owner": "firmware"},
        {"owner": "nobody"},
        {"sentence": ""},
        {"sentence": "\x1b[0m"},
        {"sentence": ["no"]},
        {"next_step": None},
        {"outcome": "pass"},
        {"commit": "a" * 20_000},
    ],
    ids=str,
)
def test_a_forged_file_is_none(out: Path, change: dict[str, object]) -> None:
    """A pass, a code that is not the owner's, another key or type, a file beyond its size: refused."""
    (out / "ended.json").write_text(json.dumps(WELL))
    assert ended.read(out / "ended.json") == ended.Ended("rig", 3, "no.")
    (out / "ended.json").write_text(json.dumps({**WELL, **change}))
    with pytest.raises(ConfigError, match=r"ended\.json: not a record"):
        ended.read(out / "ended.json")


def test_a_file_that_is_no_json_is_none(out: Path) -> None:
    """Whatever is in it, one sentence names the file. A link is not followed: what it points at is not the
    leg's."""
    for content in (b"", b"[]", b"\xff", b"{", b"[" * 8_000, b"null", b'{"schema": 1}'):
        (out / "ended.json").write_bytes(content)
        with pytest.raises(ConfigError, match=r"ended\.json: not a record"):
            ended.read(out / "ended.json")
    ended.leave(out, ended.ended_by(ConfigError("no.")))
    (out / "leg").mkdir()
    (out / "leg" / "ended.json").symlink_to(out / "ended.json")
    assert ended.read(out / "leg" / "ended.json") is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "--no-such"], "No such option '--no-such'"),
        (["cost", "--target", "esp32c3", "--suite", "quik", "--firmware", "/none"], ""),
        (["build", "--target", "esp32", "--tick-hz", "7"], "--tick-hz"),
    ],
)
def test_a_step_of_a_leg_leaves_its_sentence(
    out: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    """Steps before the measurement too; other commands, which are no part of a leg, leave nothing."""
    monkeypatch.setattr("hil.cli.options.DEFAULT_OUT", out)
    assert run_command(["gate", str(out / "none")]) == ExitCode.CONFIG
    assert run_command(["build", "--at", "HEAD", "--tick-hz", "7"]) == ExitCode.CONFIG  # a base is no leg's
    assert not (out / "ended.json").exists()
    code = run_command([*arguments, *(["--out", str(out)] if arguments[0] in ("run", "cost") else [])])
    assert code == left(out)["exit_code"]
    assert words in left(out)["sentence"]
    assert left(out)["commit"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damage", "arguments", "words"),
    [
        ("profil: lab", (), "rack.yaml:4: unknown key 'profil'"),
        ("", ("--base", "/none"), "--base /none: no such folder"),
    ],
)
def test_a_run_that_does_not_begin_leaves_its_sentence(
    tmp_path: Path, damage: str, arguments: tuple[str, ...], words: str
) -> None:
    """What pytest's process finds is left too, in place of the word that it was killed."""
    lab: Lab = make_lab(tmp_path, 1)
    if damage:
        lab.rack.write_text(lab.rack.read_text().replace("profile: lab", damage))
    done = lab.run(*arguments)
    assert done.returncode == ExitCode.CONFIG, done.stdout
    assert (left(lab.out)["owner"], left(lab.out)["exit_code"]) == ("configuration", 2)
    assert words in left(lab.out)["sentence"]


def test_every_error_has_an_owner_that_is_known() -> None:
    """A new kind of error is not told as nobody's by accident."""
    kinds = {kind.owner: kind.exit_code for kind in HilError.__subclasses__() if kind is not Undecided}
    assert {owner: ended.CODES.get(owner) for owner in kinds if owner != "run"} == {
        owner: code for owner, code in kinds.items() if owner != "run"
    }
