# SPDX-License-Identifier: Apache-2.0
"""A release: built once from a tag, with all that is in it named; the container's steps do what they say."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import hil
from tests.ci.act import copy_checkout
from tests.ci.containerfile import build_and_run, instructions
from tests.ci.elsewhere import LOCKS, commit_all, link_environment, seed_environment
from tests.ci.git_process import git
from tests.lab import ROOT, own_environment

WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"
CONTAINERFILE = ROOT / "Containerfile"
TAG = f"v{hil.__version__}"
NAME = f"esp_hil-{hil.__version__}"
PLUGIN = f"pytest_esp_hil-{hil.__version__}-py3-none-any.whl"
NOTES = "- Something new.\n"


def load(path: Path) -> Any:
    return YAML(typ="safe").load(path)


def release(
    checkout: Path, tag: str = TAG, umask: int = 0o022, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run the workflow's own step in a private repository, without a network to fetch from."""
    (command,) = [step["run"] for step in load(WORKFLOW)["jobs"]["build"]["steps"] if step["name"] == "Build"]
    offline = {"PIP_NO_INDEX": "1", "npm_config_offline": "true", "TAG": tag, "VISIBILITY": "private"}
    argv = ["bash", "-euo", "pipefail", "-c", command]
    return subprocess.run(
        argv, cwd=checkout, env={**own_environment(), **offline, **env}, umask=umask, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False, timeout=300,
    )  # fmt: skip


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this checkout whose commit is tagged, with a section of the changelog."""
    folder = tmp_path_factory.mktemp("release") / "checkout"
    copy_checkout(folder)
    changelog = folder / "CHANGELOG.md"
    section = f"## Unreleased\n\n## {hil.__version__} (2026-12-01)\n\n{NOTES}\n## 0.0.1\n\n- Old.\n"
    known = changelog.read_text().replace(f"## {hil.__version__} ", "## 0.0.2 ")
    changelog.write_text(known.replace("## Unreleased\n", section, 1))
    git(folder, "init", "--quiet")
    git(folder, "remote", "add", "origin", "https://github.example/example/hil.git")
    commit_all(folder)
    git(folder, "tag", TAG)
    link_environment(folder)
    return folder


@pytest.fixture(scope="module")
def files(checkout: Path) -> Mapping[str, Path]:
    """What is released, by name."""
    done = release(checkout)
    assert done.returncode == 0, done.stdout
    return {path.name: path for path in (checkout / "out" / "release").iterdir()}


def pins(*locks: str) -> dict[tuple[str, str], set[str]]:
    """Return the hashes of each pinned package of lock files."""
    found = {}
    for lock in locks:
        text = (ROOT / lock).read_text().replace("\\\n", " ")
        for name, version, rest in re.findall(r"^([\w.-]+)==(\S+)(.*)$", text, re.MULTILINE):
            found[name, version] = set(re.findall("--hash=sha256:([0-9a-f]{64})", rest))
    return found


@pytest.mark.slow
@pytest.mark.heavy
def test_a_release_is_wheel_sources_lists_and_locks(files: Mapping[str, Path], checkout: Path) -> None:
    """All of one commit, with the digests of all beside them, and the section of the changelog as notes."""
    lists = {f"{NAME}.cdx.json", f"{NAME}-report.cdx.json"}
    locks = {"requirements.lock", "requirements-build.lock", "requirements-nodeps.lock"}
    assert files.keys() == {
        f"{NAME}-py3-none-any.whl",
        f"{NAME}.tar.gz",
        PLUGIN,
        *lists,
        *locks,
        "SHA256SUMS",
    }
    argv = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    folder = files["SHA256SUMS"].parent
    assert subprocess.run(argv, cwd=folder, check=False, timeout=60).returncode == 0
    assert len(files["SHA256SUMS"].read_text().splitlines()) == len(files) - 1
    stamp = json.loads(zipfile.ZipFile(files[f"{NAME}-py3-none-any.whl"]).read("hil/data/build.json"))
    commit = git(checkout, "rev-parse", "HEAD")
    assert stamp == {"commit": commit, "dirty": False, "repository": "example/hil"}
    notes, _, unsigned = (checkout / "out" / "release-notes.md").read_text().strip().partition("\n\n")
    assert (notes, unsigned[:19]) == (NOTES.strip(), "Nothing is attested")


@pytest.mark.slow
@pytest.mark.heavy
def test_each_locked_package_is_listed(files: Mapping[str, Path]) -> None:
    """By name, version, digests and licences: Python packages, and those that npm fetches."""
    listed = json.loads(files[f"{NAME}.cdx.json"].read_text())
    assert (listed["bomFormat"], listed["metadata"]["component"]["version"]) == ("CycloneDX", hil.__version__)
    found = {}
    for component in listed["components"]:
        assert component["purl"] == f"pkg:pypi/{component['name']}@{component['version']}"
        references = [hash_ for one in component["externalReferences"] for hash_ in one.get("hashes", ())]
        found[component["name"], component["version"]] = {hash_["content"] for hash_ in references}
    assert found == pins("requirements.lock", "requirements-nodeps.lock")
    licences = {one["name"]: one["licenses"] for one in listed["components"]}
    assert all(licences.values())
    assert licences["esptool"] == [{"license": {"acknowledgement": "declared", "id": "GPL-2.0-or-later"}}]

    lock = json.loads((ROOT / "reports" / "site" / "package-lock.json").read_text())
    placed = {place: facts["version"] for place, facts in lock["packages"].items() if place}
    wanted = {(place.rpartition("node_modules/")[2], version) for place, version in placed.items()}
    listed = json.loads(files[f"{NAME}-report.cdx.json"].read_text())
    assert {(one["name"], one["version"]) for one in listed["components"]} == wanted
    assert all(one["licenses"] for one in listed["components"])
    assert len(wanted) > 100


@pytest.mark.slow
@pytest.mark.heavy
def test_a_commit_gives_the_same_bytes(files: Mapping[str, Path], checkout: Path, tmp_path: Path) -> None:
    """In another folder, later, with another time zone and locale, from files that only their owner reads."""
    copy = tmp_path / "elsewhere" / "copy"
    clone = ["git", "clone", "--quiet", str(checkout), str(copy)]
    subprocess.run(clone, check=True, timeout=120, umask=0o077)
    git(copy, "remote", "set-url", "origin", git(checkout, "remote", "get-url", "origin"))
    link_environment(copy)
    done = release(copy, umask=0o077, TZ="Pacific/Auckland", LC_ALL="C.UTF-8")
    assert done.returncode == 0, done.stdout
    again = (copy / "out" / "release" / "SHA256SUMS").read_text()
    assert again == files["SHA256SUMS"].read_text()
    assert (copy / "pyproject.toml").stat().st_mode & 0o777 == 0o600, "control"


@pytest.mark.slow
@pytest.mark.heavy
def test_the_sources_build_the_same_wheel(files: Mapping[str, Path], tmp_path: Path) -> None:
    """Byte for byte but for the commit, which an archive does not know; by the locked backend alone."""
    unpack = ["tar", "-x", "-C", str(tmp_path), "-f", str(files[f"{NAME}.tar.gz"])]
    subprocess.run(unpack, check=True, timeout=60)
    argv = [str(ROOT / ".venv/release/bin/python"), "-m", "build", "--no-isolation", "--wheel"]
    sources = tmp_path / NAME
    done = subprocess.run(
        [*argv, "--outdir", str(tmp_path / "out"), str(sources)], capture_output=True, text=True,
        check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    (built,) = (tmp_path / "out").glob("*.whl")
    one, other = (
        {(info.filename, info.CRC) for info in zipfile.ZipFile(wheel).infolist()}
        for wheel in (built, files[f"{NAME}-py3-none-any.whl"])
    )
    assert {name.rpartition("/")[2] for name, _ in one ^ other} == {"build.json", "RECORD"}


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["tag", "commit", "dirty", "changelog"])
def test_what_the_tag_does_not_say_is_not_released(checkout: Path, tmp_path: Path, wrong: str) -> None:
    """Another version, a later commit, an edited file, a changelog without the version: each is told."""
    copy = tmp_path / "copy"
    subprocess.run(["git", "clone", "--quiet", str(checkout), str(copy)], check=True, timeout=120)
    tag, said = TAG, {
        "tag": f"v9.9.9, and hil/__init__.py says {hil.__version__}", "dirty": f"differ from the tag {TAG}",
        "commit": f"not the commit of the tag {TAG}", "changelog": f"no section '## {hil.__version__}'",
    }[wrong]  # fmt: skip
    if wrong == "tag":
        tag = "v9.9.9"
    elif wrong == "commit":
        (copy / "more").write_text("")
        commit_all(copy)
    elif wrong == "dirty":
        (copy / "README.md").write_text("")
    else:
        changelog = copy / "CHANGELOG.md"
        changelog.write_text(changelog.read_text().replace(f"## {hil.__version__} ", "## 0.0.9 "))
        commit_all(copy)
        git(copy, "tag", "--force", TAG)
    link_environment(copy)
    done = release(copy, tag)
    assert done.returncode == 2, done.stdout
    assert said in done.stdout
    assert not (copy / "out").exists()


def test_what_signs_or_publishes_runs_nothing_of_the_repository() -> None:
    """Signing is GitHub's actions alone; publishing is one command on files that were attested before."""
    jobs = load(WORKFLOW)["jobs"]
    assert all("actions/" in step["uses"] for step in jobs["attest"]["steps"])
    (command,) = [step["run"] for step in jobs["publish"]["steps"] if "run" in step]
    assert command.startswith("gh release create ")
    assert set(jobs["publish"]["needs"]) == {"image", "attest"}
    assert set(jobs["attest"]["needs"]) == {"build", "image"}
    given = [step["with"] for step in jobs["attest"]["steps"]]
    (subject,) = [one["subject-path"] for one in given if "subject-path" in one]
    (fetched,) = [step["with"] for step in jobs["attest"]["steps"] if "download" in step["uses"]]
    assert subject == f"{fetched['path']}/*"
    for name, job in jobs.items():
        assert "id-token" not in job["permissions"] or name == "attest"
        assert job["permissions"].get("contents") == ("write" if name == "publish" else "read")


@pytest.mark.slow
def test_the_containerfile_is_clean(tmp_path: Path) -> None:
    """hadolint has nothing to say of it, not even as advice; control: it finds what is not pinned."""
    argv = [str(ROOT / ".venv" / "bin" / "hadolint"), "--failure-threshold", "style"]
    done = subprocess.run(
        [*argv, str(CONTAINERFILE)], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "")
    (tmp_path / "Containerfile").write_text("FROM debian\nRUN pip install hil\n")
    argv.append(str(tmp_path / "Containerfile"))
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert {"DL3006", "DL3013"} <= set(re.findall(r"DL\d+", done.stdout))


@pytest.mark.slow
@pytest.mark.heavy
def test_the_steps_of_the_container_install_the_wheel(
    files: Mapping[str, Path], checkout: Path, tmp_path: Path
) -> None:
    """In a root laid over this machine's: the release's wheel is what the entry point runs, as a user.

    No engine and no base image are to be had here; the packages of the locks are this environment's.
    """
    if os.geteuid() != 0 and subprocess.run(["sudo", "-n", "true"], check=False).returncode:
        pytest.skip("mounts need root or sudo")
    seed_environment(tmp_path / "opt", ROOT)
    room = tmp_path / "room"
    room.mkdir()
    prepared = f'mkdir -p "$ROOM/root/opt" && cp -a {shlex.quote(str(tmp_path / "opt"))} "$ROOM/root/opt/hil"'
    asked = "/opt/hil/bin/python -c 'import hil, os; print(hil.__file__, os.getuid(), os.getcwd())'"
    done = build_and_run(CONTAINERFILE, checkout, room, ["% --version", asked], prepared=prepared)
    assert done.returncode == 0, done.stdout
    assert f"Installing {files[f'{NAME}-py3-none-any.whl'].name} into /opt/hil" in done.stdout
    version, where = done.stdout.splitlines()[-2:]
    assert version == f"hil, version {hil.__version__}"
    assert re.fullmatch(r"/opt/hil/lib/python3\S+/hil/__init__\.py 1000 /project", where), where
    assert not Path("/opt/hil").exists()
    assert not Path("/src").exists()


def test_the_container_has_all_that_bootstrap_reads() -> None:
    """What is copied to /src is what installs by the locks there."""
    copied = {
        Path(word).name
        for kind, text in instructions(CONTAINERFILE)
        if kind == "COPY"
        for word in text.split()[:-1]
    }
    assert copied == {"bootstrap", *LOCKS, "esp_hil-*.whl"}
