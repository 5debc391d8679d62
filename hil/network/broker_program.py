# SPDX-License-Identifier: Apache-2.0
"""mosquitto as a program: where it is, which ports it gets, how it is started and what it says then.

mosquitto's configuration, and the one user of its password listener.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import re
import secrets
import shutil
import socket
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from hil.base.errors import RigError
from hil.network.certificates import Certificates
from hil.network.preload.build import build_library
from hil.network.process import Process, Spawner

USERNAME = "hil-board"
# as mosquitto_passwd of mosquitto 2 writes it ($7$): PBKDF2 with SHA-512; one CONNECT costs 0.1 ms
_ITERATIONS, _SALT_BYTES, _HASH_BYTES = 101, 12, 64


@dataclass(frozen=True)
class BrokerPorts:
    """One TCP port a listener; the defaults are for a network of the rack's own."""

    tcp: int = 1883
    tls: int = 8883
    mtls: int = 8884
    password: int = 1884  # plain TCP, which asks for BrokerLogin


@dataclass(frozen=True)
class BrokerOptions:
    """mosquitto's settings that a case may choose; 0 is mosquitto's "no limit".

    ``max_inflight_messages``: QoS 1 and 2 messages that one client has not acknowledged yet.
    ``max_queued_messages``, ``max_queued_bytes``: what waits besides for one client, connected or away.
    ``memory_limit_bytes``: of the whole broker; at the limit mosquitto refuses memory to itself and closes
    connections. ``queue_qos0``: QoS 0 messages wait too for a client that is away.
    ``persistence``: off; on, saved when it is told to end and every half an hour; each, saved in the turn of
    its loop in which anything changed (autosave_on_changes, where autosave_interval 1 counts changes). It
    answers before it saves.
    ``statistics``: mosquitto counts under $SYS every two seconds (sys_interval 1) instead of every eleven.
    Each report costs the broker CPU time in which it forwards nothing: docs/reference/broker.md has it.
    """

    tcp_nodelay: bool = True
    max_inflight_messages: int = 0
    max_queued_messages: int = 0
    max_queued_bytes: int = 0
    memory_limit_bytes: int = 0
    queue_qos0: bool = False
    persistence: Literal["off", "on", "each"] = "off"
    statistics: bool = False


@dataclass(frozen=True)
class SlowDisk:
    """A SIMULATED slow disk under what the broker saves: each block of 4096 bytes, and each fsync, takes
    ``latency_us``, and each byte 1 / ``rate_bytes_per_s``. mosquitto does nothing else meanwhile."""

    rate_bytes_per_s: int
    latency_us: int


@dataclass(frozen=True)
class BrokerLogin:
    """Who may use the password listener: a name, and a password of this run only."""

    username: str
    password: str = field(repr=False)


def make_login() -> BrokerLogin:
    return BrokerLogin(USERNAME, secrets.token_urlsafe(18))


def write_password_file(login: BrokerLogin, folder: Path) -> Path:
    """Write the salted hash, mode 0600, that the broker checks the password with; returns the file."""
    salt = os.urandom(_SALT_BYTES)
    digest = hashlib.pbkdf2_hmac("sha512", login.password.encode(), salt, _ITERATIONS, _HASH_BYTES)
    fields = (base64.b64encode(salt).decode(), base64.b64encode(digest).decode())
    descriptor, path = tempfile.mkstemp(prefix="mosquitto-passwords-", dir=folder.resolve())
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{login.username}:$7${_ITERATIONS}${fields[0]}${fields[1]}\n")
    return Path(path)


def broker_config(
    address: str,
    ports: BrokerPorts,
    tls: Certificates,
    password_file: Path,
    options: BrokerOptions,
    folder: Path,
) -> str:
    """Return mosquitto.conf; what is saved goes to ``folder``. It holds names of files, no secret."""
    server = [f"cafile {tls.ca_file}", f"certfile {tls.server_cert_file}", f"keyfile {tls.server_key_file}"]
    lines = [
        "user root",  # a user namespace holds no other user to change to
        "allow_anonymous true",  # on the password listener too: broker_watch.py looks for a user name there
        f"password_file {password_file}",
        *_persistence(options, folder),
        "log_dest stderr",  # stdout would be block-buffered into a file
        "log_type all",
        "connection_messages true",
        f"set_tcp_nodelay {'true' if options.tcp_nodelay else 'false'}",
        f"max_inflight_messages {options.max_inflight_messages}",
        f"max_queued_messages {options.max_queued_messages}",
        f"max_queued_bytes {options.max_queued_bytes}",
        *([f"memory_limit {options.memory_limit_bytes}"] if options.memory_limit_bytes else []),
        *(["queue_qos0_messages true"] if options.queue_qos0 else []),
        *(["sys_interval 1"] if options.statistics else []),
        f"listener {ports.tcp} {address}",
        f"listener {ports.tls} {address}",
        *server,
        f"listener {ports.mtls} {address}",
        *server,
        "require_certificate true",
        f"listener {ports.password} {address}",
    ]
    return "\n".join(lines) + "\n"


def _persistence(options: BrokerOptions, folder: Path) -> list[str]:
    if options.persistence == "off":
        return ["persistence false"]
    saving = ["autosave_on_changes true", "autosave_interval 1"] if options.persistence == "each" else []
    return ["persistence true", f"persistence_location {folder}/", *saving]


def config_digest(config: str) -> str:
    """Return the SHA-256 of the settings without paths and ports: equal settings have equal digests."""
    own = ("listener", "cafile", "certfile", "keyfile", "password_file", "persistence_location")
    settings = [line.split()[0] if line.startswith(own) else line for line in config.splitlines()]
    return hashlib.sha256("\n".join(settings).encode()).hexdigest()


START_TIMEOUT_S = 10.0
STATE_TIMEOUT_S = 5.0
POLL_S = 0.01
STATE_POLL_S = 0.001
INSTALL = "sudo apt-get install mosquitto"

_RUNNING = re.compile(r"mosquitto version (\S+) running")
_OPENING = re.compile(r"Opening ipv[46] listen socket on port (\d+)")


class PortTakenError(RigError):
    """Someone else listens there; with a free port chosen by us, another one is worth a try."""


@dataclass(frozen=True)
class Preload:
    """What is loaded before mosquitto: ``variables`` of its environment (NAME=value, [] for nothing), and the
    file of TLS keys where it writes one."""

    variables: list[str]
    key_log: Path | None


def prepare_preload(key_log: Path | None, slow_disk: SlowDisk | None, folder: Path) -> Preload:
    """Build what is to be loaded. Keys are logged where that is possible, and else not.

    Raises RigError: ``slow_disk`` is wanted and there is no compiler.
    """
    libraries, variables = [], []
    if slow_disk:
        libraries.append(build_library("slow_disk"))
        variables.append(f"HIL_SLOW_DISK_FOLDER={folder.resolve()}")
        variables.append(f"HIL_SLOW_DISK_RATE={slow_disk.rate_bytes_per_s}")
        variables.append(f"HIL_SLOW_DISK_LATENCY_US={slow_disk.latency_us}")
    written = None
    if key_log:
        with contextlib.suppress(RigError):  # no compiler, no header of OpenSSL
            libraries.append(build_library("key_log"))
            variables.append(f"HIL_KEY_LOG={key_log.resolve()}")
            written = key_log
    given = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()  # what the user loads everywhere stays
    loaded = [f"LD_PRELOAD={':'.join([*map(str, libraries), *given])}"] if libraries else []
    return Preload([*loaded, *variables], written)


def mosquitto_argv(config_path: Path, variables: list[str]) -> list[str]:
    """Return the command that starts it. Raises RigError where mosquitto is not installed."""
    found = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise RigError("Starting the MQTT broker: mosquitto is not installed.", next_step=INSTALL)
    environment = ["env", *variables] if variables else []
    return [*environment, found, "-c", str(config_path.resolve())]


def free_ports(address: str) -> BrokerPorts:
    """Return ports that nobody listens on now. Raises RigError: the address is not this host's."""
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


def usual_ports(attempt: int) -> BrokerPorts:
    """Return the ports of attempt 1, 2, …; a rack's own network is not visible from here to look for more."""
    step = 10 * (attempt - 1)
    return BrokerPorts(**{name: port + step for name, port in asdict(BrokerPorts()).items()})


def await_running(process: Process, log_path: Path, from_byte: int, spawner: Spawner) -> str:
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


def await_stopped(process: Process, *, stopped: bool) -> None:
    """Wait until the kernel has stopped the process, or lets it run again. Raises RigError."""
    deadline = time.monotonic() + STATE_TIMEOUT_S
    while process.returncode is None:
        try:
            state = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return  # it has just ended: check() says how
        if (state == "T") == stopped:
            return
        if time.monotonic() > deadline:
            did = "stop" if stopped else "go on"
            raise RigError(
                f"The MQTT broker (mosquitto, pid {process.pid}) did not {did} in {STATE_TIMEOUT_S:.0f} s.",
                next_step="start the run again.",
            )
        time.sleep(STATE_POLL_S)


def _start_error(log: str, log_path: Path, spawner: Spawner) -> RigError:
    if "Address already in use" in log:
        port = (_OPENING.findall(log) or ["?"])[-1]
        return PortTakenError(
            f"Starting the MQTT broker: port {port} is taken.",
            log=str(log_path),
            next_step=f"find who listens there: {spawner.enter_command}ss -ltnp sport = :{port}",
        )
    words = [line for line in log.splitlines() if "rror" in line] or log.splitlines()[-1:]
    return RigError(f"The MQTT broker did not start: {' | '.join(words[-3:])}.", log=str(log_path))
