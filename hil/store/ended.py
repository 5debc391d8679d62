# SPDX-License-Identifier: Apache-2.0
"""``OUT/ended.json``: what a command says that ended before it had a run, or before its run was judged.

It is there as long as nothing newer is: ``hil run`` writes it when it begins, replaces it by its error where
it ends early, and the folder of the next run takes it away. So what lies beside it is older than it, and
`hil ci collect` takes no run of before for one of today.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from hil.base.errors import ConfigError, ExitCode, HilError, want_of
from hil.base.git import head_of
from hil.base.paths import PROJECT_ROOT
from hil.base.untrusted import visible
from hil.store.files import replace_file

SCHEMA = 1
ENDED = "ended.json"
UNKNOWN = "unknown"
CODES: Mapping[str, ExitCode] = {
    "configuration": ExitCode.CONFIG,
    "firmware": ExitCode.FIRMWARE,
    "rig": ExitCode.RIG,
    UNKNOWN: ExitCode.RIG,
}
MOST_BYTES = 16 * 1024
MOST_CHARACTERS = 1_000  # of a sentence, and of a way out


@dataclass(frozen=True)
class Ended:
    """Why a command ended early. ``owner`` is whose fault it is: configuration, firmware, rig, or unknown.

    ``commit`` is that of the project, "" outside of a repository.
    """

    owner: str
    exit_code: int
    sentence: str
    next_step: str = ""
    commit: str = ""

    @property
    def words(self) -> str:
        """The sentence, after its owner and before the way out: the same wherever it is told."""
        owner = "" if self.owner == UNKNOWN else f"{self.owner.upper()}: "
        way_out = f"; the way out: {self.next_step.rstrip('.')}" if self.next_step else ""
        return f"{owner}{self.sentence.rstrip('.')}{way_out}."


def ended_by(error: Exception) -> Ended:
    """Return what an error says of itself; of one without an owner among these, that nobody knows."""
    if wanting := want_of(error):
        error = wanting
    if not isinstance(error, HilError):
        return unknown(f"internal error, {type(error).__name__}: {error}")
    owner = error.owner if CODES.get(error.owner) == error.exit_code else UNKNOWN
    log = f" Log: {error.log}." if error.log else ""
    return Ended(owner, int(CODES[owner]), f"{error.sentence.rstrip('.')}.{log}", error.next_step)


def unknown(sentence: str, next_step: str = "") -> Ended:
    """Return an end whose owner nobody knows."""
    return Ended(UNKNOWN, int(CODES[UNKNOWN]), sentence, next_step)


def begin(out: Path, command: str) -> None:
    """Record that ``command`` was killed; this stands unless a later record replaces it."""
    with suppress(OSError):
        out.mkdir(parents=True, exist_ok=True)
    leave(
        out,
        unknown(
            f"`{command}` ended without a word before it measured anything: it was killed, or cancelled",
            "look at the log of the job, then start it again",
        ),
    )


def leave(out: Path, ended: Ended) -> None:
    """Write why a command ended, in place of what was there.

    Nothing is written where the disk takes nothing, and by hand where there is no such folder: nothing can
    lie in it that would be taken for this one's.
    """
    facts = {**asdict(ended), "commit": head_of(PROJECT_ROOT)}
    texts = {key: visible(value, MOST_CHARACTERS) for key, value in facts.items() if isinstance(value, str)}
    stored = {"schema": SCHEMA, **facts, **texts}
    with suppress(OSError):
        if os.environ.get("CI"):
            out.mkdir(parents=True, exist_ok=True)
        replace_file(out / ENDED, f"{json.dumps(stored, indent=2, ensure_ascii=False)}\n".encode())


def clear(out: Path) -> None:
    """Take it away: there is a run that is newer."""
    with suppress(OSError):
        (out / ENDED).unlink()


def read(path: Path) -> Ended | None:
    """Return what the file says, None where there is none. Whoever wrote it, it can be no pass.

    Raises:
        ConfigError: it is too long, or no such file as leave() writes.
    """
    if not path.is_file() or path.is_symlink():
        return None
    with path.open("rb") as stream:
        content = stream.read(MOST_BYTES + 1)
    try:
        return _parsed(content)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        said = visible(error, 120)
        raise ConfigError(f"{path}: not a record of why a command ended: {said}.") from error


def _parsed(content: bytes) -> Ended:
    """Return it, each text in one harmless line. Raises ValueError, KeyError, TypeError, AttributeError."""
    if len(content) > MOST_BYTES:
        raise ValueError(f"more than {MOST_BYTES:,} B")
    stored = json.loads(content)
    schema, code = stored.pop("schema"), stored.pop("exit_code")
    if schema != SCHEMA or type(code) is not int or not all(isinstance(one, str) for one in stored.values()):
        raise ValueError(f"it is not of schema {SCHEMA}")
    found = Ended(exit_code=code, **{key: visible(text, MOST_CHARACTERS) for key, text in stored.items()})
    if CODES.get(found.owner) != code or not found.sentence:
        raise ValueError("owner, exit code and sentence do not go together")
    return found
