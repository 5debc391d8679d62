# SPDX-License-Identifier: Apache-2.0
"""A meter's figures beside latency: they judge nothing until a limit names them, and are absent, never 0."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pytest

from hil.base.units import format_value, unit_of
from hil.gate import judge
from hil.metrics.boot_value import boot_value
from hil.metrics.metric import METERED
from hil.model import RunRecord, Scalar, SeriesVerdict, Verdict
from hil.reports.current_notes import current_notes
from hil.reports.summary import render_markdown
from hil.thresholds.limits import Since, Where
from hil.thresholds.types import Thresholds
from tests.make_records import publish_record, publish_thresholds, run_info

ENERGY = "energy_per_message_uj"
SEEN: dict[str, Scalar] = {
    "meter": "ppk2",
    "mean_current_na": 81_500_000,
    "peak_current_na": 342_000_000,
    "energy_per_message_nj": 6_600_000,
    "messages": 110,
}


def measured(energy_nj: int | None, boot: int = 0) -> RunRecord:
    """Return a boot's record with this energy a message, without a meter's figures where it is None."""
    current = {} if energy_nj is None else {"current": {**SEEN, "energy_per_message_nj": energy_nj}}
    return publish_record(boot_index=boot, environment=current)


FAILED = publish_record(environment={"current": {"meter": "ppk2", "error": "PPK2 D4 went away: gone."}})


def limited(most_uj: float) -> Thresholds:
    """Return the bench's thresholds with a limit of a lab's own for the energy of a message."""
    base = publish_thresholds()
    since = Since(datetime.date(2026, 11, 20), "a", 200)
    own = replace(
        base.limits[0],
        where=Where({"metric": ENERGY, "kind": "virtual"}),
        value=most_uj,
        bound="max",
        since=since,
    )
    return replace(base, limits=(*base.limits, own))


def judged(*records: RunRecord, thresholds: Thresholds | None = None) -> Verdict:
    return judge(records, {"publish": thresholds or publish_thresholds()})


def energy(found: Verdict) -> SeriesVerdict:
    return next(item for item in found.series if item.metric == ENERGY)


def test_the_figures_stand_beside_the_latency_and_judge_nothing() -> None:
    """Mean, peak and energy a message are series of the case; without a limit the verdict is as before."""
    without, found = judged(measured(None)), judged(measured(6_600_000))
    added = {item.metric: item for item in found.series if item.metric in METERED}
    assert {name: item.value for name, item in added.items()} == {
        ENERGY: 6600.0,
        "mean_current_ua": 81_500.0,
        "peak_current_ua": 342_000.0,
    }
    assert not any(item.blocking for item in added.values())
    assert (found.outcome, found.exit_code) == (without.outcome, without.exit_code) == ("pass", 0)
    assert " (virtual): 6.60 mJ" in energy(found).sentence


def test_a_record_without_a_meter_has_no_such_series() -> None:
    """Where nothing was measured there is no figure and no undecided series; a 0 is a figure. Of a meter that
    was plugged in after the first boot the figure is of the other."""
    for record in (measured(None), FAILED):
        assert not {item.metric for item in judged(record).series} & set(METERED)
        assert boot_value(METERED[ENERGY], record) is None
    assert energy(judged(measured(0))).value == 0.0
    later = energy(judged(measured(None), measured(6_000_000, 1)))
    assert (later.value, later.boots, later.samples) == (6000.0, 1, 1)


def test_why_the_figures_are_absent_is_said() -> None:
    """Once a board and reason, with the number of cases, in the summary too."""
    records = [FAILED, replace(FAILED, boot_index=1), measured(None, 2)]
    (note,) = current_notes(records)
    for part in ("virtual-1", " 2 cases", "rig's fault: PPK2 D4 went away: gone."):
        assert part in note
    assert "PPK2 D4 went away" in render_markdown(run_info(), judged(*records), records)
    coarse = publish_record(environment={"current": {**SEEN, "sleep_error": "PPK2 D4C0 tells none"}})
    (note,) = current_notes([coarse])
    assert "virtual-1 asleep" in note
    assert note.endswith(" 1 case: PPK2 D4C0 tells none")


@pytest.mark.parametrize(
    ("energies_nj", "outcome"), [([7_000_000] * 2, "regressed"), ([7_000_000, 6_000_000], "pass")]
)
def test_a_limit_of_a_labs_own_blocks_where_every_boot_breaks_it(
    energies_nj: list[int], outcome: str
) -> None:
    """The interval of a figure that each boot has once is what its boots said."""
    records = [measured(value, boot) for boot, value in enumerate(energies_nj)]
    item = energy(judged(*records, thresholds=limited(6500)))
    assert (item.outcome, item.blocking) == (outcome, True)
    assert (item.low, item.high) == (min(energies_nj) / 1000, max(energies_nj) / 1000)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [("sleep_current_ua", 12.5, "12.5 µA"), ("mean_current_ua", 81_500, "81.5 mA"), (ENERGY, 6600, "6.6 mJ")],
)
def test_currents_and_energies_read_in_the_unit_that_fits(name: str, value: float, text: str) -> None:
    """µA asleep, mA awake."""
    assert format_value(value, unit_of(name)) == text
