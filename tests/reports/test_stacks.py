# SPDX-License-Identifier: Apache-2.0
"""`hil report stacks`: what a host's run left of the tasks' stacks beside what a chip's left."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from click.testing import CliRunner, Result

from hil.cli.report import command
from hil.store import RunDirectory
from tests.make_records import publish_record

Stacks = Mapping[str, int]


def stored(root: Path, *boots: tuple[Stacks, int]) -> Path:
    """Return a run of one record for each boot: device keys, and ``count`` of its case."""
    run = RunDirectory.create(root, "20261120T221257Z-quick-3fa9")
    for index, (device, count) in enumerate(boots):
        overrides = {"count": count}
        run.append(
            publish_record(boot_index=index, overrides=overrides, rows=1, environment={"device": device})
        )
    return run.path


def on(host: str, **free_bytes: int) -> Stacks:
    return {f"{host}stack_free_min_{task}_bytes": value for task, value in free_bytes.items()}


def compare(host: Path, chip: Path) -> Result:
    return CliRunner().invoke(command, ["stacks", str(host), str(chip)])


def test_tasks_stand_side_by_side_by_the_case_that_both_ran(tmp_path: Path) -> None:
    """The least of each task's boots counts; another case, or a task that one of them lacks, does not."""
    host = stored(
        tmp_path / "host",
        (on("host_", publisher=900, mqtt_task=0, only_here=1), 40),
        (on("host_", publisher=800, mqtt_task=0), 40),
        (on("host_", publisher=1), 41),
    )
    chip = stored(
        tmp_path / "chip",
        (on("", publisher=4600, mqtt_task=3600, tiT=2900), 40),
        (on("", publisher=2), 42),
    )
    said = compare(host, chip)
    assert said.exit_code == 0, said.output
    rows = [line.split() for line in said.output.splitlines()[1:]]
    assert rows == [["mqtt_task", "1", "0", "3600", ">=", "3600"], ["publisher", "1", "800", "4600", "3800"]]


def test_what_cannot_be_compared_is_said_with_the_way_out(tmp_path: Path) -> None:
    """Runs in the wrong order, or of other cases, are told by folder, and nothing is printed of them."""
    host = stored(tmp_path / "host", (on("host_", publisher=900), 40))
    chip = stored(tmp_path / "chip", (on("", publisher=900), 41))
    swapped, apart = compare(chip, host).exception, compare(host, chip).exception
    assert str(chip) in str(swapped)
    assert "no stack of a task on the host" in str(swapped)
    assert str(host) in str(apart)
    assert "no case in common" in str(apart)
