# SPDX-License-Identifier: Apache-2.0
"""The gate over a stream: throughput, shares of datagrams, exact sizes."""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hil.gate import judge
from hil.model import SeriesVerdict, Verdict
from hil.thresholds import load
from tests.gate.compare_records import figure
from tests.make_records import publish_record

TODAY = datetime.date(2026, 11, 21)
Columns = dict[str, tuple[int, ...]]

STREAM = """\
schema: 1
bench: stream
parameters:
  protocol: {default: tcp, choices: [tcp, udp]}
suites: {quick: [{protocol: [tcp, udp]}]}
metrics:
  throughput_mbps: {of: received_bps, statistic: batch_mean, direction: higher, blocking: true}
  lost_ratio: {of: lost_count, per: expected_count, statistic: share, direction: lower, blocking: true,
               case: {protocol: udp}}
  image_bytes: {of: image_bytes, statistic: max, scale: exact, direction: lower, blocking: true}
policy: {min_samples: 1}
limits:
  - {where: {metric: throughput_mbps}, abs_min_mbps: 19, why: measured 20, since: {date: 2026-11-21}}
  - {where: {metric: lost_ratio}, abs_max_percent: 1, why: measured 0, since: {date: 2026-11-21}}
  - {where: {metric: image_bytes}, abs_max_kib: 1024, why: the slot's size, since: {date: 2026-11-21}}
"""


def stream_verdict(
    tmp_path: Path,
    *,
    mbps: float = 20.0,
    lost: Sequence[int] = (),
    image: int = 1_000_000,
    protocol: str = "udp",
) -> Verdict:
    """Judge 80 intervals of a stream at ``mbps``; ``lost`` datagrams of 80 in each of the first intervals."""
    chance = random.Random(1)
    rows = 80
    columns: Columns = {
        "received_bps": tuple(round(chance.gauss(mbps, 0.3) * 1e6) for _ in range(rows)),
        "expected_count": (80,) * rows,
        "lost_count": (*lost, *(0,) * (rows - len(lost))),
        "image_bytes": (image,) * rows,
    }
    return judge_columns(tmp_path, columns, protocol)


def judge_columns(tmp_path: Path, columns: Columns, protocol: str = "tcp") -> Verdict:
    (tmp_path / "stream.yaml").write_text(STREAM)
    read = load("stream", tmp_path, today=TODAY)
    case = read.case({"protocol": protocol})
    record = replace(
        publish_record(), bench="stream", parameters=case.parameters, columns=columns, warmup_rows=0
    )
    return judge([record], {"stream": read})


def series(found: Verdict, metric: str) -> SeriesVerdict:
    return next(item for item in found.series if item.metric == metric)


def test_a_slower_stream_blocks_and_says_by_how_much_less(tmp_path: Path) -> None:
    """Throughput a tenth below its limit breaks it; at its limit, or a little above, it does not."""
    found = series(stream_verdict(tmp_path, mbps=17.1), "throughput_mbps")
    assert (found.outcome, found.blocking) == ("regressed", True)
    wanted = r"17\.\d Mbit/s \[1\d\.\d, 17\.\d\] .* at least 19 Mbit/s by 1\.\d+ Mbit/s \(−10 %\)"
    assert re.search(wanted, found.sentence), found.sentence
    kept = series(stream_verdict(tmp_path, mbps=19.0), "throughput_mbps")
    assert (kept.outcome, kept.blocking) == ("pass", True)
    for part, outcome in ((1.05, "regressed"), (0.9, "pass")):
        lower = 19.0 - (figure(kept.value) - 19.0) - part * figure(kept.smallest_excess)
        assert series(stream_verdict(tmp_path, mbps=lower), "throughput_mbps").outcome == outcome


def test_one_burst_of_losses_does_not_block_and_steady_losses_do(tmp_path: Path) -> None:
    """Two per cent lost in two intervals are a burst; two per cent of each interval break a limit of one. A
    stream without datagrams has no share of lost ones, not an undecided one."""
    burst = series(stream_verdict(tmp_path, lost=[64, 64]), "lost_ratio")
    assert (burst.outcome, burst.note, burst.blocking) == ("pass", "marginal", True)
    assert "2.00 % [0.0" in burst.sentence
    assert "128 of 6,400, 1 boot" in burst.sentence
    steady = series(stream_verdict(tmp_path, lost=[1, 2, 2, 1, 2, 1, 2, 2] * 10), "lost_ratio")
    assert steady.outcome == "regressed"
    assert (steady.samples, steady.failed) == (6400, 130)
    of_tcp = [item.metric for item in stream_verdict(tmp_path, protocol="tcp").series]
    assert of_tcp == ["throughput_mbps", "image_bytes"]


@pytest.mark.parametrize(("image", "outcome"), [(1 << 20, "pass"), ((1 << 20) + 1, "regressed")])
def test_an_exact_figure_is_its_own_interval(tmp_path: Path, image: int, outcome: str) -> None:
    """A size is no estimate: it keeps its limit, or breaks it by a byte, and needs no number of samples."""
    found = series(stream_verdict(tmp_path, image=image), "image_bytes")
    assert (found.outcome, found.blocking, found.smallest_excess) == (outcome, True, None)
    assert (found.low, found.value, found.high) == (image, image, image)


def test_one_row_of_an_exact_figure_is_enough(tmp_path: Path) -> None:
    """With min_samples: 1 a single row is judged; the mean of so few is not bounded, and does not block."""
    found = judge_columns(tmp_path, {"received_bps": (1,), "image_bytes": (1 << 21,)})
    assert series(found, "image_bytes").outcome == "regressed"
    assert "1 sample, 1 boot" in series(found, "image_bytes").sentence
    assert series(found, "throughput_mbps").outcome == "pass"
    assert series(found, "throughput_mbps").note == "marginal"


def test_a_stall_of_the_whole_measured_stretch_is_undecided_and_a_slow_stream_is_not(tmp_path: Path) -> None:
    """Nothing received after the warm-up is one observation; as little of it in every row is proof."""
    for bps, outcome in ((0, "undecided"), (1_000_000, "regressed")):
        found = series(
            judge_columns(tmp_path, {"received_bps": (bps,) * 80, "image_bytes": (1,) * 80}),
            "throughput_mbps",
        )
        assert found.outcome == outcome
        assert ("the stream stood still" in found.sentence) == (bps == 0)
