# SPDX-License-Identifier: Apache-2.0
"""The tool as others have it: its wheel, built once of what lies here, in an empty environment."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import sys
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hil.base.git import git
from hil.reports.fetching import _digest
from tests.lab import ROOT, own_environment, run

WHEELS = ROOT / "out" / "tests" / "wheels"
OLD_S = 3600.0  # nobody works with a wheel of other sources any more


def tracked() -> list[str]:
    """Return the files of this checkout as git has them, links to folders left out."""
    names = git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    return [name for name in names if (ROOT / name).is_file()]


def wheel() -> Path:
    """Return the wheel of the checkout as it is, committed in a copy beside it; built where it is not yet."""
    with _locked():
        folder = WHEELS / _state()
        if not (found := list(folder.glob("*.whl"))):
            _remove_old()
            shutil.rmtree(folder, ignore_errors=True)
            found = [_build(folder)]
        return found[0]


def environment() -> Path:
    """Return an environment with the wheel; what it asks for comes from here, but for this checkout."""
    built = wheel()
    made = built.parent / "venv"
    with _locked():
        if not (made / "bin" / "hil").is_file():
            shutil.rmtree(made, ignore_errors=True)
            _install(built, made)
    return made


def generator_folder() -> str:
    """Return the folder of the cache in which the installed tool looks for the report's generator."""
    (site,) = environment().glob("lib/python3.*/site-packages/hil/reports/site")
    return f"report-{_digest(site)}"


def users_environment(home: Path, binaries: Path) -> dict[str, str]:
    """Return the environment of a user whose home is ``home`` and whose programs come from ``binaries``.

    The report's generator lies in his cache, where npm would put it.
    """
    kept = {name: value for name, value in own_environment().items() if name != "PYTHONPATH"}
    generator = home / ".cache" / "hil" / generator_folder()
    generator.parent.mkdir(parents=True, exist_ok=True)
    generator.symlink_to(ROOT / "reports" / "site")
    author = {
        f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    return {
        **kept,
        **author,
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "PATH": f"{binaries}:{kept['PATH']}",
    }


@contextmanager
def _locked() -> Iterator[None]:
    WHEELS.mkdir(parents=True, exist_ok=True)
    with (WHEELS / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _state() -> str:
    digest = hashlib.sha256()
    for name in tracked():
        digest.update(f"{name}\n{hashlib.sha256((ROOT / name).read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()[:16]


def _remove_old() -> None:
    for folder in WHEELS.iterdir():
        if folder.is_dir() and time.time() - folder.stat().st_mtime > OLD_S:
            shutil.rmtree(folder)


def _build(folder: Path) -> Path:
    copy = folder / "checkout"
    for name in (
        *tracked(),
        "hil/fixtures",
        "hil/reports",
        *(f"hil/data/{link.name}" for link in (ROOT / "hil" / "data").iterdir() if link.is_symlink()),
    ):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name, follow_symlinks=False)
    origin = ("remote", "add", "origin", "git@github.example:example/hil.git")
    for words in (("init", "--quiet"), origin, ("add", "--all"), ("commit", "--quiet", "--message=all")):
        git(copy, "-c", "user.name=t", "-c", "user.email=t@example.org", *words)
    return _wheel(folder, copy)


def _wheel(folder: Path, sources: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    done = run([*pip, folder, sources], folder.parent, timeout_s=300)
    assert done.returncode == 0, done.stdout
    (built,) = folder.glob("*.whl")
    return built


def _install(built: Path, made: Path) -> None:
    venv.create(made, with_pip=False, symlinks=True)
    (packages,) = made.glob("lib/python3.*/site-packages")
    (here,) = Path(sys.prefix).glob("lib/python3.*/site-packages")
    (packages / "here.pth").write_text(f"{here}\n")  # its own .pth files, of the checkout, are not read
    pip = [sys.executable, "-m", "pip", "--python", made / "bin" / "python", "install", "--no-deps"]
    done = run([*pip, "--no-index", "--ignore-installed", built], built.parent, timeout_s=300)
    assert done.returncode == 0, done.stdout


def plugin_wheel() -> Path:
    """Return the wheel of the plugin of a team's own suite, built of the checkout as it is."""
    built = wheel().parent
    with _locked():
        if not (found := list((built / "plugin").glob("*.whl"))):
            found = [_wheel(built / "plugin", built / "checkout" / "fixtures")]
        return found[0]


def suites_environment(folder: Path) -> Path:
    """Return an environment as a suite has it: pytest, pytest-embedded and pip, and nothing of hil."""
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python3.*/site-packages")
    (here,) = Path(sys.prefix).glob("lib/python3.*/site-packages")
    for entry in here.iterdir():
        if not entry.name.startswith(("esp_hil", "_esp_hil", "allure")):
            (packages / entry.name).symlink_to(entry)
    for program in ("pip", "pytest"):
        path = folder / "bin" / program
        path.write_text(f'#!/bin/sh\nexec "{folder}/bin/python" -m {program} "$@"\n')
        path.chmod(0o755)
    return folder
