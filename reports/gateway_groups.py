# SPDX-License-Identifier: Apache-2.0
"""What a Pushgateway holds: its groups by their labels, how old they are, and taking some away.

HTTP with a Pushgateway: credentials from the environment, no redirects, and errors put into words.
"""

from __future__ import annotations

import json
import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from prometheus_client.exposition import delete_from_gateway

from hil.base.errors import ConfigError, RigError
from hil.base.gateway_url import PASSWORD_VARIABLE, USER_VARIABLE, masked, problem_of
from hil.base.secret import secret
from hil.base.untrusted import visible
from hil.reports.metrics import group_key, group_name

_MAX_ANSWER = 200
_MOST_SAID = 100  # characters of what went wrong
_MOST_BYTES = 64 << 20  # of an answer


def sender(
    url: str, method: str, timeout: float, headers: Sequence[tuple[str, str]], data: bytes | None
) -> Callable[[], None]:
    """Return what sends one request, in the shape that prometheus-client asks for."""
    request = _request(url, method, headers, data)

    def send() -> None:
        build_opener(_NoRedirect).open(request, timeout=timeout).close()

    return send


def get(url: str, *, timeout_s: float) -> bytes:
    """Return what is at ``url``. Raises OSError, HTTPException or ValueError, which explain() words."""
    with build_opener(_NoRedirect).open(_request(url, "GET", [], None), timeout=timeout_s) as answer:
        body: bytes = answer.read(_MOST_BYTES + 1)
    if len(body) > _MOST_BYTES:
        raise ValueError(f"it answers with more than {_MOST_BYTES >> 20} MiB")
    return body


def explain(error: Exception, timeout_s: float) -> tuple[str, str]:
    """Return what came back, and the way out."""
    if isinstance(error, HTTPError):
        with error:
            return _explain_answer(error)
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, TimeoutError):
        return f"no answer within {timeout_s:g} s", "check that it is up and reachable from this host."
    if isinstance(reason, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted ({reason.verify_message})",
            "name the file of its certificate authority in SSL_CERT_FILE.",
        )
    text = reason.strerror if isinstance(reason, OSError) and reason.strerror else str(reason)
    said = visible(text, _MOST_SAID) or type(reason).__name__  # it may be all that a stranger sent
    return said, "check scheme, host and port, and that the Pushgateway is up."


def _request(url: str, method: str, headers: Sequence[tuple[str, str]], data: bytes | None) -> Request:
    request = Request(url, data, dict(headers), method=method)  # noqa: S310 (problem_of saw to the scheme)
    if credentials := _credentials():
        request.add_header("Authorization", f"Basic {b64encode(':'.join(credentials).encode()).decode()}")
    return request


class _NoRedirect(HTTPRedirectHandler):
    """Takes a redirect for an error: the password is not for another host."""

    def redirect_request(self, *_: object) -> None:
        return None


def _credentials() -> tuple[str, str] | None:
    """Return user name and password where the environment holds both."""
    user, password = secret(USER_VARIABLE), secret(PASSWORD_VARIABLE)
    return (user, password) if user and password else None


def _explain_answer(error: HTTPError) -> tuple[str, str]:
    answer = f"it answered {error.code} {error.reason}"
    if error.code in (401, 403):
        verb = "correct" if _credentials() else "set"
        return answer, f"{verb} {USER_VARIABLE} and {PASSWORD_VARIABLE} in the environment."
    if error.code in (404, 405):
        shape = "written without /metrics, and with a route prefix where it has one"
        return answer, f"check the address: it is {shape}."
    if error.code in (301, 302, 303, 307, 308):
        there = error.headers.get("Location", "").partition("/metrics/job")[0]
        return f"it redirects to {masked(there) or 'nowhere'}", "name that address instead."
    said = ""
    with suppress(OSError, HTTPException):
        said = " ".join(error.read(_MAX_ANSWER).decode(errors="replace").split())
    way_out = _OF_ANOTHER_KIND if "inconsistent" in said else "its log may say more."
    return f"{answer}: {said}" if said else answer, way_out


_OF_ANOTHER_KIND = (
    "another group there has this metric as another type: delete that group on the gateway's page, or rename "
    "the metric."
)


_POLL_S = 0.05
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Held:
    """A group that the gateway holds; times are Unix times, ``run_started_s`` None where it is not known."""

    job: str
    rack: str
    board: str
    pushed_s: float
    run_started_s: float | None = None
    run_id: str = ""
    product: str = ""

    @property
    def place(self) -> tuple[str, str, str, str]:
        return self.job, self.rack, self.board, self.product

    @property
    def name(self) -> str:
        return group_name(self.rack, self.board, self.product)


def held_groups(url: str, *, timeout_s: float) -> tuple[Held, ...]:
    """Return the groups that runs pushed for boards: of a job ``hil_…``, a rack, a board, perhaps a product.

    Raises:
        ConfigError: ``url`` is no address of a gateway.
        RigError: the gateway does not answer as one does.
    """
    return tuple(
        sorted(
            (held for group in _read(url, timeout_s) if (held := _held(group))),
            key=lambda held: (held.rack, held.board, held.product, held.job),
        )
    )


def delete_groups(url: str, groups: Collection[Held], *, timeout_s: float) -> None:
    """Take groups away, and wait until they are gone: the gateway answers before it has done it.

    Raises:
        RigError: it refuses, or still holds one of them after ``timeout_s``.
    """
    deadline = time.monotonic() + timeout_s
    for held in groups:
        key = group_key(held.rack, held.board, held.product)

        def delete(job: str = held.job, key: dict[str, str] = key) -> None:
            delete_from_gateway(url, job, grouping_key=key, timeout=timeout_s, handler=sender)

        _asked(url, timeout_s, delete)
    places = {held.place for held in groups}
    while left := [h for h in held_groups(url, timeout_s=timeout_s) if h.place in places]:
        if time.monotonic() > deadline:
            raise RigError(
                f"the Pushgateway at {url} took the request but still holds {left[0].job} of {left[0].name}.",
                next_step="a run may have pushed it again just now; look at the gateway's log.",
            )
        time.sleep(_POLL_S)


def _read(url: str, timeout_s: float) -> Sequence[Mapping[str, Any]]:
    if problem := problem_of(url):
        raise ConfigError(problem)

    def ask() -> Sequence[Mapping[str, Any]]:
        answer = json.loads(get(f"{url.rstrip('/')}/api/v1/metrics", timeout_s=timeout_s))
        if not isinstance(answer, dict) or not isinstance(answer.get("data"), list):
            raise ValueError("what answers there is no Pushgateway")  # noqa: TRY004 - of the answer
        return [group for group in answer["data"] if isinstance(group, dict)]

    return _asked(url, timeout_s, ask)


def _asked(url: str, timeout_s: float, request: Callable[[], _Result]) -> _Result:
    try:
        return request()
    except json.JSONDecodeError as error:
        raise RigError(
            f"what answers at {url} is no Pushgateway.", next_step="check host and port."
        ) from error
    except (OSError, HTTPException, ValueError) as error:
        what, way_out = explain(error, timeout_s)
        raise RigError(f"the Pushgateway at {url} cannot be asked: {what}.", next_step=way_out) from error


def _held(group: Mapping[str, Any]) -> Held | None:
    labels = group.get("labels", {})
    if set(labels) - {"product"} != {"job", "rack", "board"} or not labels["job"].startswith("hil_"):
        return None
    of_run = _first(group, "hil_run_info").get("labels", {})
    started = _first(group, "hil_run_timestamp_seconds")
    return Held(
        **labels,
        pushed_s=float(_first(group, "push_time_seconds").get("value", 0.0)),
        run_started_s=float(started["value"]) if "value" in started else None,
        run_id=of_run.get("run_id", ""),
    )


def _first(group: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the first sample of a metric of the group, nothing where it has none."""
    samples = group.get(name, {}).get("metrics", [])
    return samples[0] if samples else {}
