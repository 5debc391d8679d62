# SPDX-License-Identifier: Apache-2.0
"""GitHub's API, as far as a comment needs it: patient where GitHub is busy, plain where it refuses.

The token goes to the API and nowhere else: a redirect is followed by hand, without it, and no sentence
has it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import requests

from hil.base.errors import ConfigError, RigError
from hil.ci.github_http import is_rate_limit, kind, pause_s, said, send

DEFAULT_API = "https://api.github.com"
ATTEMPTS = 4
MOST_WAIT_S = 120.0  # altogether, for a rate limit or a server that is down
MOST_ANSWER_BYTES = 16 * 1024 * 1024
MOST_PAGES = 30
PAGE_SIZE = 100
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

    def get(self, path: str, parameters: Mapping[str, Any] | None = None) -> Any:
        """Return what is at ``path`` of the repository, or of the API where it starts with "/".

        Raises:
            Refused: GitHub says no.
            RigError: GitHub does not answer, or with no JSON.
        """
        return self._json("GET", path, parameters=parameters)

    def pages(self, path: str, key: str = "", **parameters: Any) -> Iterator[dict[str, Any]]:
        """Yield the objects of a list, page by page; ``key`` is where an answer has it. Raises as get()."""
        for page in range(1, MOST_PAGES + 1):
            answer = self.get(path, {**parameters, "per_page": PAGE_SIZE, "page": page})
            found = answer.get(key) if key and isinstance(answer, dict) else answer
            if not isinstance(found, list):
                raise RigError(f"GitHub's answer to {path} is no list.", next_step=_LATER)
            yield from (one for one in found if isinstance(one, dict))
            if len(found) < PAGE_SIZE:
                return
        raise RigError(
            f"GitHub's list {path} has more than {MOST_PAGES * PAGE_SIZE} entries, so it was not read.",
            next_step="that is more than this command looks through.",
        )

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Create something; never twice: an answer that is lost is for the caller to look into."""
        return self._json("POST", path, body=body, attempts=1)

    def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        """Change something; raises as get()."""
        return self._json("PATCH", path, body=body)

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
        *,
        parameters: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        attempts: int = ATTEMPTS,
    ) -> Any:
        _, content = self._ask(method, path, parameters, body, attempts, ok=(200, 201, 202))
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise RigError(f"GitHub's answer to {path} is no JSON.", next_step=_LATER) from error

    def _ask(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, Any] | None,
        body: Mapping[str, Any] | None,
        attempts: int,
        ok: tuple[int, ...],
    ) -> tuple[requests.Response, bytes]:
        own = path if path.startswith("/") else f"/repos/{self.repository}/{path}"
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
                answer, content = send(method, url, what, most_bytes, token, **more)
            except requests.RequestException as error:
                if attempt == attempts or not self._may_wait(2.0 ** (attempt - 1)):
                    raise RigError(
                        f"GitHub did not answer to {what}, {attempt} times: {kind(error)}.", next_step=_LATER
                    ) from error
                continue
            pause = pause_s(answer, attempt)
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
        if is_rate_limit(answer):
            wait = answer.headers.get("Retry-After") or "some"
            return Refused(
                status,
                f"GitHub's rate limit is used up: {what} got status {status}, and asks for {wait[:20]} s.",
                next_step="run the job again when that has passed.",
            )
        return Refused(
            status, f"GitHub refused {what}: status {status}{said(content)}.", next_step=_way_out(status)
        )


_LATER = "run the job again; https://www.githubstatus.com/ tells whether GitHub is well."


def _way_out(status: int) -> str:
    return {
        401: "give a token that is still valid in GITHUB_TOKEN.",
        403: "the job needs `actions: read` and `pull-requests: write`; by hand, the token does.",
        404: "check --repository and --run; a token without access gets this answer too.",
        410: "it has expired or was deleted; run the workflow again.",
    }.get(status, _LATER)
