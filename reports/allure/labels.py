"""Parts that charts share: what stands under the title, the legend of boots, limits off the chart."""

from __future__ import annotations

from collections.abc import Sequence

from hil.reports.allure.figure import LINES, Figure, text_width
from hil.reports.allure.samples import Mark, Samples

BOOTS_NAMED = 6
FOOT, ROW = 54, 18
_FAR = 4.0


def subtitle(samples: Samples) -> str:
    """Return "done_us − planned_us, 200 samples, 1 boot, 10 warm-up rows left out"."""
    boots = len(samples.boots)
    warmup = sum(row.warmup for _, boot in samples.boots for row in boot)
    formula = f"{samples.formula} by {samples.clock}" if samples.clock else samples.formula
    parts = [formula, f"{samples.counted} samples", f"{boots} boot{'' if boots == 1 else 's'}"]
    if warmup:
        parts.append(f"{warmup} warm-up row{'' if warmup == 1 else 's'} left out")
    if samples.failed:
        parts.append(f"{samples.failed} failed or timed out, counted as slower than all")
    if samples.void:
        parts.append(f"{samples.void} void and left out, for the host was late")
    if samples.beyond:
        parts.append(f"{' and '.join(samples.beyond)} among them")
    return ", ".join(parts)


def boot_colour(position: int) -> str:
    return LINES[position % len(LINES)]


def footer_rows(samples: Samples, far: Sequence[Mark]) -> int:
    """Return how many rows draw_footer needs below the axis."""
    return int(len(samples.boots) > 1) + int(bool(far))


def draw_footer(figure: Figure, samples: Samples, far: Sequence[Mark], x: float, y: float) -> None:
    """Write below the axis, up to ``x``, which boot has which colour and which limits have no place."""
    if len(samples.boots) > 1:
        _boot_legend(figure, samples, x, y)
        y += ROW
    if far:
        figure.text(x, y, f"off the chart: {'; '.join(mark.text for mark in far)}", anchor="end")


def _boot_legend(figure: Figure, samples: Samples, x: float, y: float) -> None:
    """Name the first boots in a row that ends at ``x``; the others are counted."""
    names = [f"boot {index}" for index, _ in samples.boots[:BOOTS_NAMED]]
    rest = len(samples.boots) - len(names)
    if rest:
        figure.text(x, y, f"and {rest} more", anchor="end")
        x -= text_width(f"and {rest} more") + 10
    for position, name in reversed(list(enumerate(names))):
        figure.text(x, y, name, anchor="end")
        x -= text_width(name) + 4
        figure.line((x - 16, y - 4), (x, y - 4), stroke=boot_colour(position), width=2.5)
        x -= 28


def near_and_far(samples: Samples) -> tuple[list[Mark], list[Mark]]:
    """Return the limits that a linear axis can hold without squeezing the samples, and the others."""
    reach = max(map(abs, samples.values)) * _FAR
    near = [mark for mark in samples.limits if samples.log or abs(mark.value) <= reach]
    return near, [mark for mark in samples.limits if mark not in near]


def rows_of_labels(spans: Sequence[tuple[float, float]], gap: float = 8) -> list[int]:
    """Return for each (left, right) a row, from 0 at the top, in which it touches no other.

    A line goes down from each left end, so a label that reaches beyond another's left end stands above it.
    """
    found: dict[int, int] = {}
    for index in sorted(range(len(spans)), key=lambda at: spans[at][0]):
        over = [row for other, row in found.items() if spans[other][1] + gap > spans[index][0]]
        found[index] = max(over, default=-1) + 1
    return [found[index] for index in range(len(spans))]
