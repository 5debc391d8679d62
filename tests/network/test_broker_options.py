# SPDX-License-Identifier: Apache-2.0
"""What a case may set on its broker shows in what clients meet; what is loaded before mosquitto: TLS keys for
whoever reads captures, and a simulated slow disk.
"""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hil.base.errors import RigError
from hil.network import mqtt_packets as mqtt
from hil.network.broker import Broker, SlowDisk
from hil.network.broker_config import BrokerOptions
from hil.network.capture import Capture
from hil.network.certificates import Certificates
from hil.network.preload import build as preload
from hil.network.preload.build import build_library
from tests.boards.rack_tools import running_rack
from tests.network.broker_rig import DB_BYTES, TIMEOUT_S, Client, running_broker, seconds_of_saves

pytestmark = pytest.mark.slow

TOPIC = "test/topic"
SENT = 20


def publish_numbers(client: Client) -> list[bytes]:
    payloads = [b"%d" % number for number in range(SENT)]
    for payload in payloads:
        client.publish(TOPIC, payload)
    return payloads


@pytest.mark.parametrize("connected", [True, False])
def test_a_full_queue_drops_exactly_what_it_has_no_place_for(
    connected: bool, tmp_path: Path, certificates: Certificates
) -> None:
    """mosquitto's count of dropped messages is what was sent less the places: in flight and queued.

    In newer ones, such as 2.0.21, the queue of a client that is there is longer by those in flight.
    """
    options = BrokerOptions(max_inflight_messages=3, max_queued_messages=5, statistics=True)
    with running_broker(tmp_path, certificates, options) as broker, Client(broker) as publisher:
        with Client(broker, "subscriber", clean_session=False) as subscriber:
            subscriber.subscribe(TOPIC)
            if not connected:
                subscriber.leave()
            payloads = publish_numbers(publisher)
            dropped = broker.dropped_messages() or 0
            assert dropped in ((SENT - 3 - 5, SENT - 3 - 3 - 5) if connected else (SENT - 5,))
            if connected:
                assert subscriber.received_all() == payloads[:-dropped]
        if not connected:
            with Client(broker, "subscriber", clean_session=False) as again:
                assert again.received_all() == payloads[:-dropped]


def test_a_broker_that_was_not_told_to_count_says_nothing(tmp_path: Path, certificates: Certificates) -> None:
    """Without statistics, and while the broker is interrupted, the number of drops is unknown, not zero."""
    with running_broker(tmp_path / "silent", certificates) as broker:
        assert broker.dropped_messages() is None
    with running_broker(tmp_path / "counting", certificates, BrokerOptions(statistics=True)) as broker:
        broker.interrupt()
        assert broker.dropped_messages() is None


@pytest.mark.parametrize("inflight", [0, 1, 4])
def test_no_more_are_in_flight_than_allowed(
    inflight: int, tmp_path: Path, certificates: Certificates
) -> None:
    """A subscriber that acknowledges nothing gets max_inflight_messages, all where it is 0; then the rest."""
    options = BrokerOptions(max_inflight_messages=inflight)
    with (
        running_broker(tmp_path, certificates, options) as broker,
        Client(broker) as subscriber,
        Client(broker) as publisher,
    ):
        subscriber.subscribe(TOPIC)
        payloads = publish_numbers(publisher)
        assert subscriber.received() == payloads[: inflight or SENT]


def segments_of_a_burst(folder: Path, certificates: Certificates, *, nodelay: bool) -> int:
    with (
        running_broker(folder, certificates, BrokerOptions(tcp_nodelay=nodelay)) as broker,
        Client(broker) as subscriber,
        Client(broker) as publisher,
    ):
        subscriber.subscribe(TOPIC, qos=0)
        subscriber.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)  # ACKs come late
        before = subscriber.segments_in()
        publisher.socket.sendall(mqtt.publish_packet(TOPIC, b"small") * SENT)
        publisher.received()
        assert len(subscriber.received()) == SENT
        return subscriber.segments_in() - before


def test_nagle_joins_messages_and_nodelay_does_not(tmp_path: Path, certificates: Certificates) -> None:
    """Without tcp_nodelay all that comes before the first message's ACK goes out in one segment after it."""
    nagle = segments_of_a_burst(tmp_path / "nagle", certificates, nodelay=False)
    assert nagle <= 3  # the first, the others, the answer to a ping
    assert segments_of_a_burst(tmp_path / "nodelay", certificates, nodelay=True) > nagle


@pytest.mark.parametrize(("persistence", "survives"), [("off", False), ("on", False), ("each", True)])
def test_what_is_saved_survives_a_kill(
    persistence: str, survives: bool, tmp_path: Path, certificates: Certificates
) -> None:
    """After kill -9 a broker that saves each change has queue and retained message; others do not."""
    options = BrokerOptions(persistence=persistence)  # type: ignore[arg-type]
    with running_broker(tmp_path, certificates, options) as broker:
        subscriber = Client(broker, "subscriber", clean_session=False)
        subscriber.subscribe(TOPIC)
        subscriber.leave()
        with Client(broker) as publisher:
            publisher.publish(TOPIC, b"waiting")
            publisher.publish("retained", b"kept", retain=True)
            publisher.received()  # the turn of the broker's loop that acknowledged has ended, and saved
            broker.interrupt()
            broker.resume()
        with Client(broker, "subscriber", clean_session=False) as again:
            again.subscribe("retained")
            assert again.received_all() == ([b"waiting", b"kept"] if survives else [])
    assert not (tmp_path / "broker" / "persistence").exists()


def topics_in(capture: Path, port: int, keys: Path | None) -> list[str]:
    """Return the topics of the PUBLISHes that tshark sees in a capture of TLS."""
    options = ["-o", f"tls.keylog_file:{keys}"] if keys else []
    argv = ["tshark", "-r", str(capture), *options, "-d", f"tls.port=={port},mqtt", "-Y", "mqtt.msgtype == 3"]
    argv += ["-T", "fields", "-e", "mqtt.topic"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.split()


def test_a_capture_of_tls_is_read_with_the_key_log(tmp_path: Path, certificates: Certificates) -> None:
    """With the keys of a broker tshark shows what was published over TLS, also after its restart; without
    them nothing. The file is for its owner only."""
    keys = tmp_path / "secrets" / "keys"
    keys.parent.mkdir()
    with running_rack(tmp_path / "rack") as rack:
        broker = Broker.start(rack, rack.host_address, tmp_path / "broker", certificates, key_log=keys)
        path = tmp_path / "lo.pcapng"
        tls_port = f"tcp port {broker.ports.tls}"
        capture = Capture.start(rack, ["lo"], path, capture_filter=tls_port, snap_bytes=65535)
        for topic in ("first", "second"):
            argv = ["mosquitto_pub", "-h", broker.address, "-p", str(broker.ports.tls)]
            argv += ["--cafile", str(certificates.ca_file), "-t", topic, "-q", "1", "-m", "hello"]
            client = rack.spawn(argv, log_path=tmp_path / "client.log")
            assert client.wait(TIMEOUT_S) == 0, (tmp_path / "client.log").read_text()
            broker.interrupt()
            broker.resume()
        capture.stop()
        assert topics_in(path, broker.ports.tls, broker.key_log) == ["first", "second"]
        assert topics_in(path, broker.ports.tls, None) == []
        broker.stop()
    assert stat.S_IMODE(keys.stat().st_mode) == 0o600
    with (
        pytest.raises(ValueError, match="keys are secrets"),
        running_broker(tmp_path, certificates, key_log=tmp_path / "broker" / "keys"),
    ):
        pass
    assert not any("CLIENT_" in left.read_text() for left in (tmp_path / "broker").iterdir())


def path_with(folder: Path, *programs: str) -> str:
    folder.mkdir()
    for program in programs:
        found = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin")
        (folder / program).symlink_to(str(found))
    return str(folder)


def test_a_host_that_builds_no_library_logs_no_keys(
    tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without compiler the broker starts all the same and has no keys; a slow disk says why not."""
    monkeypatch.setattr(preload, "OUT_DIR", tmp_path / "out")
    monkeypatch.setenv("PATH", path_with(tmp_path / "bin", "sh", "setpriv", "env", "mosquitto"))
    with running_broker(tmp_path, certificates, key_log=tmp_path / "keys") as broker:
        assert broker.key_log is None
        with Client(broker) as client:
            client.publish("test", b"hello")
    slow = SlowDisk(rate_bytes_per_s=1000, latency_us=0)
    with (
        pytest.raises(RigError, match=r"slow_disk\.c: .*'cc'.*apt-get install gcc"),
        running_broker(tmp_path, certificates, slow_disk=slow),
    ):
        pass


def test_a_library_is_built_once_and_a_failure_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that is there is taken; what the compiler said is in the error, and leaves no library."""
    library = build_library("key_log", tmp_path)
    made_at = library.stat().st_mtime_ns
    assert build_library("key_log", tmp_path) == library
    assert library.stat().st_mtime_ns == made_at
    assert [path.name for path in tmp_path.iterdir()] == [library.name]
    (tmp_path / "empty.c").write_text("#include <no/such/header.h>\n")
    monkeypatch.setattr(preload, "SOURCES", tmp_path)
    with pytest.raises(RigError, match=r"empty\.c: cc .* 1: .*no/such/header\.h"):
        build_library("empty", tmp_path / "out")
    assert not any((tmp_path / "out").iterdir())
    with pytest.raises(RigError, match="LD_PRELOAD"):
        build_library("empty", tmp_path / "with space")


WRITES = """
import os, sys, time
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
began = time.monotonic()
os.write(file, bytes(20000))
written = time.monotonic()
os.fsync(file)
print(written - began, time.monotonic() - written)
"""


def test_a_slow_disk_is_slow_in_its_folder_only(tmp_path: Path) -> None:
    """20 kB at 100 kB/s take 200 ms and a latency, fsync a latency; outside nothing is added."""
    slow = tmp_path / "slow"
    slow.mkdir()
    settings = {"FOLDER": str(slow), "RATE": "100000", "LATENCY_US": "30000"}
    environment = {**os.environ, "LD_PRELOAD": str(build_library("slow_disk"))}
    environment |= {f"HIL_SLOW_DISK_{name}": value for name, value in settings.items()}
    took = {}
    for name in ("slow/file", "slower"):
        argv = [sys.executable, "-c", WRITES, str(tmp_path / name)]
        done = subprocess.run(argv, capture_output=True, text=True, env=environment, timeout=60, check=True)
        took[name] = [float(word) for word in done.stdout.split()]
    assert took["slow/file"][0] >= 0.230
    assert sum(took["slow/file"]) >= 0.260  # what the first sleep took too long is taken off the second
    assert took["slower"][0] < took["slow/file"][0] / 2


def test_a_slow_disk_slows_saving_by_what_was_set(tmp_path: Path, certificates: Certificates) -> None:
    """A save takes its bytes / rate and a latency for each block and fsync: on a disk four times as slow it
    takes four times as long, within a factor, and on none much less than on the faster one."""
    settings = {"fast": (4_000_000, 500), "slow": (1_000_000, 2000)}
    blocks = DB_BYTES // 4096 + 1
    without_s = seconds_of_saves(tmp_path / "without", certificates, None)
    took_s = {}
    for name, (rate, latency_us) in settings.items():
        disk = SlowDisk(rate_bytes_per_s=rate, latency_us=latency_us)
        took_s[name] = seconds_of_saves(tmp_path / name, certificates, disk)
        assert took_s[name] >= DB_BYTES / rate + blocks * latency_us / 1e6
    assert 2 < took_s["slow"] / took_s["fast"] < 6
    assert took_s["fast"] > 2 * without_s
