# SPDX-License-Identifier: Apache-2.0
"""Start, watch and end what `delivery` and `echo` share: broker, captures, program, air and faults."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress

from hil.model import Scalar
from hil.network.dissect.tshark import require_tshark
from hil.network.peers.companion import Companion, Place
from hil.network.peers.mqtt.bench_broker import BenchBroker
from hil.network.peers.mqtt.board_air import BoardAir
from hil.network.peers.mqtt.dissecting import Captures, CaseCaptures, Dissected, counts_facts, dissected_facts
from hil.network.peers.mqtt.fault_schedule import FaultSchedule, Moment
from hil.network.peers.mqtt.faults import FaultTargets, check_fault, switch_of
from hil.network.peers.mqtt.peer_program import PeerProgram
from hil.network.peers.mqtt.settings import Settings
from hil.network.standstill import Standstill


class MqttPeer(Companion):
    """Start, watch and end the host's side. ``program`` is the module's name of the client that answers."""

    def __init__(self, place: Place, settings: Settings, program: str) -> None:
        self._place = place
        self._settings = settings
        self._program_name = program
        self._began_us = 0
        self._captures: Captures | None = None
        self._faults: FaultSchedule | None = None
        self._standstills: list[Standstill] = []
        self.air = BoardAir(place, settings.air)
        self.broker: BenchBroker | None = None
        self.program: PeerProgram | None = None

    def options(self) -> Mapping[str, object]:
        """Return the client's own options."""
        return {}

    def start(self) -> Mapping[str, str | int]:
        """Start all of it; returns what the board is to be told.

        Raises ConfigError: the rack cannot make this case. RigError: a program is missing, or a part did not
        start, with its words.
        """
        place, settings = self._place, self._settings
        require_tshark()
        self.air.check(settings.fault.kind)
        check_fault(place, settings.fault.kind)
        broker = self.broker = BenchBroker.start(place, settings)
        self._standstills.append(
            Standstill("The case's MQTT broker", lambda: broker.broker.pid, broker.broker.absences)
        )
        self._began_us = time.time_ns() // 1000
        self._captures = Captures.start(place, sorted({broker.port, broker.broker.ports.tcp}))
        peer_port = broker.broker.ports.tcp
        self.program = PeerProgram(place, settings, self._program_name, peer_port, self.options())
        self.program.await_subscribed()
        if settings.fault.kind != "subscriber_away":  # which halts it
            program = self.program
            self._standstills.append(Standstill(program.title, lambda: program.pid))
        self.air.start()
        self._start_faults(broker, self.program)
        return broker.broker.provision()

    def check(self) -> None:
        """Raise what broke: the broker first, for it explains the rest."""
        for part in (self._faults, self.broker and self.broker.broker, self._captures, self.program):
            if part:
                part.check()
        for standstill in self._standstills:
            standstill.check()

    def end_faults(self) -> tuple[Moment, ...]:
        """Undo the fault that is going on and make no more. Raises what kept one from being made."""
        return self._faults.finish() if self._faults else ()

    def end(self) -> CaseCaptures:
        """End client, captures and broker, put the air back. Raises RigError where one had ended before."""
        assert self._captures is not None
        broker, program = self.running()
        self.check()
        program.stop()
        access_point, at_broker = self._captures.stop()
        broker.broker.stop()
        self.air.put_back()
        return CaseCaptures(access_point, at_broker, self._began_us, broker.tls_followed)

    def running(self) -> tuple[BenchBroker, PeerProgram]:
        """Return broker and client, which start() has started."""
        assert self.broker is not None
        assert self.program is not None
        return self.broker, self.program

    def facts(self, seen: CaseCaptures, dissected: Dissected) -> Mapping[str, Scalar]:
        """Return what the record says of every such case: its broker, its air, what was captured."""
        assert self.broker is not None
        place = self._place
        peer_port = self.broker.broker.ports.tcp
        return {
            **self.broker.facts(),
            "tls_followed": seen.tls_followed,
            "impaired": self.air.impaired,
            "air_profile": self._settings.air.profile,
            **dissected_facts(
                dissected,
                board_address=place.board_address,
                host_address=place.host_address,
                peer_port=peer_port,
            ),
            **counts_facts(seen.access_point, seen.broker),
        }

    def keep_or_remove(self) -> None:
        """Remove the captures where they were not asked for, and whatever is empty."""
        if self._captures and not self._place.keep_captures:
            self._captures.remove()
        for path in self._place.folder.iterdir():
            if path.is_file() and path.stat().st_size == 0:
                path.unlink()

    def stop(self) -> None:
        """End everything, whatever happened before, and put the air back. Never raises."""
        if self._faults:
            self._faults.stop()
        self.air.put_back()
        for standstill in self._standstills:
            standstill.end()
        for part in (self.program, self.broker):
            if part:
                with suppress(Exception):  # each is to be tried
                    part.stop()
        if self._captures:
            self._captures.kill()

    def _start_faults(self, broker: BenchBroker, program: PeerProgram) -> None:
        plan = self._settings.fault
        if plan.timed:
            targets = FaultTargets(self._place, broker.broker, program, self.air, broker.port)
            self._faults = FaultSchedule(plan, switch_of(plan.kind, targets), program.has_first)
            self._faults.start()
