# SPDX-License-Identifier: Apache-2.0
"""The runs that a site is about, as they are on disk.

What of a run is published: neither who started it, where and how, nor where it lay on that machine.
"""

from __future__ import annotations

import functools
import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from hil.base.errors import ConfigError, ExitCode, combine_exit_codes
from hil.base.paths import PROJECT_ROOT
from hil.model import Verdict
from hil.reports.allure.identity import ids_of
from hil.reports.boards import unreal_kinds
from hil.reports.history import line_of
from hil.reports.kinds import mark
from hil.reports.plain import FILES as PLAIN_FILES
from hil.reports.studies.build import FILES as REPRODUCTION_FILES
from hil.reports.trace_notes import published_files
from hil.store import JudgedRun, RunInfo
from hil.store.directory import JOURNAL, RUN_INFO, SUMMARY, VERDICTS

RESULTS = "allure-results"
ENVIRONMENT = "environment.properties"
_KEY = re.compile(r"[^A-Za-z0-9_.-]+")  # what no key of Java's properties has unescaped


@dataclass(frozen=True)
class ShownRun:
    """One run: ``line`` is what the history keeps."""

    run: JudgedRun
    line: Mapping[str, Any]

    @property
    def path(self) -> Path:
        return self.run.path

    @property
    def info(self) -> RunInfo:
        return self.run.info

    @property
    def verdict(self) -> Verdict:
        return self.run.verdict

    @property
    def run_id(self) -> str:
        return self.run.run_id

    @property
    def results(self) -> Path:
        return self.path / RESULTS

    @functools.cached_property
    def test_ids(self) -> Mapping[tuple[str, str], str]:
        """Allure's id of each (board, case id); none where its thresholds cannot be read, and so no name."""
        with suppress(ConfigError):
            return ids_of(self.run)
        return {}


def shown(run: JudgedRun) -> ShownRun:
    """Return a run with what the site says of it."""
    return ShownRun(run, line_of(run))


def decisive(runs: Sequence[ShownRun]) -> ShownRun:
    """Return the run whose exit code takes precedence."""
    code = combine_exit_codes(run.verdict.exit_code for run in runs)
    return next((run for run in runs if ExitCode(run.verdict.exit_code) == code), runs[0])


MOST_SUITES = 3  # that a title names


def title_of(runs: Sequence[ShownRun]) -> str:
    """Return "HIL performance · rack virtual · quick · commit 0a9e997 · virtual figures"."""
    commits = _distinct(f"{run.line['commit'][:7]}{'+' if run.line['dirty'] else ''}" for run in runs)
    racks, suites = _distinct(run.line["rack"] for run in runs), _distinct(run.line["suite"] for run in runs)
    kinds = [kind for run in runs for kind in unreal_kinds(run.info, run.verdict)]
    parts = [
        "HIL performance",
        f"rack{'s' if len(racks) > 1 else ''} {', '.join(racks)}" if racks else "",
        ", ".join(suites) if len(suites) <= MOST_SUITES else f"{len(suites)} suites",
        f"commit {', '.join(commits)}" if commits else "",
        mark(kinds, "{} figures"),
    ]
    return " · ".join(filter(None, parts))


def _distinct(words: Any) -> list[str]:
    return [word for word in dict.fromkeys(words) if word.strip("+")]


RAW_FILES = (SUMMARY, VERDICTS, JOURNAL, RUN_INFO, *PLAIN_FILES, *REPRODUCTION_FILES)
_CHECKOUT = PROJECT_ROOT
_PUBLIC = {"schema", "run_id", "rack", "suite", "trigger", "started_utc", "git", "versions", "noise"}
_TEXTS = {".json", ".jsonl", ".md", ".txt", ".log", ".csv", ".svg", ".html", ".properties"}
_STARTED_BY = re.compile(rb"(?m)^- by: .*\n")  # the line of summary.md that names user and host
# where a path begins: in JSON a new line is \n, and an address or another path is none
_BEGIN = rb"(?:(?<=\\n)|(?<![\w.:/-]))"
_SEGMENT = rb"""[^\s/"'`,;:<>|()\\]+"""

Shorten = Callable[[bytes], bytes]


def shortener(runs: Sequence[ShownRun]) -> Shorten:
    """Return what writes paths in texts as they are below the checkout, or below what holds the folder out.

    A run may come from another machine, so what leads to its folder is taken out wherever that was.
    """
    roots = [rb"%s/" % re.escape(bytes(_CHECKOUT))]
    for run in runs:
        out, name = run.path.parent, re.escape(run.run_id.encode())
        here = re.escape(bytes(out.parent)).rstrip(b"/")
        roots.append(rb"%s/(?=%s/%s\b)" % (here, re.escape(out.name.encode()), name))
        roots.append(rb"/(?:%s/)*?(?=%s/%s\b)" % (_SEGMENT, _SEGMENT, name))
    pattern = re.compile(_BEGIN + rb"(?:%s)" % b"|".join(roots))
    # nearly no file holds one, and to look for plain bytes is quick
    marks = [bytes(_CHECKOUT) + b"/", *(b"/" + run.run_id.encode() for run in runs)]
    return lambda text: pattern.sub(b"", text) if any(mark in text for mark in marks) else text


def public_info(info: RunInfo) -> dict[str, Any]:
    """Return what of run.json stands in the site."""
    stored = msgspec.to_builtins(info)
    found = {key: value for key, value in stored.items() if key in _PUBLIC}
    found["boards"] = stored["boards"]
    if info.ci.url:
        found["ci"] = {"url": info.ci.url}
    found["firmware"] = {name: {"sha256": image.sha256} for name, image in info.firmware.items()}
    return found


def copy_raw(folder: Path, runs: Sequence[ShownRun], shorten: Shorten) -> None:
    """Put each run's files into a folder of its own below ``folder``."""
    for run in runs:
        (folder / run.run_id).mkdir(parents=True)
        for name in RAW_FILES:
            if (run.path / name).exists():
                (folder / run.run_id / name).write_bytes(shorten(_raw(run, name)))
        for source in published_files(run.path):
            target = folder / run.run_id / source.relative_to(run.path)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def _raw(run: ShownRun, name: str) -> bytes:
    if name == RUN_INFO:
        return (
            json.dumps(public_info(run.info), ensure_ascii=False, indent=2, sort_keys=True).encode() + b"\n"
        )
    content = run.run.files.get(name) or (run.path / name).read_bytes()
    return _STARTED_BY.sub(b"", content) if name == SUMMARY else content


def copy_results(folder: Path, runs: Sequence[ShownRun], shorten: Shorten) -> list[Path]:
    """Copy the runs' Allure results; return the folders, an empty one where no run has got that far."""
    found = []
    for run in runs:
        if run.results.is_dir():
            found.append(folder / run.run_id)
            found[-1].mkdir(parents=True)
            _copy_folder(run.results, found[-1], shorten)
    if len(found) > 1:
        racks = {folder / run.run_id: str(run.line["rack"]) for run in runs}
        _join_environments([(path, racks[path]) for path in found])
    if not found:
        found = [folder / "none"]
        found[0].mkdir(parents=True)
    return found


def _copy_folder(source: Path, target: Path, shorten: Shorten) -> None:
    for path in source.iterdir():
        if path.suffix in _TEXTS:
            content = path.read_bytes()
            public = shorten(content)
            if public is content:
                _link(path, target / path.name)
            else:
                (target / path.name).write_bytes(public)
        elif path.is_file():
            _link(path, target / path.name)


def _join_environments(folders: Sequence[tuple[Path, str]]) -> None:
    """Leave one environment of all runs, each key behind its rack: of several Allure shows the last."""
    lines: list[str] = []
    for folder, rack in folders:
        path = folder / ENVIRONMENT
        if path.is_file():
            own = path.read_text(encoding="ascii").splitlines()
            lines += [f"{_KEY.sub('-', rack)}.{line}\n" for line in own]
            path.unlink()  # which is a second name of the run's own file
    (folders[-1][0] / ENVIRONMENT).write_text("".join(lines), encoding="ascii")


def _link(source: Path, target: Path) -> None:
    """Give a file a second name, which only the generator reads; copy it where that cannot be."""
    try:
        target.hardlink_to(source)
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, target)
