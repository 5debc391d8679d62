# SPDX-License-Identifier: Apache-2.0
"""One side's answer to questions about an API: what type, which value? The compiler answers, not a parser.

A question becomes a line of C. clang's mangled name of an ``overloadable`` function spells the canonical type
of its argument, return and parameter types included, whatever typedefs it went through; a constant's value is
in the assembler text. A line that does not compile is an answer, too: there is no such thing on this side.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import ConfigError
from tools.idf_check.declarations import Declarations, all_macros, declared
from tools.idf_check.process import run

PASSES = 3  # what only code generation refuses comes out in the second

_ASK = {
    "function": "void __attribute__((overloadable)) q{n}_(__typeof__(&({x})) a) {{}}",
    "type": "void __attribute__((overloadable)) q{n}_({x} *a) {{}}",
    "member": "void __attribute__((overloadable)) q{n}_(__typeof__((({t} *)0)->{m}) *a) {{}}",
    "width": "const long long q{n}_ = (long long)sizeof((({t} *)0)->{m} + 0);",
    "value": "const long long q{n}_ = (long long)({x});",
    "text": "const char q{n}_[] = {x};",
}
_TYPE_ANSWER = re.compile(r"^q(\d+)_\((.*)\):", re.MULTILINE)
_VALUE_ANSWER = re.compile(r"^q(\d+)_:(?:\s*#[^\n]*)?\n\s+\.(?:quad|8byte)\s+(-?\w+)", re.MULTILINE)
_TEXT_ANSWER = re.compile(r'^q(\d+)_:(?:\s*#[^\n]*)?\n\s+\.(?:asciz|string)\s+(".*")', re.MULTILINE)


@dataclass(frozen=True, order=True)
class Question:
    """``kind`` is function, type, member, width, value, text or macro."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    def line(self, number: int) -> str:
        type_name, _, member = self.name.partition(".")
        return _ASK[self.kind].format(n=number, x=self.name, t=type_name, m=member)


@dataclass(frozen=True)
class View:
    """Headers under the flags of one side. ``clang`` is the command with these flags."""

    clang: Sequence[str]
    folder: Path

    def source(self, header: str, lines: Sequence[str] = ()) -> Path:
        """Return a C file that includes ``header`` and goes on with ``lines``."""
        # FreeRTOS wants its first header first
        first = ["freertos/FreeRTOS.h"] if header.startswith("freertos/") else []
        text = "".join(f'#include "{name}"\n' for name in [*first, header]) + "".join(
            f"{ln}\n" for ln in lines
        )
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.c"
        path.write_text(text, encoding="utf-8")
        return path

    def declared(self, header: str, path: Path) -> Declarations:
        """Return what the header at ``path`` declares. Raises ConfigError where it does not compile."""
        return declared(self.clang, self.source(header), path)

    def macros(self, header: str) -> dict[str, int | None]:
        """Return every macro that including ``header`` defines. Raises ConfigError."""
        return all_macros(self.clang, self.source(header))

    def compiles(self, header: str) -> str:
        """Return why ``header`` cannot be included, or an empty string."""
        done = run([*self.clang, "-fsyntax-only", str(self.source(header))])
        errors = [line for line in done.errors.splitlines() if "error:" in line]
        return (errors or [done.errors.strip()])[0].partition("error: ")[2] or "error" if done.status else ""

    def answers(self, header: str, questions: Sequence[Question]) -> dict[Question, str]:
        """Return the answers there are. Raises ConfigError where ``header`` itself does not compile."""
        asked = dict(enumerate(questions))
        for _ in range(PASSES):
            if not asked:
                return {}
            source = self.source(header, [question.line(n) for n, question in asked.items()])
            done = run([*self.clang, "-S", "-o", "-", str(source)])
            if not done.status:
                return {asked[n]: answer for n, answer in _read(done.out).items()}
            wrong = {
                int(line) for line in re.findall(rf"{re.escape(str(source))}:(\d+):\d+: error", done.errors)
            }
            keys = list(asked)
            before = len(source.read_text().splitlines()) - len(keys)
            for line in wrong:
                if line > before:
                    asked.pop(keys[line - before - 1])
        raise ConfigError(f"asking about {header} failed: {done.errors.strip()[:400]}")


def _read(assembler: str) -> dict[int, str]:
    readable = run(["c++filt"], stdin=assembler).checked()
    answers = {int(n): text for n, text in _TYPE_ANSWER.findall(readable)}
    answers |= {int(n): str(int(value, 0)) for n, value in _VALUE_ANSWER.findall(readable)}
    return answers | {int(n): text for n, text in _TEXT_ANSWER.findall(readable)}
