# SPDX-License-Identifier: Apache-2.0
"""One request to GitHub, and what its answer says of trying again."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import requests
from requests.auth import AuthBase

import hil
from hil.base.errors import RigError

API_VERSION = "2022-11-28"
TIMEOUT_S = (10.0, 30.0)  # to connect, to read


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


def send(
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


def kind(error: requests.RequestException) -> str:
    """Return what went wrong without the address, which may hold a signature."""
    if isinstance(error, requests.Timeout):
        return "it took too long"
    return "the connection failed" if isinstance(error, requests.ConnectionError) else type(error).__name__


def pause_s(answer: requests.Response, attempt: int) -> float | None:
    """Return for how long to wait before the next attempt; None where another one would not help."""
    if is_rate_limit(answer):
        return _number(answer.headers.get("Retry-After")) or _until_reset_s(answer)
    return 2.0 ** (attempt - 1) if answer.status_code >= 500 else None


def is_rate_limit(answer: requests.Response) -> bool:
    empty = answer.headers.get("X-RateLimit-Remaining") == "0"
    return answer.status_code in (403, 429) and (
        "Retry-After" in answer.headers or empty or answer.status_code == 429
    )


def _until_reset_s(answer: requests.Response) -> float:
    reset = _number(answer.headers.get("X-RateLimit-Reset"))
    return max(1.0, reset - time.time()) if reset else 60.0


def _number(text: str | None) -> float:
    return float(text) if text and re.fullmatch(r"\d{1,10}", text) else 0.0


def said(content: bytes) -> str:
    """Return GitHub's own short word for a refusal."""
    try:
        message = json.loads(content).get("message")
    except (ValueError, AttributeError, RecursionError):
        return ""
    return f" ({message[:120]})" if isinstance(message, str) else ""
