"""A case's captures, dissected, and what they come to: symptoms, bundling, overhead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.model import Scalar
from hil.network.dissect.bundling import bundling_of
from hil.network.dissect.overhead import overhead_of
from hil.network.dissect.segments import MqttPorts, Segment, read_segments
from hil.network.dissect.symptoms import SYMPTOMS, count_symptoms
from hil.network.peers.mqtt.bench_broker import BenchBroker
from hil.network.peers.mqtt.captures import Captured
from hil.network.peers.mqtt.settings import Settings


@dataclass(frozen=True)
class Seen:
    """What is there to be read once everything has ended."""

    access_point: Captured | None
    broker: Captured
    began_us: int  # wall clock, before the first frame was captured
    tls_followed: bool


@dataclass(frozen=True)
class Dissected:
    """The segments of both captures; None where there was no access point's."""

    access_point: Sequence[Segment] | None
    broker: Sequence[Segment]

    def forwarded(self, board_address: str) -> list[Segment]:
        """Return what the broker and its clients on the host sent each other."""
        return [one for one in self.broker if board_address not in (one.source, one.destination)]


def dissect(seen: Seen, broker: BenchBroker, settings: Settings) -> Dissected:
    """Read both captures. Raises RigError as read_segments() does."""
    plain = (broker.broker.ports.tcp,) if settings.tls else tuple({broker.broker.ports.tcp, broker.port})
    ports = MqttPorts(plain=plain, tls=(broker.port,) if settings.tls else ())
    key_log = broker.key_log if seen.tls_followed else None

    def read(path: Path) -> list[Segment]:
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


def _symptoms(prefix: str, segments: Sequence[Segment]) -> Mapping[str, int]:
    counts = count_symptoms(segments)
    return {f"{prefix}{symptom.name}": counts[symptom.name] for symptom in SYMPTOMS}
