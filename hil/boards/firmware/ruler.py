# SPDX-License-Identifier: Apache-2.0
"""What measures, taken from other sources than what is measured: the head's benches over the base's product.

An image is product and ruler. The ruler is the agent, the benches and the components that they measure by; of
these the ruler hash of a record is made (firmware/components/benches/bench_table.cmake). The rest is product.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hil.base.errors import ConfigError
from hil.boards.firmware.revision import (
    FOLDER,
    Revision,
    SourceState,
    find_revision,
    source_state,
    sources_at,
)
from hil.model import Ruler

COMPONENTS = ("agent", "benches", "cost", "http_link", "iperf", "load", "mqtt_link", "rtos", "trace")
WORKING_TREE = "."
RULER_LOG = "ruler.log"  # in a build whose own ruler could not be replaced: the compiler's last lines
_LAST_LINES = 60


@dataclass(frozen=True)
class RulerSources:
    """The ruler to build with; without a ``revision`` the working tree's."""

    repository: Path
    state: SourceState
    revision: Revision | None = None

    def __str__(self) -> str:
        return str(self.revision or "the working tree")

    @contextmanager
    def firmware(self, folder: Path) -> Iterator[Path]:
        """Give the folder firmware/ that holds it; a commit's is unpacked in ``folder`` meanwhile.

        Raises ConfigError and RigError as sources_at() does.
        """
        if self.revision is None:
            yield self.repository / FOLDER
            return
        with sources_at(self.repository, self.revision, folder) as sources:
            yield sources

    def became(self, moved: tuple[str, ...] = (), *, reason: str = "") -> Ruler:
        return Ruler(self.state.commit, dirty=self.state.dirty, moved=moved, reason=reason)


def find_ruler(repository: Path, name: str) -> RulerSources:
    """Return the ruler of a commit, or with ``name`` "." of the working tree.

    Raises ConfigError where git knows no such commit, or refuses to answer.
    """
    if name == WORKING_TREE:
        return RulerSources(repository, source_state(repository))
    revision = find_revision(repository, name)
    return RulerSources(repository, SourceState(revision.commit, dirty=False), revision)


def is_ruler(path: str) -> bool:
    """Return whether a path of the repository belongs to what measures."""
    parts = PurePosixPath(path).parts
    return parts[:2] == (FOLDER, "components") and len(parts) > 3 and parts[2] in COMPONENTS


def put_ruler(source: Path, sources: Path) -> tuple[str, ...]:
    """Replace the ruler in the folder firmware/ ``sources`` by that of ``source``. Raises OSError.

    Returns the components of which a file is another, which are those that were replaced.
    """
    moved = []
    for name in COMPONENTS:
        there, here = source / "components" / name, sources / "components" / name
        if _digests(there) == _digests(here):
            continue
        moved.append(name)
        shutil.rmtree(here, ignore_errors=True)
        if there.is_dir():
            shutil.copytree(there, here)
    return tuple(moved)


def last_lines(error: ConfigError) -> str:
    """Return the end of the log that a failed build names; its sentence where it names none."""
    try:
        text = Path(error.log or "").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = error.sentence
    return "\n".join(text.splitlines()[-_LAST_LINES:]) + "\n"


def _digests(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
