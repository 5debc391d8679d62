# SPDX-License-Identifier: Apache-2.0
"""One case of a bench that needs a peer on the host, measured as a run does it."""

from __future__ import annotations

import shutil

from hil.base.paths import PROJECT_ROOT
from hil.model import Case
from hil.network.name_server import PEER_NAME
from hil.network.peers.companion import Observed, Place, companion_factory
from hil.run.plan import deadline_s
from hil.thresholds import load
from tools.bench.workbench import Workbench


def place_of(bench: Workbench, stem: str, **overrides: int | str) -> Place:
    """Return where the peer of a case of ``stem`` works: its thresholds file's defaults and ``overrides``."""
    thresholds = load(stem, PROJECT_ROOT / "thresholds")
    defaults = {name: parameter.default for name, parameter in thresholds.parameters.items()}
    case = Case(stem, {**defaults, **overrides})
    folder = bench.folder / "peer" / bench.board.id / stem
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return Place(
        case=case,
        board=bench.board,
        board_address=bench.rack.board_address(bench.board.id),
        host_address=bench.rack.host_address,
        interface=bench.rack.host_interface,
        access_point_interface=bench.rack.access_point_interface(bench.board.id),
        spawner=bench.rack,
        broker=bench.broker,
        certificates=bench.certificates,
        secrets_dir=bench.folder / "certificates",
        peer_name=PEER_NAME,
        air=bench.rack.air,
        folder=folder,
        keep_captures=False,
    )


def measure_with_peer(bench: Workbench, stem: str, **overrides: int | str) -> Observed:
    """Measure ``stem`` with its thresholds file's defaults and ``overrides``; the peer is the file's too."""
    place = place_of(bench, stem, **overrides)
    companion = companion_factory(load(stem, PROJECT_ROOT / "thresholds").peer)(place)
    deadline = deadline_s(place.case)
    try:
        bench.session.provision(companion.start())
        with bench.rack.air.awake(deadline):
            series = bench.session.run_case(place.case, timeout_s=deadline, on_note=companion.note)
        return companion.finish(series)
    finally:
        companion.stop()
