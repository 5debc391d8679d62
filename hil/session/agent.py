# SPDX-License-Identifier: Apache-2.0
"""A session with the agent on one board: hello, provision, link, cases.

A damaged or lost line is asked for again; what cannot be had is an error, never a shorter series.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NoReturn

from hil.base.errors import ConfigError, FirmwareError, HilError, RigError
from hil.model import Case, Scalar, Series
from hil.session import handshake
from hil.session.board_link import RETRY_S, BoardLink, LinkStatistics
from hil.session.console import MASK, Console
from hil.session.transfer import Collector, OnNote, case_words
from hil.session.trouble import Decode
from hil.wire import Hello, Message, Reply, crc32_hex, parse_scalar

COMMAND_TIMEOUT_S = 10.0
LINK_ANSWER_S = 5.0  # the agent answers this much after its own deadline at the latest

_WRONG_INPUT = {
    "bad-parameter",
    "bad-argument",
    "unknown-bench",
    "unknown-command",
    "unknown-field",
    "bad-value",
}


_UNKNOWN_BENCH = (
    "build the firmware of this checkout; a bench of a driver that the host has not says "
    "'kinds: [physical]' in its thresholds file."
)

_OTHER_VERSION = "build the firmware with the component of this tool's version, or use that version's tool."

_PIECE_BYTES = 480  # 640 characters of base64: a command line has at most 1023
_SECRET_FIELDS = frozenset({"ca_pem", "client_cert_pem", "client_key_pem", "ssid", "psk", "mqtt_password"})
# Masked wherever they turn up. An SSID is not among them: it may be a word of every other log line.
_MASKED_FIELDS = frozenset({"client_key_pem", "psk", "mqtt_password"})
# A firmware older than these does not know them. A bench that needs one says that it was not told.
_LATER_FIELDS = frozenset(
    {
        "broker_password_port",
        "mqtt_username",
        "mqtt_password",
        "peer_host",
        "peer_name",
        "dns_host",
        "peer_port",
        "peer_tls_port",
    }
)

Provision = str | bytes | int


class AgentSession:
    """Drives the agent of one board over its console.

    ``log`` gets every line of both directions, secrets masked. ``clock`` is in seconds.
    ``decode`` finds a panic's addresses in the build that the board runs.
    """

    def __init__(
        self,
        console: Console,
        board: str,
        log: Callable[[str], None] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        log_path: str = "",
        decode: Decode | None = None,
    ) -> None:
        self.board = board
        self._link = BoardLink(
            console, board, log=log, clock=clock, log_path=log_path, decode=decode, on_message=self._keep
        )
        self._collector = Collector(self._link, ask=self._ask, command=self.command)

    @property
    def hello(self) -> Hello | None:
        """What the board said at this boot."""
        return self._link.hello

    @property
    def statistics(self) -> LinkStatistics:
        return self._link.statistics

    def close(self) -> None:
        """Log what has arrived and was not read."""
        self._link.lines.close()

    def check_how_it_booted(self) -> None:
        """Raise FirmwareError or RigError where the boot that said hello began with a crash of the one
        before. Only for who has reset the board: else that may have been at any time.
        """
        self._link.check_how_it_booted()

    def wait_ready(self, timeout_s: float = 30.0) -> Hello:
        """Wait until the agent says hello, asking for it; forgets an earlier boot.

        Raises:
            RigError: the board is silent, unreadable, in download mode or browns out.
            FirmwareError: it boots and the agent does not come up.
            ConfigError: it speaks a protocol version that this host does not.
        """
        self._link.forget_boot()
        return handshake.await_hello(self._link, timeout_s=timeout_s)

    def restart(self, timeout_s: float = 30.0) -> Hello:
        """Restart the board and wait for the hello of the new boot. Errors as of wait_ready()."""
        old = self._link.hello
        self._link.forget_boot()
        old_boot = old.boot if old else ""
        handshake.await_restart(self._link, old_boot=old_boot, timeout_s=timeout_s)
        return handshake.await_hello(self._link, old_boot=old_boot, timeout_s=timeout_s)

    def command(
        self, verb: str, *args: object, timeout_s: float = COMMAND_TIMEOUT_S, retry_s: float = RETRY_S
    ) -> Reply:
        """Send a command and return its reply. It is repeated when no reply comes, and executed once.

        Raises:
            ConfigError: the agent refused a parameter, argument, bench or verb.
            RigError: the board is silent, or its link did not come up.
            FirmwareError: another refusal, no answer, a panic, a reset.
        """
        reply = self._ask(verb, *args, timeout_s=timeout_s, retry_s=retry_s)
        if not reply.ok:
            self._refused(verb, reply)
        return reply

    def provision(self, values: Mapping[str, str | bytes | int]) -> None:
        """Send the board credentials, the time, broker and peer. Secrets are masked in log and errors.

        A field of _LATER_FIELDS that the board's firmware does not know yet is left out.

        Raises:
            ConfigError: the agent refused a field.
            FirmwareError: it is too old for the field ``link``. Others as of command().
        """
        for field, value in values.items():
            for secret in _secrets_of(field, value):
                self._link.lines.add_secret(secret)
            self._provision_field(field, value)

    def _provision_field(self, field: str, value: Provision) -> None:
        for verb, *words in _commands_of(field, value):
            reply = self._ask(verb, *words)
            if reply.code == "unknown-field" and field in _LATER_FIELDS:
                return
            if reply.code == "unknown-field" and field == "link":
                raise FirmwareError(
                    f"The firmware on board {self.board} supports only Wi-Fi, but the board has a cable.",
                    log=self._link.log_path,
                    next_step="use firmware that knows the field 'link', for the base too.",
                )
            if not reply.ok:
                self._refused(verb, reply)

    def network_up(self, timeout_s: float = 30.0) -> Mapping[str, Scalar]:
        """Bring the board's network up; returns what the link is like.

        Raises:
            RigError: it did not come up in time. Others as of command().
        """
        timeout_ms = round(timeout_s * 1000)
        reply = self.command("net", "up", timeout_ms, timeout_s=timeout_s + LINK_ANSWER_S, retry_s=5.0)
        return _scalars(reply)

    def info(self) -> Mapping[str, Scalar]:
        """Return the agent's state and the board's environment now. Errors as of command()."""
        return _scalars(self.command("info"))

    def abort(self) -> None:
        """End a run in progress, drop its samples. Errors as of command()."""
        self.command("abort")

    def run_case(self, case: Case, *, timeout_s: float, on_note: OnNote | None = None) -> Series:
        """Measure one case and return its samples, bursts merged.

        ``timeout_s`` is what measuring may take, all bursts together; transferring comes on top. While the
        board measures nothing is sent to it. ``on_note`` is handed what the bench says meanwhile, in order
        and as often as it says it; a note may be lost.

        Raises:
            ConfigError: the agent refuses the case, or the board was not told what it needs for it.
            FirmwareError: the bench failed, or the board misbehaved, or its lines contradict each other.
            RigError: the bench found its broker or network missing; the console damages more than can be
                asked for again; the board fell silent.
        """
        self._collector.start()
        reply = self.command("run", case.bench, *case_words(case))
        transfer = int(reply.fields["transfer"])
        return self._collector.collect(case, transfer=transfer, timeout_s=timeout_s, on_note=on_note)

    def _keep(self, message: Message) -> None:
        self._collector.keep(message)

    def _ask(
        self, verb: str, *args: object, timeout_s: float = COMMAND_TIMEOUT_S, retry_s: float = RETRY_S
    ) -> Reply:
        line, tag = self._link.command_line(verb, *args)
        shown = f"#{tag} {_shown(args)}" if verb == "provision" else ""
        bytes_before = self._link.lines.bytes_received
        reply = self._link.ask(line, tag, timeout_s=timeout_s, retry_s=retry_s, shown=shown)
        if reply is None:
            raise self._link.silence(f"Sending {verb!r}", timeout_s, bytes_before)
        return reply

    def _refused(self, verb: str, reply: Reply) -> NoReturn:
        details = " ".join(f"{key}={value}" for key, value in reply.fields.items())
        sentence = f"The agent on board {self.board} refused {verb!r}: {reply.code} {details}".rstrip() + "."
        other = handshake.of_another_version(self._link.hello)
        error: type[HilError] = FirmwareError
        if reply.code in _WRONG_INPUT:
            error = ConfigError
        elif reply.code == "link-failed":
            error = RigError
        next_step = _UNKNOWN_BENCH if reply.code == "unknown-bench" else ""
        next_step = _OTHER_VERSION if other and error is ConfigError else next_step
        raise error(sentence + other, log=self._link.log_path, next_step=next_step)


def _scalars(reply: Reply) -> dict[str, Scalar]:
    return {key: parse_scalar(value) for key, value in reply.fields.items()}


def _to_bytes(value: Provision) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _secrets_of(field: str, value: Provision) -> tuple[str, ...]:
    """Return the texts to mask in everything that is logged."""
    return (_to_bytes(value).decode("latin-1"),) if field in _MASKED_FIELDS else ()


def _commands_of(field: str, value: Provision) -> Iterator[tuple[str, str, int, str]]:
    """Yield the words of the commands that provision one field."""
    data = _to_bytes(value)
    for offset in range(0, len(data), _PIECE_BYTES):
        piece = base64.b64encode(data[offset : offset + _PIECE_BYTES]).decode()
        yield "provision", field, offset, piece
    yield "provision-end", field, len(data), crc32_hex(data)


def _shown(args: Sequence[object]) -> str:
    """Return a ``provision`` command as a log may show it."""
    field, offset, piece = args
    return f"provision {field} {offset} {MASK if field in _SECRET_FIELDS else piece}"
