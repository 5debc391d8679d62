# SPDX-License-Identifier: Apache-2.0
"""One screen for all racks: who has what since when, what is kept out, how the last runs ended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hil.boards.quarantine import folder_of, put
from hil.boards.rack import load_rack
from hil.cli.status import HEAD, BoardRow, RackSection, screen, section_of
from hil.model import Quarantine
from tests.boards.farm import Farm, farm_in
from tests.lab import ROOT, make_lab, own_environment, run, wait_for


def section(name: str, boards: int, held: int) -> RackSection:
    last = "11-24 12:00 exit 0"
    taken = ("somebody@far.example/who:hil.1", "11-24 13:37", last)
    rows = [BoardRow((f"b{n}", "esp32s3", "ok", *taken), is_quiet=False) for n in range(held)]
    rows += [
        BoardRow((f"b{n}", "esp32s3", "ok", "free", "", last), is_quiet=True) for n in range(held, boards)
    ]
    return RackSection(name, rows)


def test_fifty_boards_in_three_labs_fit_on_one_screen() -> None:
    """No line is wider than 80 columns, and there are 24 at most: boards that are free are counted only; what
    does not fit even so is counted too."""
    sections = [section("berlin", 20, 3), section("lyon", 15, 2), section("turin", 15, 2)]
    lines = screen(sections, 80, 24)
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("rack berlin: 20 boards, 17 free")
    assert sum("11-24 13:37" in line for line in lines) == 7
    assert len(screen(sections, 80, None)) == 50 + 2 * 3
    crowded = screen([section("berlin", 50, 50)], 80, 24)
    assert len(crowded) == 24
    assert crowded[-1].startswith("… 29 more ")


def test_a_small_rack_is_shown_whole() -> None:
    """Where all fits, free boards are listed with how their last run ended."""
    lines = screen([section("lab", 2, 1)], 80, 24)
    assert lines[1].split("  ")[1] == HEAD[0]
    assert lines[3].split() == ["b1", "esp32s3", "ok", "free", "11-24", "12:00", "exit", "0"]


def test_a_board_that_is_kept_out_says_by_whom(tmp_path: Path) -> None:
    """Below its line, by whom, since when and why, as far as the screen is wide; it is never left out."""
    file = ROOT / "hil" / "racks" / "virtual.yaml"
    why = f"its port vanishes: {'again; ' * 20}"
    put(folder_of(load_rack(file), tmp_path), Quarantine("v2", "2026-11-24T06:41:09Z", "anna", why))
    lines = screen([section_of(file, tmp_path, {})], 80, 5)
    assert [line.split()[0] for line in lines[1:3]] == ["board", "v2"]
    assert re.match(r" +quarantined .* anna, .* 11-24 06:41: its port", lines[3])
    assert len(lines[3]) == 80


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Farm]:
    with farm_in(tmp_path) as farm:
        yield farm


@pytest.mark.slow
@pytest.mark.heavy
def test_racks_here_and_at_coordinators_are_on_one_screen(farm: Farm, tmp_path: Path) -> None:
    """Boards of a rack file, and places: who has one since when, and whose exporter is gone. A coordinator
    that is not there is one sentence with a way out, and the other racks are shown all the same."""
    farm.export_all([farm.boards_rack(1), farm.boards_rack(1, name="other", first=2)])[1].kill()
    wait_for(lambda: "exporter-2" not in farm.client("resources"), lambda: "the dead exporter is still there")
    farm.client("-p", "b1", "acquire")
    rack, gone = farm.places_rack("match: {rack: lab}"), tmp_path / "gone.yaml"
    gone.write_text(rack.read_text().replace(farm.address, "127.0.0.1:9"))
    (tmp_path / "own").mkdir()
    own = make_lab(tmp_path / "own", 1)
    command = [str(ROOT / ".venv/bin/hil"), "rack", "status", "--out", str(own.out)]
    asked = [*command, *(f"--rack={file}" for file in (rack, gone, own.rack))]
    done = run(asked, env={**own_environment(), "PATH": farm.env()["PATH"]})
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert any(line.split()[:3] == ["b1", "virtual-esp32", "ok"] and "/" in line for line in lines), lines
    assert any(line.split()[:4] == ["b2", "virtual-esp32", "no", "exporter"] for line in lines), lines
    assert "coordinator 127.0.0.1:9 does not" in done.stdout
    assert "labgrid-coordinator" in done.stdout
    assert re.search("^rack lab .*: 1 board, 1 free", done.stdout, re.MULTILINE)
