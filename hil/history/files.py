# SPDX-License-Identifier: Apache-2.0
"""The history's files: one a run, ``<rack>/<run-id>.json``. Racks' histories are united by copying files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from hil.base.errors import ConfigError
from hil.base.paths import PROJECT_ROOT
from hil.base.project import keep_here
from hil.base.reading import SUMMARY_MOST_BYTES, read_at_most
from hil.base.schema import UPDATE, SchemaError, check_schema
from hil.history.summary import SCHEMA_VERSION, Summary, problems_of, to_bytes
from hil.store.codec import build, decode
from hil.store.files import disk_error, replace_file

_AGAIN = (
    "delete the file, then fetch it from where it came from, or enter its run again: `hil history add RUN` "
    "where its boot values count, else `hil report build RUN`."
)
_MOST_SHOWN = 5
_FOLDER_NAME = re.compile(r"[\w-][\w.-]*")  # leads nowhere else
_DECODER = msgspec.json.Decoder(Summary)
_DEFAULT_OUT = PROJECT_ROOT / "out"


@dataclass(frozen=True)
class Past:
    """The runs in order of time. ``left_out`` names files that could not be read, and the way out."""

    runs: tuple[Summary, ...] = ()
    left_out: tuple[str, ...] = ()


def history_of(out: Path) -> Path:
    """Return where the history of the runs below ``out`` is: in it, or where hil.toml puts the project's own.

    Raises ConfigError where hil.toml is wrong.
    """
    named = keep_here().history
    return named if named and out.absolute() == _DEFAULT_OUT else out / "history"


def default_history() -> Path:
    """Return where the project's own history is. Raises ConfigError where hil.toml is wrong."""
    return history_of(_DEFAULT_OUT)


def path_of(folder: Path, run: Summary) -> Path:
    """Return where a run is kept."""
    return folder / run.rack / f"{run.run_id}.json"


def paths_in(folder: Path, racks: Collection[str] | None = None) -> list[Path]:
    """Return the files of a folder, by rack and run."""
    found = folder.glob("[!.]*/[!.]*.json")
    return sorted(path for path in found if racks is None or path.parent.name in racks)


def read_past(folder: Path, *, racks: Collection[str] | None = None) -> Past:
    """Read the runs of all racks, or of ``racks``. A folder that is not there holds none yet."""
    runs: list[Summary] = []
    left_out: list[str] = []
    for path in paths_in(folder, racks):
        try:
            runs.append(read_summary(path))
        except ConfigError as error:
            left_out.append(str(error))
    ordered = sorted(runs, key=lambda run: (run.started, run.run_id, run.rack))
    known: dict[str, Summary] = {}
    for run in ordered:
        if (first := known.setdefault(run.run_id, run)) is not run:
            left_out.append(
                f"{path_of(folder, run)}: its run is also of rack {first.rack}, and a run is of one rack. "
                "Next: delete the one that does not belong there."
            )
    if more := left_out[_MOST_SHOWN:]:
        left_out[_MOST_SHOWN:] = [f"{len(more)} more of the files in {folder} are left out."]
    return Past(tuple(known.values()), tuple(left_out))


def read_summary(path: Path) -> Summary:
    """Read one run's file.

    Raises:
        ConfigError: it is damaged, of an unknown format, or not where its run and rack say; names the file,
            what is wrong and the way out.
    """
    try:
        content = read_at_most(path, SUMMARY_MOST_BYTES)
    except OSError as error:
        raise ConfigError(f"{path}: could not be read: {error.strerror}.", next_step=_AGAIN) from error
    try:
        run = _parse(content)
    except ValueError as error:
        newer = isinstance(error, SchemaError) and error.is_newer
        raise ConfigError(
            f"{path}: not a run of the history: {error}.", next_step=UPDATE if newer else _AGAIN
        ) from error
    if (run.rack, run.run_id) != (path.parent.name, path.stem):
        raise ConfigError(
            f"{path}: run {run.run_id} of rack {run.rack} belongs in {run.rack}/{run.run_id}.json.",
            next_step="move it there, or delete it if that file exists already.",
        )
    return run


def _parse(content: bytes) -> Summary:
    """Return the run that to_bytes() wrote. Raises ValueError, which says what is wrong."""
    try:
        run = _DECODER.decode(content)
    except (msgspec.DecodeError, RecursionError):
        stored = decode(content)
        if isinstance(stored, dict):
            check_schema(stored.get("schema"), SCHEMA_VERSION)
        run = build(Summary, stored)
    for problem in problems_of(run):
        raise ValueError(problem)
    return run


def keep(folder: Path, run: Summary) -> bool:
    """Write a run's file; return whether boot values, or a run without, entered the history by it.

    What the run says otherwise when it is judged again replaces what the file said. Boot values, once there,
    stay.

    Raises:
        ConfigError: its rack's name is none of a folder, or the file holds other boot values, or is damaged.
        RigError: the disk does not take it.
    """
    if not _FOLDER_NAME.fullmatch(run.rack):
        raise ConfigError(
            f"run {run.run_id}, of rack {run.rack!r}: its name does not fit into the history.",
            next_step="measure again; run.json is written when a run starts.",
        )
    path = path_of(folder, run)
    held = read_summary(path) if path.exists() else None
    if held and held.boot_values:
        if run.boot_values not in (None, held.boot_values):
            raise ConfigError(
                f"{path}: the history holds this run with other boot values, which never change.",
                next_step="if this is a new run, give it another name; if the stored file is wrong, "
                "delete it by hand.",
            )
        run = msgspec.structs.replace(run, boot_values=held.boot_values)
    if run == held:
        return False
    write(path, to_bytes(run))
    return held is None or bool(run.boot_values) > bool(held.boot_values)


def write(path: Path, content: bytes) -> None:
    """Write a file at once and whole. Raises RigError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content)
    except OSError as error:
        raise disk_error(f"could not write {path}", error, "every other run of the history") from error


def check(paths: Iterable[Path]) -> None:
    """Read files. Raises ConfigError as read_summary() does for the first that is damaged."""
    for path in paths:
        read_summary(path)
