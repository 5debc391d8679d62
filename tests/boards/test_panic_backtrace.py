# SPDX-License-Identifier: Apache-2.0
"""A panic's addresses become functions and lines, by the ELF file of the build that panicked and no other."""

from __future__ import annotations

import os
import re
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hil.base.errors import FirmwareError
from hil.boards.firmware.backtrace import decode_panic
from hil.boards.firmware.symbols import GDBS
from hil.boards.rack import Board, Power
from hil.run.lab_rig import LabRig
from hil.store import RunDirectory
from tests.boards.panic_build import build, printed, put_gdb
from tests.make_records import run_info
from tests.session.fake_agent import FakeAgent, FakeConsole
from tests.session.session_rig import CASE


@pytest.fixture(name="tools")
def only_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that is in front of PATH, from which this host's gdbs are left out."""
    (tmp_path / "tools").mkdir()
    monkeypatch.setitem(GDBS, "EM_RISCV", ("riscv32-esp-elf-gdb",))
    monkeypatch.setenv("PATH", f"{tmp_path / 'tools'}{os.pathsep}{os.environ['PATH']}")
    return tmp_path / "tools"


@pytest.mark.parametrize("dwarf", [4, 5])
def test_program_counter_and_return_address_need_no_tool(tmp_path: Path, tools: Path, dwarf: int) -> None:
    """Without gdb program counter and return address are found, behind a function that the linker dropped
    too, and more is offered. How ESP-IDF gets from abort() to the panic handler is kept, and not quoted."""
    assert not list(tools.iterdir())
    folder = build(tmp_path / "build", dwarf=dwarf)
    decoded = decode_panic(printed("esp32c3-store-fault", folder), folder, tmp_path / "e1.log")
    assert decoded
    assert "planted_fault (fault.c:51), return " in decoded.where
    assert decoded.where.endswith(" run_task (runner.c:178)")
    assert "riscv32-esp-elf-gdb" in decoded.next_step
    kept = (tmp_path / "e1.panic-1.txt").read_text()
    assert kept.startswith("0x4200f3a8 in planted_fault at ")
    assert "Stack memory:" in kept
    decoded = decode_panic(printed("esp32c3-abort", folder), folder, tmp_path / "e1.log")
    assert decoded.where == "in planted_fault (fault.c:51)"
    assert "in panic_abort at " in (tmp_path / "e1.panic-2.txt").read_text()


def test_gdb_makes_a_backtrace_of_registers_and_stack(tmp_path: Path, tools: Path) -> None:
    """It is asked with the panic's own registers; each panic of a board has a file of its own."""
    put_gdb(tools, sys.executable)
    folder = build(tmp_path / "build")
    for number in (1, 2):
        decoded = decode_panic(printed("esp32c3-store-fault", folder), folder, tmp_path / "e1.log")
        assert decoded
        assert re.findall(r"\((.*?)\)", decoded.where) == [
            "fault.c:51",
            "link.c:32",
            "runner.c:159",
            "runner.c:177",
        ]
        assert f"e1.panic-{number}.txt" in decoded.next_step
        kept = (tmp_path / f"e1.panic-{number}.txt").read_text()
        assert "AGENT_DIR/runner.c:177\n\nGuru Meditation" in kept


def test_a_panic_that_was_cut_off_is_decoded_as_far_as_it_came(tmp_path: Path, tools: Path) -> None:
    """Without a stack gdb has nothing to go by; what the registers say is told, and gdb's complaint."""
    put_gdb(tools, sys.executable)
    folder = build(tmp_path / "build")
    lines = printed("esp32c3-store-fault", folder)[:4]
    decoded = decode_panic(lines, folder, tmp_path / "e1.log")
    assert decoded
    assert decoded.where.startswith("in planted_fault (fault.c:51), ")
    assert "Remote communication error" in decoded.next_step


def test_an_xtensa_backtrace_is_read_as_printed(tmp_path: Path) -> None:
    """It names its callers itself: no gdb is asked for. Zeros for the hash of the ELF say nothing against the
    build that was flashed; that nothing proves it either is said."""
    folder = build(tmp_path / "build")
    lines = [
        "Backtrace: 0x4200f3a8:0x3ffb5e10 0x4200c970:0x3ffb5e30 |<-CORRUPTED",
        "ELF file SHA256: 000000000",
    ]
    decoded = decode_panic(lines, folder, tmp_path / "e1.log")
    assert decoded
    assert re.findall(r"\((.*?)\)", decoded.where) == ["fault.c:51", "runner.c:178"]
    assert "gdb" not in decoded.next_step
    assert "carries no hash" in decoded.next_step


def test_an_elf_of_another_build_decodes_nothing(tmp_path: Path) -> None:
    """Its lines would be wrong, and look right; a missing or broken one hides no panic either."""
    folder = build(tmp_path / "build")
    lines = printed("esp32c3-store-fault", folder)
    with (folder / "app.elf").open("ab") as elf:
        elf.write(b"\0")
    other = decode_panic(lines, folder, tmp_path / "e1.log")
    assert other
    assert not other.where
    assert "of another build" in other.next_step
    (folder / "app.elf").write_bytes(b"\x7fELF")
    broken = decode_panic(lines[:4], folder, tmp_path / "e1.log")
    assert broken
    assert "could not be decoded" in broken.next_step
    (folder / "app.elf").unlink()
    missing = decode_panic(lines, folder, tmp_path / "e1.log")
    assert missing
    assert "app.elf is missing" in missing.next_step
    assert "addr2line" in missing.next_step


def test_a_virtual_boards_zeros_are_not_decoded(tmp_path: Path) -> None:
    """It prints registers of no program."""
    lines = ["MEPC    : 0x00000000  RA      : 0x00000000", "Backtrace: 0x00000000:0x00000000"]
    assert decode_panic(lines, tmp_path, tmp_path / "e1.log") is None


@pytest.mark.parametrize("booting", [True, False])
def test_a_boards_fault_names_the_place_in_its_program(tmp_path: Path, tools: Path, booting: bool) -> None:
    """The rig decodes with the build that the boot runs, at boot as in use."""
    put_gdb(tools, sys.executable)
    folder = build(tmp_path / "build")
    lines = printed("esp32c3-store-fault", folder)
    console: Any = FakeConsole(FakeAgent(on_measured=lambda _: lines))
    console.log, console.close = lambda _line: None, lambda: None
    rig = LabRig.__new__(LabRig)
    rig._run = RunDirectory.create(tmp_path, run_info(run_id="r"))
    rig._consoles = SimpleNamespace(open=lambda *_, **_options: console)  # type: ignore[assignment]
    rig._run.console_log("e1").parent.mkdir(exist_ok=True)
    stack: Any = SimpleNamespace(callback=lambda _: None)
    board = Board("e1", "physical", "esp32c3", "/dev/null", Power("none"), where="rack.yaml:1")
    session = rig._session(board, folder, stack, lambda: None)
    session._link.clock = session._link.lines._clock = console.clock
    if booting:
        console.silent = True
        console.send(lines)
    else:
        session.wait_ready(timeout_s=8.0)
    panic = session.wait_ready if booting else partial(session.run_case, CASE)
    with pytest.raises(FirmwareError, match=r"in planted_fault \(fault.c:51\) < link_up") as caught:
        panic(timeout_s=10.0)
    assert "e1.panic-1.txt" in str(caught.value)
