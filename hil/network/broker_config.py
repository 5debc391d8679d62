"""mosquitto's configuration, and the one user of its password listener."""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

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
    address: str, ports: BrokerPorts, tls: Certificates, password_file: Path, *, tcp_nodelay: bool
) -> str:
    """Return mosquitto.conf. No secret is in it, only names of files."""
    server = [f"cafile {tls.ca_file}", f"certfile {tls.server_cert_file}", f"keyfile {tls.server_key_file}"]
    anyone = "allow_anonymous true"
    lines = [
        "user root",  # a user namespace holds no other user to change to
        "per_listener_settings true",
        "persistence false",
        "log_dest stderr",  # stdout would be block-buffered into a file
        "log_type all",
        "connection_messages true",
        f"set_tcp_nodelay {'true' if tcp_nodelay else 'false'}",
        "max_inflight_messages 0",
        "max_queued_messages 0",
        "max_queued_bytes 0",
        f"listener {ports.tcp} {address}",
        anyone,
        f"listener {ports.tls} {address}",
        anyone,
        *server,
        f"listener {ports.mtls} {address}",
        anyone,
        *server,
        "require_certificate true",
        f"listener {ports.password} {address}",
        "allow_anonymous false",
        f"password_file {password_file}",
    ]
    return "\n".join(lines) + "\n"


def config_digest(config: str) -> str:
    """Return the SHA-256 of the settings without paths and ports: equal settings have equal digests."""
    own = ("listener", "cafile", "certfile", "keyfile", "password_file")
    settings = [line.split()[0] if line.startswith(own) else line for line in config.splitlines()]
    return hashlib.sha256("\n".join(settings).encode()).hexdigest()
