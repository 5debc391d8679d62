# SPDX-License-Identifier: Apache-2.0
"""``make bench-gate``: the gate judges simulated pull requests, beside two plain tests."""
