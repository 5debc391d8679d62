# SPDX-License-Identifier: Apache-2.0
"""From captured packets and noted arrivals to what the ledger knows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hil.base.errors import RigError
from hil.network.dissect.pdus import Pdu
from hil.network.dissect.segments import MqttSegment
from hil.network.ledger.attribution import attribute
from hil.network.ledger.evidence import Arrival, Handed, LossEvidence, Sighting
from hil.network.ledger.files import LEDGER_COLUMNS, read_arrivals, write_ledger
from hil.network.ledger.sightings import number_of, sighting_of, stream_facts

RUN = 0x1234ABCD
BROKER, BOARD = 1883, 50_000
# number, time, stream; ends; bytes of frame, headers and payload; sequence numbers; flags
FRAME = MqttSegment(
    *(1, 0, 0, "10.77.0.2", BOARD, "10.77.0.1", BROKER, 66, 20, 20, 0, 0, False, False, False, True, 0, 0),
    analysis=frozenset(),
    completeness=31,
    pdus=(),
)


def payload(number: object, run: object = RUN) -> bytes:
    return json.dumps({"n": number, "run": run, "planned_us": 5, "pad": "xx"}).encode()


def publish(number: object, *, run: object = RUN, qos: int = 1, packet_id: int = 7) -> Pdu:
    return Pdu("PUBLISH", 60, packet_id, "hil/aa/delivery", payload(number, run), qos)


def up(time_us: int, *pdus: Pdu, at: int = 0, length: int = 10, stream: int = 0) -> MqttSegment:
    """Return a segment from board to broker with ``length`` bytes from sequence number ``at`` on."""
    return replace(FRAME, time_us=time_us, pdus=pdus, sequence=at, payload_bytes=length, stream=stream)


def down(time_us: int, *pdus: Pdu, stream: int = 0) -> MqttSegment:
    turned = replace(FRAME, source=FRAME.destination, destination=FRAME.source, stream=stream)
    return replace(turned, source_port=BROKER, destination_port=BOARD, time_us=time_us, pdus=pdus)


@pytest.mark.parametrize(
    ("message", "number"),
    [
        (payload(12), 12),
        (payload(12, RUN + 1), None),
        (payload(12, "1"), None),
        (payload("12"), None),
        (payload(True), None),
        (b'{"run": 305441741}', None),
        (b"[12]", None),
        (b"000012xxxx", None),
        (b"\xff\xfe", None),
        (b"", None),
    ],
)
def test_a_message_is_ours_by_the_nonce_of_the_case(message: bytes, number: int | None) -> None:
    """A retained or stale message of another run, or one of another program, has no number here."""
    assert number_of(message, RUN) == number


def test_what_goes_towards_the_broker_is_seen_with_its_first_time() -> None:
    """Copies count once, by the first; other runs, other ports and the other direction not at all."""
    segments = [
        up(30, publish(1), publish(2), at=0),
        up(40, publish(1), at=10),
        up(50, publish(3, run=99), at=20),
        down(60, publish(4)),
        replace(up(70, publish(5)), destination_port=80),
        up(80, Pdu("PUBLISH", 20, 9, "hil/aa/delivery"), at=30),
    ]
    found = sighting_of(segments, run=RUN, towards=(BROKER,), complete=True)
    assert found == Sighting({1: 30, 2: 30}, complete=True, empty_count=1)
    assert sighting_of(segments, run=RUN, leaving=(BROKER,), complete=True).seen == {4: 60}


def test_an_acknowledgement_is_of_the_message_that_its_connection_sent_last_by_that_id() -> None:
    """Packet ids are used again, and each connection has its own."""
    segments = [
        up(1, publish(1, packet_id=7), at=0),
        up(2, publish(2, packet_id=8), at=10),
        down(3, Pdu("PUBACK", 4, 7)),
        up(4, publish(3, packet_id=7), at=20),
        up(5, publish(4, packet_id=7), stream=1),
        down(6, Pdu("PUBREC", 4, 7), stream=1),
        down(7, Pdu("PUBCOMP", 4, 8)),
        up(8, publish(5, run=1, packet_id=8), at=30),
        down(9, Pdu("PUBACK", 4, 8)),
        down(10, Pdu("PUBACK", 4, 99)),
    ]
    found = sighting_of(segments, run=RUN, towards=(BROKER,), complete=True)
    assert found.acknowledged == {1, 4}


def test_a_hole_in_the_bytes_makes_a_sighting_incomplete() -> None:
    """What lies behind bytes that were never captured cannot be read; filled in later, it can."""
    start = (1 << 32) - 15  # sequence numbers wrap
    first, missing, last = up(1, at=start), up(3, at=(start + 10) % (1 << 32)), up(2, at=5)
    other = up(4, at=77, stream=1)
    assert not sighting_of([first, last, other], run=RUN, towards=(BROKER,), complete=True).complete
    assert sighting_of([first, last, other, missing], run=RUN, towards=(BROKER,), complete=True).complete
    assert sighting_of([first, first, missing], run=RUN, towards=(BROKER,), complete=True).complete
    copy, behind = up(4, at=start + 2, length=5), up(5, at=(start + 10) % (1 << 32))
    assert sighting_of([first, copy, behind], run=RUN, towards=(BROKER,), complete=True).complete
    assert not sighting_of([first], run=RUN, towards=(BROKER,), complete=False).complete
    syn = replace(up(0, at=99, length=0), syn=True)
    assert sighting_of([syn, up(1, at=100)], run=RUN, towards=(BROKER,), complete=True).complete
    assert not sighting_of([syn, up(1, at=101)], run=RUN, towards=(BROKER,), complete=True).complete


def test_where_a_frame_is_unreadable_nothing_is_known_to_be_missing() -> None:
    """A frame towards the broker that cannot be read may have held any message; one of the answers, none."""
    seen, bad = up(1, publish(1)), replace(up(2, at=10), unreadable="no MQTT packet")
    back = replace(bad, source_port=BROKER, destination_port=BOARD)
    assert sighting_of([seen, back], run=RUN, towards=(BROKER,), complete=True).complete
    assert not sighting_of([seen, bad], run=RUN, towards=(BROKER,), complete=True).complete


def test_the_stream_of_arrivals_is_told_by_its_intervals() -> None:
    """A gap is an interval over one second; spacing is the deviation of intervals by their mean."""

    def at(*times_us: int) -> list[Arrival]:
        return [Arrival(n, time, 0, dup=False, retain=False) for n, time in enumerate(times_us)]

    nothing = {"gaps_over_1s_count": None, "gap_longest_us": None, "interarrival_cv": None}
    assert stream_facts(at()) == stream_facts(at(5)) == nothing
    assert stream_facts(at(0, 9)) == {"gaps_over_1s_count": 0, "gap_longest_us": 9, "interarrival_cv": None}
    even = stream_facts(at(0, 1_000_000, 2_000_000))
    assert even == {"gaps_over_1s_count": 0, "gap_longest_us": 1_000_000, "interarrival_cv": 0}
    uneven = stream_facts(at(0, 1_000_001, 1_000_001))
    assert uneven["gaps_over_1s_count"] == 1
    assert uneven["interarrival_cv"] == pytest.approx(2**0.5)
    assert stream_facts(at(3, 3, 3))["interarrival_cv"] is None


def test_ledger_csv_has_a_line_a_message(tmp_path: Path) -> None:
    """Numbers in order, names for owner, outcome and tcp, a time only where the message was seen."""
    handed = [Handed(1, 2000, 2, 0, 0, 0), Handed(0, 1000, 0, 1, 2, 0)]
    sighting = Sighting({0: 41}, complete=True)
    evidence = LossEvidence(
        handed, sighting, sighting, sighting, [Arrival(0, 45, 0, dup=False, retain=False)]
    )
    write_ledger(tmp_path / "ledger.csv", attribute(evidence), evidence)
    assert (tmp_path / "ledger.csv").read_text() == (
        f"{','.join(LEDGER_COLUMNS)}\n"
        "0,arrived,subscriber,1,1000,0,ok,1,transmitted,41,41,41,45\n"
        "1,device_call,,0,2000,0,refused,0,not_written,,,,\n"
    )
    with pytest.raises(RigError, match=r"could not write .*nowhere"):
        write_ledger(tmp_path / "nowhere" / "ledger.csv", attribute(evidence), evidence)


HEADING = "number,time_us,qos,dup,retain,run\n"


@pytest.mark.parametrize("heading", [HEADING, ""])
def test_arrivals_are_read_without_a_torn_last_line(tmp_path: Path, heading: str) -> None:
    """The subscriber may be ended while it writes: what has no end is no line. Other runs are not ours."""
    path = tmp_path / "arrivals.csv"
    path.write_text(f"{heading}3,1000,1,0,1,9\n5,1500,1,0,1,8\n0,2000,2,1,0,9\n7,30")
    assert read_arrivals(path, run=9) == [
        Arrival(3, 1000, 1, dup=False, retain=True),
        Arrival(0, 2000, 2, dup=True, retain=False),
    ]
    path.write_text("")
    assert read_arrivals(path, run=9) == []


@pytest.mark.parametrize("line", ["3,1000,1,0,1", "3,x,1,0,1,9", "", "-3,1,0,0,0,9"])
def test_a_damaged_line_of_arrivals_names_its_file_and_line(tmp_path: Path, line: str) -> None:
    """A line that is none is an error, never skipped; so is a file that is not there."""
    path = tmp_path / "arrivals.csv"
    path.write_text(f"{HEADING}1,1,0,0,0,9\n{line}\n2,2,0,0,0,9\n")
    with pytest.raises(RigError, match=r"arrivals\.csv:3: "):
        read_arrivals(path, run=9)
    with pytest.raises(RigError, match=r"none\.csv .*No such file"):
        read_arrivals(tmp_path / "none.csv", run=9)
