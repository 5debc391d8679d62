"""The MQTT broker of a run: a mosquitto that listens plain, with TLS, with mutual TLS, with a password."""

from __future__ import annotations

import re
import shutil
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from hil.errors import RigError
from hil.network.broker_config import (
    BrokerLogin,
    BrokerPorts,
    broker_config,
    config_digest,
    make_login,
    write_password_file,
)
from hil.network.certificates import Certificates
from hil.network.process import Process, Spawner, end_process, how_ended

START_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 3.0
POLL_S = 0.01
FREE_PORT_ATTEMPTS = 3
ISOLATED_PORT_ATTEMPTS = 16  # brokers at once in one rack's network
INSTALL = "sudo apt-get install mosquitto"

_RUNNING = re.compile(r"mosquitto version (\S+) running")
_OPENING = re.compile(r"Opening ipv[46] listen socket on port (\d+)")

__all__ = ["Broker", "BrokerPorts"]


class Broker:
    """A running mosquitto. ``address`` and ``ports`` are where the boards reach it, ``login`` opens the
    password listener. Its methods may be called from any thread."""

    def __init__(
        self,
        spawner: Spawner,
        address: str,
        ports: BrokerPorts,
        login: BrokerLogin,
        config: str,
        run_dir: Path,
    ) -> None:
        self.address = address
        self.ports = ports
        self.login = login
        self.version = ""
        self.log_path = run_dir / "mosquitto.log"
        self._config = config
        self._config_path = run_dir / "mosquitto.conf"
        self._spawner = spawner
        self._lock = threading.Lock()
        self._process: Process | None = None

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

        Without ``ports`` a rack's own network gets 1883, 1884, 8883 and 8884, or the next such ports where
        another run's broker has these; a shared network gets free ports. The files of ``tls``, and the hash
        of the password beside them, must stay as long as the broker is to be restarted.
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
        login = make_login()
        password_file = write_password_file(login, tls.server_key_file.parent)
        config = broker_config(address, ports, tls, password_file, tcp_nodelay=tcp_nodelay)
        broker = cls(spawner, address, ports, login, config, run_dir)
        broker._config_path.write_text(config)
        broker.log_path.unlink(missing_ok=True)
        broker._launch()
        return broker

    def _launch(self) -> None:
        log_bytes = self.log_path.stat().st_size if self.log_path.exists() else 0
        argv = [_program(), "-c", str(self._config_path.resolve())]
        process = self._spawner.spawn(argv, log_path=self.log_path)
        self._process = process  # also where it does not come up, so that check() says so
        try:
            self.version = _await_running(process, self.log_path, log_bytes, self._spawner)
        except BaseException:
            process.kill()
            raise

    def interrupt(self) -> None:
        """End the broker for a while, as if it crashed: connections break, check() is quiet until resume().

        Raises RigError where it had ended by itself.
        """
        with self._lock:
            self.check()
            process, self._process = self._process, None  # at once, so that a check at any time knows
            if process:
                process.kill()  # terminated, it closes its connections up to 100 ms later
                process.wait(STOP_TIMEOUT_S)

    def resume(self) -> None:
        """Start it again on the same ports; returns when it accepts connections. Without effect where it was
        not interrupted. Sessions and retained messages of before are gone.

        Raises RigError: its ports were taken meanwhile, or its last words.
        """
        with self._lock:
            if self._process is None:
                self._launch()

    def alive(self) -> bool:
        process = self._process  # once: interrupt() may take it away meanwhile
        return process is not None and process.returncode is None

    def check(self) -> None:
        """Raise RigError with the broker's last words when it is no longer there."""
        process = self._process
        code = process.returncode if process else None  # None: interrupted
        if process and code is not None:
            raise RigError(
                f"The MQTT broker (mosquitto, pid {process.pid}, {self.address}) {how_ended(code)}.",
                log=str(self.log_path),
                next_step="start the run again.",
            )

    def environment(self) -> Mapping[str, int | str]:
        """Return what a record says of the broker: version, digest of its configuration, ports.

        The digest leaves out paths and ports, so equal settings give equal digests.
        """
        ports = {f"{name}_port": port for name, port in asdict(self.ports).items()}
        return {"version": self.version, "config_sha256": config_digest(self._config), **ports}

    def stop(self) -> None:
        """End the broker; does nothing when it has ended. Never raises."""
        with self._lock:
            if self._process:
                end_process(self._process, STOP_TIMEOUT_S)


class _PortTakenError(RigError):
    """Someone else listens there; with a free port chosen by us, another one is worth a try."""


def _program() -> str:
    found = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise RigError("Starting the MQTT broker: mosquitto is not installed.", next_step=INSTALL)
    return found


def _free_ports(address: str) -> BrokerPorts:
    sockets = [socket.socket() for _ in range(4)]
    try:
        for one in sockets:
            one.bind((address, 0))
        tcp, tls, mtls, password = (int(one.getsockname()[1]) for one in sockets)
    except OSError as error:
        raise RigError(
            f"Starting the MQTT broker on {address}: {error.strerror}.",
            next_step="check host.address in the rack file: ip -br address.",
        ) from error
    finally:
        for one in sockets:
            one.close()
    return BrokerPorts(tcp=tcp, tls=tls, mtls=mtls, password=password)


def _usual_ports(attempt: int) -> BrokerPorts:
    """Return the ports of attempt 1, 2, …; a rack's own network is not visible from here to look for more."""
    step = 10 * (attempt - 1)
    return BrokerPorts(**{name: port + step for name, port in asdict(BrokerPorts()).items()})


def _await_running(process: Process, log_path: Path, from_byte: int, spawner: Spawner) -> str:
    """Wait for mosquitto's own word, in the log from a byte on, that it runs; return its version.

    Raises RigError.
    """
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        ended = process.returncode is not None
        log = log_path.read_bytes()[from_byte:].decode(errors="replace")
        running = _RUNNING.search(log)
        if running and not ended:
            return running.group(1)
        if ended:
            raise _start_error(log, log_path, spawner)
        time.sleep(POLL_S)
    raise RigError(f"The MQTT broker was not up within {START_TIMEOUT_S:.0f} s.", log=str(log_path))


def _start_error(log: str, log_path: Path, spawner: Spawner) -> RigError:
    if "Address already in use" in log:
        port = (_OPENING.findall(log) or ["?"])[-1]
        return _PortTakenError(
            f"Starting the MQTT broker: port {port} is taken.",
            log=str(log_path),
            next_step=f"find who listens there: {spawner.enter_command}ss -ltnp sport = :{port}",
        )
    words = [line for line in log.splitlines() if "rror" in line] or log.splitlines()[-1:]
    return RigError(f"The MQTT broker did not start: {' | '.join(words[-3:])}.", log=str(log_path))
