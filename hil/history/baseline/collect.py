"""Many sessions of one firmware, one after another: what an epoch is made of.

Each is a `hil run`, a process of its own. Those that end well enter the history; one that fails is told, and
the next one begins. What is done is read from OUT, so that the same command goes on after an interruption.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError, ExitCode, RigError
from hil.history.from_run import add_run
from hil.history.saving import path_of
from hil.store import RunDirectory
from hil.store.files import replace_file

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
    after = _begin(campaign, say)
    failures = 0
    while (done := len(enter_finished(campaign, after, say))) < campaign.sessions:
        if done or failures:
            time.sleep(campaign.pause_s)
        say(f"Session {done + 1} of {campaign.sessions}")
        code = _measure(campaign.argv)
        if len(enter_finished(campaign, after, say)) > done:
            failures = 0
            continue
        failures += 1
        _check(code, failures)
        say(f"That session ended with {code}, so it is not in the history; it is measured again.")
    campaign.state.unlink(missing_ok=True)
    say(f"{campaign.sessions} sessions of rack {campaign.rack} are in {campaign.history}.")


def enter_finished(campaign: Campaign, after: str, say: Say) -> list[str]:
    """Enter what ended well after this run and is not in the history; return all that ended well."""
    found = []
    for directory in RunDirectory.list(campaign.out):
        if directory.run_id > after and _is_ours(directory, campaign) and _ended_well(directory):
            if not path_of(campaign.history, campaign.rack, directory.run_id).exists():
                added = add_run(directory.path, campaign.history, force=campaign.force)
                say(f"{added.path}: {added.values} boot values")
            found.append(directory.run_id)
    return found


def _begin(campaign: Campaign, say: Say) -> str:
    """Return the last run before the campaign: of the one that goes on, or of one that begins now."""
    options = list(campaign.options)
    before = _read_json(campaign.state)
    if before.get("options") == options and isinstance(before.get("after"), str):
        done = len(enter_finished(campaign, before["after"], say))
        say(f"Going on with what was begun: {done} of {campaign.sessions} sessions are there.")
        return str(before["after"])
    after = max((directory.run_id for directory in RunDirectory.list(campaign.out)), default="")
    campaign.state.parent.mkdir(parents=True, exist_ok=True)
    replace_file(campaign.state, json.dumps({"options": options, "after": after}).encode() + b"\n")
    return after


def _is_ours(directory: RunDirectory, campaign: Campaign) -> bool:
    info = directory.read_info()
    return (info.get("rack"), info.get("trigger")) == (campaign.rack, TRIGGER)


def _ended_well(directory: RunDirectory) -> bool:
    return _read_json(directory.verdicts_path).get("exit_code") == ExitCode.PASS


def _read_json(path: Path) -> dict[str, Any]:
    """Return a JSON object; {} where there is none, or a run was cut off while it was written."""
    try:
        found = json.loads(path.read_bytes())
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
        _end(session)
        raise


def _end(session: subprocess.Popen[bytes]) -> None:
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
