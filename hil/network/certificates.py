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
# of folders of this process: its lock, and the pipe whose end tells its keeper, however this process ends
_held: dict[Path, tuple[int, int, int]] = {}
_KEEPER = 'read -r _; exec rm -rf -- "$1"'


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
    """Make a temporary folder for the keys and passwords of a run; ``remove_secrets_folder`` removes it.

    Where the run is killed, a keeper does: a shell of a session of its own, which reads a pipe until its end.
    What is left where both went is removed here: a folder whose lock nobody holds.
    """
    root = Path(tempfile.gettempdir())
    for left in root.glob(f"{_SECRETS_FOLDER}*"):
        _remove_unheld(left)
    # it gets the name by which it is found once it is locked
    unnamed = Path(tempfile.mkdtemp(prefix=f".{_SECRETS_FOLDER}", dir=root))
    lock = os.open(unnamed, os.O_RDONLY | os.O_DIRECTORY)
    try_lock(lock)
    folder = root / unnamed.name.removeprefix(".")
    _held[folder] = (lock, *_start_keeper(folder))
    return unnamed.rename(folder)


def remove_secrets_folder(folder: Path) -> None:
    """Remove a folder of this process, and end its keeper; nothing is done twice."""
    shutil.rmtree(folder, ignore_errors=True)
    lock, pipe, keeper = _held.pop(folder, (-1, -1, -1))
    if keeper > 0:
        os.close(pipe)
        os.waitpid(keeper, 0)
        os.close(lock)


def _start_keeper(folder: Path) -> tuple[int, int]:
    """Return the pipe's end, which no other process has, and the keeper's process id."""
    read_end, write_end = os.pipe()
    null = os.open(os.devnull, os.O_WRONLY)
    redirected = [(os.POSIX_SPAWN_DUP2, file, number) for number, file in enumerate((read_end, null, null))]
    try:
        argv = ["sh", "-c", _KEEPER, "sh", str(folder)]
        return write_end, os.posix_spawnp("sh", argv, os.environ, file_actions=redirected, setsid=True)
    finally:
        os.close(read_end)
        os.close(null)


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
