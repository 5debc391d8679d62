# SPDX-License-Identifier: Apache-2.0
"""Many sessions of one firmware, one after another: what an epoch is made of.

Each is a `hil run`, a process of its own. Those that end well enter the history; one that fails is told, and
the next one begins. What is done is read from OUT, so that the same command goes on after an interruption.

Which sessions may become an epoch: of committed firmware of the default branch, all of the same.
"""

from __future__ import annotations

import datetime
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError, ExitCode, RigError
from hil.base.git import try_git
from hil.base.reading import RUN_MOST_BYTES, read_at_most
from hil.base.yamlvalue import did_you_mean
from hil.history.from_run import add_run
from hil.history.saving import path_of
from hil.metrics.sessions import History, Session
from hil.model import format_product
from hil.store import RunDirectory, read_run
from hil.store.files import replace_file
from hil.thresholds.baselines import Epoch

TRIGGER = "baseline"
MOST_FAILURES = 3  # in a row
_END_S = 180.0  # in which a run that is interrupted puts its boards down and says what it has
_FOLDER = "baseline"

Say = Callable[[str], None]


@dataclass(frozen=True)
class Campaign:
    """What is collected: ``sessions`` runs with ``options`` (of `hil run`), their folders in ``out``.

    ``rack`` is the rack's name, ``history`` the folder that they enter. ``force`` enters sessions of sources
    that were not committed. ``command`` starts a session; its options follow.
    """

    rack: str
    sessions: int
    options: Sequence[str]
    out: Path
    history: Path
    pause_s: float = 0.0
    force: bool = False
    command: Sequence[str] = (sys.executable, "-m", "hil", "run")

    @property
    def argv(self) -> list[str]:
        return [*self.command, *self.options, f"--trigger={TRIGGER}", "--no-report", f"--out={self.out}"]

    @property
    def state(self) -> Path:
        """Where it stands in what is being collected; gone when it is complete."""
        return self.out / _FOLDER / f"{self.rack}.json"


def collect(campaign: Campaign, say: Say) -> None:
    """Measure until the campaign has its sessions.

    Raises:
        ConfigError: a session's configuration is wrong.
        RigError: MOST_FAILURES sessions failed in a row, or the disk does not take the history.
        KeyboardInterrupt: the session that was being measured has ended then.
    """
    after, goes_on = begin(campaign.state, campaign.options, campaign.out)

    def entered() -> int:
        return len(enter_finished(campaign, after, say))

    if goes_on:
        say(f"Going on with what was begun: {entered()} of {campaign.sessions} sessions are there.")
    until_done(campaign.argv, campaign.sessions, entered, say, pause_s=campaign.pause_s)
    campaign.state.unlink(missing_ok=True)
    say(f"{campaign.sessions} sessions of rack {campaign.rack} are in {campaign.history}.")


def until_done(
    argv: Sequence[str], wanted: int, entered: Callable[[], int], say: Say, *, pause_s: float = 0.0
) -> None:
    """Measure sessions until ``entered`` counts as many as are wanted; one that is not counted fails.

    Raises as collect() does.
    """
    failures = 0
    while (done := entered()) < wanted:
        if done or failures:
            time.sleep(pause_s)
        say(f"Session {done + 1} of {wanted}")
        code = _measure(argv)
        if entered() > done:
            failures = 0
            continue
        failures += 1
        _check(code, failures)
        say(f"That session ended with {code}, so it is not in the history; it is measured again.")


def enter_finished(campaign: Campaign, after: str, say: Say) -> list[str]:
    """Enter what ended well after this run and is not in the history; return all that ended well."""
    found = []
    for directory in RunDirectory.list(campaign.out):
        if directory.run_id > after and _is_ours(directory, campaign) and _ended_well(directory):
            if not path_of(campaign.history, campaign.rack, directory.run_id).exists():
                added = add_run(read_run(directory.path), campaign.history, force=campaign.force)
                say(f"{added.path}: {added.values} boot values")
            found.append(directory.run_id)
    return found


def begin(state: Path, options: Sequence[str], out: Path) -> tuple[str, bool]:
    """Return the last run before what is collected, and whether that goes on: it was begun with the same
    ``options``, as the file ``state`` says, which is written where it begins now."""
    before = _read_json(state)
    if before.get("options") == list(options) and isinstance(before.get("after"), str):
        return str(before["after"]), True
    after = max((directory.run_id for directory in RunDirectory.list(out)), default="")
    state.parent.mkdir(parents=True, exist_ok=True)
    replace_file(state, json.dumps({"options": list(options), "after": after}).encode() + b"\n")
    return after, False


def _is_ours(directory: RunDirectory, campaign: Campaign) -> bool:
    info = directory.read_info()
    return (info.get("rack"), info.get("trigger")) == (campaign.rack, TRIGGER)


def _ended_well(directory: RunDirectory) -> bool:
    """Whether a session measured all that was planned and broke nothing; a figure may be undecided."""
    verdict = _read_json(directory.verdicts_path)
    return bool(verdict.get("exit_code") == ExitCode.PASS or verdict.get("outcome") == "undecided")


def _read_json(path: Path) -> dict[str, Any]:
    """Return a JSON object; {} where there is none, or a run was cut off while it was written."""
    try:
        found = json.loads(read_at_most(path, RUN_MOST_BYTES))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _measure(argv: Sequence[str]) -> int:
    """Run one session and return its status.

    It has a process group of its own, so that Ctrl-C reaches it once, from here; whatever ends this process
    lets the session put its boards down first.
    """
    session = subprocess.Popen(argv, stdin=subprocess.DEVNULL, process_group=0)
    try:
        return session.wait()
    except BaseException:
        _end_session(session)
        raise


def _end_session(session: subprocess.Popen[bytes]) -> None:
    """Interrupt a run, and wait until its boards are put down; kill it where that does not end."""
    session.send_signal(signal.SIGINT)
    try:
        session.wait(timeout=_END_S)
    except BaseException:  # once more interrupted, or it does not end
        session.kill()
        session.wait()
        raise


def _check(code: int, failures: int) -> None:
    """Raise where going on would not help."""
    if code == ExitCode.CONFIG:
        raise ConfigError(
            "the session's configuration is wrong; what it said is above.",
            next_step="correct it; the same command goes on.",
        )
    if code in (ExitCode.INTERRUPTED, ExitCode.TERMINATED):
        raise KeyboardInterrupt
    if failures >= MOST_FAILURES:
        raise RigError(
            f"{failures} sessions in a row failed, the last one with {code}; what it said is above.",
            next_step="mend what it names; the same command goes on.",
        )


TRIGGERS = ("baseline", "nightly")
FEWEST_SESSIONS = 5
_BRANCHES = ("origin/HEAD", "origin/main", "main", "origin/master", "master")

# what --allow takes → why it is refused without
OBSTACLES: Mapping[str, str] = {
    "dirty": "nobody can find the sources again",
    "branch": "a baseline is what the default branch does, not what a branch hopes for",
    "firmware": "a change between two builds would count as noise",
    "conditions": "a change of the surroundings would count as noise",
}


@dataclass(frozen=True)
class Choice:
    """What of a rack's sessions is asked for: these runs, or all since a day, or since the epoch in force."""

    runs: tuple[str, ...] = ()
    since: datetime.date | None = None


def choose(
    history: History, rack: str, choice: Choice, epoch: Epoch | None, *, product: str = ""
) -> tuple[Session, ...]:
    """Return the sessions of a product on a rack that are asked for, in order of time.

    Without runs: those of baseline collections and nights, since the day, or those that started after the
    sessions of the epoch in force.

    Raises:
        ConfigError: a run that the history does not hold, or too few.
    """
    there = [session for session in history.sessions if session.rack == rack]
    own = [session for session in there if session.product == product]
    _check_products(there, choice.runs, product)
    if not own:
        known = sorted({session.rack for session in history.sessions})
        raise ConfigError(
            f"the history holds no session of rack {rack!r}{did_you_mean(rack, known)} It holds: "
            f"{', '.join(known) or 'nothing'}."
            if not there
            else f"the history holds no session of {format_product(product)} on rack {rack!r}, which others "
            "measured on.",
            next_step="measure: hil baseline collect --sessions 10",
        )
    found = _named(own, choice.runs) if choice.runs else _recent(own, choice.since, epoch)
    if len(found) < FEWEST_SESSIONS:
        since = (
            f" since {choice.since}"
            if choice.since
            else " beyond those of the epoch in force"
            if epoch
            else ""
        )
        asked = "named" if choice.runs else f"of baseline collections and nights{since}"
        raise ConfigError(
            f"rack {rack}: {len(found)} sessions {asked}; an epoch takes {FEWEST_SESSIONS} at least, because "
            "fewer do not tell how much sessions differ.",
            next_step=f"measure more: hil baseline collect --sessions {max(10, FEWEST_SESSIONS)}",
        )
    return tuple(found)


def _check_products(there: Sequence[Session], runs: Collection[str], product: str) -> None:
    for session in there:
        if session.run_id in runs and session.product != product:
            raise ConfigError(
                f"session {session.run_id} is of {format_product(session.product)}, and this baseline of "
                f"{format_product(product)}: figures of two products are not compared.",
                next_step="leave it out.",
            )


def _named(own: Sequence[Session], runs: Collection[str]) -> list[Session]:
    known = [session.run_id for session in own]
    for run in runs:
        if run not in known:
            raise ConfigError(
                f"the history holds no session {run!r} of this rack{did_you_mean(run, known)}",
                next_step="`hil history show` lists them; `hil history add RUN` adds a run.",
            )
    return [session for session in own if session.run_id in runs]


def _recent(own: Sequence[Session], since: datetime.date | None, epoch: Epoch | None) -> list[Session]:
    found = [session for session in own if session.trigger in TRIGGERS]
    if since is not None:
        return [session for session in found if day_of(session) >= since]
    if epoch is None:
        return found
    last = max(
        (session.started_utc for session in own if session.run_id in epoch.sessions),
        default=epoch.accepted.isoformat(),
    )
    return [session for session in found if session.started_utc > last]


def day_of(session: Session) -> datetime.date:
    """Return the day (UTC) on which a session started."""
    return datetime.date.fromisoformat(session.started_utc[:10])


def check_sessions(sessions: Sequence[Session], repository: Path, allowed: Collection[str] = ()) -> None:
    """Refuse what would make a poor baseline. Raises ConfigError with the reason and both ways out."""
    checks: Mapping[str, Callable[[Sequence[Session], Path], str]] = {
        "dirty": _not_committed,
        "firmware": _different_firmware,
        "branch": _not_of_default_branch,
        "conditions": _different_conditions,
    }
    for name, look in checks.items():
        what = "" if name in allowed else look(sessions, repository)
        if what:
            raise ConfigError(
                f"{what}: {OBSTACLES[name]}.",
                next_step=f"choose others (--since, --sessions), or accept it as it is: --allow {name}.",
            )


def _not_committed(sessions: Sequence[Session], _repository: Path) -> str:
    for session in sessions:
        if session.dirty or not session.commit:
            return f"session {session.run_id} measured sources that were not committed"
    return ""


def _different_firmware(sessions: Sequence[Session], _repository: Path) -> str:
    first = sessions[0]
    for session in sessions[1:]:
        both = images_of(first).keys() & images_of(session).keys()
        different = sorted(image for image in both if images_of(first)[image] != images_of(session)[image])
        if different:
            return (
                f"sessions {first.run_id} ({first.commit[:12]}) and {session.run_id} ({session.commit[:12]}) "
                f"measured different firmware, {', '.join(different)}"
            )
    return ""


def images_of(session: Session) -> dict[str, str]:
    """Return the images that a session measured as its candidate, by name."""
    start = "candidate "
    return {
        key.removeprefix(start): sha256 for key, sha256 in session.firmware.items() if key.startswith(start)
    }


def _not_of_default_branch(sessions: Sequence[Session], repository: Path) -> str:
    branch = next((name for name in _BRANCHES if _resolves(repository, name)), "")
    for commit in dict.fromkeys(session.commit for session in sessions):
        if not branch:
            return f"{repository} has no default branch to look for {commit[:12]} in"
        if not _resolves(repository, f"{commit}^{{commit}}"):
            return f"this checkout does not know the commit {commit[:12]} (git fetch)"
        if try_git(repository, "merge-base", "--is-ancestor", commit, branch).returncode:
            return f"the commit {commit[:12]} is not in {branch}"
    return ""


def _resolves(repository: Path, name: str) -> bool:
    return try_git(repository, "rev-parse", "--verify", "--quiet", name).returncode == 0


def _different_conditions(sessions: Sequence[Session], _repository: Path) -> str:
    last = sessions[-1]
    for session in sessions:
        for key in sorted(session.conditions.keys() & last.conditions.keys()):
            if session.conditions[key] != last.conditions[key]:
                return (
                    f"{key} was {session.conditions[key]!r} in session {session.run_id} and "
                    f"{last.conditions[key]!r} in {last.run_id}"
                )
    return ""
