# SPDX-License-Identifier: Apache-2.0
"""What a run compares, before anything is measured: images, looks, what is known, what is written down."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hil.base.errors import ConfigError
from hil.boards.firmware.build_folder import Image, image_sha256
from hil.boards.firmware.bundle import write_bundle
from hil.boards.firmware.partition_table import read_csv, to_binary
from hil.boards.firmware.revision import SourceState
from hil.boards.firmware.selection import Firmware, find_firmware
from hil.boards.rack import load_rack
from hil.history.judgements import GATE
from hil.model import Comparison, NotRun, Ruler
from hil.run.campaign import Against, Campaign, check_firmware, read_against
from hil.run.comparing import Other, find_other, prepare_comparisons
from hil.run.options import RunOptions
from hil.run.plan import make_plan, spread
from hil.run.plan.deadline import BOOT_S
from hil.run.run_facts import run_info as facts_of
from hil.store import RunDirectory
from tests.make_records import run_info
from tests.run.echo_limits import RACK, echo_thresholds
from tests.virtual.virtual_board_rig import PARTITIONS, make_build

IMAGE = Image("virtual-esp32")
BENCHES = ("benches", "load")
RACK_FILE = f"""\
schema: 1
name: {RACK}
host: {{interface: hil0, address: 10.77.0.1}}
access_point: {{type: virtual, profile: lab, seed: 1}}
boards:
  - {{id: e1, kind: virtual, target: esp32, power: {{type: virtual}}, mac: '02:00:00:77:01:01',
     serial: 'fastrfc2217://127.0.0.1:47191'}}
  - {{id: e2, kind: virtual, target: esp32, power: {{type: virtual}}, mac: '02:00:00:77:01:02',
     serial: 'fastrfc2217://127.0.0.1:47192'}}
"""


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Firmware]:
    folder = tmp_path_factory.mktemp("builds")
    return {tag: firmware_of(make_build(folder, tag=tag)) for tag in ("one", "two")}


def firmware_of(build_dir: Path) -> Firmware:
    return Firmware(build_dir, image_sha256(build_dir))


@pytest.fixture
def campaign(tmp_path: Path, builds: Mapping[str, Firmware]) -> Campaign:
    """Two boards, one case with two blocking comparisons, against the build ``two``."""
    (tmp_path / "rack.yaml").write_text(RACK_FILE)
    rack, thresholds = load_rack(tmp_path / "rack.yaml"), echo_thresholds(tmp_path)
    return Campaign(
        options=RunOptions(out=tmp_path / "out", thresholds=tmp_path / "thresholds", trigger="pr"),
        rack=rack,
        thresholds=thresholds,
        plan=make_plan(rack, thresholds, selection="pr"),
        profile="lab",
        against=Against("base", builds["two"].build_dir, budget_s=900.0),
    )


def against(campaign: Campaign, **changes: Any) -> Campaign:
    return replace(campaign, against=replace(campaign.against or pytest.fail("none"), **changes))


def prepared(campaign: Campaign, candidate: Firmware) -> tuple[RunDirectory, list[str]]:
    """Prepare a run's comparisons; return its folder and what was said beside the looks."""
    directory = RunDirectory.create(campaign.options.out, run_info(run_id="20261121T000000Z-pr-0001"))
    said: list[str] = []
    images = {IMAGE: candidate}
    prepare_comparisons(campaign, directory, images, find_other(campaign.against, images), said.append)
    return directory, [line for line in said if ": look" not in line]


def comparison_of(directory: RunDirectory) -> Comparison:
    (entry,) = directory.read().entries
    assert isinstance(entry, Comparison)
    return entry


@pytest.mark.parametrize(("budget_s", "looks"), [(900.0, (3, 5, 8, 13, 20)), (250.0, (3, 6)), (1.0, (3,))])
def test_the_looks_are_what_the_budget_pays(
    campaign: Campaign, builds: Mapping[str, Firmware], budget_s: float, looks: tuple[int, ...]
) -> None:
    """The last ends within it, the first is there in any case; all boards of an image have the same looks.
    The journal holds how long a boot more would take."""
    directory, said = prepared(against(campaign, budget_s=budget_s), builds["one"])
    comparison = comparison_of(directory)
    assert comparison.looks == tuple((boots, boots) for boots in looks)
    assert (comparison.boot_s or 0.0) > BOOT_S
    assert comparison.boards == ("e1", "e2")
    assert comparison.candidate_sha256 == builds["one"].sha256
    assert comparison.other_sha256 == builds["two"].sha256
    assert said == []  # 3 + 3 boots on two boards may decide


def test_a_spread_run_is_told_where_one_boards_boots_decide_nothing(
    campaign: Campaign, builds: Mapping[str, Firmware]
) -> None:
    """A case is on one board then: what two boards boot together otherwise are too few boots of one."""
    one_board = spread(campaign.plan, quarantine={})
    _directory, said = prepared(replace(against(campaign, budget_s=1.0), plan=one_board), builds["one"])
    assert [line for line in said if "3 + 3 boots on 1 board" in line and "--target" not in line]


def test_a_reference_has_a_fixed_number_of_boots(campaign: Campaign, builds: Mapping[str, Firmware]) -> None:
    """One look."""
    directory, _said = prepared(against(campaign, role="reference", boots=4), builds["one"])
    comparison = comparison_of(directory)
    assert comparison.looks == ((4, 4),)


def test_a_base_that_cannot_be_on_the_board_is_told(
    campaign: Campaign, builds: Mapping[str, Firmware], tmp_path: Path
) -> None:
    """Another partition table: a warning at once, and each case says why it is not compared."""
    other = tmp_path / "moved"
    shutil.copytree(builds["two"].build_dir, other)
    (tmp_path / "moved.csv").write_text(PARTITIONS.replace("0x1f0000", "0x1e0000"))
    table = other / "partition_table" / "partition-table.bin"
    table.write_bytes(to_binary(read_csv(tmp_path / "moved.csv")))
    directory, said = prepared(against(campaign, firmware=other), builds["one"])
    entries = directory.read().entries
    left = [entry for entry in entries if isinstance(entry, NotRun)]
    assert [(entry.board, entry.cause) for entry in left] == [("e1", "not-compared"), ("e2", "not-compared")]
    assert all("partition table" in sentence for sentence in [*said, *(entry.reason for entry in left)])
    assert len(said) == 1


def test_a_suite_without_rules_is_told(campaign: Campaign, builds: Mapping[str, Firmware]) -> None:
    """Where no rule is for a selected case, the run says that all is advice, and looks once."""
    echo = replace(campaign.thresholds["echo"], compare=())
    directory, said = prepared(replace(campaign, thresholds={"echo": echo}), builds["one"])
    assert len(comparison_of(directory).looks) == 1
    assert len(said) == 1
    assert "'compare:'" in said[0]


def test_the_same_bytes_are_found(campaign: Campaign, builds: Mapping[str, Firmware]) -> None:
    """A base that flashes the same bytes makes an identical comparison without looks."""
    directory, said = prepared(campaign, builds["two"])
    comparison = comparison_of(directory)
    assert (comparison.identical, comparison.looks) == (True, ())
    assert "byte for byte" in said[0]


def test_unchanged_firmware_is_measured_all_the_same(
    campaign: Campaign, builds: Mapping[str, Firmware]
) -> None:
    """Compared with itself, an image has the looks of any base, and run.json says what it is."""
    usual = comparison_of(prepared(campaign, builds["one"])[0])
    own = replace(campaign.options, out=campaign.options.out / "itself")
    itself = replace(campaign, options=own, against=Against("base", None, budget_s=900.0))
    directory, said = prepared(itself, builds["one"])
    comparison = comparison_of(directory)
    assert (comparison.identical, comparison.looks) == (False, usual.looks)
    assert comparison.candidate_sha256 == comparison.other_sha256 == builds["one"].sha256
    assert said == []
    images = {IMAGE: builds["one"]}
    found = facts_of(itself, "r", images, find_other(itself.against, images), "").compared
    assert found
    assert (found.role, found.unchanged, found.gate) == ("base", True, GATE)
    other = facts_of(campaign, "r", images, find_other(campaign.against, images), "").compared
    assert other
    assert (other.unchanged, other.gate) == (False, 0)


def with_ruler(build: Firmware, folder: Path, ruler: Ruler) -> Firmware:
    """Return the build as a bundle holds it that names a ruler."""
    write_bundle(build.build_dir, IMAGE, folder, SourceState("b" * 40, dirty=False, ruler=ruler))
    return find_firmware(folder, IMAGE)


@pytest.mark.parametrize(
    ("moved", "by_name", "is_compared"), [((), False, True), (BENCHES, False, False), (BENCHES, True, True)]
)
def test_a_changed_ruler_in_the_same_bytes_is_no_pass(
    campaign: Campaign,
    builds: Mapping[str, Firmware],
    tmp_path: Path,
    moved: tuple[str, ...],
    by_name: bool,
    is_compared: bool,
) -> None:
    """Both images hold the edited bench: it is measured against its limits, and the journal says why that is
    all. But two builds with the same ruler by name were meant to differ in the product alone."""
    base = with_ruler(builds["two"], tmp_path / "base", Ruler("c" * 40, dirty=False, moved=moved))
    named = with_ruler(builds["two"], tmp_path / "head", Ruler("c" * 40, dirty=False))
    directory, said = prepared(
        against(campaign, firmware=base.build_dir), named if by_name else builds["two"]
    )
    entries = directory.read().entries
    assert [entry.identical for entry in entries if isinstance(entry, Comparison)] == [True] * is_compared
    left = [entry for entry in entries if isinstance(entry, NotRun)]
    assert {entry.cause for entry in left} == (set() if is_compared else {"not-compared"})
    assert all("(benches, load)" in entry.reason for entry in left)
    assert (
        any("virtual-esp32 is not" in line and "(benches, load)" in line for line in said) is not is_compared
    )


@pytest.mark.parametrize(
    ("ruler", "words"),
    [
        (Ruler("c" * 40, dirty=False), ""),
        (Ruler("c" * 40, dirty=False, moved=BENCHES), "benches, load of cccccccccccc"),
        (Ruler("c" * 40, dirty=False, reason="no link/new.h"), "cannot be compared. no link/new.h"),
    ],
)
def test_a_run_says_whose_ruler_the_base_has(
    campaign: Campaign, builds: Mapping[str, Firmware], tmp_path: Path, ruler: Ruler, words: str
) -> None:
    """What was moved is on both sides; what could not be moved leaves cases that are not compared."""
    base = with_ruler(builds["two"], tmp_path / "base", ruler)
    directory, said = prepared(against(campaign, firmware=base.build_dir), builds["one"])
    assert not comparison_of(directory).identical
    assert len(said) == bool(words)
    assert words in "".join(said)


def test_nothing_is_compared_without_a_wish(builds: Mapping[str, Firmware]) -> None:
    """A run without --base or --reference has one build an image."""
    assert find_other(None, {IMAGE: builds["one"]}) == Other()
    assert Other().builds({IMAGE: builds["one"]}, None) == {IMAGE: {"candidate": builds["one"]}}


@pytest.mark.parametrize("minutes", [0.0, -1.0, math.nan, math.inf])
def test_a_budget_that_is_no_time_is_refused(minutes: float) -> None:
    """It is a number of minutes above 0; the way out names such a number."""
    with pytest.raises(ConfigError, match=rf"--budget {minutes:g}: .* above 0.*--budget 15"):
        read_against(RunOptions(base=Path("a"), budget=minutes))


def test_a_folder_without_firmware_is_refused(tmp_path: Path) -> None:
    """A wrong path is said with its option and the command that makes a bundle; a build is one."""
    for path, why in ((tmp_path / "none", "no such folder"), (tmp_path, "no bundle and no build is in it")):
        with pytest.raises(ConfigError, match=rf"--base {path}: {why}.*hil build") as caught:
            check_firmware(Against("base", path))
        assert caught.value.exit_code == 2
    (tmp_path / "flasher_args.json").touch()
    check_firmware(Against("base", tmp_path))


def test_what_is_compared() -> None:
    """Without options nothing is; a base and the firmware itself have a budget, a reference its boots."""
    assert read_against(RunOptions(boots=3)) is None
    base = read_against(RunOptions(base=Path("a")))
    assert base is not None
    assert (base.role, base.budget_s) == ("base", 900.0)
    itself = read_against(RunOptions(unchanged=True, budget=5.0))
    assert itself == Against("base", None, budget_s=300.0)
    assert itself.unchanged
    assert not base.unchanged
    check_firmware(itself)
    reference = read_against(RunOptions(reference=Path("a"), boots=4))
    assert reference is not None
    assert (reference.role, reference.boots) == ("reference", 4)
    assert math.isinf(reference.budget_s)
