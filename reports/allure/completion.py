# SPDX-License-Identifier: Apache-2.0
"""Builds a run's Allure results from its folder alone: records, verdict, consoles, and what pytest left.

The files round the results: categories, the run's environment, the workflow, faults of no single case.

The verdict's figures in the form in which Allure keeps a metric's history.

allure-pytest's own results, as hil.fixtures.allure left them in the run's folder; none need be there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allure_commons.model2 import Attachment, Label, Parameter, StatusDetails, TestResult
from attr import asdict

from hil.base.units import Unit, convert, find_unit
from hil.model import SeriesVerdict, format_place
from hil.reports.allure.attachments import attachments_of
from hil.reports.allure.description import describe
from hil.reports.allure.identity import case_id_of, full_name, history_id, parameters_of, stable_uuid
from hil.reports.allure.outcome import CATEGORIES, outcome_of, word_of
from hil.reports.allure.steps import steps_of
from hil.reports.allure.story import RunStory, Story, parse_case_id, story_of
from hil.reports.allure.times import run_start_of, times_of
from hil.reports.allure.trace import draw_pictures
from hil.reports.names import short_metric
from hil.store import JudgedRun, RunInfo
from hil.store.files import disk_error
from hil.store.run_info import measured_commit

RAW_FOLDER = "allure-pytest"
# what pytest knows worse than the records do, or what differs without meaning: process, thread, host
_OWNED_LABELS = frozenset(
    ("parentSuite", "suite", "subSuite", "severity", "framework", "language", "package", "host", "thread")
)


@dataclass(frozen=True)
class RawResult:
    """What a bench's test function added: steps, links, labels, attachments; and how its item ended."""

    content: dict[str, Any] = field(default_factory=dict)

    @property
    def failure(self) -> str:
        """Return what pytest says of an item that did not pass, else ""."""
        if self.content.get("status") not in ("failed", "broken"):
            return ""
        return str(self.content.get("statusDetails", {}).get("message") or "no message")

    @property
    def trace(self) -> str:
        return str(self.content.get("statusDetails", {}).get("trace") or "")

    @property
    def labels(self) -> list[tuple[str, str]]:
        found = [(str(label["name"]), str(label["value"])) for label in self.content.get("labels", [])]
        return [pair for pair in found if pair[0] not in _OWNED_LABELS]

    def of(self, key: str) -> list[dict[str, Any]]:
        """Return the list ``steps``, ``links`` or ``attachments``."""
        return list(self.content.get(key, []))


def read_raw_results(run_path: Path) -> dict[tuple[str, str, str], RawResult]:
    """Return the results by full name, board and case label; a file that cannot be read is left out."""
    found = {}
    for path in sorted((run_path / RAW_FOLDER).glob("*-result.json")):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            values = {item["name"]: _unquoted(str(item["value"])) for item in content["parameters"]}
            found[content["fullName"], values["board"], values["case"]] = RawResult(content)
        except (OSError, ValueError, KeyError, TypeError):
            continue  # a run that was killed may leave half of one, and the journal has the same case
    return found


def raw_files(run_path: Path, result: RawResult) -> dict[str, bytes]:
    """Return the files that a raw result attaches, at any depth of its steps."""
    names = _sources(result.content)
    paths = {name: run_path / RAW_FOLDER / name for name in names if "/" not in name}
    return {name: path.read_bytes() for name, path in paths.items() if path.is_file()}


def _sources(item: dict[str, Any]) -> list[str]:
    own = [str(attachment.get("source")) for attachment in item.get("attachments", [])]
    return own + [name for step in item.get("steps", []) for name in _sources(step)]


def _unquoted(text: str) -> str:
    """Undo allure_commons.utils.represent for a text."""
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] == "'" else text


# One unit a dimension, whatever the value: a history that changes from µs to ms would show a jump.
_SHOWN = {"time": "ms", "ratio": "percent", "rate": "mbps", "size": "bytes"}
_FINE_UNIT = "us"


def performance_of(run: RunStory, story: Story, start: int, stop: int) -> list[dict[str, Any]]:
    """Return one object a series with a value; ``start`` and ``stop`` are in ms since 1970.

    A value of which only a lower bound is known is left out: this format has no "≥", and Allure would
    compare the bound with the figures of other runs.
    """
    return [
        {
            "id": stable_uuid(run.run_id, item.series_id),
            "key": item.series_id,
            "value": _significant(convert(item.value, find_unit(item.unit), unit)),
            "start": start,
            "stop": stop,
            "title": short_metric(item),
            "unit": unit.symbol,
            "group": f"{story.rack}/{story.board}/{story.bench}/{story.label}",
            "groupTitle": story.title,
            "better": item.direction,
        }
        for item in story.series
        if item.value is not None and not item.at_least
        for unit in [shown_unit(story, item)]
    ]


def shown_unit(story: Story, item: SeriesVerdict) -> Unit:
    """Return the unit in which a metric's history is kept; it must not depend on the value of the day.

    Times are in ms where the bench has a limit of 1 ms or more for the same quantity, else in µs.
    """
    own = find_unit(item.unit)
    if own.dimension == "time" and not _is_slow(story, item):
        return find_unit(_FINE_UNIT)
    return find_unit(_SHOWN.get(own.dimension, own.name))


def _is_slow(story: Story, item: SeriesVerdict) -> bool:
    metrics = story.thresholds.metrics if story.thresholds else {}
    if story.thresholds is None or item.metric not in metrics:
        return True
    terms = metrics[item.metric].terms
    alike = {name: metric.unit for name, metric in metrics.items() if metric.terms == terms}
    limits = [
        convert(limit.value, alike[metric], find_unit("ms"))
        for limit in story.thresholds.limits
        if (metric := str(limit.where.conditions.get("metric"))) in alike
    ]
    return any(limit >= 1.0 for limit in limits)


def _significant(value: float) -> float:
    return float(f"{value:.9g}")  # verdicts have six digits


_WORKFLOW_RUN = re.compile(r"/runs/(\d+)")
_HASH_DIGITS = 12


def files_around(run: RunStory) -> Iterator[tuple[str, bytes]]:
    """Yield (file name, content)."""
    yield "categories.json", as_json(CATEGORIES)
    yield "environment.properties", _properties(environment_of(run))
    if url := run.info.ci.url:
        yield "executor.json", as_json(_executor(url, run.run_id))
    if run.faults:
        errors = [
            {"message": f"{word_of(fault)}: {fault.sentence}", "timestamp": run_start_of(run.info)}
            for fault in run.faults
        ]
        yield f"{stable_uuid(run.run_id, 'faults')}-globals.json", as_json({"errors": errors})


def as_json(value: object) -> bytes:
    return (json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n").encode()


def environment_of(run: RunStory) -> dict[str, str]:
    """Return what was the same for all cases of the run."""
    info = run.info
    kinds = sorted({story.kind for story in run.stories if story.kind})
    facts: dict[str, Any] = {
        "run": run.run_id,
        "rack": info.rack,
        "kinds": ", ".join(kinds),
        "suite": info.suite,
        "trigger": info.trigger,
        "started_utc": info.started_utc,
        "commit": commit_of(info),
        "profile": info.profile,
    }
    for target, firmware in sorted(info.firmware.items()):
        facts[f"firmware.{target}"] = firmware.sha256[:_HASH_DIGITS]
    for package, version in sorted(info.versions.items()):
        facts[f"version.{package}"] = version
    return {name: str(value) for name, value in facts.items() if value}


def commit_of(info: RunInfo) -> str:
    """Return the measured commit, short; a tree with changes says so."""
    commit = measured_commit(info)[:_HASH_DIGITS]
    return f"{commit}, with changes" if commit and info.git.dirty else commit


def _properties(facts: Mapping[str, str]) -> bytes:
    """Write Java's properties; what is not ASCII is escaped, for readers disagree on the encoding."""
    lines = [f"{name}={_escaped(value)}\n" for name, value in facts.items()]
    return "".join(lines).encode("ascii")


def _escaped(text: str) -> str:
    plain = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "")
    units = plain.encode("utf-16-be")
    codes = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    return "".join(chr(code) if code < 0x7F else f"\\u{code:04x}" for code in codes)


def _executor(url: str, run_id: str) -> dict[str, object]:
    number = _WORKFLOW_RUN.search(url)
    order = {"buildOrder": int(number[1])} if number else {}
    return {"name": "GitHub Actions", "type": "github", "buildName": run_id, "buildUrl": url, **order}


FOLDER = "allure-results"
_OURS = re.compile(r".*-(result|container|perf|globals)\.json|.*-attachment(\..*)?|executor\.json")

# each chart, table of samples and console is a file that Allure copies: of a run with more cases than
# MOST_WHOLE nobody opens them all, and ILLUSTRATED_OF_MORE get them
MOST_WHOLE, ILLUSTRATED_OF_MORE = 2_000, 300
_BARE = (
    f"<p>This run has so many cases that charts, samples and console are here of {ILLUSTRATED_OF_MORE}, "
    "those that did not pass first. Of this one they are in the run's folder: records.jsonl, series.csv, "
    "console/.</p>"
)


def complete_results(judged: JudgedRun) -> int:
    """Write ``allure-results/`` of a judged run and return how many results it holds.

    Done twice, it gives the same files; done after another verdict, it replaces them.

    Raises:
        ConfigError: the run's thresholds cannot be read.
        RigError: the disk does not take it.
    """
    run = story_of(judged)
    draw_pictures(run.path, (record for story in run.stories for record in story.records))
    raw = read_raw_results(run.path)
    files = dict(files_around(run))
    metrics: list[dict[str, Any]] = []
    illustrated = _illustrated(run.stories)
    for number, story in enumerate(run.stories):
        own = raw.get((full_name(story.bench), story.board, story.label), RawResult())
        files |= raw_files(run.path, own)
        files |= dict(_result_files(run, story, own, bare=number not in illustrated))
        if number in illustrated:
            metrics += performance_of(run, story, *times_of(story, run_start_of(run.info)))
    if metrics:
        files[f"{stable_uuid(run.run_id, 'metrics')}-perf.json"] = as_json(metrics)
    _write(run.path / FOLDER, files)
    return len(run.stories)


def _illustrated(stories: Sequence[Story]) -> frozenset[int]:
    """Return the positions of those that get attachments and metrics: first what did not simply pass."""

    def is_sound(number: int) -> bool:
        story = stories[number]
        return not story.faults and all(item.outcome in ("pass", "no-baseline") for item in story.series)

    most = len(stories) if len(stories) <= MOST_WHOLE else ILLUSTRATED_OF_MORE
    return frozenset(sorted(range(len(stories)), key=is_sound)[:most])


def _result_files(run: RunStory, story: Story, raw: RawResult, *, bare: bool) -> Iterator[tuple[str, bytes]]:
    """Yield a result and, unless it is to be ``bare``, its attachments."""
    result = _result(run, story, raw, bare=bare)
    for attachment in () if bare else attachments_of(run, story):
        prefix = stable_uuid(run.run_id, str(result.historyId), attachment.key)
        source = f"{prefix}-attachment.{attachment.extension}"
        result.attachments.append(Attachment(attachment.name, source, attachment.mime_type))
        yield source, attachment.data
    result.attachments += [Attachment(**item) for item in raw.of("attachments")]
    content = asdict(result, filter=lambda _, value: value or value is False)
    steps = [*([] if bare else steps_of(story)), *raw.of("steps")]
    content |= {key: found for key, found in (("steps", steps), ("links", raw.of("links"))) if found}
    yield TestResult.file_pattern.format(prefix=result.uuid), as_json(content)


def _result(run: RunStory, story: Story, raw: RawResult, *, bare: bool) -> TestResult:
    name = full_name(story.bench)
    place = format_place(run.info.product, story.rack)
    parameters = parameters_of(place, story.board, story.label)
    identity = history_id(name, parameters)
    status, message = outcome_of(story, raw.failure)
    start, stop = times_of(story, run_start_of(run.info))
    trace = raw.trace if raw.failure and raw.failure in message else None
    return TestResult(
        uuid=stable_uuid(run.run_id, identity),
        historyId=identity,
        testCaseId=case_id_of(name),
        fullName=name,
        name=story.title,
        titlePath=[story.rack, story.place, story.bench],
        status=status,
        statusDetails=StatusDetails(message=message, trace=trace) if message else None,
        stage="finished",
        start=start,
        stop=stop,
        descriptionHtml=describe(story, message) + _BARE * bare,
        parameters=[
            *(Parameter(key, value) for key, value in parameters.items()),
            *(Parameter(key, value, excluded=True) for key, value in _facts(run, story).items() if value),
        ],
        labels=[Label(key, value) for key, value in _labels(run, story, raw)],
    )


def _facts(run: RunStory, story: Story) -> Mapping[str, str]:
    """Return what a person wants to see beside the parameters although it changes with every run."""
    measured = {record.firmware_sha256 for record in story.records}
    images = run.info.firmware
    tick_hz = parse_case_id(story.case_id)[1].get("tick_hz")
    image = images.get(f"{story.target}+tick{tick_hz}") or images.get(story.target)
    planned = {image.sha256} if image else set()
    firmware = sorted(sha256[:_HASH_DIGITS] for sha256 in measured or planned)
    return {"commit": commit_of(run.info), "firmware": ", ".join(firmware), "run": run.run_id}


def _labels(run: RunStory, story: Story, raw: RawResult) -> list[tuple[str, str]]:
    labels = [
        ("parentSuite", story.rack),
        ("suite", story.place),
        ("subSuite", story.bench),
        ("epic", run.info.product or "Performance"),
        ("feature", story.bench),
        ("story", story.label),
        ("host", story.rack),  # not the machine's name: the report is published
        ("thread", story.board),
        ("owner", story.thresholds.owner if story.thresholds else ""),
        ("severity", _severity(story)),
        ("tag", story.kind),
        ("tag", story.target),
        ("framework", "pytest"),
        ("package", full_name(story.bench).partition("#")[0]),
        *raw.labels,
    ]
    return [pair for pair in dict.fromkeys(labels) if pair[1]]


def _severity(story: Story) -> str:
    """Return critical where a metric may block, minor where all is advice, normal where nothing is known."""
    if not story.series:
        return "normal"
    return "critical" if any(item.blocking for item in story.series) else "minor"


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Make ``folder`` hold these files and none that an earlier completion left."""
    try:
        folder.mkdir(exist_ok=True)
        for path in folder.iterdir():
            if path.name not in files and path.is_file() and _OURS.fullmatch(path.name):
                path.unlink()
        for name, data in files.items():
            path = folder / name
            if not path.is_file() or path.read_bytes() != data:
                path.write_bytes(data)
    except OSError as error:
        raise disk_error(f"could not write {folder}", error, "records and verdict of the run") from error
