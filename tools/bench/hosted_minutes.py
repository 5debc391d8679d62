# SPDX-License-Identifier: Apache-2.0
"""What a pull request costs of GitHub's hosted minutes, by adding up the times of its jobs' steps.

    python -m tools.bench.hosted_minutes        # some minutes: it installs, in a folder of its own

Each step is *measured* here (the quicker of two tries), *planned* by the product itself, or *assumed*, with
the reason. GitHub bills each job rounded up to a minute; both sums are printed.
"""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hil.base.paths import PROJECT_THRESHOLDS
from hil.boards.rack import load_rack
from hil.run.plan import make_plan
from hil.run.plan.sharding import run_s
from hil.thresholds import load_project
from tests.lab import ROOT
from tools.bench.figure import Figure, show, wide_console
from tools.bench.queue_times import planned, works

Source = Literal["measured", "planned", "assumed"]
Kind = Literal["documentation only", "harness only", "firmware"]

PURPOSES = ("plan", "python", "run")
TRIES = 2
KEPT = (".venv", "reports/site/node_modules")
BYTES_A_SECOND = 50e6  # that a cache comes with
RUNNER_S, COMMIT_S, ARTEFACT_S = 8.0, 3.0, 3.0
APT_S = 30.0  # some of `run`'s Debian packages are on the image; a bare root takes twice that for all
CONTAINER_S = 60.0  # ESP-IDF's image
BUILD_S = 480.0  # two commits of one chip, as `make bench-queue` has it
EMULATED_S = 120.0  # docs/operate/ci.md
TESTS_S, TEST_SETUP_S = 720.0, 90.0  # README.md; what `test` installs beyond what is kept: Debian packages
JUDGE_S = 10.0  # two legs, from their records
COMMENT_S = 5.0
COMPARED_BOARDS, COMPARED_LEGS, SEED = 2, 2, 1
AIMS: Mapping[Kind, float] = {"documentation only": 2.0, "firmware": 25.0}  # minutes


@dataclass(frozen=True)
class Step:
    """A part of a job, in seconds; ``words`` say what it is."""

    words: str
    seconds: float
    source: Source


@dataclass(frozen=True)
class Timed:
    """What was measured here, in seconds: installing by purpose, taking what was kept, and commands."""

    installing: Mapping[str, float]
    taking: Mapping[str, float]
    commands: Mapping[str, float]


@dataclass(frozen=True)
class Job:
    name: str
    steps: Sequence[Step]

    @property
    def seconds(self) -> float:
        return sum(step.seconds for step in self.steps)

    @property
    def billed_minutes(self) -> int:
        return math.ceil(self.seconds / 60)


def setup(timed: Timed, purpose: str, *, warm: bool, kept: bool = True) -> list[Step]:
    """Return what a job does before its own: the machine, the commit, and what .ci/bootstrap installs."""
    begin = [
        Step("runner, first and last steps", RUNNER_S, "assumed"),
        Step("checkout", COMMIT_S, "assumed"),
    ]
    if purpose == "run":
        begin.append(Step("Debian packages", APT_S, "assumed"))
    if warm and kept:
        return [*begin, Step(f"what was kept for {purpose}", timed.taking[purpose], "measured")]
    return [*begin, Step(f".ci/bootstrap {purpose}", timed.installing[purpose], "measured")]


def jobs_of(kind: Kind, timed: Timed, *, warm: bool) -> list[Job]:
    """Return the hosted jobs of a pull request of this kind; racks are not GitHub's, and have none."""
    seen = Step("hil ci plan", timed.commands["plan"], "measured")
    artefact = Step("artefact", ARTEFACT_S, "assumed")
    plan = Job("pr/plan", [*setup(timed, "plan", warm=warm), seen, artefact])
    shown = Step("hil ci comment", COMMENT_S, "assumed")
    comment = Job("comment/comment", [*setup(timed, "python", warm=warm, kept=False), shown])
    looked = Step("what changed", timed.commands["plan"], "measured")
    asks = [*setup(timed, "plan", warm=warm, kept=False), looked]
    verdict = Step("hil ci verdict", timed.commands["verdict"], "measured")
    if kind == "documentation only":
        needs = setup(timed, "python", warm=warm)[-1]
        pages = Step("make test-docs", timed.commands["docs"], "measured")
        return [
            plan,
            Job("pr/hil-verdict", [*setup(timed, "plan", warm=warm), artefact, verdict]),
            Job("checks/test", [*asks, needs, pages]),
            comment,
        ]
    judged = [artefact, verdict, Step("judging", JUDGE_S, "assumed")]
    return [
        plan,
        *_measuring(kind, timed, warm=warm),
        Job("pr/hil-verdict", [*setup(timed, "python", warm=warm), *judged]),
        Job("checks/test", [*asks, *_tests(timed, warm=warm)]),
        comment,
    ]


def _measuring(kind: Kind, timed: Timed, *, warm: bool) -> list[Job]:
    artefact = Step("artefact", ARTEFACT_S, "assumed")
    host = Step("hil build", timed.commands["build"], "measured")
    container = Step("ESP-IDF's container", CONTAINER_S, "assumed")
    compared = "compared" if kind == "firmware" else "limits"  # the same image is not beside itself
    legs = works(planned(), COMPARED_BOARDS, COMPARED_LEGS, SEED)
    quick = make_plan(
        load_rack(ROOT / "hil/racks/virtual.yaml"), load_project(PROJECT_THRESHOLDS), selection="quick"
    )
    measured = Step("suite quick", run_s(quick), "planned")
    turns = Step(f"suite pr, {compared}", legs.expected_s[compared], "planned")
    narrowed = Step("hil ci narrow", timed.commands["narrow"], "measured")
    chip = Step("head and base of one chip", BUILD_S, "assumed")
    counted = Step("hil cost, two boots of each", EMULATED_S, "assumed")
    run, python = setup(timed, "run", warm=warm), setup(timed, "python", warm=warm)
    return [
        Job("pr/virtual", [*run, host, measured, artefact]),
        Job("pr/compare", [*run, host, host, turns, artefact]),
        Job("pr/build", [*python, container, chip, artefact]),
        Job("pr/narrow", [*setup(timed, "plan", warm=warm), artefact, narrowed]),
        Job("pr/emulated", [*python, container, artefact, counted, artefact]),
    ]


def _tests(timed: Timed, *, warm: bool) -> list[Step]:
    """`test` installs what `run` does and more; where that is not kept, act and actionlint are built."""
    needs = setup(timed, "run", warm=warm)[-1]
    more = Step("what tests need besides", TEST_SETUP_S if warm else 2 * TEST_SETUP_S, "assumed")
    return [needs, more, Step(".ci/run", TESTS_S, "assumed")]


def clock(words: Sequence[str], folder: Path) -> float:
    """Return how long a command takes. Raises CalledProcessError with what it said where it fails."""
    begun = time.monotonic()
    subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True, timeout=1200)
    return time.monotonic() - begun


def measure(folder: Path) -> Timed:
    """Install by each purpose into a clone, keep and take that, and time the commands of the jobs."""
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(folder)], check=True)
    installing: dict[str, float] = {}
    taking: dict[str, float] = {}
    commands: dict[str, float] = {}
    kept = folder.with_name("kept.tar.zst")
    for purpose in PURPOSES:
        installing[purpose] = min(_installing(purpose, folder) for _try in range(TRIES))
        there = [name for name in KEPT if (folder / name).exists()]
        clock(["tar", "--zstd", "-cf", str(kept), *there], folder)
        unpack = ["tar", "--zstd", "-xf", str(kept)]
        taking[purpose] = kept.stat().st_size / BYTES_A_SECOND + min(
            clock(unpack, folder) for _try in range(TRIES)
        )
        if purpose == "plan":
            commands |= _planning(folder)
    commands["docs"] = clock(["make", "test-docs"], folder)
    commands["build"] = clock([".venv/bin/hil", "build", "--target", "virtual-esp32"], folder)
    return Timed(installing, taking, commands)


def _installing(purpose: str, folder: Path) -> float:
    subprocess.run(["rm", "-rf", *KEPT], cwd=folder, check=True)
    return clock([".ci/bootstrap", purpose], folder)


def _planning(folder: Path) -> dict[str, float]:
    """Time what is done with the packages of `plan`, on a commit that changes a page."""
    hil = str(folder / ".venv" / "bin" / "hil")
    with (folder / "README.md").open("a") as stream:
        stream.write("\n")
    author = ["-c", "user.name=hil", "-c", "user.email=hil@localhost"]
    clock(["git", *author, "commit", "--quiet", "--message", "A page", "README.md"], folder)
    return {
        "plan": clock([hil, "ci", "plan", "--base", "HEAD~1"], folder),
        "narrow": clock([hil, "ci", "narrow", "--comparisons", "none"], folder),
        "verdict": clock([hil, "ci", "verdict", "--keep", "kept"], folder),
    }


def minutes(jobs: Sequence[Job]) -> float:
    return sum(job.seconds for job in jobs) / 60


def kinds_figure(timed: Timed) -> Figure:
    rows, missed = [], []
    kinds: tuple[Kind, ...] = ("documentation only", "harness only", "firmware")
    for kind in kinds:
        warm, cold = (jobs_of(kind, timed, warm=state) for state in (True, False))
        aim = AIMS.get(kind)
        rows.append(
            [
                kind, str(len(warm)), f"{minutes(warm):.1f}", str(sum(job.billed_minutes for job in warm)),
                f"{minutes(cold):.1f}", f"≤ {aim:.0f}" if aim else "",
            ]
        )  # fmt: skip
        if aim and minutes(warm) > aim:
            missed.append(f"{kind}: {minutes(warm):.1f} minutes of steps, at most {aim:.0f} are aimed at")
    return Figure(
        "Hosted minutes of a pull request, no rack, one emulated chip",
        ("it changes", "jobs", "step times", "as billed", "nothing kept", "aim"),
        rows,
        note="as billed: each job rounded up to a minute, as in private repositories; warm caches",
        missed=missed,
    )


def steps_figure(timed: Timed) -> Figure:
    jobs = {f"{job.name} ({kind})": job for kind in AIMS for job in jobs_of(kind, timed, warm=True)}
    rows = [
        [name if number == 0 else "", step.words, f"{step.seconds:.1f} s", step.source]
        for name, job in jobs.items()
        for number, step in enumerate(job.steps)
    ]
    return Figure("Their steps, warm caches", ("job", "step", "takes", "which is"), rows)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="hil-hosted-") as folder:
        timed = measure(Path(folder) / "checkout")
    console = wide_console()
    figure = kinds_figure(timed)
    show(console, steps_figure(timed))
    show(console, figure)
    return 1 if figure.missed else 0


if __name__ == "__main__":
    sys.exit(main())
