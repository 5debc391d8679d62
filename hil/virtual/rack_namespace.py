# SPDX-License-Identifier: Apache-2.0
"""The network inside the rack's namespaces: bridge, one namespace a board, kernel settings.

Every function here runs inside the rack's own mount, network and process namespaces.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

BRIDGE = "hil0"
BOARD_DEVICE = "wlan0"
EMULATOR_DEVICE = "eth0"  # the tap that an emulator opens, behind a bridge of the board's namespace
EMULATOR_BRIDGE = "br0"
HOST_ADDRESS = "10.77.0.1"
PREFIX_BITS = 24
FIRST_BOARD = 11
STATION_ADDRESS, STATION_GATEWAY = "192.168.4.2", "192.168.4.1"  # of whoever joins an emulator's own Wi-Fi
NETNS_DIR = Path("/run/netns")
COMMAND_TIMEOUT_S = 10.0
_NFT = shutil.which("nft") or "/usr/sbin/nft"  # which is not on the PATH of a plain user
_TABLE, _TRANSLATION = "hil_host", "hil_station"
_CAME, _ARRIVED = "came", "arrived"  # of what boards send to the host
_SENT, _BEGUN, _PORTS, _PORTS_MAX = "sent", "begun", "ports", 4096  # of what the host sends to boards
_DEFRAGMENTED, _LAST = -399, 450  # behind conntrack's work on fragments (-400); behind all others

# An ESP32's lwIP sends neither timestamps nor SACK nor a window scale by default (ESP-IDF Kconfig,
# LWIP_TCP_TIMESTAMPS, LWIP_TCP_SACK_OUT, LWIP_WND_SCALE); metrics kept between connections would couple
# one case to the next.
BOARD_SETTINGS: Mapping[str, str] = {
    "net/ipv4/tcp_timestamps": "0",
    "net/ipv4/tcp_sack": "0",
    "net/ipv4/tcp_window_scaling": "0",
    "net/ipv4/tcp_ecn": "0",
    "net/ipv4/tcp_no_metrics_save": "1",
}
HOST_SETTINGS: Mapping[str, str] = {
    "net/ipv4/tcp_timestamps": "0",
    "net/ipv4/tcp_sack": "0",
    "net/ipv4/tcp_ecn": "0",
    "net/ipv4/tcp_no_metrics_save": "1",
}
NO_IPV6: Mapping[str, str] = {
    "net/ipv6/conf/all/disable_ipv6": "1",
    "net/ipv6/conf/default/disable_ipv6": "1",
}
# A host's default may be BBR. lwIP's congestion control is Reno's; a Linux peer's is usually cubic, which the
# kernel only lets a new network namespace choose where tcp_allowed_congestion_control lists it.
BOARD_CONGESTION_CONTROLS = ("reno",)
HOST_CONGESTION_CONTROLS = ("cubic", "reno")

_CLONE_NEWNET = 0x40000000
_SIOCETHTOOL, _SIOCGIFADDR = 0x8946, 0x8915
# linux/ethtool.h: the ETHTOOL_S… commands that switch a segmentation or receive offload
_OFFLOADS = {"tso": 0x0000001F, "gso": 0x00000024, "gro": 0x0000002C}
_libc = ctypes.CDLL(None, use_errno=True)


class NetworkSetupError(Exception):
    """A step of the set-up failed; the text says which and how."""


def board_address(index: int) -> str:
    """Return the IPv4 address of the rack's board number ``index``."""
    return f"10.77.0.{FIRST_BOARD + index}"


def netns_path(board_id: str) -> Path:
    return NETNS_DIR / board_id


def access_point_device(index: int) -> str:
    """Return the bridge's port towards board number ``index``."""
    return f"air{index}"


def mount_private_run() -> None:
    """Give the rack a /run/netns of its own; where the host has none, a whole /run."""
    place = NETNS_DIR if NETNS_DIR.is_dir() else NETNS_DIR.parent
    run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(place)])
    NETNS_DIR.mkdir(exist_ok=True)


def create_bridge() -> str:
    """Bring up loopback and the bridge with the host's address; returns the congestion control."""
    ip_batch(
        "link set lo up",
        f"link add {BRIDGE} type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
    )
    write_settings({**NO_IPV6, **HOST_SETTINGS})
    congestion_control = pin_congestion_control(HOST_CONGESTION_CONTROLS)
    ip_batch(f"addr add {HOST_ADDRESS}/{PREFIX_BITS} dev {BRIDGE}", f"link set {BRIDGE} up")
    switch_offloads_off(BRIDGE)
    count_packets()
    return congestion_control


def create_board_namespace(board_id: str) -> None:
    run(["ip", "netns", "add", board_id])
    with inside(netns_path(board_id)):
        write_settings({**NO_IPV6, **BOARD_SETTINGS})
        pin_congestion_control(BOARD_CONGESTION_CONTROLS)


def connect_board(board_id: str, index: int, mac: str, *, bridged: bool = False) -> None:
    """Attach both ends of the board's link, which the air has created: bridge port and wlan0.

    A bridged board has its address by itself; its namespace only passes on its frames.
    """
    port = access_point_device(index)
    switch_offloads_off(port)
    ip_batch(f"link set {port} master {BRIDGE}", f"link set {port} up")
    with inside(netns_path(board_id)):
        switch_offloads_off(BOARD_DEVICE)
        if bridged:
            _connect_emulator()
            return
        ip_batch(
            "link set lo up",
            f"link set {BOARD_DEVICE} address {mac}",
            f"addr add {board_address(index)}/{PREFIX_BITS} dev {BOARD_DEVICE}",
            f"link set {BOARD_DEVICE} up",
            f"route add default via {HOST_ADDRESS}",
        )


def _connect_emulator() -> None:
    """Join wlan0 and the emulator's tap. Neither takes the board's MAC address, which is behind them."""
    ip_batch(
        "link set lo up",
        f"link add {EMULATOR_BRIDGE} type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
        f"tuntap add dev {EMULATOR_DEVICE} mode tap",
    )
    switch_offloads_off(EMULATOR_DEVICE)
    joined = (BOARD_DEVICE, EMULATOR_DEVICE)
    ip_batch(
        *(f"link set {device} master {EMULATOR_BRIDGE}" for device in joined),
        *(f"link set {device} up" for device in (*joined, EMULATOR_BRIDGE)),
    )


def translate(board_id: str) -> None:
    """Put the network of an emulator's access point behind wlan0, which has the board's address in the air.

    The station has the same address on each board. What comes to the board's is for the station, and what the
    station sends is from the board's.
    """
    with inside(netns_path(board_id)):
        ip_batch(f"tuntap add dev {EMULATOR_DEVICE} mode tap")
        switch_offloads_off(EMULATOR_DEVICE)
        write_settings({"net/ipv4/ip_forward": "1"})
        ip_batch(
            f"addr add {STATION_GATEWAY}/{PREFIX_BITS} dev {EMULATOR_DEVICE}",
            f"link set {EMULATOR_DEVICE} up",
        )
        table, air = _TRANSLATION, BOARD_DEVICE
        rules = (
            f"add table ip {table}",
            f"add chain ip {table} to_station {{ type nat hook prerouting priority -100; }}",
            f"add chain ip {table} from_station {{ type nat hook postrouting priority 100; }}",
            f"add rule ip {table} to_station iifname {air} dnat to {STATION_ADDRESS}",
            f"add rule ip {table} from_station oifname {air} masquerade",
        )
        run([_NFT, "-f", "-"], text="\n".join(rules))


def write_settings(settings: Mapping[str, str]) -> None:
    """Write kernel settings of the current network namespace; a kernel without one keeps its default."""
    for name, value in settings.items():
        path = Path("/proc/sys") / name
        if not path.exists():
            continue
        try:
            path.write_text(value)
        except OSError as error:
            raise NetworkSetupError(f"setting {name} = {value}: {error.strerror}") from error


def pin_congestion_control(names: Sequence[str]) -> str:
    """Use the first that the kernel grants the current network namespace, and return it."""
    path = Path("/proc/sys/net/ipv4/tcp_congestion_control")
    for name in names:
        with contextlib.suppress(OSError):
            path.write_text(name)
            return name
    raise NetworkSetupError(f"the kernel refused the congestion controls {', '.join(names)}")


def switch_offloads_off(device: str) -> None:
    """No TSO, GSO, GRO: a capture then shows the frames that crossed the air."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        for command in _OFFLOADS.values():
            value = ctypes.create_string_buffer(struct.pack("II", command, 0))
            request = struct.pack("16sP16x", device.encode(), ctypes.addressof(value))
            with contextlib.suppress(OSError):  # a device that lacks the offload refuses the switch
                fcntl.ioctl(handle, _SIOCETHTOOL, request)


def address_now(board_id: str) -> str:
    """Return the IPv4 address that a board's wlan0 has, "" for none. Raises OSError: no such board."""
    request = struct.pack("16s24x", BOARD_DEVICE.encode())
    with inside(netns_path(board_id)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        try:
            answer = fcntl.ioctl(handle, _SIOCGIFADDR, request)
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                return ""
            raise
    return socket.inet_ntoa(answer[20:24])  # behind name, family and port (netdevice(7))


def count_packets() -> None:
    """Count from now on what comes from boards for the host, before and behind the rules of others, and what
    the host sends to each board: all of it, and what belongs to connections that the host began, which has
    ports where it is TCP or UDP.

    What nft may not or cannot do here is not counted. What answers a board's mDNS or DHCP is never counted as
    begun by the host, though it belongs to no connection. Without conntrack nobody puts fragments together
    before the first count.
    """
    coming = f"ip saddr {HOST_ADDRESS}/{PREFIX_BITS} ip daddr {HOST_ADDRESS} ip frag-off & 0x3fff == 0"
    going = f"ip daddr {HOST_ADDRESS}/{PREFIX_BITS} ip daddr != {HOST_ADDRESS}"
    _add_rules(
        f"add table ip {_TABLE}",
        f"add counter ip {_TABLE} {_CAME}",
        f"add counter ip {_TABLE} {_ARRIVED}",
        f"add chain ip {_TABLE} prerouting {{ type filter hook prerouting priority {_DEFRAGMENTED}; }}",
        f"add chain ip {_TABLE} input {{ type filter hook input priority {_LAST}; }}",
        f"add rule ip {_TABLE} prerouting {coming} counter name {_CAME}",
        f"add rule ip {_TABLE} input {coming} counter name {_ARRIVED}",
    )
    begun = f"{going} ct direction original"
    _add_rules(
        *(
            f"add set ip {_TABLE} {name} {{ type ipv4_addr; size 256; flags dynamic; }}"
            for name in (_SENT, _BEGUN)
        ),
        f"add set ip {_TABLE} {_PORTS}"
        f" {{ type ipv4_addr . inet_service; size {_PORTS_MAX}; flags dynamic; }}",
        f"add chain ip {_TABLE} output {{ type filter hook output priority {_LAST}; }}",
        f"add rule ip {_TABLE} output {going} update @{_SENT} {{ ip daddr counter }}",
        f"add rule ip {_TABLE} output udp sport {{ 67, 5353 }} accept",
        f"add rule ip {_TABLE} output {begun} update @{_BEGUN} {{ ip daddr counter }}",
        f"add rule ip {_TABLE} output {begun} meta l4proto {{ tcp, udp }}"
        f" update @{_PORTS} {{ ip daddr . th dport counter }}",
    )


def _add_rules(*lines: str) -> None:
    with contextlib.suppress(NetworkSetupError):
        run([_NFT, "-f", "-"], text="\n".join(lines))


def counted() -> Mapping[str, Any]:
    """Return what was counted so far: ``dropped`` packets of all boards that came in and arrived at nobody,
    for a rule threw them away; by address, ``sent_bytes`` to a board, ``begun_bytes`` of them, and these by
    port.

    What could not be counted is left out, and bytes where there were more ports than are kept apart.
    """
    try:
        listed = json.loads(run([_NFT, "-j", "list", "table", "ip", _TABLE]))["nftables"]
    except NetworkSetupError:
        return {}
    found: dict[str, Any] = {}
    with contextlib.suppress(LookupError, TypeError, ValueError):  # an older nft lists no counters of sets
        found |= _dropped(listed)
        found |= _sent(listed)
    return found


def _dropped(listed: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    packets = {one["counter"]["name"]: int(one["counter"]["packets"]) for one in listed if "counter" in one}
    return {"dropped": packets[_CAME] - packets[_ARRIVED]}


def _sent(listed: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    sets = {one["set"]["name"]: one["set"].get("elem", ()) for one in listed if "set" in one}
    if len(sets[_PORTS]) >= _PORTS_MAX:
        return {}
    by_port: dict[str, dict[str, int]] = {}
    for one in sets[_PORTS]:
        address, port = one["elem"]["val"]["concat"]
        by_port.setdefault(address, {})[str(port)] = _bytes(one)
    sent, begun = ({one["elem"]["val"]: _bytes(one) for one in sets[name]} for name in (_SENT, _BEGUN))
    return {"sent_bytes": sent, "begun_bytes": begun, "begun_bytes_by_port": by_port}


def _bytes(element: Mapping[str, Any]) -> int:
    return int(element["elem"]["counter"]["bytes"])


@contextlib.contextmanager
def inside(path: Path) -> Iterator[None]:
    """Be in another network namespace; only for a process with a single thread."""
    home_fd = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        with path.open("rb") as target:
            _set_namespace(target.fileno())
        yield
    finally:
        _set_namespace(home_fd)
        os.close(home_fd)


def _set_namespace(fd: int) -> None:
    if _libc.setns(fd, _CLONE_NEWNET) != 0:
        code = ctypes.get_errno()
        raise NetworkSetupError(f"changing the network namespace: {os.strerror(code)}")


def ip_batch(*lines: str) -> None:
    run(["ip", "-batch", "-"], text="\n".join(lines) + "\n")


def run(argv: list[str], *, text: str = "") -> str:
    """Run a command; return what it printed. Raises NetworkSetupError with what it said."""
    try:
        done = subprocess.run(
            argv, input=text, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NetworkSetupError(f"{' '.join(argv)}: {error}") from error
    if done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).split())
        raise NetworkSetupError(f"{' '.join(argv)} exited with {done.returncode}: {said}")
    return done.stdout
