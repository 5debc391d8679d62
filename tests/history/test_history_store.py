# SPDX-License-Identifier: Apache-2.0
"""The history store: boot values of many runs and racks, a file a run, never changed, read at once."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from hil.base.errors import ConfigError, RigError
from hil.history import append, load
from hil.history.loading import read_segment
from hil.history.merging import merge
from hil.history.saving import DuplicateError, Point, build, path_of
from hil.history.segment import HEAD, Segment, to_bytes
from hil.metrics.sessions import NO_HISTORY, History, SeriesHistory
from tests.history.history_files import CANDIDATE, REFERENCE, night
from tests.store.test_store import largest_file

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "reference" / "schema" / "boot-values.schema.json"
P50 = "bench-1/e1/publish/count=200,turn=0/publish_latency_p50_us"


def store(folder: Path, *segments: Segment) -> Path:
    for segment in segments:
        assert append(folder, segment)
    return folder


def content(history: History) -> tuple[Any, ...]:
    """Return all that a history holds, for comparison."""
    names = [field.name for field in fields(SeriesHistory)]
    columns = {
        key: [np.asarray(getattr(entry, name)).tolist() for name in names]
        for key, entry in history.entries.items()
    }
    return history.sessions, list(columns.items())


def points_of(segment: Segment) -> list[Point]:
    """Return the single boot values of a segment."""
    rows = [
        (case, metric, boot) for case, metric, boots in segment.series for boot in segment.boot_sets[boots]
    ]
    return [
        Point(
            board=segment.boards[segment.boots[boot].board].id,
            role=segment.images[segment.boots[boot].image].role,
            index=segment.boots[boot].index,
            sha256=segment.images[segment.boots[boot].image].sha256,
            case_id=segment.cases[case],
            metric=segment.metrics[metric],
            value=float(segment.values[row]),
            samples=int(segment.samples[row]),
            hits=int(segment.hits[row]),
        )
        for row, (case, metric, boot) in enumerate(rows)
    ]


def test_every_value_comes_back(tmp_path: Path) -> None:
    """Of each series and role: values in order of session and boot, with firmware, ruler and counts."""
    nights = [night(n) for n in range(3)]
    history = load(store(tmp_path, *nights))
    assert [session.commit[-1] for session in history.sessions] == ["0", "1", "2"]
    assert len(history.entries) == 2 * 2 * 2 * 2  # boards, cases, metrics, roles
    assert sum(map(len, history.entries.values())) == sum(map(len, nights))
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
    values = np.array([math.inf, 1 / 3, 2.0**52 + 1])
    path = store(tmp_path, replace(one, values=values)) / "bench-1" / f"{one.run_id}.json"
    assert '"values": [null,0.3333333333,4503599627370497]' in path.read_text()
    assert read_segment(path).values.tolist() == [math.inf, 0.3333333333, 2.0**52 + 1]
    for wrong in (math.nan, -math.inf):
        with pytest.raises(ValueError, match="a boot value is"):
            to_bytes(replace(one, values=np.array([1.0, wrong, 2.0])))


def test_order_does_not_matter(tmp_path: Path) -> None:
    """Records in any order make the same bytes; files in any order the same history."""
    one = night(5)
    points = points_of(one)
    head = {key: getattr(one, key) for key in HEAD}
    for seed in range(5):
        shuffled = random.Random(seed).sample(points, len(points))
        again = build(head, one.boards[::-1], one.images[::-1], shuffled)
        assert to_bytes(again) == to_bytes(one)
    nights = [night(n, rack=rack) for n in range(4) for rack in ("bench-1", "attic")]
    straight = load(store(tmp_path / "a", *nights))
    backwards = load(store(tmp_path / "b", *reversed(nights)))
    assert content(straight) == content(backwards)
    assert [session.rack for session in straight.sessions] == ["attic", "bench-1"] * 4


def test_one_boot_has_one_value() -> None:
    """A value that is there twice is refused, even if both agree."""
    one = night(0)
    points = points_of(one)
    head = {key: getattr(one, key) for key in HEAD}
    with pytest.raises(DuplicateError, match="boot 0 of board e1 has publish/count=200,turn=0 twice"):
        build(head, one.boards, one.images, [*points, points[0]])


def test_boots_that_measured_less(tmp_path: Path) -> None:
    """A later look measures some cases only: each series has the boots that measured it, no zeros."""
    one = night(0, boots=6)
    kept = [point for point in points_of(one) if point.index < 2 or "turn=0" in point.case_id]
    head = {key: getattr(one, key) for key in HEAD}
    history = load(store(tmp_path, build(head, one.boards, one.images, kept)))
    whole, cut = (history.series(P50.replace("turn=0", f"turn={turn}")) for turn in (0, 1))
    assert whole is not None
    assert cut is not None
    assert whole.boot.tolist() == [0, 2, 4]
    assert cut.boot.tolist() == [0]


def test_a_run_is_added_once_and_never_changed(tmp_path: Path) -> None:
    """The same run again is left as it is; with other content it is refused, and the file stays."""
    one = night(0)
    path = path_of(store(tmp_path, one), one.rack, one.run_id)
    before = path.read_bytes()
    assert append(tmp_path, one) is False
    other = replace(one, values=one.values + 1.0)
    with pytest.raises(ConfigError, match=rf"{path}: the history holds this run with other content.*by hand"):
        append(tmp_path, other)
    assert path.read_bytes() == before
    store(tmp_path, night(1))
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir() if file.name.startswith(".")] == []


def test_a_full_disk_leaves_no_half_file(tmp_path: Path) -> None:
    """The run is not in the history then, the others still are."""
    store(tmp_path, night(0))
    with largest_file(100), pytest.raises(RigError, match=r"could not write .*Safe on disk: every other run"):
        append(tmp_path, night(1))
    assert len(load(tmp_path).sessions) == 1


def test_every_file_fits_the_schema(tmp_path: Path) -> None:
    """docs/reference/schema says what is on disk."""
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    for path in store(tmp_path, night(0), night(1, rack="attic")).glob("*/*.json"):
        jsonschema.Draft202012Validator(schema).validate(json.loads(path.read_bytes()))


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-200])


def changed(old: str, new: str) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return change


DAMAGE: list[tuple[Callable[[Path], object], str]] = [
    (cut_off, "it is damaged, .*hil history add"),
    (lambda path: path.write_bytes(b""), "it is damaged, "),
    (lambda path: path.write_bytes(b"\xff\xfe{}"), "it is damaged, "),
    (lambda path: path.write_text("[" * 100_000), "it is damaged, "),
    (lambda path: path.write_text("7"), "it is 7, no JSON object"),
    (changed('"schema": 1', '"schema": 2'), "its schema is 2; this program reads 1.*update this checkout"),
    (changed('"schema": 1', '"schema": 1,\n"colour": 1'), "has 'colour', which is unknown"),
    (changed('"suite": "nightly",\n', ""), "lacks 'suite'"),
    (changed('"dirty": false', '"dirty": 0'), "'dirty' is 0; expected bool"),
    (changed('"values": [', '"values": [NaN,'), "it holds NaN, which is no value"),
    (
        changed('"values": [', '"values": [1,'),
        "its series have 32 boots, but 'values' holds 33|not one number",
    ),
    (changed('"values": [', '"values": ["1",'), "'values' is no list of numbers"),
    (changed('"samples": [200,32]', '"samples": [200,31]'), "'samples' is not one number for each of the 32"),
    (changed('"samples": [200,32]', '"samples": [200]'), "'samples' is not one number for each of the 32"),
    (changed('"samples": [200,32]', '"samples": [200.0,32]'), "'samples' is no list of integers"),
    (changed('"kind":"physical"', '"kind":"paper"'), "the kind of board 'e1' is 'paper'"),
    (changed('"role":"reference"', '"role":"base"'), "the role of image 'esp32' is 'base'"),
    (changed('"board":[0', '"board":[9'), "'boots.board' points at 0 to 9, of 2"),
    (changed('"board":[0', '"board":[-1'), "'boots.board' points at -1 to"),
    (changed('"board":[0', '"board":[0,0'), "the columns of 'boots' differ in length"),
    (changed('"metric":[0', '"metric":[7'), "'series.metric' points at"),
    (changed('"rulers":{"publish"', '"rulers":{"other"'), "lacks the ruler of a bench"),
    (changed('"started_utc": "2026', '"started_utc": "soon'), "'started_utc' is 'soon.*no date"),
    (changed("-nightly-bench-1", "-nightly-bench-2"), "belongs in bench-1/.*move it there"),
    (changed('"rack": "bench-1"', '"rack": "attic"'), "of rack attic, which belongs in attic/"),
]


@pytest.mark.parametrize(("damage", "sentence"), DAMAGE, ids=range(len(DAMAGE)))
def test_a_damaged_file_is_named(tmp_path: Path, damage: Callable[[Path], object], sentence: str) -> None:
    """Torn, of an unknown format, or changed by hand: the file, what is wrong and the way out."""
    one = night(0)
    store(tmp_path, one, night(1))
    damage(path_of(tmp_path, one.rack, one.run_id))
    with pytest.raises(ConfigError, match=rf"(?s){one.run_id}\.json.*({sentence})"):
        load(tmp_path)


def test_a_run_of_two_racks_is_refused(tmp_path: Path) -> None:
    """A run is of one rack: in two files it would count twice."""
    one = night(0)
    store(tmp_path, one, replace(one, rack="attic"))
    with pytest.raises(ConfigError, match=rf"{one.run_id} is in the history twice: attic/.* and bench-1/"):
        load(tmp_path)


def test_no_folder_is_no_history_yet(tmp_path: Path) -> None:
    """The first run of a rack has none; what else lies in the folder is none either."""
    assert load(tmp_path / "nowhere") == NO_HISTORY
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.json").write_text("{}")
    (tmp_path / "README.md").write_text("words")
    assert load(tmp_path) == NO_HISTORY


def test_only_some_racks(tmp_path: Path) -> None:
    """Racks share a folder; another rack's damaged file is not this one's trouble."""
    store(tmp_path, night(0), night(0, rack="attic", channel=11))
    path_of(tmp_path, "bench-1", night(0).run_id).write_text("{")
    history = load(tmp_path, racks={"attic"})
    assert {session.rack for session in history.sessions} == {"attic"}
    assert all(name.startswith("attic/") for name, _ in history.entries)


def test_histories_of_racks_are_merged(tmp_path: Path) -> None:
    """The union, whatever is merged into what; what is there already is no conflict."""
    mine = store(tmp_path / "mine", night(0), night(1))
    theirs = store(tmp_path / "theirs", night(0), night(0, rack="attic"), night(1, rack="attic"))
    assert len(merge([theirs], mine)) == 2
    assert merge([theirs, theirs], mine) == []
    assert len(merge([mine], tmp_path / "new")) == 4
    assert content(load(mine)) == content(load(tmp_path / "new"))
    assert len(merge([mine], theirs)) == 1
    assert content(load(theirs)) == content(load(mine))


def test_two_contents_of_one_run_are_not_merged(tmp_path: Path) -> None:
    """Both files are named, and nothing is copied: not even what could be."""
    one = night(0)
    mine = store(tmp_path / "mine", one)
    theirs = store(tmp_path / "theirs", replace(one, values=one.values * 2), night(1))
    before = sorted(mine.rglob("*"))
    with pytest.raises(ConfigError, match=rf"mine/bench-1/{one.run_id}.json and .*theirs/.*two contents"):
        merge([theirs], mine)
    damaged = store(tmp_path / "damaged", night(2))
    cut_off(path_of(damaged, "bench-1", night(2).run_id))
    with pytest.raises(ConfigError, match="it is damaged"):
        merge([damaged], mine)
    for nothing, why in ((tmp_path / "nowhere", "no such folder"), (tmp_path, "holds no <rack>")):
        with pytest.raises(ConfigError, match=why):
            merge([nothing], mine)
    assert sorted(mine.rglob("*")) == before
