# SPDX-License-Identifier: Apache-2.0
"""When a broker gave no answer, as the watching program sees it, against a real mosquitto; and whether any
program was kept from running.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hil.base.errors import ConfigError, FirmwareError, HilError, RigError
from hil.network import mqtt_packets as mqtt
from hil.network.broker import Broker
from hil.network.broker_watch import BROKER_LOG, BrokerWatch, Silence, pid_file, read_watch, tell_pid
from hil.network.certificates import make_certificates
from hil.network.process import LocalSpawner, Spawner, end_process
from hil.network.standstill import Standstill, is_kept
from tests.boards.rack_tools import running_rack
from tests.lab import wait_for

PASSWORD_PORT = 1884
CLIENT = "hil-020000770101"
RUNNING: Any = SimpleNamespace(returncode=None)
BOARDS = {"10.77.0.11": "v1", "10.77.0.12": "v2"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "broker"


@pytest.fixture
def broker(tmp_path: Path, folder: Path) -> Iterator[Broker]:
    (tmp_path / "secrets").mkdir()
    certificates = make_certificates(tmp_path / "secrets", "127.0.0.1")
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
    with pytest.raises(RigError, match=r"no answer for 1\.\d s"):
        watch.check(began_ns)
    os.kill(pid, signal.SIGCONT)
    silence = await_silence(folder, over=True)
    with pytest.raises(RigError, match="no answer"):
        watch.check(began_ns)
    assert silence.ended_ns is not None
    watch.check(silence.ended_ns)


LATE_TWICE = """
import socket, time
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
client = server.accept()[0]
client.recv(1024)
client.sendall(bytes.fromhex("20020000"))
client.recv(1024)
spins_until = time.monotonic() + 0.4
while time.monotonic() < spins_until:
    pass
client.sendall(bytes.fromhex("d000"))
client.recv(1024)
time.sleep(0.4)
client.sendall(bytes.fromhex("d000"))
client.recv(1024)
time.sleep(60)
"""


@pytest.fixture(params=["host", "virtual rack"])
def spawner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Spawner]:
    if request.param == "host":
        yield LocalSpawner()
        return
    with running_rack(tmp_path / "rack") as rack:
        yield rack


@pytest.mark.slow
def test_what_is_ready_to_run_is_told_from_what_is_kept(spawner: Spawner, folder: Path) -> None:
    """A peer answers late twice: first it would run, which is told as load, then it waits, which is not. A
    virtual rack counts its processes for itself: there the peer is found all the same."""
    log = folder / "peer.log"
    peer = spawner.spawn([sys.executable, "-c", LATE_TWICE], log_path=log)
    wait_for(lambda: log.read_text().endswith("\n"), lambda: "the peer does not listen")
    ports: Any = SimpleNamespace(tcp=int(log.read_text()), password=PASSWORD_PORT)
    tell_pid(folder, peer.pid)
    watch = BrokerWatch.start(spawner, "127.0.0.1", ports, folder, tuple)
    wait_for(lambda: len(read_watch(folder / "watch.log").silences) > 2, lambda: "not late twice")
    watch.stop()
    end_process(peer, 1.0)
    spinning, waiting, _ = read_watch(folder / "watch.log").silences
    assert spinning.ended_ns
    assert waiting.ended_ns
    assert spinning.load_ns >= 0.5 * spinning.lasted_ns(0)
    assert waiting.load_ns < 0.5 * waiting.lasted_ns(0)


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
    watch.check(began_ns)


BUSY_AND_IDLE = ((0, 3, 2), (4, 6, 0))


@pytest.mark.parametrize(
    ("events", "began", "absences", "said"),
    [
        # half of a silence in processor time: it had work, which the boards may have given it
        (BUSY_AND_IDLE, 0, (), r"no answer for 2\.0 s"),
        (BUSY_AND_IDLE, 6 + 1e-8, (), ""),
        (BUSY_AND_IDLE, 0, ((4.1, None),), ""),
        (BUSY_AND_IDLE, 0, ((0, 2),), r"no answer for 2\.0 s"),
        # a tenth of a case's time in waits of 0.2 s is as bad as one long wait; a single one is not
        (((20, 20.2, 0),), 20, (), ""),
        (tuple((at, at + 0.2, 0) for at in range(20, 30, 2)), 20, (), r"5 times, .* 0\.2 s"),
        # half of each in which it was ready to run, or the watch was late: load; a second long it is none
        (tuple((at, at + 0.2, 0, 0.1) for at in range(20, 30, 2)), 20, (), ""),
        (tuple((at, at + 0.2, 0, 0.09) for at in range(20, 30, 2)), 20, (), r"5 times, .* 0\.2 s"),
        (((20, 21, 0, 1),), 20, (), r"no answer for 1\.0 s"),
        # one that is still under way, a moment ago
        (((29.7, None, 0, 0.3),), 29.7, (), ""),
        (((29.7, None, 0, 0),), 29.7, (), r"no answer for 0\.\d s"),
        (((29.7, None, 0.3, 0),), 29.7, (), ""),
        # clients thrown out: while a case is measured; not where the run takes it away, or just has
        (((25,),), 24, (), "ended its connections"),
        (((25,),), 25 + 1e-8, (), ""),
        (((25,),), 0, ((24, None),), ""),
        (((25,),), 0, ((25, 25 + 1e-8),), ""),
        (((25,),), 0, ((24, 24.5),), ""),
        (((25,),), 0, ((22, 23),), "ended its connections"),
        (((25,),), 0, ((25 + 1e-8, None),), "ended its connections"),
    ],
)
def test_what_the_watching_program_said_is_the_rigs_or_meant(
    tmp_path: Path,
    events: tuple[tuple[Any, ...], ...],
    began: float,
    absences: tuple[tuple[float, float | None], ...],
    said: str,
) -> None:
    """Silences (from, to, seconds of processor time and of load) and connections lost, at seconds of the last
    30: what neither the boards' work, the host's load nor the run itself explains is named, whatever is still
    being written."""
    start_ns = time.monotonic_ns() - 30_000_000_000

    def at(second: float) -> int:
        return start_ns + round(second * 1e9)

    def silent(began: float, ended: float | None, busy_s: float, load_s: float = 0) -> str:
        until = "-" if ended is None else at(ended)
        return f"silent {at(began)} {until} {round(busy_s * 1e9)} {round(load_s * 1e9)}\n"

    lines = "".join(silent(*one) if len(one) > 1 else f"lost {at(*one)}\n" for one in events)
    (tmp_path / "watch.log").write_text(lines + lines[:3])
    away = [(at(gone), None if back is None else at(back)) for gone, back in absences]
    watch = BrokerWatch(RUNNING, tmp_path / "watch.log", lambda: away, PASSWORD_PORT)
    if not said:
        watch.check(at(began))
        return
    with pytest.raises(RigError, match=said):
        watch.check(at(began))


@pytest.mark.slow
def test_a_watch_that_has_ended_is_named(broker: Broker, watch: BrokerWatch) -> None:
    """What nobody has seen cannot be called sound."""
    watch.check(time.monotonic_ns() - 1)
    os.kill(watch.pid, signal.SIGKILL)
    with pytest.raises(RigError, match="killed by signal 9: a standstill"):
        wait_for(lambda: watch.check(time.monotonic_ns() - 1), lambda: "nothing was said")
    broker.check()


@pytest.mark.slow
def test_two_hosts_under_one_client_id_are_named(broker: Broker, watch: BrokerWatch) -> None:
    """The broker throws out the one for the other, which no firmware can help; one host may come back."""

    def connect(address: str) -> None:
        with socket.create_connection(("127.0.0.1", broker.ports.tcp), source_address=(address, 0)) as client:
            client.sendall(mqtt.connect_packet(CLIENT))
            mqtt.read_packet(client)

    began_ns = time.monotonic_ns()
    connect("127.0.0.2")
    connect("127.0.0.2")
    watch.check(began_ns)
    connect("127.0.0.3")
    with pytest.raises(RigError, match=rf"{CLIENT} .*: 127\.0\.0\.2, 127\.0\.0\.3"):
        watch.check(began_ns)
    watch.check(time.monotonic_ns() + 2_000_000_000)  # a case that begins later


@pytest.mark.slow
def test_a_client_without_a_name_on_the_password_listener_is_named(
    broker: Broker, watch: BrokerWatch
) -> None:
    """mosquitto lets it in; what was measured then is not the transport of the case."""
    began_ns = time.monotonic_ns()
    publish = f"mosquitto_pub -h 127.0.0.1 -i {CLIENT} -t test -m hello -q 1".split()
    password = [*publish, "-p", str(broker.ports.password)]
    login = ["-u", broker.login.username, "-P", broker.login.password]
    for right in ([*publish, "-p", str(broker.ports.tcp)], [*password, *login]):
        subprocess.run(right, check=True, timeout=10)
        watch.check(began_ns)
    subprocess.run(password, check=True, timeout=10)
    with pytest.raises(FirmwareError, match=f"{CLIENT} .* no user name"):
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
    with pytest.raises(RigError, match=r"host stood still for 1\.\d s"):
        watch.check(began_ns)
    watch.check(time.monotonic_ns())


def connected(folder: Path, client: str, addresses: list[str]) -> None:
    """Write what mosquitto logs of a client's connections."""
    second = int(time.time())
    lines = [
        f"{second}: New client connected from {address}:{40000 + index} as {client} (p2, c1, k60).\n"
        for index, address in enumerate(addresses)
    ]
    (folder / BROKER_LOG).write_text("".join(lines), encoding="utf-8")


@pytest.mark.parametrize(
    ("other", "boards", "error", "said"),
    [
        ("10.77.0.12", BOARDS, ConfigError, "board v1 (10.77.0.11), board v2 (10.77.0.12)"),
        ("10.77.0.99", BOARDS, RigError, "board v1 (10.77.0.11), 10.77.0.99"),
        ("10.77.0.12", {}, RigError, "10.77.0.11, 10.77.0.12"),
    ],
)
def test_field_a_client_id_of_two_boards_is_configuration(
    tmp_path: Path, other: str, boards: Mapping[str, str], error: type[HilError], said: str
) -> None:
    """Two boards of this rack are named, and nobody is told to end a client; a stranger is the rig's."""
    connected(tmp_path, "node", ["10.77.0.11", other])
    watch = BrokerWatch(RUNNING, tmp_path / "watch.log", lambda: (), PASSWORD_PORT, boards)
    with pytest.raises(error) as caught:
        watch.check(time.monotonic_ns() - 1_000_000_000)
    assert said in caught.value.sentence
    assert ("end the client" in caught.value.next_step) == (error is RigError)


def test_a_line_that_the_broker_is_still_writing_is_read_whole_later(tmp_path: Path) -> None:
    """A check in the midst of a line does not lose the client that the line names."""
    connected(tmp_path, "node", ["10.77.0.11", "10.77.0.12"])
    log = tmp_path / BROKER_LOG
    whole = log.read_text(encoding="utf-8")
    watch = BrokerWatch(RUNNING, tmp_path / "watch.log", lambda: (), PASSWORD_PORT, BOARDS)
    log.write_text(whole[:-20], encoding="utf-8")
    watch.check(time.monotonic_ns() - 1_000_000_000)
    log.write_text(whole, encoding="utf-8")
    with pytest.raises(ConfigError):
        watch.check(time.monotonic_ns() - 1_000_000_000)


def stop_for(pid: int, seconds: float) -> None:
    os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(pid, signal.SIGCONT)
    wait_for(lambda: not is_kept(pid), lambda: "it does not go on")


@pytest.mark.slow
def test_a_program_that_is_stopped_is_named_unless_the_run_means_it() -> None:
    """For a second or more; a shorter stop, and a program that waits for something else, are none. A case
    that stalls its broker says from when to when; nothing is seen of a program that is none."""
    meant: list[tuple[int, int | None]] = []

    with subprocess.Popen(["sleep", "60"]) as sleeper:
        unasked = Standstill("The host's iperf", lambda: sleeper.pid)
        stalled = Standstill("The broker", lambda: sleeper.pid, lambda: meant)
        stop_for(sleeper.pid, 0.3)
        unasked.check()
        meant.append((time.monotonic_ns(), None))
        stop_for(sleeper.pid, 1.3)
        meant[0] = (meant[0][0], time.monotonic_ns())
        with pytest.raises(RigError, match=r"iperf stood still for 1\.\d s"):
            unasked.check()
        stalled.check()
        for standstill in (unasked, stalled):
            standstill.end()
        sleeper.kill()
    assert not is_kept(None)
    assert not is_kept(0)
