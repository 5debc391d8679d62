# SPDX-License-Identifier: Apache-2.0
"""Sealed runs and the instruction cost, from command to verdict; a stand-in plays QEMU and the chip."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hil.boards.firmware.build_folder import Image
from hil.boards.firmware.bundle import write_bundle
from hil.boards.firmware.revision import SourceState
from hil.cli.app import run_command
from hil.metrics.conditions import conditions_of
from hil.model import Ruler
from hil.run import sealed
from hil.store import RunDirectory
from tests.run import sealed_chip

pytestmark = pytest.mark.slow

COSTS = {"queue": 1200, "mutex": 800}
ONE_PART, TWO_PARTS = "sealed and part=queue", "sealed and (part=queue or part=mutex)"


@pytest.fixture(autouse=True)
def qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIL_QEMU_RISCV32", str(sealed_chip.install(tmp_path / "bin")))


def cost(tmp_path: Path, candidate: Path, *more: str, suite: str = ONE_PART) -> int:
    words = ["cost", "--firmware", str(candidate), "--suite", suite, "--out", str(tmp_path / "out")]
    return run_command([*words, "--no-report", *more])


def entries(tmp_path: Path, kind: str) -> list[dict[str, Any]]:
    lines = (tmp_path / "out" / "latest" / "records.jsonl").read_text().splitlines()
    return [entry for line in lines if (entry := json.loads(line))["type"] == kind]


def verdict(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((tmp_path / "out" / "latest" / "verdicts.json").read_text())
    return found


def compared(tmp_path: Path, part: str, metric: str = "cost_least_instructions") -> dict[str, Any]:
    """Return the comparison of a part's metric."""
    found: list[dict[str, Any]] = [
        one
        for one in verdict(tmp_path)["compared"]
        if one["metric"] == metric and f"part={part}," in one["case_id"]
    ]
    (only,) = found
    return only


def test_each_case_has_two_boots_that_say_the_same(tmp_path: Path) -> None:
    """Their samples are records of an emulated board, with the clock and the emulator that they are of."""
    head = sealed_chip.build(tmp_path / "head", {"costs": COSTS})
    assert cost(tmp_path, head, suite=TWO_PARTS) == 0
    records = entries(tmp_path, "record")
    assert [(one["parameters"]["part"], one["boot_index"]) for one in records] == [
        ("queue", 0), ("queue", 1), ("mutex", 0), ("mutex", 1),
    ]  # fmt: skip
    assert {(one["kind"], one["target"], one["clock"]) for one in records} == {
        ("emulated", "emulated-esp32c3", "instructions")
    }
    assert records[0]["columns"] == records[1]["columns"]
    assert not list((tmp_path / "out" / "latest").rglob("flash.bin"))  # megabytes that can be made again


def test_a_part_that_costs_more_than_its_tolerance_blocks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two per cent and one instruction more: it names the part, both figures and the exact difference.

    `hil gate` judges the run again as any other, byte for byte.
    """
    base = sealed_chip.build(tmp_path / "base", {"costs": COSTS})
    head = sealed_chip.build(tmp_path / "head", {"costs": {**COSTS, "queue": 1225}})
    assert cost(tmp_path, head, "--base", str(base), suite=TWO_PARTS) == 1
    found = compared(tmp_path, "queue")
    assert (found["outcome"], found["other_value"], found["candidate_value"]) == ("regressed", 1200, 1225)
    assert (found["change"], found["tolerance"]) == (25, 24)
    assert compared(tmp_path, "mutex")["outcome"] == "pass"
    said = " ".join(capsys.readouterr().out.split())
    assert "part=queue on " in said.partition("+2.1 % (1,200 → 1,225 ")[0][-40:]
    assert run_command(["gate", str(tmp_path / "out" / "latest")]) == 1
    assert "byte for byte" in capsys.readouterr().out


def test_each_figure_says_which_part_it_is(tmp_path: Path) -> None:
    """The part that is the bench's default is called by its name too, and not "cost" alone."""
    head = sealed_chip.build(tmp_path / "head", {"costs": {"serialise": 4000}})
    assert cost(tmp_path, head, suite="sealed and part=serialise") == 0
    assert {one["case_label"] for one in verdict(tmp_path)["series"]} == {"part=serialise"}


def test_memory_beyond_its_tolerance_blocks(tmp_path: Path) -> None:
    """A byte more than two per cent less of what was left, of heap or of a task's stack, at the same cost."""
    base = sealed_chip.build(tmp_path / "base", {"costs": COSTS})
    memory = {"heap_min_bytes": 88_199, "stack_free_min_agent_run_bytes": 2939}
    head = sealed_chip.build(tmp_path / "head", {"costs": COSTS, "memory": memory})
    assert cost(tmp_path, head, "--base", str(base)) == 1
    for metric, value in (("heap_free_min_bytes", 88_199), ("run_stack_free_min_bytes", 2939)):
        found = compared(tmp_path, "queue", metric)
        assert (found["outcome"], found["candidate_value"], found["blocking"]) == ("regressed", value, True)
    assert compared(tmp_path, "queue")["outcome"] == "pass"


def test_what_is_within_the_tolerance_is_shown_and_does_not_block(tmp_path: Path) -> None:
    """One instruction is seen as one, and passes.

    Gate and history know the emulator as a board's: boots may not differ in it, and a change of it is a
    condition that changed.
    """
    base = sealed_chip.build(tmp_path / "base", {"costs": COSTS})
    head = sealed_chip.build(tmp_path / "head", {"costs": {**COSTS, "queue": 1201}})
    assert cost(tmp_path, head, "--base", str(base)) == 0
    found = compared(tmp_path, "queue")
    assert (found["outcome"], found["change"], "emulator" in found["checks"]) == ("pass", 1, True)
    conditions = conditions_of(RunDirectory(tmp_path / "out" / "latest").read().records)
    assert (conditions["emulator"], conditions["icount"]) == ("qemu 9.2.2", "3,sleep=off")


def test_the_same_bytes_are_not_measured(tmp_path: Path) -> None:
    """Equal images cost the same, so the comparison is passed without a boot."""
    head, base = (sealed_chip.build(tmp_path / name, {"costs": COSTS}) for name in ("head", "base"))
    assert cost(tmp_path, head, "--base", str(base)) == 0
    assert not entries(tmp_path, "record")
    assert verdict(tmp_path)["outcome"] == "pass"


def test_two_boots_that_differ_measure_nothing(tmp_path: Path) -> None:
    """The rig is at fault, the line that differs is quoted, and there is no verdict."""
    assert cost(tmp_path, sealed_chip.build(tmp_path / "head", {"costs": COSTS, "noise": True})) == 3
    assert not entries(tmp_path, "record")
    fault = entries(tmp_path, "fault")[0]
    assert fault["owner"] == "rig"
    assert "line 3 is 'I (30) main: " in fault["sentence"]


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ({"crash": "abort() was called at PC 0x42008f3c on core 0"}, "called abort() in a sealed run"),
        ({"crash": "Guru Meditation Error: Core  0 panic'ed (Load access fault)."}, "panicked in a sealed"),
        ({"costs": COSTS, "bench": "publish"}, "unknown-bench"),
        ({"costs": COSTS, "status": "ESP_FAIL"}, "ended with ESP_FAIL instead of samples"),
    ],
)
def test_a_firmware_that_fails_is_at_fault(tmp_path: Path, behaviour: dict[str, Any], words: str) -> None:
    """A crash, a refusal and a case that fails: exit 1, in the board's own words, and no waiting for more."""
    assert cost(tmp_path, sealed_chip.build(tmp_path / "head", behaviour)) == 1
    assert words in entries(tmp_path, "fault")[0]["sentence"]


def test_a_firmware_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it said last is quoted; nothing of it is left running."""
    monkeypatch.setattr(sealed.boot_once, "__kwdefaults__", {"timeout_s": 0.5})
    assert cost(tmp_path, sealed_chip.build(tmp_path / "head", {"costs": COSTS, "hangs": True})) == 1
    (fault,) = entries(tmp_path, "fault")
    assert (fault["owner"], "did not finish" in fault["sentence"]) == ("firmware", True)


@pytest.mark.parametrize(
    ("behaviour", "mark"),
    [({"costs": COSTS, "bench": "publish"}, sealed_chip.COMPLAINT), ({"costs": COSTS}, b"")],
)
def test_a_base_that_is_older_is_not_compared(tmp_path: Path, behaviour: dict[str, Any], mark: bytes) -> None:
    """Without the bench, or without sealed runs: no fault of the candidate, and the reason is said."""
    base = sealed_chip.build(tmp_path / "base", behaviour, mark=mark)
    head = sealed_chip.build(tmp_path / "head", {"costs": COSTS})
    assert cost(tmp_path, head, "--base", str(base)) == 0
    assert verdict(tmp_path)["outcome"] == "no-baseline"
    assert {entry["cause"] for entry in entries(tmp_path, "not-run")} == {"not-compared"}


@pytest.mark.parametrize(
    ("cause", "asked", "status", "outcome"),
    [("sources", "4", 0, "no-baseline"), ("unknown", "4", 4, "undecided"), ("unknown", "0", 0, "undecided")],
)
def test_a_base_that_is_missing(tmp_path: Path, cause: str, asked: str, status: int, outcome: str) -> None:
    """Sources that do not build leave the limits; of anything else nothing is decided, as of `hil run`."""
    why = tmp_path / "base-failure.json"
    why.write_text(json.dumps({"schema": 1, "cause": cause, "sentence": "It stopped."}))
    head = sealed_chip.build(tmp_path / "head", {"costs": COSTS})
    assert cost(tmp_path, head, "--no-base-because", str(why), "--undecided-status", asked) == status
    assert verdict(tmp_path)["outcome"] == outcome
    assert cost(tmp_path, head, "--no-base-because", str(why), "--base", str(head)) == 2


def test_a_base_of_the_same_bytes_with_another_ruler_is_no_pass(tmp_path: Path) -> None:
    """What differs was built into both: the edited bench meets its limits, and the run has no base."""
    build_dir = sealed_chip.build(tmp_path / "build", {"costs": COSTS})
    states = {
        "head": SourceState("a" * 40, dirty=False),
        "base": SourceState("b" * 40, dirty=False, ruler=Ruler("a" * 40, dirty=False, moved=("cost",))),
    }
    for name, state in states.items():
        write_bundle(build_dir, Image("esp32c3"), tmp_path / name, state)
    assert cost(tmp_path, tmp_path / "head", "--base", str(tmp_path / "base")) == 0
    assert (verdict(tmp_path)["outcome"], len(entries(tmp_path, "record"))) == ("no-baseline", 2)
    left = entries(tmp_path, "not-run")[0]
    assert (left["cause"], "(cost)" in left["reason"]) == ("not-compared", True)


TABLE = "nvs, data, nvs, 0x9000, 0x4000\nota_0, app, ota_0, 0x10000, 0x1f0000\n"


@pytest.mark.parametrize(
    ("made", "words"), [({"table": TABLE}, "no 'scratch'"), ({"mark": b""}, "does not support sealed")]
)
def test_a_build_that_can_run_no_case_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], made: dict[str, Any], words: str
) -> None:
    """Without a place for the case in its partition table, or a firmware that knows no sealed runs: at once,
    and not after it has waited for a host for minutes."""
    assert cost(tmp_path, sealed_chip.build(tmp_path / "head", {"costs": COSTS}, **made)) == 2
    assert words in capsys.readouterr().err
