# SPDX-License-Identifier: Apache-2.0
"""Power switches that behave: a plug's HTTP server that keeps its relay's state, and a uhubctl.

Both switch a virtual board's supply, unless they are told to lie.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.virtual.virtual_board_rig import REPOSITORY, BoardProcess


def no_virtual_board(board_id: str) -> Any:
    raise AssertionError(f"{board_id} has a switch of its own")


@dataclass
class Plug:
    """A smart plug of one kind; ``on_switch`` is what its relay drives. A ``stuck`` relay does not move."""

    kind: str  # "tasmota", "shelly1" or "shelly2"
    on_switch: Callable[[bool], object]
    relays: int = 1
    stuck: bool = False
    password: str = ""
    words: tuple[str, str] = ("OFF", "ON")  # Tasmota's StateText
    url: str = ""
    states: dict[int, bool] = field(default_factory=dict)

    def switch(self, relay: int, state: bool) -> None:
        if not self.stuck:
            self.states[relay] = state
            self.on_switch(state)

    def answer(self, path: str, asked: dict[str, str], login: str) -> tuple[int, Any]:
        """Return status and JSON, in the words of the real firmware."""
        return getattr(self, f"_{self.kind}")(path, asked, login)  # type: ignore[no-any-return]

    def _tasmota(self, path: str, asked: dict[str, str], _login: str) -> tuple[int, Any]:
        if path != "/cm":
            return 404, {}
        if self.password and asked.get("password") != self.password:
            return 401, {"WARNING": "Need user=<username>&password=<password>"}
        name, _, state = asked["cmnd"].partition(" ")
        relay = int(name.removeprefix("Power") or 1)
        if not name.startswith("Power") or not 1 <= relay <= self.relays:
            return 200, {"Command": "Unknown"}
        if state:
            self.switch(relay, state.lower() == "on")
        key = f"POWER{relay}" if self.relays > 1 else "POWER"
        return 200, {key: self.words[self.states.get(relay, True)]}

    def _shelly1(self, path: str, asked: dict[str, str], login: str) -> tuple[int, Any]:
        if path == "/shelly":
            return 200, {"type": "SHPLG-S", "mac": "4022D8A0B1C2", "auth": bool(self.password), "fw": "v1.14"}
        if self.password and login != "Basic YWRtaW46c2VjcmV0LXB3":  # admin:secret-pw
            return 401, {}
        if path != "/relay/0":
            return 404, {}
        if "turn" in asked:
            self.switch(0, asked["turn"] == "on")
        return 200, {"ison": self.states.get(0, True), "has_timer": False, "source": "http"}

    def _shelly2(self, path: str, asked: dict[str, str], _login: str) -> tuple[int, Any]:
        if path == "/shelly":
            return 200, {"id": "shellyplusplugs-b0b21c", "gen": 2, "auth_en": bool(self.password)}
        if path == "/rpc/Switch.Set" and asked["id"] == "0":
            was_on = self.states.get(0, True)
            self.switch(0, asked["on"] == "true")
            return 200, {"was_on": was_on}
        if path == "/rpc/Switch.GetStatus" and asked["id"] == "0":
            return 200, {"id": 0, "source": "http", "output": self.states.get(0, True), "apower": 0.4}
        return 500, {"code": -105, "message": "Argument 'id', value 7 not found!"}


@contextmanager
def served(plug: Plug) -> Iterator[Plug]:
    """The plug on a port of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            asked = {key: values[0] for key, values in parse_qs(parts.query).items()}
            status, value = plug.answer(parts.path, asked, self.headers.get("Authorization", ""))
            content = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        plug.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield plug
        finally:
            server.shutdown()
            thread.join()


# A hub at 1-1.2 and its USB 3 half at 2-1.2. The states of port 2 are in files, as a hub keeps them.
_UHUBCTL = """#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in -l) location=$2 ;; -p) port=$2 ;; -a) action=$2 ;; esac
    shift 2
done
if [ "$location" != 1-1.2 ]; then
    echo "No compatible smart hubs detected at location $location!" >&2
    echo "Run with -h to get usage info." >&2
    exit 1
fi
state() {
    if [ "$(cat FOLDER/hub)" = on ]; then
        echo "  Port 2: 0103 power enable connect [10c4:ea60 off Labs CP2102 0001]"
    else
        echo "  Port 2: 0000 off"
    fi
}
echo "Current status for hub 1-1.2 [2109:2813 VIA Labs, Inc. USB2.0 Hub, USB 2.10, 4 ports]"
state
if [ -z "$action" ]; then
    echo "Current status for hub 2-1.2 [2109:0813 VIA Labs, Inc. USB3.0 Hub, USB 3.00, 4 ports]"
    cat FOLDER/usb3
    exit
fi
[ LIES = yes ] || echo "$action" > FOLDER/hub
cd REPOSITORY
[ LIES = hub ] || PYTHON -m hil.virtual.board.client CONTROL power "$action" > FOLDER/said || exit 9
echo "Sent power $action request"
echo "New status for hub 1-1.2 [2109:2813 VIA Labs, Inc. USB2.0 Hub, USB 2.10, 4 ports]"
state
echo "Current status for hub 2-1.2 [2109:0813 VIA Labs, Inc. USB3.0 Hub, USB 3.00, 4 ports]"
echo "  Port 2: 02a0 power 5gbps Rx.Detect"
echo "Sent power $action request"
echo "New status for hub 2-1.2 [2109:0813 VIA Labs, Inc. USB3.0 Hub, USB 3.00, 4 ports]"
[ "$action" = on ] && words="02a0 power 5gbps Rx.Detect" || words="0080 off"
echo "  Port 2: $words" > FOLDER/usb3
cat FOLDER/usb3
"""


def install_uhubctl(folder: Path, board: BoardProcess, python: str, *, lies: str = "no") -> None:
    """Put a uhubctl into a folder; ``lies``: "yes" its state stays as it was, "hub" the board's does."""
    (folder / "hub").write_text("on\n")
    (folder / "usb3").write_text("  Port 2: 02a0 power 5gbps Rx.Detect\n")
    text = _UHUBCTL.replace("FOLDER", str(folder)).replace("REPOSITORY", str(REPOSITORY))
    text = text.replace("PYTHON", python).replace("CONTROL", str(board.folder / "control"))
    program = folder / "uhubctl"
    program.write_text(text.replace("LIES", lies))
    program.chmod(0o755)
