# SPDX-License-Identifier: Apache-2.0
"""What a virtual rack needs from this machine, and the command that mends what is missing."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from pathlib import Path

from hil.base.finding import Finding

TUN_DEVICE = Path("/dev/net/tun")
PROBE_TIMEOUT_S = 10.0
LOCKED_MEMORY_BYTES = 32 * 1024 * 1024
CAP_IPC_LOCK = 14
TOOLS = {
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "mount": "mount",
    "ip": "iproute2",
}
APPARMOR = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
USERNS_CLONE = Path("/proc/sys/kernel/unprivileged_userns_clone")


def check() -> list[Finding]:
    """Look at everything a virtual rack needs, by trying it out where that is harmless.

    What is not needed improves the timing.
    """
    findings = [_tools(), tun_device()]
    if findings[0].ok:
        findings.append(namespaces())
    return [*findings, _realtime(), _locked_memory()]


def unshare_command() -> list[str]:
    """Return the command that enters a rack's namespaces; for a user who is not root, a user namespace."""
    options = "--mount --net --pid --fork --kill-child=KILL --mount-proc --propagation private"
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *user, *options.split(), "--"]


def tun_device() -> Finding:
    """The air's TAP devices come from /dev/net/tun, which must be readable and writable."""
    subject = f"TUN device {TUN_DEVICE}"
    try:
        os.close(os.open(TUN_DEVICE, os.O_RDWR))
    except FileNotFoundError:
        make = "sudo mkdir -p /dev/net && sudo mknod -m 666 /dev/net/tun c 10 200"
        return Finding(subject, ok=False, sentence="missing", mend=f"sudo modprobe tun || ({make})")
    except PermissionError:
        mode = oct(TUN_DEVICE.stat().st_mode & 0o777)
        return Finding(
            subject, ok=False, sentence=f"not accessible (mode {mode})", mend="sudo chmod 0666 /dev/net/tun"
        )
    except OSError as error:
        return Finding(subject, ok=False, sentence=str(error.strerror), mend="sudo modprobe tun")
    return Finding(subject, ok=True, sentence="readable and writable")


def namespaces() -> Finding:
    """Enter the namespaces for a moment; says what the kernel refused."""
    subject = "namespaces" if os.geteuid() == 0 else "unprivileged user namespaces"
    argv = [*unshare_command(), "mount", "-t", "tmpfs", "tmpfs", "/run"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(subject, ok=False, sentence=str(error), mend=_namespace_fix())
    if done.returncode != 0:
        return Finding(subject, ok=False, sentence=" ".join(done.stderr.split()), mend=_namespace_fix())
    return Finding(subject, ok=True, sentence="mount, net and pid namespaces can be made")


def _namespace_fix() -> str:
    if os.geteuid() == 0:
        return "run it outside a container, or give the container CAP_SYS_ADMIN (docker run --privileged)"
    if _reads(APPARMOR, "1"):
        return "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
    if _reads(USERNS_CLONE, "0"):
        return "sudo sysctl -w kernel.unprivileged_userns_clone=1"
    if _reads(Path("/proc/sys/user/max_user_namespaces"), "0"):
        return "sudo sysctl -w user.max_user_namespaces=10000"
    return "run it with sudo"


def _reads(path: Path, value: str) -> bool:
    return path.exists() and path.read_text().strip() == value


def _tools() -> Finding:
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    packages = " ".join(sorted({TOOLS[tool] for tool in missing}))
    return Finding(
        "tools " + ", ".join(TOOLS),
        ok=not missing,
        sentence=f"missing: {', '.join(missing)}" if missing else "present",
        mend=f"sudo apt-get install {packages}" if missing else "",
    )


def _realtime() -> Finding:
    subject = "real-time priority (SCHED_FIFO)"
    if can_take_fifo():
        return Finding(subject, ok=True, sentence="permitted", needed=False)
    sentence = "not permitted: timing of virtual boards does not block"
    return Finding(subject, ok=False, sentence=sentence, mend="run it with sudo", needed=False)


def can_take_fifo() -> bool:
    """Return whether programs of this process may have real-time priority."""
    try:
        done = subprocess.run(
            ["chrt", "--fifo", "1", "true"], capture_output=True, timeout=PROBE_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _locked_memory() -> Finding:
    subject = "locked memory"
    soft, _hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if _has_capability(CAP_IPC_LOCK) or soft in (resource.RLIM_INFINITY,) or soft >= LOCKED_MEMORY_BYTES:
        return Finding(subject, ok=True, sentence="enough", needed=False)
    mend = f"sudo prlimit --pid $$ --memlock={LOCKED_MEMORY_BYTES}:{LOCKED_MEMORY_BYTES}"
    return Finding(subject, ok=False, sentence=f"limit is {soft // 1024} KiB", mend=mend, needed=False)


def _has_capability(number: int) -> bool:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> number & 1)
    return False
