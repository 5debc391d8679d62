# SPDX-License-Identifier: Apache-2.0
"""How a metric is called where a person reads it."""

from __future__ import annotations

import pytest

from hil.metrics.words import in_words, metric_words


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("publish_latency_p95_us", ("publish latency", "p95", "us")),
        ("switch_p99_9_ns", ("switch", "p99.9", "ns")),
        ("publish_failed_ratio", ("publish failed", "", "ratio")),
        ("heap_min_bytes", ("heap min", "", "bytes")),
        ("p95_us", ("p95", "", "us")),
        ("odd", ("odd", "", "")),
    ],
)
def test_a_metrics_name_is_taken_apart(metric: str, words: tuple[str, str, str]) -> None:
    """The last word is the unit, the one before it may be a statistic, the rest is the quantity."""
    found = metric_words(metric)
    assert found == words


@pytest.mark.parametrize(
    ("metric", "bench", "said"),
    [
        ("publish_latency_p95_us", "publish", "publish latency p95"),
        ("sustained_p50_us", "hartstone", "hartstone sustained p50"),
        ("rtt_p99_9_us", "http_gateway", "http gateway rtt p99.9"),
        ("throughput_mbps", "throughput", "throughput"),
    ],
)
def test_a_bench_is_named_once(metric: str, bench: str, said: str) -> None:
    """The bench stands before what it measures, unless the metric begins with its name."""
    assert in_words(metric, bench) == said
