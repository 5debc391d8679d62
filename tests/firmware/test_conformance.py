# SPDX-License-Identifier: Apache-2.0
"""The host's scheduler keeps FreeRTOS's rules; what Linux does not give is known by name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from tests.run import sealed_chip
from tools import conformance
from tools.conformance import (
    BROKEN,
    HOLDS,
    Rule,
    build_on_host,
    run_on_chip,
    run_rules,
    table,
    without_realtime,
)

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "explain" / "host-idf.md"
NOT_GIVEN_BY_LINUX = {"equals-take-turns-by-tick", "critical-not-preempted", "inheritance-ends-with-wait"}


@pytest.fixture(scope="module")
def program() -> Path:
    return build_on_host()


@pytest.mark.slow
@pytest.mark.alone  # a rule of two cores needs both
def test_every_rule_holds_but_what_linux_does_not_give(program: Path) -> None:
    """All rules hold except three, which do break where tasks have real-time priority: a rule can fail."""
    rules = run_rules(program)
    assert len(rules) >= 30
    assert not [rule for rule in rules if rule.verdict == BROKEN], table({"host": rules})
    if os.geteuid() == 0:
        assert {rule.name for rule in rules if rule.verdict != HOLDS} == NOT_GIVEN_BY_LINUX


@pytest.mark.slow
def test_without_realtime_nothing_that_is_promised_breaks(program: Path) -> None:
    """Who has no real-time priority is promised less, and gets what is promised."""
    rules = run_rules(program, *without_realtime())
    assert not [rule for rule in rules if rule.verdict == BROKEN], table({"host": rules})


def test_what_linux_does_not_give_is_documented() -> None:
    """Each rule that the host does not keep stands in the document by its name."""
    text = DOCUMENT.read_text(encoding="utf-8")
    assert not {name for name in NOT_GIVEN_BY_LINUX if f"`{name}`" not in text}


@pytest.mark.slow
def test_a_broken_rule_and_an_end_too_early_or_too_late_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that says BROKEN is read as such; one that dies in the middle, or hangs and is killed, is an
    error, which says after which rule."""
    program = tmp_path / "rules"

    def says(verdict: str, then: str) -> list[Rule]:
        program.write_text(f"#!/bin/sh\necho 'rule a-rule {verdict}  it says so'\n{then}\n")
        program.chmod(0o755)
        return run_rules(program)

    assert [rule.verdict for rule in says("BROKEN", "exit 1")] == [BROKEN]
    with pytest.raises(ConfigError, match="status 139"):
        says("holds", "exit 139")
    monkeypatch.setattr(conformance, "RUN_TIMEOUT_S", 2.0)
    with pytest.raises(ConfigError, match=r"within 2 s .* 'rule a-rule"):
        says("holds", "exec sleep 60")


SAYS = """\
case "$1" in
--version) echo "QEMU emulator version 9.2.2"; exit;;
-machine) [ "$2" = help ] && printf 'Supported machines are:\\nesp32c3  a chip\\n' && exit;;
esac
while [ "$1" != -serial ]; do shift; done
printf '%s' "$CONSOLE" >"${2#file:}"
exec sleep 60
"""


@pytest.fixture
def chip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A build for a chip, whose emulator is a program that prints $CONSOLE."""
    program = tmp_path / "qemu-system-riscv32"
    program.write_text(f"#!/bin/sh\n{SAYS}")
    program.chmod(0o755)
    monkeypatch.setenv("HIL_QEMU_RISCV32", str(program))
    return sealed_chip.build(tmp_path / "build", {})


@pytest.mark.slow
def test_a_chip_tells_its_rules_on_its_console(chip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules are read between what the boot loader says before and what the chip says after its end; of a chip
    that does not end, what it said last is told."""
    rules = ("rule a-rule holds  it says so", "rule b BROKEN  no", "RULES BROKEN")
    monkeypatch.setenv("CONSOLE", "\r\n".join(["I (30) boot: hello", *rules, "abort()", ""]))
    assert [(rule.name, rule.verdict) for rule in run_on_chip(chip)] == [("a-rule", HOLDS), ("b", BROKEN)]
    monkeypatch.setenv("CONSOLE", f"{rules[0]}\n")
    monkeypatch.setattr(conformance, "RUN_TIMEOUT_S", 1.0)
    with pytest.raises(ConfigError, match=r"esp32c3 .* within 1 s; .*'rule a-rule"):
        run_on_chip(chip)
