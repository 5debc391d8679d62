# SPDX-License-Identifier: Apache-2.0
"""The access point: part of the virtual rack, or an external one whose name and password a board is told."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hil.base.errors import ConfigError

PSK_LENGTHS = range(8, 65)  # IEEE 802.11: 8 to 63 characters, or 64 hexadecimal digits


@dataclass(frozen=True)
class VirtualAccessPoint:
    """The bridge of a virtual rack behind the air profile ``profile``; boards need no credentials."""

    profile: str
    seed: int

    def credentials(self) -> Mapping[str, str]:
        return {}

    def environment(self) -> Mapping[str, int | str]:
        return {"type": "virtual", "profile": self.profile, "seed": self.seed}


@dataclass(frozen=True)
class ExternalAccessPoint:
    """A real access point that somebody else runs."""

    ssid: str
    psk: str = field(repr=False)

    def credentials(self) -> Mapping[str, str]:
        """Return the fields that a board is provisioned with; never log them."""
        return {"ssid": self.ssid, "psk": self.psk}

    def environment(self) -> Mapping[str, int | str]:
        """Return what a record says: the name, never the password."""
        return {"type": "external", "ssid": self.ssid}


def external_access_point(ssid: str, *, psk_env: str = "", psk_file: str = "") -> ExternalAccessPoint:
    """Read the password from the environment variable or the file. Raises ConfigError."""
    if not 1 <= len(ssid.encode()) <= 32:
        raise ConfigError(f"The SSID {ssid!r} has {len(ssid.encode())} bytes; 1 to 32 are possible.")
    psk = _from_environment(psk_env) if psk_env else _from_file(Path(psk_file)) if psk_file else ""
    if psk and len(psk) not in PSK_LENGTHS:
        raise ConfigError(
            f"The password of the access point {ssid!r} has {len(psk)} characters, not 8 to 64."
        )
    return ExternalAccessPoint(ssid=ssid, psk=psk)


def _from_environment(name: str) -> str:
    psk = os.environ.get(name, "")
    if not psk:
        raise ConfigError(
            f"The access point's password is not in the environment variable {name}.",
            next_step=f"export {name}=… (in CI: a secret).",
        )
    return psk


def _from_file(path: Path) -> str:
    try:
        return path.expanduser().read_text().strip()
    except OSError as error:
        raise ConfigError(f"Reading the access point's password from {path}: {error.strerror}.") from error
