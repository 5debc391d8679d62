# SPDX-License-Identifier: Apache-2.0
"""A build folder whose functions lie where those of a recorded panic's build lay, and a gdb."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from pathlib import Path

RECORDED = (
    Path(__file__).parent / "panics"
)  # what an ESP32-C3's image printed in QEMU, trailing spaces left out
FUNCTIONS = {  # name: start, file, line
    "planted_fault": (0x4200F398, "fault.c", 50),
    "run_task": (0x4200C968, "runner.c", 177),
    "panic_abort": (0x40386F4C, "panic.c", 483),
    "esp_system_abort": (0x40386F0C, "esp_system_chip.c", 87),
}
INSTRUCTIONS = {"planted_fault": 512}
# What gdb 13 said of the store fault, with our names.
GDB_SAID = """\
0x4200f3a8 in planted_fault (c=...) at /COMPONENT_LINK_DIR/esp/fault.c:51
51	/COMPONENT_LINK_DIR/esp/fault.c: No such file or directory.
#0  0x4200f3a8 in planted_fault (c=...) at /COMPONENT_LINK_DIR/esp/fault.c:51
#1  0x4200e686 in link_up (provision=..., timeout=...) at /COMPONENT_LINK_DIR/esp/link.c:32
#2  0x4200c974 in bring_link_up (reply=..., timeout=...) at /COMPONENT_AGENT_DIR/runner.c:159
#3  run_task (unused=...) at /COMPONENT_AGENT_DIR/runner.c:177
#4  0x00000000 in ?? ()
"""
# As gdb does: starts the program behind the bar, asks it for the registers, and prints frames of those
# that it knows.
_GDB = """\
#!{python}
import subprocess, sys
(target,) = [word for word in sys.argv if word.startswith("target remote | ")]
pipes = {{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}}
server = subprocess.Popen(target.partition("| ")[2], shell=True, **pipes)
def ask(command):
    server.stdin.write(b"$%s#00" % command)
    server.stdin.flush()
    said = b""
    while said[-3:-2] != b"#":
        byte = server.stdout.read(1)
        if not byte:
            sys.exit("Remote communication error.  Target disconnected.: Connection reset by peer.")
        said += byte
    server.stdin.write(b"+")
    server.stdin.flush()
    return said[2:-3]
registers = ask(b"g")
ask(b"k")
if bytes.fromhex(registers.decode())[-4:] == ({mepc}).to_bytes(4, "little"):
    print({said!r})
"""


def build(folder: Path, *, dwarf: int = 5) -> Path:
    """Make ``folder`` a build: flasher_args.json, an image, its ELF file with a dropped function."""
    folder.mkdir()
    source = "void dropped(void) {}\n"
    for name, (_, file, line) in FUNCTIONS.items():
        nops = f'__asm__ volatile(".rept {INSTRUCTIONS.get(name, 12)}\\n nop\\n .endr");'
        source += (
            f'#line {line} "{file}"\n__attribute__((section(".at_{name}"))) void {name}(void) {{\n{nops} }}\n'
        )
    source += "void start(void) { " + " ".join(f"{name}();" for name in FUNCTIONS) + " }\n"
    (folder / "all.c").write_text(source)
    places = [f"-Wl,--section-start=.at_{name}={start:#x}" for name, (start, _, _) in FUNCTIONS.items()]
    options = [
        f"-gdwarf-{dwarf}",
        "-O0",
        "-ffunction-sections",
        "-fno-pie",
        "-no-pie",
        "-static",
        "-nostdlib",
    ]
    linking = ["-Wl,--gc-sections", "-Wl,-e,start", *places]
    argv = ["cc", *options, *linking, "-o", "app.elf", "all.c"]
    subprocess.run(argv, cwd=folder, check=True, capture_output=True)
    (folder / "app.bin").write_bytes(b"image")
    (folder / "flasher_args.json").write_text(json.dumps({"app": {"file": "app.bin"}, "flash_files": {}}))
    return folder


def printed(name: str, folder: Path) -> list[str]:
    """Return the lines of a recorded panic, as the build in ``folder`` would have printed them."""
    digest = hashlib.sha256((folder / "app.elf").read_bytes()).hexdigest()
    text = (RECORDED / f"{name}.txt").read_text()
    return re.sub(r"(ELF file SHA256: )\w+", rf"\g<1>{digest[:9]}", text).splitlines()


def put_gdb(folder: Path, python: str) -> None:
    """Put a gdb into ``folder`` that knows the recorded store fault."""
    program = folder / "riscv32-esp-elf-gdb"
    program.write_text(_GDB.format(python=python, mepc=0x4200F3A8, said=GDB_SAID))
    program.chmod(0o755)
