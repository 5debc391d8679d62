# SPDX-License-Identifier: Apache-2.0
"""Make an epoch of sessions, and refuse one that nobody has looked at: nothing ratchets by itself.

Write an epoch to ``thresholds/baselines/<rack>.yaml``: what is there stays as it is, comments included.
"""

from __future__ import annotations

import datetime
import getpass
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import ConfigError
from hil.base.git import try_git
from hil.base.yamlfile import loads
from hil.history.baseline.changes import (
    Change,
    GatedUnit,
    changes,
    gated_units,
    sessions_of,
    unmeasured,
    unnamed,
)
from hil.history.baseline.collect import FEWEST_SESSIONS, Choice, check_sessions, choose
from hil.metrics.sessions import History, Session
from hil.model import format_place
from hil.store.files import disk_error, replace_file
from hil.thresholds.baselines import REFERENCE, Baselines, Epoch, check, label_of, read_epochs
from hil.thresholds.types import Thresholds

_HEAD = """\
# What is normal on rack {rack}: the sessions of each accepted epoch, the last one in force. Written by
# `hil baseline accept`, reviewed and committed by people; docs/operate/baselines.md says what to look at.
schema: 1
rack: {rack}
{product}epochs:
"""


def append_epoch(path: Path, epoch: Epoch) -> None:
    """Append an epoch to the file of its rack, which is made where it is missing.

    Raises:
        ConfigError: the file is wrong, or laid out so that nothing can be appended.
        RigError: the disk does not take it.
    """
    _check_name(path)
    before = (
        path.read_text(encoding="utf-8")
        if path.exists()
        else _HEAD.format(rack=epoch.rack, product=f"product: {epoch.product}\n" if epoch.product else "")
    )
    known = read_epochs(loads(before, label=label_of(path)), epoch.rack) if path.exists() else ()
    ended = before if before.endswith("\n") else f"{before}\n"
    text = ended + _block(epoch)
    _check(text, path, (*known, epoch))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text.encode())
    except OSError as error:
        raise disk_error(f"could not write {path}", error, "the epochs that were there") from error


def _check_name(path: Path) -> None:
    if path.name == REFERENCE:
        raise ConfigError(
            f"{label_of(path)} is the reference firmware's, so a rack of that name has no baselines.",
            next_step="give the rack another name.",
        )


def _block(epoch: Epoch) -> str:
    quoted = {
        name: json.dumps(getattr(epoch, name), ensure_ascii=False) for name in ("by", "reason", "commit")
    }
    lines = [f"  - accepted: {epoch.accepted.isoformat()}"]
    lines += [f"    {name}: {text}" for name, text in quoted.items()]
    lines += [
        "    sessions:",
        *(f'      {run}: "{digest}"' for run, digest in sorted(epoch.sessions.items())),
    ]
    return "\n".join(lines) + "\n"


def _check(text: str, path: Path, wanted: tuple[Epoch, ...]) -> None:
    """Read what would be written, before anything is: it holds the epochs of before, and the new one last."""
    label = label_of(path)
    try:
        found = read_epochs(loads(text, label=label), wanted[-1].rack)
    except ConfigError as error:
        found = ()
        why = f": {error}"
    else:
        why = ""
    if [_content(epoch) for epoch in found] != [_content(epoch) for epoch in wanted]:
        raise ConfigError(
            f"{label}: an epoch cannot be appended at its end{why}.",
            next_step="make 'epochs:' its last key, a list with '- accepted: …' indented by two.",
        )


def _content(epoch: Epoch) -> tuple[object, ...]:
    return (epoch.product, epoch.accepted, epoch.by, epoch.reason, epoch.commit, dict(epoch.sessions))


@dataclass(frozen=True)
class Request:
    """What somebody wants accepted, and why. ``by`` is "" for whom git says; ``allowed`` are of OBSTACLES."""

    rack: str
    reason: str
    choice: Choice
    by: str
    allowed: frozenset[str]
    repository: Path
    product: str = ""

    @property
    def place(self) -> str:
        """Whose figures, and where: as in Session.place."""
        return format_place(self.product, self.rack)


@dataclass(frozen=True)
class Proposal:
    """What would be accepted: the sessions, what they change, and the units that they are about."""

    sessions: tuple[Session, ...]
    changes: tuple[Change, ...]
    units: tuple[GatedUnit, ...]


def propose(
    request: Request, history: History, thresholds: Mapping[str, Thresholds], baselines: Baselines
) -> Proposal:
    """Choose the sessions and work out what they change.

    Raises:
        ConfigError: no reason; too few sessions, or such as check_sessions() refuses, or that lack a series;
            the history is not what the epoch in force was accepted with.
    """
    if not request.reason.strip():
        raise ConfigError(
            "a baseline is accepted for a reason, which its reviewers read.",
            next_step="say it: --reason 'first baseline', --reason 'TLS 1.3: publish_latency_p50_us grew'.",
        )
    check(baselines, history, request.product)
    epoch = baselines.epoch(request.rack)
    sessions = choose(history, request.rack, request.choice, epoch, product=request.product)
    check_sessions(sessions, request.repository, request.allowed)
    units = gated_units(history, request.place, thresholds)
    _check_units(units, history, request.place, thresholds)
    numbers = sessions_of(history, {session.run_id for session in sessions})
    found = changes(history, units, numbers, epoch)
    _check_complete(found)
    return Proposal(sessions, tuple(found), tuple(units))


def accept_epoch(request: Request, proposal: Proposal, path: Path) -> Epoch:
    """Write the epoch and return it.

    Raises:
        ConfigError: a mean moved by more than is tolerated and the reason does not name its metric; the file
            cannot be appended to.
        RigError: the disk does not take it.
    """
    missing = unnamed(proposal.changes, request.reason)
    if missing:
        raise ConfigError(
            f"{', '.join(missing)} moved by more than is tolerated against the epoch in force, for better or "
            "worse, and the reason does not name it.",
            next_step="find out why (docs/operate/baselines.md), then say it: --reason "
            f"'{missing[0]}: why it is another now'.",
        )
    epoch = Epoch(
        rack=request.rack,
        accepted=datetime.datetime.now(tz=datetime.UTC).date(),
        by=request.by.strip() or _git_user(request.repository),
        reason=request.reason.strip(),
        commit=proposal.sessions[-1].commit,
        sessions={session.run_id: session.digest for session in proposal.sessions},
        source=str(path),
        product=request.product,
    )
    append_epoch(path, epoch)
    return epoch


def _check_units(
    units: Sequence[GatedUnit], history: History, place: str, thresholds: Mapping[str, Thresholds]
) -> None:
    if not units:
        missing = unmeasured(history, place, thresholds)
        raise ConfigError(
            f"rack {place}: the history has no series that a rule under 'compare:' is for.",
            next_step="measure the suite pr (hil baseline collect), or add rules to thresholds/*.yaml. "
            f"Not measured: {'; '.join(itertools.islice(missing, 5)) or 'nothing'}.",
        )


def _check_complete(found: Sequence[Change]) -> None:
    for item in found:
        if item.sessions < FEWEST_SESSIONS:
            raise ConfigError(
                f"{item.unit.name} on {item.board} is in {item.sessions} of these sessions; an epoch takes "
                f"{FEWEST_SESSIONS} of each series.",
                next_step="measure more: hil baseline collect.",
            )


def _git_user(repository: Path) -> str:
    done = try_git(repository, "config", "user.name")
    name = done.stdout.decode(errors="replace").strip()
    if name:
        return name
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise ConfigError("nobody knows who accepts this baseline.", next_step="say it: --by NAME.") from None
