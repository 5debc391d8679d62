# SPDX-License-Identifier: Apache-2.0
"""What a fault is: what is done, when, and whose the run has to say that it was."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tools.chaos.trial import Trial

# nobody: the run takes it, and passes. interrupted: by a signal, or by SIGKILL
Owner = Literal["rig", "firmware", "configuration", "nobody", "undecided", "interrupted"]
Moment = Literal["before", "any", "flashing", "booting", "measuring", "judging"]  # any: by chance
Act = Callable[["Trial"], AbstractContextManager[None]]

# what the run says of board b1 when the moment has come, in the order in which they come
MOMENTS: dict[Moment, str] = {
    "before": "",
    "any": "",
    "flashing": r"b1 \[0/\d[^]]*\] flashing",
    "booting": r"b1 \[0/\d[^]]*\] booting",
    "measuring": r"b1 \[0/\d[^]]*\] measuring",
    "judging": r"b1 \[\d/\d[^]]*\] done",
}

HOSTILE = (  # to a terminal, a workflow's log, a page, a comment
    "::error::x\x1b[2J\x1b]0;pwned\x07<script>alert(1)</script>[x](javascript:alert(1)) @everyone \u202e"
)


@contextmanager
def answering(answer: Callable[[socket.socket], object]) -> Iterator[int]:
    """Serve a port of this host, one client after another, each as ``answer`` likes; gives its number."""

    def serve() -> None:
        with suppress(OSError):
            while True:
                with server.accept()[0] as connection, suppress(OSError):
                    answer(connection)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        yield int(server.getsockname()[1])
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)


@dataclass(frozen=True)
class Fault:
    """One kind of fault. ``act`` makes it, and lifts it when its context ends, which is after the run.

    ``owners`` are those that a run may name; ``says`` is a pattern that its output has to match. ``suite`` is
    what is measured meanwhile. ``command`` is what is run instead of `hil run`, as arguments of `hil`.
    ``own_rack``: it breaks the rack itself, which is started anew after it. ``alone``: it spoils whatever
    else runs on this host, or is spoilt by it.
    """

    family: str
    name: str
    act: Act
    moment: Moment
    owners: Sequence[Owner]
    says: str = ""
    suite: str = "quick"
    command: Callable[[Trial], Sequence[str]] | None = None
    own_rack: bool = False
    alone: bool = False

    @property
    def recovers(self) -> bool:
        """Whether the run has to go on and pass as if nothing had happened."""
        return tuple(self.owners) == ("nobody",) and self.command is None
