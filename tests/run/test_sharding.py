# SPDX-License-Identifier: Apache-2.0
"""A suite shared out to several runs: each case once, all about as long, the same whoever asks."""

from __future__ import annotations

import copy
import functools
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hil.base.errors import ConfigError
from hil.base.paths import TOOL_RACKS
from hil.boards.rack import Rack, load_rack
from hil.cli.app import run_command
from hil.run.campaign import read_campaign, read_shard
from hil.run.plan import Plan, make_plan
from hil.run.plan.sharding import (
    SHARD_MAX_S,
    Shard,
    bound_s,
    numbers_by_board,
    parse_shard,
    run_s,
    shard_of,
    shards_within,
    shares,
)
from hil.run.run_facts import run_info
from hil.thresholds import Thresholds, load_project
from tests.boards.test_health_quarantine import options
from tests.make_records import THRESHOLDS_ROOT

OF = (1, 2, 3, 7)
NIGHT = ("v1", "v4")


@functools.cache
def limits() -> dict[str, Thresholds]:
    return load_project(THRESHOLDS_ROOT)


@functools.cache
def rack() -> Rack:
    return load_rack(TOOL_RACKS / "virtual.yaml")


@functools.cache
def nightly(boards: tuple[str, ...] = NIGHT) -> Plan:
    """Return the plan of the suite that nights measure."""
    return make_plan(rack(), limits(), selection="nightly", board_ids=boards)


def pairs(plan: Plan) -> Counter[tuple[str, str]]:
    """Return how often each board has each case, what it leaves out too."""
    return Counter(
        (board.board.id, case.case_id)
        for board in plan.boards
        for case in (*board.cases, *(one.case for one in board.omitted))
    )


@pytest.mark.parametrize("of", OF)
def test_each_case_of_the_night_is_in_one_shard(of: int) -> None:
    """The shards of the real suite come to the whole of it, on each board; no two have a case in common."""
    plan = nightly()
    parts = shares(plan, of)
    assert sum((pairs(shard_of(plan, part)) for part in parts), Counter()) == pairs(plan)
    assert max(pairs(plan).values()) == 1
    assert sum(map(len, parts)) == len(frozenset().union(*parts))


@pytest.mark.parametrize("of", OF)
def test_the_shards_last_alike(of: int) -> None:
    """The longest is within a hundredth of what no sharing out could be shorter than, bring-up included."""
    plan = nightly()
    longest_s = max(run_s(shard_of(plan, part)) for part in shares(plan, of))
    assert bound_s(plan, of) <= longest_s + 1e-6
    assert longest_s <= 1.01 * bound_s(plan, of)


def test_a_night_has_as_many_shards_as_are_through_in_time() -> None:
    """Each shard of the nightly suite takes an hour at most, and of one fewer the longest would take more."""
    plan = nightly()
    of = shards_within(plan, SHARD_MAX_S)
    assert max(run_s(shard_of(plan, part)) for part in shares(plan, of)) <= SHARD_MAX_S
    assert max(run_s(shard_of(plan, part)) for part in shares(plan, of - 1)) > SHARD_MAX_S
    short = make_plan(rack(), limits(), selection="first", board_ids=NIGHT)
    assert (shards_within(short, SHARD_MAX_S), shards_within(short, 1.0)) == (1, 5)


def test_every_run_comes_to_the_same_shares() -> None:
    """The boards' order, how many of a kind there are and who is in quarantine change nothing."""
    plan = nightly()
    assert shares(nightly(NIGHT[::-1]), 3) == shares(plan, 3)
    assert shares(nightly(("v1", "v2")), 3) == shares(nightly(("v2",)), 3)
    turned = replace(plan, boards=tuple(replace(board, boots=board.boots[::-1]) for board in plan.boards))
    assert shares(turned, 3) == shares(plan, 3)


def test_a_board_of_one_core_leaves_out_its_own_share() -> None:
    """What a board cannot measure is said by the shard that has the case, and by no other."""
    plan = nightly()
    left_out = {one.case.case_id for one in plan.for_board("v4").omitted}
    assert left_out
    for part in shares(plan, 3):
        said = {one.case.case_id for one in shard_of(plan, part).for_board("v4").omitted}
        assert said == left_out & part
    told = numbers_by_board(plan, shares(plan, 3))
    assert not left_out & told["v4"].keys()
    assert {number for own in told.values() for number in own.values()} == {1, 2, 3}


def test_more_shards_than_cases_are_refused() -> None:
    """A run that would measure nothing is a configuration error, which names the most that there can be."""
    short = make_plan(rack(), limits(), selection="first", board_ids=NIGHT)
    with pytest.raises(ConfigError, match=r"5 cases of the suite 'first'.*6 shards.*at most 5"):
        shares(short, 6)


@pytest.mark.parametrize("text", ["0/2", "3/2", "2", "1/0", "1/2/3", "a/b", "-1/2", "1/1000"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    """A number beyond how many there are, or no number, is named with what to write."""
    with pytest.raises(ConfigError, match=rf"--shard {text}: not a shard.*1/4 to 4/4"):
        parse_shard(text)


def _with(option: Any, **given: Any) -> Any:
    changed = copy.copy(option)
    changed.__dict__.update(given)
    return changed


@pytest.mark.parametrize("name", ["base", "reference", "unchanged", "spread"])
def test_a_comparison_is_not_sharded(tmp_path: Path, name: str) -> None:
    """A comparison is one of all its cases; the error names both options."""
    with pytest.raises(ConfigError, match=rf"--shard 1/2 with --{name}"):
        read_shard(options(tmp_path, shard="1/2", **{name: True}))


def test_a_shard_measures_its_share_and_says_so(tmp_path: Path) -> None:
    """Its plan, its share of alpha, and in run.json which shard has which case."""
    option = options(tmp_path)
    whole = read_campaign(option)
    first, second = (read_campaign(_with(option, shard=f"{number}/2")) for number in (1, 2))
    assert pairs(first.plan) + pairs(second.plan) == pairs(whole.plan)
    assert (first.shard, first.legs, whole.legs) == (Shard(1, 2), 2, 1)
    alphas = [one.thresholds["publish"].policy.alpha for one in (whole, first)]
    assert alphas[1] == alphas[0] / 2
    told: Any = run_info(first, "run", {})["shard"]
    assert (told["number"], told["of"]) == (1, 2)
    mine = {case.case_id for case in first.plan.for_board("b1").cases}
    assert {case_id for case_id, number in told["cases"]["b1"].items() if number == 1} == mine
    assert "shard" not in run_info(whole, "run", {})


def test_the_plan_prints_its_shards(capfd: pytest.CaptureFixture[str]) -> None:
    """`hil plan --shards` says what each shard takes, the whole run, and what none could be faster than."""
    asked = ["plan", "--rack", str(TOOL_RACKS / "virtual.yaml"), "--suite", "nightly", "--shards"]
    assert run_command([*asked, "auto", "--board", "v1", "--board", "v4"]) == 0
    text = capfd.readouterr().out
    assert re.search(r"planned: [\d.]+ min in one run on v1, v4", text)
    shards = re.findall(r"shard (\d)/(\d): ([\d.]+) min, \d+ cases", text)
    assert [int(number) for number, _of, _minutes in shards] == [*range(1, int(shards[0][1]) + 1)]
    longest = max(shards, key=lambda one: float(one[2]))[2]
    assert f"the longest: {longest} min; no {len(shards)} shards could be through before" in text
    assert run_command([*asked, "many"]) == 2
    assert "--shards many: not a number of shards" in capfd.readouterr().err
