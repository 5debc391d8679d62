# SPDX-License-Identifier: Apache-2.0
"""Probe files, and the rows of console lines that they ask for: none is left out, a wrong file is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, ExitCode, FirmwareError, HilError
from hil.base.paths import TOOL_BENCHES
from hil.probe.measuring import (
    MeasuredCase,
    measure_between,
    measure_boot,
    measure_values,
    read_field,
)
from hil.probe.probe_file import (
    Arrivals,
    Between,
    BootRows,
    Field,
    ProbeRequest,
    Values,
    check_parameters,
    find_probes,
)
from tests.in_process import hil
from tests.probe.scripted import console_of, probe_of

KEYED = r"between: {from: 'q seq=(?P<key>\d+)', to: 'ack seq=(?P<key>\d+)'}" + "\n"


def case(count: int, *, warmup: int = 0, timeout_ms: int = 500, duration_s: float = 1.0) -> MeasuredCase:
    return MeasuredCase(count, warmup, duration_s, timeout_ms, 0)


def between(
    tmp_path: Path, lines: list[str], wanted: MeasuredCase, text: str = KEYED
) -> dict[str, tuple[int, ...]]:
    probe = probe_of(tmp_path, text)
    assert isinstance(probe.measures, Between)
    columns, _counts = measure_between(console_of(lines, probe), probe.measures, wanted)
    return dict(columns)


def test_lines_are_joined_by_their_key(tmp_path: Path) -> None:
    """Answers that come out of order belong to their own beginnings; a strange answer to none."""
    rows = between(tmp_path, ["ack seq=9", "q seq=1", "q seq=2", "ack seq=2", "ack seq=1"], case(2))
    assert rows["outcome"] == (0, 0)
    assert rows["began_us"][0] < rows["began_us"][1] < rows["done_us"][1] < rows["done_us"][0]


def test_a_question_is_not_its_own_answer(tmp_path: Path) -> None:
    """A pattern that matches the question, too, ends a row by another line alone."""
    text = r"between: {from: 'q seq=(?P<key>\d+)', to: 'seq=(?P<key>\d+)'}" + "\n"
    rows = between(tmp_path, ["q seq=1", "-", "ack seq=1"], case(1), text)
    assert rows["done_us"][0] - rows["began_us"][0] > 1000


def test_one_line_ends_a_row_and_begins_the_next(tmp_path: Path) -> None:
    """Without a key both patterns may match one line: its period is measured."""
    rows = between(tmp_path, ["tick", "tick", "tick"], case(2), "between: {from: tick, to: tick}\n")
    assert rows["outcome"] == (0, 0)
    assert rows["done_us"][0] == rows["began_us"][1]


def test_the_last_question_has_its_whole_time(tmp_path: Path) -> None:
    """A case that is over before does not make it a time-out."""
    rows = between(tmp_path, ["q seq=1", *["-"] * 60, "ack seq=1"], case(1, duration_s=0.05))
    assert rows["outcome"] == (0,)


def test_what_is_never_answered_is_a_row_at_its_time_out(tmp_path: Path) -> None:
    """Lost is not left out, and more of it can only make the figure worse."""
    rows = between(tmp_path, ["q seq=1", "q seq=2", "ack seq=2"], case(2, timeout_ms=50, duration_s=0.3))
    assert rows["outcome"] == (1, 0)
    assert rows["done_us"][0] - rows["began_us"][0] == 50_000
    assert between(tmp_path, ["q seq=1", "error 7"], SHORT, ACKED)["outcome"] == (1,)


ACKED = r"between: {from: 'q seq=(?P<key>\d+)', to: 'acked seq=(?P<key>\d+)'}" + "\n"
SHORT = case(1, timeout_ms=50, duration_s=0.2)


@pytest.mark.parametrize(
    ("text", "lines", "wanted", "error", "said"),
    [
        # Nothing tells which question each answer is of, and the way out is a key.
        (
            "between: {from: go, to: done}\n",
            ["go", "go", "done", "done"],
            case(2),
            ConfigError,
            r"\(\?P<key>",
        ),
        # Lines match and none has the key of a question: the patterns take other texts, or other numbers.
        (KEYED, ["q seq=1", "ack seq=7"], SHORT, ConfigError, "keys '7', .*keys '1'"),
        # Fewer rows than the case wants are no shorter series.
        (
            KEYED,
            ["q seq=1", "ack seq=1", "q seq=2"],
            case(3, duration_s=0.2),
            FirmwareError,
            r"2 of 3 .*'q seq=\S+' .*0\.2 s",
        ),
        # All rows would be time-outs; where a line is much like the pattern, it is the pattern's fault.
        (ACKED, ["q seq=1", "ack seq=1"], SHORT, ConfigError, "'ack seq=1'"),
    ],
)
def test_what_cannot_be_matched_is_told_with_its_owner(
    tmp_path: Path, text: str, lines: list[str], wanted: MeasuredCase, error: type[HilError], said: str
) -> None:
    """A pattern at fault is the configuration's, a slow product the firmware's; how far it came is told."""
    with pytest.raises(error, match=said):
        between(tmp_path, lines, wanted, text)


def test_numbers_are_columns(tmp_path: Path) -> None:
    """A decimal becomes a whole number of a smaller unit; what is no number is told."""
    text = r"values: {line: 't=(?P<temp_mC>\S+) heap=(?P<heap_bytes>\d+)', times: {temp_mC: 1000}}" + "\n"
    probe = probe_of(tmp_path, text)
    assert isinstance(probe.measures, Values)
    rows = measure_values(console_of(["t=21.48 heap=7", "-", "t=-3 heap=8"], probe), probe.measures, case(2))
    assert rows["temp_mC"] == (21480, -3000)
    assert rows["heap_bytes"] == (7, 8)
    for wrong in ("21.4801", "nan", "hot"):
        with pytest.raises(ConfigError, match=f"'temp_mC' matched '{wrong}'"):
            measure_values(console_of([f"t={wrong} heap=1"], probe), probe.measures, case(1))


def test_a_boot_is_a_row(tmp_path: Path) -> None:
    """From the first line of the boot on; also where the line had come before anyone measured."""
    probe = probe_of(tmp_path, "boot: {to: 'first ack'}\n")
    assert isinstance(probe.measures, BootRows)
    console = console_of(["first ack", "more"], probe)
    rows = measure_boot(console, probe.measures, case(1))
    assert rows["outcome"] == (0,)
    assert 0 < rows["done_us"][0] < 500_000
    late = measure_boot(console_of(["else"], probe), probe.measures, case(1, timeout_ms=100))
    assert (late["outcome"], late["done_us"]) == ((1,), (100_000,))


@pytest.mark.parametrize(
    ("sequence", "payload", "found"),
    [
        ("seq", b'{"seq":7}', 7),
        ("data.seq", b'{"data":{"seq":8}}', 8),
        ("data.seq", b'{"data":[1]}', None),
        ("seq", b"not json", None),
        ("{pattern: 'n=(.)'}", b"x n=9", "9"),
    ],
)
def test_a_field_is_found_in_a_payload(tmp_path: Path, sequence: str, payload: bytes, found: object) -> None:
    """By a path in JSON, or by a pattern; None where it is not there."""
    measures = probe_of(tmp_path, f"arrivals: {{topic: t, sequence: {sequence}}}\n").measures
    assert isinstance(measures, Arrivals)
    assert read_field(measures.sequence, payload) == found


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


def test_a_probe_that_nothing_goes_with_is_told_before_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`hil plan` names all that a lone probe lacks, as `hil run` does, and lists no other bench instead."""
    for module in ("hil.cli.plan", "hil.run.campaign"):
        monkeypatch.setattr(f"{module}.BENCH_FOLDERS", (TOOL_BENCHES, tmp_path))
    (tmp_path / "lone.probe.yaml").write_text("schema: 1\nready: {pattern: up}\nboot: {to: up}\n")
    for missing in (["test_lone.py", "thresholds/lone.yaml"], ["thresholds/lone.yaml"]):
        done = hil("plan", "--suite", "first")
        assert done.returncode == ExitCode.CONFIG
        told = done.stdout.split(f"{tmp_path / 'lone.probe.yaml'}: ")[1]
        assert re.findall(r"\S+lone\.(?:py|yaml)", told) == missing
        (tmp_path / "test_lone.py").touch()
