# SPDX-License-Identifier: Apache-2.0
"""A case's captures, dissected, and what they come to: symptoms, bundling, overhead.

The two captures of a case: at the access point's side of the air, and where the broker is.

From a case's captures, its subscriber's notes and its board's rows to the evidence for the loss ledger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import FirmwareError, HilError
from hil.model import Scalar, Series
from hil.network.capture import Capture, CaptureCounts
from hil.network.dissect.bundling import bundling_of
from hil.network.dissect.overhead import overhead_of
from hil.network.dissect.segments import MqttPorts, MqttSegment, read_segments
from hil.network.dissect.symptoms import SYMPTOMS, count_symptoms
from hil.network.ledger.evidence import Arrival, Handed, LossEvidence, Sighting
from hil.network.ledger.sightings import sighting_of
from hil.network.peers.companion import Place
from hil.network.peers.mqtt.bench_broker import BenchBroker
from hil.network.peers.mqtt.settings import Settings

ACCESS_POINT_FILE, BROKER_FILE = "access-point.pcapng", "broker.pcapng"
LOOPBACK = "lo"  # a subscriber on the broker's host is reached over it
WHOLE_FRAMES_BYTES = 262_144  # what libpcap calls everything


@dataclass(frozen=True)
class CountedCapture:
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

    def stop(self) -> tuple[CountedCapture | None, CountedCapture]:
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


def counts_facts(access_point: CountedCapture | None, broker: CountedCapture) -> Mapping[str, int | None]:
    """Return what the record says of the captures; None where there was none."""
    found: dict[str, int | None] = {"ap_frames_count": None, "ap_dropped_count": None}
    for prefix, captured in (("ap", access_point), ("broker", broker)):
        if captured:
            found[f"{prefix}_frames_count"] = captured.counts.captured
            found[f"{prefix}_dropped_count"] = captured.counts.missing
    return found


def _stop(capture: Capture) -> CountedCapture:
    return CountedCapture(capture.path, capture.stop())


def _start(place: Place, interfaces: Sequence[str], name: str, capture_filter: str) -> Capture:
    return Capture.start(
        place.spawner,
        interfaces,
        place.folder / name,
        capture_filter=capture_filter,
        snap_bytes=WHOLE_FRAMES_BYTES,
    )


@dataclass(frozen=True)
class CaseCaptures:
    """What is there to be read once everything has ended."""

    access_point: CountedCapture | None
    broker: CountedCapture
    began_us: int  # wall clock, before the first frame was captured
    tls_followed: bool


@dataclass(frozen=True)
class Dissected:
    """The segments of both captures; None where there was no access point's."""

    access_point: Sequence[MqttSegment] | None
    broker: Sequence[MqttSegment]

    def forwarded(self, board_address: str) -> list[MqttSegment]:
        """Return what the broker and its clients on the host sent each other."""
        return [one for one in self.broker if board_address not in (one.source, one.destination)]


def dissect(seen: CaseCaptures, broker: BenchBroker, settings: Settings) -> Dissected:
    """Read both captures. Raises RigError as read_segments() does."""
    plain = (broker.broker.ports.tcp,) if settings.tls else tuple({broker.broker.ports.tcp, broker.port})
    ports = MqttPorts(plain=plain, tls=(broker.port,) if settings.tls else ())
    key_log = broker.key_log if seen.tls_followed else None

    def read(path: Path) -> list[MqttSegment]:
        return read_segments(path, ports, key_log=key_log)

    access_point = read(seen.access_point.path) if seen.access_point else None
    return Dissected(access_point, read(seen.broker.path))


def dissected_facts(
    dissected: Dissected, *, board_address: str, host_address: str, peer_port: int
) -> Mapping[str, Scalar]:
    """Return symptoms at both points, bundling of both directions that carry messages, and overhead.

    None for all that needs an access point's capture where there is none.
    """
    seen = dissected.access_point is not None
    access_point = dissected.access_point or ()
    at_access_point: dict[str, Scalar] = {
        **_symptoms("ap_", access_point),
        **bundling_of(access_point, sender=board_address).facts("ap_up_"),
        **bundling_of(access_point, sender=host_address).facts("ap_down_"),
        **overhead_of(access_point, board=board_address).facts(),
    }
    forwarded = dissected.forwarded(board_address)
    return {
        **(at_access_point if seen else dict.fromkeys(at_access_point)),
        **_symptoms("broker_", dissected.broker),
        **bundling_of(forwarded, sender=host_address, ports=(peer_port,)).facts("broker_out_"),
    }


def _symptoms(prefix: str, segments: Sequence[MqttSegment]) -> Mapping[str, int]:
    counts = count_symptoms(segments)
    found = {f"{prefix}{symptom.name}": counts[symptom.name] for symptom in SYMPTOMS}
    return {**found, f"{prefix}unreadable_count": sum(bool(one.unreadable) for one in segments)}


_NEEDED = ("planned_us", "sent_us", "done_us", "outcome", "connection", "tcp")


def evidence_of(
    series: Series,
    settings: Settings,
    seen: CaseCaptures,
    dissected: Dissected,
    ports: tuple[int, int],
    arrivals: Sequence[Arrival],
) -> LossEvidence:
    """Put together what is known at each point; ``ports`` are the broker's for board and subscriber.

    Raises FirmwareError: the board's rows lack a column, or it does not say its nonce.
    """
    run, (board_port, subscriber_port) = nonce_of(series), ports

    def arriving(segments: Sequence[MqttSegment], captured: CountedCapture) -> Sighting:
        complete = captured.counts.complete and seen.tls_followed
        return sighting_of(segments, run=run, towards=(board_port,), complete=complete)

    access_point = None
    if seen.access_point and dissected.access_point is not None:
        access_point = arriving(dissected.access_point, seen.access_point)
    return LossEvidence(
        handed=handed_of(series, settings.qos),
        access_point=access_point,
        broker_in=arriving(dissected.broker, seen.broker),
        broker_out=sighting_of(
            dissected.broker, run=run, leaving=(subscriber_port,), complete=seen.broker.counts.complete
        ),
        arrivals=arrivals,
    )


def handed_of(series: Series, qos: int) -> list[Handed]:
    """Return a message a row. Raises FirmwareError: the rows lack a column."""
    columns = series.columns
    missing = [name for name in _NEEDED if name not in columns]
    if missing:
        raise FirmwareError(
            f"The board's rows of {series.case.bench} lack {', '.join(missing)}; "
            f"they have {', '.join(columns)}.",
            next_step="board and harness are of different versions: build and flash again.",
        )
    rows = zip(columns["planned_us"], columns["outcome"], columns["connection"], columns["tcp"], strict=True)
    return [Handed(number, *row, qos=qos) for number, row in enumerate(rows)]


def nonce_of(series: Series) -> int:
    """Return what marks the messages of this case. Raises FirmwareError: the board does not say it."""
    found = series.device.get("message_run")
    if type(found) is not int:
        raise FirmwareError(
            f"The board does not report the nonce of its messages (message_run is {found!r}), so "
            "they cannot be separated from another case's.",
            next_step="board and harness are of different versions: build and flash again.",
        )
    return found
