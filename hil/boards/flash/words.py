# SPDX-License-Identifier: Apache-2.0
"""What esptool says where it does not end well, and whose fault that is.

What it refuses is the configuration's: the board answers, and nothing was written. Whatever else fails is the
rig's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from hil.base.errors import ConfigError, HilError, NoAnswerError, RigError
from hil.base.flash_command import LABEL


@dataclass(frozen=True)
class Write:
    """What esptool is to write: pairs of flash offset and file; names are relative to ``folder``.

    ``doing`` is what it is called in sentences: "flashing", or "switching the slot of". Without ``stub`` the
    chip's own boot loader writes.
    """

    folder: Path
    parts: Sequence[tuple[int, str]]
    options: Sequence[str] = ()
    before: str = "default-reset"
    after: str = "hard-reset"
    doing: str = "flashing"
    stub: bool = True


@dataclass(frozen=True)
class _Symptom:
    pattern: str
    error: type[HilError]
    meaning: str
    next_step: str


# Of esptool's own sentence. The first that fits is meant.
_REFUSALS = (
    _Symptom(
        r"This chip is |[Uu]nexpected chip|[Ww]rong (?:--)?chip|not (?:the )?expected chip"
        r"|does not match the (?:selected )?chip",
        ConfigError,
        "another chip answers than the rack file says",
        "correct 'target' or 'serial' of this board in the rack file.",
    ),
    _Symptom(
        r"Another board answers",
        ConfigError,
        "another board answers than the rack file says, and nothing was written to it",
        "put its cable back, or correct 'serial' or 'mac' of this board in the rack file.",
    ),
    _Symptom(
        r"requires chip revision",
        ConfigError,
        "the build is for another revision of its chip",
        "build it for this revision (idf.py menuconfig, Minimum Supported Revision), or use a board of the "
        "revision that it requires.",
    ),
    _Symptom(
        r"(?:is not|does not contain) an? \S+ image",
        ConfigError,
        "the build is for another chip",
        "build it for the 'target' of this board, or correct that in the rack file.",
    ),
    _Symptom(
        r"will not fit in|goes past|larger than detected flash|greater than detected flash",
        ConfigError,
        "what is to be written ends beyond its flash",
        "correct the offset or the partition table, make the file smaller, or use a board with more flash; "
        "CONFIG_ESPTOOLPY_FLASHSIZE is what the build expects.",
    ),
    _Symptom(
        r"Detected overlap|image overlap|overlapping address",
        ConfigError,
        "two files are to be written to the same place",
        "correct the offsets in flasher_args.json: they come from the partition table and from the size of "
        "the files.",
    ),
    _Symptom(
        r"[Ff]lash [Ee]ncryption|encrypted flash(?: writ|ing)|encrypt functionality"
        r"|Secure Boot (?:V1 )?detected|[Ss]ecure [Dd]ownload [Mm]ode|security features",
        ConfigError,
        "the eFuses of its chip forbid it",
        f"flash it by the product's own command: [flash] in hil.toml, and the rack file's label {LABEL}.",
    ),
    _Symptom(
        r"^(?:Invalid value for|argument ).*\[Errno \d+\]",
        ConfigError,
        "a file that is to be written cannot be read",
        "build it again, and correct its name and rights.",
    ),
    _Symptom(
        r"^Invalid value for|^No such (?:option|command)|^Missing |^Got unexpected|^Options? "
        r"|^(?:argument |unrecognized arguments|the following arguments are required)"
        r"|is not supported by this chip type|^Invalid size|does not support encrypted writes",
        ConfigError,
        "a setting is refused",
        "correct write_flash_args in flasher_args.json (they come from CONFIG_ESPTOOLPY_… of the build), or "
        "flash.command in hil.toml.",
    ),
)

# Of all that was said.
_FAILURES = (
    _Symptom(
        r"could not open port .*Permission denied",
        RigError,
        "its port may not be opened by this user",
        "put the user into the port's group (dialout) and log in again; hil rack check looks at all ports.",
    ),
    _Symptom(
        r"exclusively lock|Device or resource busy|Resource temporarily unavailable",
        RigError,
        "its port is taken by another program",
        "close that program (fuser -v PORT names it).",
    ),
    _Symptom(
        r"MD5|[Hh]ash of data (?:not verified|mismatch)|digest mismatch",
        RigError,
        "what was read back differs from what was written",
        "change the cable or the power supply; if it stays, the flash chip is worn.",
    ),
    _Symptom(
        r"Failed to write [a-z ]*flash after .*\(result was 01(?:C4|C5|06)",
        RigError,
        "its flash refused what was to be written",
        "see whether the flash chip is write-protected; if it stays, it is worn, or its supply sags.",
    ),
    _Symptom(
        r"[Cc]ould not open|No such file or directory|Connection refused|No route to host",
        NoAnswerError,
        "its port could not be opened",
        "check the cable and the 'serial' of this board in the rack file; hil rack check looks at all.",
    ),
    _Symptom(
        r"Failed to connect|No serial data received|No more data to read|Timed out waiting|Wrong boot mode"
        r"|Invalid head of packet|data stream stopped|transfer stopped|stopped responding"
        r"|[Cc]onnection (?:was )?(?:failed|lost|closed)|disconnected|device reports readiness to read",
        NoAnswerError,
        "the board does not answer its boot loader",
        "switch its power (hil board power BOARD cycle) and look at its cable.",
    ),
)


def fault_in(attempt: str, said: str, log: Path, what: Write) -> HilError | None:
    """Return the fault that esptool's words tell of, None where they are none that is known.

    A refusal names each file of ``what`` that it is about, with size and offset.
    """
    words = last_words(said)
    for symptom in _REFUSALS:
        if re.search(symptom.pattern, words):
            sentence = f"{attempt}: {symptom.meaning} (esptool: {words}{_files_in(words, what)})."
            return symptom.error(sentence, log=str(log), next_step=symptom.next_step)
    for symptom in _FAILURES:
        if re.search(symptom.pattern, said):
            sentence = f"{attempt}: {symptom.meaning} (esptool: {words})."
            return symptom.error(sentence, log=str(log), next_step=symptom.next_step)
    return None


def _files_in(words: str, what: Write) -> str:
    """Return the files that a sentence names, and those that share a byte with them; "" for none."""
    parts = [(offset, name, _size(what.folder / name)) for offset, name in what.parts]
    named = [part for part in parts if re.search(rf"(?<![\w./]){re.escape(part[1])}(?![\w/])", words)]
    shown = [part for part in parts if any(_share(part, other) for other in named)]
    return "".join(f"; {name}: {size} bytes at {offset:#x}" for offset, name, size in shown)


_Part = tuple[int, str, int]


def _share(one: _Part, other: _Part) -> bool:
    return one is other or (one[0] < other[0] + other[2] and other[0] < one[0] + one[2])


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


# the last is esptool 4's command line, which ESP-IDF v5.5 has
_ERROR = re.compile(r"(?:ERROR: |Error: |A fatal error occurred: |esptool(?:\.py)?[\w -]*: error: )+(.*)")
_WARNING = re.compile(
    r"^(?:WARNING|NOTE(?=.* requires chip revision|.* is not an? \S+ image)): (.+?)\s*$", re.M
)
_BOX_TOP = re.compile(r"[╭+][─-]+ Error ")  # round what esptool's command line refuses
_BOX_SIDES = "│|"


def warnings_in(said: str) -> list[str]:
    """Return esptool's warnings of a write that succeeded. The program may not run."""
    found = _WARNING.findall(said)
    return [f"esptool warned: {words.rstrip('.')}" for words in dict.fromkeys(found)]


def last_words(said: str) -> str:
    """Return esptool's own error without the box around it and, where it adds one in brackets, the cause."""
    lines = [line.strip() for line in said.splitlines() if re.search(r"\w", line)]
    for number, line in enumerate(lines):
        if _BOX_TOP.match(line):
            return _boxed(lines[number + 1 :])
        if found := _ERROR.match(line):
            cause = [more for more in lines[number + 1 : number + 2] if more.startswith("(")]
            return " ".join([found[1].rstrip("."), *cause])
    return lines[-1].strip(f"{_BOX_SIDES} ").rstrip(".") if lines else "no message"


def _boxed(lines: Iterable[str]) -> str:
    inside = takewhile(lambda line: line[0] in _BOX_SIDES, lines)
    return " ".join(line.strip(f"{_BOX_SIDES} ") for line in inside).rstrip(".")
