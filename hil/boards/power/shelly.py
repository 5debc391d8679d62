# SPDX-License-Identifier: Apache-2.0
"""A Shelly plug, by the first and the second generation of its API."""

from __future__ import annotations

from dataclasses import dataclass

from hil.boards.http_plug import HttpPlug


@dataclass(frozen=True)
class Shelly(HttpPlug):
    """``relay`` counts from 0."""

    def switch(self, *, on: bool) -> None:
        if self._is_second_generation():
            self.get(f"/rpc/Switch.Set?id={self.relay}&on={'true' if on else 'false'}")
        else:
            self.get(f"/relay/{self.relay}?turn={'on' if on else 'off'}", login=True)

    def is_on(self) -> bool:
        if self._is_second_generation():
            state = self.get(f"/rpc/Switch.GetStatus?id={self.relay}").get("output")
        else:
            state = self.get(f"/relay/{self.relay}", login=True).get("ison")
        if not isinstance(state, bool):
            raise self.failed(f"it does not tell the state of relay {self.relay}")
        return state

    def _is_second_generation(self) -> bool:
        about = self.get("/shelly")
        second = bool(about.get("gen", 1) >= 2)
        if second and about.get("auth_en"):
            raise self.failed("it wants a login of the second generation (SHA-256), which is not known")
        return second
