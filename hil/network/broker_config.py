# SPDX-License-Identifier: Apache-2.0
"""Write mosquitto's configuration, and the one user of its password listener."""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hil.network.certificates import Certificates

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
    ``max_queued_messages``: what waits besides for one client, connected or away.
    ``persistence``: off; on, saved when it is told to end and every half an hour; each, saved in the turn of
    its loop in which anything changed (autosave_on_changes, where autosave_interval 1 counts changes). It
    answers before it saves.
    ``statistics``: mosquitto counts under $SYS every two seconds (sys_interval 1) instead of every eleven.
    Each report costs the broker CPU time in which it forwards nothing: docs/reference/broker.md has it.
    """

    tcp_nodelay: bool = True
    max_inflight_messages: int = 0
    max_queued_messages: int = 0
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
        "max_queued_bytes 0",
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
