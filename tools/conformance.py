# SPDX-License-Identifier: Apache-2.0
"""The rules of FreeRTOS's scheduler (firmware/host/conformance), asked of the host's kernel and of ESP-IDF's.

`make conformance` prints them side by side. ESP-IDF's own columns need it in the environment; that of a chip
needs QEMU too, and takes a build of the rules for it (FIRMWARE=DIR) in place of one of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import ConfigError, HilError
from hil.base.paths import PROJECT_ROOT
from hil.boards.firmware.revision import run_step
from hil.run.sealed import MAC, flash_content
from hil.virtual.emulator.driver import SealedRun
from hil.virtual.emulator.drivers import find_counting
from tests.host_builds import PLAIN, build_programs

SOURCES = PROJECT_ROOT / "firmware" / "host" / "conformance"
BUILDS = PROJECT_ROOT / "out" / "conformance"
HOLDS, BROKEN, NOT_PROMISED, NEEDS_TWO_CORES = "holds", "BROKEN", "not-promised", "needs-two-cores"
RUN_TIMEOUT_S = 120.0
POLL_S = 0.05
CHIP = "esp32c3"
ENDS = ("all rules kept", "RULES BROKEN")


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


def build_for_chip() -> Path:
    """Build the rules with ESP-IDF for CHIP; return the build folder. Raises ConfigError."""
    folder = BUILDS / CHIP
    argv = (
        "idf.py",
        "-B",
        str(folder),
        f"-DSDKCONFIG={folder / 'sdkconfig'}",
        f"-DIDF_TARGET={CHIP}",
        "build",
    )
    run_step(argv, cwd=SOURCES / "idf", log=folder.with_suffix(".log"), fresh=True)
    return folder


def run_on_chip(build_dir: Path) -> list[Rule]:
    """Run the rules on an emulated chip, whose time follows its instructions. Raises HilError."""
    emulator = find_counting(CHIP)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "flash").write_bytes(flash_content(build_dir))
        run = emulator.seal(folder / "flash", folder / "run", mac=MAC)
        try:
            text = _console_of(run)
        finally:
            run.close()
    return read_rules(text)


def _console_of(run: SealedRun) -> str:
    deadline = time.monotonic() + RUN_TIMEOUT_S
    while not any(end in (text := run.console.read_text(errors="replace")) for end in ENDS):
        run.check()
        if time.monotonic() > deadline:
            said = text.strip().rpartition("\n")[2]
            raise ConfigError(f"the {CHIP} did not end within {RUN_TIMEOUT_S:.0f} s; it said last: {said!r}.")
        time.sleep(POLL_S)
    return text


def read_rules(text: str) -> list[Rule]:
    """Read the lines of rules out of a console."""
    return [Rule(*line.split(maxsplit=3)[1:]) for line in text.splitlines() if line.startswith("rule ")]


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
    rules = read_rules(done.stdout)
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


def on_chip() -> list[Rule]:
    """Return what the rules come to on the chip; none, and a line that says why, where it cannot be asked."""
    firmware = os.environ.get("FIRMWARE", "")
    if not firmware and "IDF_PATH" not in os.environ:
        return []
    try:
        return run_on_chip(Path(firmware) if firmware else build_for_chip())
    except HilError as error:
        print(f"emulated {CHIP}, not checked: {error}", file=sys.stderr)
        return []


def main() -> int:
    try:
        program = build_on_host()
        columns = {
            "host build": run_rules(program),
            "host, no real time": run_rules(program, *without_realtime()),
            "ESP-IDF on linux": run_rules(build_on_linux()) if "IDF_PATH" in os.environ else [],
            f"emulated {CHIP}": on_chip(),
        }
    except ConfigError as error:
        print(f"conformance: {error}", file=sys.stderr)
        return int(error.exit_code)
    print("\n".join(table(columns)))
    return int(any(rule.verdict == BROKEN for rules in columns.values() for rule in rules))


if __name__ == "__main__":
    sys.exit(main())
