# SPDX-License-Identifier: Apache-2.0
"""Real captures to dissect: a virtual rack, a mosquitto, and clients on its board and its host."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hil.network.broker import Broker, BrokerOptions
from hil.network.capture import Capture
from hil.network.certificates import Certificates, make_certificates
from hil.network.dissect.segments import MqttPorts, MqttSegment, read_segments
from hil.network.process import Process
from hil.virtual.virtual_rack import VirtualRack
from tests.boards.rack_tools import start_rack, wait_until
from tests.history.segment_files import CLIENT_PORT, CONNACK, SegmentFile, connect, mqtt

BOARD, AIR_PORT = "b1", "air0"
TOPIC, CLIENT_ID = "hil/network/dissect", "board"
CLIENT_TIMEOUT_S = 60
PLAIN = MqttPorts(plain=(1883,))
WHOLE_FRAMES_BYTES = 65535

# Publishes one message after the other, each when both sides have acknowledged the one before to its last
# byte; a connection for each QOS:BYTES. argv: host, port, topic, client id, count, for TLS the CA's file and
# the key log (else two dashes), then QOS:BYTES.
ISOLATED = """
import fcntl, socket, ssl, struct, sys, termios
from hil.network.mqtt_packets import DISCONNECT_BYTES, connect_packet, publish_packet, read_packet
host, port, topic, name, count, authority, key_log = sys.argv[1:8]
def connection(qos, size):
    sock = socket.create_connection((host, int(port)))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if key_log != "-":
        context = ssl.create_default_context(cafile=authority)
        context.keylog_filename = key_log
        sock = context.wrap_socket(sock, server_hostname=host)
    def answered(first):
        assert read_packet(sock).first == first
    def wait_until_all_is_acknowledged():
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 2)  # now, delayed again from here on
        while struct.unpack("i", fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, b"0000"))[0]:
            pass
    sock.sendall(connect_packet(name, keep_alive_s=60))
    answered(0x20)
    wait_until_all_is_acknowledged()
    for number in range(1, int(count) + 1):
        sock.sendall(publish_packet(topic, b"x" * size, packet_id=number, qos=qos))
        if qos == 1:
            answered(0x40)
        if qos == 2:
            answered(0x50)
            sock.sendall(struct.pack(">BBH", 0x62, 2, number))
            answered(0x70)
        wait_until_all_is_acknowledged()
    sock.sendall(DISCONNECT_BYTES)
    while sock.recv(1):
        pass
    sock.close()
for word in sys.argv[8:]:
    connection(*(int(number) for number in word.split(":")))
"""

# paho. argv: host, port, QoS, bytes, count, gap (s), TCP_NODELAY, topic; for TLS the CA's file, the key log.
PUBLISHER = """
import socket, ssl, sys, threading, time
import paho.mqtt.client as mqtt
host, port, qos, size, count, gap, nodelay, topic = sys.argv[1:9]
client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="board")
client.max_inflight_messages_set(0)
if len(sys.argv) > 9:
    context = ssl.create_default_context(cafile=sys.argv[9])
    context.keylog_filename = sys.argv[10]
    client.tls_set_context(context)
connected = threading.Event()
client.on_connect = lambda *_: connected.set()
client.connect(host, int(port))
client.socket().setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(nodelay))
client.loop_start()
assert connected.wait(30)
sent = []
for number in range(int(count)):
    sent.append(client.publish(topic, b"%06d" % number + b"x" * (int(size) - 6), qos=int(qos)))
    time.sleep(float(gap))
for one in sent:
    one.wait_for_publish(60)
client.disconnect()
client.loop_stop()
"""

# paho: argv: host, port, QoS, count, topic. Says when it is subscribed; ends when it has got that many.
SUBSCRIBER = """
import sys
import paho.mqtt.client as mqtt
host, port, qos, count, topic = sys.argv[1:6]
client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="subscriber")
client.connect(host, int(port))
got = set()
def on_message(client, _, message):
    got.add(message.payload[:6])
    if len(got) == int(count):
        client.disconnect()
client.on_message = on_message
client.on_subscribe = lambda *_: print("subscribed", flush=True)
client.on_connect = lambda *_: client.subscribe(topic, int(qos))
client.loop_forever()
"""


def opened(number: int = 0, level: int = 4) -> SegmentFile:
    """Begin a connection of MQTT 3.1.1, or 5; each number is one more client, long after those before."""
    file = SegmentFile(client_port=CLIENT_PORT + number, time_s=1000.0 + 10 * number)
    file.open()
    file.client(connect(level=level))
    file.server(CONNACK if level == 4 else mqtt(0x20, b"\0\0\0"))
    return file


def dissected(file: SegmentFile, folder: Path, ports: MqttPorts = PLAIN) -> list[MqttSegment]:
    return read_segments(file.write(folder / "x.pcap"), ports)


@dataclass
class DissectLab:
    """A rack whose board is empty. ``captured`` runs a client on it and returns what crossed its air."""

    rack: VirtualRack
    broker: Broker
    certificates: Certificates
    folder: Path
    cases: int = 0
    started: list[Process] = field(default_factory=list)

    @property
    def board_address(self) -> str:
        return self.rack.board_address(BOARD)

    @property
    def ports(self) -> MqttPorts:
        return MqttPorts((self.broker.ports.tcp,), (self.broker.ports.tls,))

    @property
    def tls_arguments(self) -> list[str]:
        return [str(self.certificates.ca_file), str(self.key_log)]

    @property
    def key_log(self) -> Path:
        return self.folder / f"{self.cases}.keys"

    @contextmanager
    def capture(self, *interfaces: str) -> Iterator[Path]:
        """Capture at the access point, or on other interfaces of the host; complete when the block ends."""
        self.cases += 1
        path = self.folder / f"{self.cases}.pcapng"
        capture = Capture.start(
            self.rack, interfaces or (AIR_PORT,), path, capture_filter="tcp", snap_bytes=WHOLE_FRAMES_BYTES
        )
        try:
            yield path
            assert capture.stop().complete
        finally:
            capture.kill()

    def start(self, program: str, *arguments: object, on_board: bool = True) -> Process:
        argv = [sys.executable, "-c", program, *(str(one) for one in arguments)]
        log = self.log(len(self.started))
        netns = {"netns": BOARD} if on_board else {}
        self.started.append(self.rack.spawn(argv, log_path=log, **netns))
        return self.started[-1]

    def run(self, program: str, *arguments: object, on_board: bool = True) -> None:
        assert self.start(program, *arguments, on_board=on_board).wait(CLIENT_TIMEOUT_S) == 0, self.said()

    def log(self, number: int) -> Path:
        return self.folder / f"client-{number}.log"

    def said(self) -> str:
        log = self.log(len(self.started) - 1)
        return log.read_text() if log.exists() else ""

    def isolated(self, cases: Sequence[tuple[int, int]], *, count: int, tls: bool = False) -> None:
        """Publish from the board, nothing else under way; a connection for each QoS and payload."""
        port = self.broker.ports.tls if tls else self.broker.ports.tcp
        words = [self.broker.address, port, TOPIC, CLIENT_ID, count]
        words += self.tls_arguments if tls else ["-", "-"]
        self.run(ISOLATED, *words, *(f"{qos}:{payload_bytes}" for qos, payload_bytes in cases))

    def publish(
        self,
        *,
        qos: int,
        payload_bytes: int,
        count: int,
        gap_s: float = 0,
        nodelay: bool = True,
        tls: bool = False,
        on_board: bool = True,
        broker: Broker | None = None,
    ) -> None:
        """Publish with paho, from the board or the host."""
        broker = broker or self.broker
        port = broker.ports.tls if tls else broker.ports.tcp
        words = [broker.address, port, qos, payload_bytes, count, gap_s, int(nodelay), TOPIC]
        self.run(PUBLISHER, *words, *(self.tls_arguments if tls else ()), on_board=on_board)

    def subscribe(self, broker: Broker, *, count: int) -> Process:
        """Start a subscriber on the board; it is subscribed when this returns."""
        process = self.start(SUBSCRIBER, broker.address, broker.ports.tcp, 0, count, TOPIC)
        wait_until(lambda: "subscribed" in self.said(), "the subscriber is subscribed")
        return process

    def segments(self, path: Path, *, key_log: Path | None = None) -> list[MqttSegment]:
        return read_segments(path, self.ports, key_log=key_log)

    def linux_options(self, on: bool) -> None:
        """Let TCP offer what Linux does, or what lwIP does, on connections opened from here on."""
        names = " ".join(
            f"/proc/sys/net/ipv4/tcp_{name}" for name in ("timestamps", "window_scaling", "sack")
        )
        argv = ["sh", "-c", f"for name in {names}; do echo {int(on)} > $name || exit 1; done"]
        log = self.folder / "options.log"
        for netns in (BOARD, "rack"):
            assert self.rack.spawn(argv, netns=netns, log_path=log).wait(10) == 0, log.read_text()


@contextmanager
def wide_start(lab: DissectLab) -> Iterator[None]:
    """Let both sides send 200 segments before the first ACK, so that only Nagle's algorithm holds any back;
    the air takes 10 ms each way."""
    lab.rack.air.set(BOARD, "both", delay_us=10_000)
    for netns, device in ((BOARD, "wlan0"), ("rack", "hil0")):
        argv = ["ip", "route", "replace", "10.77.0.0/24", "dev", device, "initcwnd", "200"]
        log = lab.folder / "route.log"
        assert lab.rack.spawn(argv, netns=netns, log_path=log).wait(10) == 0, log.read_text()
    try:
        yield
    finally:
        lab.rack.air.set(BOARD, "both", delay_us=0)


@contextmanager
def dissect_lab(folder: Path) -> Iterator[DissectLab]:
    rack = start_rack(folder / "rack", boards=(BOARD,))
    try:
        certificates = make_certificates(folder / "certificates", rack.host_address)
        broker = Broker.start(rack, rack.host_address, folder / "broker", certificates)
        yield DissectLab(rack, broker, certificates, folder)
    finally:
        rack.stop()


@contextmanager
def broker_with_nagle(lab: DissectLab) -> Iterator[Broker]:
    options = BrokerOptions(tcp_nodelay=False)
    folder = lab.folder / "nagle"
    broker = Broker.start(lab.rack, lab.rack.host_address, folder, lab.certificates, options)
    try:
        yield broker
    finally:
        broker.stop()
