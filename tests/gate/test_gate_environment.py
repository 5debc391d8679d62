# SPDX-License-Identifier: Apache-2.0
"""What is not the firmware's: surroundings that differ make a comparison undecided, never regressed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from hil.base.errors import ExitCode
from hil.gate import judge
from hil.gate.judging import open_cases
from hil.model import ComparedSeries, Entry, RunRecord, Scalar
from tests.gate import compare_records as rig
from tests.gate.compare_records import BOARDS, LOOKS, METRIC, comparison, run, thresholds
from tests.make_records import void_thresholds

OWN = {"publish": thresholds()}
Facts = Mapping[str, Mapping[str, Scalar]]


def with_facts(
    entries: list[Entry], candidate: Facts, base: Facts, boards: tuple[str, ...] = BOARDS
) -> list[Entry]:
    """Return the journal, with facts of the environment by role on these boards."""

    def change(record: RunRecord) -> RunRecord:
        own = (candidate if record.role == "candidate" else base) if record.board in boards else {}
        groups = {name: {**record.environment.get(name, {}), **facts} for name, facts in own.items()}
        return replace(record, environment={**record.environment, **groups})

    return rig.edited(entries, change)


def judged(entries: list[Entry]) -> ComparedSeries:
    return judge(entries, OWN).compared[0]


@pytest.mark.parametrize(
    ("group", "key", "one", "two", "words"),
    [
        ("access_point", "ssid", "lab", "guest", "access point (guest and lab)"),
        ("access_point", "profile", "lab", "lab, changed by hand", "air (lab and lab, changed by hand)"),
        ("broker", "config_sha256", "aa", "bb", "broker (aa and bb)"),
        ("host", "governor", "performance", "powersave", "host (performance and powersave)"),
        ("noise", "profile", "quiet", "noisy", "simulated noise"),
    ],
)
def test_a_fact_that_differs_is_blamed_on_the_environment(
    group: str, key: str, one: Scalar, two: Scalar, words: str
) -> None:
    """However much slower the candidate is; more boots do not mend it, so none is asked for."""
    entries = with_facts(run(effect=0.5), {group: {key: one}}, {group: {key: two}})
    found = judge(entries, OWN)
    item = found.compared[0]
    assert (item.outcome, found.exit_code) == ("undecided", ExitCode.UNDECIDED)
    assert f"its boots differ in the {words}" in item.reason
    assert item.sentence in found.warnings
    assert "(mend what the warnings name, and run it again)" in found.sentence
    assert open_cases(comparison(), entries, OWN) == frozenset()


@pytest.mark.parametrize(
    ("group", "candidate", "base", "words"),
    [
        ("device", {"rssi_dbm": -90}, {"rssi_dbm": -88}, "the RSSI was out of its band (-90 dBm"),
        (
            "host",
            {"load_1min": 8.0, "cpu_count": 2},
            {"load_1min": 1.0, "cpu_count": 2},
            "the host load differs by more than 1 a CPU (4 a CPU with the candidate, 0.5 with the other)",
        ),
        (
            "air",
            {"uplink_lateness_p99_us": 4000},
            {"uplink_lateness_p99_us": 100},
            "the lateness of the virtual air differs by more than 1000 µs",
        ),
    ],
)
def test_a_figure_out_of_its_band_is_blamed_on_the_environment(
    group: str, candidate: Mapping[str, Scalar], base: Mapping[str, Scalar], words: str
) -> None:
    """Medians are compared; what more boots may mend keeps the case open."""
    entry = comparison()
    entries = with_facts(run(effect=0.5, looks=LOOKS[:2], entry=entry), {group: candidate}, {group: base})
    item = judged(entries)
    assert item.outcome == "undecided"
    assert words in item.reason
    assert open_cases(entry, entries, OWN) == {rig.CASE_ID}


DEVICE = [
    ("bssid", "02:00:00:00:00:01", "02:00:00:00:00:02", "BSSID"),
    ("channel", 6, 11, "channel"),
    ("speed_mbps", 100, 10, "cable"),
    ("sched", "fifo", "freertos", "real-time priority"),
    ("rssi_dbm", -60, -70, "RSSI"),
    ("rssi_dbm", -60, -90, "RSSI"),  # the candidate has hardly a link, by its own doing
]


@pytest.mark.parametrize(("key", "one", "two", "words"), DEVICE)
def test_what_changes_with_the_image_is_an_effect(key: str, one: Scalar, two: Scalar, words: str) -> None:
    """A candidate that transmits at less power, or roams, and becomes slow has regressed; it is told why."""
    item = judged(with_facts(run(effect=0.5), {"device": {key: two}}, {"device": {key: one}}))
    assert item.outcome == "regressed"
    assert f"the {words} changed with the image (" in item.sentence


@pytest.mark.parametrize(("key", "one", "two", "words"), DEVICE)
def test_what_changes_with_time_is_no_effect(key: str, one: Scalar, two: Scalar, words: str) -> None:
    """From the third boot on the room is another, and most of the candidate's boots come later."""
    entries = run(effect=0.5, looks=LOOKS[:2])
    early = with_facts(entries, {"device": {key: one}}, {"device": {key: one}})
    late = with_facts(entries, {"device": {key: two}}, {"device": {key: one}})
    moved = [
        two_ if isinstance(two_, RunRecord) and two_.boot_index > 1 else one_
        for one_, two_ in zip(early, late, strict=True)
    ]
    item = judged(moved)
    assert item.outcome == "undecided"
    assert words in item.reason


def test_two_boots_do_not_tell_time_from_image() -> None:
    """One boot each, and another channel: the room may have changed in between."""
    facts: tuple[Facts, Facts] = ({"device": {"channel": 11}}, {"device": {"channel": 6}})
    item = judged(with_facts(run(effect=0.5, looks=((1, 1),), entry=comparison()), *facts))
    assert "its boots differ in the channel (11 and 6)" in item.reason


@pytest.mark.parametrize(
    ("group", "candidate", "base", "check"),
    [
        ("device", {"rssi_dbm": -63}, {"rssi_dbm": -60}, "RSSI"),
        ("host", {"load_1min": 2.0, "cpu_count": 2}, {"load_1min": 1.0, "cpu_count": 2}, "host load"),
        ("device", {"channel": 6, "bssid": "02:00:00:00:00:01"}, {"channel": 6}, "channel"),
    ],
)
def test_what_is_alike_is_told_as_checked(
    group: str, candidate: Mapping[str, Scalar], base: Mapping[str, Scalar], check: str
) -> None:
    """What an older firmware does not report is no difference."""
    item = judged(with_facts(run(effect=0.5), {group: candidate}, {group: base}))
    assert item.outcome == "regressed"
    assert check in item.checks


@pytest.mark.parametrize("key", ["power_save", "cpu_mhz", "host_heap_free_bytes"])
def test_what_the_firmware_chooses_is_no_environment(key: str) -> None:
    """A candidate that turns on power saving and becomes slow has regressed."""
    entries = with_facts(run(effect=0.5), {"device": {key: 1}}, {"device": {key: 2}})
    assert judged(entries).outcome == "regressed"


def test_one_disturbed_board_is_left_out() -> None:
    """The others decide, and the sentence names the board and what differed."""
    facts: tuple[Facts, Facts] = ({"access_point": {"ssid": "lab"}}, {"access_point": {"ssid": "guest"}})
    item = judged(with_facts(run(effect=0.5), *facts, boards=("virtual-4",)))
    assert item.outcome == "regressed"
    assert "virtual-4 left out: its boots differ in the access point (guest and lab)" in item.sentence
    assert item.effects[3].note
    assert item.effects[3].change is None


def test_another_clock_is_not_compared() -> None:
    """Two clocks are two rulers."""
    entries = rig.edited(
        run(effect=0.5), lambda one: replace(one, clock="mcycle") if one.role == "base" else one
    )
    assert "its boots differ in the clock (esp_timer and mcycle)" in judged(entries).reason


def test_a_boot_of_another_firmware_leaves_its_board_out() -> None:
    """What did not run the candidate says nothing of it."""

    def strange(one: RunRecord) -> RunRecord:
        is_first = (one.board, one.boot_index) == ("virtual-1", 0)
        return replace(one, firmware_sha256="77" * 32) if is_first else one

    item = judged(rig.edited(run(effect=0.5), strange))
    assert item.outcome == "regressed"
    assert "virtual-1 left out: its boot 0 ran 777777777777, not the candidate cacacacacaca" in item.sentence


def test_void_samples_are_the_hosts() -> None:
    """A boot with too many does not count; a side with many more than the other is not compared."""
    own = replace(thresholds(), metrics={METRIC: void_thresholds().metrics[METRIC]})

    def judged_with(void: int) -> ComparedSeries:
        def spoil(record: RunRecord) -> RunRecord:
            first = record.warmup_rows
            rows = range(first, first + (void if record.role == "candidate" else 0))
            outcome = tuple(2 if n in rows else value for n, value in enumerate(record.columns["outcome"]))
            late = tuple(9000 * (value == 2) for value in outcome)
            return replace(record, columns={**record.columns, "outcome": outcome, "host_late_us": late})

        return judge(rig.edited(run(effect=0.5), spoil), {"publish": own}).compared[0]

    assert "the host's scheduling was late more often" in judged_with(9).reason
    assert "no boot of the candidate counts" in judged_with(30).reason
    assert judged_with(2).outcome == "regressed"
