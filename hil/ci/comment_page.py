# SPDX-License-Identifier: Apache-2.0
"""Has a page written by the process that knows the reports, which gets neither token nor network address."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from hil.base.errors import ExitCode, RigError
from hil.base.git import count_between
from hil.base.paths import CHECKOUT
from hil.ci.conclusion import CiVerdict
from hil.ci.github_run import COMMIT
from hil.ci.legs import LegResult
from hil.ci.plan import CiPlan
from hil.store import RunDirectory
from hil.store.directory import VERDICTS
from hil.store.run_info import commit_words

DEADLINE_S = 120.0
_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")
_MOST_BYTES = 1024 * 1024
BY_BASE = "verdicts-by-base.json"

Layout = Literal["comment", "summary"]


@dataclass(frozen=True)
class Source:
    """The links of a page's run: addresses that GitHub gave us, "" or none by hand.

    ``links`` are texts and addresses; ``commits`` is the address of a commit without it. ``title`` and
    ``author`` are of the head's commit, ``count`` is how many there are since the base: "" and 0 unknown.
    """

    links: Mapping[str, str]
    commits: str = ""
    title: str = ""
    author: str = ""
    count: int = 0


def source_of(environment: Mapping[str, str], plan: CiPlan, repository: Path) -> Source:
    """Return what GitHub's variables say of this very run, and the checkout of the head's commit."""
    place = place_of(environment)
    if not COMMIT.fullmatch(plan.head):
        return place
    count = count_between(repository, plan.base, plan.head) if COMMIT.fullmatch(plan.base) else 0
    words = commit_words(repository, plan.head)
    return replace(place, title=words.get("title", ""), author=words.get("author", ""), count=count)


def place_of(environment: Mapping[str, str]) -> Source:
    """Return the addresses of the workflow run, none by hand."""
    server, repository = environment.get("GITHUB_SERVER_URL"), environment.get("GITHUB_REPOSITORY")
    run = environment.get("GITHUB_RUN_ID")
    if not (server and repository and run):
        return Source({})
    links = run_links(f"{server}/{repository}/actions/runs/{run}")
    report = environment.get("HIL_REPORT_URL")
    return Source({**links, **({"report": report} if report else {})}, f"{server}/{repository}/commit/")


def run_links(url: str) -> dict[str, str]:
    """Return the links that a reader of a run wants."""
    return {"workflow run": url, "reports, records and logs (artefacts)": f"{url}#artifacts"}


def facts_of(plan: CiPlan, verdict: CiVerdict, legs: Path, source: Source) -> dict[str, Any]:
    """Return the facts for comment, check and summary; the runs are below ``legs``."""
    return {
        "exit_code": int(verdict.exit_code),
        "headline": verdict.headline,
        "said": verdict.sentence,
        "attempts": verdict.attempts,
        "sign": verdict.sign,
        "conclusion": verdict.conclusion,
        "problem": "",
        "head": plan.head,
        "base": plan.base,
        "changes": list(plan.changes),
        "findings": list(verdict.findings),
        "loosened": list(verdict.loosened),
        "legs": [_leg(leg, legs) for leg in verdict.legs],
        **asdict(source),
    }


def without_verdict(head: str, problem: str, source: Source, *, is_green: bool = False) -> dict[str, Any]:
    """Return the facts of a page without a verdict, with the reason.

    Beside a required check that ``is_green`` that fails.
    """
    texts = dict.fromkeys(("said", "attempts", "base"), "")
    lists: dict[str, list[Any]] = {name: [] for name in ("changes", "findings", "loosened", "legs")}
    return {
        "exit_code": int(ExitCode.RIG),
        "headline": "No verdict could be read",
        "sign": "?",
        "conclusion": "failure" if is_green else "neutral",
        "problem": problem,
        "head": head,
        **texts,
        **lists,
        **asdict(source),
    }


def _leg(leg: LegResult, legs: Path) -> dict[str, Any]:
    # what is blocked of unchanged firmware is no change, so a page has its leg and not its figures
    runs = RunDirectory.list(legs / leg.name) if leg.run_id and not leg.unchanged else []
    return {
        "name": leg.shown,
        "exit_code": int(leg.exit_code),
        "sign": leg.sign,
        "is_open": leg.is_open,
        "sentence": leg.sentence,
        "reason": leg.reason,
        "mark": leg.mark,
        "owner": leg.owner,
        "boards": list(leg.boards),
        "run": str(runs[0].path.resolve()) if runs else "",
        "verdict": _verdict_of(leg, runs[0]) if runs else "",
    }


def _verdict_of(leg: LegResult, run: RunDirectory) -> str:
    """Return the file of the verdict that counts: by the merge base's limits where these are the stricter."""
    if leg.stricter is None:
        return VERDICTS
    run.write_verdict(leg.stricter, BY_BASE)
    return BY_BASE


def render(facts: Mapping[str, Any], layout: Layout) -> str:
    """Return the Markdown. Raises RigError where the reports' process fails, is slow or says too much."""
    with tempfile.TemporaryDirectory(prefix="hil-comment-") as folder:
        path = Path(folder) / "facts.json"
        path.write_text(json.dumps(facts), encoding="utf-8")
        try:
            done = print_page(path, layout)
        except subprocess.TimeoutExpired as error:
            raise RigError(
                f"writing the page took more than {DEADLINE_S:g} s.", next_step=_BY_HAND
            ) from error
    if done.returncode or len(done.stdout) > _MOST_BYTES:
        said = done.stderr.decode(errors="replace").strip()[-300:]
        raise RigError(
            f"the page was not written: {said or f'status {done.returncode}'}.", next_step=_BY_HAND
        )
    return done.stdout.decode(errors="replace")


def print_page(facts: Path, layout: Layout) -> subprocess.CompletedProcess[bytes]:
    """Have the reports' process print the page."""
    argv = [sys.executable, "-m", "hil.reports.comment", str(facts), "--layout", layout]
    return subprocess.run(argv, capture_output=True, timeout=DEADLINE_S, check=False, env=_environment())


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, **({"PYTHONPATH": str(CHECKOUT)} if CHECKOUT else {}), "PYTHONUTF8": "1"}


_BY_HAND = "look at the run's artefacts; by hand: hil ci comment."
