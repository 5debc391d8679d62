# SPDX-License-Identifier: Apache-2.0
"""Fuzz every reader, guided by coverage: `make fuzz SECONDS=n`; the corpus is kept in out/fuzz.

    python -m tools.fuzz [--seconds N] [--only PATTERN]

Prints for each reader how many inputs it was given, how many a second, how many of its branches they reach
and how many inputs the corpus holds. Exit 1 where an input breaks a rule; it lies in out/fuzz/found.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from hil.base.paths import PROJECT_ROOT, python_path
from tests.host_builds import FUZZED, build_programs
from tools.fuzz import TARGETS
from tools.fuzz.target import Target

OUT = PROJECT_ROOT / "out" / "fuzz"
KEPT = Path(__file__).parent / "found"  # what once broke a rule, by reader: tried again first
C_TESTS = PROJECT_ROOT / "firmware" / "host" / "test"
WORKERS = os.cpu_count() or 1
RUNNER = ("-m", "tools.fuzz.one")
INPUT_S = 20  # what one input may take; tshark, the slowest, takes a second
MEMORY_MB = 2048


@dataclass(frozen=True)
class Program:
    """A fuzzer in C, of the tree that clang builds; its dictionary, where it has one."""

    name: str
    program: str
    bytes_max: int


PROGRAMS = (Program("agent-command", "fuzz_command", 1100), Program("mqtt-packet", "fuzz_mqtt", 64))


@dataclass(frozen=True)
class Result:
    """What came of a reader. ``broken`` is the last of what was said, "" where nothing was found."""

    name: str
    runs: int
    seconds: float
    edges: int
    inputs: int
    broken: str

    def line(self) -> str:
        rate = self.runs / max(self.seconds, 1.0)
        mark = "✗" if self.broken else "✓"
        return (
            f"{mark} {self.name:<15} {self.runs:>9,} inputs {rate:>9,.1f}/s {self.edges:>6,} branches "
            f"{self.inputs:>6,} kept"
        )


def fuzz(one: Target | Program, seconds: int) -> Result:
    """Fuzz a reader for this long; what its corpus has gained stays."""
    corpus, found = OUT / "corpus" / one.name, OUT / "found" / one.name
    for folder in (corpus, found):
        folder.mkdir(parents=True, exist_ok=True)
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={one.bytes_max}",
        f"-timeout={INPUT_S}",
        f"-rss_limit_mb={MEMORY_MB}",
        f"-artifact_prefix={found}/",
        "-print_final_stats=1",
    ]
    kept = [KEPT / one.name] if (KEPT / one.name).is_dir() else []
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hil-fuzz-", dir="/dev/shm") as temporary:  # in memory
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": python_path(), "HOME": str(OUT), "TMPDIR": temporary}
        done = subprocess.run(
            [*_command(one, corpus), *options, *map(str, (corpus, *kept))],
            cwd=PROJECT_ROOT,
            env=env,
            capture_output=True,
            check=False,
        )
    took_s = min(time.monotonic() - began, seconds)  # less where it was broken
    said = (done.stdout + done.stderr).decode(errors="replace")
    (OUT / f"{one.name}.log").write_text(said)
    return Result(
        one.name,
        _last(r"stat::number_of_executed_units:\s*(\d+)|#(\d+)\s", said),
        took_s,
        _last(r"cov: (\d+)", said),
        len(list(corpus.iterdir())),
        _broken(said) if done.returncode else "",
    )


def _command(one: Target | Program, corpus: Path) -> list[str]:
    """Return what fuzzes a reader; of one in Python, the first inputs are in the corpus then."""
    if isinstance(one, Program):
        dictionary = C_TESTS / f"{one.program}.dict"
        return [str(FUZZED.folder / one.program), *([f"-dict={dictionary}"] if dictionary.exists() else [])]
    for seed in one.seeds():
        (corpus / hashlib.sha1(seed, usedforsecurity=False).hexdigest()).write_bytes(seed)
    return [sys.executable, *RUNNER, one.name]


def _broken(said: str) -> str:
    """Return the traceback or the sanitizer's report in what a fuzzer said, else the end of it."""
    found = re.search(
        r"=== Uncaught Python exception.*?\n\n|^=+\n==\d+==ERROR.*?^SUMMARY[^\n]*", said, re.S | re.M
    )
    return found[0].strip() if found else "\n".join(said.splitlines()[-20:])


def _last(pattern: str, text: str) -> int:
    numbers = [next(filter(None, match.groups()), "0") for match in re.finditer(pattern, text)]
    return int(numbers[-1]) if numbers else 0


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=10, help="for each reader")
    parser.add_argument("--only", default="", metavar="PATTERN", help="readers whose name it is found in")
    options = parser.parse_args(argv)
    everyone: list[Target | Program] = [*TARGETS, *PROGRAMS]
    wanted = [one for one in everyone if re.search(options.only, one.name)]
    if any(isinstance(one, Program) for one in wanted):
        build_programs(FUZZED, *(one.program for one in PROGRAMS))
    results = []
    with ThreadPoolExecutor(WORKERS) as pool:
        for result in pool.map(lambda one: fuzz(one, options.seconds), wanted):
            print(result.line(), flush=True)
            results.append(result)
    broken = [one for one in results if one.broken]
    for one in broken:
        print(f"\n{one.name}: an input in {OUT / 'found' / one.name} breaks a rule:\n{one.broken}")
    print(
        f"{len(results)} readers, {sum(one.runs for one in results):,} inputs, {len(broken)} broken rules."
        " A branch is one that libFuzzer counts."
    )
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
