"""The MQTT broker of a run: a real mosquitto with a plain, a TLS and a mutual-TLS listener."""

from __future__ import annotations

import hashlib
import re
import shutil
import socket
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from hil.errors import RigError
from hil.network.certificates import Certificates
from hil.network.process import Process, Spawner

START_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 3.0
POLL_S = 0.01
FREE_PORT_ATTEMPTS = 3
ISOLATED_PORT_ATTEMPTS = 16  # brokers at once in one rack's network
INSTALL = "sudo apt-get install mosquitto"

_RUNNING = re.compile(r"mosquitto version (\S+) running")
_OPENING = re.compile(r"Opening ipv[46] listen socket on port (\d+)")


@dataclass(frozen=True)
class BrokerPorts:
    """One TCP port a listener; the defaults are for a network of the rack's own."""

    tcp: int = 1883
    tls: int = 8883
    mtls: int = 8884


class Broker:
    """A running mosquitto. ``address`` and ``ports`` are where the boards reach it."""

    def __init__(
        self, process: Process, address: str, ports: BrokerPorts, config: str, version: str, log_path: Path
    ) -> None:
        self.address = address
        self.ports = ports
        self.version = version
        self.log_path = log_path
        self._process = process
        self._config = config

    @classmethod
    def start(
        cls,
        spawner: Spawner,
        address: str,
        run_dir: Path,
        tls: Certificates,
        tcp_nodelay: bool = True,
        ports: BrokerPorts | None = None,
    ) -> Broker:
        """Start a broker on ``address``; returns when it accepts connections.

        Without ``ports`` a rack's own network gets 1883, 8883 and 8884, or the next such ports where
        another run's broker has these; a shared network gets free ports.
        Raises RigError: mosquitto missing (how to install it), a port taken (which), or its last words.
        """
        attempts = 1 if ports else ISOLATED_PORT_ATTEMPTS if spawner.isolated else FREE_PORT_ATTEMPTS
        for attempt in range(1, attempts + 1):
            chosen = ports or (_usual_ports(attempt) if spawner.isolated else _free_ports(address))
            try:
                return cls._start(spawner, address, run_dir, tls, tcp_nodelay, chosen)
            except _PortTakenError:
                if attempt == attempts:
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    @classmethod
    def _start(
        cls,
        spawner: Spawner,
        address: str,
        run_dir: Path,
        tls: Certificates,
        tcp_nodelay: bool,
        ports: BrokerPorts,
    ) -> Broker:
        run_dir.mkdir(parents=True, exist_ok=True)
        config = _config(address, ports, tls, tcp_nodelay=tcp_nodelay)
        config_path, log_path = run_dir / "mosquitto.conf", run_dir / "mosquitto.log"
        config_path.write_text(config)
        log_path.unlink(missing_ok=True)
        argv = [_program(), "-c", str(config_path.resolve())]
        process = spawner.spawn(argv, log_path=log_path)
        try:
            version = _await_running(process, log_path, isolated=spawner.isolated)
        except BaseException:
            process.kill()
            raise
        return cls(process, address, ports, config, version, log_path)

    def alive(self) -> bool:
        return self._process.returncode is None

    def check(self) -> None:
        """Raise RigError with the broker's last words when it is no longer there."""
        code = self._process.returncode
        if code is not None:
            how = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
            raise RigError(
                f"The MQTT broker (mosquitto, pid {self._process.pid}, {self.address}) {how}.",
                log=str(self.log_path),
                next_step="start the run again.",
            )

    def environment(self) -> Mapping[str, int | str]:
        """Return what a record says of the broker: version, digest of its configuration, ports.

        The digest leaves out paths and ports, so equal settings give equal digests.
        """
        ports = {f"{name}_port": port for name, port in asdict(self.ports).items()}
        return {"version": self.version, "config_sha256": _digest(self._config), **ports}

    def stop(self) -> None:
        """End the broker; does nothing when it has ended."""
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except TimeoutError:
            self._process.kill()
            self._process.wait(STOP_TIMEOUT_S)


class _PortTakenError(RigError):
    """Someone else listens there; with a free port chosen by us, another one is worth a try."""


def _program() -> str:
    found = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise RigError("Starting the MQTT broker: mosquitto is not installed.", next_step=INSTALL)
    return found


def _config(address: str, ports: BrokerPorts, tls: Certificates, *, tcp_nodelay: bool) -> str:
    server = [f"cafile {tls.ca_file}", f"certfile {tls.server_cert_file}", f"keyfile {tls.server_key_file}"]
    lines = [
        "user root",  # a user namespace holds no other user to change to
        "per_listener_settings false",
        "allow_anonymous true",
        "persistence false",
        "log_dest stderr",  # stdout would be block-buffered into a file
        "log_type all",
        "connection_messages true",
        f"set_tcp_nodelay {'true' if tcp_nodelay else 'false'}",
        "max_inflight_messages 0",
        "max_queued_messages 0",
        "max_queued_bytes 0",
        f"listener {ports.tcp} {address}",
        f"listener {ports.tls} {address}",
        *server,
        f"listener {ports.mtls} {address}",
        *server,
        "require_certificate true",
    ]
    return "\n".join(lines) + "\n"


def _digest(config: str) -> str:
    own = ("listener", "cafile", "certfile", "keyfile")
    settings = [line.split()[0] if line.startswith(own) else line for line in config.splitlines()]
    return hashlib.sha256("\n".join(settings).encode()).hexdigest()


def _free_ports(address: str) -> BrokerPorts:
    sockets = [socket.socket() for _ in range(3)]
    try:
        for one in sockets:
            one.bind((address, 0))
        tcp, tls, mtls = (int(one.getsockname()[1]) for one in sockets)
    except OSError as error:
        raise RigError(
            f"Starting the MQTT broker on {address}: {error.strerror}.",
            next_step="check host.address in the rack file: ip -br address.",
        ) from error
    finally:
        for one in sockets:
            one.close()
    return BrokerPorts(tcp=tcp, tls=tls, mtls=mtls)


def _usual_ports(attempt: int) -> BrokerPorts:
    """Return the ports of attempt 1, 2, …; a rack's own network is not visible from here to look for more."""
    usual = BrokerPorts()
    step = 10 * (attempt - 1)
    return BrokerPorts(tcp=usual.tcp + step, tls=usual.tls + step, mtls=usual.mtls + step)


def _await_running(process: Process, log_path: Path, *, isolated: bool) -> str:
    """Wait for mosquitto's own word that it runs; return its version. Raises RigError."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        ended = process.returncode is not None
        log = log_path.read_text(errors="replace")
        running = _RUNNING.search(log)
        if running and not ended:
            return running.group(1)
        if ended:
            raise _start_error(log, log_path, isolated=isolated)
        time.sleep(POLL_S)
    raise RigError(f"The MQTT broker was not up within {START_TIMEOUT_S:.0f} s.", log=str(log_path))


def _start_error(log: str, log_path: Path, *, isolated: bool) -> RigError:
    if "Address already in use" in log:
        port = (_OPENING.findall(log) or ["?"])[-1]
        return _PortTakenError(
            f"Starting the MQTT broker: port {port} is taken.",
            log=str(log_path),
            next_step=f"find who listens there: {_LOOK_INSIDE if isolated else ''}ss -ltnp sport = :{port}",
        )
    words = [line for line in log.splitlines() if "rror" in line] or log.splitlines()[-1:]
    return RigError(f"The MQTT broker did not start: {' | '.join(words[-3:])}.", log=str(log_path))


# the rack's network is a namespace of its own; any broker in it leads there
_LOOK_INSIDE = "sudo nsenter --net --target $(pgrep -o mosquitto) "
