# SPDX-License-Identifier: Apache-2.0
"""The job's token, for the git processes of one command.

A checkout that keeps it (`persist-credentials`) leaves it in .git/config, where all that is installed later
could read it. So the step that fetches or pushes is given it, and nothing else of its job.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping


def with_token(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables by which git sends GITHUB_TOKEN to GITHUB_SERVER_URL and to no other server.

    Nothing where either is not set: git asks as it does for a person. What GIT_CONFIG_COUNT counts stays.
    """
    token, server = environment.get("GITHUB_TOKEN", ""), environment.get("GITHUB_SERVER_URL", "")
    if not token or not server:
        return {}
    count = int(environment.get("GIT_CONFIG_COUNT") or 0)
    basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    return {
        "GIT_CONFIG_COUNT": str(count + 1),
        f"GIT_CONFIG_KEY_{count}": f"http.{server.rstrip('/')}/.extraheader",
        f"GIT_CONFIG_VALUE_{count}": f"AUTHORIZATION: basic {basic}",
    }
