# SPDX-License-Identifier: Apache-2.0
"""`hil run --more`: which run is taken further, with what, and what is refused."""

from __future__ import annotations

import random
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from hil.base.errors import ConfigError, RigError
from hil.base.paths import PROJECT_ROOT
from hil.boards.firmware.build_folder import Image, image_sha256
from hil.boards.health.quarantine import folder_of, put
from hil.boards.health.types import Quarantine
from hil.boards.rack import load_rack
from hil.cli.app import app
from hil.gate import judge
from hil.model import Comparison, Fault, RunRecord, Verdict
from hil.run.more import NothingMore, find_offer, read_more
from hil.store import RunDirectory
from tests.gate.compare_records import boot
from tests.run.echo_limits import RACK, echo_thresholds
from tests.run.test_fixtures_comparing_setup import RACK_FILE
from tests.virtual.virtual_board_rig import make_build

RUN_ID = "20261120T221257Z-pr-3fa9"
IMAGE = Image("virtual-esp32")
LOOKS = ((3, 3), (9, 9))
NOISY, STEADY = 0.3, 0.01


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    folder = tmp_path_factory.mktemp("builds")
    return {tag: make_build(folder, tag=tag) for tag in ("one", "two")}


class Lab:
    """A rack file, and a run on its two boards that was judged; its boots differ by ``deviation``."""

    def __init__(
        self, folder: Path, builds: Mapping[str, Path], *, deviation: float, slower: float = 0.0
    ) -> None:
        self.rack = folder / "rack.yaml"
        self.rack.write_text(RACK_FILE)
        self.builds = builds
        self.thresholds = echo_thresholds(folder)
        self.case = self.thresholds["echo"].case({})
        self.run = RunDirectory.create(folder / "out", RUN_ID)
        self.run.keep([folder / "thresholds" / "echo.yaml"], "thresholds")
        shas = {tag: image_sha256(build) for tag, build in builds.items()}
        self.run.append(
            Comparison(
                RUN_ID, RACK, str(IMAGE), IMAGE.target, ("e1", "e2"), "base", shas["one"], shas["two"],
                LOOKS, cases=(self.case.case_id,), unasked=1,
            )
        )  # fmt: skip
        self.measure(LOOKS[0][0], deviation, slower)
        image = {tag: {str(IMAGE): {"build_dir": str(builds[tag]), "sha256": shas[tag]}} for tag in builds}
        boards = [{"id": board, "target": IMAGE.target, "kind": "virtual"} for board in ("e1", "e2")]
        self.info: dict[str, Any] = {
            "run_id": RUN_ID, "rack": RACK, "suite": "pr", "started_utc": "2026-11-20T22:12:57Z",
            "rack_file": str(self.rack), "profile": "lab", "trigger": "pr", "boards": boards,
            "plan": {board: {self.case.case_id: 1} for board in ("e1", "e2")},
            "firmware": image["one"], "compared": {"role": "base", "firmware": image["two"]},
        }  # fmt: skip
        self.run.write_info(self.info)
        self.judge()

    def measure(self, boots: int, deviation: float, slower: float, first: int = 0) -> None:
        chance = random.Random(7 + first)
        for board in ("e1", "e2"):
            for index in range(first, first + 2 * boots):
                role = "candidate" if index % 2 else "base"
                offset = chance.gauss(slower if role == "candidate" else 0.0, deviation)
                self.run.append(self._record(board, role, index, offset))

    def _record(self, board: str, role: str, index: int, offset: float) -> RunRecord:
        made = boot(board, role, index, offset=offset)
        environment = {**made.environment, "noise": {"boot": index, "simulated": True}}
        sha256 = image_sha256(self.builds["one" if role == "candidate" else "two"])
        return replace(
            made, run_id=RUN_ID, rack=RACK, bench="echo", parameters=self.case.parameters,
            firmware_sha256=sha256, environment=environment,
        )  # fmt: skip

    def judge(self) -> Verdict:
        verdict = judge(self.run.read().entries, self.thresholds)
        self.run.write_verdict(verdict)
        return verdict

    def option(self, **given: Any) -> SimpleNamespace:
        """Return pytest's options of `hil run --more`."""
        plain = {
            "suite": "quick", "boots": None, "budget": None, "base": None, "reference": None, "board": [],
            "board_target": "", "spread": False, "profile": "", "noise": "", "noise_seed": None, "legs": 1,
            "trigger": "local",
            "thresholds": PROJECT_ROOT / "thresholds", "rack": self.rack, "more": self.run.path,
            "firmware": None, "wait": 0.0, "pushgateway": "", "no_report": True, "keep_captures": False,
        }  # fmt: skip
        return SimpleNamespace(**{**plain, **given})


@pytest.fixture
def lab(tmp_path: Path, builds: Mapping[str, Path]) -> Lab:
    """A run that ended undecided."""
    return Lab(tmp_path, builds, deviation=NOISY)


def test_an_undecided_run_is_taken_further_as_it_was(lab: Lab) -> None:
    """Its boards, cases, limits, air and images; what is measured goes on behind its looks and its boots."""
    campaign = read_more(lab.option())
    assert campaign.more
    planned = [(board.board.id, case) for board in campaign.plan.boards for case in board.cases]
    assert planned == [("e1", lab.case), ("e2", lab.case)]
    assert (campaign.out, campaign.profile, campaign.trigger) == (lab.run.path.parent, "lab", "pr")
    assert campaign.more.builds_of("candidate")[IMAGE].build_dir == lab.builds["one"]
    assert campaign.more.builds_of("base")[IMAGE].build_dir == lab.builds["two"]
    comparing = campaign.more.comparing()
    assert list(comparing.looks_of(IMAGE)) == [2]
    assert comparing.open_cases(comparing.comparisons[IMAGE], lab.run.read().entries) == {lab.case.case_id}
    assert campaign.more.noise_boots() == {"e1": 6, "e2": 6}


def test_a_run_that_ended_undecided_says_how_it_is_taken_further(lab: Lab) -> None:
    """How many boots, on which boards, and about how long."""
    told = find_offer(lab.run.path, lab.judge())
    assert told
    assert told.sentence == "6 more boots of each a board, about 3 min"
    assert told.to_json() == {"boots": 6, "boards": ["e1", "e2"], "minutes": 3}


def test_a_decided_run_is_left_alone(tmp_path: Path, builds: Mapping[str, Path]) -> None:
    """It says so, measures nothing, and exits with its own status; it offers nothing."""
    for name, slower, code, why in (("same", 0.0, 0, "are decided"), ("slow", 0.4, 1, "it is decided")):
        (tmp_path / name).mkdir()
        lab = Lab(tmp_path / name, builds, deviation=STEADY, slower=slower)
        with pytest.raises(NothingMore, match=f"nothing more is measured: .*{why}") as told:
            read_more(lab.option())
        assert told.value.exit_code == code
        assert find_offer(lab.run.path, lab.judge()) is None


def test_a_run_without_a_further_look_is_left_alone(lab: Lab) -> None:
    """All looks are measured, and it is undecided still: no more boots, and the status of its verdict."""
    lab.measure(6, NOISY, 0.1, first=6)
    with pytest.raises(NothingMore, match=r"there is no further look.*hil gate"):
        read_more(lab.option())
    verdict = lab.judge()
    done = CliRunner().invoke(app, ["run", "--more", str(lab.run.path)], standalone_mode=False)
    assert "there is no further look" in done.output
    assert "hil gate" not in done.output
    assert done.return_value == verdict.exit_code == 4
    asked = ["run", "--more", str(lab.run.path), "--undecided-status", "0"]
    assert CliRunner().invoke(app, asked, standalone_mode=False).return_value == 0


@pytest.mark.parametrize("status", ["0", "4"])
def test_the_status_that_was_asked_for_goes_along(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    """CI asks for 0 where undecided is neutral; more boots that leave a run undecided end with it too."""
    monkeypatch.setenv("HIL_UNDECIDED_STATUS", status)
    handed_over: list[list[str]] = []
    monkeypatch.setattr("hil.cli.run.os.execve", lambda _path, argv, _env: handed_over.append(argv))
    CliRunner().invoke(app, ["run", "--more", str(lab.run.path)], standalone_mode=False)
    assert f"--undecided-status={status}" in handed_over[0]


def test_a_run_in_which_something_failed_is_measured_anew(lab: Lab) -> None:
    """A board that failed, or a case that was not measured, leaves holes that more boots do not fill."""
    lab.run.write_info({**lab.info, "plan": {"e1": {lab.case.case_id: 7}}})
    with pytest.raises(NothingMore, match="was not measured to its end"):
        read_more(lab.option())
    lab.run.append(Fault(RUN_ID, "rig", 3, "the cable fell out.", "e1"))
    with pytest.raises(NothingMore, match="something failed in it") as told:
        read_more(lab.option())
    assert told.value.exit_code == 3


@pytest.mark.parametrize(
    ("option", "value"),
    [("suite", "nightly"), ("boots", 3), ("budget", 5.0), ("reference", Path("x")), ("board", ["e1"]),
     ("board_target", "esp32"), ("profile", "crowded"), ("noise", "typical")],
)  # fmt: skip
def test_options_that_say_what_a_run_is_are_refused(lab: Lab, option: str, value: object) -> None:
    """A configuration error that names both options."""
    name = "target" if option == "board_target" else option.replace("_", "-")
    with pytest.raises(ConfigError, match=f"--{name} with --more"):
        read_more(lab.option(**{option: value}))


@pytest.mark.parametrize(
    "given", [["--suite", "quick"], ["--board", "e1"], ["--target", "x"], ["--out", "elsewhere"]]
)
def test_the_command_refuses_them_even_where_they_change_nothing(lab: Lab, given: list[str]) -> None:
    """What is the default is a contradiction too, where somebody asks for it."""
    done = CliRunner().invoke(app, ["run", "--more", str(lab.run.path), *given], standalone_mode=False)
    assert isinstance(done.exception, ConfigError)
    assert f"{given[0]} " in str(done.exception)
    assert "--more" in str(done.exception)


def test_another_rack_is_refused(lab: Lab, tmp_path: Path) -> None:
    """Another name, another chip, a board that is gone: each is named with the rack file."""
    other = tmp_path / "other.yaml"
    for change, words in (
        ((f"name: {RACK}", "name: elsewhere"), [f"'{RACK}'", "'elsewhere'"]),
        (("id: e2, kind: virtual, target: esp32,", "id: e2, kind: virtual, target: esp32s3,"),
         ["board e2", "virtual-esp32 of kind virtual", "virtual-esp32s3"]),
        (("id: e2", "id: e3"), ["board e2", "no such board"]),
    ):  # fmt: skip
        assert change[0] in RACK_FILE
        other.write_text(RACK_FILE.replace(*change))
        with pytest.raises(ConfigError) as caught:
            read_more(lab.option(rack=other))
        for word in (*words, "other.yaml"):
            assert word in str(caught.value)


def test_a_board_in_quarantine_is_not_taken(lab: Lab) -> None:
    """Like a board that was asked for."""
    rack = load_rack(lab.rack)
    smells = Quarantine("e2", "2026-11-20T00:00:00Z", "me", "it smells")
    put(folder_of(rack, lab.run.path.parent), smells)
    with pytest.raises(RigError, match="e2"):
        read_more(lab.option())


def test_other_images_are_refused(lab: Lab, tmp_path: Path) -> None:
    """By their bytes, whatever their folder is called; the very same bytes elsewhere are taken."""
    with pytest.raises(ConfigError, match=r"another image .* measured as its firmware .*--firmware DIR"):
        read_more(lab.option(firmware=lab.builds["two"]))
    copy = tmp_path / "copy"
    shutil.copytree(lab.builds["two"], copy)
    campaign = read_more(lab.option(base=copy))
    assert campaign.more
    assert campaign.more.builds_of("base")[IMAGE].build_dir == copy
    gone = {**lab.info, "compared": {"firmware": {str(IMAGE): {"build_dir": "gone", "sha256": "0"}}}}
    lab.run.write_info(gone)
    with pytest.raises(ConfigError, match=r"measured as its base is not there: .*--base DIR"):
        read_more(lab.option())
