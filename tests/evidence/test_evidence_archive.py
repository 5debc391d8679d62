# SPDX-License-Identifier: Apache-2.0
"""The file that is sent: what is in it and what is not, and a received one of which nothing is believed."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import socket
import tarfile
from pathlib import Path

import jsonschema
import pytest

from hil.base.errors import ConfigError
from hil.boards.rack import Rack
from hil.cli.app import run_command
from hil.evidence import archive
from hil.evidence.archive import pack, unpack
from hil.evidence.doing import folder_of
from hil.evidence.redact import HIDDEN, Redactor
from hil.evidence.report import Evidence, parse_evidence, to_bytes
from tests.evidence.evidence_rig import (
    MAC,
    PASSWORD,
    SERIAL,
    leave_evidence,
    leave_run,
    physical_rack,
    record,
)
from tests.lab import ROOT

RUN = "20261120T221257Z-quick-0001"


@pytest.fixture
def rack(tmp_path: Path) -> Rack:
    return physical_rack(tmp_path)


@pytest.fixture
def evidence(rack: Rack, tmp_path: Path) -> Evidence:
    """A programme whose step quick is done, with what a run leaves."""
    folder = folder_of(tmp_path / "out", rack)
    bssid = {"device": {"ssid": "ourhome", "bssid": "a0:b1:c2:d3:e4:f5"}}
    records = [
        dataclasses.replace(record(board), environment={**record().environment, **bssid})
        for board in ("d1", "d2")
    ]
    run = leave_run(folder / "out", RUN, records, host=socket.gethostname(), rack="desk")
    for name in ("console", "flash", "capture", "peer"):
        (run.path / name).mkdir()
    log = f"esptool --port {SERIAL} {MAC} {MAC.replace(':', '')} ourhome {PASSWORD} {socket.gethostname()}\n"
    (run.path / "console" / "d1.log").write_text(log)
    (run.path / "console" / "d1.panic-1.txt").write_text("Guru Meditation\n")
    (run.path / "flash" / "d1.log").write_text(log)
    (run.path / "capture" / "d1.pcapng").write_bytes(b"\x0a\x0d")
    (run.path / "peer" / "image.bin").write_bytes(b"\xe9")
    return leave_evidence(rack, tmp_path / "out", "quick", [RUN])


def packed(rack: Rack, evidence: Evidence, tmp_path: Path, *, anonymous: bool = False) -> Path:
    to = tmp_path / "evidence-desk.tar.gz"
    whole = dataclasses.replace(evidence, anonymous=anonymous)
    pack(whole, folder_of(tmp_path / "out", rack), to, Redactor(rack, anonymous=anonymous))
    return to


def contents(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as found:
        return {one.name: found.extractfile(one).read() for one in found}  # type: ignore[union-attr]


def test_what_is_sent(rack: Rack, evidence: Evidence, tmp_path: Path) -> None:
    """Records, verdicts, limits, logs and panics of each run; no capture, no image, and no password."""
    found = contents(packed(rack, evidence, tmp_path))
    assert {name.removeprefix(f"runs/{RUN}/") for name in found} == {
        "evidence.json", "evidence.md", "run.json", "records.jsonl", "verdicts.json",
        "thresholds/publish.yaml", "console/d1.log", "console/d1.panic-1.txt", "flash/d1.log",
    }  # fmt: skip
    assert not [name for name, content in found.items() if PASSWORD.encode() in content]
    log = found[f"runs/{RUN}/console/d1.log"].decode()
    assert HIDDEN in log
    assert MAC in log
    records = folder_of(tmp_path / "out", rack) / "out" / RUN / "records.jsonl"
    assert found[f"runs/{RUN}/records.jsonl"] == records.read_bytes()
    schema = json.loads((ROOT / "docs/reference/schema/evidence.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(json.loads(found["evidence.json"]))
    assert "| ✓ ok | flashed, each case" in found["evidence.md"].decode()


def test_what_is_replaced_where_it_is_to_be(rack: Rack, evidence: Evidence, tmp_path: Path) -> None:
    """--anonymous: no half of a MAC address that tells the board, no network, no host, no serial number; the
    same thing has one other name throughout, and the records are judged to the same."""
    path = packed(rack, evidence, tmp_path, anonymous=True)
    found = contents(path)
    for word in (MAC[9:], MAC.replace(":", ""), "ourhome", "d3:e4:f5", "SECRETSERIAL", PASSWORD):
        assert not [name for name, content in found.items() if word.encode() in content], word
    assert json.loads(found[f"runs/{RUN}/run.json"])["host"] == "host"
    environments = [
        json.loads(line)["environment"] for line in found[f"runs/{RUN}/records.jsonl"].splitlines()
    ]
    assert {one["device"]["ssid"] for one in environments} == {"network"}
    assert len({one["device"]["bssid"] for one in environments}) == 1
    assert environments[0]["device"]["bssid"].startswith("a0:b1:c2:00:00:")
    assert found[f"runs/{RUN}/console/d1.log"].decode().count("24:6f:28:00:00:01") == 1
    assert run_command(["evidence", "show", str(path)]) == 4


def test_no_link_is_followed(rack: Rack, evidence: Evidence, tmp_path: Path) -> None:
    """Neither a linked file nor a linked folder of a run, nor a run that is a link, is in it."""
    secret = tmp_path / "elsewhere"
    secret.mkdir()
    (secret / "d9.log").write_text("of somebody else\n")
    runs = folder_of(tmp_path / "out", rack) / "out"
    (runs / RUN / "console" / "d2.log").symlink_to(secret / "d9.log")
    (runs / RUN / "flash").rename(runs / "flash-of-before")
    (runs / RUN / "flash").symlink_to(secret)
    (runs / "20261120T221257Z-linked-0002").symlink_to(runs / RUN)
    step = evidence.step("quick")
    more = dataclasses.replace(step, runs=(*step.runs, "20261120T221257Z-linked-0002", "../../../etc"))
    found = contents(packed(rack, evidence.replaced(more), tmp_path))
    assert not [name for name, content in found.items() if b"somebody else" in content]
    assert not [name for name in found if "linked" in name or "etc" in name]
    left = json.loads(found["evidence.json"])["left_out"]
    assert left == [f"runs/{RUN}/console/d2.log: no plain file"]


def test_it_is_bounded(
    rack: Rack, evidence: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a long log the end is kept; a file that is too large is left out, and named."""
    run = folder_of(tmp_path / "out", rack) / "out" / RUN
    (run / "console" / "d1.log").write_text("first\n" + "x" * 100_000 + "\nlast\n")
    monkeypatch.setattr(archive, "MOST_LOG_BYTES", 1000)
    monkeypatch.setattr(archive, "MOST_FILE_BYTES", 5000)
    found = contents(packed(rack, evidence, tmp_path))
    log = found[f"runs/{RUN}/console/d1.log"]
    assert (log.endswith(b"last\n"), b"first" in log, len(log) < 1100) == (True, False, True)
    assert f"runs/{RUN}/records.jsonl" not in found
    left_out = json.loads(found["evidence.json"])["left_out"]
    assert [one.partition(":")[0] for one in left_out].count(f"runs/{RUN}/records.jsonl") == 1


def _entry(name: str, content: bytes = b"{}", **more: object) -> tuple[tarfile.TarInfo, bytes]:
    made = tarfile.TarInfo(name)
    made.size = len(content)
    for key, value in more.items():
        setattr(made, key, value)
    return made, content


def write_tar(path: Path, *entries: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as made:
        for entry, content in entries:
            made.addfile(entry, io.BytesIO(content))
    return path


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (_entry("../evidence.json"), "none of its files"),
        (_entry("/etc/passwd"), "none of its files"),
        (_entry("runs/../x/run.json"), "none of its files"),
        (_entry(f"runs/{RUN}/console/\x1b[2J.log"), "none of its files"),
        (_entry(f"runs/{RUN}/capture/d1.pcapng"), "none of its files"),
        (_entry("evidence.md", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd"), "none of its files"),
        (_entry("evidence.md", b"", type=tarfile.LNKTYPE, linkname="evidence.json"), "none of its files"),
        (_entry("evidence.md", b"", type=tarfile.FIFOTYPE), "none of its files"),
        (_entry("evidence.md", b"", type=tarfile.GNUTYPE_SPARSE), "cannot be read|can be read|none of its"),
        (_entry("evidence.json"), "twice"),
    ],
)
def test_a_hostile_entry_is_refused(
    evidence: Evidence, tmp_path: Path, entry: tuple[tarfile.TarInfo, bytes], words: str
) -> None:
    """A name that leads out, a link, a device, a file of another kind, a name twice: nothing is written."""
    path = write_tar(tmp_path / "e.tar.gz", _entry("evidence.json", to_bytes(evidence)), entry)
    with pytest.raises(ConfigError, match=words) as refused:
        unpack(path, tmp_path / "to")
    assert "\x1b" not in str(refused.value)
    assert not (tmp_path / "to").exists()


def test_more_than_is_read_is_refused(
    evidence: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too many files, a file that says or is too much, a bomb, a large file: each refused, nothing kept."""
    head = _entry("evidence.json", to_bytes(evidence))
    logs = [_entry(f"runs/{RUN}/console/d{n}.log", b"x") for n in range(20)]
    monkeypatch.setattr(archive, "MOST_FILES", 10)
    with pytest.raises(ConfigError, match="more than 10 files"):
        unpack(write_tar(tmp_path / "a.tar.gz", head, *logs), tmp_path / "to")
    monkeypatch.setattr(archive, "MOST_FILE_BYTES", 100_000)
    monkeypatch.setattr(archive, "MOST_BYTES", 200_000)
    large = _entry(f"runs/{RUN}/console/d1.log", b"x" * 100_001)
    with pytest.raises(ConfigError, match="more bytes than are read"):
        unpack(write_tar(tmp_path / "b.tar.gz", head, large), tmp_path / "to")
    bomb = tmp_path / "c.tar.gz"
    with gzip.open(bomb, "wb") as stream:  # a head that asks for as much as is there
        stream.write(_entry("x", type=tarfile.XHDTYPE)[0].tobuf()[:124] + b"77777777777\0")
        stream.write(b"\0" * 3_000_000)
    with pytest.raises(ConfigError):
        unpack(bomb, tmp_path / "to")
    monkeypatch.setattr(archive, "MOST_PACKED_BYTES", 10)
    with pytest.raises(ConfigError, match="and 10 are read"):
        unpack(write_tar(tmp_path / "d.tar.gz", head), tmp_path / "to")
    assert not (tmp_path / "to").exists()


@pytest.mark.parametrize(
    "content",
    [b"", b"no archive", gzip.compress(b"no tar", mtime=0), gzip.compress(b"x" * 2048, mtime=0)[:-9]],
    ids=["empty", "text", "no-tar", "cut-off"],
)
def test_what_is_no_archive_is_refused(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2 and one sentence."""
    path = tmp_path / "e.tar.gz"
    path.write_bytes(content)
    assert run_command(["evidence", "show", str(path)]) == 2
    assert "ask for a file that hil evidence wrote" in capsys.readouterr().err
    assert run_command(["evidence", "show", str(tmp_path / "none")]) == 2
    assert "No such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": 9}, "its schema is 9"),
        ({"kind": "real"}, "kind is 'real'; expected one of virtual, physical"),
        ({"more": 1}, "more is an unknown key"),
        ({"steps": [{"name": "x"}]}, "steps"),
    ],
)
def test_a_head_of_another_form_is_refused(evidence: Evidence, change: dict[str, object], words: str) -> None:
    """A newer schema, a word or a key that is none: named."""
    content = json.dumps({**json.loads(to_bytes(evidence)), **change}).encode()
    with pytest.raises(ConfigError, match=words):
        parse_evidence("e", content)


def test_a_run_of_another_place_is_not_read(evidence: Evidence, tmp_path: Path) -> None:
    """A run id that leads out of the archive is refused before anything is read by it."""
    step = dataclasses.replace(evidence.step("quick"), runs=("../../work",))
    path = write_tar(tmp_path / "e.tar.gz", _entry("evidence.json", to_bytes(evidence.replaced(step))))
    with pytest.raises(ConfigError, match="no run's name"):
        unpack(path, tmp_path / "to")


def test_evidence_is_not_its_own_word(
    rack: Rack, evidence: Evidence, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Judged again from the records: a verdict or a result that says otherwise is named, a step without a run
    that shows it too, and a virtual run that is called physical; whole evidence has no such line."""
    assert run_command(["evidence", "show", str(packed(rack, evidence, tmp_path))]) == 4  # steps are open
    said = capsys.readouterr().out
    assert "Each run was judged again from its records." in said
    assert "!" not in said
    run = folder_of(tmp_path / "out", rack) / "out" / RUN
    verdict = json.loads((run / "verdicts.json").read_text())
    (run / "verdicts.json").write_text(json.dumps({**verdict, "outcome": "undecided", "exit_code": 4}))
    run_virtual = "20261120T221257Z-quick-0003"
    leave_run(run.parent, run_virtual, [record(kind="virtual", target="virtual-esp32")])
    lie = dataclasses.replace(evidence.step("quick"), runs=(RUN, run_virtual), result="differs")
    claim = dataclasses.replace(evidence.step("planted"), result="ok", got="\x1b[2J+10 %")
    path = packed(rack, evidence.replaced(lie).replaced(claim), tmp_path)
    assert run_command(["evidence", "show", str(path)]) == 4
    said = capsys.readouterr().out
    assert f"! quick: the verdict of {RUN} contradicts its records: the run: undecided (exit 4)" in said
    assert "! quick: called physical, and its records are physical and virtual" in said
    assert "! quick: says differs, and its records say ok" in said
    assert "! planted: says ok, and there is no run that shows it" in said
    assert "\x1b" not in said
