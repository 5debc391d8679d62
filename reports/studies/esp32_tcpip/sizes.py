# SPDX-License-Identifier: Apache-2.0
"""Sweeps of a size in one direction: which is best, and which cannot be told from it.

With it, what the link is good for: known streams and transfers against published and measured rates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hil.model import RunRecord
from hil.reports.studies.declaration import Application, Study
from hil.reports.studies.document import NONE, Table, number
from hil.reports.studies.esp32_tcpip.rates import (
    BENCH,
    Throughput,
    ascending,
    asked_mss,
    asked_window,
    direction,
    has_own_windows,
    is_plain,
    scope,
    throughput_of,
)
from hil.reports.studies.estimate import ALPHA, NOTHING, Estimate, above
from hil.reports.studies.layout import Figures, lay_out
from hil.reports.studies.records import BoardRun, mean_fact, whole, word

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
        """Return whether the largest size is provably faster than the smallest, slower, or cannot be told."""
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
            for end, told, factor in zip(
                ends, ("slower", "faster"), (1 - _MATERIAL, 1 + _MATERIAL), strict=True
            ):
                beyond = above(mean, means[end].scaled(factor))
                if size not in ends and beyond is (told == "faster"):
                    rate = f"{number(mean.value)} Mbit/s"
                    found.append(f"{size:,} B is {told} than {end:,} B ({rate})")
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


def window_table(study: Study, run: BoardRun) -> Table | None:
    """Return the windows that were asked for, those that the capture shows, and what they allow."""
    lines = [
        {"set_at": f"{way}, {end}", "direction": way, "end": end, "asked_bytes": size, **_window_line(found)}
        for way in ("RX", "TX")
        for end in ("receiver", "sender")
        for size, found in by_size(run, way, _window_at(end)).items()
    ]
    return lay_out(study, "windows", lines)


def _window_at(end: str) -> Callable[[RunRecord], int]:
    return lambda record: asked_window(record, end)


def _window_line(records: Sequence[RunRecord]) -> Figures:
    ours = throughput_of(records)
    seen, flight, rtt_us = (
        mean_fact(records, f"capture_{name}")
        for name in ("window_max_bytes", "in_flight_max_bytes", "rtt_p50_us")
    )
    allowed = seen * 8 / rtt_us if seen and rtt_us else None
    found = {"seen_bytes": seen, "in_flight_bytes": flight, "rtt_us": rtt_us, "window_per_rtt_mbps": allowed}
    return {**found, "mean": ours.mean, "n": ours.n}


def segment_table(study: Study, run: BoardRun) -> Table | None:
    """Return the segment sizes that were asked for and those that crossed the link."""
    seen = {
        "announced_bytes": "syn_mss_bytes",
        "largest_bytes": "mss_bytes",
        "retransmissions": "retransmissions_count",
    }
    lines = []
    for way in ("RX", "TX"):
        for size, found in by_size(run, way, asked_mss).items():
            ours = throughput_of(found)
            captured = {name: mean_fact(found, f"capture_{fact}") for name, fact in seen.items()}
            lines.append({"direction": way, "asked_bytes": size, **captured, "mean": ours.mean, "n": ours.n})
    return lay_out(study, "segments", lines)


def by_size(
    run: BoardRun, way: str, size_of: Callable[[RunRecord], int]
) -> Mapping[float, Sequence[RunRecord]]:
    """Return the TCP tests for a time in a direction that were told a size, ascending."""
    records = [
        record
        for record in run.of(BENCH)
        if word(record, "protocol") == "tcp" and direction(record) == way
        if size_of(record) and not whole(record, "amount_bytes")
    ]
    return ascending(records, size_of)


_WAYS = {"receive": "RX", "send": "TX"}


def tcp_baseline(run: BoardRun, way: str) -> Throughput:
    """Return the plain TCP rates of a direction, all turns together."""
    records = [
        record
        for record in run.of(BENCH)
        if word(record, "protocol") == "tcp" and direction(record) == way and is_plain(record)
        if not record.parameters.get("rate_kbps")
    ]
    return throughput_of(records)


def application_table(study: Study, run: BoardRun) -> Table:
    """Return which applications fit the rate that 95 % of the intervals reach, and the published mean."""
    published = {row.label: row.published for table in study.tables for row in table.rows}
    lines = []
    for application in study.applications:
        way = _WAYS[application.direction]
        theirs, ours = _published(application, published, way), _ours(application, run, way)
        fits = ours.text if ours.value is None else _finding(application, ours.value)
        words = {"need": _need(application), "theirs": _finding(application, theirs), "fits": fits}
        lines.append(
            {"label": application.name, "direction": way, "rate_kbps": application.rate_kbps, **words}
            | {"size_bytes": application.size_bytes, "published_mbps": theirs, "ours_mbps": ours}
        )
    notes = [f"{application.name}: {application.source}." for application in study.applications]
    found = lay_out(study, "applications", lines, notes=notes)
    assert found is not None
    return found


def _published(application: Application, published: Mapping[str, float | None], way: str) -> float | None:
    """Return the published mean that counts for an application: messages go in small segments."""
    if application.kind != "messages":
        return published.get(f"TCP {way}")
    size = f"({application.size_bytes} B of data)"
    return next((rate for label, rate in published.items() if size in label), None)


def _ours(application: Application, run: BoardRun, way: str) -> Estimate:
    """Return the rate that 95 % of the intervals reach, of the case that counts for an application."""
    if application.kind != "messages":
        return tcp_baseline(run, way).floor
    rates = segments(run, way).rates.get(application.size_bytes)
    return rates.floor if rates else NOTHING


def _need(application: Application) -> str:
    if application.kind == "stream":
        return f"{number(application.rate_kbps / 1000)} Mbit/s"
    return f"{application.size_bytes:,} B" + (" each" if application.kind == "messages" else "")


def _finding(application: Application, mbps: float | None) -> str:
    if mbps is None:
        return NONE
    if application.kind == "stream":
        times = mbps * 1000 / application.rate_kbps
        return f"fits {times:,.0f} times" if times >= 2 else "fits once" if times >= 1 else "does not fit"
    bits = application.size_bytes * 8
    if application.kind == "messages":
        return f"up to {mbps * 1e6 / bits:,.0f} a second"
    return f"{number(bits / 1e6 / mbps)} s"
