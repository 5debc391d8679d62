# SPDX-License-Identifier: Apache-2.0
"""reporting.json: what became of a run's reports, written by whoever reports it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from hil.model import SCHEMA_VERSION
from hil.store.codec import parse
from hil.store.files import read_bytes

REPORTED = "reporting.json"


class Reported(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    tag_field="schema",
    tag=SCHEMA_VERSION,
):
    """What a run's folder says of its reports; all of it is empty before the first."""

    report: str = ""  # the site's first page as a person in the folder of then would type it; "" without one
    warnings: tuple[str, ...] = ()  # what failed in reporting, and what is worth knowing of it
    changes: tuple[str, ...] = ()  # the words of what is open in the nights that the run is one of


NOT_REPORTED = Reported()


def read_reported(run: Path) -> Reported:
    """Return what the run's reports left.

    Raises:
        ConfigError: the file is damaged.
        RigError: the disk does not give it.
    """
    path = run / REPORTED
    if not path.exists():
        return NOT_REPORTED
    way_out = "take the file out, and build the report again: hil report build."
    return parse(Reported, path, read_bytes(path), way_out=way_out)
