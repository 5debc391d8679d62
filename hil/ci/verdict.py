"""One verdict on a workflow run: every leg of the plan has one, or a recorded reason to have none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import ExitCode, combine_exit_codes
from hil.ci.legs import LegResult, failed, read_leg, skipped
from hil.ci.plan import CiPlan, Leg

FAILED_RESULTS = ("failure", "cancelled")


@dataclass(frozen=True)
class CiVerdict:
    """``findings`` are what went wrong besides the legs' own verdicts."""

    exit_code: ExitCode
    headline: str
    legs: tuple[LegResult, ...]
    findings: tuple[str, ...]


def conclude(plan: CiPlan, folder: Path, job_results: Mapping[str, str]) -> CiVerdict:
    """Read every leg of ``plan`` below ``folder``; combine them.

    ``job_results`` maps the jobs that went before to GitHub's word: success, failure, cancelled or skipped.
    A job that failed fails the whole, also where all that it left looks well.
    """
    legs = tuple(_result(plan, leg, folder, job_results) for leg in plan.legs)
    known = {leg.name for leg in plan.legs}
    strangers = sorted(path.name for path in folder.glob("*") if path.is_dir() and path.name not in known)
    findings = [f"the leg {name} left a result, but is not in the plan." for name in strangers]
    findings += _failed_jobs(plan, legs, job_results)
    codes = [leg.exit_code for leg in legs] + [ExitCode.RIG] * bool(findings)
    code = combine_exit_codes(codes)
    return CiVerdict(code, _headline(code, legs, findings), legs, tuple(findings))


def _result(plan: CiPlan, leg: Leg, folder: Path, job_results: Mapping[str, str]) -> LegResult:
    if (folder / leg.name).is_dir():
        return read_leg(folder / leg.name, leg, plan)
    if leg.skip:
        return skipped(leg.name, leg.skip)
    left = f"the leg {leg.name} left neither a verdict nor a reason to skip it"
    if leg.job not in job_results:
        return failed(leg.name, f"{left}. Measure it, then: hil ci collect {leg.name}.")
    return failed(
        leg.name,
        f"{left}; its job {leg.job} ended with {job_results[leg.job]!r}. "
        f"Look at the log of that job, or of the jobs that it needs.",
    )


def _failed_jobs(plan: CiPlan, legs: Sequence[LegResult], job_results: Mapping[str, str]) -> list[str]:
    """Return a sentence for each job whose failure no leg tells."""
    told = {plan.leg(result.name).job for result in legs if result.exit_code != ExitCode.PASS}
    return [
        f"the job {job} ended with {result!r}, which no leg accounts for; look at its log."
        for job, result in job_results.items()
        if result in FAILED_RESULTS and job not in told
    ]


def _headline(code: ExitCode, legs: Sequence[LegResult], findings: Sequence[str]) -> str:
    if code == ExitCode.PASS:
        measured = [leg for leg in legs if not leg.reason]
        return _named("PASS", measured) if measured else "PASS: nothing had to be measured"
    to_blame = [leg for leg in legs if leg.exit_code == code]
    word = _WORDS[code]
    return _named(word, to_blame) if to_blame else f"{word}: {findings[0]}"


_WORDS = {
    ExitCode.FIRMWARE: "REGRESSED",
    ExitCode.CONFIG: "NOT MEASURED, CONFIGURATION",
    ExitCode.RIG: "NO VERDICT",
    ExitCode.INCONCLUSIVE: "INCONCLUSIVE",
    ExitCode.INTERRUPTED: "INTERRUPTED",
    ExitCode.TERMINATED: "TERMINATED",
}


def _named(word: str, legs: Sequence[LegResult]) -> str:
    return f"{word}: {', '.join(leg.name for leg in legs)}"
