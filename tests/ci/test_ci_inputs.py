# SPDX-License-Identifier: Apache-2.0
"""`hil ci plan` of a project: what another repository asks of measure.yml is checked, and becomes a plan."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from hil.base.errors import ConfigError
from hil.ci.event import CiEvent
from hil.ci.inputs import DEFAULTS, Asked, check_inputs, plan_asked
from hil.ci.plan import COMPARED_TARGET, read_plan, write_plan
from tests.ci.ci_rig import Repository
from tests.in_process import hil
from tests.lab import ROOT, own_environment
from tests.team_bench import TEAM

CMAKE = "include($ENV{IDF_PATH}/tools/cmake/project.cmake)\nproject(sensor)\n"
TOML = 'schema = 1\n[firmware]\nfolder = "app"\ntargets = ["esp32", "esp32c3"]\n'
PROJECT = {"node/hil.toml": TOML, "node/app/CMakeLists.txt": CMAKE, "docs/index.md": "words\n"}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A team's repository with a project in a folder of it, and a branch off its main one."""
    repository = Repository(tmp_path_factory.mktemp("first"))
    repository.commit(PROJECT)
    repository.git("checkout", "--quiet", "-b", "feature")
    repository.commit({"node/app/main.c": "int main;\n"})
    return repository


@pytest.fixture
def team(first: Repository, tmp_path: Path) -> Repository:
    return first.copy(tmp_path / "team")


def event_of(team: Repository, *, name: str = "pull_request", fork: bool = False) -> CiEvent:
    head, tip = team.git("rev-parse", "HEAD"), team.git("rev-parse", "main")
    return CiEvent(name, "pr", head, tip, "team/sensor", 3, fork)


def ask(team: Repository, given: Mapping[str, str], **words: bool) -> Asked:
    return check_inputs({"firmware-path": "node", **given}, team.path, event_of(team, **words))  # type: ignore[arg-type]


def test_without_inputs_the_virtual_rack_measures(team: Repository) -> None:
    """The defaults ask for one leg, compare with the merge base, and build nothing with ESP-IDF."""
    asked = ask(team, {})
    plan = plan_asked(asked, event_of(team))
    assert [(leg.name, leg.job, leg.suite) for leg in plan.legs] == [("virtual", "virtual", "quick")]
    assert (plan.build, plan.base) == ((), team.git("rev-parse", "main"))
    assert (plan.changes, asked.targets) == (("firmware",), ("esp32", "esp32c3"))
    assert (plan.leg("virtual").target, plan.limits) == (COMPARED_TARGET, "node/hil/thresholds")
    assert [leg["leg"] for leg in plan.matrix_of("virtual")] == ["virtual"]


def test_each_mode_and_chip_is_a_leg(team: Repository) -> None:
    """Chips are those of hil.toml; of the emulated only those that count; what is exact shares no alpha.

    The plan is written and read as pr.yml's is.
    """
    asked = ask(team, {"mode": "rack emulated virtual", "rack-label": "hil-berlin", "suite": "nightly"})
    plan = plan_asked(asked, event_of(team, fork=True))
    assert [leg.name for leg in plan.legs] == ["virtual", "rack-esp32", "rack-esp32c3", "emulated-esp32c3"]
    assert (plan.legs_of_alpha, plan.fork, plan.rack_label) == (3, True, "hil-berlin")
    assert (plan.build, plan.targets_of("emulated")) == (("esp32", "esp32c3"), ("esp32c3",))
    assert plan.ticks_hz == (1000, 100)  # the suite has cases of either
    write_plan(plan, team.path / "plan.json")
    assert read_plan(team.path / "plan.json") == plan


RACK = """\
schema: 1
name: node
host: {interface: hil0, address: 10.77.0.1}
access_point: {type: virtual, profile: lab, ssid: lab}
boards:
  - {id: e1, kind: emulated, target: esp32c6, emulator: esp-emu, mac: "02:00:00:77:00:0e"}
  - {id: e2, kind: emulated, target: esp32s3, emulator: esp-emu, mac: "02:00:00:77:00:0f"}
"""


def test_a_pinned_emulator_measures_each_chip_that_the_rack_file_emulates(team: Repository) -> None:
    """Those among the targets, beside the legs that count. Without a digest the plan says why."""
    team.commit({"node/hil/rack.yaml": RACK})
    given = {"mode": "emulated", "targets": "esp32c3 esp32c6", "suite": "quick"}
    plan = plan_asked(ask(team, given), event_of(team))
    leg = plan.leg("esp-emu-esp32c6")
    assert leg.skip.startswith("hil/esp-emu.sha256 ")
    assert plan.build == ("esp32c3",)
    assert plan.outputs()["emulators"] == "[]"
    archive = f"esp-emu-0.45.0-{os.uname().machine}-unknown-linux-gnu.tar.gz"
    with pytest.raises(ConfigError, match=r"hil/rack\.yaml .*hil/esp-emu\.sha256"):
        ask(team, {**given, "targets": "esp32c6"})
    team.commit({"node/hil/esp-emu.sha256": f"{'0' * 64}  {archive}\n"})
    plan = plan_asked(ask(team, given), event_of(team))
    assert [(leg.name, leg.suite, leg.skip) for leg in plan.legs] == [
        ("emulated-esp32c3", "sealed", ""),
        ("esp-emu-esp32c6", "quick", ""),
    ]
    assert (plan.build, plan.legs_of_alpha) == (("esp32c3", "esp32c6"), 1)
    assert [one["leg"] for one in plan.matrix_of("emulator")] == ["esp-emu-esp32c6"]
    assert (plan.leg("esp-emu-esp32c6").board_target, plan.ticks_hz) == ("emulated-esp32c6", (1000,))
    alone = plan_asked(ask(team, {**given, "targets": "esp32c6"}), event_of(team))
    assert [leg.name for leg in alone.legs] == ["esp-emu-esp32c6"]


def test_the_products_own_image_is_built_where_probes_measure_it(team: Repository) -> None:
    """Its ESP-IDF project is named, and no image of hil's is where the suite has only probes."""
    limits = (TEAM / "wake_up.yaml").read_text().replace("bench: wake_up", "bench: ack")
    team.commit({"node/hil/thresholds/ack.yaml": limits, "node/hil/benches/ack.probe.yaml": "schema: 1\n"})
    given = {"mode": "rack", "rack-label": "hil"}
    for suite, product, ticks_hz in (
        ("quick and ack", "node/app", ()),
        ("quick and publish", "", (1000,)),
        ("quick", "node/app", (1000,)),
    ):
        plan = plan_asked(ask(team, {**given, "suite": suite}), event_of(team))
        assert (plan.product, plan.ticks_hz) == (product, ticks_hz), suite


def test_a_base_is_a_commit(team: Repository) -> None:
    """merge-base is where the pull request began; a name is looked up; on main's own tip there is none.

    Who wants limits alone says so.
    """
    base = team.git("rev-parse", "main")
    for name in ("merge-base", "main", base, base[:12]):
        assert ask(team, {"base": name}).base == base
    # of branches a checkout has the remote ones only
    team.git("update-ref", "refs/remotes/origin/stable", base)
    assert ask(team, {"base": "stable"}).base == base
    assert ask(team, {"base": "none"}).base == ""
    team.git("checkout", "--quiet", "main")
    assert ask(team, {"base": "merge-base"}).base == ""


def test_the_project_may_lie_above_the_folder(team: Repository) -> None:
    """As `hil` finds it from there; but not above the repository."""
    assert ask(team, {"firmware-path": "node/app"}).project.root == team.path.resolve() / "node"
    (team.path.parent / "hil.toml").write_text(TOML)
    with pytest.raises(ConfigError, match=r"firmware-path: '.' has no hil.toml.*`hil init`"):
        ask(team, {"firmware-path": "."})


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"mode": "virtuel"}, "virtual, emulated, rack;"),
        ({"mode": "virtual virtual"}, "each once"),
        ({"firmware-path": "/etc"}, "no path below the repository; allowed is"),
        ({"firmware-path": "node/../.."}, "no path below the repository"),
        ({"firmware-path": "node\n::x::"}, "no path below the repository"),
        ({"firmware-path": "nodes"}, "no folder"),
        ({"firmware-path": "docs"}, "no hil.toml"),
        ({"idf-version": "latest"}, "from v5.5 on; allowed is"),
        ({"idf-version": "v5.4.2"}, "from v5.5 on"),
        ({"idf-version": "v5.5.4@sha256:1"}, "from v5.5 on"),
        ({"idf-version": "v5.5.4 --privileged"}, "from v5.5 on"),
        ({"targets": "esp32s9"}, "no chip; did you mean"),
        ({"mode": "emulated", "targets": "esp32"}, "is needed: esp32c3"),
        ({"mode": "rack", "rack-label": ""}, "the mode rack needs the label"),
        ({"mode": "rack", "rack-label": "a b"}, "no runner's label; allowed are"),
        ({"suite": "quik"}, "selects nothing:"),
        ({"suite": "$(touch pwned)"}, "selects nothing:"),
        ({"base": "--output=x"}, "no name of a commit; allowed are merge-base, none,"),
        ({"base": "release"}, "no commit, branch or tag"),
        ({"modes": "rack"}, "'modes'; did you mean 'mode'?"),
    ],
)
def test_a_wrong_input_is_named(team: Repository, given: dict[str, str], why: str) -> None:
    """The sentence has its name, its value and what is allowed, and says where to correct it."""
    with pytest.raises(ConfigError) as caught:
        ask(team, given)
    name, value = list(given.items())[-1]
    said = caught.value.sentence
    assert why in said
    assert name == "modes" or f"{name}: {' '.join(value.split())!r}" in said
    assert "below `with:`" in caught.value.next_step


def test_all_wrong_inputs_are_named_at_once(team: Repository) -> None:
    """One run of the workflow tells all."""
    with pytest.raises(ConfigError, match=r"3 inputs .*mode: .* idf-version: .* base: "):
        ask(team, {"firmware-path": "node", "mode": "virtual virtual", "idf-version": "x", "base": "x"})


@pytest.mark.parametrize("name", ["pull_request_target", "workflow_run"])
def test_an_event_that_hands_a_fork_the_token_is_refused(team: Repository, name: str) -> None:
    """Whatever the inputs are."""
    with pytest.raises(ConfigError, match=f"the event {name} "):
        check_inputs({"firmware-path": "node"}, team.path, event_of(team, name=name))


def test_the_workflow_has_these_inputs() -> None:
    """measure.yml declares each and says its default; its plan hands on each, and each output, by name.

    docs/operate/another-repository.md has a row for each, in this order, with its default.
    """
    workflow = YAML(typ="safe").load(ROOT / ".github" / "workflows" / "measure.yml")
    declared = workflow["on"]["workflow_call"]["inputs"]
    assert list(declared) == list(DEFAULTS)
    for name, default in DEFAULTS.items():
        told = declared[name]["default"] or declared[name]["description"]
        assert default in told, name
    plan = workflow["jobs"]["plan"]
    (step,) = [step for step in plan["steps"] if step.get("id") == "plan"]
    given = {f"HIL_INPUT_{name.replace('-', '_').upper()}": f"${{{{ inputs.{name} }}}}" for name in DEFAULTS}
    assert given.items() <= step["env"].items()
    used = set(re.findall(r"needs\.plan\.outputs\.([\w-]+)", str(workflow["jobs"])))
    assert used == set(plan["outputs"])
    page = (ROOT / "docs" / "operate" / "another-repository.md").read_text()
    table = page.partition("| input |")[2].partition("\n\n")[0]
    rows = dict(re.findall(r"^\| `([\w-]+)` \| (.*) \|$", table, re.MULTILINE))
    assert list(rows) == list(DEFAULTS)
    assert [name for name, default in DEFAULTS.items() if default and f"`{default}`" not in rows[name]] == []


def test_the_command_writes_plan_and_outputs(team: Repository, tmp_path: Path) -> None:
    """As a step runs it: inputs by the environment, outputs for later jobs; a wrong one in the summary."""
    output, summary = tmp_path / "output", tmp_path / "summary"
    repo = {"full_name": "team/sensor"}
    commits = {"head": team.git("rev-parse", "HEAD"), "base": team.git("rev-parse", "main")}
    sides = {side: {"sha": commit, "repo": repo} for side, commit in commits.items()}
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": {"number": 3, **sides}}))
    github = {
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_OUTPUT": str(output),
        "GITHUB_STEP_SUMMARY": str(summary),
        "HIL_INPUT_MODE": "virtual",
        "HIL_INPUT_FIRMWARE_PATH": "node",
        "HIL_INPUT_BASE": "merge-base",
    }

    def run(**more: str) -> subprocess.CompletedProcess[str]:
        env = {**own_environment(), **github, "HIL_CI": str(tmp_path), **more}
        return hil("ci", "plan", env=env, cwd=team.path)

    done = run()
    assert done.returncode == 0, done.stdout
    assert read_plan(tmp_path / "plan.json").base == team.git("rev-parse", "main")
    lines = dict(line.split("=", 1) for line in output.read_text().splitlines())
    (leg,) = json.loads(lines["virtual"])
    assert (leg["leg"], leg["suite"], lines["build"]) == ("virtual", "quick", "[]")
    done = run(HIL_INPUT_SUITE="quick\n::add-mask::x")
    assert done.returncode == 2
    assert "suite: 'quick ::add-mask::x'" in done.stdout
    assert os.linesep + "::" not in done.stdout
    assert "# NOT MEASURED: " in summary.read_text()
