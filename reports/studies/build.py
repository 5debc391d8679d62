# SPDX-License-Identifier: Apache-2.0
"""From a run's folder to the reproduction of a study: its Markdown, JSON and page beside the records.

What a study was measured on: board, air and firmware, as the records hold them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from hil.base.errors import ConfigError, Undecided
from hil.metrics.stats import quantile
from hil.model import Entry, Kind, RunRecord, bench_of
from hil.reports.studies.declaration import Study
from hil.reports.studies.document import Document, number, percent, plain
from hil.reports.studies.esp32_tcpip import study as tcpip
from hil.reports.studies.freertos_multicore import study as multicore
from hil.reports.studies.loader import KEPT_FOLDER, study_of_suite
from hil.reports.studies.mqtt_http_rtt import study as http_rtt
from hil.reports.studies.mqtt_qos import study as qos
from hil.reports.studies.page import render_page
from hil.reports.studies.records import BoardRun, boards_of_run, facts
from hil.reports.studies.rtos_mqtt import study as rtos
from hil.reports.studies.sections import Parts, sections_of
from hil.reports.studies.text import render_markdown
from hil.store import StoredRun
from hil.store.directory import JOURNAL
from hil.store.files import disk_error, replace_file

_SHORT_SHA = 12
_WAYS = ("uplink", "downlink")
_LOSSES = ("loss", "burst")


def measured_on(run: BoardRun) -> str:
    """Return one line: board, target, kind, air with what it did to the frames, firmware."""
    firmware = sorted({record.firmware_sha256[:_SHORT_SHA] for record in run.records})
    parts = (
        f"board {run.board}",
        run.target,
        run.kind,
        f"firmware {', '.join(firmware)}",
        *_air(run.records),
    )
    return f"Measured on: {', '.join(parts)}."


def _air(records: Sequence[RunRecord]) -> list[str]:
    """Return the access point with its profile, and per direction what the air counted."""
    points = [record.environment.get("access_point", {}) for record in records]
    names = sorted({" ".join(filter(None, (_type(one), _profile(one)))) for one in points if one})
    told = [f"{way} {figures}" for way in _WAYS if (figures := _figures(records, way))]
    named = [f"access point {' and '.join(names)}"] if names else ["access point not recorded"]
    return [*named, f"air as counted: {'; '.join(told)}"] if told else named


def _type(point: object) -> str:
    return str(point.get("type", "")) if isinstance(point, dict) else ""


def _profile(point: object) -> str:
    found = point.get("profile", "") if isinstance(point, dict) else ""
    return f"(air profile {found})" if found else ""


def _figures(records: Sequence[RunRecord], way: str) -> str:
    """Return least and median delay over the cases, queues included, and the share of frames lost."""
    least, middle = (facts(records, f"{way}_delay_{name}_us", "air") for name in ("min", "p50"))
    read = sum(facts(records, f"{way}_read_frames", "air"))
    lost = sum(sum(facts(records, f"{way}_drop_{name}", "air")) for name in _LOSSES)
    full = sum(facts(records, f"{way}_drop_queue", "air"))
    if not least or not middle or not read:
        return ""
    delay = (
        f"{number(min(least) / 1000)} ms or more, p50 {number(quantile(middle, 0.5) / 1000)} ms with queues"
    )
    return f"{delay}, {percent(lost / read)} lost, {percent(full / read)} dropped by a full queue"


JSON_SCHEMA = 1


def files_of(study: str) -> tuple[str, str, str]:
    """Return the names of a study's Markdown, JSON and page in a run's folder."""
    return (f"reproduction-{study}.md", f"reproduction-{study}.json", page_of(study))


def page_of(study: str) -> str:
    return f"reproduction-{study}.html"


_PARTS: Mapping[str, Parts] = {
    "esp32-tcpip": tcpip.PARTS,
    "mqtt-http-rtt": http_rtt.PARTS,
    "freertos-multicore": multicore.PARTS,
    "mqtt-qos": qos.PARTS,
    "rtos-mqtt": rtos.PARTS,
}
FILES = tuple(name for study in _PARTS for name in files_of(study))  # of each study that there may be


def reproduce_suite(run: StoredRun) -> list[Document]:
    """Do as reproduce() does where the run's suite is a study's; return nothing where it is none's.

    The studies are those that the run was started with, of which its folder keeps a copy.
    """
    study = study_of_suite(run.info.suite, run.path / KEPT_FOLDER)
    return reproduce(run, study) if study else []


@dataclass(frozen=True)
class StoredStudy:
    """What a study's JSON in a run's folder is about."""

    study: str
    kinds: tuple[str, ...]


def stored_studies(run_path: Path) -> list[StoredStudy]:
    """Return which studies were set beside the run; one whose files cannot be read is left out."""
    return [found for study in _PARTS if (found := _stored_study(run_path, study))]


def _stored_study(run_path: Path, study: str) -> StoredStudy | None:
    _markdown, data, page = (run_path / name for name in files_of(study))
    try:
        content = json.loads(data.read_text(encoding="utf-8"))
        kinds = sorted({str(board["kind"]) for board in content["boards"]})
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return StoredStudy(study, tuple(kinds)) if page.is_file() else None


def documents_of(study: Study, entries: Sequence[Entry], run_id: str, *, suite: str = "") -> list[Document]:
    """Return the study beside each board's records. ``suite`` is the run's, "" where it is not known.

    Raises:
        ConfigError: no case of the run is of a bench of the study.
        Undecided: no board measured anything.
    """
    boards = boards_of_run(entries)
    if not boards:
        raise Undecided(
            f"{run_id} holds no record, so nothing can be set beside the study {study.id}.",
            next_step="look at the faults in its summary.md, then measure again: hil reproduce " + study.id,
        )
    _require_bench(study, boards, run_id)
    return [
        Document(
            study.id,
            study.title,
            run_id,
            board.board,
            board.target,
            cast(Kind, board.kind),
            tuple(sections_of(study, board, _PARTS[study.id])),
            measured_on(board),
            _suite_warnings(study, suite),
        )
        for board in boards
    ]


def _require_bench(study: Study, boards: Sequence[BoardRun], run_id: str) -> None:
    """Raise ConfigError where no case of the run, measured or not, is of a bench that the study looks at."""
    wanted = {ours.bench for table in study.tables for ours in table.compared}
    found = {record.bench for board in boards for record in board.records}
    failed = {bench_of(trouble.case_id) for board in boards for trouble in board.troubles}
    if not wanted & (found | failed):
        raise ConfigError(
            f"{run_id} measured {', '.join(sorted(found))}, but the study {study.id} compares with "
            f"{', '.join(sorted(wanted))} alone, so nothing was written.",
            next_step=f"name a run of the suite {' or '.join(study.suites.values())}, or measure: "
            f"hil reproduce {study.id}",
        )


def _suite_warnings(study: Study, suite: str) -> tuple[str, ...]:
    own = list(study.suites.values())
    if not suite or suite in own:
        return ()
    head = f"The run is of the suite {suite!r}, none of the study's ({', '.join(own)})"
    return (f"{head}: what that suite lacks is missing here.",)


def reproduce(run: StoredRun, study: Study) -> list[Document]:
    """Write the study beside the run into the run's folder; return what was written.

    Raises:
        ConfigError: the run has nothing that the study compares with.
        Undecided: no board measured anything.
        RigError: the disk does not take it.
    """
    run_id = run.run_id
    documents = documents_of(study, run.journal.entries, run_id, suite=run.info.suite)
    contents = (
        render_markdown(study, documents, run_id=run_id),
        render_json(study, documents, run_id=run_id),
        render_page(study, documents, run_id=run_id),
    )
    for name, content in zip(files_of(study.id), contents, strict=True):
        try:
            replace_file(run.path / name, content.encode())
        except OSError as error:
            what = f"could not write {run.path / name}"
            raise disk_error(what, error, str(run.path / JOURNAL)) from error
    return documents


def render_json(study: Study, documents: Sequence[Document], *, run_id: str) -> str:
    """Return the JSON: every table's rows in numbers, under its id; infinite bounds are null."""
    boards = [
        {
            "board": document.board,
            "kind": document.kind,
            "target": document.target,
            "measured_on": document.measured_on,
            "tables": {
                table.id: {
                    "title": document.caption(table),
                    "rows": list(table.data),
                    "notes": list(table.notes),
                }
                for section in document.sections
                for table in section.tables
            },
            "answers": [document.said(one) for section in document.sections for one in section.answers],
            "warnings": [
                *document.warnings,
                *(document.said(one) for section in document.sections for one in section.warnings),
            ],
        }
        for document in documents
    ]
    content = {"schema": JSON_SCHEMA, "study": study.id, "run_id": run_id, "boards": boards}
    return json.dumps(plain(content), ensure_ascii=False, allow_nan=False, indent=2) + "\n"
