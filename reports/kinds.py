# SPDX-License-Identifier: Apache-2.0
"""What stands at figures that no silicon gave: the word of their kind, and what they are worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hil.model import UNREAL

VIRTUAL_REMARK = "Virtual figures test logic and pipeline; they say nothing of an ESP32's speed."
EMULATED_REMARK = (
    "Emulated figures are of a chip's own image: counts and sizes are exact, times are no chip's."
)
_REMARKS: Mapping[str, str] = {"emulated": EMULATED_REMARK, "virtual": VIRTUAL_REMARK}


def unreal(kinds: Iterable[str]) -> tuple[str, ...]:
    """Return those of the kinds that are no silicon's, each once, in order."""
    found = set(kinds)
    return tuple(kind for kind in UNREAL if kind in found)


def kind_remark(kinds: Iterable[str]) -> str:
    """Return what the figures of these kinds are worth, "" where all are measured on silicon."""
    return " ".join(_REMARKS[kind] for kind in unreal(kinds))


def mark(kinds: Iterable[str], form: str) -> str:
    """Return the kinds that are no silicon's in ``form``, which holds ``{}``; "" where there is none."""
    found = unreal(kinds)
    return form.format(", ".join(found)) if found else ""
