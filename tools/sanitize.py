# SPDX-License-Identifier: Apache-2.0
"""Run what a pull request measures on firmware and air that are built with sanitizers: `make sanitize`.

    python -m tools.sanitize [--only PATTERN] [--suite EXPR]

Prints for each build how many cases and samples it went through and what its sanitizers found. Exit 1 where
one found something, or not all that was planned was measured. How fast it was says nothing.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import ConfigError
from hil.base.paths import PROJECT_ROOT
from hil.boards.firmware.build import FIRMWARE_DIR, PROJECT_NAME, HostTree
from hil.boards.firmware.image import build_image_dir
from hil.boards.firmware.revision import VERSION_FILE
from hil.store.directory import RunDirectory
from hil.virtual.air.build import build_air
from tests.host_builds import RACES, SANITIZED, build_programs

OUT = PROJECT_ROOT / "out" / "sanitize"
RACK = PROJECT_ROOT / "hil" / "racks" / "virtual.yaml"
BUILDS: Mapping[str, HostTree] = {"address,undefined": SANITIZED, "thread": RACES}
# one large slot, for what sanitizers add
PARTITIONS = """\
nvs, data, nvs, 0x9000, 0x6000
phy_init, data, phy, 0xf000, 0x1000
factory, app, factory, 0x10000, 0x3f0000
"""
_FOUND = re.compile(r"(?:ERROR|WARNING): \w+Sanitizer: .*|\S*: runtime error: .*")
_CONTEXT_LINES = 12


@dataclass(frozen=True)
class Result:
    """What came of a build: ``found`` holds the first of each finding's kind, with the lines below it.

    ``missing`` says of the run what was not measured, and why.
    """

    name: str
    cases: int
    samples: int
    missing: Sequence[str]
    found: Mapping[str, str]

    @property
    def is_clean(self) -> bool:
        return not self.found and not self.missing and self.cases > 0

    def line(self) -> str:
        mark = "✓" if self.is_clean else "✗"
        measured = f"{self.cases:>4} cases {self.samples:>8,} samples"
        return "\n".join([f"{mark} {self.name:<18} {measured}  {len(self.found)} findings", *self.missing])


def image_of(name: str, folder: Path) -> Path:
    """Build the firmware of virtual ESP32s with these sanitizers; return the image's folder."""
    csv = folder / "partitions.csv"
    csv.write_text(PARTITIONS)
    elf = build_programs(BUILDS[name], "hil-firmware.elf") / "hil-firmware.elf"
    version = (FIRMWARE_DIR / VERSION_FILE).read_text(encoding="utf-8").strip()
    build_image_dir(elf, folder / "image", project=PROJECT_NAME, version=version, partitions_csv=csv)
    return folder / "image"


def measure(name: str, suite: str) -> Result:
    """Measure with firmware and air of these sanitizers, on a rack of the run's own."""
    folder = OUT / name.replace(",", "-")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    image, out = image_of(name, folder), folder / "out"
    build_air(out / "virtual" / "air", sanitize=name)  # where a run looks for it before it builds one
    argv = [sys.executable, "-m", "hil", "run", "--rack", str(RACK), "--suite", suite, "--no-report"]
    argv += ["--target", "virtual-esp32", "--firmware", str(image), "--out", str(out)]
    subprocess.run(argv, cwd=PROJECT_ROOT, check=False)
    found: dict[str, str] = {}
    for path in sorted(out.rglob("*.log")):  # consoles, boards, air, broker
        for kind, words in findings(path.read_bytes()):
            found.setdefault(kind, f"{path}:\n{words}")
    try:
        records = RunDirectory.open(out / "latest").read().records
        verdict = json.loads((out / "latest" / "verdicts.json").read_text())
    except (ConfigError, OSError, ValueError) as error:
        return Result(name, 0, 0, [f"no run was stored: {error}"], found)
    missing = [
        f"not measured: {one['case_id']} on {one['board']}: {one['reason']}" for one in verdict["not_run"]
    ]
    missing += [f"{one['owner']}: {one['sentence']}" for one in verdict["faults"]]
    return Result(name, len(records), sum(one.measured_rows for one in records), missing, found)


def findings(log: bytes) -> Iterator[tuple[str, str]]:
    """Yield each sanitizer's finding in a log: its kind, without numbers, and the lines below."""
    lines = log.decode(errors="replace").splitlines()
    for number, line in enumerate(lines):
        if match := _FOUND.search(line):
            kind = re.sub(r"0x[0-9a-f]+|\d+", "", match[0])
            yield kind, "\n".join(lines[number : number + _CONTEXT_LINES])


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.sanitize", description=__doc__)
    parser.add_argument(
        "--only", default="", metavar="PATTERN", help="builds whose sanitizers it is found in"
    )
    parser.add_argument("--suite", default="pr", help="what is measured")
    options = parser.parse_args(argv)
    results = [measure(name, options.suite) for name in BUILDS if re.search(options.only, name)]
    print()
    for result in results:
        print("\n".join([result.line(), *result.found.values()]))
    return int(not all(result.is_clean for result in results))


if __name__ == "__main__":
    sys.exit(main())
