# SPDX-License-Identifier: Apache-2.0
"""Probe files: what they say, and what is said of a wrong one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, ExitCode
from hil.base.paths import TOOL_BENCHES
from hil.probe.probe_file import Arrivals, Between, Field, ProbeRequest, check_parameters, find_probes
from tests.in_process import hil
from tests.probe.scripted import probe_of


def test_a_probe_is_what_its_file_says(tmp_path: Path) -> None:
    """Each kind has its own columns, and names the parameters that its cases need."""
    between = probe_of(tmp_path, "between: {from: 'a', to: 'b'}\n", "first")
    arrivals = probe_of(tmp_path, "arrivals: {topic: t, sequence: data.seq, sent_at_us: t_us}\n", "second")
    assert isinstance(between.measures, Between)
    assert isinstance(arrivals.measures, Arrivals)
    assert between.parameters == ("count", "duration_s", "timeout_ms")
    assert arrivals.measures.sequence.path == ("data", "seq")
    assert "sent_us" in arrivals.measures.columns
    assert set(find_probes([tmp_path])) == {"first", "second"}


def test_another_text_is_another_ruler(tmp_path: Path) -> None:
    """Figures of a pattern that was changed are not compared with those of before."""
    before = probe_of(tmp_path, "boot: {to: 'ack'}\n").digest
    assert probe_of(tmp_path, "boot: {to: 'ack'}\n").digest == before
    assert probe_of(tmp_path, "boot: {to: 'ack seq'}\n").digest != before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("between: {from: '(', to: 'b'}\n", r"it.probe.yaml:3: '\(' is not a regular expression"),
        ("between: {from: '(?P<key>a)', to: 'b'}\n", "cannot be matched"),
        ("values: {line: 'heap=[0-9]+'}\n", "named group"),
        ("values: {line: '(?P<heap_bytes>.)', times: {heep: 10}}\n", "no group 'heep'"),
        ("boot: {to: 'a'}\nvalues: {line: '(?P<a>b)'}\n", "both boot and values"),
        ("on_restart: count\n", "nothing that is measured"),
        ("request: {topic: a, payload: x, reply_topic: b, key: id}\n", "number of the request"),
        ("download: {topic: a, payload: x}\n", r"\{url\}"),
        ("boot: {to: 'a', form: 'b'}\n", "unknown key 'form'"),
        ("arrivals: {topic: a, sequence: {pattern: 'n='}}\n", "exactly one group"),
    ],
)
def test_a_wrong_file_is_told_by_its_line(tmp_path: Path, text: str, said: str) -> None:
    """The sentence has file, line and value."""
    with pytest.raises(ConfigError, match=said) as caught:
        probe_of(tmp_path, text)
    assert str(tmp_path / "it.probe.yaml:") in caught.value.sentence


def test_a_missing_parameter_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    """The sentence names it, and all that the probe is measured by."""
    probe = probe_of(tmp_path, "request: {topic: a, payload: '{n}', reply_topic: b, key: id}\n")
    assert isinstance(probe.measures, ProbeRequest)
    assert probe.measures.key == Field(probe.measures.key.where, path=("id",))
    check_parameters(probe, {"count": 1, "interval_us": 1, "timeout_ms": 1}, "it.yaml")
    with pytest.raises(ConfigError, match=r"it\.yaml: it\.probe\.yaml .*'interval_us'"):
        check_parameters(probe, {"count": 1, "timeout_ms": 1}, "it.yaml")


@pytest.mark.parametrize(
    ("there", "missing"),
    [
        ((), ["test_lone.py", "thresholds/lone.yaml"]),
        (("test_lone.py",), ["thresholds/lone.yaml"]),
    ],
)
def test_a_probe_that_nothing_goes_with_is_told_before_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: tuple[str, ...], missing: list[str]
) -> None:
    """`hil plan` names all that a lone probe lacks, as `hil run` does, and lists no other bench instead."""
    for module in ("hil.cli.plan", "hil.run.campaign"):
        monkeypatch.setattr(f"{module}.BENCH_FOLDERS", (TOOL_BENCHES, tmp_path))
    (tmp_path / "lone.probe.yaml").write_text("schema: 1\nready: {pattern: up}\nboot: {to: up}\n")
    for name in there:
        (tmp_path / name).touch()
    done = hil("plan", "--suite", "first")
    assert done.returncode == ExitCode.CONFIG
    told = done.stdout.split(f"{tmp_path / 'lone.probe.yaml'}: ")[1]
    assert re.findall(r"\S+lone\.(?:py|yaml)", told) == missing
