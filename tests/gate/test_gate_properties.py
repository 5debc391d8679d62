# SPDX-License-Identifier: Apache-2.0
"""Whatever a journal holds: a verdict or a clear error, never a trace, and never a pass on nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hil.base.errors import ConfigError, ExitCode
from hil.gate import judge
from hil.gate.judging import open_cases
from hil.model import Comparison, Entry, Fault, NotRun, RunRecord, Verdict
from hil.store.entries import entry_from_json
from hil.thresholds.types import Thresholds
from tests.gate import compare_records as rig
from tests.gate.compare_records import BOARDS, CASE_ID, comparison
from tests.make_records import RUN_ID, publish_thresholds

LEAN = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
ROWS = 6
LOOKS = ((2, 1), (4, 2), (6, 3))


def _thresholds() -> Thresholds:
    """Return rules for every scale, for a rate and for an exact figure; two samples are enough."""
    own = rig.thresholds(
        {
            "publish_latency_p50_us": (0.10, 0.03),
            "publish_latency_p95_us": (0.10, 0.03),
            "publish_latency_tail5_us": (0.10, 0.03),
            "publish_failed_ratio": (0.02, 0.005),
            "mutex_wait_p95_us": (50.0, 10.0),
            "serialise_p95_us": (10.0, 10.0),
            "publish_call_p95_us": (0.10, 0.03),
        }
    )
    kinds = {
        "mutex_wait_p95_us": {"scale": "identity"},
        "serialise_p95_us": {"scale": "exact", "statistic": "max"},
        "publish_call_p95_us": {"direction": "higher"},
    }
    metrics = {
        name: replace(each, **kinds.get(name, {}))  # type: ignore[arg-type]
        for name, each in own.metrics.items()
    }
    return replace(own, metrics=metrics, policy=replace(own.policy, min_samples=1))


OWN = {"publish": _thresholds()}
RULED = set(OWN["publish"].metrics)

PLAIN = tuple(record for look in rig.boots(LOOKS, boards=BOARDS[:2], rows=ROWS) for record in look)
ENTRY = comparison(boards=BOARDS[:2], looks=LOOKS)


def with_latency(record: RunRecord, latency_us: int) -> RunRecord:
    done = tuple(planned + latency_us for planned in record.columns["planned_us"])
    return replace(record, columns={**record.columns, "done_us": done})


def with_columns(record: RunRecord, value: int) -> RunRecord:
    """Return the record with one value in all columns but the outcome."""
    columns = {
        name: column if name == "outcome" else (value,) * len(column)
        for name, column in record.columns.items()
    }
    return replace(record, columns=columns)


def with_rows(record: RunRecord, rows: int) -> RunRecord:
    kept = record.warmup_rows + rows
    return replace(record, columns={name: column[:kept] for name, column in record.columns.items()})


def all_failed(record: RunRecord) -> RunRecord:
    return replace(record, columns={**record.columns, "outcome": (1,) * record.rows})


CHANGES = (
    lambda record, _: record,
    lambda record, n: with_latency(record, 7000 + n),
    lambda record, _: with_latency(record, 0),
    lambda record, _: with_latency(record, -5),
    lambda record, _: with_latency(record, 2**31 - 1),
    lambda record, n: with_latency(record, 2**52 - n),
    lambda record, _: with_columns(record, 0),
    lambda record, n: with_columns(record, 2**53 - n),
    lambda record, n: with_columns(record, -(2**53) + n),
    lambda record, _: all_failed(record),
    lambda record, _: with_rows(record, 0),
    lambda record, _: with_rows(record, 1),
    lambda record, _: replace(record, firmware_sha256="00" * 32),
    lambda record, n: replace(record, ruler_hash=f"{n}"),
    lambda record, _: replace(record, environment={}),
    lambda record, n: replace(record, environment={"device": {"rssi_dbm": -n}, "host": {"cpu_count": 0}}),
    lambda record, n: replace(record, boot_index=n),
    lambda record, _: replace(record, role="reference"),
    lambda record, _: replace(record, board="virtual-9"),
)


@st.composite
def journals(draw: st.DrawFn) -> list[Entry]:
    """Draw a journal: boots lost, changed, one after another or all alike; entries missing or added."""
    kept = draw(st.lists(st.booleans(), min_size=len(PLAIN), max_size=len(PLAIN)))
    same = draw(st.sampled_from([None, *range(len(CHANGES))]))
    numbers = st.integers(0, 1000)
    entries: list[Entry] = []
    for keep, record in zip(kept, PLAIN, strict=True):
        change = draw(st.sampled_from([0, 0, 0, *range(len(CHANGES))])) if same is None else same
        if keep:
            entries.append(CHANGES[change](record, draw(numbers)))
    if draw(st.booleans()):
        entries.append(draw(st.sampled_from(EXTRAS)))
    if draw(st.integers(0, 9)):
        entries.insert(0, draw(st.sampled_from(ENTRIES)))
    return entries


EXTRAS: tuple[Entry, ...] = (
    PLAIN[0],
    Fault(RUN_ID, "rig", 3, "the port is gone.", BOARDS[0]),
    Fault(RUN_ID, "rig", 130, "stopped."),
    NotRun(RUN_ID, BOARDS[0], CASE_ID, "not compared: the base could not measure it", "not-compared"),
    NotRun(RUN_ID, BOARDS[1], CASE_ID, "the board was lost"),
    replace(ENTRY, image="virtual-esp32+tick100"),
)
ENTRIES: tuple[Comparison, ...] = (
    ENTRY,
    ENTRY,
    replace(ENTRY, cases=()),
    replace(ENTRY, looks=((1, 1),)),
    replace(ENTRY, looks=((40, 40),)),
    replace(ENTRY, role="reference"),
    replace(ENTRY, boards=BOARDS),
    replace(ENTRY, identical=True, looks=(), other_sha256=rig.CANDIDATE),
)


def verdict_or_error(entries: Sequence[Entry]) -> Verdict | None:
    """Return the verdict, None where the journal is refused; anything else that is raised is a defect."""
    try:
        found = judge(entries, OWN)
    except ConfigError:
        return None
    json.dumps(found.to_json(), allow_nan=False)
    return found


def check(found: Verdict, entries: Sequence[Entry]) -> None:
    """A pass rests on boots of both sides that are in the journal; what is undecided has a reason."""
    records = [entry for entry in entries if isinstance(entry, RunRecord)]
    identical = any(isinstance(entry, Comparison) and entry.identical for entry in entries)
    if not any(record.role == "candidate" and record.measured_rows for record in records) and not identical:
        assert found.exit_code != ExitCode.PASS
    for item in found.compared:
        assert item.sentence.endswith(".")
        assert "nan" not in item.sentence
        assert "None" not in item.sentence
        if item.outcome in ("undecided", "no-baseline"):
            assert item.reason
        elif not identical:
            assert item.candidate_boots >= 1
            assert item.other_boots >= 1
    if any(item.blocking and item.outcome == "regressed" for item in found.compared):
        assert found.exit_code in (ExitCode.FIRMWARE, ExitCode.INTERRUPTED)


@LEAN
@given(journals())
def test_any_journal_gives_a_verdict_or_a_clear_error(entries: list[Entry]) -> None:
    """Missing, duplicated and odd boots; zeros, equal and huge values, timeouts, one sample, none."""
    found = verdict_or_error(entries)
    if found is not None:
        check(found, entries)


@pytest.mark.slow
@LEAN
@given(journals(), st.randoms(use_true_random=False))
def test_the_order_of_any_journal_does_not_matter(entries: list[Entry], chance: object) -> None:
    """The same entries in another order give the same bytes, or are refused alike."""
    shuffled = list(entries)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    one, two = verdict_or_error(entries), verdict_or_error(shuffled)
    assert (one is None) == (two is None)
    if one is not None and two is not None:
        faults = ("faults", "not_run", "sentence")  # in the order of the journal, as they happened
        first, second = ({k: v for k, v in each.to_json().items() if k not in faults} for each in (one, two))
        assert json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)


@LEAN
@given(journals())
def test_what_is_open_agrees_with_the_verdict(entries: list[Entry]) -> None:
    """A case without open comparison has none undecided, and is asked alike twice."""
    comparisons = [entry for entry in entries if isinstance(entry, Comparison)]
    found = verdict_or_error(entries)
    if found is None or len(comparisons) != 1:
        return
    open_ids = open_cases(comparisons[0], entries, OWN)
    assert open_ids == open_cases(comparisons[0], entries, OWN)
    decided = {"pass", "regressed", "improved", "no-baseline"}
    blocking = [item for item in found.compared if item.blocking]
    for case_id in open_ids:
        assert {item.outcome for item in blocking if item.case_id == case_id} - decided


@LEAN
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=6,
    ),
    st.sampled_from(sorted(ENTRY.to_json())),
    st.booleans(),
)
def test_any_damage_to_an_entry_is_an_error_that_names_it(value: object, key: str, drop: bool) -> None:
    """A comparison with a wrong, missing or unknown field is refused, or is one."""
    damaged = json.loads(json.dumps(ENTRY.to_json()))
    if drop:
        del damaged[key]
    else:
        damaged[key] = value
    try:
        entry = entry_from_json(damaged)
    except ValueError:
        return
    assert not drop
    assert entry_from_json(json.loads(json.dumps(entry.to_json()))) == entry


def test_an_integer_that_no_board_sends_is_refused() -> None:
    """Whatever computes with it may overflow."""
    huge = {**PLAIN[0].to_json(), "columns": {"planned_us": [2**53 + 1]}, "warmup_rows": 0}
    with pytest.raises(ValueError, match=r"columns\.planned_us\[0\] is 9007199254740993; .* integer <="):
        entry_from_json(huge)


def test_the_test_compares_something_on_every_scale() -> None:
    """The undamaged journal compares all metrics of the thresholds, so that the properties are about them."""
    found = judge([ENTRY, *PLAIN], OWN)
    assert {item.metric for item in found.compared if item.blocking} == RULED
    assert {publish_thresholds().case({}).case_id} == {item.case_id for item in found.compared}
