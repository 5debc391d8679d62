# SPDX-License-Identifier: Apache-2.0
"""Client of the running air: set parameters, read statistics, silence a link."""

from __future__ import annotations

import difflib
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from hil.base.errors import ConfigError, RigError, want_of
from hil.virtual import unix_socket
from hil.virtual.air.profile import AirProfile

REPLY_MAX_BYTES = 131_072
TIMEOUT_S = 5.0
AWAKE_MAX_MS = 600_000
_CHANGES = ("set", "gap", "up", "down")

Number = int | float | str
Statistics = Mapping[str, Mapping[str, Mapping[str, Number]]]


class AirControl:
    """Commands to the air at ``socket_path``; one connection a command, so it may be used from any thread.

    Every method raises RigError when the air does not answer (``diagnose`` adds which part of the rack
    died) and ConfigError when it refuses a parameter, naming the nearest known key.
    """

    where = "at the virtual air: outside the device's host and the broker's"  # it changes what crosses

    def __init__(self, socket_path: Path, *, diagnose: Callable[[], str] | None = None) -> None:
        self.socket_path = socket_path
        self._diagnose = diagnose
        self._changed: Counter[str] = Counter()  # by this client: what it is to know its own changes by
        self._changing = threading.Lock()

    def set(self, board: str, direction: str = "both", **parameters: Number) -> None:
        """Change parameters of one link (``all``: every one); the others stay. See Impairment for keys."""
        self._change("set", board, parameters, direction=direction)

    def gap(self, board: str, **parameters: Number) -> None:
        """Change the gaps of a link: interval_us, min_us, max_us, mode."""
        self._change("gap", board, parameters)

    def profile(self, profile: AirProfile, board: str = "all") -> None:
        """Apply a whole profile, gaps included."""
        self.set(board, "uplink", **profile.uplink.parameters())
        self.set(board, "downlink", **profile.downlink.parameters())
        self.gap(board, **profile.gap.parameters())

    def seed(self, value: int, board: str = "all") -> None:
        """Start the random streams anew; every link and direction derives its own from ``value``."""
        self._change("seed", board, {"value": value})

    def down(self, board: str) -> None:
        """Drop every frame of the board, silently, until ``up``."""
        self._change("down", board, {})

    def up(self, board: str) -> None:
        """Undo ``down``."""
        self._change("up", board, {})

    @contextmanager
    def awake(self, for_s: float) -> Iterator[None]:
        """Keep the CPUs from going idle meanwhile, ``for_s`` seconds at most: waking them costs more than
        the air's own error. Threads of the lowest priority (SCHED_IDLE) do it, which yield to anything."""
        for_ms = min(round(for_s * 1000), AWAKE_MAX_MS)
        self.command(f"awake for_ms={for_ms}")
        try:
            yield
        finally:
            with suppress(RigError):  # whoever measured meets a broken air first, and says so
                self.command("awake for_ms=0")

    def reset_statistics(self, board: str = "all") -> None:
        self._change("reset", board, {})

    def statistics(self, board: str = "all") -> Statistics:
        """Return board → uplink | downlink → counters and delay_*_us, lateness_*_us since the last reset."""
        return _by_link(self.command(f"statistics link={board}"))

    def foreign_changes(self, board: str) -> int:
        """Return how often somebody else than this client has changed a link since the air was started.

        A difference of two calls tells whether anybody did meanwhile, though all be as it was before.
        """
        with self._changing:
            facts = self.statistics(board)[board]["uplink"]
            if "changes" not in facts:
                raise RigError(
                    f"The virtual air at {self.socket_path} is of an older version.",
                    next_step="end `hil virtual up` and start it again.",
                )
            return int(facts["changes"]) - self._changed[board] - self._changed["all"]

    def show(self, board: str = "all") -> Statistics:
        """Return board → uplink | downlink → the parameters in force."""
        return _by_link(self.command(f"show link={board}"))

    def info(self) -> Mapping[str, Number]:
        """Return links, seed, priority (SCHED_FIFO priority held, 0 = none) and memory_locked."""
        return _pairs(self.command("info"))

    def command(self, text: str) -> str:
        """Send one command and return the reply. Raises RigError, ConfigError."""
        try:
            with unix_socket.connect(self.socket_path, timeout_s=TIMEOUT_S) as connection:
                connection.send(text.encode())
                reply = connection.recv(REPLY_MAX_BYTES).decode()
        except OSError as error:
            if wanting := want_of(error):
                raise wanting from error
            raise self._gone(text, error.strerror or "no answer within the time limit") from error
        if not reply:
            raise self._gone(text, "it closed the connection")
        if reply.startswith("error "):
            raise _refusal(text, reply)
        return reply

    def _change(
        self, verb: str, board: str, parameters: Mapping[str, Number], *, direction: str = "both"
    ) -> None:
        pairs = " ".join(f"{key}={value}" for key, value in parameters.items())
        with self._changing:
            self.command(f"{verb} link={board} direction={direction} {pairs}".rstrip())
            self._changed[board] += verb in _CHANGES

    def _gone(self, text: str, cause: str) -> RigError:
        found = self._diagnose() if self._diagnose else ""
        sentence = f"The virtual air at {self.socket_path} did not answer {text.split()[0]!r}: {cause}."
        return RigError(f"{sentence} {found}".rstrip(), next_step="start the virtual rack again.")


def _refusal(text: str, reply: str) -> ConfigError:
    facts = {key: str(value) for key, value in _pairs(reply.removeprefix("error ")).items()}
    code, key = facts.get("code", ""), facts.get("key", "")
    if code == "unknown-key":
        known = facts.get("known", "").split(",")
        near = difflib.get_close_matches(key, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f". Known keys: {', '.join(known)}."
        return ConfigError(f"unknown key {key!r} of the virtual air{hint}")
    if code == "bad-value":
        sentence = f"{key} = {facts.get('value', 'nothing')}; allowed: {facts.get('allowed')}"
        return ConfigError(f"The virtual air refused {sentence}.")
    return ConfigError(f"The virtual air refused {text!r}: {reply}.")


def _by_link(reply: str) -> dict[str, dict[str, dict[str, Number]]]:
    result: dict[str, dict[str, dict[str, Number]]] = {}
    for line in reply.splitlines():
        facts = _pairs(line)
        link, direction = str(facts.pop("link")), str(facts.pop("direction"))
        result.setdefault(link, {})[direction] = facts
    return result


def _pairs(line: str) -> dict[str, Number]:
    words = (word.partition("=") for word in line.split())
    return {key: value if key in ("link", "key", "value") else _number(value) for key, _, value in words}


def _number(text: str) -> Number:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
