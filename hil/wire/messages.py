# SPDX-License-Identifier: Apache-2.0
"""What the lines of the console protocol say, and the errors of lines that say nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hil.base.errors import FirmwareError
from hil.model import Scalar


class WireError(FirmwareError):
    """A marked line is whole and still makes no sense: the firmware is at fault."""


class DamagedLineError(WireError):
    """A marked line whose checksum is wrong or missing: it can be asked for again."""


@dataclass(frozen=True)
class Hello:
    """A board says what runs on it, at boot and when asked.

    ``boot`` is a random number of this boot, ``firmware_sha256`` the digest appended to the app's .bin.
    """

    number: int
    proto_min: int
    proto_max: int
    boot: str
    project: str
    version: str
    idf: str
    target: str
    reset_reason: str
    firmware_sha256: str
    elf_sha256: str
    benches: tuple[str, ...]
    agent: str = ""  # the version of agent and benches; older ones do not say


@dataclass(frozen=True)
class Reply:
    """The answer to a command; ``code`` is empty when it is ``ok``, ``tag`` is ``-`` for an untagged one."""

    number: int
    tag: str
    ok: bool
    code: str
    fields: Mapping[str, str]


@dataclass(frozen=True)
class Begin:
    """What a transfer is about."""

    number: int
    transfer: int
    bench: str
    parameters: Mapping[str, str]
    columns: tuple[str, ...]
    rows: int
    warmup_rows: int
    blocks: int
    burst: int
    clock: str
    firmware_sha256: str
    ruler_hash: str
    protocol_version: int


@dataclass(frozen=True)
class Data:
    """One block of packed samples."""

    number: int
    transfer: int
    block: int
    packed: bytes = field(repr=False)


@dataclass(frozen=True)
class End:
    """How a transfer ends. ``crc32`` is of all packed bytes; ``environment`` is the board's.

    ``owner`` and ``error`` say whose fault it is that there are no samples, and in a sentence why.
    """

    number: int
    transfer: int
    rows: int
    blocks: int
    crc32: int
    status: str
    last: bool
    owner: str
    error: str
    environment: Mapping[str, Scalar]


@dataclass(frozen=True)
class Note:
    """What a bench tells its peer on the host while it runs, e.g. ``ready`` with ``port``.

    ``transfer`` is the one that the run is to send next.
    """

    number: int
    transfer: int
    kind: str
    fields: Mapping[str, str]


Message = Hello | Reply | Begin | Data | End | Note
