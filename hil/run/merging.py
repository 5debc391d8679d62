# SPDX-License-Identifier: Apache-2.0
"""The shards of one suite become one run: their journals one after another, to be judged as one.

What is missing is named, so that the run is incomplete without it. A shard's files keep their names, below
``shard-2`` in folders of cases, so that no two are one.
"""

from __future__ import annotations

import datetime
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError, RigError
from hil.model import Entry, Fault, NotRun, RunRecord, Scalar
from hil.store import RunDirectory, read_run
from hil.store.files import disk_error, read_bytes
from hil.store.judged import StoredRun
from hil.store.run_info import new_run_id
from hil.thresholds.loader import FOLDER as THRESHOLDS

OF_CASES = ("peer", "trace")  # folders of which records name a file
_CONSOLE, _ALLURE = "console", "allure-pytest"
_LEFT = (THRESHOLDS, "allure-results")  # written again
_NUMBERED = re.compile(r"\.(panic|coredump)-(\d+)\.")
_CRASHES_OF_A_SHARD = 100
_MOST_SHOWN = 100  # characters of two values that differ
# what shards of one suite have in common
_SAME = ("suite", "rack", "product", "trigger", "profile", "legs", "git", "boards")


def merge_shards(folders: Sequence[Path], out: Path) -> RunDirectory:
    """Make one run in ``out`` of the shards in ``folders``; return it, not judged yet.

    Raises:
        ConfigError: a folder is no shard, one is there twice, or two are not of one suite, rack and commit.
        RigError: there is none at all, or the disk does not take it.
    """
    shards = _in_order([read_run(folder) for folder in folders])
    for other in shards[1:]:
        _check_same(shards[0], other)
    first = shards[0].info
    began = min(datetime.datetime.fromisoformat(str(shard.info["started_utc"])) for shard in shards)
    run_id = new_run_id(str(first["suite"]), now=began)
    run = RunDirectory.create(out, run_id)
    run.write_info(_info(shards, run_id))
    for shard in shards:
        _bring_files(shard, run.path)
        for entry in shard.journal.entries:
            run.append(_as_of(entry, run_id, _number(shard)))
    for missing in _missing(shards, run_id):
        run.append(missing)
    return run


def _number(shard: StoredRun) -> int:
    return int(shard.info["shard"]["number"])


def _in_order(runs: Sequence[StoredRun]) -> list[StoredRun]:
    """Return the shards by their numbers. Raises as merge_shards() does."""
    found: dict[int, StoredRun] = {}
    for run in runs:
        if not run.info:  # it ended before it wrote run.json
            continue
        if "shard" not in run.info:
            raise ConfigError(
                f"{run.path}: not a shard, its run.json names none.",
                next_step="name runs of hil run --shard K/N alone.",
            )
        twin = found.setdefault(_number(run), run)
        if twin is not run:
            raise ConfigError(
                f"{run.path} and {twin.path} are both shard {_number(run)}/{run.info['shard']['of']}.",
                next_step="leave one of them out.",
            )
    if not found:
        raise RigError("no shard left a run.", next_step="look at the logs of the jobs that measure them.")
    return [found[number] for number in sorted(found)]


def _check_same(first: StoredRun, other: StoredRun) -> None:
    """Raise ConfigError where two runs are no shards of one suite, measured of one commit on one rack."""
    pairs = {key: (first.info.get(key), other.info.get(key)) for key in _SAME}
    for key in ("of", "cases"):
        pairs[f"shard.{key}"] = first.info["shard"].get(key), other.info["shard"].get(key)
    pairs["noise"] = first.info.get("noise", {}).get("profile"), other.info.get("noise", {}).get("profile")
    pairs["firmware"] = _images(first.info), _images(other.info)
    if not first.info.get("git", {}).get("dirty", True):  # the same sources, wherever they were built
        del pairs["firmware"]
    pairs["thresholds"] = first.limits, other.limits
    for key, (one, another) in pairs.items():
        if one != another:
            told = f" ({one!r}, {another!r})" if len(f"{one}{another}") < _MOST_SHOWN else ""
            raise ConfigError(
                f"{first.path} and {other.path} are not shards of one run: their {key} differ{told}.",
                next_step="measure all shards of one commit on one rack; "
                "runs of several racks are one report: hil report build RUN RUN.",
            )


def _images(info: Mapping[str, Any]) -> dict[str, object]:
    return {name: image.get("sha256") for name, image in info.get("firmware", {}).items()}


def _info(shards: Sequence[StoredRun], run_id: str) -> dict[str, Any]:
    """Return run.json of all: the first one's, with what each measured."""
    first = shards[0].info
    of = int(first["shard"]["of"])
    told = {shard.run_id: shard.info for shard in shards}
    left = {board["board"]: board for info in told.values() for board in info.get("quarantined", [])}
    info = {key: value for key, value in first.items() if key not in ("shard", "legs", "reporting", "more")}
    legs = int(first.get("legs", of)) // of
    return {
        **info,
        "run_id": run_id,
        "started_utc": min(str(one["started_utc"]) for one in told.values()),
        "argv": sys.argv,
        "plan": _plan(shards),
        "firmware": {name: image for one in told.values() for name, image in one.get("firmware", {}).items()},
        **({"quarantined": list(left.values())} if left else {}),
        **({"legs": legs} if legs > 1 else {}),
        "shards": [
            {"number": _number(shard), "of": of, "run_id": shard.run_id, "host": shard.info.get("host", "")}
            for shard in shards
        ],
    }


def _plan(shards: Sequence[StoredRun]) -> dict[str, dict[str, int]]:
    """Return in how many boots each board was to measure each case: what its shard says, else once."""
    cases: Mapping[str, Mapping[str, int]] = shards[0].info["shard"]["cases"]
    plan = {board: dict.fromkeys(own, 1) for board, own in cases.items()}
    for shard in shards:
        for board, own in shard.info.get("plan", {}).items():
            plan.setdefault(board, {}).update(own)
    return plan


def _missing(shards: Sequence[StoredRun], run_id: str) -> Iterator[NotRun]:
    """Yield each case of a shard that left no run."""
    there, of = {_number(shard) for shard in shards}, shards[0].info["shard"]["of"]
    for board, own in shards[0].info["shard"]["cases"].items():
        for case_id, number in own.items():
            if number not in there:
                yield NotRun(run_id, board, case_id, f"shard {number}/{of} left no run", "ended")


def _as_of(entry: Entry, run_id: str, shard: int) -> Entry:
    """Return a shard's entry as one of the whole run, with the names that its files have there."""
    if isinstance(entry, RunRecord):
        environment = {group: _with_files(own, shard) for group, own in entry.environment.items()}
        return replace(entry, run_id=run_id, environment=environment)
    if isinstance(entry, Fault):
        return replace(entry, run_id=run_id, sentence=_renumbered(entry.sentence, shard))
    return replace(entry, run_id=run_id)


def _with_files(values: Mapping[str, Scalar], shard: int) -> dict[str, Scalar]:
    return {
        key: f"{top}/shard-{shard}/{rest}" if isinstance(value, str) and top in OF_CASES and rest else value
        for key, value in values.items()
        for top, _, rest in [str(value).partition("/")]
    }


def _renumbered(text: str, shard: int) -> str:
    """Return a text, or a file's name, with the crashes of a shard counted behind those of others."""
    behind = _CRASHES_OF_A_SHARD * (shard - 1)
    return _NUMBERED.sub(lambda found: f".{found[1]}-{int(found[2]) + behind}.", text)


def _bring_files(shard: StoredRun, to: Path) -> None:
    """Copy what a shard left beside records and verdict; only files, as a link may point anywhere.

    Raises RigError.
    """
    number = _number(shard)
    try:
        if not (to / THRESHOLDS).exists():
            (to / THRESHOLDS).mkdir()
            for stem, content in shard.limits.items():
                (to / THRESHOLDS / f"{stem}.yaml").write_bytes(content)
        for path in sorted(shard.path.rglob("*")):
            top, *rest = path.relative_to(shard.path).parts
            if rest and top not in _LEFT and path.is_file() and not path.is_symlink():
                _bring(path, to / _place(top, rest, number), number)
    except OSError as error:
        raise disk_error(f"could not copy {shard.path} to {to}", error, str(shard.path)) from error


def _place(top: str, rest: Sequence[str], number: int) -> Path:
    if top == _ALLURE:  # whose names are random
        return Path(top, *rest)
    if top == _CONSOLE and len(rest) == 1:
        return Path(top, _renumbered(rest[0], number))
    return Path(top, f"shard-{number}", *rest)


def _bring(path: Path, to: Path, number: int) -> None:
    """Copy a file; what a board said in one shard stands behind what it said in those before."""
    to.parent.mkdir(parents=True, exist_ok=True)
    if to.parent.name == _CONSOLE and to.suffix == ".log":
        with to.open("ab") as stream:
            stream.write(f"--- shard {number} ---\n".encode() + read_bytes(path))
    else:
        shutil.copyfile(path, to)
