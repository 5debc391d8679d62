# SPDX-License-Identifier: Apache-2.0
"""Passwords: where they are looked for, and what is said where they cannot be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.base.secret import secret, way_out


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HIL_SECRETS", str(tmp_path / "secrets"))
    for name in ("PSK", "PLUG"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "secrets"


def test_a_secret_is_in_the_file_or_in_the_environment(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment comes first; the file's lines are NAME=VALUE, as systemd reads them, quoted or not."""
    assert secret("PSK") == ""
    file.write_text('# of the lab\nPSK=a=b c\nPLUG="it\'s"\n')
    assert [secret(name) for name in ("PSK", "PLUG", "P", "")] == ["a=b c", "it's", "", ""]
    assert str(file) in way_out("PSK")
    monkeypatch.setenv("PSK", "typed")
    assert secret("PSK") == "typed"
    monkeypatch.delenv("HIL_SECRETS")
    assert secret("PLUG") == ""
    assert way_out("PLUG") == "export PLUG=…"


def test_a_file_that_cannot_be_read_is_named(file: Path) -> None:
    """A password that is there but unreadable is no missing password."""
    file.write_bytes(b"PSK=\xff\n")
    with pytest.raises(ConfigError, match=f"{file}, which HIL_SECRETS names"):
        secret("PSK")
