# SPDX-License-Identifier: Apache-2.0
"""The fixed ref at which a pull request's workflow calls that of the racks.

This repository cannot know its name before it is created, so it calls `./.github/workflows/rack.yml`: that of
the pull request itself. A runner group that is limited to a fixed ref takes jobs from that ref alone.
"""

from __future__ import annotations

import re
from pathlib import Path

from hil.base.errors import ConfigError

CALLER = ".github/workflows/pr.yml"
CALLED = ".github/workflows/rack.yml"
# workflows whose own jobs are for racks: a runner group admits these at the default branch, and no others
FOR_RACKS = (
    CALLED,
    *(f".github/workflows/{name}.yml" for name in ("nightly", "rack-health")),
)
_CALL = re.compile(rf"^(    uses: )(\S*{re.escape(CALLED)}(?:@\S+)?)(.*)$", re.MULTILINE)
_REPOSITORY = re.compile(r"[A-Za-z0-9-]{1,39}/[A-Za-z0-9._-]{1,100}")
_REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,200}")
# zizmor asks for a commit, which a runner group could not name in advance
_REMARK = " # zizmor: ignore[unpinned-uses] the ref that the racks' runner group admits"


def called_at(text: str) -> str:
    """Return what a text of pr.yml calls for its racks, "" where nothing or more than one thing."""
    found = _CALL.findall(text)
    return found[0][1] if len(found) == 1 else ""


def pinned(repository: str, ref: str) -> str:
    """Return what is called at a fixed ref. Raises ConfigError where these are no names."""
    if not _REPOSITORY.fullmatch(repository):
        raise ConfigError(f"{repository!r} is no repository.", next_step="--repository OWNER/NAME")
    if not _REF.fullmatch(ref):
        raise ConfigError(f"{ref!r} is no branch, tag or commit.", next_step="--ref main")
    return f"{repository}/{CALLED}@{ref}"


def pin(root: Path, repository: str, ref: str) -> str:
    """Write the fixed ref into pr.yml below ``root``; return what it calls now.

    Raises:
        ConfigError: names that are none, or a pr.yml that does not call the racks' workflow once.
    """
    wanted, path = pinned(repository, ref), root / CALLER
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}.", next_step="go to the repository's checkout."
        ) from error
    if not called_at(text):
        raise ConfigError(f"{path} does not call {CALLED} exactly once.", next_step=f"git restore {CALLER}")
    path.write_text(_CALL.sub(lambda call: f"{call[1]}{wanted}{_REMARK}", text), encoding="utf-8")
    return wanted
