"""What a case's verdict, faults and gaps come to as Allure's status and message."""

from __future__ import annotations

from collections.abc import Iterator

from hil.base.errors import ExitCode
from hil.model import ComparedSeries, Fault, SeriesVerdict
from hil.reports import compared, rows
from hil.reports.allure import categories
from hil.reports.allure.story import Story
from hil.reports.names import short_metric

PASSED = "passed"

_WORDS = {
    ExitCode.CONFIG: categories.CONFIGURATION,
    ExitCode.FIRMWARE: categories.FIRMWARE,
    ExitCode.RIG: categories.RIG,
    ExitCode.INCONCLUSIVE: categories.INCONCLUSIVE,
}
# the same precedence as the run's exit code has; then what is missing, then what is undecided
_ORDER = (
    categories.CONFIGURATION,
    categories.FIRMWARE,
    categories.REGRESSION,
    categories.RIG,
    categories.NOT_RUN,
    categories.INCONCLUSIVE,
)


def outcome_of(story: Story, harness_failure: str = "") -> tuple[str, str]:
    """Return status and message; the message is "" where the case passed.

    ``harness_failure`` is what pytest says of an item that failed although its case was measured.
    """
    found = list(findings(story))
    if harness_failure and not story.faults and not story.not_run:
        found.append((categories.RIG, f"the harness failed: {harness_failure}"))
    if not found:
        return PASSED, ""
    word, sentence = min(found, key=lambda item: _ORDER.index(item[0]))
    return categories.status_of(word), f"{word}: {sentence}"


def word_of(fault: Fault) -> str:
    """Return how the message of a fault begins."""
    return _WORDS.get(ExitCode(fault.exit_code), categories.RIG)


def findings(story: Story) -> Iterator[tuple[str, str]]:
    """Yield (first word, sentence) of everything that keeps the case from passing."""
    for fault in story.faults:
        yield word_of(fault), fault.sentence
    for item in story.compared:
        if compared.is_blocked(item):
            yield categories.REGRESSION, item.sentence
    broken = rows.by_severity(story.series)
    if broken:
        also = ", ".join(short_metric(item) for item in broken[1:])
        more = f" Also broken: {also}." if also else ""
        yield categories.REGRESSION, f"{broken[0].sentence}{more}"
    for missing in story.not_run:
        if missing.expected or not story.series:  # else it was measured, and only not compared any further
            yield categories.NOT_RUN, missing.reason
    judged: tuple[SeriesVerdict | ComparedSeries, ...] = (*story.compared, *story.series)
    for series in judged:
        if series.blocking and series.outcome == "inconclusive":
            yield categories.INCONCLUSIVE, series.sentence
