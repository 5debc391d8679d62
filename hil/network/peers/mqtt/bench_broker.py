# SPDX-License-Identifier: Apache-2.0
"""A broker of the case's own, with the case's options; the run's broker is left alone."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from hil.base.errors import RigError
from hil.network.broker import Broker
from hil.network.broker_config import BrokerOptions, SlowDisk
from hil.network.peers.companion import Place
from hil.network.peers.mqtt.settings import Settings

SLOW_DISK = SlowDisk(rate_bytes_per_s=1_000_000, latency_us=5_000)  # a worn memory card


class BenchBroker:
    """``broker`` runs; its log and configuration are in the case's folder, its TLS keys among the secrets."""

    def __init__(self, broker: Broker, settings: Settings) -> None:
        self.broker = broker
        self._settings = settings

    @classmethod
    def start(cls, place: Place, settings: Settings) -> BenchBroker:
        """Start it. Raises RigError as Broker.start() does."""
        key_log = place.secrets_dir / f"{place.board.id}-{place.folder.name}.keys" if settings.tls else None
        broker = Broker.start(
            place.spawner,
            place.host_address,
            place.folder,
            place.certificates,
            options_of(settings),
            key_log=key_log,
            slow_disk=SLOW_DISK if settings.fault.kind == "slow_disk" else None,
        )
        return cls(broker, settings)

    @property
    def port(self) -> int:
        """Where the board comes in."""
        return int(getattr(self.broker.ports, self._settings.transport))

    @property
    def tls_followed(self) -> bool:
        """True where a capture can be read: MQTT is plain, or the broker wrote its TLS keys down."""
        return not self._settings.tls or self.key_log is not None

    @property
    def key_log(self) -> Path | None:
        """The keys of the TLS connections so far, None where there are none."""
        path = self.broker.key_log
        with suppress(OSError):
            return path if path and path.stat().st_size > 0 else None
        return None

    def facts(self) -> Mapping[str, str]:
        found = self.broker.environment()
        return {
            "broker_config_sha256": str(found["config_sha256"]),
            "broker_version": str(found["version"]),
        }

    def dropped_messages(self) -> int | None:
        """Return how many messages the broker dropped by its own account; None where it does not say."""
        try:
            return self.broker.dropped_messages()
        except RigError:
            return None

    def stop(self) -> None:
        """End it and remove its keys. Never raises."""
        self.broker.stop()
        if self.broker.key_log:
            with suppress(OSError):
                self.broker.key_log.unlink(missing_ok=True)


def options_of(settings: Settings) -> BrokerOptions:
    """Return mosquitto's options for a case. A slow disk is one that every change goes to."""
    saves = settings.fault.kind == "slow_disk" and settings.persistence == "off"
    persistence = "each" if saves else settings.persistence
    return BrokerOptions(
        tcp_nodelay=settings.broker_nodelay,
        max_inflight_messages=settings.broker_inflight,
        max_queued_messages=settings.broker_queue,
        persistence=persistence,
        statistics=settings.bench == "delivery",  # whose broker says what it dropped
    )
