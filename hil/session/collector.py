"""Collects the transfers of a run from a board: waits, asks again for what is missing, acknowledges.

Whose fault it is that a bench ended without samples, the board says on the end line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from hil.base.errors import ConfigError, FirmwareError, HilError, RigError
from hil.model import Case, Series
from hil.session.board_link import BoardLink
from hil.session.transfer import Burst, Transfer, merge
from hil.wire import Begin, Data, End, Message, Note, Reply

# docs/reference/console-protocol.md, `owner` of an end line: the error, and what to do next.
_OWNERS: Mapping[str, tuple[type[HilError], str]] = {
    "firmware": (FirmwareError, "read the board's log lines before the end of the run."),
    "configuration": (ConfigError, "correct the case's parameters, or what the board is provisioned with."),
    "rig": (RigError, "check the broker and the network between it and the board (hil doctor)."),
}


def run_fault(end: End, *, case: Case, board: str, log: str) -> HilError:
    """Return the error of a run whose end line has a status other than ``ok`` and ``aborted``.

    An owner that is missing or unknown is the firmware.
    """
    kind, next_step = _OWNERS.get(end.owner, _OWNERS["firmware"])
    why = f": {end.error}" if end.error else ""
    sentence = f"{case.case_id} on board {board} ended with {end.status} instead of samples{why}."
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
        bursts: list[Burst] = []
        measured_s = 0.0
        while not bursts or not bursts[-1].end.last:
            started = self._link.clock()
            lines = self._await_transfer(transfer + len(bursts), case, max(0.0, timeout_s - measured_s))
            measured_s += self._link.clock() - started
            bursts.append(self._complete(lines, case))
        return replace(merge(case, bursts), measured_s=measured_s)

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
            f"Board {self._link.board} had not finished {case.case_id} after {timeout_s:.1f} s: its agent is "
            f"{reply.fields.get('state', 'in an unknown state')} ({reply.code}).",
            log=self._link.log_path,
            next_step="raise the case's timeout if it needs longer, or look for what it waits for.",
        )

    def _complete(self, transfer: Transfer, case: Case) -> Burst:
        """Collect a transfer that has started, acknowledge it, return it checked."""
        self._gather(transfer, case)
        burst = transfer.burst()
        status, board = burst.end.status, self._link.board
        self._check_image(burst.begin)
        if status == "aborted":  # nothing is held then
            raise RigError(f"{case.case_id} on board {board} was aborted.", log=self._link.log_path)
        self._command("ack", transfer.transfer)
        if status != "ok":
            raise run_fault(burst.end, case=case, board=board, log=self._link.log_path)
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
                f"Board {self._link.board} said hello as image {hello.firmware_sha256} and measured as "
                f"{begin.firmware_sha256}."
            )

    def _too_damaged(self, transfer: Transfer, case: Case) -> RigError:
        missing = len(transfer.missing_blocks())
        return self._link.damage(
            f"Samples of {case.case_id} did not arrive whole from board {self._link.board}: "
            f"{missing} blocks are missing after {ROUNDS_WITHOUT_PROGRESS_MAX} requests"
        )
