# SPDX-License-Identifier: Apache-2.0
"""One table of a run's options: what click and pytest offer, what excludes what, and what is handed on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import click
import pytest

from hil.base.errors import ConfigError
from hil.cli.app import app, run_command
from hil.fixtures import entry
from hil.fixtures import options as plugin
from hil.run.options import PREFIX, ROWS, Command, OptionRow, OptionRule, RunOptions, rows_of

COMMANDS = tuple(name for name in get_args(Command) if name != "pytest")
_GROUP_OF = {"qualify": "rack"}
_OWN = {("run", "emulator")}  # what makes a rack for one build
_VALUES: dict[type, Any] = {bool: True, int: 3, float: 2.5, str: "word", Path: Path("folder")}
PAIRS = [(row, rule, other) for row in ROWS for rule in row.option.rules for other in rule.others]
BY_NAME = {row.name: row for row in ROWS}


def options_of(command: str) -> dict[str, click.Option]:
    context = click.Context(app)
    group: Any = app.get_command(context, _GROUP_OF.get(command, command))
    found = group.get_command(context, command) if command in _GROUP_OF else group
    own = {name for owner, name in _OWN if owner == command}
    return {
        str(one.name): one for one in found.params if isinstance(one, click.Option) and one.name not in own
    }


def value_of(row: OptionRow) -> Any:
    """Return a value of an option that is not its default."""
    value = next((one for one in row.option.choices if one != row.default), _VALUES[row.kind])
    return (value, f"{value} more") if row.is_repeatable else value


@pytest.fixture
def parser() -> pytest.Parser:
    """pytest's options as the plugin adds them to a session with a rack."""
    found = pytest.Parser(_ispytest=True)
    entry.pytest_addoption(found)
    plugin.pytest_addoption(found)
    return found


def parsed(parser: pytest.Parser, *words: str) -> RunOptions | None:
    config: Any = type("Config", (), {"option": parser.parse_known_args(list(words))})
    return plugin.options_of(config)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_the_options_that_the_table_gives_it(command: Command) -> None:
    """Exactly these, each with the table's flag, type, help and default."""
    offered, rows = options_of(command), {row.name: row for row in rows_of(command)}
    assert {name for name in offered if name in BY_NAME} == set(rows)
    for name, row in rows.items():
        option = offered[name]
        assert (option.opts, option.help) == ([row.flag()], row.help_of(command))
        assert (option.is_flag, option.multiple) == (row.kind is bool, row.is_repeatable)
        assert option.default == row.default_of(command)
        if not option.is_flag:
            value = str(next(iter(row.option.choices), _VALUES[row.kind]))
            assert isinstance(option.type.convert(value, None, None), row.kind)


def test_pytest_has_each_option_of_the_table(parser: pytest.Parser) -> None:
    """With its prefix, but for --rack, and the table's type, help and default."""
    actions = {flag: one for one in parser.optparser._actions for flag in one.option_strings}
    ours = {flag for flag in actions if flag.startswith(PREFIX) or flag == "--rack"}
    assert ours == {row.flag(PREFIX) for row in ROWS}
    for row in rows_of("pytest"):
        if row.name != "rack":
            assert actions[row.flag(PREFIX)].help == row.help_of("pytest")
    assert parsed(parser) is None
    assert parsed(parser, "--rack", "r.yaml") == RunOptions(rack=Path("r.yaml"))


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_what_is_handed_on_arrives(parser: pytest.Parser, row: OptionRow) -> None:
    """pytest reads from the arguments what the command was given, of the same type."""
    given = replace(RunOptions(), **{row.name: value_of(row)})
    assert given != RunOptions()
    assert parsed(parser, *given.arguments(PREFIX)) == given


def test_a_number_out_of_its_range_is_no_option(
    parser: pytest.Parser, capsys: pytest.CaptureFixture[str]
) -> None:
    """pytest refuses it as click does."""
    with pytest.raises((SystemExit, pytest.UsageError)) as caught:
        parsed(parser, "--rack", "r.yaml", "--hil-boots", "101")
    assert "1 to 100" in f"{caught.value} {capsys.readouterr().err}"


@pytest.mark.parametrize(
    ("row", "rule", "other"), PAIRS, ids=[f"{row.name}-{other}" for row, _rule, other in PAIRS]
)
@pytest.mark.parametrize("prefix", ["--", PREFIX])
def test_what_excludes_or_needs_another_option_is_refused(
    row: OptionRow, rule: OptionRule, other: str, prefix: str
) -> None:
    """A configuration error names both as they were typed, and the way out the table has."""
    alone = RunOptions(**{row.name: value_of(row)})
    both = replace(alone, **{other: value_of(BY_NAME[other])})
    wrong, right = (alone, both) if rule.is_needed else (both, alone)
    with pytest.raises(ConfigError) as caught:
        wrong.check(prefix)
    assert row.flag(prefix) in caught.value.sentence
    assert BY_NAME[other].flag(prefix) in caught.value.sentence
    assert caught.value.next_step == rule.way_out.format_map({one.name: one.flag(prefix) for one in ROWS})
    right.check(prefix)


def test_the_rules_name_options_that_there_are() -> None:
    """No rule outlives an option that it speaks of."""
    assert {other for _row, _rule, other in PAIRS} <= set(BY_NAME)


@pytest.mark.parametrize("words", [["compare"], ["rack", "status"], ["rack", "qualify"]])
def test_a_file_is_no_folder_of_results(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2 of each command that has --out, before anything is read."""
    assert run_command([*words, "--out", __file__]) == 2
    assert "is a file" in capsys.readouterr().err
