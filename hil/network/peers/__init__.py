# SPDX-License-Identifier: Apache-2.0
"""What the rack's host does while a board measures: iperf, an HTTP server, a requester, an interruption."""
