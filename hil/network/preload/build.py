# SPDX-License-Identifier: Apache-2.0
"""Build this folder's C files into libraries, once for each state of their source."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from pathlib import Path

from hil.base.errors import RigError
from hil.base.paths import PROJECT_ROOT

SOURCES = Path(__file__).parent
OUT_DIR = PROJECT_ROOT / "out" / "preload"
TIMEOUT_S = 60.0
INSTALL = "sudo apt-get install gcc libc6-dev libssl-dev"


def build_library(stem: str, out_dir: Path | None = None) -> Path:
    """Build ``stem``.c in ``out_dir`` unless that was done before, and return the library's path.

    Several processes may call this at once. Raises RigError: no compiler, a header is missing (the compiler's
    words), or no place to write.
    """
    source = SOURCES / f"{stem}.c"
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:12]
    library = (out_dir or OUT_DIR).resolve() / f"{stem}-{digest}.so"
    if set(" :") & set(str(library)):
        raise RigError(
            f"Building {source}: LD_PRELOAD allows no path with a space or a colon: {library}.",
            next_step="move the checkout to a path without them.",
        )
    if not library.exists():
        try:
            _build(source, library)
        except OSError as error:
            raise RigError(f"Building {source}: {error}.", next_step=INSTALL) from error
    return library


def _build(source: Path, library: Path) -> None:
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        made = Path(folder) / library.name
        argv = ["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-o", str(made), str(source), "-ldl"]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise RigError(f"Building {source}: cc took over {TIMEOUT_S:.0f} s.") from error
        if done.returncode != 0:
            words = [line for line in done.stderr.splitlines() if "error" in line] or ["it said nothing"]
            raise RigError(
                f"Building {source}: cc exited with {done.returncode}: {words[0]}.", next_step=INSTALL
            )
        made.replace(library)  # at once, whoever else builds it
