# SPDX-License-Identifier: Apache-2.0
"""What the instruction cost sees and what disturbs it: planted instructions, images that differ by nothing.

Builds this checkout for a chip with ESP-IDF, again and again: with instructions planted around
esp_mqtt_client_publish(), and with changes that cost nothing (version string; padding in text, rodata, data
and bss). Each image is measured by `hil cost` against the unchanged one. Exits with 1 where the planted ones
are not seen as exactly as many in both publish parts, or a change that costs nothing is beyond a tolerance.
"""

from __future__ import annotations

import argparse
import json
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hil.base.paths import PROJECT_ROOT

PUBLISH = ("publish_qos0", "publish_qos1")
IDF = "idf.py -C {source} -B {build} -D IDF_TARGET=esp32c3 -D SDKCONFIG={build}/sdkconfig build"
PADDING_BYTES = (4, 6000)

_WRAPPER = """
#include "mqtt_client.h"
typedef esp_mqtt_client_handle_t client_t;
int __real_esp_mqtt_client_publish(client_t c, const char *t, const char *d, int l, int q, int r);
int __wrap_esp_mqtt_client_publish(client_t c, const char *t, const char *d, int l, int q, int r);
int __wrap_esp_mqtt_client_publish(client_t c, const char *t, const char *d, int l, int q, int r) {
    __asm__ volatile(".rept %d\\n nop\\n .endr");
    int id = __real_esp_mqtt_client_publish(c, t, d, l, q, r);
    __asm__ volatile("" ::: "memory");
    return id;
}
"""
_LINK = """
idf_component_get_property(mqtt_library mqtt COMPONENT_LIB)
target_link_libraries(${COMPONENT_LIB} PUBLIC ${mqtt_library} "-Wl,--wrap=esp_mqtt_client_publish")
"""
_PADDING = {
    "text": (
        "void hil_pad(void);\n"
        'void hil_pad(void) {{ __asm__ volatile(".rept {halves}\\n c.nop\\n .endr"); }}\n'
    ),
    "rodata": "extern const char hil_pad[{bytes}];\nconst char hil_pad[{bytes}] = {{1}};\n",
    "data": "extern char hil_pad[{bytes}];\nchar hil_pad[{bytes}] = {{1}};\n",
    "bss": "extern char hil_pad[{bytes}];\nchar hil_pad[{bytes}];\n",
}
_KEPT = '__attribute__((constructor)) static void keep(void) { __asm__ volatile("" ::"r"(hil_pad)); }\n'


@dataclass(frozen=True)
class Variant:
    """An image and what was changed in a copy of firmware/."""

    name: str
    change: Callable[[Path], None]


def planted(instructions: int) -> Callable[[Path], None]:
    def change(firmware: Path) -> None:
        append(firmware / "main" / "app_main.c", _WRAPPER % instructions)
        append(firmware / "main" / "CMakeLists.txt", _LINK)

    return change


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def nothing(number: int, random_: random.Random) -> Variant:
    """Return a change that costs nothing: one of five kinds in turn."""
    kinds = ("version", *_PADDING)
    kind, size = kinds[number % len(kinds)], random_.randint(*PADDING_BYTES)

    def change(firmware: Path) -> None:
        planted(0)(firmware)
        if kind == "version":
            (firmware / "version.txt").write_text(f"0.0.{number}-{'x' * (size % 20)}\n")
            return
        text = _PADDING[kind].format(halves=size // 2, bytes=size) + _KEPT
        append(firmware / "main" / "app_main.c", text)

    words = kind if kind == "version" else f"{kind} +{size} B"
    return Variant(words, change)


def build(variant: Variant, command: str, work: Path, out: Path) -> Path:
    """Build a variant in the one source folder that all have; return a copy of the build."""
    source, folder = work / "firmware", work / "build"
    wanted = work / "wanted"
    shutil.rmtree(wanted, ignore_errors=True)
    shutil.copytree(PROJECT_ROOT / "firmware", wanted)
    variant.change(wanted)
    for path in sorted(wanted.rglob("*")):  # an untouched file keeps its time, so little is compiled anew
        place = source / path.relative_to(wanted)
        if path.is_dir():
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.is_file() or place.read_bytes() != path.read_bytes():
            shutil.copyfile(path, place)
    words = [word.format(source=source, build=folder) for word in shlex.split(command)]
    log = out.with_suffix(".log")
    with log.open("w") as file:
        done = subprocess.run(words, stdout=file, stderr=file, check=False)
    if done.returncode:
        sys.exit(f"building {variant.name} ended with status {done.returncode}; log: {log}")
    shutil.copytree(folder, out, ignore=shutil.ignore_patterns("esp-idf", "CMakeFiles", "*.elf", "*.map"))
    return out


def compared(candidate: Path, base: Path, out: Path) -> Iterator[tuple[str, float, float, float]]:
    """Yield part, the base's instructions, the change and the tolerance of each part."""
    command = [sys.executable, "-m", "hil", "cost", "--firmware", str(candidate), "--base", str(base)]
    done = subprocess.run([*command, "--out", str(out), "--no-report"], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)} ended with status {done.returncode}: {done.stderr or done.stdout}")
    verdict = json.loads((out / "latest" / "verdicts.json").read_text())
    for item in verdict["compared"]:
        if item["blocking"] and item["metric"] == "cost_least_instructions":
            part = dict(pair.split("=") for pair in item["case_id"].partition("/")[2].split(","))["part"]
            yield part, item["other_value"], item["change"], item["tolerance"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--nothing", type=int, default=10, metavar="N", help="changes that cost nothing")
    parser.add_argument("--planted", type=int, default=100, metavar="N", help="instructions")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--build", default=IDF, metavar="COMMAND", help=f"default: {IDF}")
    arguments = parser.parse_args()
    random_ = random.Random(arguments.seed)
    variants = [Variant(f"planted {arguments.planted}", planted(arguments.planted))]
    variants += [nothing(number, random_) for number in range(arguments.nothing)]
    worst: dict[str, float] = {}
    failures = []
    with tempfile.TemporaryDirectory(prefix="hil-cost-check-") as folder:
        work = Path(folder)
        base = build(Variant("unchanged", planted(0)), arguments.build, work, work / "base")
        for number, variant in enumerate(variants):
            image = build(variant, arguments.build, work, work / f"image{number}")
            found = list(compared(image, base, work / "out"))
            shutil.rmtree(image)
            changes = {part: change for part, _value, change, _tolerance in found}
            shown = ", ".join(f"{part} {change:+,.0f}" for part, change in changes.items() if change)
            print(f"{variant.name:>16}: {shown or 'no part changed'}", flush=True)
            if number == 0:
                failures += [part for part in PUBLISH if changes[part] != arguments.planted]
                continue
            for part, value, change, tolerance in found:
                worst[part] = max(worst.get(part, 0.0), abs(change) / value)
                failures += [part] if abs(change) > tolerance else []
    print(f"\nlargest change of {arguments.nothing} images that differ by nothing (instructions, emulated):")
    for part, share in worst.items():
        print(f"{part:>16}: {share * 100:.2f} %")
    if failures:
        print(f"NOT as it should be: {', '.join(dict.fromkeys(failures))}")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
