# SPDX-License-Identifier: Apache-2.0
"""The transfers of a run from a board: their lines, what of them is missing and asked for again, one series.

Whose fault it is that a bench ended without samples, the board says on the end line.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from hil.base.errors import ConfigError, FirmwareError, HilError, RigError
from hil.model import Case, Scalar, Series
from hil.session.board_link import BoardLink
from hil.session.pace import ClockPace, Elapsed
from hil.wire import Begin, Data, End, Message, Note, Reply
from hil.wire.packing import unpack_columns


@dataclass(frozen=True)
class ReceivedBurst:
    """One transfer, complete and checked."""

    begin: Begin
    end: End
    columns: tuple[tuple[int, ...], ...]


class Transfer:
    """The lines of one transfer as they come in, in any order, some of them twice."""

    def __init__(self, transfer: int) -> None:
        self.transfer = transfer
        self._begin: Begin | None = None
        self._end: End | None = None
        self._blocks: dict[int, bytes] = {}

    def add(self, message: Begin | Data | End) -> None:
        """Take a line.

        Raises:
            FirmwareError: a repeated line differs from the first.
        """
        if isinstance(message, Begin):
            self._begin = self._begin or message
        elif isinstance(message, End):
            self._end = self._end or message
        elif self._blocks.setdefault(message.block, message.packed) != message.packed:
            raise FirmwareError(
                f"Block {message.block} of transfer {self.transfer} was sent twice with different content."
            )

    @property
    def started(self) -> bool:
        return self._begin is not None or self._end is not None or bool(self._blocks)

    @property
    def ended(self) -> bool:
        return self._end is not None

    @property
    def frame_complete(self) -> bool:
        """True when both the begin and the end line are there."""
        return self._begin is not None and self._end is not None

    def missing_blocks(self) -> tuple[int, ...]:
        """Return the numbers of the blocks still missing, as far as the begin or end line tells them."""
        frame = self._begin or self._end
        return tuple(block for block in range(frame.blocks if frame else 0) if block not in self._blocks)

    @property
    def complete(self) -> bool:
        return self.frame_complete and not self.missing_blocks()

    @property
    def lines_received(self) -> int:
        return len(self._blocks) + (self._begin is not None) + (self._end is not None)

    def burst(self) -> ReceivedBurst:
        """Check and unpack a complete transfer.

        Raises:
            FirmwareError: lengths, checksum or packing contradict each other.
        ValueError: the transfer is not complete.
        """
        begin, end = self._begin, self._end
        if begin is None or end is None:
            raise ValueError(f"transfer {self.transfer} is not complete")
        packed = b"".join(self._blocks[block] for block in sorted(self._blocks))
        self._check((begin.rows, begin.blocks), (end.rows, end.blocks), "rows and blocks, begin and end")
        self._check(len(self._blocks), end.blocks, "blocks sent and announced")
        self._check(f"{zlib.crc32(packed):08x}", f"{end.crc32:08x}", "CRC-32 of the data and of the end line")
        try:
            columns = unpack_columns(packed, columns=len(begin.columns), rows=begin.rows)
        except ValueError as error:
            raise FirmwareError(f"Transfer {self.transfer} does not unpack: {error}.") from error
        return ReceivedBurst(begin=begin, end=end, columns=columns)

    def _check(self, left: object, right: object, what: str) -> None:
        if left != right:
            raise FirmwareError(f"Transfer {self.transfer} contradicts itself: {what}: {left} and {right}.")


def parameter_text(value: Scalar) -> str:
    """Return a parameter as it stands on a command line; true and false are 1 and 0."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def case_words(case: Case) -> list[str]:
    """Return a case's parameters as the command ``run`` takes them, in the order of their names."""
    return [f"{key}={parameter_text(value)}" for key, value in sorted(case.parameters.items())]


def merge(case: Case, bursts: Sequence[ReceivedBurst]) -> Series:
    """Join the bursts of a run to one series; of a device value that they all give, the last counts.

    Raises:
        FirmwareError: the bursts are not those of one run of this case.
    """
    first = bursts[0].begin
    _check_case(case, first)
    for number, burst in enumerate(bursts, start=1):
        _check_burst(number, burst.begin, first)
    device: dict[str, Scalar] = {}
    for burst in bursts:
        device.update(burst.end.environment)
    return Series(
        case=case,
        columns={
            name: tuple(value for burst in bursts for value in burst.columns[index])
            for index, name in enumerate(first.columns)
        },
        warmup_rows=first.warmup_rows,
        clock=first.clock,
        firmware_sha256=first.firmware_sha256,
        ruler_hash=first.ruler_hash,
        protocol_version=first.protocol_version,
        device=device,
    )


def _check_case(case: Case, begin: Begin) -> None:
    asked: Mapping[str, str] = {key: parameter_text(value) for key, value in case.parameters.items()}
    if begin.bench != case.bench or dict(begin.parameters) != asked:
        differing = sorted(set(asked.items()) ^ set(begin.parameters.items()))
        raise FirmwareError(
            f"The board measured {begin.bench} with parameters that differ from {case.case_id}: "
            f"{', '.join('='.join(pair) for pair in differing)}.",
            next_step="give thresholds/ and the bench's C file the same parameters.",
        )


def _check_burst(number: int, begin: Begin, first: Begin) -> None:
    same = ("bench", "parameters", "columns", "clock", "firmware_sha256", "ruler_hash", "protocol_version")
    changed = [name for name in same if getattr(begin, name) != getattr(first, name)]
    if begin.burst != number or changed or (number > 1 and begin.warmup_rows):
        raise FirmwareError(
            f"Burst {begin.burst} of {first.bench} is not the {number}. of its run "
            f"(transfer {begin.transfer}{', changed: ' + ', '.join(changed) if changed else ''})."
        )
    if begin.warmup_rows > begin.rows:
        raise FirmwareError(f"{first.bench} announces {begin.warmup_rows} warm-up rows of {begin.rows} rows.")


# docs/reference/console-protocol.md, `owner` of an end line: the error, and what to do next.
_OWNERS: Mapping[str, tuple[type[HilError], str]] = {
    "firmware": (FirmwareError, "read the board's log lines before the end of the run."),
    "configuration": (ConfigError, "correct the case's parameters, or what the board is provisioned with."),
    "rig": (RigError, "check the broker and the network between it and the board (hil doctor)."),
}


_BUSY_HOST = (
    "free the host, or leave the case out: an emulated chip that has too little of it lags behind its peers."
)


def run_fault(end: End, *, case: Case, board: str, log: str, elapsed: Elapsed | None = None) -> HilError:
    """Return the error of a run whose end line has a status other than ``ok`` and ``aborted``.

    An owner that is missing or unknown is the firmware. ``elapsed`` is what went by up to that line.
    """
    kind, next_step = _OWNERS.get(end.owner, _OWNERS["firmware"])
    why = f": {end.error}" if end.error else ""
    sentence = (
        f"{case.bench} on board {board} ended with {end.status} instead of samples{why}; "
        f"the case is {case.case_id}."
    )
    if kind is RigError and elapsed is not None and elapsed.fell_behind:
        sentence, next_step = f"{sentence} The board's clock went {elapsed}.", _BUSY_HOST
    return kind(sentence, log=log, next_step=next_step)


QUIET_S = 0.5  # no line of a transfer for this long: ask for what is missing
ROUNDS_WITHOUT_PROGRESS_MAX = 8
BLOCKS_PER_RESEND = 16
EARLY_MESSAGES_MAX = 256

OnNote = Callable[[Note], None]


class Collector:
    """Turns the begin, data and end lines of a run into a series.

    ``ask`` sends a command and returns its reply, ``command`` also raises where the reply is an error.
    """

    def __init__(self, link: BoardLink, *, ask: Callable[..., Reply], command: Callable[..., Reply]) -> None:
        self._link = link
        self._ask = ask
        self._command = command
        self._early: list[Begin | Data | End | Note] = []
        self._on_note: OnNote | None = None
        self._pace = ClockPace()

    def start(self) -> None:
        """Forget the lines of earlier runs."""
        self._early.clear()

    def keep(self, message: Message) -> None:
        """Keep a line of a run that came while a reply was awaited."""
        if isinstance(message, Begin | Data | End | Note) and len(self._early) < EARLY_MESSAGES_MAX:
            self._early.append(message)

    def collect(
        self, case: Case, *, transfer: int, timeout_s: float, on_note: OnNote | None = None
    ) -> Series:
        """Collect all bursts of a run whose first transfer is ``transfer``. Errors as of run_case().

        ``on_note`` is handed the run's notes, in order.
        """
        self._on_note = on_note
        bursts: list[ReceivedBurst] = []
        measured_s = 0.0
        stretches: list[tuple[float, float]] = []
        while not bursts or not bursts[-1].end.last:
            started = self._link.clock()
            lines = self._await_transfer(transfer + len(bursts), case, max(0.0, timeout_s - measured_s))
            stretches.append((started, self._link.clock()))
            measured_s += stretches[-1][1] - started
            bursts.append(self._complete(lines, case))
        return replace(merge(case, bursts), measured_s=measured_s, stretches=tuple(stretches))

    def _take(self, transfer: Transfer, deadline: float) -> bool:
        """Take the next line of a transfer; False when none came by ``deadline``."""
        while True:
            message = self._early.pop(0) if self._early else self._link.receive(deadline)
            if message is None:
                return False
            if isinstance(message, Note):
                self._hand_over(message, transfer)
            elif isinstance(message, Begin | Data | End) and message.transfer == transfer.transfer:
                transfer.add(message)
                return True

    def _hand_over(self, note: Note, transfer: Transfer) -> None:
        """A note carries the id of the transfer that its run sends next."""
        if self._on_note is not None and note.transfer == transfer.transfer:
            self._on_note(note)

    def _await_transfer(self, number: int, case: Case, timeout_s: float) -> Transfer:
        """Wait for the first line of a transfer. At the deadline ask whether it was lost."""
        transfer = Transfer(number)
        if self._take(transfer, self._link.clock() + timeout_s):
            return transfer
        reply = self._ask("resend", number)
        if reply.ok:
            return transfer
        raise FirmwareError(
            f"Board {self._link.board} did not finish {case.case_id} within {timeout_s:.1f} s: its "
            f"agent is {reply.fields.get('state', 'in an unknown state')} ({reply.code}).",
            log=self._link.log_path,
            next_step="raise the case's timeout if it needs longer, or look for what it waits for.",
        )

    def _complete(self, transfer: Transfer, case: Case) -> ReceivedBurst:
        """Collect a transfer that has started, acknowledge it, return it checked."""
        self._gather(transfer, case)
        burst = transfer.burst()
        status, board = burst.end.status, self._link.board
        hello = self._link.hello
        elapsed = self._pace.elapsed(hello.boot if hello else "", burst.end.environment, self._link.clock())
        self._check_image(burst.begin)
        if status == "aborted":  # nothing is held then
            raise RigError(f"{case.case_id} on board {board} was aborted.", log=self._link.log_path)
        self._command("ack", transfer.transfer)
        if status != "ok":
            raise run_fault(burst.end, case=case, board=board, log=self._link.log_path, elapsed=elapsed)
        return burst

    def _gather(self, transfer: Transfer, case: Case) -> None:
        rounds = 0
        received = transfer.lines_received
        self._drain(transfer)
        while not transfer.complete:
            rounds = 0 if transfer.lines_received > received else rounds + 1
            received = transfer.lines_received
            if rounds > ROUNDS_WITHOUT_PROGRESS_MAX:
                raise self._too_damaged(transfer, case)
            self._ask_again(transfer)
            self._drain(transfer)

    def _drain(self, transfer: Transfer) -> None:
        """Take lines until the transfer is complete or quiet."""
        while not transfer.complete and self._take(transfer, self._link.clock() + QUIET_S):
            pass

    def _ask_again(self, transfer: Transfer) -> None:
        missing = transfer.missing_blocks()
        if not transfer.frame_complete:
            self._command("resend", transfer.transfer)
        if missing:
            self._command("resend", transfer.transfer, *missing[:BLOCKS_PER_RESEND])

    def _check_image(self, begin: Begin) -> None:
        hello = self._link.hello
        if hello is not None and begin.firmware_sha256 != hello.firmware_sha256:
            raise FirmwareError(
                f"Board {self._link.board} reported image {hello.firmware_sha256} at hello but "
                f"{begin.firmware_sha256} with its samples."
            )

    def _too_damaged(self, transfer: Transfer, case: Case) -> RigError:
        missing = len(transfer.missing_blocks())
        return self._link.damage(
            f"Samples of {case.case_id} did not arrive whole from board {self._link.board}: "
            f"{missing} blocks are missing after {ROUNDS_WITHOUT_PROGRESS_MAX} requests"
        )
