"""How many publishes share a TCP segment, by who has Nagle's algorithm on, and how they arrive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hil.model import RunRecord
from reports.reproduction.document import NONE, Table, number
from reports.reproduction.estimate import ALPHA, NOTHING, Estimate
from reports.reproduction.records import BoardRun, boots, whole, word
from reports.reproduction.rtos_messages import (
    BENCH,
    boot_mean,
    by_name,
    facts_by_boot,
    greatest,
    paired,
    rate,
    transport,
)

UP, DOWN = "ap_up", "broker_out"  # from the board at the access point, from the broker to the subscriber
_SWITCHES = ("nodelay", "broker_nodelay", "subscriber_nodelay")
_FASTEST_US = 10_000  # slower than this a segment is acknowledged before the next publish is due


@dataclass(frozen=True)
class Burst:
    """Publishes that came so close together that they count as one: how many bursts, the largest in bytes."""

    count: int
    largest_bytes: int


def burst_groups(run: BoardRun) -> dict[str, tuple[RunRecord, ...]]:
    """Return the records that publish faster than a segment is acknowledged, by their three switches."""
    fast = [record for record in run.of(BENCH) if 0 < whole(record, "interval_us") < _FASTEST_US]
    quiet = [record for record in fast if word(record, "fault") == "none" and word(record, "air") == "rack"]
    ordered = sorted(quiet, key=lambda record: [whole(record, switch) for switch in _SWITCHES])
    return by_name(ordered, _switches)


def _switches(record: RunRecord) -> str:
    """Name a case by who sends at once, in the order of the switches: "on, off, on"."""
    return ", ".join("off" if whole(record, switch) == 0 else "on" for switch in _SWITCHES)


def per_segment(records: Sequence[RunRecord], where: str) -> dict[int, float]:
    """Return publishes by segment that holds any, by boot; ``where`` is UP or DOWN."""
    publishes = facts_by_boot(records, f"{where}_publishes_count")
    segments = facts_by_boot(records, f"{where}_publish_segments_count")
    return {boot: publishes[boot] / segments[boot] for boot in publishes if segments.get(boot)}


def over_boots(found: dict[int, float], alpha: float = ALPHA) -> Estimate:
    """Return the mean of a figure of each boot."""
    return boot_mean(list(found.values()), list(found), alpha) if found else NOTHING


def gap_us(record: RunRecord) -> int:
    """Return within which arrivals are one burst: half of what was planned between two."""
    return whole(record, "interval_us") // 2


def bursts_of(record: RunRecord) -> Burst | None:
    """Return the bursts at the subscriber's application; None where it noted no times."""
    if "arrived_us" not in record.columns:
        return None
    rows = range(record.warmup_rows, record.rows)
    times = sorted(at for row in rows if (at := record.columns["arrived_us"][row]))
    count, size, largest = 0, 0, 0
    for n, at in enumerate(times):
        joins = n > 0 and at - times[n - 1] < gap_us(record)
        size = size + 1 if joins else 1
        count += size == 2
        largest = max(largest, size)
    return Burst(count, largest * whole(record, "payload_bytes") if largest > 1 else 0)


def segment_table(run: BoardRun) -> Table | None:
    """Return publishes a segment from the board and towards the subscriber, by the three switches."""
    rows, data = [], []
    for name, records in burst_groups(run).items():
        up, down = (over_boots(per_segment(records, where)) for where in (UP, DOWN))
        most = [greatest(records, f"{where}_publishes_per_segment_max") for where in (UP, DOWN)]
        delays = [over_boots(facts_by_boot(records, f"{where}_ack_delay_p50_us")) for where in (UP, DOWN)]
        found = [burst for record in records if (burst := bursts_of(record))]
        largest = max((burst.largest_bytes for burst in found), default=None)
        count = sum(burst.count for burst in found) if found else None
        counts = [NONE if value is None else f"{value:,.0f}" for value in (*most, count, largest)]
        acknowledged = " / ".join(map(_ms, delays))
        cells = (up.text, counts[0], down.text, counts[1], acknowledged)
        rows.append((name, *cells, counts[2], counts[3], str(boots(records))))
        data.append(
            {"case": name, "up_per_segment": up.data, "up_most": most[0], "down_per_segment": down.data}
            | {"down_most": most[1], "bursts": count, "largest_bytes": largest, "boots": boots(records)}
            | {"up_ack_delay_p50_us": delays[0].data, "down_ack_delay_p50_us": delays[1].data}
        )
    if not rows:
        return None
    first = next(iter(burst_groups(run).values()))[0]
    columns = (
        "at board, broker, subscriber",
        "from board",
        "most",
        "to subscriber",
        "most",
        "ACK, ms",
        "bursts",
        "largest, B",
        "boots",
    )
    notes = (
        f"{transport(first)}, {rate(first)}, {whole(first, 'payload_bytes')} B: publishes a segment, from "
        "the board at the access point, and from the broker towards the subscriber; most: in one segment; "
        "ACK: median until what the board, or the broker, sent was acknowledged",
        f"bursts: messages that the subscriber noted less than {gap_us(first) / 1000:g} ms apart, half of "
        "what was planned; largest: their payloads together",
        "the subscriber's switch concerns what it sends itself, which is nothing but acknowledgements at "
        "QoS 0",
    )
    return Table(
        "bursts", "Publishes a segment, by who has TCP_NODELAY on", columns, tuple(rows), notes, tuple(data)
    )


def _ms(delay: Estimate) -> str:
    return number(None if delay.value is None else delay.value / 1000)


def effects(run: BoardRun, alpha: float = ALPHA) -> dict[str, Estimate]:
    """Return how many publishes a segment fewer TCP_NODELAY leaves, by who sets it; over boots.

    The other two switches are as they are: of several the pair with most boots.
    """
    groups = burst_groups(run)
    found = {}
    for who, switch, where in (("board", "nodelay", UP), ("broker", "broker_nodelay", DOWN)):
        pairs = []
        for records in groups.values():
            partner = groups.get(_switches(_turned_on(records[0], switch)), ())
            if whole(records[0], switch) == 0 and partner:
                pairs.append((per_segment(records, where), per_segment(partner, where)))
        if pairs:
            found[who] = paired(max(pairs, key=lambda pair: len(set(pair[0]) & set(pair[1]))), alpha)
    return found


def _turned_on(record: RunRecord, switch: str) -> RunRecord:
    return replace(record, parameters={**record.parameters, switch: 1})


def effect_table(run: BoardRun) -> Table | None:
    """Return what TCP_NODELAY takes off, at the board and at the broker."""
    found = {who: one for who, one in effects(run).items() if one.value is not None}
    if not found:
        return None
    rows = [(f"at the {who}", one.text, str(one.n)) for who, one in found.items()]
    data = tuple({"who": who, "fewer": one.data} for who, one in found.items())
    columns = ("TCP_NODELAY", "publishes a segment fewer", "boots")
    notes = ("with it against without it, in the same boots",)
    return Table("nodelay", "What TCP_NODELAY does to bursts", columns, tuple(rows), notes, data)
