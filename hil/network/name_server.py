# SPDX-License-Identifier: Apache-2.0
"""A name server that knows one name: dnsmasq, for boards that are told to resolve their peer's name."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from hil.base.errors import RigError
from hil.network.process import Process, Spawner, end_process, how_ended

PEER_NAME = "peer.hil.test"  # of the rack's host; nothing below .test is ever registered (RFC 6761)
PORT = 53  # a board's resolver asks nowhere else (lwIP's dns_setserver() takes an address only)
START_TIMEOUT_S = 5.0
STOP_TIMEOUT_S = 3.0
POLL_S = 0.01
INSTALL = "sudo apt-get install dnsmasq-base"


class NameServer:
    """A running dnsmasq. ``address`` is where it answers."""

    def __init__(self, process: Process, address: str, name: str, log_path: Path) -> None:
        self.address = address
        self.name = name
        self.log_path = log_path
        self._process = process

    @classmethod
    def start(cls, spawner: Spawner, address: str, name: str, log_path: Path) -> NameServer:
        """Answer ``name`` with ``address``, on that address; returns when it listens.

        Every other name is refused, so nothing is asked outside. Each question and answer is logged.
        Raises RigError: dnsmasq missing (how to install it), port 53 taken, or its last words.
        """
        log_bytes = log_path.stat().st_size if log_path.exists() else 0
        process = spawner.spawn([_program(), *_options(address, name)], log_path=log_path)
        try:
            _await_listening(process, address, log_path, log_bytes, spawner)
        except BaseException:
            process.kill()
            raise
        return cls(process, address, name, log_path)

    def check(self) -> None:
        """Raise RigError when it is no longer there."""
        code = self._process.returncode
        if code is not None:
            raise RigError(
                f"The name server (dnsmasq, pid {self._process.pid}, {self.address}) {how_ended(code)}.",
                log=str(self.log_path),
                next_step="start the run again.",
            )

    def stop(self) -> None:
        """End it; does nothing when it has ended. Never raises."""
        end_process(self._process, STOP_TIMEOUT_S)


def _program() -> str:
    found = shutil.which("dnsmasq") or shutil.which("dnsmasq", path=os.pathsep.join(_SYSTEM_PATHS))
    if found is None:
        raise RigError("Starting the name server: dnsmasq is not installed.", next_step=INSTALL)
    return found


_SYSTEM_PATHS = ("/usr/sbin", "/usr/local/sbin")


def _options(address: str, name: str) -> list[str]:
    return [
        "--keep-in-foreground",
        "--conf-file=/dev/null",
        "--no-resolv",
        "--no-hosts",
        "--no-poll",
        "--bind-interfaces",
        f"--listen-address={address}",
        f"--port={PORT}",
        "--user=root",  # a user namespace holds no other user to change to
        "--group=root",
        "--pid-file=",
        "--log-facility=-",  # stderr
        "--log-queries",
        f"--host-record={name},{address}",
        f"--local=/{name}/",  # so that its IPv6 address is "none" instead of a refusal
        "--local-ttl=0",  # each lookup is a lookup
    ]


def _await_listening(
    process: Process, address: str, log_path: Path, from_byte: int, spawner: Spawner
) -> None:
    """Wait for dnsmasq's own word, in the log from a byte on, that it runs. Raises RigError."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        ended = process.returncode is not None
        log = log_path.read_bytes()[from_byte:].decode(errors="replace")
        if ended:
            raise _start_error(log, address, log_path, spawner)
        if "started, version" in log:
            return
        time.sleep(POLL_S)
    raise RigError(f"The name server was not up within {START_TIMEOUT_S:.0f} s.", log=str(log_path))


def _start_error(log: str, address: str, log_path: Path, spawner: Spawner) -> RigError:
    words = " | ".join([line.strip() for line in log.splitlines() if line.strip()][-2:])
    sentence = f"Starting the name server on {address}, port {PORT}: {words or 'it said nothing'}."
    next_step = "read its log."
    if "Address already in use" in log:
        next_step = f"find who listens there, and end it: {spawner.enter_command}ss -lnup sport = :{PORT}"
    elif "ermission denied" in log:
        next_step = f"let programs listen there: sudo sysctl net.ipv4.ip_unprivileged_port_start={PORT}"
    elif "Cannot assign requested address" in log:
        next_step = "check host.address in the rack file: ip -br address."
    return RigError(sentence, log=str(log_path), next_step=next_step)
