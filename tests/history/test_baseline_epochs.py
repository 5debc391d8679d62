# SPDX-License-Identifier: Apache-2.0
"""thresholds/baselines/<rack>.yaml: mistakes are named with file and line; what is written can be read."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.history.baseline.acceptance import append_epoch
from hil.thresholds.baselines import Baselines, Epoch, check, load_baselines, missing_sessions
from tests.history.baseline_history import RACK, add_sessions, history_of

EXAMPLE = """\
schema: 1
rack: bench-1
epochs:
  - accepted: 2026-11-20  # the first one
    by: R. Tester
    reason: first baseline
    commit: 4f1c2a9d0b7e
    sessions:
      20261119T010000Z-pr-0001: "ab12cd34ef56"
      20261120T010000Z-pr-0002: "12cd34ef5678"
  - accepted: 2026-11-25
    by: R. Tester
    reason: TLS 1.3
    commit: 5a1c2a9d0b7e
    sessions:
      20261124T010000Z-pr-0003: "abababababab"
"""


def write(tmp_path: Path, text: str, name: str = "bench-1.yaml") -> Path:
    folder = tmp_path / "thresholds" / "baselines"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder


def test_the_last_epoch_of_a_rack_is_in_force(tmp_path: Path) -> None:
    """Epochs stand in order of time; another rack has none, and neither has a folder that is not there."""
    baselines = load_baselines(write(tmp_path, EXAMPLE))
    epoch = baselines.epoch("bench-1")
    assert epoch is not None
    assert (epoch.reason, epoch.source) == ("TLS 1.3", "thresholds/baselines/bench-1.yaml:11")
    assert baselines.epoch("bench-2") is None
    assert load_baselines(tmp_path / "nowhere") == Baselines()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("schema: 1", "schema: 2", ":1: schema is 2; this version reads schema 1"),
        ("rack: bench-1", "rack: bench-2", ":2: rack 'bench-2' must have the file's name, 'bench-1'"),
        ("epochs:", "epoch:", ":3: unknown key 'epoch' in the file; did you mean 'epochs'"),
        ("    by: R. Tester\n", "", ":4: epoch 1 has no 'by', which is required"),
        ("by: R. Tester", "bye: R. Tester", ":5: unknown key 'bye' in epoch 1; did you mean 'by'"),
        ("accepted: 2026-11-20", "accepted: yesterday", ":4: 'accepted' in epoch 1 is the text 'yesterday'"),
        ("reason: first baseline", "reason: ''", ":6: 'reason' in epoch 1 is the text ''"),
        ("commit: 4f1c2a9d0b7e", "commit: main", ":7: 'main' is no commit: 7 to 64 hexadecimal digits"),
        ("20261119T010000Z-pr-0001", "yesterday", ":9: 'yesterday' is no run id, as in 20261120T"),
        ('"ab12cd34ef56"', '"sha"', ":9: 'sha' is no digest: at least 8 hexadecimal digits"),
        ('"ab12cd34ef56"', "12345678", ":9: '20261119T010000Z-pr-0001' in 'sessions' is the integer"),
        ("20261120T010000Z-pr-0002", "20261119T010000Z-pr-0001", ":10: duplicate key"),
        ("accepted: 2026-11-25", "accepted: 2026-11-19", ":11: this epoch was accepted on 2026-11-19"),
        ('\n      20261124T010000Z-pr-0003: "abababababab"', " {}", ":15: an epoch without sessions"),
    ],
)
def test_a_mistake_names_its_line(tmp_path: Path, old: str, new: str, expected: str) -> None:
    """Each mistake is a ConfigError that starts with file and line."""
    assert old in EXAMPLE
    with pytest.raises(ConfigError) as caught:
        load_baselines(write(tmp_path, EXAMPLE.replace(old, new, 1)))
    assert f"thresholds/baselines/bench-1.yaml{expected}" in str(caught.value)


def test_a_session_that_is_not_what_was_accepted_is_an_error_with_the_way_out(tmp_path: Path) -> None:
    """The history's file was changed: nobody should go on as if it were what people looked at."""
    runs = add_sessions(tmp_path / "history", 2)
    history = history_of(tmp_path / "history")
    digests = {session.run_id: session.digest for session in history.sessions}
    epoch = epoch_of(digests)
    check(Baselines({RACK: (epoch,)}), history)
    forged = replace(epoch, sessions={**digests, runs[1]: "f" * 64})
    with pytest.raises(
        ConfigError, match=rf"here:1: session {runs[1]} of rack bench-1 .*hil ci history fetch"
    ):
        check(Baselines({RACK: (forged,)}), history)


def test_a_session_that_the_history_lacks_is_named_and_no_error(tmp_path: Path) -> None:
    """A checkout without the history can still read its baselines."""
    (run,) = add_sessions(tmp_path / "history", 1)
    history = history_of(tmp_path / "history")
    epoch = epoch_of({run: history.sessions[0].digest, "20260101T010000Z-pr-9999": "e" * 64})
    check(Baselines({RACK: (epoch,)}), history)
    assert missing_sessions(epoch, history) == ("20260101T010000Z-pr-9999",)


def epoch_of(sessions: dict[str, str], reason: str = "why: 'it' # is \"so\"") -> Epoch:
    day = datetime.date(2026, 11, 30)
    return Epoch(RACK, day, "Zoë: tester", reason, "c" * 40, sessions, "here:1")


def test_what_is_appended_is_what_is_read_and_the_rest_stays(tmp_path: Path) -> None:
    """Comments and order of the file are left alone, and quotes, colons and hashes of a reason survive."""
    folder = write(tmp_path, EXAMPLE)
    epoch = epoch_of({"20261129T010000Z-pr-0004": "9" * 64})
    append_epoch(folder / "bench-1.yaml", epoch)
    assert (folder / "bench-1.yaml").read_text().startswith(EXAMPLE)
    read = load_baselines(folder).epoch(RACK)
    assert read is not None
    assert replace(read, source="here:1") == epoch


def test_the_first_epoch_of_a_rack_makes_its_file(tmp_path: Path) -> None:
    """It says what it is, and reads."""
    path = tmp_path / "thresholds" / "baselines" / f"{RACK}.yaml"
    append_epoch(path, epoch_of({"20261129T010000Z-pr-0004": "9" * 64}))
    assert path.read_text().startswith(f"# What is normal on rack {RACK}")
    assert load_baselines(path.parent).epoch(RACK) is not None


def test_a_file_of_another_layout_is_left_as_it_is(tmp_path: Path) -> None:
    """Where an epoch cannot be appended at the end, nothing is written, and the sentence says what to do."""
    text = "schema: 1\nepochs: []\nrack: bench-1\n"
    path = write(tmp_path, text) / "bench-1.yaml"
    with pytest.raises(ConfigError, match=r"cannot be appended at its end.*make 'epochs:' its last key"):
        append_epoch(path, epoch_of({"20261129T010000Z-pr-0004": "9" * 64}))
    assert path.read_text() == text


def test_a_rack_cannot_take_the_references_file(tmp_path: Path) -> None:
    """reference.yaml is the firmware of nights."""
    path = tmp_path / "thresholds" / "baselines" / "reference.yaml"
    with pytest.raises(ConfigError, match="give the rack another name"):
        append_epoch(path, replace(epoch_of({"20261129T010000Z-pr-0004": "9" * 64}), rack="reference"))
