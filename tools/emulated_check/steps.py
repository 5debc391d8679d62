# SPDX-License-Identifier: Apache-2.0
"""The steps of the check. Each returns what it saw, in short, and what is wrong with it, by name."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import ExitCode
from hil.run.sealed import end_of
from hil.virtual.board.client import BoardControl
from tests.lab import ROOT, descendants
from tools.emulated_check.bench import BOARDS, MEASURING, RUN_S, Bench, Ended, await_match, busy_cores

SUITE = os.environ.get("SUITE") or "quick"
SEALED = "sealed and part=publish_qos1"
LEAST = "cost_least_instructions"
VERIFIED = "Hash of data verified"

Seen = tuple[str, dict[str, str]]


@dataclass(frozen=True)
class Planned:
    """A fault that one board is given in the middle of a case: whose it is, and words of its sentence."""

    name: str
    value: object
    exit_code: int
    words: str


FAULTS = (
    Planned("power", "off", ExitCode.RIG, "not a byte came"),
    Planned("silent", True, ExitCode.RIG, "not a byte came"),
    Planned("brownout", 1, ExitCode.RIG, "lost its power"),
    Planned("disconnect", "now", ExitCode.RIG, "was lost"),
)


def measure_quick(bench: Bench) -> Seen:
    """Flash and measure two chips: all cases of the suite that is meant to be quick."""
    done = bench.run("--suite", SUITE, "--thresholds", str(ROOT / "thresholds"))
    records, verdict = done.of_type("record"), done.verdict
    wrong = _faults(done)
    if done.status not in (ExitCode.PASS, ExitCode.UNDECIDED):
        wrong["exit code"] = str(done.status)
    measured = {board: sum(one["board"] == board for one in records) for board in BOARDS}
    for board, count in measured.items():
        if not count:
            wrong[board] = "measured nothing"
    images = {one["firmware_sha256"] for one in records}
    if images != {bench.inputs.firmware.sha256}:
        wrong["image"] = f"the boards' hello says {', '.join(sorted(images)) or 'nothing'}"
    wrong |= _not_flashed(done)
    outcome = f"exit {done.status}, outcome {verdict.get('outcome')}"
    same = "" if "image" in wrong else "; all say the SHA-256 of the image"
    cases = ", ".join(f"{board} {count} cases" for board, count in measured.items())
    return f"suite {SUITE}, flashed by esptool: {cases}; {outcome}{same}", wrong


def _not_flashed(done: Ended) -> dict[str, str]:
    texts = [path.read_text(errors="replace") for path in done.run.rglob("flash/*")] if done.run else []
    verified = sum(VERIFIED in text for text in texts)
    return {} if verified == len(BOARDS) else {"esptool": f"{verified} of {len(BOARDS)} flashes are verified"}


def _faults(done: Ended) -> dict[str, str]:
    faults = enumerate(done.of_type("fault"), start=1)
    return {
        f"{number} {one['board']} {one['case_id'].partition('/')[0]}".strip(): _short(one)
        for number, one in faults
    }


def _short(fault: Mapping[str, Any]) -> str:
    """Return a fault's sentence without its log, which is gone when a transcript is read, and its advice."""
    return re.split(r" (?:Log|Next): ", _without_case(str(fault["sentence"]), fault["case_id"]))[0]


def _without_case(sentence: str, case_id: str) -> str:
    """Return a sentence with a case told by its bench; one that stopped before has none."""
    return sentence.replace(case_id, f"{case_id.partition('/')[0]}/…") if case_id else sentence


def inject(bench: Bench, fault: Planned) -> Seen:
    """Give one of two boards a fault in the middle of a case; the other one measures its own."""
    with bench.running("--suite", "nightly") as running:
        board = await_match(running, MEASURING)[1]
        control = BoardControl(bench.sockets / f"{board}.sock")
        if fault.name == "power":
            control.power(str(fault.value))
        else:
            control.fault(fault.name, fault.value)
        status = running.process.wait(RUN_S)
        return judge_fault(bench.latest(status, running.said()), board, fault)


def judge_fault(done: Ended, board: str, fault: Planned) -> Seen:
    """Return whether a run named the fault, its owner and its board, and the other board is whole."""
    other = next(one for one in BOARDS if one != board)
    faults = done.of_type("fault")
    wrong: dict[str, str] = {}
    if done.status != fault.exit_code:
        wrong["exit code"] = f"{done.status}, not {int(fault.exit_code)}; said last: {done.last_line}"
    if [one["board"] for one in faults] != [board]:
        wrong["board"] = f"{len(faults)} faults, of {[one['board'] for one in faults]}, not one of {board}"
    sentence = _short(faults[0]) if faults else "no fault"
    if fault.words not in sentence:
        wrong["sentence"] = f"{fault.words!r} is not in: {sentence}"
    if [one["board"] for one in done.of_type("record")] != [other]:
        wrong[other] = "has not measured its case"
    owner = faults[0]["owner"] if faults else "nobody"
    whole = "" if other in wrong else f"; {other} measured its case"
    return f"exit {done.status}, owner {owner}: “{sentence}”{whole}", wrong


def seal(bench: Bench) -> Seen:
    """Measure a case by sealed runs, on an idle host and a busy one: all samples and consoles are equal."""
    idle = bench.cost("--suite", SEALED)
    with busy_cores() as loops:
        busy = bench.cost("--suite", SEALED)
    wrong = {
        f"exit code, {name}": f"{done.status}: {done.verdict.get('sentence') or done.last_line}"
        for name, done in (("idle", idle), ("busy", busy))
        if done.status not in (ExitCode.PASS, ExitCode.UNDECIDED)
    }
    wrong |= unequal(idle, busy)
    least = ", ".join(sorted({f"{value:,.0f}" for value in _least(idle)}))
    boots = len(idle.of_type("record")), len(busy.of_type("record"))
    return (
        f"publish call at QoS 1: {least} instructions (emulated) at least; {boots[0]} boots of an idle host "
        f"and {boots[1]} under {loops} busy loops wrote the same samples and consoles, byte by byte",
        wrong,
    )


def unequal(one: Ended, two: Ended) -> dict[str, str]:
    """Return what differs between the samples, and between the consoles, of two runs of sealed boots."""
    samples = [entry["columns"] for done in (one, two) for entry in done.of_type("record")]
    consoles = [_whole(path.read_bytes()) for done in (one, two) for path in _consoles(done)]
    wrong = {}
    if len(samples) < 4 or any(columns != samples[0] for columns in samples):
        wrong["samples"] = f"differ among {len(samples)} boots"
    if len(consoles) < 4 or len(set(consoles)) != 1:
        wrong["consoles"] = f"{len(set(consoles))} different ones of {len(consoles)} boots"
    return wrong


def _consoles(done: Ended) -> list[Path]:
    return sorted((done.run / "sealed").rglob("console.log")) if done.run else []


def _whole(console: bytes) -> bytes:
    """Return a console up to its last line: what comes after it may be cut anywhere."""
    return console[: end_of(console)]


def _least(done: Ended) -> list[float]:
    found: list[dict[str, Any]] = done.verdict.get("series", [])
    return [one["value"] for one in found if one.get("metric") == LEAST and one.get("value") is not None]


def compare_with_itself(bench: Bench) -> Seen:
    """Compare an image with itself: the same bytes cannot differ, so no board is booted."""
    image = str(bench.inputs.firmware.build_dir)
    done = bench.run("--suite", "quick", "--base", image)
    wrong = _faults(done)
    if done.status:
        wrong["exit code"] = f"{done.status}: {done.last_line}"
    if not any(entry.get("identical") for entry in done.entries):
        wrong["journal"] = "does not say that the images are identical"
    if done.of_type("record"):
        wrong["boots"] = f"{len(done.of_type('record'))} cases were measured"
    return f"the image against itself: exit {done.status}, identical, no board booted", wrong


def compare(bench: Bench) -> Seen:
    """Compare two images, by boots in turn on two boards, and by instructions."""
    assert bench.inputs.base
    base = str(bench.inputs.base.build_dir)
    done = bench.run("--suite", "quick", "--base", base)
    runs = {"hil run": done}
    if bench.inputs.counts:
        runs["hil cost"] = bench.cost("--suite", SEALED, "--base", base)
    wrong: dict[str, str] = {}
    for name, one in runs.items():
        wrong |= _faults(one)
        if one.status not in (ExitCode.PASS, ExitCode.FIRMWARE, ExitCode.UNDECIDED):
            wrong[name] = f"exit {one.status}: {one.last_line}"
    roles = {one["role"] for one in done.of_type("record")}
    if roles != {"candidate", "base"}:
        wrong["roles"] = f"measured: {', '.join(sorted(roles)) or 'nothing'}"
    boots = len({(one["board"], one["boot_index"]) for one in done.of_type("record")})
    ends = "; ".join(
        f"{name} --base: exit {one.status}, {one.verdict.get('outcome')}" for name, one in runs.items()
    )
    return f"two images, {boots} boots; {ends}", wrong


def kill(bench: Bench) -> Seen:
    """Kill a run in the middle of a case: nothing that it started is left."""
    with bench.running("--suite", "nightly") as running:
        await_match(running, MEASURING)
        family = descendants(running.process.pid)
        running.send(signal.SIGKILL)
        running.process.wait(RUN_S)
    emulators = sum(bool(re.search(r" (-icount|--save-state) ", f"{one.name} ")) for one in family)
    try:
        bench.lab.await_nothing_left(*family)
    except AssertionError as error:
        return f"{len(family)} processes", {"left": str(error)}
    wrong = {} if emulators >= len(BOARDS) else {"emulators": f"{emulators} ran, not {len(BOARDS)}"}
    return f"kill -9 of a run with {len(family)} processes, {emulators} emulators: none is left", wrong
