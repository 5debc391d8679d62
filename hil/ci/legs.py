# SPDX-License-Identifier: Apache-2.0
"""What a leg leaves for the verdict: a folder of its name that holds its run."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import ConfigError, ExitCode
from hil.boards.firmware.build_folder import target_of
from hil.ci.again import judge_again
from hil.ci.limits import Counting
from hil.ci.plan import NO_BASE, CiPlan, Leg
from hil.gate.words.banner import Banner, banner_of, title_without_verdict
from hil.model import Verdict
from hil.store import JudgedRun, RunDirectory, RunInfo, ended, read_run
from hil.store.directory import RUN_INFO, SUMMARY, VERDICTS
from hil.store.ended import ENDED, UNKNOWN, Ended
from hil.store.reported import REPORTED
from hil.store.run_info import ImageInfo, is_unchanged
from hil.store.verdicts import status_of

_OPEN = {"undecided": ExitCode.UNDECIDED, "no-baseline": ExitCode.PASS}
MOST_FILE_BYTES = 32 * 1024 * 1024  # of each file that is read whole; a large one comes to some MB
# verdicts that say something of the firmware, so that it matters which one was measured
ON_FIRMWARE = (ExitCode.PASS, ExitCode.FIRMWARE, ExitCode.UNDECIDED)


@dataclass(frozen=True)
class LegResult:
    """What became of a leg. ``boards`` are "v1 (virtual)"; ``reason`` is why it was not measured, else empty.
    ``shown`` is what people read in the place of its name.

    ``on_undecided`` is what the policy of its undecided benches says: ``neutral`` or ``fail``.
    ``acceptable`` says that comparisons regressed and nothing else is wrong, ``accepted`` that an owner
    takes that on purpose. ``standing`` is "advisory" or "not fit" where the rack of the leg is not qualified,
    else "": a word beside its verdict, which changes nothing of it. Where ``unchanged`` the firmware was
    compared with itself.
    ``stricter`` is the verdict by the merge base's definitions, where these fail what the head's own let
    pass; it is the leg's then. ``loosened`` says what of the merge base's rack was not measured. ``owner`` is
    whose fault it is that there is no verdict, where somebody said so.
    ``banner`` has the words of its verdict, None where there is none or it says nothing of a change.
    """

    name: str
    exit_code: ExitCode
    outcome: str
    sentence: str
    reason: str = ""
    run_id: str = ""
    boards: tuple[str, ...] = ()
    summary: str = ""
    on_undecided: str = "neutral"
    acceptable: bool = False
    accepted: bool = False
    standing: str = ""
    unchanged: bool = False
    shown: str = ""
    stricter: Verdict | None = None
    loosened: tuple[str, ...] = ()
    owner: str = ""
    banner: Banner | None = None

    @property
    def title(self) -> str:
        """The loud words of its verdict, or of what there is in the place of one."""
        if self.banner:
            return self.banner.title
        if self.outcome == "undecided":
            return "UNDECIDED"
        if self.outcome == "no-baseline":
            return "PASS, BUT WITHOUT A BASE"
        return title_without_verdict(self.exit_code, self.owner)

    @property
    def sign(self) -> str:
        """What says its tone without a colour: "✓", "?", "✗"."""
        if self.banner:
            return self.banner.sign
        wrong = self.exit_code == ExitCode.FIRMWARE
        return "✗" if wrong else "?" if self.is_open or self.exit_code else "✓"

    @property
    def mark(self) -> str:
        """Return "✓ pass", "✗ regressed", "? undecided, advisory", "– skipped"."""
        if self.reason and not self.exit_code:
            return "– skipped"
        standing = f", {self.standing}" if self.standing else ""
        if self.is_open and self.sign == "✗":
            return f"✗ {self.outcome}, accepted{standing}"
        return f"{'?' if self.is_open else self.sign} {self.outcome}{standing}"

    @property
    def said(self) -> str:
        """Its banner's sentence where it has one, else its own."""
        return self.banner.said if self.banner else self.sentence

    @property
    def is_open(self) -> bool:
        """Whether it fails nothing, and is no pass: undecided, with nothing to be compared with, accepted."""
        return self.accepted or _OPEN.get(self.outcome) == self.exit_code

    @property
    def status(self) -> ExitCode:
        """What it does to the required check, which knows no third state and passes what is neutral."""
        return ExitCode.PASS if self.is_open and self.on_undecided != "fail" else self.exit_code


def read_leg(folder: Path, leg: Leg, plan: CiPlan, counting: Counting | None = None) -> LegResult:
    """Read what ``leg`` left in ``folder``; whatever is wrong with it becomes a rig's failure.

    It is judged again from its records by the limits in ``counting``; without, its own verdict is taken.

    A run that was judged counts more than the word that a command ended early.
    """
    try:
        if why := _unreadable(folder):
            return failed(leg.name, f"what the leg {leg.name} left is not read: {why}.")
        runs = RunDirectory.list(folder)
        early = ended.read(folder / ENDED)
        if early and not any(run.verdicts_path.is_file() for run in runs):
            return _ended_early(early, leg, plan)
        if len(runs) != 1:
            return failed(leg.name, f"the leg {leg.name} left {len(runs)} runs instead of one.")
        run = read_run(runs[0].path)
        if not isinstance(run, JudgedRun):
            return failed(leg.name, f"the run {run.run_id} of the leg {leg.name} ended before it was judged.")
        if why := _not_its_run(run, leg, plan):
            return failed(leg.name, why)
        result = _of_run(run, leg)
        if counting is not None and result.exit_code in ON_FIRMWARE:
            return _as_judged_again(result, run, leg, plan, counting)
    except (ConfigError, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        # a folder from another job is input: a surprise in it is no defect of ours, and never a pass
        said = error.sentence if isinstance(error, ConfigError) else repr(error)
        return failed(leg.name, f"what the leg {leg.name} left cannot be read: {said}")
    else:
        return result


def _unreadable(folder: Path) -> str:
    """Return why the files in a leg's folder are not read, "" where they are.

    A link in it shows a file of this machine as the leg's, and no artefact holds one.
    """
    if folder.is_symlink():
        return "it is a link"
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            return f"it holds the link {path.relative_to(folder)}"
        if path.name in (RUN_INFO, VERDICTS, SUMMARY, REPORTED) and path.stat().st_size > MOST_FILE_BYTES:
            return f"its {path.name} has {path.stat().st_size:,} B, and at most {MOST_FILE_BYTES:,} are read"
    return ""


def _as_judged_again(
    result: LegResult, run: JudgedRun, leg: Leg, plan: CiPlan, counting: Counting
) -> LegResult:
    """Return the leg where its records come to the same; by the merge base's limits where these fail it."""
    again = judge_again(run, leg, plan, counting)
    if again.wrong:
        return failed(leg.name, f"the verdict of the leg {leg.name} does not count: {again.wrong}.")
    strict, result = again.stricter, dataclasses.replace(result, loosened=again.loosened)
    if leg.unchanged or (strict is None and not again.unproven):
        return result
    if strict is None:
        return _unproven(result, again.unproven)
    return dataclasses.replace(
        result,
        exit_code=ExitCode(strict.exit_code),
        outcome=strict.outcome,
        sentence=f"By the definitions of the merge base: {strict.sentence}",
        on_undecided=strict.on_undecided,
        acceptable=result.exit_code == ExitCode.PASS or result.acceptable,
        stricter=strict,
        banner=banner_of(strict, run.reported.changes),
    )


def _unproven(result: LegResult, why: str) -> LegResult:
    """Return a leg whose pass stands on another job's word alone: it fails nothing, and is no pass."""
    if result.exit_code != ExitCode.PASS:
        return result
    said = f"Not decided: {why}. {result.sentence}"
    return dataclasses.replace(
        result, exit_code=ExitCode.UNDECIDED, outcome="undecided", sentence=said, banner=None
    )


def read_early_end(folder: Path, leg: Leg, plan: CiPlan) -> LegResult | None:
    """Return a leg of which a command ended early, None where the folder says nothing of that."""
    try:
        early = ended.read(folder / ENDED)
    except ConfigError:
        return None
    return _ended_early(early, leg, plan) if early else None


def _ended_early(said: Ended, leg: Leg, plan: CiPlan) -> LegResult:
    """Return a leg of which a command ended before there was anything to judge: it fails, with its owner."""
    if said.commit != plan.head:
        at = said.commit[:12] or "no commit"
        return failed(leg.name, f"the leg {leg.name} ended early at {at}, the plan is for {plan.head[:12]}.")
    outcome = "no verdict" if said.owner == UNKNOWN else "not measured"
    return LegResult(leg.name, ExitCode(said.exit_code), outcome, said.words, owner=said.owner)


def failed(name: str, sentence: str) -> LegResult:
    """Return a leg that has no verdict, and of which nobody said whose fault that is."""
    return LegResult(name, ExitCode.RIG, "no verdict", sentence)


def skipped(name: str, reason: str) -> LegResult:
    """Return a leg that was left out for a recorded reason."""
    outcome = "no-baseline" if reason == NO_BASE else "skipped"
    return LegResult(name, ExitCode.PASS, outcome, f"Not measured: {reason}.", reason=reason)


def unmeasured(name: str, reason: str) -> LegResult:
    """Return a leg that could not be measured, and by no fault of the change: undecided, and no pass."""
    return LegResult(name, ExitCode.UNDECIDED, "undecided", f"Not measured: {reason}.", reason=reason)


def _not_its_run(run: JudgedRun, leg: Leg, plan: CiPlan) -> str:
    """Return why a run is not the one that the plan asks of a leg, "" where it is."""
    info, verdict, name = run.info, run.verdict, leg.name
    measured = info.git.commit
    if measured != plan.head:
        return f"the leg {name} measured the commit {measured[:12]}, the plan is for {plan.head[:12]}."
    if verdict.run_id != info.run_id:
        return f"the verdict of the leg {name} belongs to another run, {verdict.run_id}."
    if is_unchanged(info) != leg.unchanged:
        wanted = "itself" if leg.unchanged else "another firmware, or with limits alone"
        return f"the leg {name} was to compare its firmware with {wanted}, and did not."
    if leg.target and verdict.exit_code in ON_FIRMWARE and (other := _not_the_leg(info, leg, plan)):
        return f"the leg {name} was to measure {leg.target} at {plan.head[:12]}, but {other}."
    return ""


def _of_run(run: JudgedRun, leg: Leg) -> LegResult:
    """Return what a leg came to by its run's own verdict; unchanged firmware has to be judged, however."""
    info, verdict = run.info, run.verdict
    code = status_of(info, verdict)
    is_only_judged = leg.unchanged and code == ExitCode.PASS
    result = LegResult(
        leg.name,
        code,
        "judged" if is_only_judged else verdict.outcome,
        f"{'Unchanged firmware, which blocks nothing: ' * is_only_judged}{verdict.sentence}",
        run_id=info.run_id,
        boards=tuple(f"{board.id} ({board.kind})" for board in info.boards),
        unchanged=leg.unchanged,
    )
    if leg.unchanged:
        return result
    summary = run.path / SUMMARY
    return dataclasses.replace(
        result,
        summary=summary.read_text(encoding="utf-8") if summary.is_file() else "",
        on_undecided=verdict.on_undecided,
        acceptable=code == ExitCode.FIRMWARE and _only_comparisons_regressed(verdict),
        standing=_standing(info) if leg.job == "rack" else "",
        owner={ExitCode.RIG: "rig", ExitCode.CONFIG: "configuration"}.get(code, ""),
        banner=banner_of(verdict, run.reported.changes),
    )


def _only_comparisons_regressed(verdict: Verdict) -> bool:
    """Return whether nothing is wrong but that comparisons regressed: no limit, no fault, nothing missing."""
    blocking = [item for item in verdict.compared if item.blocking]
    missing = any(item.expected for item in verdict.not_run)
    missing |= any(item.outcome == "undecided" and not item.candidate_boots for item in blocking)
    broken = any(item.blocking and item.outcome == "regressed" for item in verdict.series)
    regressed = any(item.outcome == "regressed" for item in blocking)
    wrong = broken or missing or bool(verdict.faults) or verdict.on_undecided == "fail"
    return regressed and not wrong


def _standing(info: RunInfo) -> str:
    """Return what a rack has to say of its comparison; where nothing is known of it, "advisory"."""
    if info.compared is None or info.compared.role != "base":
        return ""
    state = info.standing.state if info.standing else ""
    return "" if state == "qualified" else "not fit" if state == "not fit" else "advisory"


def _not_the_leg(info: RunInfo, leg: Leg, plan: CiPlan) -> str:
    """Return on which other boards or firmware a rack's run was, "" where it was on the leg's."""
    boards = info.boards
    wanted = leg.board_target
    others = [f"{board.id} ({board.target})" for board in boards if board.target != wanted]
    if others or not boards:
        return f"it ran on {', '.join(others) or 'no board'}"
    firmware = info.firmware.items()
    images = [image for name, image in firmware if target_of(name) == leg.target]
    if not images:
        return _NO_BUNDLE
    return next((other for image in images if (other := _not_the_head(image, plan))), "")


_NO_BUNDLE = "its firmware is of no bundle, so nothing tells which commit it is"


def _not_the_head(firmware: ImageInfo, plan: CiPlan) -> str:
    """Describe the sources of a run's image; "" if they are the plan's head."""
    built = firmware.commit
    if not built:
        return _NO_BUNDLE
    if built != plan.head:
        return f"its firmware is of the commit {built[:12]}"
    if firmware.ruler and firmware.ruler.moved:
        return f"its firmware was built with the benches of {firmware.ruler.commit[:12]}"
    return "its firmware was built with changes that are in no commit" if firmware.dirty else ""
