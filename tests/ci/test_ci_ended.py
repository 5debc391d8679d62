# SPDX-License-Identifier: Apache-2.0
"""A leg that ended early: whose fault it is, in the same words in verdict, summary, comment and check."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hil.base.errors import ConfigError, ExitCode, FirmwareError, HilError, RigError
from hil.base.untrusted import markdown
from hil.ci import summary
from hil.ci.artefact import keep, unpack
from hil.ci.collecting import collect
from hil.ci.comment import comment
from hil.ci.conclusion import conclude
from hil.ci.github import GitHub
from hil.ci.plan import write_plan
from hil.cli.app import run_command
from hil.store import ended
from tests.ci.ci_rig import HEAD, a_plan, leave_rack_run, leave_run, page_of, write_limits
from tests.ci.comment_rig import own_repository, pull_request_plan, pull_request_state, zipped
from tests.ci.github_server import HOME, RUN, TOKEN, State, serve
from tests.lab import make_lab
from tests.make_records import RUN_ID
from tests.reports.as_read import Seen
from tools.comment_page import to_html

WRONG = ConfigError("thresholds/publish.yaml:12: unknown key 'polizy'.", next_step="write policy.")
SAID = "CONFIGURATION: thresholds/publish.yaml:12: unknown key 'polizy'; the way out: write policy."
JOBS = {"plan": "success", "virtual": "failure", "build": "success", "rack": "success"}


@pytest.fixture(autouse=True)
def _by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)


def leave_end(folder: Path, error: HilError = WRONG, **changes: Any) -> None:
    """Leave in a leg's folder what a command that ended early says, at the plan's head."""
    folder.mkdir(parents=True, exist_ok=True)
    ended.leave(folder, ended.ended_by(error))
    stored = json.loads((folder / "ended.json").read_text())
    (folder / "ended.json").write_text(json.dumps({**stored, "commit": HEAD, **changes}))


def test_no_older_run_stands_for_one_that_did_not_begin(tmp_path: Path) -> None:
    """The run of before is judged and passes; what the leg left is why it has none, and nothing else.

    The logs of a run that was not judged go along: they say more than the sentence.
    """
    out, legs = tmp_path / "out", tmp_path / "legs"
    run = leave_run(out)
    (out / "latest").symlink_to(run.run_id)
    ended.leave(out, ended.ended_by(WRONG))
    assert collect(out, "virtual", legs) == legs / "virtual"
    assert [path.name for path in (legs / "virtual").iterdir()] == ["ended.json"]
    run.verdicts_path.unlink()
    collect(out, "virtual", legs)
    assert {path.name for path in (legs / "virtual").iterdir()} == {"ended.json", RUN_ID}


@pytest.mark.parametrize(
    ("error", "code", "title", "sign"),
    [
        (WRONG, 2, "NOT MEASURED: CONFIGURATION", "?"),
        (RigError("the port is taken.", next_step="ss -ltnp"), 3, "NO VERDICT: THE RIG FAILED", "?"),
        (FirmwareError("it panicked."), 1, "NOT MEASURED: THE FIRMWARE FAILED", "✗"),
        (None, 3, "NO VERDICT", "?"),
    ],
    ids=["configuration", "rig", "firmware", "killed"],
)
def test_each_owner_is_named_everywhere(
    tmp_path: Path, error: HilError | None, code: int, title: str, sign: str
) -> None:
    """Exit code, headline, table and page say whose fault it is, with sentence and way out in full."""
    leave_end(tmp_path / "virtual", error or WRONG)
    if error is None:
        ended.begin(tmp_path / "virtual", "hil run")
        stored = json.loads((tmp_path / "virtual" / "ended.json").read_text())
        (tmp_path / "virtual" / "ended.json").write_text(json.dumps({**stored, "commit": HEAD}))
    plan, headline = a_plan(), f"{title} – virtual" if ":" in title else f"{title}: virtual"
    verdict = conclude(plan, tmp_path, JOBS)
    assert (verdict.exit_code, verdict.headline, verdict.conclusion) == (code, headline, "failure")
    said = ended.read(tmp_path / "virtual" / "ended.json")
    assert said
    assert verdict.legs[0].sentence == said.words
    text = summary.render(plan, verdict, {})
    assert f"| virtual | {sign} {'not measured' if error else 'no verdict'} | – | {said.words} |" in text
    shown = page_of(plan, verdict, tmp_path)
    assert shown.startswith(f"### {sign} {markdown(headline)}\n")
    assert f"- {markdown(said.words)}\n" in shown
    assert ("rig failed" in (shown + text).lower()) == ("RIG" in headline)


def test_a_configuration_error_outranks_what_else_failed(tmp_path: Path) -> None:
    """2 before 1 and 3; the job that failed is accounted for by its leg, so nothing is told twice. Artefacts
    of an earlier attempt are still there: what was measured and judged was."""
    leave_end(tmp_path / "virtual")
    leave_end(tmp_path / "rack-esp32", RigError("the hub is gone."))
    verdict = conclude(a_plan(["esp32"]), tmp_path, {**JOBS, "rack": "failure"})
    assert (verdict.exit_code, verdict.findings) == (ExitCode.CONFIG, ())
    assert not verdict.acceptable
    leave_run(tmp_path / "judged" / "virtual")
    leave_end(tmp_path / "judged" / "virtual")
    verdict = conclude(a_plan(), tmp_path / "judged", {**JOBS, "virtual": "success"})
    assert (verdict.exit_code, verdict.headline) == (ExitCode.PASS, "PASS: virtual")
    failed = conclude(a_plan(), tmp_path / "judged", JOBS)
    assert failed.exit_code == ExitCode.RIG  # its job failed all the same


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"owner": "pass", "exit_code": 0}, "not a record"),
        ({"exit_code": 0}, "not a record"),
        ({"exit_code": 4}, "not a record"),
        ({"owner": []}, "not a record"),
        ({"x": "y"}, "not a record"),
        ({"commit": "d" * 40}, "at dddddddddddd"),
    ],
)
def test_a_forged_word_makes_nothing_green(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    """Whatever code it claims, the leg fails without an owner, and no owner of the repository accepts it.

    So does the word of another commit.
    """
    leave_end(tmp_path / "virtual", **change)
    verdict = conclude(a_plan(), tmp_path, {**JOBS, "virtual": "success"})
    assert (verdict.exit_code, verdict.conclusion) == (ExitCode.RIG, "failure")
    leg = verdict.legs[0]
    assert (leg.exit_code, leg.outcome, leg.owner) == (ExitCode.RIG, "no verdict", "")
    assert words in leg.sentence
    assert not verdict.acceptable


def test_a_hostile_word_is_text(tmp_path: Path) -> None:
    """A link, a mention, a tag or a fence in it is shown, and acts nowhere."""
    trick = "</details> <img src=x> @owner ![a](b) `c` | d\n\n# e ::error::f"
    leave_end(tmp_path / "virtual", ConfigError(trick, next_step=trick))
    plan = a_plan()
    verdict = conclude(plan, tmp_path, JOBS)
    pages = (page_of(plan, verdict, tmp_path), summary.render(plan, verdict, {}, safe=True))
    for page in pages:
        seen = Seen(to_html(page))
        assert "img" not in seen.tags
        assert "@owner" not in "".join(seen.plain)
        assert "\n# e" not in page
        assert "<img src=x>" in seen.text


def test_no_firmware_is_told_by_the_job_that_makes_it(tmp_path: Path) -> None:
    """A rack whose firmware was not built left nothing: the build is named, and the rig is not."""
    leave_run(tmp_path / "virtual")
    jobs = {**JOBS, "virtual": "success", "build": "failure", "rack": "failure"}
    verdict = conclude(a_plan(["esp32"]), tmp_path, jobs)
    assert verdict.headline == "NO VERDICT: rack-esp32"
    assert {"job build", "job rack"} == set(re.findall(r"job \w+", verdict.legs[1].sentence))
    assert f"? {markdown('NO VERDICT: rack-esp32')}" in page_of(a_plan(["esp32"]), verdict, tmp_path)


def test_a_chip_that_does_not_build_is_told_by_its_build(tmp_path: Path) -> None:
    """Each leg of the chip says what its build said, and fails with that; legs of other chips do not."""
    legs = tmp_path / "legs"
    leave_run(legs / "virtual")
    leave_end(legs / "unbuilt-esp32", ConfigError("a.c:3: error: 'x' undeclared.", next_step="correct it."))
    plan = a_plan(["esp32", "esp32c3"])
    jobs = {**JOBS, "virtual": "success", "build": "failure", "rack": "failure"}
    verdict = conclude(plan, legs, jobs)
    assert (verdict.exit_code, verdict.headline) == (2, "NOT MEASURED: CONFIGURATION – rack-esp32")
    assert ["a.c:3: error: 'x' undeclared" in leg.sentence for leg in verdict.legs] == [False, True, False]
    assert not verdict.findings
    write_plan(plan, tmp_path / "plan.json")
    assert keep(tmp_path / "plan.json", legs, tmp_path / "kept") == ()
    assert conclude(plan, tmp_path / "kept" / "legs", jobs).headline == verdict.headline


@pytest.mark.parametrize("build", ["success", "failure"])
def test_what_lies_where_a_build_failed_is_no_run(tmp_path: Path, build: str) -> None:
    """A run that passes, in the word's place, stands for no leg; a word of before counts for no build."""
    leave_run(tmp_path / "virtual")
    leave_rack_run(tmp_path / "unbuilt-esp32")
    if build == "success":
        leave_end(tmp_path / "unbuilt-esp32")
    jobs = {**JOBS, "virtual": "success", "build": build}
    verdict = conclude(a_plan(["esp32"]), tmp_path, jobs)
    assert (verdict.exit_code, verdict.headline) == (ExitCode.RIG, "NO VERDICT: rack-esp32")


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[State, Path, str]]:
    """GitHub with a pull request whose required check failed, a folder as out/ci, and the API's address."""
    monkeypatch.chdir(own_repository().path)
    state = pull_request_state()
    state.set_jobs("failure", **{f"hil / Virtual rack {leg}": "failure" for leg in ("virtual", "compare")})
    write_plan(pull_request_plan(), tmp_path / "plan.json")
    with serve(state) as api:
        yield state, tmp_path, api


def add_artefact(state: State, folder: Path, thresholds: Path) -> None:
    """Have GitHub keep what a comment is made of, packed as its action does."""
    assert keep(folder / "plan.json", folder / "legs", folder / "verdict", thresholds) == ()
    content = zipped(folder / "verdict")
    unpack(content, folder / "back")
    state.add_artefact(content)


def test_comment_and_check_say_it_too(rig: tuple[State, Path, str]) -> None:
    """The artefact carries the word: a red check, and a comment with the sentence and the way out."""
    state, folder, api = rig
    leave_end(folder / "legs" / "virtual")
    leave_end(folder / "legs" / "compare")
    add_artefact(state, folder, write_limits(folder))
    comment(GitHub(HOME, TOKEN, api), RUN)
    (body,), (check,) = [one["body"] for one in state.comments[7]], state.checks
    title = "NOT MEASURED: CONFIGURATION – virtual, compare"
    assert f"### ? {markdown(title)}\n" in body
    assert f"- {markdown(SAID)}\n" in body
    assert (check["conclusion"], check["output"]["title"]) == ("failure", title)
    assert f"    virtual: {SAID}\n" in check["output"]["summary"]


def test_limits_that_cannot_be_read_are_a_configuration_error(
    rig: tuple[State, Path, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The required check ends with 2 and a summary, also where a leg left a pass; the comment agrees."""
    state, folder, api = rig
    leave_run(folder / "legs" / "virtual")
    leave_end(folder / "legs" / "compare")
    thresholds = write_limits(folder, "schema: 1\npolizy: 1\n")
    state.limits = {"publish.yaml": (thresholds / "publish.yaml").read_bytes()}
    monkeypatch.setenv("HIL_CI", str(folder))
    assert run_command(["ci", "verdict", "--thresholds", str(thresholds)]) == ExitCode.CONFIG
    said = capsys.readouterr().out
    assert said.startswith("# NOT MEASURED: CONFIGURATION – compare\n")
    assert "- CONFIGURATION: thresholds/publish.yaml:1: " in said
    add_artefact(state, folder, thresholds)
    comment(GitHub(HOME, TOKEN, api), RUN)
    (body,), (check,) = [one["body"] for one in state.comments[7]], state.checks
    assert check["conclusion"] == "failure"
    assert f"- {markdown('CONFIGURATION: thresholds/publish.yaml:1: ')}" in body


@pytest.mark.slow
def test_the_required_check_of_a_wrong_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The real commands in a row: `hil run` of a suite that is none, collect, verdict; exit 2."""
    lab = make_lab(tmp_path, 1)
    assert lab.run("--suite", "quik").returncode == ExitCode.CONFIG
    summary_path = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary_path))
    monkeypatch.setenv("HIL_CI", str(tmp_path))
    monkeypatch.setattr("hil.cli.ci.DEFAULT_OUT", lab.out)
    assert run_command(["ci", "collect", "virtual"]) == 0
    assert summary_path.read_text().startswith("# NOT MEASURED: virtual\n\nCONFIGURATION")
    head = json.loads((lab.out / "ended.json").read_text())["commit"]
    assert len(head) == len(HEAD)
    write_plan(dataclasses.replace(a_plan(), head=head), tmp_path / "plan.json")
    capsys.readouterr()
    assert run_command(["ci", "verdict"]) == ExitCode.CONFIG
    said = capsys.readouterr().out
    assert said.startswith("# NOT MEASURED: CONFIGURATION – virtual\n")
    assert re.search(r"\| CONFIGURATION: [^|]*'quik'[^|]*; the way out: ", said)


def test_a_plan_that_fails_leaves_its_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The verdict says it with the way out, and ends with 2; the next plan takes it away."""
    folder = tmp_path / "ci"
    monkeypatch.setenv("HIL_CI", str(folder))
    monkeypatch.setenv("CI", "true")
    monkeypatch.chdir(own_repository().path)
    assert run_command(["ci", "plan", "--base", "no-such"]) == ExitCode.CONFIG
    assert run_command(["ci", "verdict"]) == ExitCode.CONFIG
    said = capsys.readouterr().out
    assert said.startswith("# NOT MEASURED: CONFIGURATION – there is no plan\n\nCONFIGURATION: ")
    assert "no-such" in said
    leave_end(folder, exit_code=0)
    assert run_command(["ci", "verdict"]) == ExitCode.RIG
    assert capsys.readouterr().out.startswith("# NO VERDICT: there is no plan\n")
    assert run_command(["ci", "plan"]) == ExitCode.PASS
    assert [path.name for path in folder.iterdir()] == ["plan.json"]


def test_the_comment_names_a_plan_that_failed(rig: tuple[State, Path, str]) -> None:
    """There is no artefact then; what is missing is told, and not guessed at."""
    state, _folder, api = rig
    state.set_jobs("failure", **{"hil / Plan": "failure", "hil / Virtual rack virtual": "skipped"})
    comment(GitHub(HOME, TOKEN, api), RUN)
    (body,) = [one["body"] for one in state.comments[7]]
    assert "### ? No verdict" in body
    assert "the job plan failed" in body
