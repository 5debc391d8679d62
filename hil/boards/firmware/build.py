# SPDX-License-Identifier: Apache-2.0
"""Building the firmware: for virtual boards with the host's compiler, for chips with ESP-IDF.

A build tree of the host build (firmware/host) is of one setting of compiler and kernel, for all chips. One
build at a time has a folder; the kernel gives the lock back when its process ends.
"""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import hil
from hil.base.chips import CHIPS
from hil.base.errors import ConfigError
from hil.base.flock import wait_for_lock
from hil.base.paths import PROJECT_ROOT
from hil.boards.firmware.build_folder import DEFAULT_TICK_HZ, Image, check_tick_hz, image_sha256
from hil.boards.firmware.revision import (
    STEP_TIMEOUT_S,
    VERSION_FILE,
    Revision,
    check_sources,
    run_step,
    sources_at,
)
from hil.store.files import short_path


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

    def build(self, *programs: str) -> None:
        """Bring programs up to date. Raises ConfigError: a missing tool, or the compiler's first error."""
        for tool in ("cmake", "ninja", "cc"):
            if not shutil.which(tool):
                raise ConfigError(
                    f"building for virtual boards needs {tool}, which is not installed.",
                    next_step="hil doctor.",
                )
        source = str(self.sources / "host")
        configure = ("cmake", "-S", source, "-B", str(self.folder), "-G", "Ninja", *self.options)
        run_step(configure, log=self.log, fresh=True)
        run_step(("cmake", "--build", str(self.folder), "--target", *programs), log=self.log)


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
            raise ConfigError(f"another build of {what} does not end.", next_step=f"fuser -v {path}")
        yield


FIRMWARE_DIR = PROJECT_ROOT / "firmware"
BUILD_ROOT = PROJECT_ROOT / "out" / "firmware"
PROJECT_NAME = "hil-firmware"
HOST_TREE = "host"  # in BUILD_ROOT: what virtual images are built in; another tick has its own

VIRTUAL_PREFIX = "virtual-"
IMAGE_TARGETS = CHIPS
HOST_TARGET = "linux"  # a program for this machine: nothing to flash
IDF_TARGETS = (*IMAGE_TARGETS, HOST_TARGET)
VIRTUAL_TARGETS = tuple(f"{VIRTUAL_PREFIX}{chip}" for chip in CHIPS)
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

    @property
    def tree(self) -> HostTree:
        """Where virtual images are built: together, or a commit's, which may know one chip only, alone."""
        image = self.images[0]
        tick = [f"-DHIL_TICK_HZ={image.tick_hz}"] if image.variant else []  # old sources have no such option
        if self.of_revision:
            alone = (f"-DIDF_TARGET={_chip(image)}", "-DHIL_HOST_TESTS=OFF", *tick)
            return HostTree(self.sources, self.root / f"{image}-host", alone)
        return HostTree(self.sources, self.root / f"{HOST_TREE}{image.variant}", tuple(tick))

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
        return path.read_text(encoding="utf-8").strip() if path.is_file() else hil.__version__

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
    publish: Callable[[Path], Path] | None = None,
) -> Path:
    """Build the firmware for ``target`` where anything changed; return the build folder.

    ``tick_hz`` is how often a second the kernel ticks; each tick has its own folder.
    With ``revision`` the sources are those of that commit, and the folder is one of its own, made anew.
    ``publish`` is called with the folder before another build may change it, and names what is returned.

    Raises:
        ConfigError: an unknown target or tick, a missing tool, a build that failed (its last lines, its log),
            or a commit that lacks what the build needs.
    """
    if target not in TARGETS:
        raise ConfigError(f"there is no target {target!r}.", next_step=f"use one of: {', '.join(TARGETS)}.")
    image = Image(target, check_tick_hz(tick_hz))
    root = build_root / "at" if revision else build_root
    job = _Job((image,), FIRMWARE_DIR, root, say, of_revision=revision is not None)
    with job.locked():
        if revision:
            _build_revision(job, revision)
        else:
            _build(job)
        build_dir = root / str(image)
        return publish(build_dir) if publish else build_dir


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
    """Build from scratch: what was built of another commit before must not take part."""
    (image,) = job.images
    for left in (job.root / str(image), job.tree.folder):
        shutil.rmtree(left, ignore_errors=True)
    with sources_at(PROJECT_ROOT, revision, job.root / f"{image}-sources") as sources:
        check_sources(sources, revision, image, virtual=job.is_virtual)
        job.say(f"Building the firmware of {revision}")
        try:
            _build(dataclasses.replace(job, sources=sources))
        except ConfigError as error:
            raise ConfigError(
                f"the firmware of {revision} cannot be built here: {error.sentence}",
                log=error.log,
                next_step="compare with a later commit, or measure without one to compare with.",
            ) from error


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
    if image.overlay:
        variables.append(f"-DSDKCONFIG_DEFAULTS=sdkconfig.defaults;{image.overlay}")
    run_step(
        ("idf.py", "-B", str(build_dir), *variables, "build"),
        log=job.root / f"{image}.log",
        fresh=True,
        cwd=job.sources,
        env={"HIL_FIRMWARE_VERSION": job.version},  # read by sources that have no version.txt yet
    )


def _sdkconfig(job: _Job, image: Image) -> Path:
    """Return the sdkconfig of these defaults: ESP-IDF would not change one that was made of others."""
    defaults = sorted(job.sources.glob("sdkconfig.defaults*"))
    defaults += [job.sources / image.overlay] if image.overlay else []
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in defaults)).hexdigest()
    return job.root / f"{image}-{digest[:8]}.sdkconfig"
