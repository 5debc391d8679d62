# SPDX-License-Identifier: Apache-2.0
"""Build what the legs of a plan need, and say which command measures a leg.

The bundle of a plan has the firmware of the head in ``head``, of the base in ``base`` and of a night's
references in ``reference/COMMIT``. A base that does not build keeps nobody back: ``base-failure.json`` says
whether it was its sources; where that file is missing too, the leg is undecided.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.base.git import git
from hil.base.paths import PROJECT_FILE
from hil.boards.firmware.failure import write_failure
from hil.boards.firmware.selection import compare_bundles
from hil.ci.plan import COMPARED_TARGET, EMULATED_JOB, EMULATOR_JOB, RACK_JOBS, CiPlan, Leg
from hil.model import BaseCause

NIGHT_BOOTS = 6  # of the head and of the reference, a board
WAIT_S = {"virtual": 60, "compare": 600, "night": 600, EMULATOR_JOB: 600, "rack": 2400, "night-rack": 3600}
HIL = (sys.executable, "-m", "hil")
_FAILURE = "base-failure.json"
_RACK_FILE = "/etc/hil/rack.yaml"
Run = Callable[[Sequence[str], Path], int]


def run_here(words: Sequence[str], folder: Path) -> int:
    """Run a command in a folder; return its status."""
    return subprocess.run([*words], cwd=folder, check=False).returncode


class BuildFailed(Exception):  # noqa: N818 (an answer)
    """A build of the head ended with ``status``; it has said why."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(frozen=True)
class Workshop:
    """The folders of a plan's firmware builds: ``repository`` is the checkout of the head."""

    plan: CiPlan
    repository: Path
    bundle: Path
    run: Run = run_here

    @property
    def folder(self) -> Path:
        """The folder in which the project is measured."""
        return self.repository / self.plan.folder

    def build_chip(self, chip: str) -> None:
        """Build head and base, or head and references, for a chip.

        Raises BuildFailed where the head does not build.
        """
        self._build_head(chip)
        for reference in self.plan.references:
            into = self.bundle / "reference" / reference
            if self._build(chip, self.repository, into, ("--at", reference)):
                shutil.rmtree(into, ignore_errors=True)
        if self.plan.base and not self.plan.references:
            self._build_base(chip)

    def command(self, leg: Leg) -> list[str]:
        """Build what a leg needs besides what was built for its chip; return the command that measures it.

        Raises BuildFailed where the head does not build.
        """
        if leg.job in RACK_JOBS:
            return self._on_rack(leg)
        if leg.job == EMULATED_JOB:
            words = ["cost", "--firmware", str(self.bundle / "head"), "--no-report"]
            return [*words, *self._compared_with(leg)]
        words = ["run", "--suite", leg.suite]
        if leg.job == EMULATOR_JOB:  # in the project's own rack file
            words += ["--target", leg.board_target, "--firmware", str(self.bundle / "head")]
            words += self._compared_with(leg)
        elif leg.job == "night":
            words += ["--boots", str(NIGHT_BOOTS), *self._beside_reference(leg.reference)]
        elif leg.compares_virtually:
            words += ["--target", COMPARED_TARGET, *self._beside_base()]
        elif self.plan.trigger == "nightly" and not self.plan.folder:
            words += [word for board in self.plan.virtual_boards for word in ("--board", board)]
            words += ["--no-report"]
        return [*words, "--wait", str(WAIT_S[leg.job])]

    def _on_rack(self, leg: Leg) -> list[str]:
        words = ["run", "--rack", os.environ.get("HIL_RACK_FILE") or _RACK_FILE, "--target", leg.target]
        words += ["--suite", leg.suite, "--firmware", str(self.bundle / "head")]
        if leg.unchanged:  # by this the rack is qualified: how it judges what nobody changed
            words += ["--unchanged"]
        elif leg.job == "night-rack":
            folder = self.bundle / "reference" / leg.reference
            words += ["--boots", str(NIGHT_BOOTS)]
            words += ["--reference", str(folder)] if leg.reference and folder.is_dir() else []
        else:
            words += self._compared_with(leg)
        return [*words, "--wait", str(WAIT_S["night-rack" if self.plan.trigger == "nightly" else leg.job])]

    def _compared_with(self, leg: Leg) -> list[str]:
        """Return the options by which a leg that was built before is given its base.

        An image beside itself is not booted. So where what measures or judges has changed and the images have
        not, limits judge alone; where the ruler has changed, it is for the run to say that this is all.
        """
        if not self.plan.base:
            return []
        is_judged_anew = not self.plan.may_leave_out and "ruler" not in self.plan.changes
        outcomes = self._outcomes() if is_judged_anew else {}
        differ = any(outcomes.get(image) != "identical" for image in self.plan.images_of(leg))
        return self._base_words() if differ else []

    def _outcomes(self) -> dict[str, str]:
        """Return how each image of the head compares with the base's, nothing where there is no base."""
        head, base = self.bundle / "head", self.bundle / "base"
        found = compare_bundles(head, base) if base.is_dir() else ()
        return {one.target: one.outcome for one in found}

    def _base_words(self) -> list[str]:
        base = self.bundle / "base"
        if base.is_dir():
            return ["--base", str(base)]
        return ["--no-base-because", str(self.bundle / _FAILURE)]

    def _beside_base(self) -> list[str]:
        """Build head and base for the virtual rack; a team's base that is the head's image is none."""
        if not self.plan.folder:
            self._build_base(COMPARED_TARGET)
            return self._base_words()
        self._build_head(COMPARED_TARGET)
        if self._build_base(COMPARED_TARGET) and set(self._outcomes().values()) == {"identical"}:
            said = f"the firmware of the base {self.plan.base} is the head's, byte for byte"
            self._without_base("identical", said)
        return ["--firmware", str(self.bundle / "head"), *self._base_words()]

    def _beside_reference(self, reference: str) -> list[str]:
        """Build a reference for the virtual rack; where it does not build the night has raw values."""
        folder = self.bundle / "reference"
        for target in self.plan.virtual_targets if reference else ():
            if self._build(target, self.repository, folder, ("--at", reference)):
                return []
        return ["--reference", str(folder)] if reference else []

    def _build_head(self, chip: str) -> None:
        if status := self._build(chip, self.repository, self.bundle / "head", ()):
            raise BuildFailed(status)

    def _build_base(self, chip: str) -> bool:
        """Build the base, the tool's with the head's benches; return whether there is one."""
        base = self.bundle / "base"
        shutil.rmtree(base, ignore_errors=True)
        told = ("--failure", str(self.bundle / _FAILURE))
        if not self.plan.folder:
            failed = self._build(
                chip, self.repository, base, ("--at", self.plan.base, "--ruler-of", "HEAD", *told)
            )
        else:
            tree = self.bundle.with_name("base-tree")
            shutil.rmtree(tree, ignore_errors=True)
            git(self.repository, "worktree", "prune")
            words = ("worktree", "add", "--quiet", "--detach", "--force", str(tree), self.plan.base)
            git(self.repository, *words)
            if not (tree / self.plan.folder).is_dir():
                folder = self.plan.folder
                self._without_base("sources", f"the base {self.plan.base} has no folder {folder}")
                return False
            failed = self._build(chip, tree, base, told)
        if failed:  # a part of it would pass for the whole
            shutil.rmtree(base, ignore_errors=True)
        return not failed

    def _without_base(self, cause: BaseCause, sentence: str) -> None:
        """Record why nothing is compared, as `hil build --failure` does."""
        shutil.rmtree(self.bundle / "base", ignore_errors=True)
        write_failure(self.bundle / _FAILURE, cause, sentence)
        print(f"{sentence}; limits alone are judged")

    def _build(self, chip: str, tree: Path, into: Path, more: Sequence[str]) -> int:
        """Build the images of a chip from a tree; return the status of the first build that fails."""
        for words in self._builds(chip, tree):
            done = self.run((*HIL, "build", *words, "--bundle", str(into), *more), tree / self.plan.folder)
            if done:
                return done
        return 0

    def _builds(self, chip: str, tree: Path) -> Iterator[list[str]]:
        virtually = chip.startswith("virtual-") and not self.plan.folder
        for tick_hz in self.plan.compare_ticks_hz if virtually else self.plan.ticks_hz:
            yield ["--target", chip, "--tick-hz", str(tick_hz)]
        if self.plan.product:
            yield ["-C", str(tree / self.plan.product), "--target", chip]


def out_of(folder: Path) -> Path:
    """Return where the project of a folder has its results."""
    roots = [root for root in (folder, *folder.parents) if (root / PROJECT_FILE).is_file()]
    return (roots or [folder])[0] / "out"


def environment_of(plan: CiPlan) -> dict[str, str]:
    """Return the variables that a measurement takes from its plan; legs share alpha."""
    return {"HIL_TRIGGER": plan.trigger, "HIL_BASE_SHA": plan.base, "HIL_LEGS": str(plan.legs_of_alpha)}
