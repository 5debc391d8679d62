# SPDX-License-Identifier: Apache-2.0
"""``make bench-gate-rack``: the gate end to end, by real runs on the virtual rack under simulated noise.

    python -m tools.bench.gate_rack --judgements 100 --boards 2 --noise typical --out out/gate-rack

Whole runs of ``hil run … --base …``, each bounded in time, of unchanged firmware and of firmware that is 15 %
slower, until each has been judged so often. What is done is kept in ``OUT/runs.jsonl``: the same command goes
on where it was stopped. All figures are virtual, the noise is simulated. With ``--short`` each is done once
anew, and nothing is kept.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from hil.boards.firmware.build import build
from tests.gate.gate_lab import Judged, open_gate_lab, suites
from tests.lab import ROOT
from tests.variants import FIFTEEN_PER_CENT_US, late_publish, renamed
from tools.bench.figure import SHORT_PASS, fails, show, wide_console
from tools.bench.gate_rack_figures import Done, Step, figure, kept

OUT = ROOT / "out" / "bench" / "gate-rack"
PAYLOADS = (128, 256, 512, 1024, 2048, 3072)
COUNT, INTERVAL_US = 60, 5_000
SHORT_PAYLOADS = PAYLOADS[:1]
SHORT = {"judgements": 1, "noise": "quiet"}
STEPS = (Step("unchanged", "unchanged", "pass"), Step("slower", "+15 % publish latency", "regressed"))


@dataclass(frozen=True)
class Bench:
    """What both steps share; ``candidates`` are the firmwares by step."""

    options: argparse.Namespace
    base: Path
    candidates: dict[str, Path]

    def measure(self, step: Step, number: int) -> Judged:
        """Do one run of a step."""
        options = self.options
        payloads = SHORT_PAYLOADS if options.short else PAYLOADS
        folder = options.out / f"rack{options.boards}"
        lab = open_gate_lab(folder, options.boards, suites(payloads, COUNT, INTERVAL_US))
        session = f"{step.name}-{number}"
        lab.set_noise(f"{{profile: {options.noise}, seed: {options.seed}, session: {session}}}")
        return lab.compare(self.candidates[step.name], self.base)


def main() -> int:
    options = arguments()
    if not options.short:
        return measure_all(options)
    vars(options).update(SHORT)
    with tempfile.TemporaryDirectory(prefix="hil-gate-") as name:
        options.out = Path(name)
        return measure_all(options)


def measure_all(options: argparse.Namespace) -> int:
    """Do both steps and show them; return the exit status."""
    console = wide_console()
    if options.short:
        console.print(f"{SHORT_PASS}\n")
    options.out.mkdir(parents=True, exist_ok=True)
    base = build("virtual-esp32", say=lambda _sentence: None)
    bench = Bench(options, base, dict(candidates(base)))
    for step in STEPS:
        run_step(bench, step, console)
    found = figure(STEPS, kept(options.out / "runs.jsonl"), options.noise)
    show(console, found)
    return 1 if fails(found, short=options.short) else 0


def candidates(base: Path) -> Iterator[tuple[str, Path]]:
    """Yield the firmware that each step compares with the base."""
    yield "unchanged", renamed(base, "0.0.0-same")
    yield "slower", late_publish(FIFTEEN_PER_CENT_US)


def run_step(bench: Bench, step: Step, console: Console) -> None:
    """Do what is not done yet of a step."""
    path = bench.options.out / "runs.jsonl"
    done = [one for one in kept(path) if one.step == step.name]
    while sum(one.judgements for one in done) < bench.options.judgements:
        judged = bench.measure(step, len(done))
        one = Done.of(step.name, judged)
        with path.open("a", encoding="utf-8") as file:
            file.write(one.to_json() + "\n")
        done.append(one)
        console.print(f"{step.name} {len(done)}: {one.sentence()}", markup=False, highlight=False)
        if one.failed:
            console.print(judged.said[-2000:], markup=False)
            raise SystemExit(f"run {judged.path} ended with {judged.exit_code} and no comparison; stopped.")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.bench.gate_rack", description=__doc__)
    parser.add_argument(
        "--judgements", type=int, default=100, help="comparisons of unchanged firmware, and of +15 %%"
    )
    parser.add_argument("--boards", type=int, default=2)
    parser.add_argument("--noise", default="typical", help="quiet, typical or noisy")
    parser.add_argument("--seed", type=int, default=1, help="of the noise")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument(
        "--short", action="store_true", help="one run of each: whether it works, not for docs"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
