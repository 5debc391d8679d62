# SPDX-License-Identifier: Apache-2.0
"""What the reports' code for a study needs of its file, and what an estimator compares with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hil.base.yamlfile import Node
from hil.base.yamlvalue import did_you_mean
from hil.reports.studies.declaration.types import ESTIMATORS, SAMPLE_COLUMNS, UNMEASURED, Study, Table


@dataclass(frozen=True)
class Needs:
    """``tables`` maps each table's id to its estimator; ``questions`` is how many, None where it is free.

    ``background`` are tables of others of which the code knows each line by its label.
    """

    tables: Mapping[str, str]
    checks: Sequence[str]
    questions: int | None = None
    background: Mapping[str, Sequence[str]] = field(default_factory=dict)


STUDIES: Mapping[str, Needs] = {
    "esp32-tcpip": Needs(
        tables={
            "baseline": "iperf-mean-of-runs",
            "window-receive": "iperf-mean-of-runs",
            "window-send": "iperf-mean-of-runs",
            "segment-receive": "iperf-mean-of-runs",
            "segment-send": "iperf-mean-of-runs",
            "overhead": "header-formula",
        },
        checks=(
            "tx-exceeds-rx",
            "receive-wants-large-segments",
            "send-wants-small-segments",
            "receive-wants-large-windows",
            "send-wants-small-windows",
        ),
        questions=4,
    ),
    "mqtt-http-rtt": Needs(
        tables={"phases": "phase-mean-payload-ms", "timeouts": "timeouts-of-requests"},
        checks=(
            "first-request-slowest",
            "pause-adds-nothing",
            "cold-path-explains-first",
            "profiles-differ",
        ),
    ),
    "freertos-multicore": Needs(
        tables={
            "switch-same-core": "raw-switch-ms",
            "switch-cross-core": "raw-switch-ms",
            "period": "raw-period-ms",
            "period-loaded": "raw-period-ms",
            "granularity": "counter-granularity",
            "give": "give-call-us",
        },
        checks=(
            "cross-core-switch-takes-190-ms",
            "cross-core-costs-more",
            "period-is-off-by-200-ms-when-moved",
            "load-explains-the-period",
            "same-core-values-are-equal",
        ),
    ),
    "mqtt-qos": Needs(
        tables={
            "payload-pi": "echo-mean-r-difftime",
            "payload-desktop": "echo-mean-r-difftime",
            "bandwidth": "echo-mean-r-difftime",
            "observations": "echoes-counted",
            "loss": "echo-mean-r-difftime",
            "overhead-message": "frame-bytes-a-message",
            "overhead-connection": "frame-bytes-a-connection",
        },
        checks=(
            "round-trip-rises-with-qos",
            "faster-from-1-kb",
            "qos-0-constant-to-100-b",
            "equal-from-1-mb",
            "limit-raises-round-trip",
            "milliseconds-from-1-mb-per-s",
            "shark-fin",
            "qos-2-fastest-under-limit",
            "loss-raises-round-trip",
            "loss-breaks-off-from-25-percent",
            "overhead-independent-of-payload",
            "qos-0-bundles",
            "qos-2-does-not-bundle",
            "first-segments-not-full",
            "broker-dies-persisting",
            "lost-connect-freezes-client",
            "order-cannot-be-told",
        ),
        questions=5,
    ),
    "rtos-mqtt": Needs(
        tables={
            "publish": "publish-call-mean-ms",
            "publishes": "successful-publishes",
            "security": "publish-call-mean-ms",
            "security-publishes": "successful-publishes",
            "older": "publish-call-mean-ms",
            "older-publishes": "successful-publishes",
        },
        checks=(
            "publishing-apart-from-wifi-is-slower",
            "publishing-on-core-0-is-faster",
            "mutex-wait-is-most-of-it",
            "tls-costs-about-1-ms",
            "losses-are-the-networks",
            "delay-until-keeps-time",
            "tls-is-steadier",
            "core-0-beats-unpinned",
            "dedicated-access-point-has-fewer-gaps",
            "whole-ms-are-too-coarse",
            "nodelay-splits-bursts",
            "device-log-tells-losses",
        ),
        questions=5,
        background={
            "symptoms": (
                "Duplicate ACKs",
                "Retransmissions",
                "Spurious retransmissions",
                "Out-of-order delivery",
                "Previous segment not captured",
                "Empty MQTT publish payload",
                "PDU reassembly of multiple publishes",
            )
        },
    ),
}
# what the reports can check of a claim
CHECKS = (*(check for needs in STUDIES.values() for check in needs.checks), *UNMEASURED)


def require_needs(study: Study, node: Node, tables: Sequence[Node], claims: Sequence[Node]) -> None:
    """Raise ConfigError where the study's own code cannot work with its file; ``node`` is the file's.

    ``tables`` and ``claims`` are the sections of the study's tables and claims. A study that nothing was
    declared for may have anything.
    """
    needs = STUDIES.get(study.id)
    if needs is None:
        return
    for table, part in zip(study.tables, tables, strict=True):
        _require_known(part, "id", table.id, tuple(needs.tables), f"the study {study.id!r} has no table")
        estimator = needs.tables[table.id]
        if table.estimator != estimator:
            sentence = f"the table {table.id!r} has the estimator {estimator!r}, not {table.estimator!r}."
            raise part.error("estimator", sentence)
    missing = [name for name in needs.tables if name not in {table.id for table in study.tables}]
    if missing:
        sentence = f"the study {study.id!r} lacks the table {', '.join(map(repr, missing))}."
        raise node.error("tables", sentence)
    for claim, part in zip(study.claims, claims, strict=True):
        known = (*needs.checks, *UNMEASURED)
        _require_known(part, "check", claim.check, known, f"the study {study.id!r} has no check")
    if needs.questions is not None and len(study.questions) != needs.questions:
        sentence = f"{len(study.questions)} questions, but {needs.questions} answers are worked out."
        raise node.error("questions", sentence)
    for name, labels in needs.background.items():
        found = [row.label for table in study.background if table.id == name for row in table.rows]
        if sorted(found) != sorted(labels):
            sentence = f"the background {name!r} has the lines {', '.join(map(repr, found)) or 'none'}."
            raise node.error("background", f"{sentence} Known: {', '.join(map(repr, labels))}.")


def _require_known(part: Node, key: str, word: str, known: Sequence[str], head: str) -> None:
    if word not in known:
        raise part.error(key, f"{head} {word!r}{did_you_mean(word, known)} Known: {', '.join(known)}.")


def sample_value(node: Node, key: str, bench: str) -> int:
    """Return the value that a column must have, of those by which the bench's samples are told apart."""
    known = SAMPLE_COLUMNS.get(bench, ())
    if key not in known:
        hint = f"{did_you_mean(key, known)} Known columns: {', '.join(known) or 'none'}."
        raise node.error(key, f"samples of the bench {bench!r} are not told apart by {key!r}{hint}")
    return node.integer(key)


def row_statistic(node: Node, estimator: str) -> str:
    """Return which statistic of the table's estimator a row is; "" where that is one itself."""
    known = ESTIMATORS[estimator].statistics
    if known:
        return node.choice("statistic", known)
    if node.text("statistic", default=""):
        raise node.error("statistic", f"the estimator {estimator!r} is a statistic itself.")
    return ""


def check_estimator(node: Node, table: Table) -> None:
    """Raise ConfigError where the table's unit or a bench that compares is not the estimator's."""
    estimator = ESTIMATORS[table.estimator]
    if table.unit != estimator.unit:
        sentence = f"the estimator {table.estimator!r} gives {estimator.unit}, but the unit is {table.unit}."
        raise node.error("unit", sentence)
    wrong = sorted({ours.bench for ours in table.compared if ours.bench != estimator.bench})
    if wrong:
        sentence = f"the estimator {table.estimator!r} compares with {estimator.bench!r}, not {wrong[0]!r}."
        raise node.error("estimator", sentence)
