"""Capture files, frame by frame: what pcapng may hold, and what a damaged file is told."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from hil.base.errors import RigError
from hil.network.packets.datagrams import Frame, read_frames

SECTION, INTERFACE, PACKET, SIMPLE, STATISTICS = 0x0A0D0D0A, 1, 6, 3, 5
NAME, RESOLUTION, OFFSET = 2, 9, 14
FRAME = bytes(range(61))  # not a multiple of four


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length


def section(order: str) -> bytes:
    return block(order, SECTION, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))


def interface(order: str, *options: tuple[int, bytes], link_type: int = 1) -> bytes:
    body = struct.pack(order + "HHI", link_type, 0, 128)
    for code, value in (*options, (0, b"")):
        body += struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)
    return block(order, INTERFACE, body)


def packet(order: str, ticks: int, *, number: int = 0, data: bytes = FRAME, wire_bytes: int = 1514) -> bytes:
    head = struct.pack(order + "IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(data), wire_bytes)
    return block(order, PACKET, head + data)


def read(tmp_path: Path, content: bytes) -> list[Frame]:
    path = tmp_path / "x.pcapng"
    path.write_bytes(content)
    return list(read_frames(path))


@pytest.mark.parametrize("order", ["<", ">"])
def test_names_and_clocks_of_interfaces_are_read(tmp_path: Path, order: str) -> None:
    """Time is in each interface's own resolution: 10⁻⁶ s, 10⁻⁹ s, binary fractions, with an offset."""
    content = section(order)
    content += interface(order)
    content += interface(order, (NAME, b"air0"), (RESOLUTION, b"\x09"))
    content += interface(
        order, (NAME, b"lo"), (RESOLUTION, b"\x8a"), (OFFSET, struct.pack(order + "q", 1_700_000_000))
    )
    content += packet(order, 1_700_000_000_123_456)
    content += block(order, STATISTICS, bytes(24))
    content += packet(order, 1_700_000_000_123_456_789, number=1)
    content += packet(order, 512, number=2, data=b"")
    assert read(tmp_path, content) == [
        Frame(1_700_000_000_123_456_000, "", 1514, FRAME),
        Frame(1_700_000_000_123_456_789, "air0", 1514, FRAME),
        Frame(1_700_000_000_500_000_000, "lo", 1514, b""),
    ]


def test_a_section_begins_anew(tmp_path: Path) -> None:
    """Each section has its own byte order and its own interfaces: files may be joined by cat."""
    content = section("<") + interface("<", (NAME, b"hil0")) + packet("<", 1)
    content += section(">") + interface(">", (NAME, b"lo")) + packet(">", 2)
    assert [(frame.time_ns, frame.interface) for frame in read(tmp_path, content)] == [
        (1000, "hil0"),
        (2000, "lo"),
    ]


def test_a_torn_end_is_left_out(tmp_path: Path) -> None:
    """A file that ends within a block, as a killed capture leaves it, gives all whole frames."""
    whole = section("<") + interface("<") + packet("<", 1)
    last = packet("<", 2)
    for kept in range(len(last)):
        assert [frame.time_ns for frame in read(tmp_path, whole + last[:kept])] == [1000]


@pytest.mark.parametrize(
    ("middle", "words"),
    [
        (packet("<", 2)[:-4] + bytes(4), "two lengths differ"),
        (struct.pack("<III", PACKET, 8, 8), "a block of 8 bytes"),
        (struct.pack("<III", PACKET, 34, 34), "a block of 34 bytes"),
        (struct.pack("<III", PACKET, 1 << 30, 0), "a block of 1073741824 bytes"),
        (packet("<", 2, number=1), "of no interface"),
        (block("<", PACKET, struct.pack("<IIIII", 0, 0, 2, 1000, 1000) + FRAME), "longer than its block"),
        (block("<", PACKET, bytes(8)), "longer than its block|buffer"),
        (block("<", SIMPLE, bytes(8)), "block of type 3"),
        (block("<", SECTION, bytes(16)), "a section without a byte order"),
        (interface("<", link_type=113), "link type of an interface is 113"),
    ],
)
def test_damage_within_a_file_is_an_error(tmp_path: Path, middle: bytes, words: str) -> None:
    """What is damaged before the end names the file and the place: frames after it are not silently lost."""
    content = section("<") + interface("<") + packet("<", 1) + middle + packet("<", 3)
    with pytest.raises(RigError, match=rf"x\.pcapng: .*({words})"):
        read(tmp_path, content)


@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b"\xd4\xc3\xb2\xa1", section("<")[:8] + bytes(4)])
def test_a_file_that_is_no_capture_is_an_error(tmp_path: Path, content: bytes) -> None:
    """Neither of the two formats, or less than a head: a RigError that names the file."""
    with pytest.raises(RigError, match=r"x\.pcapng"):
        read(tmp_path, content)


@pytest.mark.parametrize(("order", "magic", "tick_ns"), [("<", 0xA1B2C3D4, 1000), (">", 0xA1B23C4D, 1)])
def test_the_older_format_is_read(tmp_path: Path, order: str, magic: int, tick_ns: int) -> None:
    """A .pcap file gives the same frames, of no named interface, in micro- or nanoseconds."""
    content = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 128, 1)
    content += struct.pack(order + "IIII", 7, 5, len(FRAME), 1514) + FRAME
    found = Frame(7_000_000_000 + 5 * tick_ns, "", 1514, FRAME)
    assert read(tmp_path, content) == [found]
    assert read(tmp_path, content + content[24:-1]) == [found]


def test_frames_are_those_of_tshark(tmp_path: Path) -> None:
    """Time, interface, length and kept bytes agree with another reader of the same file."""
    content = (
        section("<") + interface("<", (NAME, b"air0"), (RESOLUTION, b"\x09")) + interface("<", (NAME, b"lo"))
    )
    content += packet("<", 1_700_000_000_123_456_789) + packet(
        "<", 1_700_000_000_123_457, number=1, wire_bytes=61
    )
    frames = read(tmp_path, content)
    fields = ("frame.time_epoch", "frame.interface_name", "frame.len", "frame.cap_len")
    words = [word for field in fields for word in ("-e", field)]
    argv = ["tshark", "-n", "-r", str(tmp_path / "x.pcapng"), "-T", "fields", *words]
    said = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True).stdout
    ours = [
        f"{frame.time_ns // 10**9}.{frame.time_ns % 10**9:09}\t{frame.interface}\t{frame.wire_bytes}\t61"
        for frame in frames
    ]
    assert said.splitlines() == ours
