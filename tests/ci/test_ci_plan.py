# SPDX-License-Identifier: Apache-2.0
"""`hil ci plan`: what is measured for which event, and why the rest is not."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from hil.base.errors import ConfigError, ExitCode
from hil.boards.rack import load_rack
from hil.ci.conclusion import conclude
from hil.ci.event import (
    TARGETS_FILE,
    VIRTUAL_RACK,
    changed_files,
    kind_of,
    merge_base,
    read_event,
    read_targets,
)
from hil.ci.limits import Counting
from hil.ci.night import VirtualNight, add_runs, virtual_night
from hil.ci.plan import NOTHING_FLASHED, CiPlan, Leg, plan_event, read_plan, write_plan
from hil.run.plan import make_plan
from hil.thresholds import load_project
from hil.virtual.emulator.drivers import COUNTING
from tests.ci.ci_rig import BASE, HEAD, Repository, a_plan, leave_run, targets_file
from tests.in_process import hil
from tests.lab import ROOT, own_environment
from tests.make_records import change_info

JITTER = """\
schema: 1
bench: jitter
parameters:
  tick_hz: {choices: ["1000", "100"], default: "1000"}
metrics: {}
suites:
  quick: [{tick_hz: "1000"}]
  pr: [{tick_hz: ["1000", "100"]}]
"""
OWN, OTHER = {"full_name": "example/hil"}, {"full_name": "somebody/hil"}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """main with a rack for the esp32; the branch ``change`` off it."""
    made = Repository(tmp_path_factory.mktemp("first"))
    made.commit({**targets_file(["esp32", "esp32c3"], ["esp32"]), "firmware/a.c": "1", "docs/a.md": "1"})
    made.git("checkout", "--quiet", "-b", "change")
    return made


@pytest.fixture
def repository(first: Repository, tmp_path: Path) -> Repository:
    return first.copy(tmp_path / "repository")


def environment(tmp_path: Path, name: str, payload: dict[str, Any]) -> dict[str, str]:
    path = tmp_path / "event.json"
    path.write_text(json.dumps(payload))
    return {"GITHUB_EVENT_NAME": name, "GITHUB_EVENT_PATH": str(path), "GITHUB_SHA": HEAD}


def pull_request(origin: dict[str, str] | None) -> dict[str, Any]:
    head, base = {"sha": HEAD, "repo": origin}, {"sha": BASE, "repo": OWN}
    return {"pull_request": {"number": 7, "head": head, "base": base}}


GROUP = {"merge_group": {"head_sha": HEAD, "base_sha": BASE}}


@pytest.mark.parametrize(
    ("name", "payload", "expected"),
    [
        ("pull_request", pull_request(OWN), (BASE, "pr", 7, False)),
        ("pull_request", pull_request(OTHER), (BASE, "pr", 7, True)),
        ("pull_request", pull_request(None), (BASE, "pr", 7, True)),
        ("merge_group", GROUP, (BASE, "pr", 0, False)),
        *((name, None, ("", "nightly", 0, False)) for name in ("schedule", "workflow_dispatch", "push")),
    ],
)
def test_an_event_says_what_is_measured(
    tmp_path: Path, name: str, payload: dict[str, Any] | None, expected: tuple[str, str, int, bool]
) -> None:
    """The head itself is measured, not GitHub's merge; another or a deleted repository is a fork.

    A merge queue's commit is measured as a pull request is, on trusted ground. At night there is nothing to
    compare with, and everything is measured; no payload is needed.
    """
    variables = environment(tmp_path, name, payload or {})
    if payload is None:
        del variables["GITHUB_EVENT_PATH"]
    event = read_event(variables, tmp_path)
    assert event.head == HEAD
    assert (event.base_tip, event.trigger, event.pull_request or 0, event.fork) == expected


@pytest.mark.parametrize("where", ["actor", "author"])
def test_dependabot_is_as_a_fork(tmp_path: Path, where: str) -> None:
    """Its branch is here, and what it brings strangers have released; where a person runs it again, too."""
    payload, bot = pull_request(OWN), "dependabot[bot]"
    payload["pull_request"]["user"] = {"login": bot if where == "author" else "somebody"}
    actor = {"GITHUB_ACTOR": bot if where == "actor" else "somebody"}
    event = read_event(environment(tmp_path, "pull_request", payload) | actor, tmp_path)
    assert event.fork


@pytest.mark.parametrize(("name", "key"), [("pull_request", "pull_request"), ("merge_group", "head_sha")])
def test_an_event_that_says_too_little(tmp_path: Path, name: str, key: str) -> None:
    """Exit 2: which variable is not set, which file cannot be read, which key is missing; nothing is
    guessed."""
    for path, words in (("", "GITHUB_EVENT_PATH"), (str(tmp_path), "Is a directory"), ("/none", "No such")):
        with pytest.raises(ConfigError, match=words) as caught:
            read_event({"GITHUB_EVENT_NAME": name, "GITHUB_EVENT_PATH": path}, tmp_path)
        assert "'.'" not in str(caught.value)
    with pytest.raises(ConfigError, match=f"'{key}'"):
        read_event(environment(tmp_path, name, {} if key == name else {name: {}}), tmp_path)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("README.md", "documentation"),
        ("docs/img/path.svg", "documentation"),
        ("tests/gate/test_gate.py", "tests"),
        ("tools/soak.py", "tests"),
        ("firmware/README.md", "firmware"),
        ("firmware/components/link/esp/link.c", "firmware"),
        ("firmware/components/benches/publish.c", "ruler"),
        ("firmware/components/mqtt_link/publisher.c", "ruler"),
        ("hil/benches/test_publish.py", "harness"),
        ("thresholds/publish.yaml", "harness"),
        (".github/workflows/pr.yml", "harness"),
        ("something-new", "harness"),
    ],
)
def test_what_a_path_belongs_to(path: str, kind: str) -> None:
    """Only what is known to measure nothing is left out; the unknown is measured."""
    assert kind_of(path) == kind


def test_only_documentation(repository: Repository) -> None:
    """Every leg is skipped with the reason, and nothing is built. Moving a source into docs/ is no change of
    documentation: a renamed file counts at both places."""
    head = repository.commit({"docs/a.md": "2"})
    plan = plan_event(repository.path, read_event({}, repository.path))
    assert plan.head == head
    assert plan.build == plan.targets_of("rack") == ()
    (reason,) = {leg.skip for leg in plan.legs}
    assert reason.endswith("(docs/a.md)")
    assert (plan.outputs()["virtual"], plan.outputs()["nothing"]) == ("[]", "true")
    repository.git("mv", "firmware/a.c", "docs/a.c")
    repository.commit({})
    plan = plan_event(repository.path, read_event({}, repository.path))
    assert plan.changes == ("documentation", "firmware")
    assert plan.targets_of("rack") == ("esp32",)


def test_the_merge_base_is_compared_with(repository: Repository) -> None:
    """Not the tip of main: what others have merged since is not this change's."""
    start = repository.git("rev-parse", "main")
    head = repository.commit({"firmware/a.c": "2"})
    repository.git("checkout", "--quiet", "main")
    tip = repository.commit({"hil/new.py": ""})
    assert merge_base(repository.path, tip, head) == start
    assert changed_files(repository.path, start, head) == ("firmware/a.c",)


def test_a_shallow_clone_is_refused(repository: Repository, tmp_path: Path) -> None:
    """Without history there is no merge base: exit 2 and fetch-depth, never a silent guess."""
    main = repository.git("rev-parse", "main")
    repository.commit({"firmware/a.c": "2"})
    repository.commit({"firmware/a.c": "3"})
    shallow = Repository(tmp_path / "shallow")
    shallow.git("fetch", "--quiet", "--depth=1", f"file://{repository.path}", "change")
    shallow.git("checkout", "--quiet", "FETCH_HEAD")
    with pytest.raises(ConfigError, match="fetch-depth: 0"):
        merge_base(shallow.path, main, "HEAD")


def test_a_change_cannot_take_itself_off_the_racks(repository: Repository) -> None:
    """Which racks there are is read from the merge base; what to build, from the head."""
    repository.commit({**targets_file(["esp32s3"], []), "firmware/a.c": "2"})
    plan = plan_event(repository.path, read_event({}, repository.path))
    assert plan.targets_of("rack") == ("esp32",)
    assert plan.build == ("esp32s3", "esp32", *COUNTING)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ('{"racks": []}', "build is missing"),
        ('{"build": ["esp33"], "racks": []}', "did you mean 'esp32s3'"),
        ('{"build": "esp32", "racks": []}', "expected a list"),
        ('{"build": ["linux"], "racks": []}', "linux builds a host program"),
        ('{"build": [], "racks": ["linux"]}', "linux builds a host program"),
    ],
)
def test_a_wrong_targets_file(repository: Repository, text: str, words: str) -> None:
    """Exit 2 with file and commit."""
    head = repository.commit({TARGETS_FILE: text})
    with pytest.raises(ConfigError, match=words) as caught:
        read_targets(repository.path, head)
    assert f"{TARGETS_FILE} at {head[:12]}" in str(caught.value)


def test_the_checkouts_own_targets_file() -> None:
    """What is in the repository can be read, and names targets to build."""
    content = json.loads((ROOT / TARGETS_FILE).read_text())
    assert set(content) == {"build", "racks"}
    assert content["build"]


def test_the_merge_base_is_compared_with_on_a_virtual_rack(repository: Repository) -> None:
    """A leg of its own, in the suite pr whatever else is asked for; its boards are those of the rack file.
    main itself has no merge base: the reason is recorded, and the leg is not asked for a verdict."""
    plan = plan_event(repository.path, read_event({}, repository.path))
    assert plan.base == ""
    assert "no merge base" in plan.leg("compare").skip
    assert [entry["leg"] for entry in json.loads(plan.outputs()["virtual"])] == ["virtual"]
    rack = (ROOT / "hil/racks/virtual.yaml").read_text()
    repository.commit({"firmware/a.c": "2", "hil/racks/virtual.yaml": rack})
    plan = plan_event(repository.path, read_event({}, repository.path), suite="nightly")
    legs = {entry["leg"]: entry["suite"] for entry in json.loads(plan.outputs()["virtual"])}
    assert legs == {"virtual": "nightly", "compare": "pr"}
    assert plan.legs_of_alpha == 3  # with virtual and rack; what is exact has no share of alpha
    assert plan.virtual_targets == ("virtual-esp32", "virtual-esp32s3", "virtual-esp32c3")


def at_night(repository: Repository) -> CiPlan:
    head = repository.git("rev-parse", "HEAD")
    event = read_event({"GITHUB_EVENT_NAME": "schedule", "GITHUB_SHA": head}, repository.path)
    return plan_event(repository.path, event)


def test_a_night_measures_beside_the_references_in_force(repository: Repository) -> None:
    """Two while one takes the other's place: a leg for each, on the virtual rack and on each target's. Where
    nobody has chosen one the legs are there all the same, with none to build; a wrong file of them is exit 2
    with its line, before anything is built."""
    plan = at_night(repository)
    assert (plan.references, plan.leg("night-virtual").reference) == ((), "")
    first, second = "a" * 40, "b" * 40
    text = f"""\
schema: 1
references:
  - {{commit: {first}, since: 2020-01-01, until: 2999-01-01, why: first}}
  - {{commit: {second}, since: 2020-02-01, why: second}}
"""
    repository.commit({"thresholds/nightly/reference.yaml": text})
    plan = at_night(repository)
    assert plan.references == (first, second)
    nights = ["night-virtual", "night-esp32", "night-virtual-renewal", "night-esp32-renewal"]
    assert [leg.name for leg in plan.legs if leg.job.startswith("night")] == [*nights, "unchanged-esp32"]
    assert [leg.name for leg in plan.legs if leg.unchanged] == ["unchanged-esp32"]
    assert {leg.suite for leg in plan.legs if leg.job.startswith("night")} == {"pr"}
    assert plan.leg("night-virtual-renewal").reference == second
    outputs = plan.outputs()
    entry = {"leg": "night-virtual-renewal", "target": "", "suite": "pr", "minutes": 90}
    assert entry in json.loads(outputs["virtual"])
    racks = {entry["leg"]: entry["minutes"] for entry in json.loads(outputs["racks"])}
    racks_nights = dict.fromkeys(("night-esp32", "night-esp32-renewal", "unchanged-esp32"), 150)
    assert racks == {"rack-esp32": 300, **racks_nights}
    repository.commit({"thresholds/nightly/reference.yaml": "schema: 1\nreferences: [{commit: x}]\n"})
    with pytest.raises(ConfigError, match=r"reference\.yaml:2"):
        at_night(repository)


def test_only_what_nights_measured_enters_the_history(tmp_path: Path) -> None:
    """Each leg is told: without a run, or with one that may not enter; other legs are not looked at."""
    (tmp_path / "legs" / "night-esp32").mkdir(parents=True)
    change_info(leave_run(tmp_path / "legs" / "night-virtual"), trigger="pr")
    leave_run(tmp_path / "legs" / "virtual")
    said = list(add_runs(tmp_path / "legs", tmp_path / "history"))
    assert said[0] == "night-esp32: no run"
    assert said[1].startswith("night-virtual: left out: ")
    assert len(said) == 2
    assert not (tmp_path / "history").exists()


def test_a_plan_survives_the_disk(tmp_path: Path) -> None:
    """What a later job reads is what was planned; another format is refused."""
    plan = a_plan(["esp32", "esp32c3"])
    write_plan(plan, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == plan
    (tmp_path / "plan.json").write_text('{"schema": 2}')
    with pytest.raises(ConfigError, match="not a readable plan"):
        read_plan(tmp_path / "plan.json")


def test_a_change_of_tests_needs_no_chip() -> None:
    """Neither firmware nor what measures it has changed: only the virtual rack measures.

    So it does in a repository without hardware, with the reason.
    """
    alone = a_plan()
    because = [(leg.name, TARGETS_FILE in leg.skip) for leg in alone.legs]
    assert because == [("virtual", False), ("rack", True)]
    plan = a_plan(["esp32"], files=["tests/a.py", "docs/a.md"], emulated=True)
    assert [leg.name for leg in plan.legs if not leg.skip] == ["virtual"]
    assert {leg.skip for leg in plan.legs} == {"", NOTHING_FLASHED}
    assert plan.build == ()
    assert a_plan(["esp32"], files=["tests/a.py", "hil/a.py"]).build == ("esp32", "esp32c3")


def test_each_image_that_the_suite_needs_is_built(repository: Repository) -> None:
    """A case of the racks' suite with another tick: one more image a target.

    What is wrong in thresholds is the run's to tell; until then all that it may need is built.
    """
    repository.commit({"thresholds/jitter.yaml": JITTER, "firmware/a.c": "2"})
    event = read_event({}, repository.path)
    assert plan_event(repository.path, event, suite="quick").ticks_hz == (1000,)
    assert plan_event(repository.path, event).ticks_hz == (1000, 100)
    repository.commit({"thresholds/jitter.yaml": "colour: red\n"})
    assert plan_event(repository.path, read_event({}, repository.path)).ticks_hz == (1000, 100)


def test_the_command_for_people_and_for_github(repository: Repository, tmp_path: Path) -> None:
    """Without GitHub it prints what a pull request of HEAD would do; with it, the jobs' outputs too."""
    repository.commit({"firmware/a.c": "2"})
    output, plan = tmp_path / "output", tmp_path / "plan.json"
    env = {**own_environment(), "GITHUB_OUTPUT": str(output), "HIL_CI": str(tmp_path)}
    done = hil("ci", "plan", env=env, cwd=repository.path)
    assert done.returncode == 0, done.stdout
    assert "rack-esp32: " in done.stdout
    outputs = dict(line.split("=", 1) for line in output.read_text().splitlines())
    (rack,) = json.loads(outputs["racks"])
    assert (rack["leg"], rack["suite"]) == ("rack-esp32", "pr")
    assert json.loads(outputs["build"]) == ["esp32", "esp32c3"]
    # as the tool's own limits have it, where a repository has none
    assert read_plan(plan).ticks_hz == (1000,)


WELL = {"plan": "success", "virtual": "success"}


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """main with the real virtual rack and the real limits."""
    made = Repository(tmp_path_factory.mktemp("night"))
    (made.path / VIRTUAL_RACK).parent.mkdir(parents=True)
    shutil.copy(ROOT / VIRTUAL_RACK, made.path / VIRTUAL_RACK)
    shutil.copytree(ROOT / "thresholds", made.path / "thresholds")
    made.commit(targets_file())
    return made


def night_of(nights: Repository, suite: str = "") -> CiPlan:
    head = nights.git("rev-parse", "HEAD")
    event = read_event({"GITHUB_EVENT_NAME": "schedule", "GITHUB_SHA": head}, nights.path)
    return plan_event(nights.path, event, suite=suite)


def test_a_night_has_a_leg_for_each_bench(nights: Repository) -> None:
    """Together they measure each case of the suite that the boards can measure, and none twice."""
    plan = night_of(nights)
    assert plan.virtual_boards == ("v1", "v4")
    rack, limits = load_rack(nights.path / VIRTUAL_RACK), load_project(nights.path / "thresholds")

    def cases(suite: str) -> list[tuple[str, str]]:
        boards = make_plan(rack, limits, selection=suite, board_ids=("v1", "v4")).boards
        return sorted((one.board.id, case.case_id) for one in boards for case in one.cases)

    legs = [leg for leg in json.loads(plan.outputs()["virtual"]) if leg["leg"].startswith("virtual-")]
    assert len(legs) > 1
    assert {"virtual-publish", "virtual-http_gateway"} <= {leg["leg"] for leg in legs}
    assert sorted(pair for leg in legs for pair in cases(leg["suite"])) == cases("nightly")
    assert plan.legs_of_alpha >= len(legs)  # they share alpha
    write_plan(plan, nights.path / "plan.json")
    assert read_plan(nights.path / "plan.json") == plan


def test_what_is_asked_for_by_hand_is_shared_out_too(nights: Repository) -> None:
    """An expression keeps its meaning in each leg; what is wrong with it, one run of the whole tells."""
    suites = {leg.name: leg.suite for leg in night_of(nights, "publish or echo and qos=1").legs}
    assert suites["virtual-publish"] == "(publish or echo and qos=1) and publish"
    assert virtual_night(nights.path, "fastest") == VirtualNight()
    assert [leg.name for leg in night_of(nights, "fastest").legs if leg.job == "virtual"] == ["virtual"]


def test_a_pull_request_has_one_leg(nights: Repository) -> None:
    """Its suite is one run."""
    plan = plan_event(nights.path, read_event({}, nights.path))
    assert [leg.name for leg in plan.legs if leg.job == "virtual"] == ["virtual"]


def a_night() -> CiPlan:
    legs = tuple(Leg(f"virtual-{bench}", "virtual", f"quick and {bench}") for bench in ("publish", "echo"))
    return dataclasses.replace(a_plan(), legs=legs)


def leave(folder: Path, bench: str, *, suite: str = "") -> None:
    run = leave_run(folder / f"virtual-{bench}")
    change_info(run, suite=suite or f"quick and {bench}")


def test_the_legs_of_a_night_have_one_verdict(tmp_path: Path) -> None:
    """It passes where each of them does. Where a bench's job left nothing, the night has no verdict either.

    A run stands for the bench that the plan says, and for no other. Failed jobs: test_ci_verdict.py.
    """
    leave(tmp_path, "publish")
    verdict = conclude(a_night(), tmp_path, {**WELL, "virtual": "failure"})
    assert (verdict.exit_code, verdict.headline) == (ExitCode.RIG, "NO VERDICT: virtual-echo")
    leave(tmp_path, "echo", suite="quick and publish")
    verdict = conclude(a_night(), tmp_path, WELL, Counting())
    assert verdict.exit_code == ExitCode.RIG
    assert "'quick and echo'" in verdict.legs[1].sentence
    shutil.rmtree(tmp_path / "virtual-echo")
    leave(tmp_path, "echo")
    verdict = conclude(a_night(), tmp_path, WELL)
    assert (verdict.exit_code, verdict.headline) == (ExitCode.PASS, "PASS: virtual-publish, virtual-echo")
