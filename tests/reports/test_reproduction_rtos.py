# SPDX-License-Identifier: Apache-2.0
"""The study rtos-mqtt beside our records: its tables, every figure against one that was computed by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from hil.model import Entry, RunRecord
from hil.network.dissect.symptoms import SYMPTOMS
from hil.reports.studies.build import documents_of
from hil.reports.studies.document import Document
from hil.reports.studies.loader import load_study
from hil.reports.studies.rtos_mqtt.losses import Burst, bursts_of, poisson_interval
from hil.reports.studies.rtos_mqtt.messages import boot_mean, called, difference, messages_of
from hil.reports.studies.rtos_mqtt.publish import their_mean_ms
from tests.reports.study_delivery import delivery_record
from tests.reports.study_pages import cells, data, table
from tests.reports.study_records import RUN_ID

STUDY = load_study("rtos-mqtt")
APART = {"producer_core": "0", "publisher_core": "1"}


def document(*entries: Entry) -> Document:
    return documents_of(STUDY, list(entries), RUN_ID)[0]


def boots(call_us: Sequence[Sequence[int]], **changes: Any) -> list[RunRecord]:
    """Return a record a boot."""
    return [delivery_record(own, boot_index=boot, **changes) for boot, own in enumerate(call_us)]


# how long a publish takes


def test_their_way_is_the_difference_of_two_whole_ms() -> None:
    """The publisher begins at 20 n ms + 100 µs and needs 50 µs before the call: 849 µs end at 0.999 ms. It is
    of one run and of what succeeded: neither a second boot nor a call that was refused counts."""
    found = messages_of([delivery_record([849, 850, 2850, 5000])])
    assert [one.begun_us for one in found] == [100, 20_100, 40_100, 60_100]
    assert [one.whole_us for one in found] == [899, 900, 2900, 5050]
    assert [one.whole_ms for one in found] == [0, 1, 3, 5]
    assert their_mean_ms(found) == pytest.approx((0 + 1 + 3 + 5) / 4)
    records = [*boots([[850, 2850, 90_000]], outcomes={2: 2}), delivery_record([40_000], boot_index=1)]
    assert their_mean_ms(messages_of(records)) == pytest.approx((1 + 3) / 2)
    assert their_mean_ms([]) is None


def test_a_publish_stands_beside_the_published_value() -> None:
    """Published, their way, the mean of the boots' means of the call alone, n, boots, lost."""
    records = boots([[1000] * 8, [2000] * 8], transport="tls", owners={3: 3}, **APART)
    found = data(document(*records), "publish", label="4: TLS, sensor 0, MQTT 1")
    assert (found["published"], found["ours"], found["boots"], found["lost"]) == (3.44, "50/s", 2, 2)
    assert found["mean"]["value"] == pytest.approx(1.5)
    assert found["their_way"] == 1.0  # 0.1 + 1.05 ms in the first boot
    assert found["p99"]["value"] is None  # 16 samples show none
    row = cells(document(*records), "publish", "4: TLS, sensor 0, MQTT 1")
    assert row[1:4] == ("3.44", "50/s", "1.00")
    assert row[6:] == ("n < 299", "16", "2", "2")


def test_rates_and_settings_are_never_mixed() -> None:
    """The study's rate comes first; what was retained has a row of its own, a burst none."""
    records = [
        delivery_record([100] * 5),
        delivery_record([300] * 5, interval_us=1_000_000),
        delivery_record([500] * 5, retain=1),
        delivery_record([900] * 5, interval_us=1000),
    ]
    rows = [row for row in table(document(*records), "publish").data if str(row["label"]).startswith("1:")]
    assert [(row["ours"], row["mean"]["value"]) for row in rows] == [
        ("1/s", pytest.approx(0.3)),
        ("50/s", pytest.approx(0.1)),
        ("50/s, retained", pytest.approx(0.5)),
    ]


def test_the_number_is_held_against_duration_times_rate() -> None:
    """Fifty planned in a second, of which the last two were overruns: 48 a second, more than 2 % off."""
    late = delivery_record([50] * 50, outcomes={48: 4, 49: 4}, owners={48: 1, 49: 1})
    found = data(document(late), "publishes", label="1: plain, unpinned")
    assert (found["published"], found["planned"], found["handed_over"], found["overruns"]) == (619, 50, 48, 2)
    assert (found["corrected"], found["arrived"]) == ("2.06 a second", 48)
    assert found["a_second"] == pytest.approx(48)
    assert found["planned_a_second"] == pytest.approx(50)
    assert cells(document(late), "publishes", "1: plain, unpinned")[-2:] == ("yes", "48")
    slow = delivery_record([50] * 50, late_us=100_000)  # the last is sent 100 ms late: 50 in 1.10 s
    assert data(document(slow), "publishes", label="1: plain, unpinned")["a_second"] < 46
    assert cells(document(delivery_record([50] * 50)), "publishes", "1: plain, unpinned")[-2] == "no"


def test_the_warm_up_is_in_no_figure() -> None:
    """Of ten messages two are the warm-up; of the other eight one is lost, though the ledger counts two."""
    record = delivery_record([9000] * 2 + [100] * 8, warmup_rows=2, owners={0: 3, 5: 3})
    found = data(document(record), "publish", label="1: plain, unpinned")
    assert (found["mean"]["n"], found["mean"]["value"], found["lost"]) == (8, pytest.approx(0.1), 1)
    count = data(document(record), "publishes", label="1: plain, unpinned")
    assert (count["planned"], count["arrived"]) == (8, 7)
    assert table(document(record), "losses").data[0]["lost"] == 2


# what things cost


def test_means_count_a_boot_once() -> None:
    """Two boots of unlike length: the mean of their means, bounded by Student's t of the two."""
    found = boot_mean([1.0, 1.0, 1.0, 3.0], [0, 0, 0, 1])
    assert found.value == 2.0
    assert found.high == pytest.approx(2.0 + 6.3138, rel=1e-3)  # t at 5 % of one degree, times 1
    one = boot_mean([1.0] * 5, [0] * 5)
    assert not one.is_bounded  # too few to be cut into batches


def test_a_difference_is_taken_within_each_boot() -> None:
    """What a boot does to both falls out: 10 and 12 µs more, whatever the boots' own times are."""
    one, other = boots([[110] * 5, [912] * 5]), boots([[100] * 5, [900] * 5])
    found = difference(called(one), called(other), lambda message: message.publish_call_us)
    assert (found.n, found.value) == (2, pytest.approx(11))
    assert found.low == pytest.approx(11 - 6.3138, rel=1e-3)
    assert (
        difference(called(one[:1]), called(other[1:]), lambda message: message.publish_call_us).value is None
    )


def test_a_held_mutex_is_shown_beside_the_call() -> None:
    """A row for each time that it was held, all else alike; a case of another rate is none of them."""
    records = [
        delivery_record([100] * 6, interval_us=250_000, hold_us=hold, late_us=hold, mutex_us=hold // 100)
        for hold in (0, 200_000, 50_000)
    ]
    shown = document(*records, delivery_record([900] * 6))
    found = table(shown, "hold").data
    assert [row["hold_us"] for row in found] == [0, 50_000, 200_000]
    assert [row["mutex_wait_ms"]["value"] for row in found] == [0, 0.5, 2.0]
    assert [row["begun_after_plan_ms"]["value"] for row in found] == [0, 50, 200]
    assert [row["call_ms"]["value"] for row in found] == pytest.approx([0.1] * 3)
    picture = table(shown, "hold").picture
    assert picture is not None
    assert [points[:2] for points in picture.lines[0].points] == [(0, 0), (50, 0.5), (200, 2)]


# bursts


def burst(boot: int, nodelay: int, segments: int, broker_nodelay: int = 1) -> RunRecord:
    """Return 40 publishes 1 ms apart that left in so many segments."""
    peer = {"ap_up_publish_segments_count": segments, "ap_up_publishes_per_segment_max": 40 // segments + 1}
    changes = {"interval_us": 1000, "nodelay": nodelay, "broker_nodelay": broker_nodelay}
    return delivery_record([40] * 40, boot_index=boot, peer=peer, **changes)


def test_publishes_a_segment_are_told_by_who_has_nagle_on() -> None:
    """40 publishes in 10 and in 8 segments are 4 and 5 a segment; with TCP_NODELAY each is a segment."""
    shown = document(burst(0, 0, 10), burst(1, 0, 8), burst(0, 1, 40), burst(1, 1, 40))
    off, on = (data(shown, "bursts", case=f"{switch}, on, on") for switch in ("off", "on"))
    assert (off["up_per_segment"]["value"], off["up_most"], off["boots"]) == (4.5, 6, 2)
    assert (on["up_per_segment"]["value"], on["down_per_segment"]["value"]) == (1, 1)


def test_a_burst_is_what_comes_closer_together_than_half_of_the_plan() -> None:
    """Of arrivals at 0, 0.4, 0.8 and 5 ms the first three are one burst; 128 B each."""
    record = delivery_record([40] * 4, interval_us=1000, arrived_us=[1, 401, 801, 5001])
    assert bursts_of(record) == Burst(1, 3 * 128)
    apart = delivery_record([40] * 3, interval_us=1000, arrived_us=[1, 501, 1001])
    assert bursts_of(apart) == Burst(0, 0)
    lost = delivery_record([40] * 3, interval_us=1000, arrived_us=[1, 2, 3], owners={1: 3})
    assert bursts_of(lost) == Burst(1, 2 * 128)


# losses, gaps, symptoms, counters


def test_losses_stand_under_their_owner() -> None:
    """Cases with a fault and the hotspot's have a row each, the others one; the sums are the ledger's."""
    records = [
        *boots([[50] * 20] * 2),
        *boots([[50] * 10] * 2, fault="cut", owners={4: 2, 5: 1}, peer={"recovery_us": 1_500_000}),
        delivery_record([50] * 10, air="hotspot", owners={1: 7}),
    ]
    shown = document(*records)
    of_all, hotspot, cut = table(shown, "losses").data
    assert [row["lost"] for row in (of_all, hotspot, cut)] == [0, 1, 4]
    assert (cut["case"], cut["sent"], cut["arrived"]) == ("plain, unpinned, 50/s, cut", 20, 16)
    assert (cut["device_call"], cut["device_tcp"], cut["access_point"]) == (2, 2, 0)
    assert (hotspot["case"], hotspot["undetermined"]) == ("plain, unpinned, 50/s, hotspot", 1)
    assert "50/s, cut: 1.50 s" in " ".join(table(shown, "losses").notes)


def test_gaps_are_of_cases_that_publish_more_often_than_that() -> None:
    """At 1 Hz each interval is a gap of 1 s, and says nothing. They are bounded as counts are: of none seen
    up to 3.0 are possible, of nine 4.70 to 15.7 (Poisson at 5 % a side)."""
    assert poisson_interval(0, 0.05).high == pytest.approx(2.9957, rel=1e-4)
    bounds = poisson_interval(9, 0.05)
    assert (bounds.low, bounds.high) == (pytest.approx(4.695, rel=1e-3), pytest.approx(15.705, rel=1e-3))
    hotspot = {"gaps_over_1s_count": 2, "gap_longest_us": 2_300_000}
    records = [
        delivery_record([50] * 601, interval_us=100_000, air="hotspot", peer=hotspot),
        delivery_record([50] * 61, interval_us=1_000_000, peer={"gaps_over_1s_count": 30}),
        delivery_record([50] * 3001),
    ]
    shown = document(*records)
    assert data(shown, "gaps", case="on the rack's air")["gaps_over_1s"] == 0
    found = data(shown, "gaps", case="plain, unpinned, 10/s, hotspot")
    assert (found["gaps_over_1s"], found["a_minute"]["value"], found["longest_us"]) == (2, 2.0, 2_300_000)


def test_symptoms_stand_beside_the_studys_reading() -> None:
    """At both points, on each air; – where nobody captured; every symptom has its filter, each of the
    study's its reading."""
    peer = {"ap_retransmission_count": None, "broker_retransmission_count": 5}
    shown = document(delivery_record([50] * 9, peer=peer), delivery_record([50] * 9, air="hotspot"))
    assert cells(shown, "symptoms", "Retransmissions")[2:] == ("–", "5", "0", "0")
    assert [row[1] != "–" for row in table(shown, "symptoms").rows] == [True] * 7 + [False] * 2
    names = {one["fact"] for one in table(shown, "symptoms").data}
    assert names == {symptom.name for symptom in SYMPTOMS}
    assert {one["symptom"] for one in table(shown, "filters").data} == names


def test_counters_are_said_to_be_whose_they_are() -> None:
    """TCP_INFO of the host under a virtual board, lwIP's own on a chip; -1 is no count."""
    told = delivery_record([50] * 9, device={"tcp_retransmits": 4}, peer={"ap_retransmission_count": 3})
    unknown = delivery_record([50] * 9, retain=1, device={"tcp_retransmits": -1})
    shown = document(told, unknown)
    found = table(shown, "counters").data
    assert [(row["case"], row["told"], row["seen"]) for row in found] == [
        ("plain, unpinned, 50/s", 4, 3),
        ("all others", None, 0),
    ]
    assert "TCP_INFO" in table(shown, "counters").notes[0]
    lwip = {"lwip_tcp_xmit": 90, "lwip_tcp_drop": 0, "lwip_tcp_memerr": 1, "lwip_tcp_retrans": 2}
    shown = document(delivery_record([50] * 9, kind="physical", device=lwip))
    assert table(shown, "counters").rows[0][-4:] == ("90", "0", "1", "2")
    assert "lwIP" in table(shown, "counters").notes[0]
