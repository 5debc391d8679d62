# SPDX-License-Identifier: Apache-2.0
"""The host's side of the bench `throughput`: iperf 2.1, and a capture of what crossed the air."""
