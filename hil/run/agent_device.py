# SPDX-License-Identifier: Apache-2.0
"""A board that runs hil's agent: its cases with what goes beside them, companions, meters, traces."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from hil.base.errors import HilError
from hil.boards.current_sampling import Meters, Sampling
from hil.boards.rack import Board
from hil.model import Case, Series
from hil.network.peers.companion import Companion, Observed
from hil.run.board_images import check_image
from hil.run.companions import Companions
from hil.run.network import RunNetwork
from hil.session import AgentSession
from hil.trace.files import CASE as TRACE_CASE
from hil.trace.files import is_traced
from hil.wire import Note

HELLO_DEADLINE_S = 15.0
TRACE_DEADLINE_S = 15.0


class AgentDevice:
    """hil.run.interfaces.Device over the console protocol."""

    def __init__(
        self,
        board: Board,
        session: AgentSession,
        network: RunNetwork,
        built_sha256: str,
        companions: Companions,
        address: str,
        meters: Meters,
    ) -> None:
        self._board = board
        self._session = session
        self._network = network
        self._built_sha256 = built_sha256
        self._companions = companions
        self._address = address
        self._meters = meters
        self._told: frozenset[str] = frozenset()  # fields that the last companion told

    def confirm(self) -> None:
        self._network.check(self._board)
        self._session.command("hello", timeout_s=HELLO_DEADLINE_S)
        hello = self._session.hello
        if hello:
            check_image(self._board, self._built_sha256, hello.firmware_sha256)

    def measure(self, case: Case, *, timeout_s: float) -> Observed:
        """Run the case with its companion. What broke on the host explains a failed case: it goes first."""
        try:
            with (
                self._network.around(self._board),
                self._companions.attend(case, self._board, self._address) as attendance,
            ):
                outcome = self._metered(case, attendance.companion, timeout_s)
        except HilError:
            self._network.check(self._board)
            raise
        self._network.check(self._board)
        check_image(self._board, self._built_sha256, outcome.series.firmware_sha256)
        trace, trace_error = self._fetch_trace(outcome.series)
        return replace(
            outcome,
            environment={**attendance.facts(), **outcome.environment},
            trace=trace,
            trace_error=trace_error,
        )

    def _fetch_trace(self, series: Series) -> tuple[Series | None, str]:
        """Return what the board kept of its scheduler, or why it cannot be had: no failure of the case."""
        if not is_traced(series):
            return None, ""
        try:
            return self._session.run_case(TRACE_CASE, timeout_s=TRACE_DEADLINE_S), ""
        except HilError as error:
            with suppress(HilError):  # what is wrong with the board is the next case's to tell
                self._session.abort()
            return None, str(error)

    def _metered(self, case: Case, companion: Companion, timeout_s: float) -> Observed:
        """Run the case with a meter in the board's supply sampling beside it, where there is one."""
        with self._meters.beside(self._board, case) as sampling:
            outcome = self._measure(case, companion, timeout_s, sampling)
            sampling.series = outcome.series
        return replace(outcome, current=sampling.facts)

    def _measure(self, case: Case, companion: Companion, timeout_s: float, sampling: Sampling) -> Observed:
        def note(said: Note) -> None:
            sampling.note(said, time.monotonic())
            companion.note(said)

        told = companion.start()
        try:
            self._session.provision({**self._forgotten(told), **told})
            with self._network.awake(timeout_s):
                series = self._session.run_case(case, timeout_s=timeout_s, on_note=note)
        except HilError:
            companion.check()
            raise
        return companion.finish(series)

    def _forgotten(self, told: Mapping[str, str | int]) -> Mapping[str, str | int]:
        """Return what the case before was told otherwise and this one is not: the run's own again."""
        earlier, self._told = self._told, frozenset(told)
        left = earlier - self._told
        own = self._network.provision(self._board) if left else {}
        return {field: value for field, value in own.items() if field in left}
