"""What a study was measured on: board, air and firmware, as the records hold them."""

from __future__ import annotations

from collections.abc import Sequence

from hil.metrics.stats import quantile
from hil.model import RunRecord
from hil.reports.studies.document import number, percent
from hil.reports.studies.records import BoardRun, fact

_SHORT_SHA = 12
_WAYS = ("uplink", "downlink")
_LOSSES = ("loss", "burst")


def measured_on(run: BoardRun) -> str:
    """Return one line: board, target, kind, air with what it did to the frames, firmware."""
    firmware = sorted({record.firmware_sha256[:_SHORT_SHA] for record in run.records})
    parts = (
        f"board {run.board}",
        run.target,
        run.kind,
        f"firmware {', '.join(firmware)}",
        *_air(run.records),
    )
    return f"Measured on: {', '.join(parts)}."


def _air(records: Sequence[RunRecord]) -> list[str]:
    """Return the access point with its profile, and per direction what the air counted."""
    points = [record.environment.get("access_point", {}) for record in records]
    names = sorted({" ".join(filter(None, (_type(one), _profile(one)))) for one in points if one})
    told = [f"{way} {figures}" for way in _WAYS if (figures := _figures(records, way))]
    named = [f"access point {' and '.join(names)}"] if names else ["access point not recorded"]
    return [*named, f"air as counted: {'; '.join(told)}"] if told else named


def _type(point: object) -> str:
    return str(point.get("type", "")) if isinstance(point, dict) else ""


def _profile(point: object) -> str:
    found = point.get("profile", "") if isinstance(point, dict) else ""
    return f"(air profile {found})" if found else ""


def _figures(records: Sequence[RunRecord], way: str) -> str:
    """Return least and median delay over the cases, queues included, and the share of frames lost."""
    least, middle = (_facts(records, f"{way}_delay_{name}_us") for name in ("min", "p50"))
    read = sum(_facts(records, f"{way}_read_frames"))
    lost = sum(sum(_facts(records, f"{way}_drop_{name}")) for name in _LOSSES)
    full = sum(_facts(records, f"{way}_drop_queue"))
    if not least or not middle or not read:
        return ""
    delay = (
        f"{number(min(least) / 1000)} ms or more, p50 {number(quantile(middle, 0.5) / 1000)} ms with queues"
    )
    return f"{delay}, {percent(lost / read)} lost, {percent(full / read)} dropped by a full queue"


def _facts(records: Sequence[RunRecord], name: str) -> list[float]:
    return [value for record in records if (value := fact(record, "air", name)) is not None]
