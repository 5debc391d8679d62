# SPDX-License-Identifier: Apache-2.0
"""A rack's host that boots: systemd is the first process of its namespaces.

It sees this machine's files, copy-on-write. What a test installs and starts there is gone with it, and
reaches neither this machine nor its network.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BOOT_TIMEOUT_S = 120.0
SHARED = "/run/test"  # a folder of the test's, on both sides
_SYSTEMD = Path("/lib/systemd/systemd")
# Read-only /sys and /proc/sys: as in any container, systemd loads no module and sets nothing of the kernel.
_BOOT = f"""
set -e
folder=$1 shared=$2
mount -t tmpfs tmpfs "$folder"
mkdir "$folder/upper" "$folder/work" "$folder/root"
cd "$folder/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" .
cd "$folder/root"
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
mount -t tmpfs tmpfs dev
for device in null zero full random urandom; do touch dev/$device; mount --bind /dev/$device dev/$device; done
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mkdir -p {SHARED[1:]}
mount --bind "$shared" {SHARED[1:]}
rm -rf etc/systemd/system/* var/lib/hil opt/hil
echo 0123456789abcdef0123456789abcdef >etc/machine-id
printf '#!/bin/sh\\n' >usr/bin/udevadm
chmod 755 usr/bin/udevadm
pivot_root . mnt
umount -l /mnt
exec env -i container=test NOTIFY_SOCKET={SHARED}/notify PATH=/usr/sbin:/usr/bin:/sbin:/bin \\
    {_SYSTEMD} --system --unit=basic.target --log-target=journal
"""


def why_not() -> str:
    """Return what this machine lacks to boot a host, "" where it can."""
    if os.geteuid() != 0:
        return "a host that boots needs root"
    if not _SYSTEMD.exists() or not shutil.which("dbus-daemon"):
        return "systemd or dbus is not installed (sudo apt-get install systemd dbus)"
    return "" if _cgroups() else "this kernel has no cgroup2"


def _cgroups() -> Path | None:
    """Return where cgroup2 is mounted."""
    mounts = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
    return next((Path(place) for _device, place, kind, *_rest in mounts if kind == "cgroup2"), None)


def await_true(condition: Callable[[], bool], what: str, timeout_s: float = BOOT_TIMEOUT_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@dataclass(frozen=True)
class BootedHost:
    """``pid``: its systemd. ``shared``: the folder that it has as SHARED."""

    pid: int
    shared: Path

    def inside(self, *argv: str) -> list[str]:
        """Return the command that runs ``argv`` there, as root."""
        spaces = ["--mount", "--pid", "--net", "--cgroup", "--uts", "--ipc"]
        return ["nsenter", "--target", str(self.pid), *spaces, "--wd=/", *argv]

    def run(self, *argv: str) -> str:
        """Run a command there as root, and return what it printed. Fails the test where it fails."""
        done = subprocess.run(self.inside(*argv), capture_output=True, text=True)
        assert done.returncode == 0, (argv, done.stdout, done.stderr)
        return done.stdout

    def show(self, unit: str, *properties: str) -> list[str]:
        """Return these properties of a unit."""
        return [
            self.run("systemctl", "show", "--value", f"--property={name}", unit).strip()
            for name in properties
        ]

    def journal(self, unit: str) -> str:
        return self.run("sh", "-c", f"journalctl --sync; journalctl --no-pager --output=cat --unit={unit}")


@contextmanager
def boot(folder: Path) -> Iterator[BootedHost]:
    """Boot a host, and end it with all that it started; ``folder`` has room for what it writes."""
    root, shared = folder / "root", folder / "shared"
    root.mkdir()
    shared.mkdir()
    cgroups = _cgroups()
    assert cgroups
    group = cgroups / f"hil-test-{os.getpid()}"
    group.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.bind(str(shared / "notify"))
        process = subprocess.Popen(_command(group, root, shared), stdin=subprocess.DEVNULL)
        try:
            _await_ready(notified, process)
            yield BootedHost(_child(process.pid), shared)
        finally:
            process.kill()
            process.wait()
            _remove(group)


def _command(group: Path, root: Path, shared: Path) -> list[str]:
    spaces = ["--mount", "--pid", "--net", "--cgroup", "--uts", "--ipc", "--fork", "--kill-child=KILL"]
    unshare = ["unshare", *spaces, "--propagation", "private", "sh", "-c", _BOOT, "boot"]
    enter = 'echo $$ >"$0" && exec setpriv --pdeathsig KILL "$@"'
    return ["sh", "-c", enter, str(group / "cgroup.procs"), *unshare, str(root), str(shared)]


def _await_ready(notified: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """Wait for systemd's own word that it has booted (sd_notify(3))."""
    notified.settimeout(1.0)
    deadline = time.monotonic() + BOOT_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if b"READY=1" in notified.recv(4096):
                return
        except TimeoutError:
            continue
    raise AssertionError(f"the host did not boot (status {process.poll()})")


def _child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def _remove(group: Path) -> None:
    await_true(lambda: "populated 0" in (group / "cgroup.events").read_text(), "processes are left")
    for folder in sorted((path for path in (group, *group.rglob("*")) if path.is_dir()), reverse=True):
        folder.rmdir()
