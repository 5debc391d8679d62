# SPDX-License-Identifier: Apache-2.0
"""The host's HTTP client over TLS: whom it trusts, and that it does not go on with whom it does not trust;
and a product on a virtual board that updates itself by it: what boots then is up to board and product.

A program (firmware/host/test/test_https_driver.c, ASan and UBSan) is told what to get; the server is
Python's, and whether a session was resumed is its word.
"""

from __future__ import annotations

import os
import re
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import trustme

from hil.boards.firmware.image import build_image_dir
from tests.host_builds import PLAIN, build_programs, build_sanitized
from tests.virtual.virtual_board_rig import (
    PARTITIONS,
    BoardProcess,
    Console,
    console,
    flash_files,
    write_flash_file,
)

pytestmark = pytest.mark.slow

DEADLINE_S = 30.0
BODY = b"0123456789" * 200
CONNECT_FAILED = "ESP_ERR_HTTP_CONNECT"
CERT_VERIFY_FAILED = "2700"


Handling = Callable[..., BaseHTTPRequestHandler]


class Server(ThreadingHTTPServer):
    """An HTTPS server that notes of each request whether its session was resumed."""

    daemon_threads = True

    def __init__(self, authority: trustme.CA, names: tuple[str, ...], handler: Handling) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        authority.issue_cert(*names).configure_cert(context)
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.resumed: list[bool] = []
        self.thinks_s = 0.0  # before its part of the handshake

    def handle_error(self, request: object, client_address: object) -> None:
        """Who does not trust the server breaks off."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        assert isinstance(self.server, Server)
        time.sleep(self.server.thinks_s)
        super().setup()

    def do_GET(self) -> None:
        assert isinstance(self.server, Server)
        assert isinstance(self.connection, ssl.SSLSocket)
        self.server.resumed.append(bool(self.connection.session_reused))
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Files(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serving(authority: trustme.CA, *names: str, handler: Handling = Handler) -> Iterator[Server]:
    server = Server(authority, names, handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA) -> Path:
    """The folder of ca.pem, and of other.pem, which is another authority."""
    folder = tmp_path_factory.mktemp("pem")
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    trustme.CA().cert_pem.write_to_path(str(folder / "other.pem"))
    return folder


def get(server: Server, options: str, **variables: str) -> list[Mapping[str, str]]:
    """Return what the client says of each request: ``result``, status, bytes and TLS's errors."""
    program = build_sanitized("test_https_driver") / "test" / "test_https_driver"
    done = subprocess.run(
        [program],
        input=f"get https://127.0.0.1:{server.server_address[1]}/ {options}\n",
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        env={**os.environ, **variables},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.findall(r"^get (\S+) (.*)$", done.stdout, re.MULTILINE)
    return [{"result": name} | dict(word.split("=", 1) for word in rest.split()) for name, rest in found]


@pytest.mark.parametrize("options", ["ca={}/ca.pem", "global={}/ca.pem", "ca={}/ca.pem async"])
def test_whom_the_authority_vouches_for_is_read(authority: trustme.CA, pem: Path, options: str) -> None:
    """By certificate, by the store of all connections, and without blocking."""
    with serving(authority, "127.0.0.1") as server:
        server.thinks_s = 0.5 if "async" in options else 0.0  # long enough to be asked for again
        (said,) = get(server, options.format(pem))
    assert (said["result"], said["status"], said["bytes"]) == ("ESP_OK", "200", str(len(BODY)))
    assert said["again"] == str(int("async" in options))


def test_bundle_is_the_machines_authorities(authority: trustme.CA, pem: Path) -> None:
    """crt_bundle_attach verifies, against what the machine trusts or SSL_CERT_FILE names."""
    with serving(authority, "127.0.0.1") as server:
        (named,) = get(server, "bundle", SSL_CERT_FILE=str(pem / "ca.pem"))
        (unknown,) = get(server, "bundle")
    assert (named["result"], named["status"]) == ("ESP_OK", "200")
    assert (unknown["result"], unknown["tls"]) == (CONNECT_FAILED, CERT_VERIFY_FAILED)


def test_whom_nobody_vouches_for_is_refused(authority: trustme.CA, pem: Path) -> None:
    """Another authority, another name, none to verify with: connecting fails; the server is asked nothing."""
    with serving(authority, "elsewhere.test") as server:
        (other,) = get(server, f"ca={pem}/other.pem skip")
        (name,) = get(server, f"ca={pem}/ca.pem")
        (none,) = get(server, "skip")
        (own,) = get(server, f"ca={pem}/ca.pem name=elsewhere.test")
        (skipped,) = get(server, f"ca={pem}/ca.pem skip")
        assert len(server.resumed) == 2
    assert [said["result"] for said in (other, name, none)] == [CONNECT_FAILED] * 3
    assert (other["tls"], name["tls"], none["esp"]) == (CERT_VERIFY_FAILED, CERT_VERIFY_FAILED, "8017")
    assert [said["result"] for said in (own, skipped)] == ["ESP_OK"] * 2


def test_saved_session_is_resumed(authority: trustme.CA, pem: Path) -> None:
    """With save_client_session the next connection of the client resumes, by the server's word."""
    with serving(authority, "127.0.0.1") as server:
        said = get(server, f"ca={pem}/ca.pem resume=3")
        assert server.resumed == [False, True, True]
    assert [entry["result"] for entry in said] == ["ESP_OK"] * 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images of versions 1 and 2 (1.bin, 2.bin), build folders (1, 2), and the authority's ca.pem."""
    folder = tmp_path_factory.mktemp("ota")
    program = build_programs(PLAIN, "ota_product") / "test" / "ota_product"
    (folder / "partitions.csv").write_text(PARTITIONS)
    for version in ("1", "2"):
        build = folder / version
        build_image_dir(
            program, build, project="product", version=version, partitions_csv=folder / "partitions.csv"
        )
        (folder / f"{version}.bin").write_bytes((build / "product.bin").read_bytes())
    return folder


@pytest.fixture
def server(folder: Path, authority: trustme.CA) -> Iterator[str]:
    """An HTTPS server of the folder; yields its address."""
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    with serving(authority, "127.0.0.1", handler=partial(Files, directory=str(folder))) as served:
        yield f"https://127.0.0.1:{served.server_address[1]}"


@pytest.fixture
def monitor(folder: Path, tmp_path: Path) -> Iterator[Console]:
    """The console of a board on which version 1 was flashed, and has just started."""
    flash = write_flash_file(tmp_path / "flash.bin", flash_files(folder / "1"))
    with BoardProcess(tmp_path / "board", flash=flash) as board, console(board) as monitor:
        monitor.reset("product 1 in ota_0")
        yield monitor


def update(monitor: Console, server: str, folder: Path) -> None:
    """Update to version 2 and start it: it has this boot to confirm itself."""
    monitor.write(f"update {server}/2.bin {folder}/ca.pem")
    monitor.expect("updated: ESP_OK")
    monitor.write("restart")
    monitor.expect("product 2 in ota_1, state 1")


def test_an_update_that_confirms_itself_stays(monitor: Console, server: str, folder: Path) -> None:
    """Before that it cannot be updated in its turn; after it, it boots again and again."""
    update(monitor, server, folder)
    monitor.write(f"update {server}/1.bin {folder}/ca.pem")
    monitor.expect("updated: ESP_ERR_OTA_ROLLBACK_INVALID_STATE")
    monitor.write("confirm")
    monitor.expect("confirmed: ESP_OK")
    monitor.write("restart")
    monitor.expect("product 2 in ota_1, state 2")


def test_an_update_that_does_not_is_rolled_back(monitor: Console, server: str, folder: Path) -> None:
    """By the boot loader at the next reset."""
    update(monitor, server, folder)
    monitor.write("restart")
    monitor.expect("product 1 in ota_0")


def test_an_update_may_give_itself_up(monitor: Console, server: str, folder: Path) -> None:
    """It reboots into what was before, and is not tried again."""
    update(monitor, server, folder)
    monitor.write("give_up")
    monitor.expect("product 1 in ota_0")
    monitor.write("restart")
    monitor.expect("product 1 in ota_0")


def test_what_nobody_vouches_for_is_not_taken(monitor: Console, server: str, folder: Path) -> None:
    """With another authority's certificate nothing is written, and version 1 boots on."""
    trustme.CA().cert_pem.write_to_path(str(folder / "other.pem"))
    monitor.write(f"update {server}/2.bin {folder}/other.pem")
    monitor.expect("updated: ESP_ERR_HTTP_CONNECT")
    monitor.write("restart")
    monitor.expect("product 1 in ota_0")
