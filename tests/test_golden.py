# SPDX-License-Identifier: Apache-2.0
"""What today's code makes of a stored run and a stored history: golden files, held byte for byte."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from hil.history import load
from hil.model import Comparison, Fault, NotRun, RunRecord
from hil.store import RunDirectory
from tests.golden.comparing import (
    RENDERED,
    RENEW,
    STORED,
    STORED_DIGEST,
    Files,
    difference,
    differences,
    digest_of,
    golden_files,
)
from tests.golden.render import render

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = golden_files()
GROUPS = sorted({name.partition("/")[0] for name in GOLDEN})
DEADLINE_S = 120


class Later(datetime.datetime):
    """A clock years after every limit of the stored run has expired."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Later:
        return cls(2031, 3, 1, 12, tzinfo=tz)


def stored_run() -> RunDirectory:
    (run,) = RunDirectory.list(STORED / "out")
    return run


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    """The same comparison in another process, which goes on meanwhile: other hashes, zone, locale, folder."""
    folder = tmp_path_factory.mktemp("another place")
    own = {"PYTHONHASHSEED": "7", "TZ": "Pacific/Kiritimati", "LC_ALL": "C", "COLUMNS": "200"}
    env = {**os.environ, **own, "TMPDIR": str(folder), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.golden"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=folder, env=env, stdout=pipe, stderr=subprocess.STDOUT, text=True
    ) as process:
        yield process
        process.kill()


@pytest.fixture(scope="module")
def rendered(elsewhere: subprocess.Popen[str], tmp_path_factory: pytest.TempPathFactory) -> Files:
    """What is rendered now, years later."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datetime, "datetime", Later)
        return render(STORED, tmp_path_factory.mktemp("golden"))


@pytest.mark.parametrize("group", GROUPS)
def test_what_is_rendered_is_the_golden_file(rendered: Files, group: str) -> None:
    """Rendering the stored run and history gives the same bytes as when the golden files were made."""
    now, golden = (
        {name: data for name, data in files.items() if name.partition("/")[0] == group}
        for files in (rendered, GOLDEN)
    )
    told = differences(now, golden)
    way_out = f"A restructuring changes none; after a deliberate change of behaviour: {RENEW}"
    assert not told, "\n\n".join([*told, way_out])


def test_nothing_is_rendered_without_a_golden_file(rendered: Files) -> None:
    """Each file that is rendered is held, and none is held that nothing renders."""
    assert sorted(rendered) == sorted(GOLDEN)


@pytest.mark.slow
def test_it_is_the_same_in_another_process(elsewhere: subprocess.Popen[str]) -> None:
    """Neither hash seed, time zone, locale, terminal, folder nor day changes a byte."""
    said, _ = elsewhere.communicate(timeout=DEADLINE_S)
    assert (elsewhere.returncode, said) == (0, "Nothing differs from the golden files.\n")


def test_rendering_leaves_what_is_stored_alone(rendered: Files) -> None:
    """The stored run and history are data: they are what they were, byte for byte, whatever was rendered."""
    assert digest_of(STORED) == STORED_DIGEST.read_text(encoding="utf-8").strip()


def test_a_difference_says_where_it_is() -> None:
    """A golden file that differs is named, with its first differing lines; of a long one the part."""
    old, new = f"same\n{'x' * 300}old{'y' * 300}\n", f"same\n{'x' * 300}new{'y' * 300}\n"
    told = difference("summary.md", new.encode(), old.encode()).splitlines()
    assert told[:2] == ["summary.md differs (- golden, + now):", "  line 2:"]
    assert "xold" in told[2]
    assert "xnew" in told[3]
    assert max(map(len, told)) < 250
    assert difference("a", b"same", b"same") == ""
    assert difference("a", b"new", None) == "a is rendered, and there is no golden file of it."
    assert difference("a", None, b"old") == "a is a golden file, and nothing renders it any more."
    assert difference("a", b"1\r\n", b"1\n").endswith("line ends alone differ")


def test_the_stored_run_has_every_kind_of_entry() -> None:
    """The stored run has roles, faults, voids, ledgers, traces and omissions, so that none can be lost."""
    entries = stored_run().read().entries
    records = [entry for entry in entries if isinstance(entry, RunRecord)]
    assert {record.role for record in records} == {"candidate", "base"}
    assert {record.bench for record in records} == {
        *("publish", "throughput", "jitter", "delivery", "footprint")
    }
    assert len({record.target for record in records}) == 3
    assert {entry.owner for entry in entries if isinstance(entry, Fault)} == {"firmware", "rig"}
    assert {entry.expected for entry in entries if isinstance(entry, NotRun)} == {True, False}
    assert {entry.identical for entry in entries if isinstance(entry, Comparison)} == {True, False}
    assert any(2 in record.columns.get("outcome", ()) for record in records if record.bench == "jitter")
    groups = {group for record in records for group in record.environment}
    assert {"peer", "trace"} <= groups


def test_the_golden_verdict_has_every_outcome() -> None:
    """Each outcome occurs among the golden comparisons, no-baseline as advice; a blocking limit is broken."""
    verdict = json.loads(GOLDEN["verdicts.json"])
    compared = Counter(item["outcome"] for item in verdict["compared"] if item["blocking"])
    assert set(compared) == {"regressed", "improved", "pass", "undecided"}
    assert any(item["outcome"] == "no-baseline" for item in verdict["compared"])
    series = Counter((item["outcome"], item["blocking"]) for item in verdict["series"])
    assert series["regressed", True]
    assert series["undecided", True]
    assert any(item["void"] for item in verdict["series"])
    assert any(item["at_least"] for item in verdict["series"])
    assert any("alone is worse than tolerated" in item["reason"] for item in verdict["compared"])


def test_the_stored_nights_have_a_regression_and_another_access_point() -> None:
    """The golden history tells of a firmware's regression, of its improvement, and of the access point."""
    events = json.loads(GOLDEN["events.json"])
    assert {(event["cause"], event["effect"]) for event in events} == {
        *(("firmware", "worse"), ("firmware", "better"), ("environment", "worse"))
    }
    assert len(load(STORED / "out" / "history").sessions) == 22


def test_no_golden_file_names_a_machine() -> None:
    """Neither stored nor golden files say where they were made, for they are of no machine."""
    places = [str(ROOT).encode(), b"/tmp/", str(Path.home()).encode() + b"/"]
    kept = {**golden_files(RENDERED), **golden_files(STORED)}
    assert not [name for name, data in kept.items() if any(place in data for place in places)]
