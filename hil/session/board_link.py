# SPDX-License-Identifier: Apache-2.0
"""The link to one board: numbered lines in, tagged commands out, repeated until answered.

It knows nothing of benches. A board that panics, resets or falls silent becomes an error that quotes it;
once that happened every later call raises the same error, until the board said hello again.
"""

from __future__ import annotations

import re
import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from hil.base.errors import FirmwareError, HilError, NoAnswerError, RigError
from hil.session import trouble
from hil.session.console import Console, Lines
from hil.wire import MARKER, DamagedLineError, Hello, Message, Reply, WireError, format_command, parse_line

DAMAGED_COMMANDS_MAX = 20
RETRY_S = 1.0  # a reply takes milliseconds; a retry goes out when none came for this long
RECENT_LINES = 128
QUOTE_CHARACTERS = 120
# what ended the boot between our reset and the one that says hello; the watchdog of the RTC may be esptool's
_CRASHES = ("PANIC", "INT_WDT", "TASK_WDT", "CPU_LOCKUP", "BROWNOUT")

_CHECKSUM = re.compile(r" \*[0-9a-f]{8}\s*$")  # a line that has one and no marker lost it


@dataclass
class LinkStatistics:
    """What the console did to us, for the record."""

    damaged_lines: int = 0
    lost_lines: int = 0
    repeated_commands: int = 0

    @property
    def losses(self) -> int:
        return self.damaged_lines + self.lost_lines


class BoardLink:
    """Sends commands and receives messages of one boot of a board."""

    def __init__(
        self,
        console: Console,
        board: str,
        *,
        log: Callable[[str], None] | None,
        clock: Callable[[], float],
        log_path: str,
        decode: trouble.Decode | None,
        on_message: Callable[[Message], None],
    ) -> None:
        self.board = board
        self.log_path = log_path
        self.clock = clock
        self.decode = decode
        self._on_message = on_message  # takes what comes while a reply is awaited
        self.lines = Lines(console, log=log, clock=clock)
        self.statistics = LinkStatistics()
        self.hello: Hello | None = None
        self._booting = trouble.Booting()
        self._panic = trouble.Incident()  # of a boot: its first
        self._nonce = secrets.token_hex(3)
        self._commands = 0
        self._broken: HilError | None = None
        self._last_number = 0
        self._recent: deque[str] = deque(maxlen=RECENT_LINES)

    @property
    def incidents(self) -> list[str]:
        """The lines of trouble of a boot that has not come to its hello."""
        return self._booting.lines

    @property
    def is_boot_loop(self) -> bool:
        return self._booting.is_loop

    @property
    def panic(self) -> list[str]:
        """The lines of the first panic of a boot that has not come to its hello."""
        return self._panic.lines

    def new_tag(self) -> str:
        self._commands += 1
        return f"{self._nonce}-{self._commands}"

    def forget_boot(self) -> None:
        """Expect a boot: until its hello, resets and panics are noted in ``incidents``, not raised."""
        self.hello = None
        self._booting = trouble.Booting()
        self._panic = trouble.Incident()
        self._broken = None
        self._last_number = 0
        self._recent.clear()

    def accept(self, hello: Hello, number: int) -> None:
        """From now on this is the boot that we talk to, and ``number`` the line it has come to."""
        self.hello = hello
        self._last_number = number

    def receive(self, deadline: float) -> Message | None:
        """Return the next message, or None when none came by ``deadline``. Log text and damaged lines pass.

        A board that never stops talking does not hold it up: after the deadline it takes the lines that have
        arrived already, and no more.

        Raises:
            FirmwareError: the board panicked, reset itself, or sent a line that makes no sense.
            RigError: the board browned out, lost its power, or was reset from outside.
        """
        if self._broken is not None:
            raise self._broken
        while not self._is_over(deadline) and (line := self.lines.read(deadline)) is not None:
            message = self._interpret(line)
            if message is not None:
                return message
        return None

    def _is_over(self, deadline: float) -> bool:
        return self.clock() >= deadline and not self.lines.has_line

    def ask(
        self, line: bytes, tag: str, *, timeout_s: float, retry_s: float, shown: str = ""
    ) -> Reply | None:
        """Send a tagged command until it is answered; None when it was not within ``timeout_s`` seconds.

        Raises:
            RigError: the board says again and again that the command arrives damaged.
        """
        deadline = self.clock() + timeout_s
        damaged = 0
        self.lines.write(line, shown=shown)
        retry_at = self.clock() + retry_s
        while (reply := self._reply(tag, min(deadline, retry_at))) is None or reply.tag != tag:
            damaged += reply is not None
            if damaged > DAMAGED_COMMANDS_MAX:
                raise self.damage(f"A command to board {self.board} arrived damaged {damaged} times")
            if reply is None and self.clock() >= deadline:
                return None
            self.statistics.repeated_commands += 1
            self.lines.write(b"\n" + line, shown=shown)  # the rest of a cut line must not stick to it
            retry_at = self.clock() + retry_s
        return reply

    def _reply(self, tag: str, deadline: float) -> Reply | None:
        """Return the reply to ``tag``, or one that says that a command arrived damaged."""
        while (message := self.receive(deadline)) is not None:
            if not isinstance(message, Reply):
                self._on_message(message)
            elif message.tag == tag or (message.tag == "-" and not message.ok):
                return message
        return None

    def command_line(self, verb: str, *args: object) -> tuple[bytes, str]:
        tag = self.new_tag()
        return format_command(verb, *args, tag=tag), tag

    def fail(self, error: HilError) -> HilError:
        """Remember the first cause."""
        self._broken = self._broken or error
        return self._broken

    def check_how_it_booted(self) -> None:
        """Raise FirmwareError or RigError where the boot that said hello began with a crash of the one
        before: a board that only comes up at its second try has not come up."""
        if self.hello is None or self.hello.reset_reason not in _CRASHES:
            return
        reason = self.hello.reset_reason
        kind = trouble.worst(self.incidents) if self.incidents else trouble.by_reset_reason(reason)
        said, next_step = trouble.describe(kind, self.incidents, self.panic, self.decode)
        raise kind.error(
            f"Board {self.board} {kind.name} as it booted, and started again (reset reason {reason})"
            f"{': ' + said if said else ''}.",
            log=self.log_path,
            next_step=next_step,
        )

    def silence(self, attempt: str, waited_s: float, since_bytes: int) -> HilError:
        """Return the error for a board that did not answer: silence and damage are the rig's, else it is the
        firmware's."""
        if self.lines.bytes_received == since_bytes:
            return NoAnswerError(
                f"{attempt} on board {self.board}: not a byte came within {waited_s:.1f} s.",
                log=self.log_path,
                next_step="check power, cable and port of the board (hil board console).",
                in_use=self.hello is not None,
            )
        if self.statistics.losses:
            return self.damage(f"{attempt} on board {self.board}: no answer within {waited_s:.1f} s")
        return FirmwareError(
            f"{attempt} on board {self.board}: no answer within {waited_s:.1f} s, although the "
            f"board prints; its last lines: {self.last_lines()}.",
            log=self.log_path,
            next_step="read the console log; the agent's console task may be blocked.",
        )

    def damage(self, sentence: str) -> RigError:
        """Return the error for lines that did not arrive as they were sent."""
        damaged, lost = self.statistics.damaged_lines, self.statistics.lost_lines
        return RigError(
            f"{sentence}; {damaged} lines arrived damaged and {lost} not at all.",
            log=self.log_path,
            next_step="check the serial cable, hub and baud rate.",
        )

    def last_lines(self) -> str:
        """Quote what the board said last."""
        return " | ".join(line[:QUOTE_CHARACTERS] for line in self.lines.last[-3:])

    def _interpret(self, line: str) -> Message | None:
        try:
            message = parse_line(line)
        except DamagedLineError:
            self.statistics.damaged_lines += 1
            return None
        except WireError as error:  # it quotes the line, and a line may hold a secret
            sentence = self.lines.masked(error.sentence)
            raise WireError(sentence, log=self.log_path, next_step=error.next_step) from None
        if message is None:
            self.statistics.damaged_lines += _CHECKSUM.search(line) is not None
            self._watch(line)
            return None
        return self._in_order(message, line)

    def _in_order(self, message: Message, line: str) -> Message | None:
        """Drop repeated lines, notice a new boot."""
        line = line[line.rfind(MARKER) :].strip()
        if self.hello is None:
            self._recent.append(line)
            return message
        if isinstance(message, Hello) and message.boot != self.hello.boot:
            raise self.fail(self._incident([line], message))
        if message.number <= self._last_number:
            if line in self._recent or isinstance(message, Hello):
                return None
            raise self.fail(self._incident([line[:QUOTE_CHARACTERS]]))
        self.statistics.lost_lines += message.number - self._last_number - 1
        self._last_number = message.number
        self._recent.append(line)
        return message

    def _watch(self, line: str) -> None:
        kind = trouble.recognise(line)
        if self.hello is None:
            self._keep_panic(line, kind)
        if kind is None:
            if self.incidents and trouble.is_trace(line):
                self.incidents.append(self.lines.masked(line).strip())
            return
        if self.hello is None:
            self._booting.add(kind, self.lines.masked(line))
            return
        if kind.is_of_boot:
            return
        raise self.fail(self._incident(self._rest_of_incident(line)))

    def _keep_panic(self, line: str, kind: trouble.Trouble | None) -> None:
        begins = kind is not None and trouble.is_worth_decoding(kind)
        if (self._panic.lines or begins) and not self._panic.is_over:
            self._panic.add(self.lines.masked(line))

    def _rest_of_incident(self, line: str) -> list[str]:
        incident = trouble.Incident()
        incident.add(line)
        return incident.finish(lambda seconds: self.lines.read(self.clock() + seconds))

    def _incident(self, lines: list[str], hello: Hello | None = None) -> HilError:
        kind = trouble.by_reset_reason(hello.reset_reason) if hello else trouble.worst(lines)
        cause = f" (reset reason {hello.reset_reason})" if hello else ""
        lines = [self.lines.masked(line) for line in lines]
        said, next_step = trouble.describe(kind, lines, lines, self.decode)
        return kind.error(
            f"Board {self.board} {kind.name}{cause} while it was in use: {self.lines.masked(said)}",
            log=self.log_path,
            next_step=next_step,
        )
