# SPDX-License-Identifier: Apache-2.0
"""One pass of tshark over a capture: its fields, whatever a user's own Wireshark is set to."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from hil.base.errors import RigError
from hil.base.reading import CAPTURE_MOST_BYTES, too_large
from hil.network.process import system_program
from hil.store.files import typed_path

# pcapng, and pcap with µs and ns in either byte order (man 5 pcap-savefile)
_MAGIC = {"0a0d0d0a", "a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1"}
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
) -> Iterator[Row]:
    """Yield the fields of each frame, empty where it has none; values() takes those apart that occur often.

    Raises RigError: tshark is missing, the file is no capture, or tshark did not read to the end (its words).
    """
    _check_kind(path)
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
        _check(path, code, said.read().decode("utf-8", "replace"))


def values(field: bytes) -> list[bytes]:
    """Return the values of a field that may occur several times in a frame."""
    return field.split(_AGGREGATOR.encode()) if field else []


def _check_kind(path: Path) -> None:
    """tshark reads dozens of formats, lines of text among them: what dumpcap and tcpdump write counts."""
    try:
        if path.stat().st_size > CAPTURE_MOST_BYTES:
            raise too_large(path, CAPTURE_MOST_BYTES)
        with path.open("rb") as file:
            begin = file.read(4).hex()
    except OSError as error:
        raise RigError(f"Dissecting {path}: {error.strerror}.", log=str(path)) from error
    if begin not in _MAGIC:
        what = f"it begins with {begin}" if begin else "it is empty"
        raise RigError(f"Dissecting {path}: not a capture file: {what}.", log=str(path))


def _check(path: Path, code: int, said: str) -> None:
    if code == 0:
        return
    lines = [line.removeprefix("tshark: ").strip(" .") for line in said.splitlines()]
    told = [line for line in lines if line and not line.startswith("Running as user")]
    words = " ".join(told[:_SAID_LINES]) or "it said nothing"
    raise RigError(
        f"Dissecting {path}: tshark ended with status {code}: {words}.",
        log=str(path),
        next_step=f"look at the capture: capinfos {typed_path(path)}; to keep the whole packets of a "
        f"truncated capture: editcap {typed_path(path)} whole.pcapng",
    )


def _private(home: str) -> dict[str, str]:
    """Settings, plugins and profiles of a user lie below the home folder; this one is empty."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WIRESHARK", "XDG_"))}
    return {**kept, "HOME": home, "WIRESHARK_CONFIG_DIR": home, "LC_ALL": "C.UTF-8"}


def _program() -> str:
    return system_program("tshark", "tshark", "Dissecting a capture")
