# SPDX-License-Identifier: Apache-2.0
"""What a shell completes beside commands and options: boards of the rack file, and suites.

A file that cannot be read completes nothing: the command itself says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import click

from hil.base.errors import HilError
from hil.base.yamlfile import load
from hil.boards.rack import load_rack
from hil.run.options import DEFAULT_RACK
from hil.thresholds import project_files


def boards(context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """Return the boards of the rack that the command line names so far."""
    with suppress(HilError):
        rack = load_rack(context.params.get("rack") or DEFAULT_RACK, unleased=True)
        return _that_begin(begun, (board.id for board in rack.boards))
    return []


def suites(context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """Return the suites of the benches in the folder of limits that the command line names so far."""
    found: set[str] = set()
    for path in project_files(context.params["thresholds"]):
        with suppress(HilError):
            found.update(load(path).section("suites").keys)
    return _that_begin(begun, sorted(found))


def _that_begin(begun: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith(begun)]
