# SPDX-License-Identifier: Apache-2.0
"""The HTTP and HTTPS server that a gateway's requests go to.

    python -m hil.network.peers.gateway.echo_server --address IPV4 --lines FILE --certificate PEM --key PEM

It answers ``/probe`` with a few bytes and everything else with what was asked, as JSON, the way
mendhak/http-https-echo does. Each answer is one write on a connection without Nagle's algorithm. Connections
are kept alive (HTTP/1.1); TLS 1.2 and 1.3 sessions are resumed by ticket. Standard error holds what went
wrong.

Lines: ``ready`` with the ports, then one ``request`` an answer. Ends with status 3 where no port is free.
"""

from __future__ import annotations

import argparse
import errno
import itertools
import json
import platform
import signal
import socket
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from hil.network.peers.gateway.lines import LineWriter

VERSION = "hil-echo/1"
PROBE_PATH = "/probe"
REQUEST_ID = "X-Request-Id"
STATUS_RIG = 3
IDLE_TIMEOUT_S = 300.0  # a board that vanished does not keep a thread for good
BODY_MAX_BYTES = 1 << 20
PORT_STEP = 10


class EchoHandler(BaseHTTPRequestHandler):
    """One connection, a thread of its own."""

    protocol_version = "HTTP/1.1"
    server_version = VERSION
    disable_nagle_algorithm = True
    wbufsize = -1  # buffered: header and body leave together
    timeout = IDLE_TIMEOUT_S
    server: EchoServer

    def setup(self) -> None:
        self.request.settimeout(self.timeout)
        if isinstance(self.request, ssl.SSLSocket):
            self.request.do_handshake()  # here, not where connections are accepted: it takes its time
        self.number = next(self.server.numbers)
        super().setup()

    @property
    def session_reused(self) -> bool:
        return isinstance(self.request, ssl.SSLSocket) and bool(self.request.session_reused)

    def parse_request(self) -> bool:
        self.began_ns = time.monotonic_ns()  # the request line has just come in
        return super().parse_request()

    def answer(self) -> None:
        """Answer any method."""
        length = int(self.headers.get("Content-Length") or 0)
        if not 0 <= length <= BODY_MAX_BYTES:
            self.send_error(413)
            return
        body = self.rfile.read(length)
        path, _, query = self.path.partition("?")
        text = b'{"probe":1}' if path == PROBE_PATH else self._echo(path, query, body)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)
        server_us = self._elapsed_us()  # before it leaves: what follows may already run beside the board
        self.wfile.flush()
        self.server.lines.write(
            "request",
            began_ns=self.began_ns,
            server_us=server_us,
            path=path,
            id=self.headers.get(REQUEST_ID, ""),
            connection=self.number,
            tls=isinstance(self.request, ssl.SSLSocket),
            session_reused=self.session_reused,
        )

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer  # noqa: N815

    def _echo(self, path: str, query: str, body: bytes) -> bytes:
        facts = {
            "path": path,
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "method": self.command,
            "body": body.decode(errors="replace"),
            "protocol": "https" if isinstance(self.request, ssl.SSLSocket) else "http",
            "query": query,
            "ip": self.client_address[0],
            "server_us": self._elapsed_us(),
            "session_reused": self.session_reused,
        }
        return json.dumps(facts).encode()

    def _elapsed_us(self) -> int:
        return (time.monotonic_ns() - self.began_ns) // 1000

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 (the parent's name)
        """Log no successful requests: the lines hold them."""

    def log_error(self, format: str, *arguments: Any) -> None:  # noqa: A002 (the parent's name)
        print(f"{self.client_address[0]}: {format % arguments}", file=sys.stderr, flush=True)


class EchoServer(ThreadingHTTPServer):
    """A listener, plain or TLS. ``numbers`` counts the connections of both."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        address: tuple[str, int],
        lines: LineWriter,
        numbers: itertools.count[int],
        context: ssl.SSLContext | None,
    ) -> None:
        self.lines = lines
        self.numbers = numbers
        self._context = context
        super().__init__(address, EchoHandler)

    def server_bind(self) -> None:
        # not HTTPServer's, which asks the name service for this host's name
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        if self._context:
            connection = self._context.wrap_socket(
                connection, server_side=True, do_handshake_on_connect=False
            )
        return connection, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        del request
        print(f"{client_address[0]}: {sys.exc_info()[1]}", file=sys.stderr, flush=True)


def open_listeners(
    address: str, ports: tuple[int, int], lines: LineWriter, context: ssl.SSLContext, attempts: int
) -> tuple[EchoServer, EchoServer]:
    """Return the plain and the TLS listener, on the next pair of ports where one is taken. Raises OSError."""
    numbers = itertools.count(1)
    for attempt in range(attempts):
        plain_port, tls_port = (port + attempt * PORT_STEP if port else 0 for port in ports)
        opened: list[EchoServer] = []
        try:
            opened.append(EchoServer((address, plain_port), lines, numbers, None))
            opened.append(EchoServer((address, tls_port), lines, numbers, context))
            return opened[0], opened[1]
        except OSError as error:
            for one in opened:
                one.server_close()
            if error.errno != errno.EADDRINUSE or attempt + 1 == attempts:
                raise OSError(error.errno, f"{error.strerror}: port {plain_port} or {tls_port}") from error
    raise AssertionError("unreachable: the last attempt returns or raises")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="echo_server", description="Echo requests over HTTP and HTTPS.")
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--tls-port", type=int, default=0)
    parser.add_argument("--attempts", type=int, default=1, help="pairs of ports to try, ten apart")
    parser.add_argument("--certificate", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--lines", type=Path, required=True)
    options = parser.parse_args(arguments)
    lines = LineWriter(options.lines)
    lines.tell_pauses()
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(options.certificate, options.key)
        ports = (options.port, options.tls_port)
        listeners = open_listeners(options.address, ports, lines, context, options.attempts)
    except OSError as error:
        print(f"{options.address}: {error.strerror or error}", file=sys.stderr)
        return STATUS_RIG
    for listener in listeners:
        threading.Thread(target=listener.serve_forever, daemon=True).start()
    plain, tls = listeners
    facts = {"python": platform.python_version(), "openssl": ssl.OPENSSL_VERSION}
    lines.write("ready", port=plain.port, tls_port=tls.port, version=VERSION, **facts)
    while True:
        signal.pause()  # until a signal ends this program


if __name__ == "__main__":
    sys.exit(main())
