# SPDX-License-Identifier: Apache-2.0
"""What a rack's check is worth, reckoned from runs of the history: shares, intervals, what counts."""

from __future__ import annotations

import datetime
import json
import re
import shutil
from pathlib import Path

import pytest

from hil.cli.app import run_command
from hil.cli.qualify import lines
from hil.history.files import keep, path_of
from hil.history.judgements import GATE, UnchangedRun
from hil.history.qualification import DAYS, NEEDED, Nature, Qualification, qualify, share, standing
from hil.store.run_info import Standing
from tests.history.unchanged_runs import METRIC, NOW, judgement, kept, unchanged_run

LAB = Nature("lab", "physical")


def reckoned(runs: list[UnchangedRun]) -> Qualification:
    return qualify(runs, LAB, now=NOW)


def nights(count: int, blocked: int = 0) -> list[UnchangedRun]:
    """Return a run of ten judgements each night; one is blocked falsely in the first ``blocked`` of them."""
    return [
        unchanged_run(n, ("regressed" if n < blocked else "pass", *("pass",) * 9), days_ago=1 + n)
        for n in range(count)
    ]


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [
        (0, 10, 0.0, 0.3085),
        (1, 10, 0.0025, 0.4450),
        (5, 10, 0.1871, 0.8129),
        (0, 200, 0.0, 0.0183),
        (0, 0, 0, 1),
    ],
)
def test_shares_have_clopper_and_pearsons_interval(hits: int, of: int, low: float, high: float) -> None:
    """At 95 %, as tables of it have them; nothing seen leaves all possible."""
    found = share(hits, of)
    assert (found.low, found.high) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def test_judgements_and_runs_are_counted_by_target_too() -> None:
    """Two false blocks in one run are two of all judgements, and one of all runs."""
    other = tuple(judgement(outcome, target="esp32s3") for outcome in ("pass", "undecided"))
    own = tuple(map(judgement, ("regressed", "regressed", "pass", "improved")))
    both = unchanged_run(1, judgements=(*own, *other))
    found = reckoned([both, unchanged_run(2, ("pass", "pass"))])
    counts, esp32, s3 = found.counts, found.by_target["esp32"], found.by_target["esp32s3"]
    assert (found.judgements, found.runs) == (8, 2)
    assert [(one.hits, one.of) for one in (counts.blocked, counts.runs_blocked)] == [(2, 8), (1, 2)]
    assert [(one.hits, one.of) for one in (counts.undecided, counts.runs_undecided)] == [(1, 8), (1, 2)]
    assert [(one.hits, one.of) for one in (esp32.blocked, esp32.runs_blocked)] == [(2, 6), (1, 2)]
    assert [(one.hits, one.of) for one in (s3.undecided, s3.runs_undecided)] == [(1, 2), (1, 1)]
    assert found.per_night == pytest.approx(6 / 2 + 2)


def test_the_smallest_change_seen_has_median_interval_and_worst() -> None:
    """By metric: ranks 2 and 9 of ten bound the median at 95 %; five bound nothing; none told is left out."""
    effects = [0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.10, 0.11, 0.12, 0.13]
    items = [judgement(smallest_effect=effect) for effect in reversed(effects)]
    items += [judgement(metric="heap_bytes", relative=False, smallest_effect=5.0 + n) for n in range(5)]
    items += [judgement(metric="publish_failed_ratio", smallest_effect=None)]
    few, many = reckoned([unchanged_run(1, judgements=tuple(items))]).seen
    assert (many.metric, many.judgements, many.median, many.worst) == (METRIC, 10, pytest.approx(0.085), 0.13)
    assert (many.low, many.high) == (0.05, 0.12)
    assert (few.metric, few.median, few.low, few.high) == ("heap_bytes", 7.0, None, None)


@pytest.mark.parametrize(
    "changes",
    [
        {"gate": GATE - 1},
        {"rack": "attic"},
        {"noise": "typical"},
        {"days_ago": DAYS + 0.1},
        {"judgements": (judgement(kind="virtual"),)},
    ],
)
def test_what_is_of_another_rack_gate_or_time_does_not_count(changes: dict[str, object]) -> None:
    """Simulated noise, another kind, older rules and an older quarter say nothing of this rack today."""
    usual = unchanged_run(1)
    assert reckoned([usual, unchanged_run(2, **changes)]) == reckoned([usual])  # type: ignore[arg-type]


def test_a_rack_is_qualified_by_200_judgements() -> None:
    """Fewer are advisory, whatever they say; 19 nights of ten are 190."""
    assert NEEDED == 200
    assert [reckoned(nights(count)).state for count in (0, 19, 20)] == ["advisory", "advisory", "qualified"]
    assert reckoned(nights(3, blocked=3)).state == "advisory"  # too few to say so


@pytest.mark.parametrize(("blocked", "state"), [(1, "qualified"), (2, "not fit"), (20, "not fit")])
def test_a_rack_that_blocks_provably_too_often_is_not_fit(blocked: int, state: str) -> None:
    """One run of twenty may be chance at 1 %; of two the interval begins at 1.2 %, beyond what is allowed."""
    assert reckoned(nights(20, blocked)).state == state


def test_what_is_printed_fits_80_columns() -> None:
    """Long names of metrics and targets too; the state stands on its own line."""
    item = judgement()
    long = judgement(metric="request_latency_first_tls_p50_us", target="virtual-esp32s3")
    failed = judgement(
        metric="publish_failed_ratio", target=long.target, relative=False, smallest_effect=0.02
    )
    runs = [
        unchanged_run(n, judgements=(judgement("pass" if n else "regressed"), *[item] * 9, long, failed))
        for n in range(40)
    ]
    said = list(lines(reckoned(runs)))
    assert re.search(rf"lab \(physical\).* {DAYS} days, gate {GATE}", said[0])
    assert said[1] == "qualified: 480 judgements"
    assert max(map(len, said)) <= 80, "\n".join(said)
    assert "2.0 points" in "\n".join(said)
    assert re.match("advisory: 50 of 200 judgements; .* 10$", list(lines(reckoned(nights(5))))[1])
    assert list(lines(reckoned([])))[1] == "advisory: 0 of 200 judgements"
    assert re.match(r"not fit: .* 1\.2% .* 1\.0% ", list(lines(reckoned(nights(20, blocked=2))))[1])
    worst = reckoned([unchanged_run(n, ("regressed", "undecided") * 20) for n in range(90)])
    assert max(map(len, lines(worst))) <= 80


RACK = """\
schema: 1
name: lab
host: {interface: hil0, address: 10.77.0.1}
access_point: {type: external, ssid: bench, psk_env: HIL_PSK}
boards:
  - {id: b1, kind: physical, target: esp32, power: {type: none}, serial: /dev/serial/by-id/one}
"""


@pytest.fixture
def rack(tmp_path: Path) -> Path:
    path = tmp_path / "rack.yaml"
    path.write_text(RACK)
    return path


def store(folder: Path, runs: list[UnchangedRun]) -> list[Path]:
    """Write a history whose runs are as old today as they are on NOW; return its files."""
    shutil.rmtree(folder, ignore_errors=True)
    later = datetime.datetime.now(tz=datetime.UTC) - NOW
    moved = [kept(run, later) for run in runs]
    assert all(keep(folder, run) for run in moved)
    return [path_of(folder, run) for run in moved]


def test_the_command_says_by_its_status_whether_a_rack_is_qualified(
    rack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """0 where it is, 4 where it is advisory or not fit; --json says the same. What is damaged is named."""
    command = ["rack", "qualify", "--rack", str(rack), "--history", str(tmp_path / "h")]
    for runs, status, state in (
        (nights(20), 0, "qualified"),
        (nights(19), 4, "advisory"),
        (nights(20, blocked=9), 4, "not fit"),
    ):
        store(tmp_path / "h", runs)
        assert run_command(command) == status
        assert f"\n{state}: " in capsys.readouterr().out
        assert run_command([*command, "--json"]) == status
        told = json.loads(capsys.readouterr().out)
        assert (told["state"], told["judgements"]) == (state, 10 * len(runs))
    older = [unchanged_run(99, days_ago=200), unchanged_run(98, noise="typical")]
    paths = store(tmp_path / "h", [*nights(20), *older])
    assert run_command(command) == 0
    said = capsys.readouterr().out
    assert re.search("Not counted: 10 .* noise typical", said)
    assert re.search(rf"Not counted: 1 run .* {DAYS} days", said)
    paths[0].write_text("{}\n")
    assert run_command(command) == 4
    said = capsys.readouterr()
    assert "190 of 200 judgements" in said.out
    assert f"warning: {paths[0]}: " in said.err


def test_a_run_writes_down_what_is_known_of_its_rack(tmp_path: Path) -> None:
    """Without a history the count is unknown; a damaged file is named; a rack that is not in it has none."""
    folder = tmp_path / "h"
    assert standing(folder, "lab", {"physical"}, "") == Standing("advisory", None, 200)
    paths = store(folder, nights(20))
    assert standing(folder, "lab", {"physical"}, "").state == "qualified"
    assert standing(folder, "attic", {"physical"}, "").judgements == 0
    assert standing(folder, "lab", {"physical", "virtual"}, "").judgements == 0
    paths[0].write_text("{}\n")
    damaged = standing(folder, "lab", {"physical"}, "")
    assert (damaged.state, damaged.judgements) == ("advisory", 190)
    assert str(paths[0]) in damaged.why
