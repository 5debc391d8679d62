# SPDX-License-Identifier: Apache-2.0
"""The study mqtt-qos beside our run of it.

A round trip is made of the packets that must cross before the echo can come, and of what waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hil.model import RunRecord, Scalar
from hil.reports.studies.declaration import Study
from hil.reports.studies.document import NONE, Table, number
from hil.reports.studies.layout import Figures, lay_out
from hil.reports.studies.mqtt_qos.claims import CHECKS, STATISTICS
from hil.reports.studies.mqtt_qos.echoes import (
    BENCH,
    by_setting,
    others,
)
from hil.reports.studies.mqtt_qos.faults import (
    broker_table,
    connect_table,
    order_table,
)
from hil.reports.studies.mqtt_qos.impaired import bandwidth_table, loss_table, observation_table
from hil.reports.studies.mqtt_qos.wire import (
    bundling_table,
    connection_table,
    first_segment_table,
    message_table,
    not_run_table,
    payload_table,
    rate_table,
)
from hil.reports.studies.records import BoardRun, whole
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


def delayed(run: BoardRun) -> list[RunRecord]:
    """Return the records with a delay that the case set, and no other impairment."""
    found = [record for record in run.of(BENCH) if not others(record, "delay_us", "air", *_SWITCHES)]
    return [record for record in found if whole(record, "delay_us") >= _FAR_US]


def path_table(study: Study, run: BoardRun) -> Table | None:
    """Return what is expected, what the capture shows of waiting, and what was measured, in ms."""
    lines: list[Figures] = []
    found = by_setting(delayed(run), "qos", "delay_us", *_SWITCHES)
    for (level, delay, *switches), own in found.items():
        qos, delay_us = int(str(level)), int(str(delay))
        down, longest = own.fact(_DOWN.format("p50")), own.most(_DOWN.format("max"))
        at_echo, crossings = own.most("broker_out_ack_delay_max_us"), len(CROSSINGS[qos])
        took, expected_ms = own.round_trip(), crossings * delay_us / 1000
        beyond_ms = None if took.value is None else took.value - expected_ms
        lines.append(
            {"label": f"QoS {qos}", "qos": qos, "nodelay_at": _where_set(switches), "delay_us": delay_us}
            | {"crossings": crossings, "round_trips": f"{crossings / 2:g}", "expected_ms": expected_ms}
            | {"waits": " / ".join(map(_ms, (down, longest, at_echo))), "p50": took, "n": own.n}
            | {"difference_ms": beyond_ms, "ack_delay_down_p50_us": down}
            | {"ack_delay_down_max_us": longest, "ack_delay_echo_max_us": at_echo}
        )
    delays = " or ".join(number(us / 1000) for us in sorted({line["delay_us"] for line in lines}))
    steps = "; ".join(f"QoS {qos}: {', '.join(steps)}" for qos, steps in CROSSINGS.items())
    return lay_out(study, "path", lines, delays=delays, steps=steps)


def _where_set(switches: Sequence[Scalar]) -> str:
    """Say where TCP_NODELAY is set."""
    ends = ("board", "broker", "echo")
    at = [end for end, switch in zip(ends, switches, strict=True) if int(str(switch))]
    return "all" if len(at) == len(ends) else ", ".join(at) or "none"


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
    },
    checks=CHECKS,
    statistics=STATISTICS,
    words=lambda run: {"peer": echo_peer(run)},
)
