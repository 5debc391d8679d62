# SPDX-License-Identifier: Apache-2.0
"""A rack without hardware: virtual boards behind a virtual air, gone when their owner is.

From a rack file to a running virtual rack: where its state lives, and who starts it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hil.base.errors import HilError, RigError
from hil.boards.rack import Board, Rack
from hil.virtual import rack_namespace, rack_start, rack_state, remote_process, unix_socket
from hil.virtual.air.build import build_air
from hil.virtual.air.control import AirControl
from hil.virtual.air.profile import AirProfile
from hil.virtual.emulator import drivers
from hil.virtual.emulator.driver import elf_of, timeline_of
from hil.virtual.rack_start import BoardCommand, default_board_command
from hil.virtual.rack_state import RackPaths, VirtualBoardSpec
from hil.virtual.remote_process import RemoteProcess
from hil.virtual.supervisor import last_line

if TYPE_CHECKING:
    from hil.virtual.board.client import BoardControl

REQUEST_TIMEOUT_S = 5.0
STOP_TIMEOUT_S = 5.0
__all__ = ["VirtualBoardSpec", "VirtualRack"]


class Way(NamedTuple):
    """Whether a board has the address that the rack gave it; and since the rack is up how many packets of any
    board the host's rules have thrown away, how much the host has sent to this board, and how much of it in
    connections that the host began, and to which port. None is what could not be counted."""

    has_its_address: bool
    dropped_count: int | None
    sent_bytes: int | None
    begun_bytes: int | None
    begun_bytes_by_port: Mapping[int, int]


class VirtualRack:
    """A running virtual rack: started here (and gone when this process is), or attached to.

    Every method raises RigError, naming the part that died, when the rack is no longer whole.
    """

    host_address = rack_namespace.HOST_ADDRESS
    host_interface = rack_namespace.BRIDGE
    isolated = True  # its network is its own: fixed ports are free in it

    def __init__(
        self,
        name: str,
        paths: RackPaths,
        boards: Sequence[VirtualBoardSpec],
        owner: rack_start.RackOwner | None,
    ) -> None:
        self.name = name
        self.boards = {board.id: board for board in boards}
        self.air = AirControl(paths.air_socket, diagnose=self._cause)
        self._paths = paths
        self._owner = owner
        self._processes: list[RemoteProcess] = []

    @classmethod
    def start(
        cls,
        *,
        name: str,
        state_dir: Path,
        boards: Sequence[VirtualBoardSpec],
        profile: AirProfile,
        air_seed: int,
        board_command: BoardCommand | None = default_board_command,
        air_binary: Path | None = None,
    ) -> VirtualRack:
        """Start a rack; it lives until ``stop()`` or until this process ends, however it ends.

        ``boards`` with port 0 get a free one: read ``rack.boards[id].port``. What a killed run left in
        ``state_dir`` is removed, flash contents apart. ``air_binary`` is a hil-air built before; by
        default it is built in ``state_dir``. ``board_command`` None: namespaces without boards in them.

        Raises:
            RigError: the rack is held already (names the process), a port is taken, the machine refuses
                (names the command that mends it), or a part did not start (names its log).
        """
        paths = RackPaths(state_dir.resolve())
        air = air_binary or build_air(paths.folder / "air")
        owner, real_boards = rack_start.start(paths, name, boards, air, air_seed, board_command)
        rack = cls(name, paths, real_boards, owner)
        try:
            rack.air.profile(profile)
            if board_command is not None:
                rack._await_boards()
        except BaseException:
            rack.stop()
            raise
        return rack

    @classmethod
    def attach(cls, *, name: str, state_dir: Path) -> VirtualRack | None:
        """Return the rack that another process keeps up in ``state_dir``, None where there is none."""
        paths = RackPaths(state_dir.resolve())
        holder = rack_state.read_holder(paths)
        if holder is None or holder.name != name or not rack_state.is_held(paths):
            return None
        rack = cls(name, paths, holder.boards, None)
        return rack if rack._answers() else None

    @property
    def owned(self) -> bool:
        """True where this process started the rack, False where it attached to it."""
        return self._owner is not None

    @property
    def enter_command(self) -> str:
        """What goes before a command to run it in the rack's network: the supervisor is there."""
        credentials = struct.calcsize("iII")
        with unix_socket.connect(self._paths.supervisor_socket, timeout_s=REQUEST_TIMEOUT_S) as connection:
            answer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, credentials)
        return f"sudo nsenter --net --target {struct.unpack('iII', answer)[0]} "

    def spawn(
        self,
        argv: Sequence[str],
        *,
        netns: str = "rack",
        log_path: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> RemoteProcess:
        """Start a program inside: on the rack's host side, or in the namespace of board ``netns``.

        Output is appended to ``log_path``. ``env`` and ``cwd`` default to the caller's.
        """
        self.check()
        try:
            process = remote_process.start(
                self._paths.supervisor_socket, argv, netns=netns, log_path=log_path, env=env, cwd=cwd
            )
        except (OSError, EOFError) as error:
            raise self._broken(f"starting {argv[0]}") from error
        self._processes = [known for known in self._processes if known.returncode is None] + [process]
        return process

    def board_control(self, board_id: str) -> BoardControl:
        """Return the control of a board: power, faults, state."""
        from hil.virtual.board.client import BoardControl

        self._require_board(board_id)
        self.check()
        return BoardControl(self._paths.board_socket(board_id))

    def board_address(self, board_id: str) -> str:
        """Return the board's IPv4 address: of its wlan0, or what an emulated one is told to have."""
        self._require_board(board_id)
        return rack_namespace.board_address(list(self.boards).index(board_id))

    def emulation(self, board_id: str) -> Mapping[str, str]:
        """Return what a record says of the emulator that runs a board; nothing of a virtual one."""
        self._require_board(board_id)
        if self.boards[board_id].kind != "emulated":
            return {}
        return dict(self.board_control(board_id).state()["emulation"])

    @contextlib.contextmanager
    def traced(self, board_id: str, elf: Path, into: Path) -> Iterator[None]:
        """Have an emulated board traced, whatever it starts; the timeline of its last start goes to ``into``.

        It is whole when its emulator has ended, so the board's power is cycled.
        """
        flash = self._paths.board_flash(board_id)
        link, timeline = elf_of(flash), timeline_of(flash)
        for path in (link, timeline):
            path.unlink(missing_ok=True)
        link.symlink_to(elf)
        try:
            yield
        finally:
            link.unlink(missing_ok=True)
            with contextlib.suppress(HilError):  # why it does not answer is told by whoever asks it next
                self.board_control(board_id).power("cycle")
            if timeline.exists():
                into.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(timeline, into)

    def access_point_interface(self, board_id: str) -> str:
        """Return the bridge's port towards the board: the access point's side of its air."""
        self._require_board(board_id)
        return rack_namespace.access_point_device(list(self.boards).index(board_id))

    def check(self) -> None:
        """Raise RigError when a part of the rack has died, naming it and its log."""
        cause = self._cause()
        if cause:
            raise self._broken("using it", cause)

    def environment(self) -> Mapping[str, int | float | str]:
        """Return what a record says of the air: links, seed, real-time priority held (0 = none),
        memory_locked, and the host side's congestion control."""
        return {**self.air.info(), "host_congestion_control": self.state()["congestion_control"]}

    def state(self) -> Mapping[str, Any]:
        """Return the supervisor's view: dead parts (sentences), parts (name → pid inside), priority."""
        return self._asked({"op": "state"})

    def way_of(self, board_id: str, own_address: str = "") -> Way:
        """Return what there is to tell of the way between a board and the host. ``own_address`` is one that
        an emulated board has by itself. Raises RigError."""
        address = self.board_address(board_id)
        try:
            answer = self._asked({"op": "address", "netns": board_id})
        except (OSError, EOFError) as error:
            raise self._broken(f"asking for the address of board {board_id}") from error
        own = self.boards[board_id].is_bridged  # its address is its own to have
        counted = own_address or address
        sent, begun = answer.get("sent_bytes"), answer.get("begun_bytes")
        ports = answer.get("begun_bytes_by_port", {}).get(counted, {})
        # an older rack that is kept up says nothing
        return Way(
            own or answer.get("address", address) == address,
            answer.get("dropped"),
            None if sent is None else int(sent.get(counted, 0)),
            None if begun is None else int(begun.get(counted, 0)),
            {int(port): size for port, size in ports.items()},
        )

    def _asked(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        with unix_socket.connect(self._paths.supervisor_socket, timeout_s=REQUEST_TIMEOUT_S) as connection:
            unix_socket.send_message(connection, dict(request))
            return unix_socket.receive_message(connection)[0]

    def stop(self) -> None:
        """End the rack if this process started it, else only what this process spawned in it."""
        for process in self._processes:
            process.close()
        self._processes = []
        if self._owner is not None:
            self.shut_down()
            rack_start.release(self._paths, self._owner, STOP_TIMEOUT_S)
            self._owner = None

    def shut_down(self) -> None:
        """Ask the rack to end, whoever started it."""
        with contextlib.suppress(OSError, EOFError):
            path = self._paths.supervisor_socket
            with unix_socket.connect(path, timeout_s=REQUEST_TIMEOUT_S) as connection:
                unix_socket.send_message(connection, {"op": "stop"})
                unix_socket.receive_message(connection)

    def _answers(self) -> bool:
        try:
            self.state()
        except (OSError, EOFError):
            return False
        return True

    def _await_boards(self) -> None:
        for board_id in self.boards:
            control = self._paths.board_socket(board_id)
            if not rack_start.await_socket(control, self.check):
                log = str(self._paths.board_log(board_id))
                raise RigError(f"Virtual board {board_id} did not open its control socket.", log=log)

    def _require_board(self, board_id: str) -> None:
        if board_id not in self.boards:
            known = ", ".join(self.boards)
            raise RigError(f"The virtual rack {self.name!r} has no board {board_id!r}; boards: {known}.")

    def _cause(self) -> str:
        """Name the part that died; "" if all run."""
        try:
            dead = self.state()["dead"]
        except (OSError, EOFError, ValueError):
            return self._supervisor_cause()
        return "; ".join(dead)

    def _supervisor_cause(self) -> str:
        if self._owner is None:
            why = last_line(os.fspath(self._paths.supervisor_log))
            return why or "the supervisor is gone; the process that kept the rack up has ended it or died"
        try:
            code = self._owner.process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            return f"the supervisor does not answer (unshare, pid {self._owner.process.pid}, still runs)"
        if code == -signal.SIGKILL:
            return f"unshare (pid {self._owner.process.pid}) was killed"
        return f"the supervisor died (unshare ended with status {code})"

    def _broken(self, attempt: str, cause: str = "") -> RigError:
        sentence = f"The virtual rack {self.name!r} broke ({attempt}): {cause or self._cause()}."
        log = os.fspath(self._paths.supervisor_log)
        return RigError(sentence, log=log, next_step="stop it and start it again.")


def up_dir(rack: Rack, out: Path) -> Path:
    """Return where the rack that ``hil virtual up`` keeps has its state."""
    return out / "virtual" / rack.name / "up"


def run_dir(rack: Rack, boards: Sequence[Board], out: Path) -> Path:
    """Return where a run's own rack has its state. Its first board is leased, so no other run uses it."""
    return out / "virtual" / rack.name / min(board.id for board in boards)


def start_virtual_rack(
    rack: Rack, boards: Sequence[Board], profile: AirProfile, out: Path, state_dir: Path
) -> VirtualRack:
    """Start a rack of these boards. Raises RigError with the way out."""
    for emulator, chip in drivers.emulators_of(boards):
        drivers.find(emulator, chip)  # before anything is started
    point = rack.access_point
    specs = [
        VirtualBoardSpec(
            board.id,
            board.chip,
            board.mac,
            board.tcp_port,
            kind=board.kind,
            emulator=board.emulator,
            network=board.network.type,
            ssid=point.ssid,
            password=point.password,
        )
        for board in boards
    ]
    return VirtualRack.start(
        name=rack.name,
        state_dir=state_dir,
        boards=specs,
        profile=profile,
        air_seed=rack.access_point.seed,
        air_binary=build_air(out / "virtual" / "air"),
    )


def at_its_port(board: Board, running: VirtualRack) -> Board:
    """Return a board of a running rack with the port where it is served, and an emulated one's address."""
    served = board.at(running.boards[board.id].port)
    if board.kind != "emulated" or board.network.is_wifi or board.network.address:
        return served
    address = f"{running.board_address(board.id)}/{rack_namespace.PREFIX_BITS}"
    network = replace(board.network, address=address, gateway=rack_namespace.HOST_ADDRESS)
    return replace(served, network=network)


def boards_up(rack: Rack, out: Path) -> dict[str, Board]:
    """Return the boards that ``hil virtual up`` keeps up, by id, each with the port where it is served."""
    running = VirtualRack.attach(name=rack.name, state_dir=up_dir(rack, out)) if rack.is_virtual else None
    if running is None:
        return {}
    return {board.id: at_its_port(board, running) for board in rack.boards if board.id in running.boards}


def attach_virtual_rack(rack: Rack, boards: Sequence[Board], out: Path) -> VirtualRack | None:
    """Return the rack that ``hil virtual up`` keeps; None where there is none.

    Its air is left as it is: another run may be measuring. Whoever holds the air sets the profile. Only the
    links of ``boards``, which are the caller's, are raised: a run that was killed may have left them down.

    Raises RigError where it lacks one of the boards, or has another access point than the rack file.
    """
    running = VirtualRack.attach(name=rack.name, state_dir=up_dir(rack, out))
    if running is None:
        return None
    missing = [board.id for board in boards if board.id not in running.boards]
    if missing:
        raise RigError(
            f"the running virtual rack {rack.name} lacks board {', '.join(missing)}.",
            next_step="end it (Ctrl-C in its terminal) and run again, or start it with these boards.",
        )
    wanted = (rack.access_point.ssid, rack.access_point.password)
    if any((running.boards[board.id].ssid, running.boards[board.id].password) != wanted for board in boards):
        raise RigError(
            f"the running virtual rack {rack.name} has another access point than {rack.path} now sets.",
            next_step="end it (Ctrl-C in its terminal), and start it again or run without it.",
        )
    for board in boards:
        running.air.up(board.id)
    return running


def profile_in_force(running: VirtualRack, profile: AirProfile, *, board: str = "all") -> bool:
    """Return whether the link of ``board`` is up and behaves as ``profile`` says. Raises RigError."""
    return all(_behaves(facts, profile) for facts in running.air.show(board).values())


def _behaves(link: Mapping[str, Mapping[str, object]], profile: AirProfile) -> bool:
    gap = {f"gap_{key}": value for key, value in profile.gap.parameters().items()}
    wanted = {
        direction: {"up": 1, **impairment.parameters(), **gap}
        for direction, impairment in (("uplink", profile.uplink), ("downlink", profile.downlink))
    }
    return all(wanted[direction].items() <= facts.items() for direction, facts in link.items())
