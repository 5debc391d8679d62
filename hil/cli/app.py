# SPDX-License-Identifier: Apache-2.0
"""The command group, and what becomes of errors: one sentence, the owner's exit code, no traceback."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import traceback
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click

import hil
from hil.base.errors import ConfigError, ExitCode, HilError, unexpected_in_words
from hil.base.unread import unread
from hil.base.untrusted import terminal_page

# command → (module below hil.cli, what --help says): a command's module is imported when it is used
COMMANDS = {
    "init": "set up an ESP-IDF project for hil",
    "run": "build, flash, measure and judge a suite on a rack",
    "compare": "build and compare the working tree with a commit",
    "limit": "set a limit for a metric of a run",
    "import": "judge the values of a pytest suite, or add old values to the history",
    "gate": "judge a stored run again",
    "report": "build the report site from stored runs",
    "cost": "count instructions exactly on an emulated chip, without a board",
    "ledger": "show where a run's messages were lost",
    "plan": "list what a run would measure",
    "build": "build the firmware",
    "firmware": "verify a firmware bundle, or print its sizes",
    "reproduce": "repeat a published study and compare its values with ours",
    "history": "manage boot values of earlier runs: add, show, export, fetch, push",
    "changes": "show when metrics changed over the nights, and what caused it",
    "rack": "inspect a rack: check, status, health, qualify",
    "board": "handle one board: scan, flash, power, console, quarantine, release",
    "virtual": "keep a virtual rack running for esptool and serial monitors",
    "exporter": "print a labgrid exporter's configuration for a rack's boards",
    "runner": "set up a rack's host as a runner: its files and registrations",
    "ci": "run a workflow step: plan, build, measure, collect, verdict, comment",
    "doctor": "list what is missing on this machine, with the commands to fix it",
}

_MODULES = {"import": "importing"}  # where the command is no name of a module
PIPE_CLOSED = 128 + signal.SIGPIPE  # as of a program that SIGPIPE ends


class TerminatedCommand(BaseException):
    """SIGTERM or SIGHUP arrived."""


class HilGroup(click.Group):
    """Imports commands on use, and turns errors into sentences."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"hil.cli.{_MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return what click returns; of a word that is no command the error names the nearest one."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.exceptions.NoSuchCommand(args[0], possibilities=COMMANDS, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=HilGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(hil.__version__, prog_name="hil")
@click.option("--debug", is_flag=True, help="Show tracebacks of errors.")
@click.pass_context
def app(ctx: click.Context, *, debug: bool) -> None:
    """Performance testing of ESP32 firmware on real and virtual boards.

    Exit codes: 0 pass, 1 regression or firmware fault, 2 usage or configuration, 3 rig fault,
    4 undecided or incomplete, 130 interrupted.
    """
    ctx.obj = debug
    for sentence in unread(os.environ):
        click.echo(terminal_page(f"hil: not read: {sentence}"), err=True)


def main() -> NoReturn:
    """Run the command line and exit with its code."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what it starts with &
    signal.signal(signal.SIGTERM, _terminate)
    signal.signal(signal.SIGHUP, _terminate)
    sys.exit(int(run_command(sys.argv[1:])))


def run_command(arguments: list[str]) -> int:
    """Run the command line; return the exit code, after saying what went wrong on stderr."""
    try:
        result = app.main(args=arguments, prog_name="hil", standalone_mode=False)
    except HilError as error:
        _leave_for_the_verdict(error, arguments)
        return _report(str(error), int(error.exit_code), arguments)
    except click.exceptions.Abort:
        return int(ExitCode.INTERRUPTED)
    except click.ClickException as error:
        error.show()
        _leave_for_the_verdict(ConfigError(error.format_message(), next_step=_HELP), arguments)
        return int(ExitCode.CONFIG)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)
    except TerminatedCommand:
        return int(ExitCode.TERMINATED)
    except SystemExit as error:
        return _left(error)
    except BrokenPipeError:
        _silence_stdout()
        return PIPE_CLOSED
    except Exception as error:
        return _unexpected(error, arguments)
    return result if isinstance(result, int) else int(ExitCode.PASS)


def _left(error: SystemExit) -> int:
    """Return the status where nobody reads on: click exits with 1 then, and 1 is a regression."""
    if error.code != 1:
        raise error
    _silence_stdout()
    return PIPE_CLOSED


def _unexpected(error: Exception, arguments: list[str]) -> int:
    """Report in one sentence what this host lacks, or a defect of hil."""
    _leave_for_the_verdict(error, arguments)
    return _report(unexpected_in_words(error), int(ExitCode.RIG), arguments)


def _silence_stdout() -> None:
    """Have Python, when it ends, flush what is left of stdout to nobody; else it exits with 120."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)


# commands that measure a leg of a plan, or prepare that: how they end early is data for its verdict
OF_A_LEG = (("run",), ("compare",), ("cost",))
OF_A_PLAN = ("ci", "plan")
_HELP = "give the command as its --help says."


def _leave_for_the_verdict(error: Exception, arguments: list[str]) -> None:
    """Leave why a command ended early: a leg's in OUT, for `hil ci collect`, a plan's beside plan.json."""
    words = tuple(word for word in arguments if not word.startswith("-"))
    of_a_plan = words[:2] == OF_A_PLAN
    of_the_head = words[:1] == ("build",) and not any(word.startswith("--at") for word in arguments)
    if not of_a_plan and not of_the_head and not any(words[: len(names)] == names for names in OF_A_LEG):
        return
    from hil.cli.options import DEFAULT_OUT, ci_folder
    from hil.store import ended

    out = ci_folder() if of_a_plan else _out_given(arguments) or DEFAULT_OUT
    ended.leave(out, ended.ended_by(error))


def _out_given(arguments: list[str]) -> Path | None:
    """Return what the command line says of --out, also where it is no command line otherwise."""
    given = [value for name, value in pairwise([*arguments, ""]) if name == "--out" and value]
    given += [word.partition("=")[2] for word in arguments if word.startswith("--out=")]
    return Path(given[-1]) if given else None


def _report(sentence: str, code: int, arguments: list[str]) -> int:
    if "--debug" in arguments:
        traceback.print_exc()
    click.echo(terminal_page(f"hil: {sentence}"), err=True)  # it may quote what others wrote
    return code


def _terminate(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise TerminatedCommand
