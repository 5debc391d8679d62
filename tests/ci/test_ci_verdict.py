# SPDX-License-Identifier: Apache-2.0
"""`hil ci collect` and `hil ci verdict`: every leg has a verdict or a reason, or the whole fails."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, ExitCode, RigError
from hil.base.untrusted import markdown
from hil.ci import summary
from hil.ci.collecting import collect
from hil.ci.conclusion import CiVerdict, conclude
from hil.ci.event import CiEvent, Targets
from hil.ci.legs import LegResult, read_leg
from hil.ci.plan import EMULATED_JOB, CiPlan, Leg, make_plan, write_plan
from hil.model import ComparedSeries, Fault, NotRun
from hil.store import RunDirectory
from tests.ci.ci_rig import BASE, BUNDLE, HEAD, a_plan, leave_rack_run, leave_run, page_of
from tests.history import unchanged_runs
from tests.in_process import hil
from tests.lab import own_environment
from tests.make_records import RUN_ID, change_info, publish_record

WELL = {"plan": "success", "virtual": "success", "build": "success", "rack": "success"}


JOBS = json.dumps({job: {"result": result, "outputs": {}} for job, result in WELL.items()})


def say(plan: CiPlan, folder: Path, **jobs: str) -> CiVerdict:
    return conclude(plan, folder, {**WELL, **jobs})


def test_all_legs_pass(tmp_path: Path) -> None:
    """Verdicts of all legs, and the plan's reason for the one that is left out: 0. Of documentation alone
    there is no leg at all, and a pass that says so."""
    plan = a_plan(["esp32", "esp32c3"])
    legs = (dataclasses.replace(leg, skip="why" * (leg.name == "rack-esp32c3")) for leg in plan.legs)
    leave_run(tmp_path / "virtual")
    leave_rack_run(tmp_path / "rack-esp32")
    verdict = say(dataclasses.replace(plan, legs=tuple(legs)), tmp_path)
    assert (verdict.exit_code, verdict.headline) == (ExitCode.PASS, "PASS: virtual, rack-esp32")
    assert not verdict.findings
    skipped = dict.fromkeys(("virtual", "build", "rack"), "skipped")
    verdict = say(a_plan(files=["README.md"]), tmp_path / "nothing", **skipped)
    assert (verdict.exit_code, verdict.headline) == (ExitCode.PASS, "PASS: nothing had to be measured")


def leave_outcome(folder: Path, outcome: str, on_undecided: str = "neutral") -> None:
    """Leave the leg `virtual` with another outcome than it came to."""
    run = leave_run(folder / "virtual")
    with_verdict(outcome=outcome, exit_code=4, on_undecided=on_undecided)(run.path)


@pytest.mark.parametrize(
    ("outcome", "policy", "exit_code", "conclusion", "headline"),
    [
        ("undecided", "neutral", 0, "neutral", "UNDECIDED: virtual"),
        ("undecided", "fail", 4, "failure", "UNDECIDED, WHICH ITS POLICY FAILS: virtual"),
        ("incomplete", "neutral", 4, "failure", "INCOMPLETE: virtual"),
    ],
)
def test_what_is_undecided_is_what_its_policy_says(
    tmp_path: Path, outcome: str, policy: str, exit_code: int, conclusion: str, headline: str
) -> None:
    """Neutral passes the required job and is no green check; incomplete fails it, whatever the policy."""
    leave_outcome(tmp_path, outcome, policy)
    verdict = say(a_plan(), tmp_path)
    assert (verdict.exit_code, verdict.conclusion, verdict.headline) == (exit_code, conclusion, headline)
    text = summary.render(a_plan(), verdict, {})
    assert "✓" not in text
    assert ("? undecided" in text) == (outcome == "undecided")


def test_a_repository_without_a_base_is_neutral(tmp_path: Path) -> None:
    """Limits alone were judged: the headline says so, and the check is not green."""
    leave_run(tmp_path / "virtual")
    event = CiEvent("pull_request", "pr", HEAD, "", "example/hil", 7, fork=False)
    plan = make_plan(event, "", (), Targets(("esp32",), ()))
    plan = dataclasses.replace(plan, legs=tuple(leg for leg in plan.legs if leg.job != EMULATED_JOB))
    verdict = say(plan, tmp_path)
    assert (verdict.exit_code, verdict.conclusion) == (ExitCode.PASS, "neutral")
    assert verdict.headline == "PASS, BUT WITHOUT A BASE: compare"


def test_a_leg_that_left_nothing(tmp_path: Path) -> None:
    """A skipped job counts as a success on GitHub, but not here; the sentence names leg, job and result.

    The leg that compares must leave a verdict as any other. By hand a command stands in the job's place.
    """
    plan = a_plan(["esp32"], compare=True)
    leave_run(tmp_path / "virtual")
    leave_rack_run(tmp_path / "rack-esp32")
    verdict = say(plan, tmp_path, compare="skipped")
    assert (verdict.exit_code, verdict.headline) == (ExitCode.RIG, "NO VERDICT: compare")
    leave_run(tmp_path / "compare")
    assert say(plan, tmp_path, compare="success").exit_code == ExitCode.PASS
    shutil.rmtree(tmp_path / "rack-esp32")
    verdict = say(plan, tmp_path, compare="success", rack="skipped")
    assert (verdict.exit_code, verdict.headline) == (ExitCode.RIG, "NO VERDICT: rack-esp32")
    (sentence,) = [leg.sentence for leg in verdict.legs if leg.exit_code]
    assert "the leg rack-esp32" in sentence
    assert "job rack ended with 'skipped'" in sentence
    by_hand = conclude(a_plan(), tmp_path / "nothing", {}).legs[0].sentence
    assert by_hand.endswith("hil ci collect virtual.")


def test_a_regression_on_one_rack(tmp_path: Path) -> None:
    """One leg's limit broken: 1, and the headline names it, also beside a rig that broke.

    2, 1, 3, 4, 0: what the developer can mend comes before what the lab must.
    """
    leave_run(tmp_path / "virtual")
    leave_rack_run(tmp_path / "rack-esp32", [publish_record(latency_ms=60)])
    verdict = say(a_plan(["esp32"]), tmp_path, rack="failure")
    assert (verdict.exit_code, verdict.headline) == (ExitCode.FIRMWARE, "REGRESSED: rack-esp32")
    assert not verdict.findings  # the leg tells why its job failed
    shutil.rmtree(tmp_path / "virtual")
    leave_run(tmp_path / "virtual", [Fault(RUN_ID, "rig", 3, "board desk-1 is gone.")])
    assert say(a_plan(["esp32"]), tmp_path).exit_code == ExitCode.FIRMWARE


@pytest.mark.parametrize(
    ("outcome", "job", "result"),
    [
        ("pass", "build", "failure"),
        ("pass", "build", "cancelled"),
        ("pass", "virtual", "failure"),
        ("undecided", "virtual", "failure"),
    ],
)
def test_a_failed_job_that_no_leg_accounts_for(tmp_path: Path, outcome: str, job: str, result: str) -> None:
    """Although the virtual rack is content, or undecided: the whole fails, and names job and result.

    An undecided leg's job ends with 0 by HIL_UNDECIDED_STATUS: one that is red failed of something else.
    """
    if outcome == "pass":
        leave_run(tmp_path / "virtual")
    else:
        leave_outcome(tmp_path, outcome)
    verdict = say(a_plan(), tmp_path, **{job: result})
    assert verdict.exit_code == ExitCode.RIG
    (finding,) = verdict.findings
    assert f"the job {job} ended with {result!r}" in finding
    assert f"the job {job}" in verdict.headline


def test_a_leg_that_is_not_in_the_plan(tmp_path: Path) -> None:
    """A result nobody asked for points at a wrong name somewhere: no pass."""
    leave_run(tmp_path / "virtual")
    leave_run(tmp_path / "virtuall")
    verdict = say(a_plan(), tmp_path)
    assert verdict.exit_code == ExitCode.RIG
    assert "virtuall" in verdict.findings[0]


def leg_of(folder: Path, name: str = "virtual") -> LegResult:
    plan = a_plan(["esp32"])
    return read_leg(folder, plan.leg(name), plan)


RULER = {"commit": BASE, "dirty": False, "moved": ["benches"], "reason": ""}


@pytest.mark.parametrize(
    ("target", "origin", "words"),
    [
        ("virtual-esp32", BUNDLE, "virtual-1 (virtual-esp32)"),
        ("esp32c3", BUNDLE, "physical-1 (esp32c3)"),
        ("esp32", {**BUNDLE, "commit": BASE}, "commit ba5eba5eba5e"),
        ("esp32", {**BUNDLE, "dirty": True}, "built with changes"),
        ("esp32", {**BUNDLE, "ruler": RULER}, "the benches of ba5eba5eba5e"),
        ("esp32", {}, "of no bundle"),
    ],
)
def test_a_rack_must_have_measured_what_was_planned(
    tmp_path: Path, target: str, origin: dict[str, object], words: str
) -> None:
    """Other boards, a virtual one, or other firmware than the head's: whatever the run says, no verdict."""
    leave_run(tmp_path, target=target, origin=origin)
    leg = leg_of(tmp_path, "rack-esp32")
    assert leg.exit_code == ExitCode.RIG
    planned, _, measured = leg.sentence.partition(", but ")
    assert planned.endswith("esp32 at c0ffeec0ffee")
    assert words in measured


def test_each_image_of_a_rack_must_be_the_heads(tmp_path: Path) -> None:
    """An image with another tick counts as the default one does; it may be the only one."""
    run = leave_run(tmp_path, target="esp32", origin=BUNDLE)
    image = {"sha256": "f" * 64, **BUNDLE}
    change_info(run, firmware={"esp32": image, "esp32+tick100": {**image, "commit": BASE}})
    assert "of the commit ba5eba5eba5e" in leg_of(tmp_path, "rack-esp32").sentence
    change_info(run, firmware={"esp32+tick100": image})
    assert leg_of(tmp_path, "rack-esp32").exit_code == ExitCode.PASS
    change_info(run, firmware={"esp32s3": image})
    assert "of no bundle" in leg_of(tmp_path, "rack-esp32").sentence


def test_a_rigs_own_fault_is_told_as_it_is(tmp_path: Path) -> None:
    """Where nothing is said of the firmware, the rig's sentence is not hidden behind another."""
    leave_run(tmp_path, [Fault(RUN_ID, "rig", 3, "board desk-1 is gone.")], target="esp32")
    assert "desk-1 is gone" in leg_of(tmp_path, "rack-esp32").sentence


def without(name: str) -> Callable[[Path], None]:
    return lambda run_path: (run_path / name).unlink()


def with_verdict(**told: object) -> Callable[[Path], None]:
    def tell(run_path: Path) -> None:
        path = run_path / "verdicts.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **told}))

    return tell


def of_another_commit(run_path: Path) -> None:
    change_info(RunDirectory.open(run_path), git={"commit": "d" * 40, "dirty": False})


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (without("verdicts.json"), "ended before it was judged"),
        (without("run.json"), "run.json is missing"),
        (with_verdict(run_id="another"), "belongs to another run"),
        (with_verdict(exit_code=77), "77"),
        (lambda run_path: (run_path / "run.json").write_text("{"), "not JSON"),
        (lambda run_path: shutil.copytree(run_path, run_path.parent / "another"), "2 runs"),
        (shutil.rmtree, "0 runs"),
        (of_another_commit, "the commit dddddddddddd"),
    ],
)
def test_a_damaged_leg_is_no_pass(tmp_path: Path, damage: Callable[[Path], object], words: str) -> None:
    """Whatever another job left, or measured of another commit: the verdict says what is wrong with it."""
    damage(leave_run(tmp_path).path)
    leg = leg_of(tmp_path)
    assert leg.exit_code == ExitCode.RIG
    assert words in leg.sentence


def test_collecting_a_leg(tmp_path: Path) -> None:
    """The newest run goes where the artefact is made from, in place of what was collected before. What a link
    points at is not the run's, a loop is none to follow, and no pipe is waited for. Without a run the step
    fails."""
    out, legs = tmp_path / "out", tmp_path / "legs"

    def point_at(run: Path | str) -> None:
        (out / "latest").unlink(missing_ok=True)
        (out / "latest").symlink_to(run)

    with pytest.raises(RigError, match="the leg virtual left no run"):
        collect(out, "virtual", legs)
    run_path = leave_run(out).path
    point_at(RUN_ID)
    (tmp_path / "secret").write_text("a token")
    (run_path / "console").mkdir()
    (run_path / "console" / "b1.log").symlink_to(tmp_path / "secret")
    (run_path / "console" / "loop").symlink_to(run_path)
    os.mkfifo(run_path / "console" / "pipe")
    folder = collect(out, "virtual", legs)
    assert folder == legs / "virtual" / RUN_ID
    assert list((folder / "console").iterdir()) == []
    assert leg_of(folder.parent).exit_code == ExitCode.PASS
    run_path.rename(out / "newer")
    point_at("newer")
    collect(out, "virtual", legs)
    assert [path.name for path in folder.parent.iterdir()] == ["newer"]
    point_at(leave_run(tmp_path / "elsewhere").path)
    with pytest.raises(RigError, match="points outside its folder"):
        collect(out, "virtual", legs)


@pytest.mark.parametrize("name", ["", ".", "..", "../out", "/", "a/b"])
def test_a_leg_is_no_path(tmp_path: Path, name: str) -> None:
    """What is collected takes the place of a folder, so no other than a leg's can be meant."""
    leave_run(tmp_path / "out")
    (tmp_path / "out" / "latest").symlink_to(RUN_ID)
    with pytest.raises(ConfigError, match="invalid leg name"):
        collect(tmp_path / "out", name, tmp_path / "legs")
    assert (tmp_path / "out" / RUN_ID).is_dir()


def test_the_summary_says_what_was_not_run(tmp_path: Path) -> None:
    """Skipped legs with the reason, and each leg's own summary, which has its cases, but what it folds. On
    GitHub the run's artefacts, and the address of the report where it was deployed."""
    plan = a_plan()
    left_out = NotRun(RUN_ID, "virtual-1", "publish/qos=2", "no | time")
    run = leave_run(tmp_path / "virtual", [publish_record(), left_out])
    folded = "<details><summary>All</summary>\n\n| ✓ |\n\n</details>"
    run.write_summary(f"# PASS: it\n\n{folded}\n\n## Not run\n\n- 1 case: no time\n\n## Run\n\n- by: `me`\n")
    github = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "example/hil"}
    github |= {"GITHUB_RUN_ID": "5", "HIL_REPORT_URL": "https://pages.example/"}
    text = summary.render(plan, say(plan, tmp_path), github)
    assert text.startswith("# INCOMPLETE: virtual\n")
    assert "https://github.com/example/hil/actions/runs/5#artifacts" in text
    assert "- report: https://pages.example/" in text
    assert "virtual-1 (virtual)" in text
    assert "- rack: no rack" in text
    assert "### PASS: it" in text  # the leg's own summary …
    assert "<details><summary>All" not in text  # … without its long table …
    assert "## Not run\n\n- 1 case: " in text  # … and with what follows it …
    assert "by: " not in text  # … but for the machine


@pytest.mark.parametrize(
    ("path", "told"), [("firmware/components/rtos/load.c", True), ("firmware/main/app_main.c", False)]
)
def test_a_changed_ruler_is_told_beside_the_verdict(tmp_path: Path, path: str, told: bool) -> None:
    """Both sides are measured by it, so no comparison says what it does: summary and comment do."""
    plan = a_plan(files=[path])
    leave_run(tmp_path / "virtual")
    verdict = say(plan, tmp_path)
    for text in (summary.render(plan, verdict, {}), page_of(plan, verdict, tmp_path)):
        assert ("the changed ruler itself" in text) is told


def test_a_long_summary_is_cut(tmp_path: Path) -> None:
    """GitHub drops what is too long, so it is cut between lines, folded, with a pointer to the rest.

    Nothing is added to what fits.
    """
    path = tmp_path / "summary"
    path.write_text("before\n")
    row = "| ✓ | a row |\n"
    long = "# Title\n\n<details>\n\n" + row * 200_000 + "</details>\n"
    summary.append(path, long, whole="the artefact leg-x")
    text = path.read_text()
    assert summary.LIMIT_BYTES - 2 * len(row.encode()) < len(text.encode()) <= summary.LIMIT_BYTES
    assert text.startswith("before\n# Title")
    assert text.count("</details>") == 1
    assert text.endswith("the artefact leg-x.\n")
    assert "\n| ✓ | a row |\n\n</details>" in text
    assert summary.shorten("# Title\n", 100, whole="x") == "# Title\n"


def hil_ci(tmp_path: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    done = hil("ci", *arguments, env={**own_environment(), "HIL_CI": str(tmp_path), **environment})
    return done.returncode, done.stdout


def test_the_command(tmp_path: Path) -> None:
    """Exit code, text and GitHub's summary say the same, each as its reader wants it."""
    write_plan(a_plan(), tmp_path / "plan.json")
    leave_run(tmp_path / "legs" / "virtual")
    summary_path = tmp_path / "summary"
    status, said = hil_ci(tmp_path, "verdict", HIL_JOBS=JOBS, GITHUB_STEP_SUMMARY=str(summary_path))
    assert status == 0, said
    assert said.startswith("# PASS: virtual")
    assert summary_path.read_text().startswith(f"✓ **{markdown('PASS: virtual')}.** All 3 limits kept. ")


def workflow_commands(said: str) -> list[str]:
    """Return the commands that GitHub's runner finds in what a step prints.

    As its ActionCommandManager does: a carriage return ends a line; `::` may follow blanks, `##[` anything;
    after stop-commands nothing counts but the token.
    """
    found: list[str] = []
    token = ""
    for line in re.split(r"\r\n|\r|\n", said):
        command = re.match(r"\s*::([\w-]+)(?: [^:]*)?::(.*)", line)
        command = command or re.search(r"##\[([\w-]+)[^]]*\](.*)", line)
        if not command:
            continue
        if token:
            token = "" if command[1] == token else token
        elif command[1] == "stop-commands":
            token = command[2]
        else:
            found.append(command[0])
    return found


HOSTILE = "::error::one\n  ::error::two\nx ##[error]three\nx\r::add-mask::four\r\n::stop-commands::a\n::a::\n"


def test_what_a_leg_wrote_is_no_command_for_github(tmp_path: Path) -> None:
    """Each form of a workflow command in a summary: the runner obeys none of them, and again after it."""
    assert len(workflow_commands(HOSTILE)) == 4
    write_plan(a_plan(), tmp_path / "plan.json")
    leave_run(tmp_path / "legs" / "virtual").write_summary(f"# PASS: it\n\n{HOSTILE}")
    status, said = hil_ci(tmp_path, "verdict", HIL_JOBS=JOBS, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY="")
    assert status == 0, said
    assert "# PASS: virtual" in said
    assert "three" in said
    assert workflow_commands(f"{said}::notice::after\n") == ["::notice::after"]


@pytest.mark.parametrize(
    "jobs", ["", "{}", '{"plan": {"result": "success"}, "virtual": {"result": "success"}}']
)
def test_on_github_every_legs_job_must_be_known(tmp_path: Path, jobs: str) -> None:
    """Without the needs context a failed job would count as none: exit 2 and what to write where."""
    write_plan(a_plan(["esp32"], ["hil/gate/judging.py"]), tmp_path / "plan.json")
    leave_run(tmp_path / "legs" / "virtual")
    measured = dataclasses.replace(publish_record(board="physical-1"), target="esp32", kind="physical")
    leave_rack_run(tmp_path / "legs" / "rack-esp32", [measured])
    assert hil_ci(tmp_path, "verdict", HIL_JOBS=jobs, GITHUB_STEP_SUMMARY="")[0] == 0  # by hand it is a pass
    status, said = hil_ci(tmp_path, "verdict", HIL_JOBS=jobs, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY="")
    assert status == 2, said
    assert "rack" in said
    assert "HIL_JOBS: ${{ toJSON(needs) }}" in said


@pytest.mark.parametrize(
    ("planned", "jobs", "status", "words"),
    [(False, '{"plan": {"result": "failure"}}', 3, "# NO VERDICT: "), (True, "[]", 2, "needs context")],
)
def test_the_command_without_what_it_needs(
    tmp_path: Path, planned: bool, jobs: str, status: int, words: str
) -> None:
    """Where the job that plans failed: 3. What is not GitHub's needs context is not read as 'none failed'."""
    if planned:
        write_plan(a_plan(), tmp_path / "plan.json")
    code, said = hil_ci(tmp_path, "verdict", HIL_JOBS=jobs, GITHUB_STEP_SUMMARY="")
    assert code == status
    assert words in said


@pytest.mark.parametrize(
    ("standing", "word"),
    [
        (None, ", advisory"),
        ({"state": "advisory", "judgements": 48, "needed": 200}, ", advisory"),
        ({"state": "not fit", "judgements": 400, "needed": 200}, ", not fit"),
        ({"state": "qualified", "judgements": 200, "needed": 200}, ""),
    ],
)
@pytest.mark.parametrize("latency_ms", [7, 60])
def test_a_rack_that_is_not_qualified_says_so(
    tmp_path: Path, standing: dict[str, object] | None, word: str, latency_ms: int
) -> None:
    """Beside its leg, in the headline, which is the check's title, summary and comment; unknown is advisory.
    What it decides is the same, and a virtual leg says nothing of it."""
    plan = a_plan(["esp32"])
    for made in (leave_run(tmp_path / "virtual"), leave_rack_run(
        tmp_path / "rack-esp32", [publish_record(latency_ms=latency_ms)]
    )):  # fmt: skip
        known = {"standing": standing} if standing else {}
        change_info(made, compared={"role": "base", "firmware": {}}, rack="lab", **known)
    verdict = say(plan, tmp_path)
    broken = latency_ms == 60
    assert verdict.exit_code == (ExitCode.FIRMWARE if broken else ExitCode.PASS)
    shown = f"rack-esp32{f' ({word[2:]})' if word else ''}"
    assert verdict.headline == (f"REGRESSED: {shown}" if broken else f"PASS: virtual, {shown}")
    mark = f"{'✗ regressed' if broken else '✓ pass'}{word}"
    assert f"| rack-esp32 | {mark} |" in summary.render(plan, verdict, {})
    assert f"| {mark} |" in page_of(plan, verdict, tmp_path, "summary")
    shutil.rmtree(tmp_path / "rack-esp32")
    leave_rack_run(tmp_path / "rack-esp32")
    # limits alone are no judgement of a change
    assert leg_of(tmp_path / "rack-esp32", "rack-esp32").standing == ""


def night(legs: Path, items: Sequence[ComparedSeries], *, faults: Sequence[Fault] = ()) -> CiVerdict:
    """Return the verdict on a night whose only leg measured unchanged firmware."""
    leg = Leg("unchanged-esp32", "night-rack", "pr", "esp32", unchanged=True)
    plan = dataclasses.replace(a_plan(), legs=(leg,))
    firmware = {"firmware": {"esp32": {"sha256": "f" * 64, **BUNDLE}}}
    git = {"git": {"commit": HEAD, "dirty": False}}
    unchanged_runs.leave_run(legs / "unchanged-esp32", items, faults=faults, **firmware, **git)
    (legs / "unchanged-esp32" / "latest").unlink()
    return conclude(plan, legs, {"night-rack": "success"})


def test_unchanged_firmware_fails_no_night(tmp_path: Path) -> None:
    """A false block is told beside its leg, and turns nothing red; no page counts it among what changed. A
    panic and a run that measured nothing are no judgement."""
    verdict = night(tmp_path, [unchanged_runs.compared("regressed")])
    (leg,) = verdict.legs
    assert (verdict.exit_code, verdict.headline) == (ExitCode.PASS, "PASS: unchanged-esp32")
    assert (leg.outcome, verdict.conclusion) == ("judged", "success")
    assert leg.sentence.startswith("Unchanged firmware")
    page = page_of(a_plan(), verdict, tmp_path, "summary")
    assert "What changed" not in page
    assert "| `unchanged-esp32` | ✓ judged |" in page
    panic = Fault("20261121T010203Z-pr-0001", "firmware", 1, "it panicked.")
    found = night(tmp_path / "panic", [unchanged_runs.compared("regressed")], faults=[panic])
    assert found.exit_code == ExitCode.FIRMWARE
    nothing = night(tmp_path / "nothing", [unchanged_runs.compared("regressed", candidate_boots=0)])
    assert nothing.exit_code == ExitCode.UNDECIDED


@pytest.mark.parametrize("planned", [True, False])
def test_unchanged_firmware_stands_for_no_other_leg(tmp_path: Path, planned: bool) -> None:
    """A run that blocks nothing is no verdict where one is asked for, nor the other way round."""
    made = leave_rack_run(tmp_path)
    change_info(made, compared={"role": "base", "firmware": {}, "unchanged": not planned})
    plan = a_plan(["esp32"])
    leg = dataclasses.replace(plan.leg("rack-esp32"), unchanged=planned)
    found = read_leg(tmp_path, leg, plan)
    assert found.exit_code == ExitCode.RIG
    assert ("itself" in found.sentence) is planned
