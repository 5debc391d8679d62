"""Firmware builds: a build folder in the form that ESP-IDF gives it, whatever built it."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

import hil
from hil.errors import ConfigError

PROJECT_ROOT = Path(hil.__file__).resolve().parent.parent
FIRMWARE_DIR = PROJECT_ROOT / "firmware"
BUILD_ROOT = PROJECT_ROOT / "out" / "firmware"
PROJECT_NAME = "hil-firmware"

VIRTUAL_PREFIX = "virtual-"
IDF_TARGETS = ("esp32", "esp32s3", "esp32c3", "linux")
VIRTUAL_TARGETS = ("virtual-esp32",)
TARGETS = (*VIRTUAL_TARGETS, *IDF_TARGETS)

BUILD_TIMEOUT_S = 1800.0
END_TIMEOUT_S = 2.0
LOCK_POLL_S = 0.2
_DIGEST_BYTES = 32
_HASH_APPENDED_OFFSET = 23  # esp_image_header_t.hash_appended, ESP-IDF "App Image Format"

Say = Callable[[str], None]


def build(
    target: str,
    *,
    say: Say = print,
    build_root: Path = BUILD_ROOT,
    cmake_options: Sequence[str] = (),
    jobs: int = 2,
) -> Path:
    """Build the firmware for ``target`` where anything changed; return the build folder.

    Raises:
        ConfigError: an unknown target, a missing tool, or a build that failed (its last lines, its log).
    """
    if target in TARGETS:
        with _locked(build_root / f"{target}.lock", target, say):
            if target in VIRTUAL_TARGETS:
                return _build_virtual(target, say, build_root, cmake_options, jobs)
            return _build_idf(target, say, build_root)
    raise ConfigError(f"there is no target {target!r}.", next_step=f"use one of: {', '.join(TARGETS)}.")


def image_sha256(build_dir: Path) -> str:
    """Return the SHA-256 that the app image in ``build_dir`` carries, after checking that it is right.

    Raises:
        ConfigError: no build there, an image without a digest, or a damaged one.
    """
    image = app_image(build_dir)
    content = image.read_bytes()
    if len(content) < 2 * _DIGEST_BYTES or not content[_HASH_APPENDED_OFFSET]:
        raise ConfigError(f"{image} carries no SHA-256, so its origin cannot be proven.", next_step=_AGAIN)
    body, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != digest:
        raise ConfigError(f"{image} is damaged: its SHA-256 does not match its content.", next_step=_AGAIN)
    return digest.hex()


_AGAIN = "build it again: hil build --target TARGET."


def app_image(build_dir: Path) -> Path:
    """Return the app image that ``flasher_args.json`` names. Raises ConfigError where it is missing."""
    name = flasher_args(build_dir).get("app", {}).get("file", "")
    image = build_dir / str(name)
    if not name or not image.is_file():
        raise ConfigError(f"{build_dir} holds no app image ({name or 'not named'}).", next_step=_AGAIN)
    return image


def flasher_args(build_dir: Path) -> dict[str, dict[str, object]]:
    """Return what ESP-IDF's build says about flashing. Raises ConfigError where there is no build."""
    path = build_dir / "flasher_args.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"{build_dir} is not a firmware build: no {path.name}.", next_step=_AGAIN
        ) from error
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON: {error}.", next_step=_AGAIN) from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path} holds no object.", next_step=_AGAIN)
    return content


def build_target(build_dir: Path) -> str:
    """Return the chip that a build is for. Raises ConfigError."""
    return str(flasher_args(build_dir).get("extra_esptool_args", {}).get("chip", ""))


def _build_virtual(target: str, say: Say, build_root: Path, cmake_options: Sequence[str], jobs: int) -> Path:
    for tool in ("cmake", "ninja", "cc"):
        if not shutil.which(tool):
            raise ConfigError(
                f"building {target} needs {tool}, which is not installed.", next_step="hil doctor."
            )
    build_dir = build_root / target
    host_dir = build_root / f"{target}-host"
    say(f"Building {target} in {_short(build_dir)}")
    log = build_root / f"{target}.log"
    generator = ("-G", "Ninja", "-DHIL_HOST_TESTS=OFF", *cmake_options)
    _run(("cmake", "-S", str(FIRMWARE_DIR / "host"), "-B", str(host_dir), *generator), log=log, fresh=True)
    _run(
        ("cmake", "--build", str(host_dir), "--parallel", str(jobs), "--target", "hil-firmware.elf"), log=log
    )
    _write_image(host_dir / "hil-firmware.elf", build_dir, target)
    say(f"Built {PROJECT_NAME} {image_sha256(build_dir)[:12]} for {target}")
    return build_dir


def _write_image(elf: Path, build_dir: Path, target: str) -> None:
    from hil.virtual.image import build_image_dir

    chip = target.removeprefix(VIRTUAL_PREFIX)
    build_image_dir(elf, build_dir, chip=chip, project=PROJECT_NAME, version=hil.__version__)


def _build_idf(target: str, say: Say, build_root: Path) -> Path:
    if not shutil.which("idf.py"):
        raise ConfigError(
            f"building for {target} needs ESP-IDF, and idf.py is not on PATH.",
            next_step=". $IDF_PATH/export.sh, or run in the container espressif/idf:v5.5.4; "
            "virtual boards need neither: hil build --target virtual-esp32.",
        )
    build_dir = build_root / target
    say(f"Building {target} in {_short(build_dir)} with idf.py")
    sdkconfig = build_root / f"{target}.sdkconfig"
    _run(
        ("idf.py", "-B", str(build_dir), f"-DIDF_TARGET={target}", f"-DSDKCONFIG={sdkconfig}", "build"),
        log=build_root / f"{target}.log",
        fresh=True,
        cwd=FIRMWARE_DIR,
    )
    return build_dir


@contextmanager
def _locked(path: Path, target: str, say: Say) -> Iterator[None]:
    """One build of a folder at a time; the kernel gives the lock back when its process ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + 2 * BUILD_TIMEOUT_S
    with path.open("w", encoding="utf-8") as lock:
        told = False
        while not _try_lock(lock.fileno()):
            if time.monotonic() >= deadline:
                raise ConfigError(f"another build of {target} does not end.", next_step=f"fuser -v {path}")
            if not told:
                say(f"Waiting for another build of {target}")
                told = True
            time.sleep(LOCK_POLL_S)
        yield


def _try_lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _run(argv: Sequence[str], *, log: Path, fresh: bool = False, cwd: Path | None = None) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w" if fresh else "a", encoding="utf-8") as out:
        out.write(f"$ {' '.join(argv)}\n")
        out.flush()
        status = _run_to_end(argv, out, log, cwd)
    if status:
        raise ConfigError(
            f"the build failed: {_first_error(log)}",
            log=str(log),
            next_step="mend the source and build again.",
        )


# The group's leader outlives a kill -9 of ours just long enough to end what it started. SIGTERM first, as
# ninja keeps compilers in process groups of their own and passes it on to them.
_LEADER = """
trap 'trap "" TERM; kill -TERM 0; wait; exit 143' TERM
test "$PPID" = "$0" || exit 1
"$@" &
wait $!
"""


def _run_to_end(argv: Sequence[str], out: TextIO, log: Path, cwd: Path | None) -> int:
    """Run a build step in a session of its own; nothing of it is left, however this process ends."""
    leader = ("setpriv", "--pdeathsig", "TERM", "--", "sh", "-c", _LEADER, str(os.getpid()))
    try:
        process = subprocess.Popen(
            [*leader, *argv], stdout=out, stderr=subprocess.STDOUT, cwd=cwd, start_new_session=True
        )
    except OSError as error:
        raise ConfigError(
            f"starting {argv[0]}: {error.strerror}.", next_step="sudo apt-get install util-linux"
        ) from error
    try:
        return process.wait(BUILD_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise ConfigError(f"{argv[0]} did not end within {BUILD_TIMEOUT_S:g} s.", log=str(log)) from error
    finally:
        if process.returncode is None:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(END_TIMEOUT_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(END_TIMEOUT_S)


def _first_error(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    wrong = [line for line in lines if "error:" in line or "Error" in line]
    return (wrong or lines or ["no output"])[0].strip()


def _short(path: Path) -> str:
    here = Path.cwd()
    return os.path.relpath(path, here) if path.is_relative_to(here) else str(path)
