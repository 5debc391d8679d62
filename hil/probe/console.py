# SPDX-License-Identifier: Apache-2.0
"""A product's console: each line with the time at which it came, and what goes wrong in between.

Times are nanoseconds of the host's CLOCK_MONOTONIC when the line's end had arrived. A line takes ten bit
times a character, which is what a time is uncertain by at least. A line without an end, such as a prompt, is
matched after a pause; its time is that of its last byte.
"""

from __future__ import annotations

import difflib
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from hil.base.errors import ConfigError, FirmwareError, HilError, NoAnswerError
from hil.probe.probe_file import Pattern, Probe
from hil.probe.restarts import RestartWatch, without_noise
from hil.session import trouble
from hil.session.console import Console, Lines, Unfinished, printable

NEAR = 0.6  # a line that is so much like a pattern's text is taken for the one that was meant
QUOTE_CHARACTERS = 120
_BY_DESIGN = "where the product restarts by design, write on_restart: count in its probe"
PAUSE_S = 0.2  # a USB adapter holds bytes back for 16 ms, and an erase of flash stops a task for some 100 ms
_REFUSED = re.compile(  # a virtual board's station (firmware/host/idf/wifi/station.c)
    r"wifi: (no network '(?P<unknown>.*)' in the air|another password than that of network '(?P<locked>.*)')"
)


@dataclass(frozen=True)
class ConsoleLine:
    """A line, or what had come of it at a pause. ``begun`` is what had come of it at the pause before.

    ``restarted``: by this line the product is known to have begun again.
    """

    time_ns: int
    text: str
    begun: ConsoleLine | None = None
    is_whole: bool = True
    restarted: bool = False

    def search(self, pattern: Pattern) -> re.Match[str] | None:
        """Return what a pattern finds, unless it found it at an earlier pause of this line.

        A pattern with named groups waits for the end of the line: a number may not have come as a whole.
        """
        if pattern.compiled.groupindex:
            return pattern.search(self.text) if self.is_whole else None
        *earlier, _ = self.states()
        return None if any(pattern.search(state.text) for state in earlier) else pattern.search(self.text)

    def states(self) -> list[ConsoleLine]:
        """Return the line as it was at each pause, and as it is."""
        found, state = [self], self.begun
        while state is not None:
            found.append(state)
            state = state.begun
        return found[::-1]


@dataclass
class UnaskedCounts:
    """What a product did between its ready line and now that nobody asked for."""

    restarts: int = 0
    wake_ups: int = 0
    panics: int = 0
    watchdogs: int = 0

    @property
    def boots(self) -> int:
        return self.restarts + self.wake_ups

    def facts(self) -> Mapping[str, int]:
        return {
            "restarts_count": self.restarts,
            "wake_ups_count": self.wake_ups,
            "panics_count": self.panics,
            "watchdogs_count": self.watchdogs,
        }


@dataclass
class ProductConsole:
    """One boot of a product. ``lines`` are those since the reset; ``log`` takes all of both directions.

    ``decode`` finds a panic's addresses in the build that the board runs.
    """

    console: Console
    board: str
    probe: Probe | None = None
    log: Callable[[str], None] | None = None
    log_path: str = ""
    decode: trouble.Decode | None = None
    lines: list[ConsoleLine] = field(default_factory=list)
    counts: UnaskedCounts = field(default_factory=UnaskedCounts)
    crashes: list[list[str]] = field(default_factory=list)  # the lines of what was counted
    is_ready: bool = False
    first_ns: int = 0  # when the first line of this boot had come

    def __post_init__(self) -> None:
        self._reader = Lines(self.console, log=self.log)
        self._boots = RestartWatch()
        self._of_incident = deque[ConsoleLine]()  # read to the end of an incident, and not by read() yet

    def add_secret(self, text: str) -> None:
        self._reader.add_secret(text)

    def type(self, text: str) -> None:
        """Type a line, as a person at a serial monitor does."""
        self._reader.write(f"{text}\r\n".encode())

    def close(self) -> None:
        """Log what has arrived and was not read."""
        self._reader.close()

    def read(self, deadline: float) -> ConsoleLine | None:
        """Return the next line, None where none came by ``deadline`` (time.monotonic()).

        Raises FirmwareError where the product panicked or restarted and the probe does not count that;
        RigError where the board lost its power or the port is gone.
        """
        if self._of_incident:
            line, is_met = self._of_incident.popleft(), False
        elif (text := self._reader.read(deadline, pause_s=PAUSE_S)) is not None:
            line, is_met = self._keep(text), True
        else:
            return None
        if not line.is_whole:
            return line
        before = self.counts.boots
        kind = (
            trouble.recognise(line.text)
            if self.is_ready and (is_met or trouble.is_of_rom(line.text))
            else None
        )
        if kind is not None and not kind.is_of_boot:
            self._meet(kind, line.text)
        self._look_for_restart(line)
        return replace(line, restarted=self.counts.boots > before)

    def until(self, deadline: float) -> Iterator[ConsoleLine]:
        """Yield lines until ``deadline``. Raises as read() does."""
        while (line := self.read(deadline)) is not None:
            yield line

    def await_ready(self, probe: Probe) -> ConsoleLine:
        """Read on to the line by which the product says that it is up, and return it.

        Raises:
            FirmwareError: it does not say so in time, or panics before; ConfigError: it nearly says so.
            RigError: the board says nothing at all, browns out, or finds no program in its flash.
        """
        deadline = time.monotonic() + probe.ready_s
        booting = trouble.Booting()
        for line in self.until(deadline):
            if line.search(probe.ready):
                self.is_ready = True
                self._boots.ready(probe.ready if line.is_whole else None, line, self.first_ns)
                return line
            if line.is_whole and (kind := trouble.recognise(line.text)):
                self._meet_booting(kind, line.text, booting)
        cause = trouble.worst(booting.lines)
        if cause not in (trouble.RESET, trouble.WOKE):
            raise self._incident(cause, booting.lines, "before it was ready")
        raise self.never(probe.ready, f"being ready within {probe.ready_s} s", self.lines)

    def _meet_booting(self, kind: trouble.Trouble, text: str, booting: trouble.Booting) -> None:
        """Raise what a boot does not survive, and note what it may."""
        if trouble.is_worth_decoding(kind) or kind in trouble.ENDS_BOOT:
            raise self._incident(kind, self._rest(text), "before it was ready")
        booting.add(kind, text)
        if booting.is_loop:
            raise self._incident(
                trouble.worst(booting.lines), booting.lines, "again and again before it was ready"
            )

    def never(self, pattern: Pattern, what: str, lines: list[ConsoleLine]) -> HilError:
        """Return the error for a pattern that no line of ``lines`` matched, and whose fault that is.

        A line that is much like the pattern is its misspelling, the configuration's fault; without one the
        firmware did not do what it is watched for.
        """
        if not self.lines and not self._reader.unfinished:
            return NoAnswerError(
                f"Waiting for board {self.board}: {what}: not a line came.",
                log=self.log_path,
                next_step="check power, cable, port and the baud rate of its console.",
            )
        near, likeness = nearest(pattern, lines)
        quoted = printable(self._reader.masked_start(near)) or "".join(self._reader.last[-1:])
        said = f"{len(lines)} lines came and none matched {pattern.text!r} ({pattern.where})"
        said += f"; the {'nearest' if near else 'last line'} is {quoted[:QUOTE_CHARACTERS]!r}"
        sentence = f"Board {self.board}: {what}: {self._reader.masked(said)}.{self.refused()}"
        if likeness >= NEAR:
            return ConfigError(
                sentence,
                log=self.log_path,
                next_step="correct the pattern, or the text that the product prints.",
            )
        return FirmwareError(
            sentence,
            log=self.log_path,
            next_step="read the console log: the product does not come so far, or prints something else.",
        )

    def refused(self) -> str:
        """Return a sentence that says which Wi-Fi network would not have the product last, "" for none.

        Only a virtual board tells, and no more once it was let in.
        """
        for line in reversed(self.lines):
            if "wifi: connected with" in line.text:
                return ""
            if found := _REFUSED.search(line.text):
                asked = printable(found["unknown"] or found["locked"])
                if found["locked"]:
                    return f" It asked for the rack's Wi-Fi network {asked!r} with another password."
                return f" It asked for a Wi-Fi network {asked!r}, which the rack has not."
        return ""

    def too_few(self, pattern: Pattern, found: int, wanted: int, duration_s: float) -> FirmwareError:
        """Return the error for a product that is slower than its case expects."""
        return FirmwareError(
            f"Board {self.board}: {found} of {wanted} lines that match {pattern.text!r} came within "
            f"{duration_s:g} s.",
            log=self.log_path,
            next_step="give the case a longer duration_s or a smaller count, or find out why it prints less.",
        )

    def _keep(self, text: str) -> ConsoleLine:
        begun = self.lines.pop() if self.lines and not self.lines[-1].is_whole else None
        if isinstance(text, Unfinished):
            line = ConsoleLine(int(self._reader.came_s * 1e9), text, begun, is_whole=False)
        else:
            line = ConsoleLine(time.monotonic_ns(), text, begun)
        self.first_ns = self.first_ns or line.time_ns
        self.lines.append(line)
        return line

    def _meet(self, kind: trouble.Trouble, text: str) -> None:
        """Count what happened, or raise it."""
        lines = self._rest(text) if trouble.is_worth_decoding(kind) else [text]
        if not self._counts or kind.error is not FirmwareError:
            raise self._incident(kind, lines, "while it was measured")
        self.crashes.append([self._reader.masked(line) for line in lines])
        self.counts.watchdogs += kind is trouble.WATCHDOG
        self.counts.panics += trouble.is_worth_decoding(kind) and kind is not trouble.WATCHDOG
        self.counts.wake_ups += kind is trouble.WOKE
        self.counts.restarts += trouble.is_of_rom(text) and kind is not trouble.WOKE

    @property
    def _counts(self) -> bool:
        return self.probe is not None and self.probe.restart == "count"

    def _look_for_restart(self, line: ConsoleLine) -> None:
        """Count or raise a restart that a line shows and the ROM's line did not."""
        why = self._boots.take(line)
        if not why or not self.is_ready:
            return
        if not self._counts:
            quoted = printable(self._reader.masked(without_noise(line.text)))[:QUOTE_CHARACTERS]
            raise FirmwareError(
                f"Board {self.board} restarted while it was measured ({why}, and no line of the "
                f"ROM before it): {quoted!r}.",
                log=self.log_path,
                next_step="read the console log for what restarted it, and check its supply; choose a "
                f"ready line that appears once per boot; {_BY_DESIGN}.",
            )
        self.counts.restarts += 1

    def _rest(self, text: str) -> list[str]:
        incident = trouble.Incident()
        incident.add(text)
        return incident.finish(self._next)

    def _next(self, timeout_s: float) -> str | None:
        following = self._reader.read(time.monotonic() + timeout_s)
        if following is None:
            return None
        self._of_incident.append(self._keep(following))
        return following

    def _incident(self, kind: trouble.Trouble, lines: list[str], when: str) -> HilError:
        lines = [self._reader.masked(line) for line in lines]
        said, next_step = trouble.describe(kind, lines, lines, self.decode)
        if kind is trouble.RESET and self.is_ready:
            next_step = f"{next_step.rstrip('.')}; {_BY_DESIGN}."
        return kind.error(
            f"Board {self.board} {kind.name} {when}: {said}", log=self.log_path, next_step=next_step
        )


def nearest(pattern: Pattern, lines: list[ConsoleLine]) -> tuple[str, float]:
    """Return the line that is most like what a pattern says literally, and how much, from 0 to 1.

    A log line is longer than a pattern, so what is compared is the part of it that lies against the pattern.
    """
    literal = _literal(pattern.text)
    best, likeness = "", 0.0
    for line in lines:
        matcher = difflib.SequenceMatcher(None, literal, line.text, autojunk=False)
        shared = sum(block.size for block in matcher.get_matching_blocks() if block.size > 1)
        found = shared / max(1, len(literal))
        if found > likeness:
            best, likeness = line.text, found
    return best, likeness


def _literal(pattern: str) -> str:
    """Return the text in a pattern: without groups' names, classes, repetitions and escapes."""
    kept, inside, index = [], 0, 0
    while index < len(pattern):
        character = pattern[index]
        if character == "\\":
            following = pattern[index + 1 : index + 2]
            kept.append(following if not following.isalnum() else "")
            index += 1
        elif character == "[":
            inside += 1
        elif character == "]":
            inside -= 1
        elif pattern.startswith("(?P<", index):
            index = pattern.find(">", index)
        elif not inside and character not in "()^$.*+?{}|":
            kept.append(character)
        index += 1
    return "".join(kept)
