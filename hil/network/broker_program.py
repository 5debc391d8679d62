# SPDX-License-Identifier: Apache-2.0
"""mosquitto as a program: where it is, which ports it gets, how it is started and what it says then."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from hil.base.errors import RigError
from hil.base.process import proc_stat
from hil.network.broker_config import BrokerPorts, SlowDisk
from hil.network.preload.build import build_library
from hil.network.process import Process, Spawner, system_program

START_TIMEOUT_S = 10.0
STATE_TIMEOUT_S = 5.0
POLL_S = 0.01
STATE_POLL_S = 0.001

_RUNNING = re.compile(r"mosquitto version (\S+) running")
_OPENING = re.compile(r"Opening ipv[46] listen socket on port (\d+)")


class PortTakenError(RigError):
    """Someone else listens there; with a free port chosen by us, another one is worth a try."""


@dataclass(frozen=True)
class Preload:
    """What is loaded before mosquitto: ``variables`` of its environment (NAME=value, [] for nothing), and the
    file of TLS keys where it writes one."""

    variables: list[str]
    key_log: Path | None


def prepare_preload(key_log: Path | None, slow_disk: SlowDisk | None, folder: Path) -> Preload:
    """Build what is to be loaded. Keys are logged where that is possible, and else not.

    Raises RigError: ``slow_disk`` is wanted and there is no compiler.
    """
    libraries, variables = [], []
    if slow_disk:
        libraries.append(build_library("slow_disk"))
        variables.append(f"HIL_SLOW_DISK_FOLDER={folder.resolve()}")
        variables.append(f"HIL_SLOW_DISK_RATE={slow_disk.rate_bytes_per_s}")
        variables.append(f"HIL_SLOW_DISK_LATENCY_US={slow_disk.latency_us}")
    written = None
    if key_log:
        with contextlib.suppress(RigError):  # no compiler, no header of OpenSSL
            libraries.append(build_library("key_log"))
            variables.append(f"HIL_KEY_LOG={key_log.resolve()}")
            written = key_log
    given = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()  # what the user loads everywhere stays
    loaded = [f"LD_PRELOAD={':'.join([*map(str, libraries), *given])}"] if libraries else []
    return Preload([*loaded, *variables], written)


def mosquitto_argv(config_path: Path, variables: list[str]) -> list[str]:
    """Return the command that starts it. Raises RigError where mosquitto is not installed."""
    program = system_program("mosquitto", "mosquitto", "Starting the MQTT broker")
    environment = ["env", *variables] if variables else []
    return [*environment, program, "-c", str(config_path.resolve())]


def free_ports(address: str) -> BrokerPorts:
    """Return ports that nobody listens on now. Raises RigError: the address is not this host's."""
    sockets = [socket.socket() for _ in range(4)]
    try:
        for one in sockets:
            one.bind((address, 0))
        tcp, tls, mtls, password = (int(one.getsockname()[1]) for one in sockets)
    except OSError as error:
        raise RigError(
            f"Starting the MQTT broker on {address}: {error.strerror}.",
            next_step="check host.address in the rack file: ip -br address.",
        ) from error
    finally:
        for one in sockets:
            one.close()
    return BrokerPorts(tcp=tcp, tls=tls, mtls=mtls, password=password)


def usual_ports(attempt: int) -> BrokerPorts:
    """Return the ports of attempt 1, 2, …; a rack's own network is not visible from here to look for more."""
    step = 10 * (attempt - 1)
    return BrokerPorts(**{name: port + step for name, port in asdict(BrokerPorts()).items()})


def await_running(process: Process, log_path: Path, from_byte: int, spawner: Spawner) -> str:
    """Wait for mosquitto's own word, in the log from a byte on, that it runs; return its version.

    Raises RigError.
    """
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        ended = process.returncode is not None
        log = log_path.read_bytes()[from_byte:].decode(errors="replace")
        running = _RUNNING.search(log)
        if running and not ended:
            return running.group(1)
        if ended:
            raise _start_error(log, log_path, spawner)
        time.sleep(POLL_S)
    raise RigError(f"The MQTT broker was not up within {START_TIMEOUT_S:.0f} s.", log=str(log_path))


def await_stopped(process: Process, *, stopped: bool) -> None:
    """Wait until the kernel has stopped the process, or lets it run again. Raises RigError."""
    deadline = time.monotonic() + STATE_TIMEOUT_S
    while process.returncode is None:
        try:
            state = proc_stat(process.pid)[0]
        except OSError:
            return  # it has just ended: check() says how
        if (state == "T") == stopped:
            return
        if time.monotonic() > deadline:
            did = "stop" if stopped else "go on"
            raise RigError(
                f"The MQTT broker (mosquitto, pid {process.pid}) did not {did} in {STATE_TIMEOUT_S:.0f} s.",
                next_step="start the run again.",
            )
        time.sleep(STATE_POLL_S)


def _start_error(log: str, log_path: Path, spawner: Spawner) -> RigError:
    if "Address already in use" in log:
        port = (_OPENING.findall(log) or ["?"])[-1]
        return PortTakenError(
            f"Starting the MQTT broker: port {port} is taken.",
            log=str(log_path),
            next_step=f"find who listens there: {spawner.enter_command}ss -ltnp sport = :{port}",
        )
    words = [line for line in log.splitlines() if "rror" in line] or log.splitlines()[-1:]
    return RigError(f"The MQTT broker did not start: {' | '.join(words[-3:])}.", log=str(log_path))
