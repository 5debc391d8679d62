# SPDX-License-Identifier: Apache-2.0
"""What a case's verdict, faults and gaps come to as Allure's status and message.

Whose a failure is: how each message begins, and the categories that Allure sorts results into by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypedDict

from hil.base.errors import ExitCode
from hil.model import Fault
from hil.reports import compared, rows
from hil.reports.allure.story import Story
from hil.reports.names import short_metric


class Category(TypedDict):
    """As Allure 2 reads it from categories.json, and Allure 3 from the key ``categories`` of its config."""

    name: str
    matchedStatuses: list[str]
    messageRegex: str


REGRESSION: Final = "regression"
FIRMWARE: Final = "firmware"
RIG: Final = "rig"
CONFIGURATION: Final = "configuration"
UNDECIDED: Final = "undecided"
NOT_RUN: Final = "not run"

# first word of the message → status, name of the category
_MEANINGS = {
    REGRESSION: ("failed", "Regression"),
    FIRMWARE: ("failed", "Firmware fault"),
    RIG: ("broken", "Rig trouble"),
    CONFIGURATION: ("broken", "Configuration"),
    UNDECIDED: ("unknown", "Undecided"),
    NOT_RUN: ("skipped", "Not run"),
}

# Allure 2 matches a pattern with the whole message, Allure 3 searches for it: this one suits both
CATEGORIES: list[Category] = [
    {"name": name, "matchedStatuses": [status], "messageRegex": f"^{word}: .*"}
    for word, (status, name) in _MEANINGS.items()
]


PASSED = "passed"

_WORDS = {
    ExitCode.CONFIG: CONFIGURATION,
    ExitCode.FIRMWARE: FIRMWARE,
    ExitCode.RIG: RIG,
    ExitCode.UNDECIDED: UNDECIDED,
}
# the same precedence as the run's exit code has; then what is missing, then what is undecided
_ORDER = (
    CONFIGURATION,
    FIRMWARE,
    REGRESSION,
    RIG,
    NOT_RUN,
    UNDECIDED,
)


def outcome_of(story: Story, harness_failure: str = "") -> tuple[str, str]:
    """Return status and message; the message is "" where the case passed.

    ``harness_failure`` is what pytest says of an item that failed although its case was measured.
    """
    found = list(findings(story))
    if harness_failure and not story.faults and not story.not_run:
        found.append((RIG, f"the harness failed: {harness_failure}"))
    if not found:
        return PASSED, ""
    word, sentence = min(found, key=lambda item: _ORDER.index(item[0]))
    return _MEANINGS[word][0], f"{word}: {sentence}"


def word_of(fault: Fault) -> str:
    """Return how the message of a fault begins."""
    return _WORDS.get(ExitCode(fault.exit_code), RIG)


def findings(story: Story) -> Iterator[tuple[str, str]]:
    """Yield (first word, sentence) of everything that keeps the case from passing."""
    for fault in story.faults:
        yield word_of(fault), fault.sentence
    for item in story.compared:
        if compared.is_blocked(item):
            yield REGRESSION, item.sentence
    broken = rows.by_severity(story.series)
    if broken:
        also = ", ".join(short_metric(item) for item in broken[1:])
        more = f" Also broken: {also}." if also else ""
        yield REGRESSION, f"{broken[0].sentence}{more}"
    for missing in story.not_run:
        if missing.expected or not story.series:  # else it was measured, and only not compared any further
            yield NOT_RUN, missing.reason
    yield from ((UNDECIDED, sentence) for sentence in _undecided(story))


def _undecided(story: Story) -> Iterator[str]:
    """Yield the sentences of what can fail a run and came to no decision."""
    for item in story.compared:
        if item.blocking and item.outcome == "undecided":
            yield item.sentence
    yield from (item.sentence for item in rows.undecided(story.series))
