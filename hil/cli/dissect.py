# SPDX-License-Identifier: Apache-2.0
"""``hil dissect``: what a capture says that somebody else made."""

from __future__ import annotations

import datetime
import json
import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from hil.cli.options import aligned
from hil.network.dissect.connections import Connection
from hil.network.dissect.foreign import Foreign, Wanted, percentile_us, read_foreign, servers_of
from hil.network.dissect.overhead import CONNECTION_PARTS, MESSAGE_PARTS
from hil.network.dissect.segments import MqttPorts
from hil.network.dissect.symptoms import SYMPTOMS

_MOST_CONNECTIONS = 8
_NAMED_FRAMES = 6
_BUNDLING = {
    "PUBLISH packets": "publishes_count",
    "segments in which they end": "publish_segments_count",
    "most PUBLISH in a segment": "publishes_per_segment_max",
    "most PUBREL in a segment": "pubrels_per_segment_max",
    "most PUBCOMP in a segment": "pubcomps_per_segment_max",
    "largest segment, bytes": "segment_max_bytes",
}
_DELAYS = {"p50": "ack_delay_p50_us", "max": "ack_delay_max_us"}


@click.command("dissect")
@click.argument("capture", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--port", "ports", multiple=True, type=click.IntRange(1, 65535), metavar="N",
    help="Only connections of this server's port, read by the dissector; repeatable.",
)  # fmt: skip
@click.option(
    "--tls-port", "tls_ports", multiple=True, type=click.IntRange(1, 65535), metavar="N",
    help="The same for TLS; repeatable.",
)  # fmt: skip
@click.option(
    "--keys", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="Keys of TLS, as SSLKEYLOGFILE has them.",
)  # fmt: skip
@click.option(
    "--dissector", default="mqtt", show_default=True, metavar="NAME",
    help="tshark's name of the protocol; without a port all connections in which it is found.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    capture: Path,
    ports: tuple[int, ...],
    tls_ports: tuple[int, ...],
    keys: Path | None,
    dissector: str,
    *,
    as_json: bool,
) -> None:
    """Say what the capture FILE holds of MQTT over TCP; docs/explain/dissecting.md.

    Symptoms, overhead, round trips, bundling. FILE is pcap or pcapng, packed with gzip or not.
    """
    found = read_foreign(capture, Wanted(MqttPorts(ports, tls_ports), dissector), key_log=keys)
    if as_json:
        click.echo(json.dumps(found.to_json(), ensure_ascii=False, indent=2))
        return
    sections = [_head(found), _connections(found.connections), _symptoms(found), _overhead(found)]
    sections += [_round_trips(found), _bundling(found), _unread(found)]
    click.echo("\n\n".join("\n".join(lines) for lines in sections if lines))


def _head(found: Foreign) -> list[str]:
    began = datetime.datetime.fromtimestamp(found.segments[0].time_us / 1e6, datetime.UTC)
    frames = _count(len(found.segments), "frame")
    what = (
        f"port {', '.join(map(str, found.wanted.numbers))}"
        if found.wanted.numbers
        else found.wanted.dissector
    )
    lines = [
        str(found.path),
        f"{began:%Y-%m-%d %H:%M:%S} UTC, {found.duration_us / 1e6:,.1f} s, {what}: "
        f"{_count(len(found.connections), 'connection')}, {frames}",
    ]
    if found.others:
        left = sum(len(one.segments) for one in found.others)
        lines += [
            f"left out: {_count(len(found.others), 'other connection')}, {_count(left, 'frame')};",
            f"  of port {servers_of(found.others)}",
        ]
    return lines


def _connections(connections: Sequence[Connection]) -> list[str]:
    shown = sorted(connections, key=lambda one: -len(one.segments))[:_MOST_CONNECTIONS]
    rows = [("client", "server", "frames", "bytes", "start")]
    for one in shown:
        size = sum(segment.frame_bytes for segment in one.segments)
        begin = "captured" if one.from_start else "missing"
        rows.append((_end(one.client), _end(one.server), f"{len(one.segments):,}", f"{size:,}", begin))
    more = len(connections) - len(shown)
    return [*_table(rows, left=(0, 1, 4)), *([f"and {_count(more, 'connection')} more"] if more else [])]


def _end(end: tuple[str, int]) -> str:
    address, port = end
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _symptoms(found: Foreign) -> list[str]:
    counts = found.symptoms()
    return _table([("symptom", "count"), *((one.label, f"{counts[one.name]:,}") for one in SYMPTOMS)])


def _overhead(found: Foreign) -> list[str]:
    overhead = found.overhead()
    total = sum(overhead.parts.values())
    rows = [("overhead", "bytes", "share", "count")]
    for name, size in overhead.parts.items():
        if size:
            count = overhead.counts.get(name)
            rows.append((_words(name), *_share(size, total), "" if count is None else f"{count:,}"))
    sums = {
        "connections in all": sum(overhead.parts[name] for name in CONNECTION_PARTS),
        "messages in all": sum(overhead.parts[name] for name in MESSAGE_PARTS),
        "every captured byte": total,
    }
    rows += [(name, *_share(size, total), "") for name, size in sums.items()]
    return _table(rows)


def _words(part: str) -> str:
    return part.replace("_", " ")


def _share(size: int, total: int) -> tuple[str, str]:
    return f"{size:,}", f"{100 * size / total:.1f} %"


def _round_trips(found: Foreign) -> list[str]:
    rows: list[tuple[str, ...]] = [("round trip, ms", "asked by", "count", "open", "p50", "p95", "max")]
    for one in found.round_trips():
        times = (percentile_us(one.times_us, 0.5), percentile_us(one.times_us, 0.95))
        shown = map(_ms, (*times, max(one.times_us, default=None)))
        by = "client" if one.by_client else "server"
        rows.append((one.name, by, f"{len(one.times_us):,}", f"{one.open_count:,}", *shown))
    return _table(rows, left=(0, 1)) if len(rows) > 1 else []


def _ms(time_us: int | None) -> str:
    return "-" if time_us is None else f"{time_us / 1000:,.3f}"


def _bundling(found: Foreign) -> list[str]:
    facts = [one.facts("") for one in found.bundling()]
    rows: list[tuple[str, ...]] = [("bundling, sent by", "client", "server")]
    rows += [(label, *(f"{side[name] or 0:,}" for side in facts)) for label, name in _BUNDLING.items()]
    rows += [
        (f"ACK delay {word}, ms", *(_ms(side[name]) for side in facts)) for word, name in _DELAYS.items()
    ]
    return _table(rows)


def _unread(found: Foreign) -> list[str]:
    lines = []
    if found.headless_count:
        lines.append(f"{_count(found.headless_count, 'TCP frame')} without readable headers: not counted")
    if bad := found.unreadable:
        numbers = ", ".join(str(one.number) for one in bad[:_NAMED_FRAMES])
        lines += [
            f"{_count(len(bad), 'frame')} whose packets could not be read, counted as undissected:",
            f"  {numbers}{', …' if len(bad) > _NAMED_FRAMES else ''}",
            f"  the first: {bad[0].unreadable}",
            f"  look at it: tshark -V -r {shlex.quote(str(found.path))} -Y frame.number=={bad[0].number}",
        ]
    if any(not one.from_start for one in found.connections):
        lines += [
            "Where the start of a connection is missing a side may be misread, or unread:",
            "tshark takes the first byte that it sees for the first of a packet.",
        ]
    return lines


def _table(rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)) -> list[str]:
    """Return a line a row; columns of numbers are flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return aligned(
        [[cell if at in left else cell.rjust(widths[at]) for at, cell in enumerate(row)] for row in rows]
    )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
