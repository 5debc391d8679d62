# SPDX-License-Identifier: Apache-2.0
"""What is not the firmware's: surroundings that differ make a comparison undecided, never regressed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from hil.base.errors import ExitCode
from hil.gate import judge
from hil.gate.judging import open_cases
from hil.model import ComparedSeries, Entry, RunRecord, Scalar
from tests.gate import compare_records as rig
from tests.gate.compare_records import BOARDS, LOOKS, METRIC, comparison, run, thresholds
from tests.judging import told
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
    ("group", "candidate", "base", "words"),
    [
        ("access_point", {"ssid": "lab"}, {"ssid": "guest"}, "the access point guest (else lab)"),
        ("access_point", {"profile": "lab"}, {"profile": "lossy"}, "the air lossy (else lab)"),
        ("broker", {"config_sha256": "aa"}, {"config_sha256": "bb"}, "the broker bb (else aa)"),
        ("host", {"governor": "performance"}, {"governor": "powersave"}, "the host powersave (else perf"),
        ("noise", {"profile": "quiet"}, {"profile": "noisy"}, "the simulated noise noisy (else quiet)"),
        ("device", {"rssi_dbm": -90}, {"rssi_dbm": -88}, "of the candidate counts: an RSSI of -90 dBm"),
        (
            "host",
            {"load_1min": 8.0, "cpu_count": 2},
            {"load_1min": 1.0, "cpu_count": 2},
            "host load of 4 a CPU (else 0.5)",
        ),
        ("air", {"uplink_lateness_p99_us": 4000}, {"uplink_lateness_p99_us": 100}, "virtual air of 4e+03 µs"),
    ],
)
def test_what_differs_between_the_roles_is_blamed_on_the_surroundings(
    group: str, candidate: Mapping[str, Scalar], base: Mapping[str, Scalar], words: str
) -> None:
    """However much slower the candidate is: one role has no boot left, and more boots may mend it."""
    entry = comparison()
    entries = with_facts(run(effect=0.5, looks=LOOKS[:2], entry=entry), {group: candidate}, {group: base})
    found = judge(entries, OWN)
    item = found.compared[0]
    assert (item.outcome, found.exit_code) == ("undecided", ExitCode.UNDECIDED)
    assert words in item.reason
    assert item.sentence in told(found)
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


def test_a_link_that_the_image_weakens_excuses_none_of_its_boots() -> None:
    """Not even where there are too few boots to prove that more of the candidate's would be left out."""
    few = {"looks": ((2, 2),), "boards": rig.BOARDS[:3]}
    entries = run(effect=0.5, entry=comparison(**few), **few)
    item = judged(with_facts(entries, {"device": {"rssi_dbm": -90}}, {"device": {"rssi_dbm": -60}}))
    assert item.candidate_boots == item.other_boots > 0


@pytest.mark.parametrize(("key", "one", "two", "words"), DEVICE)
def test_what_changes_with_time_is_no_effect(key: str, one: Scalar, two: Scalar, words: str) -> None:
    """From the middle of a run on the room is another: the boots of before are left out, or of after."""

    def moved(record: RunRecord) -> RunRecord:
        value = two if record.boot_index >= 4 else one
        device = {**record.environment.get("device", {}), key: value}
        return replace(record, environment={**record.environment, "device": device})

    item = judged(rig.edited(run(looks=LOOKS[:2], entry=comparison(looks=LOOKS[:2])), moved))
    assert item.outcome == "pass"
    assert "changed with the image" not in item.sentence
    if key != "rssi_dbm" or two == -90:
        assert all(effect.left_out.startswith("boots ") for effect in item.effects)
        assert (item.candidate_boots, item.other_boots) == (8, 8)


def test_two_boots_do_not_tell_time_from_image() -> None:
    """One boot each, and another channel: the room may have changed in between."""
    facts: tuple[Facts, Facts] = ({"device": {"channel": 11}}, {"device": {"channel": 6}})
    item = judged(with_facts(run(effect=0.5, looks=((1, 1),), entry=comparison()), *facts))
    assert "candidate counts: the channel 11 (" in item.reason


ATTACKS = {
    "on another channel": ({"channel": 11}, {"channel": 6}, {"channel": 6}),
    "that hardly heard its access point": ({"rssi_dbm": -86}, {"rssi_dbm": -60}, {"rssi_dbm": -60}),
    "with the old RSSI, which the image moves": ({"rssi_dbm": -60}, {"rssi_dbm": -68}, {"rssi_dbm": -60}),
}


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("slower", [0.0, math.log(3.0)])
def test_a_boot_in_other_surroundings_is_left_out_and_said(attack: str, slower: float) -> None:
    """One early boot of the candidate on each board hides no threefold slowdown, and makes none."""
    early, candidate, base = ATTACKS[attack]
    looks = ((3, 3), (6, 6), (10, 10))

    def moved(record: RunRecord) -> RunRecord:
        mine = record.role == "candidate"
        facts = early if mine and record.boot_index == 0 else candidate if mine else base
        return replace(record, environment={**record.environment, "device": facts})

    entries = rig.edited(run(effect=slower, entry=comparison(looks=looks)), moved)
    for number in (1, 3):
        first = sum(looks[number - 1])
        found = judge(rig.without(entries, lambda one, first=first: one.boot_index >= first), OWN)
        item = found.compared[0]
        if slower:
            assert (item.outcome, found.exit_code) == ("regressed", ExitCode.FIRMWARE)
        elif number == 3:
            assert item.outcome == "pass"
        assert all(effect.left_out.startswith("boot 0: ") for effect in item.effects)
        assert item.sentence in told(found)


def test_boots_that_only_the_candidate_loses_are_its_doing() -> None:
    """A firmware that roams in a fifth of its boots, and is slow there, does not pass for the others."""

    def roams(record: RunRecord) -> RunRecord:
        away = record.role == "candidate" and record.boot_index in (0, 7)
        slow = rig.boot(record.board, record.role, record.boot_index, offset=1.1 if away else 0.0)
        return replace(slow, environment={**slow.environment, "device": {"channel": 11 if away else 6}})

    item = judged(rig.edited(run(entry=comparison(looks=((3, 3), (6, 6), (10, 10)))), roams))
    assert item.outcome not in ("pass", "improved")
    assert not any(effect.left_out for effect in item.effects)


@pytest.mark.parametrize(
    ("group", "candidate", "base", "check"),
    [
        ("device", {"rssi_dbm": -63}, {"rssi_dbm": -60}, "RSSI"),
        ("host", {"load_1min": 2.0, "cpu_count": 2}, {"load_1min": 1.0, "cpu_count": 2}, "host load"),
        ("device", {"channel": 6, "bssid": "02:00:00:00:00:01"}, {"channel": 6}, "channel"),
        *(("device", {key: 1}, {key: 2}, "") for key in ("power_save", "cpu_mhz", "host_heap_free_bytes")),
    ],
)
def test_what_is_alike_is_told_as_checked(
    group: str, candidate: Mapping[str, Scalar], base: Mapping[str, Scalar], check: str
) -> None:
    """What an older firmware does not report is no difference. What the firmware chooses is no environment: a
    candidate that turns on power saving and becomes slow has regressed."""
    item = judged(with_facts(run(effect=0.5), {group: candidate}, {group: base}))
    assert item.outcome == "regressed"
    assert not check or check in item.checks


def test_one_disturbed_board_is_left_out() -> None:
    """The others decide, and the sentence names the board and what differed."""
    facts: tuple[Facts, Facts] = ({"access_point": {"ssid": "lab"}}, {"access_point": {"ssid": "guest"}})
    item = judged(with_facts(run(effect=0.5), *facts, boards=("virtual-4",)))
    assert item.outcome == "regressed"
    assert "virtual-4 left out: " in item.sentence
    assert item.effects[3].note.endswith(" guest (else lab)")
    assert item.effects[3].change is None


def test_a_boot_of_another_firmware_or_clock_is_left_out() -> None:
    """What did not run the candidate says nothing of it, and two clocks are two rulers."""

    def strange(one: RunRecord) -> RunRecord:
        is_first = (one.board, one.boot_index) == ("virtual-1", 0)
        return replace(one, firmware_sha256="77" * 32) if is_first else one

    item = judged(rig.edited(run(effect=0.5), strange))
    assert item.outcome == "regressed"
    assert "virtual-1: boot 0: " in item.sentence
    assert "777777777777, not the candidate cacacacacaca" in item.sentence
    clocks = {"candidate": "esp_timer", "base": "mcycle"}
    entries = rig.edited(run(effect=0.5), lambda one: replace(one, clock=clocks[one.role]))
    assert "mcycle (else esp_timer)" in judged(entries).reason


def test_void_samples_are_the_hosts() -> None:
    """A boot with too many does not count; of a side with many more than the other none is compared."""
    own = replace(thresholds(), metrics={METRIC: void_thresholds().metrics[METRIC]})

    def judged_with(void: int) -> ComparedSeries:
        def spoil(record: RunRecord) -> RunRecord:
            first = record.warmup_rows
            rows = range(first, first + (void if record.role == "candidate" else 0))
            outcome = tuple(2 if n in rows else value for n, value in enumerate(record.columns["outcome"]))
            late = tuple(9000 * (value == 2) for value in outcome)
            return replace(record, columns={**record.columns, "outcome": outcome, "host_late_us": late})

        return judge(rig.edited(run(effect=0.5), spoil), {"publish": own}).compared[0]

    assert "void share of 0.15 " in judged_with(9).reason
    assert "of the candidate counts" in judged_with(30).reason
    assert judged_with(2).outcome == "regressed"
