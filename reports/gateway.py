# SPDX-License-Identifier: Apache-2.0
"""HTTP with a Pushgateway: credentials from the environment, no redirects, and errors put into words."""

from __future__ import annotations

import ssl
from base64 import b64encode
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from hil.base.gateway_url import PASSWORD_VARIABLE, USER_VARIABLE, masked
from hil.base.secret import secret
from hil.base.untrusted import visible

_MAX_ANSWER = 200
_MOST_SAID = 100  # characters of what went wrong


def sender(
    url: str, method: str, timeout: float, headers: Sequence[tuple[str, str]], data: bytes | None
) -> Callable[[], None]:
    """Return what sends one request, in the shape that prometheus-client asks for."""
    request = _request(url, method, headers, data)

    def send() -> None:
        build_opener(_NoRedirect).open(request, timeout=timeout).close()

    return send


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
