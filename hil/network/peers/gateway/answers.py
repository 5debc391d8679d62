"""The requests of one requester and what came back: in time, late, twice, unasked, or not an answer."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hil.network.peers.gateway.lines import LineWriter

EXCERPT_CHARACTERS = 120


@dataclass(frozen=True)
class Answer:
    """An answer; ``received_ns`` is of the monotonic clock, ``received_ms`` of the wall clock."""

    received_ns: int
    received_ms: int
    fields: Mapping[str, Any]


class Answers:
    """Gives each answer to the request whose id it carries, and to no other. Notes everything else."""

    def __init__(self, profile: str, lines: LineWriter) -> None:
        self._profile = profile
        self._lines = lines
        self._sent_ns: dict[str, int] = {}
        self._open = ""
        self._answer: Answer | None = None
        self._answered: set[str] = set()

    def expect(self, request_id: str, sent_ns: int) -> None:
        self._sent_ns[request_id] = sent_ns
        self._open, self._answer = request_id, None

    def take(self) -> Answer | None:
        """Return the answer to the request that was sent last, None where it has not come."""
        return self._answer

    def give_up(self) -> None:
        """What comes for the open request from now on is late."""
        self._open = ""

    def receive(self, payload: bytes | bytearray) -> None:
        """Sort in what came on the response topic."""
        received_ns, received_ms = time.monotonic_ns(), time.time_ns() // 1_000_000
        fields = _parse(payload)
        if fields is None:
            self._note("garbage", excerpt=payload[:EXCERPT_CHARACTERS].decode(errors="replace"))
            return
        request_id = str(fields["id"])
        if request_id in self._answered:
            self._note("duplicate", id=request_id)
        elif request_id not in self._sent_ns:
            self._note("unexpected", id=request_id[:EXCERPT_CHARACTERS])
        elif request_id != self._open:
            late_us = (received_ns - self._sent_ns[request_id]) // 1000
            self._answered.add(request_id)
            self._note("late", id=request_id, after_us=late_us)
        else:
            self._answered.add(request_id)
            self._answer = Answer(received_ns, received_ms, fields)
            self._open = ""

    def _note(self, event: str, **facts: Any) -> None:
        self._lines.write(event, profile=self._profile, **facts)


def _parse(payload: bytes | bytearray) -> dict[str, Any] | None:
    try:
        fields = json.loads(payload)
    except ValueError:
        return None
    return fields if isinstance(fields, dict) and "id" in fields else None
