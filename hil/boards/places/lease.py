# SPDX-License-Identifier: Apache-2.0
"""Leases boards from a labgrid coordinator, for as long as this process lives.

The lease is held by keeper.py, a process of its own whose standard input this process keeps open: when it
ends, however that happens, the kernel closes it, and the keeper releases. The boards are written into a rack
file like any other, so that whatever reads racks knows nothing of labgrid.
"""

from __future__ import annotations

import fcntl
import ipaddress
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from hil.base.errors import ConfigError, HilError, RigError
from hil.base.yamlvalue import did_you_mean
from hil.boards.places.exporter import BOARD_CLASS, BOARD_SCHEMA
from hil.boards.places.settings import PlacesSettings

KEEPER = Path(__file__).with_name("keeper.py")
CLIENT = "labgrid-client"


def lease_places(rack: Path, settings: PlacesSettings, out: Path, *, wait_s: float = 0.0) -> Path:
    """Lease the boards until this process ends; return the rack file, below ``out``, that lists them.

    The process may go on as another program (exec): the lease stays with it.

    Raises:
        ConfigError: labgrid is not installed, no place matches, or an exporter is of another version.
        RigError: the coordinator is not reached, a place is taken, or its exporter is gone.
    """
    python = find_labgrid()
    # sys.executable's environment is no business of labgrid's Python: -I
    keeper = subprocess.Popen(
        [str(python), "-I", str(KEEPER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert keeper.stdin
    assert keeper.stdout
    request = {
        "coordinator": settings.coordinator,
        "match": dict(settings.match),
        "count": settings.count,
        "wait_s": wait_s,
        "run_pid": os.getpid(),
    }
    keeper.stdin.write(json.dumps(request) + "\n")
    keeper.stdin.flush()
    told = keeper.stdout.readline()
    answer: dict[str, Any] = (
        json.loads(told)
        if told
        else {"refused": "died", "details": f"its keeper ended, status {keeper.wait()}"}
    )
    if "refused" in answer:
        keeper.communicate()  # to its end, and closes its pipes
        raise refusal(answer, settings)
    held = os.dup(keeper.stdin.fileno())  # beyond what Python closes when the objects go
    os.set_inheritable(held, True)
    _end_with(held)
    try:
        switch = _switch(python.with_name(CLIENT), settings.coordinator, answer["holder"])
        return _write_rack(rack, answer["boards"], out, keeper, switch)
    except BaseException:
        os.close(held)
        raise


@dataclass(frozen=True)
class PlaceState:
    """A place as the coordinator has it; ``changed`` is in seconds of Unix time, ``acquired`` is who has it
    and ``exporter`` who offers it, both "" where nobody does."""

    name: str
    tags: Mapping[str, str]
    acquired: str
    changed: float
    exporter: str


def places_at(settings: PlacesSettings) -> list[PlaceState]:
    """Return the places that a rack may lease. Raises ConfigError and RigError as lease_places() does."""
    request = {
        "coordinator": settings.coordinator,
        "match": dict(settings.match),
        "run_pid": os.getpid(),
        "tell": True,
    }
    asked = subprocess.run(
        [str(find_labgrid()), "-I", str(KEEPER)],
        input=json.dumps(request) + "\n",
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    answer = json.loads(asked.stdout or '{"refused": "died", "details": "its keeper ended"}')
    if "refused" in answer:
        raise refusal(answer, settings)
    return [PlaceState(name, **facts) for name, facts in sorted(answer["places"].items())]


def _end_with(pipe: int) -> None:
    """Let the kernel end this process (SIGTERM) when the keeper, which reads the pipe, is no more.

    Nobody would take the boards again then after a restart of the coordinator. It outlives an exec.
    """
    fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(pipe, fcntl.F_SETSIG, signal.SIGTERM)
    fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)


def find_labgrid() -> Path:
    """Return the Python that has labgrid: it stands beside labgrid-client. Raises ConfigError."""
    beside = Path(sys.prefix) / "labgrid" / "bin" / CLIENT
    found = shutil.which(CLIENT) or (str(beside) if beside.exists() else None)
    python = Path(found).resolve().parent / "python" if found else None
    if python is None or not python.exists():
        raise ConfigError(
            f"the rack's boards are at a labgrid coordinator, but {CLIENT} is not installed on this machine.",
            next_step=f"python3 -m venv {beside.parent.parent} && "
            f"{beside.parent}/pip install labgrid==26.0.1",
        )
    return python


def refusal(answer: Mapping[str, Any], settings: PlacesSettings) -> HilError:
    """Return the error that says why the keeper could not lease, and the way out."""
    at, tags = f"the labgrid coordinator {settings.coordinator}", _tags(settings.match)
    match answer["refused"]:
        case "unreachable":
            return RigError(
                f"{settings.where}: {at} does not answer.",
                next_step=f"start it (labgrid-coordinator), or look at the way to it: {CLIENT} -x "
                f"{settings.coordinator} places",
            )
        case "no match":
            return _no_match(answer["near"], settings)
        case "too few":
            names = ", ".join(answer["places"])
            return ConfigError(
                f"{settings.where}: {answer['count']} boards are requested with {tags}, but {at} "
                f"has {names}.",
                next_step="lower 'count', or tag more places.",
            )
        case "taken":
            first, *rest = [_taken(*place) for place in answer["places"]]
            name = answer["places"][0][0]
            return RigError(
                "; ".join([f"{first}, at {at}", *rest]) + ".",
                next_step=f"wait for it (--wait SECONDS); if its user is gone: {CLIENT} -x "
                f"{settings.coordinator} -p {name} release --kick",
            )
        case "not exported":
            return RigError(
                f"place {answer['place']} has no serial port: no running exporter offers "
                f"{', '.join(answer['matches']) or 'anything that it names'}.",
                next_step="start labgrid-exporter where the board is (`hil exporter` configures it), or "
                f"list what is exported: {CLIENT} -x {settings.coordinator} resources",
            )
        case _:
            return RigError(
                f"leasing {tags} from {at} failed: {answer.get('details', answer['refused'])}.",
                next_step=f"look at the coordinator's log; try {CLIENT} -x {settings.coordinator} places",
            )


def _no_match(near: Mapping[str, Mapping[str, str]], settings: PlacesSettings) -> ConfigError:
    values = {has[key] for has in near.values() for key in settings.match if key in has}
    hint = next((h for value in settings.match.values() if (h := did_you_mean(value, values))), "")
    missed = {name: _differing(has, settings.match) for name, has in near.items()}
    close = [f"{name} but for {found[0]}" for name, found in missed.items() if len(found) == 1]
    there = close or [f"{name} ({_tags(has)})" for name, has in near.items()] or ["no place at all"]
    return ConfigError(
        f"{settings.where}: no place at {settings.coordinator} matches "
        f"{_tags(settings.match)}{hint or '.'} Nearest: {'; '.join(there)}.",
        next_step=f"mend 'match', or tag a place: {CLIENT} -x {settings.coordinator} -p PLACE set-tags …",
    )


def _differing(has: Mapping[str, str], match: Mapping[str, str]) -> list[str]:
    """Return what a place has instead of the tags that are wanted: "target=esp32", or "no target"."""
    return [
        f"{key}={has[key]}" if key in has else f"no {key}"
        for key, value in match.items()
        if has.get(key) != value
    ]


def _taken(name: str, acquired: str, changed: float, reservation: str) -> str:
    if acquired:
        since = datetime.fromtimestamp(changed, UTC).isoformat(timespec="seconds")
        return f"place {name} is taken by {acquired} since {since}"
    if reservation:
        return f"place {name} is reserved (reservation {reservation})"
    return f"place {name} was taken meanwhile, or shares a port with a place that is"


def _tags(tags: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(tags.items()) if key != "name") or "no tag"


def _switch(client: Path, coordinator: str, holder: str) -> Callable[[str], str]:
    """Return what makes the command that switches a place's supply: labgrid's client, as who holds it."""
    host, _, user = holder.partition("/")
    words = ["env", f"LG_HOSTNAME={host}", f"LG_USERNAME={user}", str(client), "-x", coordinator]
    return lambda place: f"{shlex.join([*words, '-p', place, 'power'])} {{action}}"


def _write_rack(
    rack: Path,
    boards: list[dict[str, Any]],
    out: Path,
    keeper: subprocess.Popen[str],
    switch: Callable[[str], str],
) -> Path:
    yaml = YAML(typ="safe")
    content = yaml.load(rack.read_text(encoding="utf-8"))
    del content["places"]
    content["boards"] = [_entry(board, switch) for board in boards]
    content["leased"] = {
        "from": str(rack.resolve()),
        "keeper_pid": keeper.pid,
        "keeper": " ".join(map(str, keeper.args)),  # type: ignore[arg-type]
    }
    path = out.absolute() / "places" / f"{rack.stem}-{keeper.pid}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        yaml.dump(content, file)
    return path


def _entry(told: Mapping[str, Any], switch: Callable[[str], str]) -> dict[str, Any]:
    """Return a board's entry: as it was exported, at the port where it is now, and its place's switch."""
    place, board, port = told["place"], told["board"], told["port"]
    version = board.get("schema") if board else None
    if version != BOARD_SCHEMA:
        raise ConfigError(
            f"place {place}: its exporter {told['exporter']} describes boards in version "
            f"{version or '?'} of {BOARD_CLASS}, but this hil reads {BOARD_SCHEMA}.",
            next_step="write its configuration again (`hil exporter`) and restart labgrid-exporter.",
        )
    scheme = {"raw": "socket", "rfc2217": "rfc2217"}[port["protocol"]]
    entry: dict[str, Any] = json.loads(board["entry"])
    if entry["kind"] == "physical":
        power = {"power": {"type": "command", "command": switch(place)}} if told["power"] else {}
        return {**entry, "serial": f"{scheme}://{port['host']}:{port['port']}", **power}
    if not _is_loopback(port["host"]):
        raise ConfigError(
            f"place {place}: board {entry['id']} is {entry['kind']} and runs on {port['host']}, "
            "which is another host.",
            next_step="run hil there, and export with --hostname 127.0.0.1: the board needs its rack's air.",
        )
    return {**entry, "serial": f"fastrfc2217://127.0.0.1:{port['port']}", "power": {"type": "virtual"}}


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(socket.gethostbyname(host)).is_loopback
    except (OSError, ValueError):
        return False
