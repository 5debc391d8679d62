# SPDX-License-Identifier: Apache-2.0
"""The words that stand first wherever a verdict is shown: page, comment, summaries, terminal.

They are put together here and placed elsewhere, so that nobody reads two accounts of one run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hil.base.errors import ExitCode
from hil.model import ComparedSeries, SeriesVerdict, Verdict

Tone = Literal["good", "open", "bad"]  # green, amber, red

MOST_CHANGES = 2  # that are named; of more stands how many there are
_TITLES = {
    ExitCode.PASS: "PASS",
    ExitCode.FIRMWARE: "REGRESSED",
    ExitCode.CONFIG: "NOT MEASURED: CONFIGURATION",
    ExitCode.RIG: "NO VERDICT: THE RIG FAILED",
    ExitCode.UNDECIDED: "INCOMPLETE",
    ExitCode.INTERRUPTED: "INTERRUPTED",
    ExitCode.TERMINATED: "TERMINATED",
}
_IN_A_SENTENCE = {"firmware at fault": "the firmware is at fault"}
_SIGNS: Mapping[Tone, str] = {"good": "✓", "open": "?", "bad": "✗"}


@dataclass(frozen=True)
class Banner:
    """``title`` is loud, ``sentence`` ends with a full stop; ``tone`` is the colour of both.

    Green is a run that was decided, passed, and has nothing open beside it.
    """

    tone: Tone
    title: str
    sentence: str

    @property
    def sign(self) -> str:
        """Return what says the tone without a colour."""
        return _SIGNS[self.tone]

    @property
    def said(self) -> str:
        """Return the sentence as it stands below the title, without what the title has just said."""
        last = self.title.rpartition(": ")[2].lower()
        first, colon, rest = self.sentence.partition(": ")
        if colon and first.lower() in (last, _IN_A_SENTENCE.get(last)):
            return f"{rest[:1].upper()}{rest[1:]}"
        return self.sentence

    @property
    def text(self) -> str:
        """Return both in one line."""
        return f"{self.title}: {self.said}"


def banner_of(verdict: Verdict, changes: Sequence[str] = ()) -> Banner:
    """Return the banner of a run; ``changes`` are the words of open_changes()."""
    title, sentence = title_of(verdict), verdict.sentence
    passed = verdict.exit_code == ExitCode.PASS and verdict.outcome == "pass"
    tone: Tone = "bad" if verdict.exit_code == ExitCode.FIRMWARE else "good" if passed else "open"
    if not changes:
        return Banner(tone, title, sentence)
    told, more = list(changes[:MOST_CHANGES]), len(changes) - MOST_CHANGES
    told += [f"{more} more change{'' if more == 1 else 's'} open"] if more > 0 else []
    number = f"{len(changes)} CHANGE{'' if len(changes) == 1 else 'S'} OPEN"
    return Banner(
        "open" if tone == "good" else tone,
        f"LIMITS KEPT, {number}" if tone == "good" else f"{title}, {number}",
        f"{'; '.join([sentence.rstrip('.'), *told])}.",
    )


def title_of(verdict: Verdict) -> str:
    """Return the loud words of a verdict."""
    if verdict.exit_code == ExitCode.FIRMWARE and not _is_there("regressed", verdict):
        return "FIRMWARE AT FAULT"
    if verdict.outcome == "undecided":
        return "UNDECIDED"
    if verdict.outcome == "no-baseline" and verdict.no_base == "sources":
        return "LIMITS ONLY: THE BASE DOES NOT BUILD"
    if verdict.outcome == "no-baseline":
        left_out = any(item.cause == "not-compared" for item in verdict.not_run)
        compared = any(item.blocking and item.outcome == "no-baseline" for item in verdict.compared)
        return f"PASS, BUT {'WITHOUT A BASE' if left_out or compared else 'WITHOUT LIMITS'}"
    return _TITLES[ExitCode(verdict.exit_code)]


def title_without_verdict(exit_code: ExitCode, owner: str) -> str:
    """Return the loud words of what ended before there was a verdict: nobody's fault is the rig's who did
    not say so. ``owner`` is ``rig``, ``firmware``, ``configuration`` or "" where nobody said.
    """
    if owner == "firmware":
        return "NOT MEASURED: THE FIRMWARE FAILED"
    if exit_code == ExitCode.RIG and owner != "rig":
        return "NO VERDICT"
    return _TITLES[exit_code]


def _is_there(outcome: str, verdict: Verdict) -> bool:
    """Return whether a figure that can fail the run came to this."""
    judged: list[SeriesVerdict | ComparedSeries] = [*verdict.series, *verdict.compared]
    return any(item.blocking and item.outcome == outcome for item in judged)
