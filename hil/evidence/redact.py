# SPDX-License-Identifier: Apache-2.0
"""What leaves a lab in a pack: never a password; with ``--anonymous`` neither names nor serial numbers.

The same thing gets the same other name throughout, so that records that were taken at one access point, or of
one board, still are of one.
"""

from __future__ import annotations

import getpass
import json
import re
import socket
from pathlib import Path
from typing import Any

from hil.base.gateway_url import PASSWORD_VARIABLE
from hil.base.secret import secret
from hil.boards.rack import Rack

_MAC = re.compile(
    r"(?<![0-9A-Fa-f:-])([0-9A-Fa-f]{2}([:-])(?:[0-9A-Fa-f]{2}\2){4}[0-9A-Fa-f]{2})(?![0-9A-Fa-f:])"
)
_BY_ID = re.compile(r"/dev/serial/by-id/[^\s\"',;]+")
_USB_SERIAL = re.compile(r"(?i)(\bserial(?: number)?(?:: |=))([0-9A-Za-z:._-]{6,})")
_SECRET_BYTES_MIN = 4  # a shorter one is no password, and would be found everywhere
HIDDEN = "***"


class Redactor:
    """Takes out what is not to leave. ``rack`` names the network and the switches that have passwords."""

    def __init__(self, rack: Rack, *, anonymous: bool) -> None:
        self._secrets = sorted(_secrets(rack), key=len, reverse=True)
        self._escaped = {*self._secrets, *(json.dumps(one)[1:-1] for one in self._secrets)}
        self._anonymous = anonymous
        self._ssid = rack.access_point.ssid
        ours = {
            rack.name,
            "hil",
            *(word for board in rack.boards for word in (board.id, board.target, board.chip)),
        }
        names = {socket.gethostname(): "host", _user(): "user"}
        names |= {self._ssid: "network"} if self._ssid not in ours else {}
        self._names = [
            (re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])"), other)
            for name, other in names.items()
            if name not in (*ours, "", "root")
        ]
        self._macs: dict[str, str] = {}
        self._ports: dict[str, str] = {}
        for board in rack.boards:
            self._other_mac(board.mac)

    def text(self, text: str) -> str:
        """Return a text without what is not to leave."""
        for word in self._secrets:
            text = text.replace(word, HIDDEN)
        if not self._anonymous:
            return text
        text = _BY_ID.sub(lambda found: self._other_port(found[0]), text)
        text = _USB_SERIAL.sub(rf"\g<1>{HIDDEN}", text)
        text = _MAC.sub(lambda found: self._other_mac(found[0]), text)
        for mac, other in self._macs.items():  # as topics and file names have them, without colons
            bare = re.compile(rf"(?i)(?<![0-9a-f]){mac.replace(':', '')}(?![0-9a-f])")
            text = bare.sub(other.replace(":", ""), text)
        for name, other in self._names:
            text = name.sub(other, text)
        home = str(Path.home())
        return text.replace(home, "~") if home != "/" else text

    def content(self, name: str, content: bytes) -> bytes:
        """Return a file's content without it; of JSON the values are looked at, so that it stays JSON."""
        if not self._anonymous and not any(secret.encode() in content for secret in self._escaped):
            return content
        if name.endswith(".jsonl"):
            return b"".join(self._json_line(line) for line in content.splitlines(keepends=True))
        text = content.decode(errors="replace")
        if name.endswith(".json"):
            return (json.dumps(self._value(json.loads(text)), ensure_ascii=False, indent=2) + "\n").encode()
        return self.text(text).encode()

    def _json_line(self, line: bytes) -> bytes:
        try:
            stored = json.loads(line)
        except (ValueError, RecursionError):  # a last line that was cut off in writing, or nonsense
            return self.text(line.decode(errors="replace")).encode()
        return json.dumps(self._value(stored), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    def _value(self, value: Any, key: str = "") -> Any:
        if isinstance(value, str):
            whole = self._anonymous and key == "ssid" and value
            return "network" if whole else self.text(value)
        if isinstance(value, list):
            return [self._value(one, key) if isinstance(one, str | list | dict) else one for one in value]
        if isinstance(value, dict):
            return {name: self._value(one, name) for name, one in value.items()}
        return value

    def _other_mac(self, mac: str) -> str:
        """Return a MAC address with its maker's half, and a number of ours for the rest."""
        if not mac:
            return ""
        plain = mac.lower().replace("-", ":")
        number = len(self._macs) + 1
        self._macs.setdefault(plain, f"{plain[:8]}:00:{number >> 8:02x}:{number & 255:02x}")
        return self._macs[plain]

    def _other_port(self, port: str) -> str:
        return self._ports.setdefault(port, f"/dev/serial/by-id/board-{len(self._ports) + 1}")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _secrets(rack: Rack) -> set[str]:
    """Return the passwords that this process can see of a rack: of its network, plugs and Pushgateway."""
    point = rack.access_point
    plugs = (board.power.password_env for board in rack.boards)
    found = {point.password, *map(secret, (PASSWORD_VARIABLE, point.psk_env, *plugs))}
    if point.psk_file:
        found.add(_first_line(Path(point.psk_file)))
    return {secret for secret in found if len(secret.encode()) >= _SECRET_BYTES_MIN}


def _first_line(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""
