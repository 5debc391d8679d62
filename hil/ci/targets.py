"""Which chips the workflows build for, and for which of them a rack is registered.

A file of the repository and not a repository variable, because GitHub does not pass variables to the
workflows of pull requests from forks.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import ConfigError
from hil.base.git import git, try_git
from hil.base.yamlvalue import did_you_mean
from hil.boards.firmware.build import HOST_TARGET, IMAGE_TARGETS, VIRTUAL_TARGETS
from hil.boards.rack import load_rack

TARGETS_FILE = ".github/hil-targets.json"
VIRTUAL_RACK = "hil/racks/virtual.yaml"
_CHIPS = f"use some of: {', '.join(IMAGE_TARGETS)}."


@dataclass(frozen=True)
class Targets:
    """Chips, in the order in which they are written."""

    build: tuple[str, ...] = ()
    racks: tuple[str, ...] = ()


def read_targets(repository: Path, revision: str) -> Targets:
    """Return what the file says at a commit; nothing where it does not exist there. Raises ConfigError."""
    blob = f"{revision}:{TARGETS_FILE}"
    if try_git(repository, "cat-file", "-e", blob).returncode:
        git(repository, "cat-file", "-e", f"{revision}^{{commit}}")  # an unknown commit is an error
        return Targets()
    where = f"{TARGETS_FILE} at {revision[:12]}"
    try:
        content = json.loads(git(repository, "show", blob))
    except ValueError as error:
        raise ConfigError(f"{where} is not JSON: {error}.") from error
    if not isinstance(content, dict) or set(content) != {"build", "racks"}:
        raise ConfigError(f"{where} holds other keys than 'build' and 'racks'.")
    return Targets(_chips(content["build"], where), _chips(content["racks"], where))


def virtual_targets(repository: Path) -> tuple[str, ...]:
    """Return the targets of the virtual rack's boards; all where the run will tell that its file is wrong."""
    try:
        return tuple(dict.fromkeys(board.target for board in load_rack(repository / VIRTUAL_RACK).boards))
    except ConfigError:
        return VIRTUAL_TARGETS


def _chips(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ConfigError(f"{where}: {value!r} is no list of targets.")
    for target in value:
        if target == HOST_TARGET:
            raise ConfigError(
                f"{where}: the target {target} gives a program and no image to flash, so there is nothing "
                "to bundle or to put on a rack.",
                next_step=_CHIPS,
            )
        if target not in IMAGE_TARGETS:
            hint = did_you_mean(str(target), IMAGE_TARGETS)
            raise ConfigError(f"{where}: there is no target {target!r}{hint}", next_step=_CHIPS)
    return tuple(dict.fromkeys(value))
