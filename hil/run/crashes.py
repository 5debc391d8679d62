# SPDX-License-Identifier: Apache-2.0
"""What crashes of one boot left, gathered when its console is closed and before anything else boots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import FirmwareError
from hil.boards.firmware.backtrace import decode_panic
from hil.boards.flash.core_dump import decode_kept_dump
from hil.boards.rack import Board
from hil.session.trouble import Decoded

MOST_DECODED = 4  # of a boot


@dataclass
class Crashes:
    """Of one boot of a board; ``log`` is esptool's. ``counted`` are the lines of those that end no case.

    They are decoded once a case is measured, as the times of lines would suffer: as many as a person reads.
    ``reads_flash``: a dump there is of this run, and can be read.
    """

    board: Board
    build_dir: Path
    console_log: Path
    log: Path
    counted: Sequence[Sequence[str]] = ()
    reads_flash: bool = True
    _decoded: int = 0

    @contextmanager
    def told(self) -> Iterator[None]:
        """Where the firmware failed, have its fault tell of the core dump that it left."""
        try:
            yield
        except FirmwareError as error:
            self.decode_counted()
            self._add(error, self._kept())
            raise

    def decode_counted(self) -> None:
        """Decode those that were counted since the last time: each has its file."""
        for lines in self.counted[self._decoded : MOST_DECODED]:
            decode_panic(lines, self.build_dir, self.console_log)
        self._decoded = len(self.counted)

    def _kept(self) -> Decoded | None:
        if not self.reads_flash:
            return None
        return decode_kept_dump(self.board, self.build_dir, console_log=self.console_log, log=self.log)

    def _add(self, error: FirmwareError, kept: Decoded | None) -> None:
        """Report a core dump: the functions if the console named none, and where to read on."""
        if kept is None:
            return
        if kept.where and kept.where.partition(" < ")[0] not in error.sentence:
            error.sentence = f"{error.sentence.rstrip('.')}; by its core dump {kept.where}."
        steps = [step for step in (error.next_step.rstrip(". "), kept.next_step) if step]
        error.next_step = "; ".join(steps)
