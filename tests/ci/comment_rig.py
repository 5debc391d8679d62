# SPDX-License-Identifier: Apache-2.0
"""Legs of a pull request for tests of its comment: generated boots, really judged, as a run leaves them."""

from __future__ import annotations

import atexit
import functools
import io
import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hil.ci.artefact import keep
from hil.ci.plan import CiPlan, write_plan
from hil.model import Entry, NotRun, RunRecord, Scalar, Verdict
from hil.store import RunDirectory
from tests.ci.ci_rig import HEAD, Repository, a_plan, leave_run, limits_text, rig_limits, write_limits
from tests.ci.github_server import State
from tests.gate import compare_records
from tests.judging import judge
from tests.make_records import RUN_ID, change_info, publish_record, publish_thresholds

TLS: dict[str, Scalar] = {"transport": "tls"}
FILES = ("tests/a.py",)  # of the pull request: no firmware, so no chip is measured
LOOKS = ((8, 8),)  # one is enough to decide, and to judge it again costs half
NOISE = {"simulated": True, "profile": "typical", "seed": 7, "description": "profile typical, seed 7"}


@functools.cache
def compared(effect: float, tls_effect: float, deviation: float = 0.02) -> tuple[tuple[Entry, ...], Verdict]:
    """Return a run that compares two cases on four virtual boards, and what the gate says of it.

    The head is exp(effect) times as slow. To judge takes seconds, so it is done once in a process.
    """
    other = publish_thresholds().case(TLS)
    entry = compare_records.comparison(cases=(compare_records.CASE_ID, other.case_id), looks=LOOKS)
    entries: list[Entry] = [entry]
    for change, overrides, seed in ((effect, {}, 1), (tls_effect, TLS, 2)):
        for look in compare_records.boots(LOOKS, effect=change, seed=seed, deviation=deviation):
            entries += [replace(record, parameters={**record.parameters, **overrides}) for record in look]
    planned = dict.fromkeys(sorted({(one.board, one.case_id) for one in entries[1:]}), 1)
    return tuple(entries), judge(entries, rig_limits(), planned)


def leave_comparison(
    legs: Path, effect: float = 0.0, tls_effect: float = 0.0, deviation: float = 0.02, *, noise: bool = True
) -> Path:
    """Leave the leg `compare`, judged by the gate; return its run."""
    entries, verdict = compared(effect, tls_effect, deviation)
    directory = leave_run(legs / "compare", entries, verdict=verdict)
    boards = [{"id": name, "kind": "virtual", "target": "virtual-esp32"} for name in compare_records.BOARDS]
    cases = {entry.case_id: 1 for entry in entries if isinstance(entry, RunRecord)}
    plan = dict.fromkeys(compare_records.BOARDS, cases)
    change_info(directory, boards=boards, plan=plan, **({"noise": NOISE} if noise else {}))
    return directory.path


def leave_virtual(legs: Path, latency_ms: float = 7.0, not_run: Sequence[str] = ()) -> Path:
    """Leave the leg `virtual`: two boards against their limits, one of them with ``latency_ms``."""
    shutil.rmtree(legs / "virtual", ignore_errors=True)
    entries: list[Entry] = [publish_record(board="virtual-1")]
    entries.append(publish_record(board="virtual-2", latency_ms=latency_ms))
    case = publish_thresholds().case(TLS).case_id
    entries += [NotRun(RUN_ID, "virtual-2", case, reason) for reason in not_run]
    directory: RunDirectory = leave_run(legs / "virtual", entries)
    boards = [{"id": f"virtual-{n}", "kind": "virtual", "target": "virtual-esp32"} for n in (1, 2)]
    change_info(directory, boards=boards)
    return directory.path


def zipped(folder: Path) -> bytes:
    """Return a folder as GitHub keeps an artefact."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            archive.write(path, path.relative_to(folder).as_posix())
    return content.getvalue()


@functools.cache
def own_repository() -> Repository:
    """Return the repository that `hil ci comment` runs in: its main has the limits of these runs."""
    folder = tempfile.mkdtemp(prefix="hil-own-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    made = Repository(Path(folder))
    made.commit({"thresholds/publish.yaml": limits_text()})
    return made


def pull_request_state() -> State:
    """Return GitHub's state of the pull request: run, merge base, files, limits."""
    base = own_repository().git("rev-parse", "HEAD")
    state = State(HEAD, base, list(FILES), limits={"publish.yaml": limits_text().encode()})
    state.add_run()
    state.add_pull()
    return state


def pull_request_plan() -> CiPlan:
    """Return the plan of a pull request that measures the virtual rack and compares with its merge base."""
    plan = a_plan(files=FILES, compare=True, emulated=True)
    return replace(plan, base=own_repository().git("rev-parse", "HEAD"))


def leave_all(folder: Path, **changes: float) -> Path:
    """Leave plan.json and both legs in ``folder``, as in out/ci; return it."""
    plan = pull_request_plan()
    write_plan(plan, folder / "plan.json")
    leave_virtual(folder / "legs", changes.pop("latency_ms", 7.0))
    leave_comparison(folder / "legs", **changes)
    return folder


def kept(folder: Path) -> Path:
    """Return the folder that becomes the artefact "verdict"."""
    thresholds = write_limits(folder)
    assert keep(folder / "plan.json", folder / "legs", folder / "verdict", thresholds) == ()
    return folder / "verdict"
