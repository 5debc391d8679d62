# SPDX-License-Identifier: Apache-2.0
"""The MQTT broker of a run, or of one case: a mosquitto that listens plain, with TLS, with mutual TLS, with a
password, and that can be stalled, killed and cut off."""

from __future__ import annotations

import contextlib
import shutil
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from hil.base.errors import HilError, RigError
from hil.base.process import how_ended
from hil.network.broker_client import ask_dropped, disconnect_by_id, find_client, reset_connections
from hil.network.broker_config import (
    BrokerLogin,
    BrokerOptions,
    BrokerPorts,
    SlowDisk,
    broker_config,
    config_digest,
    make_login,
    write_password_file,
)
from hil.network.broker_program import (
    PortTakenError,
    Preload,
    await_running,
    await_stopped,
    free_ports,
    mosquitto_argv,
    prepare_preload,
    usual_ports,
)
from hil.network.broker_watch import pid_file, tell_pid
from hil.network.certificates import Certificates
from hil.network.process import Process, Spawner, end_process

STOP_TIMEOUT_S = 3.0
FREE_PORT_ATTEMPTS = 3
ISOLATED_PORT_ATTEMPTS = 16  # brokers at once in one rack's network

__all__ = ["Broker", "BrokerOptions", "BrokerPorts", "NotConnectedError", "SlowDisk"]


class NotConnectedError(RigError):
    """A client whose connection is to be cut has none just now."""


@dataclass(frozen=True)
class _Setup:
    """What a broker is started with, again and again."""

    address: str
    run_dir: Path
    tls: Certificates
    options: BrokerOptions
    slow_disk: SlowDisk | None
    preload: Preload

    @property
    def saved_dir(self) -> Path:
        return _saved_dir(self.run_dir)


class Broker:
    """A running mosquitto. ``address`` and ``ports`` are where the boards reach it, ``login`` opens the
    password listener. ``key_log`` is the file of its TLS keys, None where there is none. Its methods may be
    called from any thread."""

    def __init__(
        self, spawner: Spawner, setup: _Setup, ports: BrokerPorts, login: BrokerLogin, config: str
    ) -> None:
        self.address = setup.address
        self.options = setup.options
        self.key_log = setup.preload.key_log
        self.ports = ports
        self.login = login
        self.version = ""
        self.log_path = setup.run_dir / "mosquitto.log"
        self._setup = setup
        self._config = config
        self._config_path = setup.run_dir / "mosquitto.conf"
        self._aside_log_path = setup.run_dir / "broker-client.log"
        self._spawner = spawner
        self._lock = threading.Lock()
        self._process: Process | None = None
        self._absences: list[tuple[int, int | None]] = []

    @classmethod
    def start(
        cls,
        spawner: Spawner,
        address: str,
        run_dir: Path,
        tls: Certificates,
        options: BrokerOptions = BrokerOptions(),  # noqa: B008 - frozen
        ports: BrokerPorts | None = None,
        *,
        key_log: Path | None = None,
        slow_disk: SlowDisk | None = None,
    ) -> Broker:
        """Start a broker on ``address``; returns when it accepts connections.

        Without ``ports`` a rack's own network gets 1883, 1884, 8883 and 8884, or the next such ports where
        another run's broker has these; a shared network gets free ports. The files of ``tls``, and the hash
        of the password beside them, must stay as long as the broker is to be restarted. ``key_log`` is the
        file for the keys of its TLS connections, in the secrets folder and nowhere else; a host without
        compiler or OpenSSL's headers gets none. ``slow_disk`` needs a ``persistence``.
        Raises RigError: mosquitto or the compiler missing (how to install it), a port taken (which), or
        mosquitto's last words.
        """
        if key_log and run_dir.resolve() in key_log.resolve().parents:
            raise ValueError(f"keys are secrets, and {run_dir} is kept: {key_log}")
        preload = prepare_preload(key_log, slow_disk, _saved_dir(run_dir))
        setup = _Setup(address, run_dir, tls, options, slow_disk, preload)
        attempts = 1 if ports else ISOLATED_PORT_ATTEMPTS if spawner.isolated else FREE_PORT_ATTEMPTS
        for attempt in range(1, attempts + 1):
            chosen = ports or (usual_ports(attempt) if spawner.isolated else free_ports(address))
            try:
                return cls._start(spawner, setup, chosen)
            except PortTakenError:
                if attempt == attempts:
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    @classmethod
    def _start(cls, spawner: Spawner, setup: _Setup, ports: BrokerPorts) -> Broker:
        shutil.rmtree(setup.saved_dir, ignore_errors=True)
        folder = setup.run_dir if setup.options.persistence == "off" else setup.saved_dir
        folder.mkdir(parents=True, exist_ok=True)
        login = make_login()
        password_file = write_password_file(login, setup.tls.server_key_file.parent)
        config = broker_config(setup.address, ports, setup.tls, password_file, setup.options, setup.saved_dir)
        if setup.slow_disk:
            config += f"# simulated: {setup.slow_disk}\n"
        broker = cls(spawner, setup, ports, login, config)
        broker._config_path.write_text(config)
        broker.log_path.unlink(missing_ok=True)
        broker._launch()
        return broker

    def _launch(self) -> None:
        log_bytes = self.log_path.stat().st_size if self.log_path.exists() else 0
        argv = mosquitto_argv(self._config_path, self._setup.preload.variables)
        process = self._spawner.spawn(argv, log_path=self.log_path)
        self._process = process  # also where it does not come up, so that check() says so
        tell_pid(self._setup.run_dir, process.pid)
        try:
            self.version = await_running(process, self.log_path, log_bytes, self._spawner)
        except BaseException:
            process.kill()
            raise

    def interrupt(self) -> None:
        """End the broker for a while by kill -9, as if it crashed: connections break, what was not saved is
        lost, check() is quiet until resume().

        Raises RigError where it had ended by itself.
        """
        with self._lock:
            self.check()
            self._go_away()
            process, self._process = self._process, None  # at once, so that a check at any time knows
            if process:
                process.kill()  # terminated, it closes its connections up to 100 ms later
                process.wait(STOP_TIMEOUT_S)

    def resume(self) -> None:
        """Start it again on the same ports; returns when it accepts connections. Without effect where it was
        not interrupted. Sessions and retained messages of before are gone, but for what it had saved
        (``persistence``).

        Raises RigError: its ports were taken meanwhile, or its last words.
        """
        with self._lock:
            if self._process is None:
                self._launch()
                self._come_back()

    def stall(self) -> None:
        """Stop the broker (SIGSTOP); returns when it stands. Connections stay, and the kernel goes on taking
        what fits its buffers; alive() stays true and check() quiet.

        Raises RigError: it has ended, or was interrupted.
        """
        with self._lock:
            self._go_away()
            self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let a stalled broker run again (SIGCONT); without effect on one that runs.

        Raises RigError: it has ended, or was interrupted.
        """
        with self._lock:
            self._signal(signal.SIGCONT)
            self._come_back()

    @property
    def pid(self) -> int | None:
        """Its process id, None while it is interrupted."""
        process = self._process
        return process.pid if process else None

    def absences(self) -> Sequence[tuple[int, int | None]]:
        """Return from when to when it was taken away on purpose, in ns of the monotonic clock."""
        return tuple(self._absences)

    def _go_away(self) -> None:
        self._come_back()
        self._absences.append((time.monotonic_ns(), None))

    def _come_back(self) -> None:
        if self._absences and self._absences[-1][1] is None:
            self._absences[-1] = (self._absences[-1][0], time.monotonic_ns())

    def _signal(self, number: signal.Signals) -> None:
        self.check()
        if self._process is None:
            raise RigError(
                f"Sending {number.name} to the MQTT broker ({self.address}): it was interrupted before.",
                next_step="resume() it first.",
            )
        self._process.send_signal(number)
        await_stopped(self._process, stopped=number == signal.SIGSTOP)
        self.check()

    def cut(self, client: str) -> Literal["reset", "closed"]:
        """Break the connections of ``client``, an IPv4 address or address:port; say what the client meets.

        reset: a RST, sent by the broker's host (ss -K). closed: where that is not permitted, the broker's own
        end of the connection (a FIN), because another client came with the same id.
        Raises NotConnectedError; RigError where the connection could not be ended.
        """
        aside = self._aside_log_path
        if reset_connections(self._spawner, client, list(asdict(self.ports).values()), aside):
            return "reset"
        found = find_client(self.log_path.read_text(errors="replace"), client)
        if found and disconnect_by_id(self._spawner, found, self.address, self.ports.tcp, aside):
            return "closed"
        attempt = f"Cutting the connection of {client} to the MQTT broker {self.address}"
        if found is None:
            raise NotConnectedError(
                f"{attempt}: the client is not connected.",
                log=str(self.log_path),
                next_step="see in the log what ended its connection.",
            )
        raise RigError(
            f"{attempt}: neither ss -K nor a second client could end the connection.",
            log=str(aside),
            next_step="see in the log why; ss -K needs root and iproute2.",
        )

    def dropped_messages(self) -> int | None:
        """Return how many messages mosquitto itself says that it dropped since it last started; None where it
        does not run, does not answer or was not told to count (``options.statistics``).

        One for each message and each subscriber whose queue had no place for it, as reported by
        $SYS/broker/publish/messages/dropped. What was on its way when a client or the broker was lost is not
        among them. Waits for the next report, some two seconds.
        """
        if not (self.options.statistics and self.alive()):
            return None
        return ask_dropped(self._spawner, self.address, self.ports.tcp, self._aside_log_path)

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

    def provision(self) -> Mapping[str, str | int]:
        """Return what a board is told to find it and to be let in (fields of ``provision``). Never log it."""
        return {
            "broker_host": self.address,
            **{f"broker_{name}_port": port for name, port in asdict(self.ports).items()},
            "mqtt_username": self.login.username,
            "mqtt_password": self.login.password,
        }

    def environment(self) -> Mapping[str, int | str]:
        """Return what a record says of the broker: version, digest of its configuration, ports.

        The digest leaves out paths and ports, so equal settings give equal digests.
        """
        ports = {f"{name}_port": port for name, port in asdict(self.ports).items()}
        return {"version": self.version, "config_sha256": config_digest(self._config), **ports}

    def stop(self) -> None:
        """End the broker and remove what it saved; does nothing when it has ended. Never raises."""
        with self._lock:
            if self._process:
                with contextlib.suppress(HilError, OSError):
                    self._process.send_signal(signal.SIGCONT)  # a stalled one would not hear the next signal
                end_process(self._process, STOP_TIMEOUT_S)
            shutil.rmtree(self._setup.saved_dir, ignore_errors=True)
            pid_file(self._setup.run_dir).unlink(missing_ok=True)


def _saved_dir(run_dir: Path) -> Path:
    return run_dir.resolve() / "persistence"
