# SPDX-License-Identifier: Apache-2.0
"""A rack's host as a runner: what is written for it, by systemd's own word, and how it gets registrations."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hil.base.errors import ConfigError, RigError
from hil.boards.rack import load_rack
from hil.ci.github import GitHub
from hil.ci.runner import HOME, host_files
from hil.ci.runner.mint import RETRY_S, RackHost, serve, serve_once
from hil.cli.runner import command
from tests.ci.github_server import HOME as REPOSITORY
from tests.ci.github_server import TOKEN, State
from tests.ci.github_server import serve as github_server
from tests.lab import ROOT

LAB = ROOT / "hil" / "racks" / "lab-example.yaml"
EXPOSURE_MAX = {"hil-runner@.service": 25, "hil-helper@.service": 30}  # tenths, as systemd-analyze counts
needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="without systemd-analyze")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What `hil runner files` writes for the example of a lab."""
    done = CliRunner().invoke(command, ["files", "--rack", str(LAB), "--into", str(tmp_path / "files")])
    assert done.exit_code == 0, done.output
    return tmp_path / "files"


@needs_systemd
def test_systemd_takes_the_units(folder: Path) -> None:
    """Every unit is one that systemd reads without a word, with no setting that it does not know."""
    units = sorted(folder.glob("hil-*.*"))
    assert len(units) == 4
    argv = ["systemd-analyze", "verify", "--man=no", *map(str, units)]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert [line for line in done.stderr.splitlines() if "hil-" in line] == []


@needs_systemd
@pytest.mark.parametrize("unit", EXPOSURE_MAX)
def test_a_job_and_the_helper_may_do_little(folder: Path, unit: str) -> None:
    """systemd's own review of what a service may do stays below what was reached once."""
    argv = ["systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE_MAX[unit]}"]
    done = subprocess.run([*argv, str(folder / unit)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_job_has_no_capability_and_the_helper_those_of_the_network(folder: Path) -> None:
    """Neither can get more: what a job needs of root's rights it asks the helper for. The helper's settings
    are of the rack file, which gives out no addresses; it is the tool's own file."""
    units = (folder / f"hil-{name}@.service" for name in ("runner", "helper"))
    job, helper = (unit.read_text().splitlines() for unit in units)
    assert {"CapabilityBoundingSet=", "AmbientCapabilities=", "NoNewPrivileges=yes"} <= set(job)
    assert not any(line == "User=root" for line in job)
    network = "CapabilityBoundingSet=CAP_NET_ADMIN CAP_NET_RAW CAP_NET_BIND_SERVICE"
    assert {network, "NoNewPrivileges=yes"} <= set(helper)
    assert sum(line.startswith("CapabilityBoundingSet") for line in (*job, *helper)) == 2
    host = load_rack(LAB).host
    may = {"interfaces": ["eth0"], "address": host.address, "dhcp_range": ""}
    assert json.loads((folder / "helper.json").read_text()) == may
    assert (folder / "hil-helper").read_bytes() == (ROOT / "hil/network/root_helper.py").read_bytes()


def test_a_port_keeps_its_name(folder: Path) -> None:
    """udev knows each board by what its by-id name is made of, and a hub by its place on the bus."""
    rules = (folder / "70-hil.rules").read_text()
    for board in load_rack(LAB).boards:
        rule = next(line for line in rules.splitlines() if f'SYMLINK+="hil/{board.id}"' in line)
        serial = re.search(r'ENV\{ID_SERIAL\}=="([^"]+)"', rule)
        number = re.search(r'ENV\{ID_USB_INTERFACE_NUM\}=="([^"]+)"', rule)
        assert serial
        assert number
        assert board.serial.startswith(f"/dev/serial/by-id/usb-{serial[1]}-if{number[1]}")
    assert re.search(r'KERNEL=="1-1\.2".*disable', rules)


PORTS = {
    "usb: {path: 1-1.2}": 'KERNELS=="1-1.2"',
    'usb: {serial: "A1"}': 'ATTRS{serial}=="A1"',
    'usb: {path: 1-1.2, serial: "A1", interface: 1}': (
        'KERNELS=="1-1.2", ATTRS{serial}=="A1", ENV{ID_USB_INTERFACE_NUM}=="01"'
    ),
    "serial: /dev/serial/by-path/pci-0000:00:14.0-usb-0:1.2:1.0-port0": (
        'ENV{ID_PATH}=="pci-0000:00:14.0-usb-0:1.2:1.0", ATTRS{port_number}=="0"'
    ),
}


@pytest.mark.parametrize("port", PORTS)
def test_a_place_on_usb_is_a_rule(tmp_path: Path, port: str) -> None:
    """What the rack file says of a board's port is what udev matches; a plain device file matches nothing."""
    rack = tmp_path / "rack.yaml"
    text = re.sub(r"    serial: .*0001.*\n", f"    {port}\n", LAB.read_text(encoding="utf-8"))
    rack.write_text(re.sub(r"    serial: .*0002.*\n", "    serial: /dev/ttyUSB1\n", text), encoding="utf-8")
    rules = host_files(load_rack(rack), "/etc/hil/rack.yaml")["70-hil.rules"]
    assert f'SUBSYSTEM=="tty", {PORTS[port]}, SYMLINK+="hil/esp32-1"' in rules
    assert "# esp32-2: /dev/ttyUSB1" in rules


def test_installing_copies_what_is_named(folder: Path, tmp_path: Path) -> None:
    """install.sh puts each file where the units say that it is; without root it says so and does nothing.
    host_files() makes what the command writes, no more and no less."""
    to = tmp_path / "root"
    subprocess.run(["sh", "install.sh"], cwd=folder, env={**os.environ, "DESTDIR": str(to)}, check=True)
    placed = {str(path.relative_to(to)) for path in to.rglob("*") if path.is_file()}
    assert "etc/udev/rules.d/70-hil.rules" in placed
    for unit in ("hil-runner@.service", "hil-runner@.path", "hil-helper.socket", "hil-helper@.service"):
        text = (to / "etc/systemd/system" / unit).read_text()
        assert "$" not in text.replace("$RUNTIME_DIRECTORY", "").replace("$(cat", "").replace("$$", "")
    helper = (to / "etc/systemd/system/hil-helper@.service").read_text()
    program, settings = re.findall(r"ExecStart=/usr/bin/python3 -I /(\S+) /(\S+)", helper)[0]
    assert {program, settings} <= placed
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", "install.sh", "uninstall.sh"], cwd=folder, check=True)
    user = ["setpriv", "--reuid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    for script in ("install.sh", "uninstall.sh"):
        text = (folder / script).read_text()
        argv = [*user, "sh", "-c", text, f"./{script}"]
        refused = subprocess.run(argv, capture_output=True, text=True, cwd="/")
        assert refused.returncode == 2
        assert f"sudo sh {script}" in refused.stderr
    assert {path.name for path in folder.iterdir()} == set(host_files(load_rack(LAB), "/etc/hil/rack.yaml"))


def test_each_of_several_runners_has_its_own() -> None:
    """Three jobs at once: users, inboxes and units by number, and a share of the memory."""
    files = host_files(load_rack(LAB), "/etc/hil/rack.yaml", 3)
    assert "for runner in $(seq 3); do" in files["install.sh"]
    assert "--instances 3" in files["install.sh"]
    assert "User=hil-runner-%i\n" in files["hil-runner@.service"]
    assert "MemoryMax=26%" in files["hil-runner@.service"]
    assert "Unit=hil-runner@%i.service" in files["hil-runner@.path"]
    assert "PathExists=/opt/hil/inbox/%i/registration" in files["hil-runner@.path"]
    assert "--instances" not in host_files(load_rack(LAB), "/etc/hil/rack.yaml")["install.sh"]


@pytest.mark.parametrize(
    ("point", "why"),
    [
        ("type: hostapd, interface: wlan0, country: CH, channel: 6", "the access point 'a'"),
        ("type: external, shapes: [loss]", "shapes the air"),
        ("type: external, dhcp: {first: 192.168.77.100, last: 192.168.77.109}", "gives out addresses"),
    ],
)
def test_what_one_run_has_at_a_time_is_no_place_for_two(point: str, why: str, tmp_path: Path) -> None:
    """The second job would end as the rig's fault, so it is said before: file, reason, number, way out."""
    rack = tmp_path / "rack.yaml"
    driven = f"access_point: {{{point}, ssid: a, psk_env: PSK}}\ncapture: {{access_point: wlan0}}"
    text, count = re.subn(r"access_point:.*\n(?:  .*\n)+", f"{driven}\n", LAB.read_text(encoding="utf-8"))
    assert count == 1
    rack.write_text(text, encoding="utf-8")
    assert host_files(load_rack(rack), "/etc/hil/rack.yaml")
    with pytest.raises(ConfigError, match=f"{why}.*2 parallel jobs") as error:
        host_files(load_rack(rack), "/etc/hil/rack.yaml", 2)
    assert str(rack) in str(error.value)


def test_a_virtual_rack_needs_none() -> None:
    """A rack of processes needs no rights: the file and the way out are named."""
    done = CliRunner().invoke(command, ["files", "--rack", str(ROOT / "hil/racks/virtual.yaml")])
    assert "no physical board" in str(done.exception)


def test_a_token_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the right to register nothing is asked of the rack, and the variable is named."""
    monkeypatch.delenv("HIL_RUNNER_TOKEN", raising=False)
    done = CliRunner().invoke(command, ["serve", "--repo", "a/b", "--to", "x@y", "--once"])
    assert "HIL_RUNNER_TOKEN" in str(done.exception)


class FarHost:
    """A rack's host behind ssh: a folder for its inbox, and a systemctl that knows the runners."""

    def __init__(self, folder: Path) -> None:
        self.inboxes = folder / "inbox"
        for instance in (1, 2):
            (self.inboxes / str(instance)).mkdir(parents=True)
        self.inbox = self.inboxes / "1"
        self.units = folder
        self.tell("inactive")
        self.tell("inactive", instance=2)
        programs = folder / "bin"
        programs.mkdir()
        (programs / "systemctl").write_text(f'#!/bin/sh\ncat "{folder}/$2"\n')
        ssh = f"""#!/bin/sh
test "$1" = hil-mint@far || {{ echo "ssh: no route to $1" >&2; exit 255; }}
shift
PATH={programs}:$PATH exec sh -c "$(echo "$*" | sed "s:{HOME}/inbox:{self.inboxes}:g")"
"""
        (programs / "ssh").write_text(ssh)
        for program in programs.iterdir():
            program.chmod(0o755)
        self.host = RackHost("hil-mint@far", (str(programs / "ssh"),))

    def tell(self, state: str, *, status: int = 0, ended_s: float = 0.0, instance: int = 1) -> None:
        """Have systemctl say this of a runner; ``ended_s`` is how long ago it ended."""
        ended_at_s = float(Path("/proc/uptime").read_text().split()[0]) - ended_s
        (self.units / f"hil-runner@{instance}.service").write_text(
            f"Result=exit-code\nExecMainStatus={status}\nActiveState={state}\n"
            f"InactiveEnterTimestampMonotonic={round(ended_at_s * 1e6)}\n"
        )

    @property
    def registration(self) -> Path:
        return self.inbox / "registration"


@pytest.fixture
def far(tmp_path: Path) -> FarHost:
    return FarHost(tmp_path)


def test_one_registration_for_one_job(far: FarHost) -> None:
    """A host that waits for nothing gets none; a new one is made when the job before is done."""
    state = State(head="")
    with github_server(state) as api:
        github = GitHub(REPOSITORY, TOKEN, api)
        ask = lambda: serve_once(github, far.host, ["esp32"], 1)  # noqa: E731
        assert ask() == "wanted"
        assert far.registration.read_text() == "jit-70=="
        assert far.registration.stat().st_mode & 0o77 == 0
        assert ask() == "waiting"
        far.registration.unlink()
        far.tell("active")
        assert ask() == "busy"
        assert len(state.runners) == 1
        far.tell("inactive")
        assert ask() == "wanted"
    assert [one["labels"] for one in state.runners.values()] == [["self-hosted", "hil", "esp32"]] * 2
    assert len({one["name"] for one in state.runners.values()}) == 2


def test_a_runner_that_failed_waits_for_its_next_registration(far: FarHost) -> None:
    """For some minutes it gets none, and the status that it ended with is said; then it is tried again."""
    far.tell("failed", status=243, ended_s=RETRY_S - 60)
    with pytest.raises(RigError, match=r"runner 1 of hil-mint@far failed \(exit-code, status 243\)"):
        far.host.state()
    far.tell("failed", status=243, ended_s=RETRY_S + 1)
    assert far.host.state() == "wanted"
    far.registration.touch()  # what could not even be taken out of the inbox
    with pytest.raises(RigError, match="status 243"):
        far.host.state()


def serve_two(far: FarHost, api: str, monkeypatch: pytest.MonkeyPatch) -> Result:
    """Serve two runners once, by the command."""
    monkeypatch.setenv("HIL_RUNNER_TOKEN", TOKEN)
    monkeypatch.setenv("GITHUB_API_URL", api)
    asked = ["serve", "--repo", REPOSITORY, "--to", far.host.to, "--ssh", far.host.ssh[0], "--once"]
    return CliRunner().invoke(command, [*asked, "--instances", "2", "--label", "esp32"])


@pytest.mark.parametrize("first", ["active", "failed"])
def test_each_runner_gets_its_own_registration(
    far: FarHost, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    """Of two, one has a job and the other one asks: it alone gets a registration, into its own inbox.

    So it does where the first one failed, which the exit status says.
    """
    far.tell(first, status=1)
    state = State(head="")
    with github_server(state) as api:
        done = serve_two(far, api, monkeypatch)
    if first == "failed":
        assert isinstance(done.exception, RigError)
        assert "runner 1" in str(done.exception)
    else:
        assert done.exit_code == 0, done.output
        assert "runner 1: a job runs" in done.output
        assert "runner 2: a registration was wanted" in done.output
    assert not (far.inboxes / "1" / "registration").exists()
    assert (far.inboxes / "2" / "registration").exists()
    assert len(state.runners) == 1


def test_a_registration_that_cannot_be_delivered_names_the_host(far: FarHost) -> None:
    """The rack's host is named, and how to look."""
    with github_server(State(head="")) as api:
        (far.inbox / "new").mkdir(exist_ok=True)  # root, too, cannot write there
        with pytest.raises(RigError, match="hil-mint@far"):
            serve_once(GitHub(REPOSITORY, TOKEN, api), far.host, ["esp32"], 1)


def test_a_host_that_is_away_ends_nothing(far: FarHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trouble is said once, and asked again; what comes after it is said too."""
    said: list[str] = []
    answers = iter(["a", RigError("no route"), RigError("no route"), "b", EOFError()])

    def ask() -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr("hil.ci.runner.mint.EVERY_S", 0.0)
    with pytest.raises(EOFError):
        serve([ask], said.append)
    assert said == ["a", str(RigError("no route")), "b"]
    with pytest.raises(RigError, match="hil-mint@near"):
        RackHost("hil-mint@near", far.host.ssh).state()
