# SPDX-License-Identifier: Apache-2.0
"""What another repository asks of the reusable workflow: each input checked before anything runs by it.

The values come from whoever calls measure.yml. They reach this module through the environment, never through
a shell's text, and what is handed on is what was allowed here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import TypeVar

from hil.base.errors import ConfigError
from hil.base.paths import PROJECT_FILE, PROJECT_RACK
from hil.base.project import Project, read_project
from hil.base.untrusted import visible
from hil.base.yamlvalue import did_you_mean
from hil.boards.firmware.build import IMAGE_TARGETS
from hil.boards.firmware.build_folder import DEFAULT_TICK_HZ, TICKS_HZ, Image
from hil.boards.firmware.revision import find_revision
from hil.boards.rack import load_rack
from hil.ci.event import CiEvent, Kind, changed_files, kinds_of, merge_base
from hil.ci.plan import (
    COMPARED_TARGET,
    EMULATED_JOB,
    EMULATED_SUITE,
    EMULATOR_JOB,
    IDF_VERSION,
    CiPlan,
    Leg,
    without_rack,
)
from hil.probe.probe_file import SUFFIX
from hil.run.plan.planning import image_of
from hil.run.plan.selection import select_cases
from hil.thresholds import load_project
from hil.thresholds.loader import FOLDER
from hil.virtual.emulator.drivers import COUNTING, PINNED, PINNED_FILE, pinned_archive, target_of

T = TypeVar("T")

MODES = ("virtual", "emulated", "rack")
OWN = "own"  # in the place of a mode: the tool's own repository, which plans by what a change touches
MERGE_BASE, NONE = "merge-base", "none"
PRIVILEGED = ("pull_request_target", "workflow_run")
OLDEST_IDF = (5, 5)  # firmware/main/idf_component.yml
# input → what counts where the caller gives nothing; measure.yml has the same
DEFAULTS: Mapping[str, str] = {
    "mode": "virtual",
    "firmware-path": ".",
    "idf-version": IDF_VERSION,
    "targets": "",
    "suite": "quick",
    "rack-label": "",
    "base": "merge-base",
}
_IDF_VERSION = re.compile(r"v(\d{1,2})\.(\d{1,2})(\.\d{1,2})?(@sha256:[0-9a-f]{64})?")
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+-]{0,199}")


class _WrongError(Exception):
    """An input has a value that is not allowed; what is said stands behind its name and value."""


@dataclass(frozen=True)
class Asked:
    """The inputs as they may be used. ``base`` is a commit, "" where nothing is compared with."""

    repository: Path
    project: Project
    folder: str
    modes: tuple[str, ...]
    idf_version: str
    targets: tuple[str, ...]
    suite: str
    rack_label: str
    base: str


def check_inputs(given: Mapping[str, str], repository: Path, event: CiEvent) -> Asked:
    """Return what is asked for in ``repository``, the checkout of the team's commit.

    Raises:
        ConfigError: naming each input that is wrong, its value, and what is allowed; or an event that may not
            measure.
    """
    if event.name in PRIVILEGED:
        raise ConfigError(
            f"the event {event.name} would run a fork's code with this repository's token.",
            next_step="call the workflow on pull_request, merge_group, push, schedule or workflow_dispatch.",
        )
    values = {**DEFAULTS, **{name: value.strip() for name, value in given.items() if value.strip()}}
    reader, none = _Reader(values), tuple[str, ...]()
    folder = reader.read("firmware-path", lambda text: _folder(repository, text), "")
    project = reader.read("firmware-path", lambda _: _project(repository, folder), None) if folder else None
    modes = reader.read("mode", _modes, none)
    idf_version = reader.read("idf-version", _idf_version, "")
    targets = reader.read("targets", lambda text: _targets(text, modes, project), none)
    suite = reader.read("suite", lambda text: _suite(text, modes, project), "")
    label = reader.read("rack-label", lambda text: _label(text, modes), "")
    base = reader.read("base", lambda text: _base(repository, text, event), "")
    if reader.wrong or project is None:
        count = len(reader.wrong)
        raise ConfigError(
            f"{count} input{'s are' if count > 1 else ' is'} not allowed: {' '.join(reader.wrong)}",
            next_step="correct it below `with:`, where the workflow is called; "
            "docs/operate/another-repository.md has them all.",
        )
    return Asked(repository.resolve(), project, folder, modes, idf_version, targets, suite, label, base)


def plan_asked(asked: Asked, event: CiEvent, off: Mapping[str, str] = MappingProxyType({})) -> CiPlan:
    """Return the plan of what is asked for: a leg for each mode and chip. ``off`` is as in plan_event()."""
    racks = asked.targets if "rack" in asked.modes else ()
    emulated = [chip for chip in asked.targets if chip in COUNTING and "emulated" in asked.modes]
    pinned = [chip for chip in _pinned_chips(asked.project, asked.modes) if chip in asked.targets]
    unpinned = _why_unpinned(asked.project)
    chip = COMPARED_TARGET if asked.base else ""  # without a base all boards of the virtual rack measure
    legs = (
        *(Leg("virtual", "virtual", asked.suite, chip) for mode in asked.modes if mode == "virtual"),
        *(Leg(f"rack-{chip}", "rack", asked.suite, chip) for chip in racks),
        *(Leg(target_of(chip), EMULATED_JOB, EMULATED_SUITE, chip) for chip in emulated),
        *(Leg(f"{PINNED}-{chip}", EMULATOR_JOB, asked.suite, chip, unpinned) for chip in pinned),
    )
    images = _images(asked)
    needed = {image.tick_hz for image in images if not image.product}
    needed |= {DEFAULT_TICK_HZ} if emulated else set()
    product = asked.project.firmware.relative_to(asked.repository).as_posix()
    return CiPlan(
        event=event.name,
        trigger=event.trigger,
        repository=event.repository,
        pull_request=event.pull_request,
        fork=event.fork,
        head=event.head,
        base=asked.base,
        changes=_kinds(asked, event.head),
        # a virtual rack builds for itself
        build=tuple(dict.fromkeys((*racks, *emulated, *([] if unpinned else pinned)))),
        legs=tuple(without_rack(leg, off) for leg in legs),
        ticks_hz=tuple(tick_hz for tick_hz in TICKS_HZ if tick_hz in needed),
        folder=asked.folder,
        product=product if any(image.product for image in images) else "",
        limits=(asked.project.root / "hil" / FOLDER).relative_to(asked.repository).as_posix(),
        idf_version=asked.idf_version,
        rack_label=asked.rack_label,
    )


def _kinds(asked: Asked, head: str) -> tuple[Kind, ...]:
    """Return the kinds of a change. All files of a project but its documentation are firmware."""
    files = changed_files(asked.repository, asked.base, head) if asked.base else ()
    found: set[Kind] = {"documentation" if one == "documentation" else "firmware" for one in kinds_of(files)}
    return tuple(sorted(found))


class _Reader:
    """Reads inputs one after the other; ``wrong`` has a sentence for each that is not allowed."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self.wrong: list[str] = []
        unknown = sorted(values.keys() - DEFAULTS.keys())
        self.wrong += [f"there is no input {name!r}{did_you_mean(name, DEFAULTS)}" for name in unknown]

    def read(self, name: str, check: Callable[[str], T], otherwise: T) -> T:
        try:
            return check(self._values[name])
        except (_WrongError, ConfigError) as error:
            self.wrong.append(f"{name}: {visible(self._values[name])!r} {error}")
            return otherwise


def _modes(text: str) -> tuple[str, ...]:
    words = text.split()
    if len(set(words)) != len(words) or set(words) - set(MODES):
        raise _WrongError(
            f"is none of {', '.join(MODES)}; several are allowed, each once, with blanks between."
        )
    return tuple(mode for mode in MODES if mode in words)


def _folder(repository: Path, text: str) -> str:
    """Return a folder below the repository, as a path relative to it."""
    path = PurePosixPath(text)
    plain = all(character.isprintable() for character in text) and "\\" not in text
    if path.is_absolute() or ".." in path.parts or not plain:
        raise _WrongError("is no path below the repository; allowed is a folder in it, such as firmware/app.")
    folder = (repository / path).resolve()
    if not folder.is_dir() or not folder.is_relative_to(repository.resolve()):
        raise _WrongError(
            "is no folder of the repository; allowed is the one of hil.toml, or one below that."
        )
    return folder.relative_to(repository.resolve()).as_posix()


def _project(repository: Path, folder: str) -> Project:
    """Return the nearest project upwards of a folder, within the repository."""
    top, below = repository.resolve(), PurePosixPath(folder)
    for part in (below, *below.parents):
        if (top / part / PROJECT_FILE).is_file():
            return read_project(top / part)
    raise _WrongError(
        f"has no {PROJECT_FILE}, nor has a folder above it; run `hil init` there, and commit it."
    )


def _idf_version(text: str) -> str:
    found = _IDF_VERSION.fullmatch(text)
    if not found or (int(found[1]), int(found[2])) < OLDEST_IDF:
        oldest = ".".join(map(str, OLDEST_IDF))
        raise _WrongError(
            f"is no release of ESP-IDF from v{oldest} on; allowed is a tag of the container espressif/idf, "
            "such as v5.5.4, with @sha256:… behind it to pin its content."
        )
    return text


def _targets(text: str, modes: tuple[str, ...], project: Project | None) -> tuple[str, ...]:
    words = tuple(dict.fromkeys(text.replace(",", " ").split())) or (project.targets if project else ())
    unknown = [word for word in words if word not in IMAGE_TARGETS]
    if unknown:
        hint = did_you_mean(unknown[0], IMAGE_TARGETS)
        raise _WrongError(
            f"names {visible(unknown[0])!r}, which is no chip{hint} Allowed are {', '.join(IMAGE_TARGETS)}."
        )
    pinned = _pinned_chips(project, modes) if project and not _why_unpinned(project) else ()
    if "emulated" in modes and not set(words) & {*COUNTING, *pinned}:
        raise _WrongError(
            f"has no chip for the mode emulated ({', '.join(words) or 'none is named'}); "
            f"one that counts instructions is needed: {', '.join(COUNTING)}; "
            f"or one of hil/{PROJECT_RACK.name} in {PINNED}, with hil/{PINNED_FILE}."
        )
    if "rack" in modes and not words:
        raise _WrongError(f"names no chip, and neither does {PROJECT_FILE}; the mode rack needs one.")
    return words


def _pinned_chips(project: Project, modes: Sequence[str]) -> tuple[str, ...]:
    """Return the chips that a project's rack file emulates in what the project pins. Raises ConfigError."""
    path = project.root / "hil" / PROJECT_RACK.name
    boards = load_rack(path).boards if "emulated" in modes and path.is_file() else ()
    return tuple(dict.fromkeys(board.chip for board in boards if board.emulator == PINNED))


def _why_unpinned(project: Project) -> str:
    """Return why a workflow cannot install the emulator, "" where it can."""
    return "" if pinned_archive(project.root / "hil" / PINNED_FILE) else f"hil/{PINNED_FILE} pins no archive"


def _suite(text: str, modes: tuple[str, ...], project: Project | None) -> str:
    """Return a suite that selects cases; "" where no mode measures by it."""
    if project is None or not ({"virtual", "rack"} & set(modes) or _pinned_chips(project, modes)):
        return ""
    try:
        select_cases(load_project(project.root / "hil" / "thresholds"), text)
    except ConfigError as error:
        raise _WrongError(f"selects nothing: {error.sentence} {error.next_step}") from error
    return text


def _label(text: str, modes: tuple[str, ...]) -> str:
    if "rack" in modes and not text:
        raise _WrongError("is empty; the mode rack needs the label of the runner that the rack hangs on.")
    if text and not _LABEL.fullmatch(text):
        raise _WrongError("is no runner's label; allowed are letters, digits, - _ and ., 64 at most.")
    return text


def _base(repository: Path, text: str, event: CiEvent) -> str:
    """Return the commit that is compared with; "" where there is none, as on a branch's own push."""
    if text == NONE:
        return ""
    if text == MERGE_BASE:
        return merge_base(repository, event.base_tip, event.head)
    if not _REVISION.fullmatch(text) or ".." in text:
        raise _WrongError(
            f"is no name of a commit; allowed are {MERGE_BASE}, {NONE}, a commit, a branch or a tag."
        )
    for name in (text, f"origin/{text}"):  # of a branch a workflow's checkout has the remote one only
        with suppress(ConfigError):
            return find_revision(repository, name).commit
    raise _WrongError(f"is no commit, branch or tag of the repository; allowed is {MERGE_BASE}, too.")


def _images(asked: Asked) -> set[Image]:
    """Return the images of a chip that the suite needs, the product's own among them."""
    if not asked.suite:
        return set()
    own = asked.project.root / "hil"
    probes = {path.name.removesuffix(SUFFIX) for path in (own / "benches").glob(f"*{SUFFIX}")}
    cases = select_cases(load_project(own / "thresholds"), asked.suite)
    return {image_of("", case, probes) for case in cases}
