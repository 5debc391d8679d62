# SPDX-License-Identifier: Apache-2.0
"""The console protocol: marked lines of the board, command lines of the host.

docs/reference/console-protocol.md has every line.

Protocol history
    1  first version; notes came later, and no older host drives a firmware that sends them
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Callable, Mapping
from urllib.parse import unquote_to_bytes

from hil.wire.messages import Begin, DamagedLineError, Data, End, Hello, Message, Note, Reply, WireError
from hil.wire.packing import BLOCK_BYTES

PROTOCOL_VERSIONS = (1,)  # what the host speaks: the current and the previous version
MARKER = "@hil "
COMMAND_BYTES_MAX = 1023

_LINE = re.compile(r"@hil (?P<proto>\d{1,4}) (?P<number>\d{1,10}) (?P<kind>[A-Z])(?: (?P<body>.*))?", re.S)
_CRC = re.compile(r"\*([0-9a-f]{8})")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,19})")
_NOTE_KIND = re.compile(r"[a-z][a-z0-9_-]*")
_TAG = re.compile(r"[A-Za-z0-9.][A-Za-z0-9.-]{0,22}")


def crc32_hex(data: bytes) -> str:
    return f"{zlib.crc32(data):08x}"


def parse_line(line: str | bytes) -> Message | None:
    """Parse a console line. Text before the marker belongs to a log line that was cut and is dropped.

    Returns None for a line without a marker. The errors quote the line as it is: whoever knows the secrets
    masks them before anybody sees the sentence.

    Raises:
        DamagedLineError: the line is marked, and its checksum is wrong or missing.
        WireError: the checksum is right and the content is not, or the version is unknown.
    """
    text = line.decode("latin-1") if isinstance(line, bytes) else line
    at = text.rfind(MARKER)
    if at < 0:
        return None
    marked = text[at:].rstrip("\r\n")
    match = _LINE.fullmatch(_check_crc(marked))
    if match is None:
        raise WireError(f"The board sent a marked line that is none: {marked!r}.")
    version = 1 if match["kind"] == "H" else int(match["proto"])  # a hello reads the same in every version
    parser = _PARSERS.get((version, match["kind"]))
    if parser is None:
        raise WireError(
            f"The board sent a line of protocol {match['proto']}, kind {match['kind']}; this host speaks "
            f"{', '.join(map(str, PROTOCOL_VERSIONS))}: {marked!r}.",
            next_step="use the hil of the commit that the firmware was built from, or rebuild the firmware.",
        )
    try:
        return parser(int(match["number"]), match["body"] or "")
    except (KeyError, ValueError) as error:
        raise WireError(f"The board sent a line whose content is wrong ({error}): {marked!r}.") from error


def format_command(verb: str, *args: object, tag: str | None = None) -> bytes:
    """Return a command line; with a tag it is checksummed and the board executes it at most once.

    Raises:
        ValueError: a character that the protocol does not allow, or a line that is too long.
    """
    words = [verb, *map(str, args)]
    if not all(re.fullmatch(r"[!-~]+", word) and word[0] not in "#*" for word in words):
        raise ValueError(f"a command's words are printable ASCII without blanks: {verb}")
    line = " ".join(words)
    if tag is not None:
        if not _TAG.fullmatch(tag):
            raise ValueError(f"{tag!r} is no tag")
        line = f"#{tag} {line}"
        line += f" *{crc32_hex(line.encode())}"
    if len(line) > COMMAND_BYTES_MAX:
        raise ValueError(f"a command line of {len(line)} characters is too long: {verb}")
    return line.encode() + b"\n"


def parse_scalar(text: str) -> int | str:
    """Return an integer where the text is one in canonical form, else the text."""
    return int(text) if _INTEGER.fullmatch(text) else text


def _check_crc(marked: str) -> str:
    content, _, crc = marked.rpartition(" ")
    match = _CRC.fullmatch(crc)
    if match is None or crc32_hex(content.encode("latin-1", "replace")) != match[1]:
        raise DamagedLineError(f"A line of the board arrived damaged: {marked!r}.")
    return content


def _fields(words: list[str], *, unique: bool = True) -> dict[str, str]:
    fields: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not _KEY.fullmatch(key) or (unique and key in fields):
            raise ValueError(f"{word!r} is no field")
        fields[key] = unquote_to_bytes(value).decode("utf-8", "replace")
    return fields


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal():
        raise ValueError(f"{text!r} is no count")
    return int(text)


def _parse_hello(number: int, body: str) -> Hello:
    fields = _fields(body.split(" "))
    texts = ("boot", "project", "version", "idf", "target", "reset_reason", "firmware_sha256", "elf_sha256")
    return Hello(
        number=number,
        proto_min=_count(fields["proto_min"]),
        proto_max=_count(fields["proto_max"]),
        benches=_split(fields["benches"]),
        agent=fields.get("agent", ""),
        **{key: fields[key] for key in texts},
    )


def _parse_reply(number: int, body: str) -> Reply:
    tag, verdict, *words = body.split(" ")
    if verdict not in ("ok", "err"):
        raise ValueError(f"{verdict!r} is neither ok nor err")
    code = words.pop(0) if verdict == "err" and words else ""
    return Reply(number=number, tag=tag, ok=verdict == "ok", code=code, fields=_fields(words))


def _parse_begin(number: int, body: str) -> Begin:
    transfer, *words = body.split(" ")
    fields = _fields(words)
    return Begin(
        number=number,
        transfer=_count(transfer),
        parameters=_fields(list(_split(fields["case"]))),
        columns=_split(fields["columns"]),
        protocol_version=1,
        rows=_count(fields["rows"]),
        warmup_rows=_count(fields["warmup_rows"]),
        blocks=_count(fields["blocks"]),
        burst=_count(fields["burst"]),
        bench=fields["bench"],
        clock=fields["clock"],
        firmware_sha256=fields["firmware_sha256"],
        ruler_hash=fields["ruler_hash"],
    )


def _parse_data(number: int, body: str) -> Data:
    transfer, block, encoded = body.split(" ")
    try:
        packed = base64.b64decode(encoded, validate=True)
    except binascii.Error as error:
        raise ValueError(f"not base64: {error}") from error
    if not 0 < len(packed) <= BLOCK_BYTES:
        raise ValueError(f"a block of {len(packed)} bytes")
    return Data(number=number, transfer=_count(transfer), block=_count(block), packed=packed)


def _parse_end(number: int, body: str) -> End:
    head, _, environment = body.partition(" ;")
    transfer, *words = head.split(" ")
    fields = _fields(words)
    extra = _fields(environment.split(), unique=False)
    return End(
        number=number,
        transfer=_count(transfer),
        rows=_count(fields["rows"]),
        blocks=_count(fields["blocks"]),
        crc32=int(fields["crc32"], 16),
        status=fields["status"],
        last=fields["last"] == "1",
        owner=fields.get("owner", ""),
        error=fields.get("error", ""),
        environment={key: parse_scalar(value) for key, value in extra.items()},
    )


def _parse_note(number: int, body: str) -> Note:
    transfer, kind, *words = body.split(" ")
    if not _NOTE_KIND.fullmatch(kind):
        raise ValueError(f"{kind!r} is no kind of note")
    return Note(number=number, transfer=_count(transfer), kind=kind, fields=_fields(words))


# One row per version and kind: a second version adds its rows and keeps those that did not change.
_PARSERS: Mapping[tuple[int, str], Callable[[int, str], Message]] = {
    (1, "H"): _parse_hello,
    (1, "R"): _parse_reply,
    (1, "B"): _parse_begin,
    (1, "D"): _parse_data,
    (1, "E"): _parse_end,
    (1, "N"): _parse_note,
}
