# SPDX-License-Identifier: Apache-2.0
"""python -m hil.probe.http_server: serves one file to a product, and notes who fetched how much, and when."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from hil.network.peers.gateway.lines import LineWriter

READY, FETCHED = "ready", "fetched"
CHUNK_BYTES = 4096


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Serves one file by HTTP.")
    parser.add_argument("--address", required=True)
    parser.add_argument("--file", type=Path, required=True)
    parser.add_argument("--lines", type=Path, required=True)
    arguments = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    content = arguments.file.read_bytes()
    with LineWriter(arguments.lines) as lines:
        server = ThreadingHTTPServer((arguments.address, 0), _handler(content, lines))
        lines.write(READY, port=server.server_address[1])
        server.serve_forever()
    return 0


def _handler(content: bytes, lines: LineWriter) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            began_ns, sent_bytes = time.monotonic_ns(), 0
            self.send_response(200)
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            try:
                for offset in range(0, len(content), CHUNK_BYTES):
                    sent_bytes += self.wfile.write(content[offset : offset + CHUNK_BYTES])
            except OSError as error:  # the product hung up; how far it came is in the line
                self.close_connection = True
                lines.write("broken", sentence=str(error))
            done_ns = time.monotonic_ns()
            lines.write(FETCHED, path=self.path, began_ns=began_ns, done_ns=done_ns, size_bytes=sent_bytes)

        def log_message(self, *_: object) -> None:
            """The lines say more."""

    return Handler


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
