# SPDX-License-Identifier: Apache-2.0
"""GitHub's API, by the one client that there is: patient where GitHub is busy, plain where it refuses.

The token goes to the API and nowhere else: a redirect is followed by hand, without it, and no sentence
has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec
import requests
from requests.adapters import HTTPAdapter, Retry

import hil
from hil.base.errors import ConfigError, RigError

T = TypeVar("T")
DEFAULT_API = "https://api.github.com"
MOST_ANSWER_BYTES = 16 * 1024 * 1024
MOST_PAGES = 30
PAGE_SIZE = 100
API_VERSION = "2022-11-28"
TIMEOUT_S = (10.0, 30.0)  # to connect, to read
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_REPOSITORY = re.compile(r"[A-Za-z0-9-]{1,39}/[A-Za-z0-9._-]{1,100}")


class _Patience(Retry):
    """Asks again where GitHub is down, and where it says after how long; never for what creates something."""

    RETRY_AFTER_STATUS_CODES = frozenset((403, 429, 503))


_PATIENCE = _Patience(
    total=3,
    backoff_factor=1,
    status_forcelist=(500, 502, 503, 504),
    allowed_methods=("GET", "PATCH"),
    raise_on_status=False,
    retry_after_max=40,
)


class GitHubRefusal(RigError):  # noqa: N818 (an answer)
    """GitHub answered with ``status``, and will do so again."""

    def __init__(self, status: int, sentence: str, *, next_step: str) -> None:
        super().__init__(sentence, next_step=next_step)
        self.status = status


class TooLarge(RigError):  # noqa: N818 (an answer)
    """An answer has more bytes than anyone should read."""


@dataclass
class GitHub:
    """A repository (``owner/name``) at an API. ``token`` may be empty for what is public."""

    repository: str
    token: str = field(default="", repr=False)
    api: str = DEFAULT_API

    def __post_init__(self) -> None:
        """Check the address. Raises ConfigError."""
        if not _REPOSITORY.fullmatch(self.repository):
            raise ConfigError(
                f"{self.repository!r} is not a repository.",
                next_step="name it as owner/name: --repository, or GITHUB_REPOSITORY.",
            )
        parts = urlsplit(self.api)
        if not _is_safe(self.api) or parts.username or parts.query:
            raise ConfigError(
                f"hil sends no token to the API address {parts.scheme}://{parts.hostname}.",
                next_step=f"set GITHUB_API_URL to an address with https, such as {DEFAULT_API}.",
            )
        self._session = requests.Session()
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, HTTPAdapter(max_retries=_PATIENCE))

    def get(self, path: str, kind: type[T], **parameters: Any) -> T:
        """Return what is at ``path`` of the repository, as a ``kind``, which has the keys that are wanted.

        Raises:
            Refused: GitHub says no.
            RigError: GitHub does not answer, or with something else.
        """
        return self._json("GET", path, kind, params=parameters)

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
            f"GitHub's list {path} has more than {MOST_PAGES * PAGE_SIZE} entries, so hil did not read it.",
            next_step="this command reads no more entries.",
        )

    def post(self, path: str, body: Mapping[str, Any], kind: type[T] = dict) -> T:  # type: ignore[assignment]
        """Create something; never twice: an answer that is lost is for the caller to look into."""
        return self._json("POST", path, kind, json=body)

    def patch(self, path: str, body: Mapping[str, Any]) -> None:
        """Change something; raises as get()."""
        self._json("PATCH", path, dict, json=body)

    def download(self, path: str, most_bytes: int) -> bytes:
        """Return a file that GitHub redirects to, at most ``most_bytes`` of it. Raises as get()."""
        answer, _ = self._ask("GET", path, ok=(302,))
        target = answer.headers.get("Location", "")
        if not _is_safe(target):
            raise RigError(f"GitHub redirects {path} to an address without https.", next_step=_LATER)
        return self._send("GET", target, f"the file of {path}", (200,), most_bytes, "")[1]

    def _json(self, method: str, path: str, kind: type[T], **more: Any) -> T:
        _, content = self._ask(method, path, ok=(200, 201, 202), **more)
        try:
            stored = msgspec.json.decode(content)
        except (msgspec.DecodeError, RecursionError) as error:
            raise RigError(f"GitHub's answer to {path} is not JSON.", next_step=_LATER) from error
        return _as(kind, stored, path)

    def _ask(
        self, method: str, path: str, ok: tuple[int, ...], **more: Any
    ) -> tuple[requests.Response, bytes]:
        own = f"/repos/{self.repository}/{path}"
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": API_VERSION}
        url, what = self.api.rstrip("/") + own, f"{method} {own}"
        return self._send(method, url, what, ok, MOST_ANSWER_BYTES, self.token, headers=headers, **more)

    def _send(
        self, method: str, url: str, what: str, ok: tuple[int, ...], most_bytes: int, token: str, **more: Any
    ) -> tuple[requests.Response, bytes]:
        """Ask, follow nothing; return the answer and its content. Raises RigError."""

        def authorize(request: requests.PreparedRequest) -> requests.PreparedRequest:
            """Add the token; as there is this, requests looks for none in ~/.netrc."""
            request.headers["User-Agent"] = f"hil/{hil.__version__}"
            if token:
                request.headers["Authorization"] = f"Bearer {token}"
            return request

        more |= {"timeout": TIMEOUT_S, "allow_redirects": False, "stream": True}
        content = bytearray()
        try:
            with self._session.request(method, url, auth=authorize, **more) as answer:
                for piece in answer.iter_content(64 * 1024):
                    content += piece
                    if len(content) > most_bytes:
                        raise _too_large(what, most_bytes)
        except requests.RequestException as error:
            # named without the address, which may hold a signature
            raise RigError(
                f"GitHub did not answer to {what}: {type(error).__name__}.", next_step=_LATER
            ) from error
        if answer.status_code not in ok:
            raise _refusal(answer, what, bytes(content))
        return answer, bytes(content)


def _too_large(what: str, most_bytes: int) -> TooLarge:
    return TooLarge(
        f"the answer to {what} is larger than {most_bytes:,} B, and was not read to its end.",
        next_step="what is that large is not what this command expects there.",
    )


def _is_safe(address: str) -> bool:
    """Return whether what is sent to an address is read by nobody else."""
    parts = urlsplit(address)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)


def _refusal(answer: requests.Response, what: str, content: bytes) -> GitHubRefusal:
    status, wait = answer.status_code, answer.headers.get("Retry-After", "")[:20]
    if status == 429 or (status == 403 and (wait or answer.headers.get("X-RateLimit-Remaining") == "0")):
        return GitHubRefusal(
            status,
            f"GitHub's rate limit is used up: {what} got status {status}, and asks for {wait or 'some'} s.",
            next_step="run the job again when that has passed.",
        )
    said = ""  # GitHub's own short word
    with suppress(msgspec.MsgspecError, RecursionError):
        said = f" ({msgspec.json.decode(content, type=_Refusal).message[:120]})"
    return GitHubRefusal(status, f"GitHub refused {what}: status {status}{said}.", next_step=_way_out(status))


class _Refusal(msgspec.Struct):
    message: str


_LATER = "run the job again; https://www.githubstatus.com/ tells whether GitHub is well."


def _as(kind: type[T], stored: object, path: str) -> T:
    """Return an answer as a ``kind``. Raises RigError, which says what is missing or of another type."""
    try:
        return msgspec.convert(stored, kind)
    except msgspec.ValidationError as error:
        raise RigError(
            f"GitHub's answer to {path} does not follow its API: {error}.",
            next_step=f"run the job again; GITHUB_API_URL must be GitHub's API of {API_VERSION} or later.",
        ) from error


def _way_out(status: int) -> str:
    return {
        401: "give a token that is still valid in GITHUB_TOKEN.",
        403: "the job needs `actions: read` and `pull-requests: write`; by hand, the token does.",
        404: "check --repository and --run; a token without access gets this answer too.",
        410: "it has expired or was deleted; run the workflow again.",
    }.get(status, _LATER)
