# SPDX-License-Identifier: Apache-2.0
"""The list of messages has what a reader would see."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import messages

SOURCE = """
raise ConfigError(f"{path}: no board {name!r}.", next_step="add it")
raise RigError("The port " "is gone.")
raise node.error("baud", "a baud rate is a number.")
raise ValueError("nobody reads this")
log.error("nor this")
"""


def test_each_message_is_listed_with_owner_and_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors with an owner are listed, values as placeholders; what is not shown to a person is left out."""
    (tmp_path / "part.py").write_text(SOURCE)
    monkeypatch.setattr(messages, "ROOT", tmp_path)
    assert list(messages.messages_in(tmp_path / "part.py")) == [
        messages.Message("part.py", 2, "configuration", "{…}: no board {…}.", "add it"),
        messages.Message("part.py", 3, "rig", "The port is gone."),
        messages.Message("part.py", 4, "configuration", "a baud rate is a number."),
    ]
