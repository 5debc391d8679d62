# SPDX-License-Identifier: Apache-2.0
"""The virtual rack without root: what works, and what the machine must be told when it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hil.base.errors import RigError
from hil.virtual import privileges, rack_start
from hil.virtual.air.build import build_air
from hil.virtual.rack_state import RackPaths
from tests.boards import rack_tools
from tests.boards.rack_tools import CHECKOUT

# A user who is not root, in a mount namespace of the test's own; $1: can that user open the TUN device?
UNPRIVILEGED = """
mount -t tmpfs -o mode=1777 tmpfs /mnt
mknod -m "$1" /mnt/tun c 10 200
mount --bind /mnt/tun /dev/net/tun
cd "$2"
exec setpriv --reuid=65534 --regid=65534 --clear-groups --pdeathsig KILL "$3" -B -c "$4"
"""
START_AS_USER = """
from pathlib import Path
from hil.base.errors import RigError
from tests.boards import rack_tools
rack_tools.build_air = lambda _: Path("{air}")
try:
    rack = rack_tools.start_rack(Path("/mnt/rack"))
except RigError as error:
    print(error)
else:
    log = Path("/mnt/ping.log")
    ping = rack.spawn(["ping", "-c", "1", "-W", "5", rack.host_address], netns="b1", log_path=log)
    print("ping", ping.wait(20), "priority", rack.environment()["priority"])
    rack.stop()
"""


def as_user(program: str, *, tun_mode: str) -> str:
    outer = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", UNPRIVILEGED, "sh"]
    argv = [*outer, tun_mode, str(CHECKOUT), sys.executable, program]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr


@pytest.mark.needs_root
def test_racks_of_two_users_do_not_meet(tmp_path: Path) -> None:
    """While root keeps a rack up, a user who may open the TUN device has a whole one too, of the same name,
    boards and addresses, in a user namespace and without real-time priority."""
    program = START_AS_USER.format(air=build_air(rack_tools.AIR_DIR))
    with rack_tools.running_rack(tmp_path / "rack") as other:
        assert as_user(program, tun_mode="666").strip() == "ping 0 priority 0"
        other.check()


@pytest.mark.needs_root
def test_a_closed_tun_device_is_named_with_its_fix() -> None:
    """Where the user may not open the TUN device, the error gives the command that mends it."""
    program = START_AS_USER.format(air=build_air(rack_tools.AIR_DIR))
    said = as_user(program, tun_mode="600")
    assert "TUN device /dev/net/tun" in said
    assert "chmod 0666 /dev/net/tun" in said


def test_namespaces_that_are_refused_at_once_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where unshare has ended before it is sent its plan, its words are told, and not that a pipe broke."""
    refuse = ["sh", "-c", "echo unshare failed: Operation not permitted >&2; exit 1", "sh"]
    launch = rack_start._unshare

    def ended(paths: RackPaths, channel_fd: int) -> subprocess.Popen[bytes]:
        process = launch(paths, channel_fd)
        process.wait(timeout=20)
        return process

    monkeypatch.setattr(privileges, "unshare_command", lambda: refuse)
    monkeypatch.setattr(rack_start, "_unshare", ended)
    with pytest.raises(RigError, match="unshare failed: Operation not"):
        rack_tools.start_rack(tmp_path / "rack")


def test_findings_cover_what_a_rack_needs() -> None:
    """Here, where racks run, every required finding is fine and each carries a sentence."""
    findings = privileges.check()
    assert all(found.ok for found in findings if found.needed)
    assert all(found.sentence for found in findings)
    assert {"real-time priority (SCHED_FIFO)", "locked memory"} <= {found.subject for found in findings}
