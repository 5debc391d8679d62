"""What a round trip is made of: the packets that must cross before the echo can come, and what waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hil.model import RunRecord
from hil.reports.studies.document import NONE, Table, number
from hil.reports.studies.mqtt_qos.echoes import BENCH, Echoes, by_setting, others
from hil.reports.studies.records import BoardRun, whole

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


def path_table(run: BoardRun) -> Table | None:
    """Return what is expected, what the capture shows of waiting, and what was measured, in ms."""
    rows, data = [], []
    for path in paths(run):
        down, longest = path.echoes.fact(_DOWN.format("p50")), path.echoes.most(_DOWN.format("max"))
        at_echo = path.echoes.most("broker_out_ack_delay_max_us")
        crossings = len(CROSSINGS[path.qos])
        found = path.echoes.round_trip()
        waits = " / ".join(_ms(one) for one in (down, longest, at_echo))
        rows.append(
            (
                f"QoS {path.qos}",
                path.named,
                f"{crossings / 2:g}",
                number(path.expected_ms),
                waits,
                found.text,
                number(path.difference_ms),
                str(path.echoes.n),
            )
        )
        data.append(
            {"qos": path.qos, "nodelay_at": path.named, "delay_us": path.delay_us, "crossings": crossings}
            | {"expected_ms": path.expected_ms, "p50": found.data, "difference_ms": path.difference_ms}
            | {"ack_delay_down_p50_us": down, "ack_delay_down_max_us": longest}
            | {"ack_delay_echo_max_us": at_echo}
        )
    if not rows:
        return None
    delays = sorted({path.delay_us for path in paths(run)})
    steps = "; ".join(f"QoS {qos}: {', '.join(steps)}" for qos, steps in CROSSINGS.items())
    notes = (
        "expected: the packets that must cross between board and broker, one after another, each in "
        f"{' or '.join(number(us / 1000) for us in delays)} ms. {steps}. The broker hands a message of "
        "QoS 2 on at PUBREL, the board takes the echo at PUBLISH; echo and broker share a host, where "
        "nothing is delayed",
        "p50: the round trip from the sending. difference: what it takes besides, which is Nagle's "
        "algorithm where TCP_NODELAY is not set (a small segment waits until the one before is "
        "acknowledged), what hosts and programs take, and the firmware",
        "ACK delay: from a data segment to its acknowledgement, as captured: broker to board, p50 and "
        "longest; broker to echo, longest. Where the broker has Nagle's algorithm, the echo's PUBLISH "
        "follows a PUBACK or PUBCOMP and waits for the acknowledgement of that, which the board's TCP "
        "delays; at QoS 2 the same happens between broker and echo. Such a wait takes the delayed "
        "acknowledgement (40 ms and more on Linux) and two crossings besides",
    )
    columns = (
        "",
        "TCP_NODELAY at",
        "round trips",
        "expected",
        "ACK delay: p50 / longest / echo",
        "p50",
        "difference",
        "n",
    )
    return Table("path", "Expected and measured round trip, ms", columns, tuple(rows), notes, tuple(data))


_DOWN = "ap_down_ack_delay_{}_us"


def _ms(microseconds: float | None) -> str:
    return NONE if microseconds is None else number(microseconds / 1000)
