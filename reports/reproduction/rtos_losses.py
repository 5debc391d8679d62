"""Who lost messages, and the gaps that the subscriber saw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import scipy.special

from hil.metrics.stats import Interval
from hil.model import RunRecord
from hil.network.ledger import OWNERS, Owner
from hil.network.ledger.words import Counts, counts_of, total_of
from reports.reproduction.document import NONE, Table, number
from reports.reproduction.estimate import ALPHA, Estimate
from reports.reproduction.records import BoardRun, boots, whole, word
from reports.reproduction.rtos_bursts import over_boots
from reports.reproduction.rtos_messages import (
    BENCH,
    by_name,
    case_name,
    facts_by_boot,
    greatest,
    messages_of,
    total,
)

HOTSPOT = "hotspot"
_GAPLESS_US = 500_000
DEVICE = (Owner.DEVICE_CALL, Owner.DEVICE_TCP)
NETWORK = (Owner.ACCESS_POINT, Owner.BROKER_IN)
_LOSSES = tuple(owner for owner in OWNERS if owner)
_HEADS = {
    Owner.DEVICE_CALL: "device call",
    Owner.DEVICE_TCP: "device TCP",
    Owner.ACCESS_POINT: "access point",
    Owner.BROKER_IN: "broker in",
    Owner.BROKER_OUT: "broker out",
    Owner.SUBSCRIBER: "subscriber",
    Owner.UNDETERMINED: "undetermined",
}


def ledger_of(records: Sequence[RunRecord]) -> Counts | None:
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


def loss_table(run: BoardRun) -> Table | None:
    """Return the losses by owner: of each case with a fault or on the hotspot, and of all others."""
    planted = [record for record in run.of(BENCH) if word(record, "fault") != "none"]
    groups = {"all on the rack's air": tuple(on_rack(run))}
    for others in (on_hotspot(run), planted):
        groups |= by_name(others, case_name)
    rows, data = [], []
    for name, records in groups.items():
        counts = ledger_of(records)
        if counts is None:
            continue
        owners = [counts.lost[owner] for owner in _LOSSES]
        recovery = greatest(records, "recovery_us")
        cells = (f"{counts.sent:,}", f"{counts.lost_count:,}", *(f"{count:,}" for count in owners))
        rows.append((name, *cells, str(boots(records))))
        data.append(
            {"case": name, "sent": counts.sent, "arrived": counts.arrived, "lost": counts.lost_count}
            | {owner.word: counts.lost[owner] for owner in _LOSSES}
            | {"duplicates": counts.duplicates, "recovery_us": recovery, "boots": boots(records)}
        )
    if not rows:
        return None
    columns = ("", "sent", "lost", *_HEADS.values(), "boots")
    notes = (
        "lost: by the first point where a message is missing, of those that somebody watched; undetermined "
        "where nobody did, or a capture dropped frames. Device call: refused, or never made in time; "
        "device TCP: never transmitted; access point: transmitted and never captured behind the air; "
        "broker out: came to the broker's interface and never left it, also because its connection was gone",
        *_recoveries(data),
    )
    return Table("losses", "Messages lost, by who lost them", columns, tuple(rows), notes, tuple(data))


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
    low = float(scipy.special.gammaincinv(count, alpha)) if count else 0.0
    return Interval(low, float(scipy.special.gammainccinv(count + 1, alpha)))


def gapless(records: Iterable[RunRecord]) -> tuple[RunRecord, ...]:
    """Return the records whose plan is steady, without a gap of 1 s in it."""
    return tuple(
        record
        for record in records
        if word(record, "schedule") == "periodic"
        and whole(record, "interval_us") <= _GAPLESS_US
        and not whole(record, "hold_us")
    )


def gap_table(run: BoardRun) -> Table | None:
    """Return the gaps at the subscriber, on the hotspot and on the rack's own air."""
    groups = {"on the rack's air": gapless(on_rack(run)), **by_name(gapless(on_hotspot(run)), case_name)}
    rows, data = [], []
    for name, records in groups.items():
        found = gaps_a_minute(records)
        if found.value is None:
            continue
        longest = greatest(records, "gap_longest_us")
        spread = over_boots(facts_by_boot(records, "interarrival_cv"))
        again = total(records, "ap_retransmission_count")
        cells = (f"{found.n:,}", found.text, NONE if longest is None else number(longest / 1e6), spread.short)
        rows.append((name, *cells, NONE if again is None else f"{again:,}", str(boots(records))))
        data.append(
            {"case": name, "gaps_over_1s": found.n, "a_minute": found.data, "longest_us": longest}
            | {"interarrival_cv": spread.data, "retransmissions": again, "boots": boots(records)}
        )
    if not rows:
        return None
    columns = ("", "gaps > 1 s", "a minute", "longest, s", "spread", "sent again", "boots")
    notes = (
        "published: gaps of 1 to 4 s in every configuration, over a 4G phone's hotspot; ours: cases that "
        "publish twice a second or more often, steadily and with no mutex held, since at 1 Hz a gap of 1 s "
        "is the period",
        "gaps: between two messages at the subscriber's application, with Poisson's bounds; spread: "
        "standard deviation of the times between arrivals over their mean; sent again: retransmissions at "
        "the access point",
    )
    return Table("gaps", "Gaps at the subscriber", columns, tuple(rows), notes, tuple(data))
