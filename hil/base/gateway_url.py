# SPDX-License-Identifier: Apache-2.0
"""What the address of a Prometheus Pushgateway must look like, and how a sentence quotes it."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

USER_VARIABLE = "HIL_PUSHGATEWAY_USER"
PASSWORD_VARIABLE = "HIL_PUSHGATEWAY_PASSWORD"  # noqa: S105 (a variable's name, not a password)

_CREDENTIALS = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)?.*@")


def masked(url: str) -> str:
    """Return ``url`` with ``***`` instead of a user name and password."""
    return _CREDENTIALS.sub(r"\1***@", url)


def problem_of(url: str) -> str:
    """Return one sentence on what is wrong with a Pushgateway's address, "" where nothing is.

    User name and password belong into the environment: an address shows up in process lists and records.
    """
    if "@" in url:
        return (
            f"the Pushgateway's address {masked(url)!r} holds a user name or password; take them out and set "
            f"{USER_VARIABLE} and {PASSWORD_VARIABLE} in the environment."
        )
    if not _is_http(url):
        return (
            f"the Pushgateway's address {url!r} is not one of http or https; write it like "
            "http://lab.example:9091, without /metrics, '?' and '#'."
        )
    return ""


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    shaped = parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0
    return shaped and not parts.query and not parts.fragment and re.search(r"[\s?#]", url) is None
