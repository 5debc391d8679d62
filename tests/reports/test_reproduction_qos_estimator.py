# SPDX-License-Identifier: Apache-2.0
"""The estimator of the study mqtt-qos: what it drops, what it cuts, and where its unit changes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.reports.studies.mqtt_qos.echoes import Echoes, Noted, TheirMean, difftime_number, pooled
from hil.reports.studies.mqtt_qos.impaired import collapses
from tests.reports.qos_records import echo_record


def logged(*round_trips_ms: float | None) -> tuple[list[Noted], list[Noted]]:
    """Return what was sent and what came back; the first is 000000, None never came back."""
    sent = [Noted(number, 1_000_000 * number) for number in range(len(round_trips_ms))]
    received = [
        Noted(one.number, one.time_us + round(1000 * ms))
        for one, ms in zip(sent, round_trips_ms, strict=True)
        if ms is not None
    ]
    return sent, received


@pytest.mark.parametrize(
    ("milliseconds", "number"),
    [
        (59_900, 59.9),
        (59_999, 59.999),
        (60_000, 1.0),
        (61_000, 61 / 60),
        (3_599_999, 3_599_999 / 60_000),
        (3_600_000, 1.0),
        (86_400_000, 1.0),
        (0, 0.0),
        (-61_000, -61 / 60),
    ],
)
def test_the_unit_changes_at_a_minute_an_hour_and_a_day(milliseconds: int, number: float) -> None:
    """R's difftime() takes the largest unit of which there is one at least."""
    assert difftime_number(milliseconds) == pytest.approx(number)


def test_one_mean_on_both_sides_of_a_minute() -> None:
    """59.9 s are 59.9, 60.0 s are 1, 61 s are 1.0167: averaged as seconds; the true mean beside."""
    found = pooled([logged(5, 59_900, 60_000, 61_000)])
    assert found.as_published_ms == pytest.approx(1000 * (59.9 + 1 + 61 / 60) / 3)
    assert found.true_ms == pytest.approx((59_900 + 60_000 + 61_000) / 3)
    assert (found.n, found.wrong_unit_count) == (3, 2)


@pytest.mark.parametrize(
    ("logs", "wanted"),
    [
        ([logged(5000, 10, 20)], TheirMean(15, 15, 2, 0, 0)),
        ([logged(None, 10, 20)], TheirMean(15, 15, 2, 0, 0)),
        ([logged(5, 10, None, None, 30)], TheirMean(20, 20, 2, 0, 2)),
        ([logged(5, None)], TheirMean(None, None, 0, 0, 1)),
        ([logged(1, 10), logged(1, 40, 40, 40)], TheirMean(32.5, 32.5, 4, 0, 0)),
    ],
)
def test_what_is_in_the_mean(logs: list[tuple[list[Noted], list[Noted]]], wanted: TheirMean) -> None:
    """000000, the cold one, is in neither mean and not among the lost. The mean is that of the survivors;
    without any there is none. Of several runs the one with most messages has most of the weight.
    """
    assert pooled(logs) == wanted


def test_echoes_are_found_by_their_number() -> None:
    """In whatever order they come. A later duplicate changes nothing, nor does a message that was logged as
    sent twice. Numbers turn over at six digits: message 1,000,000 has the id 000000 and is left out with it.
    Times are cut to whole ms: 0.2 ms over the turn of one are 1 ms; 0.9 ms within one are 0, which does not
    count."""
    sent, received = logged(5, 3000, 10, 20)
    assert pooled([(sent, sorted(received, key=lambda one: one.time_us))]).true_ms == pytest.approx(1010)
    sent, received = logged(5, 10, 20)
    again = [Noted(1, received[1].time_us + 90_000_000), Noted(2, received[2].time_us + 5000)]
    assert pooled([([*sent, Noted(1, sent[1].time_us + 7000)], [*received, *again])]).true_ms == 15
    sent = [Noted(number, 1000 * number) for number in (999_999, 1_000_000, 1_000_001)]
    assert pooled([(sent, [Noted(one.number % 1_000_000, one.time_us + 4000) for one in sent])]).n == 2
    sent = [Noted(1, 1900), Noted(2, 5000), Noted(3, 9000)]
    received = [Noted(1, 2100), Noted(2, 5900), Noted(3, 12_999)]
    assert pooled([(sent, received)]) == TheirMean(2, 2, 2, 0, 0)


@given(st.lists(st.integers(1, 59_999), min_size=1, max_size=30))
def test_below_a_minute_both_means_are_one(round_trips_ms: list[int]) -> None:
    """The error is the unit's alone."""
    found = pooled([logged(1, *round_trips_ms)])
    assert found.as_published_ms == pytest.approx(found.true_ms)
    assert found.wrong_unit_count == 0


def _falls(numbers: Sequence[float]) -> int:
    return sum(after < before for before, after in pairwise(numbers))


def test_the_fin_comes_out_of_a_steady_rise() -> None:
    """A queue that grows from 0.5 to 68 s never falls; in R's units it falls once, at a minute, to 1."""
    rise = [500 + 120 * n for n in range(563)]
    in_r = [difftime_number(ms) for ms in rise]
    assert (_falls(rise), collapses(rise)) == (0, 0)
    assert _falls(in_r) == 1
    assert max(in_r) < 60
    assert in_r[-1] == pytest.approx(rise[-1] / 60_000)
    found = pooled([logged(1, *rise)])
    assert found.as_published_ms is not None
    assert found.true_ms is not None
    assert found.as_published_ms < 0.8 * found.true_ms


def test_a_record_becomes_the_log_that_the_study_would_have_kept() -> None:
    """From the sending, warm-up as 000000; refused, dropped and overrun messages were never sent."""
    record = echo_record([900, 10, 20, None, None, 30], late_ms=7, outcomes={3: 2, 4: 1})
    assert Echoes((record,)).theirs == TheirMean(20, 20, 3, 0, 1)


def test_their_way_is_of_the_first_boot() -> None:
    """The study had one run for each value; ours of all boots stand beside it."""
    records = (echo_record([1, 10, 10]), echo_record([1, 90, 90], boot_index=1))
    found = Echoes(records)
    assert (found.theirs.true_ms, found.n, found.boots) == (10, 4, 2)
