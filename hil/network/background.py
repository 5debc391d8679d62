# SPDX-License-Identifier: Apache-2.0
"""Traffic of a second station while a case is measured: it makes a quiet Wi-Fi repeatably bad.

iperf's client runs where the rack file says, in a namespace with a radio of its own or on another machine;
its server is the rack's host. What arrived is measured, not what was asked for.
"""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hil.base.errors import RigError
from hil.base.finding import Finding
from hil.boards.rack.access_point import Background
from hil.model import Scalar
from hil.network.peers.iperf.process import IperfProcess, Settings, client_command, require_version
from hil.network.peers.iperf.report import Span
from hil.network.process import Process, Spawner, end_process, how_ended

INTERVAL_MS = 500
LASTING_S = 86_400  # longer than any case: it is ended with the case
ARRIVE_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 2.0
POLL_S = 0.02


class Traffic:
    """Traffic on its way. ``finish`` returns what arrived since ``begin``."""

    def __init__(self, background: Background, server: IperfProcess, client: Process, log_path: Path) -> None:
        self._background = background
        self._server = server
        self._client = client
        self._log_path = log_path
        self._receiver = (
            server
            if background.direction == "up"
            else IperfProcess(client, log_path, settings_of(background), server.port)
        )
        self._seen = 0

    def begin(self) -> None:
        """Wait until it arrives. Raises RigError: it does not, with the client's last words."""
        deadline = time.monotonic() + ARRIVE_TIMEOUT_S
        while not self._arrived():
            self.check()
            if time.monotonic() > deadline:
                raise self._error(f"nothing of it arrived within {ARRIVE_TIMEOUT_S:g} s")
            time.sleep(POLL_S)
        self._seen = len(self._arrived())

    def check(self) -> None:
        """Raise RigError where it has ended by itself."""
        code = self._client.returncode
        if code is not None:
            raise self._error(f"iperf's client {how_ended(code)}")

    def finish(self) -> Mapping[str, Scalar]:
        """Return what a record says: what was asked for, and what arrived in the whole intervals since."""
        self.check()
        asked = self._background
        spans = self._arrived()[self._seen :]
        measured_s = sum(span.lasting_s for span in spans)
        arrived_bytes = sum(span.bytes for span in spans)
        facts: dict[str, Scalar] = {
            "station": asked.station,
            "protocol": asked.protocol,
            "direction": asked.direction,
            "asked_kbps": asked.rate_kbps,
            "arrived_kbps": round(8 * arrived_bytes / measured_s / 1000) if measured_s else None,
            "measured_s": round(measured_s, 1),
        }
        if asked.protocol == "udp":
            facts["sent_count"] = sum(span.expected_count or 0 for span in spans)
            facts["lost_count"] = sum(span.lost_count or 0 for span in spans)
        return facts

    def stop(self) -> None:
        """End it. Never raises."""
        end_process(self._client, STOP_TIMEOUT_S)
        self._server.stop()

    def _arrived(self) -> tuple[Span, ...]:
        intervals = self._receiver.report().intervals
        return intervals if self._seen or any(span.bytes for span in intervals) else ()

    def _error(self, what: str) -> RigError:
        said = self._log_path.read_text(errors="replace").strip() if self._log_path.exists() else ""
        last = said.rpartition("\n")[2] or "nothing"
        return RigError(
            f"The background traffic of the station '{self._background.station}' is not there: {what}; "
            f"it said: {last}.",
            log=str(self._log_path),
            next_step="see whether the station is in the network and reaches the host: "
            f"{self._background.station} ping HOST.",
        )


@contextmanager
def traffic(background: Background, spawner: Spawner, address: str, folder: Path) -> Iterator[Traffic]:
    """Have traffic from or to the station while the block runs; yields once it arrives.

    ``address`` is the rack's host's. Raises RigError: iperf is missing, or nothing arrives.
    """
    require_version()
    settings = settings_of(background)
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "background-client.log"
    log.unlink(missing_ok=True)
    server = IperfProcess.start_server(spawner, settings, address, folder / "background-server.log")
    try:
        argv = [*station_words(background), *client_command(settings, address, server.port)]
        made = Traffic(background, server, spawner.spawn(argv, log_path=log), log)
    except BaseException:
        server.stop()
        raise
    try:
        made.begin()
        yield made
    finally:
        made.stop()


def station_words(background: Background) -> list[str]:
    """Return what goes before a program to run it at the station.

    ssh gets a terminal, so that what it started there ends with it.
    """
    words = shlex.split(background.station)
    return ["ssh", "-tt", *words[1:]] if words[0] == "ssh" else words


def settings_of(background: Background) -> Settings:
    return Settings(
        udp=background.protocol == "udp",
        board_is_client=True,  # the station is, here
        reverse=background.direction == "down",
        rate_kbps=background.rate_kbps,
        length_bytes=0,
        amount_bytes=0,
        duration_s=LASTING_S,
        omit_s=0,
        interval_ms=INTERVAL_MS,
        peer_window_bytes=0,
        peer_mss_bytes=0,
        nodelay=False,
        timeout_ms=0,
    )


def check_background(background: Background) -> Finding:
    """Look whether iperf and what reaches the station are there; sends nothing."""
    subject = "background traffic"
    try:
        version = require_version()
    except RigError as error:
        return Finding(subject, ok=False, sentence=error.sentence, mend=error.next_step)
    program = station_words(background)[0]
    if shutil.which(program) is None:
        return Finding(subject, ok=False, sentence=f"{program!r} is not installed.", mend="install it.")
    return Finding(
        subject, ok=True, sentence=f"iperf {version} and {program} are there; a run tries the rest"
    )
