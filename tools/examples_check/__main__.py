# SPDX-License-Identifier: Apache-2.0
"""Build the examples of the ESP-IDF in ``IDF_PATH`` for the host as they are, and compare what they print.

Exit codes: 1 fewer than were asked for reach their output, 2 there is no ESP-IDF with examples.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from hil.base.errors import ConfigError
from hil.base.paths import PROJECT_ROOT
from hil.boards.firmware.product.build import build_product
from tools.examples_check.expected import patterns, reached, script_of
from tools.examples_check.peers import peer

WANTED = 20
RUN_TIMEOUT_S = 40.0
LOOK_S = 0.2
LISTED = 3
BUILDS = PROJECT_ROOT / "out" / "examples-check"
ENVIRONMENT = {
    "VBOARD_INTERFACE": "lo",
    "VBOARD_TIME_S": "0",
    "VBOARD_AP": "myssid",
    "VBOARD_AP_PASSWORD": "mypassword",
}


@dataclass(frozen=True)
class Example:
    """An entry of examples.toml."""

    path: str
    functions: tuple[str, ...] = ()
    expect: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    input: str = ""
    peer: str = ""


def main() -> int:
    root = Path(os.environ.get("IDF_PATH", ""), "examples")
    if not os.environ.get("IDF_PATH") or not root.is_dir():
        print("examples-check: IDF_PATH names no ESP-IDF with examples.", file=sys.stderr)
        return 2
    entries = tomllib.loads(Path(__file__).with_name("examples.toml").read_text(encoding="utf-8"))["example"]
    done = 0
    built = 0
    for entry in entries:
        example = Example(**{key: _frozen(value) for key, value in entry.items()})
        verdict, detail = try_example(root / example.path, example)
        done += verdict == "output"
        built += verdict in ("output", "builds")
        print(f"{verdict:<8} {example.path}{': ' if detail else ''}{detail}", flush=True)
    print(f"{built} of {len(entries)} build unchanged; {done} reach their own output ({WANTED} wanted).")
    return 0 if done >= WANTED else 1


def _frozen(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def try_example(folder: Path, example: Example) -> tuple[str, str]:
    """Return ``output``, ``builds`` or ``lacks``, and what there is to say of it."""
    with tempfile.TemporaryDirectory() as work:
        options = Path(work) / "sdkconfig"
        values = {name: text if text in ("y", "n") else f'"{text}"' for name, text in example.options.items()}
        options.write_text("".join(f"CONFIG_{name}={value}\n" for name, value in values.items()))
        try:
            built = build_product(folder, say=lambda _: None, sdkconfig=options, build_root=BUILDS)
        except ConfigError as error:
            lines = [line.strip() for line in error.sentence.splitlines()]
            shown = "; ".join(lines[1 : 1 + LISTED]) or lines[0][:160]
            more = f"; and {len(lines) - 1 - LISTED} more" if len(lines) > 1 + LISTED else ""
            return "lacks", f"{shown}{more}".replace(str(folder.parents[1]), "…")
    wanted = list(example.expect) or patterns(script_of(folder), example.functions)
    if not wanted:
        return "builds", "its script expects nothing that can be read"
    program = next(built.glob("*.elf"))
    program.chmod(0o755)
    output = run(program, example, wanted)
    count = reached(wanted, output)
    if count == len(wanted):
        return "output", f"{count} expected texts"
    return "builds", f"{count} of {len(wanted)} expected texts, then not {wanted[count]!r}"


def run(program: Path, example: Example, wanted: list[str]) -> str:
    """Return what the program printed until it had all that is wanted, ended, or ran for RUN_TIMEOUT_S."""
    ended = threading.Event()
    with peer(example.peer, ended), tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(
            [str(program)],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **ENVIRONMENT},
        )
        try:
            _type(process.stdin, example.input)
            return _read_until(process, out, wanted)
        finally:
            process.kill()
            process.wait()


def _type(console: IO[str] | None, text: str) -> None:
    if console and text:
        with contextlib.suppress(BrokenPipeError):
            console.write(text)
            console.flush()


def _read_until(process: subprocess.Popen[str], out: IO[str], wanted: list[str]) -> str:
    deadline = time.monotonic() + RUN_TIMEOUT_S
    while True:
        stopped = process.poll() is not None or time.monotonic() > deadline
        out.seek(0)
        output = out.read()
        if stopped or reached(wanted, output) == len(wanted):
            return output
        time.sleep(LOOK_S)


if __name__ == "__main__":
    sys.exit(main())
