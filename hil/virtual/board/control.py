# SPDX-License-Identifier: Apache-2.0
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
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Protocol

from hil.base.errors import ConfigError, HilError
from hil.boards.firmware import partition_table
from hil.virtual import unix_socket
from hil.virtual.board import faults, panic
from hil.virtual.board.faults import FAULTS, BoardFault
from hil.virtual.board.machine import VirtualBoard

# Where a bit is flipped: behind the header, in data that a checksum covers.
_INSIDE_AN_IMAGE = 0x24
_DEFAULT_APP_OFFSET = 0x10000

Effect = Callable[[VirtualBoard, Any], None]

# What a fault does at the moment it is switched on. The others are looked up where they matter: by the
# loader, and by the board as it boots.
_EFFECTS: Mapping[str, Effect] = {
    "disconnect": lambda board, when: board.disconnect() if when in ("now", faults.UNPLUGGED) else None,
    "panic": lambda board, cause: board.crash_app(
        lambda sha: panic.exception(board.config.chip, board.config.chip.architecture.exceptions[cause], sha)
    ),
    "abort": lambda board, by: board.crash_app(lambda sha: panic.abort(board.config.chip, sha, by)),
    "watchdog": lambda board, which: board.crash_app(
        lambda sha: panic.watchdog(board.config.chip, which, sha, board.uptime_ms())
    ),
    "brownout": lambda board, _: board.brown_out(),
    "garbage": lambda board, _: board.make_noise(),
    "silent": lambda board, _: board.app.freeze(),
    "hang": lambda board, _: board.hang(),
    "say": lambda board, text: board.say(text),
    "flood": lambda board, count: board.flood(count),
    "corrupt_image": lambda board, what: board.flash.damage(_offset_of(board, what)),
}


def inject(board: VirtualBoard, name: str, value: Any = None) -> None:
    """Switch on the fault ``name``. Raises ConfigError for an unknown name or value."""
    fault, value = faults.check(name, value)
    if fault.lasting and value != "now":
        board.faults.switch_on(name, value)
    effect = _EFFECTS.get(name)
    if effect:
        effect(board, value)


def clear(board: VirtualBoard) -> None:
    """Switch off every lasting fault; a frozen app goes on. Flash stays as damaged as it is."""
    board.faults.values.clear()
    board.app.thaw()


def _offset_of(board: VirtualBoard, what: str) -> int:
    """Return the flash offset of a byte whose change breaks ``what`` (see faults.CORRUPTIBLE)."""
    if what == "otadata":
        return _otadata_offset(board)
    start = {
        "app": board.app.info.partition.offset if board.app.info else _DEFAULT_APP_OFFSET,
        "bootloader": board.config.chip.bootloader_offset,
        "partition-table": partition_table.TABLE_OFFSET,
    }[what]
    return start + _INSIDE_AN_IMAGE


def _otadata_offset(board: VirtualBoard) -> int:
    """Where the entry lies that selects the slot: otadata's first sector, by the table in flash."""
    raw = board.flash.read(partition_table.TABLE_OFFSET, partition_table.TABLE_MAX_BYTES)
    try:
        table = partition_table.from_binary(raw, flash_bytes=board.flash.size_bytes)
    except partition_table.TableError as error:
        raise ConfigError(f"There is no otadata to corrupt: {error}.") from None
    data = partition_table.find_data(table, partition_table.DATA_OTA)
    if data is None:
        raise ConfigError("There is no otadata to corrupt: the partition table in flash has none.")
    return data.offset


POWER_STATES = ("on", "off", "cycle")
POWER_CYCLE_S = 0.1
OPERATIONS = ("power", "fault", "clear", "state", "faults")


class Switched(Protocol):
    """The board as the socket sees it."""

    def power_on(self) -> None: ...
    def power_off(self) -> None: ...
    def state(self) -> dict[str, Any]: ...


class Faults(Protocol):
    """The faults that a board can be given; ``inject`` raises ConfigError for others."""

    @property
    def known(self) -> Collection[BoardFault]: ...
    def inject(self, name: str, value: Any) -> None: ...
    def clear(self) -> None: ...


class VirtualFaults:
    """A virtual board's: all there are."""

    known = tuple(FAULTS.values())

    def __init__(self, board: VirtualBoard) -> None:
        self._board = board

    def inject(self, name: str, value: Any) -> None:
        inject(self._board, name, value)

    def clear(self) -> None:
        clear(self._board)


class ControlServer:
    """Serves the control socket at ``path`` for ``board``, which has these ``faults``."""

    def __init__(self, board: Switched, faults: Faults, path: Path) -> None:
        self._board, self._faults, self._path = board, faults, path
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Raises ConfigError where the path cannot be a socket."""
        if self._path.exists() and not stat.S_ISSOCK(self._path.stat().st_mode):
            raise ConfigError(f"The control socket's path {self._path} is in use.")
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
        if operation == "faults":
            return {"faults": {f.name: {"summary": f.summary, "value": f.value} for f in self._faults.known}}
        if operation == "power":
            await self._power(request.get("state"))
        elif operation == "clear":
            self._faults.clear()
        elif operation == "fault":
            self._faults.inject(str(request.get("name")), request.get("value"))
        elif operation in FAULTS:
            self._faults.inject(operation, request.get("value"))
        elif operation != "state":
            known = ", ".join((*OPERATIONS, *FAULTS))
            raise ConfigError(f"Unknown operation {operation!r}; operations: {known}.")
        return {"state": self._board.state()}

    async def _power(self, state: Any) -> None:
        if state not in POWER_STATES:
            raise ConfigError(f"Power cannot be {state!r}; choose from: {', '.join(POWER_STATES)}.")
        if state in ("off", "cycle"):
            self._board.power_off()
        if state == "cycle":
            await asyncio.sleep(POWER_CYCLE_S)
        if state in ("on", "cycle"):
            self._board.power_on()
