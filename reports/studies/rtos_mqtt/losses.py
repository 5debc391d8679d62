# SPDX-License-Identifier: Apache-2.0
"""Who lost messages, and the gaps that the subscriber saw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hil.base import special
from hil.metrics.stats import Interval
from hil.model import RunRecord
from hil.network.ledger.files import LedgerCounts, counts_of, total_of
from hil.network.ledger.points import OWNERS, Owner
from hil.reports.studies.declaration import Study
from hil.reports.studies.document import Table, number
from hil.reports.studies.estimate import ALPHA, NOTHING, Estimate
from hil.reports.studies.layout import lay_out
from hil.reports.studies.records import BoardRun, boots, greatest, grouped, whole, word
from hil.reports.studies.rtos_mqtt.messages import (
    BENCH,
    boot_mean,
    case_name,
    facts_by_boot,
    messages_of,
    rate,
    total,
    transport,
)

HOTSPOT = "hotspot"
_GAPLESS_US = 500_000
DEVICE = (Owner.DEVICE_CALL, Owner.DEVICE_TCP)
NETWORK = (Owner.ACCESS_POINT, Owner.BROKER_IN)


def ledger_of(records: Sequence[RunRecord]) -> LedgerCounts | None:
    """Return what the ledgers of the records come to; None where none was kept."""
    found = [counts for record in records if (counts := counts_of(record.environment.get("peer", {})))]
    return total_of(found) if found else None


def undisturbed(run: BoardRun) -> list[RunRecord]:
    """Return the records in which nobody planted a fault; the hotspot's are among them."""
    return [record for record in run.of(BENCH) if word(record, "fault") == "none"]


def on_hotspot(run: BoardRun) -> list[RunRecord]:
    """Return the records on the air that stands in for the study's hotspot."""
    return [record for record in undisturbed(run) if word(record, "air") == HOTSPOT]


def on_rack(run: BoardRun) -> list[RunRecord]:
    """Return the records on the run's own air, without a planted fault."""
    return [record for record in undisturbed(run) if word(record, "air") == "rack"]


def loss_table(study: Study, run: BoardRun) -> Table | None:
    """Return the losses by owner: of each case with a fault or on the hotspot, and of all others."""
    planted = [record for record in run.of(BENCH) if word(record, "fault") != "none"]
    groups = {"all on the rack's air": on_rack(run)}
    for others in (on_hotspot(run), planted):
        groups |= grouped(others, case_name)
    lines = [
        {"case": name, "sent": counts.sent, "arrived": counts.arrived, "lost": counts.lost_count}
        | {owner.word: counts.lost[owner] for owner in OWNERS if owner}
        | {"duplicates": counts.duplicates, "recovery_us": greatest(records, "recovery_us")}
        | {"boots": boots(records)}
        for name, records in groups.items()
        if (counts := ledger_of(records))
    ]
    return lay_out(study, "losses", lines, notes=_recoveries(lines))


def _recoveries(data: Sequence[Mapping[str, object]]) -> tuple[str, ...]:
    """Say how long it took after a planted fault until messages arrived again."""
    found = [(row["case"], value) for row in data if isinstance(value := row["recovery_us"], int | float)]
    if not found:
        return ()
    told = "; ".join(f"{case}: {number(value / 1e6)} s" for case, value in found)
    return (f"from the last fault's end to the next message, at the most: {told}",)


def stream_s(record: RunRecord) -> float:
    """Return for how long a record's messages were planned."""
    found = messages_of([record])
    return (found[-1].planned_us - found[0].planned_us) / 1e6 if len(found) > 1 else 0.0


def gaps_a_minute(records: Sequence[RunRecord], alpha: float = ALPHA) -> Estimate:
    """Return how many gaps of more than 1 s the subscriber saw a minute, with Poisson's exact bounds."""
    counted = [record for record in records if total([record], "gaps_over_1s_count") is not None]
    minutes = sum(map(stream_s, counted)) / 60
    if not minutes:
        return Estimate(0, 1)
    count = total(counted, "gaps_over_1s_count") or 0
    bounds = poisson_interval(count, alpha)
    return Estimate(count, 0, count / minutes, bounds.low / minutes, bounds.high / minutes)


def poisson_interval(count: int, alpha: float) -> Interval:
    """Bound the mean of a number that was counted once (Garwood), each side at ``alpha``."""
    low = special.gammaincinv(count, alpha) if count else 0.0
    return Interval(low, special.gammainccinv(count + 1, alpha))


def gapless(records: Iterable[RunRecord]) -> tuple[RunRecord, ...]:
    """Return the records whose plan is steady, without a gap of 1 s in it."""
    return tuple(
        record
        for record in records
        if word(record, "schedule") == "periodic"
        and whole(record, "interval_us") <= _GAPLESS_US
        and not whole(record, "hold_us")
    )


def gap_table(study: Study, run: BoardRun) -> Table | None:
    """Return the gaps at the subscriber, on the hotspot and on the rack's own air."""
    groups = {"on the rack's air": gapless(on_rack(run)), **grouped(gapless(on_hotspot(run)), case_name)}
    lines = [
        {
            "case": name,
            "gaps_over_1s": found.n,
            "a_minute": found,
            "longest_us": greatest(records, "gap_longest_us"),
        }
        | {"interarrival_cv": over_boots(facts_by_boot(records, "interarrival_cv"))}
        | {"retransmissions": total(records, "ap_retransmission_count"), "boots": boots(records)}
        for name, records in groups.items()
        if (found := gaps_a_minute(records)).value is not None
    ]
    return lay_out(study, "gaps", lines)


UP, DOWN = "ap_up", "broker_out"  # from the board at the access point, from the broker to the subscriber
_SWITCHES = ("nodelay", "broker_nodelay", "subscriber_nodelay")
_FASTEST_US = 10_000  # slower than this a segment is acknowledged before the next publish is due


@dataclass(frozen=True)
class Burst:
    """Publishes that came so close together that they count as one: how many bursts, the largest in bytes."""

    count: int
    largest_bytes: int


def burst_groups(run: BoardRun) -> dict[str, list[RunRecord]]:
    """Return the records that publish faster than a segment is acknowledged, by their three switches."""
    fast = [record for record in run.of(BENCH) if 0 < whole(record, "interval_us") < _FASTEST_US]
    quiet = [record for record in fast if word(record, "fault") == "none" and word(record, "air") == "rack"]
    ordered = sorted(quiet, key=lambda record: [whole(record, switch) for switch in _SWITCHES])
    return grouped(ordered, _switches)


def _switches(record: RunRecord) -> str:
    """Name a case by who sends at once, in the order of the switches: "on, off, on"."""
    return ", ".join("off" if whole(record, switch) == 0 else "on" for switch in _SWITCHES)


def per_segment(records: Sequence[RunRecord], where: str) -> dict[int, float]:
    """Return publishes by segment that holds any, by boot; ``where`` is UP or DOWN."""
    publishes = facts_by_boot(records, f"{where}_publishes_count")
    segments = facts_by_boot(records, f"{where}_publish_segments_count")
    return {boot: publishes[boot] / segments[boot] for boot in publishes if segments.get(boot)}


def over_boots(found: dict[int, float]) -> Estimate:
    """Return the mean of a figure of each boot."""
    return boot_mean(list(found.values()), list(found)) if found else NOTHING


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


def segment_table(study: Study, run: BoardRun) -> Table | None:
    """Return publishes a segment from the board and towards the subscriber, by the three switches."""
    lines = []
    for name, records in burst_groups(run).items():
        found = [burst for record in records if (burst := bursts_of(record))]
        line: dict[str, object] = {"case": name}
        for way, where in (("up", UP), ("down", DOWN)):
            line[f"{way}_per_segment"] = over_boots(per_segment(records, where))
            line[f"{way}_most"] = greatest(records, f"{where}_publishes_per_segment_max")
        delays = [over_boots(facts_by_boot(records, f"{where}_ack_delay_p50_us")) for where in (UP, DOWN)]
        line["acknowledged"] = " / ".join(
            number(None if one.value is None else one.value / 1000) for one in delays
        )
        line |= {"up_ack_delay_p50_us": delays[0], "down_ack_delay_p50_us": delays[1]}
        line["bursts"] = sum(burst.count for burst in found) if found else None
        line["largest_bytes"] = max((burst.largest_bytes for burst in found), default=None)
        lines.append(line | {"boots": boots(records)})
    if not lines:
        return None
    first = next(iter(burst_groups(run).values()))[0]
    sent = f"{transport(first)}, {rate(first)}, {whole(first, 'payload_bytes')} B"
    return lay_out(study, "bursts", lines, sent=sent, apart=f"{gap_us(first) / 1000:g}")
