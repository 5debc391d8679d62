# SPDX-License-Identifier: Apache-2.0
"""Break everything, one fault after another: `make chaos SEED=n`; it goes on where it was stopped.

    python -m tools.chaos [--seed N] [--only PATTERN] [--anew | --again] [--list]

Exit 1 where a row is wrong. What the columns mean: docs/explain/faults.md.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import queue
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from hil.base.paths import PROJECT_ROOT
from hil.boards.firmware.build import build
from tests.variants import beyond_limit
from tools.chaos import air, board, broker, host, inputs, security
from tools.chaos.fault import Fault
from tools.chaos.ground import Ground
from tools.chaos.table import lines, page, summary
from tools.chaos.trial import Plan, Row, Trial

OUT = PROJECT_ROOT / "out" / "chaos"
BROKEN = ("hil", "firmware", "fixtures", "reports", "thresholds", "conftest.py", "pytest.ini")
WORKERS = 3  # racks; most of a trial is waiting
KILLS = 100
FAMILIES = (board.FAULTS, air.FAULTS, broker.FAULTS, host.FAULTS, inputs.FAULTS, security.FAULTS)


def plans(seed: int) -> list[Plan]:
    """Return all trials of a seed: each fault; each pair of families; each fault that a run takes, once more
    with a slower firmware, which has to be found; and kills of the run and its parts at random."""
    chance = random.Random(seed)
    faults = list(itertools.chain(*FAMILIES))
    pairs = [
        (chance.choice(_combinable(one)), chance.choice(_combinable(other)))
        for one, other in itertools.combinations(FAMILIES, 2)
    ]
    return [
        *(Plan([fault]) for fault in faults),
        *(Plan(pair) for pair in pairs),
        *(
            Plan([fault], slower=True)
            for fault in faults
            if fault.recovers and fault.suite in ("quick", "pr")
        ),
        *(Plan([host.killed(number)]) for number in range(1, KILLS + 1)),
    ]


def _combinable(family: Sequence[Fault]) -> list[Fault]:
    """Return the faults that let a run come to another one: it takes them, or they come as it measures."""
    alone = [fault for fault in family if fault.command is None and fault.suite == "quick"]
    return [fault for fault in alone if fault.recovers or fault.moment == "measuring"]


def broken(plan: Plan, error: Exception) -> Row:
    """Return the row of a trial that the campaign itself could not make."""
    why = f"the campaign: {type(error).__name__}: {error}"
    return Row(plan.name, plan.faults[-1].moment, why, "a crash", 125, "no", 0.0, 0, [], "not tried", [why])


def version() -> str:
    """Return what is broken, as a digest: a row of other sources is none of this campaign's."""

    def said(*words: str) -> str:
        argv = ["git", *words, "--", *BROKEN]
        return subprocess.run(argv, cwd=PROJECT_ROOT, capture_output=True, text=True, check=True).stdout

    sources = said("ls-tree", "HEAD") + said("diff", "HEAD")
    return hashlib.sha256(sources.encode()).hexdigest()[:12]


class Campaign:
    """The trials of a seed. What is done is kept in ``path``, a row a line, so that a stopped one goes on."""

    def __init__(self, seed: int, path: Path) -> None:
        self.seed, self.path = seed, path
        self.rows: dict[str, Row] = {}
        self._lock = threading.Lock()
        for line in path.read_text().splitlines() if path.exists() else ():
            with suppress(ValueError, TypeError):  # torn, or of another version: it is done again
                row = Row(**json.loads(line))
                self.rows[row.fault] = row

    def forget(self, wanted: Sequence[Plan], *, wrong: bool) -> None:
        """Have the rows made once more that another judge judged, and, where told so, that are ``wrong``."""
        judges = {plan.name: plan.judge for plan in wanted}
        self.rows = {
            name: row
            for name, row in self.rows.items()
            if row.judged == judges.get(name, row.judged) and not (wrong and row.wrong)
        }

    def run(self, wanted: Sequence[Plan], workers: int) -> None:
        """Run what has not been run yet, in an order that the seed gives."""
        left = [plan for plan in wanted if plan.name not in self.rows]
        random.Random(self.seed).shuffle(left)
        kills = [plan for plan in left if plan.faults[0].moment == "any"]
        alone = [plan for plan in left if any(fault.alone for fault in plan.faults)]
        others = [plan for plan in left if plan not in kills and plan not in alone]
        groups = ((True, others, workers), (True, alone, 1), (False, kills, workers))
        images = (build("virtual-esp32", say=lambda _: None), beyond_limit())
        for keeps_rack, plans_of_kind, most in groups:
            waiting: queue.SimpleQueue[Plan] = queue.SimpleQueue()
            for plan in plans_of_kind:
                waiting.put(plan)
            threads = [
                threading.Thread(target=self._work, args=(waiting, images, keeps_rack))
                for _ in range(min(most, len(plans_of_kind)))
            ]
            for thread in threads:
                thread.start()
            try:
                for thread in threads:
                    thread.join()
            finally:
                with suppress(queue.Empty):
                    while True:
                        waiting.get_nowait()
                for thread in threads:  # what has begun is finished, and its rack is ended
                    thread.join()

    def _work(self, waiting: queue.SimpleQueue[Plan], images: tuple[Path, Path], keeps_rack: bool) -> None:
        ground = Ground(*images, keeps_rack=keeps_rack)
        try:
            with suppress(queue.Empty):
                while True:
                    plan = waiting.get_nowait()
                    began = time.monotonic()
                    try:
                        row = self._tried(ground, plan)
                    except Exception as error:  # whatever it is, it is this trial's, and the others go on
                        row = broken(plan, error)
                        ground.remove()
                        ground = Ground(*images, keeps_rack=keeps_rack)
                    row.judged = plan.judge
                    self._keep(row, time.monotonic() - began)
        finally:
            ground.remove()

    def _tried(self, ground: Ground, plan: Plan) -> Row:
        trial = Trial(ground, plan, self.seed)
        row = trial.go()
        return Trial(ground, plan, self.seed, turn=2).go() if trial.says_nothing(row) else row

    def _keep(self, row: Row, took_s: float) -> None:
        with self._lock:
            self.rows[row.fault] = row
            with self.path.open("a") as file:
                file.write(row.to_json() + "\n")
            mark = "✗" if row.wrong else "✓"
            print(f"{mark} {took_s:5.1f} s  {row.fault}  {'; '.join(row.wrong)}".rstrip(), flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", metavar="PATTERN", help="trials whose name it is found in")
    parser.add_argument("--anew", action="store_true", help="begin again, whatever is done")
    parser.add_argument("--again", action="store_true", help="make those again that were wrong")
    parser.add_argument("--workers", type=int, default=WORKERS, help="racks at a time")
    parser.add_argument("--list", action="store_true", help="name the trials")
    options = parser.parse_args(argv)
    wanted = [plan for plan in plans(options.seed) if re.search(options.only, plan.name)]
    if options.list:
        print("\n".join(plan.name for plan in wanted))
        return 0
    if os.geteuid():
        print('It mounts disks and plays other users, which takes root: sudo env "PATH=$PATH" make chaos')
        return 2
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"seed-{options.seed}-{version()}.jsonl"
    if options.anew:
        path.unlink(missing_ok=True)
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))  # so that whoever leaves one is seen
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)  # which a shell's "&" lets all be deaf to
    campaign = Campaign(options.seed, path)
    campaign.forget(wanted, wrong=options.again)
    done, began = len(campaign.rows), time.monotonic()
    try:
        campaign.run(wanted, options.workers)
    except KeyboardInterrupt:
        print("Stopped. The same command goes on from here.")
        return 130
    took = f"{len(campaign.rows) - done} of them took {(time.monotonic() - began) / 60:.0f} minutes."
    rows = [campaign.rows[plan.name] for plan in wanted]
    path.with_suffix(".md").write_text(page(rows), encoding="utf-8")
    width = shutil.get_terminal_size().columns
    print("\n".join(["", *lines(rows, width), "", f"Seed {options.seed}: {summary(rows)} {took}"]))
    return int(any(row.wrong for row in rows))


def _stop(number: int, _frame: object) -> None:
    raise KeyboardInterrupt(number)


if __name__ == "__main__":
    sys.exit(main())
