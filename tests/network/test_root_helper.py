# SPDX-License-Identifier: Apache-2.0
"""The rack's root helper: what it does for a user without rights, what it refuses, and when it ends."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from hil.base.errors import RigError
from hil.base.process import SYSTEM_FOLDERS
from hil.boards.rack.access_point import AccessPoint, Dhcp, Radio
from hil.network import root_helper
from hil.network.capture import Capture
from hil.network.hostapd import LOOKS, Hostapd, run_iw
from hil.network.name_server import Leases, NameServer
from hil.network.packet_filter import PacketFilter
from hil.network.process import LocalSpawner, Process
from hil.network.root_helper import HelperRack, RequestRefused, check
from hil.network.shaping import IFB, commands_for
from hil.virtual.air.profile import Impairment
from tests.boards.rack_tools import wait_until
from tests.lab import ROOT

INTERFACE, ELSEWHERE = "air0", "office0"
NOBODY = 65534
HOSTAPD = (
    f"interface={INTERFACE}\ndriver=nl80211\nssid=hil-lab\nchannel=6\nwpa=2\nwpa_passphrase=correct horse\n"
)
RACK = HelperRack((INTERFACE,), "10.0.0.1", "10.0.0.8,10.0.0.9,255.255.255.240,540")
DNSMASQ = ["dnsmasq", *sorted(root_helper._DNSMASQ_ALWAYS), f"--interface={INTERFACE}"]
LONG = "#" * 4095  # what hostapd's reader takes for a line: the rest is the next one
DEADLINE_S = 30.0

ALLOWED = (
    (f"tc qdisc replace dev {INTERFACE} root netem delay 20ms 5ms loss 1.5%".split(), ""),
    (["tc", "class", "add", "dev", INTERFACE, "parent", "1:", "classid", "1:10", "htb", "rate", "2mbit"], ""),
    (["tc", "-s", "-j", "qdisc", "show", "dev", INTERFACE], ""),
    (["dumpcap", "-q", "-i", INTERFACE, "-f", "tcp port 1883", "-s", "128", "-w", "-"], ""),
    ([*DNSMASQ, f"--dhcp-range={RACK.dhcp_range}"], ""),
    (["hostapd", "FILE"], HOSTAPD),
)
REFUSED = (
    (["sh", "-c", "id"], "", "it starts tc, dumpcap"),
    ([], "", "a request for nothing"),
    (["tc", "qdisc", "add", "dev", ELSEWHERE, "root", "netem", "loss", "100%"], "", ELSEWHERE),
    (["tc", "qdisc", "show"], "", "without an interface"),
    (["tc", "qdisc", "add", "dev", INTERFACE, "dev", ELSEWHERE, "root", "netem"], "", ELSEWHERE),
    (["tc", "filter", "add", "dev", INTERFACE, "bpf", "obj", "evil.o"], "", "'bpf'"),
    (["tc", "-batch", "/etc/shadow", "dev", INTERFACE], "", "'-batch'"),
    (["dumpcap", "-i", INTERFACE, "-w", "/etc/passwd"], "", "another file"),
    (["dumpcap", "-i", ELSEWHERE, "-w", "-"], "", ELSEWHERE),
    (["dumpcap", "-w", "-"], "", "without an interface"),
    (["dumpcap", "-i", INTERFACE, "-w", "-", "-b", "printname:/etc/cron.d/x"], "", "'-b'"),
    (["nft", "flush ruleset"], "", "'flush ruleset'"),
    (["nft", 'include "/etc/shadow"'], "", "include"),
    (["nft", "-f", "/etc/shadow"], "", "other than one text"),
    (["nft", f'type filter hook ingress device "{ELSEWHERE}"  priority 0; policy accept;'], "", ELSEWHERE),
    ([*DNSMASQ, f"--interface={ELSEWHERE}"], "", ELSEWHERE),
    ([*DNSMASQ, "--dhcp-script=/tmp/evil"], "", "--dhcp-script"),
    ([*DNSMASQ, "--conf-file=/tmp/evil"], "", "--conf-file"),
    ([*DNSMASQ, "--dhcp-range=192.168.77.10,192.168.77.99,1h"], "", "other addresses"),
    ([*DNSMASQ, "--listen-address=0.0.0.0"], "", "host.address"),
    ([*DNSMASQ, "--host-record=a,10.0.0.1,/etc/shadow"], "", "--host-record"),
    (DNSMASQ[:-1], "", "without --interface"),
    *((["dnsmasq", *(word for word in DNSMASQ[1:] if word != gone)], "", gone) for gone in DNSMASQ[1:-1]),
    (["hostapd", "/etc/hostapd.conf"], "", "more than its file"),
    (["hostapd", "FILE"], HOSTAPD + "wpa_psk_file=/etc/shadow\n", "wpa_psk_file"),
    (["hostapd", "FILE"], HOSTAPD + "ctrl_interface=/run/x\n", "ctrl_interface"),
    (["hostapd", "FILE"], HOSTAPD + f"{LONG}accept_mac_file=/etc/shadow\n", "'####"),
    (["hostapd", "FILE"], HOSTAPD.replace("hil-lab", LONG + "accept_mac_file=/etc/shadow"), "ssid"),
    (["hostapd", "FILE"], HOSTAPD.replace("hil-lab", "a\rb"), "ssid"),
    (["hostapd", "FILE"], HOSTAPD.replace("horse", "horse\x85"), "wpa_passphrase"),
    (["hostapd", "FILE"], HOSTAPD + "channel=7\n", "channel"),
    (["hostapd", "FILE"], HOSTAPD.replace(f"interface={INTERFACE}\n", ""), "the interface ''"),
    (["hostapd", "-P", "/etc/passwd", "FILE"], HOSTAPD, "more than its file"),
    (["iw", "dev", ELSEWHERE, "info"], "", ELSEWHERE),
    (["iw", "dev", INTERFACE, "del"], "", "'del'"),
    (["iw", "reg", "set", "US"], "", "without an interface"),
    (["hostapd", "FILE"], HOSTAPD.replace(INTERFACE, ELSEWHERE), ELSEWHERE),
    (["hostapd", "FILE"], HOSTAPD.replace("nl80211", "test_socket"), "driver"),
    (["tc", "qdisc", "show", "dev", INTERFACE], "text", "a file for tc"),
    (["tc", "qdisc", "show", "dev", INTERFACE, "a\0b"], "", "control character"),
)


@pytest.mark.parametrize(("argv", "file"), ALLOWED)
def test_what_a_rack_needs_is_allowed(argv: list[str], file: str) -> None:
    """Shaping, captures, addresses and an access point at the rack's own interfaces."""
    check(argv, file, RACK)


@pytest.mark.parametrize(("argv", "file", "named"), REFUSED)
def test_what_leads_further_is_refused_by_name(argv: list[str], file: str, named: str) -> None:
    """No other program, no other interface, no file of the host, no word that starts or loads something."""
    with pytest.raises(RequestRefused) as refused:
        check(argv, file, RACK)
    assert named in str(refused.value)


HIDDEN = "root:$y$hidden:20000::::::"


def said_by_hostapd(text: str, folder: Path) -> str:
    """Return what hostapd itself says to a file."""
    (folder / "read.conf").write_text(text)
    argv = [str(shutil.which("hostapd", path=SYSTEM_FOLDERS)), str(folder / "read.conf")]
    return subprocess.run(argv, capture_output=True, text=True, timeout=DEADLINE_S).stdout


@pytest.mark.slow
def test_hostapd_prints_no_file_of_roots(tmp_path: Path) -> None:
    """A line that is longer than hostapd's own reader takes has it print another file, line by line. What the
    helper writes of the same request has neither a long line nor that key."""
    secret = tmp_path / "shadow"
    secret.write_text(f"{HIDDEN}\n")
    attack = f"{HOSTAPD}{LONG}accept_mac_file={secret}\n"
    assert HIDDEN in said_by_hostapd(attack, tmp_path)
    with pytest.raises(RequestRefused):
        check(["hostapd", "FILE"], attack, RACK)
    written = check(["hostapd", "FILE"], HOSTAPD, RACK)
    assert sorted(written.splitlines()) == sorted(HOSTAPD.splitlines())
    assert "found in configuration file" not in said_by_hostapd(written, tmp_path)


class Recorder:
    """A spawner that starts nothing: what it was asked for is what the helper will be."""

    isolated = False
    enter_command = ""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def spawn(self, argv: Sequence[str], *, log_path: Path) -> Process:  # noqa: ARG002 - Spawner's
        self.asked.append([Path(argv[0]).name, *argv[1:]])
        raise RigError("only written down")


def test_what_hil_starts_is_allowed_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Access point, addresses, captures, looks at the radio pass as hil words them; elsewhere none does."""
    monkeypatch.setattr(shutil, "which", lambda name, **_path: f"/usr/sbin/{name}")
    recorder, log = Recorder(), tmp_path / "log"
    radio = Radio("CH", 36, 80, "a", 8, 3, power_save=True)
    point = AccessPoint("hostapd", ssid="hil-lab", interface=INTERFACE, radio=radio)
    leases = Leases(Dhcp("10.0.0.8", "10.0.0.9", 28, 540.0), [("b", "02:00:00:00:00:01", "10.0.0.8")])
    starts: tuple[Callable[[], object], ...] = (
        lambda: Hostapd.start(recorder, point, "f" * 64, tmp_path, log),
        lambda: NameServer.start(recorder, INTERFACE, "10.0.0.1", "hil.test", log, leases),
        lambda: NameServer.start(recorder, INTERFACE, "10.0.0.1", "hil.test", log),
        lambda: Capture.start(recorder, [INTERFACE], tmp_path / "c.pcapng", capture_filter="tcp"),
        *(lambda look=look: run_iw(recorder, ("dev", INTERFACE, *look), log) for look in LOOKS),
        lambda: run_iw(recorder, ("dev", INTERFACE, "set", "txpower", "fixed", "800"), log),
        lambda: run_iw(recorder, ("reg", "get"), log),
    )
    for start in starts:
        with pytest.raises(RigError, match="only written down"):
            start()
    file = (tmp_path / "hostapd.conf").read_text()
    assert len(recorder.asked) == len(starts)
    for argv in recorder.asked:
        seen, text = (["hostapd", "FILE"], file) if argv[0] == "hostapd" else (argv, "")
        if "-w" in seen:
            seen[seen.index("-w") + 1] = "-"
        check(seen, text, RACK)
        if INTERFACE in f"{seen}{text}":
            with pytest.raises(RequestRefused):
                check(seen, text, RACK._replace(interfaces=(ELSEWHERE,)))


LINKS = (
    Impairment(rate_kbit=2000),
    Impairment(
        delay_us=20_000, jitter_us=3_000, distribution="normal", correlation_ppm=250_000, loss_ppm=10_000
    ),
    Impairment(
        delay_us=500, burst_start_ppm=10, burst_end_ppm=300_000, burst_loss_ppm=900_000, duplicate_ppm=1
    ),
)


def test_the_air_is_shaped_and_filtered_as_it_is_worded(tmp_path: Path) -> None:
    """Every command of the shaped air and every rule of the filter passes, at the rack's interface alone and
    hil's own."""
    assert root_helper.IFB == IFB
    ways = itertools.product(("uplink", "downlink"), LINKS)
    asked = [argv for way in ways for argv in commands_for(INTERFACE, "192.168.177.211", *way)]
    rules = PacketFilter(LocalSpawner(), INTERFACE, "192.168.77.11", 1883, log_path=tmp_path / "log")
    asked += [["nft", rules._rules(what)] for what in ("syn", "connect", "connack", "all")]
    for argv in asked:
        check(argv, "", RACK)
        if any(INTERFACE in word for word in argv):
            with pytest.raises(RequestRefused):
                check(argv, "", RACK._replace(interfaces=(ELSEWHERE,)))


@dataclass
class Helper:
    """Helpers as systemd starts them, one for each connection of a socket, in a namespace of their own."""

    path: Path
    namespace: str

    def start(self, program: str) -> subprocess.Popen[str]:
        """Start Python as a user without rights, who has the socket and a folder to write to."""
        user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]
        return subprocess.Popen(
            [*user, sys.executable, "-c", program],
            cwd=self.path.parent / "user",
            env={**os.environ, "HIL_HELPER": str(self.path), "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def helper() -> Iterator[Helper]:
    """A socket behind which helpers are started, in a namespace with the interface air0 and its far end."""
    if os.geteuid() != 0:
        pytest.skip("root's side needs root")
    folder = Path(tempfile.mkdtemp(prefix="hil-helper-test-"))
    folder.chmod(0o755)
    user = folder / "user"
    user.mkdir()
    os.chown(user, NOBODY, NOBODY)
    (folder / "helper.json").write_text(json.dumps(RACK._asdict()))
    copy = folder / "hil-helper"
    shutil.copy(root_helper.__file__, copy)
    namespace = f"hil-test-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", namespace], check=True)
    for words in (
        f"add {INTERFACE} type veth peer name {ELSEWHERE}",
        f"set {INTERFACE} up",
        f"set {ELSEWHERE} up",
    ):
        subprocess.run(["ip", "-n", namespace, "link", *words.split()], check=True)
    inside = ["ip", "netns", "exec", namespace]
    argv = [*inside, "/usr/bin/python3", "-I", str(copy), str(folder / "helper.json")]
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(folder / "sock"))
    (folder / "sock").chmod(0o666)
    listening.listen()
    accepting = subprocess.Popen(
        [sys.executable, "-c", ACCEPT, str(listening.fileno()), *argv], pass_fds=[listening.fileno()]
    )
    try:
        yield Helper(folder / "sock", namespace)
    finally:
        accepting.kill()
        accepting.wait()
        listening.close()
        for pid in subprocess.run(
            ["ip", "netns", "pids", namespace], capture_output=True, text=True, check=True
        ).stdout.split():
            os.kill(int(pid), signal.SIGKILL)
        subprocess.run(["ip", "netns", "delete", namespace], check=True)
        shutil.rmtree(folder)


ACCEPT = """
import socket, subprocess, sys
listening = socket.socket(fileno=int(sys.argv[1]))
while True:
    connection, _ = listening.accept()
    subprocess.Popen(sys.argv[2:], stdin=connection)
    connection.close()
"""

SHAPES = f"""
from pathlib import Path
from hil.network.process import LocalSpawner, run_to_end
def tc(*words):
    print(run_to_end(LocalSpawner(), ["/usr/sbin/tc", *words], 30, log_path=Path("tc.log")))
tc("qdisc", "replace", "dev", "{INTERFACE}", "root", "tbf", "rate", "2mbit", "burst", "4kb", "limit", "9kb")
tc("qdisc", "show", "dev", "{INTERFACE}")
tc("qdisc", "replace", "dev", "{INTERFACE}", "root", "tbf")
tc("qdisc", "show", "dev", "{ELSEWHERE}")
"""


@pytest.mark.slow
def test_a_user_without_rights_shapes_the_racks_interface(helper: Helper) -> None:
    """Status and words of tc come back, its errors too; another interface is refused, in a sentence."""
    with helper.start(SHAPES) as done:
        said, error = done.communicate(timeout=120)
    first, second, third = said.splitlines()
    assert first == "(0, '')", error
    assert second.startswith("(0, 'qdisc tbf"), error
    assert "rate 2Mbit" in second
    assert third.startswith("(1, "), error
    assert f"refuses the interface '{ELSEWHERE}'" in error


CAPTURES = f"""
import sys
from pathlib import Path
from hil.network.capture import Capture
from hil.network.process import LocalSpawner
capture = Capture.start(LocalSpawner(), ["{INTERFACE}"], Path("c.pcapng"), capture_filter="udp port 9")
print("ready", flush=True)
sys.stdin.readline()
counts = capture.stop()
print(counts.captured, counts.complete, flush=True)
"""


@pytest.mark.slow
def test_a_user_without_rights_captures_into_a_file_of_its_own(helper: Helper) -> None:
    """The capture is the user's own file, whole and counted, though no program of it has a capability."""
    with helper.start(CAPTURES) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        send = (
            "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
            "s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1); "
            "[s.sendto(b'x', ('10.9.9.255', 9)) for _ in range(5)]"
        )
        inside = ["ip", "-n", helper.namespace, "addr", "add", "10.9.9.1/24", "dev", ELSEWHERE]
        subprocess.run(inside, check=True)
        subprocess.run(["ip", "netns", "exec", helper.namespace, sys.executable, "-c", send], check=True)
        said, _ = process.communicate("\n", timeout=60)
    assert said == "5 True\n"
    kept = helper.path.parent / "user" / "c.pcapng"
    assert kept.stat().st_uid == NOBODY
    assert kept.stat().st_size > 5 * 40


SERVES = f"""
import sys
from pathlib import Path
from hil.network.name_server import NameServer
from hil.network.process import LocalSpawner
NameServer.start(LocalSpawner(), "{INTERFACE}", "{RACK.address}", "peer.hil.test", Path("names.log"))
print("ready", flush=True)
sys.stdin.readline()
"""


@pytest.mark.slow
def test_names_are_answered_at_the_racks_interface_alone(helper: Helper) -> None:
    """The real dnsmasq listens at the address of the rack, and at none of the lab's."""
    for address, interface in ((RACK.address, INTERFACE), ("10.1.0.1", ELSEWHERE)):
        words = ["ip", "-n", helper.namespace, "addr", "add", f"{address}/24", "dev", interface]
        subprocess.run(words, check=True)
    with helper.start(SERVES) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n", process.communicate()
        ports = ["ip", "netns", "exec", helper.namespace, "ss", "-4Hlntu"]
        said = subprocess.run(ports, capture_output=True, text=True, check=True).stdout
        process.communicate("\n", timeout=60)
    assert {line.split()[4] for line in said.splitlines()} == {f"{RACK.address}:53"}


HOLDS = f"""
import sys
from pathlib import Path
from hil.network.process import LocalSpawner
argv = ["dumpcap", "-q", "-i", "{INTERFACE}", "-w", "held.pcapng"]
process = LocalSpawner().spawn(argv, log_path=Path("held.log"))
print(process.pid, flush=True)
sys.stdin.readline()
"""


@pytest.mark.slow
def test_what_was_started_ends_with_its_user(helper: Helper) -> None:
    """A user's process that is killed leaves no program of root's behind."""
    with helper.start(HOLDS) as process:
        assert process.stdout
        pid = int(process.stdout.readline())
        started = Path(f"/proc/{pid}")
        wait_until(
            lambda: (started / "comm").read_text() == "dumpcap\n", "exec(2)"
        )  # which sets it at its end
        process.kill()
    wait_until(lambda: not started.exists(), "it ends")


def test_a_helper_that_is_gone_is_the_rigs_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket behind which nobody listens is named, with the unit to start."""
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "s"))
    monkeypatch.setenv("HIL_HELPER", str(tmp_path / "s"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(RigError) as error:
        LocalSpawner().spawn(["tc", "qdisc", "show", "dev", INTERFACE], log_path=tmp_path / "log")
    assert "hil-helper.socket" in str(error.value)
