"""The comparisons of a run on the first page."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from hil.model import ComparedSeries
from hil.reports import compared
from hil.reports.site import markup
from hil.reports.site.runs import StoredRun


def comparisons(run: StoredRun) -> str:
    """Return the comparisons that block, what is behind those that did not pass, and advice folded."""
    found = compared.ranked(run.verdict)
    if not found:
        return ""
    lines = [_row("td", _cells(item)) for item in found if item.blocking]
    kinds = ", ".join(sorted({item.kind for item in found}))
    title = f"{compared.heading(found)}, rack {run.line['rack']} ({kinds})"
    head = _row("th", compared.HEAD)
    advice = [_row("td", compared.cells(item)) for item in found if not item.blocking]
    behind = [
        markup.details(compared.line(item), compared.details(item)) for item in compared.notable(run.verdict)
    ]
    return (
        (markup.table(title, head, lines) if lines else "")
        + f'<p class="soft">{escape(compared.LEGEND)}</p>'
        + markup.items("Behind what did not simply pass", behind)
        + (markup.folded(f"{len(advice)} comparisons of advice", head, advice) if advice else "")
    )


def _row(tag: str, cells: Iterable[str]) -> str:
    """Return a row: sign, metric and case stand left."""
    return markup.row(tag, cells, names=compared.HEAD.index("case") + 1)


def _cells(item: ComparedSeries) -> list[str]:
    tones = {"regressed": "bad", "improved": "good", "pass": ""}
    first, *rest = (cell.removesuffix(compared.EARLY_MARK) for cell in compared.cells(item))
    tone = tones.get(item.outcome, "unsure")
    return [markup.bold(first, tone) if tone else first, *rest]
