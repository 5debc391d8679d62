# SPDX-License-Identifier: Apache-2.0
"""Building the firmware: for virtual boards with the host's compiler, for chips with ESP-IDF.

A build tree of the host build (firmware/host) is of one setting of compiler and kernel, for all chips. One
build at a time has a folder; the kernel gives the lock back when its process ends.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import hil
from hil.base.chips import CHIPS, MODELLED
from hil.base.errors import ConfigError, RefusedSourcesError
from hil.base.flock import wait_for_lock
from hil.base.paths import CHECKOUT, PROJECT_ROOT, TOOL_FIRMWARE, own_benches
from hil.boards.firmware.build_folder import DEFAULT_TICK_HZ, Image, check_tick_hz, image_sha256
from hil.boards.firmware.failure import refuses_sources
from hil.boards.firmware.revision import (
    STEP_TIMEOUT_S,
    VERSION_FILE,
    Revision,
    check_sources,
    run_step,
    sources_at,
)
from hil.boards.firmware.ruler import RULER_LOG, RulerSources, last_lines, put_ruler
from hil.model import Ruler
from hil.store.files import short_path, typed_path


@dataclass(frozen=True)
class HostTree:
    """``options`` are CMake's; whoever builds in the tree holds its ``lock`` (build_lock.py)."""

    sources: Path  # the folder firmware/
    folder: Path
    options: tuple[str, ...] = ()

    @property
    def lock(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.lock")

    @property
    def log(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.log")

    def build(self, *programs: str, keep_going: bool = False) -> None:
        """Bring programs up to date. Raises ConfigError: a missing tool, or the compiler's first error.

        With ``keep_going`` the log has the errors of all sources.
        """
        if is_configured := self._is_configured():
            _check_tools()
        else:
            self.configure()
        more = ("--", "-k", "0") if keep_going else ()
        command = ("cmake", "--build", str(self.folder), "--target", *programs, *more)
        run_step(command, log=self.log, fresh=is_configured, env={"LC_ALL": "C"})

    def configure(self) -> None:
        """Bring the tree up to date. Raises ConfigError: a missing tool, or CMake's first error."""
        _check_tools()
        source = self.sources / "host"
        forget_other_sources(self.folder, source)
        configure = ("cmake", "-S", str(source), "-B", str(self.folder), "-G", "Ninja", *self.options)
        run_step(configure, log=self.log, fresh=True)

    def _is_configured(self) -> bool:
        """Return whether CMake has these sources and options: what changes in its files ninja sees itself."""
        lines = _cache_lines(self.folder)
        values = {re.sub(":[A-Z]+=", "=", line) for line in lines}
        is_there = (self.folder / "build.ninja").is_file() and _is_of(self.sources / "host", lines)
        return is_there and values.issuperset(option.removeprefix("-D") for option in self.options)


def _check_tools() -> None:
    for tool in ("cmake", "ninja", "cc"):
        if not shutil.which(tool):
            raise ConfigError(
                f"building for virtual boards needs {tool}, which is not installed.", next_step="hil doctor."
            )


def forget_other_sources(build_dir: Path, source: Path) -> None:
    """Remove a build that is of sources elsewhere, as another installation's: CMake refuses it."""
    if build_dir.joinpath("CMakeCache.txt").is_file() and not _is_of(source, _cache_lines(build_dir)):
        shutil.rmtree(build_dir)


def _is_of(source: Path, cache: Collection[str]) -> bool:
    return f"CMAKE_HOME_DIRECTORY:INTERNAL={source}" in cache


def _cache_lines(build_dir: Path) -> list[str]:
    path = build_dir / "CMakeCache.txt"
    return path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []


@contextmanager
def locked(path: Path, what: str, say: Callable[[str], object]) -> Iterator[None]:
    """Hold the lock ``path``; ``say`` tells that another build, of ``what`` or beside it, is waited for.

    Raises ConfigError where that one does not end.
    """
    path.parent.mkdir(parents=True, exist_ok=True)

    def waiting() -> None:
        say(f"Waiting for another build of {what}")

    with path.open("w", encoding="utf-8") as lock:
        if not wait_for_lock(lock.fileno(), timeout_s=2 * STEP_TIMEOUT_S, waiting=waiting):
            raise ConfigError(
                f"another build of {what} is still running.", next_step=f"fuser -v {typed_path(path)}"
            )
        yield


FIRMWARE_DIR = TOOL_FIRMWARE
BUILD_ROOT = PROJECT_ROOT / "out" / "firmware"
PROJECT_NAME = "hil-firmware"
_MOST_OF_VERSION = 14  # characters: an image's description has room for 31, with what is planted
HOST_TREE = "host"  # in BUILD_ROOT: what virtual images are built in; another tick has its own

VIRTUAL_PREFIX = "virtual-"
IMAGE_TARGETS = tuple(CHIPS)
HOST_TARGET = "linux"  # a program for this machine: nothing to flash
IDF_TARGETS = (*IMAGE_TARGETS, HOST_TARGET)
VIRTUAL_TARGETS = tuple(f"{VIRTUAL_PREFIX}{chip}" for chip in MODELLED)
TARGETS = (*VIRTUAL_TARGETS, *IDF_TARGETS)

Say = Callable[[str], None]


@dataclass(frozen=True)
class _Job:
    """Images that are built at once: virtual ones of one tick, or a single one."""

    images: tuple[Image, ...]
    sources: Path
    root: Path
    say: Say
    of_revision: bool = False
    plant_us: int = 0

    @property
    def tree(self) -> HostTree:
        """Where virtual images are built: together, or a commit's, which may know one chip only, alone."""
        image = self.images[0]
        tick = [f"-DHIL_TICK_HZ={image.tick_hz}"] if image.variant else []  # old sources have no such option
        if self.of_revision:
            alone = (f"-DIDF_TARGET={_chip(image)}", "-DHIL_HOST_TESTS=OFF", *tick)
            return HostTree(self.sources, self.root / f"{image}-host", alone)
        # a project's benches are in all of its builds; said even where there are none, for CMake remembers
        own = [] if PROJECT_ROOT == CHECKOUT else [f"-DHIL_BENCHES={own_benches() or ''}"]
        own += [f"-DHIL_PLANT_PUBLISH_US={self.plant_us}"] if self.plant_us else []
        return HostTree(self.sources, self.root / f"{HOST_TREE}{image.variant}", (*tick, *own))

    @property
    def is_virtual(self) -> bool:
        return self.images[0].target in VIRTUAL_TARGETS

    @property
    def lock(self) -> Path:
        return self.tree.lock if self.is_virtual else self.root / f"{self.images[0]}.lock"

    @property
    def version(self) -> str:
        """What the image calls itself: no commit in it, so that the same sources give the same image."""
        path = self.sources / VERSION_FILE
        own = path.read_text(encoding="utf-8").strip() if path.is_file() else hil.__version__
        return f"{own[:_MOST_OF_VERSION]}+planted-{self.plant_us}us" if self.plant_us else own

    def program(self, image: Image) -> str:
        return f"{PROJECT_NAME}.elf" if self.of_revision else f"{PROJECT_NAME}-{_chip(image)}.elf"

    def locked(self) -> AbstractContextManager[None]:
        return locked(self.lock, ", ".join(map(str, self.images)), self.say)


def build(
    target: str,
    *,
    tick_hz: int = DEFAULT_TICK_HZ,
    say: Say = print,
    build_root: Path = BUILD_ROOT,
    revision: Revision | None = None,
    ruler: RulerSources | None = None,
    plant_us: int = 0,
    publish: Callable[[Path, Ruler | None], Path] | None = None,
) -> Path:
    """Build the firmware for ``target`` where anything changed; return the build folder.

    ``tick_hz`` is how often a second the kernel ticks; each tick has its own folder.
    With ``plant_us`` each MQTT publish is late by so many microseconds, for the gate to find: the build has a
    folder of its own, and its version says it.
    With ``revision`` the sources are those of that commit, and the folder is one of its own, made anew; with
    ``ruler`` what measures is taken from there, where it builds with the rest.
    ``publish`` is called with the folder and what became of the ruler before another build may change it, and
    names what is returned.

    Raises:
        ConfigError: an unknown target or tick, a missing tool, a build that failed (its last lines, its log),
            or a commit that lacks what the build needs.
    """
    if target not in TARGETS:
        raise ConfigError(f"unknown target {target!r}.", next_step=f"use one of: {', '.join(TARGETS)}.")
    image = Image(target, check_tick_hz(tick_hz))
    root = build_root / "at" if revision else build_root / "planted" if plant_us else build_root
    job = _Job((image,), FIRMWARE_DIR, root, say, of_revision=revision is not None, plant_us=plant_us)
    with job.locked():
        became = None
        if revision and ruler:
            became = _build_with_ruler(job, revision, ruler)
        elif revision:
            _build_revision(job, revision)
        else:
            _build(job)
        build_dir = root / str(image)
        return publish(build_dir, became) if publish else build_dir


def build_all(images: Iterable[Image], *, say: Say = print) -> dict[Image, Path]:
    """Build images where anything changed, those that share a build tree at once; return their build folders.

    Raises:
        ConfigError: as build() does.
    """
    images = list(images)
    jobs: dict[Path, _Job] = {}
    for image in images:
        job = _Job((image,), FIRMWARE_DIR, BUILD_ROOT, say)
        others = jobs[job.lock].images if job.lock in jobs else ()
        jobs[job.lock] = dataclasses.replace(job, images=(*others, image))
    for job in jobs.values():
        with job.locked():
            _build(job)
    return {image: BUILD_ROOT / str(image) for image in images}


def _build_revision(job: _Job, revision: Revision) -> None:
    with _sources(job, revision) as sources:
        job.say(f"Building the firmware of {revision}")
        try:
            _build_anew(job, sources)
        except ConfigError as error:
            refused = error.log and refuses_sources(Path(error.log), sources)
            kind = RefusedSourcesError if refused else ConfigError
            raise kind(
                f"the firmware of {revision} cannot be built here: {error.sentence}",
                log=error.log,
                next_step="compare with a later commit, or measure without one to compare with.",
            ) from error


def _build_with_ruler(job: _Job, revision: Revision, wanted: RulerSources) -> Ruler:
    """Build a commit's product with the ruler that is wanted; where that does not build, with its own."""
    (image,) = job.images
    failed = None
    with (
        _sources(job, revision) as sources,
        wanted.firmware(job.root / f"{image}-ruler-sources") as ruler,
    ):
        moved = put_ruler(ruler, sources)
        if moved:
            job.say(f"Building the firmware of {revision} with the benches of {wanted}")
            try:
                _build_anew(job, sources)
            except ConfigError as error:
                failed = error
            else:
                return wanted.became(moved)
    if failed is None:
        _build_revision(job, revision)
        return wanted.became()
    job.say(f"The benches of {wanted} do not build with {revision}, which keeps its own: {failed.sentence}")
    lines = last_lines(failed)  # before the next build writes to the same log
    _build_revision(job, revision)
    (job.root / str(image) / RULER_LOG).write_text(lines, encoding="utf-8")
    return wanted.became(reason=failed.sentence)


@contextmanager
def _sources(job: _Job, revision: Revision) -> Iterator[Path]:
    (image,) = job.images
    with sources_at(PROJECT_ROOT, revision, job.root / f"{image}-sources") as sources:
        check_sources(sources, revision, image, virtual=job.is_virtual)
        yield sources


def _build_anew(job: _Job, sources: Path) -> None:
    """Build from scratch: what was built of other sources before must not take part."""
    (image,) = job.images
    for left in (job.root / str(image), job.tree.folder):
        shutil.rmtree(left, ignore_errors=True)
    _build(dataclasses.replace(job, sources=sources))


def _build(job: _Job) -> None:
    if not job.is_virtual:
        _build_idf(job)
        return
    for image in job.images:
        job.say(f"Building {image} in {short_path(job.root / str(image))}")
    job.tree.build(*map(job.program, job.images))
    for image in job.images:
        _write_image(job, image)
        job.say(f"Built {PROJECT_NAME} {image_sha256(job.root / str(image))[:12]} for {image}")


def _write_image(job: _Job, image: Image) -> None:
    from hil.boards.firmware.image import build_image_dir

    build_image_dir(
        job.tree.folder / job.program(image),
        job.root / str(image),
        chip=_chip(image),
        project=PROJECT_NAME,
        version=job.version,
        tick_hz=image.tick_hz,
        partitions_csv=job.sources / "partitions.csv",
    )


def _chip(image: Image) -> str:
    return image.target.removeprefix(VIRTUAL_PREFIX)


def _build_idf(job: _Job) -> None:
    (image,) = job.images
    build_dir = job.root / str(image)
    if not shutil.which("idf.py"):
        raise ConfigError(
            f"building for {image.target} needs ESP-IDF, and idf.py is not on PATH.",
            next_step=". $IDF_PATH/export.sh, or run in the container espressif/idf:v5.5.4; "
            "virtual boards need neither: hil build --target virtual-esp32.",
        )
    job.say(f"Building {image} in {short_path(build_dir)} with idf.py")
    variables = [f"-DIDF_TARGET={image.target}", f"-DSDKCONFIG={_sdkconfig(job, image)}"]
    if overlays := _overlays(job, image):
        variables.append(f"-DSDKCONFIG_DEFAULTS={';'.join(['sdkconfig.defaults', *overlays])}")
    run_step(
        ("idf.py", "-B", str(build_dir), *variables, "build"),
        log=job.root / f"{image}.log",
        fresh=True,
        cwd=job.sources,
        env={
            "HIL_FIRMWARE_VERSION": job.version,  # read by sources that have no version.txt yet
            "HIL_BENCHES": "" if job.of_revision else str(own_benches() or ""),
        },
    )


def _overlays(job: _Job, image: Image) -> list[str]:
    """Return the files whose values come after the defaults', as seen from the sources; what is planted is
    written anew."""
    found = [image.overlay] if image.overlay else []
    if job.plant_us:
        planted = job.root / f"{image}.planted"
        job.root.mkdir(parents=True, exist_ok=True)
        planted.write_text(
            f"CONFIG_HIL_PLANT_PUBLISH_US={job.plant_us}\n"
            f'CONFIG_APP_PROJECT_VER_FROM_CONFIG=y\nCONFIG_APP_PROJECT_VER="{job.version}"\n'
        )
        found.append(str(planted.absolute()))
    return found


def _sdkconfig(job: _Job, image: Image) -> Path:
    """Return the sdkconfig of these defaults: ESP-IDF would not change one that was made of others."""
    defaults = sorted(job.sources.glob("sdkconfig.defaults*"))
    defaults += [job.sources / name for name in _overlays(job, image)]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in defaults)).hexdigest()
    return job.root / f"{image}-{digest[:8]}.sdkconfig"
