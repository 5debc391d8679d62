# SPDX-License-Identifier: Apache-2.0
"""What the MQTT tests stand on: a real mosquitto with three listeners."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import trustme

DEADLINE_S = 60.0


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def _listener(port: int, *options: str) -> list[str]:
    return [f"listener {port} 127.0.0.1", "allow_anonymous true", *options]


@dataclass(frozen=True)
class Mosquitto:
    """A running broker; `directory` holds ca.pem, client.pem and client.key for the client."""

    directory: Path
    ports: dict[str, int]

    @classmethod
    @contextmanager
    def run(
        cls, directory: Path, authority: trustme.CA, *, server_not_after: datetime | None = None
    ) -> Iterator[Mosquitto]:
        broker = cls(directory, dict(zip(("tcp", "tls", "mtls"), free_ports(3), strict=True)))
        broker._write_certificates(authority, server_not_after)
        config = directory / "mosquitto.conf"
        config.write_text("\n".join(broker._config()) + "\n")
        process = subprocess.Popen(
            ["mosquitto", "-c", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            broker._wait_until_listening(process)
            yield broker
        finally:
            process.terminate()
            process.wait(timeout=DEADLINE_S)

    def _write_certificates(self, authority: trustme.CA, server_not_after: datetime | None) -> None:
        server = authority.issue_cert("127.0.0.1", not_after=server_not_after)
        client = authority.issue_cert("board@hil.invalid")
        authority.cert_pem.write_to_path(str(self.directory / "ca.pem"))
        for name, certificate in (("server", server), ("client", client)):
            certificate.private_key_pem.write_to_path(str(self.directory / f"{name}.key"))
            chain = b"".join(blob.bytes() for blob in certificate.cert_chain_pems)
            (self.directory / f"{name}.pem").write_bytes(chain)

    def _config(self) -> list[str]:
        at = self.directory
        server = [f"cafile {at}/ca.pem", f"certfile {at}/server.pem", f"keyfile {at}/server.key"]
        user = ["user root"] if os.geteuid() == 0 else []
        return [
            *user,
            "per_listener_settings true",
            "set_tcp_nodelay true",
            *_listener(self.ports["tcp"]),
            *_listener(self.ports["tls"], *server),
            *_listener(self.ports["mtls"], *server, "require_certificate true"),
        ]

    def _wait_until_listening(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        for port in self.ports.values():
            while True:
                assert process.poll() is None, "mosquitto ended"
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except ConnectionRefusedError:
                    assert time.monotonic() < deadline, f"mosquitto does not listen on {port}"
                    time.sleep(0.01)

    def uri(self, transport: str) -> str:
        return f"{'mqtt' if transport == 'tcp' else 'mqtts'}://127.0.0.1:{self.ports[transport]}"

    def options(self, transport: str) -> str:
        """Certificates for the client's `init` command."""
        ca = f"ca={self.directory}/ca.pem"
        client = f"cert={self.directory}/client.pem key={self.directory}/client.key"
        return {"tcp": "", "tls": ca, "mtls": f"{ca} {client}"}[transport]
