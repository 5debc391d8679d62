# SPDX-License-Identifier: Apache-2.0
"""What the history holds, in memory: sessions, and one value a series and boot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hil.base.numeric import np
from hil.model import PastKind, Scalar, SeriesId, format_place


@dataclass(frozen=True)
class SessionBoard:
    """What a board of a session is."""

    target: str
    kind: PastKind


@dataclass(frozen=True)
class BootSession:
    """One run of which boot values are kept. ``commit`` is the candidate's.

    ``firmware`` maps a role and image (``candidate virtual-esp32``) to the image's SHA-256; ``conditions``
    are what a board's values hang on (access point, channel, air, broker, clock), flattened: ``v1.air``.
    docs/operate/history.md lists them.
    """

    run_id: str
    started_utc: str
    rack: str
    trigger: str
    commit: str
    dirty: bool
    firmware: Mapping[str, str] = field(default_factory=dict)
    conditions: Mapping[str, Scalar] = field(default_factory=dict)
    suite: str = ""
    boards: Mapping[str, SessionBoard] = field(default_factory=dict)
    product: str = ""

    @property
    def place(self) -> str:
        """Whose figures these are, and where measured, as a series' name begins: ``product:rack``."""
        return format_place(self.product, self.rack)

    def kind_of(self, board: str) -> str:
        """Return a board's kind, and whether its figures are simulated: "virtual, simulated noise"."""
        kind = self.boards[board].kind if board in self.boards else ""
        return f"{kind}, simulated noise" if self.conditions.get(f"{board}.noise_simulated") else kind


@dataclass(frozen=True)
class SeriesHistory:
    """The boot values of one series (its name: hil.model.SeriesId) and role, in order of session, then boot.

    All arrays have one element a boot. ``session`` indexes ``History.sessions``. ``value`` is in the metric's
    unit, not on its scale; +inf where it fell among timeouts. ``hits`` of ``samples`` rows failed. What is
    read from files is read-only.
    """

    series_id: str
    role: str
    session: np.ndarray
    boot: np.ndarray
    value: np.ndarray
    samples: np.ndarray
    hits: np.ndarray
    ruler: np.ndarray  # of str
    firmware: np.ndarray  # of str: SHA-256 of the image

    def __len__(self) -> int:
        return len(self.value)

    @property
    def name(self) -> SeriesId:
        """The series id, taken apart."""
        return SeriesId.parse(self.series_id)


@dataclass(frozen=True)
class History:
    """Sessions in order of time, and their series. ``left_out`` says which files were not read, and why."""

    sessions: tuple[BootSession, ...] = ()
    entries: Mapping[tuple[str, str], SeriesHistory] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    @property
    def products(self) -> tuple[str, ...]:
        """Whose figures it holds, "" among them where some are of no product by name."""
        return tuple(sorted({session.product for session in self.sessions}))

    def series(self, series_id: str, role: str = "candidate") -> SeriesHistory | None:
        """Return the boot values of a series, None where there is none."""
        return self.entries.get((series_id, role))

    def restricted(self, series_ids: Iterable[str]) -> History:
        """Return what it holds of these series, all sessions included."""
        wanted = set(series_ids)
        kept = {key: entry for key, entry in self.entries.items() if key[0] in wanted}
        return History(self.sessions, kept, self.left_out)


NO_HISTORY = History()
