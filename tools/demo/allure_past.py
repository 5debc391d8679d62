# SPDX-License-Identifier: Apache-2.0
"""What earlier nights leave in Allure's own history: a point a night, from which each test knows its past."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from hil.base.units import Unit, convert, find_unit
from hil.model import bench_of
from hil.reports.allure.completion import shown_unit
from hil.reports.allure.identity import id_of
from hil.reports.allure.story import story_of
from hil.reports.site.points import identity
from hil.store import read_judged_run

_Line = Mapping[str, Any]


def points(runs: Sequence[Path], lines: Sequence[_Line]) -> Iterator[dict[str, Any]]:
    """Yield a point for each night of ``lines``, the figures of runs, as a report of each would have left it.

    A test is called what it is in the newest ``runs``, a folder a rack.
    """
    racks = {rack.name: rack for rack in map(_Rack, runs)}
    nights: dict[str, list[_Line]] = {}
    for line in lines:
        nights.setdefault(str(line["started_utc"])[:10], []).append(line)
    for date in sorted(nights):
        own = sorted(nights[date], key=lambda line: str(line["run_id"]))
        tests = {key: one for line in own for key, one in racks[line["rack"]].results(line)}
        yield {
            "uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, date)),
            "knownTestCaseIds": sorted({key.partition(".")[0] for key in tests}),
            "testResults": tests,
            "metrics": {key: value for line in own for key, value in racks[line["rack"]].metrics(line)},
            "url": "",
            **identity(own),
        }


class _Rack:
    """The newest run of a rack, whose results name its tests and the units of their figures."""

    def __init__(self, run: Path) -> None:
        judged = read_judged_run(run)
        self._start = _ms(judged.info.started_utc)
        self.name = judged.info.rack
        self._tests = {
            (values["board"], result["titlePath"][-1], values["case"]): result
            for path in sorted((run / "allure-results").glob("*-result.json"))
            for result in [json.loads(path.read_text(encoding="utf-8"))]
            for values in [{item["name"]: item["value"] for item in result["parameters"]}]
        }
        self._units: dict[str, tuple[Unit, Unit]] = {
            item.series_id: (find_unit(item.unit), shown_unit(story, item))
            for story in story_of(judged).stories
            for item in story.series
        }

    def results(self, line: _Line) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield Allure's key and entry of each test that a night measured."""
        later = _ms(str(line["started_utc"])) - self._start
        for case in line["cases"]:
            test = self._tests.get((case["board"], bench_of(case["case_id"]), case["label"]))
            if test is None:
                continue
            failed = any(metric["outcome"] == "regressed" for metric in case["metrics"].values())
            start, stop = test["start"] + later, test["stop"] + later
            key = _history_id(test)
            yield (
                key,
                {
                    "id": id_of(f"{line['run_id']} {key}"),
                    "name": test["name"],
                    "fullName": test["fullName"],
                    "environment": "default",
                    "status": "failed" if failed else "passed",
                    "start": start,
                    "stop": stop,
                    "duration": stop - start,
                    "labels": test["labels"],
                    "url": "",
                    "historyId": key,
                    "reportLinks": [],
                },
            )

    def metrics(self, line: _Line) -> Iterator[tuple[str, float]]:
        """Yield the figures of a night in the units in which Allure's history has them."""
        for case in line["cases"]:
            for name, metric in case["metrics"].items():
                key = f"{line['rack']}/{case['board']}/{case['case_id']}/{name}"
                if metric.get("value") is not None and key in self._units:
                    yield key, convert(metric["value"], *self._units[key])


def _history_id(result: Mapping[str, Any]) -> str:
    """Return what Allure makes of a result: its store's calculateHistoryId()."""
    told = sorted((item["name"], item["value"]) for item in result["parameters"] if not item.get("excluded"))
    parameters = ",".join(f"{name}:{value}" for name, value in told)
    return f"{id_of(result['testCaseId'])}.{id_of(parameters)}"


def _ms(moment_utc: str) -> int:
    return round(datetime.fromisoformat(moment_utc).timestamp() * 1000)
