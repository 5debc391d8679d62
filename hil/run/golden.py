# SPDX-License-Identifier: Apache-2.0
"""The golden check: firmware that is known to be good on each board, and what the rack makes of it.

It is a run of three short cases over the same engine, judged by no gate: flashed, booted, joined, a publish,
an echo and a throughput; then the drift of the board's timer, its flash chip, and whether its power really
cuts.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from hil.base.errors import HilError
from hil.boards.firmware.build_folder import Image, flasher_args
from hil.boards.firmware.selection import Firmware
from hil.boards.flash.identify import identify
from hil.boards.health.golden import Checked
from hil.boards.lease import lease_boards, lock_dir
from hil.boards.power import VirtualSwitch
from hil.boards.power_proof import prove_power
from hil.boards.rack import Board, Rack
from hil.model import Entry, Fault, Rung, RunRecord, Scalar
from hil.run.boot_loop import BootLoop
from hil.run.builds import find_builds
from hil.run.campaign import Campaign
from hil.run.companions import Companions
from hil.run.interfaces import Boot, Consoles, Device, Event
from hil.run.lab_rig import LabRig
from hil.run.network import RunNetwork, read_access_point, start_network
from hil.run.plan import make_plan
from hil.session import AgentSession
from hil.session.pace import UPTIME, Drift, Exchange, drift_between
from hil.store import RunDirectory
from hil.store.run_info import new_run_id
from hil.thresholds import Thresholds

FOLDER = "golden"  # below out/: no run, so that nothing takes it for one
CASES: Mapping[str, Mapping[str, Scalar]] = {
    "publish": {"count": 100},
    "echo": {"interval_us": 20000, "timeout_ms": 5000},
    "throughput": {"role": "client", "duration_s": 4, "omit_s": 1},
}
CAPTURED = ("echo", "throughput")  # need the right to capture packets
EXCHANGES = 16
CLOCK_OVER_S = 30.0
CLOCK_SLACK_S = 30.0  # for the exchanges themselves
CLOCK_OVER_VIRTUAL_S = 10.0  # its timer is the host's own
_OK = 0


@dataclass(frozen=True)
class GoldenRun:
    """``path`` holds logs and records of a check; ``held_s`` is how long it had the boards."""

    run_id: str
    path: Path
    checked: tuple[Checked, ...]
    held_s: float


def check_golden(
    rack: Rack,
    boards: Sequence[str],
    thresholds: Mapping[str, Thresholds],
    *,
    out: Path,
    consoles: Consoles,
    say: Callable[[str], None],
    captures: bool = True,
) -> GoldenRun:
    """Check the boards named with the rack's golden firmware; without one, of a virtual rack, with this
    checkout's own.

    ``thresholds`` tell the parameters of the benches; without the right to make ``captures`` what needs them
    is not measured.

    Raises:
        ConfigError: no golden firmware for one of the chips, or it is damaged; no such profile or password.
        RigError: a board is held by somebody, or the network does not start.
    """
    rack = replace(rack, boards=tuple(replace(board, limits={}) for board in rack.boards))
    campaign = _campaign(rack, boards, thresholds, out, captures=captures)
    firmware = find_builds(rack.golden, campaign.plan.images, say)
    run_id, folder = new_run_id(FOLDER), lock_dir(rack, out)
    began = time.monotonic()
    with ExitStack() as stack:
        access_point = read_access_point(rack, campaign.profile)
        stack.enter_context(lease_boards(folder, boards, run_id=run_id))
        run = RunDirectory.create(out / FOLDER, run_id)
        say(f"Starting rack {rack.name}")
        network = start_network(campaign, run.path, access_point)
        stack.callback(network.stop)
        checked = _check(campaign, firmware, network, run, consoles, folder, say)
        return GoldenRun(run_id, run.path, tuple(checked), time.monotonic() - began)


def _campaign(
    rack: Rack, boards: Sequence[str], thresholds: Mapping[str, Thresholds], out: Path, *, captures: bool
) -> Campaign:
    benches = {
        bench: replace(thresholds[bench], suites={FOLDER: (thresholds[bench].case(parameters),)}, limits=())
        for bench, parameters in CASES.items()
        if captures or bench not in CAPTURED
    }
    return Campaign(
        rack=rack,
        thresholds=benches,
        thresholds_folder=Path(),
        plan=make_plan(rack, benches, selection=FOLDER, board_ids=boards),
        profile=rack.access_point.profile,
        firmware=rack.golden,
        out=out,
        wait_s=0.0,
        trigger=FOLDER,
        pushgateway="",
        report=False,
        keep_captures=False,
    )


def _check(
    campaign: Campaign,
    firmware: Mapping[Image, Firmware],
    network: RunNetwork,
    run: RunDirectory,
    consoles: Consoles,
    locks: Path,
    say: Callable[[str], None],
) -> Iterator[Checked]:
    peers = {bench: own.peer for bench, own in campaign.thresholds.items()}
    companions = Companions(peers, network, run.path)
    builds: Any = {image: {"candidate": build} for image, build in firmware.items()}
    rig = GoldenRig(campaign.rack, run, run.run_id, builds, network, companions, consoles, locks)
    ended = {plan.board.id: threading.Event() for plan in campaign.plan.boards}

    def notify(event: Event) -> None:
        _tell(event, say)
        if event.stage in ("done", "failed"):
            ended[event.board].set()

    loop = BootLoop(campaign.plan, rig, run_id=run.run_id, notify=notify)
    loop.start()
    try:
        for plan in campaign.plan.boards:
            for case in plan.cases:
                loop.wait(plan.board.id, case)
            ended[plan.board.id].wait(CLOCK_OVER_S + CLOCK_SLACK_S)  # its clock is looked at after its cases
    finally:
        loop.stop()
    entries = run.read().entries
    for plan in campaign.plan.boards:
        needed_mib = max(needed_flash_mib(firmware[stage.image].build_dir) for stage in plan.stages)
        bounds = campaign.rack.golden_bounds
        bounds = {**bounds, "flash_mib": max(bounds["flash_mib"], needed_mib)}
        seen = rig.seen.get(plan.board.id, Seen())
        one = _checked(plan.board, bounds, [one for one in entries if one.board == plan.board.id], seen)
        yield one if one.fault else _with_power(one, rig, network, say)


def _checked(board: Board, bounds: Mapping[str, float], own: Sequence[Entry], seen: Seen) -> Checked:
    """Return what a board's entries of the journal and its boot tell."""
    records = [entry for entry in own if isinstance(entry, RunRecord)]
    faults = [entry for entry in own if isinstance(entry, Fault)]
    drift = seen.drift()
    return Checked(
        board,
        bounds,
        {**seen.figures(), **figures_of(records), **({"clock_drift_ppm": drift.ppm} if drift else {})},
        {"clock_drift_ppm": drift.uncertainty_ppm} if drift else {},
        fault=faults[0].sentence if faults else "",
        is_misnamed=bool(faults) and faults[0].owner == "configuration",
        measured_s=math.fsum(record.measured_s or 0.0 for record in records),
    )


def _tell(event: Event, say: Callable[[str], None]) -> None:
    if event.stage in ("flashing", "booting", "measuring", "recovering"):
        say(f"{event.board}: {event.stage} {event.detail.partition('/')[0]}".rstrip())


def _with_power(one: Checked, rig: GoldenRig, network: RunNetwork, say: Callable[[str], None]) -> Checked:
    """Ask the chip for its flash, and see whether the board follows its switch."""
    board = network.at_its_port(one.board)
    with rig.lease_rack(alone=False, check_stop=lambda: None):
        try:
            flash_mib = flash_size_mib(identify(board).flash)
            figures = {**one.figures, **({"flash_mib": flash_mib} if flash_mib else {})}
            if not rig.can_cut(board):
                return replace(one, figures=figures)
            say(f"{board.id}: switching its power")
            return replace(one, figures=figures, power=prove_power(board, virtual=rig.switch_of))
        except HilError as error:
            return replace(one, fault=str(error), is_misnamed=error.owner == "configuration")


@dataclass
class Seen:
    """What the host saw of a board's boot."""

    associate_s: float | None = None
    first: Sequence[Exchange] = ()
    last: Sequence[Exchange] = ()

    def figures(self) -> dict[str, float]:
        return {} if self.associate_s is None else {"associate_s": self.associate_s}

    def drift(self) -> Drift | None:
        return drift_between(self.first, self.last) if self.first and self.last else None


class GoldenRig(LabRig):
    """The rig of a run, which looks at the boards themselves on the way."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.seen: dict[str, Seen] = {}
        self._sessions: dict[str, AgentSession] = {}

    def rungs(self, board: Board) -> tuple[Rung, ...]:
        """A board that only its reset brings back was hung by its firmware; this one does not hang."""
        return tuple(rung for rung in super().rungs(board) if rung not in ("reset", "golden image"))

    def can_cut(self, board: Board) -> bool:
        return "power cycle" in self.rungs(board)

    def switch_of(self, board_id: str) -> VirtualSwitch:
        """Return a virtual board's switch, which is there where can_cut() says so."""
        switch = self._network.virtual_switch(board_id)
        assert switch
        return switch

    def _join(self, board: Board, session: AgentSession) -> Mapping[str, Scalar]:
        began = time.monotonic()
        link = super()._join(board, session)
        associate_s = time.monotonic() - began
        self._sessions[board.id] = session
        self.seen[board.id] = Seen(associate_s, exchanges(session))
        return link

    @contextmanager
    def boot(self, board: Board, boot: Boot, *, check_stop: Callable[[], None]) -> Iterator[Device]:
        with super().boot(board, boot, check_stop=check_stop) as device:
            yield device
            seen = self.seen[board.id]
            over_s = CLOCK_OVER_VIRTUAL_S if board.kind == "virtual" else CLOCK_OVER_S
            while time.monotonic() < seen.first[0].asked_s + over_s:
                time.sleep(0.1)
                check_stop()
            seen.last = exchanges(self._sessions[board.id])


def exchanges(session: AgentSession) -> tuple[Exchange, ...]:
    """Ask a board for its timer, several times. Raises HilError as AgentSession.info()."""
    found = []
    for _ in range(EXCHANGES):
        asked_s = time.monotonic()
        uptime_us = session.info().get(UPTIME)
        if isinstance(uptime_us, int):
            found.append(Exchange(asked_s, uptime_us / 1e6, time.monotonic()))
    return tuple(found)


def figures_of(records: Sequence[RunRecord]) -> dict[str, float]:
    """Return what the cases tell: medians of those that were done, failed ones as slower than any."""
    found: dict[str, float] = {}
    tried = failed = 0
    for record in records:
        columns = {name: values[record.warmup_rows :] for name, values in record.columns.items()}
        rssi = record.environment.get("device", {}).get("rssi_dbm")
        if isinstance(rssi, int):
            found["rssi_dbm"] = float(rssi)
        if record.bench == "throughput":
            found["throughput_mbps"] = fmean(columns["received_bps"]) / 1e6
            continue
        timeout_ms = float(record.parameters["timeout_ms"] or 0)
        took_ms = sorted(
            (done - planned) / 1e3 if outcome == _OK else timeout_ms
            for planned, done, outcome in zip(
                columns["planned_us"], columns["done_us"], columns["outcome"], strict=True
            )
        )
        found[f"{record.bench}_p50_ms"] = took_ms[(len(took_ms) - 1) // 2]
        tried += len(took_ms)
        failed += sum(outcome != _OK for outcome in columns["outcome"])
    return {**found, "failed_ratio": failed / tried} if tried else found


def flash_size_mib(flash: str) -> float | None:
    """Return the size that a flash chip's id tells by its last byte, as JEDEC's makers have it; None where it
    tells none. "ef 4016" has 4 MiB."""
    device = flash.partition(" ")[2]
    code = int(device, 16) & 0xFF if device else 0
    if 0x20 <= code <= 0x22:  # where the makers went on, beyond 32 MiB
        return 2.0 ** (code - 0x20 + 6)
    return 2.0 ** ((code & 0x1F) - 20) if 0x12 <= code <= 0x1C or 0x32 <= code <= 0x3A else None


def needed_flash_mib(build_dir: Path) -> float:
    """Return the size of the flash chip that an image is for, 0 where it does not say."""
    size = str(flasher_args(build_dir).get("flash_settings", {}).get("flash_size", ""))
    return float(size.removesuffix("MB")) if size.removesuffix("MB").isdecimal() else 0.0
