# SPDX-License-Identifier: Apache-2.0
"""`hil ci build` and `hil ci measure`: which commands a leg runs, whatever becomes of its base."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from hil.boards.firmware.failure import read_failure
from hil.ci import measuring
from hil.ci.event import CiEvent, Targets
from hil.ci.measuring import HIL, BuildFailed, Workshop, environment_of, out_of
from hil.ci.plan import CiPlan, Leg, make_plan, write_plan
from hil.cli.app import run_command
from tests.ci.ci_rig import BASE, HEAD, Repository, a_plan
from tests.ci.git_process import git
from tests.lab import ROOT

CHIP = "esp32c3"
Call = tuple[str, ...]


class Shop:
    """A project's checkout, and `hil` as a recorder: it builds what SOURCE holds in the folder it runs in."""

    def __init__(self, folder: Path) -> None:
        self.repository = Repository(folder / "project")
        self.bundle = folder / "ci" / "bundle"
        self.calls: list[tuple[Path, Call]] = []
        self.broken: set[str] = set()

    def commit(self, source: str) -> str:
        return self.repository.commit({"node/SOURCE": source})

    def run(self, words: Sequence[str], folder: Path) -> int:
        assert tuple(words[:3]) == HIL
        call = tuple(words[3:])
        self.calls.append((folder, call))
        role = Path(call[call.index("--bundle") + 1]).name
        if role in self.broken:
            return 2
        source = folder / "SOURCE"
        into = Path(call[call.index("--bundle") + 1])
        into.mkdir(parents=True, exist_ok=True)
        (into / "image").write_text(source.read_text() if source.exists() else role)
        return 0

    def of(self, plan: CiPlan) -> Workshop:
        return Workshop(plan, self.repository.path, self.bundle, self.run)

    @property
    def built(self) -> list[str]:
        """What was built, in order: role and tick, and of which commit."""
        words = {"build", "--bundle", "--target", "--tick-hz"}
        calls = (" ".join(word for word in call if word not in words) for _, call in self.calls)
        return [call.replace(f"{self.bundle}/", "") for call in calls]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    def compare(head: Path, base: Path) -> list[SimpleNamespace]:
        same = (head / "image").read_text() == (base / "image").read_text()
        return [SimpleNamespace(target=CHIP, outcome="identical" if same else "different")]

    monkeypatch.setattr(measuring, "compare_bundles", compare)
    monkeypatch.setenv("HIL_RACK_FILE", "/rack.yaml")
    return Shop(tmp_path)


def own(**changes: object) -> CiPlan:
    plan = a_plan(["esp32"], compare=True, emulated=True)
    return dataclasses.replace(plan, compare_ticks_hz=(1000, 100), **changes)  # type: ignore[arg-type]


def a_night(*references: str) -> CiPlan:
    event = CiEvent("schedule", "nightly", HEAD)
    plan = make_plan(event, "", (), Targets(("esp32",), ("esp32",)), references=references)
    return dataclasses.replace(plan, virtual_boards=("v1", "v4"), virtual_targets=("virtual-esp32",))


def of_a_team(base: str, *legs: Leg) -> CiPlan:
    found = legs or (Leg("virtual", "virtual", "quick and qos=1", "virtual-esp32" if base else ""),)
    return dataclasses.replace(a_plan(), base=base, folder="node", ticks_hz=(1000, 100), legs=found)


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (own(), ["quick"]),
        (a_night(), ["nightly", "--board", "v1", "--board", "v4", "--no-report"]),
        (of_a_team(""), ["quick and qos=1"]),
    ],
    ids=["own", "night", "team"],
)
def test_the_virtual_rack_measures_the_suite_against_its_limits(
    shop: Shop, plan: CiPlan, words: list[str]
) -> None:
    """Nothing is built before: the run builds for itself. A suite is one word, whatever is in it.

    A night measures a board of each number of cores, and has one report of all its legs.
    """
    assert shop.of(plan).command(plan.leg("virtual")) == ["run", "--suite", *words, "--wait", "60"]
    assert shop.calls == []
    assert a_night().minutes_of(a_night().leg("virtual")) == 60


def test_the_merge_base_is_built_with_the_heads_benches(shop: Shop) -> None:
    """An edited bench is compared too, with each tick of its suite; head and base are measured in turns."""
    words = shop.of(own()).command(own().leg("compare"))
    ends = f"--at {BASE} --ruler-of HEAD --failure base-failure.json"
    assert shop.built == [f"virtual-esp32 {tick} base {ends}" for tick in (1000, 100)]
    base = ["--target", "virtual-esp32", "--base", str(shop.bundle / "base")]
    assert words == ["run", "--suite", "pr", *base, "--wait", "600"]


def test_a_merge_base_that_does_not_build_is_not_compared_with(shop: Shop) -> None:
    """The run is told where its build has said why; no part of it passes for the whole.

    Nor are instructions counted beside it.
    """
    shop.broken = {"base"}
    because = ["--no-base-because", str(shop.bundle / "base-failure.json")]
    words = shop.of(own()).command(own().leg("compare"))
    assert words[words.index(because[0]) :][:2] == because
    assert "--base" not in words
    assert not (shop.bundle / "base").exists()
    words = shop.of(own()).command(own().leg(f"emulated-{CHIP}"))
    assert (words[:2], words[-2:]) == (["cost", "--firmware"], because)


def test_a_chip_is_built_at_head_and_merge_base(shop: Shop) -> None:
    """The head's first, without which nothing is measured: the job ends with the status of its build then. A
    rack measures the bundle by the host's rack file, beside its merge base."""
    shop.of(own()).build_chip(CHIP)
    assert [line.split()[2] for line in shop.built] == ["head", "base"]
    shop.calls.clear()
    shop.broken = {"head"}
    with pytest.raises(BuildFailed) as failed:
        shop.of(own()).build_chip(CHIP)
    assert (failed.value.status, len(shop.calls)) == (2, 1)
    plan = own()
    words = shop.of(plan).command(plan.leg("rack-esp32"))
    head = str(shop.bundle / "head")
    given = ["--rack", "/rack.yaml", "--target", "esp32", "--suite", "pr", "--firmware", head]
    base = ["--base", str(shop.bundle / "base")]
    assert words == ["run", *given, *base, "--wait", "2400"]


@pytest.mark.parametrize(
    ("path", "compared"),
    [
        ("thresholds/publish.yaml", False),
        ("hil/gate/x.py", False),
        ("firmware/components/benches/publish.c", True),
        ("firmware/components/agent/run.c", True),
    ],
)
def test_an_identical_image_is_measured_by_a_new_harness(shop: Shop, path: str, compared: bool) -> None:
    """Where harness or limits changed, the same image may get another verdict, so limits alone judge it.

    Where benches changed, the run says that only the ruler did.
    """
    plan = a_plan(files=[path], emulated=True)
    for role, image in (("head", "a"), ("base", "a")):
        (shop.bundle / role).mkdir(parents=True)
        (shop.bundle / role / "image").write_text(image)
    leg = plan.leg(f"emulated-{CHIP}")
    assert ("--base" in shop.of(plan).command(leg)) is compared
    (shop.bundle / "base" / "image").write_text("b")
    assert "--base" in shop.of(plan).command(leg)


@pytest.mark.parametrize("builds", [True, False])
def test_a_night_measures_beside_its_reference(shop: Shop, builds: bool) -> None:
    """On the virtual rack and on racks; one that does not build leaves raw values."""
    shop.broken = set() if builds else {"reference", BASE}
    plan = a_night(BASE)
    shop.of(plan).build_chip("esp32")
    virtual = shop.of(plan).command(plan.leg("night-virtual"))
    beside = shop.bundle / "reference"
    expected = ["--reference", str(beside)] if builds else []
    assert virtual == ["run", "--suite", "pr", "--boots", "6", *expected, "--wait", "600"]
    words = shop.of(plan).command(plan.leg("night-esp32"))
    assert ("--reference" in words) is builds
    assert words[-2:] == ["--wait", "3600"]
    qualified = shop.of(plan).command(plan.leg("unchanged-esp32"))
    assert "--unchanged" in qualified
    assert "--reference" not in qualified


def test_a_teams_base_is_built_in_a_tree_of_its_own(shop: Shop) -> None:
    """Head and base with each tick, each from its own folder; the checkout stays at the head."""
    base, head = shop.commit("base"), shop.commit("head")
    words = shop.of(of_a_team(base)).command(of_a_team(base).leg("virtual"))
    trees = (shop.repository.path / "node", shop.bundle.parent / "base-tree" / "node")
    assert [folder for folder, _ in shop.calls] == [tree for tree in trees for _tick in (1000, 100)]
    bundles = ["--firmware", str(shop.bundle / "head"), "--base", str(shop.bundle / "base")]
    suite = ["--suite", "quick and qos=1", "--target", "virtual-esp32"]
    assert words == ["run", *suite, *bundles, "--wait", "60"]
    assert git(shop.repository.path, "rev-parse", "HEAD") == head
    assert not git(shop.repository.path, "status", "--porcelain")


def test_a_product_is_built_beside_hils_firmware(shop: Shop) -> None:
    """Of the head and of the base, each from its own tree; where probes alone measure, nothing of hil's.

    The product is what has a base on a rack then.
    """
    base, _ = shop.commit("base"), shop.commit("head")
    plan = dataclasses.replace(of_a_team(base), product="node", ticks_hz=(1000,))
    shop.of(plan).build_chip("esp32")
    trees = (shop.repository.path, shop.bundle.parent / "base-tree")
    products = [call[2] for _, call in shop.calls if call[1] == "-C"]
    assert products == [str(tree / "node") for tree in trees]
    assert len(shop.calls) == 4
    shop.calls.clear()
    leg = Leg("rack-esp32", "rack", "quick", "esp32")
    probed = dataclasses.replace(plan, ticks_hz=(), changes=("firmware",), legs=(leg,))
    assert probed.images_of(leg) == ("esp32+product",)
    shop.broken = {"base"}
    shop.of(probed).build_chip("esp32")
    assert [call[1] for _, call in shop.calls] == ["-C", "-C"]
    assert "--no-base-because" in shop.of(probed).command(leg)


@pytest.mark.parametrize(("base", "cause"), [("head", "identical"), ("", "sources"), ("broken", None)])
def test_a_teams_base_that_cannot_be_compared_with(shop: Shop, base: str, cause: str | None) -> None:
    """The run is told why: the same image, no such folder; without the file nothing proves a cause."""
    commit = shop.commit(base) if base else shop.repository.commit({"README": ""})
    shop.commit("head")
    shop.broken = {"base"} if base == "broken" else set()
    words = shop.of(of_a_team(commit)).command(of_a_team(commit).leg("virtual"))
    assert "--base" not in words
    failure = Path(words[words.index("--no-base-because") + 1])
    assert failure.exists() is (cause is not None)
    if cause:
        assert read_failure(failure)[0] == cause


def test_an_emulators_leg_measures_what_was_built_in_the_projects_rack(shop: Shop) -> None:
    """On the boards of its chip, in turns with the base; a base that did not build is told."""
    leg = Leg("esp-emu-esp32c6", "emulator", "quick", "esp32c6")
    words = ["run", "--suite", "quick", "--target", "emulated-esp32c6"]
    words += ["--firmware", str(shop.bundle / "head")]
    assert shop.of(of_a_team("", leg)).command(leg) == [*words, "--wait", "600"]
    failure = str(shop.bundle / "base-failure.json")
    assert shop.of(of_a_team(BASE, leg)).command(leg)[len(words) : -2] == ["--no-base-because", failure]
    (shop.bundle / "base").mkdir(parents=True)
    base = ["--base", str(shop.bundle / "base")]
    assert shop.of(of_a_team(BASE, leg)).command(leg)[len(words) : -2] == base


def test_a_pinned_emulator_is_installed_where_it_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the project's own file; what does not install ends the job with its status."""
    leg = Leg("esp-emu-esp32c6", "emulator", "quick", "esp32c6")
    (tmp_path / "node" / "hil").mkdir(parents=True)
    (tmp_path / "node" / "hil.toml").write_text("")
    pinned = tmp_path / "node" / "hil" / "esp-emu.sha256"
    pinned.write_text(f"{'0' * 64}  esp-emu-0.45.0-{os.uname().machine}-unknown-linux-gnu.tar.gz\n")
    write_plan(of_a_team("", leg), tmp_path / "plan.json")
    curl, became = tmp_path / "bin" / "curl", list[object]()
    curl.parent.mkdir()
    curl.write_text("#!/bin/sh\nexit 22\n")
    curl.chmod(0o755)
    monkeypatch.setattr(os, "execvpe", lambda *words: became.append(words))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HIL_CI", ".")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{curl.parent}:/usr/bin:/bin")
    assert run_command(["ci", "measure", leg.name]) == 22
    assert not became
    emulator = curl.with_name("esp-emu")
    emulator.write_text("#!/bin/sh\necho esp-emu 0.45.0\n")
    emulator.chmod(0o755)
    assert run_command(["ci", "measure", leg.name]) == 0
    assert became


def test_results_are_where_the_project_has_them(tmp_path: Path) -> None:
    """Beside its hil.toml, which may lie above the folder that is measured."""
    (tmp_path / "app" / "main").mkdir(parents=True)
    (tmp_path / "app" / "hil.toml").write_text("")
    assert out_of(tmp_path / "app" / "main") == tmp_path / "app" / "out"


def test_a_measurement_takes_the_commands_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A signal of a cancelled job reaches it; it ends before the job, and knows how many legs share alpha."""
    plan = own()
    write_plan(plan, tmp_path / "plan.json")
    became: list[object] = []
    monkeypatch.setattr(os, "execvpe", lambda *words: became.extend(words))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HIL_CI", ".")
    assert run_command(["ci", "measure", "virtual"]) == 0
    limit = ["timeout", "--signal=TERM", "--kill-after=30s", "40m"]
    assert became[:2] == ["timeout", [*limit, *HIL, "run", "--suite", "quick", "--wait", "60"]]
    assert environment_of(plan) == {"HIL_TRIGGER": "pr", "HIL_BASE_SHA": BASE, "HIL_LEGS": "3"}
    assert environment_of(plan).items() <= became[2].items()  # type: ignore[attr-defined]
    capsys.readouterr()
    assert run_command(["ci", "measure", "night"]) == 2
    assert "no leg 'night'" in capsys.readouterr().err


def test_no_leg_is_of_a_job_that_measure_yml_lacks() -> None:
    """Each leg has a time, and a job of the workflow whose matrix it is in."""
    text = (ROOT / ".github" / "workflows" / "measure.yml").read_text()
    for plan in (own(), a_night(BASE)):
        for leg in plan.legs:
            assert plan.minutes_of(leg) > 0
            assert f"\n  {leg.measured_by}:" in text
