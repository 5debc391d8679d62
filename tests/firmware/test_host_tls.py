# SPDX-License-Identifier: Apache-2.0
"""The host's esp-tls against OpenSSL's own server, and against peers that are none.

A program (firmware/host/test/test_tls_driver.c, ASan and UBSan) is told what to do line by line and says what
came back; whether a session was resumed is the server's word.
"""

from __future__ import annotations

import hashlib
import socket
import ssl
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
import trustme

from tests.network.mqtt_rig import free_ports
from tests.network.tls_rig import DEADLINE_S, drive, echo, peer, s_server, says, until_closed

pytestmark = pytest.mark.slow

# ESP_TLS_INIT, CONNECTING, HANDSHAKE, FAIL, DONE
INIT, HANDSHAKE, FAIL, DONE = "0", "2", "3", "4"
CANNOT_RESOLVE, FAILED_CONNECT, TIMEOUT, SETUP_FAILED = "8001", "8004", "8006", "8017"
HANDSHAKE_FAILED = "801a"
CERT_VERIFY_FAILED, ALERT, INVALID_RECORD = "2700", "7780", "7200"
CONN_EOF, CONN_RESET = "7280", "50"


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA) -> Path:
    """The folder of ca.pem, other.pem (another authority), and of server and client each .pem and .key."""
    folder = tmp_path_factory.mktemp("pem")
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    trustme.CA().cert_pem.write_to_path(str(folder / "other.pem"))
    issued = {
        "server": authority.issue_cert("127.0.0.1", "peer.hil.test"),
        "client": authority.issue_cert("board@hil.invalid"),
    }
    for name, certificate in issued.items():
        certificate.private_key_pem.write_to_path(str(folder / f"{name}.key"))
        certificate.cert_chain_pems[0].write_to_path(str(folder / f"{name}.pem"))
    return folder


@pytest.mark.parametrize(
    ("mode", "kept_by"), [("sync", "ticket"), ("async", "ticket"), ("own", "ticket"), ("own", "session id")]
)
def test_session_is_resumed(pem: Path, mode: str, kept_by: str) -> None:
    """The saved session makes the next handshake an abbreviated one: by the server's word, and its secret."""
    options = ["-no_ticket"] if kept_by == "session id" else []
    connect = "connect {mode} 127.0.0.1 {port} ca={pem}/ca.pem non_block={non_block} resume={resume}"
    with s_server(pem, "-tls1_2", *options) as port:
        lines = [
            connect.format(mode=mode, port=port, pem=pem, non_block=int(mode == "async"), resume=resume)
            for resume in (0, 1, 1)
        ]
        first, page, saved, again, second, resumed, kept, third, still = drive(
            *(lines[0], "get /", "save", "save", "close"),
            *(lines[1], "get /", "save", "close"),
            *(lines[2], "get /"),
        )
    assert (first["result"], first["states"][-1], page["new"]) == ("1", DONE, "1")
    assert (saved["result"], again["result"]) == ("1", "0")  # Mbed TLS gives a session once
    assert (second["result"], resumed["reused"], kept["same"]) == ("1", "1", "1")
    assert (third["result"], still["reused"]) == ("1", "1")


def test_server_that_does_not_know_the_session_shakes_hands_in_full(pem: Path) -> None:
    """A session is an offer: another server (other ticket key) makes a new one, with a secret of its own."""
    connect = "connect own 127.0.0.1 {port} ca={pem}/ca.pem resume={resume}"
    with s_server(pem, "-tls1_2") as port, s_server(pem, "-tls1_2") as other:
        said = drive(
            *(connect.format(port=port, pem=pem, resume=0), "get /", "save", "close"),
            *(connect.format(port=other, pem=pem, resume=1), "get /", "save"),
        )
    assert (said[3]["result"], said[4]["new"], said[5]["same"]) == ("1", "1", "0")


def test_session_given_again_during_the_handshake_fails(pem: Path) -> None:
    """As with Mbed TLS: a session is taken once; who polls with it set gets -1 and no reason."""
    connect = f"connect own 127.0.0.1 {{port}} ca={pem}/ca.pem resume={{resume}}"
    with s_server(pem, "-tls1_2") as port, peer(until_closed) as silent:
        said = drive(
            *(connect.format(port=port, resume=0), "get /", "save", "close"),
            connect.format(port=silent, resume="twice"),
        )
    failed = said[-1]
    assert (failed["result"], failed["states"], failed["esp"], failed["tls"]) == ("-1", HANDSHAKE, "0", "0")


@pytest.mark.parametrize("options", ["name=peer.hil.test", "skip=1", "name=elsewhere.hil.test skip=1"])
def test_name_to_check_can_be_another_or_none(pem: Path, options: str) -> None:
    """common_name stands in for the host name; skip_common_name checks neither."""
    with s_server(pem, "-tls1_2") as port:
        (said,) = drive(f"connect sync 127.0.0.1 {port} ca={pem}/ca.pem {options}")
    assert (said["result"], said["states"]) == ("1", DONE)


def test_client_certificate(pem: Path) -> None:
    """A server that wants one gets one, and refuses who has none, by an alert."""
    with s_server(pem, "-tls1_2", "-Verify", "2", "-verify_return_error") as port:
        connect = f"connect own 127.0.0.1 {port} ca={pem}/ca.pem"
        own, page, without = drive(
            f"{connect} cert={pem}/client.pem key={pem}/client.key", "get /", "close", connect
        )
    assert (own["result"], page["new"]) == ("1", "1")
    assert (without["result"], without["esp"], without["tls"]) == ("-1", HANDSHAKE_FAILED, ALERT)


def test_peer_that_never_accepts_ends_in_time(pem: Path) -> None:
    """A full queue drops each SYN: TCP's connect ends with the time-out."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        address = listener.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(address)
        (said,) = drive(f"connect sync 127.0.0.1 {address[1]} ca={pem}/ca.pem timeout_ms=300")
        for one in waiting:
            one.close()
    assert (said["result"], said["states"], said["esp"]) == ("-1", INIT, TIMEOUT)


Serving = Callable[[Path], AbstractContextManager[int]]


def tls(option: str) -> Serving:
    return lambda pem: s_server(pem, option)


def answering(answer: bytes) -> Serving:
    return lambda _pem: peer(says(answer))


def nobody(_pem: Path) -> AbstractContextManager[int]:
    return nullcontext(free_ports(1)[0])


WITHIN_A_RECORD = b"\x16\x03\x03\x00\x40\x02\x00\x00\x3c"
BROKE = f"-1 {FAIL} {HANDSHAKE_FAILED}"


@pytest.mark.parametrize(
    ("serving", "connect", "told"),
    [
        # A certificate of another authority or name: Mbed TLS's code and bit; without an authority, nothing.
        (tls("-tls1_2"), "own {at} ca={pem}/other.pem", f"{BROKE} {CERT_VERIFY_FAILED} 8"),
        (tls("-tls1_2"), "own {at} {ca} name=elsewhere.hil.test", f"{BROKE} {CERT_VERIFY_FAILED} 4"),
        (tls("-tls1_2"), "sync {at}", f"-1 {FAIL} {SETUP_FAILED}"),
        # CONFIG_MBEDTLS_SSL_PROTO_TLS1_3 is not set: TLS 1.2 is all that is offered.
        (tls("-tls1_3"), "own {at} {ca}", f"{BROKE} {ALERT}"),
        # Nobody listens: errno says refused; who polls has no error of the socket, and cannot send its hello.
        (nobody, "sync {at} {ca}", f"-1 {INIT} {FAILED_CONNECT} 0 0 111"),
        (nobody, "async {at} {ca} non_block=1", f"{BROKE} {CONN_RESET} 0 0"),
        (nobody, "sync peer.hil.test 443 {ca}", f"-1 {INIT} {CANNOT_RESOLVE}"),
        # It accepts and says nothing: the handshake ends with the time-out, which is no TLS error.
        (lambda _pem: peer(until_closed), "sync {at} {ca} timeout_ms=300", f"0 {HANDSHAKE} {TIMEOUT} 0"),
        # Garbage, an alert, an end and one within a record, instead of a ServerHello.
        (answering(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "own {at} {ca}", f"{BROKE} {INVALID_RECORD} 0"),
        (answering(b"\x15\x03\x03\x00\x02\x02\x28"), "own {at} {ca}", f"{BROKE} {ALERT} 0"),
        (answering(b""), "own {at} {ca}", f"{BROKE} {CONN_EOF} 0"),
        pytest.param(
            answering(WITHIN_A_RECORD), "own {at} {ca}", f"{BROKE} {CONN_EOF} 0", id="within a record"
        ),
    ],
)
def test_what_fails_is_told_by_state_and_codes(pem: Path, serving: Serving, connect: str, told: str) -> None:
    """Result, state, ESP-IDF's error, Mbed TLS's, its bits and errno, as far as they tell causes apart."""
    with serving(pem) as port:
        (said,) = drive(f"connect {connect.format(at=f'127.0.0.1 {port}', pem=pem, ca=f'ca={pem}/ca.pem')}")
    codes = [said["result"], said["states"][-1], *(said[name] for name in ("esp", "tls", "flags", "errno"))]
    assert codes[: len(told.split())] == told.split()


def test_server_hello_of_noise_is_refused(pem: Path) -> None:
    """Bytes in the form of records, with anything in them, are an error and never a finding."""
    for seed in range(8):
        noise = b"".join(hashlib.sha256(bytes([seed, n])).digest() for n in range(4))
        record = b"\x16\x03\x03" + len(noise).to_bytes(2, "big") + noise
        with peer(says(record)) as port:
            (said,) = drive(f"connect own 127.0.0.1 {port} ca={pem}/ca.pem")
        assert (said["result"], said["esp"]) == ("-1", HANDSHAKE_FAILED)
        assert int(said["tls"], 16) > 0


@pytest.mark.parametrize("transport", ["plain", "tls"])
@pytest.mark.parametrize("non_block", [0, 1])
def test_bytes_arrive_whole(pem: Path, authority: trustme.CA, transport: str, non_block: int) -> None:
    """More than a record and than the send buffer at once, blocking or not: nothing lost, nothing twice."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem / "server.pem", pem / "server.key")

    def echo_tls(connection: socket.socket) -> None:
        connection.settimeout(DEADLINE_S)
        with context.wrap_socket(connection, server_side=True) as secured:
            echo(secured)

    options = f"plain={int(transport == 'plain')} non_block={non_block} ca={pem}/ca.pem"
    with peer(echo if transport == "plain" else echo_tls) as port:
        mode = "async" if non_block and transport == "tls" else "sync"
        connected, echoed = drive(f"connect {mode} 127.0.0.1 {port} {options}", "echo 200000")
    assert (connected["result"], connected["states"][-1]) == ("1", INIT if transport == "plain" else DONE)
    assert (echoed["result"], echoed["pending"]) == ("200000", "0")
