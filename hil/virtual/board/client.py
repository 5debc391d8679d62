# SPDX-License-Identifier: Apache-2.0
"""Control a virtual board from another process, or by hand:

python -m hil.virtual.board.client SOCKET state
python -m hil.virtual.board.client SOCKET power cycle
python -m hil.virtual.board.client SOCKET fault disconnect 3
"""

from __future__ import annotations

import argparse
import json
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError, RigError, exit_status
from hil.virtual import unix_socket

DEFAULT_TIMEOUT_S = 5.0


class BoardControl:
    """Talks to one board's control socket; every call is a connection of its own.

    Every method raises RigError where the board does not answer and ConfigError where it refuses.
    """

    def __init__(self, path: Path, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        self._path = Path(path)
        self._timeout_s = timeout_s

    def power(self, state: str) -> Mapping[str, Any]:
        """Switch power ``on``, ``off``, or off and on again (``cycle``); return the board's state."""
        return self._change(op="power", state=state)

    def fault(self, name: str, value: Any = None) -> Mapping[str, Any]:
        """Inject the fault ``name`` (see ``faults``); return the board's state."""
        return self._change(op="fault", name=name, value=value)

    def clear(self) -> Mapping[str, Any]:
        """Switch off all faults; return the board's state."""
        return self._change(op="clear")

    def state(self) -> Mapping[str, Any]:
        """Return mode, boots, faults, app_pid, baud rates, lines and the rest."""
        return self._change(op="state")

    def faults(self) -> Mapping[str, Any]:
        """Return every fault's name with what it does and the values it takes."""
        return dict(self.request(op="faults")["faults"])

    def disconnect(self) -> Mapping[str, Any]:
        """Cut the serial connection now."""
        return self.fault("disconnect", "now")

    def panic(self, cause: str = "LoadProhibited") -> Mapping[str, Any]:
        """Crash the app."""
        return self.fault("panic", cause)

    def _change(self, **request: Any) -> Mapping[str, Any]:
        return dict(self.request(**request)["state"])

    def request(self, **request: Any) -> dict[str, Any]:
        """Send one request and return the answer."""
        try:
            kind = socket.SOCK_STREAM
            with unix_socket.connect(self._path, timeout_s=self._timeout_s, kind=kind) as connection:
                connection.sendall(json.dumps(request).encode() + b"\n")
                line = connection.makefile("rb").readline()
        except OSError as error:
            raise RigError(
                f"Asking the virtual board at {self._path} for {request['op']!r} failed: {error}.",
                next_step="Check that the board's process runs.",
            ) from error
        if not line:
            raise RigError(f"The virtual board at {self._path} closed the connection without an answer.")
        answer: dict[str, Any] = json.loads(line)
        if not answer.pop("ok"):
            raise ConfigError(answer["error"])
        return answer


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m hil.virtual.board.client", description=__doc__)
    parser.add_argument("socket", type=Path)
    commands = parser.add_subparsers(dest="op", required=True)
    commands.add_parser("power").add_argument("state")
    fault = commands.add_parser("fault")
    fault.add_argument("name")
    fault.add_argument("value", nargs="?", type=_value)
    for name in ("clear", "state", "faults"):
        commands.add_parser(name)
    arguments = vars(parser.parse_args(argv))
    control = BoardControl(arguments.pop("socket"))
    return exit_status(lambda: print(json.dumps(control.request(**arguments), indent=2)))


if __name__ == "__main__":
    sys.exit(main())
