# SPDX-License-Identifier: Apache-2.0
"""Build hil-air, the emulator's C program, out of this folder's sources."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path

from hil.base.errors import RigError

SOURCE = Path(__file__).parent
TIMEOUT_S = 120.0


def build_air(out_dir: Path, *, sanitize: str = "", target: str = "hil-air") -> Path:
    """Build ``target`` in ``out_dir`` unless it is up to date, and return the path of hil-air.

    ``sanitize`` names its sanitizers, such as "address,undefined". Several processes may call this at once;
    they take turns. Raises RigError with the compiler's output.
    """
    _require_tools()
    build_dir = out_dir.resolve()
    build_dir.mkdir(parents=True, exist_ok=True)
    with (build_dir / "build.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (build_dir / "build.ninja").exists():
            option = f"-DHIL_SANITIZE={sanitize}"
            _run(["cmake", "-S", str(SOURCE), "-B", str(build_dir), "-G", "Ninja", option], build_dir)
        _run(["ninja", "-C", str(build_dir), "-j", "2", target], build_dir)
    return build_dir / "hil-air"


def _require_tools() -> None:
    missing = [tool for tool in ("cmake", "ninja", "cc") if shutil.which(tool) is None]
    if missing:
        raise RigError(
            f"Building the virtual air: {', '.join(missing)} not found.",
            next_step="sudo apt-get install build-essential cmake ninja-build",
        )


def _run(argv: list[str], build_dir: Path) -> None:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise RigError(f"Building the virtual air: {argv[0]} took over {TIMEOUT_S:.0f} s.") from error
    if done.returncode != 0:
        log = build_dir / "build.log"
        log.write_text(done.stdout + done.stderr)
        last = (done.stdout + done.stderr).strip().splitlines()[-5:]
        raise RigError(
            f"Building the virtual air: {argv[0]} exited with {done.returncode}: {' | '.join(last)}.",
            log=str(log),
        )
