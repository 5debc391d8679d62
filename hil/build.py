"""Building the firmware: for virtual boards with the host's compiler, for chips with ESP-IDF."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import hil
from hil.chips import CHIPS
from hil.errors import ConfigError
from hil.firmware.build_folder import image_sha256
from hil.firmware.revision import VERSION_FILE, Revision, check_sources, sources_at
from hil.firmware.step import STEP_TIMEOUT_S, run_step
from hil.firmware.variant import DEFAULT_TICK_HZ, Image, check_tick_hz
from hil.flock import wait_for_lock
from hil.store.files import short_path

PROJECT_ROOT = Path(hil.__file__).resolve().parent.parent
FIRMWARE_DIR = PROJECT_ROOT / "firmware"
BUILD_ROOT = PROJECT_ROOT / "out" / "firmware"
PROJECT_NAME = "hil-firmware"

VIRTUAL_PREFIX = "virtual-"
IMAGE_TARGETS = CHIPS
HOST_TARGET = "linux"  # a program for this machine: nothing to flash
IDF_TARGETS = (*IMAGE_TARGETS, HOST_TARGET)
VIRTUAL_TARGETS = tuple(f"{VIRTUAL_PREFIX}{chip}" for chip in CHIPS)
TARGETS = (*VIRTUAL_TARGETS, *IDF_TARGETS)

Say = Callable[[str], None]


@dataclass(frozen=True)
class _Job:
    image: Image
    sources: Path
    root: Path
    say: Say
    cmake_options: Sequence[str]
    jobs: int

    @property
    def build_dir(self) -> Path:
        return self.root / str(self.image)

    @property
    def host_dir(self) -> Path:
        return self.root / f"{self.image}-host"

    @property
    def log(self) -> Path:
        return self.root / f"{self.image}.log"

    @property
    def is_virtual(self) -> bool:
        return self.image.target in VIRTUAL_TARGETS

    @property
    def chip(self) -> str:
        return self.image.target.removeprefix(VIRTUAL_PREFIX)

    @property
    def version(self) -> str:
        """What the image calls itself: no commit in it, so that the same sources give the same image."""
        path = self.sources / VERSION_FILE
        return path.read_text(encoding="utf-8").strip() if path.is_file() else hil.__version__


def build(
    target: str,
    *,
    tick_hz: int = DEFAULT_TICK_HZ,
    say: Say = print,
    build_root: Path = BUILD_ROOT,
    cmake_options: Sequence[str] = (),
    jobs: int = 2,
    revision: Revision | None = None,
    publish: Callable[[Path], Path] | None = None,
) -> Path:
    """Build the firmware for ``target`` where anything changed; return the build folder.

    ``tick_hz`` is how often a second the kernel ticks (hil.firmware.variant); each tick has its own folder.
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
    with _locked(root / f"{image}.lock", image, say):
        job = _Job(image, FIRMWARE_DIR, root, say, cmake_options, jobs)
        build_dir = _build_revision(job, revision) if revision else _build(job)
        return publish(build_dir) if publish else build_dir


def _build_revision(job: _Job, revision: Revision) -> Path:
    """Build from scratch: what was built of another commit before must not take part."""
    for left in (job.build_dir, job.host_dir):
        shutil.rmtree(left, ignore_errors=True)
    with sources_at(PROJECT_ROOT, revision, job.root / f"{job.image}-sources") as sources:
        check_sources(sources, revision, job.image, virtual=job.is_virtual)
        job.say(f"Building the firmware of {revision}")
        try:
            return _build(dataclasses.replace(job, sources=sources))
        except ConfigError as error:
            raise ConfigError(
                f"the firmware of {revision} cannot be built here: {error.sentence}",
                log=error.log,
                next_step="compare with a later commit, or measure without one to compare with.",
            ) from error


def _build(job: _Job) -> Path:
    return _build_virtual(job) if job.is_virtual else _build_idf(job)


def _build_virtual(job: _Job) -> Path:
    for tool in ("cmake", "ninja", "cc"):
        if not shutil.which(tool):
            raise ConfigError(
                f"building {job.image} needs {tool}, which is not installed.", next_step="hil doctor."
            )
    job.say(f"Building {job.image} in {short_path(job.build_dir)}")
    options = ("-G", "Ninja", f"-DIDF_TARGET={job.chip}", "-DHIL_HOST_TESTS=OFF", *job.cmake_options)
    if job.image.variant:  # sources from before there were ticks to choose know no such option
        options += (f"-DHIL_TICK_HZ={job.image.tick_hz}",)
    configure = ("cmake", "-S", str(job.sources / "host"), "-B", str(job.host_dir), *options)
    run_step(configure, log=job.log, fresh=True)
    make = (
        "cmake",
        "--build",
        str(job.host_dir),
        "--parallel",
        str(job.jobs),
        "--target",
        "hil-firmware.elf",
    )
    run_step(make, log=job.log)
    _write_image(job)
    job.say(f"Built {PROJECT_NAME} {image_sha256(job.build_dir)[:12]} for {job.image}")
    return job.build_dir


def _write_image(job: _Job) -> None:
    from hil.virtual.image import build_image_dir

    build_image_dir(
        job.host_dir / "hil-firmware.elf",
        job.build_dir,
        chip=job.chip,
        project=PROJECT_NAME,
        version=job.version,
        tick_hz=job.image.tick_hz,
        partitions_csv=job.sources / "partitions.csv",
    )


def _build_idf(job: _Job) -> Path:
    if not shutil.which("idf.py"):
        raise ConfigError(
            f"building for {job.image.target} needs ESP-IDF, and idf.py is not on PATH.",
            next_step=". $IDF_PATH/export.sh, or run in the container espressif/idf:v5.5.4; "
            "virtual boards need neither: hil build --target virtual-esp32.",
        )
    job.say(f"Building {job.image} in {short_path(job.build_dir)} with idf.py")
    variables = [f"-DIDF_TARGET={job.image.target}", f"-DSDKCONFIG={_sdkconfig(job)}"]
    if job.image.overlay:
        variables.append(f"-DSDKCONFIG_DEFAULTS=sdkconfig.defaults;{job.image.overlay}")
    run_step(
        ("idf.py", "-B", str(job.build_dir), *variables, "build"),
        log=job.log,
        fresh=True,
        cwd=job.sources,
        env={"HIL_FIRMWARE_VERSION": job.version},  # read by sources that have no version.txt yet
    )
    return job.build_dir


def _sdkconfig(job: _Job) -> Path:
    """Return the sdkconfig of these defaults: ESP-IDF would not change one that was made of others."""
    defaults = sorted(job.sources.glob("sdkconfig.defaults*"))
    defaults += [job.sources / job.image.overlay] if job.image.overlay else []
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in defaults)).hexdigest()
    return job.root / f"{job.image}-{digest[:8]}.sdkconfig"


@contextmanager
def _locked(path: Path, image: Image, say: Say) -> Iterator[None]:
    """One build of a folder at a time; the kernel gives the lock back when its process ends."""
    path.parent.mkdir(parents=True, exist_ok=True)

    def waiting() -> None:
        say(f"Waiting for another build of {image}")

    with path.open("w", encoding="utf-8") as lock:
        if not wait_for_lock(lock.fileno(), timeout_s=2 * STEP_TIMEOUT_S, waiting=waiting):
            raise ConfigError(f"another build of {image} does not end.", next_step=f"fuser -v {path}")
        yield
