# SPDX-License-Identifier: Apache-2.0
"""A rack's host that boots with what `hil runner files` writes: install.sh, the units and the helper under
systemd itself, with a stand-in for GitHub's runner."""

from __future__ import annotations

import json
import os
import selectors
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from hil.base.errors import RigError
from hil.boards.rack import load_rack
from hil.boards.rack.access_point import AccessPoint, Radio
from hil.ci.github import GitHub
from hil.ci.runner import MINTER, host_files
from hil.ci.runner.mint import RackHost, serve_once
from hil.network.hostapd import configuration
from hil.network.name_server import _options
from tests.ci.booted_host import SHARED, BootedHost, await_true, boot, why_not
from tests.ci.github_server import HOME as REPOSITORY
from tests.ci.github_server import TOKEN, State
from tests.ci.github_server import serve as github_server
from tests.ci.test_runner import LAB

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(why_not()), reason=why_not())]

RACK = load_rack(LAB)
UNIT = "hil-runner@1.service"
USER = "hil-runner-1"
# What GitHub's runner does: it registers, waits for a job, runs it, keeps a log of it and ends with status 0.
# It does the latter where it is refused, too.
RUNNER = f"""#!/bin/sh
echo "registered $ACTIONS_RUNNER_INPUT_JITCONFIG" >{SHARED}/said
test ! -e {SHARED}/refused || exit 0
unset ACTIONS_RUNNER_INPUT_JITCONFIG
read -r job <{SHARED}/job
mkdir -p _diag
: >_diag/Worker_20261128-000000-utc.log
sh -c "$job" >{SHARED}/said 2>&1 || true
"""


@dataclass
class RackSide:
    """The host with all of it installed, the minting machine's way to it, and what its runner says."""

    host: BootedHost
    far: RackHost
    said: int

    def hear(self, timeout_s: float = 30.0) -> str:
        """Return the next line of the runner or its job."""
        line = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self.said, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                assert selector.select(timeout_s), (line, self.host.journal(UNIT))
                line += os.read(self.said, 1)
        return line.decode().rstrip()

    def give(self, job: str) -> None:
        """Hand a job to the runner that waits for it."""
        (self.host.shared / "job").write_text(f"{job}\n")

    def await_end(self) -> None:
        ended = ("inactive", "failed")
        await_true(lambda: self.host.show(UNIT, "ActiveState")[0] in ended, "it does not end")


@pytest.fixture(scope="module")
def side(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RackSide]:
    folder = tmp_path_factory.mktemp("host")
    with boot(folder) as host:
        for name in ("said", "job"):
            os.mkfifo(host.shared / name)
            (host.shared / name).chmod(0o666)
        files = host.shared / "hil-runner"
        files.mkdir()
        for name, text in host_files(RACK, "/etc/hil/rack.yaml").items():
            (files / name).write_text(text)
        host.run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "office0")
        host.run("ip", "addr", "add", "192.168.77.1/24", "dev", "eth0")
        host.run("ip", "link", "set", "eth0", "up")
        secrets = "mkdir -p /etc/hil && echo HIL_WIFI_PSK=correct horse >/etc/hil/secrets"
        host.run("sh", "-c", f"umask 022; {secrets}")
        host.run("sh", f"{SHARED}/hil-runner/install.sh")
        (host.shared / "run.sh").write_text(RUNNER)
        host.run("install", "-m", "755", f"{SHARED}/run.sh", "/opt/hil/runner/run.sh")
        ssh = folder / "ssh"
        inside = shlex.join(host.inside("runuser", "-u", MINTER, "--"))
        ssh.write_text(f'#!/bin/sh\nshift\nexec {inside} sh -c "$*"\n')
        ssh.chmod(0o755)
        said = os.open(host.shared / "said", os.O_RDWR | os.O_NONBLOCK)
        yield RackSide(host, RackHost(f"{MINTER}@rack", (str(ssh),)), said)
        os.close(said)


@pytest.fixture
def fresh(side: RackSide) -> RackSide:
    side.host.run("sh", "-c", f"systemctl stop {UNIT}; systemctl reset-failed {UNIT} || true")
    (side.host.shared / "refused").unlink(missing_ok=True)
    return side


def test_a_registration_becomes_one_job(fresh: RackSide) -> None:
    """Delivered, it starts the runner, which waits without a limit of time, takes a job and ends. The
    registration is nowhere then, and the next one is wanted."""
    state = State(head="")
    with github_server(state) as api:
        github = GitHub(REPOSITORY, TOKEN, api)
        ask = lambda: serve_once(github, fresh.far, ["esp32"], 1)  # noqa: E731
        assert ask() == "wanted"
        assert fresh.hear() == "registered jit-70=="
        assert ask() == "busy"
        assert fresh.host.show(UNIT, "ActiveState", "RuntimeMaxUSec", "User") == ["active", "infinity", USER]
        fresh.give(f"id -un; ls -A /run/{USER} | wc -l; ls /opt/hil/inbox/1 2>&1; env | grep -c jit")
        assert [fresh.hear(), fresh.hear()] == [USER, "0"]
        assert "Permission denied" in fresh.hear()
        assert fresh.hear() == "0"
        fresh.await_end()
        assert fresh.host.show(UNIT, "ActiveState", "Result") == ["inactive", "success"]
        named = ("-name", "registration", "-o", "-name", "_diag")
        assert fresh.host.run("find", "/opt/hil/inbox/1", "/tmp", *named) == ""
        assert len(state.runners) == 1
        assert ask() == "wanted"
        assert fresh.hear().startswith("registered ")


def test_a_job_has_no_password_in_its_environment_and_few_places_to_write(fresh: RackSide) -> None:
    """`hil` reads passwords from a file. Of the host's records a job may write the rack's own."""
    fresh.far.deliver("jit")
    fresh.hear()
    fresh.give(
        "env | grep -ci correct; stat -c '%U %a' /etc/hil/secrets; grep -c correct $HIL_SECRETS; "
        f"for place in /var/lib/hil /var/lib/hil/{RACK.name} /etc/hil /opt/hil/runner; do "
        "test -w $place && echo $place; done; echo end"
    )
    words = [fresh.hear() for _line in range(5)]
    assert words == ["0", "root 640", "1", f"/var/lib/hil/{RACK.name}", "end"]
    stranger = fresh.host.run("runuser", "-u", "nobody", "--", "sh", "-c", "cat /etc/hil/secrets || echo no")
    assert stranger == "no\n"


def test_a_runner_that_dies_at_once_gets_no_second_registration(fresh: RackSide) -> None:
    """GitHub's runner ends with status 0 where it is refused. That is said, with where to read why, and
    nothing is registered until somebody has mended it."""
    (fresh.host.shared / "refused").touch()
    state = State(head="")
    with github_server(state) as api:
        github = GitHub(REPOSITORY, TOKEN, api)
        ask = lambda: serve_once(github, fresh.far, ["esp32"], 1)  # noqa: E731
        assert ask() == "wanted"
        fresh.hear()
        fresh.await_end()
        for _look in range(2):
            with pytest.raises(RigError, match=r"failed \(exit-code: it ended without a job\)") as error:
                ask()
            assert f"journalctl -u {UNIT.removesuffix('.service')}" in error.value.next_step
        assert len(state.runners) == 1
        assert "It ended without a job." in fresh.host.journal(UNIT)
        (fresh.host.shared / "refused").unlink()
        fresh.host.run("systemctl", "reset-failed", UNIT)
        assert ask() == "wanted"
        fresh.hear()


def test_a_host_without_the_runner_says_so(fresh: RackSide) -> None:
    """The sentence has the status of what failed first; the journal names the file that is not there."""
    fresh.host.run("mv", "/opt/hil/runner/run.sh", "/opt/hil/kept")
    try:
        fresh.far.deliver("jit")
        await_true(lambda: fresh.host.show(UNIT, "ActiveState")[0] == "failed", "it does not fail")
        with pytest.raises(RigError, match=r"failed \(exit-code, status 12[67]\)"):
            fresh.far.state()
        assert "run.sh" in fresh.host.journal(UNIT)
    finally:
        fresh.host.run("mv", "/opt/hil/kept", "/opt/hil/runner/run.sh")


def test_a_registration_that_could_not_be_taken_starts_the_runner_later(fresh: RackSide) -> None:
    """systemd gives up after a few tries. That is said, and the command in the sentence starts the runner."""
    inbox, path = "/opt/hil/inbox/1", UNIT.replace(".service", ".path")
    fresh.host.run("systemctl", "stop", path)
    fresh.far.deliver("jit")
    fresh.host.run("mount", "--bind", "--options", "ro", inbox, inbox)
    fresh.host.run("systemctl", "start", path)
    await_true(lambda: fresh.host.show(path, "ActiveState") == ["failed"], "it goes on", 30)
    with pytest.raises(RigError, match=r"failed \(exit-code: ") as error:
        fresh.far.state()
    fresh.host.run("umount", inbox)
    way_out = error.value.next_step.partition("then: ")[2].replace("sudo ", "").rstrip(".")
    fresh.host.run("sh", "-c", way_out)
    assert fresh.hear() == "registered jit"


# Asks the helper as a job does, until the program says a word or ends; prints what came.
ASKS = """
import json, os, socket, sys
argv, file, word = json.loads(sys.argv[1])
connection = socket.socket(socket.AF_UNIX)
connection.connect("/run/hil/helper.sock")
files = [os.open("/tmp/capture", os.O_WRONLY | os.O_CREAT)] if argv[0] == "dumpcap" else []
socket.send_fds(connection, [json.dumps({"argv": argv, "file": file}).encode() + b"\\n"], files)
for line in connection.makefile():
    print(line, end="")
    if word in line or "status" in line:
        break
"""
TC = shlex.split("tc qdisc replace dev eth0 root tbf rate 2mbit burst 4kb limit 9kb")
POINT = configuration(
    AccessPoint("hostapd", ssid="lab", interface="eth0", radio=Radio("CH", 6)), "no secret", driver="none"
)
NAMES = ["dnsmasq", *_options("eth0", "192.168.77.1", "peer.hil.test")]


@pytest.mark.parametrize(
    ("argv", "file", "word"),
    [
        (TC, "", '"status": 0'),
        (["dumpcap", "-q", "-i", "eth0", "-w", "-"], "", "Capturing on"),
        (["nft", "add table netdev hil_1234567"], "", '"status": 0'),
        (NAMES, "", "started, version"),
        (["hostapd", "FILE"], POINT, "AP-ENABLED"),
        (["ip", "link", "set", "office0", "down"], "", "refused"),
    ],
)
def test_a_job_has_the_helper_under_its_unit(side: RackSide, argv: list[str], file: str, word: str) -> None:
    """What hil-helper@.service takes away leaves each program what it needs."""
    asked = json.dumps([argv, file, word])
    said = side.host.run("runuser", "-u", USER, "--", "/usr/bin/python3", "-c", ASKS, asked)
    assert word in said, said
