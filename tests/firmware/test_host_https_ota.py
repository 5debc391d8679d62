# SPDX-License-Identifier: Apache-2.0
"""A product on a virtual board updates itself over HTTPS; what boots then is up to board and product."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import trustme

from hil.boards.firmware.image import build_image_dir
from tests.host_builds import PLAIN, build_programs
from tests.virtual.virtual_board_rig import (
    PARTITIONS,
    BoardProcess,
    Console,
    console,
    flash_files,
    write_flash_file,
)

pytestmark = pytest.mark.slow


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


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
def server(folder: Path) -> Iterator[str]:
    """An HTTPS server of the folder; yields its address."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    served = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    served.socket = context.wrap_socket(served.socket, server_side=True)
    thread = threading.Thread(target=served.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"https://127.0.0.1:{served.server_address[1]}"
    finally:
        served.shutdown()
        thread.join()
        served.server_close()


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
