# SPDX-License-Identifier: Apache-2.0
"""What the tests of `hil ci` share: small repositories, events, and legs as runs leave them."""

from __future__ import annotations

import dataclasses
import functools
import io
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ruamel.yaml import YAML

from hil.ci.comment_page import Layout, Source, facts_of, render
from hil.ci.conclusion import CiVerdict
from hil.ci.event import TARGETS_FILE, CiEvent, Targets
from hil.ci.plan import EMULATED_JOB, CiPlan, make_plan
from hil.model import Entry, RunRecord, Verdict
from hil.store import RunDirectory
from hil.store.run_info import planned_boots
from hil.thresholds import load_all
from hil.thresholds.loader import FOLDER
from hil.thresholds.types import Thresholds
from tests import make_records
from tests.ci.git_process import git
from tests.judging import judge
from tests.make_records import THRESHOLDS_ROOT, publish_record

HEAD, BASE = "c0ffee" * 6 + "c0ff", "ba5e" * 10
CALLER, CALLED = ".github/workflows/pr.yml", ".github/workflows/rack.yml"  # of a rack's job


class Repository:
    """A git repository in ``path``, made there where none is."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not (path / ".git").exists():
            path.mkdir(parents=True, exist_ok=True)
            self.git("init", "--quiet", "--initial-branch=main", "--template=")
            (path / ".git" / "hooks").mkdir()  # without git's samples

    def copy(self, to: Path) -> Repository:
        """Return a copy with its commits: a few files cost less than the git processes."""
        return Repository(shutil.copytree(self.path, to))

    def git(self, *arguments: str) -> str:
        return git(self.path, *arguments)

    def commit(self, files: Mapping[str, str]) -> str:
        """Write ``files`` (path → content), commit everything; return the commit."""
        for name, content in files.items():
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            (self.path / name).write_text(content, encoding="utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "change")
        return self.git("rev-parse", "HEAD")


def targets_file(build: Sequence[str] = (), racks: Sequence[str] = ()) -> dict[str, str]:
    return {TARGETS_FILE: json.dumps({"build": list(build), "racks": list(racks)})}


def a_plan(
    racks: Sequence[str] = (),
    files: Sequence[str] = ("firmware/main/app_main.c",),
    *,
    fork: bool = False,
    compare: bool = False,
    emulated: bool = False,
) -> CiPlan:
    """Return the plan of a pull request that touches ``files``; with the leg that compares and those of
    emulated chips where asked.
    """
    event = CiEvent("pull_request", "pr", HEAD, BASE, "example/hil", 7, fork)
    plan = make_plan(event, BASE, files, Targets(("esp32",), tuple(racks)))
    left_out = {job for job, asked in (("compare", compare), (EMULATED_JOB, emulated)) if not asked}
    legs = tuple(leg for leg in plan.legs if leg.job not in left_out)
    return dataclasses.replace(plan, legs=legs)


COMPARED = {  # metric → tolerance, least effect
    "publish_latency_p50_us": (0.10, 0.03),
    "publish_latency_p95_us": (0.15, 0.03),
    "publish_latency_p99_us": (0.20, 0.05),
}
SUITES = {"quick": [{}], "pr": [{}], "nightly": [{}], "sealed": [{}]}


@functools.cache
def limits_text() -> str:
    """Return publish.yaml with as few cases as these runs have, and with the rules of COMPARED."""
    yaml = YAML()
    content = yaml.load((THRESHOLDS_ROOT / "publish.yaml").read_text(encoding="utf-8"))
    content["suites"] = SUITES
    content["metrics"]["publish_latency_us"]["blocking"]["p99"] = "compared"
    content["compare"] = [
        {"where": {"metric": name}, "tolerance_ratio": tolerance, "min_effect_ratio": effect, "why": "a test"}
        for name, (tolerance, effect) in COMPARED.items()
    ]
    text = io.StringIO()
    yaml.dump(content, text)
    return text.getvalue()


def write_limits(folder: Path, text: str = "") -> Path:
    """Write publish.yaml into ``folder/thresholds``; return that folder."""
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    (folder / FOLDER / "publish.yaml").write_text(text or limits_text(), encoding="utf-8")
    return folder / FOLDER


@functools.cache
def rig_limits() -> Mapping[str, Thresholds]:
    """Return what a run of these keeps, by bench."""
    with tempfile.TemporaryDirectory() as folder:
        return load_all(write_limits(Path(folder)))


def suite_of(folder: Path) -> str:
    """Return the suite of the leg that a folder is named after."""
    if folder.name.startswith("emulated"):
        return "sealed"
    return "pr" if folder.name.startswith(("compare", "rack-", "night-")) else "quick"


def rejudge(run: RunDirectory) -> None:
    """Write the verdict that the run's records come to by the limits that it keeps."""
    limits = load_all(run.path / FOLDER)
    run.write_verdict(judge(run.read().entries, limits, planned_boots(run.read_info())))


def leave_run(
    folder: Path,
    entries: Sequence[Entry] | None = None,
    *,
    commit: str = HEAD,
    target: str = "virtual-esp32",
    origin: Mapping[str, object] | None = None,
    verdict: Verdict | None = None,
) -> RunDirectory:
    """Write into ``folder`` a run that has been judged, as the leg of this name would.

    ``origin`` is what the bundle of the firmware says of it; without, it was built where it was measured.
    ``verdict`` is what the gate said already; without, it is asked here.
    """
    kind = "virtual" if target.startswith("virtual-") else "physical"
    entries = [publish_record(board=f"{kind}-1")] if entries is None else entries
    info = {
        "suite": suite_of(folder),
        "git": {"commit": commit, "dirty": False},
        "boards": [{"id": f"{kind}-1", "kind": kind, "target": target}],
        "plan": _planned(entries),
        "firmware": {target: {"sha256": "f" * 64, **(origin or {})}},
    }
    run = make_records.leave_run(folder, entries, verdict, **info)
    (folder / "latest").unlink()
    write_limits(run.path)
    if not verdict:
        rejudge(run)
    run.write_summary(
        "# PASS: it\n\nSaid.\n\n## Limits\n\n<details><summary>All</summary>\n\nx\n</details>\n"
    )
    return run


def _planned(entries: Sequence[Entry]) -> dict[str, dict[str, int]]:
    measured = {(one.board, one.case_id) for one in entries if isinstance(one, RunRecord)}
    return {board: {case: 1 for name, case in measured if name == board} for board, _ in measured}


def page_of(plan: CiPlan, verdict: CiVerdict, legs: Path, layout: Layout = "comment") -> str:
    """Return the page that people read of a verdict."""
    return render(facts_of(plan, verdict, legs, Source({})), layout)


BUNDLE = {"commit": HEAD, "dirty": False, "idf_version": "v5.5.4"}


def leave_rack_run(folder: Path, entries: Sequence[Entry] | None = None) -> RunDirectory:
    """Write into ``folder`` what the rack of the esp32 leaves: measured from the bundle of the head."""
    return leave_run(folder, entries, target="esp32", origin=BUNDLE)
