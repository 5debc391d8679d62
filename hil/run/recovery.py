# SPDX-License-Identifier: Apache-2.0
"""The ladder: what is done about a board that does not answer, from the mildest rung up.

    reset → power cycle → hub cycle → erase and re-flash → base image

Each rung is tried only where the one before did not help. Whose fault it was shows on the way: a board that
had answered in this boot, fell silent, and comes back by a mere reset was hung by its firmware, for the rig
carried both before and after. A board that answers only with the image that the run compares with is sound:
the candidate is at fault. All else is the rig's: where it is brought back the run goes on with it, and where
it is not, the board's fault stands as it was found, with what was tried.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hil.base.errors import FirmwareError, HilError, NoAnswerError
from hil.boards.rack import Board
from hil.model import Recovery, Rung
from hil.run.turns import Turns

BASE: Rung = "base image"
_REFLASH: Rung = "erase and re-flash"
RECOVERIES_MAX = 3  # of a board in a run: one that falls silent again and again is not mended by a ladder


@dataclass
class Ladder:
    """Brings one board back. ``rungs`` are what its rack can do, the mildest first.

    ``append`` puts an entry on disk; ``tell`` says what is done to whoever watches.
    """

    board: Board
    run_id: str
    turns: Turns
    rungs: Sequence[Rung]
    append: Callable[[Recovery], None]
    tell: Callable[[str, str], None]
    _recoveries: int = field(default=0)

    def mend(
        self,
        error: NoAnswerError,
        climb: Callable[[Rung], object],
        again: Callable[[], object],
        *,
        without: Sequence[Rung] = (),
        last: Sequence[Rung] = (),
        during: str = "",
    ) -> None:
        """Return once the board answers again.

        ``climb`` does what a rung says; a reset is made by ``again``, which tries the board and raises
        NoAnswerError where it does not answer. The base image is flashed and booted by ``climb`` alone,
        once the candidate was written anew.
        ``without`` are the rungs that are of no use to it, ``last`` follow those of the rack. ``during`` is
        the case that was measured. The time that this takes does not count as the run's own.

        Raises:
            FirmwareError: its firmware had hung, or the board answers with another one.
            NoAnswerError: nothing helped, or it fell silent too often.
        """
        rungs = [*(rung for rung in self.rungs if rung not in without), *last]
        if not rungs or self._recoveries >= RECOVERIES_MAX:
            raise error
        self._recoveries += 1
        began = time.monotonic()
        tried: list[Rung] = []
        said: list[str] = []
        with self.turns.set_aside():
            by = next((rung for rung in rungs if self._helps(rung, climb, again, tried, said)), None)
        took_s = round(time.monotonic() - began, 1)
        self.append(
            Recovery(self.run_id, self.board.id, error.sentence, tuple(tried), by or "", took_s, during)
        )
        if by is None:
            raise NoAnswerError(
                f"{error.sentence} Nothing recovered it within {took_s:g} s: {'; '.join(said)}.",
                next_step=error.next_step,
                log=error.log,
            )
        if by == BASE:
            raise FirmwareError(
                f"The firmware on board {self.board.id} does not answer: {error.sentence} Nothing "
                f"recovered it ({'; '.join(said[:-1])}), but the same board answers with the base "
                "image.",
                next_step="read the console log: look for what this firmware does before it answers. The "
                "board works and stays in service.",
                log=error.log,
            )
        if by == "reset" and error.in_use:
            raise FirmwareError(
                f"The firmware on board {self.board.id} hung: {error.sentence} A reset alone "
                f"recovered it within {took_s:g} s.",
                next_step="read the console log up to there; look for a task that never yields, or for "
                "interrupts that stay off.",
                log=error.log,
            )

    def _helps(
        self,
        rung: Rung,
        climb: Callable[[Rung], object],
        again: Callable[[], object],
        tried: list[Rung],
        said: list[str],
    ) -> bool:
        """Climb a rung and try the board; what came of it goes into ``tried`` and ``said``."""
        if rung == BASE and _REFLASH not in said:  # the candidate was not written anew: nobody knows whose
            return False
        self.tell("recovering", rung)
        tried.append(rung)
        said.append(rung)
        try:
            climb(rung)
        except HilError as error:  # its switch, or its boot loader: the next rung is a stronger one
            said[-1] = f"{rung} failed ({error.sentence.rstrip('.')})"
            return False
        try:
            if rung != BASE:
                again()
        except NoAnswerError:
            return False
        except HilError:  # it answers; what else is wrong with it is told when it measures next
            return True
        return True
