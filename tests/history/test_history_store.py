# SPDX-License-Identifier: Apache-2.0
"""The history store: boot values of many runs and racks, a file a run, never changed, read at once."""

from __future__ import annotations

import dataclasses
import math
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from hil.base.errors import ConfigError, RigError
from hil.history import keep, load
from hil.history.building import BootPoint, DuplicateError, build
from hil.history.files import path_of, read_past
from hil.history.summary import Summary, to_bytes
from hil.metrics.sessions import NO_HISTORY, History, SeriesHistory
from tests.history.history_files import CANDIDATE, REFERENCE, night, scaled, values_in
from tests.store.test_store import largest_file

P50 = "bench-1/e1/publish/count=200,turn=0/publish_latency_p50_us"


def store(folder: Path, *runs: Summary) -> Path:
    for run in runs:
        assert keep(folder, run)
    return folder


def content(history: History) -> tuple[Any, ...]:
    """Return all that a history holds, for comparison."""
    names = [field.name for field in dataclasses.fields(SeriesHistory)]
    columns = {
        key: [np.asarray(getattr(entry, name)).tolist() for name in names]
        for key, entry in history.entries.items()
    }
    return history.sessions, list(columns.items())


def points_of(run: Summary) -> list[BootPoint]:
    """Return the single boot values of a run."""
    held = values_in(run)
    rows = [
        (held.cases[case], held.metrics[metric], boot)
        for case, metric, boots in zip(held.series.case, held.series.metric, held.series.boots, strict=True)
        for boot in held.boot_sets[boots]
    ]
    samples, hits = (
        [value for value, times in zip(column[::2], column[1::2], strict=True) for _ in range(times)]
        for column in (held.samples, held.hits)
    )
    return [
        BootPoint(
            board=held.boards[held.boots.board[boot]].id,
            role=held.images[held.boots.image[boot]].role,
            index=held.boots.index[boot],
            sha256=held.images[held.boots.image[boot]].sha256,
            case_id=case_id,
            metric=metric,
            value=math.inf if held.values[row] is None else float(held.values[row] or 0),
            samples=samples[row],
            hits=hits[row],
        )
        for row, (case_id, metric, boot) in enumerate(rows)
    ]


def rebuilt(run: Summary, points: list[BootPoint]) -> Summary:
    """Return the run with other boot values on the same boards."""
    held = values_in(run)
    return replace(run, boot_values=build(held.boards[::-1], held.images[::-1], points))


def test_every_value_comes_back(tmp_path: Path) -> None:
    """Of each series and role: values in order of session and boot, with firmware, ruler and counts."""
    nights = [night(n) for n in range(3)]
    history = load(store(tmp_path, *nights))
    assert [session.commit[-1] for session in history.sessions] == ["0", "1", "2"]
    assert len(history.entries) == 2 * 2 * 2 * 2  # boards, cases, metrics, roles
    assert sum(map(len, history.entries.values())) == sum(len(values_in(one)) for one in nights)
    for number, one in enumerate(nights):
        for point in points_of(one):
            entry = history.series(f"bench-1/{point.board}/{point.case_id}/{point.metric}", point.role)
            assert entry is not None
            (row,) = np.flatnonzero((entry.session == number) & (entry.boot == point.index))
            assert entry.value[row] == pytest.approx(point.value, rel=1e-9)
            assert (entry.samples[row], entry.hits[row]) == (point.samples, point.hits)
            assert entry.firmware[row] == point.sha256
            assert entry.ruler[row] == "c" * 64
    entry = history.series(P50)
    assert entry is not None
    assert entry.session.tolist() == [0, 0, 1, 1, 2, 2]
    assert entry.boot.tolist() == [0, 2] * 3
    reference = history.series(P50, "reference")
    assert reference is not None
    assert reference.boot.tolist() == [1, 3] * 3
    session = history.sessions[0]
    assert session.firmware == {"candidate esp32": CANDIDATE, "reference esp32": REFERENCE}
    assert session.conditions["e2.channel"] == 6
    assert session.kind_of("e1") == "physical"
    with pytest.raises(ValueError, match="read-only"):
        entry.value[0] = 1.0


def test_beyond_the_timeout_is_infinite_and_sizes_are_exact(tmp_path: Path) -> None:
    """+inf is null on disk; whole numbers lose no digit, others are kept to ten."""
    one = night(0, boots=1, cases=1, boards=("e1",), metrics=("a_us", "b_us", "c_bytes"))
    points = points_of(one)
    values = (math.inf, 1 / 3, 2.0**52 + 1)
    measured = [dataclasses.replace(point, value=value) for point, value in zip(points, values, strict=True)]
    path = path_of(store(tmp_path, rebuilt(one, measured)), one)
    assert '"values":[null,0.3333333333,4503599627370497]' in path.read_text()
    history = load(tmp_path)
    assert [entry.value[0] for entry in history.entries.values()] == [math.inf, 0.3333333333, 2.0**52 + 1]
    for wrong in (math.nan, -math.inf):
        with pytest.raises(ValueError, match="a boot value is"):
            rebuilt(one, [dataclasses.replace(points[0], value=wrong)])


def test_order_does_not_matter(tmp_path: Path) -> None:
    """Records in any order make the same bytes; files in any order the same history."""
    one = night(5)
    points = points_of(one)
    for seed in range(5):
        shuffled = random.Random(seed).sample(points, len(points))
        assert to_bytes(rebuilt(one, shuffled)) == to_bytes(one)
    nights = [night(n, rack=rack) for n in range(4) for rack in ("bench-1", "attic")]
    straight = load(store(tmp_path / "a", *nights))
    backwards = load(store(tmp_path / "b", *reversed(nights)))
    assert content(straight) == content(backwards)
    assert [session.rack for session in straight.sessions] == ["attic", "bench-1"] * 4


def test_one_boot_has_one_value() -> None:
    """A value that is there twice is refused, even if both agree."""
    one = night(0)
    points = points_of(one)
    with pytest.raises(DuplicateError, match="boot 0 of board e1 has publish/count=200,turn=0 twice"):
        rebuilt(one, [*points, points[0]])


def test_boots_that_measured_less(tmp_path: Path) -> None:
    """A later look measures some cases only: each series has the boots that measured it, no zeros."""
    one = night(0, boots=6)
    kept = [point for point in points_of(one) if point.index < 2 or "turn=0" in point.case_id]
    history = load(store(tmp_path, rebuilt(one, kept)))
    whole, cut = (history.series(P50.replace("turn=0", f"turn={turn}")) for turn in (0, 1))
    assert whole is not None
    assert cut is not None
    assert whole.boot.tolist() == [0, 2, 4]
    assert cut.boot.tolist() == [0]


def test_boot_values_are_added_once_and_never_changed(tmp_path: Path) -> None:
    """The same run again is left as it is; with other values it is refused, and the file stays."""
    one = night(0)
    path = path_of(store(tmp_path, one), one)
    before = path.read_bytes()
    assert keep(tmp_path, one) is False
    with pytest.raises(ConfigError, match=rf"{path}: the history holds this run with other boot.*by hand"):
        keep(tmp_path, scaled(one, 2))
    assert path.read_bytes() == before
    store(tmp_path, night(1))
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir() if file.name.startswith(".")] == []


def test_a_run_that_is_judged_again_keeps_its_boot_values(tmp_path: Path) -> None:
    """A run enters without them when it ends, and with them by `hil history add`: in any order."""
    whole = replace(night(0), outcome="pass", exit_code=0)
    judged = replace(whole, boot_values=None)
    for name, order, news in (
        ("a", [judged, whole, judged], [True, True, False]),
        ("b", [whole, judged], [True, False]),
    ):
        folder = tmp_path / name
        assert [keep(folder, run) for run in order] == news
        assert read_past(folder).runs == (whole,)
    keep(folder, replace(judged, outcome="regressed", exit_code=1))
    (again,) = read_past(folder).runs
    assert (again.outcome, again.boot_values) == ("regressed", whole.boot_values)


def test_a_full_disk_leaves_no_half_file(tmp_path: Path) -> None:
    """The run is not in the history then, the others still are."""
    store(tmp_path, night(0))
    with largest_file(100), pytest.raises(RigError, match=r"could not write .*Safe on disk: every other run"):
        keep(tmp_path, night(1))
    assert len(load(tmp_path).sessions) == 1


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-200])


def changed(old: str, new: str) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return change


VALUES = r"boot_values\."
DAMAGE: list[tuple[Callable[[Path], object], str]] = [
    (cut_off, "not JSON: .*hil history add"),
    (lambda path: path.write_bytes(b""), "not JSON: "),
    (lambda path: path.write_bytes(b"\xff\xfe{}"), "not JSON: "),
    (lambda path: path.write_text("[" * 100_000), "not JSON: "),
    (lambda path: path.write_text("7"), "it is 7; expected an object"),
    (changed('"schema":1', '"schema":2'), "its schema is 2, this program reads 1.*update hil"),
    (changed('"schema":1,', ""), "its schema is None, this program reads 1"),
    (changed('"schema":1', '"schema":1,"colour":1'), "colour is an unknown key"),
    (changed('"suite":"nightly",', ""), "suite is missing"),
    (changed('"dirty":false', '"dirty":0'), "dirty is 0; expected true or false"),
    (changed('"values":[', '"values":[NaN,'), "not JSON"),
    (changed('"values":[', '"values":[1,'), "its series have 32 boots, but values holds 33"),
    (changed('"values":[', '"values":["1",'), rf"{VALUES}values\[0\] is '1'; expected an int"),
    (changed('"samples":[200,32]', '"samples":[200,31]'), "samples is not one number for each of the 32"),
    (changed('"samples":[200,32]', '"samples":[200]'), "samples is not one number for each of the 32"),
    (changed('"samples":[200,32]', '"samples":[200.5,32]'), rf"{VALUES}samples\[0\] is 200.5; expected"),
    (changed('"kind":"physical"', '"kind":"paper"'), rf"{VALUES}boards\[0\].kind is 'paper'"),
    (changed('"role":"reference"', '"role":"base"'), rf"{VALUES}images\[1\].role is 'base'"),
    (changed('"board":[0', '"board":[9'), "boots.board points at 0 to 9, of 2"),
    (changed('"board":[0', '"board":[-1'), "boots.board points at -1 to"),
    (changed('"board":[0', '"board":[0,0'), "the columns of boots differ in length"),
    (changed('"metric":[0', '"metric":[7'), "series.metric points at"),
    (changed('"rulers":{"publish"', '"rulers":{"other"'), "image 'esp32' lacks the ruler of publish"),
    (changed('"started_utc":"2026', '"started_utc":"soon'), "started_utc is 'soon.*no date"),
    (changed("-nightly-bench-1", "-nightly-bench-2"), "belongs in bench-1/.*move it there"),
    (changed('"rack":"bench-1"', '"rack":"attic"'), "of rack attic belongs in attic/"),
]


@pytest.mark.parametrize(("damage", "sentence"), DAMAGE, ids=range(len(DAMAGE)))
def test_a_damaged_file_is_named_and_left_out_alone(
    tmp_path: Path, damage: Callable[[Path], object], sentence: str
) -> None:
    """Torn, of an unknown format, or changed by hand: the file, what is wrong and the way out."""
    one = night(0)
    store(tmp_path, one, night(1))
    damage(path_of(tmp_path, one))
    history = load(tmp_path)
    assert [session.run_id for session in history.sessions] == [night(1).run_id]
    (said,) = history.left_out
    assert re.search(rf"(?s){one.run_id}\.json.*({sentence})", said), said


def test_of_many_damaged_files_the_first_are_named(tmp_path: Path) -> None:
    """A branch that a newer program wrote is not a page of warnings."""
    for number in range(8):
        changed('"schema":1', '"schema":2')(path_of(store(tmp_path, night(number)), night(number)))
    said = load(tmp_path).left_out
    assert len(said) == 6
    assert said[-1].startswith("3 more ")
    assert str(tmp_path) in said[-1]


def test_racks_share_a_folder(tmp_path: Path) -> None:
    """Racks share a folder; another rack's damaged file is not this one's trouble. Before the first run there
    is no history; what else lies in the folder is none either. A run is of one rack: the second file is
    named, and left out."""
    assert load(tmp_path / "nowhere") == NO_HISTORY
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.json").write_text("{}")
    (tmp_path / "README.md").write_text("words")
    assert load(tmp_path) == NO_HISTORY
    one = night(1)
    history = load(store(tmp_path / "twice", one, replace(one, rack="attic")))
    assert [session.rack for session in history.sessions] == ["attic"]
    (said,) = history.left_out
    assert said.startswith(f"{path_of(tmp_path / 'twice', one)}: ")
    assert "attic" in said
    store(tmp_path, night(0), night(0, rack="attic", channel=11))
    path_of(tmp_path, night(0)).write_text("{")
    history = load(tmp_path, racks={"attic"})
    assert {session.rack for session in history.sessions} == {"attic"}
    assert all(name.startswith("attic/") for name, _ in history.entries)


def test_histories_of_racks_are_united_by_copying(tmp_path: Path) -> None:
    """A union of files, whatever is copied into what."""
    mine = store(tmp_path / "mine", night(0), night(1))
    theirs = store(tmp_path / "theirs", night(0), night(0, rack="attic"), night(1, rack="attic"))
    for order in ([mine, theirs], [theirs, mine]):
        both = tmp_path / f"first-{order[0].name}"
        for folder in order:
            shutil.copytree(folder, both, dirs_exist_ok=True)
        assert len(load(both).sessions) == 4
    assert content(load(both)) == content(load(tmp_path / "first-mine"))
