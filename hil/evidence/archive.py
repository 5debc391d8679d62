# SPDX-License-Identifier: Apache-2.0
"""The one file that is sent, written and read.

    evidence-<rack>-<date>.tar.gz
        evidence.json, evidence.md
        steps/<step>.txt                       what its commands said
        runs/<run id>/run.json, records.jsonl, verdicts.json, summary.md
        runs/<run id>/thresholds/<bench>.yaml  the limits that it was judged by
        runs/<run id>/console/…, flash/…       what the boards and esptool said, panics among it

Neither captures nor images, and no more than the bounds below. Whoever reads one believes nothing of it: not
its sizes, not its names, not its kinds of entries.
"""

from __future__ import annotations

import dataclasses
import gzip
import io
import re
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path

from hil.base.errors import ConfigError
from hil.evidence.doing import RUNS, STEPS
from hil.evidence.redact import Redactor
from hil.evidence.report import EVIDENCE, TABLE, Evidence, parse_evidence, table, to_bytes
from hil.store.directory import JOURNAL, RUN_INFO, SUMMARY, THRESHOLDS, VERDICTS
from hil.store.files import replace_file

MOST_PACKED_BYTES = 128 * 1024 * 1024
MOST_BYTES = 192 * 1024 * 1024  # of all files, unpacked
MOST_FILE_BYTES = 48 * 1024 * 1024
MOST_LOG_BYTES = 1024 * 1024  # of what commands, boards and esptool said: its end is kept
MOST_FILES = 2000
_RUN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
_LOG = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\.(?:log|txt)"
_NAME = re.compile(
    rf"{re.escape(EVIDENCE)}|{re.escape(TABLE)}|{STEPS}/[a-z][a-z-]{{0,31}}\.txt|runs/{_RUN}/(?:"
    rf"{re.escape(RUN_INFO)}|{re.escape(JOURNAL)}|{re.escape(VERDICTS)}|{re.escape(SUMMARY)}"
    rf"|{THRESHOLDS}/[a-z][a-z0-9_]{{0,63}}\.yaml|(?:console|flash)/{_LOG})"
)
_WHOLE = (RUN_INFO, JOURNAL, VERDICTS, SUMMARY)
_FOLDERS = ((THRESHOLDS, "*.yaml"), ("console", "*.log"), ("console", "*.txt"), ("flash", "*.log"))


def pack(evidence: Evidence, folder: Path, to: Path, redactor: Redactor) -> Evidence:
    """Write what lies in ``folder`` to the file ``to``, at once and whole; return the evidence as packed.

    Raises OSError.
    """
    files: dict[str, bytes] = {}
    left_out: list[str] = []
    used = 0
    for name, path in _files_of(evidence, folder):
        content = _read(path)
        if content is None or not _NAME.fullmatch(name):
            left_out.append(f"{name}: no plain file")
            continue
        content = redactor.content(name, _shortened(name, content))
        used += len(content)
        if len(content) > MOST_FILE_BYTES or used > MOST_BYTES or len(files) >= MOST_FILES - 2:
            used -= len(content)
            left_out.append(f"{name}: {len(content):,} B are too many")
            continue
        files[name] = content
    packed = dataclasses.replace(evidence, left_out=tuple(left_out))
    head = redactor.content(EVIDENCE, to_bytes(packed))
    packed = parse_evidence(EVIDENCE, head)
    files = {EVIDENCE: head, TABLE: table(packed).encode(), **files}
    replace_file(to, _tar(files))
    return packed


def _files_of(evidence: Evidence, folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield name and path of what may be there; nothing is looked for behind a link."""
    for step in evidence.steps:
        if (folder / STEPS / f"{step.name}.txt").exists():
            yield f"{STEPS}/{step.name}.txt", folder / STEPS / f"{step.name}.txt"
        for run_id in dict.fromkeys(step.runs):
            run = folder / RUNS / run_id
            if not re.fullmatch(_RUN, run_id) or run.is_symlink() or not run.is_dir():
                continue
            yield from ((f"runs/{run_id}/{name}", run / name) for name in _WHOLE if (run / name).exists())
            for inner, pattern in _FOLDERS:
                if not (run / inner).is_symlink():
                    found = sorted((run / inner).glob(pattern))
                    yield from ((f"runs/{run_id}/{inner}/{path.name}", path) for path in found)


def _read(path: Path) -> bytes | None:
    """Return a plain file's content, None where it is a link, a device or gone."""
    try:
        return path.read_bytes() if stat.S_ISREG(path.lstat().st_mode) else None
    except OSError:
        return None


def _shortened(name: str, content: bytes) -> bytes:
    is_log = name.endswith((".txt", ".log"))
    if not is_log or len(content) <= MOST_LOG_BYTES:
        return content
    return b"(its beginning is left out)\n" + content[-MOST_LOG_BYTES:]


def _tar(files: dict[str, bytes]) -> bytes:
    """Return the archive: plain files of nobody's; the same content gives the same bytes."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), mtime=0)


def unpack(path: Path, to: Path) -> Evidence:
    """Write the files of a received archive below ``to``, which is empty; return its evidence.

    Raises:
        ConfigError: it is no such archive, or holds anything but what ``pack`` writes, in name, kind or size.
    """
    try:
        files = _content(path)
    except ConfigError:
        raise
    except Exception as error:  # others wrote it: tarfile and gzip have many words for a file that is none
        why = getattr(error, "strerror", None) or type(error).__name__
        raise _refused(path, f"it is no archive that can be read ({why})") from error
    if EVIDENCE not in files:
        raise _refused(path, f"it holds no {EVIDENCE}")
    for name, content in files.items():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        (to / name).write_bytes(content)
    evidence = parse_evidence(f"{path}: {EVIDENCE}", files[EVIDENCE])
    names = [run for step in evidence.steps for run in step.runs]
    if wrong := [name for name in names if not re.fullmatch(_RUN, name)]:
        raise _refused(path, f"a run is named {wrong[0][:80]!r}, which is no run's name")
    return evidence


def _content(path: Path) -> dict[str, bytes]:
    """Return the files by name; no more is unpacked than is allowed. Raises ConfigError."""
    if path.stat().st_size > MOST_PACKED_BYTES:
        raise _refused(path, f"it has {path.stat().st_size:,} B, and {MOST_PACKED_BYTES:,} are read")
    found: dict[str, bytes] = {}
    used = 0
    with gzip.open(path) as stream, tarfile.open(fileobj=_Bounded(stream, path), mode="r|") as archive:
        for entry in archive:
            if not _NAME.fullmatch(entry.name) or entry.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
                raise _refused(path, f"it holds {entry.name[:80]!r}, which is none of its files")
            if entry.name in found or len(found) >= MOST_FILES:
                raise _refused(path, f"it holds {entry.name[:80]!r} twice, or more than {MOST_FILES} files")
            used += entry.size
            if entry.size > MOST_FILE_BYTES or used > MOST_BYTES:
                raise _refused(path, "its files come to more bytes than are read")
            file = archive.extractfile(entry)
            found[entry.name] = file.read() if file else b""
    return found


class _Bounded(io.RawIOBase):
    """A stream that refuses to give more than is allowed, whatever an entry's head says."""

    def __init__(self, stream: gzip.GzipFile, path: Path) -> None:
        self._stream, self._path = stream, path
        self._left = MOST_BYTES + MOST_FILES * 1024 + tarfile.RECORDSIZE

    def read(self, size: int = -1) -> bytes:
        content = self._stream.read(size if 0 <= size <= self._left else self._left + 1)
        self._left -= len(content)
        if self._left < 0:
            raise _refused(self._path, "it unpacks to more bytes than are read")
        return content


def _refused(path: Path, why: str) -> ConfigError:
    return ConfigError(
        f"{path}: {why}.", next_step="ask for a file that hil evidence wrote, and take it as it came."
    )
