# SPDX-License-Identifier: Apache-2.0
"""What a page is made of: facts that `hil ci` gathered, and the legs' verdicts, read strictly."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError, ExitCode
from hil.model import Verdict
from hil.reports.boards import remarks
from hil.reports.compared import is_blocked as is_blocked_comparison
from hil.reports.rows import is_blocked
from hil.reports.view.marks import Words
from hil.reports.view.run import steps_of
from hil.store import RunDirectory
from hil.store.reported import read_reported
from hil.store.verdicts import read_verdict


@dataclass(frozen=True)
class LegFacts:
    """What became of a leg; ``reason`` is why it was skipped. ``verdict`` is None where it has none.

    ``is_open`` says that it failed nothing and is no pass. ``mark`` is what it came to, in a word behind a
    sign. ``remarks`` are what stands wherever its figures do, ``steps`` what a person does next. ``owner`` is
    whose fault it is that there is no verdict, where somebody said so. ``sign`` is of its banner.
    """

    name: str
    exit_code: ExitCode
    sentence: str
    reason: str
    boards: tuple[str, ...]
    is_open: bool
    mark: str = ""
    verdict: Verdict | None = None
    remarks: tuple[str, ...] = ()
    steps: tuple[Words, ...] = ()
    owner: str = ""
    sign: str = "?"


@dataclass(frozen=True)
class Facts:
    """A workflow run. ``problem`` is why its verdict cannot be told, "" where it can.

    ``links`` are texts and addresses that we made ourselves; ``commits`` the address of a commit without it.
    ``headline``, ``said`` and ``sign`` are the words of the leg that decides, and stand first. ``title`` and
    ``author`` are of the head's commit, ``count`` is how many there are since the base: "" and 0 where nobody
    knows.
    """

    exit_code: ExitCode
    problem: str
    head: str
    base: str
    changes: tuple[str, ...]
    findings: tuple[str, ...]
    loosened: tuple[str, ...]
    legs: tuple[LegFacts, ...]
    links: Mapping[str, str]
    commits: str
    headline: str = ""
    said: str = ""
    attempts: str = ""
    sign: str = "?"
    title: str = ""
    author: str = ""
    count: int = 0


def read_facts(path: Path) -> Facts:
    """Read the file that `hil ci` wrote, and the runs that it names.

    A verdict that cannot be read, or contradicts itself, becomes a problem of the whole.

    Raises:
        ConfigError: the file is not what `hil ci` writes.
    """
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        facts = Facts(**_values(Facts, stored), legs=())
        legs = [(LegFacts(**_values(LegFacts, leg)), leg["run"], leg["verdict"]) for leg in stored["legs"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} is not what `hil ci` hands to a comment: {error!r}.") from error
    try:
        found = [_with_verdict(leg, path.parent / run, name) if run else leg for leg, run, name in legs]
        return dataclasses.replace(facts, legs=tuple(found))
    except ConfigError as error:
        return dataclasses.replace(facts, problem=facts.problem or error.sentence)


def _values(kind: type[Facts | LegFacts], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is stored of ``kind``. Raises KeyError, ValueError."""
    names = {field.name for field in dataclasses.fields(kind)} - {"legs", "verdict", "remarks", "steps"}
    values: dict[str, Any] = {name: stored[name] for name in names}
    values |= {name: tuple(one) for name, one in values.items() if isinstance(one, list)}
    return values | {"exit_code": ExitCode(values["exit_code"])}


def _with_verdict(leg: LegFacts, run: Path, name: str) -> LegFacts:
    """Add the run's verdict. Raises ConfigError, which names the leg."""
    try:
        verdict = read_verdict(run / name)
        info = RunDirectory(run).read_info()
        steps = steps_of(info, verdict, read_reported(run).changes)
        said = tuple(remarks(info, verdict))
    except ConfigError as error:
        said_of = error.sentence.partition("(")[2].rstrip(".)") or error.sentence
        raise ConfigError(f"the verdict of the leg {leg.name} cannot be read: {said_of}.") from error
    except Exception as error:  # others wrote it: a surprise in it is no defect of ours, and never a pass
        raise ConfigError(
            f"the verdict of the leg {leg.name} cannot be read: {type(error).__name__}."
        ) from error
    broken = any(map(is_blocked, verdict.series)) or any(map(is_blocked_comparison, verdict.compared))
    quiet = leg.exit_code in (ExitCode.PASS, ExitCode.UNDECIDED)
    doubted = leg.exit_code == ExitCode.UNDECIDED and verdict.exit_code == ExitCode.PASS  # its word alone
    if (verdict.exit_code != leg.exit_code and not doubted) or (broken and quiet):
        raise ConfigError(f"the verdict of the leg {leg.name} contradicts its own figures.")
    return dataclasses.replace(leg, verdict=verdict, remarks=said, steps=steps)
