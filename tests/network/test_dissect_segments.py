# SPDX-License-Identifier: Apache-2.0
"""What is read from a capture with tshark: segments, the MQTT packets that end in them, and symptoms."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections import Counter
from pathlib import Path

import dpkt
import pytest

from hil.base import process
from hil.base.errors import RigError
from hil.network.dissect.pdus import MqttFields, Pdu, pdus_of
from hil.network.dissect.segments import MqttPorts, MqttSegment, read_segments
from hil.network.dissect.symptoms import SYMPTOMS, Symptom, count_symptoms
from tests.history.segment_files import (
    ACK,
    FIN,
    RST,
    SegmentFile,
    answer,
    connect,
    mqtt,
    publish,
    subscribe,
    text,
)
from tests.lab import ROOT
from tests.network.dissect_rig import PLAIN, DissectLab, dissect_lab, dissected, opened

MAKE_LAB = dissect_lab


def together(*files: SegmentFile) -> SegmentFile:
    """Return one capture of several connections, one after the other."""
    return SegmentFile(frames=[frame for file in files for frame in file.frames])


def pdus(segments: list[MqttSegment]) -> list[Pdu]:
    return [pdu for one in segments for pdu in one.pdus]


@pytest.mark.slow
def test_packets_of_one_segment_get_their_own_values(tmp_path: Path) -> None:
    """Each packet of a segment has its own topic, id, payload and flags, whatever the others lack."""
    file = opened()
    packets = [
        publish("t", b""),
        publish("t", b"x", qos=1, message_id=7),
        publish("u", b"", qos=1, message_id=8, flags=8),
        publish("", b"zz"),
        subscribe("x,y", "z|", "ä", message_id=3),
        answer(0x62, 11),
        publish("q", b"1", qos=2, message_id=9, flags=1),
    ]
    file.client(b"".join(packets))
    found = dissected(file, tmp_path)[-1].pdus
    assert [pdu.packet_bytes for pdu in found] == [len(packet) for packet in packets]
    assert found == (
        Pdu("PUBLISH", 5, topic="t"),
        Pdu("PUBLISH", 8, id=7, topic="t", payload=b"x", qos=1),
        Pdu("PUBLISH", 7, id=8, topic="u", qos=1, dup=True),
        Pdu("PUBLISH", 6, payload=b"zz"),
        Pdu("SUBSCRIBE", len(packets[4]), id=3),
        Pdu("PUBREL", 4, id=11),
        Pdu("PUBLISH", 8, id=9, topic="q", payload=b"1", qos=2, retain=True),
    )


@pytest.mark.slow
def test_every_kind_is_known_by_its_name(tmp_path: Path) -> None:
    """All packets of MQTT 3.1.1 are named, with their ids."""
    file = opened()
    ids = {0x40: "PUBACK", 0x50: "PUBREC", 0x62: "PUBREL", 0x70: "PUBCOMP", 0xB0: "UNSUBACK"}
    for number, first in enumerate(ids, 1):
        file.client(answer(first, number))
    file.client(mqtt(0xA2, b"\0\x09" + text("a") + text("b")))
    file.client(mqtt(0xC0) + mqtt(0xE0))
    file.server(mqtt(0xD0) + mqtt(0x90, b"\0\x0a\0\x01\x80"))
    found = [(pdu.kind, pdu.id) for pdu in pdus(dissected(file, tmp_path))]
    assert found == [
        *(("CONNECT", 0), ("CONNACK", 0)),
        *((kind, number) for number, kind in enumerate(ids.values(), 1)),
        *(("UNSUBSCRIBE", 9), ("PINGREQ", 0), ("DISCONNECT", 0), ("PINGRESP", 0), ("SUBACK", 10)),
    ]


def test_an_empty_payload_that_is_not_listed_is_found_by_its_length() -> None:
    """Where tshark leaves empty payloads out of its list, the length says whose they are."""
    flags, lengths = [b"0x30", b"0x30", b"0x32"], [b"3", b"4", b"5"]
    listed = MqttFields(flags, lengths, [b"1"] * 3, [b"t"] * 3, [b"5"], [b"<MISSING>", b"78", b"<MISSING>"])
    left_out = MqttFields(flags, lengths, [b"1"] * 3, [b"t"] * 3, [b"5"], [b"78"])
    assert pdus_of(left_out) == pdus_of(listed)
    assert [pdu.payload for pdu in pdus_of(listed)] == [b"", b"x", b""]


@pytest.mark.slow
def test_a_frame_that_does_not_add_up_is_skipped(tmp_path: Path) -> None:
    """Lists of which nobody can say what belongs where cost their frame its packets, and no other its own. Of
    a frame with hundreds of packets a line is said, not all their values."""
    files = []
    for number, packet in enumerate(
        (mqtt(0x30, b"\0\x20short"), mqtt(0x32, text("t")), mqtt(0x40), mqtt(0x30))
    ):
        files.append(opened(number))
        files[-1].client(publish("t", b"ok") + packet + publish("t", b"more"))
        files[-1].client(publish("t", b"after"))
    found = dissected(together(*files), tmp_path)
    for first in range(0, len(found), 7):
        *sound, bad, after = found[first : first + 7]
        assert re.search("mqtt.hdrflags 0x30, .*mqtt.msg 6f6b, 6d6f7265", bad.unreadable), first
        assert (bad.number, bad.pdus) == (first + 6, ())
        assert [one.unreadable for one in (*sound, after)] == [""] * 6
        assert after.pdus == (Pdu("PUBLISH", 8 + 2, topic="t", payload=b"after"),)
    file = opened()
    file.client(publish("t", b"0123456789") * 90 + mqtt(0x30, b"\0\x20short"))
    (bad,) = [one for one in dissected(file, tmp_path) if one.unreadable]
    assert "… (91 in all)" in bad.unreadable
    assert len(bad.unreadable) < 500


@pytest.mark.slow
def test_what_mqtt_does_not_allow_is_no_packet(tmp_path: Path) -> None:
    """A reserved type and forbidden flags (MQTT 3.1.1, 2.2.2) are bytes of something else."""
    forbidden = (0x00, 0x11, 0x36, 0x3E, 0x42, 0x60, 0x80, 0xA0, 0xE1)
    files = [opened(number) for number in range(len(forbidden))]
    for file, first in zip(files, forbidden, strict=True):
        file.client(mqtt(first, b"\0\1a" if first >> 4 == 3 else b""))
    lasts = dissected(together(*files), tmp_path)[5::6]
    taken = [first for first, last in zip(forbidden, lasts, strict=True) if last.pdus or not last.unreadable]
    assert taken == []


@pytest.mark.slow
def test_bytes_and_numbers_are_those_on_the_wire(tmp_path: Path) -> None:
    """Header, option and padding bytes are told apart, and a number that wraps stays absolute."""
    file = SegmentFile(next={True: 2**32 - 5, False: 77})
    file.open()
    file.client(connect(), padding=3)
    found = dissected(file, tmp_path)
    last = found[-1]
    assert (last.ip_bytes, last.tcp_bytes, last.options_bytes, last.payload_bytes) == (20, 32, 12, 19)
    assert last.frame_bytes == 14 + 20 + 32 + 19 + 3
    assert last.sequence == 2**32 - 4
    assert last.acknowledgement == 78
    assert [one.time_us for one in found] == [1_000_001_000 + 1000 * number for number in range(4)]
    assert [one.syn for one in found] == [True, True, False, False]
    assert [one.ack for one in found] == [False, True, True, True]


@pytest.mark.slow
def test_packets_are_put_together_although_segments_come_late_and_twice(tmp_path: Path) -> None:
    """What was lost before the capture and came again completes its packet, and nothing counts twice."""
    file = opened()
    packet = publish("t", b"a" * 50)
    start = file.next[True]
    file.client(packet[:20])
    file.client(packet[20:40], capture=False)
    file.client(packet[40:] + publish("t", b"b"))
    file.client(packet[20:40], sequence=start + 20, gap_s=0.3)
    file.client(packet[20:40], sequence=start + 20, gap_s=0.3)
    found = dissected(file, tmp_path)
    assert [pdu.payload for pdu in pdus(found)[2:]] == [b"a" * 50, b"b"]
    assert "lost_segment" in found[-3].analysis
    assert not found[-1].pdus


@pytest.mark.slow
def test_completeness_is_that_of_the_whole_connection(tmp_path: Path) -> None:
    """Every segment knows how its connection ended, as tshark says after two passes."""
    files = [opened(number) for number in range(3)]  # the first one goes on
    files[1].server(flags=FIN | ACK)
    files[2].server(flags=RST | ACK)
    found = dissected(together(*files), tmp_path)
    assert len({one.completeness for one in found}) == 3
    argv = ["tshark", "-2", "-r", str(tmp_path / "x.pcap"), "-T", "fields", "-e", "tcp.completeness"]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
    assert [one.completeness for one in found] == [int(value) for value in said]


@pytest.mark.slow
def test_a_users_settings_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Preferences and disabled protocols of the user who runs it are not read."""
    file = opened()
    file.client(publish("t", b"x"))
    before = dissected(file, tmp_path)
    settings = tmp_path / ".config" / "wireshark"
    settings.mkdir(parents=True)
    (settings / "disabled_protos").write_text("mqtt\n")
    (settings / "preferences").write_text("tcp.desegment_tcp_streams: FALSE\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))
    monkeypatch.setenv("WIRESHARK_CONFIG_DIR", str(settings))
    argv = ["tshark", "-r", str(tmp_path / "x.pcap"), "-Y", "mqtt"]
    assert not subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert dissected(file, tmp_path) == before


@pytest.mark.slow
def test_other_ports_are_mqtt_where_the_broker_says_so(tmp_path: Path) -> None:
    """A port counts as MQTT because it is among the broker's, not by its number."""
    file = SegmentFile(broker_port=18831)
    file.open()
    file.client(connect())
    assert not pdus(dissected(file, tmp_path))
    assert [pdu.kind for pdu in pdus(dissected(file, tmp_path, MqttPorts(plain=(18831,))))] == ["CONNECT"]


@pytest.mark.slow
def test_what_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No capture, frames that were cut, and a missing tshark each have their own sentence."""
    (tmp_path / "text.pcap").write_text("none\n")  # which tshark takes for one of its many formats
    path = opened().write(tmp_path / "whole.pcap")
    (tmp_path / "short.pcap").write_bytes(path.read_bytes()[:-9])
    subprocess.run(["editcap", "-s", "68", path, tmp_path / "cut.pcap"], check=True)
    for name, said in (
        ("text", "begins with 6e6f6e65"),
        ("none", "No such file"),
        ("short", r"status \d+: .*cut short"),
        ("cut", "frame 4: only 68 of its 85 bytes"),
    ):
        with pytest.raises(RigError, match=rf"{name}\.pcap.*{said}"):
            read_segments(tmp_path / f"{name}.pcap", PLAIN)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(process, "SYSTEM_FOLDERS", str(tmp_path))
    with pytest.raises(RigError, match="apt-get install tshark"):
        read_segments(path, PLAIN)


@pytest.mark.slow
def test_an_icmp_error_is_no_segment(tmp_path: Path) -> None:
    """A segment that is quoted in an ICMP error was not sent again."""
    file = opened()
    time_s, frame = file.frames[-1]
    inner = dpkt.ethernet.Ethernet(frame).data
    error = dpkt.icmp.ICMP(type=3, code=3, data=dpkt.icmp.ICMP.Unreach(data=inner))
    ip = dpkt.ip.IP(src=inner.dst, dst=inner.src, p=1, data=error)
    ip.len = len(ip)
    file.frames.append((time_s + 1, bytes(dpkt.ethernet.Ethernet(type=0x0800, data=ip))))
    assert len(dissected(file, tmp_path)) == 5


def numbers(segments: list[MqttSegment]) -> Counter[int]:
    return Counter(int(pdu.payload[:6]) for pdu in pdus(segments) if pdu.kind == "PUBLISH")


@pytest.mark.slow
@pytest.mark.parametrize("tls", [False, True])
def test_every_message_is_found_once_in_a_lossy_air(lab: DissectLab, tls: bool) -> None:
    """With frames lost, doubled and overtaken each of 200 messages is seen once where they were captured."""
    lab.rack.air.set("b1", "both", delay_us=2000, loss_ppm=30_000, duplicate_ppm=10_000, reorder_ppm=20_000)
    try:
        with lab.capture() as path:
            lab.publish(qos=1, payload_bytes=1200, count=200, gap_s=0.001, nodelay=True, tls=tls)
    finally:
        lab.rack.air.set("b1", "both", delay_us=0, loss_ppm=0, duplicate_ppm=0, reorder_ppm=0)
    found = lab.segments(path, key_log=lab.key_log if tls else None)
    assert numbers(found) == dict.fromkeys(range(200), 1)
    assert any("retransmission" in one.analysis for one in found)
    assert {one.payload for one in pdus(found) if one.kind == "PUBLISH"} == {
        b"%06d" % number + b"x" * 1194 for number in range(200)
    }


@pytest.mark.slow
def test_without_keys_tls_keeps_its_packets(lab: DissectLab) -> None:
    """MQTT inside TLS is seen with the key log only, and what can be seen of TLS is the same."""
    with lab.capture() as path:
        lab.isolated([(1, 100)], count=2, tls=True)
    secret = lab.segments(path)
    assert not pdus(secret)
    assert {22, 20} <= {kind for one in secret for kind in one.tls_types}
    opened_up = lab.segments(path, key_log=lab.key_log)
    assert [pdu.kind for pdu in pdus(opened_up)][2:-1] == ["PUBLISH", "PUBACK"] * 2


@pytest.mark.slow
def test_a_megabyte_is_put_together(lab: DissectLab) -> None:
    """A PUBLISH of 1 MB in some 700 segments comes out byte for byte."""
    with lab.capture() as path:
        lab.publish(qos=1, payload_bytes=1_000_000, count=1, gap_s=0, nodelay=True)
    found = lab.segments(path)
    last = next(one for one in found if any(pdu.kind == "PUBLISH" for pdu in one.pdus))
    assert last.pdus[0].payload == b"000000" + b"x" * 999_994
    assert last.number > 680


def is_command(symptom: Symptom) -> bool:
    return symptom.display_filter.startswith("tshark ")


def counted_by_tshark(path: Path) -> dict[str, int]:
    """Count as a user does: tshark's statistics of the display filters, and the commands."""
    filters = [symptom.display_filter for symptom in SYMPTOMS if not is_command(symptom)]
    said = output(f"tshark -q -r FILE -z {shlex.quote(','.join(['io,stat,0', *filters]))}", path)
    row = next(line for line in said.splitlines() if "<>" in line)
    counts = map(int, row.split("|")[2::2])  # of each filter frames and bytes, behind the interval
    return {
        symptom.name: int(output(symptom.display_filter, path)) if is_command(symptom) else next(counts)
        for symptom in SYMPTOMS
    }


def output(command: str, path: Path) -> str:
    command = command.replace("FILE", shlex.quote(str(path)))
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def troubled(path: Path) -> Path:
    """Write a connection with some of everything, and two more: one that ends, one without its beginning."""
    file = opened()
    start = file.next[True]
    packets = [publish("t", b"%02d" % number) for number in range(8)]
    size = len(packets[0])
    for number, packet in enumerate(packets):
        file.client(packet, capture=number not in (1, 5))
    for _ in range(3):
        file.server(acknowledges=start + size)
    file.client(packets[1], sequence=start + size)  # fast
    file.client(packets[5], sequence=start + 5 * size)
    file.server()
    overtaken = publish("t", b"overtaken")
    at = file.next[True]
    file.client(overtaken, capture=False)
    file.client(publish("t", b"first"))
    file.client(overtaken, sequence=at, gap_s=0.0005)
    file.server()
    file.client(packets[6], sequence=start + 6 * size, gap_s=0.5)  # spurious
    file.client(publish("t", b"") + publish("t", b"full") + publish("t", b"", qos=1, message_id=9))
    file.client(publish("t", b""))
    late = publish("t", b"late")
    at = file.next[True]
    file.client(late)
    file.client(late, sequence=at, gap_s=1.0)
    ended, cut = opened(1), opened(2)
    ended.client(flags=FIN | ACK)
    ended.server(flags=FIN | ACK)
    ended.client()
    file.frames += ended.frames + cut.frames[3:]
    file.frames.sort(key=lambda one: one[0])
    return file.write(path)


@pytest.mark.slow
def test_each_symptom_is_counted_as_by_its_filter(tmp_path: Path) -> None:
    """In a capture that has all of them, each count is the filter's, and not 0.

    Three publishes carry nothing; those of which a segment came late do not count as such.
    """
    path = troubled(tmp_path / "trouble.pcap")
    found = count_symptoms(read_segments(path, PLAIN))
    assert found == counted_by_tshark(path)
    assert all(found.values()), found
    assert found["empty_publish_count"] == 3


def test_the_page_has_each_filter() -> None:
    """What docs/explain/dissecting.md tells a user to type is what is tested here."""
    page = (ROOT / "docs" / "explain" / "dissecting.md").read_text(encoding="utf-8").replace("\\\n", " ")
    said = " ".join(page.split())
    for symptom in SYMPTOMS:
        assert symptom.display_filter in said, symptom.name
        assert f"`{symptom.name}`" in said


@pytest.mark.slow
def test_a_sound_connection_has_no_symptom(tmp_path: Path) -> None:
    """A connection from SYN to FIN of which nothing was lost has only zeros."""
    file = opened()
    file.client(publish("t", b"x"))
    file.server()
    file.client(flags=FIN | ACK)
    file.server(flags=FIN | ACK)
    file.client()
    path = file.write(tmp_path / "sound.pcap")
    counts = count_symptoms(read_segments(path, PLAIN))
    assert counts == dict.fromkeys((symptom.name for symptom in SYMPTOMS), 0)
    assert counts == counted_by_tshark(path)


@pytest.mark.slow
def test_counts_are_tsharks_on_a_lossy_air(lab: DissectLab) -> None:
    """With frames lost, doubled and overtaken on their way every count is the filter's."""
    lab.rack.air.set("b1", "both", delay_us=2000, loss_ppm=30_000, duplicate_ppm=20_000, reorder_ppm=30_000)
    with lab.capture() as path:
        lab.publish(qos=0, payload_bytes=3000, count=200, gap_s=0.001, nodelay=False)
    found = count_symptoms(lab.segments(path))
    assert found == counted_by_tshark(path)
    seen = {name for name, count in found.items() if count}
    assert {"duplicate_ack_count", "retransmission_count", "lost_segment_count"} <= seen
