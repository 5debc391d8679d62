"""The study mqtt-qos beside our run of it."""

from __future__ import annotations

from hil.reference import Study
from reports.reproduction.background import plain_table
from reports.reproduction.claims import claim_table
from reports.reproduction.document import Section, Table
from reports.reproduction.qos_answers import answers
from reports.reproduction.qos_broker import broker_table
from reports.reproduction.qos_claims import check
from reports.reproduction.qos_echoes import BENCH
from reports.reproduction.qos_faults import connect_table, order_table
from reports.reproduction.qos_impaired import bandwidth_table, loss_table, observation_table
from reports.reproduction.qos_path import path_table
from reports.reproduction.qos_payload import not_run_table, payload_table, rate_table
from reports.reproduction.qos_text import their_note
from reports.reproduction.qos_wire import (
    bundling_table,
    connection_table,
    first_segment_table,
    message_table,
)
from reports.reproduction.records import BoardRun

_OUR_WAY = (
    "The board publishes on an open loop and never waits for an answer; {peer} sends each message back "
    "with its QoS. The study's two clients shared a laptop and an impaired interface; here the echo "
    "shares a host with the broker, and what is impaired is the board's link alone. A p50 has an "
    "interval whose ends are each wrong with 5 % at most; of one boot it holds for this boot. 'n < 59': "
    "too few for the percentile."
)


def sections_of(study: Study, run: BoardRun) -> list[Section]:
    """Return the sections; a case that is missing leaves its row and says why."""
    remark = _OUR_WAY.format(peer=echo_peer(run))
    return [
        Section(
            "Round trip by QoS and payload",
            (remark, their_note()),
            _some(payload_table(study, run), not_run_table(run)),
        ),
        *_section("Rates", rate_table(run)),
        Section("Bandwidth", tables=(bandwidth_table(study, run), observation_table(study, run))),
        Section("Loss", tables=(loss_table(study, run),)),
        *_section("Where the round trip goes", path_table(run)),
        *_section("On the wire", message_table(study, run), connection_table(study, run)),
        *_section("Bundling", bundling_table(run), first_segment_table(run)),
        *_section("Lost packets of a connect", connect_table(run)),
        *_section("Order and duplicates", order_table(run)),
        *_section("A broker in trouble", broker_table(run)),
        *(
            Section(f"Question: {question}", answers=said)
            for question, said in zip(study.questions, answers(run), strict=True)
        ),
        Section(
            "Claims",
            tables=(claim_table(study.claims, run, check),),
        ),
        Section("Behind the published means", (_RECOMPUTED,), tuple(map(plain_table, study.background))),
    ]


_RECOMPUTED = "Counted anew from the study's own logs and captures; nothing of ours is judged against it."


def echo_peer(run: BoardRun) -> str:
    """Name what sent the messages back, as the peer told it."""
    told = [record.environment.get("peer", {}).get("echo_peer") for record in run.of(BENCH)]
    names = list(dict.fromkeys(str(name) for name in told if name))
    if not names:
        return "an echo"
    program, _, rest = names[0].rpartition(", ")
    others = [name.removeprefix(f"{program}, ") for name in names[1:]]
    return f"the echo ({' or, where a case says so, '.join([f'{program}, {rest}', *others])})"


def _some(*tables: Table | None) -> tuple[Table, ...]:
    return tuple(table for table in tables if table)


def _section(heading: str, *tables: Table | None) -> list[Section]:
    found = _some(*tables)
    return [Section(heading, tables=found)] if found else []
