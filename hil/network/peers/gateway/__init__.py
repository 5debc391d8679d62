# SPDX-License-Identifier: Apache-2.0
"""The host's side of the bench http_gateway: an echo server, a requester, and what joins their rows."""
