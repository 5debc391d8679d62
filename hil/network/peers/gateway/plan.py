# SPDX-License-Identifier: Apache-2.0
"""What the requester is asked to do, and the words that it and the board share."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

PROFILES = ("baseline", "agentoptions", "tight")
ENDPOINT = "probe/01"  # of the published benchmark: the read's topic and its path on the server
TOGETHER, INTERLEAVED = "together", "interleaved"


class RequestOutcome(IntEnum):
    """How a request ended. The board reports all but the first two and the last."""

    OK = 0
    TIMEOUT = 1
    UNREACHABLE = 2
    TLS_FAILED = 3
    NOT_HTTP = 4
    TRUNCATED = 5
    STATUS_NOT_200 = 6
    NEVER_ENDED = 7
    MQTT_LOST = 8


@dataclass(frozen=True)
class Topics:
    """The topics below a board's own root, ``hil/<mac>``."""

    root: str

    @property
    def ready(self) -> str:
        return f"{self.root}/gateway/ready"

    @property
    def control(self) -> str:
        return f"{self.root}/gateway/control"

    def endpoint(self, profile: str) -> str:
        """Return what the published benchmark calls the topic root."""
        return f"{self.root}/{profile}/{ENDPOINT}"

    def request(self, profile: str) -> str:
        return f"{self.endpoint(profile)}/req"

    def response(self, profile: str) -> str:
        return f"{self.endpoint(profile)}/res"


@dataclass(frozen=True)
class RequesterPlan:
    """One run of the requester.

    ``phases`` holds the number of reads of each; a phase without reads is left out. ``reconnect`` says who
    drops its connections between them: requester, board, both or none. ``credentials_file`` holds user name
    and password, a line each; it is removed once read. "" where the broker asks for none.
    """

    broker_address: str
    broker_port: int
    credentials_file: str
    topic_root: str
    profiles: tuple[str, ...]
    order: str
    phases: tuple[int, ...]
    pause_ms: int
    timeout_ms: int
    qos: int
    reconnect: str
    ready_timeout_ms: int = 45_000  # hil.run.plan reckons with it

    @property
    def topics(self) -> Topics:
        return Topics(self.topic_root)

    @property
    def requester_reconnects(self) -> bool:
        return self.reconnect in ("both", "requester")

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(dataclasses.asdict(self), indent=2) + "\n")

    @classmethod
    def read(cls, path: Path) -> RequesterPlan:
        """Read what write() wrote. Raises OSError, ValueError, TypeError."""
        values: Mapping[str, Any] = json.loads(path.read_text())
        plan = cls(**{**values, "profiles": tuple(values["profiles"]), "phases": tuple(values["phases"])})
        unknown = set(plan.profiles) - set(PROFILES)
        if unknown or not plan.profiles:
            raise ValueError(f"{path}: profiles are {', '.join(PROFILES)}, not {plan.profiles}")
        return plan


def format_request_id(phase: int, read: int, serial: int) -> str:
    """Name a request; ``serial`` counts all requests of the run, so that no two have one name."""
    return f"{phase}-{read}-{serial}"
