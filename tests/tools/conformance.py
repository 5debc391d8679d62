# SPDX-License-Identifier: Apache-2.0
"""The rules of FreeRTOS's scheduler (firmware/host/conformance), asked of the host's kernel and of ESP-IDF's.

`make conformance` prints them side by side; the last column needs an ESP-IDF in the environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import ConfigError
from hil.base.paths import PROJECT_ROOT
from hil.boards.firmware.revision import run_step
from tests.host_builds import PLAIN, build_programs

SOURCES = PROJECT_ROOT / "firmware" / "host" / "conformance"
BUILDS = PROJECT_ROOT / "out" / "conformance"
HOLDS, BROKEN, NOT_PROMISED, NEEDS_TWO_CORES = "holds", "BROKEN", "not-promised", "needs-two-cores"
RUN_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Rule:
    """A rule and what came of it: one of HOLDS, BROKEN, NOT_PROMISED, NEEDS_TWO_CORES."""

    name: str
    verdict: str
    says: str


def build_on_host() -> Path:
    """Build the rules with the host's kernel; return the program. Raises ConfigError."""
    return build_programs(PLAIN, "conformance") / "test" / "conformance"


def build_on_linux() -> Path:
    """Build the rules with ESP-IDF's own kernel for its linux target. Raises ConfigError."""
    folder = BUILDS / "linux"
    sdkconfig = f"-DSDKCONFIG={folder / 'sdkconfig'}"
    argv = ("idf.py", "--preview", "-B", str(folder), sdkconfig, "-DIDF_TARGET=linux", "build")
    run_step(argv, cwd=SOURCES / "idf", log=folder.with_suffix(".log"), fresh=True)
    return folder / "conformance.elf"


def run_rules(program: Path, *prefix: str) -> list[Rule]:
    """Run the rules. Raises ConfigError where the program does not come to its end, in time too."""
    try:
        done = subprocess.run(
            [*prefix, str(program)], capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        said = (error.stdout or b"").decode(errors="replace").strip().rpartition("\n")[2]
        raise ConfigError(
            f"{program.name} did not end within {RUN_TIMEOUT_S:.0f} s and was killed after {said!r}.",
            next_step="look at the rule after that one.",
        ) from error
    rules = [
        Rule(*line.split(maxsplit=3)[1:]) for line in done.stdout.splitlines() if line.startswith("rule ")
    ]
    if done.returncode != any(rule.verdict == BROKEN for rule in rules) or not rules:
        raise ConfigError(
            f"{program.name} ended with status {done.returncode}: {done.stdout[-500:]}{done.stderr}"
        )
    return rules


def without_realtime() -> tuple[str, ...]:
    """Return what to put before a command so that it gets no real-time priority."""
    taken = ("setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice")
    return taken if os.geteuid() == 0 else ()


def table(columns: Mapping[str, Sequence[Rule]]) -> list[str]:
    """Return the lines of a table, a rule each; a column without rules was not checked."""
    lines = [f"{'rule':<28} " + " ".join(f"{head:<18}" for head in columns)]
    found = {head: {rule.name: rule.verdict for rule in rules} for head, rules in columns.items()}
    for rule in next(iter(columns.values())):
        verdicts = " ".join(f"{by_name.get(rule.name, 'not checked'):<18}" for by_name in found.values())
        lines.append(f"{rule.name:<28} {verdicts} {rule.says}")
    return lines


def main() -> int:
    try:
        program = build_on_host()
        columns = {
            "host build": run_rules(program),
            "host, no real time": run_rules(program, *without_realtime()),
            "ESP-IDF on linux": run_rules(build_on_linux()) if "IDF_PATH" in os.environ else [],
        }
    except ConfigError as error:
        print(f"conformance: {error}", file=sys.stderr)
        return int(error.exit_code)
    print("\n".join(table(columns)))
    return int(any(rule.verdict == BROKEN for rules in columns.values() for rule in rules))


if __name__ == "__main__":
    sys.exit(main())
