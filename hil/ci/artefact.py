# SPDX-License-Identifier: Apache-2.0
"""The artefact "verdict": what a comment is made of, and nothing else; written where a fork's code runs.

    plan.json
    legs/<leg>/ended.json                 why a command of the leg ended before there was anything to judge
    legs/<leg>/<run id>/run.json
    legs/<leg>/<run id>/verdicts.json
    legs/<leg>/<run id>/records.jsonl     what the verdict is judged again from
    thresholds/<bench>.yaml               the limits of the head

So whoever reads it believes nothing: not its sizes, not its names, not its contents.
"""

from __future__ import annotations

import io
import re
import shutil
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path

from hil.base.errors import ConfigError
from hil.ci.plan import LEG_NAME
from hil.store.directory import JOURNAL, RUN_INFO, VERDICTS
from hil.store.ended import ENDED
from hil.thresholds.loader import FOLDER

PLAN = "plan.json"
LEGS = "legs"
MOST_ZIP_BYTES = 24 * 1024 * 1024
MOST_BYTES = 128 * 1024 * 1024  # of all files, unpacked
MOST_FILE_BYTES = 32 * 1024 * 1024
MOST_FILES = 250
MOST_RATIO = 200  # a large verdicts.json comes to about 40
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # what GitHub's action packs with
_RUN_ID = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
_NAME = re.compile(
    rf"{re.escape(PLAN)}|{FOLDER}/[a-z][a-z0-9_]{{0,63}}\.yaml|{LEGS}/{LEG_NAME}/"
    rf"(?:{re.escape(ENDED)}|(?!{re.escape(ENDED)}/){_RUN_ID}/"
    rf"(?:{re.escape(RUN_INFO)}|{re.escape(VERDICTS)}|{re.escape(JOURNAL)}))"
)


def keep(plan: Path, legs: Path, to: Path, thresholds: Path | None = None) -> tuple[str, ...]:
    """Copy into ``to`` what a comment is made of; return a sentence for each file that is left out.

    ``thresholds`` is the folder of the head's limits.

    A leg whose files do not fit has no verdict in the comment; its own artefact has them all the same.
    """
    shutil.rmtree(to, ignore_errors=True)
    used, left_out = 0, []
    files = [
        (plan, PLAN),
        *(
            (path, f"{FOLDER}/{path.name}")
            for path in (sorted(thresholds.glob("*.yaml")) if thresholds else ())
        ),
        *((path, f"{LEGS}/{path.relative_to(legs).as_posix()}") for path in _files_of(legs)),
    ]
    for path, name in files:
        if not path.is_file() or path.is_symlink() or path.parent.is_symlink():
            continue  # a link shows another file of this machine, and its leg has no verdict
        size = path.stat().st_size
        if size > MOST_FILE_BYTES or used + size > MOST_BYTES or not _NAME.fullmatch(name):
            left_out.append(f"{name} ({size:,} B) is left out of the artefact that comments are made of.")
            continue
        used += size
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, to / name)
    return tuple(left_out)


def _files_of(legs: Path) -> Iterator[Path]:
    for leg in sorted(path for path in legs.glob("*") if path.is_dir() and not path.is_symlink()):
        yield leg / ENDED
        for run in sorted(path.parent for path in leg.glob(f"*/{JOURNAL}")):
            yield from (run / RUN_INFO, run / VERDICTS, run / JOURNAL)


def unpack(content: bytes, to: Path) -> None:
    """Write the files of a zip below ``to``, which is empty.

    A run whose journal was too large gets an empty one, as that is what runs are known by.

    Raises:
        ConfigError: it is no zip, or holds anything but what ``keep`` writes, in name, kind or size.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name, entry in _entries(archive).items():
                path = to / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(_content(archive, entry))
                if path.name == RUN_INFO:
                    (path.parent / JOURNAL).touch()
    except ConfigError:
        raise
    except Exception as error:  # others wrote it: zipfile has many words for a file that is none
        raise ConfigError(f"the artefact is not a readable zip: {type(error).__name__}.") from error


def _entries(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Return the files by name, all of which are ours. Raises ConfigError."""
    listed = [one for one in archive.infolist() if not one.is_dir()]
    if len(archive.infolist()) > 2 * MOST_FILES or len(listed) > MOST_FILES:
        raise ConfigError(f"the artefact holds {len(listed)} files, and at most {MOST_FILES} are read.")
    found: dict[str, zipfile.ZipInfo] = {}
    for entry in listed:
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if (
            not _NAME.fullmatch(entry.orig_filename)
            or entry.filename in found
            or kind not in (0, stat.S_IFREG)
            or entry.compress_type not in _METHODS
        ):
            raise ConfigError(f"the artefact holds the unexpected file {entry.orig_filename[:80]!r}.")
        found[entry.filename] = entry
    if PLAN not in found:
        raise ConfigError(f"the artefact holds no {PLAN}.")
    if max(entry.file_size for entry in listed) > MOST_FILE_BYTES or _total(listed) > MOST_BYTES:
        raise ConfigError(f"the artefact's files have {_total(listed):,} B in total, more than allowed.")
    if any(entry.file_size > 4096 and entry.file_size > MOST_RATIO * entry.compress_size for entry in listed):
        raise ConfigError("a file of the artefact has an implausible compression ratio.")
    return found


def _total(entries: list[zipfile.ZipInfo]) -> int:
    return sum(entry.file_size for entry in entries)


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Read a file: no more than it says it holds, which was checked. Raises ConfigError."""
    with archive.open(entry) as stream:
        content = stream.read(entry.file_size + 1)
    if len(content) != entry.file_size:
        raise ConfigError("a file of the artefact does not have the size listed in its zip.")
    return content
