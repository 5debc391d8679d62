# SPDX-License-Identifier: Apache-2.0
"""Smart plugs over HTTP: Tasmota's commands, and Shelly's two generations of API.

After switching, each is asked for its relay's state, and one that says otherwise has failed.
"""

from __future__ import annotations

import base64
import http.client
import json
import time
import urllib.request
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode

_ANSWER_BYTES_MAX = 64 << 10
_REQUEST_TIMEOUT_S = 5.0  # of each; a plug answers in milliseconds, and its Wi-Fi may repeat
_USER = "admin"


class PlugError(Exception):
    """What went wrong, as the end of a sentence."""


def switch_tasmota(url: str, relay: int, *, on: bool, password: str, timeout_s: float) -> None:
    """Switch a relay, counted from 1. Raises PlugError."""
    login = {"user": _USER, "password": password} if password else {}

    def ask(command: str) -> str:
        query = urlencode({**login, "cmnd": command}, quote_via=quote)
        answer = _get(f"{url}/cm?{query}", deadline, refused=_wants(password))
        if "WARNING" in answer:
            raise PlugError(_wants(password))
        # A plug with one relay calls it POWER, one with more POWER1, POWER2, …
        state = answer.get(f"POWER{relay}", answer.get("POWER") if relay == 1 else None)
        if not isinstance(state, str):
            raise PlugError(f"it has no relay {relay}, or is no Tasmota; it says {_shown(answer)}")
        if state not in ("ON", "OFF"):
            raise PlugError(f"it calls a relay's state {state!r}; set StateText1 to OFF and StateText2 to ON")
        return state

    deadline = time.monotonic() + timeout_s
    ask(f"Power{relay} {'On' if on else 'Off'}")
    _check(ask(f"Power{relay}") == "ON", on=on)


def switch_shelly(url: str, relay: int, *, on: bool, password: str, timeout_s: float) -> None:
    """Switch a relay, counted from 0. Raises PlugError."""
    deadline = time.monotonic() + timeout_s
    about = _get(f"{url}/shelly", deadline)
    if about.get("gen", 1) >= 2:
        if about.get("auth_en"):
            raise PlugError("it wants a login of the second generation (digest, SHA-256), which is not known")
        _get(f"{url}/rpc/Switch.Set?id={relay}&on={'true' if on else 'false'}", deadline)
        state = _get(f"{url}/rpc/Switch.GetStatus?id={relay}", deadline).get("output")
    else:
        address = f"{url}/relay/{relay}"
        _get(f"{address}?turn={'on' if on else 'off'}", deadline, password)
        state = _get(address, deadline, password).get("ison")
    if not isinstance(state, bool):
        raise PlugError(f"it does not tell the state of relay {relay}")
    _check(state, on=on)


def _check(is_on: bool, *, on: bool) -> None:
    if is_on != on:
        raise PlugError(f"it took the command, and its relay is still {'on' if is_on else 'off'}")


def _wants(password: str) -> str:
    return "it refuses the password of password_env" if password else "it wants a password (password_env)"


def _get(url: str, deadline: float, password: str = "", *, refused: str = "") -> dict[str, Any]:
    """Return the JSON object at an address; no proxy of the environment is asked.

    ``refused`` says what an answer of status 401 means, where the password is in the address.
    """
    request = urllib.request.Request(url)  # noqa: S310 - the rack file takes http alone
    if password:
        login = base64.b64encode(f"{_USER}:{password}".encode()).decode()
        request.add_header("Authorization", f"Basic {login}")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    left_s = min(_REQUEST_TIMEOUT_S, deadline - time.monotonic())
    if left_s <= 0:
        raise PlugError("it did not answer in time")
    try:
        with opener.open(request, timeout=left_s) as answer:
            content = answer.read(_ANSWER_BYTES_MAX)
    except HTTPError as error:
        error.close()  # it is the answer, and its connection
        wants = f"; {refused or _wants(password)}" if error.code == 401 else ""
        raise PlugError(f"it answered with HTTP status {error.code}{wants}") from error
    except (OSError, http.client.HTTPException) as error:
        cause = getattr(error, "reason", None) or error
        raise PlugError(f"it did not answer: {cause}") from error
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise PlugError("it answers, and not in JSON, so it is another device") from error
    if not isinstance(value, dict):
        raise PlugError(f"it answers {_shown(value)}, so it is another device")
    return value


def _shown(value: object) -> str:
    return json.dumps(value)[:80]
