# SPDX-License-Identifier: Apache-2.0
"""What sessions of one suite on two builds are as a run: a boot each, and a comparison for each chip."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from hil.base.errors import ConfigError
from hil.base.project import product_here
from hil.gate.words.undecided import NOT_COMPARED
from hil.model import SUITE_RACK, Comparison, Entry, Looks, NotRun, Role, RunRecord
from hil.suite.facts import BoardFact, SuiteSession
from hil.suite.figures import SuiteMetric, figures_of
from hil.suite.limits import limits_of
from hil.suite.records import entries_of, target_of

ROLES: tuple[Role, Role] = ("candidate", "base")


@dataclass(frozen=True)
class Turn:
    """A session: which build it ran on, its facts, and how long it took, in seconds."""

    role: Role
    facts: SuiteSession
    took_s: float


def with_one_name(turns: Sequence[Turn]) -> list[Turn]:
    """Return the turns with one name for each port.

    esptool says a board's MAC only where it flashes, so a session that finds its image there knows less.
    """
    names: dict[str, str] = {}
    for board in (board for turn in turns for board in turn.facts.boards if board.port):
        if board.mac or board.port not in names:
            names[board.port] = board.board
    return [replace(turn, facts=_renamed(turn.facts, names)) for turn in turns]


def _renamed(facts: SuiteSession, names: dict[str, str]) -> SuiteSession:
    boards = {board.board: names.get(board.port, board.board) for board in facts.boards}
    return replace(
        facts,
        boards=tuple(_named(board, boards) for board in facts.boards),
        values=tuple(replace(value, board=_named(value.board, boards)) for value in facts.values),
        tests=tuple(
            msgspec.structs.replace(test, boards=tuple(boards.get(one, one) for one in test.boards))
            for test in facts.tests
        ),
    )


def _named(board: BoardFact, names: dict[str, str]) -> BoardFact:
    return msgspec.structs.replace(board, board=names[board.board])


def entries_of_turns(run_id: str, turns: Sequence[Turn]) -> list[Entry]:
    """Return the records of all turns, and the tests that failed on the candidate.

    A test that fails on the base alone is one that the gate has no base for.
    """
    every = _figures(turns)
    return [
        entry
        for number, turn in enumerate(turns)
        for entry in entries_of(
            turn.facts,
            figures_of(turn.facts),
            run_id,
            role=turn.role,
            boot_index=number,
            product=product_here(),
            every=every,
        )
        if turn.role == "candidate" or not isinstance(entry, NotRun)
    ]


def thresholds_of_turns(turns: Sequence[Turn], folder: Path) -> tuple[dict[str, str], list[str]]:
    """Return the thresholds files of all turns; as limits_of()."""
    return limits_of(_figures(turns), folder)


def comparisons_of(run_id: str, turns: Sequence[Turn], looks: Looks) -> list[Comparison]:
    """Return a comparison for each chip and pair of images.

    Raises ConfigError: a board's image is not known, or the base ran on none of the candidate's boards.
    """
    images = {role: _images(turn.facts for turn in turns if turn.role == role) for role in ROLES}
    groups: dict[tuple[str, str, str], list[str]] = {}
    for name, board in images["candidate"].items():
        base = images["base"].get(name)
        if base is None:
            continue
        groups.setdefault((target_of(board), _digest(board), _digest(base)), []).append(name)
    if not groups:
        raise ConfigError(
            f"the base ran on {_listed(images['base'])}, the candidate on {_listed(images['candidate'])}.",
            next_step="name the port, so that both run on one board: -- --port PORT.",
        )
    cases = {entry.case_id for entry in entries_of_turns(run_id, turns) if isinstance(entry, RunRecord)}
    return [
        Comparison(
            run_id=run_id,
            rack=SUITE_RACK,
            image=target if number == 0 else f"{target}#{number + 1}",
            target=target,
            boards=tuple(boards),
            role="base",
            candidate_sha256=candidate,
            other_sha256=base,
            looks=looks,
            cases=tuple(sorted(cases)),
            product=product_here(),
        )
        for number, ((target, candidate, base), boards) in enumerate(groups.items())
    ]


def not_compared(run_id: str, turns: Sequence[Turn], compared: Iterable[Comparison]) -> list[NotRun]:
    """Return the cases of boards that the candidate ran on and the base did not."""
    known = {board for comparison in compared for board in comparison.boards}
    cases = {
        (entry.board, entry.case_id)
        for entry in entries_of_turns(run_id, turns)
        if isinstance(entry, RunRecord) and entry.board not in known
    }
    reason = f"{NOT_COMPARED}the base ran on no board of this name"
    return [NotRun(run_id, board, case_id, reason, "not-compared") for board, case_id in sorted(cases)]


def _images(sessions: Iterable[SuiteSession]) -> dict[str, BoardFact]:
    """Return what each board was when a test first measured on it."""
    found: dict[str, BoardFact] = {}
    for session in sessions:
        for value in session.values:
            found.setdefault(value.board.board, value.board)
    return found


def _digest(board: BoardFact) -> str:
    if not board.image_sha256:
        raise ConfigError(
            f"nothing tells which image ran on {board.board}, so two builds cannot be compared there.",
            next_step="have pytest-embedded know the build: --embedded-services with idf.",
        )
    return board.image_sha256


def _listed(boards: Iterable[str]) -> str:
    return ", ".join(boards) or "no board"


def _figures(turns: Iterable[Turn]) -> list[SuiteMetric]:
    return [figure for turn in turns for figure in figures_of(turn.facts)]
