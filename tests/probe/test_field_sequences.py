# SPDX-License-Identifier: Apache-2.0
"""Sequence numbers as products publish them: counters that wrap, begin again, come late or twice; payloads
that are no JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hil.base.errors import ConfigError, FirmwareError
from hil.probe.measuring import Columns, MeasuredCase, measure_arrivals, measure_requests, read_field
from hil.probe.peers import PeerMessage, Sent
from hil.probe.probe_file import Arrivals, Field, ProbeRequest
from hil.probe.sequences import LOST_WHERE_FOUND, MODULI, SequenceNumbers
from tests.probe.scripted import console_of, probe_of

CASE = MeasuredCase(10, 0, 0.5, 40, 0)


class Subscriber:
    """hil.probe.peers.BrokerSession: hands over what came, ten at a time."""

    def __init__(self, payloads: Sequence[bytes]) -> None:
        now_ns, wall_ns = time.monotonic_ns(), time.time_ns()
        self._messages = [
            PeerMessage(now_ns + 1_000_000 * at, wall_ns, "t", payload, retained=False)
            for at, payload in enumerate(payloads)
        ]
        self.all_sent, self.last_sent = True, time.monotonic()

    def check(self) -> None: ...

    def new_messages(self) -> Sequence[PeerMessage]:
        new, self._messages = self._messages[:10], self._messages[10:]
        return new

    def requests(self) -> Sequence[Sent]:
        return [Sent(0, 0)] * CASE.rows

    def nothing_came(self, *_: object) -> Exception:
        return AssertionError("something came")


def reading(number: int, at: int = 0) -> bytes:
    return json.dumps({"seq": number, "up_s": at}).encode()


def arrivals(folder: Path, payloads: Sequence[bytes], case: MeasuredCase = CASE, more: str = "") -> Columns:
    probe = probe_of(folder, f"arrivals: {{topic: t, sequence: seq{more}}}\n")
    assert isinstance(probe.measures, Arrivals)
    broker: Any = Subscriber(payloads)
    return measure_arrivals(console_of([], probe), broker, probe.measures, case)


def counted(numbers: Sequence[int], modulus: int = 0) -> list[int]:
    counting = SequenceNumbers(modulus)
    return [counting.place(number) for number in numbers]


@pytest.mark.parametrize(
    ("bits", "is_signed"), [(bits, is_signed) for bits in (8, 12, 16, 24, 32) for is_signed in (False, True)]
)
def test_field_a_counter_that_wraps_counts_on(tmp_path: Path, bits: int, is_signed: bool) -> None:
    """Of 8, 16 or 32 bits, signed or not, without a word in the probe: every number is there."""
    top = 2 ** (bits - is_signed) - 1
    numbers = [top - 3 + at if at < 4 else at - 4 - (top + 1 if is_signed else 0) for at in range(11)]
    rows = arrivals(tmp_path, [reading(number, at) for at, number in enumerate(numbers)])
    assert rows["outcome"] == (0,) * 10
    assert rows["sequence"] == tuple(range(top - 2, top + 8))


@pytest.mark.parametrize("lost", [{255}, {0}, {254, 255, 0}])
def test_field_numbers_lost_around_a_wrap_are_lost(tmp_path: Path, lost: set[int]) -> None:
    """As many rows as numbers, each once."""
    wire = [number % 256 for number in range(250, 262)]
    rows = arrivals(tmp_path, [reading(number) for number in wire if number not in lost])
    assert sum(rows["outcome"]) == len(lost)


def test_field_a_counter_of_eight_bits_wraps_again_and_again() -> None:
    """A copy and a late one behind a wrap keep their places."""
    numbers = [*range(256)] * 3
    assert counted(numbers) == list(range(768))
    assert counted([254, 255, 0, 1, 255, 0, 2, 253]) == [254, 255, 256, 257, 255, 256, 258, 253]


def test_field_a_counter_with_a_modulus_of_its_own(tmp_path: Path) -> None:
    """From 1 to 65535, as packet identifiers are: nothing is lost at the wrap."""
    numbers = [65530, 65531, 65532, 65533, 65534, 65535, 1, 2, 3, 4, 5]
    rows = arrivals(tmp_path, [reading(number) for number in numbers], more=", modulus: 65535")
    assert rows["outcome"] == (0,) * 10


def test_field_a_number_beyond_the_modulus_is_configuration(tmp_path: Path) -> None:
    """Given or found, it is contradicted, and the sentence says what to write."""
    with pytest.raises(ConfigError, match=r"150 .*modulus 100 .*gives"):
        arrivals(tmp_path, [reading(number) for number in (1, 150)], more=", modulus: 100")
    with pytest.raises(ConfigError, match=r"257 .*modulus 256 .*seemed"):
        arrivals(tmp_path, [reading(number) for number in (255, 1, 257)])


@pytest.mark.parametrize("highest", [40, 128, 200, 251, 300, 65000])
@pytest.mark.parametrize("first", [0, 1, 30])
def test_field_a_counter_that_begins_again_is_no_wrap(tmp_path: Path, first: int, highest: int) -> None:
    """Far from any wrap, or with numbers that had come: the product restarted."""
    before = [reading(number, number) for number in range(first, highest + 1)][-60:]
    again = [reading(number, 9) for number in range(100)]
    with pytest.raises(FirmwareError, match="the product restarted") as caught:
        arrivals(tmp_path, [*before, *again], MeasuredCase(5000, 0, 0.5, 40, 0))
    assert "modulus" in caught.value.next_step


def test_field_a_counter_that_begins_again_with_equal_payloads(tmp_path: Path) -> None:
    """No copy comes a hundred numbers later."""
    payloads = [*map(reading, range(180)), *map(reading, range(180))]
    with pytest.raises(FirmwareError, match="after 179 the number 0"):
        arrivals(tmp_path, payloads, MeasuredCase(5000, 0, 0.8, 40, 0))


def test_field_copies_and_late_messages_are_no_restart(tmp_path: Path) -> None:
    """A copy is the same bytes; a late one fills its gap, however late."""
    numbers = [*range(7), 5, 6, 7, *range(9, 60), 8, 60]
    rows = arrivals(tmp_path, [reading(number) for number in numbers], MeasuredCase(50, 0, 0.5, 40, 0))
    assert rows["outcome"] == (0,) * 50
    assert rows["copies_count"][:8] == (1, 1, 1, 1, 2, 2, 1, 1)


@settings(deadline=None)
@given(
    st.sampled_from(MODULI),
    st.integers(0, 2**32),
    st.lists(st.tuples(st.integers(0, LOST_WHERE_FOUND), st.booleans()), max_size=400),
)
def test_field_numbers_without_wraps_are_those_of_the_product(
    modulus: int, begin: int, steps: list[tuple[int, bool]]
) -> None:
    """Whatever is lost on the way or swapped with its neighbour."""
    truth, at = [begin % modulus], begin % modulus
    for lost, is_swapped in steps:
        at += 1 + lost
        truth.append(at)
        if is_swapped and len(truth) > 2 and (truth[-3] // modulus == at // modulus):
            truth[-1], truth[-2] = truth[-2], truth[-1]
    assert counted([number % modulus for number in truth]) == truth


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (b'{"seq":7}\0', "no JSON"),
        (b"seq=7", "no JSON"),
        (b"", "no JSON"),
        (b'{"temp":21}', "is missing"),
        (b'{"seq":"--5"}', "is '--5', no whole number"),
        (b'{"seq":7.5}', "is 7.5, no whole number"),
    ],
)
def test_field_a_payload_without_its_number_is_told_as_it_is(
    tmp_path: Path, payload: bytes, said: str
) -> None:
    """What is no JSON lacks no field; the payload is quoted, and a NUL in it is named."""
    with pytest.raises(ConfigError, match=said) as caught:
        arrivals(tmp_path, [payload])
    assert repr(payload.decode()) in caught.value.sentence
    assert ("NUL" in caught.value.sentence) == (b"\0" in payload)


@pytest.mark.parametrize("written", ["{:.1f}", "{:e}", '"{:.0f}"', '"{:012.0f}"'])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_field_a_whole_number_is_taken_as_products_write_it(
    tmp_path: Path, written: str, encoding: str
) -> None:
    """MicroPython writes 12.0, cJSON 1.2e+16 for a large number; a byte order mark is no part of JSON."""
    payloads = [f'{{"seq":{written.format(number)}}}'.encode(encoding) for number in range(20)]
    rows = arrivals(tmp_path, payloads)
    assert (rows["sequence"], rows["outcome"]) == (tuple(range(1, 11)), (0,) * 10)


@pytest.mark.parametrize("written", ["7", "7.0", "7e0", '"7"'])
def test_field_a_key_of_a_reply_is_its_number_however_it_is_written(written: str) -> None:
    """A request's number is compared as text."""
    assert str(read_field(Field("it.probe.yaml:2", ("id",)), f'{{"id":{written}}}'.encode())) == "7"


def test_field_replies_that_are_no_json_are_told(tmp_path: Path) -> None:
    """Something came on the topic: nobody is told that nothing did."""
    request = "request: {topic: t, payload: '{n}', reply_topic: r, key: id}\n"
    probe = probe_of(tmp_path, request)
    assert isinstance(probe.measures, ProbeRequest)
    broker: Any = Subscriber([b'{"id":1}\0'])
    with pytest.raises(ConfigError, match=r"key \(id\) .*no JSON"):
        measure_requests(console_of([], probe), broker, probe.measures, CASE)
