"""Moments of runs: texts such as ``2026-11-20T22:12:57Z``."""

from __future__ import annotations

import datetime

DAY_S = 86_400.0


def unix_s(text: str) -> float | None:
    """Return a moment in seconds since 1970, one without an offset as UTC; None where ``text`` is none."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp()


def between_s(start: str, end: str) -> float | None:
    """Return how long it was from ``start`` to ``end``, at least 0; None where one of them is no moment."""
    first, last = unix_s(start), unix_s(end)
    return None if first is None or last is None else max(0.0, last - first)


def utc(seconds: float) -> str:
    """Return a moment as text, to the second."""
    moment = datetime.datetime.fromtimestamp(seconds, tz=datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
