# SPDX-License-Identifier: Apache-2.0
"""iperf 2.1 on the rack's host as the board's counterpart, with a capture of the board's traffic."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from hil.base.errors import ConfigError, FirmwareError, HilError, RigError
from hil.model import Scalar, Series
from hil.network.capture import Capture
from hil.network.dissect.tshark import require_tshark
from hil.network.peers.companion import Companion, Observed, Place
from hil.network.peers.iperf.merging import analyse, merge
from hil.network.peers.iperf.process import IperfProcess, IperfSettings, require_version
from hil.network.peers.iperf.report import Report
from hil.network.standstill import Standstill
from hil.wire import Note

READY = "ready"
PORT_FIELD = "port"
CAPTURE_FILE = "capture.pcapng"
REPORT_FILE = "iperf.txt"
MSS_MIN_BYTES = 88  # Linux: TCP_MIN_MSS (include/net/tcp.h)


def _watched(iperf: IperfProcess) -> Standstill:
    return Standstill("The host's iperf", lambda: iperf.pid)


class IperfCompanion(Companion):
    """One case of `throughput`: a server for a board that is the client, a client for one that serves."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._settings = IperfSettings.of(place.case)
        self._version = ""
        self._capture: Capture | None = None
        self._iperf: IperfProcess | None = None
        self._standstill: Standstill | None = None
        self._trouble: HilError | None = None

    def start(self) -> Mapping[str, str | int]:
        """Start the capture, and iperf's server where the board is the client.

        Raises RigError: iperf, dumpcap or tshark is missing or of no use, every port is taken. ConfigError: a
        segment size that no Linux takes.
        """
        place = self._place
        self._check_mss()
        self._version = require_version()
        require_tshark()
        self._capture = Capture.start(
            place.spawner,
            [place.interface],
            self._file(CAPTURE_FILE),
            capture_filter=f"host {place.board_address}",
        )
        if not self._settings.board_is_client:
            return {}
        self._iperf = IperfProcess.start_server(
            place.spawner, self._settings, place.host_address, self._file(REPORT_FILE)
        )
        self._standstill = _watched(self._iperf)
        return {"peer_host": place.host_address, "peer_port": self._iperf.port}

    def note(self, note: Note) -> None:
        """Start the client once the board's server is ready, which the board says until a client has come."""
        if note.kind != READY or self._iperf is not None or self._settings.board_is_client:
            return
        place = self._place
        try:
            port = _port_of(note)
            place.sends_to(port)
            self._iperf = IperfProcess.start_client(
                place.spawner, self._settings, place.board_address, port, self._file(REPORT_FILE)
            )
            self._standstill = _watched(self._iperf)
        except HilError as error:
            self._trouble = self._trouble or error

    def check(self) -> None:
        """Raise RigError with iperf's own words where it has failed or stood still, and what a note could not
        do."""
        if self._trouble:
            raise self._trouble
        if self._standstill:
            self._standstill.check()
        if self._capture is not None:
            self._capture.check()
        if self._iperf is None or not self._iperf.ended:  # what it is still printing is not whole
            return
        report = self._iperf.report()
        if report.total is None:
            raise self._failed(self._iperf, report, self._iperf.how_it_ended)

    def finish(self, series: Series) -> Observed:
        """Wait for iperf's end, read report and capture, and make the receiver's intervals the rows."""
        self.check()
        if self._iperf is None:
            raise FirmwareError(
                f"The board's server ended without saying {READY!r}, so the host's client was never started.",
                next_step="look at the console: hil board console.",
            )
        assert self._capture is not None
        report = self._await_report(self._iperf)
        if self._standstill:
            self._standstill.check()
        counts = self._capture.stop()
        captured = analyse(
            self._capture.path,
            counts,
            self._settings,
            port=self._iperf.port,
            board=self._place.board_address,
            host=self._place.host_address,
        )
        merged, facts = merge(series, report, captured, self._settings)
        kept = self._keep_or_remove(self._capture)
        return Observed(merged, {"iperf_version": self._version, **facts, **captured.facts, **kept})

    def stop(self) -> None:
        """End iperf and the capture. A case that failed leaves its capture behind."""
        if self._standstill:
            self._standstill.end()
        if self._iperf is not None:
            with contextlib.suppress(HilError, OSError):
                self._iperf.stop()
        if self._capture is not None:
            with contextlib.suppress(HilError, OSError):
                self._capture.kill()

    def _check_mss(self) -> None:
        asked = self._settings.peer_mss_bytes
        if 0 < asked < MSS_MIN_BYTES and not self._settings.udp:
            raise ConfigError(
                f"{self._place.case.case_id}: peer_mss_bytes {asked} is below the minimum of the "
                "host's kernel.",
                next_step=f"make it 0 (the kernel's own) or {MSS_MIN_BYTES} to 1460.",
            )

    def _await_report(self, iperf: IperfProcess) -> Report:
        ended = iperf.wait(self._settings.end_timeout_s)
        report = iperf.report()
        if not ended and report.total is None:
            raise self._failed(iperf, report, f"did not end within {self._settings.end_timeout_s:g} s")
        iperf.stop()
        if report.total is None:
            raise self._failed(iperf, report, iperf.how_it_ended)
        return report

    def _failed(self, iperf: IperfProcess, report: Report, how: str) -> RigError:
        words = "; ".join(report.trouble) or _last_line(iperf.said()) or "nothing"
        address = self._place.board_address
        return RigError(
            f"The host's iperf {self._version} (port {iperf.port}, board {address}) {how}; it said: {words}.",
            log=str(iperf.log_path),
            next_step="check in the capture beside that file whether board and host reach each other.",
        )

    def _keep_or_remove(self, capture: Capture) -> Mapping[str, Scalar]:
        if self._place.keep_captures:
            run_folder = self._place.folder.parents[2]  # out/<run>/peer/<board>/<nn>-<bench>
            return {"capture": str(capture.path.relative_to(run_folder))}
        capture.path.unlink(missing_ok=True)
        return {}

    def _file(self, name: str) -> Path:
        return self._place.folder / name


def _port_of(note: Note) -> int:
    text = note.fields.get(PORT_FIELD, "")
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise FirmwareError(f"The board's note {READY!r} names no port: {dict(note.fields)}.")
    return int(text)


def _last_line(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip(" -")]
    return lines[-1] if lines else ""
