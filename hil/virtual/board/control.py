"""The control socket: one JSON object a line in, one a line out.

    {"op": "power", "state": "on" | "off" | "cycle"}
    {"op": "fault", "name": NAME, "value": VALUE}      the same as {"op": NAME, "value": VALUE}
    {"op": "clear"}  {"op": "state"}  {"op": "faults"}

The answer has "ok": true, or "ok": false and "error". Every answer to a change carries the new state.
"""

from __future__ import annotations

import asyncio
import json
import socket
import stat
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError, HilError
from hil.virtual import unix_socket
from hil.virtual.board import injection
from hil.virtual.board.faults import FAULTS
from hil.virtual.board.machine import Board

POWER_STATES = ("on", "off", "cycle")
POWER_CYCLE_S = 0.1
OPERATIONS = ("power", "fault", "clear", "state", "faults")


class ControlServer:
    """Serves the control socket at ``path`` for ``board``."""

    def __init__(self, board: Board, path: Path) -> None:
        self._board, self._path = board, path
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Raises ConfigError where the path cannot be a socket."""
        if self._path.exists() and not stat.S_ISSOCK(self._path.stat().st_mode):
            raise ConfigError(f"The control socket's path {self._path} is taken by something else.")
        try:
            listener = unix_socket.listen(self._path, kind=socket.SOCK_STREAM)
        except OSError as error:
            raise ConfigError(f"Opening the control socket {self._path} failed: {error.strerror}.") from error
        self._server = await asyncio.start_unix_server(self._serve, sock=listener)

    def close(self) -> None:
        if self._server:
            self._server.close()
            self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                writer.write(json.dumps(await self._answer(line)).encode() + b"\n")
                await writer.drain()
        except (ConnectionError, ValueError):
            pass  # the client went away, or sent a line beyond any sense
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                raise ConfigError(f"A request is a JSON object, not {line.decode(errors='replace').strip()}.")
            return {"ok": True, **await self._do(request)}
        except json.JSONDecodeError as error:
            return {"ok": False, "error": f"The request is not JSON: {error}."}
        except HilError as error:
            return {"ok": False, "error": str(error)}

    async def _do(self, request: dict[str, Any]) -> dict[str, Any]:
        operation = request.get("op")
        board = self._board
        if operation == "faults":
            return {"faults": {f.name: {"summary": f.summary, "value": f.value} for f in FAULTS.values()}}
        if operation == "power":
            await self._power(request.get("state"))
        elif operation == "clear":
            injection.clear(board)
        elif operation == "fault":
            injection.inject(board, str(request.get("name")), request.get("value"))
        elif operation in FAULTS:
            injection.inject(board, operation, request.get("value"))
        elif operation != "state":
            known = ", ".join((*OPERATIONS, *FAULTS))
            raise ConfigError(f"There is no operation {operation!r}; known are: {known}.")
        return {"state": board.state()}

    async def _power(self, state: Any) -> None:
        if state not in POWER_STATES:
            raise ConfigError(f"Power cannot be {state!r}; it can be: {', '.join(POWER_STATES)}.")
        if state in ("off", "cycle"):
            self._board.power_off()
        if state == "cycle":
            await asyncio.sleep(POWER_CYCLE_S)
        if state in ("on", "cycle"):
            self._board.power_on()
