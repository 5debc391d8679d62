# SPDX-License-Identifier: Apache-2.0
"""The real rig behind the boot loop: esptool, a console, the agent, the network, traces.

Which firmware is on a board is known here: written once, and switched between two that lie side by side.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from hil.base.errors import HilError, RigError
from hil.boards.environment import host_environment, rig_environment
from hil.boards.firmware.build_folder import Image
from hil.boards.firmware.selection import Firmware
from hil.boards.flash import FlashResult, SlotFlasher, WearCounter, flash
from hil.boards.lease import kept_dir, lease_air, lease_rack
from hil.boards.rack import Board, Rack
from hil.model import Case, Entry, Role, RunRecord, Scalar, Series
from hil.network.peers.companion import Companion, Outcome
from hil.run.companions import Companions
from hil.run.interfaces import Boot, Consoles
from hil.run.network import RunNetwork
from hil.run.rounds import BOOT_DEADLINE_S, draw
from hil.session import AgentSession
from hil.store import RunDirectory
from hil.trace.files import CASE as TRACE_CASE
from hil.trace.files import Origin, is_traced, store_trace

NETWORK_DEADLINE_S = 30.0


class LabRig:
    """hil.run.interfaces.Rig over real parts."""

    def __init__(
        self,
        rack: Rack,
        run: RunDirectory,
        run_id: str,
        firmware: Mapping[Image, Builds],
        network: RunNetwork,
        companions: Companions,
        consoles: Consoles,
        lock_folder: Path,
    ) -> None:
        self._rack = rack
        self._lock_folder = lock_folder
        self._run = run
        self._run_id = run_id
        self._images = BoardImages(
            firmware, run_id=run_id, folder=run.path / "flash", counts=kept_dir(rack, lock_folder)
        )
        self._network = network
        self._companions = companions
        self._consoles = consoles
        self._append_lock = threading.Lock()
        self._traces: Counter[str] = Counter()  # of each board

    def prepare(self, board: Board, image: Image, role: Role, *, stop: threading.Event) -> None:
        with self._blaming_the_network(board):
            self._images.write(self._network.at_its_port(board), image, role, stop=stop)

    @contextmanager
    def boot(self, board: Board, boot: Boot, *, check_stop: Callable[[], None]) -> Iterator[AgentDevice]:
        firmware = self._images.build(boot.image, boot.role)
        board = self._network.at_its_port(board)
        self._network.begin_boot(board)
        with ExitStack() as stack:
            with self._blaming_the_network(board):
                session = self._started(board, boot, stack, check_stop)
                session.provision(self._network.provision())
                link = session.network_up(timeout_s=NETWORK_DEADLINE_S)
            address = str(link.get("ip", ""))
            yield AgentDevice(board, session, self._network, firmware.sha256, self._companions, address)

    def _started(
        self, board: Board, boot: Boot, stack: ExitStack, check_stop: Callable[[], None]
    ) -> AgentSession:
        """Return the session of a board that runs the boot's firmware; its console is closed by ``stack``.

        A switch that did not take is repeated once.
        """
        built = self._images.build(boot.image, boot.role).sha256
        for attempt in ("switch", "repeat"):
            switched = self._images.select(board, boot.role, again=attempt == "repeat")
            with ExitStack() as opened:
                session = self._session(board, boot, opened, check_stop)
                running = session.wait_ready(timeout_s=BOOT_DEADLINE_S).firmware_sha256
                if running == built or not switched or attempt == "repeat":
                    stack.push(opened.pop_all())
                    break
        check_image(board, built, running)
        return session

    def _session(
        self, board: Board, boot: Boot, stack: ExitStack, check_stop: Callable[[], None]
    ) -> AgentSession:
        log_path = self._run.console_log(board.id)
        build_dir = self._images.build(boot.image, boot.role).build_dir
        console = self._consoles.open(
            board, build_dir, log_path, stop=check_stop, check=lambda: self._check(board)
        )
        stack.callback(console.close)
        return AgentSession(console, board.id, log=console.log, log_path=str(log_path))

    def _check(self, board: Board) -> None:
        """What a board's case depends on while it runs: the network first, for it may explain the rest."""
        self._network.check(board)
        self._companions.check(board)

    @contextmanager
    def _blaming_the_network(self, board: Board) -> Iterator[None]:
        """Where something failed because a part of the network died, name that part."""
        try:
            yield
        except HilError:
            self._network.check(board)
            raise

    def record(self, board: Board, boot: Boot, case: Case, outcome: Outcome, started_utc: str) -> RunRecord:
        series = outcome.series
        peer = {"peer": outcome.environment} if outcome.environment else {}
        trace = self._keep_trace(board, boot.index, case, outcome)
        with self._blaming_the_network(board):
            network = self._network.environment(board)
        return RunRecord(
            run_id=self._run_id,
            rack=self._rack.name,
            board=board.id,
            target=board.target,
            kind=board.kind,
            role=boot.role,
            boot_index=boot.index,
            bench=case.bench,
            parameters=case.parameters,
            firmware_sha256=series.firmware_sha256,
            ruler_hash=series.ruler_hash,
            protocol_version=series.protocol_version,
            clock=series.clock,
            started_utc=started_utc,
            warmup_rows=series.warmup_rows,
            columns=series.columns,
            environment={
                "device": series.device,
                "host": host_environment(),
                "rig": {**rig_environment(self._rack), "flash_note": self._images.note(board)},
                **network,
                **peer,
                **({"trace": trace} if trace else {}),
            },
            measured_s=round(series.measured_s, 3),
        )

    def _keep_trace(
        self, board: Board, boot_index: int, case: Case, outcome: Outcome
    ) -> Mapping[str, Scalar]:
        """Write the trace into the run's folder; return what the record says of it, {} without one."""
        if outcome.trace is None:
            return {"error": outcome.trace_error} if outcome.trace_error else {}
        self._traces[board.id] += 1
        origin = Origin(board.id, board.kind, boot_index, self._traces[board.id], case)
        return store_trace(self._run.path, origin, outcome.series, outcome.trace)

    @contextmanager
    def lease_air(self, *, check_stop: Callable[[], None]) -> Iterator[None]:
        """Hold the air among all processes, with this run's profile in force."""
        with lease_air(self._lock_folder, run_id=self._run_id, check_stop=check_stop):
            self._network.apply_profile()
            yield

    @contextmanager
    def lease_rack(self, *, alone: bool, check_stop: Callable[[], None]) -> Iterator[None]:
        """Take part in what happens on the rack, among all processes; ``alone``, nothing else does."""
        with lease_rack(self._lock_folder, run_id=self._run_id, alone=alone, check_stop=check_stop):
            yield

    def stop_companions(self, timeout_s: float) -> None:
        self._companions.stop(timeout_s)

    def append(self, entry: Entry) -> None:
        with self._append_lock:
            self._run.append(entry)

    def now_utc(self) -> str:
        return datetime.now(UTC).isoformat(timespec="milliseconds")


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
    ) -> None:
        self._board = board
        self._session = session
        self._network = network
        self._built_sha256 = built_sha256
        self._companions = companions
        self._address = address
        self._told: frozenset[str] = frozenset()  # fields that the last companion told

    def confirm(self) -> None:
        self._network.check(self._board)
        self._session.command("hello", timeout_s=HELLO_DEADLINE_S)
        hello = self._session.hello
        if hello:
            check_image(self._board, self._built_sha256, hello.firmware_sha256)

    def measure(self, case: Case, *, timeout_s: float) -> Outcome:
        """Run the case with its companion. What broke on the host explains a failed case: it goes first."""
        try:
            with self._companions.attend(case, self._board, self._address) as attendance:
                outcome = self._measure(case, attendance.companion, timeout_s)
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

    def _measure(self, case: Case, companion: Companion, timeout_s: float) -> Outcome:
        told = companion.start()
        try:
            self._session.provision({**self._forgotten(told), **told})
            with self._network.awake(timeout_s):
                series = self._session.run_case(case, timeout_s=timeout_s, on_note=companion.note)
        except HilError:
            companion.check()
            raise
        return companion.finish(series)

    def _forgotten(self, told: Mapping[str, str | int]) -> Mapping[str, str | int]:
        """Return what the case before was told otherwise and this one is not: the run's own again."""
        earlier, self._told = self._told, frozenset(told)
        left = earlier - self._told
        own = self._network.provision() if left else {}
        return {field: value for field, value in own.items() if field in left}


def check_image(board: Board, built: str, running: str) -> None:
    """Raise RigError where a board runs something else than what was built."""
    if running != built:
        raise RigError(
            f"board {board.id} on {board.serial} runs {running[:12] or 'an unknown image'}, "
            f"which is not the image that was built ({built[:12]}).",
            next_step="run again; if it stays, the board's flash does not keep what is written.",
        )


Builds = Mapping[Role, Firmware]  # of one image: the candidate, and what it is compared with


class BoardImages:
    """``folder`` takes the logs of esptool; ``counts`` is where erased sectors are counted."""

    def __init__(self, firmware: Mapping[Image, Builds], *, run_id: str, folder: Path, counts: Path) -> None:
        self._firmware = firmware
        self._run_id = run_id
        self._folder = folder
        self._wear = WearCounter(counts)
        self._slots: dict[str, SlotFlasher] = {}  # of boards with two builds
        self._notes: dict[str, list[str]] = {}

    def build(self, image: Image, role: Role) -> Firmware:
        """Return the build of an image that has this role."""
        return self._firmware[image][role]

    def note(self, board: Board) -> str:
        """Return what went wrong at first when the board was last written, "" where nothing did."""
        return "; ".join(self._notes.get(board.id, ()))

    def write(self, board: Board, image: Image, role: Role, *, stop: threading.Event) -> None:
        """Put all builds of an image on a board; ``role`` boots next. Raises HilError as flash() does."""
        self._notes[board.id] = []
        self._slots.pop(board.id, None)
        builds = self._firmware[image]
        if len(builds) == 1:
            log = self._folder / f"{board.id}.log"
            self._note(board, flash(board, builds[role].build_dir, log=log, stop=stop, wear=self._wear))
            return
        names: list[str] = sorted(builds)
        if draw(self._run_id, board.id, str(image), "slot"):
            names.reverse()
        self._slots[board.id] = SlotFlasher(
            board,
            {name: build.build_dir for name, build in _candidate_first(builds)},
            order=(names[0], names[1]),
            folder=self._folder,
            stop=stop,
            wear=self._wear,
        )
        self._note(board, self._slots[board.id].flash(role))

    def select(self, board: Board, role: Role, *, again: bool = False) -> bool:
        """Have ``role`` boot next; return whether that took a switch. ``again`` repeats the last one.

        Raises HilError as flash() does.
        """
        slots = self._slots.get(board.id)
        if slots is None or (slots.selected == role and not again):
            return False
        if again:
            self._notes[board.id].append(f"the switch to the {role} did not take at first and was repeated")
        self._note(board, slots.repeat() if again else slots.switch(role))
        return True

    def _note(self, board: Board, result: FlashResult) -> None:
        if result.note:
            self._notes[board.id].append(result.note)


def _candidate_first(builds: Builds) -> list[tuple[str, Firmware]]:
    return sorted(builds.items(), key=lambda pair: pair[0] != "candidate")
