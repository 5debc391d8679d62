# SPDX-License-Identifier: Apache-2.0
"""The claims of rtos-mqtt: each is supported, contradicted or undecided by records that say so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from hil.model import RunRecord
from hil.reports.studies.build import documents_of
from hil.reports.studies.claims import CONTRADICTED, NOT_OF_A_CHIP, SUPPORTED, UNDECIDED
from hil.reports.studies.loader import load_study
from tests.reports.study_delivery import delivery_record
from tests.reports.study_pages import claim
from tests.reports.study_records import RUN_ID

STUDY = load_study("rtos-mqtt")
UNPINNED = {"producer_core": "none", "publisher_core": "none"}
APART = {"producer_core": "0", "publisher_core": "1"}
BESIDE = {"producer_core": "1", "publisher_core": "0"}
BOOTS = 3
Records = list[RunRecord]


def finding(records: Sequence[RunRecord], name: str) -> tuple[str, str]:
    return claim(documents_of(STUDY, list(records), RUN_ID)[0], name)


def over(call_us: Sequence[int], count: int = 20, **changes: Any) -> Records:
    """Return a record a boot, each with calls that took as long as the boot's number says."""
    return [delivery_record([us] * count, boot_index=boot, **changes) for boot, us in enumerate(call_us)]


def mapped(one: Sequence[int], other: Sequence[int], cores: Any, against: Any) -> Records:
    """Return both mappings, plain and with TLS."""
    return [
        record
        for transport in ("tcp", "tls")
        for times, mapping in ((one, cores), (other, against))
        for record in over(times, transport=transport, **mapping)
    ]


def with_tls(tls: Sequence[int], plain: Sequence[int]) -> Records:
    return [*over(tls, transport="tls"), *over(plain)]


def lost(owner: int, count: int, **changes: Any) -> Records:
    """Return a record a boot in which ``count`` of 40 messages have this owner."""
    return over([50] * BOOTS, 40, owners=dict.fromkeys(range(count), owner), **changes)


def steadiness(tls: Sequence[float], plain: Sequence[float]) -> Records:
    return [
        delivery_record([50] * 9, boot_index=boot, transport=how, peer={"interarrival_cv": value})
        for how, values in (("tls", tls), ("tcp", plain))
        for boot, value in enumerate(values)
    ]


def gaps(hotspot: int, rack: int) -> Records:
    """Return ten minutes on either air, with so many gaps."""
    return [
        delivery_record([50] * 6001, interval_us=100_000, air=air, peer={"gaps_over_1s_count": count})
        for air, count in (("hotspot", hotspot), ("rack", rack))
    ]


def bursts(segments_without: Sequence[int]) -> Records:
    """Return bursts of 40 publishes: in so many segments by boot without TCP_NODELAY, in 40 with it."""
    return [
        delivery_record(
            [40] * 40,
            boot_index=boot,
            interval_us=1000,
            nodelay=nodelay,
            peer={"ap_up_publish_segments_count": 40 if nodelay else segments},
        )
        for nodelay in (0, 1)
        for boot, segments in enumerate(segments_without)
    ]


FAST, SLOW, TORN = [100, 101, 102], [18_000, 18_100, 18_050], [100, 40_000, 900]
# claim → what supports it, what contradicts it, what leaves it undecided
CASES: Mapping[str, tuple[Callable[[], Records], ...]] = {
    "pinning-hurts": (
        lambda: mapped(SLOW, FAST, APART, UNPINNED),
        lambda: mapped(FAST, FAST, APART, UNPINNED),
        lambda: mapped(TORN, FAST, APART, UNPINNED),
    ),
    "core-0-helps": (
        lambda: mapped(FAST, SLOW, BESIDE, APART),
        lambda: mapped(FAST, FAST, BESIDE, APART),
        lambda: mapped(FAST, TORN, BESIDE, APART),
    ),
    "use-core-0": (
        lambda: mapped(FAST, SLOW, BESIDE, UNPINNED),
        lambda: mapped(SLOW, FAST, BESIDE, UNPINNED),
        lambda: mapped(FAST, TORN, BESIDE, UNPINNED),
    ),
    "mutex": (
        lambda: over(FAST, mutex_us=5000, **APART),
        lambda: over(FAST, mutex_us=5, **APART),
        lambda: over([100, 9000, 100], mutex_us=2000, **APART),
    ),
    "tls-1-ms": (
        lambda: with_tls([1100, 1102, 1101], FAST),
        lambda: with_tls([9100, 9102, 9101], FAST),
        lambda: with_tls([600, 3000, 900], FAST),
    ),
    "tls-steadier": (
        lambda: steadiness([0.1, 0.11, 0.1], [0.5, 0.51, 0.5]),
        lambda: steadiness([0.5, 0.51, 0.5], [0.1, 0.11, 0.1]),
        lambda: steadiness([0.1, 0.9, 0.3], [0.5, 0.2, 0.4]),
    ),
    "network-loses": (lambda: lost(3, 10), lambda: lost(2, 10), lambda: lost(7, 10)),
    "local-timing": (
        lambda: over(FAST, 200),
        lambda: over(FAST, 200, late_us=30_000),
        lambda: over(FAST, 20),
    ),
    "use-access-point": (lambda: gaps(30, 0), lambda: gaps(0, 30), lambda: gaps(2, 1)),
    "use-esp-timer": (lambda: over(FAST), lambda: over(SLOW), lambda: over([100, 18_000, 9_000])),
    "use-nodelay": (lambda: bursts([10, 11, 10]), lambda: bursts([40, 40, 40]), lambda: bursts([40, 5, 39])),
    "log-results": (
        lambda: lost(1, 10),
        lambda: lost(3, 10),
        lambda: [*lost(1, 6), *lost(3, 6, fault="cut")],
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("n", "verdict"), [(0, SUPPORTED), (1, CONTRADICTED), (2, UNDECIDED)])
def test_each_claim_has_three_outcomes(name: str, n: int, verdict: str) -> None:
    """By intervals over three boots; what differs from boot to boot as much decides nothing."""
    assert finding(CASES[name][n](), name)[0] == verdict


@pytest.mark.parametrize("name", CASES)
def test_what_was_not_measured_is_undecided(name: str) -> None:
    """A run of one case of another kind: the reason says what is missing, or that nothing was lost."""
    verdict, reason = finding(over(FAST, interval_us=60_000_000, air="perfect"), name)
    assert verdict == UNDECIDED
    assert any(words in reason for words in ("measured", "lost")), reason


@pytest.mark.parametrize("name", ["cache", "interrupts", "socket-buffers"])
def test_what_nothing_here_can_decide_is_undecided_by_name(name: str) -> None:
    """Contention for the mutex is measured; what the study names besides has its reason."""
    verdict, reason = finding(mapped(SLOW, FAST, APART, UNPINNED), name)
    assert verdict == UNDECIDED
    assert len(reason) > 30


def test_a_claim_that_one_transport_contradicts_is_contradicted() -> None:
    """Slower where plain alone: what is said of pinning is said of both."""
    plain = [*over(SLOW, **APART), *over(FAST)]
    tls = [*over(FAST, transport="tls", **APART), *over(FAST, transport="tls")]
    assert finding(plain, "pinning-hurts")[0] == SUPPORTED
    assert finding([*plain, *tls], "pinning-hurts")[0] == CONTRADICTED


def test_verdicts_on_the_chip_are_the_virtual_racks_own() -> None:
    """What hangs on cores, speed or Wi-Fi says so on a virtual rack; what a capture shows does not."""
    virtual = mapped(SLOW, FAST, APART, UNPINNED)
    physical = over(SLOW, kind="physical", **APART) + over(FAST, kind="physical")
    for name in ("pinning-hurts", "mutex", "local-timing", "use-esp-timer"):
        assert NOT_OF_A_CHIP in finding(virtual, name)[1], name
        assert NOT_OF_A_CHIP not in finding(physical, name)[1], name
    assert NOT_OF_A_CHIP not in finding(bursts([10, 11, 10]), "use-nodelay")[1]


def test_planted_losses_say_nothing_of_the_network() -> None:
    """A cut that loses messages is no evidence; a log of the device is judged with them."""
    planted = lost(3, 10, fault="blackout")
    assert finding(planted, "network-loses")[0] == UNDECIDED
    assert finding(planted, "log-results")[0] == CONTRADICTED
