# SPDX-License-Identifier: Apache-2.0
"""What came of the runs of tools.bench.gate_rack: kept a line a run, shown a row a step."""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.gate.gate_lab import Judged
from tools.bench.figure import Figure

COLUMNS = (
    "virtual", "runs", "judged", "pass", "regressed", "undecided", "boots", "most", "minutes", "as aimed",
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """Runs of one kind; ``aim`` is what each of them shall be judged."""

    name: str
    words: str
    aim: str


@dataclass(frozen=True)
class Done:
    """One run: its blocking comparisons' outcomes and what it cost."""

    step: str
    run: str
    exit_code: int
    seconds: float
    boots: int
    outcomes: tuple[str, ...]
    changes: tuple[float, ...]
    looks: tuple[int, ...]

    @classmethod
    def of(cls, step: str, judged: Judged) -> Done:
        blocking = judged.blocking
        return cls(
            step=step,
            run=judged.path.name,
            exit_code=judged.exit_code,
            seconds=round(judged.seconds, 1),
            boots=judged.boots,
            outcomes=tuple(judged.outcomes()),
            changes=tuple(round(one["change"], 4) for one in blocking if one["change"] is not None),
            looks=tuple(one["look"] for one in blocking),
        )

    @property
    def judgements(self) -> int:
        return sum(outcome != "no-baseline" for outcome in self.outcomes)

    @property
    def failed(self) -> bool:
        """Nothing was compared, in a run that was to compare."""
        return not self.outcomes

    def count(self, outcome: str) -> int:
        return self.outcomes.count(outcome)

    def sentence(self) -> str:
        words = ", ".join(f"{self.count(name)} {name}" for name in dict.fromkeys(self.outcomes))
        return f"{words}; {self.boots} boots a board, {self.seconds:.0f} s (virtual)"

    def as_aimed(self, aim: str) -> bool:
        """Return whether a run came out as it should: a change is caught where one comparison blocks."""
        if aim == "regressed":
            return self.exit_code == 1 and "regressed" in self.outcomes
        return "regressed" not in self.outcomes

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))


def kept(path: Path) -> list[Done]:
    """Return the runs that were done before."""
    if not path.is_file():
        return []
    return [_read(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _read(line: str) -> Done:
    values: dict[str, Any] = json.loads(line)
    return Done(**{key: _frozen(value) for key, value in values.items()})


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def figure(steps: Sequence[Step], runs: Sequence[Done], noise: str) -> Figure:
    """Return a row a step; missed are the steps that did not come out as aimed."""
    rows, missed = [], []
    for step in steps:
        own = [one for one in runs if one.step == step.name]
        if not own:
            missed.append(f"{step.words}: not measured")
            continue
        aimed = sum(one.as_aimed(step.aim) for one in own)
        rows.append(_row(step, own, aimed))
        if aimed < len(own):
            missed.append(f"{step.words}: {len(own) - aimed} of {len(own)} runs did not come out as aimed")
    blocked = sum(one.exit_code == 1 for one in runs if one.step == "unchanged")
    judged = sum(one.judgements for one in runs if one.step == "unchanged")
    note = (
        f"Virtual boards, simulated noise ({noise}): {blocked} of the unchanged runs blocked falsely, in "
        f"{judged} judgements. A judgement is one metric of one case on all boards of a run; those of "
        "one run share boots, which are given a board; minutes are those of a run."
    )
    return Figure("The gate end to end (virtual, simulated noise)", COLUMNS, rows, note, missed)


def _row(step: Step, runs: Sequence[Done], aimed: int) -> tuple[str, ...]:
    boots = [one.boots for one in runs]
    counts = [sum(one.count(name) for one in runs) for name in ("pass", "regressed", "undecided")]
    return (
        step.words,
        str(len(runs)),
        str(sum(one.judgements for one in runs)),
        *map(str, counts),
        f"{statistics.fmean(boots):.1f}" if any(boots) else "-",
        str(max(boots)) if any(boots) else "-",
        f"{statistics.fmean(one.seconds for one in runs) / 60:.1f}",
        f"{aimed} of {len(runs)}",
    )
