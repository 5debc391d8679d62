# SPDX-License-Identifier: Apache-2.0
"""Every message of an error that hil raises, for a person to read: ``python -m tools.messages [FOLDER]``.

A line a message: its place, the owner of the fault, the sentence and the next step. ``{…}`` is a value.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.size import ROOT, files

OWNERS = {
    "ConfigError": "configuration",
    "FirmwareError": "firmware",
    "RigError": "rig",
    "UsageError": "usage",
    "BadParameter": "usage",
}


@dataclass(frozen=True)
class Message:
    """A sentence that an error may show, and what it tells the reader to do."""

    path: str
    line: int
    owner: str
    sentence: str
    next_step: str = ""


def messages(folder: str) -> list[Message]:
    """Return the messages of all Python files below a folder of the checkout, in their order."""
    return [message for path in files(folder, "*.py") for message in messages_in(path)]


def messages_in(path: Path) -> Iterator[Message]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        owner = OWNERS.get(_name(node.func), "configuration" if _is_error_of_a_node(node) else "")
        sentence = _text(node.args[-1] if _is_error_of_a_node(node) else node.args[0])
        if owner and sentence:
            steps = [_text(keyword.value) for keyword in node.keywords if keyword.arg == "next_step"]
            yield Message(str(path.relative_to(ROOT)), node.lineno, owner, sentence, *steps)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _is_error_of_a_node(call: ast.Call) -> bool:
    """Whether a call is ``node.error(key, sentence, …)``, which names the line of a YAML file."""
    return _name(call.func) == "error" and len(call.args) == 2


def _text(node: ast.expr) -> str:
    """Return a string as a reader sees it; "" of an expression whose text is made elsewhere."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else "{…}" for part in node.values)
    if isinstance(node, ast.BinOp):
        return _text(node.left) + (_text(node.right) or "{…}")
    return ""


def main(folders: list[str]) -> None:
    count = 0
    for message in (message for folder in folders for message in messages(folder)):
        count += 1
        step = f" Next: {message.next_step}" if message.next_step else ""
        print(f"{message.path}:{message.line} ({message.owner}) {message.sentence}{step}")
    print(f"{count} messages")


if __name__ == "__main__":
    main(sys.argv[1:] or ["hil", "reports", "fixtures"])
