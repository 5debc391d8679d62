# SPDX-License-Identifier: Apache-2.0
"""What a run finds around it: places, environment, terminal, programs that it would use, who it is."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.lab import ROOT
from tools.chaos.broker import shim
from tools.chaos.fault import MOMENTS, Act, Fault, Owner, answering
from tools.chaos.trial import Trial


def environment(**values: str) -> Act:
    """Return what sets variables of the run; "" takes one away."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        trial.env.update(values)
        for name in [name for name, value in values.items() if not value]:
            del trial.env[name]
        yield

    return act


def run_by(*words: str) -> Act:
    """Return what runs the run by another program, such as prlimit."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        trial.before = list(words)
        yield

    return act


@contextmanager
def _turkish(trial: Trial) -> Iterator[None]:
    """Speak Turkish, in which "I".lower() has no dot where it should."""
    place = trial.lab_folder / "locales"
    place.mkdir(exist_ok=True)
    subprocess.run(["localedef", "-i", "tr_TR", "-f", "UTF-8", place / "tr_TR.UTF-8"], check=True)
    with environment(LC_ALL="tr_TR.UTF-8", LANG="tr_TR.UTF-8", LOCPATH=str(place))(trial):
        yield


@contextmanager
def _out_is_a_file(trial: Trial) -> Iterator[None]:
    path = trial.lab_folder / "file"
    path.write_text("")
    trial.more += ["--out", str(path)]
    yield
    path.unlink()


@contextmanager
def _spaces(trial: Trial) -> Iterator[None]:
    """Put the results where the path has a space, a quote and letters of other alphabets."""
    place = trial.lab_folder / "it's a ☃ place"
    trial.more += ["--out", str(place)]
    yield
    shutil.rmtree(place, ignore_errors=True)


@contextmanager
def _gateway_that_hangs(trial: Trial) -> Iterator[None]:
    """Ask for metrics to be pushed to a gateway that takes the connection and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        trial.more += ["--pushgateway", f"http://127.0.0.1:{server.getsockname()[1]}"]
        yield


@contextmanager
def _gateway_gone(trial: Trial) -> Iterator[None]:
    trial.more += ["--pushgateway", "http://127.0.0.1:9"]
    yield


def _nonsense(connection: socket.socket) -> None:
    connection.recv(65536)
    connection.sendall(b"\x00\xff" * 500)


@contextmanager
def _gateway_talks_nonsense(trial: Trial) -> Iterator[None]:
    with answering(_nonsense) as port:
        trial.more += ["--pushgateway", f"http://127.0.0.1:{port}"]
        yield


@contextmanager
def _no_node(trial: Trial) -> Iterator[None]:
    """Build the report where Node is missing."""
    trial.report = True
    with shim("node", "exit 127")(trial), shim("npm", "exit 127")(trial):
        yield


@contextmanager
def _no_allure(trial: Trial) -> Iterator[None]:
    """Build the report where Allure is missing and cannot be had."""
    trial.report = True
    hide = '[ ! -d "$0" ] || mount -t tmpfs -o ro none "$0"; exec "$@"'
    trial.before = ["unshare", "--mount", "sh", "-ec", hide, str(ROOT / "reports" / "site" / "node_modules")]
    with shim("npm", "exit 127")(trial):
        yield


@contextmanager
def _no_networks(trial: Trial) -> Iterator[None]:
    """Have the run start a rack of its own, for which it may make no namespaces."""
    trial.ground.end_rack()
    trial.before = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
    yield


NOBODY = 65534


def _plain_user(*, loses_privileges: bool = False) -> Act:
    """Return what lets somebody who is not root run, with a rack and results of their own; at b1's
    measurement they may lose the right to write there."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        place, tun = trial.lab_folder / "plain", trial.lab_folder / "tun"
        trial.ground.copy_air(place)
        for path in (place, *place.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        os.mknod(tun, 0o666 | stat.S_IFCHR, os.makedev(10, 200))
        tun.chmod(0o666)
        become = f"exec setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups"
        trial.before = [
            "unshare",
            "--mount",
            "sh",
            "-ec",
            f'mount --bind {tun} /dev/net/tun; {become} "$@"',
            "sh",
        ]
        trial.more += ["--out", str(place)]
        trial.env["HOME"] = str(place)
        if loses_privileges:
            trial.once(MOMENTS["measuring"], lambda: _close(place))
        with _open(trial.lab_folder, 0o755), _open(trial.ground.lab.temporary, 0o1777):
            yield
        shutil.rmtree(place)
        tun.unlink()

    return act


@contextmanager
def _open(folder: Path, mode: int) -> Iterator[None]:
    before = stat.S_IMODE(folder.stat().st_mode)
    folder.chmod(mode)
    yield
    folder.chmod(before)


def _close(place: Path) -> None:
    """Let nobody but root make files there any more."""
    for path in (place, *place.rglob("*")):
        if path.is_dir():
            os.chown(path, 0, 0)


def _fault(name: str, act: Act, *owners: Owner, says: str = "") -> Fault:
    return Fault("host", name, act, "before", owners, says=says)


FAULTS: Sequence[Fault] = (
    _fault("out is a file", _out_is_a_file, "configuration", says="file"),
    _fault("out is a strange path", _spaces, "nobody"),
    _fault("TMPDIR is missing", environment(TMPDIR="/nowhere/at/all"), "nobody", "rig", "configuration"),
    _fault("HOME is missing", environment(HOME="/nowhere"), "nobody"),
    _fault("no HOME, no USER, no TERM", environment(HOME="", TERM=""), "nobody"),
    _fault("Turkish locale", _turkish, "nobody"),
    _fault("locale that is not there", environment(LC_ALL="xx_XX.UTF-8"), "nobody"),
    _fault(
        "C locale, no UTF-8",
        environment(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"),
        "nobody",
    ),
    _fault("time zone of a quarter of an hour", environment(TZ="Asia/Kathmandu"), "nobody"),
    _fault("time zone of nonsense", environment(TZ="Nowhere/☃"), "nobody"),
    _fault("terminal of three columns", environment(COLUMNS="3", LINES="2"), "nobody"),
    _fault("warnings are errors", environment(PYTHONWARNINGS="error"), "nobody"),
    _fault("Python without assertions", environment(PYTHONOPTIMIZE="2"), "nobody"),
    _fault("umask 0777", run_by("sh", "-c", 'umask 0777; exec "$@"', "sh"), "nobody", "rig"),
    _fault("no standard input", run_by("sh", "-c", 'exec "$@" <&-', "sh"), "nobody"),
    _fault("no standard output", run_by("sh", "-c", 'exec "$@" >&-', "sh"), "nobody", "rig"),
    _fault("no standard error", run_by("sh", "-c", 'exec "$@" 2>&-', "sh"), "nobody"),
    _fault("standard output full", run_by("sh", "-c", 'exec "$@" >/dev/full', "sh"), "nobody"),
    _fault("gateway is gone", _gateway_gone, "nobody", says="Pushgateway|gateway"),
    _fault("gateway never answers", _gateway_that_hangs, "nobody", says="Pushgateway|gateway"),
    _fault("gateway talks nonsense", _gateway_talks_nonsense, "nobody", says="Pushgateway|gateway"),
    _fault("Node is missing", _no_node, "nobody", says="[Nn]ode|report"),
    _fault("Allure is missing", _no_allure, "nobody", says="[Aa]llure|report"),
    _fault("somebody who is not root", _plain_user(), "nobody"),
    _fault("privileges gone while measuring", _plain_user(loses_privileges=True), "rig"),
    Fault(
        "host",
        "no privileges to make networks",
        _no_networks,
        "before",
        ("rig",),
        says="unshare failed",
        own_rack=True,
    ),
)
