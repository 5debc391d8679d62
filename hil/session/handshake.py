# SPDX-License-Identifier: Apache-2.0
"""Waits for a board's agent, and explains why it does not come."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import hil
from hil.base.errors import ConfigError, FirmwareError, HilError, NoAnswerError
from hil.session import trouble
from hil.session.board_link import BoardLink
from hil.wire import PROTOCOL_VERSIONS, Hello, Reply

HELLO_PERIOD_S = 1.0
RESTART_PERIOD_S = 5.0  # longer than a boot takes: a second restart must not meet the new boot

_DOWNLOAD_MODE = re.compile(r"waiting for download|DOWNLOAD_BOOT|DOWNLOAD\(")
_UNREADABLE_SHARE = 0.3
SILENT_S = 15.0  # the ROM prints within milliseconds of a reset; what says nothing for so long will not
DOWNLOAD_S = 3.0  # a ROM that waits for a download does so until the next reset


def await_hello(link: BoardLink, *, timeout_s: float, old_boot: str = "") -> Hello:
    """Ask for a hello until it is answered. What was in the pipe before is from an earlier boot, so only a
    hello that our own command brought counts, and none of ``old_boot``.

    Raises:
        RigError, FirmwareError, ConfigError: as of AgentSession.wait_ready().
    """
    deadline = link.clock() + timeout_s
    bytes_before = link.lines.bytes_received
    tags: set[str] = set()
    hello: Hello | None = None
    began = moved = link.clock()
    bytes_seen = bytes_before
    while link.clock() < deadline and not link.is_boot_loop:
        if link.lines.bytes_received != bytes_seen:
            bytes_seen, moved = link.lines.bytes_received, link.clock()
        if link.clock() >= moved + _patience_s(link, silent=bytes_seen == bytes_before):
            timeout_s = link.clock() - began
            break
        line, tag = link.command_line("hello")
        tags.add(tag)
        link.lines.write(b"\n" + line)
        until = min(deadline, link.clock() + HELLO_PERIOD_S)
        while (message := link.receive(until)) is not None:
            if isinstance(message, Hello):
                hello = message if message.boot != old_boot else None
            elif isinstance(message, Reply) and message.tag in tags and hello is not None:
                return _greet(link, hello, message.number)
            elif isinstance(message, Reply) and not message.ok:
                break  # our command arrived damaged
            if link.is_boot_loop:
                break
    raise explain(link, timeout_s=timeout_s, silent=link.lines.bytes_received == bytes_before)


def _patience_s(link: BoardLink, *, silent: bool) -> float:
    """Return how long a board that says nothing more is waited for."""
    if silent:
        return SILENT_S
    return DOWNLOAD_S if _find(_DOWNLOAD_MODE, list(link.lines.last)[-1:]) else math.inf


def await_restart(link: BoardLink, *, old_boot: str, timeout_s: float) -> None:
    """Send ``restart`` until it is answered, or until a new boot shows that the answer got lost."""
    deadline = link.clock() + timeout_s
    line, tag = link.command_line("restart")
    while link.clock() < deadline:
        link.lines.write(b"\n" + line)
        until = min(deadline, link.clock() + RESTART_PERIOD_S)
        while (message := link.receive(until)) is not None:
            if isinstance(message, Hello) and message.boot != old_boot:
                return
            if isinstance(message, Reply) and message.tag == tag:
                return
            if isinstance(message, Reply) and not message.ok:
                break


def _greet(link: BoardLink, hello: Hello, number: int) -> Hello:
    if not any(hello.proto_min <= version <= hello.proto_max for version in PROTOCOL_VERSIONS):
        raise ConfigError(
            f"The firmware on board {link.board} speaks protocol {hello.proto_min} to {hello.proto_max}, "
            f"this host {', '.join(map(str, PROTOCOL_VERSIONS))}.{of_another_version(hello)}",
            next_step="rebuild the firmware, or use the hil of the commit it was built from.",
        )
    link.accept(hello, number)
    return hello


def of_another_version(hello: Hello | None) -> str:
    """Return a sentence where the board's agent is of another version than this tool, else ""."""
    if hello is None or hello.agent in ("", hil.__version__):
        return ""
    return f" Its agent (component esp_hil) is version {hello.agent}, this tool {hil.__version__}."


def explain(link: BoardLink, *, timeout_s: float, silent: bool) -> HilError:
    """Return the error for a board whose agent did not say hello."""
    attempt = f"Waiting {timeout_s:.1f} s for the agent on board {link.board}"
    if silent:
        return _rig(link, f"{attempt}: not a byte came.", "check power, cable, port and baud rate.")
    last = link.lines.last
    if link.incidents:
        kind = trouble.worst(link.incidents)
        said, next_step = trouble.describe(kind, link.incidents, link.panic, link.decode)
        sentence = f"{attempt}: it {kind.name} while booting: {said}."
        return kind.error(sentence, log=link.log_path, next_step=next_step)
    if _find(_DOWNLOAD_MODE, last):
        return _rig(link, f"{attempt}: it is in download mode.", "reset it with IO0 high (hil board power).")
    if _unreadable(last):
        return _rig(
            link, f"{attempt}: what it sends is unreadable.", "check the console's baud rate and the cable."
        )
    if link.statistics.damaged_lines:
        return link.damage(f"{attempt}: no hello came")
    return FirmwareError(
        f"{attempt}: it prints, but no hello came; its last lines: {link.last_lines()}.",
        log=link.log_path,
        next_step="read the console log; the image may not be hil-firmware.",
    )


def _rig(link: BoardLink, sentence: str, next_step: str) -> NoAnswerError:
    return NoAnswerError(sentence, log=link.log_path, next_step=next_step)


def _find(pattern: re.Pattern[str], lines: Sequence[str]) -> str:
    return next((line.strip() for line in lines if pattern.search(line)), "")


def _unreadable(lines: Sequence[str]) -> bool:
    text = "".join(lines)
    strange = sum(not (character.isascii() and character.isprintable()) for character in text)
    return strange > _UNREADABLE_SHARE * len(text)
