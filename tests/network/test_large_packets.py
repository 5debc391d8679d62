# SPDX-License-Identifier: Apache-2.0
"""A way that lets small packets through and large ones never is the rig's, and nothing else is taken for it.

The host's side of a real rack drops by real nftables rules what a board's kernel answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hil.base.errors import RigError
from hil.network import large_packets
from hil.network.large_packets import check_large_packets
from hil.network.process import run_to_end
from hil.virtual.virtual_rack import VirtualRack
from tests.boards.rack_tools import running_rack

pytestmark = pytest.mark.slow

BOARD = "b1"


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualRack]:
    with running_rack(tmp_path_factory.mktemp("packets") / "rack", boards=(BOARD,)) as started:
        yield started


@contextmanager
def dropped(rack: VirtualRack, what: str, log_path: Path) -> Iterator[None]:
    """Have the host drop what it gets, by an nftables expression."""
    table = f"table ip test {{ chain in {{ type filter hook input priority 0; {what} drop; }}; }}"
    assert run_to_end(rack, ["nft", table], 10, log_path=log_path)[0] == 0
    try:
        yield
    finally:
        run_to_end(rack, ["nft", "delete table ip test"], 10, log_path=log_path)


def check(rack: VirtualRack, tmp_path: Path) -> str:
    """Return what is said of the way to the board; "" where nothing is."""
    try:
        check_large_packets(rack, BOARD, rack.board_address(BOARD), tmp_path / "ping.log")
    except RigError as error:
        return error.sentence
    return ""


def test_a_way_that_takes_all_sizes_is_sound(rack: VirtualRack, tmp_path: Path) -> None:
    """Rule: where a large echo request is answered, nothing is said, and one was enough."""
    assert check(rack, tmp_path) == ""
    assert (tmp_path / "ping.log").read_text().count(" received") == 1


def test_large_packets_that_never_come_through_are_told_with_their_size(
    rack: VirtualRack, tmp_path: Path
) -> None:
    """Rule: a drop by size names the board, both sizes and how many of each were answered."""
    with dropped(rack, "ip length > 300", tmp_path / "nft.log"):
        said = check(rack, tmp_path)
    assert said.startswith("Large packets do not come through between the host and board b1: ")
    assert "of 6 echo requests with 1372 bytes none was answered, of 5 with 56 bytes 5." in said


@pytest.mark.parametrize("what", ["ip protocol icmp", "ip protocol icmp numgen inc mod 2 0"])
def test_a_board_that_answers_hardly_or_never_says_nothing(
    rack: VirtualRack, tmp_path: Path, what: str
) -> None:
    """Rule: loss of every size is no matter of the size, and some firmware answers no echo request at all."""
    with dropped(rack, what, tmp_path / "nft.log"):
        assert check(rack, tmp_path) == ""


def test_a_host_without_ping_says_nothing(
    rack: VirtualRack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule: ping is not needed for a run."""
    monkeypatch.setattr(large_packets.shutil, "which", lambda _name: None)
    with dropped(rack, "ip length > 300", tmp_path / "nft.log"):
        assert check(rack, tmp_path) == ""
