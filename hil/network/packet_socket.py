"""``python -m hil.network.packet_socket INTERFACE ADDRESS FILE SNAP``: tcpdump's job where tcpdump refuses.

In a user namespace that holds one user, tcpdump cannot become another one and ends. This writes the same
.pcap file and says the same counts, until SIGTERM.
"""

from __future__ import annotations

import ctypes
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import BinaryIO

BUFFER_BYTES = 16 * 1024 * 1024
WAKE_S = 0.05
ANCILLARY_BYTES = 256
ETH_P_ALL = 3
LINKTYPE_ETHERNET = 1
# linux/if_packet.h, asm/socket.h
_SOL_PACKET, _PACKET_STATISTICS = 263, 6
_SO_ATTACH_FILTER, _SO_RCVBUFFORCE, _SO_TIMESTAMPNS = 26, 33, 35
_TIMESPEC = struct.Struct("@ll")


def capture(interface: str, address: str, path: Path, snap_bytes: int) -> None:
    """Write the frames from and to an IPv4 address until the process is told to end. Raises OSError."""
    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: ending.append(number))
    with _open(interface, address) as packets, path.open("wb", buffering=0) as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, snap_bytes, LINKTYPE_ETHERNET))
        _say(f"listening on {interface}, snapshot length {snap_bytes} bytes")
        captured = 0
        while not ending:
            captured += _write_frame(packets, file, snap_bytes)
        received, dropped = struct.unpack("II", packets.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8))
    _say(f"{captured} packets captured")
    _say(f"{received} packets received by filter")
    _say(f"{dropped} packets dropped by kernel")


def _open(interface: str, address: str) -> socket.socket:
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)  # sees nothing until it is bound
    _attach_filter(packets, address)
    try:
        packets.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, BUFFER_BYTES)
    except PermissionError:  # a user namespace's CAP_NET_ADMIN is not enough
        packets.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    packets.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    packets.bind((interface, ETH_P_ALL))
    packets.settimeout(WAKE_S)
    return packets


def _attach_filter(packets: socket.socket, address: str) -> None:
    """Let the kernel pass IPv4 frames of this address only (classic BPF, linux/filter.h)."""
    load_half, load_word, equal, give = 0x28, 0x20, 0x15, 0x06
    wanted = struct.unpack("!I", socket.inet_aton(address))[0]
    program = [
        (load_half, 0, 0, 12),
        (equal, 0, 4, 0x0800),
        (load_word, 0, 0, 26),
        (equal, 3, 0, wanted),
        (load_word, 0, 0, 30),
        (equal, 1, 0, wanted),
        (give, 0, 0, 0),
        (give, 0, 0, 0x40000),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in program))
    handle = struct.pack("@HP", len(program), ctypes.addressof(code))
    packets.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, handle)


def _write_frame(packets: socket.socket, file: BinaryIO, snap_bytes: int) -> int:
    """Wait for a frame and write its beginning; return how many were written, 0 or 1."""
    frame = bytearray(snap_bytes)
    try:
        length, ancillary, _, _ = packets.recvmsg_into([frame], ANCILLARY_BYTES, socket.MSG_TRUNC)
    except TimeoutError:
        return 0
    stamp = next(data for level, kind, data in ancillary if kind == _SO_TIMESTAMPNS)
    seconds, nanoseconds = _TIMESPEC.unpack_from(stamp)
    kept = min(length, snap_bytes)
    file.write(struct.pack("<IIII", seconds, nanoseconds // 1000, kept, length) + frame[:kept])
    return 1


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    interface, address, path, snap_bytes = sys.argv[1:]
    try:
        capture(interface, address, Path(path), int(snap_bytes))
    except OSError as error:
        raise SystemExit(f"{interface}: {error.strerror}") from error


if __name__ == "__main__":
    main()
