# SPDX-License-Identifier: Apache-2.0
"""What a check prints: a line for each part, and what its exit code says."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from hil.base.errors import ExitCode
from hil.base.paths import PROJECT_ROOT

SHOWN = 20


class Report:
    """Lines of ``ok``, ``FAIL`` or ``not checked``. Paths are told as a reader elsewhere knows them."""

    def __init__(self, places: Mapping[str, Path]) -> None:
        """``places`` are folders by what the reader calls them, such as $IDF_PATH."""
        named = {str(path): name for name, path in places.items()}
        self._places = {**named, str(PROJECT_ROOT): ".", str(Path.home()): "~"}
        self._failed = False
        self._left_out = False

    def say(self, text: str) -> None:
        for path, name in self._places.items():
            text = text.replace(f"{path}{os.sep}", f"{name}/").replace(path, name)
        print(text, flush=True)

    def ok(self, part: str, detail: str) -> None:
        self.say(f"ok           {part}: {detail}")

    def fail(self, part: str, sentence: str) -> None:
        self._failed = True
        self.say(f"FAIL         {part}: {sentence}")

    def not_checked(self, part: str, why: str) -> None:
        self._left_out = True
        self.say(f"not checked  {part}: {why}")

    def verdict(self, part: str, detail: str, wrong: Mapping[str, str]) -> None:
        """Print ``ok`` with ``detail`` if nothing is wrong, else what is wrong."""
        if not wrong:
            self.ok(part, detail)
            return
        self.fail(part, f"{len(wrong)} wrong of {detail}")
        for name, sentence in list(wrong.items())[:SHOWN]:
            self.say(f"             - {name}: {sentence}")
        if len(wrong) > SHOWN:
            self.say(f"             - and {len(wrong) - SHOWN} more")

    def exit_code(self) -> ExitCode:
        """Return 1 where something failed, 4 where something could not be checked, else 0."""
        if self._failed:
            return ExitCode.FIRMWARE
        return ExitCode.UNDECIDED if self._left_out else ExitCode.PASS
