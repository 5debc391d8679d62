# SPDX-License-Identifier: Apache-2.0
"""A board's agent in Python, behind a console that loses, repeats and damages what it carries.

Time is simulated: a read that finds nothing lets it pass, so that tests of silence take none.
"""

from __future__ import annotations

import base64
import random
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from hil.wire.packing import BLOCK_BYTES, pack_columns

FIRMWARE_SHA256 = "ab" * 32
RULER_HASH = "cd" * 32
FIELDS = ("psk", "ca_pem", "client_key_pem", "utc_us", "mqtt_password", "peer_host", "peer_port")
Columns = Mapping[str, Sequence[int]]


@dataclass
class Noise:
    """What the console does to a line of the board, or to a command: chances between 0 and 1."""

    seed: int = 1
    drop: float = 0.0
    repeat: float = 0.0
    corrupt: float = 0.0
    truncate: float = 0.0
    lose_newline: float = 0.0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def carry(self, line: bytes) -> bytes:
        """Return what arrives of a line."""
        chance = self._random.random
        if chance() < self.drop:
            return b""
        if chance() < self.corrupt:
            at = self._random.randrange(len(line))
            line = line[:at] + bytes([line[at] ^ 1 << self._random.randrange(8)]) + line[at + 1 :]
        if chance() < self.truncate:
            line = line[: self._random.randrange(len(line))] + b"\n"
        if chance() < self.lose_newline:
            line = line.rstrip(b"\n")
        return line * (2 if chance() < self.repeat else 1)


def no_choice(bursts: int) -> list[Columns]:
    return [{"planned_us": range(1000 * burst, 1000 * burst + 700)} for burst in range(bursts)]


@dataclass
class FakeAgent:
    """Executes commands of the console protocol. The fields are what tests set and look at."""

    bench: str = "example"
    bursts: Sequence[Columns] = field(default_factory=lambda: no_choice(1))
    warmup_rows: int = 0
    measuring_s: float = 1.0
    status: str = "ok"
    environment: Mapping[str, int] = field(default_factory=dict)  # more of the end line's
    failure: str = ""  # " owner=… error=…" of the end line
    parameters: Mapping[str, str] = field(default_factory=lambda: {"count": "3", "mode": "slow"})
    notes: Sequence[tuple[float, str]] = ()  # of each burst: (seconds from its start, "kind key=value")
    unknown_fields: Sequence[str] = ()  # of those that a newer firmware knows
    on_measured: Callable[[FakeAgent], list[str]] | None = None  # text instead of the samples
    link_error: str = ""
    proto: tuple[int, int] = (1, 1)
    version: str = ""  # of its agent; older ones do not say
    restarts_silently: bool = False
    edit_line: Callable[[str], str] = str  # what goes wrong in a line before its checksum is made

    boot: int = 1
    number: int = 0
    executed: list[str] = field(default_factory=list)
    provisioned: dict[str, bytes] = field(default_factory=dict)
    acknowledged: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._replies: dict[str, str] = {}
        self._staged: dict[str, bytes] = {}
        self._next_transfer = 1
        self._held: dict[int, list[str]] = {}  # transfer -> begin, end, data…
        self._to_send: list[Columns] = []
        self._burst = 0
        self.case: dict[str, str] = {}
        self.clock: Callable[[], float] = lambda: 0.0
        self.due: list[tuple[float, Callable[[], list[str]]]] = []  # (when, what happens then)

    def line(self, kind: str, body: str) -> str:
        self.number += 1
        content = self.edit_line(f"@hil 1 {self.number} {kind} {body}")
        return f"{content} *{zlib.crc32(content.encode()):08x}"

    def reset(self) -> list[str]:
        """Forget everything, as a board that boots."""
        self.boot += 1
        self.number = 0
        self._replies.clear()
        self._held.clear()
        self.due.clear()
        rom = "" if self.restarts_silently else "rst:0xc (SW_CPU_RESET),boot:0x13 (SPI_FAST_FLASH_BOOT)"
        return [rom, "I (30) boot: ESP-IDF v5.5.4 2nd stage bootloader", self.hello()]

    def hello(self) -> str:
        version = f"agent={self.version} " if self.version else ""
        return self.line(
            "H",
            f"proto_min={self.proto[0]} proto_max={self.proto[1]} boot={self.boot:08x} {version}"
            "project=hil-firmware version=1 idf=v5.5.4 target=esp32 reset_reason=SW "
            f"firmware_sha256={FIRMWARE_SHA256} elf_sha256={'ef' * 32} benches={self.bench}",
        )

    def take(self, line: bytes) -> list[str]:
        """Carry out a command line and return the lines it brings at once."""
        text = line.decode("latin-1")
        if not text.strip():
            return []
        content, star, crc = text.rpartition(" *")
        tagged = re.match(r"#([A-Za-z0-9.-]{1,23}) ", text)
        if (star and f"{zlib.crc32(content.encode('latin-1')):08x}" != crc) or (text[0] == "#" and not star):
            return [self.line("R", "- err bad-crc")]
        tag = tagged[1] if tagged else "-"
        if tagged and text in self._replies:
            return [self.line("R", self._replies[text])]
        verb, *words = (content if star else text).removeprefix(f"#{tag} ").split()
        self.executed.append(verb)
        return list(self._execute(text, tag, verb, words))

    def _reply(self, text: str, tag: str, verdict: str) -> str:
        if tag != "-":  # the rest of a line that was cut in two must not make it forget
            self._replies = {text: f"{tag} {verdict}"}
        return self.line("R", f"{tag} {verdict}")

    def _execute(self, text: str, tag: str, verb: str, words: list[str]) -> Iterator[str]:
        if verb == "hello":
            yield self.hello()
        handler = getattr(self, f"_do_{verb.replace('-', '_')}", None)
        verdict, lines = handler(*words) if handler else ("err unknown-command", [])
        yield self._reply(text, tag, verdict)
        yield from lines() if callable(lines) else lines

    def _do_hello(self) -> tuple[str, list[str]]:
        return "ok", []

    def _do_info(self) -> tuple[str, list[str]]:
        return "ok state=idle transfer=0 heap_free_bytes=1000 sched=freertos", []

    def _do_abort(self) -> tuple[str, list[str]]:
        self._held.clear()
        return "ok state=idle", []

    def _do_net(self, *words: str) -> tuple[str, list[str]]:
        del words
        return (f"err link-failed error={self.link_error}" if self.link_error else "ok rssi_dbm=-52"), []

    def _do_provision(self, name: str, offset: str, piece: str) -> tuple[str, list[str]]:
        staged = self._staged.get(name, b"") if int(offset) else b""
        if name in self.unknown_fields or name not in FIELDS:
            return "err unknown-field fields=psk,ca_pem", []
        if int(offset) != len(staged):
            return "err bad-offset", []
        self._staged[name] = staged + base64.b64decode(piece)
        return f"ok received={len(self._staged[name])}", []

    def _do_provision_end(self, name: str, length: str, crc: str) -> tuple[str, list[str]]:
        staged = self._staged.pop(name, b"")
        if len(staged) != int(length) or f"{zlib.crc32(staged):08x}" != crc:
            return "err bad-field-crc", []
        self.provisioned[name] = staged
        return "ok", []

    def _do_run(self, bench: str, *words: str) -> tuple[str, list[str]]:
        given = dict(word.split("=") for word in words)
        if bench != self.bench:
            return f"err unknown-bench benches={self.bench}", []
        unknown = set(given) - set(self.parameters)
        if unknown:
            return f"err bad-parameter reason=unknown-key allowed={','.join(self.parameters)}", []
        if self._held or self.due:
            return "err busy state=running transfer=0", []
        self.case = {**self.parameters, **given}
        self._to_send = list(self.bursts)
        self._burst = 0
        self._measure()
        return f"ok transfer={self._next_transfer}", []

    def _measure(self) -> None:
        for after_s, text in self.notes:
            self.due.append((self.clock() + after_s, partial(self._note, self._next_transfer, text)))
        self.due.append((self.clock() + self.measuring_s, self._measured))

    def _note(self, transfer: int, text: str) -> list[str]:
        return [self.line("N", f"{transfer} {text}")]

    def _do_ack(self, transfer: str) -> tuple[str, list[str]]:
        if int(transfer) not in self._held:
            return "err no-transfer state=idle", []
        del self._held[int(transfer)]
        self.acknowledged.append(int(transfer))
        if self._to_send:
            self._measure()
        return "ok", []

    def _do_resend(self, transfer: str, *blocks: str) -> tuple[str, Callable[[], list[str]] | list[str]]:
        held = self._held.get(int(transfer))
        if held is None:
            return f"err no-transfer state={'running' if self.due else 'idle'}", []
        wanted = [held[2 + int(block)] for block in blocks] if blocks else held[:2]
        return "ok", lambda: [self.line(body[0], body[2:]) for body in wanted]

    def _do_restart(self) -> tuple[str, list[str]]:
        self.due.append((self.clock() + 0.5, self.reset))
        return "ok", []

    def _measured(self) -> list[str]:
        if self.on_measured is not None:
            return self.on_measured(self)
        columns = self._to_send.pop(0) if self.status == "ok" else {"planned_us": ()}
        self._burst += 1
        transfer, self._next_transfer = self._next_transfer, self._next_transfer + 1
        bodies = self._bodies(transfer, columns, last=not self._to_send or self.status != "ok")
        self._held[transfer] = bodies
        begin, end, *data = [(body[0], body[2:]) for body in bodies]
        return [self.line(*part) for part in (begin, *data, end)]

    def _bodies(self, transfer: int, columns: Columns, *, last: bool) -> list[str]:
        packed = pack_columns(list(columns.values()))
        blocks = [packed[at : at + BLOCK_BYTES] for at in range(0, len(packed), BLOCK_BYTES)]
        rows = len(next(iter(columns.values())))
        case = ",".join(f"{key}={value}" for key, value in self.case.items())
        begin = (
            f"B {transfer} bench={self.bench} case={case} columns={','.join(columns)} rows={rows} "
            f"warmup_rows={self.warmup_rows if self._burst == 1 else 0} blocks={len(blocks)} "
            f"burst={self._burst} clock=esp_timer firmware_sha256={FIRMWARE_SHA256} ruler_hash={RULER_HASH}"
        )
        end = (
            f"E {transfer} rows={rows} blocks={len(blocks)} crc32={zlib.crc32(packed):08x} "
            f"status={self.status} last={int(last)}{self.failure} "
            f"; heap_free_bytes={1000 - self._burst} sched=freertos"
            f"{''.join(f' {key}={value}' for key, value in self.environment.items())}"
        )
        data = [
            f"D {transfer} {number} {base64.b64encode(block).decode()}" for number, block in enumerate(blocks)
        ]
        return [begin, end, *data]


class FakeConsole:
    """Joins an agent to a session. ``clock`` is the session's clock, in seconds."""

    def __init__(self, agent: FakeAgent, *, up: Noise | None = None, down: Noise | None = None) -> None:
        self.agent = agent
        self.up = up or Noise()  # board to host
        self.down = down or Noise()
        self.now = 0.0
        self.silent = False
        self.written = b""
        self._pending = b""
        self._input = b""
        agent.clock = self.clock

    def clock(self) -> float:
        return self.now

    def send(self, lines: list[str]) -> None:
        """Let the board print lines."""
        for line in lines:
            self._pending += self.up.carry(line.encode("latin-1") + b"\n")

    def write(self, data: bytes) -> None:
        self.written += data
        for line in data.splitlines(keepends=True):
            self._input += self.down.carry(line)
        while b"\n" in self._input:
            line, self._input = self._input.split(b"\n", 1)
            if not self.silent:
                self.send(self.agent.take(line))

    def read(self, timeout_s: float) -> bytes:
        deadline = self.now + timeout_s
        while not self._pending and self.agent.due and self.agent.due[0][0] <= deadline:
            when, happen = self.agent.due.pop(0)
            self.now = max(self.now, when)
            if not self.silent:
                self.send(happen())
        if not self._pending:
            self.now = deadline
            return b""
        chunk, self._pending = self._pending[:333], self._pending[333:]  # reads do not end where lines do
        self.now += 0.001
        return chunk
