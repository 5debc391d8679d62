"""A small SVG figure: marks, text and a light panel of its own.

The panel keeps it legible on Allure's light and dark pages, whose switch an image cannot see. Each mark says
in data attributes which number it stands for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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


class Figure:
    """Collects marks; ``to_bytes`` gives the file."""

    def __init__(self, heading: Heading, height: float) -> None:
        width = heading.width
        self._root = ET.Element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "width": str(width),
                "height": _written(height),
                "viewBox": f"0 0 {width} {_written(height)}",
                "font-family": "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif",
                "font-size": str(FONT_PX),
                "role": "img",
            },
        )
        ET.SubElement(self._root, "title").text = " ".join(heading.titles)
        self._add("rect", x=0.5, y=0.5, width=width - 1, height=height - 1, rx=6, fill="#ffffff", stroke=GRID)
        heading.draw(self)

    def _add(self, tag: str, **attributes: object) -> ET.Element:
        texts = {name.replace("_", "-"): _written(value) for name, value in attributes.items()}
        return ET.SubElement(self._root, tag, {name: text for name, text in texts.items() if text})

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
        self._add("text", x=x, y=y, transform=turn, **style).text = text

    def line(self, start: Point, end: Point, *, stroke: str, width: float = 1, **more: object) -> None:
        places = {"x1": start[0], "y1": start[1], "x2": end[0], "y2": end[1]}
        self._add("line", stroke=stroke, stroke_width=width, **places, **more)

    def rect(self, corner: Point, width: float, height: float, *, fill: str, **more: object) -> None:
        self._add("rect", x=corner[0], y=corner[1], width=width, height=height, fill=fill, **more)

    def stairs(self, points: Iterable[Point], *, stroke: str, width: float = 1.75, **more: object) -> None:
        """Draw lines that go right first and then up."""
        (x, y), *rest = points
        path = f"M{_written(x)} {_written(y)}" + "".join(f"H{_written(x)}V{_written(y)}" for x, y in rest)
        self._add("path", d=path, fill="none", stroke=stroke, stroke_width=width, **more)

    def dots(self, points: Sequence[Point], *, fill: str, size: float = 3.5, **more: object) -> None:
        """Draw round dots; those that would lie on one another are drawn once."""
        places = _distinct(points)
        path = "".join(f"M{_written(x)} {_written(y)}h0" for x, y in places)
        style = {"stroke": fill, "stroke_width": size, "stroke_linecap": "round", "fill": "none"}
        self._add("path", d=path, **style, **more)

    def crosses(self, points: Sequence[Point], *, stroke: str, size: float = 4, **more: object) -> None:
        path = "".join(
            f"M{_written(x - size)} {_written(y - size)}l{_written(2 * size)} {_written(2 * size)}"
            f"m{_written(-2 * size)} 0l{_written(2 * size)} {_written(-2 * size)}"
            for x, y in _distinct(points)
        )
        self._add("path", d=path, fill="none", stroke=stroke, stroke_width=1.5, **more)

    def to_bytes(self) -> bytes:
        ET.indent(self._root, " ")
        text: str = ET.tostring(self._root, encoding="unicode")
        return f"{text}\n".encode()


def _distinct(points: Sequence[Point]) -> list[Point]:
    grid = next((px for count, px in _GRIDS_PX if len(points) <= count), _COARSEST_PX)
    return list(dict.fromkeys((round(x / grid) * grid, round(y / grid) * grid) for x, y in points))


def _written(value: object) -> str:
    """Write a number with as few digits as a screen can show."""
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(value)
