# SPDX-License-Identifier: Apache-2.0
"""The plain summary of a workflow run: for a terminal, and for GitHub where the reports cannot write theirs.

What a leg's run came to stands in the leg's own summary. As Markdown for GitHub each text is made harmless.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hil.base.untrusted import fenced, markdown
from hil.ci.comment_page import place_of
from hil.ci.conclusion import CiVerdict
from hil.ci.legs import LegResult
from hil.ci.plan import RULER_ON_BOTH_SIDES, CiPlan

LIMIT_BYTES = 1000 * 1024  # GitHub drops a step's summary beyond 1 MiB altogether
_DETAILS = "<details>"
_FOLDED = re.compile(r"<details>.*?(</details>\n*|\Z)", re.DOTALL)
_MOST_OF_A_LEG = 50_000  # characters
_MOST_OF_A_SENTENCE = 4_000


def render(plan: CiPlan, verdict: CiVerdict, environment: Mapping[str, str], *, safe: bool = False) -> str:
    """Return the verdict as a person asks: is it well, what broke, what was not run, where is the rest.

    ``safe`` is for GitHub's Markdown: what the legs wrote is text there, and nothing else.
    """
    write = markdown if safe else _cell
    parts = [
        f"# {markdown(verdict.headline) if safe else verdict.headline}",
        *(_said(words, safe=safe) for words in (verdict.sentence, verdict.attempts) if words),
        *_list("Failed besides", verdict.findings, write),
        *_list("What this change loosens, for an owner to accept", verdict.loosened, write),
        *_list("What is new or stricter", [one.text for one in verdict.limits if not one.loosens], write),
        _legs_table(verdict.legs, write),
        *_list("Not run", [f"{leg.shown}: {leg.reason}" for leg in verdict.legs if leg.reason], write),
        f"## Run\n\n{_facts(plan, environment)}",
        *(_leg_section(leg, safe=safe) for leg in verdict.legs if leg.summary),
    ]
    return "\n\n".join(parts) + "\n"


def append(path: Path, markdown: str, *, whole: str) -> None:
    """Add to a step's summary as much as fits; where that is not all, say that it is in ``whole``."""
    used = path.stat().st_size if path.exists() else 0
    with path.open("a", encoding="utf-8") as stream:
        stream.write(shorten(markdown, LIMIT_BYTES - used, whole=whole))


def shorten(markdown: str, size: int, *, whole: str) -> str:
    """Return at most ``size`` bytes, cut between lines, with what was folded open folded again."""
    if len(markdown.encode()) <= size:
        return markdown
    pointer = f"\n\n…cut off here, because GitHub shows no more. The whole is in {whole}.\n"
    room = size - len(pointer.encode()) - len("\n</details>")
    kept = markdown.encode()[: max(0, room)].decode(errors="ignore")
    kept = kept[: kept.rfind("\n") + 1]
    closing = "\n</details>" * (kept.count(_DETAILS) > kept.count("</details>"))
    return kept + closing + pointer


def _legs_table(legs: Sequence[LegResult], write: Callable[[str], str]) -> str:
    lines = ["| leg | verdict | boards | |", "| --- | --- | --- | --- |"]
    for leg in legs:
        cells = (leg.shown, leg.mark, ", ".join(leg.boards) or "–", leg.sentence)
        lines.append(f"| {' | '.join(map(write, cells))} |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "/").split())


def _facts(plan: CiPlan, environment: Mapping[str, str]) -> str:
    facts = {
        "measured": f"`{plan.head[:12]}`",
        "merge base": f"`{plan.base[:12]}`" if plan.base else "",
        "changes": ", ".join(plan.changes),
        "not compared": RULER_ON_BOTH_SIDES if "ruler" in plan.changes and plan.base else "",
        **place_of(environment).links,
    }
    return "\n".join(f"- {name}: {text}" for name, text in facts.items() if text)


def _leg_section(leg: LegResult, *, safe: bool) -> str:
    """Return a leg's own summary without what is folded in it, and without who ran it where."""
    if safe:
        return (
            f"<details><summary>{leg.shown}</summary>\n\n{fenced(leg.summary[:_MOST_OF_A_LEG])}\n\n</details>"
        )
    short = (
        _FOLDED.sub("", leg.summary.partition("\n## Run\n")[0])
        .strip()
        .replace("\n#", "\n##")
        .removeprefix("# ")
    )
    return f"<details><summary>{leg.shown}</summary>\n\n### {short}\n\n</details>"


def _said(sentence: str, *, safe: bool) -> str:
    """Return a sentence whole: what a person reads first is not cut."""
    return markdown(sentence, _MOST_OF_A_SENTENCE) if safe else " ".join(sentence.split())


def _list(heading: str, lines: Sequence[str], write: Callable[[str], str]) -> list[str]:
    return [f"## {heading}\n\n" + "\n".join(f"- {write(line)}" for line in lines)] if lines else []
