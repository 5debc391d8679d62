# SPDX-License-Identifier: Apache-2.0
"""Current over time: spans of it, a track of bounded size, and what a window of a track holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from hil.base.numeric import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SPANS_MAX = 60_000  # 10 minutes in steps of 10 ms; beyond it each two become one

Window = tuple[float, float]  # from, until: seconds


@dataclass(frozen=True)
class Spans:
    """What a meter saw, span after span; arrays of one length.

    ``start_s`` and ``end_s`` are by the clock of the meter (its ``origin_s``). ``mean_ua`` and ``peak_ua``
    are of each span, ``mv`` is the voltage there; ``saturated`` counts samples beyond the meter's range,
    ``lost_s`` is the time of those that did not arrive.
    """

    start_s: NDArray[np.float64]
    end_s: NDArray[np.float64]
    mean_ua: NDArray[np.float64]
    peak_ua: NDArray[np.float64]
    mv: NDArray[np.float64]
    saturated: NDArray[np.int64]
    lost_s: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.start_s)


def no_spans() -> Spans:
    none = np.empty(0)
    return Spans(none, none, none, none, none, np.empty(0, np.int64), none)


def joined(parts: Sequence[Spans]) -> Spans:
    """Return spans that follow one another as one."""
    parts = parts or [no_spans()]
    columns: list[Any] = [
        np.concatenate([getattr(part, item.name) for part in parts]) for item in fields(Spans)
    ]
    return Spans(*columns)


@dataclass(frozen=True)
class DrawnCurrent:
    """What a board drew in some windows: ``energy_uj`` over ``seen_s`` of their ``of_s``."""

    mean_ua: float
    peak_ua: float
    energy_uj: float
    seen_s: float
    of_s: float
    saturated: int


class Track:
    """Spans in the order of their time, SPANS_MAX at most: then each two neighbours become one."""

    def __init__(self, most: int = SPANS_MAX) -> None:
        self._most = most
        self._parts: list[Spans] = []
        self._count = 0

    def add(self, spans: Spans) -> None:
        if len(spans):
            self._parts.append(spans)
            self._count += len(spans)
        if self._count > self._most:
            self._parts = [_halved(self.spans())]
            self._count = len(self._parts[0])

    def spans(self) -> Spans:
        """Return all of it as one."""
        if len(self._parts) != 1:
            self._parts = [joined(self._parts)]
        return self._parts[0]


def _halved(spans: Spans) -> Spans:
    """Join each two neighbours, which touch one another or nearly so; the charge stays what it was."""
    odd = len(spans) % 2  # the last stays alone
    whole, first, second = len(spans) - odd, slice(0, len(spans) - odd, 2), slice(1, None, 2)
    width = spans.end_s - spans.start_s
    both = np.maximum(width[first] + width[second], 1e-12)

    def weighted(values: NDArray[np.float64]) -> NDArray[np.float64]:
        paired = (values[first] * width[first] + values[second] * width[second]) / both
        return np.concatenate([paired, values[whole:]])

    def kept(values: NDArray[Any], paired: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([paired, values[whole:]])

    peaks, saturated, lost_s = spans.peak_ua, spans.saturated, spans.lost_s
    return Spans(
        start_s=kept(spans.start_s, spans.start_s[first]),
        end_s=kept(spans.end_s, spans.end_s[second]),
        mean_ua=weighted(spans.mean_ua),
        peak_ua=kept(peaks, np.maximum(peaks[first], peaks[second])),
        mv=weighted(spans.mv),
        saturated=kept(saturated, saturated[first] + saturated[second]),
        lost_s=kept(lost_s, lost_s[first] + lost_s[second]),
    )


def drawn_in(spans: Spans, windows: Sequence[Window]) -> DrawnCurrent:
    """Integrate over windows in the spans' own seconds; a span that reaches beyond one counts by its part.

    Energy is voltage times current: µA · mV = nW, so that a second of it is a thousandth of a µJ.
    """
    overlap = np.zeros(len(spans))
    for start, end in windows:
        inside = np.minimum(spans.end_s, end) - np.maximum(spans.start_s, start)
        overlap += np.maximum(inside, 0.0)
    covered_s = float(overlap.sum())
    touched = overlap > 0
    charge_ua_s = float((spans.mean_ua * overlap).sum())
    return DrawnCurrent(
        mean_ua=charge_ua_s / covered_s if covered_s else 0.0,
        peak_ua=float(spans.peak_ua[touched].max(initial=0.0)),
        energy_uj=float((spans.mean_ua * spans.mv * overlap).sum()) / 1000,
        seen_s=covered_s - float(spans.lost_s[touched].sum()),
        of_s=sum(end - start for start, end in windows),
        saturated=int(spans.saturated[touched].sum()),
    )
