# SPDX-License-Identifier: Apache-2.0
"""The real rig behind the boot loop: esptool, a console, the agent, the network, traces.

Which firmware is on a board is known here: written once, and switched between two that lie side by side.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType

from hil.base.errors import ConfigError, HilError, RigError
from hil.base.flash_command import LABEL
from hil.base.given import SECRETS, Given
from hil.base.paths import PROJECT_ROOT
from hil.base.project import flash_here, product_here
from hil.boards.current import Meters, Sampling
from hil.boards.environment import host_environment, rig_environment
from hil.boards.firmware.backtrace import decode_panic
from hil.boards.firmware.build_folder import Image, console_baud
from hil.boards.firmware.selection import Firmware, find_firmware
from hil.boards.flash import FlashResult, KnownChips, SlotFlasher, WearCounter, erase, flash
from hil.boards.flash.by_command import CommandFlasher
from hil.boards.lease import kept_dir, lease_air, lease_rack
from hil.boards.power import await_port, switch_power
from hil.boards.rack import Board, Rack
from hil.metrics.metric import CURRENT
from hil.model import Case, Entry, Role, Rung, RunRecord, Scalar, Series
from hil.network.peers.companion import Companion, Outcome
from hil.probe.console import ProductConsole
from hil.probe.given import with_nvs
from hil.probe.probe_file import Probe
from hil.run.companions import Companions
from hil.run.crashes import Crashes
from hil.run.interfaces import Boot, Consoles, Device
from hil.run.network import RunNetwork
from hil.run.product_device import ProductDevice
from hil.run.rounds import BOOT_DEADLINE_S, draw
from hil.session import AgentSession
from hil.session.console import MASK
from hil.store import RunDirectory
from hil.trace.files import CASE as TRACE_CASE
from hil.trace.files import Origin, is_traced, store_trace
from hil.wire import Note

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
        *,
        swapped: bool = False,
        probes: Mapping[str, Probe] = MappingProxyType({}),
        given: Given = Given(),  # noqa: B008 - frozen
    ) -> None:
        """``swapped`` puts builds that lie side by side where the draw by run and board would not.

        ``probes`` measure a product, which is ``given`` what it has to know of the rack.
        """
        self._rack = rack
        self._lock_folder = lock_folder
        self._run = run
        self._run_id = run_id
        self._images = BoardImages(
            firmware,
            run_id=run_id,
            folder=run.path / "flash",
            counts=kept_dir(rack, lock_folder),
            chips=run.path / "flash" if rack.is_virtual else kept_dir(rack, lock_folder),
            swapped=swapped,
            masked=self._masked,
        )
        self._network = network
        self._companions = companions
        self._consoles = consoles
        self._probes = probes
        self._given = given
        self._append_lock = threading.Lock()
        self._traces: Counter[str] = Counter()  # of each board
        self._crashes: dict[str, Crashes] = {}  # of each board's last boot
        self._meters = Meters(run.path)

    def close(self) -> None:
        """Let go of the current meters."""
        self._meters.close()

    def prepare(self, board: Board, image: Image, role: Role, *, stop: threading.Event) -> None:
        self._meters.prepare(board)
        with self._blaming_the_network(board):
            if self._images.is_by_command(board):
                self._check_can_be_told(board, image)
            elif image.product and self._given.nvs:
                self._images.dress(board, image, self._with_nvs)
            self._images.write(self._network.at_its_port(board), image, role, stop=stop)

    def _check_can_be_told(self, board: Board, image: Image) -> None:
        if image.product and self._given.nvs:
            raise ConfigError(
                f"board {board.id} is flashed by hil.toml's command, and [given] nvs is written by hil's own "
                "flasher.",
                next_step="tell the product by given.console, or give it the network when it is built.",
            )

    def _masked(self, board: Board, text: str) -> str:
        """Return a text without the passwords that the product is given."""
        words = self._network.words(board)
        for secret in filter(None, (str(words.get(name, "")) for name in SECRETS)):
            text = text.replace(secret, MASK)
        return text

    def _with_nvs(self, board: Board, role: Role, build_dir: Path) -> Path:
        """Return a product's build that flashes what it is given, too."""
        folder = self._network.secrets_dir / "given" / board.id / role
        return with_nvs(build_dir, self._given, self._network.words(board), folder)

    @contextmanager
    def boot(self, board: Board, boot: Boot, *, check_stop: Callable[[], None]) -> Iterator[Device]:
        firmware = self._images.build(boot.image, boot.role)
        board = self._network.at_its_port(board)
        self._network.begin_boot(board)
        log = self._run.path / "flash" / f"{board.id}.log"
        console_log = self._run.console_log(board.id)
        reads_flash = not self._images.is_by_command(board)
        crashes = Crashes(board, firmware.build_dir, console_log, log, reads_flash=reads_flash)
        self._crashes[board.id] = crashes
        with crashes.told(), ExitStack() as stack:
            if boot.image.product:
                with self._blaming_the_network(board):
                    product = self._product(board, boot, stack, check_stop)
                crashes.counted = product.console.crashes
                yield product
                return
            with self._blaming_the_network(board):
                session = self._started(board, boot, stack, check_stop)
                session.provision(self._network.provision(board))
                link = self._join(board, session)
            address = str(link.get("ip", ""))
            yield AgentDevice(
                board, session, self._network, firmware.sha256, self._companions, address, self._meters
            )

    def _join(self, board: Board, session: AgentSession) -> Mapping[str, Scalar]:  # noqa: ARG002
        """Bring a board's network up; the golden check looks at how. Errors as of network_up()."""
        return session.network_up(timeout_s=NETWORK_DEADLINE_S)

    def _product(
        self, board: Board, boot: Boot, stack: ExitStack, check_stop: Callable[[], None]
    ) -> ProductDevice:
        """Return a board that runs a product, told what it is given; its console is closed by ``stack``."""
        firmware = self._images.build(boot.image, boot.role)
        if self._given.mdns:
            folder = self._run.path / "mdns" / f"{board.id}-{boot.index}-{boot.role}"
            stack.callback(self._network.announce(self._given.mdns, folder).stop)
        self._images.select(board, boot.role)
        board = replace(board, baud=console_baud(firmware.build_dir) or board.baud)
        log_path = self._run.console_log(board.id)
        console = self._consoles.open(board, log_path, stop=check_stop, check=lambda: self._check(board))
        stack.callback(console.close)
        device = ProductDevice(
            board,
            ProductConsole(
                console,
                board.id,
                log=console.log,
                log_path=str(log_path),
                decode=partial(decode_panic, build_dir=firmware.build_dir, console_log=log_path),
            ),
            self._probes,
            firmware.sha256,
            firmware.build_dir,
            self._network.words(board),
            lambda case: self._companions.place(case, board),
            lambda: self._network.check(board),
            lambda case: self._meters.beside(board, case),
            lambda: self._network.around(board),
            must_print=self._images.is_by_command(board),
        )
        device.tell(self._given)
        return device

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
                build_dir = self._images.build(boot.image, boot.role).build_dir
                session = self._session(board, build_dir, opened, check_stop)
                running = session.wait_ready(timeout_s=BOOT_DEADLINE_S).firmware_sha256
                if running == built or not switched or attempt == "repeat":
                    stack.push(opened.pop_all())
                    break
        check_image(board, built, running)
        return session

    def _session(
        self, board: Board, build_dir: Path, stack: ExitStack, check_stop: Callable[[], None]
    ) -> AgentSession:
        log_path = self._run.console_log(board.id)
        console = self._consoles.open(board, log_path, stop=check_stop, check=lambda: self._check(board))
        stack.callback(console.close)
        return AgentSession(
            console,
            board.id,
            log=console.log,
            log_path=str(log_path),
            decode=partial(decode_panic, build_dir=build_dir, console_log=log_path),
        )

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

    def rungs(self, board: Board) -> tuple[Rung, ...]:
        can_cut = board.power.is_automatic and (
            board.power.type != "virtual" or self._network.virtual_switch(board.id) is not None
        )
        rungs: list[tuple[Rung, bool]] = [
            ("reset", True),
            ("power cycle", can_cut),
            ("hub cycle", board.hub_power is not None),
            ("erase and re-flash", True),
            ("golden image", self._rack.golden is not None),
        ]
        return tuple(rung for rung, possible in rungs if possible)

    def cycle_power(self, board: Board, *, hub: bool) -> None:
        power = board.hub_power if hub else board.power
        with self._blaming_the_network(board):
            switch_power(board, "cycle", virtual=self._network.virtual_switch, power=power)
        await_port(board)

    def erase(self, board: Board, *, stop: threading.Event) -> None:
        self._images.erase(self._network.at_its_port(board), stop=stop)

    def try_golden(self, board: Board, *, stop: threading.Event, check_stop: Callable[[], None]) -> None:
        assert self._rack.golden
        golden = find_firmware(self._rack.golden, Image(board.firmware_target))
        board = self._network.at_its_port(board)
        with ExitStack() as stack, self._blaming_the_network(board):
            self._images.write_other(board, golden.build_dir, stop=stop)
            session = self._session(board, golden.build_dir, stack, check_stop)
            check_image(board, golden.sha256, session.wait_ready(timeout_s=BOOT_DEADLINE_S).firmware_sha256)

    def record(self, board: Board, boot: Boot, case: Case, outcome: Outcome, started_utc: str) -> RunRecord:
        series = outcome.series
        peer = {"peer": outcome.environment} if outcome.environment else {}
        trace = self._keep_trace(board, boot.index, case, outcome)
        if crashes := self._crashes.get(board.id):
            crashes.decode_counted()
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
                **({CURRENT: outcome.current} if outcome.current else {}),
            },
            measured_s=round(series.measured_s, 3),
            product=product_here(),
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

    def measure(self, case: Case, *, timeout_s: float) -> Outcome:
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

    def _metered(self, case: Case, companion: Companion, timeout_s: float) -> Outcome:
        """Run the case with a meter in the board's supply sampling beside it, where there is one."""
        with self._meters.beside(self._board, case) as sampling:
            outcome = self._measure(case, companion, timeout_s, sampling)
            sampling.series = outcome.series
        return replace(outcome, current=sampling.facts)

    def _measure(self, case: Case, companion: Companion, timeout_s: float, sampling: Sampling) -> Outcome:
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
    """``folder`` takes the logs of esptool; ``counts`` is where erased sectors are counted.

    ``chips`` is where it is kept what each chip was: with the run for a virtual one, which each makes anew.

    Which of two builds gets which slot is drawn by run, board and image; ``swapped`` turns that round.
    """

    def __init__(
        self,
        firmware: Mapping[Image, Builds],
        *,
        run_id: str,
        folder: Path,
        counts: Path,
        chips: Path,
        swapped: bool = False,
        masked: Callable[[Board, str], str] = lambda _board, text: text,
    ) -> None:
        self._masked = masked
        self._firmware = firmware
        self._run_id = run_id
        self._swapped = swapped
        self._folder = folder
        self._wear, self._chips = WearCounter(counts), KnownChips(chips)
        self._slots: dict[str, SlotFlasher | CommandFlasher] = {}  # of boards with two builds, or a command
        self._notes: dict[str, list[str]] = {}
        self._flashed: dict[tuple[str, Image], Mapping[Role, Path]] = {}  # where it is not the build itself

    def build(self, image: Image, role: Role) -> Firmware:
        """Return the build of an image that has this role."""
        return self._firmware[image][role]

    def dress(self, board: Board, image: Image, dressed: Callable[[Board, Role, Path], Path]) -> None:
        """Have what is flashed of an image made by ``dressed`` of its build, for this board."""
        self._flashed[board.id, image] = {
            role: dressed(board, role, build.build_dir) for role, build in self._firmware[image].items()
        }

    def erase(self, board: Board, *, stop: threading.Event) -> None:
        """Erase a board's flash. Raises HilError as flash() does."""
        log = self._folder / f"{board.id}.log"
        erase(board, log=log, stop=stop, wear=self._wear, chips=self._chips)

    def note(self, board: Board) -> str:
        """Return what went wrong at first when the board was last written, "" where nothing did."""
        return "; ".join(self._notes.get(board.id, ()))

    def write(self, board: Board, image: Image, role: Role, *, stop: threading.Event) -> None:
        """Put all builds of an image on a board; ``role`` boots next. Raises HilError as flash() does."""
        self._notes[board.id] = []
        self._slots.pop(board.id, None)
        builds = self._firmware[image]
        if self.is_by_command(board):
            self._slots[board.id] = self._by_command(board, builds, stop)
            self._note(board, self._slots[board.id].flash(role))
            return
        if len(builds) == 1:
            log = self._folder / f"{board.id}.log"
            build_dir = self._flashed_of(board, image, role)
            result = flash(
                board, build_dir, log=log, stop=stop, wear=self._wear, chips=self._chips, keeps_nvs=False
            )
            self._note(board, result)
            return
        names: list[str] = sorted(builds)
        if bool(draw(self._run_id, board.id, str(image), "slot")) != self._swapped:
            names.reverse()
        self._slots[board.id] = SlotFlasher(
            board,
            {role: self._flashed_of(board, image, role) for role, _build in _candidate_first(builds)},
            order=(names[0], names[1]),
            folder=self._folder,
            stop=stop,
            wear=self._wear,
            chips=self._chips,
        )
        self._note(board, self._slots[board.id].flash(role))

    def is_by_command(self, board: Board) -> bool:
        """Say whether the product's own command flashes a board."""
        return LABEL in board.labels

    def _by_command(self, board: Board, builds: Builds, stop: threading.Event) -> CommandFlasher:
        command = flash_here()
        if command is None:
            raise ConfigError(
                f"{board.where}: board {board.id} has the label {LABEL}, and no hil.toml says how.",
                next_step='write into it: [flash] command = "idf.py -B {build} -p {port} encrypted-flash".',
            )
        return CommandFlasher(
            board,
            {role: build.build_dir for role, build in builds.items()},
            command,
            where=PROJECT_ROOT,
            folder=self._folder,
            masked=partial(self._masked, board),
            stop=stop,
            wear=self._wear,
            chips=self._chips,
        )

    def write_other(self, board: Board, build_dir: Path, *, stop: threading.Event) -> None:
        """Put a build that is none of the run's on a board. Raises HilError as flash() does."""
        self._slots.pop(board.id, None)
        log = self._folder / f"{board.id}.log"
        flash(board, build_dir, log=log, stop=stop, wear=self._wear, chips=self._chips)

    def _flashed_of(self, board: Board, image: Image, role: Role) -> Path:
        """Return the folder that is flashed for a build."""
        return self._flashed.get((board.id, image), {}).get(role, self._firmware[image][role].build_dir)

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


def _candidate_first(builds: Builds) -> list[tuple[Role, Firmware]]:
    return sorted(builds.items(), key=lambda pair: pair[0] != "candidate")
