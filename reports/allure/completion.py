"""Builds a run's Allure results from its folder alone: records, verdict, consoles, and what pytest left."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from allure_commons.model2 import Attachment, Label, Parameter, StatusDetails, TestResult
from attr import asdict

from hil.reports.allure.around import as_json, commit_of, files_around
from hil.reports.allure.attachments import attachments_of
from hil.reports.allure.description import describe
from hil.reports.allure.identity import case_id_of, full_name, history_id, parameters_of, stable_uuid
from hil.reports.allure.outcome import outcome_of
from hil.reports.allure.performance import performance_of
from hil.reports.allure.raw import RawResult, raw_files, read_raw_results
from hil.reports.allure.story import RunStory, Story, parse_case_id, read_run
from hil.reports.allure.times import run_start_of, times_of
from hil.reports.allure.trace import draw_pictures
from hil.store.files import disk_error

FOLDER = "allure-results"
_OURS = re.compile(r".*-(result|container|perf|globals)\.json|.*-attachment(\..*)?|executor\.json")
_HASH_DIGITS = 12
# each chart, table of samples and console is a file that Allure copies: of a run with more cases than
# MOST_WHOLE nobody opens them all, and ILLUSTRATED_OF_MORE get them
MOST_WHOLE, ILLUSTRATED_OF_MORE = 2_000, 300
_BARE = (
    f"<p>This run has so many cases that charts, samples and console are here of {ILLUSTRATED_OF_MORE}, "
    "those that did not pass first. Of this one they are in the run's folder: records.jsonl, series.csv, "
    "console/.</p>"
)


def complete_results(run_path: Path) -> int:
    """Write ``allure-results/`` of a judged run and return how many results it holds.

    Done twice, it gives the same files; done after another verdict, it replaces them.

    Raises:
        ConfigError: ``run_path`` is no judged run, or its thresholds cannot be read.
        RigError: the disk does not take it.
    """
    run = read_run(run_path)
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
    content |= {key: found for key in ("steps", "links") if (found := raw.of(key))}
    yield TestResult.file_pattern.format(prefix=result.uuid), as_json(content)


def _result(run: RunStory, story: Story, raw: RawResult, *, bare: bool) -> TestResult:
    name = full_name(story.bench)
    parameters = parameters_of(story.rack, story.board, story.label)
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
        labels=[Label(key, value) for key, value in _labels(story, raw)],
    )


def _facts(run: RunStory, story: Story) -> Mapping[str, str]:
    """Return what a person wants to see beside the parameters although it changes with every run."""
    measured = {record.firmware_sha256 for record in story.records}
    images = run.info.get("firmware", {})
    tick_hz = parse_case_id(story.case_id)[1].get("tick_hz")
    image = images.get(f"{story.target}+tick{tick_hz}") or images.get(story.target, {})
    planned = str(image.get("sha256", ""))
    firmware = sorted(sha256[:_HASH_DIGITS] for sha256 in measured or {planned})
    return {"commit": commit_of(run.info), "firmware": ", ".join(firmware), "run": run.run_id}


def _labels(story: Story, raw: RawResult) -> list[tuple[str, str]]:
    labels = [
        ("parentSuite", story.rack),
        ("suite", story.place),
        ("subSuite", story.bench),
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
