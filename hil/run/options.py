# SPDX-License-Identifier: Apache-2.0
"""The options of a run: one table, from which click's and pytest's options are made.

Each field of RunOptions is a row of the table. So a new option is one field here, and its reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from hil.base.errors import ConfigError
from hil.base.paths import PROJECT_RACK, PROJECT_ROOT, PROJECT_THRESHOLDS, TOOL_RACKS
from hil.store.run_info import TRIGGERS, Trigger

Command = Literal["run", "compare", "reproduce", "qualify", "plan", "cost", "gate", "import", "pytest"]
BOOTS_MAX = 100
DEFAULT_RACK = PROJECT_RACK if PROJECT_RACK.is_file() else TOOL_RACKS / "virtual.yaml"
DEFAULT_OUT = PROJECT_ROOT / "out"
PREFIX = "--hil-"  # of pytest's options, but for --rack: a suite's own conftest may well have a --board


@dataclass(frozen=True)
class OptionRule:
    """An option excludes others, or needs one of them. ``way_out`` has their flags in braces."""

    others: Sequence[str]
    why: str
    way_out: str
    is_needed: bool = False


@dataclass(frozen=True)
class Default:
    """A command's default, and the words for it in --help, "" where the value says it."""

    value: object
    words: str = ""


@dataclass(frozen=True)
class Option:
    """What a field's type does not say of its option. pytest has all of them, ``commands`` these.

    A number lies between 1 and ``most``, if there is one. ``shown`` stands for the default in --help.
    """

    help: str
    group: str
    commands: str
    flag: str = ""
    metavar: str = ""
    choices: Sequence[object] = ()
    most: int = 0
    is_folder: bool = False
    env: str = ""
    shown: str = ""
    defaults: Mapping[Command, Default] = field(default_factory=dict)
    rules: Sequence[OptionRule] = ()


@dataclass(frozen=True)
class OptionRow:
    """One option. ``kind`` is the type of a value; of a repeatable option, that of each."""

    name: str
    kind: type
    is_repeatable: bool
    default: object
    option: Option

    def flag(self, prefix: str = "--") -> str:
        """Return the option as a command line has it."""
        word = self.option.flag or self.name.replace("_", "-")
        return "--rack" if self.name == "rack" else prefix + word

    def default_of(self, command: Command) -> object:
        return self._default(command).value

    def help_of(self, command: Command) -> str:
        """Return what --help says: the option, and its default where it has one."""
        default = self._default(command)
        words = default.words or (str(default.value) if default.value else "")
        return f"{self.option.help}  [default: {words}]" if words else self.option.help

    def _default(self, command: Command) -> Default:
        return self.option.defaults.get(command, Default(self.default, self.option.shown))

    def words(self, value: Any, prefix: str) -> list[str]:
        """Return the arguments that give the option this value."""
        if self.kind is bool:
            return [self.flag(prefix)] if value else []
        return [f"{self.flag(prefix)}={one}" for one in (value if self.is_repeatable else [value])]


_ONE_OTHER = "a run compares with one other firmware"
_LEAVE_ONE = "leave one of them out; measure the other comparison in a run of its own."
_MEASURING = "run compare reproduce qualify"


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What somebody asked of a run; nothing has been read yet."""

    rack: Annotated[
        Path,
        Option(
            "Rack file.", "boards", f"{_MEASURING} plan", metavar="FILE",
            shown="hil/rack.yaml of the project, else the virtual rack",
        ),
    ] = DEFAULT_RACK  # fmt: skip
    suite: Annotated[
        str,
        Option(
            "first, quick, pr, nightly, a case as reports name it, or an expression: 'pr and qos=1'.",
            "run", "run compare plan cost",
            defaults={"compare": Default("pr"), "cost": Default("sealed")},
        ),
    ] = "quick"  # fmt: skip
    boards: Annotated[
        tuple[str, ...],
        Option("Only this board; repeatable.", "boards", f"{_MEASURING} plan", flag="board", metavar="ID"),
    ] = ()
    target: Annotated[
        str,
        Option("Only boards of this target, such as esp32s3.", "boards", "run compare", metavar="TARGET"),
    ] = ""
    labels: Annotated[
        tuple[str, ...],
        Option(
            "Only boards that have this label; repeatable.", "boards", "run",
            flag="label", metavar="WORD",
        ),
    ] = ()  # fmt: skip
    spread: Annotated[
        bool,
        Option(
            "Measure each case once a target, on one of its boards; what a board that fails leaves, another "
            "board takes over.", "boards", "run",
        ),
    ] = False  # fmt: skip
    wait: Annotated[
        float, Option("Wait for boards that others hold.", "boards", "run compare qualify", metavar="SECONDS")
    ] = 0.0
    noise: Annotated[
        str,
        Option(
            "Simulate a noisy rack on the virtual one: quiet, typical, noisy, or none.", "run", "run",
            metavar="NAME",
        ),
    ] = ""  # fmt: skip
    boots: Annotated[
        int | None,
        Option(
            "Boot each board so often, and measure all of its cases in each boot.", "run", "run",
            metavar="N", most=BOOTS_MAX, shown="1",
            rules=[
                OptionRule(
                    ("base", "unchanged"), "the gate decides how many boots it needs",
                    "leave {boots} out, bound it by {budget}, or compare a fixed number with {reference}.",
                )
            ],
        ),
    ] = None  # fmt: skip
    trigger: Annotated[
        Trigger,
        Option(
            "What the run is for; histories of metrics are kept apart by it.", "run", "run cost import",
            choices=TRIGGERS, env="HIL_TRIGGER",
        ),
    ] = "local"  # fmt: skip
    legs: Annotated[
        int,
        Option(
            "This run is one of N that judge one pull request: they share alpha.", "run", "run",
            metavar="N", most=100, env="HIL_LEGS",
        ),
    ] = 1  # fmt: skip
    undecided_status: Annotated[
        int,
        Option(
            "Exit status where a figure is undecided and no policy makes that a failure; verdicts.json keeps "
            "4.", "run", "run compare cost", choices=(0, 4), env="HIL_UNDECIDED_STATUS",
        ),
    ] = 4  # fmt: skip
    firmware: Annotated[
        Path | None,
        Option(
            "Measure this bundle, or this build; build nothing.", "firmware", f"{_MEASURING} cost",
            metavar="DIR",
        ),
    ] = None  # fmt: skip
    base: Annotated[
        Path | None,
        Option(
            "Compare with this bundle, or this build, until all is decided.", "firmware", "run cost",
            metavar="DIR", rules=[OptionRule(("reference", "unchanged"), _ONE_OTHER, _LEAVE_ONE)],
        ),
    ] = None  # fmt: skip
    no_base_because: Annotated[
        Path | None,
        Option(
            "There is no base, for the reason that `hil build --at REV --failure FILE` wrote. Where its "
            "sources do not build, limits alone are judged; else the run is undecided.",
            "firmware", "run cost", metavar="FILE",
            rules=[
                OptionRule(
                    ("base", "reference", "unchanged"), "there is something to compare with",
                    "leave one of them out.",
                )
            ],
        ),
    ] = None  # fmt: skip
    unchanged: Annotated[
        bool,
        Option(
            "Compare with itself, as with a base: how the gate judges no change. It blocks nothing.",
            "firmware", "run", rules=[OptionRule(("reference",), _ONE_OTHER, _LEAVE_ONE)],
        ),
    ] = False  # fmt: skip
    budget: Annotated[
        float | None,
        Option(
            "Begin no boots of a comparison with a base that would not be through by then.", "firmware",
            "run compare qualify", metavar="MINUTES", shown="15",
            rules=[
                OptionRule(
                    ("base", "unchanged"), "it bounds a comparison with a base",
                    "add {base} DIR, or leave {budget} out.", is_needed=True,
                )
            ],
        ),
    ] = None  # fmt: skip
    reference: Annotated[
        Path | None,
        Option(
            "Compare with this bundle, or this build: as many boots of each as --boots says.", "firmware",
            "run", metavar="DIR",
        ),
    ] = None  # fmt: skip
    across_idf: Annotated[
        bool,
        Option(
            "The other may be of another ESP-IDF release: then the releases are compared.", "firmware", "run",
            rules=[
                OptionRule(
                    ("base", "reference"), "nothing is compared",
                    "add {base} DIR or {reference} DIR, or leave {across_idf} out.", is_needed=True,
                )
            ],
        ),
    ] = False  # fmt: skip
    keep_captures: Annotated[
        bool, Option("Keep the packets that peers capture, in OUT/RUN/peer.", "results", "run")
    ] = False
    no_report: Annotated[
        bool, Option("Do not build the report in OUT/report.", "results", "run compare reproduce cost")
    ] = False
    pushgateway: Annotated[
        str,
        Option(
            "Push metrics there, instead of where the rack file says.", "results", "run",
            metavar="URL", env="HIL_PUSHGATEWAY",
        ),
    ] = ""  # fmt: skip
    thresholds: Annotated[
        Path,
        Option(
            "Folder of limits and suites; of benches without a file in it, the tool's own hold.", "results",
            f"{_MEASURING} plan cost gate", metavar="DIR",
            shown=str(PROJECT_THRESHOLDS.relative_to(PROJECT_ROOT)),
            defaults={"gate": Default(None, "the run's own copy")},
        ),
    ] = PROJECT_THRESHOLDS  # fmt: skip
    out: Annotated[
        Path,
        Option(
            "Where results are.",
            "results",
            f"{_MEASURING} cost import",
            metavar="DIR",
            shown="out",
            is_folder=True,
        ),
    ] = DEFAULT_OUT
    ui: Annotated[bool, Option("Progress bars and summary instead of pytest's report.", "results", "")] = (
        False
    )
    debug: Annotated[bool, Option("Show tracebacks of errors.", "results", "")] = False

    def check(self, prefix: str = "--") -> None:
        """Raise ConfigError where options contradict each other; ``prefix`` is what the user types."""
        flags = {row.name: row.flag(prefix) for row in ROWS}
        given = {row.name for row in ROWS if self._is_given(row)}
        for row in ROWS:
            for rule in row.option.rules if row.name in given else ():
                found = [name for name in rule.others if name in given]
                if bool(found) != rule.is_needed:
                    raise self._broken(row, rule, found, flags)

    def _broken(
        self, row: OptionRow, rule: OptionRule, found: Sequence[str], flags: Mapping[str, str]
    ) -> ConfigError:
        number = f" {getattr(self, row.name):g}" if row.kind in (int, float) else ""
        others = " or ".join(flags[name] for name in found or rule.others)
        word = "without" if rule.is_needed else "with"
        return ConfigError(
            f"{flags[row.name]}{number} {word} {others}: {rule.why}.",
            next_step=rule.way_out.format_map(flags),
        )

    def _is_given(self, row: OptionRow) -> bool:
        return bool(getattr(self, row.name) != row.default)

    def arguments(self, prefix: str = "--") -> list[str]:
        """Return the arguments that give these options; an option at its default needs none but --rack."""
        given = [row for row in ROWS if self._is_given(row) or row.name == "rack"]
        return [word for row in given for word in row.words(getattr(self, row.name), prefix)]


def _rows() -> Iterator[OptionRow]:
    hints = get_type_hints(RunOptions, include_extras=True)
    for one in fields(RunOptions):
        hint, option = get_args(hints[one.name])
        words = (str,) if get_origin(hint) is Literal else get_args(hint)
        kind = next((part for part in words if part is not type(None)), hint)
        yield OptionRow(one.name, kind, get_origin(hint) is tuple, one.default, option)


ROWS = tuple(_rows())


def rows_of(command: Command) -> list[OptionRow]:
    """Return the options that a command has."""
    return [row for row in ROWS if command == "pytest" or command in row.option.commands.split()]
