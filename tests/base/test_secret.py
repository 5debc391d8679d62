# SPDX-License-Identifier: Apache-2.0
"""Passwords: where they are looked for, and what is said where they cannot be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.base.secret import keep, kept_file, secret, way_out


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


def test_what_is_kept_is_this_users_alone(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the folder for settings, mode 0600 also where the file was there; the other places come first."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = keep({"PSK": 'quo"ted '})
    assert (path.parent, path.parent.stat().st_mode & 0o777) == (tmp_path / "config" / "hil", 0o700)
    path.chmod(0o644)
    assert keep({"PLUG": "it's"}) == path
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]
    assert [secret(name) for name in ("PSK", "PLUG")] == ['quo"ted ', "it's"]
    file.write_text("PSK=of the runner\n")
    assert secret("PSK") == "of the runner"


def test_another_project_has_other_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two checkouts of one name, too."""
    found = set()
    for root in (tmp_path / "a" / "pump", tmp_path / "b" / "pump"):
        monkeypatch.setattr("hil.base.secret.PROJECT_ROOT", root)
        found.add(kept_file())
    assert len(found) == 2


def test_a_file_that_cannot_be_read_is_named(file: Path) -> None:
    """A password that is there but unreadable is no missing password."""
    file.write_bytes(b"PSK=\xff\n")
    with pytest.raises(ConfigError, match=f"the file of passwords {file} cannot be read"):
        secret("PSK")
