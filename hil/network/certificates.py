# SPDX-License-Identifier: Apache-2.0
"""Certificates of one run: a CA, the broker's certificate and a board's. Nothing of them outlives it."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import trustme

from hil.base.flock import try_lock

_SECRETS_FOLDER = "hil-secrets-"
_held: list[int] = []  # folders of this process, locked until it ends, however it ends


@dataclass(frozen=True)
class Certificates:
    """PEM texts for a board (``ca_pem``, ``client_*``); all, the broker's too, as files (mode 0600)."""

    ca_pem: str
    client_cert_pem: str
    client_key_pem: str = field(repr=False)
    ca_file: Path
    server_cert_file: Path
    server_key_file: Path
    client_cert_file: Path
    client_key_file: Path


def make_secrets_folder() -> Path:
    """Make a temporary folder for the keys and passwords of a run; its owner removes it.

    What a run that was killed left behind is removed here: a folder whose lock nobody holds.
    """
    root = Path(tempfile.gettempdir())
    for left in root.glob(f"{_SECRETS_FOLDER}*"):
        _remove_unheld(left)
    # it gets the name by which it is found once it is locked
    unnamed = Path(tempfile.mkdtemp(prefix=f".{_SECRETS_FOLDER}", dir=root))
    lock = os.open(unnamed, os.O_RDONLY | os.O_DIRECTORY)
    try_lock(lock)
    _held.append(lock)
    return unnamed.rename(root / unnamed.name.removeprefix("."))


def _remove_unheld(folder: Path) -> None:
    with suppress(OSError):  # another user's, or removed meanwhile
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            if try_lock(lock):
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)


def make_certificates(folder: Path, *addresses: str, client_name: str = "board") -> Certificates:
    """Make a CA and certificates in ``folder``; the server's is valid for ``addresses`` (IP or host name).

    Keys are ECDSA P-256, which an ESP32's mbedTLS takes in its default configuration.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
    server = authority.issue_cert(*addresses, key_type=trustme.KeyType.ECDSA)
    client = authority.issue_cert(common_name=client_name, key_type=trustme.KeyType.ECDSA)
    texts = {
        "ca.pem": authority.cert_pem.bytes().decode(),
        "server.pem": _chain(server),
        "server.key": server.private_key_pem.bytes().decode(),
        "client.pem": _chain(client),
        "client.key": client.private_key_pem.bytes().decode(),
    }
    files = {name: _write(folder / name, text) for name, text in texts.items()}
    return Certificates(
        ca_pem=texts["ca.pem"],
        client_cert_pem=texts["client.pem"],
        client_key_pem=texts["client.key"],
        ca_file=files["ca.pem"],
        server_cert_file=files["server.pem"],
        server_key_file=files["server.key"],
        client_cert_file=files["client.pem"],
        client_key_file=files["client.key"],
    )


def _chain(leaf: trustme.LeafCert) -> str:
    return "".join(blob.bytes().decode() for blob in leaf.cert_chain_pems)


def _write(path: Path, text: str) -> Path:
    path.unlink(missing_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "w") as file:
        file.write(text)
    return path.resolve()
