# SPDX-License-Identifier: Apache-2.0
"""Racks as GitHub's jobs show them: who waits for which chip, since when, and which rack gave a sign of life.

A job's token may not list runners. So a rack is known by its jobs: they have the labels self-hosted, hil and
the chip; one that waits has no runner (``runner_id`` is null, or 0). Source: GitHub's REST API, "List jobs
for a workflow run attempt", version 2022-11-28.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from hil.base.errors import ConfigError, RigError
from hil.boards.firmware.build import IMAGE_TARGETS
from hil.ci.github import GitHub
from hil.ci.plan import RACK_JOBS, CiPlan

PATIENCE = "HIL_RACK_PATIENCE_MINUTES"
DEFAULT_PATIENCE = timedelta(minutes=60)  # also where a fork's run gets no variables
_MINUTES = range(15, 23 * 60)  # GitHub gives a job up after 24 h
_OF_A_RACK = frozenset({"self-hosted", "hil"})
_NO_RUNNER_CAME = ("cancelled", "failure", "timed_out")


@dataclass(frozen=True)
class Job:
    """A job of a run; ``chip`` is that of the rack it is for, "" on GitHub's own machines."""

    chip: str
    status: str
    conclusion: str
    has_runner: bool
    created: datetime
    ended: datetime | None

    @property
    def is_over(self) -> bool:
        return self.status == "completed"

    @property
    def waits(self) -> bool:
        """Whether it is queued for a runner; one that waits for a person's approval is not."""
        return self.status == "queued" and not self.has_runner

    @property
    def waited_in_vain(self) -> timedelta:
        """How long it waited where it ended without a runner, else nothing."""
        lost = self.is_over and not self.has_runner and self.conclusion in _NO_RUNNER_CAME
        return self.ended - self.created if lost and self.ended else timedelta()


def patience_of(text: str) -> timedelta:
    """Return how long a rack may be silent, from the variable's minutes. Raises ConfigError."""
    if not text.strip():
        return DEFAULT_PATIENCE
    if not text.strip().isdecimal() or int(text) not in _MINUTES:
        raise ConfigError(
            f"the variable {PATIENCE} is {text[:40]!r}.",
            next_step=f"give minutes, {_MINUTES.start} to {_MINUTES.stop}, or delete it.",
        )
    return timedelta(minutes=int(text))


def moment(text: object) -> datetime:
    """Return a moment as GitHub writes it. Raises ValueError."""
    found = datetime.fromisoformat(str(text))
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def jobs_of(github: GitHub, run_id: int, attempt: int) -> tuple[Job, ...]:
    """Return the jobs that GitHub has made for an attempt of a run so far. Raises RigError."""
    path = f"actions/runs/{run_id}/attempts/{attempt}/jobs"
    try:
        return tuple(_job(stored) for stored in github.pages(path, "jobs"))
    except (KeyError, TypeError, ValueError) as error:
        raise RigError(
            f"GitHub's answer on the jobs of the run {run_id} lacks {error!r}.",
            next_step="run the job again.",
        ) from error


def _job(stored: Mapping[str, Any]) -> Job:
    labels = {str(label) for label in stored.get("labels") or ()}
    chips = [chip for chip in IMAGE_TARGETS if chip in labels] if labels >= _OF_A_RACK else []
    ended = stored.get("completed_at")
    return Job(
        chip=chips[0] if chips else "",
        status=str(stored["status"]),
        conclusion=str(stored.get("conclusion") or ""),
        has_runner=bool(stored.get("runner_id")),
        created=moment(stored["created_at"]),
        ended=moment(ended) if ended else None,
    )


def silent_racks(
    waiting: Iterable[Job], others: Iterable[Job], now: datetime, patience: timedelta
) -> dict[str, datetime]:
    """Return since when each rack is silent that has been so for as long as ``patience``.

    ``waiting`` are jobs that nobody has to approve. A rack that measures for another is none that is silent:
    it has not taken a job since the first of them waits, nor ended one of ``others``.
    """
    since: dict[str, datetime] = {}
    for job in waiting:
        since[job.chip] = min(job.created, since.get(job.chip, job.created))
    for chip, sign in signs_of_life(others, now).items():
        if chip in since:
            since[chip] = max(since[chip], sign)
    return {chip: start for chip, start in sorted(since.items()) if now - start >= patience}


def signs_of_life(jobs: Iterable[Job], now: datetime) -> dict[str, datetime]:
    """Return when each rack was last seen: now where it has a job, else when it ended one."""
    signs: dict[str, datetime] = {}
    for job in jobs:
        if job.chip and job.has_runner:
            seen = (job.ended or now) if job.is_over else now
            signs[job.chip] = max(seen, signs.get(job.chip, seen))
    return signs


def unanswered(
    plan: CiPlan, left_nothing: Iterable[str], jobs: Iterable[Job], patience: timedelta
) -> dict[str, str]:
    """Excuse the legs of racks that have not answered: their jobs had no runner, and each waited so long.

    A job that somebody cancelled sooner excuses nothing, and of a chip's legs not more than its lost jobs.
    """
    lost: dict[str, list[timedelta]] = {}
    for job in jobs:
        if job.chip and job.waited_in_vain >= patience:
            lost.setdefault(job.chip, []).append(job.waited_in_vain)
    names = set(left_nothing)
    found: dict[str, str] = {}
    for chip, waited in lost.items():
        legs = [leg.name for leg in plan.legs if leg.job in RACK_JOBS and leg.target == chip]
        without = [name for name in legs if name in names]
        if len(without) <= len(waited):
            found |= dict.fromkeys(without, _not_answered(chip, max(waited)))
    return found


def _not_answered(chip: str, waited: timedelta) -> str:
    return f"the rack {chip} has not answered for {int(waited.total_seconds() // 60)} minutes"
