# SPDX-License-Identifier: Apache-2.0
"""Lines out of a console's bytes: text as it came, ends of every kind, and what has none."""

from __future__ import annotations

import math

import pytest

from hil.session.console import Lines, Unfinished


class Chunks:
    """hil.session.Console: each read returns a chunk; None is a second of silence on its clock."""

    def __init__(self, *chunks: bytes | None) -> None:
        self._chunks = list(chunks)
        self.now = 0.0
        self.logged: list[str] = []

    def clock(self) -> float:
        return self.now

    def read(self, timeout_s: float) -> bytes:
        chunk = self._chunks.pop(0) if self._chunks else None
        if chunk is not None:
            return chunk
        self.now += min(timeout_s, 1.0)
        return b""

    def write(self, data: bytes) -> None:
        raise AssertionError(data)


def lines_of(*chunks: bytes | None) -> tuple[Lines, Chunks]:
    console = Chunks(*chunks)
    return Lines(console, log=console.logged.append, clock=console.clock), console


def read_all(lines: Lines, *, pause_s: float = math.inf) -> list[str]:
    found = []
    while (line := lines.read(50.0, pause_s=pause_s)) is not None:
        found.append(line)
    return found


@pytest.mark.parametrize(
    ("chunks", "wanted"),
    [
        ([b"one\r\ntwo\n"], ["one", "two"]),
        ([b"one\r", b"\ntwo\r", b"\n"], ["one", "two"]),
        ([b"one\rtwo\rthree\r"], ["one", "two", "three"]),
        ([b"one\r\r\n\r\r\ntwo\r\r\n"], ["one", "", "two"]),
        ([b"one\r", b"\r\n", b"\r\ntwo\n"], ["one", "", "two"]),
        ([b"10%\r20%\r", b"done\r\n"], ["10%", "20%", "done"]),
        ([b"\rtalk> ", b"\rtalk> h", b"i\n"], ["talk> ", "talk> hi"]),
        ([b"\n\n"], ["", ""]),
    ],
)
def test_field_a_line_ends_with_cr_or_lf_or_both(chunks: list[bytes], wanted: list[str]) -> None:
    """Wherever the reads are cut; a CR in front of a line moves the cursor to where it is."""
    assert read_all(lines_of(*chunks)[0]) == wanted
    one_by_one = [bytes([byte]) for byte in b"".join(chunks)]
    assert read_all(lines_of(*one_by_one)[0]) == wanted


def test_a_flood_of_carriage_returns_takes_no_time_to_speak_of() -> None:
    """What a stuck line looks like is read in one go."""
    lines, _ = lines_of(b"\r" * 65_000, b"up\n")
    assert read_all(lines) == ["up"]


def test_field_text_is_utf8_and_is_logged_once_encoded() -> None:
    """A character may be cut by a read; a byte that is no UTF-8 stays what it was."""
    text = "准备就绪 grüß 21.5°C".encode()
    lines, console = lines_of(text[:4], text[4:] + b"\n", b"21\xb0C\n")
    assert read_all(lines) == ["准备就绪 grüß 21.5°C", "21°C"]
    assert console.logged == ["准备就绪 grüß 21.5°C", "21°C"]


def test_field_colours_are_no_part_of_a_line() -> None:
    """They are matched and quoted without, as is what an editor of lines sends; the log keeps them."""
    coloured = "\x1b[0;32mI (5) main: ready\x1b[0m"
    lines, console = lines_of(coloured.encode() + b"\n", b"\x1b[5n\x1b[2Ktalk> \x1b[0K\n")
    assert read_all(lines) == ["I (5) main: ready", "talk> "]
    assert console.logged[0] == coloured
    assert lines.last == ["I (5) main: ready", "talk> "]


@pytest.mark.parametrize(
    "coloured",
    [
        "\x1b[38;5;196mrea\x1b[0mdy",
        "\x1b[38:2::255:0:0mready",
        "\x1b]0;title\x07ready",
        "\x1b]8;;http://x\x1b\\ready",
        "\x1b7re\x1b8ady\x1b(B\x1b[m",
    ],
)
def test_field_what_a_terminal_takes_for_a_command_is_no_part_of_a_line(coloured: str) -> None:
    """Colours of any depth, titles, links, and what resets a terminal."""
    assert read_all(lines_of(coloured.encode() + b"\n")[0]) == ["ready"]


def test_field_what_begins_like_a_command_and_has_no_end_is_kept() -> None:
    """Noise takes no line away."""
    assert read_all(lines_of(b"\x1b]I (5) main: ready\n")[0]) == ["\x1b]I (5) main: ready"]


def test_a_secret_is_masked_through_colours() -> None:
    """Nor does a line of the log then keep its colours."""
    lines, console = lines_of(b"\x1b[1mcorrect \x1b[0mhorse\n", b"login with corre")
    lines.add_secret("correct horse")
    read_all(lines)
    assert lines.last == ["***", "login with ***"]
    lines.close()
    assert console.logged == ["***", "login with ***"]


def test_field_an_unfinished_line_is_read_at_a_pause_and_again_as_a_whole() -> None:
    """It is one line in the log, and its start is there for whoever waits for a prompt."""
    lines, console = lines_of(b"boot\r\ntalk> ", None, b"hel", b"p\r\n", b"..", None, b"..", None)
    found = read_all(lines, pause_s=0.2)
    assert found == ["boot", "talk> ", "talk> help", "..", "...."]
    assert [isinstance(line, Unfinished) for line in found] == [False, True, False, True, True]
    assert console.logged == ["boot", "talk> help"]
    assert lines.last == ["boot", "talk> help", "...."]
    lines.close()
    lines.close()
    assert console.logged == ["boot", "talk> help", "...."]


def test_what_was_not_read_is_logged_in_the_end() -> None:
    """A boot that ends by an error leaves its console as it came, but for what is memory."""
    lines, console = lines_of(b"one\ntwo\nthr")
    assert lines.read(1.0) == "one"
    lines.close()
    assert console.logged == ["one", "two", "thr"]
    lines, console = lines_of(b"= CORE DUMP START =\nAAAA\nBBBB\nCC", None)
    read_all(lines)
    assert "CC" not in lines.last
    lines.close()
    assert console.logged == ["= CORE DUMP START ="]


def test_escapes_alone_are_no_line() -> None:
    """An editor of lines asks the terminal for its width, and waits."""
    lines, _ = lines_of(b"\x1b[5n", None, None, b"talk> ", None)
    assert read_all(lines, pause_s=0.2) == ["talk> "]
