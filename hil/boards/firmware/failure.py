# SPDX-License-Identifier: Apache-2.0
"""Why a run has to do without the firmware of a commit, as data: it could not be built, or is the head's.

A compiler that refuses the commit's sources is a fact of that commit. A disk that is full, a tool that is
missing or a process that was killed is none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hil.base.errors import HilError, RefusedSourcesError
from hil.model import BaseCause
from hil.store.files import replace_file

SCHEMA = 1
_CAUSES: Mapping[str, BaseCause] = {"sources": "sources", "identical": "identical"}
_AT = re.compile(
    r"^(?P<path>/[^\s:]+):\d+(?::\d+)?: (?:fatal )?error: (?!.*No such file or directory)", re.MULTILINE
)
_CMAKE = re.compile(r"^CMake Error at \S+:\d+ \((?:include|add_\w+|target_sources)\):", re.MULTILINE)
# what the machine does to a build, whatever the sources are
_TROUBLE = re.compile(
    r"No space left|Disk quota|Input/output error|Read-only file system|Permission denied|\bKilled\b"
    r"|\bTerminated\b|internal compiler error|annot allocate memory|out of memory|memory exhausted"
    r"|No CMAKE_\w*COMPILER",
    re.IGNORECASE,
)


def refuses_sources(log: Path, sources: Path) -> bool:
    """Return whether a build's log shows an error in ``sources``, and nothing of the machine's."""
    text = log.read_text(encoding="utf-8", errors="replace")
    if _TROUBLE.search(text):
        return False
    folder = sources.resolve()
    named = (Path(found["path"]).resolve() for found in _AT.finditer(text))
    return any(path.is_relative_to(folder) for path in named) or bool(_CMAKE.search(text))


@contextmanager
def told(path: Path | None) -> Iterator[None]:
    """Write into ``path`` why what is built here was not; nothing is there where it was, or was killed."""
    if path is None:
        yield
        return
    path.unlink(missing_ok=True)
    try:
        yield
    except HilError as error:
        cause: BaseCause = "sources" if isinstance(error, RefusedSourcesError) else "unknown"
        write_failure(path, cause, error.sentence)
        raise


def write_failure(path: Path, cause: BaseCause, sentence: str) -> None:
    """Write what read_failure() reads."""
    content = {"schema": SCHEMA, "cause": cause, "sentence": sentence}
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n")


def read_failure(path: Path) -> tuple[BaseCause, str]:
    """Return cause and sentence. Where nothing says why, or not in our words, the cause is unknown."""
    try:
        stored = json.loads(path.read_bytes())
        causes = _CAUSES if stored["schema"] == SCHEMA else {}
        return causes.get(stored["cause"], "unknown"), str(stored["sentence"]).strip().rstrip(".")
    except OSError:
        return "unknown", f"nothing says why it is missing ({path.name} is not there)"
    except (ValueError, KeyError, TypeError) as error:
        return "unknown", f"{path.name} does not say why it is missing ({error!r})"
