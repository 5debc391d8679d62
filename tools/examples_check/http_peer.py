# SPDX-License-Identifier: Apache-2.0
"""The other end of the HTTP examples: what they ask of httpbin.org, and what their scripts ask of them."""

from __future__ import annotations

import base64
import hashlib
import http.client
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = 80  # the examples' own
RETRY_S = 0.1
BODY = b'{"origin": "127.0.0.1"}'
USER, PASSWORD = "user", "passwd"
NONCE = "0123456789abcdef"
HEADERS = {"Test-Header-1": "Test-Value-1", "Test-Header-2": "Test-Value-2"}


class _Httpbin(BaseHTTPRequestHandler):
    """As much of httpbin.org as ESP-IDF's esp_http_client example asks for."""

    protocol_version = "HTTP/1.1"

    def _answer(self, status: int = 200, body: bytes = BODY, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _any(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        redirect = re.fullmatch(r"/(relative|absolute)-redirect/(\d)", self.path)
        if redirect:
            left = int(redirect[2]) - 1
            path = f"/{redirect[1]}-redirect/{left}" if left else "/get"
            base = "http://127.0.0.1" if redirect[1] == "absolute" else ""
            self._answer(302, Location=base + path)
        elif self.path.startswith("/basic-auth/"):
            wanted = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
            self._authorize(self.headers.get("Authorization") == wanted, 'Basic realm="test"')
        elif self.path.startswith("/digest-auth/"):
            algorithm = self.path.split("/")[5]
            challenge = f'Digest realm="test", nonce="{NONCE}", qop="auth", algorithm={algorithm}'
            self._authorize(self._digest_is_right(algorithm), challenge)
        else:
            self._answer()

    # the names that http.server looks for
    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _any  # noqa: N815

    def _authorize(self, allowed: bool, challenge: str) -> None:
        if allowed:
            self._answer()
        else:
            self._answer(401, b"", WWW_Authenticate=challenge)

    def _digest_is_right(self, algorithm: str) -> bool:
        said = dict(re.findall(r'(\w+)="?([^",]+)"?', self.headers.get("Authorization", "")))

        def digest(text: str) -> str:
            name = "md5" if algorithm == "MD5" else "sha256"
            return hashlib.new(name, text.encode(), usedforsecurity=False).hexdigest()

        proof = digest(f"{USER}:test:{PASSWORD}")
        asked = digest(f"{self.command}:{self.path}")
        rest = f"{NONCE}:{said.get('nc')}:{said.get('cnonce')}:auth:{asked}"
        return said.get("response") == digest(f"{proof}:{rest}")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def httpbin(ended: threading.Event) -> None:
    """Serve the requests of ESP-IDF's HTTP client example."""
    server = ThreadingHTTPServer(("127.0.0.1", PORT), _Httpbin)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(RETRY_S,))
    thread.start()
    ended.wait()
    server.shutdown()
    thread.join()
    server.server_close()


def http_client(ended: threading.Event) -> None:
    """Ask of ESP-IDF's HTTP server example what its script asks, in its order."""
    queries = "query1=http%3A%2F%2Ffoobar&query3=abcd%2B1234%20xyz&query2=Esp%21%40%20%23%2471"
    for method, path, body in (
        ("GET", "/hello?query1=value1&query3=value3&query2=value2", ""),
        ("PUT", "/ctrl", "0"),
        ("PUT", "/ctrl", "1"),
        ("GET", f"/hello?{queries}", ""),
    ):
        while not ended.wait(RETRY_S):
            connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=5)
            try:
                connection.request(method, path, body or None, HEADERS)
                connection.getresponse().read()
                break
            except OSError:
                continue
            finally:
                connection.close()
