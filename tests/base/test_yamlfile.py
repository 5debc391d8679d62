# SPDX-License-Identifier: Apache-2.0
"""Strict YAML: each mistake is a ConfigError with file, line, the value found and the way out."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import Node as YamlNode

from hil.base.errors import ConfigError
from hil.base.yamlfile import Node, load, loads
from hil.base.yamlnodes import compose
from hil.base.yamlvalue import did_you_mean

RACK = """\
name: virtual
host:
  address: 10.77.0.1
boards:
  - id: virtual-1
    serial: socket://one
    ports: [1, 2]
  - id: virtual-2
    serial: socket://two
    delay: 3 ms
"""


def test_a_file_that_is_too_large_is_refused_before_it_is_read() -> None:
    """ruamel.yaml takes minutes for some megabytes; the sentence names the file, its size and the limit."""
    text = f"boards: [{'b, ' * 200_000}]"
    with pytest.raises(ConfigError, match=r"^rack\.yaml: 600,010 characters; .* may have 500,000"):
        loads(text, label="rack.yaml")


def test_a_file_that_is_nested_without_end_is_refused() -> None:
    """It is the file's fault, not the program's."""
    with pytest.raises(ConfigError, match=r"^rack\.yaml: nested too deeply"):
        loads(f"x: {'[' * 1000}{']' * 1000}", label="rack.yaml")


def read_rack(node: Node) -> list[str]:
    node.text("name")
    node.section("host").text("address")
    boards = [read_board(board) for board in node.sections("boards")]
    node.finish()
    return boards


def read_board(board: Node) -> str:
    name = board.text("id")
    board.text("serial")
    board.scalars("ports", default=[])
    board.quantity("delay", "us", default=0.0, maximum=10_000)
    board.integer("count", default=1, minimum=0, maximum=5)
    return name


def sentence(text: str, read: Callable[[Node], object] = read_rack) -> str:
    with pytest.raises(ConfigError) as caught:
        read(loads(text, label="rack.yaml"))
    return str(caught.value)


def test_a_correct_file_is_read_whole() -> None:
    """Every kind of key comes back as what it is."""
    assert read_rack(loads(RACK, label="rack.yaml")) == ["virtual-1", "virtual-2"]
    node = loads(RACK, label="rack.yaml")
    assert node.sections("boards")[0].scalars("ports") == [1, 2]
    assert node.sections("boards")[1].quantity("delay", "us") == pytest.approx(3000)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (
            RACK.replace("    delay:", "    dellay:"),
            10,
            ["'dellay'", "'virtual-2'", "did you mean 'delay'?", "id, serial, ports, delay, count"],
        ),
        (
            RACK.replace("serial: socket://two", "seral: socket://two"),
            9,
            ["'seral'", "'virtual-2'", "did you mean 'serial', which is required?"],
        ),
        ("name: x\nhost:\n  port: 1\nboards: []\n", 2, ["'host'", "'address', which is required", "Next: "]),
    ],
)
def test_a_wrong_or_missing_key_names_line_owner_and_what_was_meant(
    text: str, line: int, words: list[str]
) -> None:
    """A mistyped optional key is found by finish(), wherever it stands. Instead of "serial is missing" the
    person reads which of their keys was meant; where none was, the section and what to add."""
    said = sentence(text)
    assert said.startswith(f"rack.yaml:{line}: ")
    assert [word for word in words if word not in said] == [], said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "rack.yaml:1: the file is empty."),
        ("# only a comment\n", "rack.yaml:1: the file is empty."),
        ("- a\n", "rack.yaml:1: the file is a list; expected a section"),
        ("a: 1\nb: 2\na: 3\n", "rack.yaml:3: duplicate key 'a' in the file; it is on line 1 already."),
        ("a:\n\tb: 1\n", "rack.yaml:2: a tab in the indentation: 'b: 1'. Next: indent with spaces."),
        ("a: [1\nb: 2\n", "rack.yaml:2: not YAML (expected ',' or ']'"),
        ("a: 'x\n", "not YAML (found unexpected end of stream)"),
        ("a: 1\n---\nb: 2\n", "rack.yaml:3: second YAML document."),
        ("1: a\n", "rack.yaml:1: a key in the file is the integer '1'; expected text"),
        pytest.param(
            "b: 1\na: \x00\n",
            "rack.yaml:2: character U+0000 is not allowed in YAML. Next: rewrite the line",
            id="field-zeros",
        ),
        ("<<: {a: 1}\n", "which does not read as 'merge'"),
    ],
)
def test_a_file_that_is_no_mapping_names_its_line(text: str, expected: str) -> None:
    """Bad syntax never shows as a Python error, and every sentence starts with the file."""
    assert expected in sentence(text)
    assert sentence(text).startswith("rack.yaml:")


@pytest.mark.parametrize(
    ("value", "read", "expected"),
    [
        ("4", lambda node: node.text("key"), "is the integer '4'; expected text (put it in quotes"),
        ("''", lambda node: node.text("key"), "expected text that is not empty"),
        ("x", lambda node: node.integer("key"), "is the text 'x'; expected an integer"),
        ("true", lambda node: node.integer("key"), "is the truth value 'true'; expected an integer"),
        (
            "9",
            lambda node: node.integer("key", maximum=5),
            "is the integer '9'; expected a value of at most 5",
        ),
        ("-1", lambda node: node.number("key", minimum=0), "expected a value of at least 0"),
        (".nan", lambda node: node.number("key"), "expected a number"),
        ("yes", lambda node: node.boolean("key"), "is the text 'yes'; expected true or false"),
        ("tcq", lambda node: node.choice("key", ("tcp", "tls")), "did you mean 'tcp'? Choices: tcp, tls."),
        ("3", lambda node: node.quantity("key", "ms"), "('3' has no unit)"),
        ("3 bytes", lambda node: node.quantity("key", "ms"), "(bytes is a unit of size, ms one of time)"),
        ("3 parsec", lambda node: node.quantity("key", "ms"), "unknown unit 'parsec'"),
        ("2026-13-45", lambda node: node.date("key"), "does not read as 'timestamp'"),
        ("today", lambda node: node.date("key"), "expected a day such as 2026-11-20"),
        ("2026-11-20", lambda node: node.text("key"), "is the date '2026-11-20'; expected text"),
        ("!!python/name:os x", lambda node: node.scalar("key"), "does not read as 'python/name:os'"),
        ("{a: 1}", lambda node: node.sections("key"), "is a section of 'key: value' lines; expected a list"),
        ("[1]", lambda node: node.texts("key"), "item 1 of 'key' in the file is the integer '1'"),
        ("[1]", lambda node: node.section("key"), "is a list; expected a section"),
        ("", lambda node: node.text("key"), "is nothing; expected text"),
    ],
)
def test_a_wrong_value_is_quoted_with_what_was_expected(
    value: str, read: Callable[[Node], object], expected: str
) -> None:
    """Type, range, choice and unit are checked where the key is taken."""
    text = sentence(f"first: 1\nkey: {value}\n", read)
    assert text.startswith("rack.yaml:2: ")
    assert expected in text


def test_values_keep_their_types() -> None:
    """YAML 1.2: on, off and yes are text; days are days; a default is returned as given."""
    node = loads("a: off\nb: 2026-11-20\nc: 1.5\nd: null\n", label="x")
    assert node.text("a") == "off"
    assert node.date("b") == datetime.date(2026, 11, 20)
    assert node.number("c") == 1.5
    assert node.scalar("d") is None
    assert node.text("e", default=None) is None
    node.finish()


def test_a_missing_file_names_those_that_are_there(tmp_path: Path) -> None:
    """A mistyped path is answered with the folder's files."""
    (tmp_path / "virtual.yaml").write_text("a: 1\n")
    with pytest.raises(ConfigError, match=r"virtal\.yaml: there is no such file.*holds virtual\.yaml"):
        load(tmp_path / "virtal.yaml")


def test_bytes_that_are_not_utf8_name_their_line(tmp_path: Path) -> None:
    """An editor's wrong encoding is named, not decoded wrongly."""
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"a: 1\nb: caf\xe9\n")
    with pytest.raises(ConfigError, match=r"latin\.yaml:2: not UTF-8"):
        load(path)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Whatever the file holds, the only error is ConfigError, and it names the file."""
    refusal = ""
    try:
        loads(text, label="any.yaml").all_scalars()
    except ConfigError as error:
        refusal = str(error)
    assert not refusal or refusal.startswith("any.yaml:")


def test_equal_texts_are_told_by_their_own_names() -> None:
    """A text that was read before is not parsed again, and its mistakes are those of the file asked for."""
    first = loads("a: 1\n", label="first.yaml")
    second = loads("a: 1\n", label="second.yaml")
    assert first.integer("a") == 1
    first.finish()
    with pytest.raises(ConfigError, match=r"^second\.yaml:1: "):
        second.finish()


TOKENS = (
    "a", "w?", "é", "b: ", "key: ", "- ", "\n", "\n  ", "\n- ", "[", "]", "{", "}", ", ", ",", ":", ": ",
    "#c", " ", "'", '"', "1", "0x1f", "0o17", "017", "on", "1e3", "1_000", "~", "null", "2020-01-01",
    "12:30:45", ".inf", "|", "|-\n  x", "> \n  y", "\\n", "\\/", "?", "? ", "---\n", "...\n", "\t", "\r\n",
    "\u2028", "\x85", "\ufeff", "%YAML 1.1\n", "@", "`", "=", "<<: ", "!", "!!str ", "&a ", "*a",
)  # fmt: skip


@pytest.mark.filterwarnings("ignore::ruamel.yaml.error.ReusedAnchorWarning")
@given(st.lists(st.sampled_from(TOKENS), max_size=9).map("".join))
def test_libyaml_reads_what_ruamel_yaml_does(text: str) -> None:
    """Whichever of the two composed a text: the same values in the same lines, or the same error."""
    assert outcome_of(compose, text) == outcome_of(YAML(typ="safe", pure=True).compose_all, text)


def outcome_of(read: Callable[[str], Iterable[YamlNode]], text: str) -> object:
    try:
        return [described(node) for node in read(text)]
    except YAMLError as error:
        return str(error)


def described(node: YamlNode | None) -> object:
    if node is None:
        return None
    parts = node.value
    if isinstance(parts, list):
        parts = [
            tuple(map(described, part)) if isinstance(part, tuple) else described(part) for part in parts
        ]
    return type(node).__name__, str(node.tag), parts, node.start_mark.line


@pytest.mark.parametrize(
    ("word", "known", "said"),
    [
        ("product", ["first", "reconnect"], "."),  # half of its letters in their order is no likeness
        ("boot", ["cost", "publish"], "."),
        ("quik", ["quick", "first"], "; did you mean 'quick'?"),
        ("esp32", ["virtual-esp32"], "; did you mean 'virtual-esp32'?"),
    ],
)
def test_only_a_word_that_is_near_is_suggested(word: str, known: list[str], said: str) -> None:
    """A suggestion is what was mistyped; another word sends the reader elsewhere."""
    assert did_you_mean(word, known) == said
