# SPDX-License-Identifier: Apache-2.0
"""The parameters of a bench as its thresholds file has them, so that no test repeats the list."""

from __future__ import annotations

from hil.model import Scalar
from hil.thresholds.loader import load
from tests.boards.rack_tools import CHECKOUT


def case_defaults(bench: str, **changes: Scalar) -> dict[str, Scalar]:
    """Return a bench's parameters in the file's order: each its default, but for ``changes``."""
    parameters = load(bench, CHECKOUT / "thresholds").parameters
    unknown = set(changes) - set(parameters)
    assert not unknown, f"{bench} has no {', '.join(sorted(unknown))}"
    return {name: changes.get(name, parameter.default) for name, parameter in parameters.items()}
