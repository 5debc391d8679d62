# SPDX-License-Identifier: Apache-2.0
"""The host's lwIP resolver against a real dnsmasq, and against servers that are none.

A resolver asks port 53 of the server it was told, so all of it happens in a network namespace of its own.
"""

from __future__ import annotations

import functools
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.host_builds import build_sanitized

pytestmark = pytest.mark.slow

DEADLINE_S = 30.0
SERVER = "127.0.0.1"
NOBODY = "127.0.0.9"  # refuses
EAI_FAIL = "202"

# Answers each question with what is no answer to it, then with one: 192.0.2.99.
LIAR = """
import socket, struct
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.3", 53))
print("listening", flush=True)
while True:
    question, client = server.recvfrom(512)
    number = struct.unpack(">H", question[:2])[0]
    record = b"\\xc0\\x0c" + struct.pack(">HHIH", 1, 1, 60, 4)
    def answer(number, question, address, flags=0x8180, count=1):
        head = struct.pack(">HHHHHH", number, flags, 1, count, 0, 0)
        return head + question[12:] + (record + socket.inet_aton(address)) * bool(count)
    right = answer(number, question, "192.0.2.99")
    for wrong in (
        b"", b"\\x00", right[:12], right[:-2], right[:20],
        answer(number ^ 1, question, "192.0.2.66"),
        answer(number, question, "192.0.2.66", flags=0x0100),
        answer(number, question.replace(b"peer", b"pear"), "192.0.2.66"),
        answer(number, question[:12] + b"\\xc0\\x0c\\x00\\x01\\x00\\x01", "192.0.2.66"),
        right[:-10] + b"\\xff" * 10,
    ):
        server.sendto(wrong, client)
    server.sendto(right, client)
"""


@functools.cache
def programs() -> Path:
    return build_sanitized("test_netdb_driver") / "test"


class Namespace:
    """A network with a loopback only, which lives as long as a process in it; its root may be any user."""

    def __init__(self, pid: int) -> None:
        enter = ["nsenter", f"--user=/proc/{pid}/ns/user", f"--net=/proc/{pid}/ns/net"]
        self._enter = [*enter, "--preserve-credentials"]

    @classmethod
    @contextmanager
    def make(cls) -> Iterator[Namespace]:
        shell = "ip link set lo up && echo up && exec cat"
        command = ["unshare", "--map-root-user", "--net", "sh", "-c", shell]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"up\n"
            yield cls(holder.pid)

    @contextmanager
    def running(self, command: Sequence[str], log: Path, ready: str) -> Iterator[subprocess.Popen[bytes]]:
        """A server in it, until the end or until the test ends it, once it says it is ready."""
        deadline = time.monotonic() + DEADLINE_S
        with log.open("wb") as out:
            server = subprocess.Popen([*self._enter, *command], stdout=out, stderr=subprocess.STDOUT)
        try:
            while ready not in log.read_text():
                assert server.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.01)
            yield server
        finally:
            server.kill()
            server.wait()

    def start(self, *commands: str) -> subprocess.Popen[str]:
        """Start the driver, with these commands on its way."""
        driver = subprocess.Popen(
            [*self._enter, str(programs() / "test_netdb_driver")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert driver.stdin is not None
        driver.stdin.write("".join(f"{command}\n" for command in commands))
        driver.stdin.flush()
        return driver


def told(driver: subprocess.Popen[str], *more: str) -> list[tuple[str, str]]:
    """What the driver said: error and address of each name, the later commands' too."""
    output, errors = driver.communicate("".join(f"{command}\n" for command in more), timeout=DEADLINE_S)
    assert driver.returncode == 0, output + errors
    return re.findall(r"^resolve (\S+) address=(\S+)$", output, re.MULTILINE)


@pytest.fixture(scope="module")
def namespace() -> Iterator[Namespace]:
    with Namespace.make() as made:
        yield made


def dnsmasq() -> list[str]:
    records = [
        "--host-record=peer.hil.test,192.0.2.1,60",
        "--host-record=brief.hil.test,192.0.2.2,0",
        "--cname=www.hil.test,peer.hil.test",
        "--txt-record=text.hil.test,words",
        "--local=/hil.test/",
        *(f"--host-record=n{n}.hil.test,192.0.2.{10 + n},60" for n in range(5)),
    ]
    alone = ["--no-daemon", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--pid-file"]
    where = [f"--listen-address={SERVER}", "--bind-interfaces"]
    return ["dnsmasq", *alone, *where, "--log-queries", "--log-facility=-", *records]


@pytest.fixture
def server(namespace: Namespace, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    log = tmp_path / "dnsmasq.log"
    with namespace.running(dnsmasq(), log, "started") as process:
        yield process, log


def asked(log: Path, name: str) -> int:
    return log.read_text().count(f"query[A] {name} ")


def test_names_are_found_or_not(namespace: Namespace, server: tuple[subprocess.Popen[bytes], Path]) -> None:
    """A name, an alias, a name that is not there and one without an address, by the server that was set."""
    names = ("peer.hil.test", "www.hil.test", "nobody.hil.test", "text.hil.test", "elsewhere.example")
    found = told(namespace.start(f"server 0 {SERVER}", *(f"resolve {name}" for name in names)))
    nothing = (EAI_FAIL, "none")
    assert found == [("0", "192.0.2.1"), ("0", "192.0.2.1"), nothing, nothing, nothing]


def test_what_was_found_is_known_until_it_expires(
    namespace: Namespace, server: tuple[subprocess.Popen[bytes], Path]
) -> None:
    """An answer is kept as long as its server says; four are, the oldest makes room; case does not matter."""
    _, log = server
    names = ["peer", "PEER", "brief", "brief", *(f"n{n}" for n in range(5)), "n4", "n0"]
    found = told(namespace.start(f"server 0 {SERVER}", *(f"resolve {name}.hil.test" for name in names)))
    assert [error for error, _ in found] == ["0"] * len(names)
    assert found[1] == found[0] == ("0", "192.0.2.1")
    counts = {name: asked(log, f"{name}.hil.test") for name in ("peer", "brief", "n4", "n0")}
    assert counts == {"peer": 1, "brief": 2, "n4": 1, "n0": 2}


def test_answers_to_other_questions_are_not_taken(namespace: Namespace, tmp_path: Path) -> None:
    """Wrong number, wrong name, no response, cut short: none is taken, and none is read too far."""
    with namespace.running(["python3", "-c", LIAR], tmp_path / "liar.log", "listening"):
        found = told(namespace.start("server 0 127.0.0.3", "resolve peer.hil.test"))
    assert found == [("0", "192.0.2.99")]


def test_dead_server_ends_in_time_and_the_next_is_asked(
    namespace: Namespace, server: tuple[subprocess.Popen[bytes], Path]
) -> None:
    """Four questions without an answer end in EAI_FAIL where no other server is known, else with its answer;
    an error that a server tells sends to the next at once."""
    dead = namespace.start(f"server 0 {NOBODY}", "resolve peer.hil.test")
    backup = namespace.start(f"server 0 {NOBODY}", f"server 2 {SERVER}", "resolve peer.hil.test")
    told_no = namespace.start(f"server 0 {SERVER}", f"server 1 {SERVER}", "resolve nobody.hil.test")
    assert told(dead) == [(EAI_FAIL, "none")]
    assert told(backup) == [("0", "192.0.2.1")]
    assert told(told_no) == [(EAI_FAIL, "none")]
    assert asked(server[1], "nobody.hil.test") == 2
