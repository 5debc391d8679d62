# SPDX-License-Identifier: Apache-2.0
"""Whether the way between the rack's host and a board lets large packets through.

An access point, a switch or a firewall that drops them, by its own MTU or by a rule, makes messages above
some size late or lost, which no firmware can help: what is small arrives, and what is large never does
(RFC 2923, section 2.1, "path MTU discovery black hole"). ICMP echo requests tell the two apart; ESP-IDF
answers them unless CONFIG_LWIP_ICMP is off.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from hil.base.errors import RigError
from hil.network.process import Spawner, run_to_end

LARGE_BYTES = 1372  # of payload: with its headers 1,400, which every Ethernet and every ESP32 can take
SMALL_BYTES = 56
_TRIES = 5
_INTERVAL_S = 0.2  # less is for root
_PATIENCE_S = 1.0
_MOST_LOST = 1  # of the small ones: where more are, nothing is to be learnt
_RECEIVED = re.compile(r"(\d+) received")


def check_large_packets(spawner: Spawner, board_id: str, address: str, log_path: Path) -> None:
    """Raise RigError where small echo requests to ``address`` are answered and large ones are not.

    Nothing is said of a board that answers none, or where the host has no ping.
    """
    if shutil.which("ping") is None or _answered(spawner, address, LARGE_BYTES, 1, log_path):
        return
    small = _answered(spawner, address, SMALL_BYTES, _TRIES, log_path)
    if small < _TRIES - _MOST_LOST or _answered(spawner, address, LARGE_BYTES, _TRIES, log_path):
        return
    raise RigError(
        f"Large packets do not come through between the host and board {board_id}: of {_TRIES + 1} echo "
        f"requests with {LARGE_BYTES} bytes none was answered, of {_TRIES} with {SMALL_BYTES} bytes {small}. "
        "What was measured says nothing of the firmware.",
        log=str(log_path),
        next_step="look for what drops them (MTU of the access point or a switch, firewall), then run again.",
    )


def _answered(spawner: Spawner, address: str, size_bytes: int, count: int, log_path: Path) -> int:
    """Return how many echo requests of a size were answered."""
    argv = ["ping", "-n", "-q", "-c", str(count), "-i", str(_INTERVAL_S), "-W", str(_PATIENCE_S)]
    _, said = run_to_end(
        spawner,
        [*argv, "-s", str(size_bytes), address],
        _PATIENCE_S * count + 2 * _PATIENCE_S,
        log_path=log_path,
    )
    found = _RECEIVED.search(said)
    return int(found[1]) if found else 0
