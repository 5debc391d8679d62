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
INDEX = {metric.name: index for index, metric in enumerate(METRICS)}

THROUGHPUT_INTERVALS = 10  # a boot
THROUGHPUT_SIGMA = 0.10  # of one interval, log
DATAGRAMS = 1000  # a boot
LOSS_SHARE = 0.01
LOSS_SIGMA = 0.3  # of a boot's loss rate, log
LOSS_PER_OFFSET = 3.0  # a boot that is 10 % slow loses 33 % more


@dataclass(frozen=True)
class Effect:
    """What the candidate does to ``publish`` (loss: to ``stream``), and the metric that should tell."""

    name: str
    metric: str = ""
    slower: float = 0.0
    tail: float = 1.0
    spikes: float = 1.0
    loss: float = 1.0

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
TAIL = Effect("tail stretched by a third", "publish/tail5", tail=4 / 3)
SPIKES = Effect("spikes twice as frequent", "publish/tail5", spikes=2.0)
LOSS = Effect("loss rate doubled", "stream/loss", loss=2.0)
EFFECTS = (MEDIAN_5, MEDIAN_10, MEDIAN_20, TAIL, SPIKES, LOSS)
