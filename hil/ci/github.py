# SPDX-License-Identifier: Apache-2.0
"""GitHub's API, by the one client that there is: patient where GitHub is busy, plain where it refuses.

The token goes to the API and nowhere else: a redirect is followed by hand, without it, and no sentence
has it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec
import requests
from requests.auth import AuthBase

import hil
from hil.base.errors import ConfigError, RigError

T = TypeVar("T")
DEFAULT_API = "https://api.github.com"
ATTEMPTS = 4
MOST_WAIT_S = 120.0  # altogether, for a rate limit or a server that is down
MOST_ANSWER_BYTES = 16 * 1024 * 1024
MOST_PAGES = 30
PAGE_SIZE = 100
API_VERSION = "2022-11-28"
TIMEOUT_S = (10.0, 30.0)  # to connect, to read
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_REPOSITORY = re.compile(r"[A-Za-z0-9-]{1,39}/[A-Za-z0-9._-]{1,100}")


class Refused(RigError):  # noqa: N818 (an answer)
    """GitHub answered with ``status``, and will do so again."""

    def __init__(self, status: int, sentence: str, *, next_step: str) -> None:
        super().__init__(sentence, next_step=next_step)
        self.status = status


@dataclass
class GitHub:
    """A repository (``owner/name``) at an API. ``token`` may be empty for what is public."""

    repository: str
    token: str = field(default="", repr=False)
    api: str = DEFAULT_API
    wait: Callable[[float], None] = time.sleep
    _waited_s: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        """Check the address. Raises ConfigError."""
        if not _REPOSITORY.fullmatch(self.repository):
            raise ConfigError(
                f"{self.repository!r} is no repository.",
                next_step="name it as owner/name: --repository, or GITHUB_REPOSITORY.",
            )
        parts = urlsplit(self.api)
        safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
        if not safe or parts.username or parts.query:
            raise ConfigError(
                f"the API's address {parts.scheme}://{parts.hostname} is none that a token may be sent to.",
                next_step=f"set GITHUB_API_URL to an address with https, such as {DEFAULT_API}.",
            )

    def get(self, path: str, kind: type[T], **parameters: Any) -> T:
        """Return what is at ``path`` of the repository, as a ``kind``, which has the keys that are wanted.

        Raises:
            Refused: GitHub says no.
            RigError: GitHub does not answer, or with something else.
        """
        return self._json("GET", path, kind, parameters=parameters)

    def pages(self, path: str, kind: type[T], key: str = "", **parameters: Any) -> Iterator[T]:
        """Yield the objects of a list, page by page; ``key`` is where an answer has it. Raises as get()."""
        listed: Any = dict[str, Any] if key else list[kind]  # type: ignore[valid-type]
        for page in range(1, MOST_PAGES + 1):
            answer = self.get(path, listed, **parameters, per_page=PAGE_SIZE, page=page)
            found = _as(list[kind], answer.get(key), path) if key else answer  # type: ignore[valid-type]
            yield from found
            if len(found) < PAGE_SIZE:
                return
        raise RigError(
            f"GitHub's list {path} has more than {MOST_PAGES * PAGE_SIZE} entries, so it was not read.",
            next_step="that is more than this command looks through.",
        )

    def post(self, path: str, body: Mapping[str, Any], kind: type[T] = dict) -> T:  # type: ignore[assignment]
        """Create something; never twice: an answer that is lost is for the caller to look into."""
        return self._json("POST", path, kind, body=body, attempts=1)

    def patch(self, path: str, body: Mapping[str, Any]) -> None:
        """Change something; raises as get()."""
        self._json("PATCH", path, dict, body=body)

    def delete(self, path: str) -> None:
        """Delete something; raises as get()."""
        self._ask("DELETE", path, None, None, ATTEMPTS, ok=(204,))

    def download(self, path: str, most_bytes: int) -> bytes:
        """Return a file that GitHub redirects to, at most ``most_bytes`` of it. Raises as get()."""
        answer, _ = self._ask("GET", path, None, None, ATTEMPTS, ok=(302,))
        target = answer.headers.get("Location", "")
        parts = urlsplit(target)
        if not (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)):
            raise RigError(f"GitHub redirects {path} to no address with https.", next_step=_LATER)
        answer, content = self._retried("GET", target, f"the file of {path}", ATTEMPTS, most_bytes, token="")
        if answer.status_code != 200:
            raise self._refusal(answer, f"the file of {path}", content)
        return content

    def _json(
        self,
        method: str,
        path: str,
        kind: type[T],
        *,
        parameters: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        attempts: int = ATTEMPTS,
    ) -> T:
        _, content = self._ask(method, path, parameters, body, attempts, ok=(200, 201, 202))
        try:
            stored = msgspec.json.decode(content)
        except (msgspec.DecodeError, RecursionError) as error:
            raise RigError(f"GitHub's answer to {path} is no JSON.", next_step=_LATER) from error
        return _as(kind, stored, path)

    def _ask(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, Any] | None,
        body: Mapping[str, Any] | None,
        attempts: int,
        ok: tuple[int, ...],
    ) -> tuple[requests.Response, bytes]:
        own = f"/repos/{self.repository}/{path}"
        url, what = self.api.rstrip("/") + own, f"{method} {own}"
        more = {"params": parameters, "json": body}
        answer, content = self._retried(method, url, what, attempts, MOST_ANSWER_BYTES, self.token, **more)
        if answer.status_code not in ok:
            raise self._refusal(answer, what, content)
        return answer, content

    def _retried(
        self, method: str, url: str, what: str, attempts: int, most_bytes: int, token: str, **more: Any
    ) -> tuple[requests.Response, bytes]:
        """Ask again where GitHub is down, slow or counting; return the last answer."""
        for attempt in range(1, attempts + 1):
            try:
                answer, content = _send(method, url, what, most_bytes, token, **more)
            except requests.RequestException as error:
                if attempt == attempts or not self._may_wait(2.0 ** (attempt - 1)):
                    raise RigError(
                        f"GitHub did not answer to {what}, {attempt} times: {_kind(error)}.", next_step=_LATER
                    ) from error
                continue
            pause = _pause_s(answer, attempt)
            if pause is None or attempt == attempts or not self._may_wait(pause):
                break
        return answer, content

    def _may_wait(self, seconds: float) -> bool:
        """Wait, unless that is longer than a job should; return whether it did."""
        if self._waited_s + seconds > MOST_WAIT_S:
            return False
        self._waited_s += seconds
        self.wait(seconds)
        return True

    def _refusal(self, answer: requests.Response, what: str, content: bytes) -> Refused:
        status = answer.status_code
        if _is_rate_limit(answer):
            wait = answer.headers.get("Retry-After") or "some"
            return Refused(
                status,
                f"GitHub's rate limit is used up: {what} got status {status}, and asks for {wait[:20]} s.",
                next_step="run the job again when that has passed.",
            )
        return Refused(
            status, f"GitHub refused {what}: status {status}{_said(content)}.", next_step=_way_out(status)
        )


_LATER = "run the job again; https://www.githubstatus.com/ tells whether GitHub is well."


def _as(kind: type[T], stored: object, path: str) -> T:
    """Return an answer as a ``kind``. Raises RigError, which says what is missing or of another type."""
    try:
        return msgspec.convert(stored, kind)
    except msgspec.ValidationError as error:
        raise RigError(
            f"GitHub's answer to {path} is not what its API says: {error}.",
            next_step=f"run the job again; GITHUB_API_URL must be GitHub's API of {API_VERSION} or later.",
        ) from error


def _way_out(status: int) -> str:
    return {
        401: "give a token that is still valid in GITHUB_TOKEN.",
        403: "the job needs `actions: read` and `pull-requests: write`; by hand, the token does.",
        404: "check --repository and --run; a token without access gets this answer too.",
        410: "it has expired or was deleted; run the workflow again.",
    }.get(status, _LATER)


class TooLarge(RigError):  # noqa: N818 (an answer)
    """An answer has more bytes than anyone should read."""


class _Bearer(AuthBase):
    """Adds the token; where there is one, requests does not look for another in ~/.netrc."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._token:
            request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def _send(
    method: str, url: str, what: str, most_bytes: int, token: str, **more: Any
) -> tuple[requests.Response, bytes]:
    """Ask once, follow nothing; return the answer and its content.

    Raises:
        TooLarge: there are more than ``most_bytes``.
        requests.RequestException: no answer came.
    """
    headers = {
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": API_VERSION,
        "User-Agent": f"hil/{hil.__version__}",
    }
    with requests.request(
        method,
        url,
        headers=headers if token or more else {"User-Agent": headers["User-Agent"]},
        auth=_Bearer(token),
        timeout=TIMEOUT_S,
        allow_redirects=False,
        stream=True,
        **more,
    ) as answer:
        content = bytearray()
        for piece in answer.iter_content(64 * 1024):
            content += piece
            if len(content) > most_bytes:
                raise TooLarge(
                    f"the answer to {what} is larger than {most_bytes:,} B, and was not read to its end.",
                    next_step="what is that large is not what this command expects there.",
                )
        return answer, bytes(content)


def _kind(error: requests.RequestException) -> str:
    """Name an error without the address, which may hold a signature."""
    if isinstance(error, requests.Timeout):
        return "it took too long"
    return "the connection failed" if isinstance(error, requests.ConnectionError) else type(error).__name__


def _pause_s(answer: requests.Response, attempt: int) -> float | None:
    """Return for how long to wait before the next attempt; None where another one would not help."""
    if _is_rate_limit(answer):
        return _number(answer.headers.get("Retry-After")) or _until_reset_s(answer)
    return 2.0 ** (attempt - 1) if answer.status_code >= 500 else None


def _is_rate_limit(answer: requests.Response) -> bool:
    empty = answer.headers.get("X-RateLimit-Remaining") == "0"
    return answer.status_code in (403, 429) and (
        "Retry-After" in answer.headers or empty or answer.status_code == 429
    )


def _until_reset_s(answer: requests.Response) -> float:
    reset = _number(answer.headers.get("X-RateLimit-Reset"))
    return max(1.0, reset - time.time()) if reset else 60.0


def _number(text: str | None) -> float:
    return float(text) if text and re.fullmatch(r"\d{1,10}", text) else 0.0


def _said(content: bytes) -> str:
    """Return GitHub's own short word for a refusal."""
    with suppress(msgspec.MsgspecError, RecursionError):
        return f" ({msgspec.json.decode(content, type=_Refusal).message[:120]})"
    return ""


class _Refusal(msgspec.Struct):
    message: str
