# SPDX-License-Identifier: Apache-2.0
"""``[flash]`` of hil.toml: the product's own command, for boards that no other flasher may write.

[flash]
command = "idf.py -B {build} -p {port} -b {baud} encrypted-flash"
timeout_s = 300

The product knows its command, the rack file which boards it is for: those labelled ``flash-by-command``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from hil.base.errors import ConfigError
from hil.base.yamlvalue import did_you_mean

LABEL = "flash-by-command"
TIMEOUT_S = 300.0
WORDS = ("port", "build", "baud", "target", "mac")
_NEEDED = ("port", "build")
_KEYS = ("command", "timeout_s")
_WORD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class FlashCommand:
    """A command's words, in which what stands in braces is not filled in yet; it has ``timeout_s``."""

    words: tuple[str, ...]
    timeout_s: float = TIMEOUT_S

    def argv(self, values: Mapping[str, str]) -> list[str]:
        """Return the command for one board and build; a value stays in its word, whatever is in it."""
        return [_WORD.sub(lambda found: values[found[1]], word) for word in self.words]


def read_flash_command(table: object, where: str) -> FlashCommand | None:
    """Read the table [flash]. Raises ConfigError: an unknown key or word, another type, no port or build."""
    if table is None:
        return None
    if not isinstance(table, dict):
        raise ConfigError(f"{where}: [flash] must be a table with command (text) and timeout_s (a number).")
    for key in table.keys() - set(_KEYS):
        raise ConfigError(f"{where}: unknown key flash.{key}{did_you_mean(key, _KEYS)}")
    command, timeout_s = table.get("command"), table.get("timeout_s", TIMEOUT_S)
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float) or not 0 < timeout_s <= 3600:
        raise ConfigError(
            f"{where}: flash.timeout_s is {timeout_s!r}; expected 0 to 3600 seconds.",
            next_step=f"leave it out for the default, {TIMEOUT_S:g} s.",
        )
    words = _split(command, where)
    for word in _WORD.findall(" ".join(words)):
        if word not in WORDS:
            raise ConfigError(
                f"{where}: flash.command has {{{word}}}, which no board has{did_you_mean(word, WORDS)}",
                next_step=f"words: {', '.join(WORDS)}.",
            )
    for word in _NEEDED:
        if f"{{{word}}}" not in str(command):
            raise ConfigError(
                f"{where}: flash.command lacks {{{word}}}: {command!r}.",
                next_step="name both, so that the measured build goes to the right board: command = "
                '"idf.py -B {build} -p {port} encrypted-flash".',
            )
    return FlashCommand(tuple(words), float(timeout_s))


def _split(command: object, where: str) -> list[str]:
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError as error:
        raise ConfigError(
            f"{where}: flash.command is {command!r}: {error}.", next_step="quote it as in a shell."
        ) from error
    if not words:
        raise ConfigError(
            f"{where}: flash.command is {command!r}; expected a command.",
            next_step='write, for example, command = "idf.py -B {build} -p {port} encrypted-flash".',
        )
    return words
