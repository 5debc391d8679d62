"""Write an epoch to ``thresholds/baselines/<rack>.yaml``: what is there stays as it is, comments included."""

from __future__ import annotations

import json
from pathlib import Path

from hil.base.errors import ConfigError
from hil.base.yamlfile import loads
from hil.store.files import disk_error, replace_file
from hil.thresholds.baselines import REFERENCE, Epoch, label_of, read_epochs

_HEAD = """\
# What is normal on rack {rack}: the sessions of each accepted epoch, the last one in force. Written by
# `hil baseline accept`, reviewed and committed by people; docs/baselines.md says what to look at.
schema: 1
rack: {rack}
epochs:
"""


def append_epoch(path: Path, epoch: Epoch) -> None:
    """Append an epoch to the file of its rack, which is made where it is missing.

    Raises:
        ConfigError: the file is wrong, or laid out so that nothing can be appended.
        RigError: the disk does not take it.
    """
    _check_name(path)
    before = path.read_text(encoding="utf-8") if path.exists() else _HEAD.format(rack=epoch.rack)
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
    lines += ["    kappa:"] if epoch.kappa else []
    lines += [f"      {metric}: {kappa:.4g}" for metric, kappa in sorted(epoch.kappa.items())]
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
    kappa = {metric: float(f"{value:.4g}") for metric, value in epoch.kappa.items()}
    return (epoch.accepted, epoch.by, epoch.reason, epoch.commit, dict(epoch.sessions), kappa)
