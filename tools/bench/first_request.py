# SPDX-License-Identifier: Apache-2.0
"""What the first request after a reconnect costs more than the ones after it, and where."""

from __future__ import annotations

from collections.abc import Sequence

from hil.metrics.stats import quantile
from hil.model import Series
from tools.bench.figure import Figure
from tools.bench.peer_case import measure_with_peer
from tools.bench.workbench import Workbench

WHO = ("both", "requester", "board", "none")
READS = 10
TURNS = 20
SECOND_PHASE = 2
PARTS = (
    ("DNS", "dns_us"),
    ("TCP", "tcp_us"),
    ("TLS", "tls_us"),
    ("HTTP", "http_us"),
)
BEFORE = (
    ("requester: TCP", "connect_us"),
    ("requester: CONNECT → CONNACK", "connack_us"),
    ("requester: SUBSCRIBE → SUBACK", "suback_us"),
    ("board: until CONNACK", "board_connack_us"),
    ("board: SUBSCRIBE → SUBACK", "board_suback_us"),
)
Row = dict[str, int]


def first_request(bench: Workbench, *, short: bool) -> Figure:
    """Compare the first request after a reconnect with the k-th, by who reconnected, in turns in one run."""
    found: dict[str, list[Row]] = {who: [] for who in WHO}
    turns = 1 if short else TURNS
    for _ in range(turns):
        for who in WHO:
            found[who] += _rows(_measure(bench, who))
    firsts = {who: [row for row in found[who] if row["read"] == 1] for who in WHO}
    later = {who: [row for row in found[who] if row["read"] > 1] for who in WHO}
    rows = [
        ("first request", *(_p50(firsts[who], "rtt_us") for who in WHO)),
        (f"2nd to {READS}th request", *(_p50(later[who], "rtt_us") for who in WHO)),
        ("ratio, turn by turn", *(_ratio(found[who]) for who in WHO)),
        *(
            (f"{name}: first / later", *(_both(firsts[who], later[who], key) for who in WHO))
            for name, key in PARTS
        ),
        *((f"before it, {name}", *(_p50(firsts[who], key) for who in WHO)) for name, key in BEFORE),
    ]
    note = (
        f"p50 of {turns} firsts and {turns * (READS - 1)} others, the ratio with its quartiles; HTTPS with "
        "keep-alive, a resumed session, a name to look up; MQTT without TLS; perfect air, virtual. What "
        "comes before a request is in no RTT."
    )
    title = "What the first request after a reconnect costs (µs), by who reconnected"
    return Figure(title, ("", *WHO), rows, note)


def _measure(bench: Workbench, who: str) -> Series:
    overrides = {"profile": "agentoptions", "reconnect": who, "resolve": "name"}
    reads = {"reads": 1, "reads_after_reconnect": READS}
    return measure_with_peer(bench, "http_gateway", **overrides, **reads).series


def _rows(series: Series) -> list[Row]:
    """Return the second phase, first request first. Raises ValueError where a request failed."""
    rows = [
        dict(zip(series.columns, values, strict=True))
        for values in zip(*series.columns.values(), strict=True)
    ]
    if any(row["outcome"] for row in rows):
        raise ValueError(f"requests failed: outcomes {[row['outcome'] for row in rows]}")
    return [row for row in rows if row["phase"] == SECOND_PHASE]


def _median(rows: Sequence[Row], name: str) -> float:
    return quantile([row[name] for row in rows], 0.5)


def _p50(rows: Sequence[Row], name: str) -> str:
    return f"{_median(rows, name):.0f}"


def _both(firsts: Sequence[Row], later: Sequence[Row], name: str) -> str:
    return f"{_p50(firsts, name)} / {_p50(later, name)}"


def _ratio(rows: Sequence[Row]) -> str:
    """Return the first request against the median of its own turn's later ones: p50 (p25 to p75)."""
    turns = [rows[start : start + READS] for start in range(0, len(rows), READS)]
    ratios = [turn[0]["rtt_us"] / _median(turn[1:], "rtt_us") for turn in turns]
    low, middle, high = (quantile(ratios, share) for share in (0.25, 0.5, 0.75))
    return f"{middle:.1f} ({low:.1f} to {high:.1f})"
