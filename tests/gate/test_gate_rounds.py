# SPDX-License-Identifier: Apache-2.0
"""What is still open after each look, as the boot loop asks it, against the verdict on the whole journal."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest

from hil.gate import judge
from hil.gate.judging import open_cases
from hil.model import ComparedSeries, Entry, Fault, RunRecord, Scalar
from tests.gate import compare_records as rig
from tests.gate.compare_records import BOARDS, FAILED, LOOKS, METRIC, comparison, thresholds
from tests.make_records import RUN_ID, publish_thresholds

Case = Mapping[str, Scalar]
CASES: tuple[Case, ...] = ({}, {"qos": 2}, {"transport": "tls"})
EFFECTS = (0.0, 0.07, 0.2)
METRICS = {METRIC: (0.10, 0.03), "publish_latency_p95_us": (0.10, 0.03), FAILED: (0.02, 0.005)}
LIMITS = {"publish": thresholds(METRICS)}
IDS = {publish_thresholds().case(case).case_id: number for number, case in enumerate(CASES)}


def look(
    number: int, looks: Sequence[tuple[int, int]], cases: Sequence[int], deviation: float
) -> list[RunRecord]:
    """Return the boots of one look, of these cases; the same whichever others are measured."""
    before = sum(looks[number - 2]) if number > 1 else 0
    roles = rig.order(looks)[number - 1][1]
    return [
        rig.boot(
            board,
            role,
            before + place,
            offset=EFFECTS[case] * (role == "candidate")
            + random.Random(f"{board}/{before + place}").gauss(0, deviation),
            overrides=CASES[case],
            rows=40,
        )
        for board in BOARDS
        for place, role in enumerate(roles)
        for case in cases
    ]


def decided(entries: Sequence[Entry]) -> dict[str, ComparedSeries]:
    return {item.series_id: item for item in judge(entries, LIMITS).compared}


@pytest.mark.slow
@pytest.mark.parametrize("deviation", [0.03, 0.12])
def test_what_was_decided_at_a_look_stays_decided(deviation: float) -> None:
    """What is final after a look stands in the last verdict as it stood then, whatever was measured since."""
    looks, entry = LOOKS, comparison(cases=tuple(IDS))
    entries: list[Entry] = [entry]
    everything: list[Entry] = [entry]
    open_ids = frozenset(IDS)
    frozen: dict[str, ComparedSeries] = {}
    measured = []
    for number in range(1, len(looks) + 1):
        everything += look(number, looks, range(len(CASES)), deviation)
        if open_ids:
            entries += look(number, looks, sorted(IDS[case_id] for case_id in open_ids), deviation)
            open_ids = open_cases(entry, entries, LIMITS)
            measured.append(open_ids)
        now = decided(entries)
        frozen |= {
            series_id: item
            for series_id, item in now.items()
            if series_id not in frozen and item.outcome in ("pass", "regressed", "improved")
        }
        undecided = {item.case_id for item in now.values() if item.outcome == "undecided"}
        assert open_ids == (undecided if number < len(looks) else frozenset())
    final, complete = decided(entries), decided(everything)
    assert {series_id: final[series_id] for series_id in frozen} == frozen
    assert {series_id: complete[series_id] for series_id in frozen} == frozen
    assert frozen
    assert any(len(open_ids) < len(IDS) for open_ids in measured)


def test_what_is_open_before_anything_is_measured() -> None:
    """All that may block: not a case of advice, which is measured in the first look alone, nor a case of
    identical images, which need no boot. The comparison itself need not be among the entries."""
    entry, same = comparison(), comparison(identical=True, other_sha256=rig.CANDIDATE, looks=())
    assert open_cases(entry, [], {"publish": thresholds()}) == {rig.CASE_ID}
    assert open_cases(entry, [entry], {"publish": thresholds({})}) == frozenset()
    assert open_cases(same, [same], {"publish": thresholds()}) == frozenset()


def test_a_lost_board_does_not_keep_a_case_open() -> None:
    """It counts with what it has; the others decide, and the journal says the same."""
    entry = comparison()
    own = {"publish": thresholds()}
    first, second = rig.boots(LOOKS[:2], effect=0.2, deviation=0.06)
    lost = [record for record in second if record.board != "virtual-2"]
    fault = Fault(RUN_ID, "rig", 3, "the port is gone.", "virtual-2")
    entries = [entry, *first, fault, *lost]
    assert open_cases(entry, entries, own) == frozenset()
    found = judge(entries, own).compared[0]
    assert (found.outcome, found.look) == ("regressed", 2)
    assert open_cases(entry, [entry, *first], own) == {rig.CASE_ID}


@pytest.mark.parametrize("role", ["candidate", "base"])
def test_a_board_without_one_side_is_left_out(role: str) -> None:
    """The others decide; the sentence says of which role no boot was measured."""
    entries = rig.without(rig.run(effect=0.2), lambda one: (one.board, one.role) == ("virtual-2", role))
    item = judge(entries, {"publish": thresholds()}).compared[0]
    assert item.outcome == "regressed"
    assert f"virtual-2 left out: no boot of the {role} " in item.sentence
