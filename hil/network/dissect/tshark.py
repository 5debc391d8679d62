# SPDX-License-Identifier: Apache-2.0
"""One pass of tshark over a capture: its fields, whatever a user's own Wireshark is set to."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from hil.base.errors import HilError, RigError
from hil.base.reading import CAPTURE_MOST_BYTES, too_large

INSTALL = "sudo apt-get install tshark"
# pcapng, and pcap with µs and ns in either byte order (man 5 pcap-savefile)
_MAGIC = {"0a0d0d0a", "a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1"}
_GZIP = "1f8b"
_SAID_LINES = 3  # the rest is lists of what tshark would have understood
# control characters, which tshark never prints as themselves
_SEPARATOR, _AGGREGATOR = "\x1e", "\x1f"
Row = list[bytes]  # a frame's fields, each as one string


def require_tshark() -> None:
    """Raise RigError where there is no tshark (how to install it): better before a measurement than after."""
    _program()


def read_fields(
    path: Path,
    names: Sequence[str],
    options: Sequence[str],
    display_filter: str,
    *,
    fault: type[HilError] = RigError,
) -> Iterator[Row]:
    """Yield the fields of each frame, empty where it has none; values() takes those apart that occur often.

    Raises ``fault``: the file is no capture, or tshark did not read to the end (its words). Raises RigError:
    tshark is missing.
    """
    _check_kind(path, fault)
    argv = [_program(), "-r", str(path.resolve()), "-n", *options, "-Y", display_filter]
    argv += ["-T", "fields", "-E", "occurrence=a", "-E", f"separator={_SEPARATOR}"]
    argv += ["-E", f"aggregator={_AGGREGATOR}", "-E", "quote=n"]
    argv += [word for name in names for word in ("-e", name)]
    separator = _SEPARATOR.encode()
    with tempfile.TemporaryDirectory(prefix="hil-tshark-") as home, tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, env=_private(home)
        )
        try:
            assert process.stdout is not None
            for line in process.stdout:
                yield line.rstrip(b"\n").split(separator)
            code = process.wait()
        finally:
            process.kill()
            process.communicate()
        said.seek(0)
        _check(path, code, said.read().decode("utf-8", "replace"), fault)


def values(field: bytes) -> list[bytes]:
    """Return the values of a field that may occur several times in a frame."""
    return field.split(_AGGREGATOR.encode()) if field else []


def protocols() -> frozenset[str]:
    """Return the names of all that tshark dissects, as display filters have them. Raises RigError."""
    with tempfile.TemporaryDirectory(prefix="hil-tshark-") as home:
        done = subprocess.run(
            [_program(), "-G", "protocols"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=_private(home),
            check=False,
        )
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    return frozenset(words[2] for line in lines if len(words := line.split("\t")) > 2)


def _check_kind(path: Path, fault: type[HilError]) -> None:
    """tshark reads dozens of formats, lines of text among them: what dumpcap and tcpdump write counts."""
    try:
        if path.stat().st_size > CAPTURE_MOST_BYTES:
            raise too_large(path, CAPTURE_MOST_BYTES)
        begin, packed = _begin_of(path)
    except (OSError, EOFError, zlib.error) as error:
        what = error.strerror if isinstance(error, OSError) and error.strerror else "its gzip is damaged"
        raise fault(f"Dissecting {path}: {what}.", log=str(path)) from error
    if begin not in _MAGIC:
        inside = "unpacked " if packed else ""
        raise fault(
            f"Dissecting {path}: it is no capture file: {inside}it "
            f"{f'begins with {begin}' if begin else 'is empty'}.",
            log=str(path),
            next_step="pcap and pcapng are read, packed with gzip or not; editcap turns others into pcapng.",
        )


def _begin_of(path: Path) -> tuple[str, bool]:
    """Return the first bytes in hex, and whether they were packed. Raises OSError, EOFError, zlib.error."""
    with path.open("rb") as file:
        begin = file.read(4).hex()
    if not begin.startswith(_GZIP):
        return begin, False
    with gzip.open(path) as unpacked:
        return unpacked.read(4).hex(), True


def _check(path: Path, code: int, said: str, fault: type[HilError]) -> None:
    if code == 0:
        return
    lines = [line.removeprefix("tshark: ").strip(" .") for line in said.splitlines()]
    told = [line for line in lines if line and not line.startswith("Running as user")]
    words = " ".join(told[:_SAID_LINES]) or "it said nothing"
    raise fault(
        f"Dissecting {path}: tshark ended with status {code}: {words}.",
        log=str(path),
        next_step=f"look at the capture: capinfos {path}; of one that was cut short, what is whole: "
        f"editcap {path} whole.pcapng",
    )


def _private(home: str) -> dict[str, str]:
    """Settings, plugins and profiles of a user lie below the home folder; this one is empty."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WIRESHARK", "XDG_"))}
    return {**kept, "HOME": home, "WIRESHARK_CONFIG_DIR": home, "LC_ALL": "C.UTF-8"}


def _program() -> str:
    found = shutil.which("tshark")
    if found is None:
        raise RigError("Dissecting a capture: tshark is not installed.", next_step=INSTALL)
    return found
