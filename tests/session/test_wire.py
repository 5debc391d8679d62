# SPDX-License-Identifier: Apache-2.0
"""The console protocol: what is packed comes back, damage is noticed, and the worked example holds."""

from __future__ import annotations

import base64
import re
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.wire import (
    Begin,
    DamagedLineError,
    Data,
    End,
    Hello,
    Note,
    Reply,
    WireError,
    format_command,
    packing,
    parse_line,
)

ROOT = Path(__file__).resolve().parents[2]
DOC = ROOT / "docs" / "reference" / "console-protocol.md"
VALUES = st.integers(0, packing.VALUE_MAX)
COLUMNS = st.integers(0, 40).flatmap(
    lambda rows: st.lists(st.lists(VALUES, min_size=rows, max_size=rows), min_size=1, max_size=6)
)


def marked(content: str) -> str:
    return f"{content} *{zlib.crc32(content.encode()):08x}"


def example_lines() -> list[str]:
    return re.findall(r"^(?:@hil|#).*$", DOC.read_text().split("## Worked example")[1], flags=re.MULTILINE)


def test_worked_example_parses_to_its_table() -> None:
    """The lines of the documented example carry the documented samples."""
    reply, begin, data, end = (parse_line(line) for line in example_lines() if line.startswith("@hil"))
    assert isinstance(reply, Reply)
    assert isinstance(begin, Begin)
    assert isinstance(data, Data)
    assert isinstance(end, End)
    assert (reply.tag, reply.ok, reply.fields) == ("7a3f-2", True, {"transfer": "3"})
    assert (begin.bench, begin.parameters) == ("example", {"count": "3", "mode": "fast"})
    assert (begin.rows, begin.warmup_rows, begin.burst, begin.clock) == (3, 1, 1, "esp_timer")
    columns = packing.unpack_columns(data.packed, columns=len(begin.columns), rows=begin.rows)
    assert (begin.columns, columns) == (("planned_us", "done_us"), ((1000, 2000, 3010), (1840, 2790, 0)))
    assert (end.crc32, end.status, end.last) == (zlib.crc32(data.packed), "ok", True)
    assert end.environment == {"heap_free_bytes": 183420, "t0_us": 5000000, "note": "two words"}


def test_worked_example_is_what_the_host_sends_and_packs() -> None:
    """The documented commands and packed bytes are those that this implementation makes."""
    commands = [line for line in example_lines() if line.startswith("#")]
    run = format_command("run", "example", "count=3", "mode=fast", tag="7a3f-2")
    assert [run, format_command("ack", 3, tag="7a3f-3")] == [f"{line}\n".encode() for line in commands]
    packed = packing.pack_columns([[1000, 2000, 3010], [1840, 2790, 0]])
    assert packed.hex(" ") == "d0 0f d0 0f e4 0f e0 1c ec 0e cb 2b"


def test_a_note_is_kind_and_fields() -> None:
    """What a bench says while it runs is read back as it was meant, blanks and signs in values included."""
    note = parse_line(marked("@hil 1 9 N 7 ready port=5001 text=two%20words%3D100%25 empty="))
    assert note == Note(9, 7, "ready", {"port": "5001", "text": "two words=100%", "empty": ""})
    assert parse_line(marked("@hil 1 9 N 7 done")) == Note(9, 7, "done", {})


@pytest.mark.parametrize("body", ["7", "x ready", "7 Ready!", "7 ready port", "7 ready port=1 port=2"])
def test_a_note_that_makes_no_sense_is_quoted(body: str) -> None:
    """A note without transfer or kind, with a word that is no field or with a field twice is an error."""
    with pytest.raises(WireError, match="content is wrong") as caught:
        parse_line(marked(f"@hil 1 9 N {body}"))
    assert body in caught.value.sentence


@given(COLUMNS)
def test_packed_columns_come_back(columns: list[list[int]]) -> None:
    """Unpacking returns what was packed, for every 32-bit value."""
    packed = packing.pack_columns(columns)
    unpacked = packing.unpack_columns(packed, columns=len(columns), rows=len(columns[0]))
    assert unpacked == tuple(map(tuple, columns))


@given(st.integers(-(2**33), 2**33))
def test_zigzag_is_its_own_way_back(value: int) -> None:
    """A difference of either sign survives, and small magnitudes stay small."""
    assert packing.unzigzag(packing.zigzag(value)) == value
    assert packing.zigzag(value) <= 2 * abs(value)


@given(st.binary(max_size=60), st.integers(1, 4), st.integers(0, 20))
def test_unpacking_anything_gives_its_only_packing_or_an_error(
    packed: bytes, columns: int, rows: int
) -> None:
    """Bytes either unpack to values whose packing they are, or are refused: nothing is guessed."""
    try:
        unpacked = packing.unpack_columns(packed, columns=columns, rows=rows)
    except ValueError:
        return
    assert packing.pack_columns(unpacked) == packed


def test_a_number_of_more_than_five_bytes_is_refused() -> None:
    """No difference of 32-bit values needs a sixth byte, which is said before it is computed with."""
    with pytest.raises(ValueError, match="longer than five bytes"):
        list(packing.decode_varints(b"\x81\x80\x80\x80\x80\x01"))


@pytest.mark.parametrize("columns", [[[1], [1, 2]], [[-1]], [[2**32]]])
def test_unpackable_columns_are_refused(columns: list[list[int]]) -> None:
    """Columns of different length and values beyond 32 bits are errors of the caller."""
    with pytest.raises(ValueError, match=r"differ in length|32-bit"):
        packing.pack_columns(columns)


@given(st.data())
def test_a_mutated_line_is_never_believed(data: st.DataObject) -> None:
    """A line with up to three changed bytes, or cut, or with bytes missing, yields the same or no message."""
    line = data.draw(st.sampled_from([line for line in example_lines() if line.startswith("@hil")]))
    original = parse_line(line)
    damaged = bytearray(line.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        if data.draw(st.booleans()):
            damaged[at] = data.draw(st.integers(0, 255))
        else:
            del damaged[at : at + data.draw(st.integers(1, 20))]
    try:
        message = parse_line(bytes(damaged))
    except DamagedLineError:
        return
    assert message is None or message == original


def test_unmarked_lines_are_log_text() -> None:
    """Log text is none of our business. A line that lost its end does not take the next marked line with
    it."""
    assert parse_line("I (123) wifi: connected") is None
    assert parse_line(b"\xff\xfe garbage") is None
    assert parse_line("") is None
    line = marked("@hil 1 5 R a-1 ok")
    assert parse_line(f"I (12) wifi: conn{line}\r\n") == parse_line(line)
    assert parse_line(f"@hil 1 4 D 3 0 AAAA{line}") == parse_line(line)


@pytest.mark.parametrize(
    "content",
    [
        "@hil 1 5 Z what",
        "@hil 2 5 R a-1 ok",
        "@hil 1 x R a-1 ok",
        "@hil 1 5 R a-1 maybe",
        "@hil 1 5 R a-1 ok =x",
        "@hil 1 5 R a-1 ok a=1 a=2",
        "@hil 1 5 D 3 0 A",
        "@hil 1 5 D 3 0 ",
        "@hil 1 5 D -3 0 AAAA",
        "@hil 1 5 B 3 bench=x",
        "@hil 1 5 E 3 rows=1 blocks=1 crc32=xyz status=ok last=1 ;",
        "@hil 1 5 H proto_min=1",
    ],
)
def test_whole_line_without_sense_is_an_error_that_quotes_it(content: str) -> None:
    """A right checksum over a wrong content is the firmware's fault, not the cable's."""
    with pytest.raises(WireError) as caught:
        parse_line(marked(content))
    assert not isinstance(caught.value, DamagedLineError)
    assert content in str(caught.value)


def test_oversized_block_is_refused() -> None:
    """No data line carries more than a block."""
    encoded = base64.b64encode(bytes(packing.BLOCK_BYTES + 1)).decode()
    with pytest.raises(WireError, match="1025 bytes"):
        parse_line(marked(f"@hil 1 5 D 3 0 {encoded}"))


def test_hello_reads_in_every_version() -> None:
    """A hello of a later version, with more fields, still tells which versions the board speaks."""
    fields = "proto_min=3 proto_max=4 boot=0a project=p version=v idf=i target=esp32 reset_reason=SW"
    hello = parse_line(marked(f"@hil 4 1 H {fields} firmware_sha256=00 elf_sha256=11 benches=a,b new=1"))
    assert isinstance(hello, Hello)
    assert (hello.proto_min, hello.proto_max, hello.benches) == (3, 4, ("a", "b"))


@pytest.mark.parametrize(
    ("words", "tag", "said"),
    [
        *((words, "a", "printable ASCII") for words in (["run", "two words"], ["run", ""], ["#run"])),
        *((["run", word], "a", "printable ASCII") for word in ("*x", "ü")),
        *((["info"], tag, "tag") for tag in ("-", "", "a b", "a_b", "x" * 24)),
        (["run", "x" * 1024], "a", "too long"),
    ],
)
def test_what_a_board_would_refuse_is_not_sent(words: list[str], tag: str, said: str) -> None:
    """Characters that it reads differently, a malformed tag, more than its line buffer holds."""
    with pytest.raises(ValueError, match=said):
        format_command(*words, tag=tag)


def agent_sources() -> str:
    folder = ROOT / "firmware" / "components" / "agent"
    return "\n".join(path.read_text() for path in sorted(folder.glob("*.c")))


def test_documented_verbs_errors_and_fields_are_the_agents() -> None:
    """The document names every verb, error code and provision field of the firmware, and no other."""
    doc, sources = DOC.read_text(), agent_sources()
    verbs = set(re.findall(r'\.command = "([a-z-]+)"', sources))
    verb_table = doc.split("| Error |")[0]
    assert set(re.findall(r"^\| `([a-z-]+)", verb_table, re.MULTILINE)) == verbs
    callers = r"answer_error\(|reply_to_damaged\(|reply_error\(reply(?:_current\(\))?, |PROVISION_\w+\] = "
    given = rf'(?:{callers})"([a-z0-9-]+)"'
    codes = set(re.findall(given, sources)) - {"ok"} | {"overflow"}
    table = doc.split("| Error |")[1].split("\n\n")[0]
    documented = {code for row in re.findall(r"^\|(.*?)\|", table, re.MULTILINE) for code in _words(row)}
    assert documented == codes
    fields = set(re.findall(r"^    (?:PEM|TEXT|PORT|TIME)\((\w+)\)", sources, re.MULTILINE))
    listed = (DOC.parent / "provisioning.md").read_text().split("at each boot:")[1].split(".")[0]
    assert fields == set(_words(listed))


def _words(text: str) -> list[str]:
    return re.findall(r"`([a-z0-9_-]+)`", text)
