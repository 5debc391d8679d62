"""Reports from what is on disk, as processes of their own.

python -m reports RUN                  write RUN's summary.md, allure-results and plain files again
python -m reports build --out OUT RUN… write OUT/report (hil report build)
python -m reports serve --out OUT      show OUT/report in a browser (hil report serve)
python -m reports reproduction RUN STUDY  set RUN beside a published study (hil reproduce STUDY --run RUN)
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from rich.console import Console

from hil.base.errors import ConfigError, ExitCode, HilError
from hil.boards.health import HEALTH_FILE
from hil.store import RunDirectory
from hil.store.files import short_path
from reports import allure, health, history, plain
from reports.finish import sentence_of, summarise
from reports.site import build_site, serve_site
from reports.stored import judged_runs
from reports.studies.build import files_of, reproduce
from reports.studies.declaration import ROOT as REFERENCE
from reports.studies.terminal import print_documents


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP arrived."""


def main(argv: Sequence[str]) -> int:
    """Run a command; return the exit code, after saying what went wrong on stderr.

    A defect of ours is the rig's: 1 would say that the firmware is at fault.
    """
    signal.signal(signal.SIGTERM, _terminate)
    signal.signal(signal.SIGHUP, _terminate)
    command = COMMANDS.get(argv[0], _summarise)
    try:
        command(argv[1:] if argv[0] in COMMANDS else argv)
    except HilError as error:
        print(error, file=sys.stderr)
        return int(error.exit_code)
    except Terminated:
        return int(ExitCode.TERMINATED)
    except KeyboardInterrupt:  # the usual end of a server
        return int(ExitCode.PASS if command is _serve else ExitCode.INTERRUPTED)
    except Exception as error:
        print(f"The reports of {' '.join(argv)} were not written: {sentence_of(error)}", file=sys.stderr)
        return int(ExitCode.RIG)
    return int(ExitCode.PASS)


def _terminate(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated


def _summarise(argv: Sequence[str]) -> None:
    directory = RunDirectory.open(Path(argv[0]))
    allure.complete_results(directory.path)
    plain.write_plain(directory.path)
    summarise(directory)


def _build(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="hil report build")
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--legs", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--history", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--no-append", action="store_true")
    wanted = parser.parse_args(argv)
    runs = wanted.runs
    if wanted.legs:
        judged, left_out = judged_runs(wanted.legs)
        print("".join(f"warning: {sentence}\n" for sentence in left_out), end="", file=sys.stderr)
        runs = [*runs, *judged]
    runs = runs or [RunDirectory.latest(wanted.out).path]
    folder = wanted.history or wanted.out / "history"
    for run in runs:
        allure.complete_results(run)
        plain.write_plain(run)
        if not wanted.no_append:
            _add("history", history.append_run, folder / "metrics.jsonl", run)
            _add("rack health", health.append_run, folder / HEALTH_FILE, run)
    index = build_site(
        wanted.out,
        runs,
        history=folder,
        data=wanted.data,
        single_file=not wanted.files,
        append=not wanted.no_append,
    )
    print(short_path(index))


def _add(what: str, append: Callable[[Path, Path], object], path: Path, run: Path) -> None:
    """Add a run to what is known of earlier ones; a damaged file costs that, and not the report."""
    try:
        append(path, run)
    except ConfigError as error:
        print(f"warning: {what}: {error}", file=sys.stderr)


def _serve(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="hil report serve")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    wanted = parser.parse_args(argv)
    serve_site(wanted.out, wanted.port, say=lambda sentence: print(sentence, flush=True))


def _reproduction(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="hil reproduce")
    parser.add_argument("run", type=Path)
    parser.add_argument("study")
    parser.add_argument("--reference", type=Path, default=REFERENCE)
    parser.add_argument("--no-report", action="store_true")
    wanted = parser.parse_args(argv)
    run = RunDirectory.open(wanted.run).path
    documents = reproduce(run, wanted.study, wanted.reference)
    print_documents(documents, Console(highlight=False))
    print(*(short_path(run / name) for name in files_of(wanted.study)), sep="\n")
    if wanted.no_report:
        return
    try:
        print(short_path(build_site(run.parent, [run], keep_newer=True)))
    except HilError as error:  # the study is in the run's folder all the same
        print(f"warning: {error}", file=sys.stderr)


COMMANDS: Mapping[str, Callable[[Sequence[str]], None]] = {
    "build": _build,
    "serve": _serve,
    "reproduction": _reproduction,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
