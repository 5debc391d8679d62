# SPDX-License-Identifier: Apache-2.0
"""``make bench-gate``: the gate and eight other rules judge the same simulated pull requests."""
