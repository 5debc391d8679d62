"""The two captures of a case: at the access point's side of the air, and where the broker is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import HilError
from hil.network.capture import Capture, CaptureCounts
from hil.network.peers.companion import Place

ACCESS_POINT_FILE, BROKER_FILE = "access-point.pcapng", "broker.pcapng"
LOOPBACK = "lo"  # a subscriber on the broker's host is reached over it
WHOLE_FRAMES_BYTES = 262_144  # what libpcap calls everything


@dataclass(frozen=True)
class Captured:
    """What one capture came to."""

    path: Path
    counts: CaptureCounts


class Captures:
    """Two files, because tshark would take a segment that is seen twice for a retransmission."""

    def __init__(self, access_point: Capture | None, broker: Capture) -> None:
        self._access_point = access_point
        self._broker = broker

    @classmethod
    def start(cls, place: Place, ports: Sequence[int]) -> Captures:
        """Capture the traffic of these broker ports. Raises RigError as Capture.start() does."""
        mqtt = " or ".join(f"tcp port {port}" for port in sorted(ports))
        access_point = None
        if place.access_point_interface:
            access_point = _start(
                place,
                [place.access_point_interface],
                ACCESS_POINT_FILE,
                f"host {place.board_address} and ({mqtt})",
            )
        try:
            interfaces = list(dict.fromkeys((place.interface, LOOPBACK)))
            return cls(access_point, _start(place, interfaces, BROKER_FILE, mqtt))
        except BaseException:
            if access_point:
                access_point.kill()
            raise

    def check(self) -> None:
        """Raise RigError where one has ended."""
        for capture in self._all():
            capture.check()

    def stop(self) -> tuple[Captured | None, Captured]:
        """End both with everything written; returns access point (None: there was none) and broker.

        Raises RigError as Capture.stop() does.
        """
        access_point = _stop(self._access_point) if self._access_point else None
        return access_point, _stop(self._broker)

    def kill(self) -> None:
        """End both at once. Never raises."""
        for capture in self._all():
            with suppress(HilError, OSError):
                capture.kill()

    def remove(self) -> None:
        """Remove the files, and what the capturing programs said."""
        for capture in self._all():
            capture.path.unlink(missing_ok=True)
            capture.log_path.unlink(missing_ok=True)

    def _all(self) -> list[Capture]:
        return [capture for capture in (self._access_point, self._broker) if capture]


def counts_facts(access_point: Captured | None, broker: Captured) -> Mapping[str, int | None]:
    """Return what the record says of the captures; None where there was none."""
    found: dict[str, int | None] = {"ap_frames_count": None, "ap_dropped_count": None}
    for prefix, captured in (("ap", access_point), ("broker", broker)):
        if captured:
            found[f"{prefix}_frames_count"] = captured.counts.captured
            found[f"{prefix}_dropped_count"] = captured.counts.missing
    return found


def _stop(capture: Capture) -> Captured:
    return Captured(capture.path, capture.stop())


def _start(place: Place, interfaces: Sequence[str], name: str, capture_filter: str) -> Capture:
    return Capture.start(
        place.spawner,
        interfaces,
        place.folder / name,
        capture_filter=capture_filter,
        snap_bytes=WHOLE_FRAMES_BYTES,
    )
