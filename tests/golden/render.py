# SPDX-License-Identifier: Apache-2.0
"""Everything that is held against golden files: what today's code makes of the stored run and history.

This is the only module here that knows the product's modules: a restructuring mends its imports and calls,
and nothing else below tests/golden.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
from prometheus_client.exposition import push_to_gateway
from rich.console import Console

from hil.ci import comment_page
from hil.ci.conclusion import conclude
from hil.ci.plan import read_plan
from hil.cli import changes as changes_lines
from hil.gate import judge
from hil.history import load
from hil.history.files import read_past
from hil.history.from_run import boot_values_of, summary_of
from hil.history.health.summary import summarise
from hil.history.nightly.events import events_of
from hil.history.nightly.survey import survey
from hil.history.summary import to_bytes
from hil.reports.allure import complete_results
from hil.reports.comment import CHARACTERS, read_facts
from hil.reports.comment import render as render_comment
from hil.reports.metrics import board_groups, rack_group
from hil.reports.plain import FILES as PLAIN
from hil.reports.plain import write_plain
from hil.reports.site import build_site
from hil.reports.studies.build import documents_of
from hil.reports.studies.loader import load_study
from hil.reports.studies.text import render_markdown as render_study
from hil.reports.summary import render_markdown
from hil.reports.terminal import render_screen
from hil.store import JudgedRun, RunDirectory, add_verdict, read_judged_run, read_measured
from hil.thresholds import Thresholds, load_all
from tests.golden.comparing import Files
from tests.reports.study_runs import STUDIES

WIDTH = 80  # of a terminal
NOW = "2026-11-22T06:00:00Z"  # when a rack's health is pushed
NIGHTS = 120  # that `hil changes` looks at
_URL = "http://gateway.example:9091"
_ACTIONS = "https://github.com/example/hil"
_PUSHED = ("e1.txt", "e3.txt", "e6.txt", "rack.txt")  # measured, at fault, not flashed
_STYLE = re.compile(r"(?<=<style>).*?(?=</style>)", re.DOTALL)
_SLUG = re.compile(r"[^a-z0-9]+")
_DIGITS = 16
_SHORT = 160
_FEW_CHARACTERS = 4_000


def render(stored: Path, work: Path) -> Files:
    """Return what is made of a copy of ``stored`` in ``work``, a folder that is empty."""
    out = work / "out"
    shutil.copytree(stored / "out", out)
    (run,) = (one.path for one in RunDirectory.list(out))
    thresholds = load_all(run / "thresholds", today=RunDirectory.open(run).read_info().day)
    files: Files = {}
    files |= _judged(run, thresholds)
    read = read_judged_run(run)
    files |= _plain(read)
    files |= _pushed(read, out)
    files |= _allure(read)
    files |= _kept(read)
    files |= _changes(out, thresholds)
    files |= _site(read, out)
    files |= _comments(stored / "plan.json", run, work)
    files |= _studies()
    return files


def _judged(run: Path, thresholds: Mapping[str, Thresholds]) -> Files:
    """Judge the run again, and tell it to a person; the verdict is what all that follows reads."""
    directory, stored = RunDirectory.open(run), read_measured(run)
    read = add_verdict(stored, judge(stored.journal.entries, thresholds))
    name = f"out/{run.name}"
    summary = render_markdown(read.info, read.verdict, read.records, run_path=name, reported=read.reported)
    directory.write_summary(summary)
    screen = Console(file=io.StringIO(), width=WIDTH, no_color=True, force_terminal=False, _environ={})
    for verbose in (False, True):
        render_screen(
            read.info,
            read.verdict,
            read.records,
            run_path=name,
            console=screen,
            reported=read.reported,
            verbose=verbose,
        )
    assert isinstance(screen.file, io.StringIO)
    return {
        "verdicts.json": directory.verdicts_path.read_bytes(),
        "summary.md": summary.encode(),
        "terminal.txt": screen.file.getvalue().encode(),
    }


def _plain(run: JudgedRun) -> Files:
    write_plain(run)
    return {name: (run.path / name).read_bytes() for name in PLAIN}


def _pushed(run: JudgedRun, out: Path) -> Files:
    """Return what a Pushgateway is sent of each board and of the rack: the request, then its text.

    Of boards that differ in their figures alone there is a digest.
    """
    known = summarise(read_past(out / "history").runs, now_utc=NOW)
    groups = [*board_groups(run.info, run.verdict), *(rack_group(one) for one in known)]
    sent: Files = {}
    for group in groups:
        gateway = _Gateway()
        push_to_gateway(_URL, group.job, group.families, grouping_key=group.key, handler=gateway.take)
        sent[f"{group.board or 'rack'}.txt"] = gateway.request
    listing = "".join(f"{_digest(data)} {len(data):7d} {name}\n" for name, data in sent.items())
    files = {f"pushed/{name}": data for name, data in sent.items() if name in _PUSHED}
    return {**files, "pushed/files.txt": listing.encode()}


class _Gateway:
    """Takes what prometheus-client would send."""

    request = b""

    def take(
        self,
        url: str,
        method: str,
        timeout: float | None,  # noqa: ARG002 - prometheus-client's signature
        headers: Sequence[tuple[str, str]],
        data: bytes,
    ) -> Callable[[], None]:
        head = "".join(f"{name}: {value}\n" for name, value in headers)
        self.request = f"{method} {url}\n{head}\n".encode() + data
        return lambda: None


def _allure(run: JudgedRun) -> Files:
    """Return results, attachments, the files round them, and a list of all files with their digests.

    The first result of a case with one status is there in full, and the first attachment of a kind; the list
    tells where another one differs.
    """
    complete_results(run)
    folder = run.path / "allure-results"
    files: Files = {}
    told: dict[str, str] = {}
    seen: set[str] = set()
    results = [(json.loads(path.read_bytes()), path) for path in folder.glob("*-result.json")]
    for result, path in sorted(results, key=lambda one: str(one[0]["name"])):
        told[path.name] = f"result of {result['name']}"
        case = f"{result['name'].partition(' on ')[0]} {result['status']}"
        if case not in seen:
            seen.add(case)
            files[f"allure/{_slug(result['name'])}.json"] = _in_lines(path)
        for item in _attachments(result):
            told[item["source"]] = f"{item['name']}, of {result['name']}"
            kind = f"{result['name'].partition(' ')[0]} {item['name'].partition(' of ')[0]}"
            if kind not in seen and not item["source"].endswith(".pftrace"):
                seen.add(kind)
                suffix = item["source"].rpartition(".")[2]
                files[f"allure/attachments/{_slug(kind)}.{suffix}"] = (folder / item["source"]).read_bytes()
    around = [path for path in sorted(folder.iterdir()) if path.name not in told]
    files |= {f"allure/{_slug_of_file(path)}": _in_lines(path) for path in around}
    return {**files, "allure/files.txt": _listing(folder, told)}


def _in_lines(path: Path) -> bytes:
    """Return a file of Allure's, JSON with a line a value, so that a difference is read."""
    if path.suffix != ".json":
        return path.read_bytes()
    return (json.dumps(json.loads(path.read_bytes()), ensure_ascii=False, indent=1) + "\n").encode()


def _attachments(item: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from item.get("attachments", [])
    for step in item.get("steps", []):
        yield from _attachments(step)


def _slug(text: str) -> str:
    return _SLUG.sub("-", text.lower()).strip("-")


def _slug_of_file(path: Path) -> str:
    """Return "globals.json" of "<uuid>-globals.json", whose whole name stands in the list of files."""
    return re.sub(r"^[0-9a-f-]{36}-", "", path.name)


def _listing(folder: Path, told: Mapping[str, str] | None = None) -> bytes:
    """Return a line a file: its digest, size and name, and what it is; by what it is, then by name."""
    lines = []
    for path in (one for one in folder.rglob("*") if one.is_file()):
        name = path.relative_to(folder).as_posix()
        data = path.read_bytes()
        lines.append(((told or {}).get(name, ""), name, f"{_digest(data)} {len(data):7d} {name}"))
    return "".join(f"{line}  {what}".rstrip() + "\n" for what, _, line in sorted(lines)).encode()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGITS]


def _kept(run: JudgedRun) -> Files:
    """Return what the history would keep of the run: boot values, figures, health."""
    kept = msgspec.structs.replace(summary_of(run), boot_values=boot_values_of(run))
    return {"kept/run.json": _pretty(to_bytes(kept))}


def _pretty(data: bytes) -> bytes:
    """Return JSON so that a difference is a line; the keys stay in their order."""
    return ("\n".join(_lines(json.loads(data), "")) + "\n").encode()


def _lines(value: Any, indent: str, key: str = "", end: str = "") -> Iterator[str]:
    """Yield a value's lines; what is short stands on one."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= _SHORT or not isinstance(value, dict | list):
        yield f"{indent}{key}{text}{end}"
        return
    is_list = isinstance(value, list)
    yield f"{indent}{key}{'[' if is_list else '{'}"
    inner = [("", one) for one in value] if is_list else [(f"{json.dumps(k)}: ", v) for k, v in value.items()]
    for number, (name, one) in enumerate(inner, start=1):
        yield from _lines(one, f"{indent} ", name, "," if number < len(inner) else "")
    yield f"{indent}{']' if is_list else '}'}{end}"


def _changes(out: Path, thresholds: Mapping[str, Thresholds]) -> Files:
    """Return what `hil changes` prints: text, Markdown, and the events as JSON."""
    found = survey(load(out / "history"), thresholds, last=NIGHTS)
    events = events_of(found, thresholds=thresholds)
    ways = {
        "changes.txt": (changes_lines.text_lines, True),
        "changes.md": (changes_lines.markdown_lines, False),
    }
    files = {
        name: ("\n".join(lines(found, events, every_series=every)) + "\n").encode()
        for name, (lines, every) in ways.items()
    }
    told = json.dumps([event.to_json() for event in events], ensure_ascii=False)
    return {**files, "events.json": _pretty(told.encode())}


def _site(run: JudgedRun, out: Path) -> Files:
    """Return the pages of the site that are ours, and the list of its files.

    Allure, which needs Node.js, is played: the test report and the script of the trend page are left out.
    """
    configurations: list[Mapping[str, Any]] = []

    @contextmanager
    def played(config: Mapping[str, Any], _results: object, work: Path) -> Iterator[None]:
        configurations.append(json.loads(json.dumps(config).replace(str(work), "WORK")))
        yield
        for name in config["plugins"]:
            (work / "report" / name).mkdir(parents=True)
            (work / "report" / name / "index.html").write_text("<html><head></head><body></body></html>")

    with (
        mock.patch("hil.reports.site.build.generating", played),
        mock.patch("hil.reports.trend.runs._CHECKOUT", run.path),
    ):
        build_site(out, [run], append=False)
    report = out / "report"
    configuration = {key: value for key, value in configurations[0].items() if key != "performance"}
    configuration["plugins"]["trend"]["import"] = "OURS"
    return {
        "site/index.html": _page(report / "index.html"),
        "site/run.json": (report / "runs" / run.run_id / "run.json").read_bytes(),
        "site/trend.json": _pretty((report / "trend" / "trend.json").read_bytes()),
        "site/allure.json": _pretty(json.dumps(configuration).encode()),
        "site/files.txt": _listing(report),
    }


def _page(path: Path) -> bytes:
    """Return a page with a line for each element, and its style sheet as a digest."""
    text = _STYLE.sub(lambda found: f"sha256 {_digest(found[0].encode())}", path.read_text(encoding="utf-8"))
    return re.sub(r">(?=<(?!/))", ">\n", text).encode()


def _comments(plan_path: Path, run: Path, work: Path) -> Files:
    """Return the pull request's comment, and what is left of it where there is little room."""
    legs = work / "legs"
    shutil.copytree(run, legs / "compare" / run.name)
    plan = read_plan(plan_path)
    source = comment_page.Source(
        comment_page.run_links(f"{_ACTIONS}/actions/runs/4711"), f"{_ACTIONS}/commit/"
    )
    verdict = conclude(plan, legs, {"rack": "failure"})
    facts = comment_page.facts_of(plan, verdict, legs, source)
    path = work / "facts.json"
    path.write_text(json.dumps(facts), encoding="utf-8")
    sizes = {"comment.md": CHARACTERS["comment"], "short.md": _FEW_CHARACTERS}
    return {f"github/{name}": render_comment(read_facts(path), most).encode() for name, most in sizes.items()}


def _studies() -> Files:
    """Return each published study beside a small run of it."""
    found: Files = {}
    for name, records in STUDIES.items():
        study, entries = load_study(name), records()
        documents = documents_of(study, entries, entries[0].run_id)
        page = render_study(study, documents, run_id=entries[0].run_id)
        found[f"studies/{name}.md"] = page.encode()
    return found
