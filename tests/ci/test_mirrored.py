# SPDX-License-Identifier: Apache-2.0
"""docs/operate/elsewhere.md: what a server without github.com has to mirror is all that the workflows use."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from hil.ci.conclusion import conclude
from hil.ci.plan import read_plan, write_plan
from tests.ci.ci_rig import a_plan, leave_run
from tests.lab import ROOT

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
def test_a_script_that_names_one_is_found(line: str) -> None:
    """The look for hosts finds them, and not where they stand in a remark."""
    assert _HOST.search(_COMMENT.sub("", line))
    assert not _HOST.search(_COMMENT.sub("", f"true # {line}"))
