# SPDX-License-Identifier: Apache-2.0
"""Every static chart of the reports is drawn with this: SVG elements, axes, ticks at round numbers.

A Figure has a light panel of its own, which keeps it legible on Allure's light and dark pages: an image
cannot see their switch. Each of its marks says in data attributes which number it stands for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

INK = "#24292f"
SOFT = "#57606a"
GRID = "#e6e9ed"
BAR = "#a9c8e8"
LIMIT = "#c62828"
STATISTIC = "#4527a0"
COLD = "#b4bac2"
# Okabe and Ito, which colour-blind people can tell apart; yellow left out, for it is faint on white
LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
FONT_PX = 12
# of DejaVu Sans, the widest of the fonts below, at FONT_PX: most of what is written is digits and lower case
_NARROW, _NARROW_PX = " .,:;|'()[]-ijlfrt", 4.8
_WIDE, _WIDE_PX = "mMwW%@", 11.8
_CHARACTER_PX = 7.7
_BOLD = 1.11
_MARGIN = 16
_TITLE_PX, _TITLE_LINE, _LINE = 15, 20, 17
_WORD = re.compile(r"[^ ,]*[ ,]*")
# the more dots there are, the coarser the grid on which those that lie on one another are drawn once
_GRIDS_PX = ((2_000, 0.5), (10_000, 1.0))
_COARSEST_PX = 2.0

Point = tuple[float, float]


def text_width(text: str, size: int = FONT_PX, *, bold: bool = False) -> float:
    """Return at most how wide a text is in pixels."""
    return sum(map(_character_px, text)) * size / FONT_PX * (_BOLD if bold else 1)


def _character_px(character: str) -> float:
    if character in _NARROW:
        return _NARROW_PX
    return _WIDE_PX if character in _WIDE else _CHARACTER_PX


def wrapped(text: str, width: float, size: int = FONT_PX, *, bold: bool = False) -> list[str]:
    """Break a text into lines, after spaces and commas."""
    lines = [""]
    for word in _WORD.findall(text):
        if lines[-1] and text_width(f"{lines[-1]}{word}".rstrip(), size, bold=bold) > width:
            lines.append("")
        lines[-1] += word
    return [line.rstrip() for line in lines]


class Heading:
    """Title and subtitle of a figure, broken into lines; ``height`` is the room that they take."""

    def __init__(self, title: str, subtitle: str, width: int) -> None:
        self.width = width
        self.titles = wrapped(title, width - 2 * _MARGIN, _TITLE_PX, bold=True)
        self.subtitles = wrapped(subtitle, width - 2 * _MARGIN)
        self.height = 12 + _TITLE_LINE * len(self.titles) + _LINE * len(self.subtitles)

    def draw(self, figure: Figure) -> None:
        y = 4
        for line in self.titles:
            y += _TITLE_LINE
            figure.text(_MARGIN, y, line, fill=INK, size=_TITLE_PX, weight="600")
        for line in self.subtitles:
            y += _LINE
            figure.text(_MARGIN, y, line)


class Svg:
    """Collects elements of a drawing of ``width`` × ``height`` pixels."""

    def __init__(self, width: float, height: float, /, **attributes: object) -> None:
        size = {"width": _written(width), "height": _written(height)}
        box = {"viewBox": f"0 0 {size['width']} {size['height']}"}
        names = {"xmlns": "http://www.w3.org/2000/svg"}
        self._root = ET.Element("svg", {**names, **size, **box, **_attributes(attributes), "role": "img"})

    def add(self, tag: str, text: str = "", /, **attributes: object) -> ET.Element:
        """Add an element; ``class_`` is its class, and an attribute without a value is left out."""
        element = ET.SubElement(self._root, tag, _attributes(attributes))
        element.text = text or None
        return element

    def polyline(self, points: Iterable[Point], **attributes: object) -> None:
        """Draw a line through ``points``, one at least."""
        drawn = " ".join(f"{_written(x)},{_written(y)}" for x, y in points)
        self.add("polyline", **attributes, points=drawn)

    def to_text(self) -> str:
        """Return the drawing as an element of an HTML page."""
        return ET.tostring(self._root, encoding="unicode")

    def to_bytes(self) -> bytes:
        """Return the drawing as a file."""
        ET.indent(self._root, " ")
        return f"{self.to_text()}\n".encode()


def _attributes(attributes: Mapping[str, object]) -> dict[str, str]:
    texts = {name.rstrip("_").replace("_", "-"): _written(value) for name, value in attributes.items()}
    return {name: text for name, text in texts.items() if text}


class Figure(Svg):
    """A chart on a panel, below its heading."""

    def __init__(self, heading: Heading, height: float) -> None:
        width = heading.width
        fonts = "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
        super().__init__(width, height, font_family=fonts, font_size=FONT_PX)
        self.add("title", " ".join(heading.titles))
        self.add("rect", x=0.5, y=0.5, width=width - 1, height=height - 1, rx=6, fill="#ffffff", stroke=GRID)
        heading.draw(self)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        anchor: str = "start",
        fill: str = SOFT,
        size: int = FONT_PX,
        weight: str = "",
        turned: bool = False,
    ) -> None:
        """Write a text whose base line is at ``y``; ``turned`` reads from bottom to top."""
        turn = f"rotate(-90 {_written(x)} {_written(y)})" if turned else ""
        style = {"text_anchor": anchor, "fill": fill, "font_size": size, "font_weight": weight}
        self.add("text", text, x=x, y=y, transform=turn, **style)

    def line(self, start: Point, end: Point, *, stroke: str, width: float = 1, **more: object) -> None:
        places = {"x1": start[0], "y1": start[1], "x2": end[0], "y2": end[1]}
        self.add("line", stroke=stroke, stroke_width=width, **places, **more)

    def rect(self, corner: Point, width: float, height: float, *, fill: str, **more: object) -> None:
        self.add("rect", x=corner[0], y=corner[1], width=width, height=height, fill=fill, **more)

    def stairs(self, points: Iterable[Point], *, stroke: str, width: float = 1.75, **more: object) -> None:
        """Draw lines that go right first and then up."""
        (x, y), *rest = points
        path = f"M{_written(x)} {_written(y)}" + "".join(f"H{_written(x)}V{_written(y)}" for x, y in rest)
        self.add("path", d=path, fill="none", stroke=stroke, stroke_width=width, **more)

    def dots(self, points: Sequence[Point], *, fill: str, size: float = 3.5, **more: object) -> None:
        """Draw round dots; those that would lie on one another are drawn once."""
        places = _distinct(points)
        path = "".join(f"M{_written(x)} {_written(y)}h0" for x, y in places)
        style = {"stroke": fill, "stroke_width": size, "stroke_linecap": "round", "fill": "none"}
        self.add("path", d=path, **style, **more)

    def crosses(self, points: Sequence[Point], *, stroke: str, size: float = 4, **more: object) -> None:
        path = "".join(
            f"M{_written(x - size)} {_written(y - size)}l{_written(2 * size)} {_written(2 * size)}"
            f"m{_written(-2 * size)} 0l{_written(2 * size)} {_written(-2 * size)}"
            for x, y in _distinct(points)
        )
        self.add("path", d=path, fill="none", stroke=stroke, stroke_width=1.5, **more)


def _distinct(points: Sequence[Point]) -> list[Point]:
    grid = next((px for count, px in _GRIDS_PX if len(points) <= count), _COARSEST_PX)
    return list(dict.fromkeys((round(x / grid) * grid, round(y / grid) * grid) for x, y in points))


def _written(value: object) -> str:
    """Write a number with as few digits as a screen can show."""
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(value)


_LOG_FROM_RATIO = 4.0  # below it a logarithmic axis looks like a linear one, with odder ticks
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_LOG_STEPS = ((1,), (1, 3), (1, 2, 5), (1, 2, 3, 5, 7), tuple(range(1, 10)))
_ROUNDING = 1e-9
_SPACE, _SPACE_FROM_ZERO = 0.04, 0.06  # of what the values span, beyond the outermost


@dataclass(frozen=True)
class Axis:
    """Maps ``low`` … ``high`` to ``start_px`` … ``end_px``; a y axis starts at the bottom."""

    low: float
    high: float
    start_px: float
    end_px: float
    log: bool = False

    def px(self, value: float) -> float:
        low, high, at = (self._scaled(number) for number in (self.low, self.high, value))
        return self.start_px + (at - low) / (high - low) * (self.end_px - self.start_px)

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def holds(self, value: float) -> bool:
        margin = abs(self.high - self.low) * _ROUNDING
        return self.low - margin <= value <= self.high + margin

    def ticks(self, count: int) -> list[float]:
        """Return about ``count`` round numbers within the axis."""
        if self.log:
            return log_ticks(self.low, self.high, count)
        return linear_ticks(self.low, self.high, count)


def wants_log(values: Sequence[float]) -> bool:
    """Return whether values spread so far that a logarithmic axis shows them better."""
    return bool(values) and min(values) > 0 and max(values) / min(values) >= _LOG_FROM_RATIO


def padded(values: Sequence[float], *, log: bool) -> tuple[float, float]:
    """Return the ends of an axis that holds ``values``, with some space beyond the outermost."""
    low, high = min(values), max(values)
    if log:
        stretch = (high / low) ** _SPACE if high > low else 1.2
        return low / stretch, high * stretch
    space = (high - low) * _SPACE or abs(high) * _SPACE or 1.0
    return (low - space if low < 0 or low - space > 0 else 0.0), high + space


def from_zero(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of an axis that holds zero too, for lengths that are compared by eye."""
    low, high = min(0.0, *values), max(0.0, *values)
    space = (high - low) * _SPACE_FROM_ZERO or 1.0
    return (low - space if low < 0 else 0.0), high + space


def linear_ticks(low: float, high: float, count: int) -> list[float]:
    step = _round_step((high - low) / max(count, 1))
    first, last = math.ceil(low / step - _ROUNDING), math.floor(high / step + _ROUNDING)
    return [round(index * step, 12) for index in range(first, last + 1)]


def log_ticks(low: float, high: float, count: int) -> list[float]:
    """Return 1, 10, 100; or 1, 2, 5, 10 and so on, the most that are at most ``count``; at least two.

    Over many decades some are left out; where not even two digits lie within, the ticks are a linear axis'.
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    choices = [
        [
            digit * 10.0**decade
            for decade in decades
            for digit in digits
            if low <= digit * 10.0**decade <= high
        ]
        for digits in _LOG_STEPS
    ]
    fitting = [ticks for ticks in choices if 2 <= len(ticks) <= max(count, 2)]
    if fitting:
        return fitting[-1]
    decades_only = choices[0]
    if len(decades_only) > count:
        return decades_only[:: math.ceil(len(decades_only) / count)]
    return linear_ticks(low, high, count)


def _round_step(step: float) -> float:
    power: float = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in _STEPS if step <= factor * power * (1 + _ROUNDING))


def tick_text(value: float) -> str:
    """Write a tick: as few digits as it has."""
    return f"{value:,.6f}".rstrip("0").rstrip(".") if abs(value) >= 1e-6 or value == 0 else f"{value:g}"


def pushed_apart(positions: Sequence[float], distance: float, low: float, high: float) -> list[float]:
    """Move labels as little as needed that they lie ``distance`` apart, in their order, within the ends."""
    order = sorted(range(len(positions)), key=lambda index: positions[index])
    placed: list[float] = []
    for index in order:
        wanted = max(positions[index], low)
        placed.append(max(wanted, placed[-1] + distance) if placed else wanted)
    ceiling = high
    for rank in reversed(range(len(placed))):
        placed[rank] = min(placed[rank], ceiling)
        ceiling = placed[rank] - distance
    found = [0.0] * len(positions)
    for index, position in zip(order, placed, strict=True):
        found[index] = position
    return found


FOOT, ROW = 54, 18
