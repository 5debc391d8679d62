# SPDX-License-Identifier: Apache-2.0
"""A clean root of a release of this machine's distribution, from its own mirror: nothing is in it but apt.

What the machine needs to reach its mirrors and registries (sources, proxies, certificates) is read from it
and put into the root, so that no host's name stands here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.ci.act import copy_checkout
from tests.lab import ROOT

APT = Path("/etc/apt")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
CERTIFICATES_INSIDE = (
    "/etc/machine-certificates.crt"  # ca-certificates.crt is made anew where its package comes
)
PIP_INSIDE = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_PROXY", "PIP_DEFAULT_TIMEOUT")
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
DISK_S, COMMAND_S = 600, 1800
RELEASES = {"debian": ("bookworm", "trixie"), "ubuntu": ("noble", "resolute")}
# Its own root mount, as a machine has: a chroot permits no user namespace, which the virtual rack lives in.
ENTER = """
root=$1; shift
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"; mount --rbind /dev "$root/dev"; mount --rbind /sys "$root/sys"
cd "$root"; mkdir -p .outside; pivot_root . .outside # what lies there is out of every path's way
cd /srv/hil; exec "$@"
"""
OFFLINE = ("unshare", "--net", "--")


def as_root() -> list[str]:
    return [] if os.geteuid() == 0 else ["sudo", "-n"]


def skip_unless_possible(release: str) -> None:
    """Skip with the reason where no clean root of this release can be made on this machine."""
    system = _system()
    if release not in RELEASES.get(system["ID"], ()):
        pytest.skip(f"apt is configured for {system.get('PRETTY_NAME')}, and knows no mirror of {release}")
    if not shutil.which("mmdebstrap"):
        pytest.skip("mmdebstrap is not installed: .ci/bootstrap test")
    allowed = subprocess.run([*as_root(), "unshare", "--mount", "true"], check=False, capture_output=True)
    if allowed.returncode:
        pytest.skip("only root, or sudo without a password, may mount a root")


@dataclass(frozen=True)
class CleanRoot:
    """The root, with a clone of this checkout and its changes in /srv/hil."""

    path: Path

    def run(
        self, *argv: str, environment: Mapping[str, str] | None = None, enter: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in /srv/hil as the root's own root user, stopped with whatever it started."""
        inside = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            **{name: os.environ[name] for name in (*PROXIES, *PIP_INSIDE) if name in os.environ},
            "PIP_CERT": CERTIFICATES_INSIDE,
            "NODE_EXTRA_CA_CERTS": CERTIFICATES_INSIDE,
            "SSL_CERT_FILE": CERTIFICATES_INSIDE,  # of Go
            **(environment or {}),
        }
        words = ["env", "-i", *(f"{name}={value}" for name, value in inside.items()), *argv]
        own = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        return subprocess.run(
            [*as_root(), *enter, *own, "sh", "-ec", ENTER, "sh", str(self.path), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )


@contextmanager
def clean_root(release: str) -> Iterator[CleanRoot]:
    """Make a root of a release and take it away again."""
    folder = Path(tempfile.mkdtemp(prefix="hil-root-"))
    try:
        folder.chmod(0o755)  # apt's own user goes through it
        root, around = folder / "root", folder / "around"
        around.mkdir()
        (around / "99-machine").write_text(_apt_settings())
        sources = around / _sources().name
        sources.write_text(_sources().read_text().replace(_system()["VERSION_CODENAME"], release))
        _copy_readable(_what_reaches_out(), around)
        _must(
            [
                *as_root(), "mmdebstrap", "--quiet", "--variant=apt", "--mode=root",
                f"--aptopt={around / '99-machine'}", f"--customize-hook=cp -R {around / 'etc'} $1/",
                release, str(root), str(sources),
            ],
            DISK_S,
        )  # fmt: skip
        checkout = folder / "checkout"
        _must(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(checkout)], 120)
        copy_checkout(checkout)
        _must(
            [*as_root(), "cp", "-R", "--preserve=mode,links", str(checkout), str(root / "srv" / "hil")],
            DISK_S,
        )
        yield CleanRoot(root)
    finally:
        _must([*as_root(), "rm", "-rf", "--one-file-system", str(folder)], DISK_S)


def _must(argv: Sequence[str], timeout_s: float) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, f"{' '.join(argv)}\n{done.stdout}{done.stderr}"


def _system() -> dict[str, str]:
    return dict(re.findall(r'^(\w+)="?([^"\n]*)', Path("/etc/os-release").read_text(), re.MULTILINE))


def _sources() -> Path:
    """Return the file of the release's own sources; what others have added needs keys that a root lacks."""
    known = [APT / "sources.list.d" / f"{name}.sources" for name in ("debian", "ubuntu")]
    return next((path for path in known if path.exists()), APT / "sources.list")


def _apt_settings() -> str:
    """Return how this machine's apt reaches its mirrors: proxies, and whether dates are checked."""
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, timeout=60, check=True)
    return "".join(re.findall(r"^Acquire::(?:https?::|Check-).* \".+\";\n", dump.stdout, re.MULTILINE))


def _what_reaches_out() -> dict[str, Path]:
    """Return the files that names and registries are reached by: place in the root → file of this machine."""
    mirrors = re.findall(r"mirror\+file:(/\S+)", _sources().read_text())
    places = {path: Path(path) for path in ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", *mirrors)}
    return {
        place: path for place, path in {**places, CERTIFICATES_INSIDE: CERTIFICATES}.items() if path.exists()
    }


def _copy_readable(files: Mapping[str, Path], around: Path) -> None:
    (around / "etc").mkdir()
    for place, path in files.items():
        inside = around / place.lstrip("/")
        inside.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, inside)
        inside.chmod(0o644)
