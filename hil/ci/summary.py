# SPDX-License-Identifier: Apache-2.0
"""The plain summary of a workflow run: for a terminal, and for GitHub where the reports cannot write theirs.

As Markdown for GitHub each text of a leg is made harmless, and its own summary is shown as it was written.

One verdict on a workflow run: every leg of the plan has one, or a recorded reason to have none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hil.base.errors import ExitCode, combine_exit_codes
from hil.base.untrusted import fenced, markdown
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

    @property
    def conclusion(self) -> Literal["success", "neutral", "failure"]:
        """What GitHub calls it: neutral is what failed nothing, and was not decided all the same."""
        if self.exit_code != ExitCode.PASS:
            return "failure"
        return "neutral" if any(map(is_open, self.legs)) else "success"


def is_open(leg: LegResult) -> bool:
    """Say whether a leg that failed nothing left something undecided, or had nothing to be compared with."""
    return leg.exit_code == ExitCode.PASS and leg.outcome in _OPEN


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
        return _quiet_headline([leg for leg in legs if not leg.reason])
    to_blame = [leg for leg in legs if leg.exit_code == code]
    word = _WORDS[code]
    return _named(word, to_blame) if to_blame else f"{word}: {findings[0]}"


def _quiet_headline(measured: Sequence[LegResult]) -> str:
    for outcome, word in _OPEN.items():
        if found := [leg for leg in measured if leg.outcome == outcome]:
            return _named(word, found)
    return _named("PASS", measured) if measured else "PASS: nothing had to be measured"


_OPEN = {
    "inconclusive": "UNDECIDED",
    "no-baseline": "LIMITS ONLY, NOTHING TO COMPARE WITH",
}  # the worse first
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


LIMIT_BYTES = 1000 * 1024  # GitHub drops a step's summary beyond 1 MiB altogether
_DETAILS = "<details>"
_MOST_OF_A_LEG = 50_000  # characters


def render(plan: CiPlan, verdict: CiVerdict, environment: Mapping[str, str], *, safe: bool = False) -> str:
    """Return the verdict as a person asks: is it well, what broke, what was not run, where is the rest.

    ``safe`` is for GitHub's Markdown: what the legs wrote is text there, and nothing else.
    """
    write = _safe_cell if safe else _cell
    parts = [
        f"# {markdown(verdict.headline) if safe else verdict.headline}",
        *_list("Failed besides", verdict.findings, write),
        _legs_table(verdict.legs, write),
        *_list("Not run", _not_run(verdict.legs), write),
        f"## Run\n\n{_facts(plan, environment)}",
        *(_leg_section(leg, safe=safe) for leg in verdict.legs if leg.summary),
    ]
    return "\n\n".join(parts) + "\n"


def append(path: Path, markdown: str, *, whole: str) -> None:
    """Add to a step's summary as much as fits; where that is not all, say that it is in ``whole``."""
    used = path.stat().st_size if path.exists() else 0
    with path.open("a", encoding="utf-8") as stream:
        stream.write(shorten(markdown, LIMIT_BYTES - used, whole=whole))


def shorten(markdown: str, size: int, *, whole: str) -> str:
    """Return at most ``size`` bytes, cut between lines, with what was folded open folded again."""
    if len(markdown.encode()) <= size:
        return markdown
    pointer = f"\n\n…cut off here, because GitHub shows no more. The whole is in {whole}.\n"
    room = size - len(pointer.encode()) - len("\n</details>")
    kept = markdown.encode()[: max(0, room)].decode(errors="ignore")
    kept = kept[: kept.rfind("\n") + 1]
    closing = "\n</details>" * (kept.count(_DETAILS) > kept.count("</details>"))
    return kept + closing + pointer


def _legs_table(legs: Sequence[LegResult], write: Callable[[str], str]) -> str:
    lines = ["| leg | verdict | boards | |", "| --- | --- | --- | --- |"]
    for leg in legs:
        cells = (leg.name, leg.outcome, ", ".join(leg.boards) or "–", leg.sentence)
        name, outcome, *rest = map(write, cells)
        lines.append(f"| {' | '.join([name, _mark(leg, outcome), *rest])} |")
    return "\n".join(lines)


def _mark(leg: LegResult, outcome: str) -> str:
    if leg.reason:
        return "– skipped"
    if leg.exit_code == ExitCode.PASS:
        return f"{'?' if is_open(leg) else '✓'} {outcome}"
    return f"**✗ {outcome}** (exit {int(leg.exit_code)})"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "/").split())


def _safe_cell(text: str) -> str:
    return markdown(text)


def _not_run(legs: Sequence[LegResult]) -> list[str]:
    lines = [f"{leg.name}: {leg.reason}" for leg in legs if leg.reason]
    return lines + [f"{leg.name}: {case}" for leg in legs for case in leg.not_run]


def _facts(plan: CiPlan, environment: Mapping[str, str]) -> str:
    facts = {
        "measured": f"`{plan.head[:12]}`",
        "merge base": f"`{plan.base[:12]}`" if plan.base else "",
        "changes": ", ".join(plan.changes),
        "artefacts": _artefacts(environment),
        "report": environment.get("HIL_REPORT_URL", ""),
    }
    return "\n".join(f"- {name}: {text}" for name, text in facts.items() if text)


def _artefacts(environment: Mapping[str, str]) -> str:
    """Return where the legs' folders and reports are to be had."""
    server, repository = environment.get("GITHUB_SERVER_URL"), environment.get("GITHUB_REPOSITORY")
    run = environment.get("GITHUB_RUN_ID")
    if not (server and repository and run):
        return ""
    return f"[leg-… (records, console logs) and report-…]({server}/{repository}/actions/runs/{run}#artifacts)"


def _leg_section(leg: LegResult, *, safe: bool) -> str:
    """Return a leg's own summary without its long tables; the leg's job shows all of it."""
    if safe:
        return (
            f"<details><summary>{leg.name}</summary>\n\n{fenced(leg.summary[:_MOST_OF_A_LEG])}\n\n</details>"
        )
    short = leg.summary.partition(_DETAILS)[0].strip().replace("\n#", "\n##").removeprefix("# ")
    return f"<details><summary>{leg.name}</summary>\n\n### {short}\n\n</details>"


def _list(heading: str, lines: Sequence[str], write: Callable[[str], str]) -> list[str]:
    return [f"## {heading}\n\n" + "\n".join(f"- {write(line)}" for line in lines)] if lines else []
