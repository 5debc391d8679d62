# SPDX-License-Identifier: Apache-2.0
"""The view of judged runs: the headline, the figures that matter, what went wrong, notes and next steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from hil.base.errors import ExitCode
from hil.base.git import bisect_command
from hil.gate.words.banner import Banner, banner_of
from hil.model import ComparedSeries, Fault, NotRun, Verdict
from hil.reports import compared, rows
from hil.reports.boards import not_run_groups, remarks, split_not_run
from hil.reports.crashes import worth_showing
from hil.reports.current_notes import current_notes
from hil.reports.ledger import loss_notes
from hil.reports.names import case_name
from hil.reports.trace_notes import TraceNote, trace_notes
from hil.reports.view import figures
from hil.reports.view.marks import Code, Dump, Fixed, Line, Link, Mark, Part, Words, count, marks
from hil.reports.view.matter import figures_of
from hil.reports.view.source import Source
from hil.store import RunInfo
from hil.store.run_info import measured_commit

# parts that a person reads before others
FIRST = ("changed", "breaches", "undecided", "wrong", "crashes", "not run")


@dataclass(frozen=True)
class View:
    """One run. ``steps`` are what a person does next; figures and parts are computed where they are shown."""

    source: Source
    headline: Banner
    remarks: tuple[str, ...]
    steps: tuple[Words, ...]

    @property
    def figures(self) -> tuple[tuple[Words, ...], ...]:
        """The few that matter, a row each."""
        return figures_of(self.source.verdict)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        return parts_of([self.source])


def view_of(source: Source, changes: Sequence[str] = ()) -> View:
    """Return the view of one run; ``changes`` are the nights' open ones, where its reports noted none."""
    info, noted = source.info, changes or source.reported.changes
    return View(
        source,
        banner_of(source.verdict, noted),
        tuple(remarks(info, source.verdict)) if info else (),
        steps_of(info, source.verdict, noted) if info else (),
    )


def steps_of(info: RunInfo, verdict: Verdict, changes: Sequence[str]) -> tuple[Words, ...]:
    """Return what a person does next; ``changes`` are the nights' open ones."""
    code = verdict.exit_code
    if code == ExitCode.FIRMWARE and any(map(compared.is_blocked, verdict.compared)):
        return (
            _after_regression(
                info, next(item for item in compared.ranked(verdict) if compared.is_blocked(item))
            ),
        )
    if code == ExitCode.FIRMWARE:
        return ((Code("hil compare HEAD~1"), " measures the commit before on the same boards"),)
    if code == ExitCode.RIG:
        return ((Code("hil doctor"), " and ", Code("hil rack check"), " say what has to be mended"),)
    if changes:
        return ((Code("hil changes"), " says between which commits each change lies"),)
    return ()


def _after_regression(info: RunInfo, item: ComparedSeries) -> Words:
    """Return how the change is found: in what is not committed, or by the command that finds its commit."""
    good, bad = _base_commit(info), measured_commit(info)
    if info.git.dirty and good == bad:
        return Code("git diff HEAD"), " shows the change that was measured"
    if info.git.dirty:
        return Code("hil compare HEAD"), " measures what is not committed yet alone"
    words = (Code("docs/operate/bisect.md"), " finds the commit")
    if not good or not bad or good == bad:
        return words
    return (*words, ": ", Code(bisect_command(good, bad, case_name(item))))


def _base_commit(info: RunInfo) -> str:
    """Return the commit of the base: the pull request's, or that of its images; "" where nothing tells."""
    images = info.compared.firmware.values() if info.compared else ()
    commits = {image.commit for image in images if not image.dirty}
    return info.ci.base_sha or (commits.pop() if len(commits) == 1 else "")


def parts_of(
    sources: Sequence[Source], *, wrong: Sequence[Words] = (), skipped: Sequence[Words] = ()
) -> tuple[Part, ...]:
    """Return all parts of a page on ``sources``, in the order in which a person asks.

    ``wrong`` and ``skipped`` are what a page has to say besides of what went wrong and was not run.
    """
    compared_, told = figures.comparisons(sources), figures.sentences(sources)
    split = [(source, *split_not_run(source.verdict)) for source in sources]
    missing = [line for source, found, _ in split for line in _not_run(source, found)]
    ruled_out = [line for source, _, found in split for line in _not_run(source, found)]
    faults = [_fault(source, fault) for source in sources for fault in source.verdict.faults]
    lost = list(_losses(sources))
    found = (
        *(part for part in compared_ if part.name == "changed"),
        *figures.breaches(sources),
        _lines("undecided", "Limits without a decision", figures.undecided(sources), 2, "metric"),
        _lines("wrong", "Faults", [*map(Line, wrong), *faults], 2, "fault"),
        *_crashes(sources),
        _lines("not run", "Not run", [*map(Line, skipped), *missing], 3, "reason", folded=not missing),
        _lines("losses", "Lost messages", [line for line, planted in lost if not planted], 4, "case"),
        _lines("traces", "Scheduler traces", _traces(sources), 4, "trace"),
        _lines("reporting", "Errors while reporting", _reporting(sources), 3, "fault"),
        *(part for part in compared_ if part.name == "others"),
        _folded("sentences", "Details of what did not pass", told, 8, "sentence"),
        *figures.limits(sources),
        *figures.boards(sources),
        _folded("notes", "Notes", list(notes_of(sources)), 5, "remark"),
        _folded(
            "planted", "Cases that lose messages on purpose", [line for line, planted in lost if planted], 8
        ),
        _folded("ruled out", "Ruled out", ruled_out, 8, "reason"),
    )
    return tuple(part for part in found if part.body)


def _lines(
    name: str, heading: str, lines: Sequence[Line], rank: int, noun: str = "line", *, folded: bool = False
) -> Part:
    return Part(name, heading, tuple(dict.fromkeys(lines)), rank, noun, folded)


def _folded(name: str, heading: str, lines: Sequence[Line], rank: int, noun: str = "line") -> Part:
    """Return lines that open below a heading with their number."""
    return _lines(name, f"{heading}: {len(dict.fromkeys(lines))}", lines, rank, noun, folded=True)


def _fault(source: Source, fault: Fault) -> Line:
    place: tuple[Mark, ...] = (" on ", Code(fault.board)) if fault.board else ()
    words = (Fixed(fault.owner, "bad"), *place, f": {fault.sentence}")
    return Line(Link(words, source.test(fault.board, fault.case_id)))


def _crashes(sources: Sequence[Source]) -> Iterator[Part]:
    """Yield the decoded backtraces, board by board."""
    crashes = [crash for source in sources for crash in source.crashes]
    for board in dict.fromkeys(crash.board for crash in crashes):
        for crash in worth_showing(one for one in crashes if one.board == board):
            heading = (f"Where it crashed: {crash.name} of ", Code(crash.board), ", ", Code(crash.file))
            yield Part("crashes", heading, Dump(crash.shown), 3, "backtrace")


def _losses(sources: Sequence[Source]) -> Iterator[tuple[Line, bool]]:
    """Yield who owns the messages that a case lost, and whether the case loses them on purpose."""
    for source in sources:
        for note in loss_notes(source.records, source.verdict):
            text = Link(note.text, source.test(note.board, note.case_id))
            yield Line((text, " (", Code(note.files), ")")), note.planted


def _traces(sources: Sequence[Source]) -> list[Line]:
    return [
        _trace(source, note) for source in sources for note in trace_notes(source.records, source.verdict)
    ]


def _trace(source: Source, note: TraceNote) -> Line:
    text = Link(note.text, source.test(note.board, note.case_id))
    if not note.file:
        return Line(text)
    address = f"{source.files}{note.picture}" if source.files else ""
    more: tuple[Mark, ...] = (
        (", ", Link("for ui.perfetto.dev", f"{source.files}{note.perfetto}")) if source.files else ()
    )
    return Line((text, " (trace: ", Link(Code(note.picture), address), *more, ")"))


def _not_run(source: Source, found: Iterable[NotRun]) -> Iterator[Line]:
    for reason, number, boards in not_run_groups(found):
        place: tuple[Mark, ...] = (" (", *marks(source.place), ")") if source.place else ()
        yield Line((f"{count(number, 'case')} on ", *figures.names_of(boards), *place, f": {reason}"))


def _reporting(sources: Sequence[Source]) -> list[Line]:
    return [Line(warning) for source in sources for warning in source.reported.warnings]


def notes_of(sources: Sequence[Source]) -> Iterator[Line]:
    """Yield what a person should know although it decides nothing; of single figures a line a metric."""
    for source in sources:
        for sentence in (*source.verdict.warnings, *current_notes(source.records)):
            yield Line(sentence)
        for words, items in figures.by_metric(filter(rows.is_bad_advice, source.verdict.series)):
            behind = [Link(item.sentence, source.test(item.board, item.case_id)) for item in items]
            yield Line(("✗ advice ", *marks(words)), tuple(behind))
