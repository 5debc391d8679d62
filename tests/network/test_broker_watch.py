# SPDX-License-Identifier: Apache-2.0
"""When a broker gave no answer, as the watching program sees it; against a real mosquitto."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hil.base.errors import FirmwareError, RigError
from hil.network import mqtt_packets as mqtt
from hil.network.broker import Broker
from hil.network.broker_watch import BrokerWatch, Silence, pid_file, read_watch
from hil.network.certificates import Certificates, make_certificates
from hil.network.process import LocalSpawner, Process, end_process
from tests.lab import wait_for

PASSWORD_PORT = 1884


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    return make_certificates(secrets, "127.0.0.1", "10.77.0.1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "broker"


@pytest.fixture
def broker(folder: Path, certificates: Certificates) -> Iterator[Broker]:
    broker = Broker.start(LocalSpawner(), "127.0.0.1", folder, certificates)
    yield broker
    broker.stop()


@pytest.fixture
def watch(broker: Broker, folder: Path) -> Iterator[BrokerWatch]:
    watch = BrokerWatch.start(LocalSpawner(), "127.0.0.1", broker.ports, folder, broker.absences)
    wait_for(lambda: "hil-watch-" in broker.log_path.read_text(), lambda: "the watch did not connect")
    yield watch
    watch.stop()


def await_silence(folder: Path, *, over: bool) -> Silence:
    log = folder / "watch.log"
    wait_for(
        lambda: any((one.ended_ns is not None) == over for one in read_watch(log).silences),
        lambda: f"no silence: {log.read_text()}",
    )
    return read_watch(log).silences[-1]


@pytest.mark.slow
def test_a_broker_that_stands_still_is_named(broker: Broker, watch: BrokerWatch, folder: Path) -> None:
    """While it lasts and afterwards, with its length; what is measured later has nothing of it."""
    assert broker.alive()
    began_ns = time.monotonic_ns()
    pid = int(pid_file(folder).read_text())
    os.kill(pid, signal.SIGSTOP)
    silence = await_silence(folder, over=False)
    assert silence.ended_ns is None
    wait_for(lambda: time.monotonic_ns() > silence.began_ns + 1_000_000_000, lambda: "no second went by")
    with pytest.raises(RigError, match=r"The MQTT broker gave no answer for 1\.\d s meanwhile"):
        watch.check(began_ns)
    os.kill(pid, signal.SIGCONT)
    silence = await_silence(folder, over=True)
    with pytest.raises(RigError, match="no answer"):
        watch.check(began_ns)
    assert silence.ended_ns is not None
    watch.check(silence.ended_ns)


@pytest.mark.slow
def test_a_broker_that_is_taken_away_on_purpose_is_no_stall(
    broker: Broker, watch: BrokerWatch, folder: Path
) -> None:
    """Benches stall and kill it themselves: the times are known, and what they measure counts."""
    began_ns = time.monotonic_ns()
    broker.stall()
    await_silence(folder, over=False)
    watch.check(began_ns)
    broker.go_on()
    await_silence(folder, over=True)
    watch.check(began_ns)
    (absence,) = broker.absences()
    assert absence[1] is not None


@pytest.mark.slow
def test_a_broker_that_is_started_again_is_seen(broker: Broker, watch: BrokerWatch, folder: Path) -> None:
    """However quickly; where the run did it itself, that counts as measured."""
    began_ns = time.monotonic_ns()
    broker.interrupt()
    broker.resume()
    wait_for(lambda: bool(read_watch(folder / "watch.log").lost_ns), lambda: "nothing was said")
    await_silence(folder, over=True)
    watch.check(began_ns)


@pytest.fixture
def idle(folder: Path) -> Iterator[Process]:
    """A watching program that is there and says nothing."""
    process = LocalSpawner().spawn(["sleep", "60"], log_path=folder / "sleep.log")
    yield process
    end_process(process, 5)


def test_a_broker_that_is_busy_counts_as_the_firmwares(folder: Path, idle: Process) -> None:
    """Half of a silence in processor time: it had work, which the boards may have given it."""
    (folder / "watch.log").write_text(
        "silent 1000 3000000000 2000000000\nsilent 4000000000 6000000000 0\nsil"
    )

    def checked(began_ns: int, *absences: tuple[int, int | None]) -> str:
        watch = BrokerWatch(idle, folder / "watch.log", lambda: absences, PASSWORD_PORT)
        try:
            watch.check(began_ns)
        except RigError as error:
            return error.sentence
        return ""

    assert "no answer for 2.0 s" in checked(0)
    assert checked(6_000_000_001) == ""
    assert checked(0, (4_100_000_000, None)) == ""
    assert "no answer for 2.0 s" in checked(0, (1000, 2_000_000_000))


def test_a_broker_that_is_late_again_and_again_is_the_rigs(folder: Path, idle: Process) -> None:
    """A tenth of a case's time in waits of 0.2 s is as bad as one long wait; a single one is not."""
    now_ns = time.monotonic_ns()
    waits = [now_ns - 10_000_000_000 + number * 2_000_000_000 for number in range(5)]
    watch = BrokerWatch(idle, folder / "watch.log", lambda: (), PASSWORD_PORT)
    (folder / "watch.log").write_text(f"silent {waits[0]} {waits[0] + 200_000_000} 0\n")
    watch.check(now_ns - 10_000_000_000)
    lines = (f"silent {began} {began + 200_000_000} 0\n" for began in waits)
    (folder / "watch.log").write_text("".join(lines))
    with pytest.raises(RigError, match=r"no answer 5 times, the longest for 0\.2 s"):
        watch.check(now_ns - 10_000_000_000)


def test_a_broker_that_throws_its_clients_out_is_the_rigs(folder: Path, idle: Process) -> None:
    """While a case is measured, and not before or after; not where the run takes it away, or just has."""
    second_ns = 1_000_000_000
    lost_ns = time.monotonic_ns() - 5 * second_ns
    (folder / "watch.log").write_text(f"lost {lost_ns}\nlos")

    def is_named(began_ns: int, *absences: tuple[int, int | None]) -> bool:
        try:
            BrokerWatch(idle, folder / "watch.log", lambda: absences, PASSWORD_PORT).check(began_ns)
        except RigError as error:
            return "The MQTT broker ended its connections meanwhile" in error.sentence
        return False

    assert is_named(lost_ns - second_ns)
    assert not is_named(lost_ns + 1)
    assert not is_named(0, (lost_ns - second_ns, None))
    assert not is_named(0, (lost_ns, lost_ns + 1))
    assert not is_named(0, (lost_ns - second_ns, lost_ns - second_ns // 2))
    assert is_named(0, (lost_ns - 3 * second_ns, lost_ns - 2 * second_ns))
    assert is_named(0, (lost_ns + 1, None))


@pytest.mark.slow
def test_a_watch_that_has_ended_is_named(broker: Broker, watch: BrokerWatch) -> None:
    """What nobody has seen cannot be called sound."""
    watch.check(time.monotonic_ns() - 1)
    os.kill(watch.pid, signal.SIGKILL)
    with pytest.raises(RigError, match="that watches the MQTT broker was killed by signal 9: a standstill"):
        wait_for(lambda: watch.check(time.monotonic_ns() - 1), lambda: "nothing was said")
    broker.check()


@pytest.mark.slow
def test_two_hosts_under_one_client_id_are_named(broker: Broker, watch: BrokerWatch) -> None:
    """The broker throws out the one for the other, which no firmware can help; one host may come back."""

    def connect(address: str) -> None:
        with socket.create_connection(("127.0.0.1", broker.ports.tcp), source_address=(address, 0)) as client:
            client.sendall(mqtt.connect_packet("hil-020000770101"))
            mqtt.read_packet(client)

    began_ns = time.monotonic_ns()
    connect("127.0.0.2")
    connect("127.0.0.2")
    watch.check(began_ns)
    connect("127.0.0.3")
    with pytest.raises(
        RigError, match=r"the MQTT client hil-020000770101 meanwhile: 127\.0\.0\.2, 127\.0\.0\.3"
    ):
        watch.check(began_ns)
    watch.check(time.monotonic_ns() + 2_000_000_000)  # a case that begins later


@pytest.mark.slow
def test_a_client_without_a_name_on_the_password_listener_is_named(
    broker: Broker, watch: BrokerWatch
) -> None:
    """mosquitto lets it in; what was measured then is not the transport of the case."""
    began_ns = time.monotonic_ns()
    publish = [
        "mosquitto_pub",
        "-h",
        "127.0.0.1",
        "-i",
        "hil-020000770101",
        "-t",
        "test",
        "-m",
        "hello",
        "-q",
        "1",
    ]
    password = [*publish, "-p", str(broker.ports.password)]
    login = ["-u", broker.login.username, "-P", broker.login.password]
    for right in ([*publish, "-p", str(broker.ports.tcp)], [*password, *login]):
        subprocess.run(right, check=True, timeout=10)
        watch.check(began_ns)
    subprocess.run(password, check=True, timeout=10)
    with pytest.raises(FirmwareError, match=r"hil-020000770101 .* gave no user name"):
        watch.check(began_ns)


@pytest.mark.slow
def test_a_host_that_stands_still_is_named(broker: Broker, watch: BrokerWatch, folder: Path) -> None:
    """Nobody was let run, the watching program neither: it says that of itself."""
    began_ns = time.monotonic_ns()
    pids = [watch.pid, int(pid_file(folder).read_text())]
    for number, wait_s in ((signal.SIGSTOP, 1.3), (signal.SIGCONT, 0.0)):
        for pid in pids:
            os.kill(pid, number)
        time.sleep(wait_s)
    wait_for(lambda: bool(read_watch(folder / "watch.log").pauses), lambda: "no pause was said")
    with pytest.raises(RigError, match=r"The rack's host stood still for 1\.\d s meanwhile"):
        watch.check(began_ns)
    watch.check(time.monotonic_ns())
