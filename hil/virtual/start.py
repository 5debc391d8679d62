"""From a rack file to a running virtual rack: where its state lives, and who starts it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from hil.base.errors import RigError
from hil.boards.rack import Board, Rack
from hil.virtual.air.build import build_air
from hil.virtual.air.profile import AirProfile
from hil.virtual.virtual_rack import VirtualBoardSpec, VirtualRack

NO_PROFILES: Mapping[str, AirProfile] = MappingProxyType({})


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
    specs = [
        VirtualBoardSpec(id=board.id, chip=board.chip, mac=board.mac, port=board.tcp_port) for board in boards
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
    """Return a board of a running rack with the port where it is served."""
    return board.at(running.boards[board.id].port)


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

    Raises RigError where it lacks one of the boards.
    """
    running = VirtualRack.attach(name=rack.name, state_dir=up_dir(rack, out))
    if running is None:
        return None
    missing = [board.id for board in boards if board.id not in running.boards]
    if missing:
        raise RigError(
            f"the virtual rack {rack.name} that is up lacks board {', '.join(missing)}.",
            next_step="end it (Ctrl-C in its terminal) and run again, or start it with these boards.",
        )
    for board in boards:
        running.air.up(board.id)
    return running


def profile_in_force(
    running: VirtualRack,
    profile: AirProfile,
    *,
    of: Mapping[str, AirProfile] = NO_PROFILES,
    board: str = "all",
) -> bool:
    """Return whether the links of a rack are up and behave as they should: as ``of`` says of a board that it
    names, else as ``profile``. ``board`` asks for one link only. Raises RigError."""
    return all(_behaves(facts, of.get(link, profile)) for link, facts in running.air.show(board).items())


def _behaves(link: Mapping[str, Mapping[str, object]], profile: AirProfile) -> bool:
    gap = {f"gap_{key}": value for key, value in profile.gap.parameters().items()}
    wanted = {
        direction: {"up": 1, **impairment.parameters(), **gap}
        for direction, impairment in (("uplink", profile.uplink), ("downlink", profile.downlink))
    }
    return all(wanted[direction].items() <= facts.items() for direction, facts in link.items())
