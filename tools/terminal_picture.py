# SPDX-License-Identifier: Apache-2.0
"""``python -m tools.terminal_picture``: docs/img/make-hil.svg, the screen that the newest run ended with."""

from __future__ import annotations

import sys
from io import StringIO
from pathlib import Path

from rich.console import Console

from hil.reports.terminal import render_screen
from hil.store import read_judged_run

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "img" / "make-hil.svg"
# rich's own format loads a font from another host
FORMAT = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">
<style>.{unique_id}-matrix {{ font: {char_height}px ui-monospace, Menlo, monospace }} {styles}</style>
<defs>{lines}</defs>{chrome}
<g transform="translate({terminal_x}, {terminal_y})" class="{unique_id}-matrix">{backgrounds}{matrix}</g>
</svg>
"""


def main(folder: Path) -> int:
    """Draw the last screen of a run at 80 columns."""
    run = read_judged_run(folder)
    console = Console(record=True, width=80, file=StringIO(), highlight=False, force_terminal=True)
    console.print("$ make hil")
    path, seen = f"out/{run.run_id}", run.reported
    render_screen(run.info, run.verdict, run.records, run_path=path, console=console, reported=seen)
    svg = console.export_svg(title="", code_format=FORMAT, unique_id="hil")
    PICTURE.write_text("".join(f"{line.rstrip()}\n" for line in svg.splitlines()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "out" / "latest")))
