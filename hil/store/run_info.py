# SPDX-License-Identifier: Apache-2.0
"""Who ran what, when, where and with which versions: the content of run.json."""

from __future__ import annotations

import datetime
import getpass
import os
import re
import secrets
import socket
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

import hil
from hil.base.errors import ConfigError
from hil.base.git import ask_git, head_of
from hil.base.paths import BUILD_STAMP, CHECKOUT
from hil.base.project import product_here
from hil.base.untrusted import visible
from hil.model import SCHEMA_VERSION, Kind, Name, Product, Quarantine, Role, Ruler
from hil.store.codec import decode, parse

Trigger = Literal["local", "pr", "nightly"]  # what a run is for
TRIGGERS: tuple[Trigger, ...] = get_args(Trigger)
PACKAGES = ("esptool", "pytest", "pytest-embedded", "pyserial", "numpy", "ruamel.yaml")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")
_PULL_REQUEST = re.compile(r"refs/pull/(\d+)/")
MOST_TITLE, MOST_AUTHOR = 200, 80  # characters of a commit's


class _Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """An object of run.json: what has its default is not written, and what has no field here is refused."""


class Sources(_Part, frozen=True):
    """A state of sources; ``commit`` is "" outside a repository, ``dirty`` says that they differ from it."""

    commit: str
    dirty: bool
    title: str = ""  # of the commit, in one line
    author: str = ""  # of the commit


class CiRun(_Part, frozen=True):
    """The workflow run of GitHub Actions; everything is "" outside of one."""

    url: str = ""
    report: str = ""  # where the nights' report is published
    pull_request: int = 0  # its number, 0 where the run is of none
    head_sha: str = ""  # of a pull request: what git calls HEAD there is the merge commit
    base_sha: str = ""


class RunBoard(_Part, frozen=True):
    """A board that the run is to measure."""

    id: Name
    target: str
    kind: Kind


class ImageInfo(_Part, frozen=True):
    """An image. All but its digest is what its bundle says; an image that was built on the spot has none."""

    sha256: str  # of the app image, lower-case hexadecimal
    commit: str = ""
    dirty: bool | None = None  # None where it was built on the spot
    idf_version: str = ""
    ruler: Ruler | None = None


class ComparedInfo(_Part, frozen=True):
    """What the candidate is set beside, image by image."""

    role: Role  # base or reference
    firmware: Mapping[str, ImageInfo]
    unchanged: bool = False  # it is the candidate itself, so that the gate is what is measured
    gate: int = 0  # the number of the gate's rules where it is unchanged, else 0


class NoiseInfo(_Part, frozen=True):
    """The simulated noise of a virtual rack."""

    simulated: bool
    profile: str
    seed: int
    description: str


class Standing(_Part, frozen=True):
    """What the history at hand says of how the rack judges unchanged firmware."""

    state: Literal["qualified", "advisory", "not fit"]
    judgements: int | None  # None where no history is at hand, or it cannot be read
    needed: int
    why: str = ""  # the history cannot be read


class RunInfo(_Part, frozen=True, tag_field="schema", tag=SCHEMA_VERSION):
    """Who ran what, when, where and with which versions. Written when a run begins, and when it ends."""

    run_id: Name
    rack: Name
    suite: Name
    trigger: Trigger
    started_utc: str  # as 2026-11-20T22:12:57Z, as are all times
    argv: tuple[str, ...]
    user: str
    host: str
    git: Sources  # of the project
    tool: Sources  # of hil itself
    versions: Mapping[str, str]  # by package
    ci: CiRun
    boards: tuple[RunBoard, ...]
    plan: Mapping[str, Mapping[str, Annotated[int, Meta(ge=1)]]]  # boots by board and case id
    firmware: Mapping[str, ImageInfo]  # by name of the image: a target, its variant, or a product's
    product: Product = ""  # whose figures these are (hil.toml)
    profile: str = ""  # of the air
    legs: Annotated[int, Meta(ge=1)] = 1  # runs that judge one commit, and share alpha
    quarantined: tuple[Quarantine, ...] = ()
    compared: ComparedInfo | None = None  # None where nothing is compared
    noise: NoiseInfo | None = None
    standing: Standing | None = None  # None where the run is judged by no comparison that blocks
    lease_acquired_utc: str = ""  # when all boards were held
    lease_released_utc: str = ""  # when they were let go; "" while the run is under way, and if it was killed

    @property
    def day(self) -> datetime.date:
        """The day on which the run started (UTC), as of which its limits count."""
        return datetime.datetime.fromisoformat(self.started_utc).date()


def parse_info(path: Path, content: bytes) -> RunInfo:
    """Return what a run.json holds. Raises ConfigError, which names ``path`` and the key."""
    way_out = "correct it; the run's records are not in there."
    info = parse(RunInfo, path, content, way_out=way_out)
    try:
        datetime.datetime.fromisoformat(info.started_utc)
    except ValueError as error:
        said = f"{path}: started_utc is {info.started_utc!r:.40}; expected a date and time."
        raise ConfigError(said, next_step=way_out) from error
    return info


def planned_boots(info: RunInfo) -> dict[tuple[str, str], int]:
    """Return the planned number of boots of each (board, case id)."""
    return {(board, case_id): boots for board, cases in info.plan.items() for case_id, boots in cases.items()}


def is_unchanged(info: RunInfo) -> bool:
    """Return whether a run compared its firmware with itself, to see how the gate judges no change."""
    return info.compared is not None and info.compared.unchanged


def new_run_id(suite: str) -> str:
    """Return a name that sorts by time: ``20261120T221257Z-quick-3fa9``."""
    moment = datetime.datetime.now(tz=datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
    word = _NOT_IN_NAMES.sub("-", suite).strip("-")[:24] or "run"
    return f"{moment}-{word}-{secrets.token_hex(2)}"


def describe_run(*, repository: Path, **known: Any) -> RunInfo:
    """Return what run.json holds at the start of a run; ``known`` are the fields that only the caller knows.

    Raises ConfigError where hil.toml is wrong.
    """
    return RunInfo(
        product=product_here(),
        started_utc=utc_now(),
        argv=tuple(sys.argv),
        user=_user(),
        host=socket.gethostname(),
        git=msgspec.structs.replace(git_state(repository), **commit_words(repository, "HEAD")),
        tool=tool_state(),
        versions=_versions(),
        ci=ci_facts(os.environ),
        **known,
    )


def utc_now() -> str:
    """Return the time as ``2026-11-20T22:12:57Z``."""
    return datetime.datetime.now(tz=datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def measured_commit(info: RunInfo) -> str:
    """Return the full commit that a run measured, of a pull request its head; "" where nothing tells."""
    return info.ci.head_sha or info.git.commit


def ci_facts(environment: Mapping[str, str]) -> CiRun:
    """Return where a GitHub Actions run is to be found and what it compares.

    The variables are GitHub's own; HIL_HEAD_SHA and HIL_BASE_SHA come from the workflow, because GITHUB_SHA
    is the merge commit in a pull request, as does HIL_REPORT_URL, where the nights' report is published.
    """
    if environment.get("GITHUB_ACTIONS") != "true":
        return CiRun()
    server, repository = environment.get("GITHUB_SERVER_URL", ""), environment.get("GITHUB_REPOSITORY", "")
    number = _PULL_REQUEST.match(environment.get("GITHUB_REF", ""))
    return CiRun(
        url=f"{server}/{repository}/actions/runs/{environment.get('GITHUB_RUN_ID', '')}",
        report=environment.get("HIL_REPORT_URL", ""),
        pull_request=int(number[1]) if number else 0,
        head_sha=environment.get("HIL_HEAD_SHA") or environment.get("GITHUB_SHA", ""),
        base_sha=environment.get("HIL_BASE_SHA", ""),
    )


def git_state(repository: Path) -> Sources:
    """Return the commit of a repository ("" outside of one, and before the first) and whether it is dirty."""
    changes = ask_git(repository, "status", "--porcelain", "--untracked-files=normal")
    return Sources(head_of(repository), dirty=bool(changes))


def commit_words(repository: Path, commit: str) -> dict[str, str]:
    """Return ``title`` and ``author`` of a commit, each in one line; nothing where git does not know it."""
    said = ask_git(repository, "show", "--no-patch", "--format=%s%x00%an", commit, "--")
    title, separator, author = said.partition("\0")
    if not separator:
        return {}
    return {"title": visible(title, MOST_TITLE), "author": visible(author, MOST_AUTHOR)}


def tool_state() -> Sources:
    """Return the state of hil's own sources, without a commit where nobody noted it."""
    if CHECKOUT:
        return git_state(CHECKOUT)
    try:
        stamp = decode(BUILD_STAMP.read_bytes())
    except (OSError, ValueError):
        stamp = {}
    return Sources(str(stamp.get("commit", "")), dirty=bool(stamp.get("dirty", False)))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _versions() -> dict[str, str]:
    found = {"hil": hil.__version__, "python": sys.version.split()[0]}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
