"""Read the small parts of a study's file: boots, background, claims, applications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

from hil.base.units import QuantityError, find_unit
from hil.base.yamlfile import Node
from hil.reports.studies.declaration.needs import CHECKS
from hil.reports.studies.declaration.types import (
    APPLICATION_KINDS,
    BY_FACT,
    CLAIM_KINDS,
    DIRECTIONS,
    NOT_MEASURABLE,
    Application,
    Background,
    BackgroundRow,
    Claim,
)

SIZES = ("quick", "full")


def read_unit(node: Node) -> str:
    """Return the unit that the key ``unit`` names. Raises ConfigError."""
    unit = node.text("unit")
    try:
        return find_unit(unit).name
    except QuantityError as error:
        raise node.error("unit", f"{error}.") from None


def read_boots(node: Node) -> dict[str, int]:
    """Read how many boots each size has. Raises ConfigError."""
    return {size: node.integer(size, minimum=1, maximum=100) for size in SIZES}


def read_background(node: Node) -> Background:
    """Read a table of others. Raises ConfigError."""
    columns = tuple(node.texts("columns"))
    rows = tuple(_background_row(part, columns) for part in node.sections("rows"))
    return Background(
        id=node.text("id"),
        title=node.text("title"),
        unit=read_unit(node),
        source=node.text("source"),
        remark=node.text("remark"),
        columns=columns,
        rows=rows,
    )


def _background_row(node: Node, columns: Sequence[str]) -> BackgroundRow:
    values = tuple(node.scalars("values"))
    if len(values) != len(columns):
        raise node.error("values", f"{len(values)} values for {len(columns)} columns.")
    return BackgroundRow(node.text("label"), values)


def read_claim(node: Node) -> Claim:
    """Read a claim. Raises ConfigError."""
    check = node.choice("check", CHECKS)
    remark = node.text("remark", default="")
    if check in _NEEDS_REMARK and not remark:
        raise node.error("check", _NEEDS_REMARK[check])
    kind = cast(Literal["claim", "recommendation"], node.choice("kind", CLAIM_KINDS, default="claim"))
    return Claim(node.text("id"), node.text("says"), check, remark, kind)


_NEEDS_REMARK = {
    BY_FACT: "a claim that facts decide needs a 'remark' with the fact.",
    NOT_MEASURABLE: "a claim that nothing here can decide needs a 'remark' that says why.",
}


def read_application(node: Node) -> Application:
    """Read a use of the link. Raises ConfigError."""
    kind = cast(Literal["stream", "transfer", "messages"], node.choice("kind", APPLICATION_KINDS))
    streams = kind == "stream"
    return Application(
        name=node.text("name"),
        kind=kind,
        direction=cast(Literal["receive", "send"], node.choice("direction", DIRECTIONS)),
        rate_kbps=node.quantity("rate", "kbps", minimum=0.001) if streams else 0.0,
        size_bytes=0 if streams else node.integer("size_bytes", minimum=1),
        source=node.text("source"),
    )
