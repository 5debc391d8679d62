# SPDX-License-Identifier: Apache-2.0
"""Conclude one verdict on a workflow run: every leg has a verdict, or a recorded reason to have none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from hil.base.errors import ConfigError, ExitCode, combine_exit_codes
from hil.ci.acceptance import Acceptance
from hil.ci.legs import LegResult, failed, read_early_end, read_leg, skipped, unmeasured
from hil.ci.limits import Counting, limits_that_count
from hil.ci.loosened import LimitChange
from hil.ci.plan import CiPlan, Leg
from hil.gate.words.banner import title_without_verdict
from hil.store import RunDirectory
from hil.store.ended import ended_by

FAILED_RESULTS = ("failure", "cancelled")
Excuses = Callable[[Collection[str]], Mapping[str, str]]


@dataclass(frozen=True)
class CiVerdict:
    """``findings`` are what went wrong besides the legs' own verdicts.

    ``exit_code`` is that of the required check, which passes what is neutral. ``limits`` are the rules that
    the head has otherwise than its merge base. ``attempts`` names earlier attempts.
    """

    exit_code: ExitCode
    headline: str
    legs: tuple[LegResult, ...]
    findings: tuple[str, ...]
    acceptance: Acceptance | None = None
    limits: tuple[LimitChange, ...] = ()
    attempts: str = ""

    @property
    def loosened(self) -> tuple[str, ...]:
        """The rules that let more pass than those of the merge base, in words."""
        return tuple(one.text for one in self.limits if one.loosens)

    @property
    def is_loosened(self) -> bool:
        """Whether nothing failed, by rules that nobody but the change itself stands for."""
        return self.exit_code == ExitCode.PASS and bool(self.loosened) and self.acceptance is None

    @property
    def decisive(self) -> LegResult | None:
        """The leg whose banner stands for all; None where no leg accounts for what it came to."""
        return _decisive(self.exit_code, self.legs)

    @property
    def sentence(self) -> str:
        """What the decisive leg says below its loud words, "" where there is none."""
        return self.decisive.said if self.decisive else ""

    @property
    def sign(self) -> str:
        """What says the tone without a colour: "✓", "?", "✗"."""
        if any(leg.accepted for leg in self.legs):
            return "✗"
        if self.is_loosened:
            return "?"
        return self.decisive.sign if self.decisive else "?" if self.exit_code else "✓"

    @property
    def acceptable(self) -> bool:
        """Whether an owner's word decides: comparisons regressed or rules got looser, no more is wrong."""
        failed = [leg for leg in self.legs if leg.status != ExitCode.PASS]
        return bool(failed or self.loosened) and not self.findings and all(leg.acceptable for leg in failed)

    @property
    def conclusion(self) -> Literal["success", "neutral", "failure"]:
        """What GitHub calls it: neutral is what failed nothing, and was not decided all the same."""
        if self.exit_code != ExitCode.PASS:
            return "failure"
        return "neutral" if self.is_loosened or any(leg.is_open for leg in self.legs) else "success"


def conclude(
    plan: CiPlan,
    folder: Path,
    job_results: Mapping[str, str],
    counting: Counting | None = None,
    excuses: Excuses = lambda _lost: {},
) -> CiVerdict:
    """Read every leg of ``plan`` below ``folder``; combine them.

    Each is judged again by the limits in ``counting``; without, what its verdicts.json says is taken.

    ``job_results`` maps the jobs that went before to GitHub's word: success, failure, cancelled or skipped.
    A job that failed fails the whole, also where all that it left looks well. ``excuses`` maps legs to the
    reason why they left no run; such a leg is undecided. It is asked once, of legs that nothing accounts for.
    """
    found = [_found(plan, leg, folder, job_results, counting) for leg in plan.legs]
    lost = [leg.name for leg in found if _is_lost(leg) and not RunDirectory.list(folder / leg.name)]
    said = excuses(lost) if lost else {}
    legs = tuple(
        replace(unmeasured(leg.name, said[leg.name]) if leg.name in said else result, shown=leg.shown)
        for leg, result in zip(plan.legs, found, strict=True)
    )
    known = {leg.name for leg in plan.legs} | {unbuilt(target) for target in plan.build}
    strangers = sorted(path.name for path in folder.glob("*") if path.is_dir() and path.name not in known)
    findings = [f"the leg {name} left a result, but is not in the plan." for name in strangers]
    findings += _failed_jobs(plan, legs, job_results)
    codes = [leg.status for leg in legs] + [ExitCode.RIG] * bool(findings)
    code = combine_exit_codes(codes)
    fewer = (LimitChange(text, loosens=True) for leg in legs for text in leg.loosened)
    changes = (*(counting.changes if counting else ()), *fewer)
    verdict = CiVerdict(code, _headline(code, legs, findings), legs, tuple(findings), limits=changes)
    if not verdict.is_loosened or any(leg.is_open for leg in legs):
        return verdict
    return replace(verdict, headline=verdict.headline.replace("PASS", f"PASS{_LOOSENED}", 1))


def conclude_by(
    thresholds: Path | None, plan: CiPlan, legs: Path, job_results: Mapping[str, str], excuses: Excuses
) -> CiVerdict:
    """Conclude by the limits of a folder and of the merge base in this checkout; None: those that runs keep.

    Limits of the head that cannot be read fail the whole, whatever the legs say.
    """
    try:
        counting = limits_that_count(thresholds, Path.cwd(), plan.base) if thresholds else Counting()
    except ConfigError as error:
        return without_limits(conclude(plan, legs, job_results, Counting(), excuses), error)
    return conclude(plan, legs, job_results, counting, excuses)


_LOOSENED = ", BUT BY LOOSENED RULES"


def accept(verdict: CiVerdict, acceptance: Acceptance) -> CiVerdict:
    """Return the verdict with an owner's word: what regressed is never a pass, looser rules may be one."""
    if not verdict.acceptable:
        return verdict
    legs = tuple(replace(leg, accepted=leg.acceptable) for leg in verdict.legs)
    passed = f"{verdict.headline.replace(_LOOSENED, '', 1)}; loosened rules"
    what = "REGRESSED," if verdict.exit_code else passed
    headline = f"{what} accepted by {acceptance.login}: {acceptance.reason}"
    return replace(verdict, exit_code=ExitCode.PASS, headline=headline, legs=legs, acceptance=acceptance)


def _is_lost(leg: LegResult) -> bool:
    return leg.status == ExitCode.RIG and not leg.run_id


def _found(
    plan: CiPlan, leg: Leg, folder: Path, job_results: Mapping[str, str], counting: Counting | None
) -> LegResult:
    if (folder / leg.name).is_dir():
        return read_leg(folder / leg.name, leg, plan, counting)
    if leg.skip:
        return (unmeasured if leg.undecided else skipped)(leg.name, leg.skip)
    if why := _why_unbuilt(plan, leg, folder, job_results):
        return why
    left = f"the leg {leg.name} left neither a verdict nor a reason to skip it"
    job = leg.measured_by
    if job not in job_results:
        return failed(leg.name, f"{left}. Measure it, then: hil ci collect {leg.name}.")
    return failed(
        leg.name,
        f"{left}; its job {job} ended with {job_results[job]!r}{_unbuilt(leg, job_results)}. "
        f"Look at the log of that job, or of the jobs that it needs.",
    )


def _unbuilt(leg: Leg, job_results: Mapping[str, str]) -> str:
    """Return that the firmware of a chip was not built, where the job before says so; else ""."""
    built = job_results.get("build", "") if leg.target and leg.measured_by != "build" else ""
    return f", and the job build, which makes its firmware, with {built!r}" if built in FAILED_RESULTS else ""


def unbuilt(target: str) -> str:
    """Return the folder beside those of legs in which the job that builds leaves why it did not."""
    return f"unbuilt-{target}"


def _why_unbuilt(plan: CiPlan, leg: Leg, folder: Path, job_results: Mapping[str, str]) -> LegResult | None:
    """Return a leg without firmware, in the words of its build; None where that left none, or is well."""
    place = folder / unbuilt(leg.target)
    is_told = leg.target and job_results.get("build", "failure") in FAILED_RESULTS
    return read_early_end(place, leg, plan) if is_told else None


def without_limits(verdict: CiVerdict, error: ConfigError) -> CiVerdict:
    """Return the verdict where the head's limits cannot be read: whatever the legs say, there is no pass."""
    words = ended_by(error).words
    code = combine_exit_codes([verdict.exit_code, ExitCode.CONFIG])
    headline = _headline(code, verdict.legs, (words,))
    return replace(verdict, exit_code=code, headline=headline, findings=(words, *verdict.findings))


def _failed_jobs(plan: CiPlan, legs: Sequence[LegResult], job_results: Mapping[str, str]) -> list[str]:
    """Return a sentence for each job whose failure no leg tells."""
    telling = [leg for leg in legs if leg.status != ExitCode.PASS or (leg.reason and leg.exit_code)]
    told = {plan.leg(leg.name).measured_by for leg in telling}
    # nobody's word excuses a build: a leg without a rack says nothing of it
    told |= {"build" for leg in telling if leg.status and plan.leg(leg.name).target and not leg.run_id}
    return [
        f"the job {job} ended with {result!r}, which no leg accounts for; look at its log."
        for job, result in job_results.items()
        if result in FAILED_RESULTS and job not in told
    ]


def _headline(code: ExitCode, legs: Sequence[LegResult], findings: Sequence[str]) -> str:
    """Return the loud words of the leg that decides, and the legs that they are true of."""
    first = _decisive(code, legs)
    if first is None:
        return _named(title_without_verdict(code, ""), findings[0]) if code else _NOTHING
    same = [leg for leg in _candidates(code, legs) if leg.is_open == first.is_open]
    if not code and first.is_open:
        same = [leg for leg in same if leg.outcome == first.outcome]
    by_policy = code == ExitCode.UNDECIDED and all(leg.is_open for leg in same)
    title = f"{first.title}{', WHICH ITS POLICY FAILS' if by_policy else ''}"
    names = [f"{leg.shown} ({leg.standing})" if leg.standing else leg.shown for leg in same]
    return _named(title, ", ".join(names))


def _candidates(code: ExitCode, legs: Sequence[LegResult]) -> list[LegResult]:
    """Return the legs that the whole comes to its code by: of a pass those that are open, else all."""
    if code:
        return [leg for leg in legs if leg.status == code]
    return [leg for leg in legs if leg.is_open] or [leg for leg in legs if not leg.reason]


def _decisive(code: ExitCode, legs: Sequence[LegResult]) -> LegResult | None:
    """Return the leg whose banner stands for all; None where no leg accounts for what it came to."""
    # the rig's fault is only what somebody says is; the later legs are compared, and on real boards
    return min(
        reversed(_candidates(code, legs)),
        key=lambda leg: (
            leg.owner != "rig" and code == ExitCode.RIG,
            _OPEN.index(leg.outcome) if not code and leg.outcome in _OPEN else 0,
            leg.banner is None,
            leg.banner is not None and leg.banner.tone == "good",
        ),
        default=None,
    )


_OPEN = ("undecided", "no-baseline")  # the worse first
_NOTHING = "PASS: nothing had to be measured"


def _named(title: str, what: str) -> str:
    return f"{title}{' – ' if ':' in title else ': '}{what}"
