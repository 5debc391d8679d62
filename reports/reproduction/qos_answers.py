"""Answers to the questions of mqtt-qos, in sentences with figures of ours."""

from __future__ import annotations

from hil.network.ledger.words import sentence_of
from reports.reproduction.document import number
from reports.reproduction.qos_broker import broker_faults, recovery_text
from reports.reproduction.qos_claims import LEVELS, at_limit, at_loss
from reports.reproduction.qos_echoes import Echoes, size_text
from reports.reproduction.qos_faults import (
    CONNECT_CAUSES,
    connect_outages,
    duplicates,
    ordering,
    out_of_order,
    times_text,
)
from reports.reproduction.qos_impaired import speed_text
from reports.reproduction.qos_path import expected_ms, paths
from reports.reproduction.qos_payload import by_payload
from reports.reproduction.qos_text import in_ms
from reports.reproduction.qos_wire import cost_of, undisturbed
from reports.reproduction.records import BoardRun

_SMALL = (10, 10_000, 1_000_000)  # bytes: what an answer quotes, where it was measured


def answers(run: BoardRun) -> list[tuple[str, ...]]:
    """Return the sentences that answer each question, in the order of the study's file."""
    found = (
        [*_round_trips(run), *_paths(run)],
        [*_limits(run), *_losses(run)],
        _wire(run),
        _order(run),
        [*_brokers(run), *_connects(run)],
    )
    return [tuple(said) or ("Nothing of it was measured.",) for said in found]


def _round_trips(run: BoardRun) -> list[str]:
    found = by_payload(run)
    words = [
        f"{size_text(size)}: {_by_level({level: own for (at, level), own in found.items() if at == size})}"
        for size in sorted({size for size, _ in found if size in _SMALL or size in (10_240, 1 << 20)})
    ]
    return [f"p50 of the round trip in ms at QoS 0 / 1 / 2, {'; '.join(words)}."] if words else []


def _by_level(found: dict[int, Echoes]) -> str:
    return " / ".join(found[level].p50().text if level in found else "–" for level in LEVELS)


def _paths(run: BoardRun) -> list[str]:
    found = [path for path in paths(run) if path.named in _EVERYWHERE and path.difference_ms is not None]
    parts: dict[tuple[int, int], list[str]] = {}
    for path in sorted(found, key=lambda one: list(_EVERYWHERE).index(one.named)):
        took = number(path.echoes.round_trip().value)
        parts.setdefault((path.delay_us, path.qos), []).append(f"{took} ms {_EVERYWHERE[path.named]}")
    words = [
        f"QoS {qos} takes {' and '.join(took)}, where {number(expected_ms(qos, delay_us))} ms must cross"
        for (delay_us, qos), took in sorted(parts.items())
    ]
    one_way = " or ".join(number(us / 1000) for us in sorted({delay_us for delay_us, _ in parts}))
    return [f"With {one_way} ms one way, {'; '.join(words)}."] if words else []


_EVERYWHERE = {"all": "with TCP_NODELAY everywhere", "none": "without it anywhere"}


def _limits(run: BoardRun) -> list[str]:
    found = at_limit(run)
    words = [
        f"{speed_text(kbit)}: {_by_level({level: own for (at, level), own in found.items() if at == kbit})}"
        for kbit in sorted({kbit for kbit, _ in found})
    ]
    return [f"Under a limit, p50 of 10 KB in ms at QoS 0 / 1 / 2, {'; '.join(words)}."] if words else []


def _losses(run: BoardRun) -> list[str]:
    by_level = {level: at_loss(run, level) for level in LEVELS}
    words = []
    for ppm in sorted({ppm for found in by_level.values() for ppm in found}):
        at = {level: found[ppm] for level, found in by_level.items() if ppm in found}
        answered, of = sum(own.answered for own in at.values()), sum(own.n for own in at.values())
        p50 = " / ".join(at[level].p50().short if level in at else "–" for level in LEVELS)
        words.append(f"{ppm / 1e4:g} %: {p50}, {answered} of {of} answered")
    return (
        [f"Under loss in both directions, p50 of 10 KB in ms at QoS 0 / 1 / 2, {'; '.join(words)}."]
        if words
        else []
    )


def _wire(run: BoardRun) -> list[str]:
    found = by_payload(run)
    words = []
    for level in LEVELS:
        sizes = sorted(size for size, own in found if own == level)
        costs = {size: cost_of(found[size, level], level).besides for size in sizes}
        known = {size: cost for size, cost in costs.items() if cost is not None}
        if known:
            ends = dict.fromkeys((min(known), max(known)))
            each = " and ".join(f"{number(known[size])} B with {size_text(size)}" for size in ends)
            words.append(f"QoS {level}: {each}")
    said = [f"A message costs besides its payload, all frames counted, {'; '.join(words)}."] if words else []
    most = {level: own for level in LEVELS if (own := _bundled(run, level)) is not None}
    if most:
        told = "; ".join(f"QoS {level}: {count:g}" for level, count in most.items())
        said.append(f"The most PUBLISH of the board in one segment, {told}.")
    return said


def _bundled(run: BoardRun, level: int) -> float | None:
    own = Echoes(tuple(record for record in undisturbed(run) if record.parameters.get("qos") == level))
    return own.most("ap_up_publishes_per_segment_max")


def _order(run: BoardRun) -> list[str]:
    found = ordering(run)
    said = []
    for qos in sorted({int(str(key[4])) for key in found}):
        own = {key[:4]: one for key, one in found.items() if key[4] == qos}
        flight = [
            f"{_flight(key)} {in_ms(one.p50())}{_trouble(one)}" for key, one in own.items() if not key[3]
        ]
        cut = [f"{_session(key)}{_trouble(one) or ', all as sent'}" for key, one in own.items() if key[3]]
        said += [f"QoS {qos}, p50 by messages in flight: {'; '.join(flight)}."] if flight else []
        said += [f"QoS {qos}, the connection cut again and again: {'; '.join(cut)}."] if cut else []
    return said


def _flight(key: tuple[object, ...]) -> str:
    return "any" if key[:2] == (0, 20) else "1 at the board" if key[0] == 1 else _limits_of(key)


def _limits_of(key: tuple[object, ...]) -> str:
    return f"{key[0] or 'any'} at the board and {key[1] or 'any'} at the broker"


def _session(key: tuple[object, ...]) -> str:
    return "new session" if key[2] else "kept session"


def _trouble(found: Echoes) -> str:
    """Say what did not come, came late or came twice; "" where all is well."""
    counts = {"lost": found.lost, "out of order": out_of_order(found), "twice": duplicates(found)}
    told = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    return f" ({told} of {found.n})" if told else ""


def _brokers(run: BoardRun) -> list[str]:
    said = []
    for one in broker_faults(run):
        if one.ledger is None:
            continue
        head = f"{one.fault.replace('_', ' ').capitalize()}, persistence {one.persistence}, QoS {one.qos}"
        recovery = one.fact("recovery_us")
        after = "" if recovery is None else f"; the first came {_after(recovery)} after the fault's end"
        slowest = "" if one.slowest_ms is None else f", the slowest took {number(one.slowest_ms)} ms"
        said.append(f"{head}: {sentence_of(one.ledger)}{slowest}{after}.")
    return said


def _after(recovery_us: float) -> str:
    return "less than 1 ms" if recovery_us < 1000 else f"{recovery_text(recovery_us)} ms"


def _connects(run: BoardRun) -> list[str]:
    parts = [
        f"{CONNECT_CAUSES[cause]}, {times_text(one.recovered_ms, one.boots)} ms "
        f"({one.outages - one.failed} of {one.outages} recovered)"
        for (cause, _), one in connect_outages(run).items()
    ]
    return [f"Recovery after packets of a connect were lost: {'; '.join(parts)}."] if parts else []
