"""Pushes a run's metrics to a Prometheus Pushgateway; what fails is a sentence, never an exception."""

from __future__ import annotations

import os
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from prometheus_client.exposition import push_to_gateway

from hil.errors import HilError
from hil.gateway_url import PASSWORD_VARIABLE, USER_VARIABLE, masked, problem_of
from hil.store import RunDirectory
from reports.metrics import Group, board_groups
from reports.stored import read_verdict

_MAX_ANSWER = 200


def push_run(url: str, run_path: Path, *, timeout_s: float) -> str | None:
    """Push one group a board and return a warning, or None where all went well.

    A group replaces the one that the board's run before left there (PUT), so no figure looks newer than it
    is. After ``timeout_s`` altogether, or the first failure, the rest is given up. User name and password
    come from the environment: HIL_PUSHGATEWAY_USER and HIL_PUSHGATEWAY_PASSWORD.
    """
    if problem := problem_of(url):
        return f"No metrics were pushed: {problem}"
    try:
        directory = RunDirectory.open(run_path)
        groups = board_groups(directory.read_info(), read_verdict(directory.verdicts_path))
    except (HilError, OSError, ValueError) as error:
        return f"No metrics were pushed: {error}"
    if not groups:
        return f"No metrics were pushed: {run_path} names no board, neither in run.json nor in its verdict."
    push = _Push(url, groups, timeout_s)
    # name look-ups and slow answers have no deadline of their own in urllib, so another thread waits for them
    thread = threading.Thread(target=push.run, name="pushgateway", daemon=True)
    thread.start()
    thread.join(timeout_s)
    return push.failure() or _clashes(groups)


def _clashes(groups: Sequence[Group]) -> str | None:
    names = sorted({name for group in groups for name in group.families.clashes})
    if not names:
        return None
    return (
        f"Not pushed to the Pushgateway: {', '.join(names)}, because another metric comes to the same name "
        "there. Next: rename it in the thresholds file; docs/metrics.md tells how names are made."
    )


class _Push:
    """One attempt to push all groups."""

    def __init__(self, url: str, groups: Sequence[Group], timeout_s: float) -> None:
        self._url = url
        self._groups = groups
        self._timeout_s = timeout_s
        self._deadline = time.monotonic() + timeout_s
        self._pushed = 0
        self._reason: tuple[str, str] | None = None

    def run(self) -> None:
        try:
            for group in self._groups:
                left_s = self._deadline - time.monotonic()
                if left_s <= 0:
                    return
                self._push(group, left_s)
                self._pushed += 1
        except (OSError, HTTPException, ValueError) as error:
            self._reason = _explain(self._clearer(error), self._timeout_s)

    def _clearer(self, error: Exception) -> Exception:
        """Return the answer to a short request where the push itself broke off without one.

        A server that refuses at once may close the connection before it has read everything, and its answer
        is lost with it.
        """
        left_s = self._deadline - time.monotonic()
        if isinstance(error, HTTPError) or left_s <= 0:
            return error
        probe = f"{self._url.rstrip('/')}/-/ready"
        try:
            _sender(probe, "GET", left_s, [], None)()
        except HTTPError as answer:
            return answer
        except (OSError, HTTPException, ValueError):
            pass
        return error

    def _push(self, group: Group, left_s: float) -> None:
        key = {"rack": group.rack, "board": group.board}
        push_to_gateway(
            self._url, group.job, group.families, grouping_key=key, timeout=left_s, handler=_sender
        )

    def failure(self) -> str | None:
        """Return what went wrong, None where every group arrived."""
        pushed, many = self._pushed, len(self._groups)
        if pushed == many:
            return None
        what, way_out = self._reason or _explain(TimeoutError(), self._timeout_s)
        return (
            f"Metrics of {many - pushed} of {many} boards were not pushed to the Pushgateway at {self._url}: "
            f"{what}. Next: {way_out}"
        )


def _sender(
    url: str, method: str, timeout: float, headers: Sequence[tuple[str, str]], data: bytes | None
) -> Callable[[], None]:
    """Return what sends one request, in the shape that prometheus-client asks for."""
    request = Request(url, data, dict(headers), method=method)  # noqa: S310 (problem_of saw to the scheme)
    if credentials := _credentials():
        request.add_header("Authorization", f"Basic {b64encode(':'.join(credentials).encode()).decode()}")

    def send() -> None:
        build_opener(_NoRedirect).open(request, timeout=timeout).close()

    return send


class _NoRedirect(HTTPRedirectHandler):
    """Takes a redirect for an error: the password is not for another host."""

    def redirect_request(self, *_: object) -> None:
        return None


def _credentials() -> tuple[str, str] | None:
    """Return user name and password where the environment holds both."""
    user, password = os.environ.get(USER_VARIABLE), os.environ.get(PASSWORD_VARIABLE)
    return (user, password) if user and password else None


def _explain(error: Exception, timeout_s: float) -> tuple[str, str]:
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
    return text or type(reason).__name__, "check scheme, host and port, and that the Pushgateway is up."


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
    return f"{answer}: {said}" if said else answer, "its log may say more."
