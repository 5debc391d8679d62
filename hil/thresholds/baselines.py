# SPDX-License-Identifier: Apache-2.0
"""``thresholds/baselines/<rack>.yaml``: the epochs that somebody accepted.

    schema: 1
    rack: virtual
    product: sensor-node                      # only where the sessions name one
    epochs:
      - accepted: 2026-11-22
        by: R. Tester
        reason: first baseline of this rack
        commit: 1f2e3d…                       # of the firmware that the sessions measured
        sessions:                             # run id: digest of its file in the history
          20261121T221257Z-pr-3fa9: "9c1d…"

`hil baseline accept` appends an epoch; people review and commit it. Nothing joins one by itself.
"""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from hil.base.errors import ConfigError
from hil.base.project import check_product
from hil.base.yamlfile import Node, load
from hil.model import format_product

FOLDER = "baselines"
REFERENCE = "reference.yaml"  # the firmware of nights, which hil.history.nightly.reference reads
SCHEMA_VERSION = 1

_PARENT = "thresholds"
_DIGEST = re.compile(r"[0-9a-f]{8,128}")
_RUN_ID = re.compile(r"\d{8}T\d{6}Z-[A-Za-z0-9_.-]+")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")


@dataclass(frozen=True)
class Epoch:
    """The sessions that say what is normal on a rack since ``accepted``; nothing joins them by itself.

    ``sessions`` maps run ids to the digests of their files in the history. ``source`` is file:line.
    """

    rack: str
    accepted: datetime.date
    by: str
    reason: str
    commit: str
    sessions: Mapping[str, str]
    source: str
    product: str = ""


@dataclass(frozen=True)
class Baselines:
    """The accepted epochs, the newest of a rack last."""

    epochs: Mapping[str, tuple[Epoch, ...]] = field(default_factory=dict)

    def epoch(self, rack: str) -> Epoch | None:
        """Return the epoch in force on a rack, None where none was accepted."""
        found = self.epochs.get(rack, ())
        return found[-1] if found else None


NO_BASELINES = Baselines()


def load_baselines(folder: Path) -> Baselines:
    """Read ``folder/*.yaml`` (``thresholds/baselines``); none where it is missing.

    Raises ConfigError naming file, line and the way out.
    """
    files = [path for path in sorted(folder.glob("*.yaml")) if path.name != REFERENCE]
    return Baselines({path.stem: load_epochs(path) for path in files})


def load_epochs(path: Path) -> tuple[Epoch, ...]:
    """Read the epochs of one rack, in the file's order. Raises ConfigError as load_baselines() does."""
    return read_epochs(load(path, label=label_of(path)), path.stem)


def label_of(path: Path) -> str:
    """Return how sentences name a file: the project's, and the copy in a run's folder, have one name."""
    folder = path.parent
    is_usual = (folder.parent.name, folder.name) == (_PARENT, FOLDER)
    return f"{_PARENT}/{FOLDER}/{path.name}" if is_usual else str(path)


def read_epochs(node: Node, rack: str) -> tuple[Epoch, ...]:
    """Read the epochs of a file that is named after ``rack``. Raises ConfigError."""
    node.schema(SCHEMA_VERSION)
    named = node.text("rack")
    if named != rack:
        sentence = f"rack {named!r} must have the file's name, {rack!r}."
        raise node.error("rack", sentence, next_step="rename the file, or correct the rack.")
    product = check_product(node.text("product", default=""), node.where("product"))
    epochs = tuple(_read_epoch(part, rack, product) for part in node.sections("epochs"))
    node.finish()
    for earlier, later in itertools.pairwise(epochs):
        if later.accepted < earlier.accepted:
            raise ConfigError(
                f"{later.source}: this epoch was accepted on {later.accepted}, the one above it on "
                f"{earlier.accepted}.",
                next_step="keep them in order of time: the last one is in force.",
            )
    return epochs


def _read_epoch(node: Node, rack: str, product: str) -> Epoch:
    commit = node.text("commit")
    if not _COMMIT.fullmatch(commit):
        raise node.error("commit", f"{commit!r} is no commit: 7 to 64 hexadecimal digits.")
    return Epoch(
        rack=rack,
        accepted=node.date("accepted"),
        by=node.text("by"),
        reason=node.text("reason"),
        commit=commit,
        sessions=_read_sessions(node.section("sessions")),
        source=node.where(),
        product=product,
    )


def _read_sessions(node: Node) -> dict[str, str]:
    sessions = {run_id: node.text(run_id) for run_id in node.keys}
    if not sessions:
        raise node.error("", "an epoch without sessions says nothing.", next_step="delete it.")
    for run_id, digest in sessions.items():
        if not _RUN_ID.fullmatch(run_id):
            raise node.error(run_id, f"{run_id!r} is no run id, as in 20261120T221257Z-pr-3fa9.")
        if not _DIGEST.fullmatch(digest):
            sentence = f"{digest!r} is no digest: at least 8 hexadecimal digits."
            raise node.error(run_id, sentence, next_step="put it in quotes if it looks like a number.")
    return sessions


class _Session(Protocol):
    @property
    def run_id(self) -> str: ...
    @property
    def digest(self) -> str: ...


class _History(Protocol):
    @property
    def sessions(self) -> Sequence[_Session]: ...


def check(baselines: Baselines, history: _History, product: str = "") -> None:
    """Compare the digests of the epochs in force with those of the history, and their product with one.

    A session that the history does not hold is no mistake: missing_sessions() names it.

    Raises:
        ConfigError: an epoch is of another product, or a session is not what was accepted; names it, file,
            line and the way out.
    """
    for epoch in filter(None, map(baselines.epoch, baselines.epochs)):
        if epoch.product != product:
            raise ConfigError(
                f"{epoch.source}: this epoch is of {format_product(epoch.product)}, and this project is "
                f"{format_product(product)}: figures of two products are not compared.",
                next_step="move the file to the project that it is of; if that is this one, say in hil.toml: "
                f'product = "{epoch.product}".',
            )
    found = {session.run_id: session.digest for session in history.sessions}
    for epoch in filter(None, map(baselines.epoch, baselines.epochs)):
        for run_id, digest in epoch.sessions.items():
            if found.get(run_id, digest) != digest:
                raise ConfigError(
                    f"{epoch.source}: session {run_id} of rack {epoch.rack} was accepted with the digest "
                    f"{digest[:12]}…, and the history holds one of {found[run_id][:12]}….",
                    next_step="the history is append-only, so its file was changed: delete it and fetch it "
                    "(hil ci history fetch), or accept a new epoch without it.",
                )


def missing_sessions(epoch: Epoch, history: _History) -> tuple[str, ...]:
    """Return the run ids of an epoch that the history does not hold."""
    known = {session.run_id for session in history.sessions}
    return tuple(run_id for run_id in epoch.sessions if run_id not in known)
