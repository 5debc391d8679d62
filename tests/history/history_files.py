# SPDX-License-Identifier: Apache-2.0
"""Runs of the history for tests: what a night of a rack leaves in the history, from a seed."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from hil.history.building import BootPoint, build
from hil.history.summary import SCHEMA_VERSION, BootedImage, BootValues, MeasuredBoard, Summary
from hil.model import Scalar, format_case_id
from hil.store import time_in

NIGHTS_FROM = datetime.datetime(2026, 1, 1, 2, 0, tzinfo=datetime.UTC)
CANDIDATE, REFERENCE = "a" * 64, "b" * 64


def night(
    number: int,
    *,
    rack: str = "bench-1",
    boards: Sequence[str] = ("e1", "e2"),
    cases: int = 2,
    metrics: Sequence[str] = ("publish_latency_p50_us", "publish_failed_ratio"),
    boots: int = 4,
    channel: int = 6,
    product: str = "",
) -> Summary:
    """Return night ``number`` of a rack: every other boot of a board is the reference's."""
    chance = np.random.RandomState([number, *rack.encode()])
    started = NIGHTS_FROM + datetime.timedelta(days=number)
    rulers = {"publish": "c" * 64}
    images = [
        BootedImage("candidate", "esp32", CANDIDATE, rulers),
        BootedImage("reference", "esp32", REFERENCE, rulers),
    ]
    conditions: dict[str, Scalar] = {"access_point": "external", "ssid": "lab", "channel": channel}
    points = [
        BootPoint(board, role, boot, sha, case_id, metric, *_measured(chance, metric))
        for board in boards
        for boot in range(boots)
        for role, sha in [(("candidate", CANDIDATE), ("reference", REFERENCE))[boot % 2]]
        for case_id in [format_case_id("publish", {"count": 200, "turn": n}) for n in range(cases)]
        for metric in metrics
    ]
    described = [MeasuredBoard(board, "esp32", "physical", conditions) for board in boards]
    run_id = f"{started:%Y%m%dT%H%M%SZ}-nightly-{'-'.join(filter(None, [product, rack]))}"
    facts = {"commit": f"{number:040x}", "product": product, "trigger": "nightly", "suite": "nightly"}
    return summary_of(run_id, rack, boot_values=build(described, images, points), **facts)


def summary_of(run_id: str, rack: str, started_utc: str = "", **facts: Any) -> Summary:
    """Return what the history keeps of a run; ``facts`` are its fields that are not the usual."""
    usual = {"suite": "quick", "trigger": "local", "commit": "", "dirty": False}
    head = {"run_id": run_id, "started_utc": started_utc or time_in(run_id), "rack": rack}
    return Summary(schema=SCHEMA_VERSION, **{**head, **usual, **facts})


def values_in(run: Summary) -> BootValues:
    """Return the boot values of a run that has some."""
    assert run.boot_values
    return run.boot_values


def scaled(run: Summary, factor: int) -> Summary:
    """Return the run with each value that often."""
    held = values_in(run)
    values = tuple(None if value is None else value * factor for value in held.values)
    return replace(run, boot_values=replace(held, values=values))


def _measured(chance: np.random.RandomState, metric: str) -> tuple[float, int, int]:
    """Return value, samples and hits: of what ends with _ratio one in twenty is not 0."""
    if metric.endswith("_ratio"):
        hits = int(chance.random_sample() < 0.05)
        return hits / 200, 200, hits
    if chance.random_sample() < 0.001:
        return float("inf"), 200, 11
    return float(round(chance.normal(7000.0, 200.0) * 20) / 20), 200, 0
