# SPDX-License-Identifier: Apache-2.0
"""Whether racks answer, told by jobs: since when one is silent, and which legs that excuses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, ExitCode
from hil.ci.event import Event, Targets
from hil.ci.github import GitHub
from hil.ci.plan import make_plan
from hil.ci.racks import (
    DEFAULT_PATIENCE,
    PATIENCE,
    Job,
    jobs_of,
    patience_of,
    silent_racks,
    unanswered,
)
from hil.ci.summary import conclude
from tests.ci.ci_rig import HEAD, a_plan, leave_run
from tests.ci.github_server import HOME, RUN, TOKEN, State, serve

NOW = datetime(2026, 11, 20, 2, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def queued(minutes: float, chip: str = "esp32") -> Job:
    return Job(chip, "queued", "", has_runner=False, created=ago(minutes), ended=None)


def measuring(minutes: float, chip: str = "esp32") -> Job:
    return Job(chip, "in_progress", "", has_runner=True, created=ago(minutes), ended=None)


def ended(minutes: float, chip: str = "esp32") -> Job:
    return Job(chip, "completed", "failure", has_runner=True, created=ago(500), ended=ago(minutes))


def cancelled(waited: float, chip: str = "esp32", *, has_runner: bool = False) -> Job:
    return Job(chip, "completed", "cancelled", has_runner, created=ago(waited), ended=NOW)


@pytest.mark.parametrize(
    ("others", "minutes"),
    [
        ([], 90),
        ([ended(100)], 90),  # before the first of them waited
        ([ended(61)], 61),
        ([measuring(200, "esp32s3"), ended(5, "esp32c3")], 90),  # other racks
        ([cancelled(300)], 90),  # no runner took it
    ],
)
def test_a_rack_is_silent_since_its_last_sign_of_life(others: list[Job], minutes: int) -> None:
    """The oldest job that waits counts, or a later sign: a job in progress, or the end of one."""
    assert silent_racks([queued(90), queued(10)], others, NOW, HOUR) == {"esp32": ago(minutes)}


@pytest.mark.parametrize(
    ("waiting", "others"),
    [
        ([queued(59)], []),
        ([queued(600)], [measuring(10)]),  # a queue before a busy rack
        ([queued(600)], [ended(59)]),
        ([], [ended(600)]),  # nobody asks it for anything
    ],
)
def test_a_busy_rack_is_not_silent(waiting: list[Job], others: list[Job]) -> None:
    """However long the queue before it."""
    assert silent_racks(waiting, others, NOW, HOUR) == {}


def test_a_leg_is_excused_where_no_runner_came() -> None:
    """As long as the patience; the reason has the minutes."""
    found = unanswered(a_plan(["esp32", "esp32s3"]), ["rack-esp32", "rack-esp32s3"], [cancelled(64.9)], HOUR)
    assert found == {"rack-esp32": "the rack esp32 has not answered for 64 minutes"}


@pytest.mark.parametrize(
    "jobs",
    [
        [cancelled(59)],  # by hand
        [cancelled(90, has_runner=True)],  # while it measured
        [cancelled(90, "esp32s3")],  # another rack
        [ended(1)],
        [queued(90)],
        [],
    ],
)
def test_a_job_that_had_a_runner_or_ended_sooner_excuses_nothing(jobs: list[Job]) -> None:
    """Then nobody knows that the rack was silent, and there is no verdict."""
    assert unanswered(a_plan(["esp32"]), ["rack-esp32"], jobs, HOUR) == {}


def test_no_more_legs_are_excused_than_jobs_were_lost() -> None:
    """At night a chip has several: where one job had a runner and left nothing, that is another matter."""
    event = Event("schedule", "nightly", HEAD)
    plan = make_plan(event, "", (), Targets((), ("esp32",)))
    legs = ["rack-esp32", "night-esp32", "unchanged-esp32"]
    lost = [cancelled(90), cancelled(80)]
    assert unanswered(plan, legs, [*lost, ended(1)], HOUR) == {}
    assert set(unanswered(plan, legs[1:], lost, HOUR)) == set(legs[1:])


def test_a_chip_that_does_not_build_is_not_excused(tmp_path: Path) -> None:
    """That its rack was silent as well makes the firmware no better."""
    leave_run(tmp_path / "virtual")
    results = {"virtual": "success", "build": "failure", "rack": "cancelled"}
    verdict = conclude(a_plan(["esp32"]), tmp_path, results, excuses={"rack-esp32": "the rack is silent"})
    assert verdict.exit_code == ExitCode.RIG
    assert any("the job build ended with 'failure'" in line for line in verdict.findings)


def test_jobs_are_read_as_github_lists_them() -> None:
    """A chip is told by the labels of a rack's runner; no runner is null or 0, as both are to be met."""
    state, common = State(HEAD), {"created_at": "2026-11-20T01:00:00Z", "conclusion": None}
    rack = ["self-hosted", "hil", "esp32c3"]
    state.jobs = [
        {**common, "status": "queued", "labels": rack, "runner_id": None},
        {**common, "status": "queued", "labels": rack, "runner_id": 0},
        {**common, "status": "in_progress", "labels": rack, "runner_id": 12},
        {**common, "status": "waiting", "labels": rack, "runner_id": None},
        {**common, "status": "queued", "labels": ["ubuntu-24.04"], "runner_id": None},
        {**common, "status": "queued", "labels": ["esp32c3"], "runner_id": None},
    ]
    with serve(state) as api:
        jobs = jobs_of(GitHub(HOME, TOKEN, api), RUN, 1)
    assert [job.chip for job in jobs] == ["esp32c3"] * 4 + ["", ""]
    assert [job.waits for job in jobs] == [True, True, False, False, True, True]
    assert jobs[0].created == datetime(2026, 11, 20, 1, 0, tzinfo=UTC)


@pytest.mark.parametrize(("text", "minutes"), [("", 60), ("45", 45), (" 15 ", 15), ("1379", 1379)])
def test_the_patience_is_a_variable(text: str, minutes: int) -> None:
    """Minutes; without it an hour."""
    assert patience_of(text) == timedelta(minutes=minutes)
    assert patience_of("") == DEFAULT_PATIENCE


@pytest.mark.parametrize("text", ["0", "14", "1440", "-60", "1h", "60.5", "²"])
def test_a_patience_that_is_none_is_a_configuration_error(text: str) -> None:
    """Too short it would call a rack dead that reboots; GitHub gives up after a day anyway."""
    with pytest.raises(ConfigError, match=PATIENCE):
        patience_of(text)
