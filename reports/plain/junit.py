# SPDX-License-Identifier: Apache-2.0
"""``junit.xml``: a test suite a board, a test case a case, for servers that know nothing of benchmarks.

A broken limit, a regression and a fault of the firmware are failures, a fault of rack or configuration is an
error, what was not run is skipped with its reason. What is undecided passes, and says so in ``system-out``:
the format has no word for it, and a person may not be told of a failure that nobody proved.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET  # written only, never parsed

from hil.model import Fault
from hil.reports import compared
from hil.reports.allure import outcome as categories
from hil.reports.allure.outcome import findings, outcome_of, word_of
from hil.reports.allure.story import RunStory, Story
from hil.reports.allure.times import run_start_of, times_of
from hil.reports.boards import noted_kind, remarks
from hil.reports.names import case_name
from hil.store.run_info import measured_commit

JUNIT = "junit.xml"
_ELEMENTS = {
    categories.REGRESSION: "failure",
    categories.FIRMWARE: "failure",
    categories.CONFIGURATION: "error",
    categories.RIG: "error",
    categories.NOT_RUN: "skipped",
}
# what XML 1.0 cannot hold, not even as a character reference
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_REPLACEMENT = "\ufffd"


@dataclass(frozen=True)
class _Case:
    """A test case; ``element`` is "" where it passed. ``time_s`` is what was measured, in seconds."""

    class_name: str
    name: str
    time_s: float = 0.0
    element: str = ""
    message: str = ""
    text: str = ""
    said: str = ""


@dataclass(frozen=True)
class _Suite:
    name: str
    properties: Sequence[tuple[str, str]]
    cases: Sequence[_Case]


def junit_xml(run: RunStory) -> bytes:
    """Return the file; nothing in it depends on when it is made."""
    root = ET.Element("testsuites", name=_clean(f"HIL performance {run.run_id}"))
    suites = [*_boards(run), *_rack(run)]
    _count(root, [case for suite in suites for case in suite.cases])
    for suite in suites:
        _add_suite(root, run, suite)
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _boards(run: RunStory) -> list[_Suite]:
    natures = {story.board: (story.kind, story.target) for story in run.stories}
    natures |= {board.id: (board.kind, board.target) for board in run.info.boards}
    natures |= {fault.board: ("", "") for fault in run.faults if fault.board and fault.board not in natures}
    suites = []
    for board, (kind, target) in sorted(natures.items()):
        cases = [_case(run, story) for story in run.stories if story.board == board]
        cases += [_of_fault(run, board, fault) for fault in _homeless(run) if fault.board == board]
        own = noted_kind(run.info, kind)
        name = f"{run.info.rack}/{board}" + (f" ({own})" if own else "")
        suites.append(_Suite(name, [*_properties(run), ("kind", own), ("target", target)], cases))
    return suites


def _rack(run: RunStory) -> list[_Suite]:
    """Return a suite of what is of no single board, none where there is nothing."""
    cases = [_of_fault(run, "", fault) for fault in _homeless(run) if not fault.board]
    told = {item.series_id for story in run.stories for item in story.compared}
    for item in run.verdict.compared:
        if compared.is_blocked(item) and item.series_id not in told:
            name = f"{run.info.rack}.{item.target}"
            cases.append(_Case(name, case_name(item), 0.0, "failure", item.sentence, item.sentence))
    return [_Suite(f"{run.info.rack} (the rack)", _properties(run), cases)] if cases else []


def _homeless(run: RunStory) -> list[Fault]:
    """Return the faults that cost no single case: each is a test case of its own."""
    told = {fault for story in run.stories for fault in story.faults}
    keys = {(story.board, story.case_id) for story in run.stories}
    others = (fault for fault in run.verdict.faults if (fault.board, fault.case_id) not in keys)
    return [fault for fault in others if fault not in told]


def _case(run: RunStory, story: Story) -> _Case:
    start_ms, stop_ms = times_of(story, run_start_of(run.info))
    _, message = outcome_of(story)
    label = "" if story.label == "defaults" else f" {story.label}"
    return _Case(
        class_name=f"{run.info.rack}.{story.board}.{story.bench}",
        name=f"{story.bench}{label}",
        time_s=(stop_ms - start_ms) / 1000,
        element=_ELEMENTS.get(message.partition(":")[0], ""),
        message=message,
        text="\n".join(f"{word}: {sentence}" for word, sentence in findings(story)),
        said="\n".join(
            [*(item.sentence for item in story.compared), *(item.sentence for item in story.series)]
        ),
    )


def _of_fault(run: RunStory, board: str, fault: Fault) -> _Case:
    word = word_of(fault)
    name = fault.case_id or ("the board itself" if board else "the rack itself")
    text = f"{word}: {fault.sentence}"
    where = f"{run.info.rack}.{board}" if board else run.info.rack
    return _Case(where, name, 0.0, _ELEMENTS.get(word, "error"), text, text)


def _properties(run: RunStory) -> list[tuple[str, str]]:
    return [
        ("run_id", run.run_id),
        ("commit", measured_commit(run.info)),
        ("dirty", "true" if run.info.git.dirty else "false"),
        ("rack", run.info.rack),
        ("trigger", run.info.trigger),
        ("suite", run.info.suite),
        *(("remark", remark) for remark in remarks(run.info, run.verdict)),
    ]


def _add_suite(root: ET.Element, run: RunStory, suite: _Suite) -> None:
    element = ET.SubElement(root, "testsuite", name=_clean(suite.name))
    _count(element, suite.cases)
    if run.info.started_utc:
        element.set("timestamp", _clean(run.info.started_utc[:19]))  # without a zone, as the format wants it
    properties = ET.SubElement(element, "properties")
    for name, value in suite.properties:
        ET.SubElement(properties, "property", name=name, value=_clean(value))
    for case in suite.cases:
        _add_case(element, case)


def _add_case(suite: ET.Element, case: _Case) -> None:
    found = ET.SubElement(
        suite,
        "testcase",
        classname=_clean(case.class_name),
        name=_clean(case.name),
        time=f"{case.time_s:.3f}",
    )
    if case.element:
        result = ET.SubElement(found, case.element, message=_clean(case.message))
        result.text = _clean(case.text)
        if case.element != "skipped":
            result.set("type", case.message.partition(":")[0])
    said = "\n".join(filter(None, ("" if case.element else case.text, case.said)))
    if said:
        ET.SubElement(found, "system-out").text = _clean(said)


def _count(element: ET.Element, cases: Iterable[_Case]) -> None:
    counted = list(cases)
    element.set("tests", str(len(counted)))
    for attribute, name in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(attribute, str(sum(case.element == name for case in counted)))
    element.set("time", f"{sum(case.time_s for case in counted):.3f}")


def _clean(text: str) -> str:
    return _FORBIDDEN.sub(_REPLACEMENT, text)
