# SPDX-License-Identifier: Apache-2.0
"""What the tests of `hil ci` share: small repositories, events, and legs as runs leave them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from hil.ci.event import TARGETS_FILE, Event, Targets
from hil.ci.plan import CiPlan, make_plan
from hil.gate import judge
from hil.model import Entry
from hil.store import RunDirectory
from tests.ci.git_process import git
from tests.make_records import RUN_ID, publish_record, publish_thresholds

HEAD, BASE = "c0ffee" * 6 + "c0ff", "ba5e" * 10


class Repository:
    """A git repository in ``path``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")

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
) -> CiPlan:
    """Return the plan of a pull request that touches ``files``; with the leg that compares where asked."""
    event = Event("pull_request", "pr", HEAD, BASE, "example/hil", 7, fork)
    plan = make_plan(event, BASE, files, Targets(("esp32",), tuple(racks)))
    legs = tuple(leg for leg in plan.legs if compare or leg.name != "compare")
    return dataclasses.replace(plan, legs=legs)


def leave_run(
    folder: Path,
    entries: Sequence[Entry] | None = None,
    *,
    commit: str = HEAD,
    target: str = "virtual-esp32",
    origin: Mapping[str, object] | None = None,
) -> RunDirectory:
    """Write into ``folder`` a run that has been judged, as the leg of this name would.

    ``origin`` is what the bundle of the firmware says of it; without, it was built where it was measured.
    """
    entries = [publish_record()] if entries is None else entries
    run = RunDirectory.create(folder, RUN_ID)
    (folder / "latest").unlink()
    for entry in entries:
        run.append(entry)
    kind = "virtual" if target.startswith("virtual-") else "physical"
    info = {
        "run_id": RUN_ID,
        "git": {"commit": commit, "dirty": False},
        "boards": [{"id": f"{kind}-1", "kind": kind, "target": target}],
        "firmware": {target: {"sha256": "f" * 64, **(origin or {})}},
    }
    run.write_info(info)
    run.write_verdict(judge(entries, {"publish": publish_thresholds()}))
    run.write_summary(
        "# PASS: it\n\nSaid.\n\n## Limits\n\nsome\n\n<details><summary>All</summary>\n\nx\n</details>\n"
    )
    return run


BUNDLE = {"commit": HEAD, "dirty": False, "idf_version": "v5.5.4"}


def leave_rack_run(folder: Path, entries: Sequence[Entry] | None = None) -> RunDirectory:
    """Write into ``folder`` what the rack of the esp32 leaves: measured from the bundle of the head."""
    return leave_run(folder, entries, target="esp32", origin=BUNDLE)
