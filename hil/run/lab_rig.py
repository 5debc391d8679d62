# SPDX-License-Identifier: Apache-2.0
"""The real rig behind the boot loop: esptool, a console, the agent, the network, traces."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType

from hil.base.errors import ConfigError, HilError
from hil.base.given import SECRETS, Given
from hil.base.project import product_here
from hil.boards.current_sampling import Meters
from hil.boards.environment import host_environment, rig_environment
from hil.boards.firmware.backtrace import decode_panic
from hil.boards.firmware.build_folder import Image, app_image, console_baud
from hil.boards.flash.by_command import is_by_command
from hil.boards.lease import lease_air, lease_rack
from hil.boards.rack import Board, Rack
from hil.boards.supply import await_port, switch_power
from hil.metrics.metric import CURRENT
from hil.model import Case, Entry, Role, Rung, RunRecord, Scalar
from hil.network.peers.companion import Observed
from hil.probe.console import ProductConsole
from hil.probe.given import with_nvs
from hil.probe.probe_file import Probe
from hil.run.agent_device import AgentDevice
from hil.run.board_images import BoardImages, Builds, check_image
from hil.run.companions import Companions
from hil.run.crashes import Crashes
from hil.run.interfaces import Boot, Consoles, Device
from hil.run.network import RunNetwork
from hil.run.product_device import ProductDevice
from hil.run.rounds import BOOT_DEADLINE_S
from hil.session import AgentSession
from hil.session.console import MASK
from hil.store import RunDirectory
from hil.trace.files import Origin, store_trace, timeline_file

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
        probes: Mapping[str, Probe] = MappingProxyType({}),
        given: Given = Given(),  # noqa: B008 - frozen
    ) -> None:
        """``probes`` measure a product, which is ``given`` what it has to know of the rack."""
        self._rack = rack
        self._lock_folder = lock_folder
        self._run = run
        self._run_id = run_id
        self._images = BoardImages(
            firmware,
            folder=run.path / "flash",
            masked=self._masked,
        )
        self._network = network
        self._companions = companions
        self._consoles = consoles
        self._probes = probes
        self._given = given
        self._append_lock = threading.Lock()
        self._traces: Counter[str] = Counter()  # of each board
        self._timelines: dict[str, Mapping[str, Scalar]] = {}  # what records say of a board's last boot
        self._crashes: dict[str, Crashes] = {}  # of each board's last boot
        self._meters = Meters(run.path)

    def close(self) -> None:
        """Let go of the current meters."""
        self._meters.close()

    def prepare(
        self,
        board: Board,
        image: Image,
        role: Role,
        *,
        slot: int,
        alone: bool = False,
        stop: threading.Event,
    ) -> None:
        self._meters.prepare(board)
        with self._blaming_the_network(board):
            if is_by_command(board):
                self._check_can_be_told(board, image)
            elif image.product and self._given.nvs:
                self._images.dress(board, image, self._with_nvs)
            at_port = self._network.at_its_port(board)
            self._images.write(at_port, image, role, slot=slot, alone=alone, stop=stop)

    def _check_can_be_told(self, board: Board, image: Image) -> None:
        if image.product and self._given.nvs:
            raise ConfigError(
                f"board {board.id} is flashed by hil.toml's command, but only hil's own flasher "
                "writes [given] nvs.",
                next_step="use given.console, or build the network into the product.",
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
        reads_flash = not is_by_command(board)
        crashes = Crashes(board, firmware.build_dir, console_log, log, reads_flash=reads_flash)
        self._crashes[board.id] = crashes
        with crashes.told(), self._traced(board, boot, firmware.build_dir), ExitStack() as stack:
            if boot.image.product:
                with self._blaming_the_network(board):
                    product = self._product(board, boot, stack, check_stop)
                crashes.counted = product.console.crashes
                yield product
                return
            with self._blaming_the_network(board):
                session = self._started(board, boot, stack, check_stop)
                session.provision(self._network.provision(board))
                link = session.network_up(timeout_s=NETWORK_DEADLINE_S)
            address = self._network.address_of(board, str(link.get("ip", "")))
            yield AgentDevice(
                board, session, self._network, firmware.sha256, self._companions, address, self._meters
            )

    def _traced(self, board: Board, boot: Boot, build_dir: Path) -> AbstractContextManager[None]:
        """Keep a timeline of an emulated board's boot, where the rack file asks for it."""
        if not board.trace:
            return nullcontext()
        elf = app_image(build_dir).with_suffix(".elf").resolve()
        if not elf.is_file():
            self._timelines[board.id] = {"error": f"there is no {elf}, by which an emulator names tasks"}
            return nullcontext()
        self._traces[board.id] += 1
        file = timeline_file(board.id, boot.index, self._traces[board.id])
        self._timelines[board.id] = {"timeline": str(file)}
        return self._network.traced(board, elf, self._run.path / file)

    def _product(
        self, board: Board, boot: Boot, stack: ExitStack, check_stop: Callable[[], None]
    ) -> ProductDevice:
        """Return a board that runs a product, told what it is given; its console is closed by ``stack``."""
        firmware = self._images.build(boot.image, boot.role)
        if self._given.mdns:
            folder = self._run.path / "mdns" / f"{board.id}-{boot.index}-{boot.role}"
            stack.callback(self._network.announce(self._given.mdns, folder).stop)
        self._images.select(board, boot.role)
        board = _at_its_rate(board, firmware.build_dir)
        log_path = self._run.console_log(board.id)
        console = self._consoles.open(board, log_path, stop=check_stop, check=lambda: self._check(board))
        stack.callback(console.close)
        product = ProductConsole(
            console,
            board.id,
            log=console.log,
            log_path=str(log_path),
            decode=partial(decode_panic, build_dir=firmware.build_dir, console_log=log_path),
        )
        stack.callback(product.close)
        device = ProductDevice(
            board,
            product,
            self._probes,
            firmware.sha256,
            firmware.build_dir,
            self._network.words(board),
            lambda case: self._companions.place(case, board),
            lambda: self._network.check(board),
            lambda case: self._meters.beside(board, case),
            lambda: self._network.around(board),
            must_print=is_by_command(board),
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
        session.check_how_it_booted()
        return session

    def _session(
        self, board: Board, build_dir: Path, stack: ExitStack, check_stop: Callable[[], None]
    ) -> AgentSession:
        board = _at_its_rate(board, build_dir)
        log_path = self._run.console_log(board.id)
        console = self._consoles.open(board, log_path, stop=check_stop, check=lambda: self._check(board))
        stack.callback(console.close)
        session = AgentSession(
            console,
            board.id,
            log=console.log,
            log_path=str(log_path),
            decode=partial(decode_panic, build_dir=build_dir, console_log=log_path),
        )
        stack.callback(session.close)
        return session

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
        ]
        return tuple(rung for rung, possible in rungs if possible)

    def cycle_power(self, board: Board, *, hub: bool) -> None:
        power = board.hub_power if hub else board.power
        with self._blaming_the_network(board):
            switch_power(board, "cycle", virtual=self._network.virtual_switch, power=power)
        await_port(board)

    def erase(self, board: Board, *, stop: threading.Event) -> None:
        self._images.erase(self._network.at_its_port(board), stop=stop)

    def record(self, board: Board, boot: Boot, case: Case, outcome: Observed, started_utc: str) -> RunRecord:
        series = outcome.series
        peer = {"peer": outcome.environment} if outcome.environment else {}
        timeline = self._timelines.get(board.id, {})
        trace = {**timeline, **self._keep_trace(board, boot.index, case, outcome)}
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
                "rig": {**rig_environment(self._rack), **self._images.facts(board)},
                **network,
                **peer,
                **({"trace": trace} if trace else {}),
                **({CURRENT: outcome.current} if outcome.current else {}),
            },
            measured_s=round(series.measured_s, 3),
            product=product_here(),
        )

    def _keep_trace(
        self, board: Board, boot_index: int, case: Case, outcome: Observed
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


def _at_its_rate(board: Board, build_dir: Path) -> Board:
    """Return the board with the rate of its build's console, where the build says one."""
    return replace(board, baud=console_baud(build_dir) or board.baud)
