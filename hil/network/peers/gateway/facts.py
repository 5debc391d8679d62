"""Facts of a case of http_gateway for its record, from the lines of the host's programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from hil.model import Scalar
from hil.network.peers.gateway.echo_server import PROBE_PATH
from hil.network.peers.gateway.joining import BOARD_TIMES


def requester_facts(lines: Sequence[Mapping[str, Any]]) -> dict[str, Scalar]:
    """What the requester's lines come to: versions, counts and the times of its connections."""
    counts = Counter(line["event"] for line in lines)
    start = next(line for line in lines if line["event"] == "start")
    facts: dict[str, Scalar] = {
        "suback_awaited": 1,
        "paho_version": start["paho_version"],
        "requester_python": start["python"],
        "requests_count": counts["request"],
        "duplicate_answers_count": counts["duplicate"],
        "late_answers_count": counts["late"],
        "requester_reconnects_count": counts["lost"],
    }
    for line in lines:
        if line["event"] == "connected":
            prefix = f"{line['profile']}_phase{line['phase']}"
            facts |= {f"{prefix}_{name}": line[name] for name in BOARD_TIMES}
        elif line["event"] == "ready":
            facts[f"phase{line['phase']}_ready_wait_us"] = line["waited_us"]
    return facts


def server_facts(lines: Sequence[Mapping[str, Any]]) -> dict[str, Scalar]:
    """What the echo server's lines come to: versions, and requests and connections by kind."""
    ready = next(line for line in lines if line["event"] == "ready")
    served = [line for line in lines if line["event"] == "request"]
    connections = {line["connection"]: line for line in served}.values()
    return {
        "server_version": ready["version"],
        "server_python": ready["python"],
        "server_openssl": ready["openssl"],
        "server_connections_count": len(connections),
        "server_probes_count": sum(line["path"] == PROBE_PATH for line in served),
        "server_requests_count": sum(line["path"] != PROBE_PATH for line in served),
        "tls_connections_count": sum(line["tls"] for line in connections),
        "tls_resumed_count": sum(line["session_reused"] for line in connections),
    }
