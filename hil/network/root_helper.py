# SPDX-License-Identifier: Apache-2.0
"""Root's side of a rack: seven programs, whose arguments are looked through, for a user that has no rights.

A job's user may not capture, shape, filter or serve addresses. This program does these things for it, and
nothing else. systemd starts one for each connection of /run/hil/helper.sock, which is its standard input.
The first message is a request, one line of JSON, with the file that the output goes to as a descriptor
(SCM_RIGHTS, unix(7)):

    {"argv": ["tc", "qdisc", "show", "dev", "wlan0"], "file": "the settings of hostapd's file"}

The answers are lines: {"pid": 123}, or {"refused": "why"}; whatever the program says, as {"said": "…"}; at
last {"status": 0}. A later line {"signal": 15} of the other side is handed on. When the other side is gone,
however it went, the program is killed.

It stands by itself, with Python's own library: root runs a copy of it that no job can write to
(/usr/local/lib/hil/hil-helper), never a file of a checkout. Its argument is the file with what the rack file
says of the network, /etc/hil/helper.json.
"""

from __future__ import annotations

import array
import itertools
import json
import os
import re
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

SOCKET = "/run/hil/helper.sock"
REQUEST_BYTES_MAX = 64 * 1024
FOLDERS = "/usr/sbin:/usr/bin:/sbin:/bin"
END_TIMEOUT_S = 3.0
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP)


class RequestRefused(Exception):  # noqa: N818 (an answer)
    """What is asked for is not among what this program does; the text says why."""


class HelperRack(NamedTuple):
    """What the rack file says: the interfaces, the host's address for boards, and the addresses that it gives
    out ("" where it gives none)."""

    interfaces: Collection[str]
    address: str = ""
    dhcp_range: str = ""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What tc may be told, beside numbers with their units and interfaces: no filter that loads a program (bpf),
# no batch.
_TC_WORDS = _words(
    """
    qdisc class filter add replace del show dev root parent handle classid default protocol prio ingress
    htb rate ceil burst cburst quantum tbf latency limit bfifo netem delay distribution normal loss random
    gemodel duplicate reorder u32 match ip src dst flowid action mirred egress redirect
    """
)
_TC_NUMBER = re.compile(
    r"[0-9a-f]{0,4}:[0-9a-f:]{0,4}|[0-9.]{1,15}(%|[kmg]?i?b(it|ps)?|[mu]?s|/[0-9]{1,2})?", re.I
)
IFB = "hil-ifb0"  # what comes in at an interface goes over this one, made for it (hil.network.shaping)
_IP = (("add", IFB, "type", "ifb"), ("set", IFB, "up"), ("del", IFB), ("show", IFB))

_DUMPCAP_FLAGS = frozenset(("-q", "-n", "-P", "-p", "-t"))
_DUMPCAP_VALUES = frozenset(("-f", "-s", "-B", "-N", "-C", "-y"))

# nft's rules are those of hil.network.packet_filter: a table hil_… of the family netdev, counters and drops.
_NFT_TABLE = r"netdev hil_[0-9_]{7,15}"
_NFT_MATCH = r"(?:ip|arp|tcp|th|saddr|daddr|sport|dport|flags|doff|syn|ack|[0-9.@,x&|()= a-f!])*"
_NFT_LINES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?:add|delete) table {_NFT_TABLE}",
        rf"list counter {_NFT_TABLE} [a-z]{{1,20}}",
        rf"table {_NFT_TABLE} {{",
        r"counter [a-z]{1,20} { }",
        r"chain [a-z]{1,20} {",
        r'type filter hook (?:ingress|egress) device "(?P<interface>[^"]{1,15})"  ?'
        r"priority -?[0-9]{1,4}; policy accept;",
        rf"{_NFT_MATCH}counter name [a-z]{{1,20}} drop",
        r"}",
    )
)

# hostapd's file is written here, of these keys: none names a file, a program or a socket. hostapd reads 4,095
# bytes as a line and what follows as the next one, so every value has an end.
_NUMBER = r"[0-9]{1,3}"
_HOSTAPD = {
    "interface": r"\S{1,15}",
    "driver": "nl80211|none",
    "ssid": r"\S(.{0,30}\S)?",
    "country_code": "[A-Z]{2}",
    "hw_mode": "[abg]",
    "ht_capab": r"\[HT40[+-]\]",
    "wpa_key_mgmt": "WPA-PSK",
    "rsn_pairwise": "CCMP",
    "wpa_psk": "[0-9A-Fa-f]{64}",
    "wpa_passphrase": "[ -~]{8,63}",
    **dict.fromkeys(
        _words(
            """
            ieee80211d ieee80211h ieee80211n ieee80211ac channel vht_oper_chwidth vht_oper_centr_freq_seg0_idx
            beacon_int dtim_period wmm_enabled uapsd_advertisement_enabled auth_algs disassoc_low_ack wpa
            """
        ),
        _NUMBER,
    ),
}

# dnsmasq without these would serve other interfaces, read the host's files, or write there.
_DNSMASQ_ALWAYS = _words(
    """
    --keep-in-foreground --no-daemon --conf-file=/dev/null --no-resolv --no-hosts --no-poll --bind-interfaces
    --except-interface=lo --port=53 --pid-file= --log-facility=- --leasefile-ro
    """
)
_DNSMASQ_FLAGS = _words("--log-queries --log-dhcp --local-ttl=0 --dhcp-authoritative --no-ping")
_NAME = "[A-Za-z0-9.-]{1,64}"
_DNSMASQ_RECORD = re.compile(
    rf"--host-record={_NAME},[0-9.]{{7,15}}|--local=/{_NAME}/|--domain={_NAME}"
    rf"|--dhcp-host=[0-9A-Fa-f:]{{17}},[0-9.]{{7,15}},{_NAME}"
)
_IW = (("info",), ("station", "dump"), ("survey", "dump"))


def check_tc(argv: Sequence[str], rack: HelperRack) -> None:
    """tc at interfaces of the rack, with words and numbers of the disciplines that shape."""
    names = [after for word, after in itertools.pairwise(argv) if word == "dev"]
    if not names:
        raise RequestRefused("tc without an interface: dev NAME")
    for name in names:
        _check_interface(name, rack, IFB)
    for word in (word for word in argv[1:] if word not in ("-s", "-j")):
        if word not in _TC_WORDS and word not in names and not _TC_NUMBER.fullmatch(word):
            raise RequestRefused(f"tc with {word!r}")


def check_ip(argv: Sequence[str], rack: HelperRack) -> None:
    """Ip that makes and takes away the one interface of hil's own, or looks at one of the rack."""
    words = tuple(argv[2:])
    if len(argv) < 3 or argv[1] != "link":
        raise RequestRefused(f"ip with {' '.join(argv[1:])[:40]!r}")
    if words[:2] == ("show", "dev"):
        _check_interface(" ".join(words[2:]), rack)
    elif words not in _IP:
        raise RequestRefused(f"ip with {' '.join(argv[1:])[:40]!r}")


def check_dumpcap(argv: Sequence[str], rack: HelperRack) -> None:
    """Dumpcap on interfaces of the rack, to the file that came along and to no other."""
    words = iter(argv[1:])
    for word in words:
        if word == "-i":
            _check_interface(next(words, ""), rack)
        elif word == "-w":
            if next(words, "") != "-":
                raise RequestRefused("dumpcap that writes another file than the one that came along")
        elif word in _DUMPCAP_VALUES:
            next(words, "")
        elif word not in _DUMPCAP_FLAGS:
            raise RequestRefused(f"dumpcap with {word!r}")
    if "-i" not in argv or "-w" not in argv:
        raise RequestRefused("dumpcap without an interface, or without a file")


def check_nft(argv: Sequence[str], rack: HelperRack) -> None:
    """Nft with one text of rules at interfaces of the rack, in tables of hil's."""
    if len(argv) != 2:
        raise RequestRefused("nft with other than one text of rules")
    for line in argv[1].splitlines():
        found = next((match for pattern in _NFT_LINES if (match := pattern.fullmatch(line.strip()))), None)
        if found is None:
            raise RequestRefused(f"nft with {line.strip()[:80]!r}")
        if name := found.groupdict().get("interface"):
            _check_interface(name, rack)


def hostapd_file(argv: Sequence[str], rack: HelperRack, asked: str) -> str:
    """Return the file for hostapd: the settings that are asked for, of known keys and values."""
    if list(argv) != ["hostapd", "FILE"]:
        raise RequestRefused("hostapd with more than its file")
    settings = _settings(asked)
    _check_interface(settings.get("interface", ""), rack)
    return "".join(f"{key}={settings[key]}\n" for key in _HOSTAPD if key in settings)


def _settings(asked: str) -> Mapping[str, str]:
    settings: dict[str, str] = {}
    for line in filter(None, asked.split("\n")):
        key, _, value = line.partition("=")
        if key not in _HOSTAPD or key in settings:
            raise RequestRefused(f"hostapd with {key[:40]!r}")
        if not re.fullmatch(_HOSTAPD[key], value) or not value.isprintable():
            raise RequestRefused(f"hostapd with another {key} than {_HOSTAPD[key]}")
        settings[key] = value
    return settings


def check_dnsmasq(argv: Sequence[str], rack: HelperRack) -> None:
    """Dnsmasq in the foreground, at interfaces of the rack alone, that starts no script and reads no file."""
    if missing := _DNSMASQ_ALWAYS.difference(argv):
        raise RequestRefused(f"dnsmasq without {min(missing)}")
    if not any(word.startswith("--interface=") for word in argv):
        raise RequestRefused("dnsmasq without --interface")
    for word in argv[1:]:
        option, _, value = word.partition("=")
        if option == "--interface":
            _check_interface(value, rack)
        elif option == "--dhcp-range" and value != rack.dhcp_range:
            raise RequestRefused("dnsmasq with other addresses to give out than those of the rack file")
        elif option == "--listen-address" and value != rack.address:
            raise RequestRefused(f"dnsmasq at {value[:40]!r}, which is not the rack file's host.address")
        elif not _is_known(word, option):
            raise RequestRefused(f"dnsmasq with {word[:60]!r}")


def _is_known(word: str, option: str) -> bool:
    return (
        option in ("--dhcp-range", "--listen-address")
        or word in _DNSMASQ_ALWAYS
        or word in _DNSMASQ_FLAGS
        or _DNSMASQ_RECORD.fullmatch(word) is not None
    )


def check_iw(argv: Sequence[str], rack: HelperRack) -> None:
    """Iw that looks at an interface of the rack, or sets what it sends with."""
    if tuple(argv[1:]) == ("reg", "get"):
        return
    if len(argv) < 4 or argv[1] != "dev":
        raise RequestRefused("iw without an interface")
    _check_interface(argv[2], rack)
    words = tuple(argv[3:])
    power = words[:3] == ("set", "txpower", "fixed") and len(words) == 4 and words[3].isdigit()
    if words not in _IW and not power:
        raise RequestRefused(f"iw with {' '.join(words)[:40]!r}")


def _check_interface(name: str, rack: HelperRack, *own: str) -> None:
    if name not in (*rack.interfaces, *own):
        raise RequestRefused(f"the interface {name[:20]!r}, which the rack file does not name")


CHECKS: dict[str, Callable[[Sequence[str], HelperRack], None]] = {
    "tc": check_tc,
    "dumpcap": check_dumpcap,
    "nft": check_nft,
    "dnsmasq": check_dnsmasq,
    "iw": check_iw,
    "ip": check_ip,
}
PROGRAMS = (*CHECKS, "hostapd")


def check(argv: Sequence[str], asked: str, rack: HelperRack) -> str:
    """Check a request: ``argv[0]`` names a program, ``asked`` is for hostapd's file, else "".

    Returns the file to write. Raises Refused.
    """
    if not argv or argv[0] not in PROGRAMS:
        raise RequestRefused(
            f"{argv[0][:40]!r}: it starts {', '.join(PROGRAMS)}" if argv else "a request for nothing"
        )
    if not all(letter.isprintable() or letter == "\n" for word in argv for letter in word):
        raise RequestRefused("a word with a control character")
    if argv[0] == "hostapd":
        return hostapd_file(argv, rack, asked)
    if asked:
        raise RequestRefused(f"a file for {argv[0]}")
    CHECKS[argv[0]](argv, rack)
    return ""


def main() -> None:
    """Serve the connection that standard input is."""
    connection = socket.socket(fileno=os.dup(0))
    try:
        serve(connection, read_rack(Path(sys.argv[1])))
    except (RequestRefused, OSError, ValueError, LookupError) as error:
        _answer(connection, {"refused": str(error)})


def read_rack(path: Path) -> HelperRack:
    """Return what the rack file says. Raises OSError, ValueError, LookupError."""
    found = json.loads(path.read_text(encoding="utf-8"))
    interfaces = found["interfaces"]
    if not isinstance(interfaces, list) or not all(isinstance(name, str) for name in interfaces):
        raise ValueError(f"{path}: interfaces is no list of names")
    return HelperRack(tuple(interfaces), str(found["address"]), str(found["dhcp_range"]))


def serve(connection: socket.socket, rack: HelperRack) -> None:
    """Start what the connection asks for, and see it through. Raises Refused, OSError, ValueError."""
    request, output = receive(connection)
    argv, asked = request.get("argv"), request.get("file", "")
    if (
        not isinstance(argv, list)
        or not all(isinstance(word, str) for word in argv)
        or not isinstance(asked, str)
    ):
        raise RequestRefused("a request of another shape")
    content = check(argv, asked, rack)
    program = shutil.which(argv[0], path=FOLDERS)
    if program is None:
        raise RequestRefused(f"{argv[0]}, which is not installed on this host")
    with tempfile.TemporaryDirectory(prefix="hil-helper-") as folder:
        words = argv[1:]
        if content:
            path = Path(folder, "file")
            path.write_text(content, encoding="utf-8")
            words = [str(path)]
        _run(connection, [program, *words], output)


def receive(connection: socket.socket) -> tuple[dict[str, Any], int | None]:
    """Return the request, and the descriptor that came along. Raises ValueError, OSError."""
    size = array.array("i").itemsize
    content, ancillary, _flags, _address = connection.recvmsg(REQUEST_BYTES_MAX, socket.CMSG_SPACE(size))
    output = None
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS) and len(data) >= size:
            output = array.array("i", data[:size])[0]
    while not content.endswith(b"\n"):
        more = connection.recv(REQUEST_BYTES_MAX)
        content += more
        if not more or len(content) > REQUEST_BYTES_MAX:
            raise ValueError("a request that does not end")
    request = json.loads(content)
    if not isinstance(request, dict):
        raise ValueError("a request that is no object")  # noqa: TRY004 - of what was sent, as above
    return request, output


def _run(connection: socket.socket, argv: Sequence[str], output: int | None) -> None:
    """Run the program. What it says goes to the connection, standard output to ``output`` where there is."""
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=output if output is not None else subprocess.PIPE,
        stderr=subprocess.PIPE if output is not None else subprocess.STDOUT,
        env={"PATH": FOLDERS, "LC_ALL": "C"},
        cwd="/",
        start_new_session=True,
    )
    if output is not None:
        os.close(output)
    said = process.stderr or process.stdout
    assert said is not None
    try:
        _answer(connection, {"pid": process.pid})
        _relay(connection, process, said.fileno())
        _answer(connection, {"status": process.wait()})
    except OSError:
        pass  # the other side is gone: so is what it started
    finally:
        _end(process)


def _relay(connection: socket.socket, process: subprocess.Popen[bytes], said: int) -> None:
    """Hand on what the program says, and signals to it, until it has closed its output. Raises OSError."""
    with selectors.DefaultSelector() as selector:
        selector.register(said, selectors.EVENT_READ)
        selector.register(connection, selectors.EVENT_READ)
        while True:
            for key, _events in selector.select():
                if key.fd == said:
                    content = os.read(said, 64 * 1024)
                    if not content:
                        return
                    _answer(connection, {"said": content.decode(errors="replace")})
                else:
                    _signal(connection, process)


def _signal(connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """Hand on the signals that have come. Raises ConnectionError: nobody, or nonsense, is there."""
    content = connection.recv(4096)
    if not content:
        raise ConnectionError
    for line in content.splitlines():
        try:
            number = json.loads(line)["signal"]
        except (ValueError, TypeError, KeyError):
            raise ConnectionError from None
        if number in SIGNALS and process.poll() is None:
            os.killpg(process.pid, number)


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        os.killpg(process.pid, number)
        try:
            process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            continue


def _answer(connection: socket.socket, message: dict[str, object]) -> None:
    connection.sendall(json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    main()
