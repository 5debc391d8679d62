# SPDX-License-Identifier: Apache-2.0
"""``python -m tools.paste [RUN]``: copy each value out of a run's pages, and paste it where it belongs.

The pages are summary.md and the comment of a pull request that measured RUN, as a browser shows them. Commits
are asked of git, run ids of ``hil gate``, cases and boards of ``hil run``. Exit 1 where one is not found.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from hil.base.paths import PROJECT_ROOT
from hil.boards.rack import load_rack
from hil.ci import comment_page
from hil.ci.conclusion import conclude
from hil.ci.plan import CiPlan, Leg
from hil.store import JudgedRun, RunDirectory, read_judged_run
from tests.reports.as_read import Seen
from tools.check_report import Report
from tools.comment_page import to_html

HIL = (sys.executable, "-m", "hil")
_RUN_ID = re.compile(r"\d{8}T\d{6}Z-[\w.-]+")
_CASE = re.compile(r"[A-Za-z_][\w-]*/(defaults|[\w.-]+=\S+)")
_DIGEST = re.compile(r"[0-9a-f]{7,64}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_METRIC = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)+")
_INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")

Wrong = dict[str, str]


def pages(run: Path) -> dict[str, str]:
    """Return the run's pages of Markdown by name."""
    with tempfile.TemporaryDirectory() as folder:
        legs = Path(folder) / "legs"
        shutil.copytree(run, legs / "virtual" / run.name)
        plan = _plan_of(RunDirectory.open(run).read_info().git.commit)
        facts = comment_page.facts_of(plan, conclude(plan, legs, {}), legs, comment_page.Source({}))
        comment = comment_page.render(facts, "comment")
    return {"summary.md": (run / "summary.md").read_text(encoding="utf-8"), "comment": comment}


def _plan_of(head: str) -> CiPlan:
    base = _git("rev-parse", f"{head}~1").stdout.strip()
    leg = Leg("virtual", "virtual", "first")
    return CiPlan("pull_request", "pr", "a/b", 1, False, head, base, "", ("firmware",), (), (leg,))


def invisible(text: str) -> list[str]:
    """Return the characters that a person copies and does not see."""
    return [one for one in text if one != "\n" and unicodedata.category(one) in _INVISIBLE]


class Values:
    """What stands in the code spans of rendered pages, by the grammar of each value."""

    def __init__(self, spans: Sequence[str], boards: set[str]) -> None:
        left = dict.fromkeys(spans)

        def taken(fits: Callable[[str], object]) -> list[str]:
            found = [one for one in left if fits(one)]
            for one in found:
                del left[one]
            return found

        self.commands = taken(lambda one: one.startswith("hil "))
        self.run_ids = taken(_RUN_ID.fullmatch)
        self.cases = taken(_CASE.fullmatch)
        self.boards = taken(boards.__contains__)
        self.digests = taken(_DIGEST.fullmatch)
        self.times = taken(_TIME.fullmatch)
        self.paths = taken(lambda one: "/" in one and (PROJECT_ROOT / one).exists())
        self.metrics = taken(_METRIC.fullmatch)
        self.words = [*left]


def _git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], cwd=PROJECT_ROOT, capture_output=True, text=True, check=False)


def _hil(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*HIL, *words], cwd=PROJECT_ROOT, capture_output=True, text=True, check=False)


def not_in_git(digests: Sequence[str], images: set[str]) -> Wrong:
    """Return which are neither commits nor the beginning of an image's digest."""
    wrong = {}
    for digest in digests:
        known = any(image.startswith(digest) for image in images)
        found = (
            _git("rev-parse", "--verify", "--quiet", f"{digest}^{{commit}}"),
            _git("cat-file", "-e", digest),
        )
        if not known and any(one.returncode for one in found):
            wrong[digest] = "git does not know it"
    return wrong


def not_judged(commands: Sequence[str], status: int) -> Wrong:
    """Return which commands of ``hil gate`` do not end with the run's own status."""
    ended = {command: _hil(*shlex.split(command)[1:]).returncode for command in commands}
    return {command: f"exit {code}, not {status}" for command, code in ended.items() if code != status}


def not_planned(cases: Sequence[str], boards: Sequence[str], rack: Path) -> Wrong:
    """Return the cases, and the boards, that ``hil run`` does not plan alone, as ``hil plan`` prints it."""
    wrong = {}
    for case in cases:
        found = _hil("plan", "--rack", str(rack), "--suite", case).stdout
        if {line.strip() for line in found.splitlines() if line.startswith("  ")} != {case}:
            wrong[case] = found.strip() or "no plan"
    for board in boards:
        found = _hil("plan", "--rack", str(rack), "--suite", "first", "--board", board).stdout
        if re.findall(r"^(\S+) \(\S+\): \d+ boot", found, re.MULTILINE) != [board]:
            wrong[board] = found.strip() or "no plan"
    return wrong


def not_measured(cases: Sequence[str], boards: Sequence[str], rack: Path) -> Wrong:
    """Measure all of them in one run, and return those that it did not."""
    with tempfile.TemporaryDirectory() as out:
        chosen = [word for board in boards for word in ("--board", board)]
        suite = " or ".join(cases)
        words = ("run", "--rack", str(rack), "--suite", suite, *chosen, "--no-report", "--out", out)
        ended = _hil(*words)
        found = RunDirectory.list(Path(out))
        if not found:
            return {suite: ended.stderr.strip()}
        spans = Seen(to_html((found[0].path / "summary.md").read_text(encoding="utf-8"))).spans
    return {value: "was not measured" for value in (*cases, *boards) if value not in spans}


def check(run: Path, rack: Path) -> int:
    """Print a line a kind of value; return 1 where one is not found."""
    report, read = Report({}), read_judged_run(run)
    shown = {name: Seen(to_html(page)) for name, page in pages(run).items()}
    for name, seen in shown.items():
        hidden = invisible(seen.text)
        report.verdict(name, f"{len(hidden)} invisible characters", {repr(one): "" for one in hidden})
    boards = {item.board for item in read.verdict.series}
    values = Values([span for seen in shown.values() for span in seen.spans], boards)
    for part, found, paste in pasted(values, read, rack):
        wrong = paste() if found else {part: "no value of this kind was copied"}
        report.verdict(part, f"{len(found)} values", wrong)
    report.say(f"other spans  {', '.join(values.words)}")
    return int(report.exit_code())


def pasted(
    values: Values, run: JudgedRun, rack: Path
) -> Iterator[tuple[str, Sequence[str], Callable[[], Wrong]]]:
    """Yield each kind of value, the values, and what pastes them and returns those that are not found."""
    gates = [one for one in values.commands if one.startswith("hil gate ")]
    gates += [f"hil gate {shlex.quote(str(run.path.parent / one))}" for one in values.run_ids]
    status, images = int(run.verdict.exit_code), {record.firmware_sha256 for record in run.records}
    metrics = {word for item in run.verdict.series for word in (item.metric, item.clock)}
    places, info = [*values.cases, *values.boards], msgspec.json.encode(run.info).decode()
    yield "git: commits, else images", values.digests, lambda: not_in_git(values.digests, images)
    yield "hil gate", gates, lambda: not_judged(gates, status)
    yield "plan of hil run: cases, boards", places, lambda: not_planned(values.cases, values.boards, rack)
    yield "hil run: cases, boards", places, lambda: not_measured(values.cases, values.boards, rack)
    yield "times in run.json", values.times, lambda: {one: "" for one in values.times if one not in info}
    yield "metrics", values.metrics, lambda: {one: "" for one in values.metrics if one not in metrics}
    yield "paths that exist", values.paths, dict


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.paste", description=__doc__)
    parser.add_argument("run", nargs="?", type=Path, default=PROJECT_ROOT / "out" / "latest")
    parser.add_argument("--rack", type=Path, default=PROJECT_ROOT / "hil" / "racks" / "virtual.yaml")
    wanted = parser.parse_args()
    load_rack(wanted.rack)
    return check(wanted.run.resolve(), wanted.rack)


if __name__ == "__main__":
    sys.exit(main())
