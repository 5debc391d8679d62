# SPDX-License-Identifier: Apache-2.0
"""The claims of mqtt-qos about round trips against our records."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from hil.metrics.stats import ratio_interval
from hil.model import Fault, RunRecord
from hil.reports.studies.claims import CONTRADICTED, SUPPORTED, UNDECIDED, Finding, from_test
from hil.reports.studies.declaration import Claim
from hil.reports.studies.document import number
from hil.reports.studies.estimate import ALPHA, Estimate, above, share_text
from hil.reports.studies.mqtt_qos.echoes import BENCH, Echoes, by_setting, in_ms, plain, rate_text, size_text
from hil.reports.studies.mqtt_qos.faults import (
    CONNECT_CAUSES,
    broker_faults,
    connect_outages,
    duplicates,
    out_of_order,
)
from hil.reports.studies.mqtt_qos.impaired import collapses, limited, lossy, saturated, speed_text
from hil.reports.studies.mqtt_qos.wire import WAYS, by_payload, cost_of, first_segments, undisturbed
from hil.reports.studies.records import BoardRun, whole, word

NOTHING = Finding(UNDECIDED, "nothing of it was measured")
LEVELS = (0, 1, 2)
_KB, _MB = 1000, 1_000_000
_HUNDRED = 100
_CONSTANT = 0.25  # of the median: what values that are called equal may differ by, bounds included
_MILLISECONDS_MS = 100.0  # twice the largest that was published at 1 MB/s and more
_FIN_MESSAGES = 20  # as few as show a queue that grows, and would show it collapse
_BREAKS_OFF_PPM = 250_000
_GETS_THROUGH = 0.9  # of the messages: a transfer with fewer echoes broke off
_KBIT_10, _KBIT_100, _KBIT_1000 = 80, 800, 8000  # of 10 KB/s, 100 KB/s, 1 MB/s


def check(claim: Claim, run: BoardRun) -> Finding:
    """Return what becomes of a claim."""
    return (WIRE_CHECKS.get(claim.check) or _CHECKS[claim.check])(run)


def all_of(tests: Sequence[bool | None]) -> bool | None:
    """Return True where each is shown, False where one is shown not to be, None where that cannot be told."""
    if any(test is False for test in tests):
        return False
    return True if tests and all(tests) else None


def _pairs_alpha(pairs: int) -> float:
    """Return the alpha of each estimate where so many pairs are compared for one sentence."""
    return ALPHA / max(1, pairs)


def _rises_with_qos(run: BoardRun) -> Finding:
    found = by_payload(run)
    pairs = [
        (size, low, high)
        for size in sorted({size for size, _ in found})
        for low, high in pairwise(level for level in LEVELS if (size, level) in found)
        if found[size, low].p50().value is not None and found[size, high].p50().value is not None
    ]
    if not pairs:
        return NOTHING
    alpha = _pairs_alpha(len(pairs))
    tests = [above(found[size, high].p50(alpha), found[size, low].p50(alpha)) for size, low, high in pairs]
    words = [
        f"{size_text(size)}: {_levels({level: one for (own, level), one in found.items() if own == size})}"
        for size in sorted({size for size, _, _ in pairs})
    ]
    rises, falls = tests.count(True), tests.count(False)
    head = f"of {len(tests)} steps of QoS {rises} are provably up, {falls} provably down"
    return from_test(all_of(tests), f"{head}; p50 in ms at QoS 0 / 1 / 2, {'; '.join(words)}")


def _levels(found: Mapping[int, Echoes]) -> str:
    return " / ".join(found[level].p50().short if level in found else "–" for level in LEVELS)


def _falls_from_1_kb(run: BoardRun) -> Finding:
    found = by_payload(run)
    tests, words = [], []
    for level in LEVELS[1:]:
        small = {size: one for (size, own), one in found.items() if own == level and size <= _HUNDRED}
        large = {size: one for (size, own), one in found.items() if own == level and _KB <= size <= 1024}
        if not small or not large:
            continue
        before, after = small[max(small)].p50(ALPHA / 2), large[min(large)].p50(ALPHA / 2)
        tests.append(above(before, after))
        words.append(f"QoS {level}: {in_ms(before)} at {size_text(max(small))}, {in_ms(after)} at 1 KB")
    if not tests:
        return NOTHING
    nodelay = sorted({word(one, "nodelay") for one in plain(run)})
    note = "" if nodelay != ["1"] else "; ours has TCP_NODELAY set, so nothing waits below 1 KB"
    return from_test(all_of(tests), "; ".join(words) + note)


def _near(found: Sequence[Estimate]) -> bool | None:
    """Say whether medians lie within _CONSTANT of one another, bounds included; False where provably not."""
    values = [one.value for one in found if one.value is not None]
    if len(values) < len(found) or not all(map(math.isfinite, values)):
        return None
    reach = _CONSTANT * min(values)
    if max(one.high for one in found) - min(one.low for one in found) <= reach:
        return True
    return False if max(one.low for one in found) - min(one.high for one in found) > reach else None


def _constant_to_100(run: BoardRun) -> Finding:
    found = by_payload(run)
    sizes = sorted(size for size, level in found if level == 0 and size <= _HUNDRED)
    if len(sizes) < 2:
        return NOTHING
    alpha = _pairs_alpha(len(sizes))
    medians = [found[size, 0].p50(alpha) for size in sizes]
    words = "; ".join(f"{size_text(size)}: {in_ms(found[size, 0].p50())}" for size in sizes)
    return from_test(_near(medians), f"p50 at QoS 0, {words}; constant is within 25 %, bounds included")


def _equal_from_1_mb(run: BoardRun) -> Finding:
    found = {level: one for (size, level), one in by_payload(run).items() if size >= _MB}
    if len(found) < len(LEVELS):
        return NOTHING
    medians = [one.p50(ALPHA / len(LEVELS)) for one in found.values()]
    words = "; ".join(f"QoS {level}: {in_ms(one.p50())}, n {one.n}" for level, one in sorted(found.items()))
    return from_test(_near(medians), f"p50 at 1 MB, {words}; equal is within 25 %, bounds included")


def at_limit(run: BoardRun) -> dict[tuple[int, int], Echoes]:
    """Return the messages by limit (kbit/s, both ways the same) and QoS, at the slowest rate of each."""
    found: dict[tuple[int, int], Echoes] = {}
    both = [one for one in limited(run) if whole(one, "rate_up_kbit") == whole(one, "rate_down_kbit")]
    for (kbit, qos, _rate), own in by_setting(both, "rate_up_kbit", "qos", "interval_us").items():
        found[int(str(kbit)), int(str(qos))] = own  # ascending, so that the slowest rate remains
    return found


def _limit_raises(run: BoardRun) -> Finding:
    found = at_limit(run)
    fast = [kbit for kbit, _ in found if kbit >= _KBIT_1000]
    tests, words = [], []
    for level in LEVELS:
        if (_KBIT_10, level) not in found or (max(fast, default=0), level) not in found:
            continue
        slow, quick = (found[kbit, level].p50(ALPHA / 3) for kbit in (_KBIT_10, max(fast)))
        tests.append(above(slow, quick))
        words.append(f"QoS {level}: {in_ms(slow)} at 10 KB/s, {in_ms(quick)} at {speed_text(max(fast))}")
    return from_test(all_of(tests), "p50, " + "; ".join(words)) if tests else NOTHING


def _milliseconds_from_1_mb(run: BoardRun) -> Finding:
    found = {key: one for key, one in at_limit(run).items() if key[0] >= _KBIT_1000}
    if not found:
        return NOTHING
    alpha = _pairs_alpha(len(found))
    medians = {key: one.p50(alpha) for key, one in found.items()}
    below = [
        True if one.high < _MILLISECONDS_MS else False if one.low > _MILLISECONDS_MS else None
        for one in medians.values()
    ]
    words = "; ".join(
        f"{speed_text(kbit)}: {_levels({own: one for (at, own), one in found.items() if at == kbit})}"
        for kbit in sorted({kbit for kbit, _ in found})
    )
    return from_test(all_of(below), f"p50 in ms at QoS 0 / 1 / 2, {words}; milliseconds are below 100")


def _shark_fin(run: BoardRun) -> Finding:
    found = [one for one in saturated(run) if one.answered >= _FIN_MESSAGES]
    if not found:
        return Finding(UNDECIDED, "under no limit did enough messages wait in a queue that grows")
    falls, steps = sum(collapses(one.response_ms) for one in found), sum(one.answered - 1 for one in found)
    longest = max(ms for one in found for ms in one.response_ms if math.isfinite(ms)) / 1000
    return from_test(
        falls > 0,
        f"in {len(found)} limited cases the time from plan to echo grows, to {longest:.1f} s at the most; "
        f"{falls} of {steps} steps from one echo to the next are a fall of 1 s or more",
    )


def _qos_2_fastest(run: BoardRun) -> Finding:
    found = at_limit(run)
    if not all((_KBIT_100, level) in found for level in (0, 2)):
        return NOTHING
    one, two = (found[_KBIT_100, level].p50(ALPHA / 2) for level in (0, 2))
    intervals_us = {whole(found[_KBIT_100, level].records[0], "interval_us") for level in (0, 2)}
    if len(intervals_us) > 1:
        return Finding(UNDECIDED, "at 100 KB/s QoS 0 and 2 were not measured at the same rate")
    rate = rate_text(intervals_us.pop())
    return from_test(above(one, two), f"p50 at 100 KB/s and {rate}: QoS 0 {in_ms(one)}, QoS 2 {in_ms(two)}")


def at_loss(run: BoardRun, level: int) -> dict[int, Echoes]:
    """Return the messages of a QoS by the loss rate (ppm, independent, both ways the same)."""
    found = [
        one
        for one in lossy(run)
        if whole(one, "qos") == level and word(one, "loss_pattern") != "bursts"
        if whole(one, "loss_up_ppm") == whole(one, "loss_down_ppm")
    ]
    return {int(str(ppm)): own for (ppm,), own in by_setting(found, "loss_up_ppm").items()}


def _loss_raises(run: BoardRun) -> Finding:
    tests, words = [], []
    for level in LEVELS:
        found = at_loss(run, level)
        if len(found) < 2:
            continue
        low, high = min(found), max(found)
        medians = [found[ppm].p50(ALPHA / 3) for ppm in (low, high)]
        tests.append(above(medians[1], medians[0]))
        words.append(
            f"QoS {level}: {in_ms(medians[0])} at {low / 1e4:g} %, {in_ms(medians[1])} at {high / 1e4:g} %"
        )
    return from_test(all_of(tests), "p50, " + "; ".join(words)) if tests else NOTHING


def _breaks_off(run: BoardRun) -> Finding:
    tests, words = [], []
    for level in LEVELS:
        found = [one for ppm, one in at_loss(run, level).items() if ppm >= _BREAKS_OFF_PPM]
        answered, of = sum(one.answered for one in found), sum(one.n for one in found)
        if not of:
            continue
        bounds = ratio_interval(answered, of, ALPHA / 3)
        tests.append(True if bounds.high < _GETS_THROUGH else False if bounds.low >= _GETS_THROUGH else None)
        words.append(f"QoS {level}: {share_text(answered / of, bounds)} of {of}")
    if not tests:
        return NOTHING
    timeout = max(whole(one, "timeout_ms") for one in lossy(run)) / 1000
    head = f"echoes within {timeout:g} s at 25 % and more, of two hops"
    return from_test(all_of(tests), f"{head}, {'; '.join(words)}; fewer than 90 % is broken off")


_CHECKS: Mapping[str, Callable[[BoardRun], Finding]] = {
    "round-trip-rises-with-qos": _rises_with_qos,
    "faster-from-1-kb": _falls_from_1_kb,
    "qos-0-constant-to-100-b": _constant_to_100,
    "equal-from-1-mb": _equal_from_1_mb,
    "limit-raises-round-trip": _limit_raises,
    "milliseconds-from-1-mb-per-s": _milliseconds_from_1_mb,
    "shark-fin": _shark_fin,
    "qos-2-fastest-under-limit": _qos_2_fastest,
    "loss-raises-round-trip": _loss_raises,
    "loss-breaks-off-from-25-percent": _breaks_off,
}


_NEARLY = 0.05  # of a segment: what a first one may lack and still be as full as others
_SAME = 0.1  # of the bytes: what the answers to payloads may differ by and still be called independent


def _independent_of_payload(run: BoardRun) -> Finding:
    tests, words = [], []
    for qos in (0, 1, 2):
        found = {size: cost_of(own, qos) for (size, level), own in by_payload(run).items() if level == qos}
        answers = {
            size: (cost.acks or 0.0) + (cost.answers_frames or 0.0 if qos else 0.0)
            for size, cost in found.items()
            if cost.acks is not None
        }
        if len(answers) < 2:
            continue
        least, most = (
            min(answers, key=lambda size: answers[size]),
            max(answers, key=lambda size: answers[size]),
        )
        tests.append(answers[most] - answers[least] <= _SAME * answers[most])
        words.append(
            f"QoS {qos}: {number(answers[least])} B at {size_text(least)}, {number(answers[most])} B at "
            f"{size_text(most)}"
        )
    if not tests:
        return NOTHING
    head = "all that answers a message, TCP acknowledgements included"
    return from_test(all(tests), f"{head}, at the payloads with the least and the most, {'; '.join(words)}")


def _of_qos(run: BoardRun, qos: int) -> Echoes:
    return Echoes(tuple(record for record in undisturbed(run) if record.parameters.get("qos") == qos))


def _qos_0_bundles(run: BoardRun) -> Finding:
    found = _of_qos(run, 0)
    most = found.most("ap_up_publishes_per_segment_max")
    if most is None:
        return NOTHING
    if most > 1:
        return Finding(SUPPORTED, f"up to {most:g} PUBLISH of the board share a segment at QoS 0")
    waiting = [record for record in found.records if record.parameters.get("nodelay") == 0]
    if any(_within_a_round_trip(record) for record in waiting):
        reason = (
            "no two PUBLISH of the board shared a segment, with Nagle's algorithm and several within one "
            "round trip"
        )
        return Finding(CONTRADICTED, reason)
    return Finding(UNDECIDED, "without TCP_NODELAY no two messages were sent within one round trip")


def _within_a_round_trip(record: RunRecord) -> bool:
    """Say whether a second and a third message were planned before the first was answered."""
    took_ms = Echoes((record,)).round_trip().value
    return took_ms is not None and 2 * whole(record, "interval_us") < 1000 * took_ms


def _qos_2_does_not(run: BoardRun) -> Finding:
    found = _of_qos(run, 2)
    ways = {way: found.most(f"{prefix}publishes_per_segment_max") for way, prefix in WAYS.items()}
    known = {way: count for way, count in ways.items() if count is not None}
    if not known:
        return NOTHING
    way = max(known, key=lambda one: known[one])
    most = known[way]
    publishes = found.total(f"{WAYS[way]}publishes_count")
    others = [_most_any_way(found, kind) for kind in ("pubrels", "pubcomps")]
    told = f"at most {most:g} PUBLISH in a segment at QoS 2"
    told += f" ({way}, {publishes:,.0f} in all)" if publishes and most > 1 else ", whichever way"
    told += "; at most {} PUBREL and {} PUBCOMP".format(
        *("?" if one is None else f"{one:g}" for one in others)
    )
    return from_test(most <= 1, told)


def _most_any_way(found: Echoes, kind: str) -> float | None:
    counts = [found.most(f"{prefix}{kind}_per_segment_max") for prefix in WAYS.values()]
    return max((count for count in counts if count is not None), default=None)


def _first_not_full(run: BoardRun) -> Finding:
    found = {size: own for size, own in first_segments(run).items() if own[0] and own[1]}
    if not found:
        return Finding(UNDECIDED, "the captures tell no first segments of messages that need several")
    full = [first >= (1 - _NEARLY) * largest for first, largest in found.values()]
    pieces = sorted({whole(record, "buffer_bytes") for record in run.of(BENCH)} - {0})
    written = f"; the client writes in pieces of {', '.join(map(str, pieces))} B" if pieces else ""
    words = "; ".join(
        f"{size_text(size)}: {number(first)} B, the largest {number(largest)} B"
        for size, (first, largest) in found.items()
    )
    return from_test(not all(full), f"median of the first segment, {words}{written}, and reads from no disk")


def _broker_dies(run: BoardRun) -> Finding:
    for trouble in run.troubles:
        if isinstance(trouble, Fault) and _SLOW_DISK in trouble.case_id and "mosquitto" in trouble.sentence:
            return Finding(SUPPORTED, f"on a simulated slow disk: {trouble.sentence}")
    slow = [one for one in broker_faults(run) if one.fault == "slow_disk"]
    if not slow:
        return NOTHING
    words = []
    for one in slow:
        ledger = one.ledger
        told = "no ledger" if ledger is None else f"{ledger.arrived} of {ledger.sent} messages came"
        words.append(f"persistence {one.persistence}: {told}")
    version = Echoes(slow[0].records).told("broker_version").removeprefix("mosquitto ")
    reason = f"mosquitto {version} on a simulated slow disk, {'; '.join(words)}"
    each = [one for one in slow if one.persistence != "off" and one.ledger]
    if not each:
        return Finding(UNDECIDED, f"{reason}; with persistence it was not measured")
    return Finding(CONTRADICTED, f"{reason}; it ran to the end each time, at this load")


_SLOW_DISK = "fault=slow_disk,"


def _connect_freezes(run: BoardRun) -> Finding:
    found = connect_outages(run)
    if not found:
        return NOTHING
    causes: dict[str, list[int]] = {}
    for (cause, _), one in found.items():
        counts = causes.setdefault(cause, [0, 0])
        counts[0] += one.outages - one.failed
        counts[1] += one.outages
    words = "; ".join(
        f"{CONNECT_CAUSES[cause]} lost: {recovered} of {of} recovered"
        for cause, (recovered, of) in causes.items()
    )
    froze = any(recovered < of for recovered, of in causes.values())
    return from_test(froze, f"{words}, by themselves")


def _order(run: BoardRun) -> Finding:
    found = {key: own for key, own in by_setting(run.of(BENCH), "qos").items() if own.answered}
    if not found:
        return NOTHING
    words = "; ".join(
        f"QoS {qos}: {out_of_order(own)} out of order, {duplicates(own)} more than once, of {own.n}"
        for (qos,), own in found.items()
    )
    return Finding(CONTRADICTED, f"with a number in the payload it can be told, {words}")


WIRE_CHECKS: Mapping[str, Callable[[BoardRun], Finding]] = {
    "overhead-independent-of-payload": _independent_of_payload,
    "qos-0-bundles": _qos_0_bundles,
    "qos-2-does-not-bundle": _qos_2_does_not,
    "first-segments-not-full": _first_not_full,
    "broker-dies-persisting": _broker_dies,
    "lost-connect-freezes-client": _connect_freezes,
    "order-cannot-be-told": _order,
}
