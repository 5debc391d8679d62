"""Why a board does not measure a case: its limits, its chip, its labels, or what its rack has not.

A board in quarantine measures none; hil.health.quarantine words the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hil.chips import CORES
from hil.errors import ConfigError
from hil.model import KINDS, Case, Scalar
from hil.rack import Board, Rack
from hil.yamlvalue import did_you_mean

# Values of parameters that need two cores. A parameter that ends in _core names a core by its number.
TWO_CORES: Mapping[str, frozenset[str]] = {
    "placement": frozenset({"cross"}),
    "load": frozenset({"other_core", "both", "migrate"}),
    "threads": frozenset({"core1", "all"}),
}
# Causes of an outage that are packets of a plain connection, and the transports that have TLS.
PLAIN_CAUSES = frozenset({"syn", "connect", "connack"})
TLS_TRANSPORTS = frozenset({"tls", "mtls"})
# Only an air that is the rack's own can be changed, or taken away. These values leave it as it is.
AIR_AS_IT_IS: Mapping[str, Scalar] = {
    "air": "rack",
    "delay_us": -1,
    "rate_up_kbit": 0,
    "rate_down_kbit": 0,
    "loss_up_ppm": 0,
    "loss_down_ppm": 0,
}
AIR_TAKEN_AWAY: Mapping[str, str] = {"fault": "blackout", "cause": "access_point"}
PSRAM = "psram"  # the value of a parameter, and the label of a board that has it


@dataclass(frozen=True)
class Omitted:
    """A case that a board's limits, its chip, its labels, its rack or its quarantine rule out."""

    case: Case
    reason: str


def why_omitted(rack: Rack, board: Board, case: Case, kinds: Sequence[str] = KINDS) -> str:
    """Return why the board does not measure the case, which boards of ``kinds`` can; "" where it does."""
    return (
        _of_another_kind(board, case, kinds)
        or _beyond_limit(board, case)
        or _too_few_cores(board, case)
        or _without_psram(board, case)
        or _hidden_by_tls(case)
        or _beyond_the_rack(rack, case)
    )


def check_limits(board: Board, cases: Sequence[Case]) -> None:
    """Raise ConfigError where the board limits a parameter that no case has."""
    known = sorted({key for case in cases for key in case.parameters})
    for limit in board.limits:
        if limit[4:] not in known:
            raise ConfigError(
                f"{board.where}: limit {limit!r} of board {board.id!r} names the parameter {limit[4:]!r}, "
                f"which no selected bench has{did_you_mean(limit[4:], known)}",
                next_step=f"use max_ or min_ with one of: {', '.join(known)}.",
            )


def _of_another_kind(board: Board, case: Case, kinds: Sequence[str]) -> str:
    if board.kind in kinds:
        return ""
    return f"{case.bench} is for {' and '.join(kinds)} boards, and board {board.id} is {board.kind}"


def _beyond_limit(board: Board, case: Case) -> str:
    for limit, bound in board.limits.items():
        value = case.parameters.get(limit[4:])
        if not isinstance(value, int | float):
            continue
        if (value > bound) if limit.startswith("max_") else (value < bound):
            return f"{limit[4:]}={value} is beyond {limit}={bound} of board {board.id}"
    return ""


def _too_few_cores(board: Board, case: Case) -> str:
    """Return why a case that needs a core cannot run on a chip without, as the firmware would say it."""
    cores = CORES[board.chip]
    for key, value in case.parameters.items():
        core = str(value)
        if key.endswith("_core") and core.isdecimal() and int(core) >= cores:
            return f"{key}={value}: an {board.chip} has no core {value} (board {board.id})"
        if cores < 2 and core in TWO_CORES.get(key, ()):
            return f"{key}={value} needs two cores, and an {board.chip} has one (board {board.id})"
    return ""


def _without_psram(board: Board, case: Case) -> str:
    for key in ("load", "memory"):
        if case.parameters.get(key) == PSRAM and PSRAM not in board.labels:
            return f"{key}={PSRAM} needs a board with the label {PSRAM!r}, which board {board.id} has not"
    return ""


def _hidden_by_tls(case: Case) -> str:
    cause, transport = str(case.parameters.get("cause", "")), str(case.parameters.get("transport", ""))
    if cause in PLAIN_CAUSES and transport in TLS_TRANSPORTS:
        return f"cause={cause} drops packets of plain TCP, and transport={transport} is TLS"
    return ""


def _beyond_the_rack(rack: Rack, case: Case) -> str:
    """Return why a rack whose access point is real cannot make this case."""
    if rack.is_virtual:
        return ""
    asked = [
        f"{key}={case.parameters[key]}"
        for key, plain in AIR_AS_IT_IS.items()
        if key in case.parameters and case.parameters[key] != plain
    ]
    asked += [f"{key}={value}" for key, value in AIR_TAKEN_AWAY.items() if case.parameters.get(key) == value]
    if asked:
        return (
            f"{', '.join(asked)} needs an air that the rack itself makes, and rack {rack.name}'s is a radio's"
        )
    cause = case.parameters.get("cause")
    if cause in PLAIN_CAUSES and not rack.capture.access_point:
        return f"cause={cause} needs an interface at the access point (capture: in {rack.path.name})"
    own = rack.capture.access_point not in ("", rack.host.interface)
    if case.parameters.get("fault") == "wire" and not own:
        return f"fault=wire needs an interface at the access point (capture: in {rack.path.name})"
    return ""
