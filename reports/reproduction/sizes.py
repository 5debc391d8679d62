"""Sweeps of a size in one direction: which is best, and which cannot be told from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hil.model import RunRecord
from reports.reproduction.document import number
from reports.reproduction.estimate import ALPHA, Estimate, above
from reports.reproduction.records import BoardRun
from reports.reproduction.seen import by_size
from reports.reproduction.throughput import (
    Throughput,
    asked_mss,
    asked_window,
    has_own_windows,
    scope,
    throughput_of,
)

_MATERIAL = 0.05  # of a rate: what a size must make besides being provable, to count against a claim
WORDS = {"RX": "receiving", "TX": "sending"}


@dataclass(frozen=True)
class Sweep:
    """Rates by size, ascending; ``noun`` is what the size is of."""

    noun: str
    way: str
    rates: Mapping[int, Throughput]

    @property
    def told(self) -> Mapping[int, Throughput]:
        """The sizes with enough intervals to bound their mean."""
        return {size: rate for size, rate in self.rates.items() if rate.mean.is_bounded}

    @property
    def means(self) -> Mapping[int, Estimate]:
        """The mean of each size, with bounds that hold for all of them together."""
        told = self.told
        return {size: rate.mean_at(ALPHA / len(told)) for size, rate in told.items()}

    @property
    def best(self) -> int | None:
        means = self.means
        return max(means, key=lambda size: means[size].value or 0.0) if means else None

    def equals(self) -> list[int]:
        """Return the other sizes that cannot be told apart from the best."""
        best = self.best
        if best is None:
            return []
        means = self.means
        return [size for size, found in means.items() if size != best and above(means[best], found) is None]

    def sentence(self) -> str:
        """Say which size is best, and honestly which may be."""
        best = self.best
        if best is None or len(self.told) < 2:
            head = f"The best {self.noun} for {WORDS[self.way]} cannot be told"
            return f"{head}: fewer than two sizes were measured often enough."
        equals = self.equals()
        head = f"For {WORDS[self.way]}, the best {self.noun} of {len(self.told)} is {best:,} B"
        head += f" at {self.told[best].mean.text} Mbit/s"
        if not equals:
            return f"{head}; every other one is provably slower{scope(self.told.values())}."
        listed = _listed([f"{size:,}" for size in sorted([best, *equals])])
        return f"{head}, but {listed} B cannot be told apart."

    def large_wins(self) -> bool | None:
        """Say whether the largest size is provably faster than the smallest, slower, or cannot be told."""
        sizes = list(self.told)
        return above(self.told[sizes[-1]].mean, self.told[sizes[0]].mean) if len(sizes) > 1 else None

    def outliers(self) -> list[str]:
        """Say which sizes between are provably, and by more than _MATERIAL, beyond the smallest and largest.

        Where the largest is faster than the smallest, one that is faster than the largest says that smaller
        is better there; and one that is slower than the smallest the same.
        """
        means = self.means
        if len(means) < 3:
            return []
        ends = sorted((min(means), max(means)), key=lambda size: means[size].value or 0.0)
        found = []
        for size, mean in means.items():
            for end, word, factor in zip(
                ends, ("slower", "faster"), (1 - _MATERIAL, 1 + _MATERIAL), strict=True
            ):
                beyond = above(mean, means[end].scaled(factor))
                if size not in ends and beyond is (word == "faster"):
                    rate = f"{number(mean.value)} Mbit/s"
                    found.append(f"{size:,} B is {word} than {end:,} B ({rate})")
        return found

    def ends(self) -> str:
        """Return the smallest and the largest size with their rates."""
        told = self.told
        if len(told) < 2:
            return "fewer than two sizes were measured"
        ends = [min(told), max(told)]
        return " and ".join(f"{number(told[size].mean.value)} Mbit/s at {size:,} B" for size in ends)


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"


def segments(run: BoardRun, way: str) -> Sweep:
    """Return the sweep of segment sizes over TCP, the windows being the stacks' own."""
    return _sweep(
        run, way, "package size", lambda record: asked_mss(record) if has_own_windows(record) else 0
    )


def windows(run: BoardRun, way: str) -> Sweep:
    """Return the sweep of the receiver's window over TCP, the segments being as large as they are."""
    return _sweep(run, way, "receive window", lambda record: 0 if asked_mss(record) else asked_window(record))


def _sweep(run: BoardRun, way: str, noun: str, size_of: Callable[[RunRecord], int]) -> Sweep:
    """Return the rates by a size; 0 says that a test is none of the sweep."""
    sizes = by_size(run, way, size_of)
    return Sweep(noun, way, {int(size): throughput_of(found) for size, found in sizes.items()})
