# SPDX-License-Identifier: Apache-2.0
"""The figures of `make bench`: what they read, and how their command goes through them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest

from tests.firmware.bench_record import bench_record
from tests.firmware.case_defaults import case_defaults
from tests.lab import ROOT
from tools.bench import __main__ as command
from tools.bench.figure import SHORT_PASS, Figure
from tools.bench.lease_share import measuring_s

_SOURCES = sorted((ROOT / "firmware" / "components" / "benches").glob("*.c"))
_COLUMNS = re.compile(r"\bCOLUMNS\[\] = \{([^}]*)\}")


def columns_of_benches() -> dict[str, tuple[str, ...]]:
    """Return the columns that the firmware gives to each bench that has a thresholds file."""
    found = {source.stem: _COLUMNS.search(source.read_text()) for source in _SOURCES}
    benches = [path.stem for path in (ROOT / "thresholds").glob("*.yaml")]
    return {bench: tuple(re.findall(r'"(\w+)"', str(found[bench]))) for bench in sorted(benches)}


def test_how_long_a_record_took_is_no_matter_of_its_columns() -> None:
    """The seconds of all benches add up; there are benches without ``done_us``, so this means something."""
    columns = columns_of_benches()
    assert all(columns.values())
    assert [bench for bench, names in columns.items() if "done_us" not in names]
    records = [
        bench_record(bench, case_defaults(bench), dict.fromkeys(names, (1, 2)), {}, run_id="r")
        for bench, names in columns.items()
    ]
    assert measuring_s(replace(record, measured_s=1.5) for record in records) == 1.5 * len(columns)


def test_a_record_that_does_not_say_how_long_it_took_is_named() -> None:
    """A share of what nobody kept would be a wrong figure; one of no record at all too."""
    older = bench_record("memory", {}, {"raw_cycles": (1,)}, {}, run_id="r")
    with pytest.raises(ValueError, match="memory/"):
        measuring_s([older])
    with pytest.raises(ValueError, match="no record"):
        measuring_s([])


KEPT = Figure("kept", ("", "s"), [("it", "1")])
LATE = replace(KEPT, title="late", missed=["1 s"])
WRONG = replace(KEPT, title="wrong", missed=["one byte"], exact=True)


@dataclass
class Given:
    """Figures that a test makes up: what they are, or what they raise. ``boards`` tells of boards had."""

    on_board: dict[str, Figure | Exception] = field(default_factory=dict)
    alone: dict[str, Figure | Exception] = field(default_factory=dict)
    boards: list[str] = field(default_factory=list)

    def run(self, monkeypatch: pytest.MonkeyPatch, *, short: bool = False) -> int:
        monkeypatch.setattr(command, "workbench", self._workbench)
        monkeypatch.setattr(command, "ON_BOARD", {name: measured(one) for name, one in self.on_board.items()})
        monkeypatch.setattr(command, "ALONE", {name: measured(one) for name, one in self.alone.items()})
        return command.run([*self.on_board, *self.alone], short=short)

    @contextmanager
    def _workbench(self) -> Iterator[str]:
        self.boards.append("had")
        yield "board"
        self.boards.append("given back")


def measured(given: Figure | Exception) -> Callable[..., Figure]:
    def measure(*_bench: object, short: bool) -> Figure:
        if isinstance(given, Exception):
            raise given
        return given

    return measure


def test_a_figure_that_breaks_hides_no_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others are measured and printed, the end names the broken one, and the exit status is 2."""
    given = Given(alone={"one": KeyError("done_us"), "two": LATE, "three": KEPT})
    assert given.run(monkeypatch) == 2
    said = capsys.readouterr()
    assert "KeyError: 'done_us'" in said.err
    assert [name for name in ("late", "kept") if name in said.out] == ["late", "kept"]
    assert said.out.splitlines()[-2:] == ["broken: one", "aims missed: two"]


def test_a_board_is_had_anew_after_a_figure_that_broke(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures share a board; one that broke may have left it in any state. No other keeps the rack."""
    given = Given({"one": KEPT, "two": OSError(), "three": KEPT, "four": KEPT}, {"five": KEPT})
    assert given.run(monkeypatch) == 2
    assert given.boards == ["had", "given back"] * 2


@pytest.mark.parametrize(
    ("figure", "whole", "short"),
    [(KEPT, 0, 0), (LATE, 1, 0), (WRONG, 1, 1)],
    ids=lambda one: getattr(one, "title", ""),
)
def test_a_short_pass_fails_by_exact_aims_alone(
    figure: Figure,
    whole: int,
    short: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What a clock says of a few samples decides nothing, a wrong byte does; and it is said to be short.

    Wall and processor time stand below each figure.
    """
    given = Given(alone={"one": figure})
    assert given.run(monkeypatch) == whole
    said = capsys.readouterr().out
    assert SHORT_PASS not in said
    assert re.search(r"^one: \d+\.\d s, of the processors \d+\.\d s$", said, re.MULTILINE)
    assert given.run(monkeypatch, short=True) == short
    assert capsys.readouterr().out.startswith(SHORT_PASS)


def test_a_figure_that_does_not_exist_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown name is the caller's error, answered by the names there are."""
    with pytest.raises(SystemExit) as raised:
        command.main(["nonsense"])
    assert raised.value.code == 2
    assert "lease-share" in capsys.readouterr().err


def test_each_figure_has_a_name_and_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """`--list` says of each what it measures."""
    assert command.main(["--list"]) == 0
    listed = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert [name for name, _sentence in listed] == list(command.FIGURES)
