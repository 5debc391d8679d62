# SPDX-License-Identifier: Apache-2.0
"""``python -m tools.night``: a night on two racks in which things happen, and what becomes of boards.

Real are labgrid's coordinator and two exporters, `hil run --spread` on all of their boards, its ladder and
its quarantine. The boards are virtual, in one air. While the run measures, one board's cable is pulled, one
hangs until its supply is cut, one browns out again and again, one place has from the start another board than
its exporter says, and the coordinator is started anew. Exit 1 where a row is not as it has to be.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.boards.firmware.build import build
from hil.boards.places.exporter import exporter_config
from hil.boards.quarantine import folder_of, read_quarantine
from hil.boards.rack import Rack, load_rack
from hil.cli.options import aligned
from hil.virtual.board.client import BoardControl
from hil.virtual.virtual_rack import boards_up
from tests.boards.farm import LABGRID, Farm, farm_in
from tests.lab import Lab, Running, make_lab, of_type, wait_for, write_suites

RACKS, BOARDS = 2, 8
SUITE = """\
suites:
  quick:
    - {qos: [0, 1, 2], payload_bytes: [80, 96, 128, 192, 256, 512, 1024, 2048],
       count: 100, warmup: 0, interval_us: 5000}

"""
CASES = 24
STRANGER = "02:00:00:77:ff:01"  # whom the exporter of the wrong board promises
HELD = "and the run holds " + ", ".join(f"b{number}" for number in range(1, BOARDS + 1)) + " as before"
STEP_DEADLINE_S = 600.0
RUN_DEADLINE_S = 1500.0


@dataclass(frozen=True)
class Trouble:
    """What is done to a board, and what has to come of it.

    ``says`` is in what the run reports of it, ``owner`` whose fault that is ("" where none is left), ``ends``
    what becomes of the board. ``inject`` are faults of the virtual board, in their order, while it measures.
    """

    board: str
    name: str
    says: str
    owner: str
    ends: str
    inject: tuple[tuple[str, Any], ...] = ()


TROUBLES = (
    Trouble(
        "b2", "unplugged", "nothing brought it back", "rig", "quarantined", (("disconnect", "for-good"),)
    ),
    Trouble("b3", "hung", "power cycle", "", "recovered", (("hang", "power"),)),
    Trouble("b5", "brown-out loop", "brown", "rig", "quarantined", (("brownout", 1000),)),
    Trouble("b6", "wrong board", "another board answers", "configuration", "not flashed"),
)


@dataclass(frozen=True)
class Night:
    """What a run left behind."""

    status: int
    said: str
    entries: Sequence[Mapping[str, Any]]
    verdict: Mapping[str, Any]
    quarantined: frozenset[str]


@contextmanager
def rack_up(lab: Lab) -> Iterator[Rack]:
    """Keep the virtual rack up, as `hil virtual up` does."""
    up = lab.keep_up()
    try:
        up.await_line("The virtual rack is up")
        yield load_rack(lab.rack)
    finally:
        up.process.terminate()
        up.process.wait(timeout=60)


def export(farm: Farm, rack: Rack, lab: Lab) -> subprocess.Popen[bytes]:
    """Offer the rack's boards at two exporters; return the coordinator. One board is not who it should be."""
    served, text = boards_up(rack, lab.out), lab.rack.read_text()
    head, *entries = text.split("  - ")
    each = BOARDS // RACKS
    halves = []
    for number in range(RACKS):
        path = farm.folder / f"lab{number + 1}.yaml"
        path.write_text("  - ".join([head, *entries[number * each : (number + 1) * each]]))
        halves.append(path)
    (wrong,) = (board for board in rack.boards if board.id == TROUBLES[-1].board)
    changed = {path: path.read_text().replace(wrong.mac, STRANGER) for path in halves}
    for path, content in changed.items():
        path.write_text(content)
    farm.place_all(halves)
    coordinator = farm.start_coordinator()
    for number, path in enumerate(halves, start=1):
        farm.start_exporter(f"exporter-{number}", exporter_config(load_rack(path), served))
    return coordinator


def spend(lab: Lab, farm: Farm, say: Callable[[str], None]) -> Night:
    """Measure on all boards, and do to them what is planned."""
    rack_file = farm.places_rack("match: {rack: lab}")
    rack_file.write_text(rack_file.read_text() + "quarantine_after: 1\n")
    with rack_up(lab) as rack:
        coordinator = export(farm, rack, lab)
        lab.env["PATH"] = f"{LABGRID}:{lab.env['PATH']}"
        argv = lab.command("--suite", "quick", "--spread")
        argv[argv.index(str(lab.rack))] = str(rack_file)
        running = Running(argv, lab.folder / "run.txt", lab.env)
        try:
            trouble(running, lab, farm, coordinator, say)
            status = running.process.wait(timeout=RUN_DEADLINE_S)
        finally:
            running.close()
    verdict = lab.out / "latest" / "verdicts.json"
    assert verdict.exists(), running.said()
    return Night(
        status,
        running.said(),
        lab.entries(),
        json.loads(verdict.read_text()),
        frozenset(read_quarantine(folder_of(rack, lab.out))),
    )


def trouble(
    running: Running,
    lab: Lab,
    farm: Farm,
    coordinator: subprocess.Popen[bytes],
    say: Callable[[str], None],
) -> None:
    """Do to the boards what is planned, each as soon as it measures."""
    left = {one.board: one for one in TROUBLES if one.inject}
    while left:
        pattern = rf"^({'|'.join(left)}) \[[^]]*\] measuring: publish"
        await_run(running, lambda p=pattern: re.search(p, running.said(), re.MULTILINE) is not None)
        found = re.search(pattern, running.said(), re.MULTILINE)
        assert found, running.said()
        one = left.pop(found[1])
        control = BoardControl(lab.out / "virtual" / "lab" / "up" / f"{one.board}.sock")
        for name, value in one.inject:
            control.fault(name, value)
        say(f"board {one.board}: {one.name}")
        if len(left) == len(TROUBLES) - 2:  # the first of those that something is done to
            coordinator.send_signal(signal.SIGKILL)
            coordinator.wait()
            farm.start_coordinator()  # with the places that it had; who held them it has forgotten
            say("the coordinator was started anew")


def await_run(running: Running, condition: Callable[[], bool]) -> None:
    """Wait until the condition holds, or the run has ended."""
    wait_for(lambda: running.process.poll() is not None or condition(), running.said, STEP_DEADLINE_S)


def rows_of(night: Night) -> list[tuple[str, list[str], list[str]]]:
    """Return for each board its name, its cells, and what is wrong with them."""
    faults = {one["board"]: one for one in of_type(night.entries, "fault")}
    recoveries = {one["board"]: one for one in of_type(night.entries, "recovery")}
    handed = [one for one in of_type(night.entries, "not-run") if one["cause"] == "handed-over"]
    expected = {one.board: one for one in TROUBLES}
    found = []
    for board in (f"b{number}" for number in range(1, BOARDS + 1)):
        plan = expected.get(board, Trouble(board, "", "", "", "measured"))
        fault, back = faults.get(board, {}), recoveries.get(board, {})
        sentence = str(fault.get("sentence") or (f"{back['cause']} {back['by']}" if back else ""))
        to = Counter(str(one["to"]) for one in handed if one["board"] == board)
        ends = what_became(board, night, fault, back)
        cells = [
            board,
            plan.name or "–",
            shortened(sentence) or "–",
            str(fault.get("owner", "")) or "–",
            ends,
        ]
        cells.append(", ".join(f"{count} to {name}" for name, count in sorted(to.items())) or "–")
        wrong = []
        if plan.says.lower() not in sentence.lower():
            wrong.append(f"{board}: what is reported lacks {plan.says!r}")
        if str(fault.get("owner", "")) != plan.owner:
            wrong.append(
                f"{board}: the fault is {fault.get('owner', 'nobody')}'s, not {plan.owner or 'nobody'}'s"
            )
        if ends != plan.ends:
            wrong.append(f"{board}: {ends}, not {plan.ends}")
        found.append((board, cells, wrong))
    return found


def what_became(board: str, night: Night, fault: Mapping[str, Any], back: Mapping[str, Any]) -> str:
    if board in night.quarantined:
        return "quarantined"
    if fault:
        return (
            "failed"
            if any(one["board"] == board for one in of_type(night.entries, "record"))
            else "not flashed"
        )
    return "recovered" if back.get("by") else "measured"


def lost(night: Night) -> list[str]:
    """Return what is not accounted for: each case is measured, once, or not run with its reason."""
    measured = Counter(case_of(one) for one in of_type(night.entries, "record"))
    said = {one["case_id"] for one in night.verdict["not_run"] if one["expected"]}
    wrong = [f"{case}: measured {times} times" for case, times in measured.items() if times > 1]
    if len(measured.keys() | said) != CASES:
        wrong.append(f"{len(measured.keys() | said)} of {CASES} cases are measured or said not to be")
    if said:
        wrong.append(f"{len(said)} cases were not run though boards were left: {sorted(said)}")
    if night.status != 2:
        wrong.append(f"the run ended with {night.status}; a wrong board is 2")
    if HELD not in night.said:
        wrong.append("the run did not hold its places again when the coordinator was back")
    return wrong


def case_of(record: Mapping[str, Any]) -> str:
    return str(record["case_id"])


def shortened(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def table(night: Night) -> tuple[list[str], list[str]]:
    """Return the table's lines, and what is wrong."""
    rows = rows_of(night)
    head = ["board", "what happened", "reported", "fault of", "became", "cases handed over"]
    wrong = [sentence for _board, _cells, found in rows for sentence in found]
    return aligned([head, *(cells for _board, cells, _wrong in rows)]), [*wrong, *lost(night)]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help="keep the run's folder, and say where it is")
    keep = parser.parse_args(arguments).keep
    folder = Path(tempfile.mkdtemp(prefix="hil-night-"))
    try:
        firmware = build("virtual-esp32", say=print)
        lab = make_lab(folder, BOARDS, firmware=firmware)
        write_suites(folder / "thresholds", {"publish": SUITE})
        with farm_in(folder) as farm:
            night = spend(lab, farm, lambda sentence: print(f"… {sentence}", flush=True))
        lines, wrong = table(night)
        print("\n".join(lines))
        measured = len({case_of(one) for one in of_type(night.entries, "record")})
        boards = len({one["board"] for one in of_type(night.entries, "record")})
        print(f"{measured} of {CASES} cases measured on {boards} of {BOARDS} boards, exit {night.status}")
        print(
            "\n".join(f"wrong: {one}" for one in wrong) or "each row is as it has to be, and nothing is lost"
        )
        return int(bool(wrong))
    finally:
        if keep:
            print(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
