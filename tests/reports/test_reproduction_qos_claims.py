# SPDX-License-Identifier: Apache-2.0
"""The study mqtt-qos: each claim supported, contradicted and undecided; the questions they answer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hil.model import Entry, Fault, RunRecord, Scalar
from hil.reports.studies.build import documents_of
from hil.reports.studies.document import Document
from hil.reports.studies.loader import load_study
from tests.reports import study_pages
from tests.reports.qos_records import RUN_ID, delivery_record, echo_record, reconnect_record

STUDY = load_study("mqtt-qos")
S, C, U = "supported", "contradicted", "undecided"
ANYTHING = echo_record([1] * 9, payload_bytes=7, qos=1)


def document(*records: Entry) -> Document:
    return documents_of(STUDY, list(records), RUN_ID)[0]


def claim(name: str, *records: Entry) -> tuple[str, str]:
    return study_pages.claim(document(*(records or (ANYTHING,))), name)


def steady(ms: float, n: int = 60, **overrides: Scalar) -> RunRecord:
    """Return round trips of about ``ms``, half of them 1 % above."""
    return echo_record([ms, *[ms, 1.01 * ms] * (n // 2)], **overrides)


def levels(times_ms: Sequence[float], n: int = 60, **overrides: Scalar) -> list[RunRecord]:
    return [steady(ms, n, qos=qos, **overrides) for qos, ms in enumerate(times_ms)]


def limited(kbit: int, times_ms: Sequence[float], n: int = 60) -> list[RunRecord]:
    return levels(times_ms, n, payload_bytes=10_000, rate_up_kbit=kbit, rate_down_kbit=kbit)


def lossy(percent: int, times_ms: Sequence[float], n: int = 60) -> list[RunRecord]:
    ppm = percent * 10_000
    return levels(times_ms, n, payload_bytes=10_000, loss_up_ppm=ppm, loss_down_ppm=ppm)


def answered(share: float, n: int = 60) -> list[RunRecord]:
    """Return runs at 30 % loss in which this share of the messages has an echo."""
    times = [1.0, *[5.0 if m < share * n else None for m in range(n)]]
    loss = {"payload_bytes": 10_000, "loss_up_ppm": 300_000, "loss_down_ppm": 300_000}
    return [echo_record(times, qos=qos, **loss) for qos in (0, 1, 2)]


def ramp(*falls: int) -> RunRecord:
    """Return a queue that grows by 200 ms a message, and is empty again at ``falls``."""
    times, ms = [1.0], 100.0
    for n in range(60):
        ms = 100.0 if n in falls else ms + 200
        times.append(ms)
    return echo_record(times, payload_bytes=10_000, rate_up_kbit=800, rate_down_kbit=800, qos=0)


def at_each_payload(
    qos: int, sizes: Sequence[int], times_ms: Sequence[float], n: int = 60
) -> list[RunRecord]:
    return [steady(ms, n, qos=qos, payload_bytes=size) for size, ms in zip(sizes, times_ms, strict=True)]


SMALL = (1, 10, 100)


@pytest.mark.parametrize(
    ("name", "verdict", "records"),
    [
        ("rises-with-qos", S, levels([1, 2, 3], payload_bytes=100)),
        ("rises-with-qos", C, levels([1, 3, 2], payload_bytes=100)),
        ("rises-with-qos", U, levels([1, 2, 3], n=4, payload_bytes=100)),
        ("faster-from-1-kb", S, at_each_payload(1, (100, 1000), (30, 5))),
        ("faster-from-1-kb", C, at_each_payload(2, (100, 1000), (5, 6))),
        ("faster-from-1-kb", U, at_each_payload(2, (100, 1000), (5, 5))),
        ("qos-0-constant", S, at_each_payload(0, SMALL, (2, 2.1, 2.05))),
        ("qos-0-constant", C, at_each_payload(0, SMALL, (2, 2.1, 4))),
        ("qos-0-constant", U, at_each_payload(0, SMALL, (2, 2.1, 2.05), n=4)),
        ("equal-from-1-mb", S, levels([40, 42, 44], payload_bytes=1_000_000)),
        ("equal-from-1-mb", C, levels([40, 42, 80], payload_bytes=1_000_000)),
        ("equal-from-1-mb", U, levels([40, 42, 44], n=2, payload_bytes=1_000_000)),
        ("limit-raises", S, limited(80, [3000, 3000, 4000]) + limited(8000, [20, 20, 40])),
        ("limit-raises", C, limited(80, [20, 20, 30]) + limited(8000, [30, 30, 40])),
        ("limit-raises", U, limited(80, [3000, 3000, 4000], n=4) + limited(8000, [20, 20, 40])),
        ("milliseconds-from-1-mb", S, limited(8000, [20, 20, 40])),
        ("milliseconds-from-1-mb", C, limited(8000, [20, 20, 140])),
        ("milliseconds-from-1-mb", U, limited(8000, [20, 20, 40], n=4)),
        ("shark-fin", S, [ramp(40)]),
        ("shark-fin", C, [ramp()]),
        ("shark-fin", U, limited(800, [180, 200, 220])),
        ("qos-2-fastest", S, limited(800, [30_000, 9000, 14_000])),
        ("qos-2-fastest", C, limited(800, [30_000, 50_000, 44_000])),
        ("qos-2-fastest", U, limited(800, [30_000, 50_000, 44_000], n=4)),
        ("loss-raises", S, lossy(1, [5, 5, 6]) + lossy(20, [900, 900, 2000])),
        ("loss-raises", C, lossy(1, [5, 5, 6]) + lossy(20, [4, 900, 2000])),
        ("loss-raises", U, lossy(1, [5, 5, 6]) + lossy(20, [900, 900, 2000], n=4)),
        ("breaks-off", S, answered(0.5)),
        ("breaks-off", C, answered(1.0)),
        ("breaks-off", U, answered(0.9)),
    ],
)
def test_round_trips_decide(name: str, verdict: str, records: Sequence[RunRecord]) -> None:
    """Only where the bounds are apart is a claim decided."""
    assert claim(name, *records)[0] == verdict, claim(name, *records)


def bundled(qos: int, most: int, **overrides: Scalar) -> RunRecord:
    peer = {"ap_up_publishes_per_segment_max": most, "ap_up_publishes_count": 60}
    return echo_record([1] * 9, qos=qos, peer=peer, **overrides)


def cost(payload_bytes: int, acks: int) -> RunRecord:
    """Return 20 messages of QoS 0 with so many TCP acknowledgements of 54 bytes."""
    peer = {
        "overhead_publish_count": 20,
        "overhead_message_frames_count": 20,
        "overhead_ethernet_bytes": 1080,
    }
    peer |= {"overhead_tcp_ack_only_bytes": 54 * acks, "overhead_tcp_ack_only_count": acks}
    return echo_record([1] * 9, qos=0, payload_bytes=payload_bytes, peer=peer)


def first(median_bytes: int, largest_bytes: int) -> RunRecord:
    peer = {"ap_up_first_segment_p50_bytes": median_bytes, "ap_up_segment_max_bytes": largest_bytes}
    return echo_record([1] * 9, payload_bytes=10_000, peer=peer)


DIED = Fault(
    run_id=RUN_ID,
    owner="rig",
    exit_code=3,
    sentence="mosquitto ended with 1: Error saving in-memory database.",
    board="v1",
    case_id=delivery_record(1, fault="slow_disk", persistence="each").case_id,
)


def slow_disk(persistence: str) -> list[RunRecord]:
    return [ANYTHING, delivery_record(200, fault="slow_disk", persistence=persistence)]


@pytest.mark.parametrize(
    ("name", "verdict", "records"),
    [
        ("overhead", S, [cost(100, 20), cost(1000, 20)]),
        ("overhead", C, [cost(100, 20), cost(10_000, 80)]),
        ("overhead", U, [cost(100, 20)]),
        ("qos-0-bundles", S, [bundled(0, 7, nodelay=0)]),
        ("qos-0-bundles", U, [bundled(0, 1)]),
        ("qos-0-bundles", C, [bundled(0, 1, nodelay=0, interval_us=400)]),
        ("qos-0-bundles", U, [bundled(0, 1, nodelay=0, interval_us=10_000)]),
        ("qos-0-bundles", U, [bundled(0, 7, loss_up_ppm=10_000)]),
        ("qos-2-no-bundling", S, [bundled(2, 1)]),
        ("qos-2-no-bundling", C, [bundled(2, 3)]),
        (
            "qos-2-no-bundling",
            C,
            [echo_record([1] * 9, qos=2, peer={"ap_down_publishes_per_segment_max": 2})],
        ),
        ("qos-2-no-bundling", U, [bundled(1, 3)]),
        ("first-segments", S, [first(1024, 1460)]),
        ("first-segments", C, [first(1022, 1024)]),
        ("first-segments", U, [ANYTHING]),
        ("broker-dies", S, [ANYTHING, DIED]),
        ("broker-dies", C, slow_disk("each")),
        ("broker-dies", U, slow_disk("off")),
        ("broker-dies", U, [ANYTHING]),
        ("connect-freezes", C, [ANYTHING, reconnect_record("syn", [700])]),
        (
            "connect-freezes",
            S,
            [ANYTHING, reconnect_record("syn", [700]), reconnect_record("connack", [None])],
        ),
        ("connect-freezes", U, [ANYTHING, reconnect_record("broker", [700])]),
        ("order", C, [ANYTHING]),
        ("order", U, [delivery_record(10, fault="stall"), echo_record([], qos=0)]),
    ],
)
def test_captures_ledgers_and_counts_decide(name: str, verdict: str, records: Sequence[Entry]) -> None:
    """What the peers told of the wire, the broker and the connects."""
    assert claim(name, *records)[0] == verdict, claim(name, *records)


def test_without_records_nothing_is_decided() -> None:
    """One setting that no claim is about leaves all of them undecided, but order, which any echo tells."""
    for one in STUDY.claims:
        if one.check != "by-fact":
            assert claim(one.id)[0] == (C if one.id == "order" else U), one.id


def test_a_question_is_answered_by_the_claims_that_the_file_names() -> None:
    """Their verdicts, also where nothing of it was measured; the figures stand with the claims."""
    says = {one.id: one.says for one in STUDY.claims}
    found = [part.answers for part in document(ANYTHING).sections if part.heading.startswith("Question")]
    assert found[3] == (f"Contradicted: {says['order']}",)
    assert found[4] == tuple(f"Undecided: {says[name]}" for name in ("broker-dies", "connect-freezes"))
