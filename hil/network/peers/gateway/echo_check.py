# SPDX-License-Identifier: Apache-2.0
"""Whether the echo server answers its own host: where it does not, no board can be blamed for its reads.

    python -m hil.network.peers.gateway.echo_check ADDRESS PORT TLS_PORT

Ends with 0, or says what came instead of an answer and ends with 1.
"""

from __future__ import annotations

import http.client
import json
import ssl
import sys

CHECK_PATH = "/check"
TIMEOUT_S = 2.0  # an answer takes well below 1 ms


def check(address: str, port: int, context: ssl.SSLContext | None) -> str:
    """Ask for CHECK_PATH; return what is wrong with the answer, "" where nothing is."""
    asked = (
        http.client.HTTPSConnection(address, port, timeout=TIMEOUT_S, context=context)
        if context
        else http.client.HTTPConnection(address, port, timeout=TIMEOUT_S)
    )
    try:
        asked.request("GET", CHECK_PATH)
        path = json.loads(asked.getresponse().read())["path"]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
        return f"port {port}: {error!r}"
    return "" if path == CHECK_PATH else f"port {port}: it echoes {path!r}"


def main(arguments: list[str]) -> int:
    address, port, tls_port = arguments
    anyone = ssl.create_default_context()
    anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE  # boards check who it is; this does not
    wrong = check(address, int(port), None) or check(address, int(tls_port), anyone)
    print(wrong, end="")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
