# SPDX-License-Identifier: Apache-2.0
"""What an example has to print, by its own pytest script."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

WAITING_CALLS = ("expect", "expect_exact")


def constants(script: str) -> dict[str, str]:
    """Return the texts that a script gives names at its top level."""
    found = {}
    for node in ast.parse(script).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            for target in node.targets:
                if isinstance(target, ast.Name) and isinstance(node.value.value, str):
                    found[target.id] = node.value.value
    return found


def patterns(script: str, functions: Sequence[str]) -> list[str]:
    """Return the regular expressions that these functions, or all tests, wait for unconditionally."""
    known = constants(script)
    found: list[str] = []
    for node in ast.parse(script).body:
        if isinstance(node, ast.FunctionDef) and (
            node.name in functions or (not functions and node.name.startswith("test"))
        ):
            for call in _calls(node.body):
                text = _literal(call, known)
                if text is not None:
                    exact = isinstance(call.func, ast.Attribute) and call.func.attr == "expect_exact"
                    found.append(re.escape(text) if exact else text)
    return found


def reached(patterns_: Sequence[str], output: str) -> int:
    """Return how many of the patterns come, in order, in the output."""
    start = 0
    for count, pattern in enumerate(patterns_):
        match = re.compile(pattern).search(output, start)
        if not match:
            return count
        start = match.end()
    return len(patterns_)


def script_of(example: Path) -> str:
    """Return the text of an example's pytest script, empty where it has none."""
    scripts = sorted(example.glob("pytest_*.py"))
    return scripts[0].read_text(encoding="utf-8") if scripts else ""


def _calls(body: Sequence[ast.stmt]) -> Iterator[ast.Call]:
    """Yield the waiting calls of statements, of loops and with-blocks too, but not under a condition."""
    for statement in body:
        if isinstance(statement, ast.If | ast.Try):
            continue
        if isinstance(statement, ast.For | ast.With | ast.While):
            yield from _calls(statement.body)
            continue
        for node in ast.walk(statement):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in WAITING_CALLS
                and node.args
            ):
                yield node


def _literal(call: ast.Call, known: dict[str, str]) -> str | None:
    argument = call.args[0]
    if isinstance(argument, ast.Name):
        return known.get(argument.id)
    if isinstance(argument, ast.Constant):
        return argument.value.decode() if isinstance(argument.value, bytes) else str(argument.value)
    return None
