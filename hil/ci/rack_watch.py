# SPDX-License-Identifier: Apache-2.0
"""Looks after runs that wait for a rack which does not answer: tells the lab's owner, and ends the waiting.

GitHub keeps a job without a runner for 24 h, and no job of a run can be cancelled alone. So a run is
cancelled where nothing else of it is left to do; its jobs with `always()` still run, and `hil ci verdict`
says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from hil.base.errors import RigError
from hil.ci import rack_issues
from hil.ci.event import DEPENDABOT
from hil.ci.github import GitHub, Refused
from hil.ci.racks import DEFAULT_PATIENCE, Job, jobs_of, moment, signs_of_life, silent_racks

_FOLDER = ".github/workflows/"
ENDED = ("pr.yml", "nightly.yml")  # runs that are cancelled where they wait in vain
PROBES = "rack-watch.yml"  # whose job waits on a silent rack, to show that it answers again
SEEN = (*ENDED, "baseline.yml", "rack-health.yml", PROBES)  # jobs of these show that a rack lives
_WINDOW = timedelta(hours=25)  # GitHub gives a queued job up after 24


@dataclass(frozen=True)
class _Run:
    run_id: int
    attempt: int
    workflow: str
    is_over: bool
    is_asked: bool  # whether somebody may have to approve its racks' jobs, so that their age tells nothing
    updated: datetime


@dataclass(frozen=True)
class Seen:
    """What a look found: since when each silent rack is so, and a line for each thing that was done.

    ``unprobed`` are the silent racks on which no probe waits yet.
    """

    silent: Mapping[str, datetime]
    unprobed: tuple[str, ...]
    done: tuple[str, ...]


def watch(github: GitHub, now: datetime, patience: timedelta, off: Iterable[str], owner: str) -> Seen:
    """Look once, and do what is to be done; racks in ``off`` are not waited for either. Raises RigError."""
    runs = _runs(github, now)
    jobs = {run.run_id: jobs_of(github, run.run_id, run.attempt) for run in runs if not run.is_over}
    waiting = [
        job
        for run in runs
        if not run.is_asked
        for job in jobs.get(run.run_id, ())
        if job.waits and job.chip and job.chip not in set(off)
    ]
    issues, others = rack_issues.open_issues(github), [job for found in jobs.values() for job in found]
    suspects = [job.created for job in waiting if now - job.created >= patience]
    if suspects or issues:  # else nobody needs to know what has ended meanwhile
        first = min([*suspects, *(issue.opened for issue in issues.values())])
        ended = [run for run in runs if run.is_over and run.updated >= first]
        others += [job for run in ended for job in jobs_of(github, run.run_id, run.attempt)]
    silent, signs = silent_racks(waiting, others, now, patience), signs_of_life(others, now)
    done = [
        rack_issues.tell(
            github, chip, since, sum(job.chip == chip for job in waiting), owner, issues.get(chip)
        )
        for chip, since in silent.items()
    ]
    for chip, issue in issues.items():
        if chip in silent:
            continue
        if chip in signs and signs[chip] > issue.opened:
            done.append(rack_issues.close(github, issue))
        else:
            silent[chip] = issue.since
    done += [
        _cancel(github, run)
        for run in runs
        if run.workflow in ENDED
        and _waits_in_vain(run, jobs.get(run.run_id, ()), {*silent, *off}, now, patience)
    ]
    probed = {
        job.chip
        for run in runs
        if run.workflow == PROBES
        for job in jobs.get(run.run_id, ())
        if not job.is_over
    }
    return Seen(silent, tuple(sorted(set(silent) - probed)), tuple(done))


def _runs(github: GitHub, now: datetime) -> tuple[_Run, ...]:
    """Return the runs of a day, workflow by workflow: GitHub lists at most 1,000 of a search."""
    since = f">={now - _WINDOW:%Y-%m-%dT%H:%M:%SZ}"
    paths = [f"actions/workflows/{name}/runs" for name in SEEN]
    try:
        return tuple(
            _run(stored, github.repository)
            for path in paths
            for stored in github.pages(path, "workflow_runs", created=since)
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RigError(
            f"GitHub's answer on the runs lacks {error!r}.", next_step="run the job again."
        ) from error


def _run(stored: Mapping[str, Any], home: str) -> _Run:
    origin = (stored.get("head_repository") or {}).get("full_name") or ""
    actors = [(stored.get(key) or {}).get("login") for key in ("actor", "triggering_actor")]
    return _Run(
        run_id=int(stored["id"]),
        attempt=int(stored["run_attempt"]),
        workflow=str(stored["path"]).partition("@")[0].removeprefix(_FOLDER),
        is_over=stored["status"] == "completed",
        is_asked=origin.lower() != home.lower() or DEPENDABOT in actors,
        updated=moment(stored["updated_at"]),
    )


def _waits_in_vain(
    run: _Run, jobs: Iterable[Job], dead: set[str], now: datetime, patience: timedelta
) -> bool:
    """Say whether all that is left of a run are jobs that wait for dead racks, each for as long as patience.

    A fork's run gets no variables, and its verdict knows the default patience alone.
    """
    enough = max(patience, DEFAULT_PATIENCE) if run.is_asked else patience
    left = [job for job in jobs if not job.is_over]
    return bool(left) and all(job.waits and job.chip in dead and now - job.created >= enough for job in left)


def _cancel(github: GitHub, run: _Run) -> str:
    try:
        github.post(f"actions/runs/{run.run_id}/cancel", {})
    except Refused as error:
        if error.status != 409:  # it has ended meanwhile
            raise
        return f"run {run.run_id}: it ended by itself"
    return f"run {run.run_id} of {run.workflow}: cancelled, as it waited for racks that do not answer"
