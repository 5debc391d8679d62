# SPDX-License-Identifier: Apache-2.0
"""The study mqtt-qos beside our run of it.

A round trip is made of the packets that must cross before the echo can come, and of what waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hil.model import RunRecord
from hil.network.ledger.files import sentence_of
from hil.reports.studies.claims import claims_by
from hil.reports.studies.declaration import Study
from hil.reports.studies.document import NONE, Table, number
from hil.reports.studies.layout import lay_out
from hil.reports.studies.mqtt_qos.claims import CHECKS, LEVELS, STATISTICS, at_limit, at_loss
from hil.reports.studies.mqtt_qos.echoes import (
    BENCH,
    Echoes,
    by_setting,
    in_ms,
    others,
)
from hil.reports.studies.mqtt_qos.faults import (
    CONNECT_CAUSES,
    broker_faults,
    broker_table,
    connect_outages,
    connect_table,
    duplicates,
    order_table,
    ordering,
    out_of_order,
    recovery_text,
    times_text,
)
from hil.reports.studies.mqtt_qos.impaired import bandwidth_table, loss_table, observation_table, speed_text
from hil.reports.studies.mqtt_qos.wire import (
    bundling_table,
    by_payload,
    connection_table,
    cost_of,
    first_segment_table,
    message_table,
    not_run_table,
    payload_table,
    rate_table,
    undisturbed,
)
from hil.reports.studies.records import BoardRun, size_text, whole
from hil.reports.studies.sections import Parts

# Packets between board and broker, one after another: each cannot leave before the last came. PUBACKs
# and all that follows the echo's PUBLISH cross beside: nobody waits for them.
CROSSINGS: Mapping[int, tuple[str, ...]] = {
    0: ("PUBLISH ↑", "PUBLISH ↓"),
    1: ("PUBLISH ↑", "PUBLISH ↓"),
    2: ("PUBLISH ↑", "PUBREC ↓", "PUBREL ↑", "PUBLISH ↓"),
}
_SWITCHES = ("nodelay", "broker_nodelay", "echo_nodelay")
_FAR_US = 1000  # a delay that what hosts take cannot hide


def expected_ms(qos: int, delay_us: int) -> float:
    """Return what the crossings take at a delay of one way, in ms."""
    return len(CROSSINGS[qos]) * delay_us / 1000


def delayed(run: BoardRun) -> list[RunRecord]:
    """Return the records with a delay that the case set, and no other impairment."""
    found = [record for record in run.of(BENCH) if not others(record, "delay_us", "air", *_SWITCHES)]
    return [record for record in found if whole(record, "delay_us") >= _FAR_US]


@dataclass(frozen=True)
class Path:
    """Messages of one QoS, delay and setting of TCP_NODELAY."""

    qos: int
    delay_us: int
    switches: tuple[int, ...]
    echoes: Echoes

    @property
    def expected_ms(self) -> float:
        return expected_ms(self.qos, self.delay_us)

    @property
    def difference_ms(self) -> float | None:
        """What the median takes beyond what must cross."""
        value = self.echoes.round_trip().value
        return None if value is None else value - self.expected_ms

    @property
    def named(self) -> str:
        """Say where TCP_NODELAY is set."""
        ends = ("board", "broker", "echo")
        at = [end for end, switch in zip(ends, self.switches, strict=True) if switch]
        return "all" if len(at) == len(ends) else ", ".join(at) or "none"


def paths(run: BoardRun) -> list[Path]:
    """Return the paths that were measured, by QoS."""
    found = by_setting(delayed(run), "qos", "delay_us", *_SWITCHES)
    return [
        Path(int(str(qos)), int(str(delay)), tuple(int(str(one)) for one in switches), echoes)
        for (qos, delay, *switches), echoes in found.items()
    ]


def path_table(study: Study, run: BoardRun) -> Table | None:
    """Return what is expected, what the capture shows of waiting, and what was measured, in ms."""
    lines = []
    for path in paths(run):
        down, longest = path.echoes.fact(_DOWN.format("p50")), path.echoes.most(_DOWN.format("max"))
        at_echo, crossings = path.echoes.most("broker_out_ack_delay_max_us"), len(CROSSINGS[path.qos])
        lines.append(
            {"label": f"QoS {path.qos}", "qos": path.qos, "nodelay_at": path.named, "delay_us": path.delay_us}
            | {"crossings": crossings, "round_trips": f"{crossings / 2:g}", "expected_ms": path.expected_ms}
            | {"waits": " / ".join(map(_ms, (down, longest, at_echo))), "p50": path.echoes.round_trip()}
            | {"difference_ms": path.difference_ms, "ack_delay_down_p50_us": down}
            | {"ack_delay_down_max_us": longest, "ack_delay_echo_max_us": at_echo, "n": path.echoes.n}
        )
    delays = " or ".join(number(us / 1000) for us in sorted({path.delay_us for path in paths(run)}))
    steps = "; ".join(f"QoS {qos}: {', '.join(steps)}" for qos, steps in CROSSINGS.items())
    return lay_out(study, "path", lines, delays=delays, steps=steps)


_DOWN = "ap_down_ack_delay_{}_us"


def _ms(microseconds: float | None) -> str:
    return NONE if microseconds is None else number(microseconds / 1000)


def echo_peer(run: BoardRun) -> str:
    """Name what sent the messages back, as the peer told it."""
    told = [record.environment.get("peer", {}).get("echo_peer") for record in run.of(BENCH)]
    names = list(dict.fromkeys(str(name) for name in told if name))
    if not names:
        return "an echo"
    program, _, rest = names[0].rpartition(", ")
    others = [name.removeprefix(f"{program}, ") for name in names[1:]]
    return f"the echo ({' or, where a case says so, '.join([f'{program}, {rest}', *others])})"


_SMALL = (10, 10_000, 1_000_000)  # bytes: what an answer quotes, where it was measured


def _answer(*sentences: Callable[[BoardRun], list[str]]) -> Callable[[Study, BoardRun], list[str]]:
    """Return the sentences that answer a question, or that nothing of it was measured."""
    return lambda _study, run: (
        [said for found in sentences for said in found(run)] or ["Nothing of it was measured."]
    )


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


PARTS = Parts(
    tables={
        "payload": payload_table,
        "not-run": not_run_table,
        "rates": rate_table,
        "bandwidth": bandwidth_table,
        "observations": observation_table,
        "loss": loss_table,
        "path": path_table,
        "overhead-message": message_table,
        "overhead-connection": connection_table,
        "bundling": bundling_table,
        "first-segments": first_segment_table,
        "connect": connect_table,
        "order": order_table,
        "broker": broker_table,
        "claims": claims_by(CHECKS, STATISTICS),
    },
    answers={
        "question 1": _answer(_round_trips, _paths),
        "question 2": _answer(_limits, _losses),
        "question 3": _answer(_wire),
        "question 4": _answer(_order),
        "question 5": _answer(_brokers, _connects),
    },
    words=lambda run: {"peer": echo_peer(run)},
)
