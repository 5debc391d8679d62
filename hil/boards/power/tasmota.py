# SPDX-License-Identifier: Apache-2.0
"""A plug with Tasmota, by its commands over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, urlencode

from hil.base.errors import RigError
from hil.boards.http_plug import USER, HttpPlug, shown


@dataclass(frozen=True)
class Tasmota(HttpPlug):
    """``relay`` counts from 1."""

    first_relay = 1

    def switch(self, *, on: bool) -> None:
        self._ask(f"Power{self.relay} {'On' if on else 'Off'}")

    def is_on(self) -> bool:
        return self._ask(f"Power{self.relay}") == "ON"

    def _ask(self, command: str) -> str:
        password = self.password()
        login = {"user": USER, "password": password} if password else {}
        answer = self.get(f"/cm?{urlencode({**login, 'cmnd': command}, quote_via=quote)}")
        if "WARNING" in answer:
            raise self.failed(self.refusal())
        # A plug with one relay calls it POWER, one with more POWER1, POWER2, …
        state = answer.get(f"POWER{self.relay}", answer.get("POWER") if self.relay == 1 else None)
        if not isinstance(state, str):
            raise self.failed(f"it has no relay {self.relay}, or is no Tasmota; it says {shown(answer)}")
        if state not in ("ON", "OFF"):
            raise RigError(
                f"it reports the unknown relay state {state!r}.",
                next_step="set StateText1 to OFF and StateText2 to ON.",
            )
        return state
