# SPDX-License-Identifier: Apache-2.0
"""Published studies beside our records: every figure against one that was computed by hand."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hil.base.errors import ConfigError, Undecided
from hil.metrics.stats import quantile_interval
from hil.model import Entry, Fault, NotRun, RunRecord
from hil.reports.studies.build import documents_of
from hil.reports.studies.document import Document, number
from hil.reports.studies.esp32_tcpip.rates import is_plain, throughput_of
from hil.reports.studies.estimate import ALPHA, estimate, mean_of_runs, mean_whole_ms, median, samples_needed
from hil.reports.studies.loader import load_study
from tests.reports.study_pages import cells, claim, data, table
from tests.reports.study_records import RUN_ID, gateway_record, throughput_record

FLAT = (20.0,) * 20


def document(entries: Iterable[Entry], study: str = "esp32-tcpip") -> Document:
    return documents_of(load_study(study), list(entries), RUN_ID)[0]


def answers(shown: Document) -> str:
    return "\n".join(shown.said(one) for section in shown.sections for one in section.answers)


def ramp(low: float, high: float, count: int = 20) -> list[float]:
    """Return evenly spaced rates."""
    return [low + (high - low) * step / (count - 1) for step in range(count)]


def steady(mbps: float, **parameters: Any) -> RunRecord:
    return throughput_record(ramp(mbps * 0.99, mbps * 1.01), **parameters)


# Estimators


def test_the_published_way_is_the_mean_of_three_runs_of_the_whole_test() -> None:
    """Slow start and partial interval count; each run is rounded to two decimals; a fourth is left out."""
    totals = [(1_000_000, 1_000_000), (1_250_000, 1_000_001), (2_000_000, 1_500_000), (9, 1)]
    records = [
        throughput_record(FLAT, peer={"received_bytes": received, "whole_us": took_us})
        for received, took_us in totals
    ]
    ours = throughput_of(records)
    # 8.00, 9.99999 → 10.00, 10.6667 → 10.67
    assert ours.theirs == pytest.approx((8.00 + 10.00 + 10.67) / 3)
    assert ours.runs == 3
    assert mean_of_runs([], 3) is None


def test_ours_are_the_intervals_after_the_start() -> None:
    """The median is of the steady intervals alone: neither the start nor the whole test's bytes move it."""
    ours = throughput_of([throughput_record((10.0, 30.0, 20.0, 50.0, 40.0), start_mbps=(1.0, 1.0, 1.0))])
    assert (ours.n, ours.boots) == (5, 1)
    assert ours.p50.value == 30.0
    assert ours.theirs is not None
    assert ours.theirs < 20


@pytest.mark.parametrize(("share", "needed"), [(0.5, 5), (0.95, 59), (0.05, 59), (0.99, 299)])
def test_a_percentile_needs_samples_on_both_sides(share: float, needed: int) -> None:
    """One sample fewer, and no value is shown but how many are needed; 0.95 ** 59 is the first below 5 %."""
    assert samples_needed(share) == needed
    assert max(share, 1 - share) ** needed <= 0.05 < max(share, 1 - share) ** (needed - 1)
    values = [float(n) for n in range(needed)]
    assert estimate(values[1:], share).text == f"n < {needed}"
    assert estimate(values, share).value is not None
    bounds = quantile_interval(values, share, ALPHA)
    assert math.isfinite(bounds.low)
    assert math.isfinite(bounds.high)


def test_a_phase_is_the_mean_of_whole_milliseconds() -> None:
    """Times are cut, as the clocks that were compared had whole ms."""
    assert mean_whole_ms([9_999, 10_000, 11_001]) == pytest.approx((9 + 10 + 11) / 3)
    assert mean_whole_ms([]) is None


SIMULATIONS = 300
SEEN_AT_MOST = 0.09  # of 300 simulations at 5 % this is exceeded once in a thousand times


def stream(random: np.random.RandomState, rho: float, rows: int = 80) -> list[float]:
    """Return rates around 20 Mbit/s with a deviation of 1, each of which depends on the one before."""
    noise = [random.standard_normal()]
    for step in random.standard_normal(rows - 1):
        noise.append(rho * noise[-1] + math.sqrt(1.0 - rho**2) * step)
    return [20.0 + value for value in noise]


def test_the_mean_of_a_stream_is_bounded_as_often_as_it_says() -> None:
    """A stream in which each interval resembles the one before: either end is wrong in 5 % of the cases."""
    random = np.random.RandomState(20220112)
    found = [throughput_of([throughput_record(stream(random, 0.9))]).mean for _ in range(SIMULATIONS)]
    assert sum(one.low > 20.0 for one in found) / SIMULATIONS < SEEN_AT_MOST
    assert sum(one.high < 20.0 for one in found) / SIMULATIONS < SEEN_AT_MOST


def test_a_boot_counts_once() -> None:
    """Boots half as far apart as rows, two tests each: the ends of mean and median keep their 5 %."""
    random = np.random.RandomState(20260112)
    wrong = {"mean": [0, 0], "median": [0, 0]}
    for _ in range(SIMULATIONS):
        rates = {
            boot: shift + random.standard_normal((2, 20))
            for boot, shift in enumerate(20.0 + 0.5 * random.standard_normal(5))
        }
        records = [throughput_record(list(own), boot_index=boot) for boot in rates for own in rates[boot]]
        pooled = [(value, boot) for boot in rates for value in rates[boot].ravel()]
        values, boots = zip(*pooled, strict=True)
        for name, one in (("mean", throughput_of(records).mean), ("median", median(values, boots))):
            wrong[name][0] += one.low > 20.0
            wrong[name][1] += one.high < 20.0
    assert max(count for counts in wrong.values() for count in counts) / SIMULATIONS < SEEN_AT_MOST


def test_percentiles_have_no_interval() -> None:
    """They describe the intervals that were measured, which depend on one another; the mean has bounds."""
    ours = throughput_of([throughput_record(ramp(10.0, 20.0, 300))])
    assert all(math.isinf(one.low) and math.isinf(one.high) for one in ours.steady.values())
    assert ours.mean.is_bounded
    assert not throughput_of([throughput_record((10.0, 20.0, 30.0))]).mean.is_bounded


@pytest.mark.parametrize(
    "changed", ["amount_bytes", "length_bytes", "nodelay", "reverse", "mss_bytes", "peer_window_bytes"]
)
def test_a_baseline_has_nothing_set(changed: str) -> None:
    """Whatever is not iperf's own choice makes another case of a test."""
    assert is_plain(throughput_record(FLAT))
    assert not is_plain(throughput_record(FLAT, **{changed: 1}))


# esp32-tcpip


def test_udp_received_at_iperfs_own_rate_is_called_what_it_is() -> None:
    """1.07 Mbit/s is the sender's choice: the row has no corrected value, and says why."""
    shown = document([steady(1.05, protocol="udp", role="server")])
    assert cells(shown, "baseline", "UDP RX")[1:3] == ("1.07", "see note")
    assert re.search(r"UDP RX\b.* -b .*ramp", " ".join(table(shown, "baseline").notes))


def test_udp_sent_compares_with_the_highest_offered_rate() -> None:
    """Espressif's iperf sends as fast as it can, so lower steps of the ramp do not count."""
    records = [steady(kbps / 1000, protocol="udp", role="client", rate_kbps=kbps) for kbps in (5000, 40000)]
    assert data(document(records), "baseline", label="UDP TX")["ours"]["p50"]["value"] == pytest.approx(40.0)


def test_a_missing_case_leaves_its_row_and_says_why() -> None:
    """From the fault or the not-run of the journal; else that the suite has no such case."""
    fault = Fault("", "rig", 3, "iperf died", "v1", throughput_record(FLAT, role="server").case_id)
    not_run = NotRun("", "v1", throughput_record(FLAT, peer_mss_bytes=360).case_id, "board lost")
    shown = document([steady(20.0), fault, not_run])
    assert cells(shown, "baseline", "TCP RX")[3] == "not measured"
    for table_id, label, why in (
        ("baseline", "TCP RX", "iperf died"),
        ("baseline", "UDP RX", "suite"),
        ("segment-send", "400 B", "board lost"),
    ):
        (note,) = (one for one in table(shown, table_id).notes if re.match(f"{label}.* not measured: ", one))
        assert why in note


def test_a_lost_table_is_called_lost_and_shows_what_we_measured() -> None:
    """A row for each size that was measured; without any, one row that says so."""
    shown = document([steady(20.0), steady(5.0, role="server", peer_window_bytes=5760)])
    assert cells(shown, "window-receive", "5,760 B")[1] == "lost"
    assert cells(shown, "window-send", "any size")[1:3] == ("lost", "not measured")
    lost, defect = table(shown, "window-receive").notes[:2]
    assert (lost.partition(" ")[0], "-W" in defect) == ("Lost:", True)


def test_a_baseline_that_moved_is_warned_of() -> None:
    """Drift of the last turn against the first in %; a warning where it exceeds the turns' own intervals."""
    moved = document([steady(mbps, turn=turn) for turn, mbps in enumerate((20.0, 20.2, 18.0))])
    drift = data(moved, "drift", label="TCP TX")
    assert drift["drift"] == pytest.approx(-0.1)
    assert drift["exceeds"] is True
    (warning,) = (moved.said(one) for section in moved.sections for one in section.warnings)
    assert re.match("Virtual: .* TCP TX .* -10.0 %", warning)
    still = document([steady(20.0, turn=turn) for turn in range(3)])
    assert not [one for section in still.sections for one in section.warnings]


def test_sizes_that_cannot_be_told_apart_are_named() -> None:
    """The best size has company where intervals overlap, and none where they do not."""
    close = [steady(mbps, peer_mss_bytes=size) for size, mbps in ((160, 5.0), (1160, 20.0), (1360, 20.01))]
    assert re.search(r"Virtual: .* of 3 is 1,360 B .*1,160 and 1,360 B", answers(document(close)))
    assert "provably slower in this" in answers(document(close[:2]))
    again = [replace(record, boot_index=1) for record in close[:2]]
    assert "provably slower." in answers(document([*close[:2], *again]))


def test_a_claim_is_supported_contradicted_or_undecided() -> None:
    """TX > RX in each pair that differs in the direction alone; the largest size against the smallest."""
    both = [steady(30.0, role="client"), steady(20.0, role="server")]
    against = [*both, steady(5.0, peer_mss_bytes=160), steady(6.0, role="server", peer_mss_bytes=160)]
    equal = [steady(20.0, role="client"), steady(20.0, role="server")]
    assert "160 B" in claim(document(against), "tx-exceeds-rx")[1]
    for records, verdict in (
        (both, "supported"),
        (against, "contradicted"),
        (equal, "undecided"),
        (both[:1], "undecided"),
    ):
        assert claim(document(records), "tx-exceeds-rx")[0] == verdict
    sizes = [
        steady(size / 100, role=role, peer_mss_bytes=size)
        for size in (160, 1360)
        for role in ("client", "server")
    ]
    assert claim(document(sizes), "receive-large-segments")[0] == "supported"
    assert claim(document(sizes), "send-small-segments")[0] == "contradicted"


def test_a_size_between_that_contradicts_leaves_a_claim_open() -> None:
    """The ends alone decide nothing where a size between is slower than the smallest; it is named."""

    def told(middle: float) -> tuple[str, str]:
        rates = {160: 6.03, 1160: middle, 1440: 6.80}
        return claim(
            document([steady(mbps, role="server", peer_mss_bytes=size) for size, mbps in rates.items()]),
            "receive-large-segments",
        )

    verdict, reason = told(5.29)
    assert verdict == "undecided"
    assert re.search(r"6\.03 .*160 B.*6\.80 .*1,440 B.*1,160 B .*slower than 160 B \(5\.29", reason)
    assert "faster than 1,440 B (9.00" in told(9.0)[1]
    assert told(6.5)[0] == "supported"
    assert told(6.85)[0] == "supported"  # provable, and next to nothing


def test_pairs_share_their_chance_of_an_error() -> None:
    """What contradicts the claim alone does not among twenty pairs, one of which may differ by chance."""
    random = np.random.RandomState(7)
    noise = random.standard_normal(100) / 10
    sent = throughput_record([20.0 + mbps for mbps in noise])
    ours = throughput_of([sent]).mean
    apart = 1.4 * (ours.high - ours.low)  # intervals at 5 % do not overlap, those at a twentieth do
    against = [sent, throughput_record([20.0 + apart + mbps for mbps in noise], role="server")]
    assert claim(document(against), "tx-exceeds-rx")[0] == "contradicted"
    others = [
        throughput_record([20.0 + mbps for mbps in noise], role=role, peer_mss_bytes=1000 + n)
        for role in ("client", "server")
        for n in range(19)
    ]
    verdict, reason = claim(document([*against, *others]), "tx-exceeds-rx")
    assert verdict == "undecided", reason


def test_a_rate_whose_end_is_not_known_is_shown_at_both() -> None:
    """UDP TX: the source does not say whether sender or receiver was read; 20 Mbit/s sent, half received."""
    whole = {"sent_bytes": 2_500_000, "received_bytes": 1_250_000, "whole_us": 1_000_000}
    record = steady(10.0, protocol="udp", role="client", rate_kbps=100000, peer=whole)
    assert cells(document([record]), "baseline", "UDP TX")[3] == "sent 20.00, received 10.00 (1)"


def test_equal_offers_over_udp_are_no_comparison_of_directions() -> None:
    """What counts is the most that arrived in each direction, not that both carry a small offer."""
    steps = [(5000, 5.0, "client"), (5000, 5.2, "server"), (40000, 30.0, "client"), (40000, 20.0, "server")]
    records = [steady(mbps, protocol="udp", role=role, rate_kbps=kbps) for kbps, mbps, role in steps]
    verdict, reason = claim(document(records), "tx-exceeds-rx")
    assert (verdict, re.findall(r"\d+", reason)) == ("supported", ["1", "1", "0"])


def test_the_ramp_has_offered_sent_received_and_lost() -> None:
    """45 of 100 datagrams of each of 20 steady intervals; the warm-up's do not count."""
    records = [steady(20.0, protocol="udp", role="server", rate_kbps=40000, lost=45)]
    step = data(document(records), "ramp", direction="RX")
    assert (step["offered_mbps"], step["lost"], step["expected"]) == (40.0, 900, 2000)
    assert cells(document(records), "ramp", "RX")[4].startswith("45.0 % [43.")
    own = document([steady(1.05, protocol="udp", role="server")])
    assert cells(own, "ramp", "RX")[1] == "1.05 (own)"


def test_what_the_board_sent_counts_by_the_time_that_it_was_sending() -> None:
    """15 MB in 3 s are 40 Mbit/s, however long the board then waited for the receiver's report."""
    record = steady(
        29.0,
        protocol="udp",
        rate_kbps=40000,
        peer={"sent_bytes": 15_000_000, "received_bytes": 11_000_000, "whole_us": 3_280_000},
        device={"sent_us": 3_000_000},
    )
    shown = document([record])
    assert cells(shown, "ramp", "TX")[1:3] == ("40.00", "40.00")
    assert cells(shown, "baseline", "UDP TX")[3].startswith("sent 40.00, received 26.83")
    received = replace(record, parameters={**record.parameters, "role": "server"})
    assert cells(document([received]), "ramp", "RX")[2] == "36.59"


def test_one_burst_of_loss_proves_nothing_and_the_hosts_own_is_told() -> None:
    """40 of 2000 datagrams in one interval may be no loss at all; those that the host lost are named."""
    record = steady(5.0, protocol="udp", rate_kbps=5000, peer={"host_lost_count": 38})
    losses = tuple(40 if index == 7 else 0 for index in range(record.rows))
    shown = document([replace(record, columns={**record.columns, "lost_count": losses})])
    assert data(shown, "ramp", direction="TX")["lost"] == 40
    (low,) = re.findall(r"\[(.*),", cells(shown, "ramp", "TX")[4])
    assert float(low) < 0.1
    assert "TX at 5.00 Mbit/s: 38 " in " ".join(table(shown, "ramp").notes)


def test_windows_are_shown_as_asked_as_seen_and_as_they_limit() -> None:
    """5760 B of window at a round trip of 4 ms allow 11.52 Mbit/s."""
    seen = {"capture_window_max_bytes": 5760, "capture_in_flight_max_bytes": 5700, "capture_rtt_p50_us": 4000}
    shown = document([steady(11.0, role="server", window_bytes=5840, peer=seen)])
    cells = table(shown, "windows").rows[0]
    assert cells[:6] == ("RX, receiver", "5,840", "5,760", "5,700", "4,000", "11.52")


def test_headers_are_set_beside_what_the_capture_counts() -> None:
    """960 published, 1280 corrected; 32 × 52 = 1664 captured; whole bytes have no decimals."""
    counted = {"capture_segments_count": 32, "capture_payload_bytes": 5000, "capture_header_bytes": 32 * 52}
    shown = document([throughput_record(FLAT, peer_mss_bytes=160, amount_bytes=5000, peer=counted)])
    row = cells(shown, "overhead", "packages of 200 B")
    assert row[1:] == ("960", "1,280", "1,664", "52", "156.2")
    assert cells(shown, "overhead", "packages of 1400 B")[3] == "not measured"


def test_a_chart_is_of_the_figures_that_the_file_names() -> None:
    """Ours with its interval and what was published over the size; of the ramp a line for each direction."""
    sizes = [throughput_record(ramp(19.0, 21.0, 40), peer_mss_bytes=size) for size in (160, 360)]
    picture = table(document(sizes), "segment-send").picture
    assert picture is not None
    ours, published = picture.lines
    assert [(x, y) for x, y, *_ in ours.points] == [(160, pytest.approx(20.0)), (360, pytest.approx(20.0))]
    assert all(low is not None and high is not None and low < y < high for _, y, low, high in ours.points)
    assert published.points[:2] == ((160, 8.65, None, None), (360, 18.58, None, None))
    assert table(document(sizes[:1]), "segment-send").picture is None
    assert table(document([steady(20.0), steady(19.0, role="server")]), "baseline").picture is None
    steps = [(role, kbps) for role in ("client", "server") for kbps in (5000, 40000)]
    offered = [steady(kbps / 1000, protocol="udp", role=role, rate_kbps=kbps) for role, kbps in steps]
    drawn = table(document(offered), "ramp").picture
    assert drawn is not None
    assert {line.name: [x for x, *_ in line.points] for line in drawn.lines} == {
        "RX, mean": [5.0, 40.0],
        "TX, mean": [5.0, 40.0],
    }


def test_applications_are_measured_against_what_95_percent_of_the_intervals_reach() -> None:
    """Of intervals from 10 to 20 Mbit/s 95 % reach 10.5: a 4K stream of 15 does not fit, 1080p twice."""
    rows = table(document([throughput_record(ramp(10.0, 20.0, 101), role="server")]), "applications").rows
    received = {row[0]: row[4] for row in rows}
    assert (received["video, 4K"], received["video, 1080p"]) == ("does not fit", "fits 2 times")
    assert received["firmware update of 1 MB"] == "0.762 s"
    assert any("6,758" in row[3] and row[4] == "–" for row in rows)


# mqtt-http-rtt

RTT = ((20.0, 10.4, 10.0, 10.6, 10.2), (22.0, 10.4, 10.0, 10.6, 10.2))


def test_a_phase_stands_beside_the_published_mean() -> None:
    """Their way: the first run's mean of whole ms over two clocks, half the rtt here; ours: the rtt."""
    records = [gateway_record(RTT, boot_index=boot) for boot in range(2)]
    shown = document(records, "mqtt-http-rtt")
    row = cells(shown, "phases", "baseline, phase 1")
    # payload: 10, 5, 5, 5, 5 ms
    assert row[1:5] == ("9.6", "single", "6.00", "10.40 [10.00, 20.00]")
    assert row[-2:] == ("10", "2")
    assert cells(shown, "phases", "tight, phase 2")[2] == "not measured"


def test_orders_and_settings_are_never_mixed() -> None:
    """Single, together, interleaved and other settings have their own rows; 'together' is first."""
    records = [
        gateway_record(RTT),
        gateway_record(RTT, qos=1),
        gateway_record(RTT, profile="all", order="interleaved", profiles=(0, 1, 2)),
        gateway_record(RTT, profile="all", order="together", profiles=(0, 1, 2)),
    ]
    shown = table(document(records, "mqtt-http-rtt"), "phases")
    names = [cells[2] for cells in shown.rows[:4]]
    assert names == ["together", "single", "single; qos=1", "interleaved"]
    assert {cells[-2] for cells in shown.rows[:4]} == {"5"}


def test_phases_of_other_lengths_are_apart() -> None:
    """100 requests a phase have a row of their own, without the published mean, and give the percentiles."""
    long = [[30.0, *(10.0 + n % 10 / 10 for n in range(99))]] * 2
    records = [gateway_record(long, reads=100, reads_after_reconnect=100, turn=turn) for turn in range(3)]
    shown = document([*records, gateway_record(RTT)], "mqtt-http-rtt")
    five, hundred = table(shown, "phases").rows[:2]
    assert (five[2], five[5], five[-2]) == ("single", "n < 59", "5")
    assert (hundred[2:4], hundred[5], hundred[-2]) == (("single, 100", "–"), "10.90", "300")
    assert not hundred[6].startswith("n <")
    assert "2 of 2 phases of 5" in claim(shown, "first-request-slowest")[1]


def test_timeouts_are_rows_and_slower_than_all_others() -> None:
    """One of ten as published beside its share; where most requests are late the median is a timeout."""
    shown = document([gateway_record(RTT, timeouts=[(1, 2)])], "mqtt-http-rtt")
    row = cells(shown, "timeouts", "baseline")
    assert row[1:4] == ("0 of 10", "single", "1 of 10")
    assert row[4].startswith("10.0 % [0.")
    late = [(1, read) for read in (2, 3, 4)]
    shown = document([gateway_record(RTT, timeouts=late)], "mqtt-http-rtt")
    assert cells(shown, "phases", "baseline, phase 1")[4].startswith("timeout [")


def test_requests_that_failed_are_not_called_timeouts() -> None:
    """All were answered with a failure: the median is 'failed', and nothing was late."""
    record = gateway_record(RTT)
    refused = replace(record, columns={**record.columns, "outcome": (2,) * record.rows})
    shown = document([refused], "mqtt-http-rtt")
    assert cells(shown, "phases", "baseline, phase 1")[4] == "failed"
    row = cells(shown, "timeouts", "baseline")
    assert (row[3], row[5]) == ("0 of 10", "10")
    mixed = replace(record, columns={**record.columns, "outcome": (1, 2) * (record.rows // 2)})
    shown = document([mixed], "mqtt-http-rtt")
    assert cells(shown, "phases", "baseline, phase 1")[4] == "failed or timeout"


def test_figures_are_written_in_one_way() -> None:
    """Thousands have a comma, and nothing is below zero by rounding alone."""
    assert [number(value) for value in (-0.0001, -0.0, 0.0, -0.5)] == ["0.00", "0.00", "0.00", "-0.5"]
    assert number(1234.5) == "1,234"


def cold(tls_us: int) -> Document:
    """Return 16 phases whose first request takes 9.7 or 11.7 ms more, ``tls_us`` of them for TLS."""
    parts = {"tls_us": 1000, "tcp_us": 1000}
    first = {"tls_us": 1000 + tls_us, "tcp_us": 1000, "connack_us": 1500}
    records = [gateway_record(RTT, boot_index=boot, parts=parts, first=first) for boot in range(8)]
    return document(records, "mqtt-http-rtt")


def test_the_first_request_is_compared_with_the_later_ones_of_its_phase() -> None:
    """What it takes more is the median over the phases of a kind; 8 ms of TLS are most of it, 2 are not."""
    shown = cold(8000)
    found = data(shown, "excess", case="new, phase 1")
    assert found["rtt_us"]["value"] == pytest.approx(20.0 - 10.3)
    assert (found["tls_us"]["value"], found["tcp_us"]["value"], found["first_is_slowest"]) == (8.0, 0.0, 8)
    assert claim(shown, "cold-path")[0] == "supported"
    assert claim(cold(2000), "cold-path")[0] == "contradicted"
    assert data(shown, "first", request="first")["tls_us"] == 9.0
    assert data(shown, "connect", case="tcp, phase 1")["connack_us"]["value"] == 1.5


def test_a_share_of_the_phases_that_spans_half_tells_nothing() -> None:
    """TLS is most of it in five of eight phases: that may be most of them or not."""
    records = [
        gateway_record(RTT, boot_index=boot, parts={"tls_us": 0}, first={"tls_us": 8000 if boot < 5 else 100})
        for boot in range(8)
    ]
    verdict, reason = claim(document(records, "mqtt-http-rtt"), "cold-path")
    assert verdict == "undecided"
    assert "62.5 % [" in reason


def test_first_is_slowest_is_measured_against_chance() -> None:
    """Of five requests one is the slowest anyway: 16 of 16 phases prove it, none of twenty disproves it."""
    level = [[10.0, 11.0, 12.0, 13.0, 14.0]] * 2
    flat = [gateway_record(level, boot_index=boot) for boot in range(10)]
    one_of_four = document([gateway_record([RTT[0], level[0]]), flat[0]], "mqtt-http-rtt")
    for shown, wanted, figures in (
        (cold(8000), "supported", "16 of 16 phases of 5 .*, 100 % .* 20.0 %$"),
        (document(flat, "mqtt-http-rtt"), "contradicted", "0 of 20 phases"),
        (one_of_four, "undecided", "1 of 4 phases"),
    ):
        verdict, reason = claim(shown, "first-request-slowest")
        assert verdict == wanted
        assert re.search(figures, reason)


def test_a_pause_is_bounded_from_above() -> None:
    """It holds where what the named pause may add is less than a quarter of the median; else it is open."""

    def paused(extra_ms: float, pause_ms: int = 32000, spread_ms: float = 1.0) -> Document:
        later = [10.0 + (n * 7 % 20) / 20 * spread_ms for n in range(20)]
        records = [gateway_record([[20.0, *later]])]
        records.append(gateway_record([[20.0, *(ms + extra_ms for ms in later)]], pause_ms=pause_ms))
        return document(records, "mqtt-http-rtt")

    for shown, wanted, words in (
        (paused(0.0), "supported", r"of 32 s adds 0\.\d+ ms .* 10\.\d+ ms((?!longer).)*$"),
        (paused(0.0, 2000), "supported", "--size full"),
        (paused(0.0, spread_ms=10.0), "undecided", "quarter"),
        (paused(5.0), "contradicted", r"32 s \(baseline, single\)"),
        (document([gateway_record(RTT)], "mqtt-http-rtt"), "undecided", ""),
    ):
        verdict, reason = claim(shown, "pause-adds-nothing")
        assert verdict == wanted
        assert re.search(words, reason)
    assert table(paused(5.0), "pauses").rows[1][-1] == "slower by 5.00 ms"


def test_profiles_that_overlap_cannot_be_told_apart() -> None:
    """9.6, 11.8 and 12.6 ms of five requests each show no difference of profiles."""
    reads = [11.0, 9.0, 13.0, 10.0, 12.0]
    own = [
        gateway_record([reads, reads], profile=name, profiles=(number,))
        for number, name in enumerate(("baseline", "agentoptions", "tight"))
    ]
    shown = document(own, "mqtt-http-rtt")
    assert claim(shown, "profiles-differ")[0] == "undecided"
    assert [cells[-1] for cells in table(shown, "profiles").rows] == ["–", *["cannot be told apart"] * 2]
    slow = gateway_record([[ms + 10 for ms in reads]] * 2, profile="tight", profiles=(2,))
    assert claim(document([*own[:2], slow], "mqtt-http-rtt"), "profiles-differ")[0] == "supported"


# Boards and labels


def test_boards_are_never_mixed() -> None:
    """Each board has its document, in the order in which they measured; the records of a base or a reference
    firmware are not the study's."""
    records = [steady(20.0), replace(steady(90.0), role="base"), steady(30.0, board="v2")]
    documents = documents_of(load_study("esp32-tcpip"), records, RUN_ID)
    assert [one.board for one in documents] == ["v1", "v2"]
    assert [data(one, "baseline", label="TCP TX")["ours"]["n"] for one in documents] == [20, 20]


def test_a_run_without_records_is_no_reproduction() -> None:
    """It is undecided, and the sentence says what to do."""
    with pytest.raises(Undecided, match="hil reproduce esp32-tcpip"):
        document([Fault("", "rig", 3, "the access point is gone")])


def test_a_section_with_an_unknown_table_is_refused() -> None:
    """The sentence names the nearest table that there is."""
    study = load_study("esp32-tcpip")
    odd = replace(study, sections=(replace(study.sections[0], tables=("drifts",)),))
    with pytest.raises(ConfigError, match="an unknown table 'drifts'; did you mean 'drift'"):
        documents_of(odd, [steady(20.0)], RUN_ID)
