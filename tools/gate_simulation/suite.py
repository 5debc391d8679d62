# SPDX-License-Identifier: Apache-2.0
"""The simulated pull request: four cases that share boots, ten metrics that may block it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

CASES = ("publish", "request", "connect", "stream")
LATENCY_CASES = CASES[:3]

# Cases of a group are measured together, in n/20 s, as long as one of their metrics is open.
GROUPS = (("publish", "request"), ("connect", "stream"))


@dataclass(frozen=True)
class Metric:
    """``tolerance`` and ``min_effect`` are relative on the scale ``log``, on ``count`` datagrams of 1000."""

    case: str
    statistic: str
    tolerance: float
    min_effect: float
    scale: str = "log"

    @property
    def name(self) -> str:
        return f"{self.case}/{self.statistic}"


METRICS = (
    Metric("publish", "median", 0.10, 0.03),
    Metric("publish", "p95", 0.20, 0.05),
    Metric("publish", "tail5", 0.20, 0.05),
    Metric("request", "median", 0.10, 0.03),
    Metric("request", "p95", 0.20, 0.05),
    Metric("request", "tail5", 0.20, 0.05),
    Metric("connect", "median", 0.10, 0.03),
    Metric("connect", "tail5", 0.20, 0.05),
    Metric("stream", "throughput", 0.10, 0.03),
    Metric("stream", "loss", 10.0, 3.0, scale="count"),
)
PUBLISH = CASES.index("publish")
INDEX = {metric.name: index for index, metric in enumerate(METRICS)}

THROUGHPUT_INTERVALS = 10  # a boot
THROUGHPUT_SIGMA = 0.10  # of one interval, log
DATAGRAMS = 1000  # a boot
LOSS_SHARE = 0.01
LOSS_SIGMA = 0.3  # of a boot's loss rate, log
LOSS_PER_OFFSET = 3.0  # a boot that is 10 % slow loses 33 % more


@dataclass(frozen=True)
class Effect:
    """What the candidate does to ``publish`` (loss: to ``stream``), and the metric that should tell.

    ``slower`` is so in a share ``boots`` of the candidate's boots. ``loss`` is a factor of the loss rate,
    ``loss_share`` a rate in its place; it and ``slower`` are so on the first ``boards`` (None: on all).
    """

    name: str
    metric: str = ""
    slower: float = 0.0
    tail: float = 1.0
    spikes: float = 1.0
    loss: float = 1.0
    loss_share: float | None = None
    boards: int | None = None
    boots: float = 1.0

    @property
    def offset(self) -> float:
        return float(np.log1p(self.slower))

    @property
    def unchanged(self) -> bool:
        return not self.metric


UNCHANGED = Effect("unchanged")
MEDIAN_5 = Effect("+5 %", "publish/median", slower=0.05)
MEDIAN_10 = Effect("+10 %", "publish/median", slower=0.10)
MEDIAN_20 = Effect("+20 %", "publish/median", slower=0.20)
FASTER = Effect("−10 %", "publish/median", slower=-0.10)
TAIL = Effect("spikes 1.5 times as long", "publish/tail5", tail=1.5)
SPIKES = Effect("spikes twice as frequent", "publish/tail5", spikes=2.0)
LOSS = Effect("loss rate doubled", "stream/loss", loss=2.0)
ONE_BOARD, ONE_BOARD_30 = (
    Effect(f"+{percent} % on one board", "publish/median", slower=percent / 100, boards=1)
    for percent in (15, 30)
)
ONE_CHIP = Effect("+15 % on all boards of a chip", "publish/median", slower=0.15, boards=2)
QUARTER = Effect("a quarter of boots twice as slow", "publish/median", slower=1.0, boots=0.25)
FAILURES = tuple(
    Effect(f"{share:g} % fail", "stream/loss", loss_share=share / 100) for share in (0.5, 2.0, 100.0)
)
ALL_FAIL = FAILURES[-1]
ONE_BOARD_FAILS = Effect("100 % fail on one board", "stream/loss", loss_share=1.0, boards=1)
EFFECTS = (MEDIAN_5, MEDIAN_10, MEDIAN_20, TAIL, SPIKES, LOSS)
