# SPDX-License-Identifier: Apache-2.0
"""The broker: listeners that let in whom they should, outages on purpose, errors that name what is wrong."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, RigError
from hil.boards.rack.access_point import AccessPoint
from hil.network.access_point import VirtualAccessPoint, external_access_point
from hil.network.broker import Broker, BrokerPorts, SlowDisk
from hil.network.broker_config import BrokerOptions, make_login
from hil.network.broker_watch import pid_file
from hil.network.certificates import Certificates, make_certificates
from hil.network.name_server import NameServer
from hil.network.process import LocalSpawner, end_process
from tests.boards.rack_tools import CHECKOUT, start_rack, wait_until

LOOPBACK = "127.0.0.1"
TIMEOUT_S = 20
LISTENERS = ("tcp", "tls", "mtls", "password")


@pytest.fixture
def broker(tmp_path: Path, certificates: Certificates) -> Iterator[Broker]:
    started = Broker.start(LocalSpawner(), LOOPBACK, tmp_path / "broker", certificates)
    yield started
    started.stop()


def publish_argv(broker: Broker, certificates: Certificates, listener: str) -> list[str]:
    port = vars(broker.ports)[listener]
    argv = ["mosquitto_pub", "-h", broker.address, "-p", str(port), "-t", "test", "-m", "hello", "-q", "1"]
    argv += ["--cafile", str(certificates.ca_file)] if listener in ("tls", "mtls") else []
    argv += ["-u", broker.login.username, "-P", broker.login.password] if listener == "password" else []
    if listener == "mtls":
        argv += ["--cert", str(certificates.client_cert_file), "--key", str(certificates.client_key_file)]
    return argv


def run(argv: Sequence[str]) -> int:
    return subprocess.run(argv, capture_output=True, timeout=TIMEOUT_S, check=False).returncode


@pytest.mark.slow
def test_boards_publish_through_the_air_to_either_of_two_brokers(
    tmp_path: Path, certificates: Certificates
) -> None:
    """Inside a virtual rack the broker has the usual ports, and a board reaches all four through the air. A
    second run's broker in a rack that is up takes other ports; asked for a taken one, it says where."""
    rack = start_rack(tmp_path / "rack")
    try:
        first = Broker.start(rack, rack.host_address, tmp_path / "first", certificates)
        assert first.ports == BrokerPorts(tcp=1883, tls=8883, mtls=8884, password=1884)
        second = Broker.start(rack, rack.host_address, tmp_path / "second", certificates)
        assert not set(vars(first.ports).values()) & set(vars(second.ports).values())
        assert first.environment()["config_sha256"] == second.environment()["config_sha256"]
        for broker, listener in itertools.product((first, second), LISTENERS):
            argv = publish_argv(broker, certificates, listener)
            client = rack.spawn(argv, netns="b1", log_path=tmp_path / "client.log")
            assert client.wait(TIMEOUT_S) == 0, (tmp_path / "client.log").read_text()
        assert rack.air.statistics()["b1"]["uplink"]["delivered_bytes"] != 0
        look = r"port 1883 is taken\..*nsenter --net --target \d+ ss -ltnp sport = :1883"
        with pytest.raises(RigError, match=look):
            Broker.start(rack, rack.host_address, tmp_path / "third", certificates, ports=first.ports)
        first.stop()
        assert not first.alive()
    finally:
        rack.stop()


@pytest.mark.slow
def test_a_stranger_is_refused(broker: Broker, certificates: Certificates, tmp_path: Path) -> None:
    """Mutual TLS refuses no certificate and one of another CA; a TLS client refuses a foreign CA. The broker
    checks whoever gives a name; the next run has another password."""
    other = make_certificates(tmp_path / "other", LOOPBACK)
    foreign = {
        str(certificates.client_cert_file): str(other.client_cert_file),
        str(certificates.client_key_file): str(other.client_key_file),
    }
    login = {word: word + "x" for word in (broker.login.username, broker.login.password)}
    to_mtls = {str(broker.ports.tls): str(broker.ports.mtls)}
    for listener, changes in (
        ("tls", to_mtls),
        ("mtls", foreign),
        ("tls", {str(certificates.ca_file): str(other.ca_file)}),
        *(("password", {word: wrong}) for word, wrong in login.items()),
    ):
        argv = publish_argv(broker, certificates, listener)
        assert set(changes) <= set(argv)
        assert run([changes.get(word, word) for word in argv]) != 0, changes
    assert make_login().password != broker.login.password
    broker.check()


@pytest.mark.slow
def test_the_password_is_in_no_file(tmp_path: Path) -> None:
    """The broker's configuration and log, what a record says and a repr hold no password, nor its hash."""
    certificates = make_certificates(tmp_path / "secrets", LOOPBACK)
    broker = Broker.start(LocalSpawner(), LOOPBACK, tmp_path / "broker", certificates)
    try:
        assert run(publish_argv(broker, certificates, "password")) == 0
    finally:
        broker.stop()
    (file,) = (tmp_path / "secrets").glob("mosquitto-passwords-*")
    digest = file.read_text().split("$")[-1].strip()
    said = "".join(path.read_text() for path in (tmp_path / "broker").iterdir())
    said += f"{broker.environment()}{broker.login!r}"
    assert file.name in said
    for secret in (broker.login.password, digest):
        assert secret not in said
    assert broker.login.password not in file.read_text()


@pytest.mark.slow
def test_an_outage_on_purpose_is_no_fault(broker: Broker, certificates: Certificates) -> None:
    """While it is interrupted the broker takes nothing and is not called dead; afterwards it is as before:
    with the right certificates or password a client publishes over plain, TLS, mutual TLS and password."""
    ports, version = broker.ports, broker.version
    for _ in range(2):
        broker.interrupt()
        broker.check()
        assert not broker.alive()
        assert run(publish_argv(broker, certificates, "tcp")) != 0
        broker.resume()
        broker.resume()
        assert broker.alive()
        assert (broker.ports, broker.version) == (ports, version)
        assert all(run(publish_argv(broker, certificates, listener)) == 0 for listener in LISTENERS)
    assert broker.log_path.read_text().count(f"mosquitto version {version} running") == 3


@pytest.mark.slow
def test_a_broker_that_does_not_come_back_is_a_fault(broker: Broker) -> None:
    """Where somebody took a port meanwhile, resume() names it, and check() no longer keeps quiet."""
    broker.interrupt()
    with socket.create_server((LOOPBACK, broker.ports.tls)):
        with pytest.raises(RigError, match=f"port {broker.ports.tls} is taken"):
            broker.resume()
        with pytest.raises(RigError, match="The MQTT broker"):
            broker.check()


@pytest.mark.slow
def test_a_killed_broker_is_noticed(broker: Broker, tmp_path: Path) -> None:
    """After kill -9 alive() is false, and check() names pid, signal and log; stop() is harmless."""
    pid = int(pid_file(tmp_path / "broker").read_text())
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not broker.alive(), "the broker ends")
    with pytest.raises(RigError, match=rf"pid {pid}, .* was killed by signal 9\..*mosquitto\.log"):
        broker.check()


def test_a_taken_port_is_named(tmp_path: Path, certificates: Certificates) -> None:
    """A port that somebody else holds is named in the error, with the way to find that somebody."""
    with socket.create_server((LOOPBACK, 0)) as other, socket.create_server((LOOPBACK, 0)) as free:
        taken, first = other.getsockname()[1], free.getsockname()[1]
        free.close()
        ports = BrokerPorts(tcp=first, tls=taken, mtls=taken)
        with pytest.raises(RigError, match=rf"port {taken} is taken\..*ss -ltnp sport = :{taken}"):
            Broker.start(LocalSpawner(), LOOPBACK, tmp_path / "broker", certificates, ports=ports)


def test_a_missing_mosquitto_names_its_package(
    tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without mosquitto the error says how to install it."""
    monkeypatch.setattr("hil.network.broker.shutil.which", lambda *_args, **_kwargs: None)
    with pytest.raises(RigError, match="apt-get install mosquitto"):
        Broker.start(LocalSpawner(), LOOPBACK, tmp_path / "broker", certificates)


@pytest.mark.slow
def test_unreadable_certificates_stop_the_start(tmp_path: Path, certificates: Certificates) -> None:
    """mosquitto's own words are in the error when its configuration cannot work."""
    broken = make_certificates(tmp_path / "broken", LOOPBACK)
    broken.server_key_file.write_text("no key")
    with pytest.raises(RigError, match="Unable to load server key file"):
        Broker.start(LocalSpawner(), LOOPBACK, tmp_path / "broker", broken)


@pytest.mark.slow
def test_equal_settings_have_equal_digests(tmp_path: Path, certificates: Certificates) -> None:
    """The digest ignores ports and paths and tells options and a simulated disk; the version is the
    program's."""
    other = make_certificates(tmp_path / "certificates", LOOPBACK)
    program = shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin")
    help_text = subprocess.run([str(program), "-h"], capture_output=True, timeout=10, check=False).stdout
    saving, disk = BrokerOptions(persistence="on"), SlowDisk(rate_bytes_per_s=10**6, latency_us=1)
    digests = []
    for number, (tls, options, slow) in enumerate(
        [
            (certificates, BrokerOptions(), None),
            (other, BrokerOptions(), None),
            (certificates, BrokerOptions(tcp_nodelay=False), None),
            (certificates, saving, None),
            (other, saving, None),
            (certificates, saving, disk),
        ]
    ):
        folder = tmp_path / str(number)
        broker = Broker.start(LocalSpawner(), LOOPBACK, folder, tls, options, slow_disk=slow)
        broker.stop()
        digests.append(str(broker.environment()["config_sha256"]))
        assert broker.environment()["version"] == broker.version
        assert f"mosquitto version {broker.version}\n".encode() in help_text
    assert (digests[0], digests[3]) == (digests[1], digests[4])
    assert len(set(digests)) == 4
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in digests)


def test_secrets_are_for_the_owner_only(certificates: Certificates) -> None:
    """Every file of the certificates has mode 0600."""
    for path in certificates.ca_file.parent.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


PARENT = """
import sys, signal
from pathlib import Path
from hil.network.process import LocalSpawner
print(LocalSpawner().spawn(["sleep", "600"], log_path=Path(sys.argv[1])).pid, flush=True)
signal.pause()
"""


@pytest.mark.slow
def test_local_processes_die_with_their_parent(tmp_path: Path) -> None:
    """kill -9 of the process that spawned a program ends the program."""
    argv = [sys.executable, "-c", PARENT, str(tmp_path / "log")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT) as parent:
        assert parent.stdout is not None
        child = Path(f"/proc/{int(parent.stdout.readline())}")
        assert child.exists()
        parent.kill()
    wait_until(lambda: not child.exists() or "\nState:\tZ" in (child / "status").read_text(), "it ends")


@pytest.mark.slow
def test_local_processes_survive_the_thread_that_asked(tmp_path: Path) -> None:
    """A program started by a thread lives on when the thread ends, until it is told to stop."""
    started = []
    asking = LocalSpawner()
    thread = threading.Thread(
        target=lambda: started.append(asking.spawn(["sleep", "600"], log_path=tmp_path / "log"))
    )
    thread.start()
    thread.join()
    with pytest.raises(TimeoutError):
        started[0].wait(0.1)
    started[0].terminate()
    assert started[0].wait(TIMEOUT_S) == -signal.SIGTERM
    with pytest.raises(RigError, match="no-such-program"):
        asking.spawn(["no-such-program"], log_path=tmp_path / "log")


def test_the_access_points_password_stays_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The password comes from a variable or a file, reaches credentials() only, and is missed by name."""
    monkeypatch.setenv("LAB_PSK", "correct horse")
    point = external_access_point(AccessPoint("external", ssid="lab", psk_env="LAB_PSK"))
    assert point.credentials() == {"ssid": "lab", "psk": "correct horse"}
    assert "horse" not in f"{point!r}{point.environment()}"
    (tmp_path / "psk").write_text("correct horse\n")
    filed = AccessPoint("external", ssid="lab", psk_file=str(tmp_path / "psk"))
    assert external_access_point(filed).credentials() == point.credentials()
    for source in ({"psk_env": "NO_SUCH_VARIABLE"}, {"psk_file": str(tmp_path / "none")}):
        with pytest.raises(ConfigError, match=r"NO_SUCH_VARIABLE|none"):
            external_access_point(AccessPoint("external", ssid="lab", **source))
    for wrong in ("correct\nwpa=0", "größer als"):
        monkeypatch.setenv("LAB_PSK", wrong)
        with pytest.raises(ConfigError, match="printable ASCII") as caught:
            external_access_point(AccessPoint("external", ssid="lab", psk_env="LAB_PSK"))
        assert wrong not in str(caught.value)
    assert VirtualAccessPoint("lab", 1).environment() == {"type": "virtual", "profile": "lab", "seed": 1}


class Stubborn:
    """A process that no signal reaches and that never ends."""

    pid = 1
    returncode = None

    def __init__(self) -> None:
        self.asked: list[str] = []

    def terminate(self) -> None:
        self.asked.append("terminate")
        raise RigError("the rack is gone.")

    def kill(self) -> None:
        self.asked.append("kill")

    def wait(self, timeout: float | None = None) -> int:
        raise TimeoutError(f"still runs after {timeout} s")


def test_a_program_that_cannot_be_ended_raises_nothing() -> None:
    """Whoever stops several programs goes on with the next one, after this one was asked and killed."""
    process = Stubborn()
    end_process(process, 0.1)
    assert process.asked == ["terminate", "kill"]
    NameServer(process, LOOPBACK, "peer.hil.test", Path("log")).stop()
    assert process.asked == ["terminate", "kill"] * 2
