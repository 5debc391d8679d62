# SPDX-License-Identifier: Apache-2.0
"""What the component esp_hil costs a product: `python -m tools.component_cost`.

Static RAM and code of a small product's build for a virtual board, by `size`; for a chip by `idf.py
size-components`, where ESP-IDF is. The host's pointers have eight bytes and its code is x86: RAM is an upper
bound, code a hint.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hil.base.paths import PROJECT_ROOT, TOOL_FIRMWARE
from hil.boards.firmware.product.build import build_product

PRODUCT = PROJECT_ROOT / "tests" / "firmware" / "products" / "pump"
OUT = PROJECT_ROOT / "out" / "component-cost"
CHIP = "esp32c3"
BENCHES = ("BOARD", "MESSAGES", "THROUGHPUT", "HTTP", "SCHEDULER")
VARIANTS: Mapping[str, tuple[str, ...]] = {
    "the agent alone": (),
    "as by default (footprint, sections; MQTT)": ("BOARD", "MESSAGES"),
    "all benches": BENCHES,
}

_SECTION = re.compile(r"^(\.?\w[\w.$-]*)\s+(\d+)\s+\d+$", re.MULTILINE)


@dataclass(frozen=True)
class Cost:
    """Bytes: variables, and code with constants."""

    ram_bytes: int
    flash_bytes: int


def of_objects(objects: list[Path]) -> Cost:
    """Sum what lies in RAM from the start, and what may stay in flash, constants with addresses too."""
    said = subprocess.run(["size", "-A", "-d", *objects], capture_output=True, text=True, check=True).stdout
    ram = flash = 0
    for name, size in _SECTION.findall(said):
        if name.startswith((".data.rel.ro", ".text", ".rodata", "hil_benches")):
            flash += int(size)
        elif name.startswith((".data", ".bss", "COMMON")):
            ram += int(size)
    return Cost(ram, flash)


def of_variant(name: str, wanted: tuple[str, ...]) -> Cost:
    """Build the product with these groups of benches, and weigh the component's objects."""
    options = OUT / "sdkconfig"
    options.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"CONFIG_HIL_BENCHES_{group}={'y' if group in wanted else 'n'}\n" for group in BENCHES]
    options.write_text("".join(lines), encoding="utf-8")
    root = OUT / re.sub(r"\W+", "-", name)
    build_product(PRODUCT, say=lambda _sentence: None, sdkconfig=options, build_root=root)
    return of_objects(sorted(root.glob("product-*/product/esp_hil/**/*.o")))


def of_chip() -> str:
    """Return what ESP-IDF says of the component's archive in the product's image for a chip."""
    build = ["idf.py", "-C", str(PRODUCT), "-B", str(OUT / CHIP), f"-DSDKCONFIG={OUT / CHIP}.sdkconfig"]
    if os.environ.get("IDF_COMPONENT_MANAGER") == "0":  # who would read the product's manifest
        build.append(f"-DEXTRA_COMPONENT_DIRS={TOOL_FIRMWARE / 'esp_hil'}")
    for more in ((f"-DIDF_TARGET={CHIP}", "build"), ("size-components",)):
        done = subprocess.run([*build, *more], capture_output=True, text=True, check=False)
        if done.returncode:
            return f"idf.py {more[-1]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    lines = done.stdout.splitlines()
    head = [line for line in lines if "Archive" in line]
    return "\n".join([*head[:1], *(line for line in lines if "libesp_hil" in line)])


def main() -> int:
    print("virtual board (x86-64), bytes    static RAM  code and constants")
    for name, wanted in VARIANTS.items():
        cost = of_variant(name, wanted)
        print(f"{name:44}{cost.ram_bytes:>8}{cost.flash_bytes:>10}")
    if shutil.which("idf.py"):
        print(f"\n{CHIP}, by idf.py size-components, as by default:\n{of_chip()}")
    else:
        print(f"\n{CHIP}: not weighed, there is no ESP-IDF here (idf.py is not on PATH)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
