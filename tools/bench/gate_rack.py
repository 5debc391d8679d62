# SPDX-License-Identifier: Apache-2.0
"""``make bench-gate-rack``: the gate end to end, by real runs on the virtual rack under simulated noise.

    python -m tools.bench.gate_rack --judgements 100 --boards 2 --noise typical --out out/gate-rack

Every step is a number of whole ``hil run … --base …``, each bounded in time. What is done is kept in
``OUT/runs.jsonl``: the same command goes on where it was stopped. All figures are virtual, the noise is
simulated. With ``--short`` a few runs are done anew, and nothing is kept.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from hil.boards.firmware.build import build
from tests.gate.gate_lab import LAB_DELAY_US, GateLab, Judged, open_gate_lab, suites
from tests.lab import ROOT
from tests.variants import FIFTEEN_PER_CENT_US, late_publish, renamed
from tools.bench.figure import SHORT_PASS, fails, show, wide_console
from tools.bench.gate_rack_figures import Done, figure, kept

OUT = ROOT / "out" / "bench" / "gate-rack"
PAYLOADS = (128, 256, 512, 1024, 2048, 3072)
COUNT, INTERVAL_US = 60, 5_000
SHORT_PAYLOADS = PAYLOADS[:1]
SHORT = {"judgements": 2, "noise": "quiet", "only": ["unchanged"]}


@dataclass(frozen=True)
class Step:
    """A number of runs of one kind; ``aim`` is what each of them shall be judged."""

    name: str
    words: str
    aim: str
    runs: Callable[[int, int], bool]  # (runs, judgements) done → whether another one is wanted
    noise: Callable[[int], str]  # number of the run → the rack file's section
    firmware: str = "same"
    boards: int = 0  # 0: as many as asked for
    hand: bool = False


@dataclass(frozen=True)
class Bench:
    """What all steps share."""

    options: argparse.Namespace
    base: Path
    variants: dict[str, Path]

    def lab(self, step: Step) -> GateLab:
        """Return the rack of a step."""
        count = step.boards or self.options.boards
        folder = self.options.out / f"rack{count}"
        payloads = SHORT_PAYLOADS if self.options.short else PAYLOADS
        return open_gate_lab(folder, count, suites(payloads, COUNT, INTERVAL_US))

    def measure(self, step: Step, number: int) -> Judged:
        """Do one run of a step."""
        lab = self.lab(step)
        lab.set_noise(step.noise(number))
        candidate = self.variants[step.firmware]
        if not step.hand:
            return lab.compare(candidate, self.base)
        with lab.air_changed_by_hand(round(LAB_DELAY_US * 1.15), after_records=4 * len(PAYLOADS)):
            return lab.compare(candidate, self.base)


def steps(options: argparse.Namespace) -> Iterator[Step]:
    """Yield what is to be done, in order."""

    def noise(name: str, more: str = "") -> Callable[[int], str]:
        return lambda number: (
            f"{{profile: {options.noise}, seed: {options.seed}, session: {name}-{number}{more}}}"
        )

    def times(count: int) -> Callable[[int, int], bool]:
        return lambda runs, _judgements: runs < count

    def until(count: int) -> Callable[[int, int], bool]:
        return lambda _runs, judgements: judgements < count

    enough, again = until(options.judgements), times(options.repeats)
    yield Step("unchanged", "unchanged", "pass", enough, noise("unchanged"))
    yield Step("slower", "+15 % publish latency", "regressed", enough, noise("slower"), "slower")
    yield Step("hand", "air changed by hand in the run", "undecided", again, noise("hand"), hand=True)
    drift = noise("drift", ", drift: {board: b2, per_boot: 2 %}")
    yield Step("drift", "one of three boards drifts by 2 % a boot", "pass", again, drift, boards=3)
    fall = noise("fall", ", drift: {board: b2, step: 40 %, at_boot: 3}")
    words = "one of three boards is 40 % slower from its 4th boot on"
    yield Step("fall", words, "odd", again, fall, boards=3)


def main() -> int:
    options = arguments()
    if not options.short:
        return measure_all(options)
    vars(options).update(SHORT)
    with tempfile.TemporaryDirectory(prefix="hil-gate-") as name:
        options.out = Path(name)
        return measure_all(options)


def measure_all(options: argparse.Namespace) -> int:
    """Do the steps and show them; return the exit status."""
    console = wide_console()
    if options.short:
        console.print(f"{SHORT_PASS}\n")
    options.out.mkdir(parents=True, exist_ok=True)
    base = build("virtual-esp32", say=lambda _sentence: None)
    bench = Bench(options, base, dict(variants(base, options)))
    wanted = [step for step in steps(options) if not options.only or step.name in options.only]
    for step in wanted:
        run_step(bench, step, console)
    shown = wanted if options.short else list(steps(options))
    found = figure(shown, kept(options.out / "runs.jsonl"), options.noise)
    show(console, found)
    return 1 if fails(found, short=options.short) else 0


def variants(base: Path, options: argparse.Namespace) -> Iterator[tuple[str, Path]]:
    """Yield the firmwares that the steps compare, by name."""
    yield "same", renamed(base, "0.0.0-same")
    if not options.short:
        yield "slower", late_publish(FIFTEEN_PER_CENT_US)


def run_step(bench: Bench, step: Step, console: Console) -> None:
    """Do what is not done yet of a step."""
    path = bench.options.out / "runs.jsonl"
    done = [one for one in kept(path) if one.step == step.name]
    while step.runs(len(done), sum(one.judgements for one in done)):
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
    parser.add_argument("--repeats", type=int, default=3, help="runs of each other step")
    parser.add_argument(
        "--only", action="append", default=[], metavar="STEP", help="do this step; repeatable"
    )
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--short", action="store_true", help="one run: whether it works, not for docs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
