# SPDX-License-Identifier: Apache-2.0
"""Which work a board gets next: the longest first, flashed as seldom as possible, the exclusive air counted.

A ``Dispatcher`` hands items to boards as they become free, so an estimate that is wrong costs little, and a
board that drops out leaves its work to those that can do it. ``simulate`` is the same rule run on estimates.

The rule, of the items that a board can do and that may begin now:

1. what has the rack alone, as long as nothing happens on the rack: so nobody is waited for
2. what takes the rack's air, where that is what the night will last for; it is never left idle then
3. what needs the firmware that the board has; the longest first
4. another firmware: the one with most work for each board that has it. Not where those that have it will be
   through before this one is flashed
"""

from __future__ import annotations

import heapq
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from hil.base.errors import ConfigError


@dataclass(frozen=True)
class Item:
    """Work for one board: ``seconds`` is an estimate, ``boards`` are the ids of those that can do it.

    One with ``air`` is the only such at a time on a rack; one that is ``alone`` is the only one at all there.
    """

    id: str
    firmware: str
    seconds: float
    boards: frozenset[str]
    air: bool = False
    alone: bool = False

    @property
    def is_serial(self) -> bool:
        return self.air or self.alone


@dataclass(frozen=True)
class Seat:
    """A board at its rack, and the firmware that is on it."""

    board: str
    rack: str
    firmware: str = ""


@dataclass
class _Rack:
    running: int = 0
    serial: str = ""  # the board whose item holds the air, or the rack
    alone: bool = False


class Dispatcher:
    """Hands items to boards. ``flash_s`` is what another firmware on a board costs. Threads may share it.

    ``begun`` are items, none of ``items``, that boards are at from the start.
    Raises ConfigError where a board stands at two racks, or an item's id is there twice.
    """

    def __init__(
        self,
        items: Sequence[Item],
        seats: Sequence[Seat],
        *,
        flash_s: float,
        begun: Mapping[str, Item] = MappingProxyType({}),
    ) -> None:
        for what, ids in (("item", [one.id for one in items]), ("board", [one.board for one in seats])):
            if twice := [one for one, count in Counter(ids).items() if count > 1]:
                raise ConfigError(f"{what} {twice[0]} is planned twice.")
        self._flash_s = flash_s
        self._seats = {seat.board: seat for seat in seats}
        self._firmware = {seat.board: seat.firmware for seat in seats}
        self._racks: dict[str, _Rack] = {seat.rack: _Rack() for seat in seats}
        self._pending = {item.id: item for item in items}
        self._running: dict[str, Item] = {}
        self._changed = threading.Condition()
        self.flashes = 0
        for board, item in begun.items():
            self._begin(board, item)

    def next(self, board: str, *, may_flash: bool = True) -> Item | None:
        """Return what a free board does now; None where there is nothing for it at the moment."""
        with self._changed:
            if board in self._running or board not in self._seats:
                return None
            item = self._choose(board, may_flash=may_flash)
            if item is not None:
                self._begin(board, item)
            return item

    def wait(self, board: str, check: Callable[[], None]) -> Item | None:
        """Return what a free board does next, when it may begin; None when nothing can come any more.

        ``check`` is called now and then while it is waited, and may raise.
        """
        while True:
            with self._changed:
                if (item := self.next(board)) is not None or not self._may_come(board):
                    return item
                self._changed.wait(0.1)
            check()

    def done(self, board: str) -> None:
        """Record that a board has finished its cases."""
        with self._changed:
            self._end(board)

    def drop(self, board: str, left: Sequence[Item] | None = None) -> list[Item]:
        """Take a board out: what it was at, or what is ``left`` of that, goes to others.

        Return the items that no board can do any more.
        """
        with self._changed:
            if (item := self._running.get(board)) is not None:
                self._end(board)
                self._pending |= {one.id: one for one in ([item] if left is None else left)}
            self._seats.pop(board, None)
            stranded = [item for item in self._pending.values() if not item.boards & self._seats.keys()]
            for item in stranded:
                del self._pending[item.id]
            self._changed.notify_all()
            return stranded

    @property
    def left(self) -> int:
        """How many items have not begun."""
        return len(self._pending)

    def _may_come(self, board: str) -> bool:
        """Whether a board may get something yet: it waits, or somebody may drop out who has it."""
        running = (item for other, item in self._running.items() if other != board)
        return any(board in item.boards for item in (*self._pending.values(), *running))

    def _begin(self, board: str, item: Item) -> None:
        self._pending.pop(item.id, None)
        self._running[board] = item
        rack = self._racks[self._seats[board].rack]
        rack.running += 1
        if item.is_serial:
            rack.serial, rack.alone = board, item.alone
        if self._firmware[board] != item.firmware:
            self._firmware[board] = item.firmware
            self.flashes += 1

    def _end(self, board: str) -> None:
        if self._running.pop(board, None) is None:
            return
        rack = self._racks[self._seats[board].rack]
        rack.running -= 1
        if rack.serial == board:
            rack.serial, rack.alone = "", False
        self._changed.notify_all()

    def _choose(self, board: str, *, may_flash: bool) -> Item | None:
        rack = self._racks[self._seats[board].rack]
        if rack.alone:
            return None
        mine = [item for item in self._pending.values() if board in item.boards]
        startable = [
            item
            for item in mine
            if not (item.is_serial and rack.serial) and not (item.alone and rack.running)
        ]
        if not may_flash:
            startable = [item for item in startable if item.firmware == self._firmware[board]]
        if not startable:
            return None
        serial_rules = self._serial_rules()
        kept = {item.id for item in startable if item.firmware == self._firmware[board]}
        worth = self._worth({item.firmware for item in startable})
        best = max(
            startable,
            key=lambda item: (
                item.alone,
                item.air and serial_rules,
                item.id in kept,
                worth[item.firmware],
                item.air,
                item.seconds,
            ),
        )
        if best.id in kept or best.is_serial or self._pays(board, best.firmware):
            return best
        return max(
            (item for item in startable if item.id in kept), key=lambda item: item.seconds, default=None
        )

    def _serial_rules(self) -> bool:
        """Whether what takes turns will last longer than what the boards do side by side."""
        left = [*self._pending.values(), *self._running.values()]
        serial_s = sum(item.seconds for item in left if item.is_serial)
        each_s = sum(item.seconds for item in left) / max(1, len(self._seats))
        return serial_s / len(self._racks) >= each_s

    def _worth(self, firmwares: Collection[str]) -> Mapping[str, float]:
        """Return, by firmware, what is left for each board that has it, one more counted; or its longest."""
        on = Counter(self._firmware[board] for board in self._seats)
        total: dict[str, float] = defaultdict(float)
        longest: dict[str, float] = defaultdict(float)
        for item in self._pending.values():
            if item.firmware in firmwares:
                total[item.firmware] += item.seconds
                longest[item.firmware] = max(longest[item.firmware], item.seconds)
        return {one: max(total[one] / (on[one] + 1), longest[one]) for one in firmwares}

    def _pays(self, board: str, firmware: str) -> bool:
        """Whether it is quicker to flash a board than to leave the rest to those that have the firmware."""
        left = [item for item in self._pending.values() if item.firmware == firmware]
        able = {other for other in self._seats if self._firmware[other] == firmware and other != board}
        if not all(item.boards & able for item in left):
            return True
        return sum(item.seconds for item in left) / len(able) > self._flash_s


class Queue:
    """Gives what takes turns to the board that has most left to do: the last to end is the one to hurry.

    Threads share it.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[str, float] = {}
        self._held = False

    def acquire(self, board: str, left_s: float, check: Callable[[], None]) -> None:
        """Wait for the board's turn. ``check`` is called meanwhile and may raise."""
        with self._changed:
            self._waiting[board] = left_s
            try:
                while self._held or max(self._waiting, key=lambda one: self._waiting[one]) != board:
                    self._changed.wait(0.1)
                    check()
                self._held = True
            finally:
                del self._waiting[board]
                self._changed.notify_all()

    def release(self) -> None:
        with self._changed:
            self._held = False
            self._changed.notify_all()


@dataclass(frozen=True)
class Timetable:
    """What a simulation says: ``begins`` has item, board and second of each start in their order."""

    begins: Sequence[tuple[str, str, float]]
    makespan_s: float
    flashes: int
    stranded: Sequence[Item] = field(default=())


def simulate(
    items: Sequence[Item],
    seats: Sequence[Seat],
    *,
    flash_s: float,
    took_s: Mapping[str, float] = MappingProxyType({}),
    rule: type[Dispatcher] = Dispatcher,
) -> Timetable:
    """Return the order in which a dispatcher hands out the items.

    Each takes as long as is estimated, or what ``took_s`` says; ``rule`` is what chooses.
    """
    dispatcher = rule(items, seats, flash_s=flash_s)
    boards = {seat.board for seat in seats}
    stranded = [item for item in items if not item.boards & boards]
    firmware = {seat.board: seat.firmware for seat in seats}
    idle, begins, now_s = [seat.board for seat in seats], list[tuple[str, str, float]](), 0.0
    busy: list[tuple[float, str]] = []
    while True:
        # who need not be flashed chooses first
        for may_flash in (False, True):
            for board in tuple(idle):
                if (item := dispatcher.next(board, may_flash=may_flash)) is not None:
                    idle.remove(board)
                    busy_s = took_s.get(item.id, item.seconds) + flash_s * (firmware[board] != item.firmware)
                    firmware[board] = item.firmware
                    begins.append((item.id, board, now_s))
                    heapq.heappush(busy, (now_s + busy_s, board))
        if not busy:
            return Timetable(begins, now_s, dispatcher.flashes, stranded)
        now_s, board = heapq.heappop(busy)
        dispatcher.done(board)
        idle.append(board)


def lower_bound_s(items: Iterable[Item], seats: Sequence[Seat]) -> float:
    """Return what no order can be shorter than: flashing costs nothing in it.

    The most of: the longest item; what only some boards can do, shared evenly by them; what takes turns on
    some racks, shared evenly by these.
    """
    rack_of = {seat.board: seat.rack for seat in seats}
    doable = [(item, frozenset(item.boards & rack_of.keys())) for item in items]
    racks = [
        (item, frozenset(rack_of[board] for board in boards)) for item, boards in doable if item.is_serial
    ]
    return max(
        max((item.seconds for item, boards in doable if boards), default=0.0),
        _shared_s(doable),
        _shared_s(racks),
    )


def _shared_s(work: Sequence[tuple[Item, frozenset[str]]]) -> float:
    """Return the most that a group of boards, or racks, has to itself, for each of them."""
    groups = {able for _item, able in work if able}
    groups |= {frozenset().union(*groups)} if groups else set()
    return max(
        (sum(item.seconds for item, able in work if able and able <= group) / len(group) for group in groups),
        default=0.0,
    )
