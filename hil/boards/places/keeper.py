# SPDX-License-Identifier: Apache-2.0
"""Holds places at a labgrid coordinator for as long as its standard input is open.

A program of its own, run by the Python that has labgrid, and so without anything of ``hil``: labgrid brings a
``serial`` package that would overwrite pyserial's. It reads one line of JSON, the request; answers with one
line of JSON on standard output; and releases when standard input ends, which the kernel sees to however the
run died. It stands on labgrid's ClientSession: what labgrid-client prints is for people, and changes.
"""

from __future__ import annotations

import asyncio
import functools
import getpass
import json
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
from labgrid.remote.client import ClientSession, ServerError
from labgrid.remote.generated import labgrid_coordinator_pb2 as pb2

RETRY_S = 0.5
FREE_ATTEMPTS = 6
CANCEL_S = 5.0  # for what holds the places to end
MARK = ":hil."
POWER = (  # what labgrid-client switches by itself, with a driver of labgrid's
    "NetworkPowerPort",
    "NetworkUSBPowerPort",
    "NetworkSiSPMPowerPort",
    "NetworkYKUSHPowerPort",
    "PDUDaemonPort",
    "TasmotaPowerPort",
)
# A coordinator that restarts forgets who held what. Whoever had a place is back within SETTLE_S, and claims
# it from whoever was faster, who has told nobody of it yet.
SETTLE_S = 2.0
CLAIM = "hil_claim"  # a place's tag
CLAIM_POLL_S = 0.2


def start_ticks(pid: int) -> str:
    """Return when a process started, which tells it from a later one of its id; "" where there is none."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return ""
    state, parent, *rest = line.rpartition(")")[2].split()
    return "" if (state, parent) == ("Z", "1") else rest[17]  # not every init buries what it inherits


def scope() -> str:
    """Return where process ids mean the same: this boot of this kernel, and this namespace."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8")[:8]
    return f"{Path('/proc/self/ns/pid').readlink().name[5:-1]}-{boot}"


@functools.cache  # the name stays when the run has ended, and its start cannot be read any more
def holder_name(run_pid: int) -> tuple[str, str]:
    """Return host and user under which this process acquires for a run: no two leases ever have the same."""
    process = f"{run_pid}.{start_ticks(run_pid)}.{scope()}.{os.getpid()}"
    return socket.gethostname(), f"{getpass.getuser()}{MARK}{process}"


def is_dead(acquired: str) -> bool:
    """Whether a place is held for a run of this host that is no more; False where that is not certain.

    It is the run that counts: it works with the board though its keeper was killed, until it has ended.
    """
    host, _, user = acquired.partition("/")
    _, mark, process = user.partition(MARK)
    parts = process.split(".")
    if host != socket.gethostname() or not mark or len(parts) != 4 or parts[2] != scope():
        return False
    return start_ticks(int(parts[0])) != parts[1]


class Refused(Exception):  # noqa: N818 - an answer rather than an error
    """The request cannot be met; holds the answer."""

    def __init__(self, why: str, **facts: object) -> None:
        super().__init__(why)
        self.answer = {"refused": why, **facts}


class Session(ClientSession):  # type: ignore[misc]
    """A session under a name of its own, for a run."""

    run_pid = 0
    since = 0.0  # the coordinator is at least as old

    def gethostname(self) -> str:
        return holder_name(self.run_pid)[0]

    def getuser(self) -> str:
        return holder_name(self.run_pid)[1]

    @property
    def name(self) -> str:
        return "/".join(holder_name(self.run_pid))


async def connect(address: str, run_pid: int) -> Session:
    """Return a session that knows all places and resources. Raises Refused where no coordinator answers."""
    session = Session(address, asyncio.get_running_loop())
    session.run_pid = run_pid
    try:
        await asyncio.wait_for(session.start(), 10)
    except (ServerError, TimeoutError):
        await session.close()
        raise Refused("unreachable") from None
    session.since = time.monotonic()
    return session


async def disconnect(session: Session) -> None:
    session.stopping.set()
    await session.stop()
    await session.close()


def wanted(session: Session, match: dict[str, str]) -> list[str]:
    """Return the places that have all tags; a place's name is a tag too."""
    tags = {name: {"name": name, **place.tags} for name, place in session.places.items()}
    found = sorted(name for name, has in tags.items() if match.items() <= has.items())
    if not found:
        near = sorted(tags, key=lambda name: (-len(match.items() & tags[name].items()), name))
        raise Refused("no match", near={name: tags[name] for name in near[:5]})
    return found


def resources(session: Session, place: str) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield exporter, group, class and parameters of what is exported of a place now."""
    for exporter, groups in session.resources.items():
        for group, entries in groups.items():
            for name, entry in entries.items():
                if entry.data and session.places[place].hasmatch((exporter, group, entry.cls, name)):
                    yield exporter, group, entry.cls, dict(entry.data["params"])


def board_of(session: Session, place: str) -> dict[str, Any]:
    """Return a place's serial port, the board's own entry, and whether it has a switch.

    Raises Refused where nobody exports them.
    """
    for exporter, group, cls, params in resources(session, place):
        if cls != "NetworkSerialPort":
            continue
        beside = session.resources[exporter][group].values()
        told = next((dict(one.data["params"]) for one in beside if one.data and one.cls == "HilBoard"), None)
        port = {key: params.get(key) for key in ("host", "port", "protocol", "speed")}
        power = any(other in POWER for _exporter, _group, other, _params in resources(session, place))
        return {"place": place, "exporter": exporter, "port": port, "board": told, "power": power}
    patterns = [repr(match) for match in session.places[place].matches]
    raise Refused("not exported", place=place, matches=patterns)


async def acquire(session: Session, place: str) -> bool:
    """Acquire a place; return whether it is ours. One that a dead process of this host held is freed."""
    for _attempt in range(2):
        try:
            await session.stub.AcquirePlace(pb2.AcquirePlaceRequest(placename=place))
        except grpc.aio.AioRpcError as error:
            if is_gone(error):
                raise
        # asked for: of a client that died in the middle of it, the coordinator may have told nobody
        for one in (await session.stub.GetPlaces(pb2.GetPlacesRequest())).places:
            await session.on_place_changed(one)
        held = held_by(session, place)
        if not held or not is_dead(held):
            break
        await release(session, place, held)
    return held_by(session, place) == session.name


async def release(session: Session, place: str, held_by: str) -> None:
    """Release a place if exactly this holder has it: the coordinator compares, so nobody else loses it."""
    await session.stub.ReleasePlace(pb2.ReleasePlaceRequest(placename=place, fromuser=held_by))


async def acquire_all(session: Session, request: dict[str, Any], ended: asyncio.Task[None]) -> list[str]:
    """Return the places that are ours now: as many as asked, or all that match; else raise Refused.

    It is never cancelled, as a call might be acting at the coordinator still; once ``ended`` it gives up.
    """
    while True:
        matching = wanted(session, request["match"])
        count = request["count"] or len(matching)
        if count > len(matching):
            raise Refused("too few", places=matching, count=count)
        claims = {place: claim_on(session, place) for place in matching}
        ours = await take(session, matching, count)
        if len(ours) == count and await settle(session, {place: claims[place] for place in ours}, ended):
            return ours
        others = [(name, session.places[name]) for name in matching if name not in ours]
        facts = [
            (name, place.acquired or "", place.changed, place.reservation or "") for name, place in others
        ]
        await release_all(session, ours)
        if ended.done() or time.monotonic() >= request["deadline"]:
            raise Refused("taken", places=facts)
        await asyncio.wait((ended,), timeout=RETRY_S)


async def take(session: Session, matching: list[str], count: int) -> list[str]:
    """Acquire places in their order until there are enough, or cannot be: so of two runs one gets on.

    A place that nobody exports is given back, and the next one taken. Raises Refused where it was needed.
    """
    ours: list[str] = []
    missing: Refused | None = None
    for tried, place in enumerate(matching):
        if len(ours) == count or len(ours) + len(matching) - tried < count:
            break
        if await acquire(session, place):
            try:
                board_of(session, place)
                ours.append(place)
            except Refused as refused:
                missing = refused
                await release_all(session, [place])
    if missing and len(ours) < count:
        await release_all(session, ours)
        raise missing
    return ours


async def settle(session: Session, claims: dict[str, str], ended: asyncio.Task[None]) -> bool:
    """Whether nobody claims the places, whose claims before they were acquired are given.

    It waits until whoever held one before the coordinator restarted would have claimed it: where a claim was
    there before, for that long from now on. Raises Refused where the coordinator is gone meanwhile.
    """
    until = (time.monotonic() if any(claims.values()) else session.since) + SETTLE_S
    while not ended.done():
        if session.stopping.is_set():
            raise Refused("unreachable")
        if any(claim_on(session, place) not in ("", before) for place, before in claims.items()):
            return False
        left_s = until - time.monotonic()
        if left_s <= 0:
            return all(held_by(session, place) == session.name for place in claims)
        await asyncio.wait((ended,), timeout=min(left_s, CLAIM_POLL_S))
    return False


def claim_on(session: Session, place: str) -> str:
    return session.places[place].tags.get(CLAIM, "") if place in session.places else ""


async def release_all(session: Session, places: list[str]) -> None:
    for place in places:
        await release(session, place, session.name)


async def keep(session: Session, places: list[str], request: dict[str, Any]) -> None:
    """Hold the places until cancelled, or until one is lost, which ends the run."""
    gone: set[str] = set()
    try:
        while True:
            if session.stopping.is_set():
                say(
                    f"the labgrid coordinator {request['coordinator']} is gone; the boards stay with the run."
                )
                await disconnect(session)
                session = await reconnect(request["coordinator"], request["run_pid"])
                if not await regain_all(session, places, request["run_pid"]):
                    return
                continue
            if not all_held(session, places, request["run_pid"]):
                return
            missing = {place for place in places if not any(resources(session, place))}
            for place in sorted(missing - gone):
                say(f"nobody exports place {place} any more: its exporter, or the way to it, is dead.")
            gone = missing
            with suppress(TimeoutError):
                await asyncio.wait_for(session.stopping.wait(), RETRY_S)
    finally:
        await disconnect(session)


async def regain_all(session: Session, places: list[str], run_pid: int) -> bool:
    """Acquire each place again: a coordinator that restarted has forgotten who held what."""
    try:
        lost = [place for place in places if not await regain(session, place)]
    except grpc.aio.AioRpcError:
        session.stopping.set()  # it is gone again
        return True
    if lost:
        return all_held(session, places, run_pid)
    say(f"the labgrid coordinator is back, and the run holds {', '.join(places)} as before.")
    return True


def all_held(session: Session, places: list[str], run_pid: int) -> bool:
    """Whether the run has its places still; else it is ended, for somebody else works with its boards."""
    lost = [place for place in places if held_by(session, place) != session.name]
    if lost:
        by = "; ".join(f"{place} to {held_by(session, place) or 'nobody'}" for place in lost)
        say(f"these places were taken from the run: {by}. It is ended.")
        os.kill(run_pid, signal.SIGTERM)
    return not lost


def held_by(session: Session, place: str) -> str:
    return session.places[place].acquired or "" if place in session.places else ""


async def reconnect(address: str, run_pid: int) -> Session:
    while True:
        try:
            return await connect(address, run_pid)
        except Refused:
            await asyncio.sleep(CLAIM_POLL_S)


async def regain(session: Session, place: str) -> bool:
    """Acquire a place again; claim it from another lease that took it since the coordinator is back."""
    deadline = time.monotonic() + SETTLE_S + RETRY_S
    claims = 0
    try:
        while place in session.places:
            if await acquire(session, place):
                return True
            if MARK not in held_by(session, place) or time.monotonic() > deadline:
                return False
            claims += 1  # a new one each time, which tells it from what a dead holder left
            await tag(session, place, f"{session.name}.{claims}")
            await asyncio.sleep(CLAIM_POLL_S)
        return False
    finally:
        if claims:
            await tag(session, place, "")


async def tag(session: Session, place: str, claim: str) -> None:
    await session.stub.SetPlaceTags(pb2.SetPlaceTagsRequest(placename=place, tags={CLAIM: claim}))


def say(sentence: str) -> None:
    print(f"hil: {sentence}", file=sys.stderr, flush=True)


async def end_of_input() -> None:
    """Return when standard input ends: the run is through, or dead."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    while await reader.read(1024):
        pass


async def tell(request: dict[str, Any]) -> None:
    """Answer which places there are, and who has them: nothing is acquired."""
    session = await connect(request["coordinator"], request["run_pid"])
    try:
        places = {}
        for name in wanted(session, request["match"]):
            place, found = session.places[name], next(resources(session, name), None)
            facts = {"tags": dict(place.tags), "acquired": place.acquired or "", "changed": place.changed}
            places[name] = {**facts, "exporter": found[0] if found else ""}
    finally:
        await disconnect(session)
    answer({"places": places})


async def serve(request: dict[str, Any]) -> None:
    request["deadline"] = time.monotonic() + request["wait_s"]
    ended = asyncio.create_task(end_of_input())
    session, places, boards = await lease(request, ended)
    answer({"holder": session.name, "boards": boards})
    keeping = asyncio.create_task(keep(session, places, request))
    await asyncio.wait((ended, keeping), return_when=asyncio.FIRST_COMPLETED)
    keeping.cancel()
    await asyncio.wait((keeping,), timeout=CANCEL_S)
    await free(request["coordinator"], request["run_pid"], places)


async def lease(
    request: dict[str, Any], ended: asyncio.Task[None]
) -> tuple[Session, list[str], list[dict[str, Any]]]:
    """Return a session, the places that are ours, and their boards.

    Coordinator and exporter are waited for, too.
    """
    while True:
        try:
            session = await connect(request["coordinator"], request["run_pid"])
            try:
                places = await acquire_all(session, request, ended)
                return session, places, [board_of(session, place) for place in places]
            except BaseException:
                await disconnect(session)
                raise
        except (Refused, grpc.aio.AioRpcError) as error:
            passing = ("unreachable", "not exported")  # what is down may come up
            lasting = str(error) not in passing if isinstance(error, Refused) else not is_gone(error)
            if lasting or ended.done() or time.monotonic() >= request["deadline"]:
                raise
        await asyncio.wait((ended,), timeout=RETRY_S)


def is_gone(error: grpc.aio.AioRpcError) -> bool:
    return bool(error.code() == grpc.StatusCode.UNAVAILABLE)


async def free(address: str, run_pid: int, places: list[str]) -> None:
    """Release in a session of its own: the other may be in the middle of anything.

    A coordinator that is down forgets who held what. One that is slow, or that has not noticed the end of the
    other session and takes none of the same name, does not: it is asked again.
    """
    for _attempt in range(FREE_ATTEMPTS):
        with suppress(Refused):
            session = await connect(address, run_pid)
            await release_all(session, places)
            await disconnect(session)
            return
        await asyncio.sleep(RETRY_S)
    names = ", ".join(places)
    say(f"the labgrid coordinator {address} does not answer: {names} may stay taken until the next run here.")


def answer(told: dict[str, object]) -> None:
    with suppress(BrokenPipeError):  # a run that was killed reads nothing
        os.write(1, json.dumps(told).encode() + b"\n")


def main() -> None:
    logging.disable(logging.CRITICAL)  # what went wrong is in the answer
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)  # meant for the run, whose end is this one's
    line = os.read(0, 65536).decode()  # unbuffered: the rest of standard input is waited for
    if not line:
        return
    try:
        request = json.loads(line)
        asyncio.run(tell(request) if request.get("tell") else serve(request))
    except Refused as refused:
        answer(refused.answer)
    except grpc.aio.AioRpcError as error:
        if is_gone(error):
            answer({"refused": "unreachable"})
            return
        answer({"refused": "rpc", "details": f"{error.code().name}: {error.details()}"})


if __name__ == "__main__":
    main()
