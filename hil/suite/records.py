# SPDX-License-Identifier: Apache-2.0
"""From a session's facts to the entries of a journal: a record for each board and test that measured."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from hil.base.errors import ExitCode
from hil.model import SUITE_RACK, Entry, Fault, NotRun, Role, RunRecord, Scalar, format_case_id
from hil.suite.facts import BoardFact, OutcomeFact, SuiteSession
from hil.suite.figures import SuiteMetric, by_bench, is_ragged, row_column
from hil.suite.naming import bench_of_test, label_of_test

TEST = "test"  # the one parameter of a suite's case
NO_IMAGE = "0" * 64
_RULER = hashlib.sha256(b"pytest").hexdigest()  # the tests measure, and what they do is theirs


def entries_of(
    session: SuiteSession,
    figures: Sequence[SuiteMetric],
    run_id: str,
    *,
    role: Role = "candidate",
    boot_index: int = 0,
    product: str = "",
    every: Sequence[SuiteMetric] = (),
) -> Iterator[Entry]:
    """Yield the records of a session, which is one boot; what failed, and that it was cut off.

    ``every`` are the metrics of all sessions of the run, where there are several: their records have the same
    columns.
    """
    common: dict[str, Any] = {"run_id": run_id, "role": role, "boot_index": boot_index, "product": product}
    outcomes = {test.test: test for test in session.tests}
    ragged_benches = {bench for bench, own in by_bench(every or figures).items() if is_ragged(own)}
    for bench, own in by_bench(figures).items():
        ragged = bench in ragged_benches
        tests: dict[tuple[str, str], list[SuiteMetric]] = {}
        for figure in own:
            tests.setdefault((figure.board.board, figure.node), []).append(figure)
        for (_, node), of_test in tests.items():
            yield _record(of_test, outcomes[node], session, ragged=ragged, common=common)
    for test in session.tests:
        if test.outcome == "failed":
            for board in test.boards:
                yield NotRun(run_id, board, case_id_of(test.test), f"the test failed: {test.said}")
    for path in session.cut_off:
        sentence = f"the pytest session was killed before it ended: {path} has no last line."
        yield Fault(run_id, "rig", int(ExitCode.RIG), sentence)


def case_id_of(node: str) -> str:
    """Return the id of a test's case: ``wifi/test=test_connect``."""
    return format_case_id(bench_of_test(node), {TEST: label_of_test(node)})


def target_of(board: BoardFact) -> str:
    """Return a record's target: the chip, with its kind in front where it is not physical."""
    return board.target if board.kind == "physical" else f"{board.kind}-{board.target}"


def _record(
    figures: Sequence[SuiteMetric],
    outcome: OutcomeFact,
    session: SuiteSession,
    *,
    ragged: bool,
    common: dict[str, Any],
) -> RunRecord:
    first, board = figures[0], figures[0].board
    return RunRecord(
        rack=SUITE_RACK,
        board=board.board,
        target=target_of(board),
        kind=board.kind,
        bench=first.bench,
        parameters={TEST: first.test},
        firmware_sha256=board.image_sha256 or NO_IMAGE,
        ruler_hash=_RULER,
        protocol_version=0,
        clock="",
        started_utc=session.session.started_utc,
        warmup_rows=0,
        columns=_columns(figures, ragged=ragged),
        environment={"device": _device(board), "pytest": _pytest(outcome, session, board)},
        **common,
    )


def _columns(figures: Sequence[SuiteMetric], *, ragged: bool) -> dict[str, tuple[int, ...]]:
    rows = max(len(figure.values) for figure in figures)
    columns: dict[str, tuple[int, ...]] = {}
    for figure in figures:
        missing = (0,) * (rows - len(figure.values))
        columns[figure.naming.column] = figure.values + missing
        if ragged:
            columns[row_column(figure)] = (1,) * len(figure.values) + missing
    return columns


def _device(board: BoardFact) -> dict[str, Scalar]:
    told = {"mac": board.mac, "idf_version": board.idf_version, "app_version": board.app_version}
    return {key: value for key, value in told.items() if value}


def _pytest(outcome: OutcomeFact, session: SuiteSession, board: BoardFact) -> dict[str, Scalar]:
    told: dict[str, Scalar] = {
        "node": outcome.test,
        "session": session.session.session,
        "duration_s": outcome.duration_s,
        "attempts": outcome.attempts,
        "port": board.port,
        "services": board.services,
        **{name.replace("-", "_"): version for name, version in session.session.versions.items()},
    }
    return {key: value for key, value in told.items() if value != ""}
