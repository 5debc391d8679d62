# SPDX-License-Identifier: Apache-2.0
"""What the demonstration simulates: racks, boards, nights, commits, and the changes that are planted."""

from __future__ import annotations

import datetime
import functools
import hashlib
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from hil.model import Role, Scalar

NEWEST = datetime.date(2026, 11, 20)  # the evening of the newest night
SUITE = "nightly"
AIR = "lab"
NOISE = "typical"
NEW_COMMIT = 0.7  # in how many nights main has moved on
TAIL = 0.06  # the share of publishes that the regression slows down
SLOWER, FASTER, CHANNEL = 0.12, 0.18, 0.15
BAD_BOARD: Mapping[str, float] = {"publish": 0.12, "throughput": 0.09, "jitter": 0.20}

_VERBS = ("Rework", "Test", "Simplify", "Fix", "Document")
_PARTS = ("the sensor's queue", "provisioning", "the OTA slot's check", "the log's level")
_AUTHORS = ("Mira Okoye", "Sven Lund", "Ana Diaz")

Happening = Literal["access point", "regression", "bad board", "improvement", "mended board"]
HAPPENINGS: tuple[Happening, ...] = get_args(Happening)  # in time
_SHARES = dict(zip(HAPPENINGS, (0.3, 0.5, 0.65, 0.8, 0.9), strict=True))  # of all nights, before each


@dataclass(frozen=True)
class Board:
    id: str
    target: str


@dataclass(frozen=True)
class Rack:
    """``start`` is the time of day (UTC) at which its nights begin."""

    name: str
    boards: tuple[Board, ...]
    start: datetime.time

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(board.target for board in self.boards))


_CHIPS = ("virtual-esp32", "virtual-esp32s3", "virtual-esp32c3", "virtual-esp32")
LAB = Rack("lab", tuple(Board(f"e{n}", chip) for n, chip in enumerate(_CHIPS, start=1)), datetime.time(1, 23))
DESK = Rack(
    "desk", tuple(Board(f"d{n}", chip) for n, chip in enumerate(_CHIPS, start=1)), datetime.time(2, 40)
)
RACKS = (LAB, DESK)
WORN, FLAKY = ("desk", "d3"), ("lab", "e2")  # the bad board, and the one with outages
CHANNELS, ACCESS_POINTS = (6, 11), ("02:00:5e:10:00:06", "02:00:5e:10:00:11")


@dataclass(frozen=True)
class Plan:
    """``nights`` nights that end with NEWEST; ``boots`` of the candidate and of the reference in each.

    Without ``planted`` nothing happens in them.
    """

    nights: int = 120
    seed: int = 1
    boots: int = 4
    planted: bool = True

    def night_of(self, happening: Happening) -> int:
        """Return the number of the first night that shows a planted change."""
        return round(self.nights * _SHARES[happening])

    def date(self, night: int) -> datetime.date:
        """Return the date of a night's evening."""
        return NEWEST - datetime.timedelta(days=self.nights - 1 - night)

    def started(self, rack: Rack, night: int) -> datetime.datetime:
        morning = self.date(night) + datetime.timedelta(days=1)
        return datetime.datetime.combine(morning, rack.start, datetime.UTC)

    def run_id(self, rack: Rack, night: int) -> str:
        digest = self._digest("run", rack.name, night)[:4]
        return f"{self.started(rack, night):%Y%m%dT%H%M%SZ}-{SUITE}-{digest}"

    @functools.cached_property
    def _versions(self) -> tuple[int, ...]:
        """Return how many commits main had before each night; a firmware's change needs a new one."""
        chance = random.Random(f"{self.seed} commits")
        wanted = {self.night_of("regression"), self.night_of("improvement")}
        found, version = [], 0
        for night in range(self.nights):
            version += night in wanted or chance.random() < NEW_COMMIT
            found.append(version)
        return tuple(found)

    def commit(self, night: int) -> str:
        """Return the made-up commit of a night, 40 digits."""
        return self._digest("commit", self._versions[night])[:40]

    def commit_words(self, night: int) -> dict[str, str]:
        """Return title and author of a night's commit, made up as well."""
        version = self._versions[night]
        titles = {
            self._versions[self.night_of("regression")]: "Send each reading at once",
            self._versions[self.night_of("improvement")]: "Let lwIP take larger windows",
        }
        title = titles.get(version, f"{_VERBS[version % len(_VERBS)]} {_PARTS[version % len(_PARTS)]}")
        return {"title": title, "author": _AUTHORS[version % len(_AUTHORS)]}

    def image(self, role: Role, target: str, night: int) -> str:
        """Return the SHA-256 of an image; the reference's never changes."""
        return self._digest("image", self.commit(night) if role == "candidate" else role, target)

    def is_out(self, rack: Rack, board: str, night: int) -> bool:
        """Return whether the flaky board gave nothing that night: three nights in a row, and once more."""
        first, again = round(self.nights * 0.42), round(self.nights * 0.9)
        return (rack.name, board) == FLAKY and (first <= night < first + 3 or night == again)

    def has(self, happening: Happening, night: int) -> bool:
        return self.planted and night >= self.night_of(happening)

    def path(self, rack: Rack, bench: str, role: Role, night: int) -> float:
        """Return the logarithm by which the network is slower than usual for a bench (rates: lower)."""
        found = math.log1p(CHANNEL) if rack is LAB and self.has("access point", night) else 0.0
        if bench == "throughput" and role == "candidate" and self.has("improvement", night):
            found -= math.log1p(FASTER)
        return found

    def board(self, rack: Rack, board: str, bench: str, night: int) -> float:
        """Return the logarithm by which all on a board is slower than usual."""
        bad = self.has("bad board", night) and not self.has("mended board", night)
        worn = (rack.name, board) == WORN and bad
        return math.log1p(BAD_BOARD[bench]) if worn else 0.0

    def tail(self, bench: str, role: Role, night: int) -> float:
        """Return the factor of the slowest publishes."""
        slower = bench == "publish" and role == "candidate" and self.has("regression", night)
        return 1.0 + SLOWER if slower else 1.0

    def facts(self, rack: Rack, night: int) -> Mapping[str, Mapping[str, Scalar]]:
        """Return what a record says of its surroundings."""
        moved = rack is LAB and self.has("access point", night)
        return {
            "device": {"channel": CHANNELS[moved], "bssid": ACCESS_POINTS[moved], "sched": "fifo"},
            "access_point": {"type": "virtual", "profile": AIR, "ssid": f"hil-{rack.name}"},
            "broker": {"version": "2.0.11"},
        }

    def _digest(self, *words: object) -> str:
        return hashlib.sha256("\0".join(map(str, ("demo", self.seed, *words))).encode()).hexdigest()
