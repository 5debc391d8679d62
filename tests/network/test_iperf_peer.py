# SPDX-License-Identifier: Apache-2.0
"""The host's iperf and its capture as the board's counterpart; another iperf plays the board."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, FirmwareError, RigError
from hil.model import Case, Scalar
from hil.network.peers.companion import Observed
from hil.network.peers.iperf import merging as facts
from hil.network.peers.iperf import process as settings
from hil.network.peers.iperf.merging import COLUMNS, Captured, merge, settle_losses
from hil.network.peers.iperf.process import IperfProcess, IperfSettings, require_version
from hil.network.peers.iperf.report import parse_report
from hil.network.process import LocalSpawner
from hil.wire import Note
from tests.network.iperf_peers import DATAGRAM_BYTES, LOOPBACK, datagram
from tests.network.iperf_rig import BOARD_PORT, DEFAULTS, IperfLab, iperf_lab, ready, series_of

MAKE_LAB = iperf_lab
pytestmark = pytest.mark.slow

RATE_KBPS = 8000
INTERVAL_S = 0.1


def check_received_over_tcp(outcome: Observed) -> Mapping[str, Scalar]:
    """The rows are iperf's full intervals, and with the partial one they are all that crossed the air."""
    columns, facts = outcome.series.columns, outcome.environment
    assert tuple(columns) == COLUMNS
    assert outcome.series.rows >= 9
    assert set(columns["interval_us"]) == {100_000}
    assert list(columns["received_bps"]) == [count * 80 for count in columns["received_bytes"]]
    assert sum(columns["received_bytes"]) + int(facts["last_partial_bytes"] or 0) == facts["received_bytes"]
    assert facts["received_bytes"] == facts["capture_payload_bytes"]
    assert facts["receiver"] == "host"
    assert facts["iperf_version"] == require_version()
    return facts


def test_a_board_that_sends_over_tcp_is_measured_here(lab: IperfLab) -> None:
    """The board is the client: the rows are what arrived, and the capture is removed."""
    place = lab.place(omit_s=1, duration_s=2)
    outcome = lab.measure_client(place, "-t", "2", "-l", "16384")
    facts = check_received_over_tcp(outcome)
    assert outcome.series.warmup_rows == 10
    assert facts["capture_header_bytes"] == 40 * int(facts["capture_segments_count"] or 0)
    assert facts["capture_syn_mss_bytes"] == facts["capture_mss_bytes"] == 1460
    assert [path.name for path in sorted(place.folder.iterdir())] == ["capture.txt", "iperf.txt"]


def test_a_board_that_sends_over_udp_is_measured_here(lab: IperfLab) -> None:
    """The board is the client: loss and jitter are iperf's, transit differences the capture's. They stand in
    the same rows, and add up to iperf's end report."""
    place = lab.place(protocol="udp", rate_kbps=1000, keep_captures=True)  # what a busy host holds up, too
    outcome = lab.measure_client(place, "-u", "-t", "1", "-b", "1m")
    columns, facts = outcome.series.columns, outcome.environment
    assert outcome.series.rows >= 9
    assert sum(columns["lost_count"]) == facts["report_lost_count"] == 0
    assert [count * DATAGRAM_BYTES for count in columns["expected_count"]] == list(columns["received_bytes"])
    assert sum(columns["received_bytes"]) + int(facts["last_partial_bytes"] or 0) == facts["received_bytes"]
    assert facts["received_bytes"] == DATAGRAM_BYTES * int(facts["report_datagrams_count"] or 0)
    # iperf counts the final datagram, the capture leaves it out
    assert facts["report_datagrams_count"] == int(facts["capture_segments_count"] or 0) + 1
    for jitter, mean, worst in zip(
        columns["jitter_us"],
        columns["transit_difference_mean_us"],
        columns["transit_difference_max_us"],
        strict=True,
    ):
        assert 0 < mean <= worst
        assert jitter > 0  # of the same differences, by iperf's own clock
    kept = lab.folder / str(outcome.environment["capture"])
    assert kept.stat().st_size > 80 * 150  # 85 datagrams, of each the headers


def test_a_board_that_serves_in_reverse_is_measured_here(lab: IperfLab) -> None:
    """The board is the server and sends (-R): the host's client connects once the board is ready."""
    check_received_over_tcp(lab.measure_server(lab.place(role="server", reverse=1)))
    udp = {"protocol": "udp", "rate_kbps": RATE_KBPS}
    outcome = lab.measure_server(lab.place(role="server", reverse=1, **udp), "-u")
    assert outcome.series.rows >= 9
    assert min(outcome.series.columns["jitter_us"]) > 0


def test_a_board_that_serves_keeps_its_own_rows(lab: IperfLab) -> None:
    """The board receives: its rows stay, the host adds what it sent and what the board reported to it."""
    place = lab.place(role="server", protocol="udp", rate_kbps=RATE_KBPS)
    rows = {"interval_us": (100_000, 100_000), "received_bytes": (1, 2), "sent_bytes": (0, 0)}
    outcome = lab.measure_server(place, "-u", columns=rows)
    assert outcome.series.columns == {"interval_us": (100_000, 100_000), "received_bytes": (1, 2)}
    facts = outcome.environment
    assert facts["receiver"] == "board"
    assert facts["report_lost_count"] == 0
    assert f"0/{facts['report_datagrams_count']} (0%)" in lab.board_said()
    assert facts["sent_bytes"] == int(facts["capture_payload_bytes"] or 0) + 1470


def test_a_board_that_receives_in_reverse_keeps_its_own_rows(lab: IperfLab) -> None:
    """The board is the client and receives (-R): what the host sent, also again, the capture holds."""
    outcome = lab.measure_client(lab.place(reverse=1, length_bytes=1000), "-R", "-t", "1", "-l", "1000")
    facts = outcome.environment
    assert facts["receiver"] == "board"
    again_bytes = int(facts["capture_payload_bytes"] or 0) - int(facts["sent_bytes"] or 0)
    again = int(facts["capture_retransmissions_count"] or 0)  # none, but where the host stands still
    assert again_bytes >= 0
    assert (again_bytes > 0) == (again > 0) == (int(facts["retransmits_count"] or 0) > 0)
    assert f"{facts['sent_bytes']} Bytes" in lab.board_said()


def test_a_window_of_the_host_bounds_what_is_in_flight(lab: IperfLab) -> None:
    """peer_window_bytes is what the host advertises, so no more than that is ever unacknowledged."""
    facts = check_received_over_tcp(lab.measure_client(lab.place(peer_window_bytes=5760), "-t", "1"))
    window = int(facts["capture_window_max_bytes"] or 0)
    assert 5760 * 0.9 <= window <= 2 * 5760
    assert int(facts["capture_in_flight_max_bytes"] or 0) <= window
    assert (window == 5760) != ("capture_remarks" in facts)


@pytest.mark.parametrize(("mss_bytes", "segments"), [(160, 32), (1360, 5)])
def test_overhead_is_captured_to_the_byte(lab: IperfLab, mss_bytes: int, segments: int) -> None:
    """5000 bytes at an MSS asked from the host: as many segments, 40 bytes of headers each.

    Debian's iperf, here the board, sends its 60 bytes of header as a segment of their own, which makes one
    more of 1360 bytes.
    """
    place = lab.place(peer_mss_bytes=mss_bytes, amount_bytes=5000, length_bytes=5000)
    outcome = lab.measure_client(place, "-n", "5000", "-l", "5000")
    facts = outcome.environment
    assert facts["capture_syn_mss_bytes"] == facts["capture_mss_bytes"] == mss_bytes
    assert facts["capture_segments_count"] == segments
    assert facts["capture_header_bytes"] == 40 * segments
    # over within the first interval as a rule: one row, the whole transfer
    assert sum(outcome.series.columns["received_bytes"]) == 5000
    assert sum(outcome.series.columns["interval_us"]) == facts["whole_us"]


def test_what_did_not_take_is_an_error_with_both_numbers(
    lab: IperfLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that does not do as it was asked, of MSS or window, gives no figure, but the rig's error; the
    capture stays."""
    place = lab.place(peer_mss_bytes=560)
    server_command = IperfProcess.start_server.__globals__["server_command"]

    def deaf(*arguments: object) -> list[str]:
        words = server_command(*arguments)
        at = words.index("-M")
        return [*words[:at], *words[at + 2 :]]

    with monkeypatch.context() as patched:
        patched.setitem(IperfProcess.start_server.__globals__, "server_command", deaf)
        with pytest.raises(RigError, match=r"MSS .*peer_mss_bytes 560.* 1460"):
            lab.measure_client(place, "-t", "0.5")
    assert (place.folder / "capture.pcapng").exists()
    monkeypatch.setattr(facts, "WINDOW_FACTOR_MAX", 0.5)  # of what Linux makes of a request
    with pytest.raises(RigError, match=r"window .*peer_window_bytes 5760"):
        lab.measure_client(lab.place(peer_window_bytes=5760), "-n", "50000")


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_a_taken_port_in_the_racks_network_is_passed_over(lab: IperfLab, protocol: str) -> None:
    """Another server on 5001 (iperf itself shares UDP ports without a word) sends this one to 5002."""
    place = lab.place(protocol=protocol)
    with lab.attended(place) as (_, told), lab.attended(lab.place(protocol=protocol)) as (_, told_next):
        assert (told["peer_port"], told_next["peer_port"]) == (5001, 5002)


def test_a_taken_port_elsewhere_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a network that is shared, a port that somebody takes each time is a RigError that names it."""
    spawner = LocalSpawner()
    wanted = IperfSettings.of(Case("throughput", DEFAULTS))
    first = IperfProcess.start_server(spawner, wanted, "127.0.0.1", tmp_path / "first.txt")
    try:
        monkeypatch.setitem(IperfProcess.start_server.__globals__, "_free_port", lambda *_: first.port)
        with pytest.raises(RigError, match=rf"port {first.port} is taken.*ss -lntup sport = :{first.port}"):
            IperfProcess.start_server(spawner, wanted, "127.0.0.1", tmp_path / "second.txt")
    finally:
        first.stop()


def test_a_refusal_is_quoted_in_iperfs_words(lab: IperfLab) -> None:
    """A board that says ready and does not listen: the error holds iperf's own words, and who was called."""
    told: list[int] = []
    place = replace(lab.place(role="server"), sends_to=told.append)
    with lab.attended(place) as (companion, _):
        companion.note(ready(BOARD_PORT))
        assert told == [BOARD_PORT]  # what the run sends itself is known to be its own
        with pytest.raises(RigError, match=rf"board {lab.board_address}.*Connection refused"):
            companion.finish(series_of(place.case))


def test_a_board_that_never_was_ready_is_the_firmwares_fault(lab: IperfLab) -> None:
    """Without a note that names a port the host's client cannot start, and the sentence says so."""
    place = lab.place(role="server")
    with lab.attended(place) as (companion, _):
        companion.note(Note(number=1, transfer=1, kind="listening", fields={}))
        companion.check()
        with pytest.raises(FirmwareError, match="'ready'"):
            companion.finish(series_of(place.case))
        companion.note(ready("none"))
        with pytest.raises(FirmwareError, match="no port"):
            companion.check()


def test_a_board_that_never_came_ends_in_bounded_time(lab: IperfLab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that nobody calls is given up after the case's timeout; nothing is left running."""
    monkeypatch.setattr(settings, "SLACK_S", 0.1)
    place = lab.place(timeout_ms=100)
    with (
        lab.attended(place) as (companion, _),
        pytest.raises(RigError, match=r"within 0\.2 s; it said: TCP window size"),
    ):
        companion.finish(series_of(place.case))
    assert companion._iperf is not None
    assert companion._iperf.ended


def test_an_iperf_that_is_killed_is_named_while_the_case_runs(lab: IperfLab) -> None:
    """Killed, neither iperf nor its capture is taken for the board's fault or waited for in vain."""
    with lab.attended(lab.place()) as (companion, _):
        companion.check()
        assert companion._iperf
        assert companion._capture
        companion._iperf._process.kill()
        companion._iperf.wait(20)
        with pytest.raises(RigError, match=r"iperf .*killed by signal 9; it said"):
            companion.check()
        companion._capture.kill()
        companion._capture._process.wait(20)
        with pytest.raises(RigError, match=r"capture .*killed by signal 9") as caught:
            companion.check()
        assert caught.value.next_step


def test_an_iperf_that_stands_still_is_named(lab: IperfLab) -> None:
    """It takes nothing meanwhile, which would be the board's throughput."""
    with lab.attended(lab.place()) as (companion, _):
        assert companion._iperf
        os.kill(companion._iperf.pid, signal.SIGSTOP)
        time.sleep(1.3)
        os.kill(companion._iperf.pid, signal.SIGCONT)
        with pytest.raises(RigError, match=r"iperf stood still for 1\.\d s"):
            companion.check()


def test_a_segment_size_that_no_kernel_takes_is_the_configurations_fault(lab: IperfLab) -> None:
    """Nothing is started for it, and the sentence has the least that Linux takes."""
    place = lab.place(peer_mss_bytes=50)
    with pytest.raises(ConfigError, match="peer_mss_bytes 50") as caught, lab.attended(place):
        pytest.fail("started")
    assert "88 to 1460" in caught.value.next_step


def test_a_board_that_counts_wrong_is_told_so(lab: IperfLab) -> None:
    """A board that says it sent less than arrived has a counter that is wrong."""
    place = lab.place(amount_bytes=5000)
    with pytest.raises(FirmwareError, match=r"sent 4999 .*received 5000"):
        lab.measure_client(place, "-n", "5000", "-l", "5000", device={"sent_bytes": 4999})


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("iperf 3.12 (cJSON 1.7.15)", " is 3.12"),
        ("iperf version 2.0.14a (2 October 2020) pthreads", " is 2.0.14a"),
        ("usage: something else", "'usage: something else'"),
        (None, "not installed"),
    ],
)
def test_another_iperf_is_refused_with_the_way_to_the_right_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str | None, words: str
) -> None:
    """iperf 3, 2.0, anything else and nothing: the error says what was found and how to get 2.1."""
    if said is not None:
        program = tmp_path / "iperf"
        program.write_text(f'#!/bin/sh\necho "{said}"\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RigError, match=rf"{words}.*apt-get install iperf"):
        require_version()


def test_intervals_of_a_silent_air_are_rows_too(lab: IperfLab) -> None:
    """An air that falls silent leaves intervals of 0 bytes, none missing, and its loss in the next one."""
    place = lab.place(protocol="udp", rate_kbps=RATE_KBPS)
    with lab.attended(place) as (companion, told):
        argv = ["iperf", "-u", "-c", lab.rack.host_address, "-p", str(told["peer_port"]), "-t", "1.5"]
        lab.rack.air.gap("all", interval_us=1_000_000, min_us=400_000, max_us=400_000, mode="drop")
        try:
            assert lab.on_board(*argv, "-b", "8m").wait(20) == 0
        finally:
            lab.rack.air.gap("all", interval_us=0)
        outcome = companion.finish(series_of(place.case))
    columns = outcome.series.columns
    assert set(columns["interval_us"]) == {100_000}
    assert 0 in columns["received_bytes"]
    silent = [index for index, count in enumerate(columns["received_bytes"]) if count == 0]
    assert all(columns["expected_count"][index] == 0 for index in silent)
    assert sum(columns["lost_count"]) > 100


REPORTS = """\
[  1] 0.0000-0.1000 sec  132300 Bytes  10583894 bits/sec   0.646 ms 2/92 (2.2%) 3.915/0.444 ms 906 pps
[  1] 0.0000-0.1000 sec  9 datagrams received out-of-order
[  1] 0.1000-0.2000 sec  0.000 Bytes  0.000 bits/sec   0.000 ms 0/0 (0%) -/-/-/- ms 0 pps
[  1] 0.2000-0.2347 sec  1470 Bytes  339325 bits/sec   2.827 ms 1/2 (50%) 41.712/41.712/41.712/0.000 ms
[  1] 0.0000-0.2347 sec  133770 Bytes  4559693 bits/sec   2.827 ms 3/94 (3.2%) 3.660/0.444/41.712/2.037 ms
[  1] 0.0000-0.2347 sec  9 datagrams received out-of-order
"""


LATE_REPORT = """\
[  1] 0.0000-1.0000 sec  1470 Bytes  11760 bits/sec  1/0  1 pps
[  1] Sent 2 datagrams
[  1] Server Report:
[  1] 0.0000-0.0000 sec  4294972297 Bytes  -nan bits/sec   0.000 ms 4294967246/0 (0%) -/-/-/- ms
"""


def test_reports_tell_intervals_from_the_partial_one_and_the_whole() -> None:
    """Full intervals are rows, the last partial one only counts, the line from 0 again is the whole test, of
    one interval too. What iperf prints of a final report that was lost (-nan, counts of 2^32) is none; a data
    line of another form is an error, not a missing row."""
    report = parse_report(REPORTS, INTERVAL_S)
    assert [one.bytes for one in report.intervals] == [132300, 0]
    assert report.intervals[0].out_of_order_count == 9
    assert (report.intervals[0].lost_count, report.intervals[0].expected_count) == (2, 92)
    assert report.total is not None
    assert (report.total.bytes, report.total.lost_count, report.total.jitter_us) == (133770, 3, 2827)
    for lines in itertools.accumulate(REPORTS.splitlines(keepends=True)[:4]):  # as it grows
        assert parse_report(lines, INTERVAL_S).total is None
    line = "[  1] 0.0000-0.1000 sec  1470 Bytes  117600 bits/sec  1=1:0:0:0:0:0:0:0\n"
    single = parse_report(line + line, INTERVAL_S)
    assert (len(single.intervals), single.total is None) == (1, False)
    assert parse_report(LATE_REPORT, INTERVAL_S).peer_report is None
    with pytest.raises(RigError, match=r"12\.9 KBytes.*-e -f b"):
        parse_report("[  1] 0.0000-0.1000 sec  12.9 KBytes  1.06 Mbits/sec\n", INTERVAL_S)


def test_what_comes_after_the_duration_is_no_row(lab: IperfLab) -> None:
    """A receiver that waits on for a final datagram has rows of nothing; neither side's count."""
    case = lab.place(protocol="udp", rate_kbps=RATE_KBPS, interval_ms=500).case
    text = "".join(
        f"[  1] {span} sec  {count} Bytes  8000000 bits/sec   0.5 ms 0/340 (0%) -/-/-/- ms 0 pps\n"
        for span, count in (
            ("0.0000-0.5000", 500_000),
            ("0.5000-1.0000", 500_000),
            ("1.0000-1.5000", 1470),
            ("0.0000-1.7000", 1_002_940),
        )
    )
    report = parse_report(text, 0.5)
    assert len(report.intervals) == 3
    merged, found = merge(series_of(case), report, Captured({}, (), None), IperfSettings.of(case))
    assert merged.columns["received_bytes"] == (500_000, 500_000)
    assert found["last_partial_bytes"] == 2940
    receives = lab.place(protocol="udp", role="server", rate_kbps=RATE_KBPS, interval_ms=500).case
    board = series_of(
        receives, {"received_bytes": 7}, {"interval_us": (5, 5, 5), "received_bytes": (1, 2, 3)}
    )
    merged, found = merge(board, report, Captured({}, (), None), IperfSettings.of(receives))
    assert merged.columns == {"interval_us": (5, 5), "received_bytes": (1, 2)}
    assert found["last_partial_bytes"] == 4


PRINTED_BY_2_2 = """\
[  1] 0.0000-1.0058 sec  248430 Bytes  1976050 bits/sec  169/0/0      -0 pps
[  1] Server Report:
[  1] 0.0000-1.0056 sec  246960 Bytes  1976282 bits/sec   0.000 ms 1/169 (0%)
"""


def test_a_boards_own_report_goes_before_what_the_host_prints_of_it(lab: IperfLab) -> None:
    """iperf 2.2 prints each report's jitter as 0; where the board told nothing there is nothing better."""
    case = lab.place(protocol="udp", role="server", rate_kbps=RATE_KBPS).case
    report = parse_report(PRINTED_BY_2_2, 1.0)
    told = {"lost_count": 1, "datagrams_count": 169, "jitter_us": 30, "out_of_order_count": 0}
    own = series_of(case, {f"report_{name}": value for name, value in told.items()})
    for series, jitter_us in ((own, 30), (series_of(case), 0)):
        _series, found = merge(series, report, Captured({}, (), None), IperfSettings.of(case))
        assert (found["report_lost_count"], found["report_jitter_us"]) == (1, jitter_us)


def datagrams_to(server: IperfProcess, numbers: Sequence[int]) -> None:
    """Send these datagrams in that order, ten an interval; 0 is a pause of five intervals."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect((LOOPBACK, server.port))
        for number in [*numbers, -max(numbers) - 1]:
            if number:
                sender.send(datagram(number))
            threading.Event().wait(INTERVAL_S / 10 if number else 5 * INTERVAL_S)


@pytest.mark.parametrize(
    ("numbers", "lost"),
    [
        ([*range(1, 5), *range(8, 25), 5, 6, 7, *range(25, 45)], 0),  # late by more than an interval
        ([*range(1, 5), *range(8, 25), 5, *range(25, 30), *range(31, 45)], 3),  # 6, 7, 30 never came
        ([1, 2, 5, 4, 3, 8, *range(9, 35)], 2),  # late by less; 6, 7 never came
        # silence, which iperf miscounts
        ([*range(1, 5), *range(8, 25), 0, *range(25, 30), *range(31, 45)], 4),
    ],
)
def test_a_late_datagram_is_no_loss_in_the_rows(tmp_path: Path, numbers: Sequence[int], lost: int) -> None:
    """The rows' losses are what never came, in whichever interval a late one came."""
    long = {"duration_s": 10, "protocol": "udp", "length_bytes": DATAGRAM_BYTES}  # a busy host sends late
    case = Case("throughput", DEFAULTS | long)
    wanted = IperfSettings.of(case)
    server = IperfProcess.start_server(LocalSpawner(), wanted, LOOPBACK, tmp_path / "iperf.txt")
    try:
        datagrams_to(server, numbers)
        assert server.wait(20)
        report = server.report()
    finally:
        server.stop()
    merged, found = merge(series_of(case), report, Captured({}, (), None), wanted)
    assert sum(merged.columns["lost_count"]) == lost, server.said()
    assert found["report_lost_count"] == lost or 0 in numbers


def test_a_board_that_receives_follows_the_same_rule() -> None:
    """The board takes late datagrams off later intervals, so that a loss of those seems to be none."""
    columns = {
        "expected_count": (20, 10, 10, 10),
        "received_bytes": (1500, 1500, 900, 1100),  # 5 missing; these 5; 1 missing; one that came twice
        "lost_count": (5, 0, 0, 0),
        "out_of_order_count": (0, 5, 0, 0),
    }
    assert settle_losses(columns, length_bytes=100, whole_lost=1) == (0, 0, 1, 0)
    assert settle_losses(columns, length_bytes=100, whole_lost=0) == (0, 0, 0, 0)
    twice = {**columns, "received_bytes": (1600, 1500, 900, 1100)}
    assert settle_losses(twice, length_bytes=100, whole_lost=None) == (0, 0, 1, 0)


@pytest.mark.parametrize(
    ("captured", "lost", "count", "of_the_host"),
    [
        (1277, 76, 1278, 76),  # all that was sent passed the interface; iperf stood still
        (7483, 18029, 25514, None),  # the air's loss, and a final datagram that came late
        (1227, 76, 1278, 26),  # some of either
        (None, 76, 1278, None),  # a capture that is not whole
        (1277, 0, 1278, None),
    ],
)
def test_what_the_host_itself_lost_is_told(
    lab: IperfLab, captured: int | None, lost: int, count: int, of_the_host: int | None
) -> None:
    """Datagrams that the capture has and iperf has not are the rig's loss, not the air's."""
    case = lab.place(protocol="udp").case
    line = f"[  1] %s sec  147000 Bytes  117600 bits/sec   0.5 ms {lost}/{count} (0%%) -/-/-/- ms 0 pps\n"
    report = parse_report(line % "0.0000-0.1000" + line % "0.0000-1.0000", INTERVAL_S)
    _series, found = merge(series_of(case), report, Captured({}, (), None, captured), IperfSettings.of(case))
    assert found.get("host_lost_count") == of_the_host
