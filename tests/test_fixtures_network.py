"""The network of a run on a rack of its own and on one that somebody keeps up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fixtures.network import RunNetwork
from hil.errors import RigError
from hil.network.access_point import VirtualAccessPoint
from hil.rack import load_rack

BOARD = load_rack(Path(__file__).resolve().parent.parent / "hil" / "racks" / "virtual.yaml").boards[0]


class BrokenRack:
    """A rack whose board has died, with its log in ``folder``."""

    def __init__(self, folder: Path, *, owned: bool) -> None:
        self.boards = {BOARD.id: BOARD}
        self.owned = owned
        self._folder = folder

    def state(self) -> dict[str, list[str]]:
        return {"dead": [f"board {BOARD.id} ended, see {self._folder.resolve()}/{BOARD.id}.log"]}

    def stop(self) -> None:
        self.owned = False


class Broker:
    def stop(self) -> None:
        """It has ended."""


def network_on(rack: BrokenRack, state_dir: Path, log_dir: Path) -> RunNetwork:
    broker: Any = Broker()
    virtual_rack: Any = rack
    certificates: Any = None  # no board is provisioned
    point = VirtualAccessPoint("lab", 1)
    return RunNetwork(point, broker, certificates, virtual_rack, state_dir, log_dir)


@pytest.mark.parametrize("owned", [True, False])
def test_the_evidence_is_that_of_the_rack_measured_on(tmp_path: Path, owned: bool) -> None:
    """Logs of the run's own rack move into the run; those of an attached one stay where they are."""
    state_dir, log_dir = tmp_path / "state", tmp_path / "run" / "rack"
    state_dir.mkdir()
    (state_dir / f"{BOARD.id}.log").write_text("it died\n")
    network = network_on(BrokenRack(state_dir, owned=owned), state_dir, log_dir)
    with pytest.raises(RigError) as caught:
        network.check(BOARD)
    assert f"see {log_dir if owned else state_dir}/{BOARD.id}.log" in str(caught.value)
    assert ("each run starts a rack of its own" in str(caught.value)) == owned
    assert ("hil virtual up" in str(caught.value)) != owned
    network.stop()
    assert (log_dir / f"{BOARD.id}.log").exists() == owned
