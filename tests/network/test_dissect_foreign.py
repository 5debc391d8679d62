# SPDX-License-Identifier: Apache-2.0
"""`hil dissect`: captures that others made, whatever else is in them."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dpkt
import pytest

from hil.cli.app import run_command
from hil.network.dissect import MqttPorts, bundling_of, count_symptoms, overhead_of, read_segments
from hil.network.dissect.connections import connections_of, round_trips_of
from tests.history.segment_files import (
    ACK,
    CLIENT,
    CLIENT6,
    CONNACK,
    FIN,
    SERVER,
    SERVER6,
    SYN,
    SegmentFile,
    answer,
    connect,
    mqtt,
    publish,
    subscribe,
)
from tests.network.dissect_rig import DissectLab, dissect_lab

pytestmark = pytest.mark.slow

PLAIN = MqttPorts(plain=(1883,))


def session(**how: Any) -> SegmentFile:
    """A connection from SYN to FIN with 25 publishes of QoS 1, each acknowledged after 2 ms, and a ping."""
    file = SegmentFile(**how)
    file.open()
    file.client(connect())
    file.server(CONNACK, gap_s=0.004)
    for number in range(1, 26):
        file.client(publish("t", b"payload", qos=1, message_id=number))
        file.server(answer(0x40, number), gap_s=0.002)
    file.client(mqtt(0xC0))
    file.server(mqtt(0xD0), gap_s=0.003)
    file.client(mqtt(0xE0))
    file.server(flags=FIN | ACK)
    file.client(flags=FIN | ACK)
    file.server()
    return file


def web(count: int = 3) -> SegmentFile:
    """Attempts to open connections of another protocol, and one that comes about."""
    file = SegmentFile(client_port=42000, broker_port=8080)
    for port in range(count):
        file.client_port = 42001 + port
        file.client(flags=SYN)
    file.client_port = 42000
    file.open()
    file.client(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    return file


def mixed(path: Path, *files: SegmentFile) -> Path:
    """Write what several files hold into one, in order of time."""
    first = files[0]
    first.frames = sorted((frame for file in files for frame in file.frames), key=lambda one: one[0])
    return first.write(path)


def said(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    assert run_command(["dissect", *map(str, arguments)]) == code
    out, err = capsys.readouterr()
    return err if code else out


def facts(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    found = json.loads(said(capsys, *arguments, "--json"))
    assert isinstance(found, dict)
    return found


def test_another_protocol_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a port only servers count that speak MQTT, also what failed to reach them; the rest is told."""
    failed = SegmentFile(client_port=40001)
    failed.client(flags=SYN)
    own = session()
    frames = len(own.frames)
    found = facts(capsys, mixed(tmp_path / "x.pcap", own, web(), failed))
    assert [one["client_port"] for one in found["connections"]] == [40000, 40001]
    assert (found["other_connections_count"], found["other_frames_count"]) == (4, 7)
    assert (found["overhead_frames_count"], found["overhead_handshake_count"]) == (frames + 1, 4)
    assert found["incomplete_conversation_count"] == 1


def test_a_port_or_a_dissector_chooses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--port reads its connections as MQTT wherever the broker is; --dissector looks at other protocols."""
    path = mixed(tmp_path / "x.pcap", session(broker_port=4242), web())
    assert facts(capsys, path, "--port", 4242)["overhead_publish_count"] == 25
    other = facts(capsys, path, "--dissector", "http")
    assert [one["server_port"] for one in other["connections"]] == [8080] * 4
    assert (other["overhead_publish_count"], other["overhead_handshake_count"]) == (0, 6)


@pytest.mark.parametrize("ipv6", [False, True])
def test_packed_and_over_ipv6(ipv6: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A gzip file says what the file in it does, over either version of IP, and every byte has a part."""
    path = session(ipv6=ipv6).write(tmp_path / "x.pcap")
    packed = tmp_path / "x.pcap.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    plain, unpacked = facts(capsys, path), facts(capsys, packed)
    assert {**unpacked, "file": ""} == {**plain, "file": ""}
    (connection,) = plain["connections"]
    assert (connection["client"], connection["server"]) == ((CLIENT6, SERVER6) if ipv6 else (CLIENT, SERVER))
    sizes = [
        value for name, value in plain.items() if name.startswith("overhead_") and name.endswith("_bytes")
    ]
    assert sum(sizes) == connection["frames_bytes"]
    assert (plain["overhead_ip_bytes"], plain["overhead_message_frames_count"]) == (
        (40 if ipv6 else 20) * 50,
        50,
    )


def test_round_trips_are_from_question_to_answer(tmp_path: Path) -> None:
    """Each sort of question has its own row, with what was asked and not answered."""
    file = session()
    file.client_port = 40001
    start = dict(file.next)
    file.client(flags=SYN)
    file.server(flags=SYN | ACK)
    file.client(flags=SYN, sequence=start[True], gap_s=1)  # the SYN-ACK was lost behind the capture
    file.server(flags=SYN | ACK, sequence=start[False])
    file.client()
    file.client(connect())
    file.server(CONNACK)
    at = file.next[True]
    file.client(publish("t", b"x", qos=2, message_id=1), gap_s=0.01)
    file.client(publish("t", b"x", qos=2, message_id=1), sequence=at, gap_s=0.3)
    file.server(answer(0x50, 1))
    file.client(answer(0x62, 1))
    file.server(answer(0x70, 1) + publish("u", b"y", qos=1, message_id=1))
    file.client(subscribe("t"))
    found = round_trips_of(connections_of(read_segments(file.write(tmp_path / "x.pcap"), PLAIN)))
    shown = {
        (one.name, one.by_client): (set(one.times_us), len(one.times_us), one.open_count) for one in found
    }
    assert shown == {
        ("SYN → SYN-ACK", True): ({1000}, 2, 0),
        ("SYN-ACK → ACK", False): ({1000, 1_002_000}, 2, 0),
        ("CONNECT → CONNACK", True): ({4000, 1000}, 2, 0),
        ("SUBSCRIBE → SUBACK", True): (set(), 0, 1),
        ("PUBLISH → PUBACK", True): ({2000}, 25, 0),
        ("PUBLISH → PUBACK", False): (set(), 0, 1),
        ("PUBLISH → PUBCOMP", True): ({303_000}, 1, 0),
        ("PINGREQ → PINGRESP", True): ({3000}, 1, 0),
    }
    assert [one.name for one in found][:3] == ["SYN → SYN-ACK", "SYN-ACK → ACK", "CONNECT → CONNACK"]


@pytest.mark.parametrize(
    ("packets", "ports", "told"),
    [
        (lambda file: file.server(flags=SYN | ACK), (), (CLIENT, 3000)),
        (lambda file: file.server(mqtt(0xD0)), (), (CLIENT, 3000)),
        (lambda file: file.client(mqtt(0xC0)), (), (CLIENT, 3000)),
        (lambda file: file.server(publish("t", b"x")), (1883,), (SERVER, 1883)),
        (lambda file: file.server(publish("t", b"x")), (), (CLIENT, 3000)),
        (lambda file: file.client(publish("t", b"x")), (), (CLIENT, 3000)),
    ],
    ids=["SYN-ACK", "PINGRESP", "PINGREQ", "port", "lower port", "higher port"],
)
def test_the_client_is_told_from_what_there_is(
    packets: Any, ports: tuple[int, ...], told: tuple[str, int], tmp_path: Path
) -> None:
    """By the handshake, by who may send what, by the known port, at last by the higher port."""
    file = SegmentFile(client_port=3000, broker_port=1883)
    packets(file)
    (found,) = connections_of(read_segments(file.write(tmp_path / "x.pcap"), PLAIN), ports)
    assert (found.server if ports else found.client) == told


def test_frames_that_were_cut_keep_their_headers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A capture of headers has symptoms and bytes; how many frames have unread packets is said."""
    file = session()
    at = file.next[True]
    file.client(publish("t", b"z" * 90))
    file.client(publish("t", b"z" * 90), sequence=at, gap_s=1)
    path, cut = file.write(tmp_path / "x.pcap"), tmp_path / "cut.pcap"
    subprocess.run(["editcap", "-s", "66", path, cut], check=True)
    found = facts(capsys, cut, "--port", 1883)
    assert (found["retransmission_count"], found["overhead_publish_count"]) == (1, 0)
    assert found["unreadable_count"] == sum(one.payload_bytes > 0 for one in read_segments(path, PLAIN))
    assert "only 66 of its 85 bytes were captured" in said(capsys, cut, "--port", 1883)


def test_frames_without_readable_headers_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A tunnelled segment has two IP headers: it belongs to no connection, and does not end the reading."""
    file = session()
    inner = dpkt.ethernet.Ethernet(file.frames[4][1]).data
    ip = dpkt.ip.IP(src=inner.src, dst=inner.dst, p=4, data=bytes(inner))
    ip.len = len(ip)
    file.frames.append((2000.0, bytes(dpkt.ethernet.Ethernet(type=0x0800, data=ip))))
    path = file.write(tmp_path / "x.pcap")
    assert facts(capsys, path)["headless_count"] == 1
    assert "1 TCP frame without readable headers: not counted" in said(capsys, path)


def test_what_is_said_fits_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every section is there, no line is wider than 80 columns, and what was not read is said."""
    within = SegmentFile(ipv6=True, client_port=40001)
    within.client(bytes(1448))
    path = mixed(tmp_path / "x.pcap", session(), within, web(1))
    text = said(capsys, path, "--port", 1883)
    for words in (
        "port 1883: 2 connections, 62 frames",
        "left out: 2 other connections, 5 frames;\n  of port 8080 (2 connections)",
        "[fd00::2]:40001  [fd00::1]:1883       1  1,534  missing",
        "\nConversation incomplete               1\n",
        "\npublish payload        175    ",
        "\nPUBLISH → PUBACK    client       25     0  2.000  2.000  2.000\n",
        "\nPUBLISH packets                 25       0\n",
        "the first: no MQTT packet begins with 0x00",
        "Where the start of a connection is missing",
    ):
        assert words in text, text
    own = [line for line in text.splitlines() if str(tmp_path) not in line]
    assert max(map(len, own)) <= 80


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("text.pcap", b"time,commit\n", ["it is no capture file: it begins with 74696d65", "editcap"]),
        ("empty.pcap", b"", ["it is no capture file: it is empty"]),
        ("empty.pcap.gz", gzip.compress(b""), ["it is no capture file: unpacked it is empty"]),
        ("tar.gz", gzip.compress(b"./logs/"), ["it is no capture file: unpacked it begins with 2e2f6c6f"]),
        ("begin.pcap.gz", gzip.compress(b"\xd4\xc3\xb2\xa1" * 9)[:12], ["its gzip is damaged"]),
        ("bad.pcap.gz", b"\x1f\x8bnothing", ["bad.pcap.gz"]),
    ],
    ids=(
        "text",
        "empty",
        "gzip of nothing",
        "a tar",
        "gzip cut short",
        "gzip damaged",
    ),  # gzip holds the time
)
def test_what_is_no_capture_is_refused(
    name: str, content: bytes, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, the file, what it is instead, and the way out; never tshark's own pages."""
    (tmp_path / name).write_bytes(content)
    text = said(capsys, tmp_path / name, code=2)
    for word in (name, *words):
        assert word in text
    assert "Traceback" not in text
    assert len(text) < 500


def test_a_capture_that_was_cut_short_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Plain or packed: nothing is said of a part as if it were all; what saves the part is named."""
    whole = session().write(tmp_path / "x.pcap").read_bytes()
    for name, content in (
        ("short.pcap", whole[:-9]),
        ("short.pcap.gz", gzip.compress(whole)[:-200]),
    ):
        (tmp_path / name).write_bytes(content)
        text = said(capsys, tmp_path / name, code=2)
        assert "cut short" in text
        assert f"editcap {tmp_path / name} whole.pcapng" in text


def test_a_wrong_wish_is_told_what_there_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown dissector, a port that nobody has, no MQTT, no TCP, no file: exit 2, and what to type."""
    path = mixed(tmp_path / "x.pcap", session(broker_port=4242), web())
    assert "no dissector 'mqqt'; the nearest: mqtt" in said(capsys, path, "--dissector", "mqqt", code=2)
    there = "Servers' ports in it: 8080 (4 connections), 4242 (1 connection)"
    assert f"no connection has port 99. {there}" in said(capsys, path, "--port", 99, code=2)
    text = said(capsys, path, code=2)
    assert f"tshark finds no mqtt in its 5 connections. {there}" in text
    assert f"hil dissect {path} --port " in text
    empty = SegmentFile().write(tmp_path / "none.pcap")
    assert "it holds no TCP segment" in said(capsys, empty, code=2)
    assert "No such file" in said(capsys, tmp_path / "gone.pcap", code=2)
    assert "keys.txt: there is no such file" in said(capsys, path, "--keys", "keys.txt", code=2)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DissectLab]:
    with dissect_lab(tmp_path_factory.mktemp("foreign")) as started:
        yield started


@pytest.mark.parametrize("tls", [False, True])
def test_it_says_what_a_run_says(lab: DissectLab, tls: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Of mosquitto's traffic in a lossy air all figures are those that a run's record would have."""
    lab.rack.air.set("b1", "both", delay_us=2000, loss_ppm=30_000)
    try:
        with lab.capture() as path:
            lab.publish(qos=1, payload_bytes=1200, count=60, tls=tls)
    finally:
        lab.rack.air.set("b1", "both", delay_us=0, loss_ppm=0)
    keys = lab.key_log if tls else None
    segments = lab.segments(path, key_log=keys)
    options = (
        ["--tls-port", lab.broker.ports.tls, "--keys", keys] if tls else ["--port", lab.broker.ports.tcp]
    )
    found = facts(capsys, path, *options)
    wanted = {
        **count_symptoms(segments),
        **overhead_of(segments, board=lab.board_address).facts(),
        **bundling_of(segments, sender=lab.board_address).facts("client_"),
        **bundling_of(segments, sender=lab.broker.address).facts("server_"),
    }
    assert {name: found[name] for name in wanted} == wanted
    (answered,) = [one for one in found["round_trips"] if one["name"] == "PUBLISH → PUBACK"]
    assert (answered["count"], answered["open_count"]) == (60, 0)
    assert 0 < answered["p50_us"] <= answered["p95_us"] <= answered["max_us"]
