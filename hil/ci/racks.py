# SPDX-License-Identifier: Apache-2.0
"""Racks as the jobs of a workflow run show them: which take their jobs, and which do not within an hour.

A job's token may not list runners. So a rack is known by its jobs: they have the labels self-hosted and
the chip; one that waits has no runner (``runner_id`` is null, or 0). Source: GitHub's REST API, "List jobs
for a workflow run attempt", version 2022-11-28.

The variable HIL_RACKS_OFF switches racks off without a commit: ``esp32: power is off; esp32s3`` are two, one
with a reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from hil.base.errors import ConfigError
from hil.base.yamlvalue import did_you_mean
from hil.boards.firmware.build import IMAGE_TARGETS
from hil.ci.github import GitHub
from hil.ci.plan import RACK_JOBS, CiPlan

VARIABLE = "HIL_RACKS_OFF"
PATIENCE = timedelta(minutes=60)  # GitHub's own is 24 h
POLL_S = 60.0  # a job's token has 1,000 requests an hour
_WAITS = ("queued", "pending", "requested")  # a job that waits for a person's approval is "waiting"


class Job(Struct, frozen=True, rename={"created": "created_at", "ended": "completed_at"}):
    """A job of a run, as GitHub lists it."""

    status: str
    created: datetime
    labels: tuple[str, ...] = ()
    runner_id: int | None = None
    ended: datetime | None = None

    @property
    def chip(self) -> str:
        """The chip of its rack, "" on GitHub's own machines."""
        chips = [chip for chip in IMAGE_TARGETS if chip in self.labels and "self-hosted" in self.labels]
        return chips[0] if chips else ""

    @property
    def waited_in_vain(self) -> timedelta:
        """How long it waited where it ended without a runner, else nothing."""
        return self.ended - self.created if self.ended and not self.runner_id else timedelta()


def jobs_of(github: GitHub, run_id: int, attempt: int) -> tuple[Job, ...]:
    """Return the jobs that GitHub has made for an attempt of a run so far. Raises RigError."""
    return tuple(github.pages(f"actions/runs/{run_id}/attempts/{attempt}/jobs", Job, "jobs"))


def await_racks(
    look: Callable[[], Iterable[Job]],
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    wait: Callable[[float], object] = time.sleep,
) -> tuple[str, ...]:
    """Wait until each rack has taken a job of the run; return the chips whose racks took none in time.

    ``look`` returns the run's jobs as they are. Raises RigError as ``look`` does.
    """
    while True:
        since = _waiting(look())
        late = [chip for chip, begun in since.items() if now() - begun >= PATIENCE]
        if len(late) == len(since):
            return tuple(sorted(late))
        wait(POLL_S)


def _waiting(jobs: Iterable[Job]) -> dict[str, datetime]:
    """Return the start of the wait for each chip's rack that has taken none of its jobs."""
    found = list(jobs)
    answered = {job.chip for job in found if job.runner_id}
    since: dict[str, datetime] = {}
    for job in found:
        if job.chip and job.chip not in answered and job.status in _WAITS:
            since[job.chip] = min(job.created, since.get(job.chip, job.created))
    return since


def unanswered(plan: CiPlan, lost: Collection[str], look: Callable[[], Iterable[Job]]) -> dict[str, str]:
    """Return why legs left nothing whose rack took no job of the run, by leg; GitHub's word, not the leg's.

    A job that somebody cancelled within the hour is no word on its rack. ``look`` returns the run's jobs.
    """
    legs = [leg for leg in plan.legs if leg.job in RACK_JOBS and leg.name in lost]
    waited: dict[str, list[timedelta]] = {}
    for job in look() if legs else ():
        waited.setdefault(job.chip, []).append(job.waited_in_vain)
    shortest = {leg: min(waited.get(leg.target, [timedelta()])) for leg in legs}
    return {leg.name: _reason(leg.target, least) for leg, least in shortest.items() if least >= PATIENCE}


def _reason(chip: str, waited: timedelta) -> str:
    return f"the rack {chip} took no job within {int(waited.total_seconds() // 60)} minutes"


def racks_off(text: str) -> dict[str, str]:
    """Return why each chip's rack is off, as a sentence's part. Raises ConfigError, naming the variable."""
    entries = [entry.partition(":") for entry in text.split(";") if entry.strip()]
    reasons = {chip.strip(): reason.strip().rstrip(".") for chip, _, reason in entries}
    for chip in reasons:
        if chip not in IMAGE_TARGETS:
            raise ConfigError(
                f"the variable {VARIABLE}: unknown rack {chip[:80]!r}{did_you_mean(chip, IMAGE_TARGETS)}",
                next_step=f"write chips ({', '.join(IMAGE_TARGETS)}), each with an optional reason: "
                "esp32: no power; esp32s3.",
            )
    return {
        chip: f"the rack {chip} is switched off by {VARIABLE}{f': {reason}' if reason else ''}"
        for chip, reason in reasons.items()
    }
