# SPDX-License-Identifier: Apache-2.0
"""Who owns a loss: every combination of evidence against a rule that is stated another way."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hil.base.errors import FirmwareError
from hil.network.ledger.attribution import Ledger, attribute
from hil.network.ledger.evidence import Arrival, Handed, LossEvidence, Outcome, Sighting, Tcp
from hil.network.ledger.points import LossPoint, Owner

NOBODY, GAPS, WHOLE = "nobody looked", "looked, with gaps", "looked, without gaps"
WATCHES = (NOBODY, GAPS, WHOLE)
CAPTURED = (LossPoint.ACCESS_POINT, LossPoint.BROKER_IN, LossPoint.BROKER_OUT)


class Known(NamedTuple):
    """All that is known of one message."""

    outcome: Outcome
    tcp: Tcp
    qos: int
    acknowledged: bool
    arrived: bool
    watched: tuple[str, str, str]
    seen: tuple[bool, bool, bool]


def combinations() -> Iterator[Known]:
    """Yield every combination; nobody sees anything, nor an acknowledgement, where nobody looks."""
    sides = list(itertools.product(Outcome, Tcp, (0, 1, 2), (False, True), (False, True)))
    for watched in itertools.product(WATCHES, repeat=3):
        sights = itertools.product(*((False,) if each == NOBODY else (False, True) for each in watched))
        for seen, side in itertools.product(list(sights), sides):
            if not side[3] or watched[1] != NOBODY:
                yield Known(*side, watched, seen)


def expected(known: Known) -> Owner:
    """State the rule by possible worlds: a loss has an owner where only one place of it fits what is known.

    In the world of place p a message was at all points before p and at none from p on; 7 is no loss.
    """
    there = {
        LossPoint.SUBSCRIBER: known.arrived,
        LossPoint.BROKER_OUT: known.seen[2],
        LossPoint.BROKER_IN: known.seen[1] or known.acknowledged or (known.qos > 0 and known.outcome == 0),
        LossPoint.ACCESS_POINT: known.seen[0] or known.tcp == 3,
        LossPoint.DEVICE_TCP: known.tcp == 2,
        LossPoint.DEVICE_CALL: known.outcome in (0, 1),
    }
    sure_if_not_there = {
        LossPoint.SUBSCRIBER: True,
        LossPoint.BROKER_OUT: known.watched[2] == WHOLE,
        LossPoint.BROKER_IN: known.watched[1] == WHOLE,
        LossPoint.ACCESS_POINT: known.watched[0] == WHOLE,
        LossPoint.DEVICE_TCP: known.tcp == 1,
        # what a call at QoS 1 or 2 could not write may be in the client's outbox
        LossPoint.DEVICE_CALL: known.outcome in (3, 4)
        or (known.outcome == 2 and (known.qos == 0 or known.tcp != 4)),
    }
    worlds = [
        place
        for place in range(1, 8)
        if all(place > point for point in LossPoint if there[point])
        and all(
            place <= point
            for point in LossPoint
            if sure_if_not_there[point] and not any(there[later] for later in LossPoint if later >= point)
        )
    ]
    assert worlds, f"nothing at all fits {known}"
    return Owner.UNDETERMINED if len(worlds) > 1 else Owner(worlds[0] % 7)


def ledger_of(group: list[Known], watched: tuple[str, str, str]) -> Ledger:
    """Attribute messages of one case: who watched is the same for all."""
    handed = [Handed(n, n * 1000, known.outcome, 1, known.tcp, known.qos) for n, known in enumerate(group)]
    sightings = [
        None
        if watched[place] == NOBODY
        else Sighting(
            {n: 50 + n for n, known in enumerate(group) if known.seen[place]},
            complete=watched[place] == WHOLE,
            acknowledged=frozenset(n for n, known in enumerate(group) if known.acknowledged and place == 1),
        )
        for place in range(3)
    ]
    arrivals = [
        Arrival(n, 90 + n, known.qos, dup=False, retain=False)
        for n, known in enumerate(group)
        if known.arrived
    ]
    return attribute(LossEvidence(handed, *sightings, arrivals))


@functools.cache
def owners() -> Mapping[Known, Owner]:
    """Return what the ledger says of every combination."""
    found = {}
    by_watch: dict[tuple[str, str, str], list[Known]] = {}
    for known in combinations():
        by_watch.setdefault(known.watched, []).append(known)
    for watched, group in by_watch.items():
        lines = ledger_of(group, watched).lines
        found |= {known: line.owner for known, line in zip(group, lines, strict=True)}
    return found


@pytest.mark.slow
def test_every_combination_of_evidence_has_the_owner_of_the_rule() -> None:
    """An owner is named where the evidence leaves one place for the loss, and nowhere else."""
    wrong = {known: owner for known, owner in owners().items() if owner is not expected(known)}
    assert not wrong
    assert set(owners().values()) == set(Owner)
    assert len(owners()) == 5 * 5 * 3 * 2 * (2 * (1 + 2 + 2) ** 2 * (2 + 2) + (1 + 2 + 2) ** 2)


def test_one_more_sighting_never_moves_a_loss_to_an_earlier_point() -> None:
    """Seen at a further point: the owner stays, is later, is nobody that can be named, or nothing is lost."""
    for known, before in owners().items():
        for place in range(3):
            if known.watched[place] == NOBODY or known.seen[place]:
                continue
            seen = tuple(each or n == place for n, each in enumerate(known.seen))
            after = owners()[known._replace(seen=seen)]  # type: ignore[arg-type]
            assert before is Owner.UNDETERMINED or after is Owner.ARRIVED or after >= before
            assert after is Owner.ARRIVED or after > CAPTURED[place]
        assert before is Owner.ARRIVED or owners()[known._replace(arrived=True)] is Owner.ARRIVED


def test_looking_more_closely_only_names_who_was_unknown() -> None:
    """A capture that was not there, or had gaps, made whole: a name stays, "undetermined" may become one."""
    for known, before in owners().items():
        for place in range(3):
            if known.watched[place] == WHOLE:
                continue
            watched = tuple(WHOLE if n == place else each for n, each in enumerate(known.watched))
            after = owners()[known._replace(watched=watched)]  # type: ignore[arg-type]
            assert after is before or before is Owner.UNDETERMINED


# --- what really happened, and what is told of it ---------------------------------------------------------

TCP_OF = {True: (Tcp.TRANSMITTED, Tcp.UNKNOWN), False: (Tcp.NEVER_TRANSMITTED, Tcp.UNKNOWN, Tcp.NOT_WRITTEN)}


@st.composite
def told(draw: st.DrawFn) -> tuple[list[int], LossEvidence]:
    """Draw where messages were lost (7: nowhere), and evidence that leaves out but never lies."""
    places = draw(st.lists(st.integers(1, 7), min_size=1, max_size=40))
    qos = draw(st.integers(0, 2))
    handed = []
    for n, place in enumerate(places):
        accepted = (
            (Outcome.OK, Outcome.TIMEOUT) if qos == 0 or place > LossPoint.BROKER_IN else (Outcome.TIMEOUT,)
        )
        refused = (Outcome.REFUSED, Outcome.OUTBOX_FULL, Outcome.OVERRUN)
        outcome = draw(st.sampled_from(accepted if place > LossPoint.DEVICE_CALL else refused))
        tcp = draw(st.sampled_from(TCP_OF[place > LossPoint.DEVICE_TCP] + (Tcp.ACKNOWLEDGED,) * (place > 3)))
        handed.append(Handed(n, n * 100, outcome, 1, tcp, qos))
    sightings = []
    for point in CAPTURED:
        whole = {n: n for n, place in enumerate(places) if place > point}
        watch = draw(st.sampled_from(WATCHES))
        part = draw(st.sets(st.sampled_from(sorted(whole)))) if whole and watch == GAPS else set(whole)
        sighting = Sighting({n: n for n in part}, complete=watch == WHOLE)
        sightings.append(None if watch == NOBODY else sighting)
    times = [n for n, place in enumerate(places) if place == 7 for _ in range(draw(st.integers(1, 3)))]
    arrivals = [Arrival(n, 7, qos, dup=False, retain=False) for n in draw(st.permutations(times))]
    return places, LossEvidence(handed, *sightings, arrivals)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(told())
def test_evidence_that_does_not_lie_never_names_a_wrong_owner(case: tuple[list[int], LossEvidence]) -> None:
    """Each loss is its true owner's or undetermined, what arrived has arrived, the sum is the number sent."""
    places, evidence = case
    ledger = attribute(evidence)
    for place, line in zip(places, ledger.lines, strict=True):
        assert line.owner in (place % 7, Owner.UNDETERMINED)
        assert (line.owner is Owner.ARRIVED) is (place == 7)
        assert line.arrivals >= (place == 7)
    facts = ledger.facts()
    lost = [value for key, value in facts.items() if key.startswith("lost_") and key != "lost_count"]
    assert sum(map(int, filter(None, lost))) == facts["lost_count"]
    assert (
        facts["sent_count"] == int(facts["arrived_count"] or 0) + int(facts["lost_count"] or 0) == len(places)
    )
    assert facts["duplicates_count"] == len(evidence.arrivals) - places.count(7)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 7), min_size=1, max_size=40))
def test_what_was_watched_without_gaps_is_told_exactly(places: list[int]) -> None:
    """With every point watched nothing is undetermined, and each point's count is what passed it."""
    outcomes = {True: Outcome.OK, False: Outcome.REFUSED}
    tcp = {True: Tcp.TRANSMITTED, False: Tcp.NEVER_TRANSMITTED}
    handed = [Handed(n, n, outcomes[p > 1], 1, tcp[p > 2], 0) for n, p in enumerate(places)]
    sightings = [
        Sighting({n: n for n, p in enumerate(places) if p > point}, complete=True) for point in CAPTURED
    ]
    arrivals = [Arrival(n, n, 0, dup=False, retain=False) for n, p in enumerate(places) if p == 7]
    ledger = attribute(LossEvidence(handed, *sightings, arrivals))
    assert [line.owner for line in ledger.lines] == [place % 7 for place in places]
    for point in (LossPoint.DEVICE_CALL, LossPoint.DEVICE_TCP, *CAPTURED):
        assert ledger.facts()[f"seen_{point.word}_count"] == sum(place > point for place in places)
    assert Counter(line.owner for line in ledger.lines)[Owner.ARRIVED] == ledger.passed_count(
        LossPoint.SUBSCRIBER
    )


# --- the cases that the rule was made for -----------------------------------------------------------------


def handed(number: int = 0, outcome: int = 0, tcp: int = 4, qos: int = 0) -> Handed:
    return Handed(number, 1000, outcome, 1, tcp, qos)


def arrival(number: int, time_us: int = 0) -> Arrival:
    return Arrival(number, time_us, 1, dup=False, retain=False)


WHOLE_AND_EMPTY = Sighting({}, complete=True)
ACKNOWLEDGED = Sighting({}, complete=False, acknowledged=frozenset({0}))
ALL_LOOKED = (WHOLE_AND_EMPTY,) * 3


@pytest.mark.parametrize(
    ("one", "sightings", "owner"),
    [
        # a QoS 1 message whose write failed may be sent by the next connection, and be lost behind it
        (handed(outcome=2, tcp=Tcp.UNKNOWN, qos=0), ALL_LOOKED, Owner.DEVICE_CALL),
        (handed(outcome=2, tcp=Tcp.NOT_WRITTEN, qos=1), ALL_LOOKED, Owner.DEVICE_CALL),
        (handed(outcome=2, tcp=Tcp.UNKNOWN, qos=1), ALL_LOOKED, Owner.UNDETERMINED),
        # PUBACK or PUBREC in a capture, or the event that the board made of it: the broker had the message
        (handed(outcome=1, qos=1), (ACKNOWLEDGED, None, WHOLE_AND_EMPTY), Owner.BROKER_OUT),
        (handed(outcome=0, qos=1), ALL_LOOKED, Owner.BROKER_OUT),
        (handed(outcome=0, tcp=2, qos=0), ALL_LOOKED, Owner.ACCESS_POINT),
        # whoever ends the TCP connection has the bytes; that may be a box before the broker
        (handed(tcp=3), (None, WHOLE_AND_EMPTY, WHOLE_AND_EMPTY), Owner.BROKER_IN),
        (handed(tcp=3), (WHOLE_AND_EMPTY, None, WHOLE_AND_EMPTY), Owner.UNDETERMINED),
    ],
)
def test_what_is_known_of_a_message_names_the_owner_of_its_loss(
    one: Handed, sightings: Sequence[Sighting | None], owner: Owner
) -> None:
    """What the outbox may hold is not known to be refused; an acknowledgement proves that the broker had it,
    one of TCP the air alone."""
    assert attribute(LossEvidence([one], *sightings)).lines[0].owner is owner


def test_a_refused_message_that_arrived_all_the_same_has_arrived() -> None:
    """The later sighting counts; nothing is lost."""
    ledger = attribute(LossEvidence([handed(outcome=2)], None, None, None, [arrival(0)]))
    assert ledger.lines[0].owner is Owner.ARRIVED
    assert ledger.facts()["seen_device_call_count"] == 1


def test_copies_count_once_and_the_first_time_counts() -> None:
    """A message of QoS 1 that came three times arrived, twice over; order is that of the first copies."""
    arrivals = [arrival(1, 10), arrival(0, 20), arrival(1, 30), arrival(2, 40), arrival(1, 50)]
    seen = Sighting({0: 3, 1: 4, 2: 5}, complete=True)
    ledger = attribute(LossEvidence([handed(n, qos=1) for n in (2, 0, 1)], seen, None, None, arrivals))
    assert [line.number for line in ledger.lines] == [0, 1, 2]
    assert (ledger.duplicates_count, ledger.out_of_order_count) == (2, 1)
    assert ledger.lines[1].arrivals == 3
    assert ledger.lines[1].times_us == {LossPoint.ACCESS_POINT: 4, LossPoint.SUBSCRIBER: 10}


def test_points_that_nobody_watched_have_no_count() -> None:
    """None, not zero: a rack without an access point of its own, a board that knows nothing of its TCP."""
    ledger = attribute(LossEvidence([handed(tcp=4)], None, Sighting({0: 1}, complete=False), None))
    facts = ledger.facts()
    assert ledger.observed == {LossPoint.DEVICE_CALL, LossPoint.BROKER_IN, LossPoint.SUBSCRIBER}
    assert facts["seen_device_tcp_count"] is None
    assert facts["seen_access_point_count"] is None
    assert facts["seen_broker_in_count"] == 1
    assert facts["lost_undetermined_count"] == 1


@pytest.mark.parametrize(
    ("rows", "sightings", "arrived", "words"),
    [
        ([handed(0)], (None, None, None), (7, 9), "number 7, 9 at the subscriber"),
        ([handed(0)], (Sighting({3: 1}, complete=True), None, None), (), "number 3 at access_point"),
        ([], (None, ACKNOWLEDGED, None), (), "number 0 at broker_in"),
        ([handed(5), handed(5)], (None, None, None), (), "number 5 more than once"),
        ([handed(outcome=9)], (None, None, None), (), "outcome 9"),
        ([handed(0)], (None, None, None), range(1, 9), "1, 2, 3, 4, 5 and 3 more"),
    ],
)
def test_what_the_board_never_sent_is_an_error_that_names_it(
    rows: list[Handed], sightings: Sequence[Sighting | None], arrived: Sequence[int], words: str
) -> None:
    """A number that is in no row, or in two, is the firmware's fault and no loss."""
    with pytest.raises(FirmwareError, match=words):
        attribute(LossEvidence(rows, *sightings, [arrival(number) for number in arrived]))
