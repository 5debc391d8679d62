# SPDX-License-Identifier: Apache-2.0
"""A conversation with the agent on a board, from hello to series."""

from hil.session.agent import (
    AgentSession,
)

__all__ = [
    "AgentSession",
]
