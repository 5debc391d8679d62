# SPDX-License-Identifier: Apache-2.0
"""The study mqtt-qos: published beside ours, table by table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.model import Entry
from hil.reports.studies.build import documents_of
from hil.reports.studies.document import Document
from hil.reports.studies.loader import load_study, study_files
from hil.reports.studies.mqtt_qos.study import CROSSINGS
from hil.reports.studies.records import size_text
from hil.thresholds import load_all
from tests.make_records import THRESHOLDS_ROOT
from tests.reports.qos_records import RUN_ID, delivery_record, echo_record, left_out, reconnect_record
from tests.reports.study_pages import cells, data
from tests.reports.study_pages import table as shown

BENCHES = load_all(THRESHOLDS_ROOT)
STUDY = load_study("mqtt-qos", benches=BENCHES)


def document(*records: Entry) -> Document:
    return documents_of(STUDY, list(records), RUN_ID)[0]


def table_ids(found: Document) -> set[str]:
    return {one.id for part in found.sections for one in part.tables}


def test_the_file_has_what_was_published() -> None:
    """Digits, counts and corrections, of which the true means follow from the study's own logs."""
    rows = {table.id: {row.label: row for row in table.rows} for table in STUDY.tables}
    assert rows["payload-desktop"]["1 B, QoS 0"].published == 0.0012375
    assert rows["payload-desktop"]["1 B, QoS 0"].corrected == 0.0012259
    fin = rows["bandwidth"]["100 KB/s, QoS 1"]
    assert (fin.published, fin.n, fin.corrected) == (9.9820152, 825, 56.6680036)
    slip = rows["observations"]["QoS 1, 10/s"]
    assert (slip.published, slip.of, slip.corrected) == (141, 598, 383)
    assert (rows["loss"]["30 %, QoS 1"].published, rows["loss"]["30 %, QoS 1"].n) == (39.201, 3)
    assert {name: len(found) for name, found in rows.items()} == {
        "payload-pi": 24,
        "payload-desktop": 24,
        "bandwidth": 13,
        "observations": 9,
        "loss": 21,
        "overhead-message": 7,
        "overhead-connection": 4,
    }


def test_echoes_of_the_logs_are_messages_not_copies() -> None:
    """What the tables from the logs call echoes is what the study counted, and message 000000.

    A second echo of a message is no further one: it is in no percentile either, and stands apart.
    """
    tables = {table.id: {row.label: row for row in table.rows} for table in STUDY.tables}
    logs = {table.id: {row.label: row.values for row in table.rows} for table in STUDY.background}
    lossy = {label: (echoes, duplicates) for label, (_, echoes, *_, duplicates) in logs["lossy"].items()}
    assert {label: echoes for label, (echoes, _) in lossy.items()} == {
        label: (row.n or 0) + 1 for label, row in tables["loss"].items()
    }
    assert (lossy["25 %, QoS 1"], lossy["30 %, QoS 1"]) == ((7, 10), (4, 3))
    counted = {}
    for label, row in tables["observations"].items():
        qos, rate = label.split(", ")
        counted[f"100 KB/s, {rate}, {qos}"] = (row.corrected or row.published or 0) + 1
    limited = {label: values[1] for label, values in logs["limited"].items() if label in counted}
    assert limited == counted


def test_a_payload_stands_beside_both_brokers() -> None:
    """Their way from the sending, ours from the plan; a message without an echo counts as slower than all."""
    found = document(echo_record([50, *[2.0, 4.0] * 40, None], late_ms=1, payload_bytes=10, qos=0))
    row = data(found, "payload", label="10 B, QoS 0")
    assert (row["published_pi_ms"], row["published_desktop_ms"]) == pytest.approx((148.0741, 1.4071))
    assert row["their_way_ms"] == pytest.approx(3)
    assert (row["p50"]["value"], row["p50"]["n"]) == (5, 81)
    assert (row["n"], row["lost"]) == (81, 1)
    assert cells(found, "payload", "10 B, QoS 0")[-3:] == ("n < 299", "81", "1")


def test_a_kilobyte_is_either() -> None:
    """1000 and 1024 bytes both compare with the study's KB."""
    for size in (1000, 1024):
        found = document(echo_record([1] * 9, payload_bytes=size))
        assert data(found, "payload", label="1 KB, QoS 1")["n"] == 8
    written = {7: "7 B", 1500: "1500 B", 10_000: "10 KB", 10_240: "10 KB", 1 << 20: "1 MB"}
    assert {size: size_text(size) for size in written} == written


def test_the_payloads_are_those_at_ten_a_second() -> None:
    """Other rates stand in the table of rates; where there are none at 10/s the slowest is taken."""
    rates = [echo_record([ms] * 9, interval_us=us) for us, ms in ((100_000, 3), (10_000, 9), (1_000_000, 5))]
    assert data(document(*rates), "payload", label="10 B, QoS 1")["p50"]["value"] == 3
    assert data(document(*rates[1:]), "payload", label="10 B, QoS 1")["p50"]["value"] == 5


def test_what_the_memory_leaves_out_is_listed() -> None:
    """In its row of the payloads, and with the reason in a table of its own."""
    found = document(echo_record([1] * 9), left_out(100_000, 2))
    assert cells(found, "payload", "100 KB, QoS 2")[3] == "not run: memory"
    assert cells(found, "payload", "100 KB, QoS 1")[3] == "not measured"
    (row,) = shown(found, "not-run").rows
    assert row[:2] == ("100 KB, QoS 2", "not run: memory")
    assert "max_payload_bytes=8192" in row[2]
    assert "not-run" not in table_ids(document(echo_record([1] * 9)))


def test_a_rate_that_is_off_is_flagged() -> None:
    """As the peer found it; a payload with one rate that kept to it is only counted."""
    rates = {"requested_mps": 100.0, "offered_mps": 10.0, "achieved_mps": 10.0, "rate_off": True}
    kept = echo_record([1] * 9, payload_bytes=100)
    both = [echo_record([1] * 9), echo_record([1] * 9, interval_us=10_000, peer=rates)]
    found = document(kept, *both)
    assert [(row["payload_bytes"], row["interval_us"], row["off"]) for row in shown(found, "rates").data] == [
        (10, 1e5, ""),
        (10, 1e4, "OFF"),
    ]
    assert any(note.startswith("1 more setting") for note in shown(found, "rates").notes)
    assert "rates" not in table_ids(document(kept))


def test_the_bandwidth_has_published_true_and_ours() -> None:
    """Limits in KB/s and in kbit/s; ours their way, with the error of units, and the p50 without it."""
    slow = [1.0, *[500.0 + 1100 * n for n in range(61)]]
    limit = {"rate_up_kbit": 800, "rate_down_kbit": 800, "payload_bytes": 10_000, "qos": 0}
    found = document(echo_record(slow, timeout_ms=120_000, **limit))
    row = data(found, "bandwidth", label="100 KB/s, QoS 0")
    assert (row["published_ms"], row["true_ms"]) == pytest.approx((25_381.5006, 32_568.3373))
    assert row["wrong_unit_count"] == 6
    assert row["their_way_true_ms"] == pytest.approx(33_500)
    assert row["their_way_ms"] < 0.9 * row["their_way_true_ms"]
    assert row["p50"]["value"] == pytest.approx(33_500)
    head = next(
        row for row in shown(found, "bandwidth").rows if row[0].startswith("100 KB/s") and row[2] == "0"
    )
    assert head[1:5] == ("800", "0", "25,382", "32,568")
    picture = shown(found, "bandwidth").picture
    assert picture is not None
    true, in_r = picture.lines
    assert max(y for _, y, *_ in true.points) == 66_500
    assert in_r.points[-1][1] == pytest.approx(66_500 / 60)


def test_a_limit_that_nothing_was_published_of_is_shown() -> None:
    """10 KB/s at QoS 1, of which no echo came in the study, and limits of one direction."""
    limit = {"payload_bytes": 10_000, "qos": 1}
    found = document(
        echo_record([9] * 9, rate_up_kbit=80, rate_down_kbit=80, **limit),
        echo_record([9] * 9, rate_up_kbit=500, **limit),
    )
    labels = {row["label"] for row in shown(found, "bandwidth").data}
    assert {"80 kbit/s up, 80 down, QoS 1", "500 kbit/s up, 0 down, QoS 1"} <= labels


def test_each_rate_under_a_limit_has_its_line() -> None:
    """The published mean is one over all rates; 59, 562 and 562 echoes are counted beside ours."""
    limit = {"rate_up_kbit": 800, "rate_down_kbit": 800, "payload_bytes": 10_000, "qos": 0}
    rates = [
        echo_record([9] * (n + 2) + [None], interval_us=us, **limit)
        for us, n in ((1_000_000, 5), (100_000, 8))
    ]
    found = document(*rates)
    ours = [row for row in shown(found, "bandwidth").data if row["label"] == "100 KB/s, QoS 0"]
    assert [(row["interval_us"], row["n"], row["lost"]) for row in ours] == [(1e6, 7, 1), (1e5, 10, 1)]
    counted = data(found, "observations", label="QoS 0, 10/s")
    assert (counted["published"], counted["ours"], counted["ours_of"]) == (562, 9, 10)
    assert cells(found, "observations", "QoS 1, 10/s")[1:] == ("141 of 598", "383", "not measured")


def test_loss_by_pattern_and_direction() -> None:
    """Independent and in bursts beside the published; one way has a line of its own; hops are named."""
    lossy = {"payload_bytes": 10_000, "qos": 1, "peer": {"impaired": "uplink 10 %, downlink 10 %"}}
    gave_up = echo_record([9] * 9 + [None], loss_up_ppm=100_000, loss_down_ppm=100_000, **lossy)
    found = document(
        replace(gave_up, environment={**gave_up.environment, "device": {"connects": 3}}),
        echo_record([30] * 9, loss_up_ppm=100_000, loss_down_ppm=100_000, loss_pattern="bursts", **lossy),
        echo_record([20] * 9, loss_up_ppm=20_000, **lossy),
    )
    ours = [row for row in shown(found, "loss").data if row["label"] == "10 %, QoS 1"]
    assert [(row["pattern"], row["n"], row["lost"]) for row in ours] == [
        ("independent", 9, 1),
        ("bursts", 8, 0),
    ]
    assert cells(found, "loss", "10 %, QoS 1")[1:4] == ("293.4", "59 of 59", "independent")
    assert cells(found, "loss", "10 %, QoS 1")[-1] == "3"
    assert [row["connects"] for row in ours] == [[3], []]
    assert data(found, "loss", label="↑ 2 %, ↓ 0 %, 10 KB, QoS 1")["n"] == 8
    assert any("uplink 10 %, downlink 10 %" in note for note in shown(found, "loss").notes)
    assert any(note.startswith("bursts: counted in frames") for note in shown(found, "loss").notes)


def test_what_must_cross() -> None:
    """A message and its echo; at QoS 2 the broker waits for PUBREL, which waits for PUBREC."""
    assert [len(CROSSINGS[qos]) for qos in range(3)] == [2, 2, 4]


def test_the_path_is_expected_and_measured() -> None:
    """From the sending; what is above the expected is Nagle's algorithm where TCP_NODELAY is off."""
    link = {"air": "perfect", "delay_us": 5000, "qos": 1}
    ends = ("nodelay", "broker_nodelay", "echo_nodelay")
    waits = {
        "ap_up_ack_delay_p50_us": 600,
        "ap_down_ack_delay_p50_us": 41_000,
        "ap_down_ack_delay_max_us": 44_000,
    }
    found = document(
        echo_record([1, *[10.5] * 20], late_ms=3, **link),
        echo_record([1, *[51.0] * 20], peer=waits, **dict.fromkeys(ends, 0), **link),
    )
    fast, slow = (data(found, "path", nodelay_at=where) for where in ("all", "none"))
    assert (fast["crossings"], fast["expected_ms"], fast["difference_ms"]) == (2, 10, pytest.approx(0.5))
    assert (slow["difference_ms"], slow["ack_delay_down_p50_us"]) == (pytest.approx(41), 41_000)


def overhead(publishes: int, **parts: int) -> dict[str, int]:
    """Return the facts of one capture of so many PUBLISH, each in a frame with 54 bytes of headers."""
    frames = publishes + parts.get("answers", 0)
    layers = {
        "ethernet": 14 * frames,
        "ip": 20 * frames,
        "tcp": 20 * frames,
        "tcp_options": 0,
        "tls_record": 0,
    }
    layers |= {"publish_header": 30 * publishes, "publish_payload": 100 * publishes}
    layers |= {"tcp_ack_only": 54 * parts.get("acks", 0)}
    answers = ("puback", "pubrec", "pubrel", "pubcomp")
    each = {name: parts.get(name, 0) for name in answers}
    sizes = {f"overhead_{name}_bytes": size for name, size in layers.items()}
    sizes |= {f"overhead_{name}_bytes": 4 * count for name, count in each.items()}
    counts = {f"overhead_{name}_count": count for name, count in each.items()}
    counts |= {"overhead_publish_count": publishes, "overhead_message_frames_count": frames}
    return {**sizes, **counts, "overhead_tcp_ack_only_count": parts.get("acks", 0)}


@pytest.mark.parametrize(
    ("qos", "parts", "wanted"),
    [
        (0, {"acks": 20}, (0, 54, 54)),
        (1, {"acks": 20, "puback": 20, "answers": 20}, (4, 58, 54)),
        (2, {"pubrec": 20, "pubrel": 20, "pubcomp": 20, "answers": 60}, (12, 174, 0)),
    ],
)
def test_what_answers_a_message(qos: int, parts: dict[str, int], wanted: tuple[int, int, int]) -> None:
    """Without TCP timestamps 54, 58 and 174 bytes where 66, 70 and 210 were published."""
    found = document(echo_record([1] * 21, payload_bytes=100, qos=qos, peer=overhead(20, **parts)))
    row = data(found, "overhead-message", qos=qos, payload_bytes=100)
    assert (row["answers_mqtt"], row["answers_frames"], row["acks"]) == wanted
    answers = parts.get("answers", 0) / 20 * 58
    assert row["besides"] == 54 + 30 + answers + parts.get("acks", 0) / 20 * 54
    assert cells(found, "overhead-message", f"QoS {qos}")[1] == ["0 / 66", "4 / 70", "12 / 210"][qos]


def test_what_a_connection_costs() -> None:
    """Mean over the connections, by what the frames are for, beside the published."""
    parts = {"handshake": 324, "connect": 158, "connack": 116, "connection_ack": 216} | {
        "disconnect": 112,
        "fin": 216,
    }
    peer = {f"overhead_{name}_bytes": size for name, size in parts.items()} | {
        "overhead_connections_count": 2
    }
    lines = shown(document(echo_record([1] * 9, peer=peer)), "overhead-connection").data
    rows = {row["part"]: (row["published"], row["ours"]["tcp"]) for row in lines}
    assert rows["CONNECT"] == (91, 79)
    assert rows["TCP acknowledgements"] == (132, 108)
    assert rows["TCP handshake"] == (None, 162)
    assert "TLS handshake" not in rows


def test_lost_packets_of_a_connect() -> None:
    """A few outages one by one; those that never recovered are counted."""
    found = document(
        echo_record([1] * 9), reconnect_record("syn", [700, 900]), reconnect_record("connack", [None])
    )
    syn, connack = shown(found, "connect").rows
    assert (syn[0], syn[3], syn[-1]) == ("SYN", "700.0; 900.0", "2 of 2")
    assert (connack[0], connack[3], connack[-1]) == ("CONNACK", "–", "0 of 1")


def test_order_and_duplicates() -> None:
    """By messages in flight, session and cuts: echoes behind a later one's, and those that came twice."""
    usual = echo_record([5] * 9, qos=1)
    late = echo_record([5] * 9, qos=1, order=[1, 2, 5, 3, 4, 6, 7, 8, 9], copies={4: 2}, inflight=20)
    cut = echo_record([5] * 8 + [None], qos=1, clean_session=0, cut_every_ms=1000)
    found = document(usual, late, cut)
    row = data(found, "order", inflight=20)
    assert (row["out_of_order"], row["duplicates"]) == (1, 1)
    assert data(found, "order", cut_every_ms=1000)["lost"] == 1
    assert data(found, "order", inflight=0, cut_every_ms=0)["out_of_order"] == 0
    assert "order" not in table_ids(document(usual))


def test_a_broker_in_trouble() -> None:
    """Sent, lost with its owner, duplicates and the time to the next message, by fault and persistence."""
    found = document(
        echo_record([1] * 9),
        delivery_record(
            200,
            lost={"broker_out": 12},
            fault="kill",
            persistence="off",
            peer={"recovery_us": 412_000, "faults_count": 1},
        ),
        delivery_record(200, fault="kill", persistence="each", duplicates=3, peer={"recovery_us": None}),
    )
    off, each = (data(found, "broker", persistence=how) for how in ("off", "each"))
    assert (off["sent"], off["lost"], off["recovery_us"]) == (200, 12, 412_000)
    assert off["slowest_ms"] == pytest.approx(6 + 0.05 * 199)
    assert "12 came to the broker" in off["where"]
    assert (each["lost"], each["duplicates"], each["recovery_us"]) == (0, 3, None)


def test_a_run_of_deliveries_alone_says_what_is_missing() -> None:
    """No echo was measured: rows stay, with the reason, and nothing is claimed of them."""
    found = document(delivery_record(10, fault="stall"), echo_record([1] * 9, qos=2, loss_up_ppm=1))
    assert all(row[3] == "not measured" for row in shown(found, "payload").rows)
    assert any("no such case" in note for note in shown(found, "payload").notes)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("  - id: loss\n", "  - id: losses\n", "'of' in 'test' is the text 'loss'"),
        ("over: [qos]", "over: [qoss]", "the bench 'echo' has no parameter 'qoss'"),
        ("n: 59, ours", "n: 0, ours", "expected a value of at least 1"),
        ("loss_up_ppm: 10000,", "loss_up: 10000,", "the bench 'echo' has no parameter 'loss_up'"),
    ],
)
def test_a_mistake_in_the_file_is_found(tmp_path: Path, old: str, new: str, said: str) -> None:
    """What the study's code needs of its file is checked with it, by line."""
    text = study_files()["mqtt-qos"].read_text()
    assert old in text
    (tmp_path / "mqtt-qos.yaml").write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigError, match=r"mqtt-qos\.yaml:\d+: ") as caught:
        load_study("mqtt-qos", tmp_path, benches=BENCHES)
    assert said in str(caught.value)
