# SPDX-License-Identifier: Apache-2.0
"""What smart plugs over HTTP share: their keys in a rack file, the password, a question and its answer."""

from __future__ import annotations

import base64
import http.client
import json
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self
from urllib.error import HTTPError
from urllib.parse import urlsplit

from hil.base.errors import ConfigError, RigError
from hil.base.finding import Finding
from hil.base.secret import read_variable, secret, way_out
from hil.base.yamlfile import Node
from hil.boards.power import TIMEOUT_S, PowerDriver, read_timeout

USER = "admin"
_ANSWER_BYTES_MAX = 64 << 10
_REQUEST_TIMEOUT_S = 5.0  # of each; a plug answers in milliseconds, and its Wi-Fi may repeat
_URL_PARTS = "an address such as http://192.168.77.20, without user, query or fragment"


@dataclass(frozen=True)
class HttpPlug(PowerDriver):
    """``password_env`` is the environment variable with the password, "" where the plug wants none."""

    first_relay: ClassVar[int] = 0

    url: str
    relay: int
    password_env: str = ""
    timeout_s: float = TIMEOUT_S

    @classmethod
    def read(cls, node: Node) -> Self:
        relay = node.integer("relay", default=cls.first_relay, minimum=cls.first_relay, maximum=32)
        return cls(_read_url(node), relay, read_variable(node, "password_env"), read_timeout(node))

    def __str__(self) -> str:
        return f"the {type(self).__name__} plug at {self.url}"

    def check(self, board: str) -> Iterator[Finding]:
        try:
            self.password()
        except ConfigError as error:
            yield Finding(board, ok=False, sentence=error.sentence, mend=error.next_step)

    def password(self) -> str:
        """Return the password, "" without. Raises ConfigError: the variable is not set."""
        password = secret(self.password_env)
        if self.password_env and not password:
            raise ConfigError(
                f"the environment variable {self.password_env} holds no password for its plug.",
                next_step=way_out(self.password_env),
            )
        return password

    def refusal(self) -> str:
        """Return what it means that the plug refuses to answer."""
        if self.password_env:
            return "it refuses the password of password_env"
        return "it wants a password (password_env)"

    def get(self, path: str, *, login: bool = False) -> dict[str, Any]:
        """Return the JSON object at a path, asked with ``login`` or without. Raises RigError.

        No proxy of the environment is asked.
        """
        request = urllib.request.Request(self.url + path)  # noqa: S310 - the rack file takes http alone
        if login and (password := self.password()):
            token = base64.b64encode(f"{USER}:{password}".encode()).decode()
            request.add_header("Authorization", f"Basic {token}")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=min(_REQUEST_TIMEOUT_S, self.timeout_s)) as answer:
                return self._parsed(answer.read(_ANSWER_BYTES_MAX))
        except HTTPError as error:
            error.close()  # it is the answer, and its connection
            refused = f"; {self.refusal()}" if error.code == 401 else ""
            raise self.failed(f"it answered with HTTP status {error.code}{refused}") from error
        except (OSError, http.client.HTTPException) as error:
            cause = getattr(error, "reason", None) or error
            raise self.failed(f"it did not answer: {cause}") from error

    def _parsed(self, content: bytes) -> dict[str, Any]:
        try:
            value = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise self.failed("it answers, and not in JSON, so it is another device") from error
        if not isinstance(value, dict):
            raise self.failed(f"it answers {shown(value)}, so it is another device")
        return value

    def failed(self, sentence: str) -> RigError:
        """Return, for raising, the error of a plug that answers otherwise than it should."""
        return RigError(f"{sentence}.", next_step=f"open {self.url} in a browser; mend the rack file.")


def shown(value: object) -> str:
    """Return the beginning of an answer."""
    return json.dumps(value)[:80]


def _read_url(node: Node) -> str:
    url = node.text("url")
    try:
        parts = urlsplit(url)
        ok = parts.scheme == "http" and parts.hostname and (parts.port or 80) > 0
        ok = ok and not (parts.query or parts.fragment or parts.username or parts.path.strip("/"))
    except ValueError:
        ok = False
    if not ok:
        raise node.error(
            "url",  # whatever stands before @ may be a password
            f"the plug's url {url.rpartition('@')[2]!r} is not {_URL_PARTS}.",
            next_step="write it like: http://192.168.77.20; a password belongs in password_env.",
        )
    return url.rstrip("/")
